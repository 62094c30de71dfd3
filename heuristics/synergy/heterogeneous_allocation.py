"""Fast methods for :class:`instances.synergy.heterogeneous_allocation.HeterogeneousAllocation`."""

from __future__ import annotations

import numpy as np

from heuristics.synergy.marginal import upgrade
from instances.schema import FloatArray, IntArray
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.sensitivity import ROUNDING, THROUGHPUT

__all__ = ["greedy_marginal", "priced_types", "proportional"]

STEP, FALL = 0.5, 0.02
"""Of prices: the part of Polyak's step, and how much smaller each one is than the last."""
CORE = 600
"""Configurations that are exchanged in pairs: those that lose least at the prices."""


def proportional(instance: HeterogeneousAllocation) -> SynergyAllocationPlan:
    """Every job at the GPU-proportional share of a machine type, on the type where that is fastest.

    Jobs choose in order of GPUs, most first, ties to the lowest index; a job takes, of the types
    with enough free GPUs, the one where its fastest configuration at or below its share has the
    greatest throughput; first of those where that is fair.  One without such a configuration
    takes its first.

    Guarantee: fair and within the CPUs and memory under the default fair throughputs, if every job
    has a configuration within its share of each type; within the GPUs unless a job finds no type
    with enough of them free, which then takes the one with the most.  Complexity: O(A log A + n k)
    for A configurations in all.

    References
    ----------
    Synergy (OSDI'22), section 2 (GPU-proportional allocation) and appendix A.2 (machine types).
    """
    return SynergyAllocationPlan(choices=_proportional(instance))


def greedy_marginal(instance: HeterogeneousAllocation) -> SynergyAllocationPlan:
    """:func:`proportional`, then upgrades on the same machine type by throughput per resource.

    The upgrade that adds the most throughput for each added fraction of the type's CPUs and memory
    is taken, as long as one fits.  Ties go to the lowest job.

    Guarantee: never below :func:`proportional`; none is known relative to the optimum.
    Complexity: O(U A) for U upgrades among A configurations.
    """
    choices = upgrade(
        _proportional(instance), instance.configs, instance.config_types, instance.undominated, instance.capacity[:, :2]
    )
    return SynergyAllocationPlan(choices=choices)


def priced_types(instance: HeterogeneousAllocation, *, rounds: int = 60, tried: int = 2) -> SynergyAllocationPlan:
    """Choose machine types at prices of CPUs, memory and GPUs, upgrade on them, and exchange what still gains.

    The prices are the Lagrangian multipliers of the types' capacities: each job takes the configuration that is worth
    most after what it pays, and prices follow what is over and what is left (a subgradient, with Polyak's step towards
    the value at hand).  At the prices of the least bounds jobs get types, most GPUs first, then those to which the
    best type matters most, each where it is worth most of the types with enough free GPUs on which its proportional
    share is fair.  From these shares on jobs are upgraded as in :func:`greedy_marginal`; then configurations change, of
    any type, of one job or of two at once, where that fits and gains, the greatest gain first.

    Guarantee: never below :func:`greedy_marginal`, whose plan is returned unless a better one is feasible; none known
    relative to the optimum.  Complexity: O(``rounds`` A) for A configurations, and for each of the ``tried`` choices of
    types that of :func:`greedy_marginal` and O(E**2 k) for each exchange among E = min(A, 600) configurations.

    Parameters
    ----------
    instance : HeterogeneousAllocation
    rounds : int
        Prices that are looked at.
    tried : int
        Choices of types from which plans are made.

    References
    ----------
    None for this problem: Lagrangian prices and exchanges as for multiple-choice knapsacks; Fisher, The Lagrangian
    relaxation method for solving integer programming problems (Management Science 27, 1981).
    """
    best = greedy_marginal(instance)
    if not instance.num_jobs or not all(usable.any() for usable in instance.usable_configs):
        return best
    value = -np.inf if instance.violations(best) else instance.objective(best)
    options = _Options(instance)
    seen: list[IntArray] = []
    for prices in options.prices(value, rounds):
        choices = options.shares(prices)
        if len(seen) == tried:
            break
        if choices is None or any(np.array_equal(choices, other) for other in seen):
            continue
        seen.append(choices)
        capacity = instance.capacity[:, :2]
        choices = upgrade(choices, instance.configs, instance.config_types, instance.undominated, capacity)
        plan = SynergyAllocationPlan(choices=options.exchanged(choices, prices))
        if not instance.violations(plan) and instance.objective(plan) > value:
            best, value = plan, instance.objective(plan)
    return best


