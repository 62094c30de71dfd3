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
here they are 64-bit.  Groups of experts that share a node, and moves from an old plan, are not built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from instances import pictures
from instances.arguments import AtLeast0, Count, checked
from instances.arithmetic import power, total
from instances.base import Instance, InstanceError, Plan, Violation, exceeding, unequal
from instances.data.lines import read_json
from instances.schema import LARGEST, LONGEST, Array, FloatArray, IntArray, Scalar

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
    "released_layers",
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
        if self.loads.max() > np.finfo(float).max / self.num_experts:
            raise self.refuse("loads", "got loads whose sum may be beyond the numbers of a computer")

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
        """Replicas that one expert can have, where all others have one at least."""
        most = self.num_replicas - self.num_experts + 1
        return min(most, self.num_gpus) if self.one_per_gpu else most

    @property
    def mean_load(self) -> float:
        """Load of a GPU on average, which no plan's greatest is below."""
        return math.fsum(self.loads.tolist()) / self.num_gpus

    def gpu_loads(self, plan: EplbPlacementPlan) -> FloatArray:
        """(g,) float: load of each GPU; experts without a replica add nothing."""
        found = np.zeros(self.num_gpus)
        counts = total(plan.replicas, axis=1)
        held = plan.replicas > 0
        shares = self.loads / np.maximum(counts, 1).astype(float)
        for gpu in range(self.num_gpus):
            on = held[:, gpu]
            found[gpu] = math.fsum((plan.replicas[on, gpu] * shares[on]).tolist())
        return found

    def _value(self, plan: EplbPlacementPlan) -> float:
        counts = np.maximum(total(plan.replicas, axis=1), 1).tolist()
        gpus = np.arange(self.num_gpus)
        if plan.replicas.min() >= 0:
            near = self.gpu_loads(plan)
            gpus = np.flatnonzero(near >= near.max() * (1 - NEAR) - TINY)

        def load(gpu: int) -> Fraction:
            on = np.flatnonzero(plan.replicas[:, gpu]).tolist()
            shares = (Fraction(float(self.loads[one])) / counts[one] * int(plan.replicas[one, gpu]) for one in on)
            return sum(shares, Fraction(0))

        # In fractions, of the GPUs that may have the greatest; the nearest float is the value.
        greatest = max(map(load, gpus.tolist()))
        try:
            return float(greatest)
        except OverflowError:
            return math.inf if greatest > 0 else -math.inf

    def _broken_rules(self, plan: EplbPlacementPlan) -> Iterator[Violation]:
        yield from exceeding("nonnegative", 0, plan.replicas)
        yield from exceeding("every_expert", 1, total(plan.replicas, axis=1))
        yield from unequal("slots", total(plan.replicas, axis=0), self.slots)
        if self.one_per_gpu:
            yield from exceeding("one_per_gpu", plan.replicas, 1)

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
            axes.axhline(self.mean_load, color=pictures.OUTLINE, linestyle="--", linewidth=1)
            axes.set_xlabel("GPU, with the experts that it holds; dashed: the mean")
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
    one_per_gpu : bool
        As the instance has it.
    """
    rng = np.random.default_rng(rng)
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
    return EplbPlacement(
        loads=rng.permutation(loads),
        num_gpus=num_gpus,
        slots=min(slots, num_experts),
        one_per_gpu=one_per_gpu,
    )


from_frame = EplbPlacement.from_frame


def from_layers(
    table: ArrayLike | pd.DataFrame | str | Path, *, num_gpus: int, slots: int, one_per_gpu: bool = False
) -> list[EplbPlacement]:
    """Return an instance for each layer of a table of loads, as the released code takes it.

    Parameters
    ----------
    table : array or DataFrame of layers by experts, or path
        A path leads to JSON: such a table, or an object whose ``load_history`` is a list of objects with such a table
        as their ``logical_expert_load``, as the ADRS benchmark has it; these are added up.
    num_gpus, slots, one_per_gpu
        As the instance has them.

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
    return [
        EplbPlacement(loads=loads, num_gpus=num_gpus, slots=slots, one_per_gpu=one_per_gpu) for loads in _table(table)
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


def released_layers() -> Sequence[EplbPlacement]:
    """Two layers of twelve experts on eight GPUs of two slots: the example of the released code, without its groups."""
    return from_layers(
        [
            [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
            [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
        ],
        num_gpus=8,
        slots=2,
    )
