"""Wrong models: every constraint of every exact model is needed, and the tests would see if it were another.

Each *family* of constraints of a model (a component, ``capacity[t]`` for all t) is changed in the model's arrays:
left out, limited otherwise, for all members but one, added up into a single row, or without one of its variables.  A
mutant is *killed* when on some instance its optimum, or that there is one, is not what the reference says, or the
plan read from it breaks a rule or is worth something else.  Instances are few and small: a call of the generator, with
the first seeds, and those written down here, each of which some mutant needs.
"""

import importlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from numpy.typing import NDArray

import formulations
from formulations import LinearProgram, Session, SolverError, translate, verify
from formulations.engine.options import Options
from formulations.engine.polishing import sharpened
from formulations.engine.protocol import formulation
from formulations.engine.scaling import largest_limit
from formulations.engine.solution import write_point
from formulations.gavel import finish_time_fairness, hierarchical_fairness
from instances.aryl.placement import ArylPlacement
from instances.base import Instance, Plan, agree
from instances.reference import TooLarge
from instances.schema import FloatArray
from validation import CATALOGUE

from ..second_opinion import optimum

DOCS = Path(__file__).parents[2] / "docs" / "problems"

SEEDS = 12
"""Instances that are generated for a problem, at most."""

FEW = {"num_jobs": 4, "num_types": 2}
NARROW = {"num_jobs": 5, "num_types": 2, "workers_per_pool": 1}
GENERATED: dict[str, dict[str, Any]] = {
    "afs.elastic_sharing": {"num_jobs": 2, "num_gpus": 4, "reallocation": "any_time", "loss": 0.8},
    "afs.gpu_placement": {"num_jobs": 8},
    "afs.network_packing": {"num_jobs": 10},
    "afs.two_job": {"max_share": 2},
    "aryl.base_allocation": {"num_jobs": 4},
    "aryl.elastic_allocation": {"num_jobs": 10},
    "aryl.placement": {"total_workers": 6},
    "aryl.reclaim": {"num_servers": 10},
    "aryl.two_job": {"num_gpus": 8},
    "elasticflow.placement": {"num_servers": 4},
    "gavel.cost": {**FEW, "num_jobs": 3, "slo_fraction": 0.8, "slo_tightness": 0.95, "workers_per_pool": 1},
    "gavel.fifo": NARROW,
    "gavel.finish_time_fairness": {"num_jobs": 2, "num_types": 2, "pair_fraction": 0.0},
    "gavel.hierarchical_fairness": NARROW,
    "gavel.makespan": NARROW,
    "gavel.max_min_fairness": NARROW,
    "gavel.round_assignment": {"num_jobs": 8},
    "gavel.shortest_job_first": FEW,
    "gavel.throughput_per_dollar": FEW,
    "gavel.total_throughput": FEW,
    "prism.placement": {"num_jobs": 5, "num_gpus": 2, "placed": 0.6, "movable": 0.5},
    "sia.goodput": {"num_jobs": 5, "num_types": 2},
    "shockwave.window": {"num_jobs": 3, "num_rounds": 3},
    "eplb.placement": {"num_experts": 4, "experts_per_gpu": 2},
    "synergy.allocation": {"num_servers": 1, "server_memory": 150.0},
    "synergy.placement": {"num_servers": 2},
    "synergy.tuning": {"num_servers": 2, "server_memory": 200.0, "server_gpus": 4},
}
"""Options of the problem's generator; a problem that is not here has written-down instances only."""

