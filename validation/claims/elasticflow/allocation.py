"""Claims of ElasticFlow (ASPLOS'23) about giving out idle GPUs (section 4.2)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from heuristics.elasticflow.allocation import Ties, greedy_marginal_return, greedy_marginal_return_repaired
from heuristics.elasticflow.filling import fill_job, fill_jobs
from instances.elasticflow.allocation import (
    ElasticFlowAllocation,
    overrun,
    overrun_as_printed,
    overrun_by_moment,
)
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan
from validation.claims.claim import Claim, Reading
from validation.claims.elasticflow.sharing import ALIKE, alike, have_rising_curves
from validation.claims.plans import OPTIMAL, better_than, plans_of
from validation.claims.ties import every_way, renumbered
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]

Method = Callable[..., SlotPlan | None]
"""A way to run Algorithm 2, of an instance and a way to break ties."""

# Readings of Algorithm 2, from the letter of its lines to (7), which they are to keep.
_BY_SLOT = greedy_marginal_return
_BY_MOMENT = partial(greedy_marginal_return, finish="moment")
_BY_RATE = partial(greedy_marginal_return, finish="rate", free="all_jobs")
_BY_RATE_AND_ORDER = partial(_BY_RATE, free="earlier_jobs")
_ALGORITHM = "Algorithm 2, so read"

_SLOT = (
    "as printed, lines 10 and 23 comparing the last slots in which a job works, and line 15 reading the G that lines 4 "
    "and 18 have lowered"
)
_MOMENT = "the same, lines 10 and 23 comparing the moments at which a job's iterations are done"
_RATE = (
    "lines 10 and 23 asking whether a job is faster with one more GPU, as (7) does, and line 15 reading what all other "
    "jobs leave of all GPUs"
)
_FRESH = "the same, and every priority and plan is computed anew before a job is served"

_KEPT = (
    "concave curves that rise with every GPU, jobs all of whose deadlines can be met, no new arrivals, no cost of "
    "changing GPUs. A job may have any number of GPUs, as in (4) to (7); powers of two come with placement, in section "
    "4.3."
)


def _grown(instance: ElasticFlowAllocation, serve: Method) -> list[tuple[ElasticFlowAllocation, SlotPlan]]:
    """Return Algorithm 2's plans, one for each way of breaking ties; none where it finds none.

    The jobs' numbers say which of equal deadlines comes first; which of equal marginal returns is served is decided
    each time anew.
    """
    return [
        (each, plan)
        for each in renumbered(instance, instance.deadlines)
        for plan in every_way(partial(_served, each, serve))
        if plan is not None
    ]


def _served(instance: ElasticFlowAllocation, serve: Method, ties: Ties) -> SlotPlan | None:
    return serve(instance, ties=ties)


def _breaks(instance: ElasticFlowAllocation, serve: Method, *rules: str) -> str | None:
    """Describe how Algorithm 2's plans break one of the rules, or any, however ties are broken."""
    broken = [
        [violation for violation in each.violations(plan) if not rules or violation.rule in rules]
        for each, plan in _grown(instance, serve)
    ]
    return f"its plan breaks a rule however ties are broken: {broken[0][0]}" if broken and all(broken) else None


def _misses(instance: ElasticFlowAllocation, serve: Method) -> str | None:
    return _breaks(instance, serve, "work", "capacity")


def _idles(instance: ElasticFlowAllocation, serve: Method) -> str | None:
    return _breaks(instance, serve, "no_useful_idle_gpu")


def _not_optimal(instance: ElasticFlowAllocation, serve: Method) -> str | None:
    """Describe how Algorithm 2's plans break (5) to (7) or take too much GPU time, however ties are broken."""
    takes = [int(each.objective(plan)) for each, plan in _grown(instance, serve) if not each.violations(plan)]
    if not takes:
        return _breaks(instance, serve)
    if (least := better_than(instance, min(takes))) is None:
        return None
    return f"it takes {min(takes)} GPU-slots or more however ties are broken, {least:g} would do"


