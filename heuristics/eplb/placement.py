"""Fast methods for :class:`instances.eplb.placement.EplbPlacement`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from instances.arithmetic import dot
from instances.eplb.placement import EplbPlacement, EplbPlacementPlan, in_order
from instances.schema import FloatArray, IntArray

__all__ = [
    "distinct_longest_first",
    "fewest_extra",
    "keep_and_exchange",
    "local_search",
    "lowest_peaks",
    "released_global",
    "released_hierarchical",
]

ROUNDING = 1e-12
"""What a change must gain, relative to the mean load."""
COUNTS = 0.5
"""How often a start anew changes numbers of replicas, too."""
LEAST_GAIN = 0.01
"""Part of the mean load that an exchange of :func:`keep_and_exchange` must gain."""
MOST_EXCHANGES = 100
"""Of :func:`keep_and_exchange`."""
EXCHANGES = 0.7
"""How often a change at random is an exchange, else another number of replicas."""


def released_global(instance: EplbPlacement) -> EplbPlacementPlan:
    """Replicate the expert of greatest load for each replica, then pack the heaviest first onto the least loaded GPU.

    First every expert has one replica; each further one goes to the expert whose load for each replica is greatest.
    Then the replicas, heaviest first, go to the least loaded GPU that has a free slot.  With one slot they go where
    their number says.  Ties go to the lowest number.  Of several vectors of loads the mean counts.

    Guarantee: none known relative to the optimum; with all load on one of g experts it is 2 - 2/(g + 1) times the
    optimum.  May put several replicas of an expert on one GPU, whatever ``one_per_gpu`` says; knows no nodes and no
    limit of moves.
    Complexity: O(r (e + g)) for r replicas.

    References
    ----------
    deepseek-ai/EPLB, ``eplb.py``: ``replicate_experts`` and ``balanced_packing``, as the global policy calls them.
    """
    return EplbPlacementPlan(replicas=_as_released(_mean(instance), instance.num_gpus, instance.slots))


def released_hierarchical(instance: EplbPlacement) -> EplbPlacementPlan:
    """Pack groups onto nodes, heaviest first onto the lightest, then do as :func:`released_global` on each node.

    A node takes its part of the groups, and no more; where there is one group for each node, node n has group n.  Where
    the nodes do not divide the groups, it is the global policy, as released.

    Guarantee: none known relative to the optimum.  May put several replicas of an expert on one GPU, whatever
    ``one_per_gpu`` says; a group is on one node where the nodes divide the groups; knows no limit of moves.
    Complexity: O(r (e + g)) for r replicas.

    References
    ----------
    deepseek-ai/EPLB, ``eplb.py``: ``rebalance_experts``, with its hierarchical policy.
    """
    if instance.num_groups % instance.num_nodes:
        return released_global(instance)
    return _node_by_node(instance, _as_released)


def distinct_longest_first(instance: EplbPlacement) -> EplbPlacementPlan:
    """Do as :func:`released_hierarchical` does, with one replica of an expert on a GPU at most.

    No expert has more replicas than its node has GPUs.  A replica for which every GPU with a free slot holds one
    already takes the place of a replica elsewhere, which moves to the free slot: of those on the least loaded GPU
    without the expert the one that carries least.  Where the nodes do not divide the groups, some have one more.

    Guarantee: feasible, with ``one_per_gpu`` or without, where moves are not limited; none known relative to the
    optimum.
    Complexity: O(r (e + g)) for r replicas.

    References
    ----------
    The rule is that of SwiftBalancer and FlashLB (vllm-project/vllm-ascend, ``vllm_ascend/eplb/core/policy``), which
    pass over GPUs that hold the expert; the exchange is ours, where FlashLB fills what is left at random.
    """
    return _node_by_node(instance, _distinct if instance.slots <= _fewest(instance) else _as_released)


def keep_and_exchange(instance: EplbPlacement) -> EplbPlacementPlan:
    """Keep one replica of each expert where it is, place the others anew, then exchange from the fullest GPU.

    What is not held already is as :func:`instances.eplb.placement.in_order` has it.  Further replicas go where the load
    for each is greatest, none to an expert that all GPUs of its node have, and, heaviest first, to the least loaded GPU
    with a free slot that does not have the expert; what stays free gets the expert of the greatest load for each
    replica that is not there.  Then the fullest GPU and another, the lightest first, exchange the two replicas that
    leave the fuller of both least, if that gains a hundredth of the mean load; each two GPUs once, no expert that came
    leaves again, and none comes where it is.  All of that on each node by itself.

    Guarantee: feasible where moves are not limited; none known relative to the optimum.
    Complexity: O(r (e + g) + 100 g slots^2) for r replicas.

    References
    ----------
    The idea is that of SwiftBalancer (vllm-project/vllm-ascend,
    ``vllm_ascend/eplb/core/policy/policy_swift_balancer.py``), which also limits replicas sent from one GPU to another
    while it places them, and leaves a layer that is within 1% of even as it is.
    """
    loads, held = _mean(instance), instance.current if instance.current.size else in_order(instance).replicas
    replicas = np.zeros_like(held)
    for first in range(0, instance.num_gpus, instance.gpus_per_node):
        node = np.arange(first, first + instance.gpus_per_node)
        experts = np.flatnonzero(held[:, node].any(axis=1))
        replicas[np.ix_(experts, node)] = _kept_and_exchanged(loads[experts], held[np.ix_(experts, node)])
    return EplbPlacementPlan(replicas=replicas)


def lowest_peaks(instance: EplbPlacement) -> EplbPlacementPlan:
    """Replicate and place so that the peaks of all vectors of loads are low together.

    Each further replica goes to the expert that lowers most what the hottest replica carries, summed over the vectors;
    an expert that does not lead in any lowers nothing.  Then replicas, heaviest first, go to the GPU with a free slot,
    without the expert if there is one, for which the greatest loads are least afterwards, summed over the vectors
    relative to their means, and of several to the least loaded.  All of that on each node by itself.

    Guarantee: feasible where moves are not limited; none known relative to the optimum.
    Complexity: O(r v (e + g)) for r replicas and v vectors.

    References
    ----------
    The idea is that of FlashLB (vllm-project/vllm-ascend, ``vllm_ascend/eplb/core/policy/policy_flashlb.py``), its
    counts of pieces and its placement; that among GPUs of equal peaks the least loaded is taken is ours.
    """
    gpus = instance.gpus_per_node
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    for node, experts in enumerate(_nodes(instance, _mean(instance))):
        there = slice(node * gpus, (node + 1) * gpus)
        replicas[experts, there] = _at_lowest_peaks(instance.vectors[:, experts], gpus, instance.slots)
    return EplbPlacementPlan(replicas=replicas)


def fewest_extra(instance: EplbPlacement) -> EplbPlacementPlan:
    """Try all numbers of replicas that hot experts may have together, and pack each as allowed (ours).

    For each number k of further replicas, these go to experts of greatest load for each replica, and those that are
    left to the experts that carry least, so that what is heavy is not cut more than it gains.  The best plan stays, on
    each node by itself.  Where replicas are held already, GPUs of a node are exchanged so that less moves.

    Guarantee: never worse than :func:`released_global`, :func:`released_hierarchical` and
    :func:`distinct_longest_first` where their plans are feasible, nor than what is held now; none known relative to
    the optimum.
    Complexity: O(x r (e + g)) for r replicas, x of them further ones.
    """
    plans = [distinct_longest_first(instance), released_hierarchical(instance), released_global(instance)]

    def best(loads: FloatArray, num_gpus: int, slots: int) -> IntArray:
        found = _candidates(loads, num_gpus, slots, distinct=instance.one_per_gpu)
        return min(found, key=lambda replicas: float(dot(loads / replicas.sum(axis=1), replicas).max()))

    plans.append(_node_by_node(instance, best))
    if instance.counts_moves:
        plans += [_closest(instance, plan) for plan in plans]
        plans.append(EplbPlacementPlan(replicas=instance.current))
    return min((plan for plan in plans if not instance.violations(plan)), key=instance.objective)


def local_search(
    instance: EplbPlacement, *, budget: int = 2000, rng: np.random.Generator | int = 0
) -> EplbPlacementPlan:
    """Exchange replicas of the fullest GPU, change their numbers, and start anew from the best plan (ours).

    Begins with :func:`fewest_extra`.  A step takes the best of these changes, if the greatest load of the GPUs that it
    concerns falls: exchange a replica of the fullest GPU for one elsewhere; give a slot of the fullest GPU to another
    expert; give a slot elsewhere to an expert of the fullest GPU.  Where there is none, the best plan is changed a
    little at random.  Ends when the greatest load is the mean one, or ``budget`` is used up.

    With several nodes or vectors of loads, and where moves count, it also begins with :func:`lowest_peaks` and
    :func:`keep_and_exchange`, and a step is a change at random, which stays if the plan breaks no rule and is worth no
    more.

    Guarantee: never worse than :func:`fewest_extra`; none known relative to the optimum.
    Complexity: O(budget (slots r + e r)) for r replicas; of changes at random O(budget v e g) for v vectors.

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
    if not instance.is_plain:
        others = [
            plan for plan in (lowest_peaks(instance), keep_and_exchange(instance)) if not instance.violations(plan)
        ]
        best = min([best, *others], key=instance.objective)
        return min(_wandered(instance, best, budget, rng), best, key=instance.objective)
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