MADE: dict[str, list[dict[str, Any]]] = {
    "afs.elastic_sharing": [
        # One share for each slot.
        {"num_gpus": 2, "work": [8, 7, 4], "throughputs": [[0, 3, 5], [0, 3, 5], [0, 1, 5]]},
        {"num_gpus": 2, "work": [3, 1, 2], "throughputs": [[0, 3, 5], [0, 0, 3], [0, 4, 4]]},
        # Jobs that are alike, with three slots.
        {
            "num_gpus": 2,
            "work": [4, 2, 3],
            "throughputs": [[0, 2, 3], [0, 2, 3], [0, 2, 4]],
            "reallocation": "any_time",
        },
        # Jobs that arrive one after the other, of which some complete before others arrive, and some do not.
        {"num_gpus": 2, "work": [4, 2, 3], "throughputs": [[0, 2, 3], [0, 1, 2], [0, 2, 4]], "arrivals": [0, 1, 2]},
        {"num_gpus": 2, "work": [1, 4, 2], "throughputs": [[0, 2, 3], [0, 1, 2], [0, 2, 4]], "arrivals": [0, 2, 3]},
        # There is time to spare before the second job arrives, and too little before the last one does.
        {"num_gpus": 1, "work": [1, 1, 1, 1], "throughputs": [[0, 1]] * 4, "arrivals": [0, 2, 2, 3.5]},
    ],
    "afs.network_packing": [
        # More is wanted than there is.
        {"shares": [2, 1], "num_machines": 1, "gpus_per_machine": 2},
    ],
    "afs.two_job": [
        # Job 0 never completes, whoever receives the GPU.
        {"work": [1, 1], "throughputs": [[0, 0], [1, 2]]},
    ],
    "aryl.placement": [
        # The flexible worker and the other fit one inference server together, but must not be there.
        {
            "gpus_per_worker": [1, 1],
            "num_workers": [1, 1],
            "elastic": [True, True],
            "flexible": [True, False],
            "server_gpus": [2, 2],
            "server_groups": ["inference", "inference"],
        },
        # Two of them, so that it is each server that is set apart.
        {
            "gpus_per_worker": [2, 2, 1],
            "num_workers": [1, 1, 1],
            "elastic": [True, True, True],
            "flexible": [True, False, True],
            "server_gpus": [3, 3, 3],
            "server_groups": ["inference", "inference", "inference"],
        },
        # The first server is in use: free for the rigid worker, closed to the flexible one.
        {
            "gpus_per_worker": [1, 1],
            "num_workers": [1, 1],
            "elastic": [True, True],
            "flexible": [True, False],
            "server_gpus": [2, 2, 2],
            "server_groups": ["inference", "inference", "inference"],
            "used_gpus": [1, 0, 0],
        },
    ],
    "elasticflow.admission": [
        {
            "num_gpus": 4,
            "iterations": [2, 2, 8],
            "deadlines": [2, 4, 3],
            "throughputs": [[0, 4, 8, 11, 13], [0, 2, 4, 6, 7], [0, 2, 4, 4, 4]],
            "arrival_order": [0, 1, 2],
        },
        {
            "num_gpus": 4,
            "iterations": [8],
            "deadlines": [1],
            "throughputs": [[0, 3, 8, 8, 8]],
            "arrival_order": [0],
        },
        # Job 0 needs 2 GPUs in both slots, unless it holds 1 and 2 at once, and leaves 3 to job 1 in the other slot.
        {
            "num_gpus": 4,
            "iterations": [10, 5],
            "deadlines": [2, 2],
            "throughputs": [[0, 1, 8, 4, 8], [0, 0, 0, 5, 5]],
            "arrival_order": [0, 1],
        },
        # One job holds all GPUs in slot 0, and then what another needs with the cluster to itself does too little.
        {
            "num_gpus": 3,
            "iterations": [6, 2, 6],
            "deadlines": [2, 3, 1],
            "throughputs": [[0, 3, 4, 4], [0, 8, 16, 24], [0, 2, 4, 6]],
            "arrival_order": [0, 1, 2],
        },
        {
            "num_gpus": 3,
            "iterations": [6, 2, 6],
            "deadlines": [1, 3, 2],
            "throughputs": [[0, 2, 4, 6], [0, 8, 16, 24], [0, 3, 4, 4]],
            "arrival_order": [0, 1, 2],
        },
    ],
    "elasticflow.allocation": [
        {"num_gpus": 3, "iterations": [3, 8], "deadlines": [1, 4], "throughputs": [[0, 2, 4, 6], [0, 3, 6, 9]]},
        {
            "num_gpus": 3,
            "iterations": [0, 3, 8],
            "deadlines": [1, 1, 2],
            "throughputs": [[0, 5, 4, 8], [0, 3, 5, 8], [0, 8, 8, 8]],
        },
        {"num_gpus": 4, "iterations": [1], "deadlines": [1], "throughputs": [[0, 3, 8, 1, 6]]},
        {"num_gpus": 1, "iterations": [2, 3], "deadlines": [2, 2], "throughputs": [[0, 2], [0, 2]]},
        {
            "num_gpus": 3,
            "iterations": [8, 8, 0],
            "deadlines": [2, 3, 3],
            "throughputs": [[0, 8, 8, 8], [0, 8, 6, 8], [0, 7, 0, 7]],
        },
        # Two GPU-slots are enough, but then slot 0 has an idle GPU that is of use.
        {"num_gpus": 2, "iterations": [4], "deadlines": [2], "throughputs": [[0, 2, 3]]},
        # As of admission.
        {
            "num_gpus": 4,
            "iterations": [10, 5],
            "deadlines": [2, 2],
            "throughputs": [[0, 1, 8, 4, 8], [0, 0, 0, 5, 5]],
        },
    ],
    "elasticflow.best_effort": [
        {
            "num_gpus": 3,
            "iterations": [0, 8, 8],
            "deadlines": [4, 2, 2],
            "throughputs": [[0, 0, 0, 0], [0, 4, 7, 8], [0, 4, 5, 6]],
            "best_effort": [True, False, True],
        },
        {
            "num_gpus": 3,
            "iterations": [13, 2],
            "deadlines": [4, 1],
            "throughputs": [[0, 2, 4, 6], [0, 3, 6, 9]],
            "best_effort": [True, False],
        },
        {
            "num_gpus": 1,
            "iterations": [0, 1, 1],
            "deadlines": [3, 2, 1],
            "throughputs": [[0, 0], [0, 0], [0, 0]],
            "best_effort": [False, False, False],
        },
        # Job 1 is not done in time, and the others could do more than they have to.
        {
            "num_gpus": 2,
            "iterations": [3, 3, 3],
            "deadlines": [2, 1, 3],
            "throughputs": [[0, 3, 6], [0, 1, 1], [0, 4, 7]],
            "best_effort": [False, False, True],
        },
    ],
    "elasticflow.minimum_satisfactory_share": [
        {
            "num_gpus": 4,
            "iterations": [10, 13],
            "deadlines": [2, 3],
            "throughputs": [[0, 1, 8, 4, 8], [0, 1, 4, 8, 4]],
        },
    ],
    "prism.placement": [
        # Models without requests, of which two would fill a GPU, and one would.
        {"memory": [4, 4], "sizes": [2, 2, 3], "rates": [0, 0, 1], "slos": [1, 1, 1]},
        {"memory": [4, 4], "sizes": [4], "rates": [0], "slos": [1]},
    ],
    "synergy.allocation": [
        {
            "num_servers": 3,
            "server_gpus": 2,
            "server_cpus": 7,
            "server_memory": 3,
            "gpu_demands": [1, 2, 3],
            "configs": [[[0, 1, 3], [2, 3, 5], [4, 5, 6]], [[5, 0, 0]], [[0, 0, 2], [8, 10, 8]]],
            "fair_throughputs": [3, 0, 2],
            "server_cap": True,
        },
    ],
    "synergy.heterogeneous_allocation": [
        {
            "num_servers": [2, 1],
            "server_gpus": [2, 1],
            "server_cpus": [2, 2],
            "server_memory": [8, 2],
            "gpu_demands": [1, 1, 2, 1],
            "configs": [
                [[0, 1, 4], [2, 1, 0], [4, 2, 2], [5, 3, 4]],
                [[0, 0, 4], [0, 1, 4]],
                [[1, 2, 2], [0, 2, 4], [8, 7, 8]],
                [[0, 0, 0], [2, 0, 2], [2, 2, 4], [2, 0, 3], [3, 4, 3], [4, 1, 4]],
            ],
            "config_types": [[0, 1, 1, 1], [0, 1], [0, 1, 1], [0, 0, 0, 1, 1, 1]],
            "fair_throughputs": [0, 4, 2, 0],
            "server_cap": False,
        },
        {
            "num_servers": [2],
            "server_gpus": [2],
            "server_cpus": [2],
            "server_memory": [4],
            "gpu_demands": [1, 2, 1],
            "configs": [[[0, 1, 2], [2, 1, 3], [4, 3, 5]], [[0, 2, 0], [2, 4, 1]], [[1, 1, 3]]],
            "config_types": [[0, 0, 0], [0, 0], [0]],
            "fair_throughputs": [2, 1, 3],
            "server_cap": True,
        },
        {
            "num_servers": [2, 2],
            "server_gpus": [2, 3],
            "server_cpus": [2, 3],
            "server_memory": [2, 3],
            "gpu_demands": [3, 2],
            "configs": [[[3, 1, 1], [8, 8, 0], [2, 0, 0]], [[2, 2, 0], [0, 0, 0]]],
            "config_types": [[0, 0, 1], [0, 1]],
            "fair_throughputs": [0, 0],
            "server_cap": False,
        },
        # The memory of each type is short.
        {
            "num_servers": [1, 1],
            "server_gpus": [2, 2],
            "server_cpus": [9, 9],
            "server_memory": [2, 2],
            "gpu_demands": [1, 1, 1],
            "configs": [[[0, 1, 1], [0, 2, 3], [0, 1, 2]], [[0, 1, 1]], [[0, 0, 1], [0, 3, 5]]],
            "config_types": [[0, 0, 1], [0], [1, 1]],
            "fair_throughputs": [0, 0, 0],
            "server_cap": False,
        },
    ],
    "synergy.placement": [
        {
            "num_servers": 2,
            "server_gpus": 1,
            "server_cpus": 7,
            "server_memory": 6,
            "demands": [[1, 7, 6], [1, 7, 6]],
            "integral_gpus": True,
        },
        # All GPUs are in use, and one of one GPU needs the CPU cores of two servers.
        {
            "num_servers": 2,
            "server_gpus": 2,
            "server_cpus": 4,
            "server_memory": 4,
            "demands": [[1, 5, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]],
        },
    ],
    "synergy.tuning": [
        {
            "num_servers": 2,
            "server_gpus": 4,
            "server_cpus": 16,
            "server_memory": 7,
            "gpu_demands": [2, 2, 2],
            "configs": [[[0, 0, 4]], [[8, 1, 3]], [[1, 0, 0]]],
            "fair_throughputs": [4, 3, 0],
            "server_cap": False,
            "allow_split": False,
        },
    ],
    "eplb.placement": [
        # Groups that may not be divided between nodes.
        {"loads": [8, 7, 1, 1], "num_gpus": 2, "slots": 2, "num_nodes": 2, "groups": [0, 0, 1, 1]},
        {"loads": [8, 1, 7, 1], "num_gpus": 2, "slots": 3, "num_nodes": 2, "groups": [1, 0, 1, 0]},
        {"loads": [8, 7, 1, 1], "num_gpus": 2, "slots": 3, "num_nodes": 2, "groups": [0, 0, 1, 1]},
        # Experts that would have to change places, and may not, or at a price.
        {
            "loads": [4, 4, 1, 1],
            "num_gpus": 2,
            "slots": 2,
            "current": [[1, 0], [1, 0], [0, 1], [0, 1]],
            "move_limit": 1,
        },
        {
            "loads": [4, 4, 1, 1],
            "num_gpus": 2,
            "slots": 2,
            "current": [[1, 0], [1, 0], [0, 1], [0, 1]],
            "move_price": 1,
        },
        {"loads": [3, 2], "more_loads": [[1, 4]], "num_gpus": 3, "slots": 1, "aggregate": "mean"},
    ],
}

