"""What ElasticFlow (ASPLOS'23) states of where jobs run (section 4.3), put to the test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from heuristics.elasticflow.placement import buddy_best_fit, buddy_repack
from instances.elasticflow.placement import ElasticFlowPlacement, ElasticFlowPlacementPlan
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]

Blocks = tuple[tuple[int, int], ...]
"""Offset and size of each job."""


def _layouts(num_gpus: int) -> Iterator[Blocks]:
    """All ways for jobs to hold disjoint blocks of a power of two of GPUs, each at a multiple of its size."""

    def within(start: int) -> Iterator[Blocks]:
        if start == num_gpus:
            yield ()
            return
        for rest in within(start + 1):
            yield rest
        size = 1
        while start % size == 0 and start + size <= num_gpus:
            for rest in within(start + size):
                yield ((start, size), *rest)
            size *= 2

    return within(0)


def _sizes(total: int) -> Iterator[tuple[int, ...]]:
    """All sets of powers of two that sum to at most ``total``, largest first; not the empty one."""
    powers = [2**exponent for exponent in range(total.bit_length())]
    for number in range(1, total + 1):
        for sizes in itertools.combinations_with_replacement(reversed(powers), number):
            if sum(sizes) <= total:
                yield sizes


def _cluster(num_gpus: int, running: Blocks, new: tuple[int, ...]) -> ElasticFlowPlacement:
    offsets = [offset for offset, _ in running]
    return ElasticFlowPlacement(
        num_gpus=num_gpus,
        # The largest power of two that divides it.
        gpus_per_server=num_gpus & -num_gpus,
        sizes=np.array([*(size for _, size in running), *new]),
        previous_offsets=np.array([*offsets, *[np.inf] * len(new)], float),
    )


def _arrivals(clusters: tuple[int, ...]) -> Iterator[ElasticFlowPlacement]:
    """Running jobs in blocks of theirs, and new jobs for which there are enough free GPUs."""
    for num_gpus in clusters:
        for running in sorted(_layouts(num_gpus), key=len):
            for new in _sizes(num_gpus - sum(size for _, size in running)):
                yield _cluster(num_gpus, running, new)


def _resized(clusters: tuple[int, ...]) -> Iterator[ElasticFlowPlacement]:
    """Jobs that run anywhere, overlapping and out of line, and for which there are enough GPUs."""
    for num_gpus in clusters:
        for sizes in _sizes(num_gpus):
            for offsets in itertools.product(range(num_gpus), repeat=len(sizes)):
                yield _cluster(num_gpus, tuple(zip(offsets, sizes, strict=True)), ())


def _fragmented(
    instance: ElasticFlowPlacement, method: Callable[[ElasticFlowPlacement], ElasticFlowPlacementPlan | None]
) -> str:
    """How ``method`` places not all jobs although they need no more GPUs than there are."""
    plan = method(instance)
    need = f"the jobs need {instance.sizes.sum()} of {instance.num_gpus} GPUs"
    if plan is None:
        return f"{need} and are not placed"
    broken = instance.violations(plan)
    return f"{need} and are placed against a rule: {broken[0]}" if broken else ""


def _fit(sizes: tuple[int, ...], free: tuple[int, ...]) -> bool:
    """Whether jobs of these sizes fit on servers with these free GPUs, each on one."""
    if not sizes:
        return True
    size, *rest = sizes
    return any(
        _fit(tuple(rest), (*free[:server], room - size, *free[server + 1 :]))
        for server, room in enumerate(free)
        if room >= size
    )


def _two_servers(servers: tuple[int, ...]) -> Iterator[ElasticFlowPlacement]:
    """New jobs for two servers of so many GPUs each, none larger than a server."""
    for server in servers:
        for sizes in _sizes(2 * server):
            if max(sizes) <= server:
                yield _cluster(2 * server, (), sizes)


def _splits_a_job(instance: ElasticFlowPlacement) -> str:
    server = instance.num_gpus // 2
    sizes = tuple(instance.sizes.tolist())
    if _fit(sizes, (server, server)):
        return ""
    return (
        f"the jobs need {sum(sizes)} of {instance.num_gpus} GPUs, but on two servers of {server} one of them has to be "
        "split over both"
    )


_BUDDY = (
    "Buddy allocation with migration eliminates fragmentation: a job is placed whenever there are enough idle GPUs."
)

CLAIMS: list[Claim] = [
    Claim(
        name="buddy_with_migration",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="jobs and the cluster have powers of two of GPUs, and running jobs may move.",
        instances=lambda rng: _arrivals((1, 2, 4, 8)),
        breaks=lambda instance: _fragmented(instance, buddy_repack),
        scope="all blocks of running jobs on 1, 2, 4 and 8 GPUs, and all new jobs for which there are enough idle GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_with_migration_resized",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="as before, when the sizes of running jobs have changed, so that their blocks overlap.",
        instances=lambda rng: _resized((1, 2, 4)),
        breaks=lambda instance: _fragmented(instance, buddy_repack),
        scope="running jobs anywhere on 1, 2 and 4 GPUs that are enough for them",
        exhaustive=True,
    ),
    Claim(
        name="buddy_without_migration",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="jobs and the cluster have powers of two of GPUs, and running jobs stay where they are.",
        instances=lambda rng: _arrivals((1, 2, 4, 8)),
        breaks=lambda instance: _fragmented(instance, buddy_best_fit),
        scope="all blocks of running jobs on 1, 2, 4 and 8 GPUs, and all new jobs for which there are enough idle GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_empty_cluster",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="without migration, on an empty cluster, when jobs come largest first.",
        instances=lambda rng: (
            _cluster(num_gpus, (), sizes) for num_gpus in range(1, 17) for sizes in _sizes(num_gpus)
        ),
        breaks=lambda instance: _fragmented(instance, buddy_best_fit),
        scope="all jobs of powers of two that fit into 1 to 16 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_any_number_of_gpus",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="running jobs may move, and the cluster has a number of GPUs that is no power of two: one such server, "
        "or several of the largest power of two that divides it.",
        instances=lambda rng: _arrivals((3, 5, 6, 7)),
        breaks=lambda instance: _fragmented(instance, buddy_repack),
        scope="all blocks of running jobs on 3, 5, 6 and 7 GPUs, and all new jobs for which there are enough idle GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_odd_servers",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="two servers of a number of GPUs that is no power of two, and each job on one of them, wherever on it. "
        "Instances have no such servers: the one shown has the GPUs of both in servers of the largest power of two "
        "that divides them.",
        instances=lambda rng: _two_servers((3, 5, 6, 7)),
        breaks=_splits_a_job,
        scope="two servers of 3, 5, 6 or 7 GPUs, and all jobs of powers of two up to the server's that have enough "
        "GPUs",
        exhaustive=True,
    ),
    Claim(
        name="buddy_even_servers",
        source="ElasticFlow, section 4.3",
        statement=_BUDDY,
        reading="two servers of a power of two of GPUs, and each job on one of them, wherever on it.",
        instances=lambda rng: _two_servers((1, 2, 4, 8)),
        breaks=_splits_a_job,
        scope="two servers of 1, 2, 4 or 8 GPUs, and all jobs of powers of two up to the server's that have enough "
        "GPUs",
        exhaustive=True,
    ),
]
