"""Entry of elasticflow.placement: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heuristics.elasticflow import placement as fast
from instances.elasticflow.placement import ElasticFlowPlacement, ElasticFlowPlacementPlan, from_placements, generate
from validation.catalogue import Entry, Heuristic, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, optimum
from validation.testing import st
from validation.testing.arrays import integers

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, max_jobs: int = 5, max_servers: int = 3, max_exponent: int = 2
) -> ElasticFlowPlacement:
    """Draw new jobs and running ones anywhere, as if resized; not all need fit, or they fill all GPUs."""
    if draw(st.booleans()):
        return draw(_full())
    n = draw(st.integers(1, max_jobs))
    server = 2 ** draw(st.integers(0, max_exponent))
    num_gpus = server * draw(st.integers(1, max_servers))
    exponents = draw(integers(n, 0, min(max_exponent, num_gpus.bit_length() - 1)))
    previous = [draw(st.none() | st.integers(0, num_gpus - 1)) for _ in range(n)]
    return ElasticFlowPlacement(
        num_gpus=num_gpus,
        gpus_per_server=server,
        sizes=2**exponents,
        previous_offsets=np.array([np.inf if offset is None else offset for offset in previous]),
    )


@st.composite
def _full(draw: st.DrawFn) -> ElasticFlowPlacement:
    """Draw jobs that fill servers of 4 GPUs, most of them running anywhere, so that many have to move."""
    num_gpus = 4 * draw(st.integers(2, 4))
    # Of many jobs, Hypothesis rarely draws places that are all over the cluster.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = rng.permutation(np.repeat([1, 2, 4], num_gpus))
    sizes = sizes[: np.flatnonzero(np.cumsum(sizes) <= num_gpus)[-1] + 1]
    sizes = np.append(sizes, np.ones(num_gpus - sizes.sum(), np.int64))
    new = rng.random(len(sizes)) < 0.3
    return ElasticFlowPlacement(
        num_gpus=num_gpus,
        gpus_per_server=4,
        sizes=sizes,
        previous_offsets=np.where(new, np.inf, rng.integers(0, num_gpus, len(sizes))),
    )


NEW = BreaksOnly((), lambda instance: bool(np.isinf(instance.previous_offsets).all()), "where no job runs yet")


def _smallest_blocks(instance: ElasticFlowPlacement, plan: ElasticFlowPlacementPlan) -> bool:
    """Return whether running jobs stay, and new ones have in turn the lowest of the smallest free blocks that do."""
    new, num_gpus = np.isinf(instance.previous_offsets), instance.num_gpus
    offsets = np.where(new, -1, instance.previous_offsets)
    free = np.ones(num_gpus, bool)
    for offset, size in zip(offsets[~new].astype(int), instance.sizes[~new], strict=True):
        free[offset : offset + size] = False
    for job in np.flatnonzero(new):
        size = width = int(instance.sizes[job])
        while offsets[job] < 0 and width <= num_gpus:
            for first in range(0, num_gpus - width + 1, width):
                twice = first // (2 * width) * 2 * width
                whole = twice + 2 * width <= num_gpus and free[twice : twice + 2 * width].all()
                if free[first : first + width].all() and not whole:
                    offsets[job] = first
                    free[first : first + size] = False
                    break
            width *= 2
    return bool((plan.offsets == offsets).all())


def _largest_stay(instance: ElasticFlowPlacement, plan: ElasticFlowPlacementPlan) -> bool:
    """Return whether of the jobs of the largest size that can stay, one stays in each block."""
    can = (instance.sizes == instance.sizes.max()) & instance.can_stay
    stays = can & (plan.offsets == instance.previous_offsets)
    return len(set(instance.previous_offsets[can])) == int(stays.sum())


def _least_disturbed(instance: ElasticFlowPlacement, plan: ElasticFlowPlacementPlan) -> bool:
    """Return whether jobs that move, the largest first, have the blocks where the fewest smaller jobs ran."""
    stays = plan.offsets == instance.previous_offsets
    if instance.sizes.sum() > instance.num_gpus:
        return False
    if stays[instance.running].all():
        return True
    free = set(range(instance.num_gpus))
    for size in sorted(set(instance.sizes.tolist()), reverse=True):
        smaller = instance.previous_offsets[instance.running & (instance.sizes < size)]
        of_size = instance.sizes == size
        untouched = {
            offset: int(((smaller >= offset) & (smaller < offset + size)).sum())
            for offset in range(0, instance.num_gpus - size + 1, size)
            if free.issuperset(range(offset, offset + size))
        }
        for offset in plan.offsets[of_size & stays].tolist():
            untouched.pop(offset)
        taken = [untouched.pop(offset) for offset in plan.offsets[of_size & ~stays].tolist()]
        if taken and untouched and max(taken) > min(untouched.values()):
            return False
        for offset in plan.offsets[of_size].tolist():
            free.difference_update(range(offset, offset + size))
    return True


ENTRY = Entry(
    title="Which GPUs each job runs on, moving the fewest jobs",
    source="ElasticFlow, section 4.3",
    instance=ElasticFlowPlacement,
    generate=generate,
    size="num_servers",
    sizes=(4, 16, 64),
    from_placements=from_placements,
    heuristics=named(
        Heuristic(
            fast.buddy_best_fit,
            optimal=True,
            declines=True,
            promises=(NEW, Holds("new jobs in turn have the lowest of the smallest free blocks", _smallest_blocks)),
        ),
        Heuristic(
            fast.buddy_repack,
            promises=(
                BreaksOnly(),
                Holds("running jobs of the largest size stay, one in each block", _largest_stay),
                Holds("jobs that move, the largest first, go where the fewest smaller jobs ran", _least_disturbed),
                NeverWorseThan("buddy_best_fit"),
                optimum(lambda instance: instance.num_jobs == 1, "with one job"),
            ),
        ),
        Heuristic(
            fast.priced_repack,
            promises=(
                BreaksOnly(),
                NeverWorseThan("buddy_repack"),
                optimum(lambda instance: len(set(instance.sizes.tolist())) <= 2, "where jobs have at most two sizes"),
            ),
        ),
    ),
    symmetric=("n",),
    enlarge=lambda instance: replace(instance, num_gpus=instance.num_gpus + instance.gpus_per_server),
    strategy=strategy,
    wide={"max_jobs": 12, "max_servers": 8, "max_exponent": 4},
)