IMPLIED: dict[str, dict[str, str]] = {
    "afs.elastic_sharing": {
        "one_position": "one_job gives n positions in all, and completed_by of the last slot no job more than one",
        "all_work": "completed_by of the last slot asks for all the work, and more than that is never of use",
        "completed_by": "what not_after forbids beyond a job's position has to be done before it, by all_work",
        "not_after": "completed_by has all the work done at the job's position, and all_work leaves nothing for later",
        "gpus": "a job spends all of a slot on the share that it holds, so gpu_time says the same",
        "one_share": "released lets one share above 0 be held; the rest is that a job may idle in its last slot, which "
        "makes it later, and nothing is won by that with as few jobs as here",
        "runs_to_end": "a job that pretends to complete later pays for it, and wins nothing with as few jobs as here",
        "released": "GPUs of a job that is done help nobody",
        "shorter_first": "symmetry: jobs of the same curve can change places",
        "not_over": "a slot that says that fewer jobs are complete than are costs more",
        "one_by_one": "a slot of more complete jobs costs less, so there is none of fewer after it",
        "stays_over": "completed_by has the work done by the last slot of a position, and what is not over costs more",
        "arrived": "jobs have work, which they cannot do before they arrive",
    },
    "aryl.base_allocation": {
        "one_way": "order: of two jobs that take time, each cannot begin when the other has ended"
    },
    "aryl.placement": {"identical_servers": "symmetry: servers of one size and group can change places"},
    "elasticflow.admission": {
        "alone": "the job's GPU-slots with the cluster to itself are the fewest of every plan",
        "only_admitted": "GPUs of a job that is turned away help nobody",
    },
    "elasticflow.allocation": {"alone": "as of admission"},
    "elasticflow.best_effort": {"alone": "as of admission"},
    "elasticflow.minimum_satisfactory_share": {"alone": "as of admission"},
    "eplb.placement": {"identical_gpus": "symmetry: GPUs can change places"},
    "synergy.placement": {
        "order": "symmetry: the servers are identical",
        "full": "where all GPUs are in use each server is full, and its whole jobs take a whole number of GPUs",
        "not_alone": "what the pieces of one job of one GPU leave of the GPUs is not whole",
    },
}
"""Families without which every optimum is the same, and why; they make the search shorter."""

