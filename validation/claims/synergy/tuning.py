"""Claims of Synergy (OSDI'22) about Greedy and Tune (sections 3.3, 4.2, 5 and 6)."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from heuristics.synergy.tuning import greedy, proportional, tune
from instances.schema import FloatArray, IntArray
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT
from instances.synergy.tuning import Tuning, TuningPlan, four_jobs, generate
from validation.claims.assumed import only
from validation.claims.claim import Claim, OnAverage, Reading
from validation.claims.plans import optimal_plan, plans_of
from validation.claims.synergy.rounds import (
    AT_SHARE,
    EXCHANGING,
    FULL_ROUND,
    INSENSITIVE,
    KEPT,
    SENSITIVE,
    WANTS,
    Demand,
    are_capped,
    are_full,
    are_within,
    published,
    rounds,
)
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]


OR_EXCHANGING = (
    "; and such jobs that want 2 and 2, or at best 3 of one and 1 of the other and at their share all of both"
)


def _falls_below_share(instance: Tuning, greater: str = "any") -> str | None:
    """Describe how a job does worse under Tune than with its GPU-proportional share, where all can have that."""
    if instance.violations(proportional(instance)):
        return None
    plan = tune(instance, greater=greater)
    for job, (skipped, choice) in enumerate(zip(instance.skipped(plan).tolist(), plan.choices.tolist(), strict=True)):
        fair = float(instance.fair_throughputs[job])
        if skipped:
            return f"job {job} is left out, with its share it trains at {fair:g}"
        if not instance.fair_configs[job][choice]:
            return f"job {job} trains at {instance.configs[job][choice, THROUGHPUT]:g}, with its share at {fair:g}"
    broken = instance.violations(plan)
    return f"the plan breaks {broken[0].rule}" if broken else None


def _small(demands: Sequence[Demand]) -> Iterator[Tuning]:
    """Yield rounds of jobs with these demands and of jobs where cores stand in for memory, without the server cap."""
    both = rounds(5, demands), (instance.uncapped() for instance in rounds(5, (AT_SHARE, *EXCHANGING)))
    seen = set()
    for instance in heapq.merge(*both, key=lambda instance: instance.num_gpus):
        if instance.digest not in seen:
            seen.add(instance.digest)
            yield instance


ANY = "more than the share is more in CPU cores or in memory"


def _drawn(rng: np.random.Generator) -> Iterator[Tuning]:
    """Yield by turns :func:`_mixed` and :func:`_exchanging` rounds."""
    while True:
        yield _mixed(rng)
        yield _exchanging(rng)


def _mixed(rng: np.random.Generator) -> Tuning:
    """Draw a round of the paper's servers and its mix of tasks; with 28 cores shares lie between configurations."""
    return _lean(generate(rng, num_servers=int(rng.integers(1, 5)), server_cpus=float(rng.choice([24, 28]))))


def _exchanging(rng: np.random.Generator) -> Tuning:
    """Draw a round that holds all GPUs, of jobs whose best case may have less of a resource than their share."""
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
        server_cap=bool(rng.integers(2)),
    )


def _lean(instance: Tuning) -> Tuning:
    """Return the same jobs without configurations that others dominate, which neither Tune nor an optimum takes."""
    kept = zip(instance.configs, instance.undominated, strict=True)
    return replace(instance, configs=tuple(table[rows] for table, rows in kept))


def _free_gpus(instance: Tuning, plan: TuningPlan, job: int) -> IntArray:
    """Return the free GPUs of each server, (s,) int, at the job's turn under Tune, which moves no job's GPUs later."""
    demand = instance.chosen(instance.best_choices)
    order = np.lexsort((-demand[:, MEMORY], -demand[:, CPU], -instance.gpu_demands)).tolist()
    before = order[: order.index(job)]
    free: IntArray = instance.server_gpus - plan.gpus[before].sum(axis=0)
    return free


