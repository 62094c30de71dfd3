"""What Gavel (OSDI'20) states of its policies, put to the test.

Many allocations can be optimal.  Where a claim speaks of what each job gets, it is read in the
policy's favour: it holds when some optimal allocation has the property, and a linear program over
all of them finds the one that has it most.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import formulations
from formulations.gavel.sharing import SharingProgram
from heuristics.gavel.finish_time_fairness import same_ratio
from heuristics.gavel.makespan import same_finish
from heuristics.gavel.round_assignment import simulate
from heuristics.gavel.sharing import heterogeneity_agnostic
from instances.base import FloatArray, agree
from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.priced import PricedSharing
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.gavel.steps import SharingWithSteps
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput
from validation.claims import Claim
from validation.gaps import beats

POLICIES: tuple[type[Sharing], ...] = (
    MaxMinFairness,
    Makespan,
    FinishTimeFairness,
    Fifo,
    ShortestJobFirst,
    TotalThroughput,
    Cost,
    ThroughputPerDollar,
)

NOTHING = 1e-5
"""Share of a job's isolated throughput that a linear program's tolerance can feign."""


def _or(values: tuple[float, ...]) -> str:
    """``1``, ``1 or 2`` or ``1, 2 or 3``."""
    *before, last = (f"{value:g}" for value in values)
    return f"{', '.join(before)} or {last}" if before else last


def _list(numbers: FloatArray) -> str:
    """``1``, ``1 and 2`` or ``1, 2 and 3``."""
    *before, last = (f"{round(number, 6) + 0.0:.6g}" for number in numbers.tolist())
    return f"{', '.join(before)} and {last}" if before else last


# --- instances -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Family:
    """All jobs of some kinds on all clusters of a few types, smallest first, once up to numbering.

    Attributes
    ----------
    policy : type
    most_jobs : int
    speeds : tuple of int
        Throughputs that a job can have.
    jobs, types : mapping of str to tuple
        Further fields with an entry for each job or type, and the values that it can have.
    ordered : bool
        Whether the order of the jobs matters.
    most_types : int
    workers : tuple of int
        Workers that a type can have.
    """

    policy: type[Sharing]
    most_jobs: int
    speeds: tuple[int, ...]
    jobs: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    types: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    ordered: bool = False
    most_types: int = 2
    workers: tuple[int, ...] = (1, 2)

    def instances(self, rng: np.random.Generator) -> Iterator[Sharing]:
        """The instances; nothing of them is random."""
        types = {"num_workers": self.workers, **self.types}
        sizes = itertools.product(range(1, self.most_jobs + 1), range(1, self.most_types + 1))
        for n, k in sorted(sizes, key=lambda size: (size[0] * size[1], size)):
            kinds = list(itertools.product(*self.jobs.values(), *[self.speeds] * k))
            sets: Iterator[tuple[Any, ...]] = itertools.combinations_with_replacement(kinds, n)
            members = itertools.product(kinds, repeat=n) if self.ordered else sets
            columns = itertools.combinations_with_replacement(itertools.product(*types.values()), k)
            both = itertools.product(members, columns)
            for rows, cols in sorted(both, key=lambda each: sum(map(sum, each[0])) + sum(map(sum, each[1]))):
                fields: dict[str, Any] = {name: np.array([c[i] for c in cols]) for i, name in enumerate(types)}
                fields |= {name: np.array([r[i] for r in rows]) for i, name in enumerate(self.jobs)}
                fields["throughputs"] = np.array([r[len(self.jobs) :] for r in rows], float)
                if np.all(fields.get("scale_factors", 1) <= fields["num_workers"].max()):
                    yield self.policy(**fields)

    @property
    def scope(self) -> str:
        """The instances in words."""
        fields = [*self.jobs.items(), *self.types.items()]
        further = [f"{name} of {_or(values)}" for name, values in fields if len(values) > 1]
        speeds = f"up to {self.most_jobs} jobs of {_or(self.speeds)} steps/s"
        workers = f"{'one type' if self.most_types == 1 else 'one or two types'} of {_or(self.workers)} workers"
        numbering = "in every order" if self.ordered else "up to numbering"
        return ", ".join([f"{speeds} on {workers}", *further, numbering])


def _draw(
    policy: type[Sharing],
    rng: np.random.Generator,
    *,
    most_types: int = 3,
    wide: bool = True,
    pairs: bool = True,
    slos: bool = False,
) -> Sharing:
    """Up to 5 jobs, of several workers, with zero throughputs, placements and pairs, in whole numbers."""
    n, p = int(rng.integers(1, 6)), int(rng.integers(1, most_types + 1))
    k = int(rng.integers(p, most_types + 1))
    num_workers = rng.integers(1, 5, p)
    widest = int(num_workers.argmax())
    throughputs = rng.integers(0, 9, (n, k)).astype(float)
    throughputs[:, widest] = np.maximum(1, throughputs[:, widest])
    scale_factors = rng.integers(1, num_workers[widest] + 1, n) if wide else np.ones(n, np.int64)
    fields: dict[str, Any] = {
        "throughputs": throughputs,
        "num_workers": num_workers,
        "pools": np.concatenate([np.arange(p), rng.integers(0, p, k - p)]),
        "scale_factors": scale_factors,
    }
    if pairs:
        alike = [(a, b) for a, b in itertools.combinations(range(n), 2) if scale_factors[a] == scale_factors[b]]
        chosen = [pair for pair in alike if rng.random() < 0.7]
        fields["pairs"] = np.array(chosen, np.int64).reshape(-1, 2)
        fields["pair_throughputs"] = rng.integers(0, 9, (len(chosen), k, 2)).astype(float)
    if issubclass(policy, MaxMinFairness):
        fields["weights"] = rng.integers(1, 5, n).astype(float)
    if issubclass(policy, SharingWithSteps):
        fields["steps"] = rng.integers(1, 61, n).astype(float)
    if issubclass(policy, FinishTimeFairness):
        fields["elapsed"], fields["isolated_elapsed"] = rng.integers(0, 61, (2, n)).astype(float)
    if issubclass(policy, PricedSharing):
        fields["costs"] = rng.integers(1, 6, k).astype(float)
        if slos:
            fields["slos"] = np.where(rng.random(n) < 0.5, rng.integers(1, 61, n), np.inf)
    return policy(**fields)


def _drawn(*policies: type[Sharing], **options: Any) -> Callable[[np.random.Generator], Iterator[Sharing]]:
    """Random instances of policies in turn."""

    def instances(rng: np.random.Generator) -> Iterator[Sharing]:
        for policy in itertools.cycle(policies):
            yield _draw(policy, rng, **options)

    return instances


DRAWN_ON_ONE_TYPE = "random jobs, up to 5 of up to 4 workers on up to 4 of one type"
DRAWN = "random jobs, up to 5 of up to 4 workers on up to 3 types, with pairs and placements"


# --- all optimal allocations ---------------------------------------------------------------------


def _optimum(instance: Sharing) -> tuple[float, Allocation] | None:
    """The optimal value and an allocation that attains it; None when none is feasible."""
    solution = formulations.solve(instance)
    if solution.status == "infeasible":
        return None
    if solution.status != "optimal" or solution.objective is None or not isinstance(solution.plan, Allocation):
        raise RuntimeError(f"{instance.problem} was not solved to the end: {solution}")
    return solution.objective, solution.plan


def _per_throughput(program: SharingProgram, worth: FloatArray) -> FloatArray:
    """Coefficients of the sum of ``worth[m, j]`` times what job m makes on type j."""
    entries = program.entries
    values = entries.throughput * worth[entries.job, entries.column % program.instance.num_types]
    return np.bincount(entries.column, weights=values, minlength=program.instance.fits.size).astype(float)


def _optimal(instance: Sharing, program: SharingProgram, value: float, job: int) -> None:
    """Confine a program to the allocations that attain ``value``; of shortest job first, by this job."""
    n, k = instance.num_jobs, instance.num_types
    if isinstance(instance, MaxMinFairness):
        levels = instance.scale_factors / (instance.weights * instance.equal_share_throughputs)
        program.throughput_rows("optimal", levels, lower=value)
    elif isinstance(instance, Makespan):
        program.throughput_rows("optimal", value / instance.steps, lower=1.0)
    elif isinstance(instance, FinishTimeFairness):
        left = value * instance.isolated_times - instance.elapsed
        program.throughput_rows("optimal", left / instance.steps, lower=1.0)
    elif isinstance(instance, ShortestJobFirst):
        program.subset("FIRST", np.array([job]))
        program.throughput_rows("optimal", value / instance.steps, over="FIRST", lower=1.0)
    elif isinstance(instance, Fifo):
        worth = np.repeat(instance.worths[:, None], k, axis=1)
        program.one_row("optimal", _per_throughput(program, worth), value)
    elif isinstance(instance, TotalThroughput):
        program.one_row("optimal", _per_throughput(program, np.ones((n, k))), value)
    elif isinstance(instance, ThroughputPerDollar):
        program.one_row("optimal", _per_throughput(program, np.ones((n, 1)) / instance.costs), value)
    elif isinstance(instance, Cost):
        # Running nothing satisfies this too, but gives no job a greater share than another does.
        spending = np.outer(instance.row_scale_factors, instance.costs).ravel()
        program.one_row("optimal", _per_throughput(program, np.ones((n, k))) - value * spending, 0.0)
    else:
        raise TypeError(f"it is not known when an allocation of {instance.problem} is optimal")


def _fairest_optimum(instance: Sharing) -> tuple[float, Allocation] | None:
    """The optimal allocation whose least throughput relative to isolation is greatest, and that share."""
    optimum = _optimum(instance)
    if optimum is None:
        return None
    value, plan = optimum
    found = [plan]
    for job in range(instance.num_jobs) if isinstance(instance, ShortestJobFirst) else [0]:
        program = SharingProgram(instance)
        program.variable("share", lower=0)
        _optimal(instance, program, value, job)
        program.throughput_rows("shares", 1 / instance.isolated_throughputs, less="share")
        program.maximize("greatest_share", variable="share")
        allocation = _run(instance, program)
        if allocation is not None:
            found.append(allocation)
    # The first of equals is the one that was found first.
    return max(((_least_share(instance, each), each) for each in found), key=lambda each: each[0])


def _least_share(instance: Sharing, allocation: Allocation) -> float:
    return float((instance.throughput(allocation) / instance.isolated_throughputs).min())


def _run(instance: Sharing, program: SharingProgram) -> Allocation | None:
    result = formulations.Session().run(program.arrays())
    if result.status == "infeasible":
        return None
    if result.x is None or result.status != "optimal":
        raise RuntimeError(f"{instance.problem} was not solved to the end: {result.message}")
    return Allocation(time_fractions=result.x[: instance.fits.size].reshape(instance.fits.shape))


# --- sharing incentive: section 4.4 --------------------------------------------------------------


def _below_isolation(instance: Sharing) -> str:
    """How the optimum is worse than a static share for each job."""
    optimum = _optimum(instance)
    if optimum is None:
        return ""
    value, isolated = optimum[0], instance.objective(instance.isolated_share())
    if not beats(instance.sense, isolated, value):
        return ""
    rules = {violation.rule for violation in instance.violations(instance.isolated_share())}
    feasible = f", but break {' and '.join(sorted(rules))}" if rules else ""
    return f"the optimum is {value:.6g}, isolated shares attain {isolated:.6g}{feasible}"


def _job_below_isolation(instance: Sharing) -> str:
    """How every optimal allocation gives some job less than its static share does."""
    fairest = _fairest_optimum(instance)
    if fairest is None or not beats("max", 1.0, fairest[0]):
        return ""
    share, allocation = fairest
    return (
        f"every optimal allocation leaves some job at most {share:.6g} of its isolated throughput, such as jobs "
        f"at {_list(instance.throughput(allocation))} steps/s, in isolation {_list(instance.isolated_throughputs)}"
    )


def _title(policy: type[Sharing]) -> str:
    return policy.problem.split(".")[1]


def _objective_incentive(policy: type[Sharing], *, slos: bool = False) -> Claim:
    without = ", with SLOs that can be met" if slos else ", without SLOs"
    priced = without if issubclass(policy, PricedSharing) else ""
    return Claim(
        name=f"sharing_incentive_{_title(policy)}{'_slos' if slos else ''}",
        source="Gavel, section 4.4",
        statement="A policy's objective is at least as good as under an equal split of all resources.",
        reading=f"{policy.problem}{priced}. The split is X_isolated: 1/n of every pool, divided by the workers that a "
        "job holds and scaled down to all of the time where it is more.",
        instances=_drawn(policy, slos=slos),
        breaks=_below_isolation,
        scope=DRAWN + (", half of them with SLOs of 1 to 60 s" if slos else ""),
    )


_FAMILIES = {
    "max_min_fairness": _Family(MaxMinFairness, 3, (1, 2, 3)),
    "max_min_fairness_wide": _Family(MaxMinFairness, 3, (1, 2), jobs={"scale_factors": (1, 2)}, workers=(1, 2, 3)),
    "makespan": _Family(Makespan, 3, (1, 2), jobs={"steps": (1.0, 2.0)}),
    "finish_time_fairness": _Family(FinishTimeFairness, 3, (1, 2), jobs={"steps": (1.0, 2.0)}),
    "finish_time_fairness_running": _Family(
        FinishTimeFairness,
        2,
        (1, 2),
        jobs={"steps": (1.0,), "elapsed": (0.0, 1.0, 2.0), "isolated_elapsed": (0.0, 1.0)},
    ),
    "fifo": _Family(Fifo, 3, (1, 2), ordered=True),
    "shortest_job_first": _Family(ShortestJobFirst, 3, (1, 2), jobs={"steps": (1.0, 2.0)}),
    "total_throughput": _Family(TotalThroughput, 3, (1, 2, 3)),
    "cost": _Family(Cost, 3, (1, 2), jobs={"steps": (1.0,)}, types={"costs": (1.0, 2.0)}),
    "throughput_per_dollar": _Family(
        ThroughputPerDollar, 3, (1, 2), jobs={"steps": (1.0,)}, types={"costs": (1.0, 2.0)}
    ),
}

_WHAT = {
    "max_min_fairness": "for jobs of one worker",
    "max_min_fairness_wide": "for jobs of one or two workers",
    "finish_time_fairness": "for new jobs",
    "finish_time_fairness_running": "for jobs in the middle of their lives",
    "cost": "without SLOs",
    "throughput_per_dollar": "without SLOs",
}


def _about(name: str, policy: type[Sharing]) -> str:
    """``gavel.cost, without SLOs``."""
    return f"{policy.problem}, {_WHAT[name]}" if name in _WHAT else policy.problem


def _job_incentive(name: str, family: _Family) -> Claim:
    return Claim(
        name=f"sharing_incentive_per_job_{name}",
        source="Gavel, section 4.4",
        statement="Policies have sharing incentive: no user would be better off with a static share of their own.",
        reading="a stronger one than the paper's, which is of the objective: under "
        f"{_about(name, family.policy)}, some optimal allocation gives every job at least its throughput under "
        "X_isolated.",
        instances=family.instances,
        breaks=_job_below_isolation,
        scope=family.scope,
        exhaustive=True,
    )


def _split_infeasible(instance: Sharing) -> str:
    """How 1/n of the time of every pool, whatever a job's workers, is no allocation."""
    shares = np.tile(instance.num_workers / instance.num_jobs, (instance.num_jobs, 1))
    plan = instance.on_best_placement(shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True)))
    broken = instance.violations(plan)
    return f"it breaks {broken[0].rule} by {broken[0].amount:.6g}" if broken else ""


