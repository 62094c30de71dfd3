"""Claims of AFS about shares that are regulated before they are placed (section 4.4, Appendix E).

Optima are found by trying everything, and what judges the heuristics here shares nothing with the
models of :mod:`formulations`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heuristics.afs.network_packing import floor_and_grow_nearest
from instances.afs.network_packing import NetworkPacking, NetworkPackingPlan
from validation.claims.plans import OPTIMAL, plans_of
from validation.claims.words import listed
from validation.kinds.claims import Claim, Reading
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS", "REGULATED"]


def _partitions(total: int, most: int) -> Iterator[list[int]]:
    """Yield all ways to write ``total`` as a sum of parts up to ``most``, largest first."""
    if not total:
        yield []
    for part in range(min(total, most), 0, -1):
        for rest in _partitions(total - part, part):
            yield [part, *rest]


def _packings(most_gpus: int, *, floor_guarantee: bool = True) -> Iterator[NetworkPacking]:
    """Yield all shares of all GPUs of clusters of equal machines, up to numbering, fewest GPUs and jobs first."""
    for num_gpus in range(1, most_gpus + 1):
        for shares in sorted(_partitions(num_gpus, num_gpus), key=len):
            gpus = 1
            while num_gpus % gpus == 0:
                yield NetworkPacking(
                    shares=np.array(shares),
                    num_machines=num_gpus // gpus,
                    gpus_per_machine=gpus,
                    floor_guarantee=floor_guarantee,
                )
                gpus *= 2


def _no_regulated_shares(instance: NetworkPacking) -> str:
    if optimum(instance) is not None:
        return ""
    return f"no regulated shares of {listed(instance.shares)} GPUs reach their floors and use all GPUs"


def _grown(instance: NetworkPacking) -> set[tuple[int, ...]]:
    """Return the shares at which the proof's construction can end, whichever jobs grow; empty if it can be stuck."""
    machine = instance.gpus_per_machine
    found = {tuple(instance.floors.tolist())}
    ends = set()
    while found:
        following = set()
        for shares in found:
            left = instance.num_gpus - sum(shares)
            if not left:
                ends.add(shares)
                continue
            able = [job for job, share in enumerate(shares) if 0 < min(share, machine) <= left]
            if not able:
                return set()
            for job in able:
                step = min(shares[job], machine)
                following.add((*shares[:job], shares[job] + step, *shares[job + 1 :]))
        found = following
    return ends


def _distance(instance: NetworkPacking, shares: tuple[int, ...]) -> int:
    return int(np.abs(np.array(shares) - instance.shares).sum())


def _construction_fails(instance: NetworkPacking) -> str:
    ends = _grown(instance)
    if not ends:
        return f"from {listed(instance.floors)} GPUs on, the construction can come to where no job can grow"
    for shares in ends:
        broken = instance.violations(NetworkPackingPlan(regulated=np.array(shares)))
        if broken:
            return f"{listed(shares)} GPUs: {'; '.join(map(str, broken))}"
    return ""


def _farther(instance: NetworkPacking, shares: tuple[int, ...]) -> str:
    distance, least = _distance(instance, shares), optimum(instance)
    if least is None or distance <= least:
        return ""
    return f"{listed(shares)} GPUs are {distance} away from what is wanted, {least} is possible"


def _farthest(instance: NetworkPacking) -> tuple[int, ...]:
    """Return the shares at which the construction can end that are farthest from those wanted."""
    return max(sorted(_grown(instance)), key=lambda shares: _distance(instance, shares))


def _construction_not_nearest(instance: NetworkPacking) -> str:
    return _farther(instance, _farthest(instance))


def _nearest_step_not_nearest(instance: NetworkPacking) -> str:
    plan = floor_and_grow_nearest(instance)
    assert plan is not None
    return _farther(instance, tuple(plan.regulated.tolist()))


def _no_choice_nearest(instance: NetworkPacking) -> str:
    return _farther(instance, min(_grown(instance), key=lambda shares: _distance(instance, shares)))


