"""What Synergy (OSDI'22) states, put to the test.

Optima of small rounds and the places of jobs are found by trying everything, which shares nothing
with the models of :mod:`formulations`; these are used for the paper's linear programs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import formulations
from formulations.synergy.allocation import relaxation
from formulations.synergy.placement import vertex
from heuristics.synergy.tuning import proportional, tune
from instances.base import BoolArray, FloatArray, IntArray, agree
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.placement import Placement, PlacementPlan
from instances.synergy.sensitivity import CPU, MEMORY, THROUGHPUT
from instances.synergy.tuning import Tuning, TuningPlan, generate
from validation.claims import Claim
from validation.gaps import beats, gap_to

# --- small rounds ---------------------------------------------------------------------------------

SHARE = 2.0
"""CPU cores, and GB, of a server per GPU."""

Demand = tuple[int, int, int]
"""CPU cores, GB and throughput of a job's best case, per GPU."""

Kind = tuple[int, Demand]
"""GPUs of a job and its best case."""

INSENSITIVE: Demand = (1, 1, 1)
AT_SHARE: Demand = (2, 2, 1)
SENSITIVE: tuple[Demand, ...] = ((3, 1, 2), (1, 3, 2), (3, 3, 2))


def _job(gpus: int, best: Demand) -> FloatArray:
    """(1 or 2, 3) float: what a job trains at within its share, 1 per GPU, and its best case."""
    within = (*np.minimum(best[:THROUGHPUT], SHARE), 1.0)
    return gpus * np.unique(np.array([within, best], float), axis=0)


def _cluster(num_servers: int, server_gpus: int, jobs: Sequence[Kind], *, allow_split: bool) -> Tuning:
    return Tuning(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=SHARE * server_gpus,
        server_memory=SHARE * server_gpus,
        gpu_demands=np.array([gpus for gpus, _ in jobs]),
        configs=tuple(_job(gpus, best) for gpus, best in jobs),
        allow_split=allow_split,
    )


