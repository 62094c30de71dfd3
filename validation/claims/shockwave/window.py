"""Claims of Shockwave's released code about its program (``scheduler/shockwave.py``): what it relies on, unsaid."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from instances.schema import BoolArray, IntArray
from instances.shockwave.window import Window, without_limits
from validation.claims.claim import Claim, Reading
from validation.claims.words import listed

__all__ = ["CLAIMS"]

GAP = Fraction(1, 1000)
"""Relative gap at which the released configurations let the solver stop."""
CLEAR = 1e-9
"""What one value is better by, as a part of it, where it is said to be better."""


def _steps(instance: Window) -> bool:
    """Return whether all epochs and points are whole eighths, and every round does some of them."""
    return bool((instance.epochs == 8).all()) and bool((instance.points * 8 % 1 == 0).all())


def _one_gpu(instance: Window) -> bool:
    """Return whether jobs of ten epochs of one second hold one GPU each, of one that there is, by the code's points."""
    usual = bool((instance.scale_factors == 1).all()) and bool((instance.epochs == 10).all())
    return usual and bool((instance.epoch_durations == 1).all()) and instance.num_gpus == 1


def _points() -> Iterator[Window]:
    """Yield a job of eight epochs, any number of them done, and up to three points between the first and the last."""
    inner = [some for count in range(4) for some in itertools.combinations(range(1, 8), count)]
    for some, done in itertools.product(inner, range(9)):
        yield Window(
            num_gpus=1,
            num_rounds=8,
            round_duration=1.0,
            scale_factors=np.array([1]),
            epochs=np.array([8]),
            epochs_done=np.array([done]),
            epoch_durations=np.array([1.0]),
            times_left=np.array([float(8 - done)]),
            points=np.array([0, *some, 8]) / 8,
        )


def _gains_between(instance: Window) -> str | None:
    """Describe how weights of points that are no neighbours have a greater sum of logarithms, in exact fractions."""
    points, logs = (list(map(Fraction, array.tolist())) for array in (instance.points, instance.logs))
    lines = list(itertools.combinations(range(len(points)), 2))
    for eighths in range(9):
        at = Fraction(eighths, 8)
        able = [(p, q) for p, q in lines if points[p] <= at <= points[q]]
        found = {(p, q): logs[p] + (logs[q] - logs[p]) * (at - points[p]) / (points[q] - points[p]) for p, q in able}
        neighbours = max(value for (p, q), value in found.items() if q == p + 1)
        pair = max(found, key=lambda one: found[one])
        if found[pair] > neighbours:
            where = listed(float(points[one]) for one in pair)
            far, near = float(found[pair]), float(neighbours)
            return f"at {float(at):g} weights of the points {where} have {far:g}, neighbours {near:g}"
    return None


def _rounds(instance: Window) -> Iterator[IntArray]:
    """Yield the numbers of rounds of all plans on one GPU, where each number can be had that adds up to no more."""
    for rounds in itertools.product(range(instance.num_rounds + 1), repeat=instance.num_jobs):
        if sum(rounds) <= instance.num_rounds:
            yield np.array(rounds)


def _kept(instance: Window, rounds: IntArray) -> BoolArray:
    """(n,) bool: whether each job keeps its limit."""
    kept: BoolArray = rounds >= instance.least_rounds
    return kept


def _late() -> Iterator[Window]:
    """Yield two jobs whose limits no plan keeps, on one GPU for one or two rounds of two seconds."""
    for num_rounds, left, limits in itertools.product(
        (1, 2), itertools.product((1, 2, 4, 6), repeat=2), itertools.product(range(2, 17, 2), repeat=2)
    ):
        instance = _jobs(num_rounds, left, limits=limits)
        if not any(_kept(instance, rounds).all() for rounds in _rounds(instance)):
            yield instance


def _jobs(
    num_rounds: int, left: tuple[int, ...], *, limits: tuple[int, ...] | None = None, penalty: float = 1e-3
) -> Window:
    """Return jobs of ten epochs, with so many seconds left, for rounds of two seconds."""
    times = np.array(left)
    return Window(
        num_gpus=1,
        num_rounds=num_rounds,
        round_duration=2.0,
        scale_factors=np.ones(len(left), int),
        epochs=np.full(len(left), 10),
        epochs_done=10 - times,
        epoch_durations=np.ones(len(left)),
        times_left=times.astype(float),
        finish_limits=np.full(len(left), np.inf) if limits is None else np.array(limits, float),
        remaining_penalty=penalty,
    )


def _weighs_nobody(instance: Window) -> str | None:
    """Describe how no job weighs more in the program without limits."""
    relaxed = without_limits(instance)
    if (relaxed.weights > 1).any():
        return None
    return (
        f"no plan keeps the limits, and all weights are {listed(f'{weight:g}' for weight in relaxed.weights.tolist())}"
    )


def _weighs_not_the_late(instance: Window) -> str | None:
    """Describe how a job that no plan keeps within its limit weighs no more than others."""
    relaxed = without_limits(instance)
    for job in np.flatnonzero(instance.least_rounds > instance.num_rounds).tolist():
        if relaxed.weights[job] <= 1:
            return f"job {job} is late whatever runs, and its weight is {relaxed.weights[job]:g}"
    return None