def _feasible_split(name: str, jobs: str, family: _Family) -> Claim:
    return Claim(
        name=f"equal_split_feasible_{name}",
        source="Gavel, section 4.4",
        statement="Giving each of n jobs 1/n of every resource is a feasible allocation, whence sharing incentive.",
        reading=f"fractions of time of num_workers / n on every type, not divided by the workers that a job holds, and "
        f"scaled down to all of the time where they are more; {jobs}.",
        instances=family.instances,
        breaks=_split_infeasible,
        scope=family.scope,
        exhaustive=True,
    )


_SHARING = [
    _feasible_split("one_worker", "jobs of one worker", _Family(MaxMinFairness, 4, (1,), workers=(1, 2, 3))),
    _feasible_split(
        "wide",
        "jobs of any number of workers",
        _Family(MaxMinFairness, 4, (1,), jobs={"scale_factors": (1, 2, 3)}, workers=(1, 2, 3)),
    ),
    *map(_objective_incentive, POLICIES),
    *(_objective_incentive(policy, slos=True) for policy in (Cost, ThroughputPerDollar)),
    *(_job_incentive(name, family) for name, family in _FAMILIES.items()),
]


# --- no job starves ------------------------------------------------------------------------------


def _starves(instance: Sharing) -> str:
    """How every optimal allocation gives some job nothing."""
    fairest = _fairest_optimum(instance)
    if fairest is None or fairest[0] > NOTHING:
        return ""
    throughputs = _list(instance.throughput(fairest[1]))
    return f"every optimal allocation gives some job nothing, such as jobs at {throughputs} steps/s"


