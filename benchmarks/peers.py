"""CP-SAT and SCIP beside the library, on the same instances of combinatorial problems: ``python -m benchmarks peers``.

One core each, and processor seconds of the whole: building, translating, solving and reading, of child processes too,
but for what CP-SAT's process takes to begin.  The limit is of processor time as well, so that other work on the machine
changes nothing, and solvers are told of none.  All are asked for one run (``verify=False``).  CP-SAT gets the linear
model, its variables whole where they are at some optimum, and numbers of many digits in 31 bits, as a user of it would
round them; of ``aryl.base_allocation`` a model with intervals and a cumulative constraint.
"""

from __future__ import annotations

import functools
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import formulations
from benchmarks import chosen
from benchmarks.sizes import beside, drawn
from benchmarks.tables import Row, Setup, benchmark, seconds
from formulations.engine import cpsat
from formulations.engine.linear import LinearProgram
from formulations.engine.options import Options
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan
from instances.base import Instance
from validation.catalogue import CATALOGUE
from validation.kernel.isolation import Apart

__all__ = ["LIMIT", "SIZES", "Run", "by_cpsat", "by_library", "by_scip", "peers", "rounded"]

LIMIT = 60.0
COUNT = 20
SIZES: dict[str, tuple[int, int, int]] = {
    "afs.gpu_placement": (32, 80, 256),
    "afs.network_packing": (100, 316, 1000),
    "aryl.base_allocation": (8, 10, 12),
    "aryl.elastic_allocation": (100, 316, 1000),
    "aryl.placement": (40, 100, 200),
    "aryl.reclaim": (20, 40, 60),
    "elasticflow.admission": (10, 20, 50),
    "elasticflow.allocation": (4, 8, 12),
    "elasticflow.best_effort": (4, 8, 12),
    "elasticflow.minimum_satisfactory_share": (8, 20, 40),
    "elasticflow.placement": (16, 40, 126),
    "gavel.round_assignment": (80, 253, 800),
    "synergy.placement": (2, 4, 6),
    "synergy.tuning": (1, 2, 4),
}
"""By the parameter of the generator that studies sweep."""
UNLIKE = ("synergy.placement",)
"""Problems whose plans are shares of servers, which are no whole numbers of anything."""
BITS = 31
"""Of the numbers of a row, or of the objective, that CP-SAT gets."""
CLOSE = 1e-5
"""How far apart proven values may be, relatively, where numbers were rounded."""


TIMES = 10
"""Times the library's median that the others have, where all instances are proven by the library."""
LEAST = 2.0
"""Seconds that they have at least."""
MEMORY = 6 * 10**9
"""Bytes that a side may take."""
PATIENCE = 30
"""Times the limit that a side may take by the clock, where others work on the machine."""


@dataclass(frozen=True)
class Run:
    """A side's run on an instance.

    Attributes
    ----------
    proven : bool
    value : float, optional
    seconds : float
        Of processor time; the limit where nothing was proven in that, infinite where the side cannot be asked.
    """

    proven: bool
    value: float | None
    seconds: float


def _spent() -> float:
    """Processor seconds of this process and of the children that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def by_library(instance: Instance[Any]) -> Run:
    """Solve as ``formulations.solve`` does."""
    began = _spent()
    solution = formulations.solve(instance, verify=False)
    return Run(solution.status in ("optimal", "infeasible"), solution.objective, _spent() - began)


def by_scip(instance: Instance[Any]) -> Run:
    """Solve the one model by SCIP, without what the library knows beside it."""
    began = _spent()
    try:
        solution = formulations.solve(formulations.build(instance), solver="scip", verify=False)
    except (formulations.SolverError, formulations.SolverNotFound):
        return NOT_ASKED
    value = None if solution.objective is None else _own(instance, solution.objective)
    return Run(solution.status in ("optimal", "infeasible"), value, _spent() - began)


def _own(instance: Instance[Any], value: float) -> float:
    """Return the instance's value of an optimum of its model."""
    bound = formulations.formulation(instance.problem).bound
    return value if bound is None else bound(instance, value)


NOT_ASKED = Run(False, None, math.inf)


def rounded(program: LinearProgram) -> LinearProgram:
    """Return a program with whole variables and numbers of so many bits, as CP-SAT takes it."""
    size = np.zeros(program.num_rows)
    rows = np.repeat(np.arange(program.num_rows), np.diff(program.indptr))
    np.maximum.at(size, rows, np.abs(program.value))
    unit = np.ldexp(1.0, np.frexp(np.where(size > 0, size, 1.0))[1] - BITS)
    value = np.round(program.value / unit[rows]) * unit[rows]
    # A limit is met if all that is rounded is.
    lower, upper = np.floor(program.row_lower / unit) * unit, np.ceil(program.row_upper / unit) * unit
    return replace(program, integer=np.ones_like(program.integer), value=value, row_lower=lower, row_upper=upper)


@functools.cache
def _beginning() -> float:
    """Processor seconds that CP-SAT's process takes on a program of one variable."""
    one, none = np.ones(1), np.zeros(0)
    program = LinearProgram(
        "min", 0.0, one, 0 * one, one, one > 0, np.zeros(1, np.int32), np.zeros(0, np.int32), none, none, none
    )
    times = []
    for _ in range(3):
        began = _spent()
        cpsat.ask(program, Options(), math.inf, None)
        times.append(_spent() - began)
    return statistics.median(times)


