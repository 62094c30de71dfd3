"""Benchmarks of the library itself: ratios measured within one run."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np

import formulations
from formulations.engine.highs import first_options, highs_lp
from formulations.engine.linear import LinearProgram, translate
from instances.gavel.max_min_fairness import generate
from instances.gavel.sharing import Allocation
from validation import catalogue

__all__ = ["LIMITS", "Overhead", "Timing", "gavel", "overhead"]

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


def overhead(repeats: int = 7) -> list[Overhead]:
    """Time the way through a Pyomo model against HiGHS on the same arrays with the same options.

    The instances are ``gavel.max_min_fairness`` with all jobs different.  Whole is: build the
    model, translate it, solve it, check the point and the proof, read the plan, and judge it.
    (``formulations.solve(instance)`` is faster where a policy's arrays need no model.)  Both sides
    run in turn, and the ratio is the median of the ratios of the pairs, so that a drift of the
    machine's speed falls on both.  The instance exists before the clock starts on either side.
    """
    rows = []
    for jobs, limit in LIMITS.items():
        instance = generate(0, num_jobs=jobs, multi_worker=False, pair_fraction=0.0)
        program = translate(formulations.build(instance))
        whole, raw = [], []
        for repeat in range(repeats + 1):
            gc.collect()
            began = time.perf_counter()
            solution = formulations.solve(formulations.build(instance))
            judged = instance.objective(solution.plan) if isinstance(solution.plan, Allocation) else None
            middle = time.perf_counter()
            objective = _highs_alone(program)
            ended = time.perf_counter()
            if judged is None or not np.isclose(judged, objective, rtol=1e-6):
                raise RuntimeError(f"the two sides disagree: {judged} and {objective}")
            if repeat:  # The first round warms up.
                whole.append(middle - began)
                raw.append(ended - middle)
        ratio = statistics.median(w / r for w, r in zip(whole, raw, strict=True))
        rows.append(Overhead(jobs, statistics.median(whole), statistics.median(raw), ratio, limit))
    return rows


@dataclass(frozen=True)
class Timing:
    """Median time of a solve, s, with its limit: in seconds, or as a ratio to HiGHS on the arrays."""

    what: str
    seconds: float
    ratio: float | None
    limit: float


ONE_LP = ("max_min_fairness", "makespan", "fifo", "total_throughput", "cost", "throughput_per_dollar")


def gavel(repeats: int = 5, *, throughputs: str | None = None, trace: str | None = None) -> list[Timing]:
    """Time Gavel's policies.

    At 1,024 distinct jobs each one-program policy runs in turn with HiGHS on the same arrays, by
    simplex and by interior point; the ratio is to the faster of the two.  Then finish-time
    fairness, all pairs of 512 jobs, and, where files are given, 2,048 jobs of a real trace, of
    which many are alike.

    Parameters
    ----------
    repeats : int
        Timed repetitions; the median counts.
    throughputs, trace : path, optional
        The published table and a trace.
    """
    rows = []
    for name in ONE_LP:
        entry = catalogue.entry(f"gavel.{name}")
        instance = entry.generate(0, num_jobs=1024, multi_worker=False, pair_fraction=0.0)
        program = translate(formulations.build(instance))
        pairs = [
            (
                _timed(formulations.solve, instance),
                min(_timed(_highs_alone, program, method) for method in SOLVERS),
            )
            for _ in range(repeats + 1)
        ][1:]
        ratio = statistics.median(whole / raw for whole, raw in pairs)
        rows.append(Timing(f"{name}, 1,024 jobs", statistics.median(whole for whole, _ in pairs), ratio, 1.35))
    distinct: dict[str, Any] = {"pair_fraction": 0.0}
    paired: dict[str, Any] = {"num_jobs": 512, "multi_worker": False, "pair_fraction": 1.0}
    for name, what, limit, options in (
        ("finish_time_fairness", "1,024 jobs", 0.6, {"num_jobs": 1024, **distinct}),
        ("max_min_fairness", "all pairs of 512 jobs", 3.0, paired),
        ("makespan", "all pairs of 512 jobs", 3.0, paired),
        ("hierarchical_fairness", "1,024 jobs, 1 entity", 2.0, {"num_jobs": 1024, "num_entities": 1, **distinct}),
        ("hierarchical_fairness", "1,024 jobs, 5 entities", 4.0, {"num_jobs": 1024, "num_entities": 5, **distinct}),
        ("hierarchical_fairness", "2,048 jobs, 5 entities", 15.0, {"num_jobs": 2048, "num_entities": 5, **distinct}),
    ):
        instance = catalogue.entry(f"gavel.{name}").generate(0, **options)
        seconds = statistics.median(_timed(formulations.solve, instance) for _ in range(min(3, repeats)))
        rows.append(Timing(f"{name}, {what}", seconds, None, limit))
    if throughputs is not None and trace is not None:
        for name in ONE_LP:
            draw = catalogue.entry(f"gavel.{name}").from_trace
            assert draw is not None
            instance = draw(0, throughputs=throughputs, trace=trace, num_jobs=2048, share_space=False)
            seconds = statistics.median(_timed(formulations.solve, instance) for _ in range(repeats))
            rows.append(Timing(f"{name}, 2,048 real jobs", seconds, None, 0.1))
    return rows


SOLVERS = ("simplex", "ipm")


def _timed(call: Callable[..., object], *arguments: object) -> float:
    gc.collect()
    began = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - began


def _highs_alone(program: LinearProgram, method: str | None = None) -> float:
    """What someone who already has the arrays would write."""
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
