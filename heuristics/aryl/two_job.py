"""A fast method for :class:`instances.aryl.two_job.ArylTwoJob`."""

from __future__ import annotations

from instances.aryl.two_job import ArylTwoJob, ArylTwoJobPlan

__all__ = ["closed_form"]


def closed_form(instance: ArylTwoJob) -> ArylTwoJobPlan:
    """Favour one job by a rule that needs no search, and give it all that the bounds allow.

    When job f completes first and the other, s, grows to its maximum M_s, the two completion times
    add up to

        (W_f / x_f) * (2 - num_gpus / M_s) + (W_f + W_s) / M_s.

    This falls in x_f where M_s is more than half of all GPUs and rises where it is less, so one of
    the jobs should start with its maximum:

    - a job whose maximum is at most half of all GPUs (what it does not get it cannot make up for);
      of two such jobs both get theirs;
    - otherwise the job of the smaller workload, because the sums for favouring one and the other
      differ by (W_0 - W_1) * (M_0 + M_1 - num_gpus) / (M_0 * M_1).

    Equal workloads go to job 0.  The rule looks at the maxima only: where the other job's minimum
    keeps the favoured one from its maximum, the plan is feasible but may not be the best.

    Guarantee: optimal when the favoured job gets its maximum; none known otherwise.
    Complexity: O(1).

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.1 and Appendix C: two jobs, linear scaling, the survivor at
    its maximum.  The rule above is derived from that setting, not copied from the appendix.
    """
    most = [min(int(m), instance.num_gpus) for m in instance.max_gpus]
    if 2 * min(most) <= instance.num_gpus:
        favoured = most.index(min(most))
    else:
        favoured = 0 if instance.workloads[0] <= instance.workloads[1] else 1
    splits = instance.splits
    return instance.split(splits[-1] if favoured == 0 else splits[0])
