"""Which experts have how many replicas, and on which GPUs: the question of EPLB, DeepSeek's load balancer.

An expert of a mixture-of-experts layer may have several replicas, which share its load equally; each GPU holds equally
many.  With w_i the load of expert i, R[i, g] its replicas on GPU g, and c_i = sum_g R[i, g]:

    min  max_g sum_i R[i, g] * w_i / c_i
    s.t. c_i >= 1,   sum_i R[i, g] = slots,   R[i, g] whole and at least 0.

As printed / as built
---------------------
The released code states no program: it replicates greedily and packs greedily, layer by layer
(:func:`heuristics.eplb.placement.released_global`), and a layer is an instance here.  It may put several replicas of an
expert on one GPU; its successors in vllm-ascend do not, which is ``one_per_gpu``.  It takes weights as 32-bit floats,
here they are 64-bit.  What its hierarchical policy keeps, that a group's experts are on one node, is a rule here:
``groups`` and ``num_nodes``.  Several vectors of loads and the price and limit of moves are this library's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from instances import pictures
from instances.arguments import AtLeast0, Count, checked
from instances.arithmetic import power, total
from instances.base import Instance, InstanceError, Plan, Violation, exceeding, unequal
from instances.data.lines import read_json
from instances.schema import LARGEST, LONGEST, Array, FloatArray, IntArray, Scalar, default, show

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "EplbPlacement",
    "EplbPlacementPlan",
    "eight_experts",
    "from_frame",
    "from_layers",
    "generate",
    "hot_expert",
    "in_order",
    "released_groups",
    "released_layers",
    "stay_or_move",
    "two_hours",
]

TOKENS = 100_000
"""Load of a layer that is drawn, about."""
NEAR, TINY = 1e-9, 1e-290
"""How far sums of floats may miss, relatively and near 0: far more than they do."""


@dataclass(frozen=True, eq=False)
class EplbPlacementPlan(Plan):
    """Replicas of the experts on the GPUs.

    Attributes
    ----------
    replicas : (e, g) int
        How many replicas of each expert each GPU holds.
    """

    replicas: Annotated[IntArray, Array(int, "e g")]


@dataclass(frozen=True, eq=False, kw_only=True)
class EplbPlacement(Instance[EplbPlacementPlan]):
    """Loads of the experts of a layer, and the GPUs that hold their replicas.

    Attributes
    ----------
    loads : (e,) float
        Load of each expert, such as tokens, at least 0.
    num_gpus : int
        Number of GPUs, g.
    slots : int
        Replicas that each GPU holds, at most as many as there are experts.
    one_per_gpu : bool
        Whether a GPU may hold one replica of an expert at most; False by default, as released.
    num_nodes : int
        Nodes, each of equally many GPUs, which are numbered node by node; 1 by default.
    groups : (e,) int
        Group of each expert, all of equally many experts.  The replicas of a group's experts are on one node.  By
        default all are of group 0.
    more_loads : (v, e) float
        Loads of the experts at other times, at least 0; none by default.
    aggregate : str
        What counts of several vectors of loads: the "worst" (default) of their greatest loads of a GPU, or the "mean".
    current : (e, g) int
        Replicas of each expert that each GPU holds now: a plan of the instance; without columns (the default) where
        nothing is held.
    move_limit : float
        The most replicas that may move, that is, be where there is none in ``current``; infinite by default.
    move_price : float
        What each such replica adds to the value; 0 by default.
    """

    problem = "eplb.placement"
    sense = "min"
    measure = "greatest load of a GPU"
    plan_type = EplbPlacementPlan
    rows = "e"

    loads: Annotated[FloatArray, Array(float, "e", minimum=0)]
    num_gpus: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    slots: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    one_per_gpu: Annotated[bool, Scalar(bool)] = False
    num_nodes: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)] = 1
    groups: Annotated[IntArray, Array(int, "e", minimum=0, maximum=LONGEST)] = default(
        lambda dims: np.zeros(dims["e"], np.int64)
    )
    more_loads: Annotated[FloatArray, Array(float, "v e", minimum=0, empty=True)] = default(
        lambda dims: np.zeros((0, dims["e"]))
    )
    aggregate: Annotated[str, Scalar(str, choices=("worst", "mean"))] = "worst"
    current: Annotated[IntArray, Array(int, "e g", minimum=0, maximum=LARGEST, empty=True)] = default(
        lambda dims: np.zeros((dims["e"], 0), np.int64)
    )
    move_limit: Annotated[float, Scalar(float, minimum=0, infinite=True)] = math.inf
    move_price: Annotated[float, Scalar(float, minimum=0)] = 0.0

    def _check(self) -> None:
        most = LARGEST // self.num_experts
        if self.num_gpus > most:
            raise self.refuse("num_gpus", f"got {self.num_gpus:,}, must be at most {most:,} for so many experts")
        if self.slots * self.num_gpus > LARGEST:
            raise self.refuse(
                "slots", f"got {self.slots:,}, must be at most {LARGEST // self.num_gpus:,} on so many GPUs"
            )
        if self.num_experts > self.num_replicas:
            least = -(-self.num_experts // self.num_gpus)
            raise self.refuse("slots", f"got {self.slots}, must be at least {least}: every expert has a replica")
        if self.slots > self.num_experts:
            raise self.refuse("slots", f"got {self.slots}, must be at most the experts, e = {self.num_experts}")
        most_load = np.finfo(float).max / self.num_experts
        for name in ("loads", "more_loads"):
            if getattr(self, name).max(initial=0.0) > most_load:
                raise self.refuse(name, "got loads whose sum may be beyond the numbers of a computer")
        if self.move_price > np.finfo(float).max / self.num_replicas:
            raise self.refuse("move_price", "got a price whose sum may be beyond the numbers of a computer")
        self._check_groups()
        if self.current.shape[1]:
            self._check_current()

    def _check_groups(self) -> None:
        if self.num_gpus % self.num_nodes:
            raise self.refuse("num_nodes", f"got {self.num_nodes}, must divide the GPUs, {self.num_gpus}")
        if self.groups.max() >= self.num_experts:
            raise self.refuse("groups", f"got group {self.groups.max()}, must be below the experts, {self.num_experts}")
        sizes = np.bincount(self.groups)
        if sizes.min() < sizes.max():
            raise self.refuse("groups", f"got {sizes.tolist()} experts in the groups, must be equally many")
        # With groups on the nodes as evenly as can be, the node of the most has the least room, and that of the
        # fewest the fewest experts to fill its GPUs with; no other way to deal them out has less of either.
        size, slots = int(sizes[0]), self.gpus_per_node * self.slots
        most, fewest = -(-self.num_groups // self.num_nodes) * size, self.num_groups // self.num_nodes * size
        if most > slots:
            raise self.refuse("groups", f"some node has {most} experts of whole groups, and {slots} slots")
        least = self.slots if self.one_per_gpu else 1
        if fewest < least:
            raise self.refuse("groups", f"some node has {fewest} experts of whole groups, must have at least {least}")

    def _check_current(self) -> None:
        if self.current.shape[1] != self.num_gpus:
            raise self.refuse("current", f"got {self.current.shape[1]} GPUs, must be num_gpus = {self.num_gpus}")
        for one in self._rules_of_placement(self.current):
            raise self.refuse("current", f"must be a plan, and breaks {one.rule} at index {show(one.index)}")

    @property
    def num_experts(self) -> int:
        """Number of experts, e."""
        return self.dims["e"]

    @property
    def num_jobs(self) -> int:
        """Number of what is placed: the experts."""
        return self.num_experts

    @property
    def num_replicas(self) -> int:
        """Replicas on all GPUs together."""
        return self.num_gpus * self.slots

    @property
    def most_replicas(self) -> int:
        """Replicas that one expert can have at most, where all others, of its node those of its group, have one."""
        most = self.num_replicas - self.num_experts + 1
        if self.num_nodes > 1:
            group_size = self.num_experts // self.num_groups
            most = min(most, self.gpus_per_node * self.slots - group_size + 1)
        return min(most, self.gpus_per_node) if self.one_per_gpu else most

    @property
    def num_groups(self) -> int:
        """Groups of experts."""
        return int(self.groups.max()) + 1

    @property
    def gpus_per_node(self) -> int:
        """GPUs of each node."""
        return self.num_gpus // self.num_nodes

    @property
    def is_plain(self) -> bool:
        """Whether GPUs are alike and one vector of loads is all that counts: one node, and no price of moves."""
        return self.num_nodes == 1 and not len(self.more_loads) and not self.counts_moves

    @property
    def counts_moves(self) -> bool:
        """Whether moves cost something, or are limited."""
        return bool(self.current.shape[1]) and (self.move_price > 0 or math.isfinite(self.move_limit))

    @cached_property
    def vectors(self) -> FloatArray:
        """(1 + v, e) float: all vectors of loads."""
        return np.vstack([self.loads, self.more_loads])

    @property
    def mean_load(self) -> float:
        """Load of a GPU on average, which no plan's greatest is below; the worst or the mean of several vectors."""
        return self.aggregated([math.fsum(loads) / self.num_gpus for loads in self.vectors.tolist()])

    def aggregated(self, values: Sequence[float]) -> float:
        """Return what counts of a number for each vector of loads: the worst, or the mean."""
        return max(values) if self.aggregate == "worst" else math.fsum(value / len(values) for value in values)

    def moves(self, plan: EplbPlacementPlan) -> int:
        """Return how many replicas are where there is none now; 0 where nothing is held."""
        if not self.current.shape[1]:
            return 0
        return int(total(np.maximum(plan.replicas, self.current) - self.current))

    def gpu_loads(self, plan: EplbPlacementPlan, vector: int = 0) -> FloatArray:
        """(g,) float: load of each GPU, by one of the vectors; experts without a replica add nothing."""
        found = np.zeros(self.num_gpus)
        counts = total(plan.replicas, axis=1)
        held = plan.replicas > 0
        shares = self.vectors[vector] / np.maximum(counts, 1).astype(float)
        for gpu in range(self.num_gpus):
            on = held[:, gpu]
            found[gpu] = math.fsum((plan.replicas[on, gpu] * shares[on]).tolist())
        return found

    def _value(self, plan: EplbPlacementPlan) -> float:
        # In fractions; the nearest float is the value.
        greatest = [self._greatest(plan, vector) for vector in range(len(self.vectors))]
        load = max(greatest) if self.aggregate == "worst" else sum(greatest, Fraction(0)) / len(greatest)
        value = load + Fraction(self.move_price) * self.moves(plan)
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf

    def _greatest(self, plan: EplbPlacementPlan, vector: int) -> Fraction:
        """Return the greatest load of a GPU by a vector, of those that may have it."""
        loads, counts = self.vectors[vector], np.maximum(total(plan.replicas, axis=1), 1).tolist()
        gpus = np.arange(self.num_gpus)
        if plan.replicas.min() >= 0:
            near = self.gpu_loads(plan, vector)
            gpus = np.flatnonzero(near >= near.max() * (1 - NEAR) - TINY)

        def load(gpu: int) -> Fraction:
            on = np.flatnonzero(plan.replicas[:, gpu]).tolist()
            shares = (Fraction(float(loads[one])) / counts[one] * int(plan.replicas[one, gpu]) for one in on)
            return sum(shares, Fraction(0))

        return max(map(load, gpus.tolist()))

    def _broken_rules(self, plan: EplbPlacementPlan) -> Iterator[Violation]:
        yield from self._rules_of_placement(plan.replicas)
        if self.current.shape[1] and math.isfinite(self.move_limit):
            yield from exceeding("moves", self.moves(plan), math.floor(self.move_limit))

    def _rules_of_placement(self, replicas: IntArray) -> Iterator[Violation]:
        yield from exceeding("nonnegative", 0, replicas)
        yield from exceeding("every_expert", 1, total(replicas, axis=1))
        yield from unequal("slots", total(replicas, axis=0), self.slots)
        if self.one_per_gpu:
            yield from exceeding("one_per_gpu", replicas, 1)
        if self.num_nodes > 1:
            there = np.zeros((self.num_groups, self.num_nodes), bool)
            experts, gpus = np.nonzero(replicas)
            there[self.groups[experts], gpus // self.gpus_per_node] = True
            yield from exceeding("one_node", there.sum(axis=1), 1)

    def _plan_dims(self) -> dict[str, int]:
        return self.dims | {"g": self.num_gpus}

    def _draw(self, axes: Axes, plan: EplbPlacementPlan | None) -> None:
        if plan is None:
            pictures.stacked(axes, np.diag(self.loads))
            pictures.number_axis(axes.xaxis, self.num_experts)
            axes.set_xlabel("expert")
        else:
            counts = np.maximum(total(plan.replicas, axis=1), 1).astype(float)
            shares = plan.replicas * (self.loads / counts)[:, None]
            pictures.stacked(axes, shares)
            pictures.number_axis(axes.xaxis, self.num_gpus)
            axes.axhline(math.fsum(self.loads.tolist()) / self.num_gpus, color=pictures.OUTLINE, ls="--", lw=1)
            for node in range(1, self.num_nodes):
                axes.axvline(node * self.gpus_per_node - 0.5, color=pictures.OUTLINE, linewidth=1)
            nodes = ", lines between nodes" if self.num_nodes > 1 else ""
            axes.set_xlabel(f"GPU, with the experts that it holds; dashed: the mean{nodes}")
        axes.set_ylabel("load")


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_experts: Count = 16,
    experts_per_gpu: Count = 2,
    redundancy: AtLeast0 = 0.125,
    kind: Annotated[str, Scalar(str, choices=("zipf", "hot", "layer"))] = "zipf",
    skew: AtLeast0 = 1.0,
    one_per_gpu: bool = False,
    num_nodes: Count = 1,
    num_groups: Count = 1,
    more_vectors: Annotated[int, Scalar(int, minimum=0, maximum=1000)] = 0,
    aggregate: Annotated[str, Scalar(str, choices=("worst", "mean"))] = "worst",
    move_limit: Annotated[float, Scalar(float, minimum=0, infinite=True)] = math.inf,
    move_price: AtLeast0 = 0.0,
) -> EplbPlacement:
    """Experts of one layer, whose loads are whole numbers of tokens.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_experts : int
        Number of experts, e.
    experts_per_gpu : int
        There are as many GPUs as hold all experts so; the last may be one that holds fewer.
    redundancy : float
        Replicas beyond the first, for each expert; rounded up to whole slots of all GPUs.
    kind : str
        "zipf": the k-th hottest has about k^-skew of the hottest's load.  "hot": one expert has ``skew`` times the load
        of all others, which are about alike.  "layer": loads are spread as by a lognormal distribution of this
        ``skew``, the form of measured layers.
    skew : float
        Hardness dial.
    one_per_gpu, num_nodes, aggregate, move_limit
        As the instance has them.
    num_groups : int
        Groups of equally many experts.
    more_vectors : int
        Further vectors of loads: the first, each load times a factor from 1/2 to 2.
    move_price : float
        Price of a move, in the first vector's mean load of a GPU.  Where it is above 0, or moves are limited, the
        replicas are held already, dealt out in the order of the experts.
    """
    rng = np.random.default_rng(rng)
    if num_experts % num_groups:
        raise InstanceError(f"num_groups: got {num_groups}, must divide the experts, {num_experts}")
    if kind == "zipf":
        shape = power(np.arange(1.0, num_experts + 1), -skew) * rng.uniform(0.8, 1.25, num_experts)
    elif kind == "hot":
        shape = rng.uniform(0.8, 1.25, num_experts)
        shape[0] = math.fsum(shape[1:].tolist()) * skew if num_experts > 1 else 1.0
    else:
        # Twelve uniform numbers add up to nearly a normal one, on every machine alike.
        shape = power(math.e, skew * (sum(rng.random((12, num_experts))) - 6.0))
    loads = np.round(TOKENS * shape / math.fsum(shape.tolist()))
    num_gpus = -(-num_experts // experts_per_gpu)
    slots = math.ceil(num_experts * (1 + redundancy) / num_gpus)
    made = EplbPlacement(
        loads=rng.permutation(loads),
        num_gpus=num_gpus,
        slots=min(slots, num_experts),
        one_per_gpu=one_per_gpu,
        num_nodes=num_nodes,
        groups=np.arange(num_experts) // (num_experts // num_groups),
        aggregate=aggregate,
    )
    if more_vectors:
        factors = power(2.0, rng.uniform(-1, 1, (more_vectors, num_experts)))
        made = replace(made, more_loads=np.round(made.loads * factors))
    if move_price > 0 or math.isfinite(move_limit):
        made = replace(
            made, current=in_order(made).replicas, move_limit=move_limit, move_price=move_price * made.mean_load
        )
    return made


def in_order(instance: EplbPlacement) -> EplbPlacementPlan:
    """Return the plan for which loads do not count: experts by their groups, one after the other and in turn."""
    order = np.argsort(instance.groups, kind="stable")
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    size = instance.num_experts // instance.num_groups
    for node, some in enumerate(np.array_split(np.arange(instance.num_groups), instance.num_nodes)):
        held = np.resize(order[some[0] * size : (some[-1] + 1) * size], instance.gpus_per_node * instance.slots)
        gpus = node * instance.gpus_per_node + np.arange(len(held)) // instance.slots
        np.add.at(replicas, (held, gpus), 1)
    return EplbPlacementPlan(replicas=replicas)


from_frame = EplbPlacement.from_frame


def from_layers(
    table: ArrayLike | pd.DataFrame | str | Path,
    *,
    num_gpus: int,
    slots: int,
    one_per_gpu: bool = False,
    num_nodes: int = 1,
    num_groups: int = 1,
) -> list[EplbPlacement]:
    """Return an instance for each layer of a table of loads, as the released code takes it.

    Parameters
    ----------
    table : array or DataFrame of layers by experts, or path
        A path leads to JSON: such a table, or an object whose ``load_history`` is a list of objects with such a table
        as their ``logical_expert_load``, as the ADRS benchmark has it; these are added up.
    num_gpus, slots, one_per_gpu, num_nodes
        As the instance has them.
    num_groups : int
        Groups of equally many experts, one after the other, as the released code has them.

    Raises
    ------
    InstanceError
        When it is no table, or one of its loads is none.
    """
    if isinstance(table, (str, Path)):
        read: Any = read_json(table)[0]
        if isinstance(read, dict):
            history = read.get("load_history")
            steps = [one.get("logical_expert_load") if isinstance(one, dict) else None for one in history or ()]
            if not isinstance(history, list) or not steps or any(step is None for step in steps):
                raise InstanceError("table: got an object without a load_history of logical_expert_load")
            read = sum(_table(step) for step in steps)
        table = read
    elif hasattr(table, "to_numpy"):
        table = table.to_numpy()
    rows = _table(table)
    if num_groups < 1 or rows.shape[1] % num_groups:
        raise InstanceError(f"num_groups: got {num_groups}, must divide the experts, {rows.shape[1]}")
    groups = np.arange(rows.shape[1]) // (rows.shape[1] // num_groups)
    return [
        EplbPlacement(
            loads=loads, num_gpus=num_gpus, slots=slots, one_per_gpu=one_per_gpu, num_nodes=num_nodes, groups=groups
        )
        for loads in rows
    ]


def _table(given: Any) -> FloatArray:
    """(layers, e) float: the table as numbers."""
    try:
        table = np.asarray(given, float)
    except (TypeError, ValueError):
        raise InstanceError("table: must be numbers, a row of equally many for each layer") from None
    if table.ndim != 2:
        raise InstanceError(f"table: got shape {table.shape}, must be (layers, experts)")
    return table


def eight_experts() -> EplbPlacement:
    """Eight experts on eight GPUs of two slots, the example of FlashLB.

    The released policy has a greatest load of 232; the pull request states 205 for FlashLB.
    """
    return EplbPlacement(loads=np.array([600.0, 560, 120, 120, 20, 10, 10, 10]), num_gpus=8, slots=2)


def hot_expert(num_gpus: int = 2) -> EplbPlacement:
    """Of as many experts as GPUs one has all load: the released policy is worth 2 - 2/(g + 1) times the best.

    There are at least two GPUs.  With a replica on each the greatest load is 1/g.  Replicated where the load for each
    replica is greatest, the expert has g + 1 of the 2 g replicas, of which two share a GPU: 2/(g + 1).
    """
    return EplbPlacement(loads=np.array([1.0] + [0.0] * (num_gpus - 1)), num_gpus=num_gpus, slots=2)


RELEASED = (
    (90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86),
    (20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27),
)
"""Loads of the released example."""


def released_layers() -> Sequence[EplbPlacement]:
    """Two layers of twelve experts on eight GPUs of two slots: the example of the released code, without its groups."""
    return from_layers(RELEASED, num_gpus=8, slots=2)


def released_groups() -> Sequence[EplbPlacement]:
    """Return the same with its four groups of experts, on two nodes."""
    return from_layers(RELEASED, num_gpus=8, slots=2, num_nodes=2, num_groups=4)


def two_hours() -> EplbPlacement:
    """Two experts on three GPUs of one slot, of which the first is hotter in one hour, and the second in the other.

    With the third replica for the first, the greatest loads are 2 and 4; for the second, 3 and 2, which is the better
    for both hours.
    """
    return EplbPlacement(loads=np.array([3.0, 2.0]), more_loads=np.array([[1.0, 4.0]]), num_gpus=3, slots=1)


def stay_or_move() -> EplbPlacement:
    """Two GPUs of two slots hold both heavy and both light experts: one exchange, two moves, makes them even.

    At the price of 1 for each move an exchange costs 2 and gains 3: the value is 5 + 2, not 8.
    """
    return EplbPlacement(
        loads=np.array([4.0, 4.0, 1.0, 1.0]),
        num_gpus=2,
        slots=2,
        current=np.array([[1, 0], [1, 0], [0, 1], [0, 1]]),
        move_price=1.0,
    )
