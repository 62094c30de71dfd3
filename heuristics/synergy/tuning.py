"""Fast methods for :class:`instances.synergy.tuning.Tuning`.

A job's *best-case demand* is the fastest configuration that it may take, with the least CPU and memory
of those as fast; with ``saturation`` above 0, the least that is nearly as fast.  Synergy-Greedy, DRF and
Tetris insist on it, and skip the jobs that no longer fit; Tune may give any job its GPU-proportional
share instead.  A job that is left out has choice -1 and no GPUs in the plan, which is then infeasible:
``instance.skipped(plan)`` says which jobs.

Servers are compared by free GPUs, then free CPU cores, then free memory; the *tightest* one has
the least.  Ties go to the lowest index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, cycle, groupby, islice

import numpy as np
from numpy.typing import ArrayLike

from heuristics.synergy.allocation import greedy_marginal
from instances.schema import BoolArray, FloatArray, IntArray
from instances.synergy.packing import first_stage, own_choices, packings, repaired
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT
from instances.synergy.tuning import Tuning, TuningPlan

__all__ = [
    "ROUNDING",
    "STEPS",
    "balanced_tune",
    "drf",
    "greedy",
    "greedy_split",
    "local_search",
    "proportional",
    "tetris",
    "tune",
    "tune_and_upgrade",
]

ROUNDING = 1e-12
"""The most that rounding may add to a demand, relative to a server's capacity."""
STEPS = 200
"""Moves and swaps of each walk of :func:`local_search`."""


def proportional(instance: Tuning) -> TuningPlan:
    """Every job with its GPU-proportional share, the jobs with most GPUs placed first.

    Each job takes its fastest configuration at or below the share.  It goes to the tightest server
    that holds it or, if jobs may be split, over the fewest servers.

    Guarantee: where every job has a fair configuration within its share (which is so under the
    default fair throughputs), jobs may be split and their GPUs fit the cluster, feasible.
    Complexity: O(n s).

    References
    ----------
    Synergy (OSDI'22), section 2 (GPU-proportional allocation).
    """
    servers = _Servers(instance)
    choices = _fair_proportional(instance)
    for job in np.argsort(-instance.gpu_demands, kind="stable").tolist():
        if choices[job] >= 0:
            servers.place(job, int(choices[job]))
    return servers.plan()


def greedy(instance: Tuning, *, order: Sequence[int] | None = None, saturation: float = 0.0) -> TuningPlan:
    """Synergy-Greedy: best-case demands, first fit on one server each; a job that does not fit is skipped.

    The jobs come in the order of the queue.  A job goes to the first server that holds its
    best-case demand whole.  One with more GPUs than a server is therefore always skipped.

    Guarantee: none, and not always a feasible plan, because jobs may be skipped; those that run
    are at their best.  Complexity: O(n s).

    Parameters
    ----------
    instance : Tuning
    order : sequence of n int, optional
        The queue (:mod:`instances.synergy.queue` orders one); by default the jobs' own order.
    saturation : float
        How much of its greatest throughput a job with its best-case demand may lack, as a fraction.

    References
    ----------
    Synergy (OSDI'22), section 3.3; best-case demands 3.2.
    """
    return _first_fit(instance, order, saturation, split=False)


def greedy_split(instance: Tuning, *, order: Sequence[int] | None = None) -> TuningPlan:
    """:func:`greedy` for jobs that may be split (ours).

    A job whose best-case demand no server holds takes, if jobs may be split, as many GPUs as it can with
    their part of the demand, server by server.  The paper evaluates Synergy-Greedy with jobs larger than
    a server, which its section 3.3 leaves no place for.

    Guarantee: none; jobs may be skipped.  Complexity: O(n s).

    Parameters
    ----------
    instance : Tuning
    order : sequence of n int, optional
        The queue; by default the jobs' own order.
    """
    return _first_fit(instance, order, 0.0, split=instance.allow_split)


def _first_fit(instance: Tuning, order: Sequence[int] | None, saturation: float, *, split: bool) -> TuningPlan:
    servers, best = _Servers(instance), instance.best_case(saturation)
    for job in range(instance.num_jobs) if order is None else order:
        if best[job] >= 0:
            servers.place_first(job, int(best[job]), split=split)
    return servers.plan()


