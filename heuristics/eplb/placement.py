"""Fast methods for :class:`instances.eplb.placement.EplbPlacement`."""

from __future__ import annotations

import numpy as np

from instances.eplb.placement import EplbPlacement, EplbPlacementPlan
from instances.schema import FloatArray, IntArray

__all__ = ["distinct_longest_first", "fewest_extra", "local_search", "released_global"]

ROUNDING = 1e-12
"""What a change must gain, relative to the mean load."""
COUNTS = 0.5
"""How often a start anew changes numbers of replicas, too."""


def released_global(instance: EplbPlacement) -> EplbPlacementPlan:
    """Replicate the expert of greatest load for each replica, then pack the heaviest first onto the least loaded GPU.

    First every expert has one replica; each further one goes to the expert whose load for each replica is greatest.
    Then the replicas, heaviest first, go to the least loaded GPU that has a free slot.  With one slot they go where
    their number says.  Ties go to the lowest number.

    Guarantee: none known relative to the optimum; with all load on one of g experts it is 2 - 2/(g + 1) times the
    optimum.  May put several replicas of an expert on one GPU, whatever ``one_per_gpu`` says.
    Complexity: O(r (e + g)) for r replicas.

    References
    ----------
    deepseek-ai/EPLB, ``eplb.py``: ``replicate_experts`` and ``balanced_packing``, as the global policy calls them.
    """
    return _packed(instance, _greedy_counts(instance, instance.num_replicas), distinct=False)


def distinct_longest_first(instance: EplbPlacement) -> EplbPlacementPlan:
    """Do as :func:`released_global` does, with one replica of an expert on a GPU at most.

    No expert has more replicas than there are GPUs.  A replica for which every GPU with a free slot holds one already
    takes the place of a replica elsewhere, which moves to the free slot: of those on the least loaded GPU without the
    expert the one that carries least.

    Guarantee: feasible, with ``one_per_gpu`` or without; none known relative to the optimum.
    Complexity: O(r (e + g)) for r replicas.

    References
    ----------
    The rule is that of SwiftBalancer and FlashLB (vllm-project/vllm-ascend, ``vllm_ascend/eplb/core/policy``), which
    pass over GPUs that hold the expert; the exchange is ours, where FlashLB fills what is left at random.
    """
    return _packed(instance, _greedy_counts(instance, instance.num_replicas, instance.num_gpus), distinct=True)


def fewest_extra(instance: EplbPlacement) -> EplbPlacementPlan:
    """Try all numbers of replicas that hot experts may have together, and pack each as allowed (ours).

    For each number k of further replicas, these go to experts of greatest load for each replica, and those that are
    left to the experts that carry least, so that what is heavy is not cut more than it gains.  The best plan stays.

    Guarantee: never worse than :func:`released_global` where its plan is feasible, nor than
    :func:`distinct_longest_first`; none known relative to the optimum.
    Complexity: O(x r (e + g)) for r replicas, x of them further ones.
    """
    distinct = instance.one_per_gpu
    begins = [distinct_longest_first(instance)]
    if not distinct:
        begins.append(released_global(instance))
    best = min(begins, key=instance.objective)
    value = instance.objective(best)
    most = instance.num_gpus if distinct else instance.num_replicas
    for some in range(instance.num_experts, instance.num_replicas + 1):
        counts = _greedy_counts(instance, some, most)
        for expert in np.argsort(instance.loads / counts, kind="stable").tolist():
            counts[expert] += min(instance.num_replicas - counts.sum(), most - counts[expert])
        plan = _packed(instance, counts, distinct=distinct)
        if instance.objective(plan) < value:
            best, value = plan, instance.objective(plan)
    return best


