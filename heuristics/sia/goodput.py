"""Fast methods for :class:`instances.sia.goodput.Goodput`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heuristics.gavel.binning import Maximize
from heuristics.gavel.max_min_fairness import interior_point
from instances.gavel.round_assignment import RoundAssignment
from instances.schema import FloatArray, IntArray
from instances.sia.goodput import Goodput, GoodputPlan

__all__ = [
    "gavel_rounded",
    "genetic_search",
    "greedy_goodput",
    "greedy_marginal",
    "optimus",
    "priced_types",
    "relaxation_rounded",
]

ROUNDS, BETWEEN = 48, 12
"""Rounds of prices, and how many there are from one plan to the next."""
STEP, FALL = 0.5, 0.02
"""Of prices: the part of Polyak's step, and how much smaller each one is than the last."""
PASSES = 20
"""Times that exchanges of two jobs are looked for."""
MOST = 400
"""Changes of one job of which exchanges are made."""
ROUNDING = 1e-12
"""What a change must gain."""
DECIMALS = 6
"""Of parts that programs give, by which jobs are put in order: those closer together are alike on every machine."""


def greedy_marginal(instance: Goodput) -> GoodputPlan:
    """Change one job's configuration after the other, by what it gains for each GPU more.

    All jobs wait at first.  Each time the change is made, of those that fit and lessen the value, that lessens it most
    for each GPU that it takes beyond those that the job holds; one that takes no more GPUs comes before all others.
    Ties go to the lowest job, then the lowest configuration.

    Guarantee: feasible, and no change of one job alone is better; none known relative to the optimum.
    Complexity: O(n k) for each change.

    References
    ----------
    The field's common rule for multiple-choice knapsacks; Sia (SOSP'23) states the program.
    """
    choices = _Choices(instance)
    return choices.plan(choices.improved(choices.all_wait()))


def greedy_goodput(instance: Goodput) -> GoodputPlan:
    """Change one job's configuration after the other, by the goodput that it gains for each GPU more.

    As :func:`greedy_marginal`, whatever the instance's power, by goodputs themselves (of which a restart leaves a
    part): the sum of goodputs is made great, and nobody is kept from waiting.

    Guarantee: feasible, and no change of one job alone makes the sum of goodputs greater; none on the value but with
    the power 1, where it is :func:`greedy_marginal`.
    Complexity: O(n k) for each change.

    References
    ----------
    Marginal goodput, as it is read where p is 1; Sia (SOSP'23) states the program.
    """
    choices = _Choices(replace(instance, power=1.0))
    return choices.plan(choices.improved(choices.all_wait()))


def optimus(instance: Goodput) -> GoodputPlan:
    """Give every job its fewest GPUs, and then steps of more to the job whose work they shorten most (Optimus).

    Jobs of the fewest GPUs come first, each on the type where it is fastest on as few.  Then a step goes to the next
    configuration of the job's type on which it can run, as long as GPUs suffice: to the job whose time for a unit of
    work, 1 over its goodput, falls most for each GPU.  A step that would make its job slower is never made, nor any
    beyond it; what jobs hold now and what a restart leaves are not asked.  Ties go to the lowest job.

    Guarantee: feasible; none known relative to the optimum.
    Complexity: O(n k) to begin with, and O(n) for each step.

    References
    ----------
    Optimus (EuroSys'18), as Sia's released code has it (``policy/optimus.py``): one GPU at a time on one type, by what
    it saves of the time that all of a job's work left takes.  Work is no data of this problem; types, and steps from
    one configuration to another, are ours.
    """
    choices = _Choices(instance)
    held, left = choices.all_wait(), instance.num_gpus.copy()
    able = instance.goodputs > 0
    fewest = np.where(able, instance.config_gpus, np.iinfo(np.int64).max).min(axis=1)
    for job in np.argsort(fewest, kind="stable").tolist():
        fits = able[job] & (instance.config_gpus == fewest[job]) & (fewest[job] <= left[instance.config_types])
        if fits.any():
            held[job] = int(np.where(fits, instance.goodputs[job], -1.0).argmax())
            left[instance.config_types[held[job]]] -= fewest[job]

    def step(job: int) -> tuple[float, int]:
        """Return what a job's next step gains for each GPU, and the configuration that it leads to."""
        now = held[job]
        further = able[job] & (choices.types[:-1] == choices.types[now]) & (choices.gpus[:-1] > choices.gpus[now])
        if not further.any():
            return 0.0, -1
        gpus = choices.gpus[:-1][further].min()
        then = int(np.where(further & (choices.gpus[:-1] == gpus), instance.goodputs[job], -1.0).argmax())
        shorter = 1 / instance.goodputs[job, now] - 1 / instance.goodputs[job, then]
        return shorter / float(gpus - choices.gpus[now]), then

    steps = [step(job) if held[job] < instance.num_configs else (0.0, -1) for job in range(instance.num_jobs)]
    gains = np.array([gain for gain, _ in steps])
    while (gains > 0).any():
        job = int(gains.argmax())
        then = steps[job][1]
        more = choices.sizes[then] - choices.sizes[held[job]]
        if (more > left).any():
            gains[job] = 0.0
            continue
        held[job], left = then, left - more
        steps[job] = step(job)
        gains[job] = steps[job][0]
    return choices.plan(held)