WIDE = ("synergy.placement",)
"""Problems whose rows are wider than what the judge forgives."""
LATER = {"gavel.hierarchical_fairness": {"keeps": "the levels are 0 in the first step, which nothing falls short of"}}
"""Families that say nothing in the model of an instance alone; there are tests of them below."""

TOGETHER = [
    ("afs.elastic_sharing", "completed_by", "not_after"),
    ("afs.elastic_sharing", "completed_by", "all_work"),
    ("afs.elastic_sharing", "gpus", "gpu_time"),
]
"""Families of which one is enough: each may be left out, both may not."""

EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("afs.elastic_sharing", "one_job", "one"): "a job too many in one slot is one too few in another",
    ("afs.elastic_sharing", "one_job", "one side"): "the n positions of the jobs go into n slots either way",
    ("afs.two_job", "completes", "merged"): "a sum of numbers that are at least 0 is 0 where each of them is",
    ("eplb.placement", "one_node", "merged"): "a group of no node has no replicas, so that none can be on two",
}
"""Mutants that are no other model."""


# --- cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Case:
    """A model, and what its optimum has to be.

    ``value`` turns a value of the model's objective to the instance's terms; ``planned`` says whether the plan at the
    model's optimum is one of the instance's best.
    """

    instance: Instance[Any]
    model: pyo.ConcreteModel
    program: LinearProgram
    expected: float | None
    value: Callable[[float], float]
    planned: bool = True