def drf(instance: Tuning) -> TuningPlan:
    """Dominant resource fairness with best-case demands: the smallest dominant share first.

    A job's dominant share is the largest of its fractions of the cluster's GPUs, CPU cores and
    memory.  In this order jobs are placed as by :func:`greedy_split`, so some may be skipped.

    Guarantee: none.  Complexity: O(n s).

    References
    ----------
    Synergy (OSDI'22), section 5.7, as a baseline; Ghodsi et al., "Dominant Resource Fairness"
    (NSDI'11).
    """
    return greedy_split(instance, order=np.argsort(_fractions(instance).max(axis=1), kind="stable").tolist())


def tetris(instance: Tuning, *, durations: ArrayLike | None = None) -> TuningPlan:
    """Tetris with best-case demands: the smallest remaining amount of resources times time first.

    A job's amount is the sum of its fractions of the cluster's GPUs, CPU cores and memory, times
    its remaining duration.  In this order jobs are placed as by :func:`greedy_split`, so some may be
    skipped.  This is how the authors' simulator orders jobs; the alignment score of Tetris's own
    paper has no part in it.

    Guarantee: none.  Complexity: O(n s).

    Parameters
    ----------
    instance : Tuning
    durations : (n,) array_like, optional
        Remaining time of each job at its best-case demand, s; all equal by default.

    References
    ----------
    Synergy (OSDI'22), section 5.7, as a baseline; Grandl et al., "Multi-resource Packing for
    Cluster Schedulers" (SIGCOMM'14).
    """
    amounts = _fractions(instance).sum(axis=1)
    if durations is not None:
        times = np.asarray(durations, float)
        if times.shape != amounts.shape or not (times >= 0).all():
            raise ValueError(f"durations: must be {instance.num_jobs} times of at least 0 s")
        amounts = amounts * times
    return greedy_split(instance, order=np.argsort(amounts, kind="stable").tolist())


def tune(
    instance: Tuning,
    *,
    greater: str = "any",
    saturation: float = 0.0,
    largest_first: bool = True,
    elsewhere: bool = True,
) -> TuningPlan:
    """Synergy-Tune: best-case demands where they fit, GPU-proportional shares where they do not.

    1. Sort the jobs by GPUs, then CPU cores, then memory of their best-case demands, largest first.
    2. Place each on the tightest server that holds its demand or, if there is none, split it over
       the fewest servers, CPUs and memory in proportion to the GPUs.
    3. If that fails and the demand is greater than the GPU-proportional share, reduce it to the
       share and try again.
    4. If that fails too, find servers by GPUs alone, and revert jobs on them whose resources are
       greater than their proportional share to that share, until the job fits.  Reverted first are
       jobs on the fewest servers, then those with most CPU cores per GPU, then most memory per GPU.
       A reverted job may need more of one resource than before, and have GPUs on other servers as
       well: where one of them is now overfull, jobs on it are reverted in the same way (ours; as
       printed, with ``elsewhere=False``, only jobs on the servers that have the job's GPUs are).

    The paper calls the jobs to revert in step 4 present by construction.  They are with "any":
    then all that is left on a server is within its share, and so is the job.  With "all" a job
    whose CPU cores alone exceed its share counts as not greater, and there may be nothing to
    revert: the job is then left out, and no job is reverted for it.

    Guarantee: with "any", the default fair throughputs, splitting allowed and enough GPUs, a
    feasible plan in which every job runs at least as fast as with its GPU-proportional share.
    Whatever the instance, no server is overfull, unless ``elsewhere`` is False.  None is known relative
    to the optimum.
    Complexity: O(n (s + r)) for r jobs reverted for a job.

    Parameters
    ----------
    instance : Tuning
    greater : str
        "any": greater than the proportional share in CPU cores or in memory.  "all": in both.
    saturation : float
        How much of its greatest throughput a job with its best-case demand may lack, as a fraction.
    largest_first : bool
        The direction of step 1, which is not printed; False begins with the smallest jobs.
    elsewhere : bool
        Whether step 4 goes on where a reverted job overfills another server.

    References
    ----------
    Synergy (OSDI'22), section 4.2; best-case demands 3.2.  The order in step 4 is that of the authors' simulator; what
    a reverted job's other servers see is left open there.
    """
    if greater not in ("any", "all"):
        raise ValueError(f"greater: got {greater!r}, must be 'any' or 'all'")
    servers = _Servers(instance, elsewhere=elsewhere)
    return _tuned(instance, greater, servers, instance.best_case(saturation), largest_first)