def _mean(instance: EplbPlacement) -> FloatArray:
    """(e,) float: mean of the vectors of loads."""
    loads = instance.loads.copy()
    for more in instance.more_loads:
        loads += more
    return loads / len(instance.vectors)


def _fewest(instance: EplbPlacement) -> int:
    """Experts of the node that has the fewest."""
    return instance.num_groups // instance.num_nodes * (instance.num_experts // instance.num_groups)


def _node_by_node(instance: EplbPlacement, place: Callable[[FloatArray, int, int], IntArray]) -> EplbPlacementPlan:
    """Pack groups onto nodes, and on each node what ``place(loads, num_gpus, slots)`` says."""
    loads, gpus = _mean(instance), instance.gpus_per_node
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    for node, experts in enumerate(_nodes(instance, loads)):
        replicas[experts, node * gpus : (node + 1) * gpus] = place(loads[experts], gpus, instance.slots)
    return EplbPlacementPlan(replicas=replicas)


def _nodes(instance: EplbPlacement, loads: FloatArray) -> list[IntArray]:
    """Return the experts of each node: groups, heaviest first, go to the lightest node that takes one more."""
    members = np.argsort(instance.groups, kind="stable").reshape(instance.num_groups, -1)
    rooms = np.array([len(some) for some in np.array_split(members, instance.num_nodes)])
    if rooms.max() == 1:
        return list(members)
    weights = np.array([math.fsum(of) for of in loads[members].tolist()])
    held: list[list[int]] = [[] for _ in rooms]
    carried = np.zeros(instance.num_nodes)
    for group in np.argsort(-weights, kind="stable").tolist():
        node = int(np.where(rooms > 0, carried, np.inf).argmin())
        held[node].append(group)
        carried[node] += weights[group]
        rooms[node] -= 1
    return [members[some].ravel() for some in held]


