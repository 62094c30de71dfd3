"""Fast methods for :class:`instances.elasticflow.admission.Admission`.

All decide job by job, in order of arrival, and never take a decision back; none has a known
guarantee on the number of jobs.  Ties between deadlines go to the lowest job.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from heuristics.elasticflow.filling import ROUNDING, fill_job, fill_jobs, needs, run_by_deadline, run_elastically
from instances.elasticflow.admission import Admission, AdmissionPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = [
    "edf",
    "edf_condition",
    "edf_with_admission",
    "edf_with_elastic_scaling",
    "gpu_times",
    "meets_edf_condition",
    "progressive_filling",
]


def progressive_filling(instance: Admission, *, powers_of_two: bool = False) -> AdmissionPlan:
    """Admit jobs as the paper does: each one if Algorithm 1 finds a plan with it.

    Guarantee: none known; it can turn away jobs that could be admitted beside those before them.
    Complexity: O(n^2 (log n + G + h)).

    Parameters
    ----------
    instance : Admission
    powers_of_two : bool
        Let jobs run on powers of two only, as the system does.

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.1, Algorithm 1.
    """
    fill = partial(fill_job, powers_of_two=powers_of_two)
    return _one_at_a_time(instance, lambda jobs: fill_jobs(instance, jobs, fill))


def edf_condition(instance: Admission) -> AdmissionPlan:
    """Admit each job with which Theorem 1's condition holds; the plan is filled by deadline.

    For linear curves, T_i(x) = k_i x, the theorem says that jobs can meet their deadlines if, for
    each, the GPU time M_j / k_j of the jobs due by then fits into the cluster; k_j is taken as
    T_j(1).  GPUs are handed out in whole slots, so GPU times are rounded up (the printed condition
    promises too much there).

    Guarantee: on linear curves its plans are feasible, and it turns away no job that could be
    admitted beside those before it.  On other curves jobs can miss their deadlines.
    Complexity: O(n^2 log n + n h).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.1, Theorem 1.
    """
    gpu_time = np.ceil(gpu_times(instance) * (1 - ROUNDING))

    def plan(jobs: IntArray) -> IntArray | None:
        if not meets_edf_condition(gpu_time[jobs], instance.deadlines[jobs], instance.num_gpus):
            return None
        gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
        slot_ends = instance.num_gpus * np.arange(1, instance.horizon + 1)
        taken = 0
        for job in jobs[np.argsort(instance.deadlines[jobs], kind="stable")]:
            end = taken + int(gpu_time[job])
            gpus[job] = np.diff(np.clip(slot_ends, taken, end), prepend=taken)
            taken = end
        return gpus

    return _one_at_a_time(instance, plan)


def edf(instance: Admission) -> AdmissionPlan:
    """Earliest deadline first without admission control: jobs that finish in time count as admitted.

    Late jobs take GPUs, too, until their deadlines; the plan leaves them out.

    Guarantee: none.  Complexity: O(n log n + n (G + h)).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 6.1 (baseline EDF).
    """
    gpus = run_by_deadline(instance, np.arange(instance.num_jobs))
    admitted = _finished(instance, gpus)
    return AdmissionPlan(admitted=admitted, gpus=np.where(admitted[:, None], gpus, 0))


def edf_with_admission(instance: Admission) -> AdmissionPlan:
    """Admit each job with which earliest deadline first meets all deadlines.

    Guarantee: none known.  Complexity: O(n^2 (log n + G + h)).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 6.4, Figure 9 (EDF + Admission Control).
    """

    def plan(jobs: IntArray) -> IntArray | None:
        gpus = run_by_deadline(instance, jobs)
        return gpus if _finished(instance, gpus)[jobs].all() else None

    return _one_at_a_time(instance, plan)


def edf_with_elastic_scaling(instance: Admission) -> AdmissionPlan:
    """Earliest deadline first with elastic shares, without admission control; jobs that finish in time count.

    In order of deadline each job gets the GPUs with which Algorithm 1 lets it finish in time; one that
    finds none gets as many as do not slow it down, up to its deadline, and is late.

    The paper names the variant and does not say what it does with late jobs; that they keep their GPUs, as
    under EDF, is this library's reading.

    Guarantee: none.  Complexity: O(n log n + n (G + h)).

    References
    ----------
    ElasticFlow (ASPLOS'23), section 6.4, Figure 9 (EDF + Elastic Scaling).
    """
    gpus = run_elastically(instance)
    admitted = _finished(instance, gpus)
    return AdmissionPlan(admitted=admitted, gpus=np.where(admitted[:, None], gpus, 0))


def gpu_times(instance: Admission) -> FloatArray:
    """(n,) float: GPU-slots M_i / k_i of each job on one GPU; infinite if it cannot run there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        times = instance.iterations / instance.throughputs[:, 1:2].reshape(-1)
    return np.where(instance.iterations == 0, 0.0, times)


def meets_edf_condition(gpu_time: FloatArray, deadlines: IntArray, num_gpus: int) -> bool:
    """Theorem 1's condition: for each job, the GPU time of the jobs due by then fits in before.

    Parameters
    ----------
    gpu_time : (m,) float
        GPU-slots of each job.
    deadlines : (m,) int
        Slots that each job has.
    num_gpus : int
        GPUs of the cluster.

    References
    ----------
    ElasticFlow (ASPLOS'23), section 4.1, Theorem 1.
    """
    order = np.argsort(deadlines, kind="stable")
    return bool((np.cumsum(gpu_time[order]) * (1 - ROUNDING) <= num_gpus * deadlines[order]).all())


def _finished(instance: Admission, gpus: IntArray) -> BoolArray:
    finished: BoolArray = instance.work(gpus) >= needs(instance)
    return finished


def _one_at_a_time(instance: Admission, plan: Callable[[IntArray], IntArray | None]) -> AdmissionPlan:
    """Admit each job in order of arrival if ``plan`` finds GPUs for it and those before it."""
    admitted = np.zeros(instance.num_jobs, bool)
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    for job in instance.arrival_order:
        admitted[job] = True
        found = plan(np.flatnonzero(admitted))
        if found is None:
            admitted[job] = False
        else:
            gpus = found
    return AdmissionPlan(admitted=admitted, gpus=gpus)
