"""Entry of elasticflow.admission: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heuristics.elasticflow import admission as fast
from instances.elasticflow.admission import Admission, AdmissionPlan, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, Holds, optimum
from validation.problems.elasticflow.sharing import WIDE, by_deadline, deadline_jobs, least_levels, linear, one_more_gpu
from validation.testing import st

__all__ = ["ENTRY", "strategy"]

TAKES_CURVES_FOR_LINEAR = "Theorem 1 takes every curve for linear, so jobs can fall short of their iterations"


@st.composite
def strategy(draw: st.DrawFn, /, **sizes: int) -> Admission:
    """Draw jobs in any order of arrival."""
    fields = draw(deadline_jobs(**sizes))
    order = draw(st.permutations(range(len(fields["iterations"]))))
    return Admission(**fields, arrival_order=np.array(order))


def _first_is_admitted(instance: Admission, plan: AdmissionPlan) -> bool:
    """Return whether the first job to arrive is admitted if it can finish alone."""
    job = int(instance.arrival_order[0])
    could = instance.deadlines[job] * instance.throughputs[job].max() >= instance.iterations[job]
    return bool(plan.admitted[job] or not could)


def _by_the_condition(instance: Admission, plan: AdmissionPlan) -> bool:
    """Return whether, under linear scaling, jobs are admitted with which all GPU times fit in by each deadline."""
    if not linear(instance):
        return True
    rates = instance.throughputs[:, 1].tolist()
    times = [
        0.0 if not need else float(np.ceil(need / rate)) if rate else np.inf
        for need, rate in zip(instance.iterations.tolist(), rates, strict=True)
    ]
    admitted: list[int] = []
    for job in instance.arrival_order.tolist():
        both = [*admitted, job]
        due = {
            int(end): sum(times[other] for other in both if instance.deadlines[other] <= end)
            for end in instance.deadlines[both]
        }
        if all(load <= instance.num_gpus * end for end, load in due.items()):
            admitted = both
    return bool(np.flatnonzero(plan.admitted).tolist() == sorted(admitted))


def _in_time(instance: Admission, gpus: list[list[int]]) -> list[bool]:
    return [
        sum(float(curve[count]) for count in row) >= need * (1 - 1e-9)
        for curve, row, need in zip(instance.throughputs, gpus, instance.iterations.tolist(), strict=True)
    ]


def _those_in_time(*, elastic: bool) -> Callable[[Admission, AdmissionPlan], bool]:
    """Return the test that those jobs are admitted that are in time when all run in order of deadline."""

    def test(instance: Admission, plan: AdmissionPlan) -> bool:
        gpus = by_deadline(instance, range(instance.num_jobs), elastic=elastic)
        admitted = _in_time(instance, gpus)
        kept = [[count * own for count in row] for row, own in zip(gpus, admitted, strict=True)]
        return bool(plan.admitted.tolist() == admitted and plan.gpus.tolist() == kept)

    return test


def _all_in_time(instance: Admission, plan: AdmissionPlan) -> bool:
    """Return whether jobs are admitted with which all that are admitted are in time by order of deadline."""
    admitted: list[int] = []
    for job in instance.arrival_order.tolist():
        both = sorted([*admitted, job])
        in_time = _in_time(instance, by_deadline(instance, both, elastic=False))
        admitted = both if all(in_time[other] for other in both) else admitted
    held = by_deadline(instance, admitted, elastic=False)
    return np.flatnonzero(plan.admitted).tolist() == admitted and plan.gpus.tolist() == held


def _all_by_deadline(instance: Admission, plan: AdmissionPlan) -> bool:
    """Return whether all jobs are admitted where all are in time at their levels, in order of deadline."""
    gpus = by_deadline(instance, range(instance.num_jobs), elastic=True)
    return not instance.concave or not all(_in_time(instance, gpus)) or bool(plan.admitted.all())


def _none_could_finish(instance: Admission, plan: AdmissionPlan) -> bool:
    """Return whether no job left out does its iterations on the GPUs that are left, on concave curves."""
    free = instance.num_gpus - plan.gpus.sum(axis=0)
    for job in np.flatnonzero(~plan.admitted).tolist() if instance.concave else ():
        most = sum(
            max(instance.throughputs[job, : left + 1].tolist()) for left in free[: instance.deadlines[job]].tolist()
        )
        if most >= instance.iterations[job]:
            return False
    return True


ALONE = optimum(lambda instance: instance.num_jobs == 1, "with one job")
FIRST = Holds("the first job is admitted if it can finish alone", _first_is_admitted)
LEVELS = Holds(
    "each job is at the least level of Algorithm 1", lambda instance, plan: least_levels(instance, plan.gpus)
)


ENTRY = Entry(
    title="Which jobs are promised their deadlines, as many as possible",
    source="ElasticFlow, section 4.1, Theorem 1 and Algorithm 1",
    instance=Admission,
    generate=generate,
    size="num_jobs",
    sizes=(5, 10, 15),
    heuristics=named(
        Heuristic(fast.progressive_filling, promises=(ALONE, FIRST, LEVELS)),
        Heuristic(
            fast.edf_condition,
            infeasible_because=TAKES_CURVES_FOR_LINEAR,
            promises=(
                BreaksOnly(("work",)),
                BreaksOnly((), linear, "where all jobs scale linearly"),
                Holds("a job is admitted if and only if Theorem 1's condition holds with it", _by_the_condition),
                optimum(
                    lambda instance: instance.num_jobs == 1 and linear(instance), "with one job that scales linearly"
                ),
            ),
        ),
        Heuristic(fast.edf, promises=(ALONE, Holds("jobs run in order of deadline", _those_in_time(elastic=False)))),
        Heuristic(
            fast.edf_with_admission,
            promises=(ALONE, Holds("each job is admitted with which all are in time", _all_in_time)),
        ),
        Heuristic(
            fast.local_search,
            promises=(
                ALONE,
                Holds("all jobs are admitted where all are in time at the levels of Algorithm 1", _all_by_deadline),
                Holds("no job left out could finish on the GPUs left", _none_could_finish),
            ),
        ),
        Heuristic(
            fast.edf_with_elastic_scaling,
            promises=(ALONE, Holds("jobs run in order of deadline, at their levels", _those_in_time(elastic=True))),
        ),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    enlarge=one_more_gpu,
    strategy=strategy,
    wide=WIDE,
)
