"""Claims of ElasticFlow (ASPLOS'23) about where jobs run (section 4.3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

from heuristics.elasticflow.placement import buddy_repack
from instances.aryl.placement import ArylPlacement
from instances.elasticflow.placement import ElasticFlowPlacement
from validation.claims.assumed import power_of_two
from validation.claims.claim import Claim, Reading
from validation.claims.plans import plans_of
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]

Blocks = tuple[tuple[int, int], ...]
"""Offset and size of each job."""


def _layouts(num_gpus: int) -> Iterator[Blocks]:
    """Yield all ways for jobs to hold disjoint blocks of a power of two of GPUs, each at a multiple of its size."""

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
    """Yield all sets of powers of two that sum to at most ``total``, largest first; not the empty one."""
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
    """Yield running jobs in blocks of theirs, and new jobs for which there are enough free GPUs."""
    for num_gpus in clusters:
        for running in sorted(_layouts(num_gpus), key=len):
            for new in _sizes(num_gpus - sum(size for _, size in running)):
                yield _cluster(num_gpus, running, new)


def _resized(clusters: tuple[int, ...]) -> Iterator[ElasticFlowPlacement]:
    """Yield jobs that run anywhere, overlapping and out of line, and for which there are enough GPUs."""
    for num_gpus in clusters:
        for sizes in _sizes(num_gpus):
            for offsets in itertools.product(range(num_gpus), repeat=len(sizes)):
                yield _cluster(num_gpus, tuple(zip(offsets, sizes, strict=True)), ())


def _fragmented(instance: ElasticFlowPlacement) -> str | None:
    """Describe how not all jobs are placed although they need no more GPUs than there are."""
    plan = buddy_repack(instance)
    need = f"the jobs need {instance.sizes.sum()} of {instance.num_gpus} GPUs"
    if plan is None:
        return f"{need} and are not placed"
    broken = instance.violations(plan)
    return f"{need} and are placed against a rule: {broken[0]}" if broken else None


def _two_servers(servers: tuple[int, ...]) -> Iterator[ElasticFlowPlacement]:
    """Yield new jobs for two servers of so many GPUs each, none larger than a server."""
    for server in servers:
        for sizes in _sizes(2 * server):
            if max(sizes) <= server:
                yield _cluster(2 * server, (), sizes)


def _splits_a_job(instance: ElasticFlowPlacement) -> str | None:
    server = instance.num_gpus // 2
    # Workers of one job each, on one server or the other.
    on_two = ArylPlacement(
        gpus_per_worker=instance.sizes,
        num_workers=np.ones(instance.num_jobs, np.int64),
        elastic=np.zeros(instance.num_jobs, bool),
        server_gpus=np.full(2, server),
        server_groups=np.full(2, "training"),
    )
    if optimum(on_two) is not None:
        return None
    return (
        f"the jobs need {instance.sizes.sum()} of {instance.num_gpus} GPUs, but on two servers of {server} one of them "
        "has to be split over both"
    )


def _anywhere(num_gpus: int, sizes: Iterable[tuple[int, ...]]) -> Iterator[ElasticFlowPlacement]:
    """Yield a new job, of one block or of several, and jobs of one GPU on any of them, such that enough are idle."""
    for held in range(num_gpus):
        for where in itertools.combinations(range(num_gpus), held):
            for blocks in sizes:
                if held + sum(blocks) <= num_gpus:
                    yield _cluster(num_gpus, tuple((gpu, 1) for gpu in where), blocks)


def _wider(instance: ElasticFlowPlacement, *, smallest: bool) -> str | None:
    """Describe how the new job's GPUs are spread over a wider part of the tree than they had to be.

    Of the subtrees with room that leave the fewest GPUs over, the smallest is taken, or the one that suits the job
    least; within it the job gets the GPUs that are closest to each other.
    """
    idle = np.ones(instance.num_gpus, bool)
    idle[instance.previous_offsets[instance.running].astype(int)] = False
    size = int(instance.sizes[~instance.running].sum())
    subtrees = [
        range(start, start + width)
        for width in (2**power for power in range(instance.num_gpus.bit_length()))
        for start in range(0, instance.num_gpus, width)
    ]
    room = [tree for tree in subtrees if idle[tree].sum() >= size]

    def spread(tree: range) -> int:
        """Return the size of the smallest subtree of one that has room."""
        return min(len(one) for one in room if tree.start <= one.start and one.stop <= tree.stop)

    spare = min(idle[tree].sum() for tree in room)
    best = [tree for tree in room if idle[tree].sum() == spare]
    taken = min(best, key=len) if smallest else max(best, key=spread)
    got, narrowest = spread(taken), min(map(len, room))
    if got == narrowest:
        return None
    return f"the job's GPUs are spread over a subtree of {got} GPUs, one of {narrowest} would do"


def _beside_single_gpus(instance: ElasticFlowPlacement) -> bool:
    """Return whether a new job of a power of two of GPUs comes to a tree of jobs of one GPU each, with room for it."""
    running, sizes = instance.running, instance.sizes
    return (
        power_of_two(instance.num_gpus)
        and running.tolist() == [True] * (instance.num_jobs - 1) + [False]
        and bool((sizes[:-1] == 1).all())
        and power_of_two(int(sizes[-1]))
        and int(sizes.sum()) <= instance.num_gpus
    )


def _beside_any_number(instance: ElasticFlowPlacement) -> bool:
    """Return whether workers of one GPU each come to a tree of such jobs, with room for them."""
    alike = bool((instance.sizes == 1).all()) and not instance.running.all()
    return power_of_two(instance.num_gpus) and alike and instance.num_jobs <= instance.num_gpus


def _enough_gpus(instance: ElasticFlowPlacement) -> bool:
    """Return whether jobs have powers of two of GPUs, no more than there are."""
    return all(map(power_of_two, instance.sizes.tolist())) and int(instance.sizes.sum()) <= instance.num_gpus


def _a_whole_tree(instance: ElasticFlowPlacement) -> bool:
    """Return whether jobs have powers of two of GPUs, no more than there are, which is a power of two."""
    return power_of_two(instance.num_gpus) and _enough_gpus(instance)


_NO_TREE = "the GPUs are no whole binary tree, as those of Figure 5 are."

_claim = partial(Claim, source="ElasticFlow, section 4.3", exhaustive=True, relaxed="", ties="by number")
_buddy = partial(
    _claim,
    statement="Where jobs have powers of two of GPUs and can be migrated, buddy allocation leaves no fragments: a job "
    "is placed whenever there are enough idle GPUs.",
    breaks=_fragmented,
    assumes=_a_whole_tree,
    assumptions="jobs of powers of two of GPUs, which can be moved; the cluster is a binary tree of servers, as in "
    "Figure 5.",
)

CLAIMS: list[Claim] = [
    _buddy(
        name="buddy_with_migration",
        reading="the cluster has a power of two of GPUs, and any running job may move.",
        instances=lambda rng: _arrivals((1, 2, 4, 8)),
        scope="all blocks of running jobs on 1, 2, 4 and 8 GPUs, and all new jobs for which there are enough idle GPUs",
    ),
    _buddy(
        name="buddy_with_migration_resized",
        reading="as before, when the sizes of running jobs have changed, so that their blocks overlap.",
        instances=lambda rng: _resized((1, 2, 4)),
        scope="running jobs anywhere on 1, 2 and 4 GPUs that are enough for them",
    ),
    _buddy(
        name="buddy_any_number_of_gpus",
        reading="any running job may move, and the cluster has a number of GPUs that is no power of two: servers of "
        "the largest power of two that divides it.",
        assumptions="jobs of powers of two of GPUs, which can be moved.",
        relaxed=_NO_TREE,
        assumes=_enough_gpus,
        instances=lambda rng: _arrivals((3, 5, 6, 7)),
        scope="all blocks of running jobs on 3, 5, 6 and 7 GPUs, and all new jobs for which there are enough idle GPUs",
    ),
    _buddy(
        name="buddy_servers",
        reading="two servers of a power of two of GPUs, as Figure 5's of 8 are, and each job on one of them, "
        "wherever on it.",
        instances=lambda rng: _two_servers((1, 2, 4, 8)),
        breaks=_splits_a_job,
        ties="",
        scope="two servers of so many GPUs, and all jobs of powers of two up to the server's that have enough GPUs",
        others=(
            Reading(
                "to the letter, with a condition on jobs only: two servers of 3, 5, 6 or 7 GPUs. Instances have no "
                "such servers: the one shown has the GPUs of both in servers of the largest power of two that divides "
                "them.",
                _splits_a_job,
                lambda rng: _two_servers((3, 5, 6, 7)),
                scope="two such servers, and all jobs of powers of two up to the server's that have enough GPUs",
                assumes=_enough_gpus,
                relaxed=_NO_TREE,
            ),
        ),
    ),
    _claim(
        name="best_fit_highest_bandwidth",
        statement="Best fit takes, of the subtrees in which a job has room, the one that leaves the fewest GPUs over, "
        "so that no other choice gives its workers more bandwidth: no smaller subtree would do.",
        reading="of subtrees with the same number of idle GPUs, the smallest is taken.",
        assumptions="a job of a power of two of GPUs; others that hold GPUs anywhere, as jobs of any size do before "
        "buddy allocation is added.",
        instances=lambda rng: _anywhere(8, ((2,), (4,))),
        breaks=partial(_wider, smallest=True),
        assumes=_beside_single_gpus,
        ties="every way",
        scope="one server of 8 GPUs in a binary tree, any of them held, and a job of 2 or 4",
        others=(
            Reading(
                "any of them may be taken, as nothing is said of ties: in that which suits the job least it gets the "
                "GPUs that are closest to each other.",
                partial(_wider, smallest=False),
                plans=plans_of("buddy_best_fit"),
            ),
            Reading(
                "a job of any number of GPUs, as best fit stands before buddy allocation is added; of subtrees with "
                "the same number of idle GPUs, the smallest is taken. The job is shown as workers of one GPU each.",
                partial(_wider, smallest=True),
                lambda rng: _anywhere(8, [(1,) * size for size in range(1, 9)]),
                scope="one server of 8 GPUs in a binary tree, any of them held, and a job of 1 to 8",
                assumes=_beside_any_number,
            ),
        ),
    ),
]
