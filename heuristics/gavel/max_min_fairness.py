"""Fast methods for :class:`instances.gavel.max_min_fairness.MaxMinFairness`.

Beside the allocations that every policy of Gavel is compared with, one that comes as close to the
optimum as is asked of it, and proves it; and the approximations of Soroush (NSDI'24).
"""

from __future__ import annotations

import math
from itertools import cycle

import numpy as np

from heuristics.gavel.binning import Maximize, binned
from heuristics.gavel.levels import EPSILON, RAISED, LevelProgram, Levels, checked
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from heuristics.gavel.waterfilling import filled, refilled
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation
from instances.schema import FloatArray, declarations

__all__ = [
    "COLUMN_STEP",
    "FARTHEST",
    "FLOOR",
    "PRICE_STEP",
    "STEADIER",
    "adaptive_waterfiller",
    "approximate_waterfiller",
    "equal_share",
    "geometric_binner",
    "heterogeneity_agnostic",
    "interior_point",
    "isolated",
    "matched_packing",
    "multiplicative_weights",
    "random_packing",
]

COLUMN_STEP, PRICE_STEP = 0.15, 1.0
"""Relative steps of the columns and the prices; with a product much above 0.2 they spiral."""
STEADIER = 0.7
"""Factor on both steps after an epoch that has brought value and bound no closer."""
FLOOR = 1e-30
"""Least weight of a row or column: what has vanished must be able to return."""
FARTHEST = 900
"""Powers of two between what jobs reach; those farther apart count as so far."""