def _as_released(loads: FloatArray, num_gpus: int, slots: int) -> IntArray:
    return _packed(loads, _replicated(loads, num_gpus * slots), num_gpus, slots, distinct=False)


def _distinct(loads: FloatArray, num_gpus: int, slots: int) -> IntArray:
    return _packed(loads, _replicated(loads, num_gpus * slots, num_gpus), num_gpus, slots, distinct=True)


def _candidates(loads: FloatArray, num_gpus: int, slots: int, *, distinct: bool) -> Iterator[IntArray]:
    """Yield (e, g) int: replicas on GPUs, for each number of replicas that hot experts may have together."""
    held = num_gpus * slots
    most = num_gpus if distinct else held
    for some in range(len(loads), held + 1):
        experts = _replicated(loads, some, most)
        counts = np.bincount(experts)
        for expert in np.argsort(loads / counts, kind="stable").tolist():
            experts += [expert] * min(held - len(experts), most - int(counts[expert]))
        yield _packed(loads, experts, num_gpus, slots, distinct=distinct)


def _replicated(loads: FloatArray, replicas: int, most: int | None = None) -> list[int]:
    """Return the expert of each replica: each has one, and further ones go where the load for each is greatest.

    None has more than ``most``.
    """
    counts = np.ones(len(loads), np.int64)
    shares = loads.copy()
    experts = list(range(len(loads)))
    for _ in range(replicas - len(loads)):
        expert = int(shares.argmax())
        experts.append(expert)
        counts[expert] += 1
        # One that has all replicas that it may have gets no more, whatever it carries.
        full = most is not None and counts[expert] >= most
        shares[expert] = -1.0 if full else loads[expert] / counts[expert]
    return experts