@cache
def case(problem: str, number: int) -> Case | None:
    """Return one of the problem's cases, those written down first; None where the reference does not search it."""
    made = MADE.get(problem, [])
    entry = CATALOGUE[problem]
    if number < len(made):
        return stated(entry.instance(**made[number]))
    try:
        return stated(entry.generate(number - len(made), **GENERATED[problem]))
    except TooLarge:
        return None


def cases(problem: str) -> Iterator[Case]:
    """Yield the problem's cases one by one, as not all are looked at."""
    count = len(MADE.get(problem, [])) + SEEDS * (problem in GENERATED)
    return (found for number in range(count) if (found := case(problem, number)) is not None)


def stated(instance: Instance[Any], rho: float | None = None) -> Case:
    found = optimum(instance)
    best = None if found is None else float(found)
    if instance.problem == "gavel.finish_time_fairness":
        # The model asks whether a ratio is attained; of the least that is, the slack is 0.
        assert best is not None
        model = finish_time_fairness.build(instance, best)  # type: ignore[arg-type]
        return Case(instance, model, translate(model), 0.0, lambda slack: round(slack, 6), planned=False)
    model = formulations.build(instance)
    bound = formulation(instance.problem).bound
    value = (lambda value: value) if bound is None else lambda value: bound(instance, value)
    return Case(instance, model, translate(model), best, value)


def fault(case: Case, program: LinearProgram, *, value_only: bool = False) -> str:
    """Say what is wrong with a program in place of the case's own; nothing where nothing is."""
    result = Session(verify=False).run(program)
    if result.status not in ("optimal", "infeasible", "unbounded"):
        return ""
    if result.x is None or case.expected is None:
        right = result.status == "infeasible" and case.expected is None
        return "" if right else f"{result.status}, not {case.expected}"
    value = case.value(program.objective(result.x))
    if not agree(value, case.expected):
        return f"optimum {value}, not {case.expected}"
    if value_only or not case.planned:
        return ""

    def plan_at(x: FloatArray) -> Plan:
        write_point(program, x)
        return formulations.read(case.model)

    try:
        if case.instance.problem in WIDE:
            result = sharpened(program, result, Options(), lambda x: bool(case.instance.violations(plan_at(x))))
        assert result.x is not None
        plan = plan_at(result.x)
    except IndexError:
        return "no plan can be read"
    if broken := case.instance.violations(plan):
        return f"the plan breaks {broken[0].rule}"
    worth = case.instance.objective(plan)
    return "" if agree(worth, case.expected) else f"the plan is worth {worth}, not {case.expected}"


# --- mutants --------------------------------------------------------------------------------------

RowNumbers = NDArray[np.int64]


def families(program: LinearProgram) -> dict[str, RowNumbers]:
    """Rows of each component that has some."""
    names = [component.name for component, indices in program.constraints for _ in indices]
    return {name: np.flatnonzero(np.array(names) == name) for name in dict.fromkeys(names)}


def row_of_entries(program: LinearProgram) -> RowNumbers:
    return np.repeat(np.arange(program.num_rows), np.diff(program.indptr))


def moved(program: LinearProgram, rows: RowNumbers, lower: Any, upper: Any) -> LinearProgram:
    """Return the program with something added to the limits of some rows."""
    limits = program.row_lower.copy(), program.row_upper.copy()
    limits[0][rows] += lower
    limits[1][rows] += upper
    return replace(program, row_lower=limits[0], row_upper=limits[1])


def dropped(program: LinearProgram, rows: RowNumbers) -> LinearProgram:
    return moved(program, rows, -np.inf, np.inf)


def halves(program: LinearProgram, rows: RowNumbers) -> NDArray[Any]:
    """Half the largest number of each row, and a whole one where all are whole."""
    largest = largest_limit(program.row_lower, program.row_upper)
    where = row_of_entries(program)
    np.maximum.at(largest, where, np.abs(program.value))
    broken = np.zeros(program.num_rows, bool)
    np.logical_or.at(broken, where, program.value != np.rint(program.value))
    return np.where(broken, largest / 2, np.ceil(largest / 2))[rows]


def wider(program: LinearProgram, rows: RowNumbers) -> LinearProgram:
    by = halves(program, rows)
    return moved(program, rows, -by, by)


def narrower(program: LinearProgram, rows: RowNumbers) -> LinearProgram:
    """Return the program with limits moved inwards; those of equations, which have no inside, upwards."""
    by = halves(program, rows)
    return moved(program, rows, by, np.where(equations(program, rows), by, -by))