def _rounds(
    most_gpus: int,
    demands: Sequence[Demand] = (INSENSITIVE, *SENSITIVE),
    *,
    num_servers: Sequence[int] = (1, 2, 3),
    allow_split: bool = True,
    single_gpu: bool = False,
) -> Iterator[Tuning]:
    """All rounds whose jobs hold all GPUs, at most ``most_gpus`` of them, the fewest GPUs and jobs first."""
    for total, servers in itertools.product(range(1, most_gpus + 1), num_servers):
        if total % servers == 0:
            largest = 1 if single_gpu else total if allow_split else total // servers
            kinds = list(itertools.product(range(1, largest + 1), demands))
            for num_jobs in range(1, total + 1):
                for jobs in _teams(kinds, num_jobs, total):
                    yield _cluster(servers, total // servers, jobs, allow_split=allow_split)


def _teams(kinds: Sequence[Kind], num_jobs: int, gpus: int) -> Iterator[tuple[Kind, ...]]:
    """Every multiset of ``num_jobs`` of the kinds, ascending in GPUs, that hold ``gpus`` in all."""
    if not num_jobs:
        if not gpus:
            yield ()
        return
    for position, kind in enumerate(kinds):
        if kind[0] * num_jobs > gpus:
            return
        for rest in _teams(kinds[position:], num_jobs - 1, gpus - kind[0]):
            yield (kind, *rest)


def _splits(gpus: int, free: Sequence[int], *, allow_split: bool) -> Iterator[tuple[int, ...]]:
    """Ways to take ``gpus`` from servers with so many free ones; all from one unless jobs may be split."""
    if not free:
        if not gpus:
            yield ()
        return
    for here in range(min(gpus, free[0]) + 1):
        if allow_split or here in (0, gpus):
            for rest in _splits(gpus - here, free[1:], allow_split=allow_split):
                yield (here, *rest)


State = tuple[tuple[int, float, float], ...]
"""Free GPUs, CPU cores and GB of each server; servers are alike, so they are kept in order."""


def _best(instance: Tuning) -> tuple[float, tuple[int, ...]] | None:
    """The greatest throughput of a round and configurations that reach it, by trying everything."""
    server = (instance.server_gpus, instance.server_cpus, instance.server_memory)
    states: dict[State, tuple[float, tuple[int, ...]]] = {(server,) * instance.num_servers: (0.0, ())}
    for job, gpus in enumerate(instance.gpu_demands.tolist()):
        reached: dict[State, tuple[float, tuple[int, ...]]] = {}
        for state, (value, choices) in states.items():
            for places in _splits(gpus, [free[0] for free in state], allow_split=instance.allow_split):
                for config in np.flatnonzero(instance.fair_configs[job]).tolist():
                    cpus, memory, worth = instance.configs[job][config].tolist()
                    left = [
                        (free - here, cores - cpus * here / gpus, size - memory * here / gpus)
                        for here, (free, cores, size) in zip(places, state, strict=True)
                    ]
                    if min(min(cores, size) for _, cores, size in left) < -1e-9:
                        continue
                    key = tuple(sorted(left))
                    if key not in reached or reached[key][0] < value + worth:
                        reached[key] = value + worth, (*choices, config)
        states = reached
    return max(states.values(), default=None)


_WANTS = "want 1 or 3 cores and 1 or 3 GB per GPU where the share is 2 and 2"


# --- the first stage: section 4.1.1 ---------------------------------------------------------------


def _relaxed(instance: Tuning) -> float:
    """Value of the relaxed first program, a proven bound."""
    return formulations.solve(relaxation(instance.stage_one())).bound


def _exceeds_relaxation(instance: Tuning) -> str:
    best = _best(instance)
    if best is None:
        return ""
    bound = _relaxed(instance)
    return f"a tuning trains at {best[0]:g}, the bound is {bound:g}" if beats("max", best[0], bound) else ""


def _short_of_first_stage(instance: Tuning) -> str:
    """How no tuning reaches what the first stage promises."""
    first = formulations.solve(instance.stage_one()).objective
    if first is None:
        return ""
    best = _best(instance)
    if best is None:
        return f"the first stage promises {first:g}, but the jobs cannot be placed"
    if not beats("max", first, best[0]):
        return ""
    return f"the first stage promises {first:g}, the best tuning trains at {best[0]:g}"


_FIRST_STAGE = [
    Claim(
        name="relaxation_bounds_tunings",
        source="Synergy, section 4.1.1, Theorem 4.1",
        statement="The value of the relaxed first program, with the cluster as one super-machine, is at least the "
        "throughput of any assignment of the jobs to the servers.",
        reading="assignments are those of synergy.tuning: whole GPUs on each server, CPUs and memory in proportion, "
        "no job slower than with its GPU-proportional share. The best one is found by trying everything.",
        instances=lambda rng: _rounds(5),
        breaks=_exceeds_relaxation,
        scope=f"jobs that hold all of up to 5 GPUs on up to 3 servers, and {_WANTS}",
        exhaustive=True,
    ),
    Claim(
        name="relaxation_is_attained",
        source="Synergy, sections 4.1.1 and 4.1.2",
        statement="The first program, and a second one that places what it gives to each job, find the best "
        "assignment.",
        reading="the throughput that the first program promises, in whole configurations, is that of some assignment "
        "with whole GPUs on each server. Shares of GPUs would always do: every job spread evenly.",
        instances=lambda rng: _rounds(4),
        breaks=_short_of_first_stage,
        scope=f"jobs that hold all of up to 4 GPUs on up to 3 servers, and {_WANTS}",
        exhaustive=True,
    ),
]


# --- the second stage: section 4.1.2 and appendix A.1.3 -------------------------------------------


def _filled_servers(rng: np.random.Generator) -> Iterator[Placement]:
    """Jobs that leave little or nothing free, so that many limits hold with equality."""
    while True:
        num_servers = int(rng.integers(1, 4))
        num_jobs = int(rng.integers(1, 8 * num_servers + 1))
        demands = rng.integers(1, 10, (num_jobs, 3))
        # No less than the jobs need in all.
        gpus, cpus, memory = -(-demands.sum(axis=0) // num_servers)
        yield Placement(
            num_servers=num_servers,
            server_gpus=int(gpus),
            server_cpus=float(cpus),
            server_memory=float(memory),
            demands=demands.astype(float),
        )


def _equal_jobs() -> Iterator[Placement]:
    """Jobs of one GPU, core and GB each, on servers of equal size that just hold them."""
    for num_jobs, num_servers in itertools.product(range(1, 25), range(1, 4)):
        per_server = -(-num_jobs // num_servers)
        yield Placement(
            num_servers=num_servers,
            server_gpus=per_server,
            server_cpus=float(per_server),
            server_memory=float(per_server),
            demands=np.ones((num_jobs, 3)),
        )


def _too_many(instance: Placement, plan: PlacementPlan) -> str:
    """How a solution of the second program fragments more than three jobs for each server."""
    fragmented, most = instance.objective(plan), 3 * instance.num_servers
    if instance.violations(plan) or fragmented <= most:
        return ""
    return f"{fragmented:g} jobs are fragmented, on {instance.num_servers} servers there may be {most}"


def _vertex_fragments(instance: Placement) -> str:
    plan = vertex(instance)
    if plan is None:
        return ""
    if instance.violations(plan):
        return f"the vertex breaks {instance.violations(plan)[0].rule}"
    return _too_many(instance, plan)


def _even_spread_fragments(instance: Placement) -> str:
    shares = np.full((instance.num_jobs, instance.num_servers), 1 / instance.num_servers)
    return _too_many(instance, PlacementPlan(shares=shares))


_SECOND_STAGE = [
    Claim(
        name="vertices_fragment_few",
        source="Synergy, appendix A.1.3, Theorem A.2",
        statement="A vertex of the second program fragments at most 3s jobs over s servers.",
        reading="the vertex that the simplex method returns, checked to be one; a job is fragmented when it is on "
        "more than one server.",
        instances=_filled_servers,
        breaks=_vertex_fragments,
        scope="random: up to 3 servers that hold up to 24 jobs with next to nothing to spare",
    ),
    Claim(
        name="solutions_fragment_few",
        source="Synergy, appendix A.1.3, Theorem A.2",
        statement="A solution of the second program fragments at most 3s jobs over s servers.",
        reading="any solution, not a vertex only. The program has no objective, so every feasible point is an "
        "optimum: the one tried spreads every job evenly.",
        instances=lambda rng: _equal_jobs(),
        breaks=_even_spread_fragments,
        scope="up to 24 equal jobs that fill up to 3 servers",
        exhaustive=True,
    ),
]


# --- Tune: section 4.2 ----------------------------------------------------------------------------


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


def _drawn(rng: np.random.Generator) -> Iterator[Tuning]:
    """Rounds of the paper's servers and its mix of tasks; with 28 cores shares lie between configurations."""
    while True:
        yield _lean(generate(rng, num_servers=int(rng.integers(1, 5)), server_cpus=float(rng.choice([24, 28]))))


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
    """How Tune leaves a job out that wants no more than its share, though one server or several have its GPUs."""
    plan = tune(instance, greater=greater)
    exceeds = instance.chosen(instance.best_choices)[:, :THROUGHPUT] > instance.shares
    # A job whose demand counts as greater than its share is reduced to it before.
    modest = ~exceeds.any(axis=1) | (exceeds.any(axis=1) if greater == "any" else exceeds.all(axis=1))
    for job in np.flatnonzero(instance.skipped(plan) & modest).tolist():
        gpus, free = int(instance.gpu_demands[job]), _free_gpus(instance, plan, job)
        there = free.max() < gpus <= free.sum() if split else free.max() >= gpus
        if there:
            return f"job {job} is left out; GPUs it holds: {gpus}, free on a server: {free.max()}, on all: {free.sum()}"
    return ""


def _construction(greater: str, *, split: bool) -> Claim:
    exceeding = "CPU cores or in memory" if greater == "any" else "both CPU cores and memory"
    if split:
        jobs, place = "jobs", "no single server has the job's GPUs, so that it is split"
    else:
        jobs, place = "jobs of one GPU", "a single server has the job's GPUs"
    return Claim(
        name=f"tune_construction_{greater}_{'split' if split else 'single'}",
        source="Synergy, section 4.2",
        statement="Where a job does not fit with its GPU-proportional share, there are by construction jobs with more "
        "than theirs on the servers that have its GPUs, and with these reverted it fits.",
        reading=f"more than the share is more in {exceeding}; {place}. A job is not left out, unless it wants more "
        "than its share in a way that does not count as more.",
        instances=lambda rng: _rounds(6, (INSENSITIVE, AT_SHARE, *SENSITIVE), single_gpu=not split),
        breaks=lambda instance: _nothing_to_revert(instance, greater, split=split),
        scope=f"{jobs} that hold all of up to 6 GPUs on up to 3 servers, and want 1 core and 1 GB, 2 and 2, or 3 of "
        "either or both per GPU where the share is 2 and 2",
        exhaustive=True,
    )


def _far_from_best(instance: Tuning) -> str:
    """How Tune is more than 10% below the best tuning."""
    best = _best(instance)
    if best is None:
        return ""
    value = instance.objective(tune(instance))
    return _far(value, best[0])


def _far_from_optimum(instance: Tuning) -> str:
    value = instance.objective(tune(instance))
    # Where it is near the bound it is near the optimum.
    if gap_to(value, _relaxed(instance)) <= 0.1:
        return ""
    found = formulations.solve(instance, time_limit=2.0).objective
    return "" if found is None else _far(value, found)


def _far(value: float, best: float) -> str:
    gap = gap_to(value, best)
    if value >= best or gap <= 0.1 or agree(gap, 0.1):
        return ""
    return f"it trains at {value:g} in all, another tuning at {best:g}: {100 * gap:.0f}% are lost"


_TUNE = [
    Claim(
        name="tune_not_below_shares",
        source="Synergy, section 4.2",
        statement="With Tune no job trains slower than with its GPU-proportional share.",
        reading="of every job of a round, when jobs may be split over servers; more than the share is more in CPU "
        "cores or in memory.",
        instances=lambda rng: _rounds(6),
        breaks=_falls_below_share,
        scope=f"jobs that hold all of up to 6 GPUs on up to 3 servers, and {_WANTS}",
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
        scope="random: tasks in the mix (20, 70, 10) on 1 to 4 servers of 8 GPUs, with shares on and between "
        "configurations",
    ),
    Claim(
        name="tune_not_below_shares_unsplit",
        source="Synergy, section 4.2",
        statement="With Tune no job trains slower than with its GPU-proportional share.",
        reading="of every job of a round, when jobs may not be split, and all of them fit with their shares, the "
        "largest placed first on the tightest server.",
        instances=lambda rng: _rounds(12, (INSENSITIVE, SENSITIVE[0]), num_servers=(2,), allow_split=False),
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
        instances=lambda rng: _rounds(4),
        breaks=lambda instance: _falls_below_share(instance, "all"),
        scope=f"jobs that hold all of up to 4 GPUs on up to 3 servers, and {_WANTS}",
        exhaustive=True,
    ),
    *(_construction(greater, split=split) for greater in ("any", "all") for split in (False, True)),
    Claim(
        name="tune_within_10_percent",
        source="Synergy, section 5",
        statement="Tune is within 10% of the optimum.",
        reading="of the total throughput of a round, in every round. The paper's is an observation of its "
        "experiments. The best tuning is found by trying everything.",
        instances=lambda rng: _rounds(4, num_servers=(1, 2)),
        breaks=_far_from_best,
        scope=f"jobs that hold all of up to 4 GPUs on up to 2 servers, and {_WANTS}",
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


# --- machine types: appendix A.2 ------------------------------------------------------------------


def _two_types() -> Iterator[HeterogeneousAllocation]:
    """One server of each of two types, and jobs that are 1, 2 or 3 times as fast on the second one."""
    for gpus in itertools.product((1, 2), repeat=2):
        for cores in itertools.product((1.0, 2.0), repeat=2):
            for num_jobs in range(1, sum(gpus) + 1):
                for speeds in itertools.combinations_with_replacement((1.0, 2.0, 3.0), num_jobs):
                    yield HeterogeneousAllocation(
                        num_servers=np.ones(2, int),
                        server_gpus=np.array(gpus),
                        server_cpus=np.array(gpus) * np.array(cores),
                        server_memory=np.array(gpus, float),
                        gpu_demands=np.ones(num_jobs, int),
                        configs=tuple(np.array([[1, 0, 1], [1, 0, speed]]) for speed in speeds),
                        config_types=tuple(np.array([0, 1]) for _ in speeds),
                    )


@dataclass(frozen=True)
class _Printed:
    """Optimum of the program as printed, with a limit on each type's GPUs, and the GPUs that the former needs."""

    best: float
    best_with_gpus: float
    gpus: FloatArray


def _printed(instance: HeterogeneousAllocation) -> _Printed | None:
    """The optimum of the program as printed and with GPUs, by trying everything; None without a choice that fits."""
    best, best_with_gpus, crowd = -np.inf, -np.inf, np.zeros(instance.num_types)
    for choices in itertools.product(*(np.flatnonzero(enough).tolist() for enough in instance.fair_configs)):
        used, value = np.zeros((instance.num_types, 3)), 0.0
        for job, choice in enumerate(choices):
            cpus, memory, worth = instance.configs[job][choice].tolist()
            used[instance.config_types[job][choice]] += (cpus, memory, instance.gpu_demands[job])
            value += worth
        fits: BoolArray = np.asarray((used <= instance.capacity + 1e-9).all(axis=0))
        if fits[:2].all() and value > best:
            best, crowd = value, used[:, 2]
        if fits.all() and value > best_with_gpus:
            best_with_gpus = value
    return _Printed(best, best_with_gpus, crowd) if best_with_gpus > -np.inf else None


def _cannot_be_placed(instance: HeterogeneousAllocation) -> str:
    printed = _printed(instance)
    if printed is None or not beats("max", printed.best, printed.best_with_gpus):
        return ""
    kind = int((printed.gpus - instance.capacity[:, 2]).argmax())
    return (
        f"its optimum of {printed.best:g} puts jobs of {printed.gpus[kind]:g} GPUs on type {kind}, which has "
        f"{instance.capacity[kind, 2]:g}; what can be placed trains at {printed.best_with_gpus:g} at most"
    )


_TYPES = [
    Claim(
        name="types_as_printed",
        source="Synergy, appendix A.2, program (22)-(26)",
        statement="The program for several types of machine gives each job a type, CPU cores and memory there.",
        reading="as printed, without a limit on the GPUs of each type: at least one of its optima, found by trying "
        "everything, fits the GPUs of every type, where any choice does.",
        instances=lambda rng: _two_types(),
        breaks=_cannot_be_placed,
        scope="up to 4 jobs of one GPU, on the second of two machines 1, 2 or 3 times as fast as on the first, of 1 "
        "or 2 GPUs and 1 or 2 cores for each",
        exhaustive=True,
    ),
]


CLAIMS: list[Claim] = [*_FIRST_STAGE, *_SECOND_STAGE, *_TUNE, *_TYPES]
