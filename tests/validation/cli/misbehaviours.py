"""Heuristics for :mod:`instances.aryl.reclaim` that misbehave, each in its own way."""

import os
import signal
import sys
import time
from typing import Any

import numpy as np
import pandas as pd

from instances.aryl.elastic_allocation import ElasticAllocationPlan
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import Heuristic


def honest(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.arange(instance.demand))


def none(instance: Reclaim) -> Any:
    return None


def not_a_number(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.full(instance.demand, np.nan))


def infinity(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.full(instance.demand, np.inf))


def negative(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.arange(instance.demand) - 1)


def another_type(instance: Reclaim) -> Any:
    return 3


def a_bare_array(instance: Reclaim) -> Any:
    return np.zeros(0)


def another_plan(instance: Reclaim) -> Any:
    return ElasticAllocationPlan(extra_workers=np.array([1]))


def another_shape(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.zeros((instance.demand, 2), int))


def too_short(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.arange(instance.demand - 1))


def twice_the_same(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.zeros(instance.demand + 2, int))


def too_long(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.arange(instance.num_servers + 1))


def raises(instance: Reclaim) -> Any:
    raise KeyError("servers")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("nobody knows")


def raises_unspeakably(instance: Reclaim) -> Any:
    raise UnspeakableError


def exits(instance: Reclaim) -> Any:
    sys.exit(0)


def ends_the_process(instance: Reclaim) -> Any:
    os._exit(0)


def kills_itself(instance: Reclaim) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def is_late(instance: Reclaim) -> Any:
    while True:
        time.sleep(1)


def takes_too_much_memory(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.ones(2**44, int))


def recurses(instance: Reclaim) -> Any:
    return recurses(instance)


def generates(instance: Reclaim) -> Any:
    yield honest(instance)


class MyPlan(ReclaimPlan):
    """A plan that would say otherwise."""

    def to_dict(self) -> dict[str, Any]:
        return {"problem": "none"}


def subclassed(instance: Reclaim) -> Any:
    return MyPlan(servers=np.arange(instance.demand))


class Odd(np.ndarray):
    """An array that hides what is in it."""

    def __len__(self) -> int:
        raise RuntimeError("nobody knows")


def an_odd_array(instance: Reclaim) -> Any:
    plan = MyPlan(servers=np.arange(instance.demand))
    object.__setattr__(plan, "servers", np.arange(instance.demand).view(Odd))
    return plan


def a_series(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=pd.Series(range(instance.demand)))


def an_array_of_objects(instance: Reclaim) -> Any:
    return ReclaimPlan(servers=np.array([object()] * instance.demand))


def changes_the_instance(instance: Reclaim) -> Any:
    object.__setattr__(instance, "demand", 0)
    return ReclaimPlan(servers=np.array([], int))


def talks(instance: Reclaim) -> Any:
    for _ in range(1000):
        print("x" * 1000)
        sys.stderr.write("y" * 1000)
    return honest(instance)


strict = Heuristic(none, declines=False)
lax = Heuristic(none, declines=True)
