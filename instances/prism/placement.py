"""Which GPU serves each model: the placement task of Prism (arXiv 2505.04021), as ADRS and SkyDiscover ask it.

Several models share a GPU.  Their weights take up memory, and what is left is the cache of their keys and values.  A
model needs more of it the more requests come and the sooner they are to be answered, so that with rate r_j, latency
objective o_j and size s_j of model j, and memory M_g of GPU g,

    min  max_g  sum_{j on g} (r_j / o_j)  /  (M_g - sum_{j on g} s_j),
    s.t. sum_{j on g} s_j  <  M_g.

The ratio is called the KV pressure of a GPU; that of an empty one is 0.

As printed / as built
---------------------
The released evaluator accepts a GPU whose models fill it, for a ratio of 1,000,000; here models must leave something.
It accepts GPUs that are not there, and reads rates and sizes from objects that the program may have changed; here a
plan is the number of a GPU for each model, and nothing else.  GPUs of different memory and limits on moves are the
library's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.arguments import AtLeast0, Count, Fraction, Positive, checked
from instances.base import Instance, InstanceError, Plan, Violation, exceeding
from instances.schema import Array, BoolArray, FloatArray, IntArray, Scalar, default

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "PrismPlacement",
    "PrismPlacementPlan",
    "from_frame",
    "full_to_the_brim",
    "generate",
    "large_last",
    "public_instance",
    "public_instances",
    "stay_or_move",
]

PUBLIC_SEED, PUBLIC_COUNT = 42, 50
"""Of the released evaluator: what its random numbers begin with, and how many instances it draws."""
PUBLIC_SOURCE = "skydiscover-ai/skydiscover, benchmarks/ADRS/prism/evaluator/evaluator.py"
PUBLIC_MEMORY = 80.0
"""Memory of its GPUs, GB."""
SIZES, RATES, SLOS = (10, 30), (1, 10), (5, 10)
"""Its ranges, each from the first to below the second: GB, requests/s, s."""


@dataclass(frozen=True, eq=False)
class PrismPlacementPlan(Plan):
    """GPUs of the models.

    Attributes
    ----------
    gpus : (n,) int
        Number of each model's GPU.
    """

    gpus: Annotated[IntArray, Array(int, "n")]


@dataclass(frozen=True, eq=False, kw_only=True)
class PrismPlacement(Instance[PrismPlacementPlan]):
    """GPUs, the models that are to share them, and where models are now.

    Models are jobs: ``num_jobs`` is how many there are.

    Attributes
    ----------
    memory : (m,) float
        Memory of each GPU, GB, above 0.
    sizes : (n,) float
        Memory that each model's weights take up, GB.
    rates : (n,) float
        Requests of each model, 1/s.
    slos : (n,) float
        Latency objective of each model, s, above 0.
    current : (n,) int
        GPU that each model is on now; -1 (the default) for none.
    move_limit : float
        The most that may be moved, GB: sizes of models that are on a GPU now and on another one in the plan; infinite
        by default.
    """

    problem = "prism.placement"
    sense = "min"
    measure = "greatest KV pressure of a GPU, 1/(s² GB)"
    plan_type = PrismPlacementPlan

    memory: Annotated[FloatArray, Array(float, "m", above=0)]
    sizes: Annotated[FloatArray, Array(float, "n", minimum=0)]
    rates: Annotated[FloatArray, Array(float, "n", minimum=0)]
    slos: Annotated[FloatArray, Array(float, "n", above=0)]
    current: Annotated[IntArray, Array(int, "n", index_of="m", minimum=-1)] = default(
        lambda dims: np.full(dims["n"], -1)
    )
    move_limit: Annotated[float, Scalar(float, minimum=0, infinite=True)] = math.inf

    def _check(self) -> None:
        with np.errstate(over="ignore"):
            if not np.isfinite(self.weights.sum()):
                raise self.refuse("slos", "rates over objectives add up to no finite number")
            for name in ("memory", "sizes"):
                if not np.isfinite(getattr(self, name).sum()):
                    raise self.refuse(name, "adds up to no finite number")

    @property
    def num_jobs(self) -> int:
        """Number of models, n."""
        return self.dims["n"]

    @property
    def num_gpus(self) -> int:
        """Number of GPUs, m."""
        return self.dims["m"]

    @cached_property
    def weights(self) -> FloatArray:
        """(n,) float: rate over latency objective of each model, 1/s²."""
        with np.errstate(over="ignore"):
            weights: FloatArray = self.rates / self.slos
        return weights

    def members(self, plan: PrismPlacementPlan) -> list[IntArray]:
        """Models on each GPU."""
        return [np.flatnonzero(plan.gpus == gpu) for gpu in range(self.num_gpus)]

    def free(self, plan: PrismPlacementPlan) -> FloatArray:
        """(m,) float: memory that the models leave on each GPU, GB; the exact difference, rounded once."""
        left = [
            math.fsum([memory, *(-self.sizes[models]).tolist()])
            for memory, models in zip(self.memory.tolist(), self.members(plan), strict=True)
        ]
        return np.array(left)

    def pressures(self, plan: PrismPlacementPlan) -> FloatArray:
        """(m,) float: KV pressure of each GPU; infinite where the models fill it."""
        found = [
            math.fsum(self.weights[models].tolist()) / free if free > 0 else math.inf
            for models, free in zip(self.members(plan), self.free(plan).tolist(), strict=True)
        ]
        return np.array(found)

    def moved(self, plan: PrismPlacementPlan) -> BoolArray:
        """(n,) bool: whether a model is on a GPU now, and on another one in the plan."""
        moved: BoolArray = (self.current >= 0) & (plan.gpus != self.current)
        return moved

    def _value(self, plan: PrismPlacementPlan) -> float:
        if ((plan.gpus < 0) | (plan.gpus >= self.num_gpus)).any():
            return math.inf
        return float(self.pressures(plan).max())

    def _broken_rules(self, plan: PrismPlacementPlan) -> Iterator[Violation]:
        yield from exceeding("gpu_exists", 0, plan.gpus)
        yield from exceeding("gpu_exists", plan.gpus, self.num_gpus - 1)
        # The sign of an exact sum that is rounded once is right.
        for gpu, free in enumerate(self.free(plan).tolist()):
            if free <= 0:
                yield Violation("memory", (gpu,), -free)
        if math.isfinite(self.move_limit):
            over = math.fsum([*self.sizes[self.moved(plan)].tolist(), -self.move_limit])
            if over > 0:
                yield Violation("moves", (), over)

    def _draw(self, axes: Axes, plan: PrismPlacementPlan | None) -> None:
        if plan is None:
            for job in range(self.num_jobs):
                axes.scatter(self.sizes[job], self.weights[job], color=pictures.colour(job))
            axes.set_xlabel(f"size, GB (GPUs have {', '.join(f'{one:g}' for one in np.unique(self.memory).tolist())})")
            axes.set_ylabel("rate / latency objective, 1/s²")
            pictures.from_zero(axes, x=True, y=True)
            return
        held = np.where(plan.gpus[:, None] == np.arange(self.num_gpus), self.sizes[:, None], 0.0)
        moved = np.broadcast_to(self.moved(plan)[:, None], held.shape)
        pictures.servers(axes, held, capacity=self.memory, hatched=moved)
        top = float(self.memory.max())
        for gpu, pressure in enumerate(self.pressures(plan).tolist()):
            axes.text(gpu, self.memory[gpu] + 0.01 * top, f"{pressure:.3g}", ha="center", va="bottom", fontsize=7)
        axes.set_ylim(0, 1.1 * top)
        axes.set_xlabel("GPU, with its KV pressure above")
        axes.set_ylabel("memory, GB")


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: Count = 20,
    num_gpus: Count | None = None,
    memory: Positive = PUBLIC_MEMORY,
    small: Fraction = 0.0,
    placed: Fraction = 0.0,
    movable: AtLeast0 = 1.0,
) -> PrismPlacement:
    """Models whose sizes, rates and objectives are distributed as in the released task.

    Whole numbers, alike in their ranges: sizes from 10 to 29 GB, rates from 1 to 9/s, objectives from 5 to 9 s.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
        Models, n.
    num_gpus : int, optional
        GPUs, m; by default half as many as models, rounded up, as in the released task.
    memory : float
        Memory of a GPU, GB.
    small : float
        Part of the GPUs that have half the memory.
    placed : float
        Part of the models that are on a GPU now: the first that has room for them, in a drawn order.
    movable : float
        Part of the memory that the models on GPUs take up which may be moved; from 1 on there is no limit.
    """
    rng = np.random.default_rng(rng)
    num_gpus = -(-num_jobs // 2) if num_gpus is None else num_gpus
    each = np.full(num_gpus, memory)
    each[num_gpus - round(small * num_gpus) :] /= 2
    sizes = rng.integers(*SIZES, num_jobs).astype(float)
    rates = rng.integers(*RATES, num_jobs).astype(float)
    slos = rng.integers(*SLOS, num_jobs).astype(float)
    current, left = np.full(num_jobs, -1), each.copy()
    for job in rng.permutation(num_jobs)[: round(placed * num_jobs)].tolist():
        room = [gpu for gpu in rng.permutation(num_gpus).tolist() if left[gpu] > sizes[job]]
        if room:
            current[job] = room[0]
            left[room[0]] -= sizes[job]
    limit = movable * float(sizes[current >= 0].sum()) if movable < 1 else math.inf
    return PrismPlacement(memory=each, sizes=sizes, rates=rates, slos=slos, current=current, move_limit=limit)


from_frame = PrismPlacement.from_frame


def public_instances() -> list[PrismPlacement]:
    """Return the 50 instances of the released evaluator, drawn as it draws them.

    Its random numbers are those of NumPy's ``RandomState``, a stream that does not change between versions: of each
    instance the GPUs, 5 to 9, and then of two models for each GPU the size, the rate and the objective, one after the
    other.
    """
    stream = np.random.RandomState(PUBLIC_SEED)

    def drawn(low: int, high: int) -> int:
        return int(stream.randint(low, high, dtype=np.int64))

    found = []
    for number in range(PUBLIC_COUNT):
        num_gpus = drawn(5, 10)
        models = [(drawn(*SIZES), drawn(*RATES), drawn(*SLOS)) for _ in range(2 * num_gpus)]
        sizes, rates, slos = np.array(models, float).T
        instance = PrismPlacement(memory=np.full(num_gpus, PUBLIC_MEMORY), sizes=sizes, rates=rates, slos=slos)
        told = {"source": PUBLIC_SOURCE, "seed": PUBLIC_SEED, "number": number}
        found.append(instance.with_origin({"reader": "instances.prism.placement.public_instances", **told}))
    return found


def public_instance(number: int) -> PrismPlacement:
    """Return one of :func:`public_instances`, by its number from 0 on."""
    if not 0 <= number < PUBLIC_COUNT:
        raise InstanceError(f"number: got {number}, must be 0 to {PUBLIC_COUNT - 1}")
    return public_instances()[number]


def large_last() -> PrismPlacement:
    """Two GPUs of 10 GB and three models, of weights 3, 2 and 1, the last of 7 GB and the others of 1 GB.

    By weight, one after the other onto the GPU of least pressure: the large model joins the second, for 3/2 = 1.5.  The
    optimum has the first two together, for 5/8, and the large one alone, for 1/3.
    """
    return PrismPlacement(
        memory=np.array([10.0, 10.0]),
        sizes=np.array([1.0, 1.0, 7.0]),
        rates=np.array([3.0, 2.0, 1.0]),
        slos=np.array([1.0, 1.0, 1.0]),
    )


def full_to_the_brim() -> PrismPlacement:
    """Two models of 5 GB and one of 4 GB on two GPUs of 10 GB: the first two may not share one, for they would fill it.

    The model of 4 GB, without requests, joins either of the others: 1/(10 - 9) = 1 beside 1/5.
    """
    return PrismPlacement(
        memory=np.array([10.0, 10.0]),
        sizes=np.array([5.0, 5.0, 4.0]),
        rates=np.array([1.0, 1.0, 0.0]),
        slos=np.array([1.0, 1.0, 1.0]),
    )


def stay_or_move() -> PrismPlacement:
    """Two models of 4 GB and weight 1 on one of two GPUs of 10 GB, and a limit of 3 GB, by which neither may move.

    They stay, for 2/2 = 1.  With a limit of 4 GB one moves, for 1/6.
    """
    return replace(
        large_last(),
        sizes=np.array([4.0, 4.0]),
        rates=np.array([1.0, 1.0]),
        slos=np.array([1.0, 1.0]),
        current=np.array([0, 0]),
        move_limit=3.0,
    )