def multiplicative_weights(instance: MaxMinFairness, *, epsilon: float = 0.05) -> Allocation:
    """Solve a packing and covering program by multiplicative weights, to within ``epsilon``.

    The program is  max level  subject to  C x >= level  (one covering row per job)  and
    P x <= 1  (one packing row per job's time and per pool), over columns x = X[r, j] >= 0.  Any
    prices z of the covering rows and y of the packing rows prove that no level exceeds

        max_j (z' C)_j / (y' P)_j  *  sum(y) / sum(z),

    and any x, scaled to fill its tightest packing row, attains  min(C x) / max(P x).  Rows and
    columns all keep a weight that is multiplied, in every step, by the exponential of a small
    multiple of its advantage: a column's price is compared with what it covers, a packing row's
    price rises with its load, a covering row's falls with its level.  Each takes its advantage
    twice and the previous one back (optimism), which lets the averages converge at a rate of
    1 / steps instead of its root.  What a column covers is measured against a guess of the level:
    in turn the mean of value and bound, the value, which leads to a better one or to its proof,
    and the bound, which leads to the opposite.  Epochs of doubling length start from the averages
    of the last; the steps become smaller when an epoch gains nothing.

    A job that alone would reach far more than the job that reaches least gets a greater weight here, so that
    levels stay comparable whatever the weights.  With a factor of n / d left between the two it needs d / n of
    the time for the least one's best; all such jobs together cost at most a part d of the optimum.

    Where a job can have no level, the optimum is 0, and the isolated share is returned.

    Guarantee: value >= (1 - epsilon) * optimum, on every instance: it returns only when its own
    prices prove it.  Complexity: O((n + q) * k) per step, in O(log(n k) / epsilon) steps where the
    steps stay as large as they start; no bound is known where they must shrink.

    Parameters
    ----------
    instance : MaxMinFairness
    epsilon : float
        Less than 1, and at least 1e-9: rounding would keep a smaller one from being proven.

    Raises
    ------
    ValueError
        When ``epsilon`` is not such a number.

    References
    ----------
    Plotkin, Shmoys, Tardos, "Fast approximation algorithms for fractional packing and covering
    problems" (1995); Arora, Hazan, Kale, "The multiplicative weights update method" (2012);
    Rakhlin and Sridharan, "Optimization, learning, and games with predictable sequences" (2013).
    """
    if not 1e-9 <= epsilon < 1:
        raise ValueError(f"epsilon: got {epsilon!r}, must be at least 1e-9 and less than 1")
    if not (instance.level_per_throughput > 0).all() or not instance.num_jobs:
        return instance.isolated_share()
    n, lost = instance.num_jobs, RAISED * epsilon
    reach = _reach(instance)
    raised = np.minimum(reach, n / lost)
    program = LevelProgram.of(instance, raised)
    enough = 1 - epsilon if (raised == reach).all() else (1 - epsilon) / (1 - lost)
    p = program.num_pools
    flat = np.concatenate([np.full(n, 0.5 / n), np.full(p, 0.5 / p)])
    y, z = flat, np.full(n, 1 / n)
    x = 1 / program.prices(y)
    x /= np.append(program.cover(x), 1.0)[program.first]
    best, value, bound = x, program.value(x), program.bound(y, z)
    column_step, price_step, length = COLUMN_STEP, PRICE_STEP, 50
    for share in cycle((0.5, 1.0, 0.0)):
        level = value**share * bound ** (1 - share)
        before = bound / value
        sums = np.zeros_like(x), np.zeros_like(y), np.zeros_like(z)
        last: tuple[FloatArray, FloatArray, FloatArray] | None = None
        for step in range(1, length + 1):
            load = program.load(x)
            x, load = x / load.max(), load / load.max()
            for total, weights in zip(sums, (x, y, z), strict=True):
                total += weights
            if step % 10 == 0:
                for point, packing, covering in ((x, y, z), sums):
                    attained = program.value(point)
                    if attained > value:
                        best, value = point.copy(), attained
                    # Where prices vanish their ratio says little: a small price on every row, at a
                    # tenth of what may be lost, keeps the bound sharp.
                    safe = packing / packing.sum() + 0.1 * epsilon * flat
                    bound = min(bound, program.bound(safe, covering))
                if value >= enough * bound:
                    return program.allocation(best / program.load(best).max())
            advantage = (
                program.worths(z) / (level * program.prices(y)) - 1,
                load,
                # A job that has twice the level has enough; how much more does not matter.
                -np.minimum(program.cover(x) / level, 2.0),
            )
            dx, dy, dz = (2 * now - then for now, then in zip(advantage, last or advantage, strict=True))
            last = advantage
            x = np.maximum(x * np.exp(np.clip(column_step * dx, -1, 1)), FLOOR)
            y = _normalized(y * np.exp(price_step * dy))
            z = _normalized(z * np.exp(price_step * dz))
        x, y, z = sums[0] / length, _normalized(sums[1]), _normalized(sums[2])
        length *= 2
        if math.log(bound / value) > 0.9 * math.log(before):
            column_step, price_step = STEADIER * column_step, STEADIER * price_step
    raise AssertionError  # the loop above never ends by itself


def interior_point(instance: MaxMinFairness, *, epsilon: float = EPSILON) -> Allocation:
    """Find the greatest level by an interior-point method (:mod:`heuristics.gavel.levels`), to within ``epsilon``.

    Of more than ``GROUP`` jobs it has the pairs within groups of jobs only.  Nearly every job gets a little time on
    each type where it runs.

    Guarantee: never worse than :func:`isolated`.  Without pairs, or with at most ``GROUP`` jobs, value >= (1 -
    epsilon) * optimum, unless its steps end before its prices prove it.  Complexity: O((n + q) * k + n * p**2), and
    with pairs O(n * GROUP**2) besides, for each of at most ``STEPS`` steps.

    Parameters
    ----------
    instance : MaxMinFairness
    epsilon : float
        At least 1e-5, and less than 0.1.

    Raises
    ------
    ValueError
        When ``epsilon`` is not such a number.

    References
    ----------
    Mehrotra, "On the implementation of a primal-dual interior point method" (1992); the groups are ours.
    """
    checked(epsilon)
    share = instance.isolated_share()
    if not (instance.level_per_throughput > 0).all() or not instance.num_jobs:
        return share
    found = Levels(instance).attain(1 / _reach(instance) * instance.greatest_throughputs, epsilon).allocation
    return max(share, found, key=instance.objective)


