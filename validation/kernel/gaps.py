"""What a gap is: how far a heuristic's value lies from the optimum, as far as that is known.

For an instance whose optimum v* is proven, the gap of a feasible value v is ``|v - v*| / |v*|``.
Where optimality was not proven, v* lies between the bound and the best feasible value that any
algorithm found, and the gap is an interval: that of its values for all v* there.  Between two
numbers of one sign its ends are the gaps to the best value and to the bound; where v* may lie on either side
of 0 it has no upper end.  Of an optimum of 0 the gap is infinite however near a plan is to it: there the difference,
``|v - v*|`` in the measure of the values, says more.  A value that beats a proven bound is never a
negative gap: it means that a model, a bound or a judge is wrong, and is reported as an oracle
disagreement.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from instances.base import agree

__all__ = ["ENOUGH", "beats", "difference_interval", "gap_interval", "gap_to", "percentile_95"]

ENOUGH = 20
"""Gaps from which on a 95th percentile can be another than the worst."""


def gap_to(value: float, reference: float) -> float:
    """``|value - reference| / |reference|``: 0 when they agree, infinite for a reference of 0."""
    if agree(value, reference):
        return 0.0
    if reference == 0 or math.isinf(reference):
        return math.inf
    return abs(value - reference) / abs(reference)


def gap_interval(value: float, best: float, bound: float) -> tuple[float, float]:
    """Least and greatest gap of ``value``, when the optimum is between ``best`` and ``bound``.

    Parameters
    ----------
    value : float
        Of a feasible plan.
    best : float
        Best feasible value known, ``value`` included.
    bound : float
        Proven bound; equal to ``best`` when the optimum is proven.
    """
    to_best, to_bound = gap_to(value, best), gap_to(value, bound)
    # Toward an optimum without end the gap tends to 1.
    low = min(to_best, 1.0 if math.isinf(bound) else to_bound)
    either_side = min(best, bound) < 0 < max(best, bound)
    return low, math.inf if either_side else max(to_best, to_bound)


def difference_interval(value: float, best: float, bound: float) -> tuple[float, float]:
    """Least and greatest ``|value - optimum|``; the parameters are those of :func:`gap_interval`."""
    low = 0.0 if agree(value, best) else abs(value - best)
    return low, max(low, 0.0 if agree(value, bound) else abs(value - bound))


def percentile_95(gaps: NDArray[np.float64]) -> float:
    """Return the least gap that at least 95% do not exceed; NaN of fewer than ``ENOUGH``, of which it is the worst."""
    return float(np.quantile(gaps, 0.95, method="inverted_cdf")) if len(gaps) >= ENOUGH else math.nan


def beats(sense: str, value: float, bound: float) -> bool:
    """Return whether ``value`` is better than ``bound`` beyond the tolerance, which no feasible plan can be."""
    better = value < bound if sense == "min" else value > bound
    return better and not agree(value, bound)
