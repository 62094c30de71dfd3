"""Entry of afs.elastic_sharing: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from heuristics.afs import elastic_sharing as fast
from instances.afs.elastic_sharing import ElasticSharing, Schedule, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, Holds, optimum
from validation.problems.afs import scheduling as rules
from validation.problems.afs.scheduling import by_requests, follows, may_follow
from validation.testing import st
from validation.testing.arrays import counts, integers, whole_floats

__all__ = ["ENTRY", "strategy"]

EPOCH = 1_700_000_000
"""Seconds since 1970, in which traces tell when jobs arrive."""


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 3, max_gpus: int = 4, max_work: int = 12) -> ElasticSharing:
    """Draw jobs of any curves, concave, rigid, flat or bent upwards, that arrive together or one after another.

    In some draws they have to take turns.
    """
    turns = draw(st.sampled_from((False, False, True)))
    n = max_jobs if turns else draw(st.integers(1, max_jobs))
    num_gpus = draw(st.integers(1, 2) if turns else counts(1, max_gpus))
    work = draw(whole_floats(n, 0, max_work))
    steps = draw(integers((n, num_gpus), 0, 4))
    if draw(st.booleans()):
        steps = np.sort(steps, axis=1)[:, ::-1]
    table = np.concatenate([np.zeros((n, 1)), np.cumsum(steps, axis=1)], axis=1)
    # A job that nothing makes run gets one iteration/s on all GPUs, but for some that are done.
    table[:, -1] = np.maximum(table[:, -1], (work > 0) | draw(st.booleans()))
    held = draw(st.just(np.zeros(n, np.int64)) | integers(n, 0, num_gpus))
    return ElasticSharing(
        num_gpus=num_gpus,
        work=work,
        throughputs=table,
        arrivals=draw(st.just(np.zeros(n)) | whole_floats(n, 0, max_work) | whole_floats(n, EPOCH, EPOCH + max_work)),
        reallocation="any_time" if turns else draw(st.sampled_from(("at_completions", "any_time"))),
        requests=draw(integers(n, 0, num_gpus)),
        quantum=draw(st.sampled_from((0.75, 2.0, 3.0))) if turns else float(draw(st.integers(1, max_work))),
        attained=draw(st.just(np.zeros(n)) | whole_floats(n, 0, max_work)),
        # No more than there are.
        held=np.diff(np.minimum(np.cumsum(held), num_gpus), prepend=0),
    )


def _linear(instance: ElasticSharing) -> bool:
    """Return whether every job scales linearly up to all GPUs."""
    table = instance.throughputs
    return bool(np.array_equal(table, np.outer(table[:, 1], np.arange(table.shape[1]))))


def _none_useful_idle(instance: ElasticSharing, plan: Schedule) -> bool:
    """Return whether no interval leaves GPUs idle that would make a job faster that is there and not done."""
    done = instance.completions(plan)
    for start, end, shares in zip(plan.times[:-1], plan.times[1:], plan.shares, strict=True):
        left = instance.num_gpus - int(shares.sum())
        for job in np.flatnonzero((instance.arrivals <= start) & (done >= end)):
            speeds = instance.throughputs[job]
            if speeds[shares[job] + left] > speeds[shares[job]]:
                return False
    return True


def _evenly(instance: ElasticSharing, plan: Schedule) -> bool:
    """Return whether a job gets a second GPU more than another only if that one has no use for one more."""
    done = instance.completions(plan)
    for start, end, shares in zip(plan.times[:-1], plan.times[1:], plan.shares, strict=True):
        there = np.flatnonzero((instance.arrivals <= start) & (done >= end))
        for job in there:
            more = min(int(shares[job]) + 1, instance.num_gpus)
            useful = instance.throughputs[job, more] > instance.throughputs[job, shares[job]]
            # A job that gets several GPUs at once may pass the others by.
            rising = (np.diff(instance.throughputs[there], axis=1) > 0).all(axis=1)
            if useful and (shares[there][rising] > shares[job] + 1).any():
                return False
    return True


def _as_soon_as_rules(instance: ElasticSharing, plan: Schedule) -> bool:
    """Return whether no rule that a search begins with, where a curve is not concave, is sooner on average."""
    if instance.concave[instance.work > 0].all():
        return True
    plans = [rule(instance) for rule in (fast.afs_l, fast.srtf_filling, fast.srsf_filling)]
    least = min(instance.objective(other) for other in plans if other is not None)
    return bool(instance.objective(plan) <= least)


def _run_on_one(instance: ElasticSharing) -> bool:
    return bool((instance.throughputs[:, 1] > 0).all())


def _none_that_run_useful_idle(instance: ElasticSharing, plan: Schedule) -> bool:
    """Return whether no interval leaves GPUs idle that would make a running job faster."""
    for shares in plan.shares:
        left = instance.num_gpus - int(shares.sum())
        for job in np.flatnonzero(shares):
            speeds = instance.throughputs[job]
            if speeds[shares[job] + left] > speeds[shares[job]]:
                return False
    return True


FINDS = BreaksOnly((), lambda instance: not rules.in_vain(instance), "where all jobs run on what they ask for")
ALONE = optimum(lambda instance: instance.num_jobs == 1, "with one job")
LINEAR = optimum(_linear, "where all jobs scale linearly")
LINEAR_TOGETHER = optimum(
    lambda instance: _linear(instance) and bool((instance.arrivals == instance.arrivals[:1]).all()),
    "where all jobs scale linearly and arrive together",
)
BUSY = Holds("no GPU stays idle that would make a job faster", _none_useful_idle)
AS_SOON = Holds("where a curve is not concave, no later on average than AFS-L and the filling rules", _as_soon_as_rules)
BUSY_FROM_ONE = Holds(
    "no GPU stays idle that would make a job faster, if all run on one GPU",
    lambda instance, plan: not _run_on_one(instance) or _none_useful_idle(instance, plan),
)
RUNNING_BUSY = Holds("no GPU stays idle that would make a job that runs faster", _none_that_run_useful_idle)
EVEN = Holds("no job has two GPUs more than one that has a use for another", _evenly)
EVEN_FROM_ONE = Holds(
    EVEN.statement + ", if all run on one GPU",
    lambda instance, plan: not _run_on_one(instance) or _evenly(instance, plan),
)


ENTRY = Entry(
    title="Who gets the next GPU, so that elastic jobs complete soonest on average",
    source="AFS, sections 2.1 and 3.1",
    instance=ElasticSharing,
    generate=generate,
    size="num_jobs",
    sizes=(2, 3, 4),
    heuristics=named(
        Heuristic(fast.afs_l, promises=(ALONE, BUSY, follows(rules.afs_l))),
        Heuristic(fast.afs_p, promises=(ALONE, BUSY_FROM_ONE, rules.afs_p())),
        Heuristic(
            fast.afs_s,
            promises=(
                ALONE,
                BUSY_FROM_ONE,
                EVEN_FROM_ONE,
                follows(rules.counters_then(rules.fewest_first), rules.units),
            ),
        ),
        Heuristic(
            fast.afs_p_measuring,
            promises=(ALONE, BUSY_FROM_ONE, rules.afs_p(knowing=False)),
        ),
        Heuristic(
            fast.two_job_rule,
            declines=True,
            promises=(
                ALONE,
                BUSY,
                BreaksOnly((), rules.two_jobs, "for two jobs that are there at once and run on one GPU"),
                may_follow(rules.two_job),
            ),
        ),
        Heuristic(fast.srtf, declines=True, promises=(FINDS, follows(by_requests(by_service=False)))),
        Heuristic(fast.srsf, declines=True, promises=(FINDS, follows(by_requests(by_service=True)))),
        Heuristic(fast.srtf_maximum, promises=(ALONE, LINEAR, follows(by_requests(by_service=False, most=True)))),
        Heuristic(fast.srsf_maximum, promises=(ALONE, LINEAR, follows(by_requests(by_service=True, most=True)))),
        Heuristic(
            fast.srtf_elastic,
            declines=True,
            promises=(FINDS, RUNNING_BUSY, follows(by_requests(by_service=False, gain=True))),
        ),
        Heuristic(
            fast.srsf_elastic,
            declines=True,
            promises=(FINDS, RUNNING_BUSY, follows(by_requests(by_service=True, gain=True))),
        ),
        Heuristic(
            fast.srtf_filling,
            promises=(ALONE, LINEAR, BUSY, follows(by_requests(by_service=False, most=True, filling=True))),
        ),
        Heuristic(
            fast.srsf_filling,
            promises=(ALONE, LINEAR, BUSY, follows(by_requests(by_service=True, most=True, filling=True))),
        ),
        Heuristic(fast.tiresias_l, declines=True, promises=(FINDS, follows(rules.tiresias_l, rules.tiresias_turns))),
        Heuristic(
            fast.tiresias_l_maximum,
            promises=(ALONE, follows(partial(rules.tiresias_l, most=True), partial(rules.tiresias_turns, most=True))),
        ),
        Heuristic(fast.max_min, promises=(ALONE, BUSY, EVEN, follows(rules.fewest_first))),
        Heuristic(fast.optimus, promises=(ALONE, BUSY, follows(rules.optimus))),
        Heuristic(fast.aryl_two_phase, promises=(ALONE, may_follow(rules.aryl_two_phase))),
        Heuristic(fast.local_search, promises=(ALONE, LINEAR_TOGETHER, BUSY, AS_SOON)),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("work", "arrivals", "quantum", "attained"), 1), Rescaling(("work", "throughputs"), 0)),
    enlarge=lambda instance: replace(
        instance,
        num_gpus=instance.num_gpus + 1,
        throughputs=[[*curve, curve[-1]] for curve in instance.throughputs.tolist()],
    ),
    strategy=strategy,
    wide={"max_gpus": 64, "max_work": 1000},
)
