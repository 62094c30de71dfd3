"""Fast methods for :class:`instances.elasticflow.admission.Admission`.

The paper's decide job by job, in order of arrival, and never take a decision back; :func:`local_search` looks at all
jobs.  None has a known guarantee on the number of jobs.  Ties between deadlines go to the lowest job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import numpy as np

from heuristics.elasticflow.filling import (
    ROUNDING,
    fill_fewest,
    fill_job,
    fill_jobs,
    needs,
    run_by_deadline,
    run_elastically,
)
from instances.elasticflow.admission import Admission, AdmissionPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = [
    "edf",
    "edf_condition",
    "edf_with_admission",
    "edf_with_elastic_scaling",
    "gpu_times",
    "local_search",
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


def local_search(instance: Admission, *, budget: int = 500) -> AdmissionPlan:
    """Admit the jobs of the fewest GPU-slots first; then turn one away wherever two others can be admitted for it.

    A job is admitted if it can be filled into the GPUs that the others leave; if not, if all can be filled anew in
    order of deadline, or in an order in which one that finds no level moves to the front, as in squeaky wheel
    optimization.  A job is filled as in Algorithm 1 or, where that takes fewer GPU-slots, with levels cleared.

    Guarantee: on concave curves, all jobs where Algorithm 1 serves all, and no job left out that could finish on the
    GPUs left; none known relative to the optimum.  Complexity: O(n (G + h)) for each job tried, and
    O(G + h) for each of the ``budget`` jobs filled anew.

    Parameters
    ----------
    instance : Admission
    budget : int
        Jobs that are filled anew, at most; with 0 each job is tried once, beside those before it.

    References
    ----------
    None for this problem: the smallest first with the exchanges of one job for two.  Orders: Joslin, Clements, Squeaky
    Wheel Optimization (Journal of Artificial Intelligence Research 10, 1999).
    """
    every, served = _Served(instance, 0), _Served(instance, budget)
    takes = [every.filled(job) for job in range(instance.num_jobs)]
    alone = np.array([np.inf if held is None else held.sum() for held in takes])
    order = [job for job in np.argsort(alone, kind="stable").tolist() if np.isfinite(alone[job])]
    if every.take(sorted(order, key=lambda job: instance.deadlines[job])) is None:
        return every.plan
    served.add(order)
    improved = True
    while improved and served.budget > 0:
        improved = False
        for out in sorted(served.order, key=lambda job: -alone[job]):
            tried = served.without(out)
            tried.add(job for job in order if job != out and job not in served.order)
            served.budget = tried.budget
            if len(tried.order) > len(served.order):
                served, improved = tried, True
                break
    for job in order:
        # Orders that came later may leave room for those that found none before.
        if job not in served.order:
            served.take([job])
    return served.plan


class _Served:
    """Jobs that are served, in the order in which they take GPUs, and what they leave.

    Parameters
    ----------
    instance : Admission
    budget : int
        Jobs that may be filled anew.
    """

    ORDERS = 4
    """In which all jobs are filled anew."""

    def __init__(self, instance: Admission, budget: int) -> None:
        self.instance, self.budget = instance, budget
        self.order: list[int] = []
        self.gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
        self.free = np.full(instance.horizon, instance.num_gpus)

    @property
    def plan(self) -> AdmissionPlan:
        """The plan that admits these jobs."""
        return AdmissionPlan(admitted=np.isin(np.arange(self.instance.num_jobs), self.order), gpus=self.gpus)

    def without(self, job: int) -> _Served:
        """Return the same without a job, whose GPUs are free."""
        other = _Served(self.instance, self.budget)
        other.order = [one for one in self.order if one != job]
        other.gpus, other.free = self.gpus.copy(), self.free + self.gpus[job]
        other.gpus[job] = 0
        return other

    def add(self, jobs: Iterable[int]) -> None:
        """Add each of the jobs that can be served beside the others."""
        for job in jobs:
            if self.take([job]) is not None:
                self._add_by_new_order(job)

    def _add_by_new_order(self, job: int) -> None:
        order = sorted([*self.order, job], key=lambda one: (self.instance.deadlines[one], one))
        for _ in range(self.ORDERS):
            if self.budget <= 0:
                return
            anew = _Served(self.instance, 0)
            short = anew.take(order)
            self.budget -= len(anew.order) + 1
            if short is None:
                self.order, self.gpus, self.free = anew.order, anew.gpus, anew.free
                return
            order = [short, *(one for one in order if one != short)]

    def take(self, jobs: Sequence[int]) -> int | None:
        """Let jobs take GPUs, one after the other; return the first that finds too few, if any does."""
        for job in jobs:
            held = self.filled(job)
            if held is None:
                return job
            self.order.append(job)
            self.gpus[job, : len(held)] = held
            self.free[: len(held)] -= held
        return None

    def filled(self, job: int) -> IntArray | None:
        """Return the GPUs that a job takes of those that are free, in each slot; None where they are too few."""
        return fill_fewest(self.instance, job, self.free[: self.instance.deadlines[job]])


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
