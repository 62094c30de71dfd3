"""Submissions to a collection that are killed at any step, and that come at once.

The collection is small: one problem's worked example with its worst plan for the best.  The truth is what the
collection's own checker says of it afterwards.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults.studies import scratch
from benchmarks.faults.tally import Tally, fault
from instances.aryl import reclaim
from instances.aryl.reclaim import ReclaimPlan
from instances.reference.records import check
from validation.kinds.collection import Collection, submit_plan

__all__ = ["STEPS", "killed_at"]

STEPS = ("mkdir", "fsync", "replace", "rename", "unlink", "rmdir")
"""Calls by which files are changed."""
NAME = "aryl.reclaim-x00"


@dataclass(frozen=True)
class _Small:
    """A collection of one instance, and plans for it, each better than the one before."""

    collection: Collection
    plans: Sequence[ReclaimPlan]

    def submit(self, plan: ReclaimPlan) -> str:
        return submit_plan(Collection(self.collection.folder), NAME, plan, by="faults").verdict

    def wrong(self, known: float) -> str:
        """Say what is wrong with it now, whose best value is to be a known one; nothing where nothing is."""
        now = Collection(self.collection.folder)
        with now.changing():
            pass
        lines, value = check(now.folder)[1], now.record(NAME)["best"]["value"]
        return "; ".join([*lines, *([] if value == known else [f"its best is {value:g}, not {known:g}"])])


def _made(folder: Path) -> _Small:
    instance = reclaim.figure_5()
    chosen = itertools.combinations(range(instance.num_servers), instance.demand)
    by_worth = {instance.objective(plan): plan for plan in (ReclaimPlan(servers=np.array(one)) for one in chosen)}
    plans = [by_worth[worth] for worth in sorted(by_worth, reverse=True)]
    folder.mkdir()
    (folder / "VERSION").write_text("0.1\n", encoding="utf-8")
    collection = Collection(folder)
    worst = max(by_worth)
    run = {"solver": "none", "version": "0", "options": {}, "machine": "", "seconds": 0.0, "status": "feasible"}
    record: dict[str, Any] = {
        "name": NAME,
        "problem": instance.problem,
        "sense": instance.sense,
        "digest": instance.digest,
        "class": "open",
        "origin": {"kind": "example", "call": "instances.aryl.reclaim.figure_5()"},
        "licence": "MIT",
        "size": {},
        "features": {},
        "best": {"value": worst, "exact": str(int(worst)), "found_by": "faults", "date": "", "version": ""},
        "bound": {"value": 0.0, "exact": None, "proof": {"kind": "runs", "runs": [{**run, "bound": 0.0}]}},
        "heuristics": {},
        "history": [],
    }
    collection.write(record, instance=instance, plan=plans[0])
    return _Small(collection, plans)


def _forked(body: Callable[[], object]) -> int:
    """Start a process, which ends with 1 where its body raises."""
    child = os.fork()
    if not child:
        try:
            body()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def _dies_at(step: int) -> None:
    """Have this process killed before a step in which it changes files."""
    count = itertools.count()

    def before(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if next(count) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)

        return counted

    for name in STEPS:
        setattr(os, name, before(getattr(os, name)))


def killed_at(step: int, submit: Callable[[], object]) -> bool:
    """Have a process submit, and return whether it was killed before a step in which it changes files."""

    def body() -> None:
        _dies_at(step)
        submit()

    return os.WIFSIGNALED(os.waitpid(_forked(body), 0)[1])


@fault("collection.killed", 50)
def killed(tally: Tally, seed: int, count: int) -> None:
    """SIGKILL of a process that submits a plan, before a random one of its changes of files; then the same again."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        tally.begin()
        step = int(rng.integers(16))
        with scratch() as folder:
            small = _made(folder / "collection")
            best = small.plans[-1]
            tally.count("killed" if killed_at(step, partial(small.submit, best)) else "ended before")
            small.submit(best)
            if wrong := small.wrong(reclaim.figure_5().objective(best)):
                tally.tell(f"submission {number}, killed at step {step}: {wrong}", "lost")


@fault("collection.at_once", 20)
def at_once(tally: Tally, seed: int, count: int) -> None:
    """Three processes submit plans to one instance at once, and the best must be known at the end."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        tally.begin()
        with scratch() as folder:
            small = _made(folder / "collection")
            drawn = [small.plans[int(one)] for one in rng.integers(1, len(small.plans), 3)]
            children = [_forked(lambda plan=plan, small=small: small.submit(plan)) for plan in drawn]  # type: ignore[misc]
            codes = [os.waitpid(child, 0)[1] for child in children]
            tally.count("three ended" if not any(codes) else "one failed")
            if any(codes):
                tally.tell(f"submissions {number}: a process ended with {codes}", "tracebacks")
            if wrong := small.wrong(min(map(reclaim.figure_5().objective, drawn))):
                tally.tell(f"submissions {number}: {wrong}", "lost")