def _packed(carried: FloatArray, experts: list[int], num_gpus: int, slots: int, *, distinct: bool) -> IntArray:
    """Put the replicas of these experts onto the least loaded GPU with a free slot, heaviest first."""
    shares = carried / np.bincount(experts)
    pieces = np.array(experts)
    replicas = np.zeros((len(carried), num_gpus), np.int64)
    loads, free = np.zeros(num_gpus), np.full(num_gpus, slots)
    if slots == 1:
        replicas[pieces, np.arange(num_gpus)] = 1
        return replicas
    pieces = pieces[np.argsort(-shares[pieces], kind="stable")]
    for expert in pieces.tolist():
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
            able = np.arange(num_gpus) == other
        gpu = int(np.where(able, loads, np.inf).argmin())
        replicas[expert, gpu] += 1
        loads[gpu] += shares[expert]
        free[gpu] -= 1
    return replicas


def _kept_and_exchanged(carried: FloatArray, held: IntArray) -> IntArray:
    """(e, g) int: replicas on the GPUs of a node that holds these now."""
    (e, g), slots = held.shape, int(held[:, 0].sum())
    replicas = np.zeros_like(held)
    # Of each expert the replica on the first GPU stays.
    replicas[np.arange(e), (held > 0).argmax(axis=1)] = 1
    experts = _replicated(carried, g * slots, g) if e >= slots else list(range(e))
    shares = carried / np.bincount(experts)
    for expert in sorted(experts[e:], key=lambda one: -shares[one]):
        able = (replicas.sum(axis=0) < slots) & (replicas[expert] == 0)
        if able.any():
            replicas[expert, int(np.where(able, dot(shares, replicas), np.inf).argmin())] += 1
    for gpu in range(g):
        while replicas[:, gpu].sum() < slots:
            missing = np.where(replicas[:, gpu] == 0, carried / replicas.sum(axis=1), -1.0)
            if missing.max() < 0:
                missing = -carried / replicas.sum(axis=1)
            replicas[int(missing.argmax()), gpu] += 1
    shares = carried / replicas.sum(axis=1)
    least = LEAST_GAIN * math.fsum(carried.tolist()) / g
    came, met = np.zeros((e, g), bool), np.zeros((g, g), bool)
    for _ in range(MOST_EXCHANGES):
        loads = dot(shares, replicas)
        full = int(loads.argmax())
        for other in np.argsort(loads, kind="stable").tolist():
            mine = np.flatnonzero((replicas[:, full] > 0) & (replicas[:, other] == 0) & ~came[:, full])
            its = np.flatnonzero((replicas[:, other] > 0) & (replicas[:, full] == 0) & ~came[:, other])
            if other == full or met[full, other] or not mine.size or not its.size:
                continue
            less = shares[mine][:, None] - shares[its]
            after = np.maximum(loads[full] - less, loads[other] + less)
            one, two = np.unravel_index(int(after.argmin()), after.shape)
            if loads[full] - after[one, two] >= least and after[one, two] < loads[full]:
                for gpu, goes, comes in ((full, mine[one], its[two]), (other, its[two], mine[one])):
                    replicas[goes, gpu] -= 1
                    replicas[comes, gpu] += 1
                    came[comes, gpu] = True
                met[full, other] = met[other, full] = True
                break
        else:
            break
    return replicas