def _loses_the_optimum(instance: ElasticFlowAllocation) -> str | None:
    """Describe how Algorithm 2, repaired, ends above the least GPU time although it starts from it."""
    shares = fill_jobs(instance, np.arange(instance.num_jobs))
    # Without (7), jobs are those of minimum satisfactory shares.
    fields = {name: getattr(instance, name) for name in ("num_gpus", "iterations", "deadlines", "throughputs")}
    if shares is None or shares.sum() != optimum(MinimumSatisfactoryShare(**fields)):
        return None
    return _not_optimal(instance, greedy_marginal_return_repaired)


def _hands_out_worse(instance: ElasticFlowAllocation) -> str | None:
    """Describe how another way of handing out the idle GPUs of slot 0 takes less, when Algorithm 1 fills the rest.

    All these ways are tried here: the reference would fill the other slots in any way.
    """
    shares = fill_jobs(instance, np.arange(instance.num_jobs))
    plans = _grown(instance, greedy_marginal_return_repaired)
    if shares is None or not plans:
        return None
    takes = min(int(each.objective(plan)) for each, plan in plans)
    counts = (range(now, instance.num_gpus + 1) for now in shares[:, 0].tolist())
    for now in itertools.product(*counts):
        plan = _filled(instance, now) if sum(now) <= instance.num_gpus else None
        if plan is not None and not instance.violations(plan) and instance.objective(plan) < takes:
            return f"it takes {takes} GPU-slots, {instance.objective(plan):g} with {list(now)} GPUs in slot 0"
    return None


def _filled(instance: ElasticFlowAllocation, now: tuple[int, ...]) -> SlotPlan | None:
    """Return the plan of these GPUs in slot 0, the other slots filled by Algorithm 1."""
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    gpus[:, 0] = now
    for job in np.argsort(instance.deadlines, kind="stable").tolist():
        end, curve = int(instance.deadlines[job]), instance.throughputs[job]
        free = instance.num_gpus - gpus.sum(axis=0)
        rest = fill_job(curve, float(instance.iterations[job] - curve[now[job]]), free[1:end])
        if rest is None:
            return None
        gpus[job, 1:end] = rest
    return SlotPlan(gpus=gpus)


def _pairs() -> Iterator[ElasticFlowAllocation]:
    """Yield two jobs that are alike, on a curve each of whose GPUs adds one less than the one before."""
    curve = (0, 8, 15, 21, 26, 30, 33, 35, 36)
    for deadline in (1, 2):
        for iterations in range(1, deadline * curve[-1] + 1):
            yield ElasticFlowAllocation(
                num_gpus=8,
                iterations=np.full(2, float(iterations)),
                deadlines=np.full(2, deadline),
                throughputs=np.tile(np.array(curve, float), (2, 1)),
            )


_PAIRS = (
    "two jobs that are alike, on 8 GPUs that add 8, 7, ..., 1 iterations per slot, with a deadline of 1 or 2 slots and "
    "up to as many iterations as one could do alone"
)


def _some(rng: np.random.Generator) -> Iterator[ElasticFlowAllocation]:
    while True:
        n, num_gpus = int(rng.integers(2, 4)), int(rng.integers(2, 5))
        gains = np.sort(rng.integers(1, 6, (n, num_gpus)), axis=1)[:, ::-1]
        curves = np.insert(np.cumsum(gains, axis=1), 0, 0, axis=1).astype(float)
        deadlines = rng.integers(1, 6, n)
        yield ElasticFlowAllocation(
            num_gpus=num_gpus,
            iterations=np.ceil(rng.uniform(0.1, 0.6, n) * deadlines * curves[:, -1]),
            deadlines=deadlines,
            throughputs=curves,
        )


_OVERRUN = (overrun_as_printed(), overrun(), overrun_by_moment())

_THEOREM_2 = "Algorithm 2 solves the resource allocation problem (4) to (7) optimally when scaling curves are concave."

_claim = partial(
    Claim,
    instances=lambda rng: alike(ElasticFlowAllocation),
    scope=ALIKE,
    exhaustive=True,
    assumes=have_rising_curves,
    ties="every way",
    assumptions=_KEPT,
    relaxed="",
)


