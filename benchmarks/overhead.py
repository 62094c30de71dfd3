"""What the library costs: the way through a Pyomo model beside HiGHS alone, studies, and a heuristic's own process.

Ways to the solver are told as ratios within one run; ``tables/library.toml`` describes what has no function here.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo

import formulations
from benchmarks.questions import Times
from benchmarks.tables import Row, Setup, benchmark, described, median_seconds, seconds
from formulations.engine.highs import first_options, hand_over
from formulations.engine.linear import LinearProgram, translate, weighted_sum
from instances.gavel.max_min_fairness import MaxMinFairness
from validation.kernel import run as kernel
from validation.kernel.workers import Outcome, Task
from validation.kinds.study import run
from validation.kinds.study.options import StudyOptions
from validation.kinds.study.report import finish

__all__ = [
    "CELLS",
    "LIMITS",
    "Cost",
    "Overhead",
    "arrays",
    "by_model",
    "expressions",
    "highs_alone",
    "overhead",
    "pair_columns",
    "study",
]

LIMITS: dict[int, float] = {row["num_jobs"]: row["most"] for row in described.TABLES["overhead"]["rows"]}
"""Jobs, and what the whole may cost at most against HiGHS alone."""


@dataclass(frozen=True)
class Overhead:
    """Median times of a whole solve and of HiGHS on the same arrays, s, and their ratio."""

    jobs: int
    whole: float
    raw: float
    ratio: float
    limit: float


def overhead(repeats: int = 7) -> list[Overhead]:
    """Time the way through a Pyomo model against HiGHS on the same arrays with the same options.

    The table ``overhead`` describes it: both sides run in turn, and the ratio is the median of the ratios of the pairs,
    so that a drift of the machine's speed falls on both.  The instance exists before the clock starts on either side.

    Parameters
    ----------
    repeats : int
        Timed repetitions of each side.
    """
    found = []
    for _, names in described.rows("overhead", Setup(repeats=repeats)):
        whole, raw = names["whole"], names["raw"].answer[0]
        if not np.isclose(whole.answer[0], raw, rtol=1e-6):
            raise RuntimeError(f"the two sides disagree: {whole.answer[0]} and {raw}")
        figures = whole.median[0], whole.other[0], whole.times[0]
        found.append(Overhead(names["num_jobs"], *figures, names["most"]))
    return found


def by_model(instance: MaxMinFairness) -> float | None:
    """Build the model, translate and solve it, check point and proof, read the plan, and return its value.

    (``formulations.solve(instance)`` is faster where a policy's arrays need no model.)
    """
    plan: Any = formulations.solve(formulations.build(instance)).plan
    return instance.objective(plan)


def arrays(instance: Any) -> LinearProgram:
    """Return the program of a model as arrays."""
    return translate(formulations.build(instance))


def highs_alone(program: LinearProgram, method: str | None = None) -> float:
    """Return the optimum by what someone who already has the arrays would write.

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


def pair_columns(instance: MaxMinFairness) -> int:
    """Return the number of columns of pairs."""
    return int(instance.fits[instance.num_jobs :].size)


@benchmark("engine.expressions", "expression", "time", "multiple of `weighted_sum`")
def expressions(setup: Setup) -> Iterator[Row]:
    """Processor time of building 500 linear expressions of 100 terms one after the other, three ways."""
    terms, count = setup.size((100, 500), (10, 3))
    model = pyo.ConcreteModel()
    model.X = pyo.Var(range(terms))
    coefficients = np.linspace(1, 2, terms).tolist()
    variables = list(model.X.values())
    ways: dict[str, Callable[[], object]] = {
        "`sum` of products": lambda: sum(c * x for c, x in zip(coefficients, variables, strict=True)),
        "`pyo.quicksum` of products": lambda: pyo.quicksum(c * x for c, x in zip(coefficients, variables, strict=True)),
        "`weighted_sum`": lambda: weighted_sum(coefficients, variables),
    }

    def repeat(build: Callable[[], object]) -> None:
        for _ in range(count):
            build()

    times = {name: median_seconds(setup.repeats, repeat, build) for name, build in ways.items()}
    for name, took in times.items():
        yield name, seconds(took), f"{took / times['`weighted_sum`']:.1f}"


@benchmark("overhead.question", "what", "least", "median", "processor time", "page faults")
def _question_rows(setup: Setup) -> Iterator[Row]:
    """Question to a heuristic in a process of its own, against forks of the same and of a small process."""
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
    """Measure what a command on a study costs whose runs take no time.

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
    """Yield outcomes as workers would give them."""
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
    """Study whose runs take no time: what instances, keys, log, table and report cost."""
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