def _at_lowest_peaks(vectors: FloatArray, num_gpus: int, slots: int) -> IntArray:
    """(e, g) int: replicas on GPUs for loads (v, e) of several vectors."""
    rows, e = np.arange(len(vectors)), vectors.shape[1]
    sums = np.array([math.fsum(loads) for loads in vectors.tolist()])
    weights = 1.0 / np.where(sums > 0, sums, 1.0)
    distinct = e >= slots
    most = num_gpus if distinct else num_gpus * slots
    counts = np.ones(e, np.int64)
    for _ in range(num_gpus * slots - e):
        shares = np.where(counts < most, vectors / counts, -1.0)
        hottest = shares.argmax(axis=1)
        peaks = shares[rows, hottest]
        shares[rows, hottest] = vectors[rows, hottest] / (counts[hottest] + 1)
        gains = np.zeros(e)
        np.add.at(gains, hottest, peaks - shares.max(axis=1))
        leads = np.zeros(e, bool)
        leads[hottest] = True
        counts[int(np.where(leads, gains, -1.0).argmax())] += 1
    if len(vectors) == 1 and distinct:
        return _packed(vectors[0], np.repeat(np.arange(e), counts).tolist(), num_gpus, slots, distinct=True)
    shares = vectors / counts
    order = np.argsort(-dot(weights, shares), kind="stable")
    loads, replicas = np.zeros((len(vectors), num_gpus)), np.zeros((e, num_gpus), np.int64)
    for expert in np.repeat(order, counts[order]).tolist():
        able = replicas.sum(axis=0) < slots
        if (able & (replicas[expert] == 0)).any():
            able &= replicas[expert] == 0
        elif distinct:
            # Another GPU gives one of its replicas to one that has the expert, and takes the expert.
            gpu, other = int(able.argmax()), int((replicas[expert] == 0).argmax())
            moved = int(((replicas[:, other] > 0) & (replicas[:, gpu] == 0)).argmax())
            for one, change in ((other, -1), (gpu, 1)):
                replicas[moved, one] += change
                loads[:, one] += change * shares[:, moved]
            able = np.arange(num_gpus) == other
        after = loads + shares[:, [expert]]
        peaks = dot(weights, np.maximum(after, loads.max(axis=1, keepdims=True)))
        total = dot(weights, after)
        gpu = int(np.lexsort((total, np.where(able, peaks, np.inf)))[0])
        replicas[expert, gpu] += 1
        loads[:, gpu] += shares[:, expert]
    return replicas


def _closest(instance: EplbPlacement, plan: EplbPlacementPlan) -> EplbPlacementPlan:
    """Exchange GPUs of a node so that more of what they hold stays: pairs that have most in common come first."""
    replicas = np.zeros_like(plan.replicas)
    for first in range(0, instance.num_gpus, instance.gpus_per_node):
        node = np.arange(first, first + instance.gpus_per_node)
        common = np.array(
            [np.minimum(instance.current[:, [gpu]], plan.replicas[:, node]).sum(axis=0) for gpu in node.tolist()]
        )
        for _ in node:
            now, then = np.unravel_index(int(common.argmax()), common.shape)
            replicas[:, node[now]] = plan.replicas[:, node[then]]
            common[now], common[:, then] = -1, -1
    return EplbPlacementPlan(replicas=replicas)


def _wandered(
    instance: EplbPlacement, plan: EplbPlacementPlan, budget: int, rng: np.random.Generator
) -> EplbPlacementPlan:
    """Change a plan at random, again and again: two replicas change places, or a slot goes to another expert."""
    replicas, vectors = plan.replicas.copy(), instance.vectors
    most = math.floor(instance.move_limit) if math.isfinite(instance.move_limit) else math.inf

    def value(held: IntArray) -> float:
        loads = dot(vectors / held.sum(axis=1), held)
        greatest = loads.max(axis=1)
        worth = float(greatest.max() if instance.aggregate == "worst" else greatest.mean())
        return worth + (instance.move_price * moves(held) if instance.counts_moves else 0.0)

    def moves(held: IntArray) -> int:
        return int(np.maximum(held - instance.current, 0).sum())

    now = value(replicas)
    for _ in range(budget):
        after = replicas.copy()
        if rng.random() < EXCHANGES:
            gpu, other = rng.choice(instance.num_gpus, 2, replace=False).tolist()
            mine, its = (int(rng.choice(np.flatnonzero(after[:, one]))) for one in (gpu, other))
            for one, goes, comes in ((gpu, mine, its), (other, its, mine)):
                after[goes, one] -= 1
                after[comes, one] += 1
        else:
            gpu = int(rng.integers(instance.num_gpus))
            goes, comes = int(rng.choice(np.flatnonzero(after[:, gpu]))), int(rng.integers(instance.num_experts))
            after[goes, gpu] -= 1
            after[comes, gpu] += 1
            if not after[goes].any():
                continue
        if instance.one_per_gpu and (after > 1).any():
            continue
        if instance.num_nodes > 1 and instance.violations(EplbPlacementPlan(replicas=after)):
            continue
        if instance.counts_moves and moves(after) > most:
            continue
        then = value(after)
        if then <= now:
            replicas, now = after, then
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
