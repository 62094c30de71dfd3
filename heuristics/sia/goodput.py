"""Fast methods for :class:`instances.sia.goodput.Goodput`."""

from __future__ import annotations

import numpy as np

from instances.schema import FloatArray, IntArray
from instances.sia.goodput import Goodput, GoodputPlan

__all__ = ["genetic_search", "greedy_marginal", "priced_types"]

ROUNDS, BETWEEN = 48, 12
"""Rounds of prices, and how many there are from one plan to the next."""
STEP, FALL = 0.5, 0.02
"""Of prices: the part of Polyak's step, and how much smaller each one is than the last."""
ROUNDING = 1e-12
"""What a change must gain."""


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


def priced_types(instance: Goodput, *, rounds: int = ROUNDS) -> GoodputPlan:
    """Choose configurations at prices of GPUs of each type, make room where too many are chosen, and use what is left.

    The prices are the Lagrangian multipliers of the types' GPUs: each job takes what costs least after what it pays,
    and prices follow what is over and what is left (a subgradient, with Polyak's step towards the best plan so far).
    Now and then the jobs' choices become a plan: where a type is over, jobs go to what loses least for each GPU given
    up, until it is not; then :func:`greedy_marginal` goes on from there.

    Guarantee: never worse than :func:`greedy_marginal`, which is the first plan; none known relative to the optimum.
    Complexity: O(n k) for each round and each change in it.

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
    return best


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
    """

    def __init__(self, instance: Goodput) -> None:
        self.instance, k = instance, instance.num_configs
        self.costs = np.hstack([instance.costs, np.full((instance.num_jobs, 1), instance.waiting_cost)])
        self.gpus, self.types = np.append(instance.config_gpus, 0), np.append(instance.config_types, -1)
        self.sizes = np.zeros((k + 1, instance.num_types), np.int64)
        self.sizes[np.arange(k), instance.config_types] = instance.config_gpus
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
        while held.size:
            gains = self.costs[self._jobs, held][:, None] - self.costs
            more = self.gpus - self.gpus[held][:, None]
            # What a job holds of a type is free for it there.
            needed = np.where(self.types == self.types[held][:, None], more, self.gpus)
            fits = needed <= np.append(left, 0)[self.types]
            fits[:, -1] = True
            gains = np.where(fits & (gains > ROUNDING), gains, 0.0)
            cheap = gains * (more <= 0)
            rates = cheap if cheap.any() else gains / np.maximum(more, 1)
            job, choice = divmod(int(rates.argmax()), rates.shape[1])
            if rates[job, choice] <= 0:
                break
            left = left + self.sizes[held[job]] - self.sizes[choice]
            held[job] = choice
        return held

    def made_to_fit(self, held: IntArray, paid: FloatArray) -> IntArray:
        """Return a plan after changes of single jobs by which no type has more GPUs in use than it has.

        Each time a job leaves the type that is most over, or takes fewer GPUs of it, by what it loses for each GPU.
        """
        held, left = held.copy(), self.left(held)
        while (left < 0).any():
            kind = int(left.argmin())
            freed = self.sizes[held, kind][:, None] - self.sizes[:, kind]
            fits = (self.types == kind) | (self.gpus <= np.append(left, 0)[self.types])
            lost = paid - paid[self._jobs, held][:, None]
            loss = np.where((freed > 0) & fits, lost / np.maximum(freed, 1), np.inf)
            job, choice = divmod(int(loss.argmin()), loss.shape[1])
            left = left + self.sizes[held[job]] - self.sizes[choice]
            held[job] = choice
        return held