_STARVATION = [
    Claim(
        name=f"no_starvation_{name}",
        source="Gavel, sections 4.1 and 4.2",
        statement="No job starves.",
        reading="this library's wording, of the allocation that a policy computes: under "
        f"{_about(name, family.policy)}, some optimal allocation gives every job throughput.",
        instances=family.instances,
        breaks=_starves,
        scope=family.scope,
        exhaustive=True,
    )
    for name, family in _FAMILIES.items()
]


# --- Pareto efficiency: section 4.4 --------------------------------------------------------------


def _wasteful(instance: Sharing) -> str:
    """How the optimal allocation found leaves throughput that a job could have at no other's expense."""
    optimum = _optimum(instance)
    assert optimum is not None
    received = instance.throughput(optimum[1])
    program = SharingProgram(instance)
    program.throughput_rows("kept", np.ones(instance.num_jobs), lower=received)
    worth = np.repeat(1 / instance.isolated_throughputs[:, None], instance.num_types, axis=1)
    program.maximize("total_share", worth=worth)
    better = _run(instance, program)
    assert better is not None
    possible = instance.throughput(better)
    before, after = (float((each / instance.isolated_throughputs).sum()) for each in (received, possible))
    if not beats("max", after, before):
        return ""
    return f"it gives jobs {_list(received)} steps/s, {_list(possible)} are possible"