def _tuned(instance: Tuning, greater: str, servers: _Servers, best: IntArray, largest_first: bool = True) -> TuningPlan:
    share = _fair_proportional(instance)
    is_greater = _greater_than_share(instance, best, greater)
    demand = instance.chosen(best)
    sign = -1 if largest_first else 1
    order = np.lexsort((sign * demand[:, MEMORY], sign * demand[:, CPU], sign * instance.gpu_demands))
    for job in order.tolist():
        choice = int(best[job])
        if choice < 0 or not instance.fair_configs[job][choice] or servers.place(job, choice):
            continue
        if is_greater[job] and share[job] >= 0:
            choice = int(share[job])
            if servers.place(job, choice):
                continue
        servers.make_room(job, choice, share, revertible=is_greater & (share >= 0))
    return servers.plan()


def tune_and_upgrade(instance: Tuning) -> TuningPlan:
    """:func:`tune`, then faster configurations where the servers have something left (ours).

    Tune gives a job its best-case demand or its GPU-proportional share, nothing in between.  Here,
    with every job kept in its place, the upgrade that adds the most throughput for each added
    fraction of a server's CPUs and memory is taken, as long as one fits on all of a job's servers.
    Ties go to the lowest job.

    Guarantee: that of :func:`tune`, and never below it.  Complexity: that of :func:`tune`, and O(A) for each
    upgrade among A configurations.
    """
    return _upgraded(instance, tune(instance))


def balanced_tune(instance: Tuning) -> TuningPlan:
    """:func:`tune_and_upgrade` with jobs on the servers that they leave most balanced (ours).

    The tightest server soon has GPUs left but no CPU cores for them, and the jobs that come to
    use those GPUs revert others.  Here step 2 of Tune puts a job, of all servers that hold it, on
    the one whose scarcest resource is then least scarce, as a fraction of the server.

    Guarantee: that of :func:`tune`, a feasible plan with every job at least as fast as with its
    GPU-proportional share.
    Complexity: that of :func:`tune_and_upgrade`.
    """
    return _upgraded(instance, _tuned(instance, "any", _Servers(instance, balanced=True), instance.best_choices))


