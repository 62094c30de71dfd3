"""What Synergy (OSDI'22) states of Tune (sections 4.2 and 5), put to the test."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

import formulations
from heuristics.synergy.tuning import proportional, tune
from instances.base import agree
from instances.schema import IntArray
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT
from instances.synergy.tuning import Tuning, TuningPlan, generate
from validation.claims.synergy.allocation import relaxed
from validation.claims.synergy.rounds import (
    AT_SHARE,
    EXCHANGING,
    INSENSITIVE,
    SENSITIVE,
    WANTS,
    Demand,
    best_tuning,
    rounds,
)
from validation.gaps import gap_to
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]


OR_EXCHANGING = (
    "; and such jobs that want 2 and 2, or at best 3 of one and 1 of the other and at their share all of both"
)


def _falls_below_share(instance: Tuning, greater: str = "any") -> str:
    """How a job does worse under Tune than with its GPU-proportional share, where all can have that."""
    if instance.violations(proportional(instance)):
        return ""
    plan = tune(instance, greater=greater)
    for job, (skipped, choice) in enumerate(zip(instance.skipped(plan).tolist(), plan.choices.tolist(), strict=True)):
        fair = float(instance.fair_throughputs[job])
        if skipped:
            return f"job {job} is left out, with its share it trains at {fair:g}"
        if not instance.fair_configs[job][choice]:
            return f"job {job} trains at {instance.configs[job][choice, THROUGHPUT]:g}, with its share at {fair:g}"
    broken = instance.violations(plan)
    return f"the plan breaks {broken[0].rule}" if broken else ""


def _small(demands: Sequence[Demand]) -> Iterator[Tuning]:
    """Rounds of jobs with these demands, and rounds of jobs to which cores can stand in for memory."""
    both = rounds(6, demands), rounds(6, (AT_SHARE, *EXCHANGING))
    seen = set()
    for instance in heapq.merge(*both, key=lambda instance: instance.num_gpus):
        if instance.digest not in seen:
            seen.add(instance.digest)
            yield instance


def _drawn(rng: np.random.Generator) -> Iterator[Tuning]:
    """By turns :func:`_published` and :func:`_exchanging` rounds."""
    while True:
        yield _published(rng)
        yield _exchanging(rng)


def _published(rng: np.random.Generator) -> Tuning:
    """A round of the paper's servers and its mix of tasks; with 28 cores shares lie between configurations."""
    return _lean(generate(rng, num_servers=int(rng.integers(1, 5)), server_cpus=float(rng.choice([24, 28]))))


def _exchanging(rng: np.random.Generator) -> Tuning:
    """A round that holds all GPUs, of jobs whose best case may have less of one resource than their share has."""
    num_servers, server_gpus = int(rng.integers(1, 5)), int(rng.integers(2, 9))
    gpu_demands: list[int] = []
    while (left := num_servers * server_gpus - sum(gpu_demands)) > 0:
        gpu_demands.append(int(rng.integers(1, min(left, 4) + 1)))
    configs = []
    for gpus in gpu_demands:
        best = rng.integers(0, 4 * gpus + 1, 2)
        configs.append(np.array([(2 * gpus, 2 * gpus, gpus), (*best, 2 * gpus)], float)[: int(rng.integers(1, 3))])
    return Tuning(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=2.0 * server_gpus,
        server_memory=2.0 * server_gpus,
        gpu_demands=np.array(gpu_demands),
        configs=tuple(configs),
    )


def _lean(instance: Tuning) -> Tuning:
    """The same jobs without configurations that others dominate, which neither Tune nor an optimum takes."""
    kept = zip(instance.configs, instance.undominated, strict=True)
    return replace(instance, configs=tuple(table[rows] for table, rows in kept))


def _free_gpus(instance: Tuning, plan: TuningPlan, job: int) -> IntArray:
    """(s,) int: free GPUs of each server when it was the job's turn under Tune, which moves no job's GPUs later."""
    demand = instance.chosen(instance.best_choices)
    order = np.lexsort((-demand[:, MEMORY], -demand[:, CPU], -instance.gpu_demands)).tolist()
    before = order[: order.index(job)]
    free: IntArray = instance.server_gpus - plan.gpus[before].sum(axis=0)
    return free


def _nothing_to_revert(instance: Tuning, greater: str, *, split: bool) -> str:
    """How Tune makes no room for a job with no more than its share, though one server or several have its GPUs."""
    plan = tune(instance, greater=greater)
    exceeds = instance.chosen(instance.best_choices)[:, :THROUGHPUT] > instance.shares
    # A job whose demand counts as greater than its share is reduced to it before.
    modest = ~exceeds.any(axis=1) | (exceeds.any(axis=1) if greater == "any" else exceeds.all(axis=1))
    for job in np.flatnonzero(instance.skipped(plan) & modest).tolist():
        gpus, free = int(instance.gpu_demands[job]), _free_gpus(instance, plan, job)
        there = free.max() < gpus <= free.sum() if split else free.max() >= gpus
        if there:
            return f"job {job} is left out; GPUs it holds: {gpus}, free on a server: {free.max()}, on all: {free.sum()}"
    overfull = [violation for violation in instance.violations(plan) if violation.rule != "placed"]
    return f"with jobs reverted, the plan breaks {overfull[0]}" if overfull else ""