def gavel_rounded(instance: Goodput) -> GoodputPlan:
    """Let jobs of a fixed number of GPUs have the types on which Gavel's max-min fairness gives them most time.

    A job's number of GPUs is the greatest of its configurations' up to an equal share of all GPUs, or else its least
    (ours).  Then Gavel's first round follows from its allocation, which
    :func:`heuristics.gavel.max_min_fairness.interior_point` finds, by its Algorithm 1: the greatest part of time first,
    of all jobs and types, where GPUs are left.

    Guarantee: feasible; none known relative to the optimum.
    Complexity: that of the interior-point method, for n jobs on t types.

    References
    ----------
    Gavel (OSDI'20), section 4.1 and Algorithm 1, as Sia's evaluation has it: jobs of fixed GPUs.
    """
    able = (instance.goodputs > 0) & instance.fits
    jobs = np.flatnonzero(able.any(axis=1))
    configs = np.full(instance.num_jobs, -1)
    if jobs.size:
        gpus = np.where(able[jobs], instance.config_gpus, 0)
        share = max(1, int(instance.num_gpus.sum()) // instance.num_jobs)
        least = np.where(gpus > 0, gpus, gpus.max()).min(axis=1)
        widths = np.maximum(np.where(gpus <= share, gpus, 0).max(axis=1), least)
        fair = instance.max_min_fairness(jobs, widths)
        fractions = interior_point(fair).time_fractions
        chosen = RoundAssignment(
            priorities=np.maximum(np.round(fractions, DECIMALS), 0.0),
            num_workers=fair.num_workers,
            scale_factors=fair.scale_factors,
            eligible=fair.throughputs > 0,
        ).filled()
        for row, kind in np.argwhere(chosen.chosen).tolist():
            at = (instance.config_types == kind) & (instance.config_gpus == widths[row])
            configs[jobs[row]] = int(np.where(at, instance.goodputs[jobs[row]], -1.0).argmax())
    return GoodputPlan(configs=configs)


def relaxation_rounded(instance: Goodput, solve: Maximize) -> GoodputPlan:
    """Solve the linear relaxation, take what it has most of, and use what is left.

    Of all jobs and configurations, the one with the greatest part in the relaxation comes first, where its job has none
    yet and GPUs are left; then :func:`greedy_marginal` goes on from there.

    Guarantee: no change of one job alone is better.  A vertex has at most as many jobs with parts of several choices
    as there are types, and all others have what the relaxation gives them; so a plan costs no more above the optimum
    than as many jobs do that wait, above what is least for them.
    Complexity: that of a linear program of n k columns and n + t rows, and O(n k) for each change.

    Parameters
    ----------
    instance : Goodput
    solve : callable
        What solves a linear program (:data:`heuristics.gavel.binning.Maximize`), at a vertex; this library's room of
        heuristics has nothing of the kind.

    References
    ----------
    Sinha and Zoltners, The multiple-choice knapsack problem (Operations Research 27, 1979).
    """
    choices = _Choices(instance)
    held = choices.all_wait()
    jobs, configs = np.nonzero((instance.costs < instance.waiting_cost) & instance.fits)
    if jobs.size:
        n = instance.num_jobs
        rows = np.concatenate([jobs, n + instance.config_types[configs]])
        values = np.concatenate([np.ones(len(jobs)), instance.config_gpus[configs]])
        gains = instance.waiting_cost - instance.costs[jobs, configs]
        limits = np.concatenate([np.ones(n), instance.num_gpus])
        parts = solve(gains, np.ones(len(jobs)), (rows, np.tile(np.arange(len(jobs)), 2), values), limits)
        parts, left = np.round(parts, DECIMALS), instance.num_gpus.copy()
        for column in np.argsort(-parts, kind="stable").tolist():
            job, config = jobs[column], configs[column]
            if parts[column] > 0 and held[job] == instance.num_configs and (choices.sizes[config] <= left).all():
                held[job], left = config, left - choices.sizes[config]
    return choices.plan(choices.improved(held))


def priced_types(instance: Goodput, *, rounds: int = ROUNDS) -> GoodputPlan:
    """Choose configurations at prices of GPUs of each type, make room where too many are chosen, and use what is left.

    The prices are the Lagrangian multipliers of the types' GPUs: each job takes what costs least after what it pays,
    and prices follow what is over and what is left (a subgradient, with Polyak's step towards the best plan so far).
    Now and then the jobs' choices become a plan: where a type is over, jobs go to what loses least for each GPU given
    up, until it is not; then :func:`greedy_marginal` goes on from there.  The best plan is then changed by exchanges:
    two jobs change at once, where neither could alone.

    Guarantee: never worse than :func:`greedy_marginal`, which is the first plan; none known relative to the optimum.
    Complexity: O(n k) for each round and each change in it, and for each look for exchanges O(n k log n + MOST^2).

    Parameters
    ----------
    instance : Goodput
    rounds : int
        Rounds of prices.

    References
    ----------
    Fisher, The Lagrangian relaxation method for solving integer programming problems (Management Science 27, 1981).
    """
    choices = _Choices(instance)
    best = choices.plan(choices.improved(choices.all_wait()))
    value = instance.objective(best)
    prices, scale = np.zeros(instance.num_types), STEP
    for turn in range(1, 1 + (rounds if instance.num_jobs else 0)):
        paid = choices.costs + choices.sizes @ prices
        chosen = paid.argmin(axis=1)
        bound = float(paid.min(axis=1).sum() - prices @ instance.num_gpus)
        over = -choices.left(chosen)
        slope = float((over[(over > 0) | (prices > 0)].astype(float) ** 2).sum())
        if turn % BETWEEN == 0 or turn == rounds or slope == 0:
            plan = choices.plan(choices.improved(choices.made_to_fit(chosen, paid)))
            if instance.objective(plan) < value:
                best, value = plan, instance.objective(plan)
        # Where nothing is over and nothing that has a price is left, the plan is best.
        if slope == 0 or value - bound <= ROUNDING * abs(value):
            break
        prices = np.maximum(prices + scale * (value - bound) / slope * over, 0.0)
        scale *= 1 - FALL
    held = np.where(best.configs < 0, instance.num_configs, best.configs)
    return choices.plan(choices.exchanged(held))


def genetic_search(
    instance: Goodput,
    *,
    rng: np.random.Generator | int = 0,
    generations: int = 100,
    population: int = 100,
) -> GoodputPlan:
    """Search by crossover and mutation of plans, in the manner of Pollux (ours).

    A generation has the plans that were best so far and as many children.  A child has each job's configuration of
    one of two parents, chosen by tournaments, and with the chance 1/n each job's is drawn anew; jobs drawn at random
    then wait until all types' GPUs suffice.  The best of both go on.

    Guarantee: never worse than the plan that jobs hold now, where that is one, or by which all wait; none otherwise.
    Complexity: O(generations population n).

    Parameters
    ----------
    instance : Goodput
    rng : Generator or int
        Source of randomness, or its seed.
    generations, population : int
        As in Pollux's released code, 100 each.

    References
    ----------
    Pollux (OSDI'21).  Its search decides the GPUs on each node, which a configuration leaves open, for two goals at
    once; so its operators have no counterpart here, and these are ours.
    """
    rng = np.random.default_rng(rng)
    n, k = instance.num_jobs, instance.num_configs
    if not n:
        return GoodputPlan(configs=np.full(0, -1))
    choices = _Choices(instance)
    costs, sizes = choices.costs, choices.sizes
    runs = np.isfinite(costs)
    able = [np.flatnonzero(row) for row in runs]
    every = np.arange(population)

    def repaired(plans: IntArray) -> IntArray:
        left = instance.num_gpus - sizes[plans].sum(axis=1)
        # One job of each plan at a time, in an order of its own.
        for jobs in rng.permuted(np.tile(np.arange(n), (population, 1)), axis=1).T:
            held = sizes[plans[every, jobs]]
            ends = (held * (left < 0)).any(axis=1)
            if not (left < 0).any():
                break
            plans[every[ends], jobs[ends]] = k
            left += held * ends[:, None]
        return plans

    def worth(plans: IntArray) -> FloatArray:
        found: FloatArray = costs[np.arange(n), plans].sum(axis=1)
        return found

    held = np.where((instance.current >= 0) & runs[np.arange(n), instance.current], instance.current, k)
    plans = np.tile(choices.all_wait(), (population, 1))
    for plan in plans[1:]:
        plan[:] = [options[rng.integers(len(options))] for options in able]
    plans[-1] = held
    plans = repaired(plans)
    values = worth(plans)
    for _ in range(generations):
        rivals = rng.integers(population, size=(2, 2, population))
        parents = np.where(values[rivals[0]] <= values[rivals[1]], rivals[0], rivals[1])
        children = np.where(rng.random((population, n)) < 0.5, plans[parents[0]], plans[parents[1]])
        for child, job in np.argwhere(rng.random((population, n)) < 1 / n).tolist():
            children[child, job] = able[job][rng.integers(len(able[job]))]
        both = np.concatenate([plans, repaired(children)])
        all_values = worth(both)
        kept = np.argsort(all_values, kind="stable")[:population]
        plans, values = both[kept], all_values[kept]
    return choices.plan(plans[0])


class _Choices:
    """Configurations, and last to wait, as arrays; a plan is the number of each job's choice, k while it waits.

    Attributes
    ----------
    costs : (n, k + 1) float
        What each job costs on each.
    sizes : (k + 1, t) int
        GPUs of each type.
    gpus, types : (k + 1,) int
        Of all types together, and the type; 0 and -1 to wait.
    of_type : list of t arrays of int
        Choices of each type.
    """

    def __init__(self, instance: Goodput) -> None:
        self.instance, k = instance, instance.num_configs
        self.costs = np.hstack([instance.costs, np.full((instance.num_jobs, 1), instance.waiting_cost)])
        self.gpus, self.types = np.append(instance.config_gpus, 0), np.append(instance.config_types, -1)
        self.sizes = np.zeros((k + 1, instance.num_types), np.int64)
        self.sizes[np.arange(k), instance.config_types] = instance.config_gpus
        self.of_type = [np.flatnonzero(self.types == kind) for kind in range(instance.num_types)]
        self._jobs = np.arange(instance.num_jobs)

    def plan(self, held: IntArray) -> GoodputPlan:
        return GoodputPlan(configs=np.where(held == self.instance.num_configs, -1, held))

    def all_wait(self) -> IntArray:
        return np.full(self.instance.num_jobs, self.instance.num_configs)

    def left(self, held: IntArray) -> IntArray:
        """(t,) int: GPUs of each type that a plan leaves; below 0 where it has too many."""
        left: IntArray = self.instance.num_gpus - self.sizes[held].sum(axis=0)
        return left

    def improved(self, held: IntArray) -> IntArray:
        """Return a plan after all changes of single jobs that gain, the one that gains most for each GPU first."""
        held, left = held.copy(), self.left(held)
        if not held.size:
            return held
        # A row for each choice, so that those of one type are changed together.
        gains, more, needed = (table.T.copy() for table in self._changes(self._jobs, held))
        free, rates = np.where(more <= 0, gains, 0.0), gains / np.maximum(more, 1)
        room = np.append(left, 0)[self.types]
        fitting = np.where(needed <= room[:, None], rates, 0.0)
        able = np.asarray(free.any(axis=0))
        while True:
            scores = fitting
            # Changes that take no more GPUs come before all others.
            if able.any() and (first := np.where(needed <= room[:, None], free, 0.0)).any():
                scores = first
            best = scores.max(axis=0)
            job = int(best.argmax())
            if best[job] <= 0:
                return held
            choice = int(scores[:, job].argmax())
            kinds = {int(self.types[held[job]]), int(self.types[choice])} - {-1}
            before, left = left, left + self.sizes[held[job]] - self.sizes[choice]
            held[job] = choice
            gain, more, needed[:, job] = self._changes(job, held)
            free[:, job], rates[:, job] = np.where(more <= 0, gain, 0.0), gain / np.maximum(more, 1)
            able[job] = free[:, job].any()
            for kind in kinds:
                rows = self.of_type[kind]
                room[rows] = left[kind]
                # What fits for all jobs before and after is as it was.
                rows = rows[self.gpus[rows] > min(before[kind], left[kind])]
                fitting[rows] = np.where(needed[rows] <= left[kind], rates[rows], 0.0)
            fitting[:, job] = np.where(needed[:, job] <= room, rates[:, job], 0.0)

    def _changes(self, jobs: IntArray | int, held: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
        """Gains of a job's changes, or 0, the GPUs that each takes more, and those that its type must have left."""
        now = held[jobs]
        gains = self.costs[jobs, now][..., None] - self.costs[jobs]
        more = self.gpus - self.gpus[now][..., None]
        # What a job holds of a type is free for it there.
        needed = np.where(self.types == self.types[now][..., None], more, self.gpus)
        return np.where(gains > ROUNDING, gains, 0.0), more, needed

    def exchanged(self, held: IntArray) -> IntArray:
        """Return a plan after exchanges, changes of two jobs that gain only together, and what then gains alone.

        To the GPUs all jobs of one choice are alike, so of each change from one choice to another only the two jobs
        that lose least by it are of interest.  Of all exchanges found at once, those of greater gain come first, each
        unless one of its jobs has moved or GPUs no longer suffice.
        """
        for _ in range(PASSES):
            now, then, jobs, losses = self._least_losses(held)
            freed = self.sizes[now] - self.sizes[then]
            least = np.argsort(losses[0], kind="stable")[:MOST]
            gaining = least[losses[0][least] < 0]
            if not gaining.size:
                break
            others = least[losses[0][least] < -losses[0].min()]
            # A job that loses least by both changes leaves one of them to the next.
            ranks = np.zeros((2, len(gaining), len(others)), np.int64)
            same = jobs[0][gaining, None] == jobs[0][others]
            leaves = losses[1][gaining, None] + losses[0][others] < losses[0][gaining, None] + losses[1][others]
            ranks[0], ranks[1] = same & leaves, same & ~leaves
            total = losses[ranks[0], gaining[:, None]] + losses[ranks[1], others]
            one, two = np.nonzero(total < -ROUNDING)
            left = self.left(held)
            fits = (left + freed[gaining[one]] + freed[others[two]] >= 0).all(axis=1)
            one, two = one[fits], two[fits]
            if not one.size:
                break
            held, moved = held.copy(), np.zeros(held.size, bool)
            for at in np.argsort(total[one, two], kind="stable").tolist():
                first, second = gaining[one[at]], others[two[at]]
                pair = jobs[ranks[:, one[at], two[at]], [first, second]]
                after = left + freed[first] + freed[second]
                if not moved[pair].any() and (after >= 0).all():
                    held[pair], left = then[[first, second]], after
                    moved[pair] = True
            held = self.improved(held)
        return held

    def _least_losses(self, held: IntArray) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return changes from one choice to another, and (2, changes) which jobs lose least by each, and how much."""
        number, jobs, losses = len(self.gpus), [], []
        held_by = np.unique(held)
        for now in held_by.tolist():
            group = np.flatnonzero(held == now)
            loss = np.vstack([self.costs[group] - self.costs[group, now][:, None], np.full((1, number), np.inf)])
            loss[:, now] = np.inf
            order = np.argsort(loss, axis=0, kind="stable")[:2]
            jobs.append(np.append(group, -1)[order])
            losses.append(np.take_along_axis(loss, order, axis=0))
        if not jobs:
            return held_by, held_by, np.empty((2, 0), np.int64), np.empty((2, 0))
        now, then = np.repeat(held_by, number), np.tile(np.arange(number), len(held_by))
        return now, then, np.hstack(jobs), np.hstack(losses)

    def made_to_fit(self, held: IntArray, paid: FloatArray) -> IntArray:
        """Return a plan after changes of single jobs by which no type has more GPUs in use than it has.

        Each time a job leaves the type that is most over, or takes fewer GPUs of it, by what it loses for each GPU.
        """
        held, left = held.copy(), self.left(held)
        kinds, losses = self.types[held], self._losses(self._jobs, held, paid)
        while (left < 0).any():
            kind = int(left.argmin())
            jobs = np.flatnonzero(kinds == kind)
            fits = (self.types == kind) | (self.gpus <= np.append(left, 0)[self.types])
            loss = losses[jobs] + np.where(fits, 0.0, np.inf)
            row, choice = divmod(int(loss.argmin()), loss.shape[1])
            job = jobs[row]
            left = left + self.sizes[held[job]] - self.sizes[choice]
            held[job], kinds[job] = choice, self.types[choice]
            losses[job] = self._losses(job, held, paid)
        return held

    def _losses(self, jobs: IntArray | int, held: IntArray, paid: FloatArray) -> FloatArray:
        """Return what a job loses by each choice, for each GPU that it gives up of the type that it is on."""
        now = held[jobs]
        freed = self.gpus[now][..., None] - self.sizes.T[self.types[now]]
        lost = paid[jobs] - paid[jobs, now][..., None]
        return np.where(freed > 0, lost / np.maximum(freed, 1), np.inf)
