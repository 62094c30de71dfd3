"""Claims of Gavel (OSDI'20) about its rounds (section 5)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyomo.environ as pyo

import formulations
from heuristics.gavel.round_assignment import greedy_priority, priorities, priorities_per_type, simulate
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan, highest_apart
from instances.gavel.sharing import Sharing
from instances.schema import BoolArray, FloatArray, IntArray
from validation.claims.claim import Claim, OnAverage, Reading, Ties
from validation.claims.gavel.clusters import Family, of_family
from validation.claims.gavel.optima import attained, only_optimum
from validation.claims.plans import OPTIMAL, better_than, plans_of
from validation.replay import decider, replay
from validation.replay.engine import Jobs
from validation.replay.settings.gavel import Policy

__all__ = ["CLAIMS"]

Rule = Callable[[FloatArray, FloatArray], FloatArray]

ROUNDS = 100
NOTHING = 1e-6
"""Allocation that a linear program's tolerance can feign."""
SHORT = 0.05
"""Part of its time that an entry may lack after so many rounds: five rounds."""
_NARROW = Family(MaxMinFairness, 3, (1, 2))
_WIDE = Family(MaxMinFairness, 2, (1, 2), jobs={"scale_factors": (1, 2)}, workers=(1, 2, 3))
LONG = 60
"""Rounds in which no job may starve."""
_GANGS = Family(MaxMinFairness, 3, (1,), jobs={"scale_factors": (1, 2)}, workers=(2, 3))
OPTIMA, STARVING = (
    f"the max-min fair allocation that the exact model finds, {rounds} rounds of Algorithm 1 without arrivals, "
    "completions or the time to load and save a job"
    for rounds in (ROUNDS, LONG)
)


_ROUNDS_KEPT = "throughputs are known and do not change, no space is shared, and an allocation is kept for all rounds."
_SMALL = (
    "the clusters are smaller than any of section 7, on which rounds are measured: a job of two workers can be half of "
    "a type."
)


def _falls_short(instance: Sharing, rule: Rule) -> str | None:
    """Describe how rounds by Algorithm 1 fall short of the policy's allocation."""
    shortfall = simulate(instance, attained(instance)[1], ROUNDS, rule=rule).shortfall
    if shortfall <= SHORT:
        return None
    return f"after {ROUNDS} rounds an entry lacks {shortfall:.3g} of its fraction of time"


def _falls_short_whatever_is_taken(instance: MaxMinFairness, rule: Rule) -> str | None:
    """Describe how rounds fall short of the only optimal allocation, for every way to break the ties of Algorithm 1."""
    if _falls_short(instance, rule) is None or (target := only_optimum(instance)) is None:
        return None
    reached = {(0,) * target.size}
    for _ in range(ROUNDS):
        further = set()
        for counts in reached:
            received = np.reshape(counts, target.shape)
            for chosen in _every_round(instance, rule(target, received)):
                further.add(tuple((received + chosen).ravel().tolist()))
        reached = further
    least = min(float((target - np.reshape(counts, target.shape) / ROUNDS).max()) for counts in reached)
    if least <= SHORT:
        return None
    return f"after {ROUNDS} rounds an entry lacks at least {least:.3g} of its fraction of time"


def _every_round(instance: Sharing, given: FloatArray) -> list[IntArray]:
    """List what Algorithm 1 can take by these priorities, alike if within rounding, of jobs that share no workers."""
    found: dict[bytes, IntArray] = {}

    def go(left: IntArray, chosen: IntArray) -> None:
        waits: BoolArray = np.asarray(~chosen.any(axis=1))
        fits = instance.scale_factors[:, None] <= left[instance.pools]
        free: BoolArray = waits[:, None] & fits
        highest = np.where(free, given, -np.inf).max()
        if not free.any():
            found[chosen.tobytes()] = chosen
            return
        for row, kind in np.argwhere(free & (given >= highest * (1 - NOTHING))):
            more, rest = chosen.copy(), left.copy()
            more[row, kind] = 1
            rest[instance.pools[kind]] -= instance.scale_factors[row]
            go(rest, more)

    go(instance.num_workers, np.zeros(given.shape, np.int64))
    return list(found.values())