def approximate_waterfiller(instance: MaxMinFairness) -> Allocation:
    """Soroush's approximate water filling: worker time by weight, split evenly over the types of each job.

    The parts of all jobs, one for each type that a job can use, rise together, each at its share of the job's
    weight; a part stops when its pool is full, all parts of a job when its time is over.  Pairs are not used.

    Guarantee: for this split, the parts' worker times over weight are max-min fair; none known on levels.
    Complexity: O(p * n * (k + log n)).

    References
    ----------
    Namyar et al., "Solving Max-Min Fair Resource Allocations Quickly on Large Graphs" (NSDI'24), section 3.
    """
    return filled(_one_entity(instance))


def adaptive_waterfiller(instance: MaxMinFairness, *, passes: int = 10) -> Allocation:
    """Soroush's adaptive water filling: passes of :func:`approximate_waterfiller`, each with a better split.

    After a pass, each job's split is what its throughput is made of; types on which it is slow, or hardly runs,
    fade.  Pairs are not used.

    Guarantee: where a pass leaves the split as it was, the parts' worker times over weight are max-min fair for
    a split that agrees with itself; passes need not come to that, and none is known on levels: more passes may
    be worse.  Complexity: that of :func:`approximate_waterfiller` for each pass.

    Parameters
    ----------
    instance : MaxMinFairness
    passes : int
        At least 1, which is :func:`approximate_waterfiller`.

    Raises
    ------
    ValueError
        When ``passes`` is less than 1.

    References
    ----------
    Namyar et al. (NSDI'24), section 3.
    """
    return refilled(_one_entity(instance), passes)


def geometric_binner(
    instance: MaxMinFairness, solve: Maximize, *, alpha: float = 2.0, least_worth: float = 1e-8
) -> Allocation:
    """Soroush's geometric binner: one linear program, in which levels count less the higher the bin that they are in.

    The first bin ends at the least level of X_isolated, each further end is ``alpha`` times as high.  A level in
    bin b is worth ``epsilon ** b``, the last bin ``least_worth``.

    Guarantee: with E the highest end of a bin that is not above the optimum, which makes E at least the optimum
    over ``alpha``, all that levels fall short of E, added up, is at most ``epsilon`` times all that levels exceed
    it, added up; so the least level approaches E as ``epsilon`` goes to 0.  Complexity: that of a linear program of
    (n + q) * k + n * b columns and 2 * n + p rows, with b bins.

    Parameters
    ----------
    instance : MaxMinFairness
    solve : callable
        What solves a linear program (:data:`heuristics.gavel.binning.Maximize`); this library's room of
        heuristics has nothing of the kind.
    alpha : float
        Above 1.
    least_worth : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        When ``alpha`` or ``least_worth`` is out of range.

    References
    ----------
    Namyar et al. (NSDI'24), section 3.
    """
    return binned(_one_entity(instance), solve, alpha, least_worth)


def _one_entity(instance: MaxMinFairness) -> HierarchicalFairness:
    """Return the same jobs as those of one entity."""
    return HierarchicalFairness(**{name: getattr(instance, name) for name in declarations(MaxMinFairness)})


def _reach(instance: MaxMinFairness) -> FloatArray:
    """(n,) float: the level of each job alone in its best column all the time, over the least of these."""
    # By mantissas and exponents, because such quotients can be beyond all floats.
    greatest, equal, weights = map(
        np.frexp, (instance.greatest_throughputs, instance.equal_share_throughputs, instance.weights)
    )
    exponent = greatest[1] - equal[1] - weights[1]
    mantissa = instance.scale_factors * greatest[0] / (equal[0] * weights[0])
    reach = np.ldexp(mantissa, np.minimum(exponent - exponent.min(), FARTHEST))
    return np.asarray(reach / reach.min())


def _normalized(weights: FloatArray) -> FloatArray:
    normalized: FloatArray = np.maximum(weights / weights.sum(), FLOOR)
    return normalized
