"""The schedulers of afs.elastic_sharing once more, slowly, as their rules read: what their plans are held against."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.afs.simulation import State, simulate
from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan
from instances.base import agree
from instances.schema import FloatArray, IntArray
from validation.kinds.promises import Holds

__all__ = [
    "afs_l",
    "afs_p",
    "aryl_two_phase",
    "by_requests",
    "counters_then",
    "fewest_first",
    "follows",
    "in_vain",
    "may_follow",
    "optimus",
    "tiresias_l",
    "tiresias_turns",
    "two_job",
    "two_jobs",
    "units",
]

Rule = Callable[[ElasticSharing, State], list[int]]
"""The shares of all jobs at an arrival, a completion or the end of a turn."""
Allowed = Callable[[ElasticSharing, State, list[int]], bool]
"""Whether shares may be a scheduler's there, where several may."""
Ends = Callable[[ElasticSharing, IntArray, FloatArray], FloatArray]
"""How long each job will have run when its turn is over, from those that are there and how long they have run."""

WHOLE = 1e-9
LATEST = 1e9
"""Times from which on their last digit can be all of a short job."""


def follows(rule: Rule, ends: Ends | None = None) -> Holds:
    """Return the promise that a schedule is that of a rule."""

    def test(instance: ElasticSharing, plan: Schedule) -> bool:
        turns = None if ends is None or instance.reallocation != "any_time" else partial(ends, instance)
        return plan == simulate(instance, lambda state: np.array(rule(instance, state)), turns=turns)

    return Holds("the shares are those of the rule whenever they may change", test)


def may_follow(allowed: Allowed, ends: Ends | None = None) -> Holds:
    """Return the promise that the shares of a schedule are of those that a rule allows, but for very late ones."""

    def test(instance: ElasticSharing, plan: Schedule) -> bool:
        if instance.arrivals.max(initial=0) >= LATEST:
            return True
        rows, fit = plan.shares.tolist(), True

        def policy(state: State) -> IntArray:
            nonlocal fit
            at = int(np.searchsorted(plan.times, state.now, side="right")) - 1
            shares = rows[min(max(at, 0), len(rows) - 1)]
            fit = fit and all(shares[job] == 0 or job in state.active for job in range(len(shares)))
            fit = fit and allowed(instance, state, shares)
            return np.array(shares)

        turns = None if ends is None or instance.reallocation != "any_time" else partial(ends, instance)
        try:
            return simulate(instance, policy, turns=turns) == plan and fit
        except ValueError:
            return False

    return Holds("the shares are of those that the rule allows whenever they may change", test)


def _step(curve: list[float], share: int) -> int:
    """GPUs to the next faster share; 0 where there is none."""
    return next((more for more in range(1, len(curve) - share) if curve[share + more] > curve[share]), 0)


def _granted(instance: ElasticSharing, requests: list[int], jobs: Iterable[int]) -> list[int]:
    held = [0] * instance.num_jobs
    for job in jobs:
        if requests[job] <= instance.num_gpus - sum(held):
            held[job] = requests[job]
    return held


def _grown(
    instance: ElasticSharing, held: list[int], jobs: list[int], cost: Callable[[int, int, int], float]
) -> list[int]:
    """Return the shares after each further step went to the job of least cost, the lowest of several."""
    curves = instance.throughputs.tolist()
    while True:
        able = [(cost(job, held[job], more), job, more) for job in jobs if (more := _step(curves[job], held[job]))]
        if not able:
            return held
        _, job, more = min(able)
        if more > instance.num_gpus - sum(held):
            jobs = [other for other in jobs if other != job]
        else:
            held[job] += more


def by_requests(*, by_service: bool, most: bool = False, gain: bool = False, filling: bool = False) -> Rule:
    """Return the rule of requests in order of remaining time, or of that times GPUs.

    Requests are the most that a job can use with ``most``; those that run get more with ``gain``; and one
    that does not fit takes what is left with ``filling``.
    """

    def rule(instance: ElasticSharing, state: State) -> list[int]:
        curves = instance.throughputs.tolist()
        requests = _requests(instance, most=most).tolist()

        def key(job: int) -> float:
            length = float(state.remaining[job]) / float(curves[job][requests[job]])
            return length * int(requests[job]) if by_service else length

        def cost(job: int, share: int, more: int) -> float:
            fewest = next(gpus for gpus in range(1, len(curves[job])) if curves[job][gpus])
            return -float((curves[job][share + more] - curves[job][share]) / more / (curves[job][fewest] / fewest))

        order = sorted(state.active.tolist(), key=key)
        if filling:
            held = [0] * len(curves)
            for job in order:
                curve, left = curves[job], instance.num_gpus - sum(held)
                held[job] = curve.index(curve[left])
            return held
        held = _granted(instance, requests, order)
        return _grown(instance, held, [job for job in order if held[job]], cost) if gain else held

    return rule


