"""The core of a knapsack: the price of a GPU settles most jobs, and the model of the others is solved.

Of many jobs only few are in doubt.  At a price p of a GPU, each job by itself makes the most of

    reduction[j][w] - p * w * gpus_per_worker[j],

and no plan is worth more than what they all make so, plus p * capacity.  The price that makes this bound least is
that of the linear relaxation.  A plan in which job j takes w is below the bound by at least what w loses against the
job's best.  So once a plan is known, every choice is settled that loses more than lies between plan and bound, and
what is left, the core, is a smaller instance of the same problem.

References
----------
Kellerer, Pferschy, Pisinger, "Knapsack Problems" (2004), chapter 11: the linear relaxation of the multiple-choice
knapsack, its reduction, and its core.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formulations.engine.highs import Result, version
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, GaveUp, Method, one_model
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from instances.base import agree, product
from instances.schema import FloatArray, IntArray

__all__ = ["CHOICE", "CORE"]

NEAREST = 48
"""Jobs that a first plan is searched among: those that come closest to another choice."""
ROUNDING = 1e-12
"""Part of the bound that its sums may owe to rounding."""
WHOLE = 2**53
"""GPUs up to which floats count them one by one."""


def solve(instance: ElasticAllocation, options: Options) -> Solution:
    """Settle by the price of a GPU what it settles, and solve the model of the jobs that are left."""
    began = time.perf_counter()
    relaxed = _relaxation(instance) if int(product(instance.max_extra, instance.gpus_per_worker)) < WHOLE else None
    if relaxed is None or not math.isfinite(relaxed.bound):
        raise GaveUp("numbers are too large to add up")
    extra, seconds = relaxed.extra, 0.0
    if relaxed.open_beside(extra).sum() > NEAREST:
        # A better plan makes the core smaller.
        nearest = np.argsort(relaxed.runner_up, kind="stable")[:NEAREST]
        found = _solve_among(nearest, instance, extra, replace(options, verify=False))
        extra, seconds = _joined(extra, nearest, found), found.solve_seconds
    if isinstance(options.start, ElasticAllocationPlan) and not instance.violations(options.start):
        extra = max(extra, options.start.extra_workers, key=relaxed.worth)
    core = np.flatnonzero(relaxed.open_beside(extra))
    if len(core) == instance.num_jobs:
        return solve_one_model(instance, replace(options, start=ElasticAllocationPlan(extra_workers=extra)))
    result = Result("optimal", None, relaxed.worth(extra), None, seconds, "the price of a GPU settles all", "prices")
    if len(core):
        found = _solve_among(core, instance, extra, options)
        settled = relaxed.worth(extra) - relaxed.worth(extra, core)
        extra = _joined(extra, core, found)
        bound = min(relaxed.bound, max(settled + found.bound, relaxed.worth(extra)))
        result = Result(
            "optimal" if found.status == "optimal" or agree(relaxed.worth(extra), bound) else "feasible",
            None,
            bound,
            None,
            seconds + found.solve_seconds,
            f"{len(core):,} of {instance.num_jobs:,} jobs are in the core: {found.message}",
            found.proof or "prices",
        )
    return judged(
        instance,
        ElasticAllocationPlan(extra_workers=extra),
        result,
        began=began,
        solver="highs",
        solver_version=version(),
        method=CORE.name,
    )


@dataclass(frozen=True)
class _Relaxation:
    """Bound, plan and losses that follow from a price of a GPU.

    Attributes
    ----------
    bound : float
        No plan is worth more.
    extra : (n,) int
        A plan: the best of every job at the price, as far as there are GPUs.
    runner_up : (n,) float
        What another choice than its best loses a job at least; infinite where there is none.
    values, first : arrays
        Reductions of all jobs end to end, and where each job's begin.
    """

    bound: float
    extra: IntArray
    runner_up: FloatArray
    values: FloatArray
    first: NDArray[np.intp]

    def worth(self, extra: IntArray, jobs: IntArray | slice = slice(None)) -> float:
        """Reduction of some jobs' running times in a plan, s."""
        return math.fsum(self.values[self.first[jobs] + extra[jobs]].tolist())

    def open_beside(self, extra: IntArray) -> NDArray[np.bool_]:
        """(n,) bool: jobs that may take another choice than their best in a plan at least as good as this one."""
        distance = self.bound - self.worth(extra) + ROUNDING * self.bound
        return self.runner_up <= distance


