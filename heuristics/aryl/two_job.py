"""Fast methods for :class:`instances.aryl.two_job.ArylTwoJob`."""

from __future__ import annotations

import math

from instances.aryl.two_job import ArylTwoJob, ArylTwoJobPlan

__all__ = ["best_breakpoint", "closed_form"]


def closed_form(instance: ArylTwoJob) -> ArylTwoJobPlan | None:
    """Appendix C's rule: favour one job, and give it all that the bounds allow.

    The appendix asks for maxima that do not fit together, though each leaves a GPU free (its
    formula (2)).  With p the job of the smaller maximum, its rule is

    - p gets its maximum where that is at most half of all GPUs;
    - otherwise the job of the smaller workload gets its maximum.

    When job f completes first and the other, s, grows to its maximum M_s, the two completion times
    add up to

        (W_f / x_f) * (2 - num_gpus / M_s) + (W_f + W_s) / M_s.

    (cf. formula (7)), which falls in x_f where M_s is more than half of all GPUs and rises where it
    is less; and for maxima above half of all GPUs the sums for favouring one job and the other differ
    by (W_0 - W_1) * (M_0 + M_1 - num_gpus) / (M_0 * M_1).

    Equal workloads go to job 0, which the appendix leaves open.  Outside of formula (2) the rule is
    applied as it stands, with maxima of at most all GPUs.  It does not look at the minima: where the
    other job's keeps the favoured one from its maximum, the favoured one gets what is left, and the
    plan may not be the best.  None where both minima do not fit.

    Guarantee: optimal when the favoured job gets its maximum; none known otherwise.
    Complexity: O(1).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), Appendix C, formulas (2) and (7) to (9) and the summary after them.
    """
    most = [min(int(m), instance.num_gpus) for m in instance.max_gpus]
    if 2 * min(most) <= instance.num_gpus:
        favoured = most.index(min(most))
    else:
        favoured = 0 if instance.workloads[0] <= instance.workloads[1] else 1
    splits = instance.splits
    if not splits:
        return None
    return instance.split(splits[-1] if favoured == 0 else splits[0])


def best_breakpoint(instance: ArylTwoJob) -> ArylTwoJobPlan | None:
    """Return the best of the splits between which the average is monotone: the bounds, and where both jobs complete.

    As long as the same job f completes first, on x_f of the U GPUs in use, and the other then grows to its maximum
    M_s, the completion times add up to

        (W_f / x_f) * (2 - U / M_s) + (W_f + W_s) / M_s,

    whose first factor alone depends on the split.  So the least is at an end of the splits, or beside the split at
    which both would complete at once, where job 0 has the part W_0 / (W_0 + W_1) of the GPUs.  Ties go to the fewest
    GPUs of job 0.  None where both minima do not fit.

    Guarantee: optimal.  Complexity: O(1).

    References
    ----------
    None: the library's own, from the sum of Aryl (EuroSys'23 as Lyra), Appendix C, formula (7), with bounds.
    """
    splits = instance.splits
    if not splits:
        return None
    first, second = (instance.workloads / max(instance.workloads.max(), math.ulp(0.0))).tolist()
    together = math.floor(instance.used_gpus * first / ((first + second) or 1.0))
    # One more on either side, for the rounding of the quotient.
    beside = [gpus for gpus in range(together - 1, together + 3) if gpus in splits]
    return min((instance.split(gpus) for gpus in sorted({splits[0], *beside, splits[-1]})), key=instance.objective)