def _nothing_to_revert(instance: Tuning, greater: str, *, split: bool, elsewhere: bool = True) -> str | None:
    """Describe how Tune makes no room for a job with no more than its share, though servers have its GPUs."""
    plan = tune(instance, greater=greater, elsewhere=elsewhere)
    exceeds = instance.chosen(instance.best_choices)[:, :THROUGHPUT] > instance.shares
    # A job whose demand counts as greater than its share is reduced to it before.
    modest = ~exceeds.any(axis=1) | (exceeds.any(axis=1) if greater == "any" else exceeds.all(axis=1))
    for job in np.flatnonzero(instance.skipped(plan) & modest).tolist():
        gpus, free = int(instance.gpu_demands[job]), _free_gpus(instance, plan, job)
        there = free.max() < gpus <= free.sum() if split else free.max() >= gpus
        if there:
            return f"job {job} is left out; GPUs it holds: {gpus}, free on a server: {free.max()}, on all: {free.sum()}"
    overfull = [violation for violation in instance.violations(plan) if violation.rule != "placed"]
    return f"with jobs reverted, the plan breaks {overfull[0]}" if overfull else None


def _no_server_for_gpus(instance: Tuning, *, several: bool) -> str | None:
    """Describe how a job finds its GPUs free on no server, or not even on several, when it is its turn under Tune."""
    plan = tune(instance)
    for job in np.flatnonzero(instance.gpu_demands <= instance.server_gpus).tolist():
        gpus, free = int(instance.gpu_demands[job]), _free_gpus(instance, plan, job)
        if (free.sum() if several else free.max()) < gpus:
            return f"job {job} wants {gpus} GPUs, free on the servers are {', '.join(map(str, free.tolist()))}"
    return None


def _leaves_gpus_idle(instance: Tuning) -> str | None:
    """Describe how GPUs are idle under Tune although the jobs hold all of them."""
    idle = instance.server_gpus - tune(instance).gpus.sum(axis=0)
    return (
        f"{int(idle.sum())} GPUs are idle, {', '.join(map(str, idle.tolist()))} on the servers" if idle.any() else None
    )


def _relative_times(instance: Tuning, choices: IntArray) -> FloatArray:
    """Return the running time of each job with its configuration, relative to its share's, (n,) float."""
    times: FloatArray = instance.fair_throughputs / instance.chosen(choices)[:, THROUGHPUT]
    return times


def _first_stage(instance: Tuning) -> IntArray:
    """Return the configurations of the first program, the optimum that the paper compares Tune with, (n,) int."""
    choices: IntArray = optimal_plan(instance.stage_one()).choices
    return choices


def _times_less_late(instance: Tuning) -> float:
    """Return how many times sooner than the limit, 10% over the first program's, jobs complete on average."""
    times = [_relative_times(instance, choices).mean() for choices in (tune(instance).choices, _first_stage(instance))]
    return float(1.1 * times[1] / times[0])


def _times_more(instance: Tuning) -> float:
    """Return how many times as high as the limit, 10% below that of the first program, the total throughput is."""
    value, best = (
        float(instance.chosen(choices)[:, THROUGHPUT].sum())
        for choices in (tune(instance).choices, _first_stage(instance))
    )
    return value / (0.9 * best)


def _idle(instance: Tuning) -> IntArray:
    """Return the GPUs that Greedy leaves idle on each server, (s,) int."""
    idle: IntArray = instance.server_gpus - greedy(instance).gpus.sum(axis=0)
    return idle


def _idle_under_greedy(rng: np.random.Generator) -> Iterator[Tuning]:
    """Yield the smallest round, of those with jobs that one server can hold, in which Greedy leaves GPUs idle."""
    found = (instance for instance in rounds(4) if (instance.gpu_demands <= instance.server_gpus).all())
    return itertools.islice((instance for instance in found if _idle(instance).any()), 1)


def _nothing_idles(instance: Tuning) -> str | None:
    if not _idle(instance).any():
        return "no GPU is idle under Greedy"
    skipped = np.flatnonzero(instance.skipped(tune(instance)))
    return f"Tune leaves out job {skipped[0]} too" if skipped.size else None