def _relaxation(instance: ElasticAllocation) -> _Relaxation | None:
    """Return the price of the linear relaxation, and what follows from it; None where numbers are too large to add up.

    The bound is convex and piecewise linear in the price.  Between a price at which the jobs' best choices take more
    than there is and one at which they fit, the next is where the two lines of the bound meet.
    """
    counts = instance.max_extra + 1
    first = np.cumsum(counts) - counts
    jobs = np.repeat(np.arange(instance.num_jobs), counts)
    gpus = (np.arange(len(jobs)) - first[jobs]) * instance.gpus_per_worker[jobs]
    all_values = np.concatenate(instance.reductions)
    # What never fits is no choice, and GPUs of which no worker can be made are none.
    values = np.where(gpus <= instance.capacity, all_values, -np.inf)
    capacity = instance.capacity - instance.capacity % max(1, int(np.gcd.reduce(instance.gpus_per_worker)))

    def best(price: float, among: IntArray) -> IntArray:
        """Position of the best choice of some jobs, the smallest where several are."""
        which = np.repeat(np.arange(len(among)), counts[among])
        begins = np.cumsum(counts[among]) - counts[among]
        positions = np.arange(len(which)) - begins[which] + first[among][which]
        net = values[positions] - price * gpus[positions]
        at_best = np.flatnonzero(net >= np.maximum.reduceat(net, begins)[which])
        chosen: IntArray = positions[at_best[np.diff(which[at_best], prepend=-1) > 0]]
        return chosen

    everybody = np.arange(instance.num_jobs)
    price, most, least = 0.0, best(0.0, everybody), first.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        while True:
            among = np.flatnonzero(most != least)
            left = capacity - int(gpus[least].sum())
            if int((gpus[most] - gpus[least]).sum()) <= left:
                least = most
                break
            more, fewer = most[among], least[among]
            price = float((values[more] - values[fewer]).sum() / (gpus[more] - gpus[fewer]).sum())
            if not math.isfinite(price):
                return None
            between = best(price, among)
            gained = float((values[between] - values[more] - price * (gpus[between] - gpus[more])).sum())
            if gained <= ROUNDING * float(values[more].sum()):
                break
            side = least if int((gpus[between] - gpus[fewer]).sum()) <= left else most
            if (side[among] == between).all():
                break
            side[among] = between
        net = values - price * gpus
        at_best = best(price, everybody)
        bound = math.fsum(net[at_best].tolist()) + price * capacity
    # Jobs to which two choices are alike at this price take the larger while there are GPUs.
    chosen = least.copy()
    while True:
        left = capacity - int(gpus[chosen].sum())
        wanting = np.flatnonzero((gpus[most] > gpus[chosen]) & (gpus[most] - gpus[chosen] <= left))
        taken = wanting[np.cumsum((gpus[most] - gpus[chosen])[wanting]) <= left]
        if not len(taken):
            break
        chosen[taken] = most[taken]
    loss = net[at_best][jobs] - net
    loss[at_best] = np.inf
    return _Relaxation(bound, chosen - first, np.minimum.reduceat(loss, first), all_values, first)


def _solve_among(jobs: IntArray, instance: ElasticAllocation, extra: IntArray, options: Options) -> Solution:
    """Return the instance of some jobs, where the others do as in a plan."""
    others = np.delete(np.arange(instance.num_jobs), jobs)
    tables = instance.running_times
    core = replace(
        instance,
        capacity=instance.capacity - int(product(extra[others], instance.gpus_per_worker[others])),
        min_workers=instance.min_workers[jobs],
        max_workers=instance.max_workers[jobs],
        gpus_per_worker=instance.gpus_per_worker[jobs],
        min_running_times=instance.min_running_times[jobs],
        running_times=None if tables is None else tuple(tables[job] for job in jobs.tolist()),
    )
    return solve_one_model(core, replace(options, start=ElasticAllocationPlan(extra_workers=extra[jobs])))


def _joined(extra: IntArray, jobs: IntArray, found: Solution) -> IntArray:
    """Return a plan with that of some jobs in it."""
    joined = extra.copy()
    if isinstance(found.plan, ElasticAllocationPlan):
        joined[jobs] = found.plan.extra_workers
    return joined


CORE = Method(
    name="the core of the knapsack",
    short="core",
    proves="the bound by the price of a GPU for what it settles, and the search of the model of what is left",
    where="numbers of GPUs that floats count one by one",
    solve=solve,
)
CHOICE = Choice((CORE, one_model.METHOD))