class _Options:
    """Usable configurations, by job and type: what they are worth, and their parts of their types' capacity.

    Values are in units of the greatest.
    """

    def __init__(self, instance: HeterogeneousAllocation) -> None:
        self.instance = instance
        kept = [rows[usable[rows]] for rows, usable in zip(instance.undominated, instance.usable_configs, strict=True)]
        self.job = np.repeat(np.arange(instance.num_jobs), [len(rows) for rows in kept])
        self.config = np.concatenate(kept)
        self.kind = np.concatenate([types[rows] for types, rows in zip(instance.config_types, kept, strict=True)])
        order = np.lexsort((self.kind, self.job))
        self.job, self.config, self.kind = self.job[order], self.config[order], self.kind[order]
        table = np.concatenate([configs[rows] for configs, rows in zip(instance.configs, kept, strict=True)])[order]
        self.unit = float(table[:, THROUGHPUT].max(initial=0.0)) or 1.0
        self.worth = table[:, THROUGHPUT] / self.unit
        scale = np.where(instance.capacity > 0, instance.capacity, 1.0)
        amounts = np.column_stack([table[:, :THROUGHPUT], instance.gpu_demands[self.job]])
        self.amounts = amounts / scale[self.kind]
        self.room = instance.capacity / scale
        shares = zip(instance.proportional_choices, instance.usable_configs, strict=True)
        self.fair = [((best >= 0) & usable[best]).tolist() for best, usable in shares]

    def left_over(self, prices: FloatArray) -> FloatArray:
        """(o,) float: what each configuration is worth after what it pays."""
        left: FloatArray = self.worth - (self.amounts * prices[self.kind]).sum(axis=1)
        return left

    def by_type(self, prices: FloatArray) -> FloatArray:
        """(n, k) float: what the best configuration of each job on each type is worth after what it pays."""
        best = np.full(self.instance.num_jobs * self.instance.num_types, -np.inf)
        of = self.job * self.instance.num_types + self.kind
        first = np.flatnonzero(np.diff(of, prepend=-1))
        best[of[first]] = np.maximum.reduceat(self.left_over(prices), first)
        return best.reshape(-1, self.instance.num_types)

    def prices(self, value: float, rounds: int) -> list[FloatArray]:
        """Return prices, those of the least bound first."""
        prices = np.zeros_like(self.room)
        found: list[tuple[float, FloatArray]] = []
        for step in range(rounds):
            left, most = self.left_over(prices), self.by_type(prices).max(axis=1)
            bound = float(most.sum() + (prices * self.room).sum())
            if not found or bound < found[-1][0]:
                found.append((bound, prices))
            _, first = np.unique(np.where(left >= most[self.job], self.job, len(most)), return_index=True)
            taken = first[: len(most)]
            over = -self.room
            np.add.at(over, self.kind[taken], self.amounts[taken])
            if not over.any():
                break
            missing = bound - value / self.unit if np.isfinite(value) else 0.1 * bound
            prices = np.maximum(prices + STEP * max(missing, 0.0) / (over**2).sum() / (1 + FALL * step) * over, 0)
        return [prices for _, prices in reversed(found)]

    def shares(self, prices: FloatArray) -> IntArray | None:
        """Return proportional shares on the types that jobs choose at some prices; None where one finds no type."""
        instance, free = self.instance, self.instance.capacity[:, 2].tolist()
        worth = self.by_type(prices)
        ranked = np.sort(np.column_stack([worth, np.full(len(worth), -np.inf)]), axis=1)
        regret = np.where(np.isfinite(ranked[:, -2]), ranked[:, -1] - np.maximum(ranked[:, -2], -1e300), np.inf)
        choices = np.zeros(instance.num_jobs, np.int64)
        # Lists, because arrays of so few numbers are slow.
        demands, rows, kinds = instance.gpu_demands.tolist(), worth.tolist(), range(len(free))
        for job in np.lexsort((-regret, -instance.gpu_demands)).tolist():
            fits = [kind for kind in kinds if self.fair[job][kind] and free[kind] >= demands[job]]
            if not fits:
                return None
            kind = max(fits, key=rows[job].__getitem__)
            choices[job] = instance.proportional_choices[job][kind]
            free[kind] -= demands[job]
        return choices

    def exchanged(self, choices: IntArray, prices: FloatArray) -> IntArray:
        """Return choices after all exchanges of one configuration, or of two among those that lose least, that gain."""
        now = np.flatnonzero(self.config == choices[self.job])
        if len(now) < len(choices):
            return choices
        loss = self.by_type(prices).max(axis=1)[self.job] - self.left_over(prices)
        core = np.argsort(loss, kind="stable")[:CORE]
        amounts = np.zeros((len(self.job), *self.room.shape))
        amounts[np.arange(len(self.job)), self.kind] = self.amounts
        amounts = amounts.reshape(len(self.job), self.room.size)
        while True:
            slack = (self.room * (1 + ROUNDING)).ravel() - amounts[now].sum(axis=0)
            more, gain = amounts - amounts[now][self.job], self.worth - self.worth[now][self.job]
            alone = np.where((more <= slack).all(axis=1), gain, 0.0)
            if alone.max(initial=0.0) > ROUNDING:
                changed = [int(alone.argmax())]
            else:
                # One of two that gain together gains alone.
                first = core[gain[core] > 0]
                both = gain[first][:, None] + gain[core]
                possible = (both > ROUNDING) & (self.job[first][:, None] != self.job[core])
                for ones, others, room in zip(more[first].T, more[core].T, slack, strict=True):
                    possible &= ones[:, None] + others <= room
                if not possible.any():
                    return np.array(self.config[now])
                row, column = np.unravel_index(np.where(possible, both, 0.0).argmax(), both.shape)
                changed = [int(first[row]), int(core[column])]
            now[self.job[changed]] = changed


def _proportional(instance: HeterogeneousAllocation) -> IntArray:
    free = instance.capacity[:, 2].copy()
    choices = np.zeros(instance.num_jobs, np.int64)
    for job in np.argsort(-instance.gpu_demands, kind="stable").tolist():
        gpus, best = instance.gpu_demands[job], instance.proportional_choices[job]
        worth = np.where(best >= 0, instance.configs[job][best, THROUGHPUT], -1.0)
        fair = np.array([bool(c >= 0 and instance.usable_configs[job][c]) for c in best])
        # First the types where the job fits and is fair, then where it fits, then where it is known.
        rank = np.where(best >= 0, 1 + (free >= gpus) * (1 + fair), 0)
        kinds = np.flatnonzero(rank == rank.max())
        kind = kinds[worth[kinds].argmax()] if rank.max() > 1 else kinds[free[kinds].argmax()]
        choices[job] = best[kind] if best[kind] >= 0 else 0
        free[instance.config_types[job][choices[job]]] -= gpus
    return choices