def equations(program: LinearProgram, rows: RowNumbers) -> NDArray[np.bool_]:
    return np.asarray(program.row_lower[rows] == program.row_upper[rows])


def merged(program: LinearProgram, rows: RowNumbers) -> LinearProgram:
    """Return the program with one limit for the sum of some rows in place of one for each."""
    sums = program.column_products(np.isin(np.arange(program.num_rows), rows).astype(float))
    columns = np.flatnonzero(sums)
    others = dropped(program, rows)
    return replace(
        others,
        indptr=np.append(others.indptr, others.indptr[-1] + len(columns)).astype(others.indptr.dtype),
        index=np.append(others.index, columns).astype(others.index.dtype),
        value=np.append(others.value, sums[columns]),
        row_lower=np.append(others.row_lower, program.row_lower[rows].sum()),
        row_upper=np.append(others.row_upper, program.row_upper[rows].sum()),
    )


def forgetting(program: LinearProgram, rows: RowNumbers, forgotten: Callable[[Any], bool]) -> LinearProgram:
    """Return the program with the terms of some variables left out of some rows."""
    columns = np.array([forgotten(variable) for variable in program.variables])
    here = np.isin(row_of_entries(program), rows) & columns[program.index]
    return replace(program, value=np.where(here, 0.0, program.value))


def mutants(program: LinearProgram, rows: RowNumbers) -> Iterator[tuple[str, LinearProgram]]:
    """Mutants of a family, by name; of several with the same name one has to be killed."""
    yield "drop", dropped(program, rows)
    yield "limit", wider(program, rows)
    yield "limit", narrower(program, rows)
    if equations(program, rows).all():
        yield "one side", moved(program, rows, -np.inf, 0.0)
        yield "one side", moved(program, rows, 0.0, np.inf)
    if len(rows) > 1:
        yield from (("one", dropped(program, rows[[at]])) for at in range(min(len(rows), 6)))
        yield "but one", dropped(program, rows[1:])
        yield "merged", merged(program, rows)
    here = np.isin(row_of_entries(program), rows)
    names = {program.variables[column].parent_component().name for column in program.index[here]}
    for name in sorted(names) if len(names) > 1 else ():
        yield f"without {name}", forgetting(program, rows, partial(named, name))


def named(name: str, variable: Any) -> bool:
    return bool(variable.parent_component().name == name)


def surviving(all_cases: Iterator[Case], implied: dict[str, str]) -> set[tuple[str, str]]:
    """Mutants of families, each looked at until it is killed."""
    alive: dict[tuple[str, str], bool] = {}
    for one in all_cases:
        for family, rows in families(one.program).items():
            if family in implied:
                continue
            for name, program in mutants(one.program, rows):
                if alive.setdefault((family, name), True) and fault(one, program):
                    alive[family, name] = False
    return {mutant for mutant, lives in alive.items() if lives}


# --- tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", CATALOGUE)
def test_the_models_themselves_have_no_fault(problem: str) -> None:
    for one in cases(problem):
        assert fault(one, one.program) == ""


@pytest.mark.parametrize("problem", CATALOGUE)
def test_every_mutant_of_a_family_is_killed(problem: str) -> None:
    survivors = surviving(cases(problem), IMPLIED.get(problem, {}) | LATER.get(problem, {}))
    assert survivors == {(family, name) for of, family, name in EQUIVALENT if of == problem}


@pytest.mark.parametrize(
    ("problem", "family"), [(problem, family) for problem in IMPLIED for family in IMPLIED[problem]]
)
def test_what_is_implied_changes_no_optimum_and_is_no_tighter_than_it_may_be(problem: str, family: str) -> None:
    killed = found = False
    for one in cases(problem):
        rows = families(one.program).get(family)
        if rows is not None:
            found = True
            assert fault(one, dropped(one.program, rows), value_only=True) == ""
            killed = killed or fault(one, narrower(one.program, rows)) != ""
    assert found
    assert killed


@pytest.mark.parametrize(("problem", "first", "second"), TOGETHER)
def test_one_of_two_families_is_needed(problem: str, first: str, second: str) -> None:
    both = [
        (one, dropped(one.program, np.concatenate([rows[first], rows[second]])))
        for one in cases(problem)
        if {first, second} <= (rows := families(one.program)).keys()
    ]
    assert any(fault(one, program) for one, program in both)


# --- models that are wrong in a way of their own ----------------------------------------------------


def apart_everywhere(model: pyo.ConcreteModel) -> None:
    """Keep flexible workers and others apart on training servers too, where they may be together."""
    instance: ArylPlacement = model.instance
    kinds = list(dict.fromkeys(zip(*(getattr(instance, name).tolist() for name in KIND), strict=True)))
    training = np.flatnonzero(~instance.on_loan).tolist()
    model.apart_too = pyo.Var(training, domain=pyo.Binary)

    def separate(model: pyo.ConcreteModel, kind: int, server: int) -> object:
        apart = model.apart_too[server]
        return model.workers[kind, server] <= 99 * (apart if kinds[kind][2] else 1 - apart)

    model.separate_too = pyo.Constraint(model.KINDS, training, rule=separate)