def _reading(text: str, breaks: Callable[..., str | None], serve: Method, *beside: str) -> Reading:
    """Return a reading of Algorithm 2, whose plan is shown, and those of others beside it."""
    return Reading(text, partial(breaks, serve=serve), plans=plans_of((_ALGORITHM, serve), *beside))


CLAIMS: list[Claim] = [
    _claim(
        name="algorithm_2_keeps_deadlines",
        source="ElasticFlow, section 4.2, Algorithm 2",
        statement="Whatever Algorithm 2 gives out, all jobs meet their deadlines.",
        reading=f"{_SLOT}: its plan keeps (5) and (6), at least for some way of breaking ties.",
        instances=lambda rng: itertools.chain(_OVERRUN, itertools.islice(_some(rng), 200)),
        breaks=partial(_misses, serve=_BY_SLOT),
        scope="three sets of 3 or 4 jobs on 2 to 4 GPUs, with deadlines of up to 8 slots; random: 2 or 3 jobs on 2 to "
        "4 GPUs, with deadlines of 1 to 5 slots; all of concave curves",
        exhaustive=False,
        shrink=False,
        others=(
            _reading(f"{_MOMENT}.", _misses, _BY_MOMENT),
            _reading(f"{_RATE}.", _misses, _BY_RATE),
            _reading(
                "lines 10 and 23 asking whether a job is faster with one more GPU, and line 15 as printed, with the G "
                "of all GPUs.",
                _misses,
                _BY_RATE_AND_ORDER,
            ),
        ),
    ),
    _claim(
        name="algorithm_2_uses_idle_gpus",
        source="ElasticFlow, section 4.2, (7) and Algorithm 2",
        statement="Algorithm 2 leaves no GPU idle in the next slot that would speed up a job.",
        reading=f"{_SLOT}: its plan keeps (7), at least for some way of breaking ties.",
        breaks=partial(_idles, serve=_BY_SLOT),
        plans=plans_of((_ALGORITHM, _BY_SLOT)),
        others=(_reading(f"{_MOMENT}.", _idles, _BY_MOMENT), _reading(f"{_RATE}.", _idles, _BY_RATE)),
    ),
    _claim(
        name="algorithm_2_least_gpu_time",
        source="ElasticFlow, section 4.2, Theorem 2, and section 1",
        statement=_THEOREM_2,
        reading=f"{_SLOT}: its plan keeps (5) to (7) and no other that does takes fewer GPU-slots, at least for some "
        "way of breaking ties.",
        breaks=partial(_not_optimal, serve=_BY_SLOT),
        plans=plans_of((_ALGORITHM, _BY_SLOT), OPTIMAL),
        others=(
            _reading(f"{_MOMENT}.", _not_optimal, _BY_MOMENT, OPTIMAL),
            _reading(f"{_RATE}.", _not_optimal, _BY_RATE, OPTIMAL),
            Reading(
                f"{_FRESH}.",
                partial(_not_optimal, serve=greedy_marginal_return_repaired),
                plans=plans_of("greedy_marginal_return_repaired", OPTIMAL),
            ),
        ),
    ),
    _claim(
        name="algorithm_2_from_least_shares",
        source="ElasticFlow, section 4.2, Theorem 2, and section 1",
        statement=_THEOREM_2,
        reading="a weaker one: jobs are served while they are faster with one more GPU, with priorities and plans that "
        "are always up to date, and only where the shares of Algorithm 1, from which it starts, meet the deadlines at "
        "the least GPU time.",
        instances=lambda rng: _pairs(),
        breaks=_loses_the_optimum,
        scope=_PAIRS,
        plans=plans_of("greedy_marginal_return_repaired", OPTIMAL),
        others=(
            Reading(
                "a weaker one still: the same against other ways of handing out the idle GPUs of slot 0 only, with "
                "Algorithm 1 filling the other slots.",
                _hands_out_worse,
            ),
        ),
    ),
]
