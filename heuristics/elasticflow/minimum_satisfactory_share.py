"""Fast methods for :class:`instances.elasticflow.minimum_satisfactory_share.MinimumSatisfactoryShare`."""

from __future__ import annotations

import numpy as np

from heuristics.elasticflow.filling import fill_jobs, run_by_deadline
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan

__all__ = ["edf", "progressive_filling"]


def progressive_filling(instance: MinimumSatisfactoryShare, *, powers_of_two: bool = False) -> SlotPlan | None:
    """Algorithm 1: jobs by deadline, each at the lowest level at which it finishes in time.

    A job of level j takes min(j, free GPUs) in each slot, from its deadline backwards, until its
    iterations are done.  Ties between deadlines go to the lowest job.

    Guarantee: none known.  It returns None when a job finds no level, which for concave curves can
    happen although there is a plan.  Complexity: O(n log n + n (G + h)).

    Parameters
    ----------
    instance : MinimumSatisfactoryShare
    powers_of_two : bool
        Let jobs run on powers of two only, as the system does; min() is then rounded down.

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.1, Algorithm 1.
    """
    gpus = fill_jobs(instance, np.arange(instance.num_jobs), powers_of_two=powers_of_two)
    return None if gpus is None else SlotPlan(gpus=gpus)


def edf(instance: MinimumSatisfactoryShare) -> SlotPlan:
    """Earliest deadline first: each job in turn takes all GPUs that make it faster, from slot 0 on.

    The baseline that Figure 3 argues against: more GPUs do less each, so later jobs starve.

    Guarantee: none; jobs may miss their deadlines, even where Algorithm 1 has a plan.
    Complexity: O(n log n + n (G log G + h)).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 3.2, Figure 3, and section 6 (baseline EDF).
    """
    return SlotPlan(gpus=run_by_deadline(instance, np.arange(instance.num_jobs)))
