"""What AFS states of shares that are regulated before they are placed (section 4.4, Appendix E), put to the test.

Optima are found by trying everything, and what judges the heuristics here shares nothing with the
models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from heuristics.afs.network_packing import floor_and_grow
from instances.afs.network_packing import NetworkPacking
from validation.claims.words import listed
from validation.testing.claims import Claim

__all__ = ["CLAIMS", "REGULATED"]


def _partitions(total: int, most: int) -> Iterator[list[int]]:
    """All ways to write ``total`` as a sum of parts up to ``most``, largest first."""
    if not total:
        yield []
    for part in range(min(total, most), 0, -1):
        for rest in _partitions(total - part, part):
            yield [part, *rest]


def _packings(most_gpus: int, *, floor_guarantee: bool = True) -> Iterator[NetworkPacking]:
    """All shares of all GPUs of clusters of equal machines, up to numbering, fewest GPUs and jobs first."""
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


def _least_distance(instance: NetworkPacking) -> int | None:
    """Least distance of regulated shares, job by job over all sums; None if there are none."""
    least = {0: 0}
    for share, floor in zip(instance.shares.tolist(), instance.floors.tolist(), strict=True):
        longer: dict[int, int] = {}
        for total, distance in least.items():
            for value in instance.candidates.tolist():
                if total + value <= instance.num_gpus and (value >= floor or not instance.floor_guarantee):
                    reached = distance + abs(value - share)
                    longer[total + value] = min(reached, longer.get(total + value, reached))
        least = longer
    return least.get(instance.num_gpus)


def _no_regulated_shares(instance: NetworkPacking) -> str:
    if _least_distance(instance) is not None:
        return ""
    return f"no regulated shares of {listed(instance.shares)} GPUs reach their floors and use all GPUs"


def _construction_fails(instance: NetworkPacking) -> str:
    plan = floor_and_grow(instance)
    return "; ".join(map(str, instance.violations(plan)))


def _construction_not_nearest(instance: NetworkPacking) -> str:
    plan, least = floor_and_grow(instance), _least_distance(instance)
    if least is None or instance.objective(plan) <= least:
        return ""
    return (
        f"{listed(plan.regulated)} GPUs are {instance.objective(plan):g} away from what is wanted, {least} is possible"
    )


def _floors_cost(instance: NetworkPacking) -> str:
    with_floors, without = _least_distance(instance), _least_distance(replace(instance, floor_guarantee=False))
    if with_floors == without:
        return ""
    return f"regulated shares are {with_floors} GPUs away from what is wanted with floors, {without} without"


def _no_rounding(instance: NetworkPacking) -> str:
    """How no rounding of each share to the regulated one below or above uses all GPUs."""
    candidates = instance.candidates
    above = candidates[np.searchsorted(candidates, instance.shares)]
    roundings = itertools.product(*map(set, zip(instance.floors.tolist(), above.tolist(), strict=True)))
    if any(sum(shares) == instance.num_gpus for shares in roundings):
        return ""
    return (
        f"{listed(instance.floors)} GPUs are below what is wanted, {listed(above)} above, and no choice adds up to all"
    )


REGULATED = "0, a power of two below the GPUs of a machine, or whole machines"

CLAIMS: list[Claim] = [
    Claim(
        name="proposition_2",
        source="AFS, section 4.4 and Appendix E, Proposition 2",
        statement="Shares can be regulated so that all GPUs are used and no job gets less than its share rounded down.",
        reading=f"regulated is {REGULATED}, of a power of two of GPUs each; shares are whole and add up to all GPUs.",
        instances=lambda rng: _packings(16),
        breaks=_no_regulated_shares,
        scope="all shares of up to 16 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
    Claim(
        name="proposition_2_construction",
        source="AFS, section 4.4 and Appendix E, proof of Proposition 2",
        statement="Rounding shares down and letting the smallest grow until all GPUs are used regulates them.",
        reading="it ends exactly at the sum, and no job is below its share rounded down. Which of several smallest "
        "shares grows is this library's choice.",
        instances=lambda rng: _packings(20),
        breaks=_construction_fails,
        scope="all shares of up to 20 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
    Claim(
        name="stage_one_nearest",
        source="AFS, section 4.4 and Appendix E",
        statement="Regulated shares stay near those that the scheduler wants.",
        reading="the construction has the least sum of differences, of all regulated shares that are not below those "
        "rounded down. The measure is this library's.",
        instances=lambda rng: _packings(12),
        breaks=_construction_not_nearest,
        scope="all shares of up to 12 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
    Claim(
        name="stage_one_floors_for_free",
        source="AFS, section 4.4 and Appendix E, Proposition 2",
        statement="Shares can be regulated so that all GPUs are used and no job gets less than its share rounded down.",
        reading="the guarantee costs nothing: without it the least sum of differences is the same. The measure is this "
        "library's.",
        instances=lambda rng: _packings(12),
        breaks=_floors_cost,
        scope="all shares of up to 12 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
    Claim(
        name="stage_one_rounds",
        source="AFS, section 4.4 and Appendix E",
        statement="Regulated shares stay near those that the scheduler wants.",
        reading="every share can be rounded to the regulated one below or above it so that all GPUs are used. "
        "Proposition 2 promises no less than the one below only.",
        instances=lambda rng: _packings(12),
        breaks=_no_rounding,
        scope="all shares of up to 12 GPUs in equal machines, up to numbering",
        exhaustive=True,
    ),
]
