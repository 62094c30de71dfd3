"""Fast methods for :class:`instances.elasticflow.placement.ElasticFlowPlacement`."""

from __future__ import annotations

import heapq

import numpy as np

from instances.arithmetic import total
from instances.elasticflow.placement import ElasticFlowPlacement, ElasticFlowPlacementPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["best_fit", "buddy_best_fit", "buddy_repack", "priced_repack"]


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


def priced_repack(instance: ElasticFlowPlacement, *, rounds: int = 8) -> ElasticFlowPlacementPlan | None:
    """Buddy allocation with migration, where blocks have prices by their size, round after round (ours).

    Each size has a price, the Lagrangian multiplier of the rule that all its jobs have a block.  A block is worth a job
    that can stay in it and its price, or what its halves are worth, whichever is more; the blocks' worth together
    bounds the jobs that can stay.  From the largest size down, the jobs of a size take the free blocks that lose least:
    what the halves are worth, less a job that can stay (ties go to the lowest offset).  After each round prices
    rise of sizes of which blocks are worth it for fewer jobs than there are, and fall of those of which they are for
    more.  The best round counts, and the last is one whose plan meets the bound.

    Guarantee: finds a placement whenever there is one, and moves no more jobs than :func:`buddy_repack`; None
    otherwise.  Optimal where jobs have at most two sizes.  Else none known on the number of moves.
    Complexity: O(G + n log n) for each round.

    Parameters
    ----------
    instance : ElasticFlowPlacement
    rounds : int
        Without any the plan is that of :func:`buddy_repack`.

    References
    ----------
    Fisher, The Lagrangian relaxation method for solving integer programming problems (Management Science 27, 1981), for
    the prices; Held, Wolfe and Crowder (Mathematical Programming 6, 1974), for their steps.  Buddy allocation with
    migration is ElasticFlow's (ASPLOS'23, section 4.3).
    """
    best = buddy_repack(instance)
    if best is None:
        return None
    value, running = instance.objective(best), int(instance.running.sum())
    least = running - int(instance.can_stay.sum())
    if value == least:
        return best
    tree = _Blocks(instance)
    prices = np.zeros(len(tree.sizes))
    for _ in range(rounds):
        own, halves = tree.worth(prices)
        stay = float(np.maximum(own[-1], halves[-1]).sum() - prices @ tree.counts)
        least = max(least, running - int(stay + ROUNDING))
        plan = tree.placed(halves)
        best, value = min((best, value), (plan, instance.objective(plan)), key=lambda one: one[1])
        short = tree.counts - tree.taken(own, halves)
        if value <= least or not short.any():
            break
        prices = np.maximum(prices + (value - running + stay) / (short @ short) * short, 0.0)
    return best


ROUNDING = 1e-9
"""The most that rounding may take from a sum of prices, in jobs."""


class _Blocks:
    """The blocks of a cluster, by size from the smallest that a job has up to the largest, twice as large each time.

    There are as many of the smaller as fill the largest, so that some may end beyond the cluster: ``inside`` says which
    do not.
    """

    def __init__(self, instance: ElasticFlowPlacement) -> None:
        self.instance = instance
        smallest, largest = int(instance.sizes.min()), int(instance.sizes.max())
        self.sizes = [smallest << level for level in range((largest // smallest).bit_length())]
        self.jobs = [np.flatnonzero(instance.sizes == size) for size in self.sizes]
        self.counts = np.array([len(jobs) for jobs in self.jobs])
        self.inside: list[BoolArray] = []
        # Of each block a job that can stay in it, -1 where there is none.
        self.stayers: list[IntArray] = []
        for size, jobs in zip(self.sizes, self.jobs, strict=True):
            blocks = np.arange(-(-instance.num_gpus // largest) * (largest // size))
            self.inside.append(size * (blocks + 1) <= instance.num_gpus)
            can = jobs[instance.can_stay[jobs]]
            self.stayers.append(np.full(len(blocks), -1))
            self.stayers[-1][instance.previous_offsets[can].astype(np.int64) // size] = can

    def worth(self, prices: FloatArray) -> tuple[list[FloatArray], list[FloatArray]]:
        """Return, by size, what each block is worth to a job, and what its halves are together."""
        own: list[FloatArray] = []
        halves: list[FloatArray] = []
        best = np.zeros(2 * len(self.inside[0]))
        for price, inside, stayers in zip(prices.tolist(), self.inside, self.stayers, strict=True):
            own.append(np.where(inside, price + (stayers >= 0), -np.inf))
            halves.append(best.reshape(-1, 2).sum(axis=1))
            best = np.maximum(own[-1], halves[-1])
        return own, halves

    def placed(self, halves: list[FloatArray]) -> ElasticFlowPlacementPlan:
        """Place jobs from the largest size down, each size in the free blocks that lose least."""
        offsets = np.zeros(self.instance.num_jobs, np.int64)
        free = np.ones(len(self.inside[-1]), bool)
        for level in reversed(range(len(self.sizes))):
            blocks = np.flatnonzero(free & self.inside[level])
            loss = halves[level][blocks] - (self.stayers[level][blocks] >= 0)
            blocks = blocks[np.argsort(loss, kind="stable")[: self.counts[level]]]
            stayers = self.stayers[level][blocks]
            stay = stayers >= 0
            offsets[stayers[stay]] = self.sizes[level] * blocks[stay]
            offsets[np.setdiff1d(self.jobs[level], stayers)] = self.sizes[level] * blocks[~stay]
            free[blocks] = False
            free = np.repeat(free, 2)
        return ElasticFlowPlacementPlan(offsets=offsets)

    def taken(self, own: list[FloatArray], halves: list[FloatArray]) -> IntArray:
        """Return how many blocks of each size are worth more to a job than their halves are, in none that is."""
        taken = np.zeros(len(self.sizes), np.int64)
        free = np.ones(len(self.inside[-1]), bool)
        for level in reversed(range(len(self.sizes))):
            wanted = free & (own[level] > halves[level])
            taken[level] = wanted.sum()
            free = np.repeat(free & ~wanted, 2)
        return taken


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