_PARETO = [
    Claim(
        name="pareto_max_min_fairness",
        source="Gavel, section 4.4",
        statement="Max-min fair allocations are Pareto efficient, if water filling follows: no job can have more "
        "without another having less.",
        reading="without water filling: the optimal allocation that the exact model finds. Others may be efficient, "
        "and which one is found depends on the solver.",
        instances=_FAMILIES["max_min_fairness"].instances,
        breaks=_wasteful,
        scope=_FAMILIES["max_min_fairness"].scope,
        exhaustive=True,
    ),
    Claim(
        name="pareto_water_filling",
        source="Gavel, section 4.4",
        statement="Max-min fair allocations are Pareto efficient, if water filling follows: no job can have more "
        "without another having less.",
        reading="with water filling: hierarchical fairness of one entity.",
        instances=_Family(HierarchicalFairness, 3, (1, 2, 3)).instances,
        breaks=_wasteful,
        scope=_Family(HierarchicalFairness, 3, (1, 2, 3)).scope,
        exhaustive=True,
    ),
]


# --- colocation: section 4.4 ---------------------------------------------------------------------


def _colocation_hurts(instance: Sharing) -> str:
    """How the optimum with pairs is worse than without."""
    alone = replace(instance, pairs=np.zeros((0, 2), np.int64), pair_throughputs=np.zeros((0, instance.num_types, 2)))
    without, with_pairs = _optimum(alone), _optimum(instance)
    if without is None or (with_pairs is not None and not beats(instance.sense, without[0], with_pairs[0])):
        return ""
    worse = "none" if with_pairs is None else f"{with_pairs[0]:.6g}"
    return f"the optimum of {instance.problem} is {worse} with pairs, {without[0]:.6g} without"