def _best(instance: Tuning) -> float:
    best = optimum(instance)
    return -np.inf if best is None else float(best)


def _no_gain(instance: Tuning) -> str | None:
    capped, uncapped = _best(instance), _best(instance.uncapped())
    if uncapped > capped:
        return None
    return f"the best tuning trains at {capped:g} with the cap and at {uncapped:g} without"


def _gains_from_splitting(rng: np.random.Generator) -> Iterator[Tuning]:
    """Yield the smallest round of which a better tuning exists without the server cap."""
    return itertools.islice((instance for instance in rounds(4) if _no_gain(instance) is None), 1)


def _by_both(instance: Tuning) -> TuningPlan:
    """Return the plan of Tune, where more than the share is more in both CPU cores and memory."""
    return tune(instance, greater="all")


KINDS = (INSENSITIVE, AT_SHARE, *SENSITIVE)


def _overfull_elsewhere() -> Tuning:
    """Return a round of two servers in which a job that is reverted overfills the server of its other GPUs."""
    wanted = ((3, 8, 3), (3, 6, 6), (3, 3, 9), (1, 2, 2))
    return Tuning(
        num_servers=2,
        server_gpus=5,
        server_cpus=10.0,
        server_memory=10.0,
        gpu_demands=np.array([gpus for gpus, *_ in wanted]),
        configs=tuple(np.unique([(2.0 * gpus, 2.0 * gpus, 1.0), (*best, 2.0)], axis=0) for gpus, *best in wanted),
    )


def _capped_first(demands: Sequence[Demand]) -> Iterator[Tuning]:
    """Yield rounds of :func:`_small`, those under the server cap before those without it."""
    yield from rounds(5, demands)
    yield from _small(demands)


# --- packing (section 2.1) -------------------------------------------------------------------------


def _packed_together(most_gpus: int, *, gains: Sequence[int]) -> Iterator[Tuning]:
    """Yield a job that trains the faster the more memory it has, beside one that needs half of its share of that.

    Both are on one server and hold all of its GPUs.  The first trains at 1 per GPU with its share, and faster by one
    with each of ``gains`` GB more.
    """
    for total in range(2, most_gpus + 1):
        for gpus in range(1, total):
            other = total - gpus
            sensitive = [
                (2.0 * gpus, 2.0 * gpus, gpus),
                *((2.0 * gpus, 2.0 * gpus + more, gpus + more) for more in gains),
            ]
            yield Tuning(
                num_servers=1,
                server_gpus=total,
                server_cpus=2.0 * total,
                server_memory=2.0 * total,
                gpu_demands=np.array([gpus, other]),
                configs=(np.array(sensitive, float), np.array([(2.0 * other, float(other), other)])),
            )


def _nothing_gained(instance: Tuning) -> str | None:
    """Describe how no tuning of jobs on one server trains faster than their shares."""
    best, shares = _best(instance), instance.objective(proportional(instance))
    return None if best > shares else f"the best tuning trains at {best:g}, as their shares do"


def _are_two_on_a_server(instance: Tuning) -> bool:
    """Return whether two jobs hold all GPUs of one server, and more memory than its share helps one of them alone.

    The other is as fast with less than its share.
    """
    if instance.num_servers != 1 or instance.num_jobs != 2 or not are_capped(instance):
        return False
    shares = instance.gpu_demands * (instance.server_memory / instance.server_gpus)
    found = []
    for table, share in zip(instance.configs, shares.tolist(), strict=True):
        speeds, memory = table[:, THROUGHPUT], table[:, MEMORY]
        most = speeds.max()
        found.append((most > speeds[memory <= share].max(initial=0.0), most == speeds[memory < share].max(initial=0.0)))
    return sorted(found) == [(False, True), (True, False)]


# --- Tables 1 to 3 (section 2.1) -------------------------------------------------------------------

