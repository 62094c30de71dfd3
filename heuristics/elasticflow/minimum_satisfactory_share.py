"""Fast methods for :class:`instances.elasticflow.minimum_satisfactory_share.MinimumSatisfactoryShare`."""

from __future__ import annotations

from functools import partial

import numpy as np

from heuristics.elasticflow.filling import fill_job, fill_job_cleared, fill_jobs, run_by_deadline
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan

__all__ = ["edf", "progressive_filling", "progressive_filling_cleared"]


def progressive_filling(instance: MinimumSatisfactoryShare, *, powers_of_two: bool = False) -> SlotPlan | None:
    """Algorithm 1: jobs by deadline, each raised level by level until it finishes in time.

    At level j slots are set to min(j, free GPUs), from the deadline backwards, and keep what the level
    before gave them until they are; the job stops as soon as all its slots do its iterations
    (:func:`heuristics.elasticflow.filling.fill_job`).  Ties between deadlines go to the lowest job.

    Guarantee: on concave curves each job holds the fewest GPU-slots that do with what the jobs before
    it have left.  On linear curves it finds a plan of the least GPU time whenever there is one.  On
    others it returns None when a job finds no level, which can happen although there is a plan, and
    none is known on the GPU time of all jobs.  Complexity: O(n log n + n (G + h)).

    Parameters
    ----------
    instance : MinimumSatisfactoryShare
    powers_of_two : bool
        Let jobs run on powers of two only, as the system does; min() is then rounded down.

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.1, Algorithm 1.
    """
    gpus = fill_jobs(instance, np.arange(instance.num_jobs), partial(fill_job, powers_of_two=powers_of_two))
    return None if gpus is None else SlotPlan(gpus=gpus)


def progressive_filling_cleared(instance: MinimumSatisfactoryShare) -> SlotPlan | None:
    """:func:`progressive_filling` with a job's slots cleared before every level (ours).

    A job holds min(j, free GPUs) of one level j in each slot that it uses.  That is one number of GPUs
    where it has the cluster to itself, but more of them, and fewer plans, than as printed.

    Guarantee: none known; None as :func:`progressive_filling`.  Complexity: O(n log n + n (G + h)).
    """
    gpus = fill_jobs(instance, np.arange(instance.num_jobs), fill_job_cleared)
    return None if gpus is None else SlotPlan(gpus=gpus)


def edf(instance: MinimumSatisfactoryShare) -> SlotPlan:
    """Earliest deadline first: each job in turn takes as many GPUs as do not slow it down, from slot 0 on.

    The baseline that Figure 3 argues against: more GPUs do less each, so later jobs starve.

    Guarantee: none; jobs may miss their deadlines, even where Algorithm 1 has a plan.
    Complexity: O(n log n + n (G + h)).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 3.2, Figure 3, and section 6.1 (baseline EDF).
    """
    return SlotPlan(gpus=run_by_deadline(instance, np.arange(instance.num_jobs)))
