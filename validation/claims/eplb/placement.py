"""Claims of EPLB (deepseek-ai/EPLB, commit d52c72d) about its functions: docstrings of ``eplb.py``, and the README."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from heuristics.eplb.placement import released_global, released_hierarchical
from instances.eplb.placement import EplbPlacement, EplbPlacementPlan, released_groups
from validation.claims.claim import Claim
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]

PRINTED = (
    (5, 6, 5, 7, 8, 4, 3, 4, 10, 9, 10, 2, 0, 1, 11, 1),
    (7, 10, 6, 8, 6, 11, 8, 9, 2, 4, 5, 1, 5, 0, 3, 1),
)
"""Experts of the replicas of both layers of the README's example."""


def _instances(experts: int, most: int, num_gpus: int, slots: int) -> Iterator[EplbPlacement]:
    """Yield all whole loads up to ``most``, the heaviest expert first."""
    for loads in itertools.combinations_with_replacement(range(most, -1, -1), experts):
        yield EplbPlacement(loads=np.array(loads, float), num_gpus=num_gpus, slots=slots)


def _one_slot() -> Iterator[EplbPlacement]:
    """Yield experts whose replicas have a GPU each, so that the value is the greatest load of a replica."""
    for experts, replicas in itertools.product(range(1, 5), range(1, 8)):
        if experts <= replicas:
            yield from _instances(experts, 6, replicas, 1)


def _one_replica() -> Iterator[EplbPlacement]:
    """Yield experts of one replica each, two or three for each GPU."""
    for most, slots, gpus in itertools.product(range(1, 5), (2, 3), (2, 3)):
        if slots * gpus <= 6:
            yield from _instances(slots * gpus, most, gpus, slots)


def _worse(instance: EplbPlacement) -> str | None:
    """Describe how the released policy is worse than the optimum."""
    value, best = Fraction(instance.objective(released_global(instance))), optimum(instance)
    assert best is not None
    if value <= best + Fraction(1, 10**9) * abs(best):
        return None
    return f"the released policy has {float(value):g}, the best {float(best):g}"


def _not_as_printed(instance: EplbPlacement) -> str | None:
    """Describe how a layer's plan is another one than that printed."""
    layer = [one.digest for one in released_groups()].index(instance.digest)
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    np.add.at(replicas, (np.array(PRINTED[layer]), np.arange(len(PRINTED[layer])) // instance.slots), 1)
    plan = released_hierarchical(instance)
    return None if plan == EplbPlacementPlan(replicas=replicas) else "another plan"


def _plain(instance: EplbPlacement) -> bool:
    """Return whether GPUs are alike, one vector of loads counts, and a GPU may hold an expert twice."""
    return instance.is_plain and not instance.one_per_gpu


def _printed(instance: EplbPlacement) -> bool:
    """Return whether it is one of the two layers of the README."""
    return instance in released_groups()


CLAIMS: list[Claim] = [
    Claim(
        name="replication_least_greatest_load",
        source="EPLB, replicate_experts in eplb.py",
        statement="Experts are replicated to a number of replicas such that the greatest load of a replica is least.",
        reading="no numbers of replicas, at least one of each expert and as many together, have a lesser one.",
        instances=lambda rng: _one_slot(),
        breaks=_worse,
        scope="all sets of up to 4 experts with whole loads up to 6, with up to 7 replicas",
        exhaustive=True,
        assumes=_plain,
        assumptions="replicas of an expert share its load equally.",
        relaxed="",
        by="the released code",
    ),
    Claim(
        name="packing_as_balanced_as_possible",
        source="EPLB, balanced_packing in eplb.py",
        statement="Objects are packed into packs of equally many so that the weights of all packs are as balanced as "
        "possible.",
        reading="no packing has a lesser weight of the heaviest pack.",
        instances=lambda rng: _one_replica(),
        breaks=_worse,
        scope="all sets of 4 objects in 2 packs, and of 6 in 2 or 3, with whole weights up to 4",
        exhaustive=True,
        assumes=_plain,
        assumptions="the packs take equally many objects, which their number divides.",
        relaxed="",
        by="the released code",
    ),
    Claim(
        name="example_as_printed",
        source="EPLB, the example of its README",
        statement="For the two layers of the example the policy returns the plan that is printed.",
        reading="ties go to the lowest number, as a stable sort has it.",
        instances=lambda rng: iter(released_groups()),
        breaks=_not_as_printed,
        assumes=_printed,
        scope="the two layers",
        exhaustive=True,
        assumptions="16 replicas of 12 experts in four groups, on 8 GPUs of two nodes.",
        relaxed="",
        by="the released code",
    ),
]
