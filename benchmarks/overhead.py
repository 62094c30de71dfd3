"""What the library costs: the way through a Pyomo model beside HiGHS alone, and a heuristic's own process.

Both are told as ratios within one run.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import highspy
import numpy as np

import formulations
from benchmarks.questions import Times
from benchmarks.tables import Row, Setup, benchmark, median_seconds, seconds, timed
from formulations.engine.highs import first_options, hand_over
from formulations.engine.linear import LinearProgram, translate
from instances.gavel.max_min_fairness import generate
from instances.gavel.sharing import Allocation
from validation.catalogue import CATALOGUE
from validation.kernel import run as kernel
from validation.kernel.workers import Outcome, Task
from validation.kinds.study import run
from validation.kinds.study.options import StudyOptions
from validation.kinds.study.report import finish

__all__ = ["CELLS", "LIMITS", "Cost", "Overhead", "highs_alone", "overhead", "study"]

LIMITS = {1024: 1.35, 4096: 1.25}
"""Jobs, and what the whole may cost at most against HiGHS alone."""


@dataclass(frozen=True)
class Overhead:
    """Median times of a whole solve and of HiGHS on the same arrays, s, and their ratio."""

    jobs: int
    whole: float
    raw: float
    ratio: float
    limit: float


def overhead(repeats: int = 7, limits: Mapping[int, float] = LIMITS) -> list[Overhead]:
    """Time the way through a Pyomo model against HiGHS on the same arrays with the same options.

    The instances are ``gavel.max_min_fairness`` with all jobs different.  Whole is: build the
    model, translate it, solve it, check the point and the proof, read the plan, and judge it.
    (``formulations.solve(instance)`` is faster where a policy's arrays need no model.)  Both sides
    run in turn, and the ratio is the median of the ratios of the pairs, so that a drift of the
    machine's speed falls on both.  The instance exists before the clock starts on either side.

    Parameters
    ----------
    repeats : int
        Timed repetitions of each side.
    limits : mapping
        Numbers of jobs, and what the whole may cost at most.
    """
    rows = []
    for jobs, limit in limits.items():
        instance = generate(0, num_jobs=jobs, multi_worker=False, pair_fraction=0.0)
        program = translate(formulations.build(instance))
        whole, raw = [], []
        for repeat in range(repeats + 1):
            gc.collect()
            began = time.process_time()
            solution = formulations.solve(formulations.build(instance))
            judged = instance.objective(solution.plan) if isinstance(solution.plan, Allocation) else None
            middle = time.process_time()
            objective = highs_alone(program)
            ended = time.process_time()
            if judged is None or not np.isclose(judged, objective, rtol=1e-6):
                raise RuntimeError(f"the two sides disagree: {judged} and {objective}")
            if repeat:  # The first round warms up.
                whole.append(middle - began)
                raw.append(ended - middle)
        ratio = statistics.median(w / r for w, r in zip(whole, raw, strict=True))
        rows.append(Overhead(jobs, statistics.median(whole), statistics.median(raw), ratio, limit))
    return rows


def highs_alone(program: LinearProgram, method: str | None = None) -> float:
    """The optimum by what someone who already has the arrays would write.

    Parameters
    ----------
    program : LinearProgram
    method : str, optional
        HiGHS's option ``solver``; by default as the library would choose.
    """
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    for name, value in first_options(program).items():
        solver.setOptionValue(name, value)
    if method is not None:
        solver.setOptionValue("solver", method)
    hand_over(solver, program)
    solver.run()
    np.array(solver.getSolution().col_value)
    return float(solver.getInfo().objective_function_value)


@benchmark("overhead", "jobs", "whole", "HiGHS on the arrays", "ratio", "at most")
def _rows(setup: Setup) -> Iterator[Row]:
    """Whole solve through a Pyomo model against HiGHS on the same arrays (`optgap bench overhead`)."""
    for row in overhead(setup.repeats, setup.size(LIMITS, {32: 0.0})):
        limit = f"{row.limit:.2f}" if row.limit else ""
        yield f"{row.jobs:,}", seconds(row.whole), seconds(row.raw), f"{row.ratio:.2f}", limit


@benchmark("overhead.question", "what", "least", "median", "processor time", "page faults")
def _question_rows(setup: Setup) -> Iterator[Row]:
    """A question to a heuristic in a process of its own, against forks of the same and of a small process."""
    if sys.platform != "linux":
        return  # Nothing is forked there.
    program = [sys.executable, "-m", "benchmarks.questions", str(setup.size(200, 5))]
    said = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout
    for name, entries in json.loads(said).items():
        one = Times(**entries)
        yield name, *map(seconds, (min(one.wall), statistics.median(one.wall), one.processor)), f"{one.faults:.0f}"


# --- studies of many cells ----------------------------------------------------------------------

CELLS = 100_000
"""Of the study whose own cost is measured."""


@dataclass(frozen=True)
class Cost:
    """What a command on a study costs beside its runs: s by the clock and of the processor, and most memory, bytes."""

    seconds: float
    processor: float
    memory: int


def study(cells: int, directory: Path, command: str) -> Cost:
    """Cost of a command on a study whose runs take no time.

    The study is one of the paper's heuristics and six others on generated instances of ``aryl.reclaim``.  Instances,
    keys, log, table and report are real; the rows are made up where workers would be waited for, and come in pairs,
    as from two of them.

    Parameters
    ----------
    cells : int
    directory : Path
    command : "run", "resume" or "report"
    """
    count = max(1, cells // 8)
    options = StudyOptions(problems="aryl.reclaim", sizes=[5], count=count, seed=1, output=directory)
    began, before = time.perf_counter(), time.process_time()
    setattr(kernel, "run_tasks", _answers if command == "run" else _none)  # noqa: B010, it is not the module's to give
    if command == "report":
        finish(directory)
    else:
        run.run_study(options, progress=False)
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return Cost(time.perf_counter() - began, time.process_time() - before, 1024 * int(peak))


def _answers(_: object, tasks: Iterator[Task], *, pause: Callable[[], object], **__: object) -> Iterator[Outcome]:
    """Outcomes as workers would give them."""
    draw = np.random.default_rng(0)
    for number, task in enumerate(tasks):
        value = float(draw.integers(100, 120))
        spent = float(draw.exponential(0.01))
        row: dict[str, object] = {"status": "feasible", "value": value, "seconds": spent, "reason": ""}
        if not task.asks:
            row |= {"status": "optimal", "value": 100.0, "bound": 100.0, "solver": "highs 1", "reason": f"row {number}"}
        yield Outcome(task, {**row, "plan": {"servers": [0, 1, 2]}}, "", spent + 0.005)
        if number % 2:
            pause()


def _none(*_: object, **__: object) -> Iterator[Outcome]:
    yield from ()


@benchmark("overhead.study", "command", "cells", "time of a cell", "processor time of a cell", "most memory")
def _study_rows(setup: Setup) -> Iterator[Row]:
    """A study whose runs take no time: what instances, keys, log, table and report cost."""
    if sys.platform != "linux":
        return  # Nothing tells the memory there.
    cells = setup.size(CELLS, 80)
    with tempfile.TemporaryDirectory() as folder:
        for command in ("run", "resume", "report"):
            # A process of its own has taken no memory before.
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                cost = pool.submit(study, cells, Path(folder), command).result()
            each = (seconds(cost.seconds / cells), seconds(cost.processor / cells))
            yield command, f"{cells:,}", *each, f"{cost.memory / 2**20:.0f} MB"


# --- instances of real data ----------------------------------------------------------------------


def _drawn_from(data: Path) -> Iterator[tuple[str, int, dict[str, Path]]]:
    """Problems of which the folder has data: name, size and files."""
    for problem, size, throughputs, trace in (
        ("gavel.max_min_fairness", 64, "gavel/simulation_throughputs.json", "gavel/msr_seed0_0e4a51.trace"),
        ("elasticflow.admission", 50, "elasticflow/throughputs_A100", "tiresias/60_job.csv"),
        ("aryl.elastic_allocation", 50, "elasticflow/throughputs_A100", "tiresias/60_job.csv"),
        ("synergy.tuning", 16, "synergy/sensitivity_profiles.json", "synergy/static_100job.csv"),
    ):
        yield problem, size, {"throughputs": data / throughputs, "trace": data / trace}


@benchmark("overhead.drawing", "problem", "size", "first", "each later one", "solved")
def _drawing_rows(setup: Setup) -> Iterator[Row]:
    """An instance drawn from real data: the first, which reads the files, and those after it, beside its solve."""
    if setup.data is None:
        return
    for problem, size, files in _drawn_from(setup.data):
        entry = CATALOGUE[problem]
        assert entry.from_trace is not None
        options = {"draw_models": True} if problem.startswith("elasticflow") else {}
        draw = partial(entry.from_trace, **files, **{entry.size: setup.size(size, 2)}, **options)
        made, first = timed(draw, 0)
        later = median_seconds(setup.repeats, draw, 1)
        took = timed(formulations.solve, made, time_limit=setup.seconds(10))[1]
        yield problem, setup.size(size, 2), *map(seconds, (first, later, took))
