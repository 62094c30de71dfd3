"""What the tables of replays ask: a setting to be decided about, and what became of its jobs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from formulations.engine.highs import Session
from validation.replay import Costs, Replayed, Setting, decider, replay
from validation.replay.settings import module_of
from validation.replay.workloads import read_jobs

__all__ = ["Course", "ToReplay", "drawn", "set_up"]


@dataclass(frozen=True)
class ToReplay:
    """A setting that asks a problem, how it is replayed, and the part of its jobs whose completion times count."""

    problem: str
    setting: Setting
    options: dict[str, Any]
    counted: tuple[float, float]

    def answerer(self, name: str) -> Callable[..., Course]:
        """Return who replays it under the decision maker of that name."""
        return partial(_course, name=name)


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

    Parameters
    ----------
    seed : int
    asks : str
        Name of the problem.
    num_jobs : int
    trace : Path, optional
    counted : pair of float
        Beginning and end, as parts of all jobs, of those whose completion times count.
    seconds_lost : float
        By a restart or a migration.
    to_deadlines : bool
        Whether the replay ends a slot after the last deadline.
    **options
        Of the setting.
    """
    module = module_of(asks)
    if trace is None:
        draw = getattr(module, "derived", module.generate)
        setting = draw(seed, problem=asks, num_jobs=num_jobs, **options)
    else:
        setting = module.from_jobs(read_jobs(trace).head(num_jobs), problem=asks, **options)
    how: dict[str, Any] = {"costs": Costs(restart=seconds_lost, migration=seconds_lost)}
    if to_deadlines:
        how["horizon"] = float(setting.jobs.deadlines.max()) + setting.slot_seconds
    return ToReplay(asks, setting, how, counted)


def _course(asked: ToReplay, *, name: str, **options: Any) -> Course:
    who = decider(asked.problem, name, **options)
    return Course(replay(asked.setting, who, **asked.options), asked.counted)


@dataclass(frozen=True)
class Course:
    """What the tables show of a replay; completion times are s."""

    replayed: Replayed
    counted: tuple[float, float]
    spent: float = 0.0

    def __getattr__(self, name: str) -> Any:
        jobs, decisions = self.replayed.jobs, self.replayed.decisions
        first, last = (round(part * len(jobs)) for part in self.counted)
        times = (jobs["ended"] - jobs["arrival"]).iloc[first:last]
        match name:
            case "jobs":
                return len(jobs)
            case "jct":
                return float(times.mean())
            case "p99":
                return float(np.percentile(times, 99))
            case "makespan":
                return self.replayed.metrics()["makespan"]
            case "met" | "turned_away":
                return int(jobs[name].sum())
            case "decisions":
                return len(decisions)
            case "mean_jobs":
                return float(decisions["jobs"].mean())
            case "most_jobs":
                return int(decisions["jobs"].max())
            case "lost":
                return 100 * float(decisions.query("problem == 'aryl.reclaim'")["value"].sum()) / len(jobs)
        raise AttributeError(name)


def set_up(asked: ToReplay) -> Course:
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
        course = _course(asked, name="exact")
    return Course(course.replayed, course.counted, spent)
