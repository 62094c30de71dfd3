"""Claims of AFS about shares that are regulated before they are placed (section 4.4, Appendix E)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from heuristics.afs.network_packing import floor_and_grow_nearest
from instances.afs.network_packing import NetworkPacking, NetworkPackingPlan
from validation.claims.assumed import power_of_two
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, better_than, plans_of
from validation.claims.words import listed
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


def _no_regulated_shares(instance: NetworkPacking) -> str | None:
    if optimum(instance) is not None:
        return None
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


def _of(shares: tuple[int, ...]) -> NetworkPackingPlan:
    return NetworkPackingPlan(regulated=np.array(shares))


def _construction_fails(instance: NetworkPacking) -> str | None:
    ends = _grown(instance)
    if not ends:
        return f"from {listed(instance.floors)} GPUs on, the construction can come to where no job can grow"
    for shares in ends:
        if broken := instance.violations(_of(shares)):
            return f"{listed(shares)} GPUs: {'; '.join(map(str, broken))}"
    return None


def _farthest(instance: NetworkPacking) -> NetworkPackingPlan:
    """Return the plan of a construction that ends farthest from the shares that are wanted."""
    return max(map(_of, sorted(_grown(instance))), key=instance.objective)


def _nearest(instance: NetworkPacking) -> NetworkPackingPlan:
    """Return the plan of a construction that ends nearest to the shares that are wanted."""
    return min(map(_of, _grown(instance)), key=instance.objective)


def _not_nearest(
    instance: NetworkPacking, construction: Callable[[NetworkPacking], NetworkPackingPlan | None]
) -> str | None:
    """Describe how other regulated shares are nearer to those that are wanted than a construction's."""
    plan = construction(instance)
    assert plan is not None
    distance = instance.objective(plan)
    if (least := better_than(instance, distance)) is None:
        return None
    return f"{listed(plan.regulated)} GPUs are {distance:g} away from what is wanted, {least:g} is possible"


def _loses_a_machine(instance: NetworkPacking) -> str | None:
    """Describe how a regulated share that Proposition 2 allows is a machine or more below what is wanted."""
    lost = instance.shares - instance.floors
    job = int(np.argmax(lost))
    if lost[job] < instance.gpus_per_machine:
        return None
    return f"job {job} wants {instance.shares[job]} GPUs and may get {instance.floors[job]}"


def _far_off(instance: NetworkPacking, shares: tuple[int, ...]) -> bool:
    return bool((np.abs(np.array(shares) - instance.shares) >= instance.gpus_per_machine).any())


def _always_far_off(instance: NetworkPacking) -> str | None:
    if not all(_far_off(instance, shares) for shares in _grown(instance)):
        return None
    return f"whichever jobs grow, one of {listed(instance.shares)} GPUs is changed by a machine or more"


def _can_be_far_off(instance: NetworkPacking) -> str | None:
    for shares in sorted(_grown(instance)):
        if _far_off(instance, shares):
            return f"{listed(instance.shares)} GPUs can become {listed(shares)}"
    return None


REGULATED = "0, a power of two below the GPUs of a machine, or whole machines"
"""The shares that the algorithm makes, in words."""

_UP_TO_12 = "all shares of up to 12 GPUs in equal machines, up to numbering"
_KEPT = (
    "homogeneous machines of a power of two of GPUs each; whole shares that add up to all GPUs, as Appendix E has it."
)


def _shares_of_all(instance: NetworkPacking) -> bool:
    """Return whether machines have a power of two of GPUs, and the shares add up to all GPUs."""
    return power_of_two(instance.gpus_per_machine) and int(instance.shares.sum()) == instance.num_gpus


_claim = partial(
    Claim,
    assumes=_shares_of_all,
    instances=lambda rng: _packings(16),
    scope="all shares of up to 16 GPUs in equal machines, up to numbering",
    exhaustive=True,
    assumptions=_KEPT,
    relaxed="",
)

CLAIMS: list[Claim] = [
    _claim(
        name="proposition_2",
        source="AFS, Appendix E, Proposition 2",
        statement="Shares can be regulated so that all GPUs are used and no job gets less than its share rounded down.",
        reading=f"regulated is {REGULATED}, of a power of two of GPUs each.",
        breaks=_no_regulated_shares,
    ),
    _claim(
        name="proposition_2_construction",
        source="AFS, Appendix E, proof of Proposition 2",
        statement="Rounding shares down and letting jobs grow until all GPUs are used regulates them.",
        reading="whichever of the jobs whose increment fits grows each time, it ends exactly at the sum, and no job is "
        "below its share rounded down.",
        breaks=_construction_fails,
        ties="every way",
    ),
    _claim(
        name="regulation_least_difference",
        source="AFS, section 4.4 and Appendix E",
        statement="The scheduler regulates shares so that the difference from those it wanted is least.",
        reading="the construction that proves Proposition 2 has the least sum of differences, whichever jobs grow. The "
        "text does not name the measure, and gives no other algorithm.",
        instances=lambda rng: _packings(12),
        breaks=partial(_not_nearest, construction=_farthest),
        ties="every way",
        scope=_UP_TO_12,
        assumptions=f"{_KEPT} Least is among the shares that Proposition 2 allows.",
        plans=plans_of(("a construction", _farthest), OPTIMAL),
        others=(
            Reading(
                "the job grows that adds the least to the difference.",
                partial(_not_nearest, construction=floor_and_grow_nearest),
            ),
            Reading("for some choice of the jobs that grow.", partial(_not_nearest, construction=_nearest)),
        ),
    ),
    _claim(
        name="difference_bound",
        source="AFS, Appendix E",
        statement="The difference between the share wanted and the regulated one is bounded by a small constant for "
        "all jobs.",
        reading="on machines of 2^k GPUs, no job loses more than 2^k - 1 of them by what Proposition 2 guarantees.",
        breaks=_loses_a_machine,
        plans=plans_of(("a construction", _farthest)),
        others=(
            Reading(
                "nor gains more, if the jobs that grow are chosen well.",
                _always_far_off,
                lambda rng: _packings(12),
                scope=_UP_TO_12,
                assumes=_shares_of_all,
                ties="every way",
            ),
            Reading(
                "nor gains more, whichever jobs grow.",
                _can_be_far_off,
                lambda rng: _packings(12),
                scope=_UP_TO_12,
                assumes=_shares_of_all,
                ties="every way",
            ),
        ),
    ),
]