KIND = ("gpus_per_worker", "prefers_loan", "flexible")


def kept_anywhere(model: pyo.ConcreteModel) -> None:
    """Count a job as kept wherever it is, and not only where it was."""
    model.del_component(model.keeps_gpu)
    model.kept_anywhere = pyo.Constraint(
        model.JOBS, rule=lambda model, j: model.keeps[j] <= pyo.quicksum(model.hosts[j, m] for m in model.MACHINES)
    )


def full_at_any_time(model: pyo.ConcreteModel) -> None:
    """Take the first slot for full where the GPU-slots of all slots are as many as its GPUs."""
    model.del_component(model.full)
    variables = model.chosen if model.slot_by_slot else model.gpu_slots
    gpus = pyo.quicksum((index[-1] if model.slot_by_slot else 1) * variable for index, variable in variables.items())
    model.full = pyo.Constraint(expr=gpus >= model.num_gpus * model.slot_0_full)


def returned_on_average(model: pyo.ConcreteModel) -> None:
    """Preempt as much of a job as is returned of its servers."""
    model.del_component(model.preemption)
    hosts = {job: [model.returned[i] for j, i in model.HOSTS if j == job] for job in model.JOBS}
    running = [job for job in model.JOBS if hosts[job]]
    model.preemption = pyo.Constraint(
        running, rule=lambda model, j: len(hosts[j]) * model.preempted[j] >= pyo.quicksum(hosts[j])
    )


TRAINING: dict[str, Any] = {
    "gpus_per_worker": [1, 1],
    "num_workers": [1, 1],
    "elastic": [True, True],
    "flexible": [True, False],
    "server_gpus": [2, 2],
    "server_groups": ["training", "training"],
}
"""One training server holds both workers."""


def changed(one: Case, change: Callable[[pyo.ConcreteModel], None]) -> LinearProgram:
    model = formulations.build(one.instance)
    change(model)
    return translate(model)


def test_flexible_workers_are_kept_apart_on_inference_servers_only() -> None:
    one = stated(ArylPlacement(**TRAINING))
    assert one.expected == pytest.approx(1 + 2 / 3)
    assert fault(one, one.program) == ""
    assert fault(one, changed(one, apart_everywhere)).startswith("optimum 2.6")
    # On inference servers the change says nothing.
    alone = stated(ArylPlacement(**TRAINING | {"server_groups": ["inference", "inference"]}))
    assert fault(alone, changed(alone, apart_everywhere), value_only=True) == ""


@pytest.mark.parametrize(
    ("problem", "change"),
    [
        ("afs.gpu_placement", kept_anywhere),
        ("aryl.reclaim", returned_on_average),
        ("elasticflow.allocation", full_at_any_time),
    ],
)
def test_models_of_another_rule_are_seen(problem: str, change: Callable[[pyo.ConcreteModel], None]) -> None:
    assert any(fault(one, changed(one, change), value_only=True) for one in cases(problem))


def of_pair(one: Case) -> Callable[[Any], bool]:
    """Tell the variables of rows of two jobs, ``X[r, j]`` with r from n on."""
    jobs = one.instance.dims["n"]
    return lambda v: v.parent_component().name in ("X", "Y", "chosen") and v.index()[0] >= jobs


WITH_PAIRS = [
    *((problem, "job_time") for problem in GENERATED if GENERATED[problem] in (FEW, NARROW)),
    *((problem, "pool_capacity") for problem in GENERATED if GENERATED[problem] == NARROW),
    ("gavel.cost", "pool_capacity"),
    ("gavel.round_assignment", "once"),
]


@pytest.mark.parametrize(("problem", "family"), WITH_PAIRS)
def test_pairs_count_in_the_limits_of_jobs_and_pools(problem: str, family: str) -> None:
    assert any(
        fault(one, forgetting(one.program, families(one.program)[family], of_pair(one)))
        for one in cases(problem)
        if family in families(one.program)
    )


MISREAD: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("aryl.elastic_allocation", "gpus_per_worker", np.ones_like),
    ("aryl.placement", "flexible", np.zeros_like),
    ("elasticflow.best_effort", "best_effort", np.ones_like),
    ("gavel.total_throughput", "scale_factors", np.ones_like),
    ("gavel.makespan", "steps", lambda steps: np.maximum(steps, steps.max())),
    ("synergy.allocation", "server_cap", lambda cap: not cap),
    ("synergy.placement", "integral_gpus", lambda integral: not integral),
    ("synergy.tuning", "allow_split", lambda split: not split),
]
"""Fields that a model could overlook: it is then that of another instance."""