def _construction(greater: str, *, split: bool) -> Claim:
    exceeding = "CPU cores or in memory" if greater == "any" else "both CPU cores and memory"
    kinds = (INSENSITIVE, AT_SHARE, *SENSITIVE)
    if split:
        jobs, place = "jobs", "no single server has the job's GPUs, so that it is split"
        elsewhere = (
            ". No server is overfull either: a reverted job may need more of one resource than before, on other "
            "servers as well. What happens there is left open in print, and as built jobs there are reverted too"
        )
    else:
        jobs, place, elsewhere = "jobs of one GPU", "a single server has the job's GPUs", ""
    return Claim(
        name=f"tune_construction_{greater}_{'split' if split else 'single'}",
        source="Synergy, section 4.2",
        statement="Where a job does not fit with its GPU-proportional share, there are by construction jobs with more "
        "than theirs on the servers that have its GPUs, and with these reverted it fits.",
        reading=f"more than the share is more in {exceeding}; {place}. A job is not left out, unless it wants more "
        f"than its share in a way that does not count as more{elsewhere}.",
        instances=lambda rng: _small(kinds) if split else rounds(6, kinds, single_gpu=True),
        breaks=lambda instance: _nothing_to_revert(instance, greater, split=split),
        scope=f"{jobs} that hold all of up to 6 GPUs on up to 3 servers, and want 1 core and 1 GB, 2 and 2, or 3 of "
        f"either or both per GPU where the share is 2 and 2{OR_EXCHANGING if split else ''}",
        exhaustive=True,
    )


def _far_from_best(instance: Tuning) -> str:
    """How Tune is more than 10% below the best tuning."""
    best = best_tuning(instance)
    if best is None:
        return ""
    value = instance.objective(tune(instance))
    return _far(value, best[0])


def _far_from_optimum(instance: Tuning) -> str:
    value = instance.objective(tune(instance))
    # Where it is near the bound it is near the optimum.
    if gap_to(value, relaxed(instance)) <= 0.1:
        return ""
    found = formulations.solve(instance, time_limit=2.0).objective
    return "" if found is None else _far(value, found)


def _far(value: float, best: float) -> str:
    gap = gap_to(value, best)
    if value >= best or gap <= 0.1 or agree(gap, 0.1):
        return ""
    return f"it trains at {value:g} in all, another tuning at {best:g}: {100 * gap:.0f}% are lost"


CLAIMS: list[Claim] = [
    Claim(
        name="tune_not_below_shares",
        source="Synergy, section 4.2",
        statement="With Tune no job trains slower than with its GPU-proportional share.",
        reading="of every job of a round, when jobs may be split over servers; more than the share is more in CPU "
        "cores or in memory.",
        instances=lambda rng: _small((INSENSITIVE, *SENSITIVE)),
        breaks=_falls_below_share,
        scope=f"jobs that hold all of up to 6 GPUs on up to 3 servers, and {WANTS}{OR_EXCHANGING}",
        exhaustive=True,
    ),
    Claim(
        name="tune_not_below_shares_drawn",
        source="Synergy, section 4.2",
        statement="With Tune no job trains slower than with its GPU-proportional share.",
        reading="of every job of a round, when jobs may be split over servers; more than the share is more in CPU "
        "cores or in memory.",
        instances=_drawn,
        breaks=_falls_below_share,
        scope="random, by turns: tasks in the mix (20, 70, 10) on 1 to 4 servers of 8 GPUs, with shares on and between "
        "configurations; and jobs that hold all of 1 to 4 servers of 2 to 8 GPUs, at best with anything up to twice "
        "their share of cores, and of memory",
    ),
    Claim(
        name="tune_not_below_shares_unsplit",
        source="Synergy, section 4.2",
        statement="With Tune no job trains slower than with its GPU-proportional share.",
        reading="of every job of a round, when jobs may not be split, and all of them fit with their shares, the "
        "largest placed first on the tightest server.",
        instances=lambda rng: rounds(12, (INSENSITIVE, SENSITIVE[0]), num_servers=(2,), allow_split=False),
        breaks=_falls_below_share,
        scope="jobs that hold all of up to 12 GPUs on 2 servers, and want 1 or 3 cores per GPU where the share is 2",
        exhaustive=True,
    ),
    Claim(
        name="tune_not_below_shares_all",
        source="Synergy, section 4.2",
        statement="With Tune no job trains slower than with its GPU-proportional share.",
        reading="of every job of a round, when jobs may be split over servers; more than the share is more in both "
        "CPU cores and memory, for a job that is to be reduced as for one that is to be reverted.",
        instances=lambda rng: rounds(4),
        breaks=lambda instance: _falls_below_share(instance, "all"),
        scope=f"jobs that hold all of up to 4 GPUs on up to 3 servers, and {WANTS}",
        exhaustive=True,
    ),
    *(_construction(greater, split=split) for greater in ("any", "all") for split in (False, True)),
    Claim(
        name="tune_within_10_percent",
        source="Synergy, section 5",
        statement="Tune is within 10% of the optimum.",
        reading="of the total throughput of a round, in every round. The paper's is an observation of its "
        "experiments. The best tuning is found by trying everything.",
        instances=lambda rng: rounds(4, num_servers=(1, 2)),
        breaks=_far_from_best,
        scope=f"jobs that hold all of up to 4 GPUs on up to 2 servers, and {WANTS}",
        exhaustive=True,
    ),
    Claim(
        name="tune_within_10_percent_drawn",
        source="Synergy, section 5",
        statement="Tune is within 10% of the optimum.",
        reading="of the total throughput of a round, on the paper's servers and its mix of tasks, drawn by this "
        "library's generator. The paper's is an observation of its experiments.",
        instances=lambda rng: (_lean(generate(rng, num_servers=2)) for _ in itertools.count()),
        breaks=_far_from_optimum,
        scope="random: tasks in the mix (20, 70, 10) on 2 servers of 8 GPUs, 24 cores and 500 GB",
        shrink=False,
    ),
]
