"""Small sets to judge on, and heuristics whose worth on them is known."""

import itertools
import json
from typing import Any

import numpy as np
import pytest

from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.files import text_of
from validation import Judgement
from validation.kernel.walls import standing
from validation.kinds.judge.judging import judge_on
from validation.kinds.study.cases import generate

STANDING = all(standing().values())
WALLED = pytest.mark.skipif(not STANDING, reason="this kernel cannot keep a process from what this one tries")
"""Of tests of what is hidden from a process, which takes all walls."""

SET = sorted(text_of(generate("aryl.reclaim", 11, 6 + index % 3, index)) for index in range(5))


def judged(heuristic: Any, texts: list[str] = SET, **options: Any) -> Judgement:
    return judge_on(texts, heuristic, "aryl.reclaim", **{"jobs": 2, **options})


def preempted(text: str, servers: tuple[int, ...]) -> int:
    """Jobs on any of the servers, counted from the JSON alone."""
    return sum(any(row[server] for server in servers) for row in json.loads(text)["hosts"])


def best(text: str) -> int:
    """Fewest jobs preempted, by looking at every choice of servers."""
    data = json.loads(text)
    return min(
        preempted(text, chosen) for chosen in itertools.combinations(range(len(data["hosts"][0])), data["demand"])
    )


def optimal(instance: Reclaim) -> ReclaimPlan:
    """The best of all choices."""
    choices = itertools.combinations(range(instance.num_servers), instance.demand)
    return ReclaimPlan(servers=min(choices, key=lambda one: instance.hosts[:, list(one)].any(axis=1).sum()))


def last_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(instance.num_servers)[-instance.demand :])


def random_servers(instance: Reclaim, *, rng: np.random.Generator) -> ReclaimPlan:
    return ReclaimPlan(servers=rng.permutation(instance.num_servers)[: instance.demand])


def too_few(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(instance.demand - 1))
