"""AFS's formulas for two jobs and one free GPU, and the rules that they give.

Let a be the shorter of the two jobs of a :class:`instances.afs.two_job.AfsTwoJob` at their present
shares and b the longer, w their work, p and p' their throughputs without and with the GPU in slot 1,
and p'_2 those in slot 2, when the other is done.  In case (a), a receives the GPU; in the cases (b), b
does, and a completes first (b1), or b (b2: ``w_b / p'_b <= w_a / p_a``).  Average completion times differ by

    (a) less (b1):  w_a/p'_a - w_a/p_a + w_a/(2 p'_b2) * (p'_b/p_a - p_b/p'_a)                  (1)
    (a) less (b2):  w_a/p'_a - w_b/p'_b + p_b/(2 p'_b2) * (w_b/p_b - w_a/p'_a)
                                        - p_a/(2 p'_a2) * (w_a/p_a - w_b/p'_b)                  (2)

so b should have the GPU where the difference is positive.  The AFS assumption, ``p'_a2 = p_a`` and
``p'_b2 = p'_b``, makes both positive exactly where

    (p'_b - p_b) / p'_b  >  (p'_a - p_a) / p_a.                                                 (3)
"""

from __future__ import annotations

from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan

__all__ = ["exact_rule", "formula_1", "formula_2", "longer_receives", "pairwise_rule", "shorter_first"]


def formula_1(instance: AfsTwoJob) -> float:
    """Evaluate formula (1): the fall of average completion time if b receives the GPU and a completes first, s.

    Infinite, and negative, where a does not run at present, as it does not complete first then.

    References
    ----------
    AFS (NSDI'21), section 3.2.
    """
    w_a, p_a, p_a_more, _, p_b, p_b_more = _symbols(instance)
    if not w_a:
        return 0.0
    if not p_a:
        return -float("inf")
    p_b_2 = float(instance.left_alone[1 - instance.shorter])
    return w_a / p_a_more - w_a / p_a + w_a / (2 * p_b_2) * (p_b_more / p_a - p_b / p_a_more)


def formula_2(instance: AfsTwoJob) -> float:
    """Evaluate formula (2): the fall of average completion time if b receives the GPU and completes first, s.

    The brackets are multiplied out, so that jobs may not run at present.

    References
    ----------
    AFS (NSDI'21), section 3.2.
    """
    w_a, p_a, p_a_more, w_b, p_b, p_b_more = _symbols(instance)
    a = instance.shorter
    p_a_2, p_b_2 = float(instance.left_alone[a]), float(instance.left_alone[1 - a])
    if_a = (w_b - p_b * w_a / p_a_more) / (2 * p_b_2)
    if_b = (w_a - p_a * w_b / p_b_more) / (2 * p_a_2)
    return w_a / p_a_more - w_b / p_b_more + if_a - if_b


def longer_receives(instance: AfsTwoJob) -> bool:
    """Tell by formula (3) whether the longer job should receive the GPU.

    False if the shorter job does not run at present, as Algorithm 1 gives the first GPU to the shorter of
    two without any.

    References
    ----------
    AFS (NSDI'21), section 3.2 and Algorithm 1.
    """
    _, p_a, p_a_more, _, p_b, p_b_more = _symbols(instance)
    return p_a > 0 and p_b_more > 0 and (p_b_more - p_b) / p_b_more > (p_a_more - p_a) / p_a


def exact_rule(instance: AfsTwoJob) -> AfsTwoJobPlan:
    """Choose the receiver that formulas (1) and (2) name: the longer job where that which applies is positive.

    Guarantee: optimal.  Complexity: O(1).

    References
    ----------
    AFS (NSDI'21), section 3.2.
    """
    a = instance.shorter
    w_a, p_a, p_a_more, w_b, _, p_b_more = _symbols(instance)
    if not (w_a and w_b and p_a_more and p_b_more):
        # A job that is done, or that the GPU does not make run, is nothing that the formulas are about.
        worth = [instance.objective(AfsTwoJobPlan(receiver=job)) for job in (a, 1 - a)]
        return AfsTwoJobPlan(receiver=a if worth[0] <= worth[1] else 1 - a)
    difference = formula_1(instance) if w_a * p_b_more < w_b * p_a else formula_2(instance)
    return AfsTwoJobPlan(receiver=1 - a if difference > 0 else a)


def pairwise_rule(instance: AfsTwoJob) -> AfsTwoJobPlan:
    """AFS-L's choice: the receiver that formula (3) names.

    Guarantee: optimal under the AFS assumption (``instance.apathetic()``); otherwise none known.
    Complexity: O(1).

    References
    ----------
    AFS (NSDI'21), section 3.2 and Algorithm 1.
    """
    shorter = instance.shorter
    return AfsTwoJobPlan(receiver=1 - shorter if longer_receives(instance) else shorter)


def shorter_first(instance: AfsTwoJob) -> AfsTwoJobPlan:
    """Choose the shorter job at the present shares, as SRTF would have it.

    Guarantee: none known.  Complexity: O(1).

    References
    ----------
    AFS (NSDI'21), section 2.2.
    """
    return AfsTwoJobPlan(receiver=instance.shorter)


def _symbols(instance: AfsTwoJob) -> tuple[float, float, float, float, float, float]:
    """w_a, p_a, p'_a, w_b, p_b, p'_b."""
    a = instance.shorter
    w, p = instance.work.tolist(), instance.throughputs.tolist()
    return w[a], *p[a], w[1 - a], *p[1 - a]
