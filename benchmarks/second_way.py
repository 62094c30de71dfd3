"""Every mixed-integer problem solved in two independent ways, on instances with ties.

``python -m benchmarks.second_way --count 20000 --seed 0`` draws small instances from the problems' strategies and
generators, gives most of them members that are alike, and compares ``formulations.solve`` with SCIP on the whole
model, or with HiGHS without presolve on scaled arrays where SCIP fails.  What decides is a plan that the instance
finds feasible: the side whose bound it beats is wrong.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import highspy
import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

import formulations
from formulations.engine.highs import hand_over
from formulations.engine.linear import translate
from instances.base import Instance, InstanceError
from instances.files import save
from validation import catalogue
from validation.kernel.gaps import beats
from validation.kernel.judging import Asked, Status, judge
from validation.pages.render import table_lines
from validation.testing import strategies
from validation.testing.transform import dimensions, take

__all__ = ["CASES", "Case", "Row", "compare", "draw", "main", "run"]

AnyInstance = Instance[Any]

LIMIT = 20.0
"""Limit for each of the two solves, s; what is still open then is counted, and proves nothing."""
MOST_MEMBERS = 8
"""Instances are given no more jobs, servers, ... than this by copying."""


@dataclass(frozen=True)
class Case:
    """A problem, the sizes of its generated instances, and its generator's other options."""

    problem: str
    sizes: tuple[int, ...]
    options: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return " ".join([self.problem, *map(str, self.fixed.values())])


_LOSS = {"loss": (0.2, 0.5, 1)}
CASES = (
    Case("aryl.reclaim", (3, 4, 6, 8)),
    Case("aryl.elastic_allocation", (2, 3, 5, 8), {"linear": (True, False), "max_extra": (2, 4)}),
    Case("aryl.base_allocation", (2, 3, 4)),
    Case("aryl.placement", (2, 4, 6)),
    Case("aryl.two_job", (3, 4, 6, 8, 12)),
    Case("afs.elastic_sharing", (2, 3), {"num_gpus": (2, 3, 4), **_LOSS}, {"reallocation": "at_completions"}),
    Case("afs.elastic_sharing", (2, 3, 4), {"num_gpus": (3, 5, 8), **_LOSS}, {"reallocation": "any_time"}),
    Case("afs.gpu_placement", (2, 3, 4)),
    Case("afs.network_packing", (2, 4, 6)),
    Case("afs.two_job", (2, 4, 8)),
    Case("elasticflow.admission", (2, 3, 4)),
    Case("elasticflow.allocation", (2, 3)),
    Case("elasticflow.best_effort", (2, 3)),
    Case("elasticflow.minimum_satisfactory_share", (2, 3)),
    Case("elasticflow.placement", (1, 2, 3), {"gpus_per_server": (2, 4, 8)}),
    Case("gavel.round_assignment", (2, 4, 6)),
    Case("gavel.shortest_job_first", (2, 4, 6)),
    Case("synergy.allocation", (1, 2, 4)),
    Case("synergy.heterogeneous_allocation", (2, 4)),
    Case("synergy.placement", (1, 2), {"integral_gpus": (True, False), "server_gpus": (2, 4)}),
    Case("synergy.tuning", (1, 2), {"allow_split": (True, False)}),
)


@dataclass
class Row:
    """What came of one case."""

    name: str
    instances: int = 0
    ties: int = 0
    open: int = 0
    wrong: int = 0
    other_wrong: int = 0
    warned: int = 0
    without_scip: int = 0
    proofs: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def draw(case: Case, count: int, seed: int) -> Iterator[tuple[AnyInstance, bool]]:
    """Draw instances of a case, and whether members were made alike: half by strategy, half by generator.

    Parameters
    ----------
    case : Case
    count : int
    seed : int
        Two calls with one seed draw the same.
    """
    rng = np.random.default_rng([seed, CASES.index(case)])
    generated = count // 2
    for instance in _by_strategy(case.problem, count - generated, seed):
        given_fields = {name: value for name, value in case.fixed.items() if hasattr(instance, name)}
        if hasattr(instance, "arrivals"):
            # Of jobs that arrive over time there is a bound only.
            given_fields["arrivals"] = np.zeros_like(instance.arrivals)
        yield _with_ties(replace(instance, **given_fields), rng)
    entry = catalogue.entry(case.problem)
    for _ in range(generated):
        options = {name: values[rng.integers(len(values))] for name, values in case.options.items()}
        size = case.sizes[rng.integers(len(case.sizes))]
        yield _with_ties(entry.generate(rng, **{entry.size: size}, **options, **case.fixed), rng)