@pytest.mark.parametrize(("problem", "field", "change"), MISREAD)
def test_what_a_model_overlooks_is_seen(problem: str, field: str, change: Callable[[Any], Any]) -> None:
    def seen(one: Case) -> bool:
        other = replace(one.instance, **{field: change(getattr(one.instance, field))})
        bound = formulation(problem).bound
        program = translate(formulations.build(other))
        value = one.value if bound is None else lambda value: bound(other, value)
        return bool(fault(replace(one, value=value), program, value_only=True))

    assert any(seen(one) for one in cases(problem))


def test_a_job_that_has_finished_asks_for_nothing() -> None:
    """A makespan is over the jobs that have steps left, not over all."""
    seen = False
    for one in islice(cases("gavel.makespan"), 4):
        for job in range(one.instance.dims["n"]):
            steps = one.instance.steps.copy()  # type: ignore[attr-defined]
            steps[job] = 0
            done = stated(replace(one.instance, steps=steps))  # type: ignore[call-arg]
            assert fault(done, done.program) == ""
            seen = seen or fault(replace(done, value=one.value), one.program, value_only=True) != ""
    assert seen


def later_steps() -> Iterator[Case]:
    """Models of steps in which all levels are reached: no job rises while the others keep theirs."""
    for one in cases("gavel.hierarchical_fairness"):
        plan = formulations.solve(one.instance).plan
        assert plan is not None
        levels = plan.normalized_throughputs  # type: ignore[attr-defined]
        for job in range(len(levels)):
            rates = np.eye(len(levels))[job]
            model = hierarchical_fairness.build(one.instance, levels, rates)  # type: ignore[arg-type]
            unit = max(1.0, float(levels.max()))
            value = lambda rise, unit=unit: round(rise / unit, 6) + 0.0  # noqa: E731
            yield Case(one.instance, model, translate(model), 0.0, value, planned=False)


def test_levels_are_kept_in_the_later_steps() -> None:
    every = list(later_steps())
    assert all(fault(one, one.program) == "" for one in every)
    assert surviving(iter(every), {}) == set()


@pytest.mark.parametrize("problem", CATALOGUE)
def test_no_family_that_the_page_of_the_problem_names_is_left_out(problem: str) -> None:
    page = (DOCS / f"{problem.replace('.', '/')}.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.rstrip().endswith("| constraint |")]
    named = {name for row in rows for name in re.findall(r"`(\w+)(?:\[[^]`]*\])?`", row[-3].split(", over")[0])}
    seen = {family for one in cases(problem) for family in families(one.program)}
    assert named
    assert named <= seen


# --- what a second way sees of them ---------------------------------------------------------------------


def halved(family: str) -> Callable[[pyo.ConcreteModel], None]:
    """Return what limits a family to half of what it may be, so that every plan left is one."""

    def change(model: pyo.ConcreteModel) -> None:
        component = model.find_component(family)
        limited = [one for one in (component or {}).values() if one.upper is not None and one.lower is None]
        model.halved = pyo.ConstraintList()
        for one in limited:
            model.halved.add(one.body <= pyo.value(one.upper) / 2)

    return change


@pytest.mark.parametrize(
    ("problem", "change"),
    [
        ("aryl.placement", apart_everywhere),
        *(
            (problem, halved(family))
            for problem, family in [
                ("afs.gpu_placement", "capacity"),
                ("aryl.elastic_allocation", "capacity"),
                ("elasticflow.placement", "disjoint"),
                ("gavel.round_assignment", "once"),
                ("gavel.round_assignment", "pool_workers"),
                ("synergy.allocation", "cpus"),
                ("synergy.heterogeneous_allocation", "gpus"),
                ("synergy.placement", "capacity"),
                ("synergy.tuning", "server_cpus"),
                ("synergy.tuning", "server_memory"),
            ]
        ),
    ],
)
def test_a_wrong_model_does_not_confirm_itself(
    problem: str, change: Callable[[pyo.ConcreteModel], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solved by a wrong model and verified by it, an optimum looked confirmed."""
    module = importlib.import_module(f"formulations.{problem}")
    right = module.FORMULATION

    def build(instance: Instance[Any]) -> pyo.ConcreteModel:
        model = right.build(instance)
        model.instance = instance
        change(model)
        return model

    monkeypatch.setattr(module, "FORMULATION", replace(right, build=build))

    def contradicted(instance: Instance[Any]) -> bool:
        try:
            found = verify(instance, formulations.solve(instance, method="model"))
        except SolverError as error:
            # The plan that the search began with says so already.
            return "that is said to be proven" in str(error)
        return (found.verdict, found.way) == ("contradicted", "reference")

    instances = [ArylPlacement(**TRAINING)] if problem == "aryl.placement" else (one.instance for one in cases(problem))
    assert any(map(contradicted, instances))