def in_vain(instance: ElasticSharing) -> bool:
    """Return whether a job with work to do would never run on what it asks for."""
    requests = instance.requested.tolist()
    return any(
        work and (requests[job] > instance.num_gpus or not instance.throughputs[job, requests[job]])
        for job, work in enumerate(instance.work)
    )


def fewest_first(instance: ElasticSharing, state: State) -> list[int]:
    """Each step goes to the job that has the fewest GPUs."""
    return _grown(instance, [0] * instance.num_jobs, state.active.tolist(), lambda job, share, more: share)


def optimus(instance: ElasticSharing, state: State) -> list[int]:
    """Each step goes where it saves the most time for each of its GPUs."""

    def cost(job: int, share: int, more: int) -> float:
        now, then = instance.throughputs[job, [share, share + more]].tolist()
        return -float(state.remaining[job] * (1 / now - 1 / then) / more) if now else -math.inf

    return _grown(instance, [0] * instance.num_jobs, state.active.tolist(), cost)


def afs_l(instance: ElasticSharing, state: State) -> list[int]:
    """Algorithm 1, comparison by comparison."""
    curves, work = instance.throughputs.tolist(), state.remaining.tolist()
    held = [0] * instance.num_jobs

    def wins(champion: int, other: int) -> bool:
        if not held[champion] and not held[other]:
            first, second = (work[job] / curves[job][_step(curves[job], 0)] for job in (champion, other))
            return bool(second <= first)
        times = [work[job] / curves[job][held[job]] if held[job] else math.inf for job in (champion, other)]
        # Of two that are equally long the one scanned later is a.
        a, b = (other, champion) if times[1] <= times[0] else (champion, other)
        now = {job: curves[job][held[job]] for job in (a, b)}
        then = {job: curves[job][held[job] + _step(curves[job], held[job])] for job in (a, b)}
        longer = bool((then[b] - now[b]) / then[b] > (then[a] - now[a]) / now[a])
        return longer == (b == other)

    while True:
        left = instance.num_gpus - sum(held)
        able = [job for job in state.active.tolist() if 0 < _step(curves[job], held[job]) <= left]
        if not able:
            return held
        best = able[0]
        for other in able[1:]:
            best = other if wins(best, other) else best
        held[best] += _step(curves[best], held[best])


def _in_line(instance: ElasticSharing, state: State) -> list[int]:
    """Return the first shares of AFS-P, by counters of units of time."""
    counters = np.floor(state.attained / instance.quantum + WHOLE).tolist()

    def key(job: int) -> tuple[bool, float]:
        ran = float(state.attained[job])
        over = 0 < ran <= (counters[job] + WHOLE) * instance.quantum
        return (not state.shares[job] or over, counters[job])

    return _granted(instance, instance.min_shares.tolist(), sorted(state.active.tolist(), key=key))


def units(instance: ElasticSharing, active: IntArray, attained: FloatArray) -> FloatArray:
    """Return the ends of units of time, which matter while there are too few GPUs."""
    if instance.min_shares[active].sum() <= instance.num_gpus:
        return np.full(instance.num_jobs, np.inf)
    return np.asarray((np.floor(attained / instance.quantum + WHOLE) + 1) * instance.quantum)


def counters_then(rule: Rule) -> Rule:
    """Return the rule of counters where not all jobs can run, and another one where they can."""

    def both(instance: ElasticSharing, state: State) -> list[int]:
        held = _in_line(instance, state)
        return rule(instance, state) if all(held[job] for job in state.active) else held

    return both


