"""What the tables of ElasticFlow's problems ask beside the library's own functions, and one that is no study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import formulations
from benchmarks.tables import Row, Setup, benchmark, seconds, timed
from formulations import Solution
from formulations.elasticflow.flow import Cut, shares_by_flow
from formulations.worst_case.elasticflow import minimum_satisfactory_share as worst_shares
from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare

__all__ = ["proof", "share_turned_away", "shares", "told", "told_whole"]


def proof(instance: MinimumSatisfactoryShare, *, time_limit: float) -> str:
    """Return how far the exact side comes with a gap of 1e-3, and where that leaves one open, within a limit."""
    first, took = timed(formulations.solve, instance, mip_gap=1e-3)
    said = f"{_verdict(first)}, {seconds(took)}"
    return f"{said}; {told(instance, time_limit=time_limit)}" if _open(first) else said


def told(asked: Any, *, time_limit: float) -> str:
    """Return how far the exact side comes within a limit, and its time."""
    solution, took = timed(formulations.solve, asked, time_limit=time_limit)
    return f"{_verdict(solution)}, {seconds(took)}"


def told_whole(instance: MinimumSatisfactoryShare, *, time_limit: float) -> str:
    """Return the same of the whole model by HiGHS alone."""
    return told(formulations.build(instance), time_limit=time_limit)


def _verdict(solution: Solution) -> str:
    return f"gap {solution.gap:.1e}" if _open(solution) else solution.status


def _open(solution: Solution) -> bool:
    """Whether there is a plan, and a gap."""
    return solution.objective is not None and solution.gap is not None and solution.gap > 0


def shares(instance: MinimumSatisfactoryShare) -> object:
    """Return the shares of a flow that serves all jobs."""
    found = shares_by_flow(instance)
    if isinstance(found, Cut):
        raise RuntimeError(f"no flow serves all jobs: {found}")
    return found


@benchmark(
    "elasticflow.minimum_satisfactory_share.turned_away",
    "jobs",
    "slots",
    "GPUs",
    "last deadline",
    "work that is missing",
    "proof",
    "time",
)
def share_turned_away(setup: Setup) -> Iterator[Row]:
    """The most work, in GPU-slots, that the last job of a feasible set lacks when Algorithm 1 comes to it."""
    none_is = [(2, 3, 3), (2, 4, 4), (3, 1, 4), (3, 1, 8), (3, 4, 1), (4, 6, 1)]
    any_deadlines = [(*sizes, False) for sizes in (*none_is, (3, 2, 2), (3, 2, 3), (3, 3, 3))]
    last_is_later = [(*sizes, True) for sizes in ((3, 2, 2), (3, 2, 3), (3, 3, 2), (3, 3, 3))]
    for jobs, slots, gpus, later in setup.size([*any_deadlines, *last_is_later], [(3, 2, 2, False)]):
        model = worst_shares.turned_away(num_jobs=jobs, num_slots=slots, num_gpus=gpus, later=later)
        solution, time = timed(formulations.solve, model, time_limit=setup.seconds(600), verify=True)
        if solution.objective is not None and solution.objective > 0.5:
            solution.load()
            instance = worst_shares.read(model)
            assert progressive_filling(instance) is None
            assert formulations.solve(instance).status == "optimal"
        # GPU-slots are whole.
        missing = f"{round(solution.bound)}" if solution.status == "optimal" else f"at most {solution.bound:.4g}"
        yield jobs, slots, gpus, "later" if later else "any", missing, solution.proof, seconds(time)
