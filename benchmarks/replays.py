"""What the tables of replays ask: a setting to be decided about, and what became of its jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import highspy
import numpy as np

import formulations
from formulations.engine.highs import Session, hand_over
from formulations.gavel.max_min_fairness import program
from formulations.gavel.sharing import within_limits
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation
from validation.replay import Costs, Setting, decider, replay
from validation.replay.settings import settings_of
from validation.replay.workloads import read_jobs

__all__ = ["ToReplay", "blind_program", "by_blind_program", "by_interior_point", "drawn", "interior_point", "set_up"]


class ToReplay(NamedTuple):
    """A setting that asks a problem, how it is replayed, and the part of its jobs whose completion times count."""

    problem: str
    setting: Setting
    options: dict[str, Any]
    counted: tuple[float, float]

    def answerer(self, name: str) -> Callable[..., SimpleNamespace]:
        """Return who replays it under the decision maker of that name."""
        return partial(_replayed, name=name)


def drawn(
    seed: int,
    *,
    asks: str,
    num_jobs: int,
    trace: Path | None = None,
    counted: tuple[float, float] = (0.0, 1.0),
    seconds_lost: float = 0.0,
    to_deadlines: bool = False,
    **options: Any,
) -> ToReplay:
    """Draw a setting that asks a problem, or make it of the first jobs of a trace.

    Completion times count from one part of the jobs to another, a restart or a migration loses so many seconds, and the
    replay ends with the last job, or a slot after the last deadline.
    """
    module = sys.modules[settings_of(asks).from_jobs.__module__]
    if trace is None:
        setting = getattr(module, "derived", module.generate)(seed, problem=asks, num_jobs=num_jobs, **options)
    else:
        setting = module.from_jobs(read_jobs(trace).head(num_jobs), problem=asks, rng=seed, **options)
    how: dict[str, Any] = {"costs": Costs(restart=seconds_lost, migration=seconds_lost)}
    if to_deadlines:
        how["horizon"] = float(setting.jobs.deadlines.max()) + setting.slot_seconds
    return ToReplay(asks, setting, how, counted)


def _replayed(asked: ToReplay, *, name: str, **options: Any) -> SimpleNamespace:
    """Replay, and return what the tables show."""
    done = replay(asked.setting, decider(asked.problem, name, **options), **asked.options)
    jobs, decisions = done.jobs, done.decisions
    first, last = (round(part * len(jobs)) for part in asked.counted)
    times = (jobs["ended"] - jobs["arrival"]).iloc[first:last]
    return SimpleNamespace(
        jobs=len(jobs),
        jct=float(times.mean()),
        p99=float(np.percentile(times, 99)),
        makespan=done.metrics()["makespan"],
        met=int(jobs["met"].sum()),
        turned_away=int(jobs["turned_away"].sum()),
        decisions=len(decisions),
        mean_jobs=decisions["jobs"].mean(),
        most_jobs=decisions["jobs"].max(),
        lost=100 * decisions.query("problem == 'aryl.reclaim'")["value"].sum() / len(jobs),
    )


def interior_point(instance: MaxMinFairness) -> Allocation:
    """Return the optimum that an interior-point method ends at, between the vertices."""
    policy = program(instance)
    arrays = policy.arrays()
    solver = highspy.Highs()
    for option, value in {"output_flag": False, "threads": 1, "solver": "ipm", "run_crossover": "off"}.items():
        solver.setOptionValue(option, value)
    hand_over(solver, arrays)
    solver.run()
    shares = np.array(solver.getSolution().col_value)[: instance.fits.size]
    return within_limits(instance, shares.reshape(instance.fits.shape))


def blind_program(instance: MaxMinFairness) -> Allocation:
    """Return a vertex of the linear program with one throughput for all types on which a job runs."""
    blind = replace(instance, throughputs=(instance.throughputs > 0).astype(float))
    plan = formulations.solve(blind).plan
    assert isinstance(plan, Allocation)
    return plan


by_interior_point = partial(_replayed, name="benchmarks.replays:interior_point")
by_blind_program = partial(_replayed, name="benchmarks.replays:blind_program")


def set_up(asked: ToReplay) -> SimpleNamespace:
    """Replay under the exact model and count the processor time that makes solvers and hands programs over, s."""
    spent = 0.0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def timed_call(*arguments: Any, **options: Any) -> Any:
            nonlocal spent
            began = time.process_time()
            result = call(*arguments, **options)
            spent += time.process_time() - began
            return result

        return timed_call

    with ExitStack() as stack:
        for name in ("__init__", "_push"):
            stack.enter_context(patch.object(Session, name, counted(getattr(Session, name))))
        done = _replayed(asked, name="exact")
    done.spent = spent
    return done
