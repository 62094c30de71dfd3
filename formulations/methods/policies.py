"""The methods of Gavel's policies that are one linear program, and which of them is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from formulations.engine.options import Options
from formulations.engine.solution import Solution
from formulations.engine.solving import solve_by_method
from formulations.methods import Choice, Method, arrays, classes, columns, generation, one_model, prices
from formulations.methods.policy import PolicyMethod, Task
from instances.gavel.sharing import Sharing

__all__ = ["CHOICE", "best_first", "solve"]

FOLDED_COLUMNS = 2_000
"""Up to so many classes of columns, the program over classes is faster than prices."""


def best_first(instance: Sharing) -> Sequence[Method]:
    """List the methods that apply, the fastest first.

    - Many jobs without pairs are solved by prices, in a time that hardly grows with them; but where they fall into few
      classes, the program over these is smaller yet.
    - Where half of the columns have a twin, the program over classes is at most half as large.
    - Of many pairs few matter, so their columns are generated; those of few are there from the start.
    - The one model is the program of arrays with Pyomo's objects, which take about as long to make as it to solve.
    """
    task = Task(instance)
    size = None if task.folding is None else task.folding.program.num_cols
    alike, few_classes = size is not None, size is not None and size <= FOLDED_COLUMNS
    small = size is not None and size <= generation.PRICING_COLUMNS
    priced = prices.applies(instance)
    first = priced and not few_classes and instance.num_jobs >= task.known.priced_jobs
    paired = instance.num_pairs > 0
    many = instance.num_pairs * instance.num_types > generation.PRICING_COLUMNS
    order: list[tuple[PolicyMethod, bool]] = [
        (prices.METHOD, first),
        (classes.METHOD, small),
        (columns.METHOD, many),
        (arrays.METHOD, True),
        (classes.METHOD, alike and not small),
        (columns.METHOD, paired and not many),
        (prices.METHOD, priced and not first),
    ]
    return [*(method.on(task) for method, applies in order if applies), one_model.LINEAR]


def solve(instance: Sharing, options: Options) -> Solution:
    """Solve an instance by the best method, on HiGHS, as ``formulations.solve`` does."""
    return solve_by_method(instance, replace(options, solver="highs"))


CHOICE = Choice(
    (*(one.method for one in (prices.METHOD, classes.METHOD, columns.METHOD, arrays.METHOD)), one_model.LINEAR),
    best_first,
)
