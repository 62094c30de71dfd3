"""Fast methods for :class:`instances.prism.placement.PrismPlacement`.

All of them put models on GPUs that have more memory left than the model takes, and none knows that it could be left
out: where a model finds no such GPU, they return None.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from instances.prism.placement import PrismPlacement, PrismPlacementPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = [
    "best_fit_level",
    "first_fit",
    "greatest_weight_first",
    "least_pressure",
    "least_pressure_unless_near",
    "local_search",
]

HALVINGS = 40
"""Levels that are tried between the bound and the first plan."""
DOUBLINGS = 60
"""Levels that are tried for a first plan."""
BUDGET = 3000
DIVISIONS = 25
"""Divisions that are looked for by default at most, and for each model and GPU."""
MOST_SPLIT = 12
"""Models on two GPUs of which all divisions are looked at; of more, single moves and exchanges only."""
GAIN = 1e-9
"""Part of the pressure that a division must gain."""
WORSE = 0.5
"""Part of the least pressure so far by which a drawn division may be worse."""
NEAR = 0.25
"""Chance that a drawn division stays below the greatest pressure instead."""
HOME = 0.2
"""Chance that a drawn division is one that moves least, where moves are limited, so that others may."""


def first_fit(instance: PrismPlacement) -> PrismPlacementPlan | None:
    """Put each model, in the given order, on the first GPU that has room for it.

    Guarantee: none.  Complexity: O(n m).

    References
    ----------
    The released task's ``initial_program_naive.py`` (skydiscover, benchmarks/ADRS/prism), which fills GPUs to the brim.
    """
    state = _State(instance)
    for job in range(instance.num_jobs):
        room = np.flatnonzero(state.free > instance.sizes[job])
        if not room.size:
            return None
        state.put(job, int(room[0]))
    return state.plan()


def least_pressure(instance: PrismPlacement) -> PrismPlacementPlan | None:
    """Put each model, by weight from the greatest on, on the GPU of least pressure among those that have room for it.

    The pressure is that before the model comes.  Ties go to the lowest number.

    Guarantee: none.  Complexity: O(n (log n + m)).

    References
    ----------
    The released task's ``initial_program.py`` (skydiscover, benchmarks/ADRS/prism), which says that it is based on
    Algorithm 1, without its threshold.  It lets a model fill a GPU to the brim, which is no plan here.
    """
    return least_pressure_unless_near(instance, threshold=0.0, staying=False)


def least_pressure_unless_near(
    instance: PrismPlacement, *, threshold: float = 0.01, staying: bool = True
) -> PrismPlacementPlan | None:
    """Do as :func:`least_pressure`, but leave a model on its GPU unless another's pressure is lower by a threshold.

    Models come by weight from the greatest on.  One that is on a GPU now, which has room for it, stays there if its
    pressure is above the least by no more than ``threshold``.

    Guarantee: none; where no model is on a GPU now, :func:`least_pressure`.  Complexity: O(n (log n + m)).

    Parameters
    ----------
    instance : PrismPlacement
    threshold : float
        Pressure, 1/(s² GB).
    staying : bool
        Whether models stay at all.

    References
    ----------
    Ours, after the threshold of Algorithm 1 that the released ``initial_program.py`` says it leaves out.
    """
    state = _State(instance)
    for job in np.argsort(-instance.weights, kind="stable").tolist():
        room = state.free > instance.sizes[job]
        if not room.any():
            return None
        pressures = np.divide(state.weight, state.free, out=np.full(len(room), np.inf), where=room)
        gpu, now = int(pressures.argmin()), int(instance.current[job])
        if staying and now >= 0 and room[now] and pressures[now] <= pressures[gpu] + threshold:
            gpu = now
        state.put(job, gpu)
    return state.plan()


def greatest_weight_first(instance: PrismPlacement) -> PrismPlacementPlan | None:
    """Put each model, by weight from the greatest on, on the GPU whose pressure is least with it.

    Ties go to the lowest number.  (With sizes of 0 it is the field's longest first.)

    Guarantee: with sizes of 0 and GPUs of equal memory 4/3 - 1/(3 m) times the optimum; else none.
    Complexity: O(n (log n + m)).

    References
    ----------
    Graham, Bounds on multiprocessing timing anomalies (SIAM Journal on Applied Mathematics 17, 1969).
    """
    state = _State(instance)
    for job in np.argsort(-instance.weights, kind="stable").tolist():
        room = state.free > instance.sizes[job]
        if not room.any():
            return None
        after = np.full(len(room), np.inf)
        np.divide(state.weight + instance.weights[job], state.free - instance.sizes[job], out=after, where=room)
        state.put(job, int(np.where(room, after, np.inf).argmin()) if np.isfinite(after).any() else int(room.argmax()))
    return state.plan()


def best_fit_level(instance: PrismPlacement) -> PrismPlacementPlan | None:
    """Search for the least level at which best fit decreasing places all models.

    At a level L models take weight + L * size of the L * memory of a GPU; from the greatest on, each goes to the GPU
    that has the least left for it.  Levels lie between all weights over all memory that models leave, and the value of
    the best plan so far; each is half-way.  Where moves are limited, models that are on GPUs stay there.

    Guarantee: none.  Complexity: O(n (log n + m)) for each of at most 100 levels.

    References
    ----------
    Ours; the search for a level over bin packing is Multifit (Coffman, Garey, Johnson, An application of bin-packing to
    multiprocessor scheduling, SIAM Journal on Computing 7, 1978).
    """
    total, left = math.fsum(instance.weights.tolist()), math.fsum([*instance.memory, *-instance.sizes])
    if left <= 0:
        return None
    low = total / left
    best, high = None, low
    for level in [*(low * 2.0**k for k in range(DOUBLINGS if total > 0 else 0)), math.inf]:
        best = _packed(instance, level)
        if best is not None:
            high = instance.objective(best)
            break
    for _ in range(HALVINGS if best is not None else 0):
        level = (low + high) / 2
        plan = _packed(instance, level) if high > low * (1 + GAIN) else None
        if plan is not None and instance.objective(plan) < high:
            best, high = plan, instance.objective(plan)
        else:
            low = level
    return best


def local_search(
    instance: PrismPlacement, *, budget: int | None = None, rng: np.random.Generator | int = 0
) -> PrismPlacementPlan | None:
    """Divide the models of two GPUs anew between them, again and again, one of the two that of greatest pressure.

    It begins with the best plan of the other heuristics, and of where models are now.  The GPU of greatest pressure is
    joined with each other one, from that of least pressure on, and their models are divided in the best way that there
    is: all divisions of up to 12 models are looked at, of more the moves of one model and exchanges of two.  Where no
    division helps, two GPUs drawn at random get a division drawn of those below a limit: the greatest pressure, or what
    is drawn from the best value so far to half as much again, mostly near it.  Where moves are limited, one in five is
    the one that moves least, so that others may move.  From a plan that is worse than that it
    goes back to the best one.  A plan at the bound, all weights over all memory left or one model alone, ends it.

    Guarantee: never worse than the other heuristics here, where their plans break no rule; for two GPUs and at most 12
    models without limits on moves, optimal where a plan was found to begin with.
    Complexity: O(2^12) for each of ``budget`` divisions at most.

    Parameters
    ----------
    instance : PrismPlacement
    budget : int, optional
        Divisions that are looked for; by default 25 for each model and GPU, and at most 3,000.
    rng : Generator or int
        Source of randomness, or its seed.

    References
    ----------
    Ours.
    """
    rng = np.random.default_rng(rng)
    if budget is None:
        budget = min(BUDGET, DIVISIONS * instance.num_jobs * instance.num_gpus)
    best = _first(instance)
    if best is None or instance.num_gpus < 2 or not instance.weights.any():
        return best
    search = _Divisions(instance, best)
    value, chosen = search.greatest, search.gpus.copy()
    alone = float((instance.weights / (instance.memory.max() - instance.sizes)).max())
    floor = max(math.fsum(instance.weights.tolist()) / math.fsum([*instance.memory, *-instance.sizes]), alone)
    while budget > 0 and value > floor * (1 + GAIN):
        worst = int(search.pressures.argmax())
        better = False
        for other in np.argsort(search.pressures, kind="stable").tolist():
            if other == worst or budget <= 0:
                continue
            budget -= 1
            better = search.divide(worst, other)
            if better:
                break
        if search.greatest < value * (1 - GAIN):
            value, chosen = search.greatest, search.gpus.copy()
        if not better and budget > 0:
            if instance.num_gpus == 2:
                break
            if search.greatest > value * (1 + WORSE):
                search = _Divisions(instance, PrismPlacementPlan(gpus=chosen))
            budget -= 1
            one, other = rng.choice(instance.num_gpus, 2, replace=False).tolist()
            near = rng.random() < NEAR
            limit = search.greatest * (1 - GAIN) if near else value * (1 + WORSE * rng.random() ** 2)
            search.divide(one, other, limit, rng)
    found = PrismPlacementPlan(gpus=chosen)
    # What sums of floats mistake for room, the judge does not.
    better_plan = not instance.violations(found) and instance.objective(found) < instance.objective(best)
    return found if better_plan else best


def _first(instance: PrismPlacement) -> PrismPlacementPlan | None:
    """Return the best plan of the other heuristics, and of where models are now, that breaks no rule."""
    found = [PrismPlacementPlan(gpus=instance.current), first_fit(instance)]
    found += [least_pressure(instance), least_pressure_unless_near(instance)]
    found += [greatest_weight_first(instance), best_fit_level(instance)]
    fine = [plan for plan in found if plan is not None and not instance.violations(plan)]
    return min(fine, key=instance.objective) if fine else None


def _packed(instance: PrismPlacement, level: float) -> PrismPlacementPlan | None:
    """Return the plan of best fit decreasing at a level, by sizes where it is infinite; None where a model is left."""
    endless = math.isinf(level)
    loads = instance.sizes if endless else instance.weights + level * instance.sizes
    state = _State(instance)
    room = instance.memory.copy() if endless else level * instance.memory
    stays = np.zeros(instance.num_jobs, bool)
    if math.isfinite(instance.move_limit):
        stays = instance.current >= 0
    for job in [*np.flatnonzero(stays).tolist(), *np.argsort(-loads, kind="stable").tolist()]:
        if state.gpus[job] >= 0:
            continue
        left = np.where(state.free > instance.sizes[job], room - loads[job], -1.0)
        gpu = int(instance.current[job])
        if not stays[job]:
            able = np.flatnonzero(left >= 0)
            if not able.size:
                return None
            gpu = int(able[left[able].argmin()])
        elif left[gpu] < 0:
            return None
        room[gpu] -= loads[job]
        state.put(job, gpu)
    return state.plan()


class _State:
    """GPUs of the models so far, and what they leave.

    Attributes
    ----------
    gpus : (n,) int
        -1 for none yet.
    free, weight : (m,) float
        Memory that is left, GB, and weights, 1/s².
    """

    def __init__(self, instance: PrismPlacement) -> None:
        self._instance = instance
        self.gpus = np.full(instance.num_jobs, -1)
        self.free, self.weight = instance.memory.copy(), np.zeros(instance.num_gpus)

    def put(self, job: int, gpu: int) -> None:
        self.gpus[job] = gpu
        self.free[gpu] -= self._instance.sizes[job]
        self.weight[gpu] += self._instance.weights[job]

    def plan(self) -> PrismPlacementPlan:
        return PrismPlacementPlan(gpus=self.gpus)


class _Divisions:
    """A plan, of which the models of two GPUs are divided anew between them.

    Attributes
    ----------
    gpus : (n,) int
    pressures : (m,) float
    """

    def __init__(self, instance: PrismPlacement, plan: PrismPlacementPlan) -> None:
        self._instance = instance
        self.gpus = plan.gpus.copy()
        self.pressures = instance.pressures(plan)

    @property
    def greatest(self) -> float:
        return float(self.pressures.max())

    def divide(self, one: int, other: int, limit: float = math.inf, rng: np.random.Generator | None = None) -> bool:
        """Divide the models of two GPUs in the best way, or in one drawn of those below a limit; return if it did."""
        instance = self._instance
        models = np.flatnonzero((self.gpus == one) | (self.gpus == other))
        if not len(models):
            return False
        # (k, d): whether each model is on the first of the two, in each division.
        sides = _all_sides(len(models)) if len(models) <= MOST_SPLIT else _near_sides(self.gpus[models] == one)
        own = np.array([instance.sizes[models], instance.weights[models]])
        none = np.zeros_like(own)
        held = _sums(sides, np.concatenate([own, none]), np.concatenate([none, own]))
        first, second = self._after(one, *held[:2]), self._after(other, *held[2:])
        worst = np.maximum(first, second)
        if math.isfinite(instance.move_limit):
            others = instance.moved(PrismPlacementPlan(gpus=self.gpus))
            others[models] = False
            moved = _sums(sides, _away(instance, models, one), _away(instance, models, other))
            worst = np.where(float(instance.sizes[others].sum()) + moved <= instance.move_limit, worst, np.inf)
        if rng is None:
            number = int(worst.argmin())
            if not worst[number] < max(self.pressures[one], self.pressures[other]) * (1 - GAIN):
                return False
        else:
            able = np.flatnonzero(worst < limit)
            if not able.size:
                return False
            if math.isfinite(instance.move_limit) and rng.random() < HOME:
                able = able[moved[able] <= moved[able].min()]
            number = int(able[rng.integers(len(able))])
        self.gpus[models] = np.where(sides[:, number], one, other)
        self.pressures[one], self.pressures[other] = first[number], second[number]
        return True

    def _after(self, gpu: int, taken: FloatArray, weight: FloatArray) -> FloatArray:
        """(d,) float: the pressure of a GPU in each division; infinite where it has no room."""
        left = self._instance.memory[gpu] - taken
        after: FloatArray = np.divide(weight, left, out=np.full(len(left), np.inf), where=left > 0)
        return after


@functools.cache
def _all_sides(count: int) -> BoolArray:
    """(k, 2^k) bool: all divisions of so many models."""
    sides: BoolArray = (np.arange(2**count) >> np.arange(count)[:, None]) & 1 == 1
    sides.setflags(write=False)
    return sides


def _near_sides(now: BoolArray) -> BoolArray:
    """(k, d) bool: divisions after the move of one model, or an exchange of two."""
    ones, others = np.flatnonzero(now), np.flatnonzero(~now)
    changed = [[job] for job in range(len(now))] + [[one, other] for one in ones for other in others]
    sides = np.tile(now[:, None], len(changed))
    for number, jobs in enumerate(changed):
        sides[jobs, number] ^= True
    return sides


def _away(instance: PrismPlacement, models: IntArray, gpu: int) -> FloatArray:
    """(k,) float: what of each model is moved where it is on a GPU, GB."""
    moved = (instance.current[models] >= 0) & (instance.current[models] != gpu)
    away: FloatArray = np.where(moved, instance.sizes[models], 0.0)
    return away


def _sums(sides: BoolArray, on: FloatArray, off: FloatArray) -> FloatArray:
    """(..., d) float: what the models add up to, (..., k) ``on`` those on the first GPU and ``off`` the others."""
    sums: FloatArray = np.add.reduce(np.where(sides, on[..., None], off[..., None]), axis=-2)
    return sums