def _by_strategy(problem: str, count: int, seed: int) -> list[AnyInstance]:
    drawn: list[AnyInstance] = []
    # Hypothesis stops early where it has seen all there is, and goes over simple examples more than once.
    for round_number in range(4):

        @hypothesis.seed(seed + round_number * 1_000_003)
        @settings(
            max_examples=count,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategies.strategy(problem))
        def collect(instance: AnyInstance) -> None:
            drawn.append(instance)

        collect()
        if len(drawn) >= count:
            break
    return drawn[:count]


def _with_ties(instance: AnyInstance, rng: np.random.Generator) -> tuple[AnyInstance, bool]:
    """Make members alike two times in three: whole copies, or one field's entry of another's."""
    kind = rng.integers(3)
    dims = dimensions(instance)
    if kind == 0:
        return instance, False
    try:
        if not dims:
            # Always two jobs.
            return _with_equal_entry(instance, 2, rng), True
        dim = dims[rng.integers(len(dims))]
        size = instance.dims[dim]
        if kind == 2:
            return _with_equal_entry(instance, size, rng), True
        room = max(1, MOST_MEMBERS - size)
        copies = rng.integers(size, size=rng.integers(1, min(3, room) + 1))
        # Copies take the place of others, or join them.
        members = np.concatenate([np.arange(size), copies])
        if rng.random() < 0.5:
            members = np.sort(rng.choice(members, size, replace=False))
        return take(instance, dim, members), True
    except InstanceError:
        return instance, False


def _with_equal_entry(instance: AnyInstance, size: int, rng: np.random.Generator) -> AnyInstance:
    """Give one field's entry of one member to all, or to one other."""
    arrays = [name for one in fields(instance) if _per_member(getattr(instance, name := one.name), size)]
    if not arrays:
        return instance
    name = arrays[rng.integers(len(arrays))]
    value = getattr(instance, name)
    taken, given_to = rng.integers(size, size=2)
    order = np.where(rng.random() < 0.5, taken, np.where(np.arange(size) == given_to, taken, np.arange(size)))
    return replace(instance, **{name: tuple(value[i] for i in order) if isinstance(value, tuple) else value[order]})


def _per_member(value: Any, size: int) -> bool:
    return (isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)) and len(value) == size


