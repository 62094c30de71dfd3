"""AFS's formulas for two jobs and one free GPU, and the rule that they give.

Let a be the shorter of the two jobs of a :class:`instances.afs.two_job.AfsTwoJob` at their present
shares and b the longer, w their work, p and p' their throughputs without and with the GPU.  The
average completion time is

    if a receives it:    (1/2) * (2 * w_a / p'_a + (w_b - p_b * w_a / p'_a) / p'_b)             (1)
    if b receives it:    (1/2) * (w_a / p_a + w_b / p'_b)                                       (2)

and so b should have it if

    (p'_b - p_b) / p'_b  >  (p'_a - p_a) / p_a.                                                 (3)

(1) holds always.  (2), and with it (3), take for granted that a completes first even when b has the
GPU, ``w_a / p_a <= w_b / p'_b``; where b overtakes a, (2) is too large, and (3) can choose wrongly.
"""

from __future__ import annotations

from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan

__all__ = ["jct_if_longer_receives", "jct_if_shorter_receives", "longer_receives", "pairwise_rule", "shorter_first"]


def jct_if_shorter_receives(instance: AfsTwoJob) -> float:
    """Formula (1): average completion time if the shorter job receives the GPU, s.

    References
    ----------
    AFS (NSDI'21), section 4.2.
    """
    w_a, _, p_a_more, w_b, p_b, p_b_more = _symbols(instance)
    first = w_a / p_a_more
    return (2 * first + (w_b - p_b * first) / p_b_more) / 2


def jct_if_longer_receives(instance: AfsTwoJob) -> float:
    """Formula (2): average completion time if the longer job receives the GPU, s.

    It holds if the shorter job still completes first.  If that job does not run at present, it
    waits for the GPU, and the formula's ``w_a / p_a`` is infinite.

    References
    ----------
    AFS (NSDI'21), section 4.2.
    """
    w_a, p_a, _, w_b, _, p_b_more = _symbols(instance)
    return (w_a / p_a + w_b / p_b_more) / 2 if p_a else float("inf")


def longer_receives(instance: AfsTwoJob) -> bool:
    """Formula (3): whether the longer job should receive the GPU.

    False if neither job runs at present, as Algorithm 1 gives the first GPU to the shorter job.

    References
    ----------
    AFS (NSDI'21), section 4.2 and Algorithm 1.
    """
    _, p_a, p_a_more, _, p_b, p_b_more = _symbols(instance)
    return p_a > 0 and (p_b_more - p_b) / p_b_more > (p_a_more - p_a) / p_a


def pairwise_rule(instance: AfsTwoJob) -> AfsTwoJobPlan:
    """AFS-L's choice: the receiver that formula (3) names.

    Guarantee: optimal if the shorter job completes first whoever receives the GPU, that is, if
    ``w_a / p_a <= w_b / p'_b``; none known otherwise.  Complexity: O(1).

    References
    ----------
    AFS (NSDI'21), section 4.2 and Algorithm 1.
    """
    shorter = instance.shorter
    return AfsTwoJobPlan(receiver=1 - shorter if longer_receives(instance) else shorter)


def shorter_first(instance: AfsTwoJob) -> AfsTwoJobPlan:
    """The shorter job at the present shares, as SRTF would have it.

    Guarantee: none known.  Complexity: O(1).

    References
    ----------
    AFS (NSDI'21), section 3.
    """
    return AfsTwoJobPlan(receiver=instance.shorter)


def _symbols(instance: AfsTwoJob) -> tuple[float, float, float, float, float, float]:
    """w_a, p_a, p'_a, w_b, p_b, p'_b."""
    a = instance.shorter
    w, p = instance.work.tolist(), instance.throughputs.tolist()
    return w[a], *p[a], w[1 - a], *p[1 - a]
