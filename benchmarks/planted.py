"""Bugs written out as heuristics, and which of them a default check finds: ``python -m benchmarks planted``.

Mutants (:mod:`benchmarks.mutants`) are exchanges of one token, in code that is there.  These are mistakes that people
make: a small heuristic for each, nobody's but its own, that is right but for one thing.  33 break a rule, and 5 a
promise that is made of them.  What is measured is what ``check_heuristic`` finds with its defaults, at several seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tables import Row, Setup, benchmark
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from instances.aryl.placement import ArylPlacement, ArylPlacementPlan
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.placement import ElasticFlowPlacement, ElasticFlowPlacementPlan
from instances.elasticflow.sharing import SlotPlan
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan
from instances.gavel.sharing import Allocation
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan
from validation.catalogue import Heuristic
from validation.kinds.checks import Monotone, NeverWorseThan, Promise, Ratio, Relabelled, check_heuristic

__all__ = ["BUGS", "Bug", "planted"]

SEEDS = 5
"""Seeds of the checks, from that of the benchmark."""


@dataclass(frozen=True)
class Bug:
    """A heuristic with a mistake.

    Attributes
    ----------
    kind : str
        What kind of mistake it is.
    problem : str
    heuristic : Heuristic
    promises : tuple of Promise
        What is promised of it, and broken; none where it breaks a rule.
    """

    kind: str
    problem: str
    heuristic: Heuristic
    promises: tuple[Promise, ...] = ()

    def found(self, seed: int) -> str:
        """Return the names of the checks that fail by default; "" for none."""
        report = check_heuristic(self.problem, self.heuristic, promises=self.promises, seed=seed)
        return ", ".join(result.name for result in report.failed)


BUGS: dict[str, Bug] = {}
"""All of them, by the names of their functions."""


def bug(kind: str, problem: str, *promises: Promise) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a heuristic that may decline to those with a mistake."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        BUGS[function.__name__] = Bug(kind, problem, Heuristic(function, declines=True), promises)
        return function

    return add


@benchmark("planted", "bug", "kind", "problem", "found", "by")
def planted(setup: Setup) -> Iterator[Row]:
    """Bugs written out as heuristics, and at how many seeds a default check finds them."""
    seeds = range(setup.seed, setup.seed + (1 if setup.quick else SEEDS))
    always = 0
    for name, one in BUGS.items():
        found = [one.found(seed) for seed in seeds]
        always += all(found)
        yield f"`{name}`", one.kind, f"`{one.problem}`", f"{sum(map(bool, found))} of {len(found)}", max(found)
    yield "all", "", "", f"{always} of {len(BUGS)} at every seed", ""


# --- aryl.elastic_allocation: jobs in order take what is left ------------------------------------

ELASTIC = "aryl.elastic_allocation"


def _grown(
    instance: ElasticAllocation, left: Any, gpus: Any = None, order: Iterable[int] | None = None, most: Any = None
) -> ElasticAllocationPlan:
    """Each job in order takes as many extra workers as it may and as are left GPUs for."""
    gpus = instance.gpus_per_worker if gpus is None else gpus
    most = instance.max_extra if most is None else most
    extra = np.zeros(instance.num_jobs, np.int64)
    for job in range(instance.num_jobs) if order is None else order:
        extra[job] = max(0, min(int(most[job]), int(left // gpus[job])))
        left = left - extra[job] * gpus[job]
    return ElasticAllocationPlan(extra_workers=extra)


@bug("one too many", ELASTIC)
def one_gpu_over(instance: ElasticAllocation) -> ElasticAllocationPlan:
    return _grown(instance, instance.capacity + 1)


@bug("one too many in rare places", ELASTIC)
def one_gpu_over_on_full_servers(instance: ElasticAllocation) -> ElasticAllocationPlan:
    rare = instance.capacity >= 8 and instance.capacity % 8 == 0 and instance.num_jobs >= 3
    return _grown(instance, instance.capacity + rare)


@bug("work in 32 bits", ELASTIC)
def products_in_32_bits(instance: ElasticAllocation) -> ElasticAllocationPlan | None:
    wanted = (instance.max_extra.astype(np.int32) * instance.gpus_per_worker.astype(np.int32)).sum(dtype=np.int32)
    return ElasticAllocationPlan(extra_workers=instance.max_extra) if wanted <= instance.capacity else None


@bug("work in 16 bits", ELASTIC)
def gpus_in_16_bits(instance: ElasticAllocation) -> ElasticAllocationPlan | None:
    wanted = (instance.max_extra.astype(np.int16) * instance.gpus_per_worker.astype(np.int16)).sum(dtype=np.int16)
    return ElasticAllocationPlan(extra_workers=instance.max_extra) if wanted <= instance.capacity else None


_BY_CAPACITY: dict[Any, ElasticAllocationPlan] = {}


@bug("remembered", ELASTIC)
def remembered_by_capacity(instance: ElasticAllocation) -> ElasticAllocationPlan:
    key = instance.num_jobs, instance.capacity
    return _BY_CAPACITY.setdefault(key, _grown(instance, instance.capacity))


@bug("a field that is not looked at", ELASTIC)
def workers_for_gpus(instance: ElasticAllocation) -> ElasticAllocationPlan:
    return _grown(instance, instance.capacity, np.ones(instance.num_jobs, np.int64))


@bug("most for extra", ELASTIC)
def base_counted_as_extra(instance: ElasticAllocation) -> ElasticAllocationPlan:
    return _grown(instance, instance.capacity, most=instance.max_workers - 1)


@bug("no jobs", ELASTIC)
def widest_first(instance: ElasticAllocation) -> ElasticAllocationPlan:
    widest = int(instance.gpus_per_worker.max())
    return _grown(instance, instance.capacity, order=np.argsort(widest - instance.gpus_per_worker, kind="stable"))


@bug("no capacity", ELASTIC)
def shares_of_capacity(instance: ElasticAllocation) -> ElasticAllocationPlan:
    part = [gpus / instance.capacity for gpus in instance.gpus_per_worker.tolist()]
    return _grown(instance, instance.capacity, order=np.argsort(part, kind="stable"))


@bug("the instance is changed", ELASTIC)
def demands_counted_down(instance: ElasticAllocation) -> ElasticAllocationPlan:
    plan = _grown(instance, instance.capacity)
    instance.max_workers.setflags(write=True)
    instance.max_workers[:] -= plan.extra_workers
    return plan


@bug("another type", ELASTIC)
def zero_for_nothing(instance: ElasticAllocation) -> ElasticAllocationPlan | int:
    return _grown(instance, instance.capacity) if instance.capacity >= instance.gpus_per_worker.min(initial=1) else 0


@bug("optimal, it says", ELASTIC, Ratio(1))
def in_order_is_best(instance: ElasticAllocation) -> ElasticAllocationPlan:
    gains = np.array([table[-1] for table in instance.reductions])
    return _grown(instance, instance.capacity, order=np.argsort(-gains, kind="stable"))


@bug("more never hurts, it says", ELASTIC, Monotone())
def largest_that_fit(instance: ElasticAllocation) -> ElasticAllocationPlan:
    size = instance.max_extra * instance.gpus_per_worker
    return _grown(instance, instance.capacity, order=np.argsort(np.where(size <= instance.capacity, -size, 0)))


# --- aryl.base_allocation: one after the other --------------------------------------------------

BASE = "aryl.base_allocation"


@bug("work in 32 bits", BASE)
def milliseconds_in_32_bits(instance: BaseAllocation) -> BaseAllocationPlan | None:
    if instance.too_large.size:
        return None
    with np.errstate(invalid="ignore"):
        ends = np.cumsum((1000 * instance.running_times).astype(np.int32), dtype=np.int32)
    return BaseAllocationPlan(starts=np.concatenate([[0], ends[:-1]])[: instance.num_jobs] / 1000)


@bug("not worse than another, it says", BASE, NeverWorseThan("shortest_job_first"))
def longest_last(instance: BaseAllocation) -> BaseAllocationPlan | None:
    if instance.too_large.size:
        return None
    return instance.in_order(np.argsort(instance.running_times * instance.gpu_demands, kind="stable"))


# --- aryl.reclaim: any servers, as many as demanded -----------------------------------------------

RECLAIM = "aryl.reclaim"


def _fewest_gpus(instance: Reclaim) -> Any:
    return np.argsort(instance.gpus.sum(axis=0), kind="stable")


_BY_TOTAL: dict[Any, ReclaimPlan] = {}


@bug("remembered, and feasible", RECLAIM)
def remembered_by_total(instance: Reclaim) -> ReclaimPlan:
    key = instance.num_jobs, instance.num_servers, instance.demand, int(instance.gpus.sum())
    return _BY_TOTAL.setdefault(key, ReclaimPlan(servers=_fewest_gpus(instance)[: instance.demand]))


@bug("nothing demanded", RECLAIM)
def at_least_one(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=_fewest_gpus(instance)[: max(1, instance.demand)])


@bug("everything demanded", RECLAIM)
def all_but_one(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=_fewest_gpus(instance)[: min(instance.demand, instance.num_servers - 1)])


@bug("ties", RECLAIM)
def up_to_a_threshold(instance: Reclaim) -> ReclaimPlan | None:
    if instance.demand > instance.num_servers:
        return None
    gpus = instance.gpus.sum(axis=0)
    up_to = np.sort(gpus)[instance.demand - 1] if instance.demand else -1
    return ReclaimPlan(servers=np.flatnonzero(gpus <= up_to))


@bug("another plan at each call", RECLAIM)
def any_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.random.default_rng().permutation(instance.num_servers)[: instance.demand])


@bug("renumbering changes nothing, it says", RECLAIM, Relabelled())
def lowest_numbers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(min(instance.demand, instance.num_servers)))


@bug("within a factor, it says", RECLAIM, Ratio(2))
def fewest_gpus(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=_fewest_gpus(instance)[: instance.demand])


# --- aryl.placement: each worker on the first server that takes it --------------------------------

PLACEMENT = "aryl.placement"


def _first_fit(instance: ArylPlacement, apart: bool = True, axis: int = 0) -> ArylPlacementPlan | None:
    workers = np.zeros((instance.num_jobs, instance.num_servers), np.int64)
    for job, count in enumerate(instance.num_workers.tolist()):
        for _ in range(count):
            used = (workers * instance.gpus_per_worker[:, None]).sum(axis=axis)
            others = workers[instance.flexible != instance.flexible[job]].any(axis=0)
            for server in range(instance.num_servers):
                if apart and instance.on_loan[server] and others[server]:
                    continue
                if used[server] + instance.gpus_per_worker[job] <= instance.server_gpus[server]:
                    workers[job, server] += 1
                    break
            else:
                return None
    return ArylPlacementPlan(workers=workers)


@bug("an optional field", PLACEMENT)
def flexible_among_others(instance: ArylPlacement) -> ArylPlacementPlan | None:
    return _first_fit(instance, apart=False)


@bug("the other axis", PLACEMENT)
def gpus_of_jobs(instance: ArylPlacement) -> ArylPlacementPlan | None:
    if instance.num_jobs != instance.num_servers:
        return _first_fit(instance)
    return _first_fit(instance, axis=1)


# --- synergy: first fit of whole jobs, and the least that is fair ---------------------------------


def _whole(instance: SynergyPlacement, resources: int = 3, allowance: float = 0.0) -> SynergyPlacementPlan | None:
    shares = np.zeros((instance.num_jobs, instance.num_servers))
    free = np.tile(instance.capacity, (instance.num_servers, 1))
    for job, demand in enumerate(instance.demands):
        enough = (demand <= free * (1 + allowance) + 1e-12 * instance.capacity)[:, :resources].all(axis=1)
        if not enough.any():
            return None
        shares[job, enough.argmax()] = 1
        free[enough.argmax()] -= demand
    return SynergyPlacementPlan(shares=shares)


@bug("a field that is not looked at", "synergy.placement")
def memory_is_plenty(instance: SynergyPlacement) -> SynergyPlacementPlan | None:
    return _whole(instance, resources=2)


@bug("1e-6 short", "synergy.placement")
def nearly_fits(instance: SynergyPlacement) -> SynergyPlacementPlan | None:
    return _whole(instance, allowance=1e-6)


@bug("work in 32 bits", "synergy.placement")
def megabytes_in_32_bits(instance: SynergyPlacement) -> SynergyPlacementPlan | None:
    with np.errstate(invalid="ignore"):
        used = (1024 * instance.demands[:, 2]).astype(np.int32).sum(dtype=np.int32)
    fits = instance.demands[:, :2].sum(axis=0) <= instance.capacity[:2]
    if not fits.all() or used > 1024 * instance.server_memory:
        return None
    return SynergyPlacementPlan(shares=np.eye(1, instance.num_servers).repeat(instance.num_jobs, axis=0))


@bug("a field that is not looked at", "synergy.allocation")
def cpus_alone(instance: SynergyAllocation) -> SynergyAllocationPlan | None:
    choices = np.zeros(instance.num_jobs, np.int64)
    for job, table in enumerate(instance.configs):
        fair = np.flatnonzero(table[:, 2] >= instance.fair_throughputs[job])
        if not fair.size:
            return None
        choices[job] = fair[table[fair, 0].argmin()]
    plan = SynergyAllocationPlan(choices=choices)
    return plan if instance.chosen(choices)[:, 0].sum() <= instance.capacity[0] else None


# --- elasticflow -----------------------------------------------------------------------------------


def _earliest_first(instance: ElasticFlowAllocation, late: int = 0, short: float = 0.0) -> SlotPlan | None:
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    for job in np.argsort(instance.deadlines, kind="stable"):
        left = float(instance.iterations[job])
        for slot in range(min(instance.horizon, int(instance.deadlines[job]) + late)):
            if left > short * instance.iterations[job]:
                free = instance.num_gpus - int(gpus[:, slot].sum())
                gpus[job, slot] = instance.throughputs[job, : free + 1].argmax()
                left -= float(instance.throughputs[job, gpus[job, slot]])
        if left > short * instance.iterations[job]:
            return None
    return SlotPlan(gpus=gpus)


@bug("one slot too many", "elasticflow.allocation")
def until_the_deadline(instance: ElasticFlowAllocation) -> SlotPlan | None:
    return _earliest_first(instance, late=1)


@bug("1e-6 short", "elasticflow.allocation")
def nearly_done(instance: ElasticFlowAllocation) -> SlotPlan | None:
    return _earliest_first(instance, short=1e-6)


@bug("one too many", "elasticflow.placement")
def past_the_end(instance: ElasticFlowPlacement) -> ElasticFlowPlacementPlan | None:
    offsets, end = np.zeros(instance.num_jobs, np.int64), 0
    for job, size in enumerate(instance.sizes.tolist()):
        offsets[job] = -(-end // size) * size
        end = int(offsets[job]) + size
    return ElasticFlowPlacementPlan(offsets=offsets) if end <= instance.num_gpus + 1 else None


# --- gavel: each job in order takes what is left of its fastest type ------------------------------

FAIRNESS = "gavel.max_min_fairness"


def _filled(instance: Any, kind: Any = np.float64, pools: Any = None, scale: Any = None) -> Allocation:
    pools = instance.pools if pools is None else pools
    scale = instance.scale_factors if scale is None else scale
    left = instance.num_workers.astype(kind)
    x = np.zeros((instance.num_jobs + instance.num_pairs, instance.num_types), kind)
    for job in range(instance.num_jobs):
        fastest = np.where(instance.num_workers[pools] >= scale[job], instance.throughputs[job], -1.0)
        best = int(fastest.argmax())
        if fastest[best] >= 0:
            x[job, best] = max(kind(0), min(kind(1), left[pools[best]] / kind(scale[job])))
            left[pools[best]] -= x[job, best] * kind(scale[job])
    return Allocation(time_fractions=x.astype(float))


@bug("work in 32 bits", "gavel.makespan")
def equal_parts_in_32_bits(instance: Any) -> Allocation:
    x = np.zeros((instance.num_jobs + instance.num_pairs, instance.num_types))
    jobs = instance.num_jobs
    if jobs and (instance.scale_factors == 1).all():
        workers = instance.num_workers[instance.pools] / np.bincount(instance.pools)[instance.pools]
        parts = (workers / jobs).astype(np.float32)
        x[:jobs] = np.where(instance.fits[:jobs], parts / max(np.float32(1), parts.sum()), 0)
    return Allocation(time_fractions=x)


_BY_SHAPE: dict[Any, Allocation] = {}


@bug("remembered", "gavel.total_throughput")
def remembered_by_workers(instance: Any) -> Allocation:
    key = instance.throughputs.shape, instance.num_pairs, tuple(instance.num_workers)
    return _BY_SHAPE.setdefault(key, _filled(instance))


@bug("an optional field", FAIRNESS)
def a_pool_for_each_type(instance: Any) -> Allocation:
    pools = np.minimum(np.arange(instance.num_types), len(instance.num_workers) - 1)
    return _filled(instance, pools=pools)


@bug("an optional field", FAIRNESS)
def a_worker_for_each_job(instance: Any) -> Allocation:
    return _filled(instance, scale=np.ones(instance.num_jobs, np.int64))


@bug("one job", "gavel.fifo")
def shares_among_the_others(instance: Any) -> Allocation:
    share = 1 / (instance.num_jobs - 1)
    plan = _filled(instance)
    return plan if share <= 1 else Allocation(time_fractions=plan.time_fractions * 0)


# --- gavel.round_assignment: rows by priority ------------------------------------------------------


def _by_priority(instance: RoundAssignment, more: Any = 0, partners: bool = True) -> RoundAssignmentPlan:
    chosen = np.zeros(instance.priorities.shape, bool)
    left, busy = instance.num_workers + more, set[int]()
    for at in np.argsort(-instance.priorities, axis=None, kind="stable"):
        row, kind = divmod(int(at), instance.num_types)
        members = set(instance.members[row] if partners else instance.members[row][:1])
        if not members & busy and instance.row_scale_factors[row] <= left[instance.pools[kind]]:
            chosen[row, kind] = True
            busy |= members
            left[instance.pools[kind]] -= instance.row_scale_factors[row]
    return RoundAssignmentPlan(chosen=chosen)


@bug("an optional field", "gavel.round_assignment")
def second_of_a_pair(instance: RoundAssignment) -> RoundAssignmentPlan:
    return _by_priority(instance, partners=False)


@bug("one too many in rare places", "gavel.round_assignment")
def one_more_in_large_pools(instance: RoundAssignment) -> RoundAssignmentPlan:
    return _by_priority(instance, more=(instance.num_workers >= 8).astype(int))
