"""Schedulers for :class:`instances.afs.elastic_sharing.ElasticSharing`, each simulated to completion.

All share the GPUs anew at every arrival and completion, and see the jobs that have arrived and are
not done.  They differ in the rule that turns this state into shares.  These conventions hold for all:

* Jobs are scanned in order of their index, and ties go to the lowest one, unless an option says
  otherwise.
* Where a rule gives a job one more GPU, the job gets as many as its next faster share needs: one,
  as in the paper, where its throughput rises with every GPU; all that a rigid job must have at
  once.  A job that needs more for this than is left is out of the running until the next
  re-allocation.  A GPU that would speed up nobody stays idle.
* A job's *request*, where a scheduler goes by one, is ``instance.requested``.
* ``None`` stands for a schedule that there cannot be, because a job runs on no number of GPUs, or not
  on what it asks for.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, product
from typing import Literal

import numpy as np

from heuristics.afs.two_job import exact_rule
from heuristics.aryl.elastic_allocation import dynamic_program
from instances.afs.elastic_sharing import EXACT, ElasticSharing, Schedule
from instances.afs.simulation import Policy, State, Turns, simulate
from instances.afs.two_job import AfsTwoJob
from instances.afs.work_prices import ARRIVAL, Jobs
from instances.aryl.elastic_allocation import ElasticAllocation
from instances.schema import FloatArray, IntArray

__all__ = [
    "afs_l",
    "afs_p",
    "afs_p_measuring",
    "afs_s",
    "aryl_two_phase",
    "local_search",
    "max_min",
    "optimus",
    "srsf",
    "srsf_elastic",
    "srsf_filling",
    "srsf_maximum",
    "srtf",
    "srtf_elastic",
    "srtf_filling",
    "srtf_maximum",
    "tiresias_l",
    "tiresias_l_maximum",
    "two_job_rule",
]


def _run(instance: ElasticSharing, policy: Policy, *, turns: Turns | None = None) -> Schedule | None:
    """Return the schedule of a policy; turns end where shares may change at any time only."""
    if instance.stuck.any():
        return None
    return simulate(instance, policy, turns=turns if instance.reallocation == "any_time" else None)


# --- AFS -----------------------------------------------------------------------------------------


def afs_l(
    instance: ElasticSharing, *, ties: Literal["later", "earlier"] = "later", order: Sequence[int] | None = None
) -> Schedule | None:
    """AFS-L: GPUs go one by one to the job of top priority, found by comparing jobs in pairs.

    The scan keeps a champion, at first the first job, and compares it with every other job in turn; the
    winner is the champion of the next comparison.  Let a be the job of the two that would end sooner at
    its present share, b the other, p their throughputs and p' those with one more GPU:

    * both have no GPU: the one that is shorter on its first share wins (lines 5 to 7);
    * otherwise b wins if ``(p'_b - p_b) / p'_b > (p'_a - p_a) / p_a``, else a (lines 8 to 12).

    The second rule is formula (3); see :mod:`heuristics.afs.two_job`.  Among three jobs it can
    cycle, so that the order of the scan decides.

    Parameters
    ----------
    instance : ElasticSharing
    ties : "later" or "earlier"
        Which of two equally long jobs counts as the shorter: the one scanned later, as lines 6, 7, 9 and
        10 print it, or the one scanned earlier.
    order : sequence of int, optional
        Order of the scan, all jobs once; by index by default.  Lines 2 and 3 leave it open.

    Raises
    ------
    ValueError
        When ``order`` does not name every job once.

    Notes
    -----
    Guarantee: none known.  Complexity: O(n * M) comparisons for each re-allocation; a scan is
    taken up from the job that received the last GPU, before which nothing has changed.

    References
    ----------
    AFS (NSDI'21), section 3.3, Algorithm 1.
    """
    if order is not None and sorted(order) != list(range(instance.num_jobs)):
        raise ValueError(f"order: got {list(order)}, must name each of {instance.num_jobs} jobs once")
    position = np.arange(instance.num_jobs)
    if order is not None:
        position[np.asarray(order, np.int64)] = np.arange(instance.num_jobs)
    scan = _Scan(instance, later=ties == "later")
    return _run(instance, lambda state: scan.shares(state.active[np.argsort(position[state.active])], state.remaining))


def afs_p(instance: ElasticSharing, *, rng: np.random.Generator | int = 0) -> Schedule | None:
    """AFS-P: AFS-L for jobs of unknown length.

    While there is a GPU for each job, each has one, and each further GPU goes to the job that a scan
    like that of :func:`afs_l` finds: of two jobs, one wins if formula (3) is true with that job as the
    longer, and if it is true neither way, either wins at random.  It is never true both ways.

    If there are more jobs than GPUs, they get one each in increasing order of their counters, which say for
    how many units of time, ``instance.quantum``, a job has run.  A job that has a GPU keeps it until it
    has run for one unit; then all get in line anew.  Where shares change at arrivals and completions
    only, this is when a unit can end.

    As many jobs as GPUs, which the text leaves open, get one each.  Equal counters go by index.

    Parameters
    ----------
    instance : ElasticSharing
    rng : Generator or int
        Source of randomness, or its seed.

    Notes
    -----
    Guarantee: none known.  Complexity: O(n * M) comparisons for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 3.3; footnote 11 has the unit.
    """
    rng = np.random.default_rng(rng)
    gains = _Gains(instance.throughputs)

    def further(shares: IntArray, state: State) -> None:
        _by_gain(shares, state.active, instance.num_gpus, gains, rng)

    return _run(instance, partial(_by_counter, instance, further), turns=partial(_units, instance))


def afs_s(instance: ElasticSharing) -> Schedule | None:
    """AFS-S: AFS-P that knows of each job only on how many GPUs it is fastest.

    As :func:`afs_p` if there are more jobs than GPUs; otherwise max-min fair shares, as in
    :func:`max_min`, up to those numbers.

    Guarantee: none known.  Complexity: O((n + M) log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), Appendix D.
    """
    following = _following(instance.throughputs)

    def further(shares: IntArray, state: State) -> None:
        shares[:] = _greedy(instance, following, _fewest_first, state)

    return _run(instance, partial(_by_counter, instance, further), turns=partial(_units, instance))


def afs_p_measuring(instance: ElasticSharing, *, rng: np.random.Generator | int = 0) -> Schedule | None:
    """AFS-P that learns throughputs on the way: overestimate first, re-adjust later.

    A job that arrives is taken to scale linearly, and gets no more than its fair share, 1/n of the GPUs
    (rounded down, at least its first share).  Then its throughput is known on all shares up to its own,
    and shares are found anew.  Beyond what a job has held it is taken to scale linearly from there on,
    and where this gives it more, that is measured too, until nothing new is learnt.  Measuring takes
    no time, as shares shrink in a few milliseconds (section 4.3).  The fewest GPUs on which a job runs are
    known.  All else is as in :func:`afs_p`.

    Parameters
    ----------
    instance : ElasticSharing
    rng : Generator or int
        Source of randomness, or its seed.

    Notes
    -----
    Guarantee: none known.  Complexity: that of :func:`afs_p` for each share that is measured.

    References
    ----------
    AFS (NSDI'21), section 4.5.
    """
    rng = np.random.default_rng(rng)
    known = np.zeros(instance.num_jobs, np.int64)

    def further(shares: IntArray, state: State) -> None:
        first, n = shares.copy(), len(state.active)
        fair = np.maximum(instance.num_gpus // n, instance.min_shares)
        most = np.where(known > 0, instance.num_gpus, fair)
        while True:
            shares[:] = first
            _by_gain(shares, state.active, instance.num_gpus, _Gains(_estimates(instance, known)), rng, most)
            new = shares > known
            known[new] = shares[new]
            most[:] = instance.num_gpus
            if not new.any():
                return

    def policy(state: State) -> IntArray:
        shares = _by_counter(instance, further, state)
        np.maximum(known, shares, out=known)
        return shares

    return _run(instance, policy, turns=partial(_units, instance))


def two_job_rule(instance: ElasticSharing) -> Schedule | None:
    """Share by the rule of section 3.2 for two jobs that are there at once, of known length.

    The first GPU goes to the job that is shorter on it.  With some GPUs shared in this way, let a be the
    job that completes first and b the other; the next GPU goes to b if formula (1) is positive, if a
    still completes first with b having that GPU, or else if formula (2) is, and otherwise to a.  In the
    formulas the job that is left runs on all GPUs that have been shared out so far.  When one job is
    done, the other gets all.

    Guarantee: none; that the shares are optimal, as the text has it, is not always so.  ``None`` for
    more jobs, for jobs that arrive over time, and for jobs that do not run on one GPU.
    Complexity: O(M).

    References
    ----------
    AFS (NSDI'21), section 3.2, formulas (1) and (2).
    """
    apart = (instance.arrivals != instance.arrivals[:1]).any()
    if instance.num_jobs > 2 or apart or (instance.min_shares != 1).any():
        return None

    def policy(state: State) -> IntArray:
        if len(state.active) == 1:
            return np.full(instance.num_jobs, instance.num_gpus)
        return _grown_shares(instance)

    return _run(instance, policy)


def _grown_shares(instance: ElasticSharing) -> IntArray:
    """(2,) int: the shares that :func:`two_job_rule` starts with."""
    shares = np.zeros(2, np.int64)
    for num_gpus in range(1, instance.num_gpus + 1):
        now, then = (instance.throughputs[[0, 1], shares + more] for more in (0, 1))
        step = AfsTwoJob(
            work=instance.work,
            throughputs=np.stack([now, then], axis=1),
            alone=instance.throughputs[:, num_gpus],
        )
        shares[exact_rule(step).receiver] += 1
    return shares


# --- baselines -----------------------------------------------------------------------------------


def srtf(instance: ElasticSharing) -> Schedule | None:
    """Shortest remaining time first: each job gets its whole request, or nothing.

    Jobs in order of remaining time at their request; one that does not fit is passed over, and
    shorter requests behind it may start.

    Guarantee: optimal for jobs that scale linearly up to all GPUs and ask for them.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), sections 2.2 and 5.1 (SRTF).
    """
    return _by_requests(instance, instance.requested, _remaining_times)


def srsf(instance: ElasticSharing) -> Schedule | None:
    """Shortest remaining service first: as :func:`srtf`, by remaining time times GPUs requested.

    Guarantee: optimal for jobs that scale linearly up to all GPUs and ask for them.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 2.2 (SRSF, which is Tiresias's order when lengths are known).
    """
    return _by_requests(instance, instance.requested, _remaining_services)


def srtf_maximum(instance: ElasticSharing) -> Schedule | None:
    """As :func:`srtf`, but each job asks for the fewest GPUs on which it is as fast as it can be.

    Guarantee: optimal for jobs that scale linearly up to all GPUs.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 5.2, Figure 6.
    """
    return _by_requests(instance, instance.max_shares, _remaining_times)


def srsf_maximum(instance: ElasticSharing) -> Schedule | None:
    """As :func:`srsf`, but each job asks for the fewest GPUs on which it is as fast as it can be.

    Guarantee: optimal for jobs that scale linearly up to all GPUs.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 5.2, Figure 6.
    """
    return _by_requests(instance, instance.max_shares, _remaining_services)


def srtf_elastic(
    instance: ElasticSharing, *, gain: Literal["efficiency", "throughput"] = "efficiency"
) -> Schedule | None:
    """SRTF-E: as :func:`srtf`, and then GPUs that are left go to running jobs, for the most throughput.

    Parameters
    ----------
    instance : ElasticSharing
    gain : "efficiency" or "throughput"
        What the next GPU is to add the most to: throughputs relative to those on one GPU, whose sum is the
        cluster efficiency that the section wants, or iterations/s, whatever the iterations are of.

    Notes
    -----
    Guarantee: optimal for jobs that scale linearly up to all GPUs and ask for them.
    Complexity: O((n + M) log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 5.5 (SRTF-E).
    """
    return _by_requests(instance, instance.requested, _remaining_times, gain=gain)


def srsf_elastic(
    instance: ElasticSharing, *, gain: Literal["efficiency", "throughput"] = "efficiency"
) -> Schedule | None:
    """SRSF-E: as :func:`srtf_elastic`, in the order of :func:`srsf`.

    Parameters
    ----------
    instance : ElasticSharing
    gain : "efficiency" or "throughput"
        As for :func:`srtf_elastic`.

    Notes
    -----
    Guarantee: optimal for jobs that scale linearly up to all GPUs and ask for them.
    Complexity: O((n + M) log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 5.5 (SRSF-E).
    """
    return _by_requests(instance, instance.requested, _remaining_services, gain=gain)


def srtf_filling(instance: ElasticSharing) -> Schedule | None:
    """As :func:`srtf_maximum`, but a job for which fewer GPUs are left gets the most useful of these.

    Guarantee: optimal for jobs that scale linearly up to all GPUs.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    None: the library's own.
    """
    return _run(instance, partial(_filling, instance, _remaining_times))


def srsf_filling(instance: ElasticSharing) -> Schedule | None:
    """As :func:`srtf_filling`, by remaining time times GPUs.

    Guarantee: optimal for jobs that scale linearly up to all GPUs.
    Complexity: O(n log n) for each re-allocation.

    References
    ----------
    None: the library's own.
    """
    return _run(instance, partial(_filling, instance, _remaining_services))


def tiresias_l(instance: ElasticSharing, *, limits: Sequence[float] = (1.0,)) -> Schedule | None:
    """Tiresias-L: the less service a job has had the sooner, in queues; the whole request or nothing.

    A job's service is its request times the time for which it has run.  Jobs are in the queue that their
    service has reached, first come first served within it; one that does not fit is passed over.

    Parameters
    ----------
    instance : ElasticSharing
    limits : sequence of float
        Service at which a job moves to the next queue, increasing, in units of ``instance.quantum`` on a
        GPU.  AFS does not print those that it used.

    Notes
    -----
    Guarantee: none known.  Complexity: O(n log n) for each re-allocation.

    References
    ----------
    Gu et al., Tiresias (NSDI'19), discretized two-dimensional least attained service; AFS (NSDI'21),
    section 5.1.
    """
    return _by_attained(instance, instance.requested, limits)


def tiresias_l_maximum(instance: ElasticSharing, *, limits: Sequence[float] = (1.0,)) -> Schedule | None:
    """As :func:`tiresias_l`, but each job asks for the fewest GPUs on which it is as fast as it can be.

    Guarantee: none known.  Complexity: O(n log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 5.2, Figure 6.
    """
    return _by_attained(instance, instance.max_shares, limits)


def max_min(instance: ElasticSharing) -> Schedule | None:
    """Max-min fair shares: the next GPU goes to the job that has the fewest.

    Guarantee: none known on JCT.  Complexity: O((n + M) log n) for each re-allocation.

    References
    ----------
    AFS (NSDI'21), section 2.2 (Max-Min).
    """
    return _run(instance, partial(_greedy, instance, _following(instance.throughputs), _fewest_first))


def optimus(instance: ElasticSharing) -> Schedule | None:
    """Optimus: the next GPU goes where it shortens a job's remaining time the most.

    The first GPUs of a job, without which it never ends, come before all others, the lowest job's first.

    Guarantee: none known on JCT.  Where throughputs are concave from one GPU on and no more jobs are active
    than there are GPUs, the shares make the sum of the remaining times least, as those of :func:`aryl_two_phase`
    do: the two then differ in ties only.  Complexity: O((n + M) log n) for each re-allocation.

    References
    ----------
    Peng et al., Optimus (EuroSys'18), section 4.1, marginal gain; AFS (NSDI'21), section 5.1.
    """

    def cost(state: State, job: int, share: int, step: int) -> float:
        now, then = instance.throughputs[job, share], instance.throughputs[job, share + step]
        return -float(state.remaining[job] * (1 / now - 1 / then) / step) if now else -np.inf

    return _run(instance, partial(_greedy, instance, _following(instance.throughputs), cost))


def aryl_two_phase(instance: ElasticSharing) -> Schedule | None:
    """Aryl's two phases: base demands by shortest job first, then the spare GPUs by knapsack.

    A job's minimum and maximum are read from its table: the fewest GPUs on which it runs, and the
    fewest on which it is as fast as it can be.  Jobs that run keep their minimum; one that holds fewer GPUs than that
    does not run.  Phase one starts waiting jobs at their minimum, in order of running time there, each if it fits.
    Phase two gives the GPUs that are left to the running jobs so that the sum of their running times falls the most,
    exactly (:func:`heuristics.aryl.elastic_allocation.dynamic_program`).

    Guarantee: none known on JCT.  It differs from :func:`optimus` where not all jobs get a GPU (there short jobs
    start first here, and the lowest there), and where a step of several GPUs is worth more than smaller ones:
    one by one, they are not found.  Complexity: O(n * M^2) for each re-allocation.

    References
    ----------
    Aryl (EuroSys'23 as Lyra), section 5.2, Algorithm 2.
    """
    return _run(instance, partial(_two_phases, instance))


def _two_phases(instance: ElasticSharing, state: State) -> IntArray:
    low, high = instance.min_shares, instance.max_shares
    waits = state.shares[state.active] < low[state.active]
    base_times = _remaining_times(instance, state, low)
    shares = _in_order(instance, low, state.active[np.lexsort([base_times, waits])])
    left = instance.num_gpus - int(shares.sum())
    elastic = np.flatnonzero((shares > 0) & (low < high))
    if left and len(elastic):
        tables = [state.remaining[job] / instance.throughputs[job, low[job] : high[job] + 1] for job in elastic]
        spare = ElasticAllocation(
            capacity=left,
            min_workers=low[elastic],
            max_workers=high[elastic],
            gpus_per_worker=np.ones(len(elastic), np.int64),
            min_running_times=np.array([table[-1] for table in tables]),
            running_times=tuple(tables),
        )
        shares[elastic] += dynamic_program(spare).extra_workers
    return shares


# --- orders of completions, and prices of work -------------------------------------------------------


def local_search(instance: ElasticSharing, *, budget: int = 1200) -> Schedule | None:
    """Give GPUs where the work done is worth most, at prices of orders of completions that moves of a job improve.

    Each job's work has a price that never changes, and at each event the GPUs go one by one where they add most to
    the worth of the work done (:mod:`instances.afs.work_prices`).  The jobs then complete in some order; the prices
    with which that order would be the best one's lead to another schedule, and so on, until the order stays.  This
    begins with equal prices of whole jobs, with lower ones of longer jobs, and with higher ones.  Then, as long as
    that is sooner on average, one job is moved in the best order, by up to four places, or, where curves are not
    concave, one price is changed; there the orders of :func:`afs_l`, :func:`srtf_filling` and :func:`srsf_filling` are
    among the first, and their plans among those of which the best is taken.

    Guarantee: optimal for jobs that scale linearly up to all GPUs and arrive together; where a curve is not concave,
    no later on average than those three; otherwise none known.  No GPU is idle that would make a job faster.
    Complexity: O(n^2 * M) for each schedule.

    Parameters
    ----------
    instance : ElasticSharing
    budget : int
        Arrivals and completions in the schedules that are looked at, about; with more the plan is no worse.

    References
    ----------
    None for this problem: the best schedule of an order follows its dual prices; moves in orders are the insertion
    neighbourhood of scheduling.
    """
    if instance.stuck.any() or not instance.work.any():
        return srtf_filling(instance)
    search = _Orders(instance, budget)
    sizes = search.jobs.sizes / search.jobs.sizes.mean()
    for power in _Orders.POWERS:
        search.descend(sizes**-power)
    plans = []
    for rule in () if search.jobs.all_concave else (afs_l, srtf_filling, srsf_filling):
        plan = rule(instance)
        assert plan is not None
        search.descend_from(plan)
        plans.append(plan)
    while search.budget > 0 and search.improved():
        pass
    return min([search.jobs.schedule(search.prices), *plans], key=instance.objective)


class _Orders:
    """Prices of work that follow from orders of events, and the best that were found.

    Parameters
    ----------
    instance : ElasticSharing
        Without a job that cannot run.
    budget : int
        Arrivals and completions that may be followed.
    """

    POWERS = (0.0, 1.0, -0.5)
    """How much less whole jobs are worth the longer they are, in the prices to begin with."""
    AGAIN = 4
    """Orders that are followed one after the other, each for that which comes of the one before."""
    MOVES = (1, -1, 2, -2, 3, -3, 4, -4)
    """Places by which an event is moved."""
    FACTORS = (0.5, 2.0, 0.25, 4.0, 0.8, 1.25)
    """By which a price is changed."""

    def __init__(self, instance: ElasticSharing, budget: int) -> None:
        self.jobs, self.budget = Jobs(instance), budget
        self.prices: FloatArray = np.ones(len(self.jobs))
        self.total, self.events = np.inf, list[int]()

    def follow(self, prices: FloatArray) -> tuple[bool, list[int]]:
        """Return whether prices are better than the best, and the order of events that comes of them."""
        run = self.jobs.follow(prices, whole=True)
        self.budget -= len(run.events)
        # Sums of other intervals differ by rounding.
        better = run.total < self.total * (1 - EXACT)
        if better:
            self.prices, self.total, self.events = prices, run.total, run.events
        if not self.jobs.all_concave:
            # An order's prices are those of the concave curves.
            run = self.jobs.follow(prices, whole=False)
            self.budget -= len(run.events)
        return better, run.events

    def descend(self, prices: FloatArray) -> None:
        """Follow prices, and then those of the order that comes of them, until it stays."""
        last: list[int] = []
        for _ in range(self.AGAIN):
            if self.budget <= 0 and np.isfinite(self.total):
                return
            _, events = self.follow(prices)
            further = self.jobs.prices(events)
            if further is None or events == last:
                return
            prices, last = further, events

    def descend_from(self, plan: Schedule) -> None:
        """Follow the prices of the order in which a plan's jobs complete, and so on."""
        jobs = self.jobs
        ends = jobs.instance.completions(plan)[jobs.which] - jobs.begin
        arrivals = [float(jobs.releases[group[0]]) for group in jobs.groups[1:]]
        # A job that ends as others arrive counts as done before.
        order = sorted([(end, 0, job) for job, end in enumerate(ends)] + [(time, 1, ARRIVAL) for time in arrivals])
        prices = jobs.prices([event for *_, event in order])
        if prices is not None:
            self.descend(prices)

    def improved(self) -> bool:
        """Take the first change of the best prices that is better; return whether there was one."""
        for prices in chain(self._moved(), () if self.jobs.all_concave else self._changed()):
            if self.follow(prices)[0]:
                return True
            if self.budget <= 0:
                break
        return False

    def _moved(self) -> Iterator[FloatArray]:
        """Yield the prices of the best order with one event moved."""
        for at, move in product(range(len(self.events)), self.MOVES):
            if 0 <= at + move < len(self.events):
                events = self.events.copy()
                events.insert(at + move, events.pop(at))
                prices = self.jobs.prices(events)
                if prices is not None:
                    yield prices

    def _changed(self) -> Iterator[FloatArray]:
        """Yield the best prices with one changed."""
        for job, factor in product(range(len(self.jobs)), self.FACTORS):
            prices = self.prices.copy()
            prices[job] *= factor
            yield prices


# --- jobs in an order, and GPUs one by one -------------------------------------------------------

Key = Callable[[ElasticSharing, State, IntArray], FloatArray]
"""A sort key: (m,) float for the active jobs at the given shares."""


def _remaining_times(instance: ElasticSharing, state: State, requests: IntArray) -> FloatArray:
    jobs = state.active
    return np.asarray(state.remaining[jobs] / instance.throughputs[jobs, requests[jobs]])


def _remaining_services(instance: ElasticSharing, state: State, requests: IntArray) -> FloatArray:
    return np.asarray(_remaining_times(instance, state, requests) * requests[state.active])


def _ask_in_vain(instance: ElasticSharing, requests: IntArray) -> bool:
    """Return whether a job with work to do would never run on what it asks for."""
    able = np.minimum(requests, instance.num_gpus)
    runs = instance.throughputs[np.arange(instance.num_jobs), able] > 0
    return bool(((instance.work > 0) & ((requests > instance.num_gpus) | ~runs)).any())


def _by_requests(
    instance: ElasticSharing, requests: IntArray, key: Key, *, gain: Literal["efficiency", "throughput"] | None = None
) -> Schedule | None:
    """Whole requests in order of ``key``; then, with ``gain``, what is left to the jobs that run."""
    if _ask_in_vain(instance, requests):
        return None
    following = np.zeros(0, np.int64) if gain is None else _following(instance.throughputs)
    unit = np.ones(instance.num_jobs)
    if gain == "efficiency":
        fewest = np.maximum(instance.min_shares, 1)
        unit = instance.throughputs[np.arange(instance.num_jobs), fewest] / fewest

    def cost(state: State, job: int, share: int, step: int) -> float:
        table = instance.throughputs[job]
        return -float((table[share + step] - table[share]) / step / unit[job])

    def policy(state: State) -> IntArray:
        order = state.active[np.argsort(key(instance, state, requests), kind="stable")]
        shares = _in_order(instance, requests, order)
        return shares if gain is None else _greedy(instance, following, cost, state, shares)

    return _run(instance, policy)


def _by_attained(instance: ElasticSharing, requests: IntArray, limits: Sequence[float]) -> Schedule | None:
    """Grant whole requests, those first that have had the least service, in queues with these ``limits``."""
    if _ask_in_vain(instance, requests):
        return None
    # In what a job has run for, with the last digit of sums for free.
    ends = np.array(limits) * instance.quantum / np.maximum(requests, 1)[:, None]

    def reached(attained: FloatArray) -> IntArray:
        return np.asarray((attained[:, None] >= ends * (1 - 1e-9)).sum(axis=1))

    def turns(active: IntArray, attained: FloatArray) -> FloatArray:
        return np.concatenate([ends, np.full((len(ends), 1), np.inf)], axis=1)[np.arange(len(ends)), reached(attained)]

    def policy(state: State) -> IntArray:
        queues = reached(state.attained)[state.active]
        return _in_order(instance, requests, state.active[np.lexsort([instance.arrivals[state.active], queues])])

    return _run(instance, policy, turns=turns)


def _in_order(instance: ElasticSharing, requests: IntArray, jobs: IntArray) -> IntArray:
    """Grant the requests of ``jobs`` in this order, each if it fits."""
    shares = np.zeros(instance.num_jobs, np.int64)
    left = instance.num_gpus
    for job in jobs.tolist():
        if requests[job] <= left:
            shares[job] = requests[job]
            left -= int(requests[job])
    return shares


def _filling(instance: ElasticSharing, key: Key, state: State) -> IntArray:
    """Grant the active jobs, in order of ``key``, the most that they can use or what is left of the GPUs."""
    shares = np.zeros(instance.num_jobs, np.int64)
    left = instance.num_gpus
    for job in state.active[np.argsort(key(instance, state, instance.max_shares), kind="stable")]:
        table = instance.throughputs[job]
        shares[job] = np.searchsorted(table, table[min(int(instance.max_shares[job]), left)])
        left -= int(shares[job])
    return shares


def _following(table: FloatArray) -> IntArray:
    """(n, M+1) int: how many more GPUs make a job faster than at each share; 0 where none do."""
    shares = np.arange(table.shape[1] - 1)
    # The first share at or after each from which one GPU more is faster; beyond the last there is none.
    faster = np.where(np.diff(table, axis=1) > 0, shares, len(shares))
    first = np.minimum.accumulate(faster[:, ::-1], axis=1)[:, ::-1]
    steps = np.zeros(table.shape, np.int64)
    steps[:, :-1] = np.where(first < len(shares), first + 1 - shares, 0)
    return steps


def _fewest_first(state: State, job: int, share: int, step: int) -> float:
    return float(share)


def _greedy(
    instance: ElasticSharing,
    following: IntArray,
    cost: Callable[[State, int, int, int], float],
    state: State,
    running: IntArray | None = None,
) -> IntArray:
    """GPUs to the job of least ``cost(state, job, share, step)`` as long as one gains.

    From none on, or from the shares of the jobs that run, which are then the only ones to get more.
    """
    shares = np.zeros(instance.num_jobs, np.int64) if running is None else running
    left = instance.num_gpus - int(shares.sum())
    jobs = state.active if running is None else np.flatnonzero(shares)
    queue = [
        (cost(state, job, int(shares[job]), int(following[job, shares[job]])), job)
        for job in jobs.tolist()
        if following[job, shares[job]]
    ]
    heapq.heapify(queue)
    while queue and left:
        _, job = heapq.heappop(queue)
        step = int(following[job, shares[job]])
        if step > left:
            continue
        shares[job] += step
        left -= step
        further = int(following[job, shares[job]])
        if further:
            heapq.heappush(queue, (cost(state, job, int(shares[job]), further), job))
    return shares


# --- jobs of unknown length ----------------------------------------------------------------------

WHOLE = 1e-9
"""Part of a unit of time by which a whole number of them may be missed, as times are sums."""


def _units(instance: ElasticSharing, active: IntArray, attained: FloatArray) -> FloatArray:
    """(n,) float: how long each job will have run when its present unit of time is over, s.

    While there is a GPU for each job, units do not matter.
    """
    if instance.min_shares[active].sum() <= instance.num_gpus:
        return np.full(instance.num_jobs, np.inf)
    return np.asarray((np.floor(attained / instance.quantum + WHOLE) + 1) * instance.quantum)


def _by_counter(instance: ElasticSharing, further: Callable[[IntArray, State], None], state: State) -> IntArray:
    """Return the first shares of AFS-P, enlarged by ``further`` if there is one for each job."""
    counters = np.floor(state.attained / instance.quantum + WHOLE)
    # Whose unit is over gives back what it has.
    over = (state.attained > 0) & (state.attained <= (counters + WHOLE) * instance.quantum)
    keeps = (state.shares > 0) & ~over
    order = state.active[np.lexsort([counters[state.active], ~keeps[state.active]])]
    shares = _in_order(instance, instance.min_shares, order)
    if shares[state.active].all():
        further(shares, state)
    return shares


class _Gains:
    """The two sides of formula (3) for every job and share."""

    def __init__(self, table: FloatArray) -> None:
        self.following = _following(table)
        jobs, shares = np.arange(len(table))[:, None], np.arange(table.shape[1])
        then = table[jobs, shares + self.following]
        with np.errstate(divide="ignore", invalid="ignore"):
            self.if_shorter = (then - table) / table
            self.if_longer = (then - table) / then


def _by_gain(
    shares: IntArray,
    jobs: IntArray,
    num_gpus: int,
    gains: _Gains,
    rng: np.random.Generator,
    most: IntArray | None = None,
) -> None:
    """Add GPUs to ``shares`` one by one, by AFS-P's scan, up to ``most`` for each job."""
    left = num_gpus - int(shares.sum())
    while left:
        step = gains.following[jobs, shares[jobs]]
        able = (step > 0) & (step <= left)
        if most is not None:
            able &= shares[jobs] + step <= most[jobs]
        jobs = jobs[able]
        if not len(jobs):
            return
        if_shorter = gains.if_shorter[jobs, shares[jobs]].tolist()
        if_longer = gains.if_longer[jobs, shares[jobs]].tolist()
        coins = (rng.random(len(jobs)) < 0.5).tolist()
        best = 0
        for k in range(1, len(jobs)):
            if if_longer[k] > if_shorter[best] or (not if_longer[best] > if_shorter[k] and coins[k]):
                best = k
        job = jobs[best]
        left -= int(gains.following[job, shares[job]])
        shares[job] += gains.following[job, shares[job]]


def _estimates(instance: ElasticSharing, known: IntArray) -> FloatArray:
    """(n, M+1) float: throughputs, linear beyond the shares on which they are ``known``."""
    gpus = np.arange(instance.num_gpus + 1)
    low = np.maximum(instance.min_shares, 1)
    jobs = np.arange(instance.num_jobs)
    last = np.maximum(known, low)
    beyond = instance.throughputs[jobs, last][:, None] * gpus / last[:, None]
    # Where nothing is known the scale is, which the gains do not depend on.
    return np.where(gpus > last[:, None], beyond, instance.throughputs)


# --- the scan of AFS-L ---------------------------------------------------------------------------


class _Scan:
    """Algorithm 1's choice of the job of top priority, again and again until the GPUs are gone."""

    def __init__(self, instance: ElasticSharing, *, later: bool) -> None:
        self.instance = instance
        self.later = later
        self.gains = _Gains(instance.throughputs)
        self.following = self.gains.following

    def shares(self, jobs: IntArray, work: FloatArray) -> IntArray:
        """Shares of all jobs when ``jobs`` compete, scanned in this order; ``work`` (n,) float is left."""
        low = self.instance.min_shares
        with np.errstate(divide="ignore", invalid="ignore"):
            first = work / self.instance.throughputs[np.arange(len(low)), low]
        shares = np.zeros(len(low), np.int64)
        left = self.instance.num_gpus
        if (low[jobs] == 1).all() and (self.gains.if_shorter[jobs, 1] < 1).all():
            # No job with a GPU wins against one without, so that the first round goes by length.
            scanned = jobs[::-1] if self.later else jobs
            served = scanned[np.argsort(first[scanned], kind="stable")[:left]]
            shares[served] = 1
            left -= len(served)
        while left:
            step = self.following[jobs, shares[jobs]]
            jobs = jobs[(step > 0) & (step <= left)]
            if not len(jobs):
                break
            left = self._grant(jobs, shares, left, work, first)
        return shares

    def _grant(self, jobs: IntArray, shares: IntArray, left: int, work: FloatArray, first: FloatArray) -> int:
        """Scan and grant until one of ``jobs`` is out of the running; GPUs left then."""
        share = shares[jobs]
        has = share > 0
        length = np.full(len(jobs), np.inf)
        length[has] = work[jobs[has]] / self.instance.throughputs[jobs[has], share[has]]
        # Lists, because single entries of arrays are slow to read.
        lengths = length.tolist()
        firsts = first[jobs].tolist()
        gains_a, gains_b = self.gains.if_shorter[jobs, share].tolist(), self.gains.if_longer[jobs, share].tolist()
        steps = self.following[jobs, share].tolist()
        largest = max(steps)
        champions, begin = [0], 1
        later = self.later
        while True:
            best = champions[-1]
            for k in range(begin, len(lengths)):
                if lengths[k] == lengths[best] == math.inf:
                    wins = firsts[k] < firsts[best] or (later and firsts[k] == firsts[best])
                elif lengths[k] < lengths[best] or (later and lengths[k] == lengths[best]):
                    wins = gains_a[k] >= gains_b[best]
                else:
                    wins = gains_b[k] > gains_a[best]
                if wins:
                    champions.append(k)
                    best = k
            job = jobs[best]
            shares[job] += steps[best]
            left -= steps[best]
            now = shares[job]
            lengths[best] = float(work[job] / self.instance.throughputs[job, now])
            gains_a[best], gains_b[best] = float(self.gains.if_shorter[job, now]), float(self.gains.if_longer[job, now])
            steps[best] = int(self.following[job, now])
            largest = max(largest, steps[best])
            if not steps[best] or left < largest:
                return left
            # Up to the winner the scan would go as before; from there it is made anew.
            champions.pop()
            champions, begin = champions or [0], max(best, 1)
