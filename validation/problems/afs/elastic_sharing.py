"""Entry of afs.elastic_sharing: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heuristics.afs import elastic_sharing as fast
from instances.afs.elastic_sharing import ElasticSharing, Schedule, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, optimum
from validation.testing import st
from validation.testing.arrays import counts, integers, whole_floats

__all__ = ["ENTRY", "strategy"]

EPOCH = 1_700_000_000
"""Seconds since 1970, in which traces tell when jobs arrive."""


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 3, max_gpus: int = 4, max_work: int = 12) -> ElasticSharing:
    """Draw jobs of any curves, concave, rigid, flat or bent upwards, that arrive together or one after another."""
    n = draw(st.integers(1, max_jobs))
    num_gpus = draw(counts(1, max_gpus))
    steps = draw(integers((n, num_gpus), 0, 4))
    if draw(st.booleans()):
        steps = np.sort(steps, axis=1)[:, ::-1]
    table = np.concatenate([np.zeros((n, 1)), np.cumsum(steps, axis=1)], axis=1)
    # A job that nothing makes run gets one iteration/s on all GPUs.
    table[:, -1] = np.maximum(table[:, -1], 1)
    held = draw(st.just(np.zeros(n, np.int64)) | integers(n, 0, num_gpus))
    return ElasticSharing(
        num_gpus=num_gpus,
        work=draw(whole_floats(n, 0, max_work)),
        throughputs=table,
        arrivals=draw(st.just(np.zeros(n)) | whole_floats(n, 0, max_work) | whole_floats(n, EPOCH, EPOCH + max_work)),
        reallocation=draw(st.sampled_from(("at_completions", "any_time"))),
        requests=draw(integers(n, 0, num_gpus)),
        quantum=float(draw(st.integers(1, max_work))),
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


def _at_first(instance: ElasticSharing, plan: Schedule) -> list[int] | None:
    """Return the shares when all jobs have just arrived at once; None where they do not, or have nothing to do."""
    if len(set(instance.arrivals.tolist())) > 1 or not instance.work.any():
        return None
    shares: list[int] = plan.shares[int((plan.times >= instance.arrivals[0]).argmax())].tolist()
    return shares


def _scanned(instance: ElasticSharing, plan: Schedule) -> bool:
    """Return whether the first shares are those of Algorithm 1, comparison by comparison."""
    shares = _at_first(instance, plan)
    if shares is None:
        return True
    curves, work = instance.throughputs.tolist(), instance.work.tolist()
    held, left = [0] * instance.num_jobs, instance.num_gpus

    def step(job: int) -> int:
        curve, share = curves[job], held[job]
        return next((more for more in range(1, len(curve) - share) if curve[share + more] > curve[share]), 0)

    def wins(champion: int, other: int) -> bool:
        if not held[champion] and not held[other]:
            first, second = (work[job] / curves[job][step(job)] for job in (champion, other))
            return bool(second <= first)
        times = [work[job] / curves[job][held[job]] if held[job] else np.inf for job in (champion, other)]
        # Of two that are equally long the one scanned later is a.
        a, b = (other, champion) if times[1] <= times[0] else (champion, other)
        now = {job: curves[job][held[job]] for job in (a, b)}
        then = {job: curves[job][held[job] + step(job)] for job in (a, b)}
        longer = bool((then[b] - now[b]) / then[b] > (then[a] - now[a]) / now[a])
        return longer == (b == other)

    while True:
        able = [job for job in range(len(held)) if work[job] and 0 < step(job) <= left]
        if not able:
            return held == shares
        best = able[0]
        for other in able[1:]:
            best = other if wins(best, other) else best
        more = step(best)
        held[best] += more
        left -= more


def _one_each(instance: ElasticSharing, plan: Schedule) -> bool:
    """Return whether first shares are at least 1, or at most 1 where there are more jobs than GPUs."""
    shares = _at_first(instance, plan)
    if shares is None or not _run_on_one(instance):
        return True
    shares = [share for share, work in zip(shares, instance.work, strict=True) if work]
    if len(shares) > instance.num_gpus:
        return max(shares) == 1
    return min(shares) >= 1


def _run_on_one(instance: ElasticSharing) -> bool:
    return bool((instance.throughputs[:, 1] > 0).all())


def _in_order(*, by_service: bool, most: bool = False, more: bool = False, filling: bool = False) -> Holds:
    """Return the promise that the first shares are requests in order of remaining time, or of that times GPUs.

    Requests are the most that a job can use with ``most``; those that run may have ``more``; and the first
    that does not fit takes what is left with ``filling``.
    """

    def test(instance: ElasticSharing, plan: Schedule) -> bool:
        shares = _at_first(instance, plan)
        if shares is None:
            return True
        curves = instance.throughputs.tolist()
        requests = [next(share for share, speed in enumerate(curve) if speed == curve[-1]) for curve in curves]
        if not most:
            requests = instance.requested.tolist()
        jobs = [job for job in range(len(curves)) if instance.work[job]]
        keys = {
            job: float(instance.work[job] / curves[job][requests[job]] * (requests[job] if by_service else 1))
            for job in jobs
        }
        left, held = instance.num_gpus, [0] * len(curves)
        for job in sorted(jobs, key=keys.__getitem__):
            if requests[job] <= left:
                held[job] = requests[job]
            elif filling:
                held[job] = next(share for share, speed in enumerate(curves[job]) if speed == curves[job][left])
            left -= held[job]
        if more:
            return all(share >= base and (base > 0 or share == 0) for share, base in zip(shares, held, strict=True))
        return held == shares

    return Holds("the first shares are requests in order", test)


def _none_that_run_useful_idle(instance: ElasticSharing, plan: Schedule) -> bool:
    """Return whether no interval leaves GPUs idle that would make a running job faster."""
    for shares in plan.shares:
        left = instance.num_gpus - int(shares.sum())
        for job in np.flatnonzero(shares):
            speeds = instance.throughputs[job]
            if speeds[shares[job] + left] > speeds[shares[job]]:
                return False
    return True


def _most_useful_first(instance: ElasticSharing, plan: Schedule) -> bool:
    """Return whether no last GPU of a first share would save another job more, where returns diminish."""
    shares = _at_first(instance, plan)
    if shares is None or 0 in shares or not instance.concave.all() or (np.diff(instance.throughputs) <= 0).any():
        return True

    def saved(job: int, share: int) -> float:
        speeds = instance.throughputs[job]
        return float(instance.work[job] * (1 / speeds[share] - 1 / speeds[share + 1]))

    last = [saved(job, share - 1) for job, share in enumerate(shares) if share > 1]
    following = [saved(job, share) for job, share in enumerate(shares) if share < instance.num_gpus]
    return min(last, default=np.inf) >= max(following, default=0.0) * (1 - 1e-9)


ALONE = optimum(lambda instance: instance.num_jobs == 1, "with one job")
LINEAR = optimum(_linear, "where all jobs scale linearly")
BUSY = Holds("no GPU stays idle that would make a job faster", _none_useful_idle)
BUSY_FROM_ONE = Holds(
    "no GPU stays idle that would make a job faster, if all run on one GPU",
    lambda instance, plan: not _run_on_one(instance) or _none_useful_idle(instance, plan),
)
RUNNING_BUSY = Holds("no GPU stays idle that would make a job that runs faster", _none_that_run_useful_idle)
ONE_EACH = Holds("each job has a GPU before one has two", _one_each)
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
        Heuristic(fast.afs_l, promises=(ALONE, BUSY, Holds("the first shares are those of Algorithm 1", _scanned))),
        Heuristic(fast.afs_p, promises=(ALONE, BUSY_FROM_ONE, ONE_EACH)),
        Heuristic(fast.afs_s, promises=(ALONE, BUSY_FROM_ONE, ONE_EACH, EVEN_FROM_ONE)),
        Heuristic(fast.afs_p_measuring, promises=(ALONE, BUSY_FROM_ONE, ONE_EACH)),
        Heuristic(fast.two_job_rule, declines=True, promises=(ALONE, BUSY)),
        Heuristic(fast.srtf, declines=True, promises=(_in_order(by_service=False),)),
        Heuristic(fast.srsf, declines=True, promises=(_in_order(by_service=True),)),
        Heuristic(fast.srtf_maximum, promises=(ALONE, LINEAR, _in_order(by_service=False, most=True))),
        Heuristic(fast.srsf_maximum, promises=(ALONE, LINEAR, _in_order(by_service=True, most=True))),
        Heuristic(fast.srtf_elastic, declines=True, promises=(_in_order(by_service=False, more=True), RUNNING_BUSY)),
        Heuristic(fast.srsf_elastic, declines=True, promises=(_in_order(by_service=True, more=True), RUNNING_BUSY)),
        Heuristic(
            fast.srtf_filling, promises=(ALONE, LINEAR, BUSY, _in_order(by_service=False, most=True, filling=True))
        ),
        Heuristic(
            fast.srsf_filling, promises=(ALONE, LINEAR, BUSY, _in_order(by_service=True, most=True, filling=True))
        ),
        Heuristic(fast.tiresias_l, declines=True),
        Heuristic(fast.max_min, promises=(ALONE, BUSY, EVEN)),
        Heuristic(fast.optimus, promises=(ALONE, BUSY, Holds("GPUs go where they save most time", _most_useful_first))),
        Heuristic(fast.aryl_two_phase, promises=(ALONE,)),
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