def _falls_short_of_what_can_be(instance: Sharing) -> str | None:
    """Describe as :func:`_falls_short`, where rounds in some proportions give every entry its time."""
    target = attained(instance)[1].time_fractions
    this_round = RoundAssignment(
        scale_factors=instance.scale_factors,
        num_workers=instance.num_workers,
        pools=instance.pools,
        priorities=np.ones_like(target),
    )
    rounds = [plan.chosen for plan in _assignments(this_round)]
    model = pyo.ConcreteModel()
    model.part = pyo.Var(range(len(rounds)), bounds=(0, 1))
    model.whole = pyo.Constraint(expr=pyo.quicksum(model.part.values()) == 1)
    model.lacking = pyo.Var(bounds=(0, 1))
    model.time = pyo.Constraint(
        [(int(row), int(kind)) for row, kind in np.argwhere(target > 0)],
        rule=lambda model, row, kind: (
            pyo.quicksum(model.part[i] for i, chosen in enumerate(rounds) if chosen[row, kind]) + model.lacking
            >= float(target[row, kind])
        ),
    )
    model.least = pyo.Objective(expr=model.lacking)
    lacking = formulations.solve(model).objective
    assert lacking is not None
    return None if lacking > NOTHING else _falls_short(instance, priorities)


def _starves(instance: Sharing, rule: Rule) -> str | None:
    """Describe how a job with time in the policy's allocation gets none in the second half."""
    _, target = attained(instance)
    half, whole = (simulate(instance, target, rounds, rule=rule) for rounds in (LONG // 2, LONG))
    late = whole.time_fractions * LONG - half.time_fractions * (LONG // 2)
    # Rounds that a job could expect in that time; with less than five it may just be waiting.
    expected = target.time_fractions.sum(axis=1) * (LONG // 2)
    starved = np.flatnonzero((expected >= 5) & (late.sum(axis=1) <= 0))
    if not starved.size:
        return None
    return f"job {starved[0]} is to run {expected[starved[0]]:.3g} of the last {LONG // 2} rounds, and runs in none"


_in_rounds = partial(of_family, assumptions=_ROUNDS_KEPT, relaxed=_SMALL, ties="by number")
_FORMULA = "f, the time that a row has had on a type over all rows' there (the formula of section 5)."


def _short(suffix: str, jobs: str, family: Family, printed: Family) -> Claim:
    read = f"{jobs}: no entry of {OPTIMA}, lacks more than {SHORT}; priorities are X over "
    only = "It counts where no other allocation is optimal."
    # Whatever is feasible for jobs of one worker, rounds can give.
    beside = (
        Reading(
            f"{read}the rounds received, and it counts where rounds in some proportions give every entry its time.",
            _falls_short_of_what_can_be,
            ties="by number",
        ),
    )
    return _in_rounds(
        family,
        name=f"rounds_realise_target{suffix}",
        source="Gavel, section 5 and Figure 5",
        statement="Rounds by priority give each job on each type about the fraction of time that the policy computed.",
        reading=f"{read}the rounds received (Figure 5).{f' {only}' if suffix else ''}",
        breaks=partial(_falls_short_whatever_is_taken if suffix else _falls_short, rule=priorities),
        ties="every way" if suffix else "by number",
        plans=plans_of(OPTIMAL),
        others=(
            Reading(
                f"{read}{_FORMULA} {only}",
                partial(_falls_short_whatever_is_taken, rule=priorities_per_type),
                printed.instances,
                scope=printed.scope,
                assumes=printed.has,
                ties="every way",
            ),
            *(beside if suffix else ()),
        ),
    )


def _no_starvation(suffix: str, jobs: str, family: Family) -> Claim:
    read = (
        f"{jobs}: each job that is to run five rounds or more of the second half of {STARVING}, runs there; "
        "priorities are X over "
    )
    return _in_rounds(
        family,
        name=f"no_starvation_in_rounds{suffix}",
        source="Gavel, section 5",
        statement="Priorities that grow while a job waits keep a job of a non-zero allocation from starving.",
        reading=read + "the rounds received (Figure 5).",
        breaks=partial(_starves, rule=priorities),
        others=(Reading(read + _FORMULA, partial(_starves, rule=priorities_per_type)),),
    )


# --- rounds and the ideal ---------------------------------------------------------------------------

ROUND_SECONDS = 360.0
ALIKE = 0.1
"""Part by which average completion times may differ and still be called almost identical."""


def _batches(*, wide: bool) -> Callable[[np.random.Generator], Iterator[Makespan]]:
    """Return the generator of six jobs that are there at once, on two types of two workers."""

    def instances(rng: np.random.Generator) -> Iterator[Makespan]:
        while True:
            throughputs = rng.integers(1, 9, (6, 2)).astype(float)
            minutes = 10 ** rng.uniform(1.5, 2.5, 6)
            yield Makespan(
                throughputs=throughputs,
                num_workers=np.full(2, 2),
                scale_factors=rng.choice([1, 2], 6, p=[0.7, 0.3]) if wide else np.ones(6, np.int64),
                steps=np.ceil(60 * minutes * throughputs.max(axis=1)),
            )

    return instances


def _is_batch(instance: Makespan, *, widest: int) -> bool:
    """Return whether jobs of up to so many workers have work, run everywhere, and share no workers."""
    return (
        type(instance) is Makespan
        and 1 <= instance.num_jobs <= 6
        and instance.num_types <= 2
        and not len(instance.pairs)
        and bool((instance.num_workers == 2).all() and (instance.scale_factors <= widest).all())
        and bool((instance.throughputs > 0).all() and (instance.steps > 0).all())
    )


def _is_narrow_batch(instance: Makespan) -> bool:
    """Return whether up to 6 jobs of one worker have work, run everywhere, and share no workers."""
    return _is_batch(instance, widest=1)


def _is_wide_batch(instance: Makespan) -> bool:
    """Return whether up to 6 jobs of one or two workers have work, run everywhere, and share no workers."""
    return _is_batch(instance, widest=2)


def _average_end(instance: Makespan, problem: str, round_length: float | None) -> float:
    """Return the average completion time of jobs that are all there at once under a fairness policy, s."""
    n = instance.num_jobs
    policy = Policy(
        jobs=Jobs(
            names=[str(job) for job in range(n)],
            arrivals=np.zeros(n),
            work=instance.steps,
            fastest=instance.fastest_throughputs,
        ),
        problem=problem,
        throughputs=instance.throughputs,
        num_workers=instance.num_workers,
        pools=instance.pools,
        scale_factors=instance.scale_factors,
        round_length=round_length,
    )
    return replay(policy, decider(problem, "exact")).metrics()["average_jct"]


def _times_as_fast(instance: Makespan, *, slower: str, problem: str = "gavel.max_min_fairness") -> float:
    """Return how many times faster one way to realise allocations is than it may be, a tenth slower than the other."""
    rounds, ideal = (_average_end(instance, problem, length) for length in (ROUND_SECONDS, None))
    return (1 + ALIKE) * (ideal / rounds if slower == "rounds" else rounds / ideal)


def _no_slower(slower: str, *, filled: bool = False) -> OnAverage:
    problem = "gavel.hierarchical_fairness" if filled else "gavel.max_min_fairness"
    return OnAverage(partial(_times_as_fast, slower=slower, problem=problem), "as fast as it may be")


_BATCH = (
    "six jobs on two types of two workers, all there at once, each of 10^x minutes on its fastest type, x uniform from "
    "1.5 to 2.5"
)
_ROUNDS_LAST = (
    f"on the average of batches, rounds of {ROUND_SECONDS:g} s take at most {ALIKE:.0%} longer than the ideal"
)
_IDEAL_LASTS = (
    f"on the average of batches, the ideal takes at most {ALIKE:.0%} longer than rounds of {ROUND_SECONDS:g} s"
)
_BY_MODEL = "both realise the allocation that the exact model finds."
_BY_FILLING = "both realise water filling (4.3), which leaves no choice among optima."


def _of_several(text: str, breaks: OnAverage, ties: Ties) -> Reading:
    return Reading(
        f"jobs of one or two workers: {text}",
        breaks,
        instances=_batches(wide=True),
        assumes=_is_wide_batch,
        scope=f"random jobs of one or two workers: {_BATCH}",
        ties=ties,
    )


# --- one round --------------------------------------------------------------------------------------


def _rounds(num_types: int, *, ties: bool) -> Callable[[np.random.Generator], Iterator[RoundAssignment]]:
    """Return the generator of rounds of up to 4 jobs of one worker, without pairs, priorities in whole numbers."""

    def instances(rng: np.random.Generator) -> Iterator[RoundAssignment]:
        while True:
            n, k = int(rng.integers(1, 5)), int(rng.integers(1, num_types + 1))
            drawn = rng.integers(1, 10, (n, k)) if ties else rng.permutation(np.arange(1, n * k + 1)).reshape(n, k)
            yield RoundAssignment(
                scale_factors=np.ones(n, np.int64), num_workers=rng.integers(1, 4, k), priorities=drawn.astype(float)
            )

    return instances


def _single_workers(instance: RoundAssignment) -> bool:
    """Return whether up to 4 jobs of one worker may run on any type, with priorities above 0, and share no workers."""
    return (
        1 <= instance.num_jobs <= 4
        and instance.num_types <= 3
        and bool((instance.scale_factors == 1).all())
        and not len(instance.pairs)
        and bool(instance.eligible.all() and (instance.priorities > 0).all() and (instance.num_workers > 0).all())
    )


def _assignments(instance: RoundAssignment) -> Iterator[RoundAssignmentPlan]:
    """Yield every assignment of jobs to a type or to none that breaks no rule.

    They are what rounds can be, not only the best one, which the reference finds.
    """
    n, k = instance.num_jobs, instance.num_types
    for kinds in itertools.product(range(k + 1), repeat=n):
        chosen = np.eye(k + 1, dtype=bool)[list(kinds)][:, :k]
        plan = RoundAssignmentPlan(chosen=chosen)
        if not instance.violations(plan):
            yield plan


def _worth_less(instance: RoundAssignment) -> str | None:
    """Describe how the highest priorities are worth less than other jobs."""
    greedy = instance.objective(greedy_priority(instance))
    best = better_than(instance, greedy)
    return None if best is None else f"the highest priorities add up to {greedy:.6g}, {best:.6g} is possible"


def _not_the_highest(instance: RoundAssignment) -> str | None:
    """Describe how another choice has the higher of the first priorities in which the two differ."""

    def chosen(plan: RoundAssignmentPlan) -> list[float]:
        return sorted(instance.priorities[plan.chosen].tolist(), reverse=True)

    taken, best = chosen(greedy_priority(instance)), max(map(chosen, _assignments(instance)))
    return None if taken == best else f"it takes the priorities {taken}, {best} are possible"


def _two_jobs_two_types(rng: np.random.Generator) -> Iterator[RoundAssignment]:
    """Yield the smallest case by hand, then random ones."""
    yield highest_apart()
    yield from _rounds(3, ties=False)(rng)


def _printed_loop(instance: RoundAssignment) -> str | None:
    """Describe how the printed loop comes to line 5 with workers left and no combination that could be taken."""
    plan = greedy_priority(instance)
    left = int(instance.num_workers.sum() - instance.row_scale_factors @ plan.chosen.sum(axis=1))
    return f"{left} workers are left when no combination is" if left else None


def _ends(instance: RoundAssignment) -> str | None:
    """Describe how the loop that also ends without combinations runs a job twice or too many workers."""
    return ", ".join(map(str, instance.violations(greedy_priority(instance)))) or None


_one_round = partial(
    Claim,
    source="Gavel, section 5",
    statement="A round is solved exactly by the jobs of highest priority if jobs request single accelerators and space "
    "is not shared.",
    assumes=_single_workers,
    ties="by number",
    assumptions="jobs of one worker with priorities, no space sharing, as the section asks for.",
    relaxed="priorities are any whole numbers, not those that a mechanism comes to.",
)

CLAIMS: list[Claim] = [
    _short("", "jobs of one worker", _NARROW, replace(_NARROW, workers=(1, 2, 3))),
    _short("_wide", "jobs of one or two workers", _WIDE, _WIDE),
    _no_starvation("", "jobs of one worker", _NARROW),
    _no_starvation("_wide", "jobs of one or two workers", _GANGS),
    Claim(
        name="rounds_like_the_ideal",
        source="Gavel, section 7.5 and Figure 15b",
        statement="Rounds of 6 minutes behave almost identically to an ideal that gives jobs exactly the computed "
        "allocation; with jobs of several workers the behaviour is similar.",
        reading=f"jobs of one worker: {_ROUNDS_LAST}; {_BY_MODEL}",
        instances=_batches(wide=False),
        breaks=_no_slower("rounds"),
        assumes=_is_narrow_batch,
        ties="by number",
        scope=f"random jobs of one worker: {_BATCH}",
        assumptions="section 7.1's lengths of jobs but for the longest, LAS computed anew at every end, no space "
        "shared, nothing lost at restarts.",
        relaxed="the paper averages over thousands of jobs that come and go on 108 workers; here it is over batches, "
        "and which of many optimal allocations is taken is the solver's choice.",
        others=(
            Reading(f"jobs of one worker: {_IDEAL_LASTS}; {_BY_MODEL}", _no_slower("ideal")),
            _of_several(f"{_ROUNDS_LAST}; {_BY_MODEL}", _no_slower("rounds"), "by number"),
            _of_several(f"{_IDEAL_LASTS}; {_BY_MODEL}", _no_slower("ideal"), "by number"),
            _of_several(f"{_ROUNDS_LAST}; {_BY_FILLING}", _no_slower("rounds", filled=True), "do not matter"),
            _of_several(f"{_IDEAL_LASTS}; {_BY_FILLING}", _no_slower("ideal", filled=True), "do not matter"),
        ),
    ),
    _one_round(
        name="highest_priorities_one_type",
        reading="on one type: no choice of jobs has a higher total priority than those of Algorithm 1.",
        instances=_rounds(1, ties=True),
        breaks=_worth_less,
        scope="random rounds of up to 4 jobs on one type of up to 3 workers",
    ),
    _one_round(
        name="highest_priorities_across_types",
        reading="on several types, where a job is a candidate for each: no choice takes a higher priority first, and "
        "after equal ones a higher one next, than Algorithm 1; all priorities differ.",
        instances=_two_jobs_two_types,
        breaks=_not_the_highest,
        scope="two jobs on two types of one worker, then random rounds of up to 4 jobs on up to 3 types of up to 3 "
        "workers",
        shrink=False,
        others=(
            Reading(
                "on several types: no choice has a higher total priority, which is what a multiple-choice knapsack, to "
                "which the section likens the problem, maximises, than that of Algorithm 1.",
                _worth_less,
                plans=plans_of("greedy_priority", OPTIMAL),
            ),
        ),
    ),
    _one_round(
        name="algorithm_1_ends",
        source="Gavel, section 5, Algorithm 1",
        statement="Algorithm 1 takes combinations while workers are left.",
        reading="it ends, too, when no combination is left that fits or is eligible, as the section's text has it.",
        instances=_rounds(3, ties=True),
        breaks=_ends,
        scope="random rounds of up to 4 jobs on up to 3 types of up to 3 workers",
        others=(
            Reading(
                "to the letter: line 4 alone ends the loop, and line 5 always finds a combination.",
                _printed_loop,
                plans=plans_of("greedy_priority"),
            ),
        ),
    ),
]