def by_cpsat(instance: Instance[Any]) -> Run:
    """Solve by CP-SAT, in a process of its own."""
    if not cpsat.installed() or instance.problem in UNLIKE:
        return NOT_ASKED
    if isinstance(instance, BaseAllocation):
        return _by_intervals(instance)
    beginning = _beginning()
    began = _spent()
    program = formulations.translate(formulations.build(instance))
    try:
        found, _ = cpsat.ask(rounded(program), Options(), math.inf, None)
    except formulations.ModelError:
        return NOT_ASKED
    took = _spent() - began - beginning
    value = None if found["values"] is None else _own(instance, program.objective(found["values"]))
    return Run(found["status"] in ("optimal", "infeasible"), value, max(took, 0.0))


def _by_intervals(instance: BaseAllocation) -> Run:
    """Solve by interval variables and a cumulative constraint, times being whole seconds."""
    left = instance.running_times > 0
    question = {
        "demands": instance.gpu_demands[left].tolist(),
        "times": np.rint(instance.running_times[left]).astype(int).tolist(),
        "capacity": instance.capacity,
    }
    command = [sys.executable, "-P", str(Path(__file__).with_name("cumulative.py"))]
    done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    starts = np.zeros(instance.num_jobs)
    starts[left] = said["starts"]
    plan = BaseAllocationPlan(starts=starts)
    if instance.violations(plan):
        raise RuntimeError(f"the plan of the cumulative constraint breaks {instance.violations(plan)}")
    return Run(True, instance.objective(plan), said["took"])


SIDES = {"library": by_library, "CP-SAT": by_cpsat, "SCIP": by_scip}


def run(problem: str, size: int, seed: int, side: str, limit: float) -> dict[str, Any]:
    """Ask one side about one instance, within so many seconds of processor time."""
    entry = CATALOGUE[problem]
    instance = drawn(problem, {entry.size: size, **beside(problem, size)}, seed)
    # What is imported at the first call, and by each side.
    formulations.solve(entry.generate(0, **{entry.size: entry.sizes[0]}), time_limit=1.0)
    if side == "CP-SAT" and cpsat.installed():
        _beginning()
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + limit), most))
    began = _spent()
    try:
        return asdict(SIDES[side](replace(instance)))
    except (formulations.SolverError, subprocess.CalledProcessError):
        # Its process has had its time, or it is an error.
        if _spent() - began < 0.9 * limit:
            raise
        return asdict(Run(False, None, limit))


@benchmark(
    "peers",
    "problem",
    "size",
    *(f"{what}, {side}" for what in ("proven", "median") for side in SIDES),
    "others' limit, s",
    "differ",
)
def peers(setup: Setup) -> Iterator[Row]:
    """How many instances the library, CP-SAT and SCIP prove within the limit, and the median processor time of each."""
    limit, count = setup.seconds(LIMIT), setup.instances(COUNT, 1)
    for problem in chosen(SIZES, setup.problems):
        for size in setup.few(SIZES[problem]):
            own = [_within(problem, size, seed, "library", limit) for seed in range(count)]
            others = limit
            if all(one.proven for one in own):
                # More than all cannot be proven, and only a time about the library's own is of interest.
                median = statistics.median(one.seconds for one in own)
                others = min(limit, math.ceil(max(LEAST, TIMES * median)))
            runs = [own] + [
                [_within(problem, size, seed, side, others) for seed in range(count)] for side in [*SIDES][1:]
            ]
            proven = [_asked(one, f"{sum(run.proven for run in one)} of {count}") for one in runs]
            medians = [_asked(own, _time(own, limit)), *(_asked(one, _time(one, others)) for one in runs[1:])]
            differ = sum(map(_differ, *runs))
            yield f"`{problem}`", f"{size:,}", *proven, *medians, f"{others:g}", differ


def _within(problem: str, size: int, seed: int, side: str, limit: float) -> Run:
    """Ask one side about one instance, in a process of its own."""
    with Apart(run, memory=MEMORY, own=True) as apart:
        answer = apart.ask(problem, size, seed, side, limit, seconds=PATIENCE * limit + 60)
    told = answer.content
    if told is not None and "error" in told:
        raise RuntimeError(f"{problem}, size {size}, seed {seed}, {side}: {told['error']}")
    found = Run(False, None, limit) if told is None else Run(**told)
    return Run(False, None, limit) if limit < found.seconds < math.inf else found


def _asked(runs: list[Run], told: str) -> str:
    return "–" if any(math.isinf(one.seconds) for one in runs) else told


def _time(runs: list[Run], limit: float) -> str:
    median = statistics.median(one.seconds if one.proven else limit for one in runs)
    return f"over {limit:g} s" if median >= limit else seconds(median)


def _differ(*runs: Run) -> bool:
    """Tell whether two sides have proven values that cannot both be right."""
    values = [one.value for one in runs if one.proven]
    told = [value for value in values if value is not None]
    if len(told) < len(values):
        return bool(told)
    return bool(told) and max(told) - min(told) > CLOSE * max(1.0, *map(abs, told))