def afs_p(*, knowing: bool = True) -> Holds:
    """Return the promise that shares come of the counters and then of AFS-P's scan, with the coins of the stream.

    Who does not know throughputs takes them for linear beyond what a job has held, at first up to a fair share.
    """

    def test(instance: ElasticSharing, plan: Schedule, rng: np.random.Generator) -> bool:
        curves, low, all_gpus = instance.throughputs.tolist(), instance.min_shares.tolist(), instance.num_gpus
        known = [all_gpus if knowing else 0] * instance.num_jobs

        def curve(job: int) -> list[float]:
            last = max(known[job], low[job], 1)
            return [
                speed if gpus <= last else curves[job][last] * gpus / last for gpus, speed in enumerate(curves[job])
            ]

        def policy(state: State) -> IntArray:
            nonlocal known
            shares, jobs, learnt = _in_line(instance, state), state.active.tolist(), True
            first = shares
            most = {job: all_gpus if known[job] else max(all_gpus // len(jobs), low[job]) for job in jobs}
            while learnt and all(first[job] for job in jobs):
                shares = _scanned([*map(curve, range(len(curves)))], first, most, rng)
                learnt = any(share > least for share, least in zip(shares, known, strict=True))
                known = [*map(max, known, shares)]
                most = dict.fromkeys(jobs, all_gpus)
            known = [*map(max, known, shares)]
            return np.array(shares)

        turns = partial(units, instance) if instance.reallocation == "any_time" else None
        return plan == simulate(instance, policy, turns=turns)

    return Holds("the shares are those of the counters, then of the scan", test, stream=True)


def _scanned(curves: list[list[float]], first: list[int], most: dict[int, int], rng: np.random.Generator) -> list[int]:
    """Return shares grown from the first ones by formula (3), and by coins where it names nobody."""
    held, able = list(first), list(most)
    while left := len(curves[0]) - 1 - sum(held):
        steps = {job: _step(curves[job], held[job]) for job in able}
        able = [job for job in able if 0 < steps[job] <= min(left, most[job] - held[job])]
        if not able:
            break
        coins = dict(zip(able, rng.random(len(able)) < 0.5, strict=True))
        now = {job: curves[job][held[job]] for job in able}
        then = {job: curves[job][held[job] + steps[job]] for job in able}
        best = able[0]
        for other in able[1:]:
            loses = (then[other] - now[other]) / then[other] > (then[best] - now[best]) / now[best]
            stays = (then[best] - now[best]) / then[best] > (then[other] - now[other]) / now[other]
            best = other if loses or (not stays and coins[other]) else best
        held[best] += steps[best]
    return held


def two_jobs(instance: ElasticSharing) -> bool:
    """Return whether there are at most two jobs, there at once, that run on one GPU."""
    together = len(set(instance.arrivals.tolist())) <= 1
    return instance.num_jobs <= 2 and together and bool((instance.throughputs[:, 1] > 0).all())


def two_job(instance: ElasticSharing, state: State, shares: list[int]) -> bool:
    """Return whether each GPU went to the one of two jobs with which they complete soonest, as if none followed."""
    jobs = state.active.tolist()
    if len(jobs) == 1:
        return bool(shares[jobs[0]] == instance.num_gpus)
    table, states = instance.throughputs, {(0, 0)}
    for num_gpus in range(1, instance.num_gpus + 1):
        following = set()
        for held in states:
            now = np.array(held)
            step = AfsTwoJob(
                work=instance.work,
                throughputs=np.stack([table[[0, 1], now], table[[0, 1], now + 1]], axis=1),
                alone=table[:, num_gpus],
            )
            worth = [step.objective(AfsTwoJobPlan(receiver=job)) for job in (0, 1)]
            for job in (0, 1):
                if worth[job] <= worth[1 - job] or agree(worth[job], worth[1 - job]):
                    following.add((held[0] + (job == 0), held[1] + (job == 1)))
        states = {held for held in following if held[0] <= shares[0] and held[1] <= shares[1]}
    return tuple(shares) in states


def _requests(instance: ElasticSharing, *, most: bool) -> IntArray:
    return instance.max_shares if most else instance.requested


def _ends(instance: ElasticSharing, *, most: bool) -> FloatArray:
    """Return how long each job runs in the first queue, as long as a GPU does in a unit of time, (n,) float, s."""
    return instance.quantum / np.maximum(_requests(instance, most=most), 1)


def _reached(instance: ElasticSharing, attained: FloatArray, *, most: bool) -> FloatArray:
    return np.asarray(attained >= _ends(instance, most=most) * (1 - WHOLE))


def tiresias_l(instance: ElasticSharing, state: State, *, most: bool = False) -> list[int]:
    """Whole requests, first come first served, of jobs that have had less service than a unit of time, then others.

    Requests are the most that a job can use with ``most``.
    """
    second = _reached(instance, state.attained, most=most)
    order = sorted(state.active.tolist(), key=lambda job: (bool(second[job]), float(instance.arrivals[job])))
    return _granted(instance, _requests(instance, most=most).tolist(), order)


def tiresias_turns(
    instance: ElasticSharing, active: IntArray, attained: FloatArray, *, most: bool = False
) -> FloatArray:
    """Return the service at which jobs change to the second queue."""
    return np.where(_reached(instance, attained, most=most), np.inf, _ends(instance, most=most))


def aryl_two_phase(instance: ElasticSharing, state: State, shares: list[int]) -> bool:
    """Return whether the least shares are given shortest job first, and the others so that running times fall most."""
    low, high, curves = instance.min_shares.tolist(), instance.max_shares.tolist(), instance.throughputs
    order = sorted(
        state.active.tolist(),
        key=lambda job: (bool(state.shares[job] < low[job]), float(state.remaining[job] / curves[job, low[job]])),
    )
    held = _granted(instance, low, order)
    left = instance.num_gpus - sum(held)
    best, total = np.zeros(left + 1), 0.0
    for job, share in enumerate(shares):
        if (share > 0) != (held[job] > 0) or share < held[job] or share > max(high[job], held[job]):
            return False
        if share:
            times = (state.remaining[job] / curves[job, held[job] : held[job] + left + 1]).tolist()
            total += float(state.remaining[job] / curves[job, share])
            best = np.min(
                [np.r_[np.full(more, np.inf), best[: left + 1 - more]] + t for more, t in enumerate(times)], axis=0
            )
    return sum(shares) <= instance.num_gpus and agree(total, float(best[left]))
