"""One queue before some GPUs, as simple as a setting can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from validation.replay import Decision, Jobs, State

Order = Callable[[State], Any]


def first_come(state: State) -> Any:
    """Whoever came first."""
    return np.argsort(state.arrivals, kind="stable")


def least_left(state: State) -> Any:
    """Whoever has the least left."""
    return np.argsort(state.left, kind="stable")


@dataclass
class Queue:
    """Jobs of one GPU each, the first of an order on the GPUs that there are; ``spoil`` changes what is decided."""

    jobs: Jobs
    order: Order = first_come
    num_gpus: int = 1
    spoil: Callable[[State, Decision], Decision] = field(default=lambda _, decision: decision)
    seen: list[float] = field(default_factory=list)
    name: str = "queue"

    @property
    def capacity(self) -> Any:
        return np.array([float(self.num_gpus)])

    def begin(self) -> Any:
        return self.decide

    def equal_rates(self, jobs: Any) -> Any:
        return np.full(len(jobs), min(1.0, self.num_gpus / len(jobs)))

    def decide(self, state: State, _: Any) -> Decision:
        self.seen.append(state.now)
        runs = np.zeros(len(state.jobs))
        runs[self.order(state)[: self.num_gpus]] = 1.0
        return self.spoil(state, Decision(rates=runs, gpus=runs))


def jobs_of(arrivals: Any, work: Any, **others: Any) -> Jobs:
    """Jobs that do a unit of work a second."""
    n = len(work)
    return Jobs(names=range(n), arrivals=arrivals, work=work, fastest=np.ones(n), **others)