def local_search(
    instance: EplbPlacement, *, budget: int = 2000, rng: np.random.Generator | int = 0
) -> EplbPlacementPlan:
    """Exchange replicas of the fullest GPU, change their numbers, and start anew from the best plan (ours).

    Begins with :func:`fewest_extra`.  A step takes the best of these changes, if the greatest load of the GPUs that it
    concerns falls: exchange a replica of the fullest GPU for one elsewhere; give a slot of the fullest GPU to another
    expert; give a slot elsewhere to an expert of the fullest GPU.  Where there is none, the best plan is changed a
    little at random.  Ends when the greatest load is the mean one, or ``budget`` is used up.

    Guarantee: never worse than :func:`fewest_extra`; none known relative to the optimum.
    Complexity: O(budget (slots r + e r)) for r replicas.

    Parameters
    ----------
    instance : EplbPlacement
    budget : int
        Steps.
    rng : Generator or int
        Source of randomness, or its seed.
    """
    rng = np.random.default_rng(rng)
    best = fewest_extra(instance)
    if instance.num_gpus == 1 or instance.num_experts == 1:
        return best
    place = _Slots(instance, best)
    value, kept = place.loads.max(), place.held.copy()
    enough = instance.mean_load * (1 + ROUNDING)
    for _ in range(budget):
        if value <= enough:
            break
        if place.improve():
            continue
        if place.loads.max() < value * (1 - ROUNDING):
            value, kept = place.loads.max(), place.held.copy()
        else:
            place.hold(kept)
        place.shake(rng)
    if place.loads.max() < value * (1 - ROUNDING):
        kept = place.held.copy()
    place.hold(kept)
    return min(place.plan(), best, key=instance.objective)


def _greedy_counts(instance: EplbPlacement, replicas: int, most: int | None = None) -> IntArray:
    """(e,) int: replicas of each expert, each further one where the load for each is greatest, up to ``most``."""
    counts = np.ones(instance.num_experts, np.int64)
    shares = instance.loads.copy()
    for _ in range(replicas - instance.num_experts):
        expert = int(shares.argmax())
        counts[expert] += 1
        # One that has all replicas that it may have gets no more, whatever it carries.
        full = most is not None and counts[expert] >= most
        shares[expert] = -1.0 if full else instance.loads[expert] / counts[expert]
    return counts


def _packed(instance: EplbPlacement, counts: IntArray, *, distinct: bool) -> EplbPlacementPlan:
    """Put replicas onto the least loaded GPU with a free slot, heaviest first."""
    shares = instance.loads / counts
    order = np.argsort(-shares, kind="stable")
    pieces = np.repeat(order, counts[order]).tolist()
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    loads, free = np.zeros(instance.num_gpus), np.full(instance.num_gpus, instance.slots)
    if instance.slots == 1:
        replicas[np.repeat(np.arange(instance.num_experts), counts), np.arange(instance.num_gpus)] = 1
        return EplbPlacementPlan(replicas=replicas)
    for expert in pieces:
        able = free > 0
        if distinct and (able & (replicas[expert] == 0)).any():
            able &= replicas[expert] == 0
        elif distinct:
            # Every GPU with a free slot has the expert, and holds fewer others than a full one.
            gpu = int(np.where(able, loads, np.inf).argmin())
            other = int(np.where(replicas[expert] == 0, loads, np.inf).argmin())
            moves = (replicas[:, other] > 0) & (replicas[:, gpu] == 0)
            moved = int(np.where(moves, shares, np.inf).argmin())
            replicas[moved, other] -= 1
            replicas[moved, gpu] += 1
            loads[other] -= shares[moved]
            loads[gpu] += shares[moved]
            free[gpu] -= 1
            free[other] += 1
            able = np.arange(instance.num_gpus) == other
        gpu = int(np.where(able, loads, np.inf).argmin())
        replicas[expert, gpu] += 1
        loads[gpu] += shares[expert]
        free[gpu] -= 1
    return EplbPlacementPlan(replicas=replicas)