_COLOCATION = [
    Claim(
        name="colocation_never_hurts",
        source="Gavel, section 4.4",
        statement="Solutions with colocation are at least as good as without.",
        reading="of the objective, of each of the eight policies: adding the pairs, whatever they make, does not "
        "worsen the optimum.",
        instances=_drawn(*POLICIES, slos=True),
        breaks=_colocation_hurts,
        scope=f"the policies in turn; {DRAWN}, and for the cost policies SLOs",
    )
]


# --- homogeneous clusters: section 4.4 -----------------------------------------------------------


def _arrival_order(instance: Sharing) -> Allocation:
    """One job after the other, for as much of its time as there are workers left."""
    left = float(instance.num_workers[0])
    x = np.zeros((instance.num_jobs, 1))
    for job, workers in enumerate(instance.scale_factors):
        x[job] = min(1.0, left / workers)
        left -= float(workers * x[job, 0])
    return Allocation(time_fractions=x)


def _shortest(instance: ShortestJobFirst) -> Allocation:
    x = np.zeros((instance.num_jobs, 1))
    x[(instance.steps / instance.throughputs[:, 0]).argmin()] = 1.0
    return Allocation(time_fractions=x)


def _differs(instance: Sharing, baseline: Callable[[Any], Allocation]) -> str:
    """How the policy's optimum differs from the baseline's value."""
    optimum = _optimum(instance)
    assert optimum is not None
    value, other = optimum[0], instance.objective(baseline(instance))
    if agree(value, other):
        return ""
    return f"the optimum is {value:.6g}, the baseline attains {other:.6g}"


