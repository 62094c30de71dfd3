"""Fast methods for :class:`instances.elasticflow.placement.ElasticFlowPlacement`."""

from __future__ import annotations

import heapq

import numpy as np

from instances.arithmetic import total
from instances.elasticflow.placement import ElasticFlowPlacement, ElasticFlowPlacementPlan
from instances.schema import BoolArray, IntArray

__all__ = ["best_fit", "buddy_best_fit", "buddy_repack"]


def buddy_best_fit(instance: ElasticFlowPlacement) -> ElasticFlowPlacementPlan | None:
    """Buddy allocation without migration: new jobs go into the smallest free block that fits.

    Running jobs keep their blocks.  The free GPUs are cut into the largest aligned blocks; each new
    job, in turn, takes one of the smallest that can hold it (ties go to the lowest offset), which
    is halved until it has the job's size.

    Guarantee: moves nothing, and finds a placement without moves whenever there is one.  It returns
    None otherwise, which happens on instances that have a placement with moves.
    Complexity: O(G log G + n log G).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.3 (best fit, buddy allocation).
    """
    if not np.array_equal(instance.running, instance.can_stay):
        return None
    offsets = np.where(instance.running, instance.previous_offsets, 0).astype(np.int64)
    free = np.ones(instance.num_gpus, bool)
    for job in np.flatnonzero(instance.running):
        block = slice(offsets[job], offsets[job] + instance.sizes[job])
        if not free[block].all():
            return None
        free[block] = False
    blocks = _free_blocks(free)
    for job in np.flatnonzero(~instance.running):
        size = int(instance.sizes[job])
        level = next((level for level, some in enumerate(blocks) if 1 << level >= size and some), None)
        if level is None:
            return None
        offset = heapq.heappop(blocks[level])
        while 1 << level > size:
            level -= 1
            heapq.heappush(blocks[level], offset + (1 << level))
        offsets[job] = offset
    return ElasticFlowPlacementPlan(offsets=offsets)


def buddy_repack(instance: ElasticFlowPlacement) -> ElasticFlowPlacementPlan | None:
    """Buddy allocation with migration: without moves if that works, else the largest jobs first.

    From the largest size down, running jobs whose block is still free stay; the other jobs of the
    size take the free blocks in which the fewest smaller jobs run so far (ties go to the lowest
    offset), because those will have to move.

    Guarantee: finds a placement whenever there is one, that is, when the sizes sum to at most the
    number of GPUs; None otherwise.  None known on the number of moves, except that it is 0 if
    :func:`buddy_best_fit` finds a placement.  Complexity: O((G + n log n) log G).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.3: buddy allocation with migration eliminates fragmentation.
    The paper does not say which jobs migrate; the choice is this library's.
    """
    if total(instance.sizes) > instance.num_gpus:
        return None
    unmoved = buddy_best_fit(instance)
    if unmoved is not None:
        return unmoved
    offsets = np.zeros(instance.num_jobs, np.int64)
    free = np.ones(instance.num_gpus, bool)
    previous = np.where(instance.running, instance.previous_offsets, 0).astype(np.int64)
    for size in np.unique(instance.sizes)[::-1]:
        count = instance.num_gpus // size
        open_blocks = _all(free[: count * size].reshape(count, size))
        jobs = np.flatnonzero(instance.sizes == size)
        candidates = jobs[instance.can_stay[jobs] & open_blocks[np.minimum(previous[jobs] // size, count - 1)]]
        taken, first = np.unique(previous[candidates] // size, return_index=True)
        stayers = candidates[first]
        offsets[stayers] = previous[stayers]
        open_blocks[taken] = False
        smaller = instance.running & (instance.sizes < size) & (previous < count * size)
        disturbed = np.bincount(previous[smaller] // size, minlength=count)
        movers = np.setdiff1d(jobs, stayers)
        blocks = np.flatnonzero(open_blocks)
        blocks = blocks[np.argsort(disturbed[blocks], kind="stable")[: len(movers)]]
        offsets[movers] = size * np.sort(blocks)
        for offset in offsets[jobs]:
            free[offset : offset + size] = False
    return ElasticFlowPlacementPlan(offsets=offsets)


def best_fit(idle: BoolArray, size: int, *, layers: tuple[int, ...] = (1, 2, 4, 8)) -> IntArray | None:
    """Best fit for a job of any size, without blocks: the subtree with room that leaves the fewest GPUs over.

    Of subtrees with equally many idle GPUs the smallest is taken, then the one of the lowest GPUs; of
    its idle GPUs the lowest.  The paper says nothing of either.

    Guarantee: none.  GPUs can be idle in sufficient number and no subtree hold enough of them
    (:func:`instances.elasticflow.placement.seven_and_seven`), and the closest number of idle GPUs can be
    that of a larger subtree than is needed.  Complexity: O(G) for each layer.

    Parameters
    ----------
    idle : (G,) bool
        Whether each GPU of the cluster is idle.
    size : int
        GPUs of the job.
    layers : tuple of int
        GPUs of a subtree of each layer, such as those of Figure 5: a GPU, a PCIe switch, a socket, a
        server.  Each divides G.

    Returns
    -------
    (size,) int or None
        The job's GPUs; None when no subtree has enough that are idle.

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.3 (topology-aware job placement).
    """
    fits = [
        (int(free), width, int(subtree) * width)
        for width in layers
        for subtree, free in enumerate(idle.reshape(-1, width).sum(axis=1))
        if free >= size
    ]
    if not fits:
        return None
    _, width, first = min(fits)
    return first + np.flatnonzero(idle[first : first + width])[:size]


def _free_blocks(free: BoolArray) -> list[list[int]]:
    """Offsets of the largest aligned free blocks, ascending, one list for each size 1, 2, 4, ..."""
    blocks: list[list[int]] = []
    level = free
    size = 1
    while len(level):
        pairs = len(level) // 2
        whole = _all(level[: 2 * pairs].reshape(pairs, 2))
        alone = level.copy()
        alone[: 2 * pairs] &= ~np.repeat(whole, 2)
        blocks.append((size * np.flatnonzero(alone)).tolist())
        level = whole
        size *= 2
    return blocks


def _all(rows: BoolArray) -> BoolArray:
    """Return whether all entries of each row are true."""
    every: BoolArray = np.asarray(rows.all(axis=1))
    return every