class _Slots:
    """The experts in the slots of the GPUs, and the loads that follow.

    Attributes
    ----------
    held : (g, slots) int
        Expert in each slot.
    loads : (g,) float
        Load of each GPU.
    """

    def __init__(self, instance: EplbPlacement, plan: EplbPlacementPlan) -> None:
        self.instance = instance
        experts = np.arange(instance.num_experts)
        self._gpus = np.arange(instance.num_gpus)
        self.hold(np.array([np.repeat(experts, plan.replicas[:, gpu]) for gpu in self._gpus]))

    def hold(self, held: IntArray) -> None:
        """Take over a plan."""
        self.held = held.copy()
        self.replicas = np.zeros((self.instance.num_experts, self.instance.num_gpus), np.int64)
        np.add.at(self.replicas, (held, self._gpus[:, None]), 1)
        self._measure()

    def plan(self) -> EplbPlacementPlan:
        return EplbPlacementPlan(replicas=self.replicas.copy())

    def _measure(self) -> None:
        self.counts = self.replicas.sum(axis=1)
        self.shares: FloatArray = self.instance.loads / self.counts
        self.loads: FloatArray = self.shares[self.held].sum(axis=1)

    def _put(self, gpu: int, slot: int, expert: int) -> None:
        self.replicas[self.held[gpu, slot], gpu] -= 1
        self.replicas[expert, gpu] += 1
        self.held[gpu, slot] = expert

    def improve(self) -> bool:
        """Make the best change of what the fullest GPU holds; return whether there was one."""
        full = int(self.loads.argmax())
        most = self.loads[full] - ROUNDING * self.instance.mean_load
        exchange, one = self._exchange(full)
        other, two = self._other_count(full)
        if min(exchange, other) >= most:
            return False
        if exchange <= other:
            slot, gpu, there = one
            mine, its = int(self.held[full, slot]), int(self.held[gpu, there])
            self._put(full, slot, its)
            self._put(gpu, there, mine)
        else:
            self._put(*two)
        self._measure()
        return True

    def _exchange(self, full: int) -> tuple[float, tuple[int, int, int]]:
        """Return the least load of the fuller of both GPUs after an exchange, and which it is."""
        carried = self.shares[self.held]
        # Axes: slot of the fullest, GPU, slot there.
        less = carried[full][:, None, None] - carried[None]
        after = np.maximum(self.loads[full] - less, self.loads[None, :, None] + less)
        after[:, full] = np.inf
        if self.instance.one_per_gpu:
            mine = self.replicas[self.held[full]] > 0
            after[mine] = np.inf
            after[:, self.replicas[self.held, full] > 0] = np.inf
        slot, gpu, there = np.unravel_index(int(after.argmin()), after.shape)
        return float(after[slot, gpu, there]), (int(slot), int(gpu), int(there))

    def _other_count(self, full: int) -> tuple[float, tuple[int, int, int]]:
        """Return the least greatest load after a slot goes to another expert, and GPU, slot and expert."""
        counts, loads = self.counts, self.instance.loads
        # Loads of the GPUs without a replica less of one expert, or with one more, but for the slot itself.
        few = self.shares * 0
        spare = counts > 1
        few[spare] = loads[spare] / (counts[spare] - 1)
        more = loads / (counts + 1)
        mine = np.unique(self.held[full])
        all_experts = np.arange(len(loads))
        gpus, slots = np.nonzero(spare[self.held])
        if not gpus.size:
            return np.inf, (0, 0, 0)
        # On the fullest any expert may come; elsewhere one of the fullest's.
        here = gpus == full
        tries = [
            (np.repeat(gpus[some], len(come)), np.repeat(slots[some], len(come)), np.tile(come, int(some.sum())))
            for some, come in ((here, all_experts), (~here, mine))
        ]
        gpu, slot, come = (np.concatenate([one[part] for one in tries]) for part in range(3))
        goes = self.held[gpu, slot]
        fine = goes != come
        if self.instance.one_per_gpu:
            fine &= self.replicas[come, gpu] == 0
        gpu, slot, come, goes = gpu[fine], slot[fine], come[fine], goes[fine]
        if not gpu.size:
            return np.inf, (0, 0, 0)
        up, down = few - self.shares, more - self.shares
        after = self.loads + self.replicas[goes] * up[goes, None] + self.replicas[come] * down[come, None]
        after[np.arange(len(gpu)), gpu] += more[come] - few[goes]
        greatest = after.max(axis=1)
        best = int(greatest.argmin())
        return float(greatest[best]), (int(gpu[best]), int(slot[best]), int(come[best]))

    def shake(self, rng: np.random.Generator) -> None:
        """Exchange a few replicas at random, where that is allowed."""
        for _ in range(int(rng.integers(1, 4))):
            gpu, other = rng.choice(len(self._gpus), 2, replace=False).tolist()
            slot, there = rng.integers(self.instance.slots, size=2).tolist()
            mine, its = int(self.held[gpu, slot]), int(self.held[other, there])
            if self.instance.one_per_gpu and (self.replicas[mine, other] or self.replicas[its, gpu]):
                continue
            self._put(gpu, slot, its)
            self._put(other, there, mine)
        # Now and then an expert more gets another's slot.
        gpu, slot = int(rng.integers(len(self._gpus))), int(rng.integers(self.instance.slots))
        goes, come = int(self.held[gpu, slot]), int(rng.integers(len(self.counts)))
        room = not (self.instance.one_per_gpu and self.replicas[come, gpu])
        if rng.random() < COUNTS and room and self.replicas[goes].sum() > 1:
            self._put(gpu, slot, come)
        self._measure()