def compare(instance: AnyInstance, row: Row) -> str:
    """Solve in both ways and count; return what contradicts what, or nothing.

    Parameters
    ----------
    instance : Instance
    row : Row
        Is added to.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", formulations.SolverDisagreement)
        first = formulations.solve(instance, time_limit=LIMIT)
    row.warned += any(issubclass(one.category, formulations.SolverDisagreement) for one in caught)
    row.proofs[first.proof] += 1
    status: str
    try:
        second = formulations.solve(instance, solver="scip", time_limit=LIMIT, verify=False)
        status, value, bound = second.status, second.objective, second.bound
    except formulations.SolverError:
        row.without_scip += 1
        status, value, bound = _without_presolve(instance)
    row.instances += 1
    if "unknown" in (first.status, status):
        row.open += 1
        return ""
    found = _contradiction(instance, first.status, first.objective, status, bound)
    if found:
        row.other_wrong += 1
        return f"the second way is wrong: {found}"
    found = _contradiction(instance, status, value, first.status, first.bound)
    if found:
        row.wrong += 1
        return f"solve is wrong: {found}"
    row.open += "optimal" not in (first.status, status) and first.status != status
    return ""


def _contradiction(instance: AnyInstance, has: str, value: float | None, claims: str, bound: float) -> str:
    """Return how a plan's value refutes the other side's claim; empty where it does not."""
    if has not in (Status.OPTIMAL, Status.FEASIBLE) or value is None:
        return ""
    if claims == Status.INFEASIBLE:
        return f"a plan is worth {value:.12g} and the claim is that there is none"
    better = beats(instance.sense, value, bound)
    return f"a plan is worth {value:.12g} and the bound {bound:.12g}" if better else ""


def _without_presolve(instance: AnyInstance) -> tuple[str, float | None, float]:
    """Return status, value and bound by HiGHS on the model's arrays, without presolve and at another scale."""
    offered = formulations.formulation(instance.problem)
    model = formulations.build(instance)
    program = translate(model)
    largest = float(np.abs(program.cost).max(initial=0.0))
    scale = 2.0 ** round(12 - math.log2(largest)) if largest else 1.0
    solver = highspy.Highs()
    for name, value in {
        "output_flag": False,
        "threads": 1,
        "presolve": "off",
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
        "time_limit": LIMIT,
    }.items():
        solver.setOptionValue(name, value)
    hand_over(solver, replace(program, cost=program.cost * scale, offset=program.offset * scale))
    solver.run()
    status = solver.getModelStatus()
    nothing = -math.inf if program.sense == "min" else math.inf
    if status == highspy.HighsModelStatus.kInfeasible:
        return "infeasible", None, -nothing
    if status != highspy.HighsModelStatus.kOptimal:
        return "unknown", None, nothing
    bound = solver.getInfo().objective_function_value / scale
    if offered.bound is not None:
        bound = offered.bound(instance, bound)
    for variable, at, whole in zip(program.variables, solver.getSolution().col_value, program.integer, strict=True):
        variable.set_value(round(at) if whole else at, skip_validation=True)
    answer = judge(instance, Asked(offered.read(model)))
    return Status.FEASIBLE, answer.value if answer.status == Status.FEASIBLE else None, bound


def run(case: Case, count: int, seed: int, output: Path | None = None) -> tuple[Row, list[str]]:
    """Compare on ``count`` instances of a case; return the row of the table, and what differs, in words.

    Parameters
    ----------
    case : Case
    count, seed : int
    output : Path, optional
        Folder for the instances on which the ways differ.
    """
    row, differences = Row(case.name), []
    began = time.perf_counter()
    for instance, tied in draw(case, count, seed):
        row.ties += tied
        found = compare(instance, row)
        if found:
            differences.append(f"{case.name}: {found}: {json.dumps(instance.to_dict())}")
            if output is not None:
                output.mkdir(parents=True, exist_ok=True)
                save(instance, output / f"{instance.problem}-{instance.digest[:12]}.json")
    row.seconds = time.perf_counter() - began
    return row, differences


COUNTED = ("instances", "ties", "open", "wrong", "other_wrong", "warned", "without_scip")
COLUMNS = ("problem", "instances", "ties", "open", "solve wrong", "second wrong", "warned", "no SCIP", "proofs", "s")


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison and print its table; 1 where ``solve`` was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.second_way", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="instances in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="problems; all by default")
    parser.add_argument("--output", type=Path, help="folder for the instances on which the ways differ")
    asked = parser.parse_args(arguments)
    logging.getLogger("pyomo").setLevel(logging.CRITICAL)
    cases = [case for case in CASES if not asked.only or case.problem in asked.only]
    total = Row("all")

    def rows() -> Iterator[Row]:
        for number, case in enumerate(cases):
            count = asked.count // len(cases) + (number < asked.count % len(cases))
            row, differences = run(case, count, asked.seed, asked.output)
            yield row
            for difference in differences:
                print(difference, file=sys.stderr, flush=True)
            for name in (*COUNTED, "proofs", "seconds"):
                setattr(total, name, getattr(total, name) + getattr(row, name))
        yield total

    for line in table_lines(COLUMNS, map(_cells, rows())):
        print(line, flush=True)
    return 1 if total.wrong else 0


def _cells(row: Row) -> list[str]:
    proofs = ", ".join(f"{count} {name or 'none'}" for name, count in row.proofs.most_common())
    return [row.name, *(f"{getattr(row, name):,}" for name in COUNTED), proofs, f"{row.seconds:.0f}"]


if __name__ == "__main__":
    sys.exit(main())
