"""Where the thresholds of the path to the solver come from: ratios of two ways on the same program."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator

import numpy as np
import pyomo.environ as pyo

import formulations
from benchmarks.overhead import highs_alone
from benchmarks.tables import Row, Setup, benchmark, median_seconds, seconds, timed
from formulations.engine.linear import LinearProgram, translate, weighted_sum
from instances.gavel import max_min_fairness
from validation import catalogue

__all__ = ["expressions", "interior_point", "pricing_columns", "time_limit"]


@benchmark("engine.interior_point", "policy", "jobs", "rows", "simplex", "interior point", "ratio")
def interior_point(setup: Setup) -> Iterator[Row]:
    """Simplex against interior point with crossover on programs of Gavel's policies, by number of rows."""
    for name in setup.few(("max_min_fairness", "makespan", "fifo", "total_throughput")):
        for jobs in setup.size((128, 256, 512, 1024, 2048, 4096), (16,)):
            one = catalogue.entry(f"gavel.{name}").generate(0, num_jobs=jobs, multi_worker=False, pair_fraction=0.0)
            program = translate(formulations.build(one))
            simplex, interior, ratio = _both(program, setup.repeats)
            yield f"`{name}`", f"{jobs:,}", f"{program.num_rows:,}", seconds(simplex), seconds(interior), f"{ratio:.2f}"


def _both(program: LinearProgram, repeats: int) -> tuple[float, float, float]:
    """Median processor times of simplex and interior point, s, in turn, and the median of their ratios."""
    found = [(timed(highs_alone, program, "simplex")[1], timed(highs_alone, program, "ipm")[1]) for _ in range(repeats)]
    simplex, interior = (statistics.median(times) for times in zip(*found, strict=True))
    return simplex, interior, statistics.median(one / other for one, other in found)


@benchmark("engine.pricing", "jobs", "pair columns", "whole program", "columns generated", "ratio")
def pricing_columns(setup: Setup) -> Iterator[Row]:
    """Max-min fairness with all pairs: the whole program against generating columns, by number of pair columns."""
    for jobs in setup.size((32, 64, 96, 128, 192, 256), (12,)):
        one = max_min_fairness.generate(0, num_jobs=jobs, multi_worker=False, pair_fraction=1.0)
        times = []
        for method in ("arrays", "columns"):
            runs = (timed(formulations.solve, one, method=method)[1] for _ in range(min(3, setup.repeats)))
            times.append(statistics.median(runs))
        yield jobs, f"{one.fits[one.num_jobs :].size:,}", *map(seconds, times), f"{times[0] / times[1]:.2f}"


@benchmark("engine.time_limit", "problem", "size", "processor time", "message")
def time_limit(setup: Setup) -> Iterator[Row]:
    """Solves under a limit of half a second, of models that take seconds to be built."""
    sizes = (
        ("synergy.placement", 64),
        ("gavel.round_assignment", 2048),
        ("afs.gpu_placement", 1024),
        ("afs.elastic_sharing", 150),
    )
    for problem, size in setup.few(sizes):
        entry = catalogue.entry(problem)
        small, large = (entry.generate(0, **{entry.size: one}) for one in (entry.sizes[0], setup.size(size, 4)))
        # What is imported the first time is not the solve's.
        formulations.solve(small)
        solution, spent = timed(formulations.solve, large, time_limit=0.5)
        yield f"`{problem}`", f"{size:,}", seconds(spent), solution.message


@benchmark("engine.expressions", "expression", "time", "multiple of `weighted_sum`")
def expressions(setup: Setup) -> Iterator[Row]:
    """Processor time of building 500 linear expressions of 100 terms one after the other, three ways."""
    terms, count = setup.size((100, 500), (10, 3))
    model = pyo.ConcreteModel()
    model.X = pyo.Var(range(terms))
    coefficients = np.linspace(1, 2, terms).tolist()
    variables = list(model.X.values())

    def products() -> object:
        return sum(c * x for c, x in zip(coefficients, variables, strict=True))

    def quicksum() -> object:
        return pyo.quicksum(c * x for c, x in zip(coefficients, variables, strict=True))

    def without_sums() -> object:
        return weighted_sum(coefficients, variables)

    def repeat(build: Callable[[], object]) -> None:
        for _ in range(count):
            build()

    ways = {"`sum` of products": products, "`pyo.quicksum` of products": quicksum, "`weighted_sum`": without_sums}
    times = {name: median_seconds(setup.repeats, repeat, build) for name, build in ways.items()}
    for name, took in times.items():
        yield name, seconds(took), f"{took / times['`weighted_sum`']:.1f}"