def _breaks_what_can_be_kept(instance: Window) -> str | None:
    """Describe how every best plan without limits breaks one that a plan keeps, besides those that no plan keeps."""
    late = instance.least_rounds > instance.num_rounds
    plans = list(_rounds(instance))
    if not late.any() or not any((_kept(instance, rounds) | late).all() for rounds in plans):
        return None
    relaxed = without_limits(instance)
    best = max(map(relaxed.value_of, plans))
    ends = [rounds for rounds in plans if relaxed.value_of(rounds) >= best - CLEAR * abs(best)]
    if any((_kept(instance, rounds) | late).all() for rounds in ends):
        return None
    broken = np.flatnonzero(~_kept(instance, ends[0]) & ~late)[0]
    return (
        f"job {np.flatnonzero(late)[0]} is late whatever runs, and of the best plans without limits none keeps that of "
        f"job {broken}, which others keep"
    )


def _two_or_three(penalty: float) -> Iterator[Window]:
    """Yield up to three jobs without limits on one GPU for up to three rounds of two seconds."""
    for count, num_rounds in itertools.product((2, 3), (1, 2, 3)):
        for left in itertools.combinations_with_replacement((1, 2, 3, 5, 8, 10), count):
            yield _jobs(num_rounds, left, penalty=penalty)


def _logarithms(instance: Window, rounds: IntArray) -> float:
    """Return the first term of the value."""
    return float(instance.utilities[np.arange(len(rounds)), rounds].sum())


def _longest(instance: Window, rounds: IntArray) -> float:
    return float(instance.times_after[np.arange(len(rounds)), rounds].max())


def _loses_logarithms(instance: Window) -> str | None:
    """Describe a plan within the gap whose logarithms are more than a thousandth below those of one no longer."""
    plans = list(_rounds(instance))
    best = max(map(instance.value_of, plans))
    near = [rounds for rounds in plans if best - instance.value_of(rounds) <= float(GAP) * abs(best)]
    for rounds, other in itertools.product(near, plans):
        mine, others = _logarithms(instance, rounds), _logarithms(instance, other)
        as_long = _longest(instance, other) <= _longest(instance, rounds)
        if as_long and mine < others - (float(GAP) + CLEAR) * abs(others):
            value = instance.value_of(rounds)
            return (
                f"jobs that run in {listed(rounds.tolist())} rounds are worth {value:g} of {best:g} at best, with "
                f"logarithms of {mine:g}; in {listed(other.tolist())} rounds, {others:g}"
            )
    return None


def _loses_value(instance: Window) -> str | None:
    """Describe a plan within the gap that is worth more than a thousandth less than another."""
    values = list(map(instance.value_of, _rounds(instance)))
    best = max(values)
    near = [value for value in values if best - value <= float(GAP) * abs(best)]
    worst = min(near)
    return f"{worst:g} is within the gap of {best:g}" if worst < best - (float(GAP) + CLEAR) * abs(best) else None


EXACT = "rounds of one length, and jobs that run on all their GPUs or not at all."
_claim = partial(Claim, exhaustive=True, assumptions=EXACT, relaxed="")

CLAIMS: list[Claim] = [
    _claim(
        name="shockwave_logarithm_by_neighbours",
        source="Shockwave, the released program, nash_social_welfare_first_order_apx",
        statement="The interpolated logarithm needs no binary variables: no other points than the two neighbours of a "
        "job's progress have weights of a greater sum of logarithms.",
        reading="of any two points around the progress, in exact fractions of the logarithms as rounded.",
        by="the library: the released code has binary variables for it",
        instances=lambda rng: _points(),
        assumes=_steps,
        breaks=_gains_between,
        scope="one job of eight epochs, any number of them done, and up to 3 points between the first and the last",
    ),
    _claim(
        name="shockwave_weights_where_limits_fail",
        source="Shockwave, the released program, relax_finish_time_constraints",
        statement="Where no plan keeps all limits on finish times, jobs that are late get greater weights instead.",
        by="the library: the released code drops limits and weighs jobs by a projection",
        reading="some job has a weight above 1.",
        instances=lambda rng: _late(),
        assumes=_one_gpu,
        breaks=_weighs_nobody,
        scope="two jobs on one GPU, for 1 or 2 rounds, whose limits no plan keeps",
        others=(Reading("each job has one that is late whatever runs.", _weighs_not_the_late),),
    ),
    _claim(
        name="shockwave_limits_dropped",
        source="Shockwave, the released program, dynamic_eisenberg_gale_scheduling",
        statement="Limits are dropped only where they cannot be met.",
        by="the library: the released code drops all of them where its solver finds no plan",
        reading="of each limit: where jobs are late whatever runs, and a plan keeps the limits of all others, so does "
        "a best plan of the program without limits.",
        instances=lambda rng: _late(),
        assumes=_one_gpu,
        breaks=_breaks_what_can_be_kept,
        scope="two jobs on one GPU, for 1 or 2 rounds, whose limits no plan keeps",
    ),
    _claim(
        name="shockwave_gap",
        source="Shockwave, the released program, its configurations",
        statement="A solver that stops at a relative gap of 0.001 loses at most a thousandth.",
        by="the library: the released configurations stop there",
        reading="of the value.",
        instances=lambda rng: _two_or_three(10.0),
        assumes=_one_gpu,
        breaks=_loses_value,
        scope="2 or 3 jobs on one GPU, for up to 3 rounds, with a penalty of 10 for each second",
        others=(
            Reading(
                "of the logarithms: no plan whose longest time left is no longer has them better by more.",
                _loses_logarithms,
            ),
            Reading(
                "of the logarithms, likewise, with a penalty of 0.001.",
                _loses_logarithms,
                instances=lambda rng: _two_or_three(1e-3),
                assumes=_one_gpu,
                scope="2 or 3 jobs on one GPU, for up to 3 rounds, with a penalty of 0.001 for each second",
            ),
        ),
    ),
]