def _loses_a_machine(instance: NetworkPacking) -> str:
    """Describe how a regulated share that Proposition 2 allows is a machine or more below what is wanted."""
    lost = instance.shares - instance.floors
    job = int(np.argmax(lost))
    if lost[job] < instance.gpus_per_machine:
        return ""
    return f"job {job} wants {instance.shares[job]} GPUs and may get {instance.floors[job]}"


def _far_off(instance: NetworkPacking, shares: tuple[int, ...]) -> bool:
    return bool((np.abs(np.array(shares) - instance.shares) >= instance.gpus_per_machine).any())


def _always_far_off(instance: NetworkPacking) -> str:
    ends = _grown(instance)
    if not all(_far_off(instance, shares) for shares in ends):
        return ""
    return f"whichever jobs grow, one of {listed(instance.shares)} GPUs is changed by a machine or more"


def _can_be_far_off(instance: NetworkPacking) -> str:
    for shares in sorted(_grown(instance)):
        if _far_off(instance, shares):
            return f"{listed(instance.shares)} GPUs can become {listed(shares)}"
    return ""


def _far(instance: NetworkPacking) -> NetworkPackingPlan:
    return NetworkPackingPlan(regulated=np.array(_farthest(instance)))


REGULATED = "0, a power of two below the GPUs of a machine, or whole machines"
"""The shares that the algorithm makes, in words."""

_KEPT = (
    "homogeneous machines of a power of two of GPUs each; whole shares that add up to all GPUs, as Appendix E has it."
)

CLAIMS: list[Claim] = [
    Claim(
        name="proposition_2",
        source="AFS, Appendix E, Proposition 2",
        statement="Shares can be regulated so that all GPUs are used and no job gets less than its share rounded down.",
        reading=f"regulated is {REGULATED}, of a power of two of GPUs each.",
        instances=lambda rng: _packings(16),
        breaks=_no_regulated_shares,
        scope="all shares of up to 16 GPUs in equal machines, up to numbering",
        exhaustive=True,
        assumptions=_KEPT,
        relaxed="",
    ),
    Claim(
        name="proposition_2_construction",
        source="AFS, Appendix E, proof of Proposition 2",
        statement="Rounding shares down and letting jobs grow until all GPUs are used regulates them.",
        reading="whichever of the jobs whose increment fits grows each time, it ends exactly at the sum, and no job is "
        "below its share rounded down.",
        instances=lambda rng: _packings(16),
        breaks=_construction_fails,
        scope="all shares of up to 16 GPUs in equal machines, up to numbering",
        exhaustive=True,
        assumptions=_KEPT,
        relaxed="",
    ),
    Claim(
        name="regulation_least_difference",
        source="AFS, section 4.4 and Appendix E",
        statement="The scheduler regulates shares so that the difference from those it wanted is least.",
        reading="the construction that proves Proposition 2 has the least sum of differences, whichever jobs grow. The "
        "text does not name the measure, and gives no other algorithm.",
        instances=lambda rng: _packings(12),
        breaks=_construction_not_nearest,
        scope="all shares of up to 12 GPUs in equal machines, up to numbering",
        exhaustive=True,
        assumptions=f"{_KEPT} Least is among the shares that Proposition 2 allows.",
        relaxed="",
        plans=plans_of(("a construction", _far), OPTIMAL),
        others=(
            Reading("the job grows that adds the least to the difference.", _nearest_step_not_nearest),
            Reading("for some choice of the jobs that grow.", _no_choice_nearest),
        ),
    ),
    Claim(
        name="difference_bound",
        source="AFS, Appendix E",
        statement="The difference between the share wanted and the regulated one is bounded by a small constant for "
        "all jobs.",
        reading="on machines of 2^k GPUs, no job loses more than 2^k - 1 of them by what Proposition 2 guarantees.",
        instances=lambda rng: _packings(16),
        breaks=_loses_a_machine,
        scope="all shares of up to 16 GPUs in equal machines, up to numbering",
        exhaustive=True,
        assumptions=_KEPT,
        relaxed="",
        plans=plans_of(("a construction", _far)),
        others=(
            Reading(
                "nor gains more, if the jobs that grow are chosen well.",
                _always_far_off,
                lambda rng: _packings(12),
            ),
            Reading("nor gains more, whichever jobs grow.", _can_be_far_off, lambda rng: _packings(12)),
        ),
    ),
]