def local_search(instance: Tuning, *, budget: int = 200) -> TuningPlan:
    """Two jobs at a time take the best configurations together, or each other's places (ours).

    It begins with two plans.  One is that of :func:`balanced_tune`.  The other is the first stage's, packed:
    :func:`heuristics.synergy.allocation.greedy_marginal` chooses configurations, walks of moves and swaps pack them
    (:mod:`instances.synergy.packing`), and where a server is overloaded still, jobs on it take less.  Then two whole
    jobs of a server take, of all pairs of configurations for which its cores and memory suffice beside the other jobs,
    the one with the greatest throughput; two of as many GPUs on different servers change places, and each takes the
    best configurations together with the jobs there, one after the other; or, where jobs may be split, both have half
    of their GPUs on either server and take the best configurations together.  What adds throughput is done, pair after
    pair, until nothing does or ``budget`` is used up.  Jobs on several servers stay as they are.

    Guarantee: that of :func:`balanced_tune`, and never below it; none known relative to the optimum.
    Complexity: that of :func:`balanced_tune`, O(n s) for each step of a walk, and O(a**2) for each pair of jobs with a
    configurations.

    Parameters
    ----------
    instance : Tuning
    budget : int
        Pairs of jobs that are looked at, half of them from either plan.
    """
    balanced = balanced_tune(instance)
    if not instance.num_jobs:
        return balanced
    packed = sorted(_stage_packed(instance), key=instance.objective)[-1:]
    plans = packed if packed and instance.violations(balanced) else [balanced, *packed]
    return max((_exchanged(instance, plan, budget // len(plans)) for plan in plans), key=instance.objective)


def _exchanged(instance: Tuning, plan: TuningPlan, budget: int) -> TuningPlan:
    """Return the plan after what adds throughput among so many pairs of whole jobs."""
    search = _Exchanges(instance, plan)
    home, whole = search.home.copy(), search.whole.copy()
    # Pairs on one server come first, as they are at the beginning.
    on_each = groupby(sorted(whole, key=lambda job: home[job]), key=lambda job: home[job])
    on_one = sorted(chain.from_iterable(combinations(jobs, 2) for _, jobs in on_each))
    apart = ((one, other) for one, other in combinations(whole, 2) if home[one] != home[other])
    since = 0
    for one, other in islice(cycle(chain(on_one, apart)), max(0, budget)):
        since = 0 if search.improve(one, other) else since + 1
        if since == math.comb(len(whole), 2):
            break
    return search.plan()


def _stage_packed(instance: Tuning) -> Iterator[TuningPlan]:
    """Yield plans of the first stage's configurations, packed."""
    stage, kept = first_stage(instance)
    choices = own_choices(greedy_marginal(stage), kept)
    if (choices < 0).any():
        return
    for gpus in packings(instance, choices, np.random.default_rng(0), steps=STEPS):
        plan = repaired(instance, choices, gpus)
        if plan is not None and not instance.violations(plan):
            yield plan


class _Exchanges:
    """A plan in which two whole jobs change their configurations, or their places.

    Attributes
    ----------
    whole : list of int
        Jobs on one server each.
    home : (n,) int
        Their servers.
    """

    def __init__(self, instance: Tuning, plan: TuningPlan) -> None:
        self.instance, self._gpus = instance, plan.gpus.copy()
        self._choices = plan.choices.copy()
        placed = (plan.gpus > 0).sum(axis=1) == 1
        self.whole: list[int] = np.flatnonzero(placed & (plan.choices >= 0)).tolist()
        self.home = plan.gpus.argmax(axis=1)
        capacity = np.array([instance.server_cpus, instance.server_memory])
        self._left = capacity - instance.used(plan.choices, plan.gpus)
        self._slack = ROUNDING * capacity
        pairs = zip(instance.undominated, instance.usable_configs, strict=True)
        self._rows = [rows[usable[rows]] for rows, usable in pairs]
        self._tables = [table[rows] for rows, table in zip(self._rows, instance.configs, strict=True)]

    def plan(self) -> TuningPlan:
        return TuningPlan(choices=self._choices, gpus=self._gpus)

    def improve(self, one: int, other: int) -> bool:
        """Let two jobs change what adds throughput; return whether anything does."""
        if one not in self.whole or other not in self.whole:
            return False
        if self.home[one] == self.home[other]:
            return self._together(one, other)
        alike = bool(self.instance.gpu_demands[one] == self.instance.gpu_demands[other])
        return alike and (self._swap(one, other) or self._split(one, other))

    def _together(self, one: int, other: int) -> bool:
        """Give two jobs of a server the best pair of configurations, if that is better than theirs."""
        server, now = int(self.home[one]), self._held(one) + self._held(other)
        room = self._left[server] + now[:THROUGHPUT] + self._slack
        pair = self._best_pair(one, other, [(1.0, 1.0, room)])
        if pair is None:
            return False
        self._move(one, server, pair[0])
        self._move(other, server, pair[1])
        return True

    def _best_pair(
        self, one: int, other: int, places: list[tuple[float, float, FloatArray]], worth: float = 1.0
    ) -> tuple[int, int] | None:
        """Return the fastest pair of configurations, if faster than theirs, by parts of each job and room in places.

        Of their throughput counts the part that is ``worth``.
        """
        first, second = self._tables[one], self._tables[other]
        both = worth * (first[:, None, THROUGHPUT] + second[:, THROUGHPUT])
        for part, rest, room in places:
            needed = part * first[:, None, :THROUGHPUT] + rest * second[:, :THROUGHPUT]
            both = np.where((needed <= room).all(axis=2), both, -np.inf)
        at = divmod(int(both.argmax()), both.shape[1])
        if both[at] <= self._throughput([one, other]) * (1 + ROUNDING):
            return None
        return int(self._rows[one][at[0]]), int(self._rows[other][at[1]])

    def _split(self, one: int, other: int) -> bool:
        """Let two jobs of two servers have half of their GPUs on either, with the best pair, if that is better."""
        demand = int(self.instance.gpu_demands[one])
        if demand < 2 or not self.instance.allow_split:
            return False
        servers, half = (int(self.home[one]), int(self.home[other])), -(-demand // 2)
        part = half / demand
        rooms = [
            self._left[server] + self._held(job)[:THROUGHPUT] + self._slack
            for job, server in zip((one, other), servers, strict=True)
        ]
        kept = 1 - self.instance.split_penalty
        pair = self._best_pair(one, other, [(part, 1 - part, rooms[0]), (1 - part, part, rooms[1])], kept)
        if pair is None:
            return False
        for job, server, config in zip((one, other), servers, pair, strict=True):
            self._left[server] += self._held(job)[:THROUGHPUT]
            self._choices[job] = config
            self._gpus[job, list(servers)] = demand - half
            self._gpus[job, server] = half
            self.whole.remove(job)
        for job in (one, other):
            for server in servers:
                self._left[server] -= self._gpus[job, server] / demand * self._held(job)[:THROUGHPUT]
        return True

    def _swap(self, one: int, other: int) -> bool:
        """Let two jobs change places, and then each its configuration with the jobs there, if that is better."""
        servers = int(self.home[one]), int(self.home[other])
        jobs = [job for job in self.whole if self.home[job] in servers]
        before, held = self._throughput(jobs), {job: (int(self.home[job]), int(self._choices[job])) for job in jobs}
        places = [(one, servers[1], other), (other, servers[0], one)]
        configs = [self._best(job, self._left[to] + self._held(gone)[:THROUGHPUT]) for job, to, gone in places]
        if None in configs:
            return False
        for (job, server, _), config in zip(places, configs, strict=True):
            assert config is not None
            self._move(job, server, config)
        for job, server, _ in places:
            for partner in jobs:
                if partner != job and self.home[partner] == server:
                    self._together(job, partner)
        if self._throughput(jobs) > before * (1 + ROUNDING):
            return True
        for job, (server, config) in held.items():
            self._move(job, server, config)
        return False

    def _throughput(self, jobs: list[int]) -> float:
        return float(sum(self._held(job)[THROUGHPUT] for job in jobs))

    def _held(self, job: int) -> FloatArray:
        """(3,) float: cores, memory and throughput of a job."""
        held: FloatArray = self.instance.configs[job][self._choices[job]]
        return held

    def _best(self, job: int, room: FloatArray) -> int | None:
        """Return the fastest configuration for which there is room."""
        table = self._tables[job]
        fitting = np.flatnonzero((table[:, :THROUGHPUT] <= room + self._slack).all(axis=1))
        return int(self._rows[job][fitting[table[fitting, THROUGHPUT].argmax()]]) if len(fitting) else None

    def _move(self, job: int, server: int, config: int) -> None:
        self._left[self.home[job]] += self._held(job)[:THROUGHPUT]
        self._gpus[job, self.home[job]] = 0
        self._choices[job], self.home[job] = config, server
        self._left[server] -= self._held(job)[:THROUGHPUT]
        self._gpus[job, server] = self.instance.gpu_demands[job]


def _upgraded(instance: Tuning, plan: TuningPlan) -> TuningPlan:
    """Return the plan with faster configurations that fit where the jobs are."""
    choices = plan.choices.copy()
    left = np.array([instance.server_cpus, instance.server_memory]) - instance.used(plan.choices, plan.gpus)
    slack = ROUNDING * np.array([instance.server_cpus, instance.server_memory])
    scale = np.array([instance.server_cpus or 1.0, instance.server_memory or 1.0])
    parts = plan.gpus / instance.gpu_demands[:, None]
    homes = [np.flatnonzero(row) for row in plan.gpus]
    best: dict[int, tuple[float, int]] = {}
    touched: Iterable[int] = range(instance.num_jobs)
    while True:
        for job in touched:
            best.pop(job, None)
            if choices[job] < 0:
                continue
            table = instance.configs[job]
            extra = table[:, :THROUGHPUT] - table[choices[job], :THROUGHPUT]
            gain = table[:, THROUGHPUT] - table[choices[job], THROUGHPUT]
            needed = parts[job, homes[job], None, None] * extra
            fits = (needed <= left[homes[job], None] + slack).all(axis=(0, 2)) & (gain > 0)
            fits &= instance.allowed_configs[job]
            cost = (extra / scale).sum(axis=1)
            rate = np.where(fits, np.where(cost > 0, gain / np.where(cost > 0, cost, 1.0), np.inf), -np.inf)
            if fits.any():
                best[job] = (float(rate.max()), int(rate.argmax()))
        if not best:
            return TuningPlan(choices=choices, gpus=plan.gpus)
        job = max(best, key=lambda candidate: (best[candidate][0], -candidate))
        table, config = instance.configs[job], best[job][1]
        extra = table[config, :THROUGHPUT] - table[choices[job], :THROUGHPUT]
        left[homes[job]] -= parts[job, homes[job], None] * extra
        choices[job] = config
        touched = np.flatnonzero(plan.gpus[:, homes[job]].any(axis=1)).tolist()


def _fair_proportional(instance: Tuning) -> IntArray:
    """(n,) int: each job's fastest configuration within its share, if that is fair; else -1."""
    choices = instance.proportional_choices
    fair = np.array([c >= 0 and instance.fair_configs[job][c] for job, c in enumerate(choices.tolist())], bool)
    return np.where(fair, choices, -1)


def _greater_than_share(instance: Tuning, choices: IntArray, greater: str) -> BoolArray:
    """(n,) bool: whether the chosen resources exceed the GPU-proportional share, in any or in all."""
    exceeds = instance.chosen(choices)[:, :THROUGHPUT] > instance.shares * (1 + ROUNDING)
    found: BoolArray = np.asarray(exceeds.any(axis=1) if greater == "any" else exceeds.all(axis=1))
    return found


def _fractions(instance: Tuning) -> FloatArray:
    """(n, 3) float: best-case demands as fractions of the cluster's GPUs, CPU cores and memory."""
    sizes = instance.num_servers * np.array([instance.server_gpus, instance.server_cpus, instance.server_memory])
    demands = np.column_stack([instance.gpu_demands, instance.chosen(instance.best_choices)[:, :THROUGHPUT]])
    fractions: FloatArray = demands / np.where(sizes > 0, sizes, 1.0)
    return fractions


class _Servers:
    """The free resources and the jobs of each server."""

    def __init__(self, instance: Tuning, *, balanced: bool = False, elsewhere: bool = True) -> None:
        self.instance = instance
        self.balanced = balanced
        self.elsewhere = elsewhere
        self.capacity = np.array([instance.server_gpus, instance.server_cpus, instance.server_memory], float)
        self.slack = ROUNDING * self.capacity
        # One row for each resource: free[0] are GPUs.
        self.free = np.repeat(self.capacity[:, None], instance.num_servers, axis=1)
        self.choices = np.full(instance.num_jobs, -1, np.int64)
        self.where: list[dict[int, int]] = [{} for _ in range(instance.num_jobs)]
        self.jobs: list[list[int]] = [[] for _ in range(instance.num_servers)]

    def plan(self) -> TuningPlan:
        gpus = np.zeros((self.instance.num_jobs, self.instance.num_servers), np.int64)
        for job, held in enumerate(self.where):
            for server, count in held.items():
                gpus[job, server] = count
        return TuningPlan(choices=self.choices, gpus=gpus)

    def place(self, job: int, choice: int) -> bool:
        """On the tightest server that holds the job, else over the fewest servers."""
        demand = self._demand(job, choice)
        gpus, cpus, memory = self.free
        slack = self.slack
        fits = (gpus >= demand[0]) & (cpus >= demand[1] - slack[1]) & (memory >= demand[2] - slack[2])
        if fits.any():
            servers = np.flatnonzero(fits)
            server = self._most_balanced(servers, demand) if self.balanced else self._tightest(servers)
            self._put(job, choice, {server: int(demand[0])})
            return True
        if not self.instance.allow_split or demand[0] == 1:
            return False
        held = self._over_fewest(int(demand[0]), self._room(demand / demand[0]))
        if held:
            self._put(job, choice, held)
        return bool(held)

    def place_first(self, job: int, choice: int, *, split: bool) -> bool:
        """On the first server that holds the job, else, with ``split``, over servers in their order."""
        demand = self._demand(job, choice)
        room = self._room(demand / demand[0])
        left = int(demand[0])
        whole = np.flatnonzero(room >= left)
        held = {}
        if whole.size:
            held[int(whole[0])] = left
        elif split and room.sum() >= left:
            for server in np.flatnonzero(room).tolist():
                held[server] = min(left, int(room[server]))
                left -= held[server]
                if not left:
                    break
        if held:
            self._put(job, choice, held)
        return bool(held)

    def make_room(self, job: int, choice: int, share: IntArray, revertible: BoolArray) -> bool:
        """Step 4 of :func:`tune`: revert jobs on servers with enough GPUs until this one fits there."""
        demand = self._demand(job, choice)
        for held in self._by_gpus_alone(int(demand[0])):
            chosen = self._to_revert(held, demand / demand[0], share, revertible)
            if chosen is not None:
                for other in chosen:
                    places = self.where[other]
                    self._remove(other)
                    self._put(other, int(share[other]), places)
                self._put(job, choice, held)
                return True
        return False

    def _by_gpus_alone(self, gpus: int) -> Iterator[dict[int, int]]:
        """Places with enough free GPUs: single servers, tightest first; only without any, the fewest servers."""
        fits = np.flatnonzero(self.free[0] >= gpus)
        for server in fits[np.lexsort(self.free[:, fits][::-1])].tolist():
            yield {server: gpus}
        held = self._over_fewest(gpus, self.free[0].astype(np.int64)) if self.instance.allow_split else {}
        if held and not fits.size:
            yield held

    def _to_revert(
        self, held: dict[int, int], per_gpu: FloatArray, share: IntArray, revertible: BoolArray
    ) -> list[int] | None:
        """Jobs to revert so that with the new one in ``held`` no server is overfull; None if there are not enough."""
        # What is free where this changes it.  The other servers are not overfull, and stay so.
        free = {server: self.free[:, server] - gpus * per_gpu for server, gpus in held.items()}
        chosen: list[int] = []
        # Shares that all exceed their server's part by what rounding may add are no reason to revert.
        least = -2 * self.slack
        while overfull := [server for server, left in free.items() if (left < least).any()]:
            # The job's own servers come first; others are overfull only through a job reverted for them.
            server = overfull[0] if overfull[0] in held else min(overfull)
            present = [
                other
                for other in self.jobs[server]
                if revertible[other] and self.choices[other] != share[other] and other not in chosen
            ]
            if not present:
                return None
            other = min(present, key=self._revert_order)
            chosen.append(other)
            saved = self._demand(other, int(self.choices[other])) - self._demand(other, int(share[other]))
            for place, count in self.where[other].items():
                if place not in free:
                    if not self.elsewhere:
                        continue
                    free[place] = self.free[:, place].copy()
                free[place] += saved * (count / self.instance.gpu_demands[other])
        return chosen

    def _revert_order(self, job: int) -> tuple[int, float, float, int]:
        gpus, cpus, memory = self._demand(job, int(self.choices[job])).tolist()
        return len(self.where[job]), -cpus / gpus, -memory / gpus, job

    def _demand(self, job: int, choice: int) -> FloatArray:
        """GPUs, CPU cores and memory of a job under a choice."""
        config = self.instance.configs[job][choice]
        return np.array([self.instance.gpu_demands[job], config[CPU], config[MEMORY]])

    def _room(self, per_gpu: FloatArray) -> IntArray:
        """(s,) int: GPUs that each server can give with ``per_gpu`` resources for each of them."""
        room = self.free[0].copy()
        for resource in (1, 2):
            if per_gpu[resource] > 0:
                room = np.minimum(room, (self.free[resource] + self.slack[resource]) / per_gpu[resource])
        whole: IntArray = np.floor(room).astype(np.int64)
        return whole

    def _over_fewest(self, gpus: int, room: IntArray) -> dict[int, int]:
        """GPUs on the fewest servers with ``room`` for them, the last one the tightest that will do; empty if none."""
        if room.sum() < gpus:
            return {}
        order = np.argsort(-room, kind="stable")
        last = int(np.searchsorted(np.cumsum(room[order]), gpus))
        held = {int(server): int(room[server]) for server in order[:last]}
        rest = gpus - sum(held.values())
        others = order[last:]
        held[self._tightest(np.sort(others[room[others] >= rest]))] = rest
        return held

    def _tightest(self, servers: IntArray) -> int:
        for row in self.free:
            values = row[servers]
            servers = servers[values == values.min()]
            if len(servers) == 1:
                break
        return int(servers[0])

    def _most_balanced(self, servers: IntArray, demand: FloatArray) -> int:
        scale = np.maximum(self.capacity, np.finfo(float).tiny)[:, None]
        left = (self.free[:, servers] - demand[:, None]) / scale
        # Resources that the servers do not have are never scarce.
        return int(servers[np.where(self.capacity[:, None] > 0, left, 1.0).min(axis=0).argmax()])

    def _put(self, job: int, choice: int, held: dict[int, int]) -> None:
        per_gpu = self._demand(job, choice) / self.instance.gpu_demands[job]
        self.choices[job] = choice
        self.where[job] = held
        for server, count in held.items():
            self.free[:, server] -= count * per_gpu
            self.jobs[server].append(job)

    def _remove(self, job: int) -> None:
        per_gpu = self._demand(job, int(self.choices[job])) / self.instance.gpu_demands[job]
        for server, count in self.where[job].items():
            self.free[:, server] += count * per_gpu
            self.jobs[server].remove(job)