def _homogeneous(
    name: str, policy: type[Sharing], baseline: Callable[[Any], Allocation], words: str, family: _Family | None = None
) -> Claim:
    return Claim(
        name=f"homogeneous_{name}",
        source="Gavel, section 4.4",
        statement="On a homogeneous cluster the heterogeneity-aware policies are equivalent to the baseline policies.",
        reading=f"the optimum of {policy.problem} with one type and no pairs is the value of {words}",
        instances=_drawn(policy, most_types=1, pairs=False) if family is None else family.instances,
        breaks=lambda instance: _differs(instance, baseline),
        scope=DRAWN_ON_ONE_TYPE if family is None else family.scope,
        exhaustive=family is not None,
    )


_ONE_WORKER = _Family(Fifo, 4, (1, 2), ordered=True, most_types=1, workers=(1, 2, 3))
_WIDE = _Family(Fifo, 4, (1, 2), jobs={"scale_factors": (1, 2, 3)}, ordered=True, most_types=1, workers=(1, 2, 3))

_HOMOGENEOUS = [
    _homogeneous(
        "max_min_fairness",
        MaxMinFairness,
        heterogeneity_agnostic,
        "progressive filling of worker time by weight, which does not look at throughputs.",
    ),
    _homogeneous(
        "makespan",
        Makespan,
        same_finish,
        "time in proportion to what each job has left alone, so that all finish together.",
    ),
    _homogeneous(
        "finish_time_fairness",
        FinishTimeFairness,
        same_ratio,
        "time that gives all jobs the same ratio, the least that fits.",
    ),
    _homogeneous("shortest_job_first", ShortestJobFirst, _shortest, "running the job of least time left all the time."),
    _homogeneous(
        "fifo",
        Fifo,
        _arrival_order,
        "serving jobs of one worker in the order of their arrival, while workers are left.",
        _ONE_WORKER,
    ),
    _homogeneous(
        "fifo_wide",
        Fifo,
        _arrival_order,
        "serving jobs of any number of workers in the order of their arrival, each for as much of its time as there "
        "are workers left.",
        _WIDE,
    ),
]


# --- rounds: section 5 ---------------------------------------------------------------------------

ROUNDS = 200
SHORT = 0.05
"""What an entry of the allocation may lack after so many rounds: ten rounds."""


def _falls_short(instance: Sharing) -> str:
    """How rounds by Algorithm 1 fall short of the policy's allocation."""
    optimum = _optimum(instance)
    assert optimum is not None
    shortfall = simulate(instance, optimum[1], ROUNDS).shortfall
    return f"after {ROUNDS} rounds an entry lacks {shortfall:.3g} of its fraction of time" if shortfall > SHORT else ""


_REALISED = [
    Claim(
        name=f"rounds_realise_target{suffix}",
        source="Gavel, section 5",
        statement="Rounds by priority give each job the fractions of time that the policy computed.",
        reading=f"{jobs}, the max-min fair allocation that the exact model finds, priorities X / f and Algorithm 1: no "
        f"entry lacks more than {SHORT} after {ROUNDS} rounds.",
        instances=_FAMILIES[family].instances,
        breaks=_falls_short,
        scope=_FAMILIES[family].scope,
        exhaustive=True,
    )
    for suffix, jobs, family in (
        ("", "jobs of one worker", "max_min_fairness"),
        ("_wide", "jobs of one or two workers", "max_min_fairness_wide"),
    )
]


CLAIMS: list[Claim] = [*_SHARING, *_PARETO, *_COLOCATION, *_HOMOGENEOUS, *_STARVATION, *_REALISED]
