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
    Sia (SOSP'23), section 3.4, states the program; the rule is the field's common one for multiple-choice knapsacks.
    """
    return GoodputPlan(configs=_improved(instance, np.full(instance.num_jobs, -1)))


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
    best = greedy_marginal(instance)
    value = instance.objective(best)
    costs, sizes = _with_waiting(instance), _sizes(instance)
    prices, scale = np.zeros(instance.num_types), STEP
    for turn in range(1, 1 + (rounds if instance.num_jobs else 0)):
        paid = costs + sizes @ prices
        chosen = paid.argmin(axis=1)
        bound = float(paid.min(axis=1).sum() - prices @ instance.num_gpus)
        over = sizes[chosen].sum(axis=0) - instance.num_gpus
        slope = float((over[(over > 0) | (prices > 0)].astype(float) ** 2).sum())
        if turn % BETWEEN == 0 or turn == rounds or slope == 0:
            plan = GoodputPlan(configs=_improved(instance, _made_to_fit(instance, chosen, paid)))
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
    """Pollux's genetic search, over configurations instead of its GPUs on nodes.

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
        As in the released code, 100 each.

    References
    ----------
    Pollux (OSDI'21), section 4.2.1; its search decides GPUs on each node, which a configuration leaves open.
    """
    rng = np.random.default_rng(rng)
    n, k = instance.num_jobs, instance.num_configs
    if not n:
        return GoodputPlan(configs=np.full(0, -1))
    costs, sizes = _with_waiting(instance), _sizes(instance)
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
    plans = np.full((population, n), k)
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
    best = plans[0]
    return GoodputPlan(configs=np.where(best == k, -1, best))


def _with_waiting(instance: Goodput) -> FloatArray:
    """(n, k + 1) float: what each job costs on each configuration, and, last, while it waits."""
    waiting = np.full((instance.num_jobs, 1), instance.waiting_cost)
    return np.hstack([instance.costs, waiting])


def _sizes(instance: Goodput) -> IntArray:
    """(k + 1, t) int: GPUs of each type in each configuration, and, last, none."""
    sizes = np.zeros((instance.num_configs + 1, instance.num_types), np.int64)
    sizes[np.arange(instance.num_configs), instance.config_types] = instance.config_gpus
    return sizes


def _improved(instance: Goodput, configs: IntArray) -> IntArray:
    """Return a plan after all changes of single jobs that gain, the one that gains most for each GPU first."""
    costs, sizes = _with_waiting(instance), _sizes(instance)
    n, k = instance.num_jobs, instance.num_configs
    held = np.where(configs < 0, k, configs)
    left = instance.num_gpus - sizes[held].sum(axis=0)
    gpus, types = np.append(instance.config_gpus, 0), np.append(instance.config_types, -1)
    jobs = np.arange(n)
    while n:
        gains = costs[jobs, held][:, None] - costs
        more = gpus - gpus[held][:, None]
        # What a job holds of a type is free for it there.
        needed = np.where(types == types[held][:, None], more, gpus)
        fits = needed <= np.append(left, 0)[types]
        fits[:, k] = True
        gains = np.where(fits & (gains > ROUNDING), gains, 0.0)
        cheap = gains * (more <= 0)
        rates = cheap if cheap.any() else gains / np.maximum(more, 1)
        job, config = divmod(int(rates.argmax()), k + 1)
        if rates[job, config] <= 0:
            break
        left = left + sizes[held[job]] - sizes[config]
        held[job] = config
    return np.where(held == k, -1, held)


def _made_to_fit(instance: Goodput, chosen: IntArray, paid: FloatArray) -> IntArray:
    """Return a plan after changes of single jobs by which no type has more GPUs in use than it has.

    Each time a job leaves the type that is most over, or takes fewer GPUs of it, by what it loses for each GPU.
    """
    sizes, k = _sizes(instance), instance.num_configs
    gpus, types = np.append(instance.config_gpus, 0), np.append(instance.config_types, -1)
    held, jobs = chosen.copy(), np.arange(len(chosen))
    left = instance.num_gpus - sizes[held].sum(axis=0)
    while (left < 0).any():
        kind = int(left.argmin())
        freed = sizes[held, kind][:, None] - sizes[:, kind]
        fits = (types == kind) | (gpus <= np.append(left, 0)[types])
        loss = np.where((freed > 0) & fits, (paid - paid[jobs, held][:, None]) / np.maximum(freed, 1), np.inf)
        job, config = divmod(int(loss.argmin()), k + 1)
        left = left + sizes[held[job]] - sizes[config]
        held[job] = config
    return np.where(held == k, -1, held)