PRINTED = 1.5
"""How many times sooner jobs complete on average in Figure 3."""


def _below_figure_3(instance: Tuning, jobs: Sequence[int]) -> str | None:
    """Describe how some jobs, of equal length at their shares, complete less than 1.5 times sooner at best, rounded.

    All tunings of the four jobs are tried, each with one configuration of every job that fit on the two servers.
    """
    best, instance = 0.0, _lean(instance)
    for choices in itertools.product(*(range(len(table)) for table in instance.configs)):
        chosen = instance.chosen(np.array(choices))
        speeds = chosen[:, THROUGHPUT] / instance.gpu_demands
        if speeds.min() < 1 or not _fit_in_pairs(instance, chosen[:, :THROUGHPUT]):
            continue
        best = max(best, len(jobs) / sum(1 / speeds[list(jobs)]))
    return None if round(best, 1) >= PRINTED else f"jobs complete {best:.2f} times sooner on average, and no more"


def _fit_in_pairs(instance: Tuning, demands: FloatArray) -> bool:
    """Return whether four jobs of half a server each are on two servers with these CPU cores and GB."""
    limits = np.array([instance.server_cpus, instance.server_memory])
    pairs = (((0, other), tuple({1, 2, 3} - {other})) for other in (1, 2, 3))
    return any(all((demands[list(pair)].sum(axis=0) <= limits).all() for pair in both) for both in pairs)


_claim = partial(
    Claim,
    source="Synergy, section 4.2",
    exhaustive=True,
    assumes=are_capped,
    ties="by number",
    assumptions=KEPT,
    relaxed="",
)
_not_below_shares = partial(
    _claim,
    statement="With Tune no job trains slower than with its GPU-proportional share.",
    reading=f"of every job of a round, when jobs may be split over servers; {ANY}.",
    breaks=_falls_below_share,
)

