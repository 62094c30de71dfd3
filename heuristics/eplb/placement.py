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
LOOKS = 3_000
"""Loads of changes that a step looks at, in the mean, before fewer steps are made."""


def released_global(instance: EplbPlacement) -> EplbPlacementPlan:
    """Replicate the expert of greatest load for each replica, then pack the heaviest first onto the least loaded GPU.

    First every expert has one replica; each further one goes to the expert whose load for each replica is greatest.
    Then the replicas, heaviest first, go to the least loaded GPU that has a free slot.  With one slot they go where
    their number says.  Ties go to the lowest number.  Of several vectors of loads the mean counts.

    Guarantee: of plain instances optimal with one slot, and with two at most 2 - 2/(g + 1) times the optimum, which it
    is with all load on one of g experts; none known with more.  May put several replicas of an expert on one GPU,
    whatever ``one_per_gpu`` says; knows no nodes and no limit of moves.
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
    instance: EplbPlacement, *, budget: int = 500, rng: np.random.Generator | int = 0
) -> EplbPlacementPlan:
    """Exchange replicas of the fullest GPU, change their numbers, and start anew from the best plan (ours).

    Begins with :func:`fewest_extra`, and where there are several nodes or vectors of loads, or moves count, with the
    best of it, :func:`lowest_peaks` and :func:`keep_and_exchange`.  A step takes the best of these changes, if it
    betters the value, or the greatest load of the GPUs that it concerns: exchange a replica of the fullest GPU for one
    elsewhere on its node; give a slot of the fullest GPU to another expert of the node; give a slot elsewhere to an
    expert of the fullest GPU.  Where moves have a price, every GPU counts as the fullest.  Where there is no such
    change, the best plan is changed a little at random: replicas change places, a slot goes to another expert, and of
    several nodes two exchange groups, or one gives a group away.  Ends when the greatest load is the mean one, or
    ``budget`` is used up.

    Guarantee: never worse than :func:`fewest_extra`; none known relative to the optimum.
    Complexity: O(v slots r) exchanges and O(v e r g) loads of other numbers in a step, for v vectors and r replicas;
    with a price of moves O(v r (r + e g)).

    Parameters
    ----------
    instance : EplbPlacement
    budget : int
        Steps; fewer where these look at more than 3,000 loads each.
    rng : Generator or int
        Source of randomness, or its seed.
    """
    rng = np.random.default_rng(rng)
    best = fewest_extra(instance)
    if instance.num_gpus == 1 or instance.num_experts == 1:
        return best
    if not instance.is_plain:
        others = [lowest_peaks(instance), keep_and_exchange(instance)]
        best = min([best, *(plan for plan in others if not instance.violations(plan))], key=instance.objective)
    place = _Slots(instance, best)
    value, kept = place.value, place.held.copy()
    enough = instance.mean_load * (1 + ROUNDING)
    for _ in range(budget):
        if value <= enough or place.looks > LOOKS * budget:
            break
        if place.improve():
            continue
        if place.value < value * (1 - ROUNDING):
            value, kept = place.value, place.held.copy()
        else:
            place.hold(kept)
        place.shake(rng)
    if place.value < value * (1 - ROUNDING):
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


class _Slots:
    """The experts in the slots of the GPUs, and the loads that follow.

    Attributes
    ----------
    held : (g, slots) int
        Expert in each slot.
    loads : (v, g) float
        Load of each GPU, by each vector of loads.
    value : float
        That of the plan.
    looks : int
        Loads of changes that were looked at.
    """

    def __init__(self, instance: EplbPlacement, plan: EplbPlacementPlan) -> None:
        self.instance, self.looks = instance, 0
        self._gpus = np.arange(instance.num_gpus)
        self._node = self._gpus // instance.gpus_per_node
        self._current = instance.current if instance.counts_moves else None
        self._price = instance.move_price if instance.counts_moves else 0.0
        limited = instance.counts_moves and math.isfinite(instance.move_limit)
        self._most = math.floor(instance.move_limit) if limited else math.inf
        # Where only the greatest load counts, a change that leaves another GPU as full is a step, too.
        self._by_peak = instance.aggregate == "worst" and not self._price
        experts = np.arange(instance.num_experts)
        self.hold(np.array([np.repeat(experts, plan.replicas[:, gpu]) for gpu in self._gpus]))

    def hold(self, held: IntArray) -> None:
        """Take over a plan."""
        self.held = held.copy()
        self.replicas = np.zeros((self.instance.num_experts, self.instance.num_gpus), np.int64)
        np.add.at(self.replicas, (held, self._gpus[:, None]), 1)
        self._measure()

    def plan(self) -> EplbPlacementPlan:
        return EplbPlacementPlan(replicas=self.replicas.copy())

    def _moves(self) -> int:
        return 0 if self._current is None else int(np.maximum(self.replicas - self._current, 0).sum())

    def _measure(self) -> None:
        self.counts = self.replicas.sum(axis=1)
        self.shares: FloatArray = self.instance.vectors / self.counts
        self.loads: FloatArray = self.shares[:, self.held].sum(axis=2)
        self.moves = self._moves()
        self.value = float(self._worth(self.loads.max(axis=1))) + self._price * self.moves

    def _worth(self, greatest: FloatArray) -> FloatArray:
        """Return what counts of the greatest loads by each vector, the first axis."""
        worth: FloatArray = greatest.max(axis=0) if self.instance.aggregate == "worst" else greatest.mean(axis=0)
        return worth

    def _put(self, gpu: int, slot: int, expert: int) -> None:
        self.replicas[self.held[gpu, slot], gpu] -= 1
        self.replicas[expert, gpu] += 1
        self.held[gpu, slot] = expert

    def improve(self) -> bool:
        """Make the best change of what the fullest GPU holds; return whether there was one."""
        if self._price:
            # What only moves less gains as well.
            full = self._gpus
        else:
            full = np.unique(self.loads.argmax(axis=1) if not self._by_peak else self.loads.max(axis=0).argmax())
        changes = [self._exchange(full), self._other_count(full)]
        worth, puts = min(changes, key=lambda change: change[0])
        if worth >= self.value - ROUNDING * self.instance.mean_load:
            return False
        for put in puts:
            self._put(*put)
        self._measure()
        return True

    def _gain(self, goes: IntArray, comes: IntArray, gpu: IntArray) -> IntArray | int:
        """Return by how much moves rise where one expert goes from a GPU and another one comes."""
        if self._current is None:
            return 0
        leaves = self.replicas[goes, gpu] > self._current[goes, gpu]
        moves: IntArray = (self.replicas[comes, gpu] >= self._current[comes, gpu]).astype(np.int64) - leaves
        return moves

    def _cheapest(self, worth: FloatArray, moves: IntArray | int) -> tuple[float, int]:
        """Return the least value of some changes, and which has it."""
        after = (
            worth
            if self._current is None
            else np.where(self.moves + moves <= self._most, worth + self._price * (self.moves + moves), np.inf)
        )
        best = int(after.argmin())
        return float(after[best]), best

    def _exchange(self, full: IntArray) -> tuple[float, list[tuple[int, int, int]]]:
        """Return the least value after a replica of some GPUs changes places with another one, and where each goes."""
        slots = self.instance.slots
        size = self.instance.num_gpus * slots
        ones = (full[:, None] * slots + np.arange(slots)).ravel()
        one, other = np.repeat(ones, size), np.tile(np.arange(size), len(ones))
        held = self.held.ravel()
        gpu, there, mine, its = one // slots, other // slots, held[one], held[other]
        fine = (gpu != there) & (mine != its) & (self._node[gpu] == self._node[there])
        if self.instance.one_per_gpu:
            fine &= (self.replicas[mine, there] == 0) & (self.replicas[its, gpu] == 0)
        if not fine.any():
            return np.inf, []
        one, other, gpu, there, mine, its = (array[fine] for array in (one, other, gpu, there, mine, its))
        self.looks += 2 * len(one)
        less = self.shares[:, mine] - self.shares[:, its]
        after = np.maximum(self.loads[:, gpu] - less, self.loads[:, there] + less)
        if not self._by_peak:
            after = np.maximum(after, self._without(gpu, there))
        worth, best = self._cheapest(self._worth(after), self._gain(mine, its, gpu) + self._gain(its, mine, there))
        puts = [(int(gpu[best]), int(one[best] % slots), int(its[best]))]
        return worth, [*puts, (int(there[best]), int(other[best] % slots), int(mine[best]))]

    def _without(self, gpu: IntArray, there: IntArray) -> FloatArray:
        """(v, c) float: greatest loads of the others than two GPUs."""
        order = np.argsort(-self.loads, axis=1)[:, :3, None]
        loads = np.take_along_axis(self.loads, order[:, :, 0], axis=1)
        out = (order == gpu) | (order == there)
        found: FloatArray = np.where(out, -np.inf, loads[:, :, None]).max(axis=1)
        return found

    def _other_count(self, full: IntArray) -> tuple[float, list[tuple[int, int, int]]]:
        """Return the least value after a slot goes to another expert, and GPU, slot and expert."""
        counts, vectors = self.counts, self.instance.vectors
        # Loads of the GPUs without a replica less of one expert, or with one more, but for the slot itself.
        few = np.zeros_like(self.shares)
        spare = counts > 1
        few[:, spare] = vectors[:, spare] / (counts[spare] - 1)
        more = vectors / (counts + 1)
        gpus, slots = np.nonzero(spare[self.held])
        if not gpus.size:
            return np.inf, []
        # On the fullest any expert may come; elsewhere one of the fullest's.
        fullest = np.zeros(len(self._gpus), bool)
        fullest[full] = True
        here = fullest[gpus]
        comes = (np.arange(len(counts)), np.unique(self.held[full]))
        tries = [
            (np.repeat(gpus[some], len(come)), np.repeat(slots[some], len(come)), np.tile(come, int(some.sum())))
            for some, come in zip((here, ~here), comes, strict=True)
        ]
        gpu, slot, come = (np.concatenate([one[part] for one in tries]) for part in range(3))
        goes = self.held[gpu, slot]
        home = self._node[self.replicas.argmax(axis=1)]
        fine = (goes != come) & (home[come] == self._node[gpu])
        if self.instance.one_per_gpu:
            fine &= self.replicas[come, gpu] == 0
        gpu, slot, come, goes = gpu[fine], slot[fine], come[fine], goes[fine]
        if not gpu.size:
            return np.inf, []
        self.looks += len(gpu) * len(self._gpus)
        up, down = few - self.shares, more - self.shares
        after = (
            self.loads[:, None] + self.replicas[goes] * up[:, goes, None] + self.replicas[come] * down[:, come, None]
        )
        after[:, np.arange(len(gpu)), gpu] += more[:, come] - few[:, goes]
        worth, best = self._cheapest(self._worth(after.max(axis=2)), self._gain(goes, come, gpu))
        return worth, [(int(gpu[best]), int(slot[best]), int(come[best]))]

    def shake(self, rng: np.random.Generator) -> None:
        """Change a few replicas at random, where that is allowed."""
        instance = self.instance
        if instance.num_nodes > 1 and rng.random() < COUNTS:
            before = self.held
            (self._exchange_groups if rng.random() < COUNTS else self._move_group)(rng)
            if self.moves > self._most:
                self.hold(before)
        for _ in range(int(rng.integers(1, 4)) if instance.gpus_per_node > 1 else 0):
            gpu = int(rng.integers(instance.num_gpus))
            other = int(rng.choice(self._gpus[(self._node == self._node[gpu]) & (self._gpus != gpu)]))
            slot, there = rng.integers(instance.slots, size=2).tolist()
            mine, its = int(self.held[gpu, slot]), int(self.held[other, there])
            if not (instance.one_per_gpu and (self.replicas[mine, other] or self.replicas[its, gpu])):
                self._try((gpu, slot, its), (other, there, mine))
        # Now and then an expert more gets another's slot.
        gpu, slot = int(rng.integers(instance.num_gpus)), int(rng.integers(instance.slots))
        goes, come = int(self.held[gpu, slot]), int(rng.integers(len(self.counts)))
        room = not (instance.one_per_gpu and self.replicas[come, gpu])
        near = self._node[self.replicas[come].argmax()] == self._node[gpu]
        if rng.random() < COUNTS and room and near and self.replicas[goes].sum() > 1:
            self._try((gpu, slot, come))
        self._measure()

    def _try(self, *puts: tuple[int, int, int]) -> None:
        """Put experts into slots, unless too much moves then."""
        before = [(gpu, slot, int(self.held[gpu, slot])) for gpu, slot, _ in puts]
        for put in puts:
            self._put(*put)
        if math.isfinite(self._most) and self._moves() > self._most:
            for put in before:
                self._put(*put)

    def _exchange_groups(self, rng: np.random.Generator) -> None:
        """Exchange two groups, expert for expert by their loads."""
        groups, loads = self.instance.groups, self.instance.vectors.max(axis=0)
        one, other = rng.choice(self.instance.num_groups, 2, replace=False).tolist()
        sides = [np.flatnonzero(groups == group) for group in (one, other)]
        first, second = (side[np.argsort(-loads[side], kind="stable")] for side in sides)
        whose = np.arange(len(groups))
        whose[first], whose[second] = second, first
        self.hold(whose[self.held])

    def _move_group(self, rng: np.random.Generator) -> None:
        """Move a group to another node, in place of what carries least; its slots go to what carries most."""
        instance, held = self.instance, self.held
        home = self._node[self.replicas.argmax(axis=1)]
        group, node = int(rng.integers(instance.num_groups)), int(rng.integers(instance.num_nodes))
        members = np.flatnonzero(instance.groups == group)
        there, rest = (
            np.flatnonzero(home == node),
            np.flatnonzero((home == home[members[0]]) & (instance.groups != group)),
        )
        least = instance.slots if instance.one_per_gpu else 1
        room = instance.gpus_per_node * instance.slots - len(there)
        if home[members[0]] == node or len(rest) < least or room < len(members):
            return
        after, counts, loads = held.copy(), self.counts.copy(), instance.vectors.max(axis=0)
        for expert in members.tolist():
            spare = there[counts[there] > 1]
            goes = int(spare[(loads[spare] / counts[spare]).argmin()])
            gpu, slot = np.argwhere((after == goes) & (self._node == node)[:, None])[0]
            after[gpu, slot] = expert
            counts[goes] -= 1
        for gpu, slot in np.argwhere(np.isin(held, members)).tolist():
            able = [one for one in rest.tolist() if not instance.one_per_gpu or one not in after[gpu]]
            comes = max(able, key=lambda one: loads[one] / counts[one])
            after[gpu, slot] = comes
            counts[comes] += 1
        self.hold(after)
