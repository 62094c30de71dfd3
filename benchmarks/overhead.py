"""What the library costs: the way through a Pyomo model beside HiGHS alone, and a heuristic's own process.

Both are told as ratios within one run.
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import highspy
import numpy as np

import formulations
from benchmarks.tables import Row, Setup, benchmark, seconds
from formulations.engine.highs import first_options, highs_lp
from formulations.engine.linear import LinearProgram, translate
from heuristics.aryl.reclaim import server_fraction
from instances.aryl import reclaim
from instances.gavel.max_min_fairness import generate
from instances.gavel.sharing import Allocation
from validation.catalogue import Heuristic
from validation.study.cells import ask
from validation.workers import Task, run_tasks

__all__ = ["LIMITS", "Overhead", "highs_alone", "overhead", "questions"]

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
            began = time.perf_counter()
            solution = formulations.solve(formulations.build(instance))
            judged = instance.objective(solution.plan) if isinstance(solution.plan, Allocation) else None
            middle = time.perf_counter()
            objective = highs_alone(program)
            ended = time.perf_counter()
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
    solver.passModel(highs_lp(program))
    solver.run()
    np.array(solver.getSolution().col_value)
    return float(solver.getInfo().objective_function_value)


@benchmark("overhead", "jobs", "whole", "HiGHS on the arrays", "ratio", "at most")
def _rows(setup: Setup) -> Iterator[Row]:
    """Whole solve through a Pyomo model against HiGHS on the same arrays (`optgap bench overhead`)."""
    for row in overhead(setup.repeats, setup.size(LIMITS, {32: 0.0})):
        limit = f"{row.limit:.2f}" if row.limit else ""
        yield f"{row.jobs:,}", seconds(row.whole), seconds(row.raw), f"{row.ratio:.2f}", limit


def questions(number: int) -> dict[str, tuple[list[float], float]]:
    """Times of so many forks and questions in turn, s, and the processor time of one, with its children's.

    As in a study: asked by a worker that keeps the process of a heuristic, which is forked for one question.
    The question is the paper's heuristic for a small instance of ``aryl.reclaim``, which itself takes
    microseconds; the fork is one of the same worker that ends at once.
    """
    instance, heuristic = reclaim.generate(0, num_servers=8), Heuristic(server_fraction)
    sides: dict[str, Callable[[], object]] = {
        "a fork alone": _fork,
        "a question": lambda: _question(instance, heuristic),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    spent = dict.fromkeys(sides, 0.0)
    for turn in range(number + 5):
        for name, side in sides.items():
            before, began = sum(os.times()[:4]), time.perf_counter()
            side()
            if turn >= 5:  # The first ones warm up.
                times[name].append(time.perf_counter() - began)
                spent[name] += sum(os.times()[:4]) - before
    return {name: (times[name], spent[name] / number) for name in sides}


def _fork() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def _question(instance: reclaim.Reclaim, heuristic: Heuristic) -> None:
    asked = ask(instance, heuristic, 0, seconds=60.0, memory=10**9)
    if asked.plan is None:
        raise RuntimeError(asked.reason)


@benchmark("overhead.question", "what", "least", "median", "processor time")
def _question_rows(setup: Setup) -> Iterator[Row]:
    """A question to a heuristic in a process of its own, against a fork of the same process."""
    if sys.platform != "linux":
        return  # Nothing is forked there.
    number = setup.size(200, 5)
    (outcome,) = run_tasks(questions, [Task((number,), 600.0, asks=True)], jobs=1)
    if outcome.reason:
        raise RuntimeError(outcome.reason)
    sides = [(name, min(times), statistics.median(times), spent) for name, (times, spent) in outcome.result.items()]
    for name, *figures in sides:
        yield name, *map(seconds, figures)
    fork, question = (figures for _, *figures in sides)
    yield "ratio", *(f"{q / f:.1f}" if f else "" for q, f in zip(question, fork, strict=True))