CLAIMS: list[Claim] = [
    _not_below_shares(
        name="tune_not_below_shares",
        instances=lambda rng: _capped_first((INSENSITIVE, *SENSITIVE)),
        assumes=are_full,
        scope=f"jobs that hold all of up to 5 GPUs on up to 3 servers, and {WANTS}{OR_EXCHANGING}",
        assumptions=KEPT.replace(", the server cap of section 6", ""),
        relaxed="jobs to which cores can stand in for memory are without the server cap of section 6.",
        others=(
            Reading(
                "when jobs may be split; more than the share is more in both CPU cores and memory, for a job that is "
                "to be reduced as for one that is to be reverted.",
                partial(_falls_below_share, greater="all"),
                plans=plans_of(("tune", _by_both), "proportional"),
            ),
        ),
    ),
    _not_below_shares(
        name="tune_not_below_shares_drawn",
        instances=lambda rng: itertools.islice(_drawn(rng), 300),
        scope="random, by turns: tasks in the mix (20, 70, 10) on 1 to 4 servers of 8 GPUs, with shares on and between "
        "configurations; and jobs that hold all of 1 to 4 servers of 2 to 8 GPUs, at best with anything up to twice "
        "their share of cores, and of memory",
        exhaustive=False,
        assumes=are_within,
        assumptions="homogeneous servers, fixed GPU demands, runnable jobs that hold no more than all GPUs.",
        relaxed="half of the second kind are without the server cap of section 6, and shares may lie between "
        "configurations.",
    ),
    _claim(
        name="tune_construction",
        statement="Where a job does not fit with its GPU-proportional share, there are by construction jobs with more "
        "than theirs on the servers that have its GPUs, and with these reverted it fits.",
        reading=f"{ANY}; jobs of one GPU, so that a single server has the job's. A job is not left out, unless it "
        "wants more than its share in a way that does not count as more.",
        instances=lambda rng: rounds(5, KINDS, single_gpu=True),
        breaks=partial(_nothing_to_revert, greater="any", split=False),
        scope="jobs that hold all of up to 5 GPUs on up to 3 servers, and want 1 core and 1 GB, 2 and 2, or 3 of "
        "either or both per GPU where the share is 2 and 2",
        others=(
            Reading(
                f"{ANY}; jobs of several GPUs, where no single server has the job's GPUs, so that it is split. No "
                "server is overfull either. As printed, only jobs on the servers that have the job's GPUs are "
                "reverted; one of them may need more of one resource than before, on another server.",
                partial(_nothing_to_revert, greater="any", split=True, elsewhere=False),
                lambda rng: [_overfull_elsewhere()],
                scope="four jobs that hold all GPUs of two servers of 5",
                plans=plans_of(("as printed", partial(tune, elsewhere=False)), "tune"),
                assumes=are_capped,
            ),
            Reading(
                "the same, and where a reverted job overfills another server, jobs there are reverted too, as built.",
                partial(_nothing_to_revert, greater="any", split=True),
                lambda rng: itertools.chain([_overfull_elsewhere()], _small((INSENSITIVE, SENSITIVE[0], SENSITIVE[2]))),
                scope="four such jobs, and jobs that hold all of up to 5 GPUs on up to 3 servers; those that need more "
                "of one resource at their share than at their best are without the cap",
                assumes=are_full,
                by="the library",
                relaxed="jobs that need more of one resource at their share than at their best are without the server "
                "cap of section 6.",
            ),
            Reading(
                "more than the share is more in both CPU cores and memory; jobs of one GPU.",
                partial(_nothing_to_revert, greater="all", split=False),
                plans=plans_of(("tune", _by_both), "proportional"),
            ),
        ),
    ),
    _claim(
        name="tune_finds_gpus",
        statement="Of runnable jobs each finds a server, or a set of servers, that can satisfy its GPU demand.",
        reading="a job of several GPUs may be given those of several servers.",
        instances=lambda rng: rounds(6, (INSENSITIVE,)),
        breaks=partial(_no_server_for_gpus, several=True),
        scope="jobs that hold all of up to 6 GPUs on up to 3 servers, and want less than their shares",
        others=(
            Reading(
                "a single server always has them, as step 2 (a) words it, for every job that a server without other "
                "jobs could hold.",
                partial(_no_server_for_gpus, several=False),
                plans=plans_of("tune"),
            ),
        ),
    ),
    _claim(
        name="tune_uses_all_gpus",
        statement="At full load Tune never underutilises the GPUs.",
        reading="a job may be split over servers: where the jobs hold all GPUs, none is idle.",
        instances=lambda rng: rounds(5, KINDS),
        breaks=_leaves_gpus_idle,
        scope="jobs that hold all of up to 5 GPUs on up to 3 servers, and want 1 core and 1 GB, 2 and 2, or 3 of "
        "either or both per GPU where the share is 2 and 2",
        others=(
            Reading(
                "jobs are not split over servers, though any of them fits one.",
                _leaves_gpus_idle,
                lambda rng: rounds(6, (INSENSITIVE, *SENSITIVE), allow_split=False),
                scope=f"jobs that hold all of up to 6 GPUs on up to 3 servers, each of one server, and {WANTS}",
                assumes=are_capped,
                plans=plans_of("tune"),
            ),
        ),
    ),
    _claim(
        name="tune_within_10_percent",
        source="Synergy, sections 5.3.2 and 5.6",
        statement="Tune is within 10% of the optimum, in average completion time and in its allocations.",
        reading="the average completion time, which the experiments measure, where every job takes as long with its "
        "share and keeps the configuration that Tune gives it; the optimum is the first program's allocation, whether "
        "or not it can be placed.",
        by="the library, of one round: the paper observes it of its traces",
        instances=lambda rng: itertools.islice(published(rng), 20),
        breaks=OnAverage(_times_less_late, "inside the limit"),
        scope=f"random: {FULL_ROUND}, one GPU each",
        exhaustive=False,
        shrink=False,
        assumptions="the paper's servers and cluster of 128 GPUs, its mix of tasks and its published profiles, the "
        "server cap of section 6.",
        relaxed="one round, not a trace, and all jobs run to their end in it.",
        others=(
            Reading(
                "the total throughput of a round, which the programs maximise.",
                OnAverage(_times_more, "inside the limit"),
            ),
            Reading(
                "the average completion time of jobs of 1 to 8 GPUs.",
                OnAverage(_times_less_late, "inside the limit"),
                lambda rng: itertools.islice(published(rng, multi_gpu=True), 20),
                scope=f"random: {FULL_ROUND}, one GPU to 8 each",
                assumes=are_capped,
            ),
        ),
    ),
    _claim(
        name="greedy_leaves_gpus_idle",
        source="Synergy, sections 3.3 and 4.2",
        statement="Greedy can exhaust CPUs or memory and leave GPUs idle while jobs wait; Tune does not.",
        reading="there is such a round: the smallest one in which Greedy skips a job that one server could hold, "
        "where Tune runs all jobs.",
        instances=_idle_under_greedy,
        breaks=_nothing_idles,
        scope=f"of jobs that hold all of up to 4 GPUs on up to 3 servers, and {WANTS}, the first in which GPUs idle",
    ),
    _claim(
        name="splitting_can_pay",
        source="Synergy, section 6",
        statement="A job may gain from being split over servers, where that brings it more CPUs or memory than one "
        "server has.",
        reading="there is such a round, when communication costs nothing: the smallest one whose best tuning gains "
        "without the server cap. Both are found by trying everything.",
        instances=_gains_from_splitting,
        breaks=_no_gain,
        scope=f"of jobs that hold all of up to 4 GPUs on up to 3 servers, and {WANTS}, the first that gains",
        ties="",
        assumptions="homogeneous servers, fixed GPU demands. The server cap of section 6 is what the claim lifts.",
        relaxed="communication between servers is free.",
    ),
    _claim(
        name="packing_memory_sensitive_pays",
        source="Synergy, section 2.1",
        statement="It is always beneficial to pack a memory-sensitive job with an insensitive one.",
        reading="two jobs hold all GPUs of a server; the one trains faster with every GB more, the other needs half of "
        "its share of memory. The best tuning, of all, trains faster in total than the shares.",
        instances=lambda rng: _packed_together(8, gains=range(1, 9)),
        breaks=_nothing_gained,
        assumes=_are_two_on_a_server,
        scope="two such jobs on a server of 2 to 8 GPUs, all ways to divide these",
        ties="do not matter",
        assumptions="a server whose GPUs are in use, fixed GPU demands, the server cap of section 6; a share of 2 GB "
        "per GPU.",
        others=(
            Reading(
                "the same of a job that trains faster only with at least 3 GB more than its share, as where data fit "
                "into memory or do not.",
                _nothing_gained,
                lambda rng: _packed_together(8, gains=range(3, 9)),
                plans=plans_of("proportional"),
                assumes=_are_two_on_a_server,
            ),
        ),
    ),
    _claim(
        name="figure_3_half_as_long",
        source="Synergy, section 2.1, Tables 1 to 3 and Figure 3",
        statement="Resource-sensitive allocation completes the four jobs of Table 1 1.5 times sooner on average than "
        "GPU-proportional shares do.",
        reading="all four jobs, of equal length at their shares, on the authors' published profiles; the best of all "
        "tunings in which none is slower and each is on one server, as in Table 3.",
        instances=lambda rng: [four_jobs()],
        breaks=partial(_below_figure_3, jobs=(0, 1, 2, 3)),
        assumes=only(four_jobs()),
        scope="the jobs of Table 1 and their published profiles",
        ties="",
        assumptions="two servers of 8 GPUs, 24 cores and 500 GB; four jobs of 4 GPUs.",
        relaxed="the lengths of the jobs are in Figure 3 alone, which prints no numbers.",
        others=(
            Reading(
                "the two jobs that are sensitive, the same way.",
                partial(_below_figure_3, jobs=(0, 1)),
            ),
        ),
    ),
]
