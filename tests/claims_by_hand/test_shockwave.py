"""Shockwave: jobs of one GPU each on the one GPU that there is, by the numbers of rounds in which they run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

from instances.reference import Reference

from .stored import judges

Data = dict[str, Any]
Rounds = tuple[int, ...]


def plans(data: Data) -> Iterator[Rounds]:
    """All numbers of rounds that one GPU has room for."""
    assert data["num_gpus"] == 1
    assert set(data["scale_factors"]) == {1}
    every = product(range(data["num_rounds"] + 1), repeat=len(data["epochs"]))
    return (rounds for rounds in every if sum(rounds) <= data["num_rounds"])


def planned(data: Data, rounds: Rounds) -> list[float]:
    """Seconds that jobs run, no longer than their epochs take."""
    whole = zip(data["epochs"], data["epochs_done"], data["epoch_durations"], strict=True)
    return [
        min(data["round_duration"] * count, each * (epochs - done))
        for count, (epochs, done, each) in zip(rounds, whole, strict=True)
    ]


def after(data: Data, rounds: Rounds) -> list[float]:
    return [max(left - ran, 0) for left, ran in zip(data["times_left"], planned(data, rounds), strict=True)]


def kept(data: Data, rounds: Rounds) -> list[bool]:
    """Whether each job keeps its limit: after the window it has its share of the GPU."""
    end = data["round_duration"] * (data["rounds_past"] + data["num_rounds"])
    finish = [end + left * max(1, len(rounds)) for left in after(data, rounds)]
    return [time <= limit for time, limit in zip(finish, data["finish_limits"], strict=True)]


def weights(data: Data) -> list[float]:
    """Weights of the program without limits: a power of how late a job is projected to be."""
    start, jobs = data["round_duration"] * data["rounds_past"], len(data["epochs"])
    found = []
    for left, limit in zip(data["times_left"], data["finish_limits"], strict=True):
        ratio = (start + left * max(1, jobs)) / limit
        found.append(ratio ** (100 if left < data["round_duration"] else 5) if ratio > 1 else 1.0)
    return found


def logarithms(data: Data, rounds: Rounds, by: list[float] | None = None) -> float:
    """Mean of the interpolated logarithms of what is done."""
    points = [(at, math.log(at or data["least_progress"])) for at in data["points"]]
    whole = zip(data["epochs"], data["epochs_done"], data["epoch_durations"], planned(data, rounds), strict=True)
    total = 0.0
    for weight, (epochs, done, each, ran) in zip(by or data["weights"], whole, strict=True):
        at = (done + ran / each) / epochs
        (p, low), (q, high) = next(two for two in pairwise(points) if two[0][0] <= at <= two[1][0])
        total += weight * (low + (high - low) * (at - p) / (q - p))
    return total / (len(rounds) * data["num_rounds"])


def value(data: Data, rounds: Rounds, by: list[float] | None = None) -> float:
    return logarithms(data, rounds, by) - data["remaining_penalty"] * max(after(data, rounds))


@judges("shockwave/window/shockwave_weights_where_limits_fail-1")
def test_both_are_projected_to_be_in_time_and_one_round_is_for_one(data: Data, reference: Reference) -> None:
    assert [kept(data, rounds) for rounds in plans(data)] == [[False, False], [False, True], [True, False]]
    assert weights(data) == [1, 1]
    assert reference.optimum() == -math.inf


@judges("shockwave/window/shockwave_weights_where_limits_fail-2")
def test_the_window_ends_after_the_limits(data: Data, reference: Reference) -> None:
    assert not any(any(kept(data, rounds)) for rounds in plans(data))
    assert weights(data) == [1, 1]
    assert reference.optimum() == -math.inf


@judges("shockwave/window/shockwave_limits_dropped-1")
def test_the_round_goes_to_the_one_that_is_late_either_way(data: Data, reference: Reference) -> None:
    assert not any(kept(data, rounds)[1] for rounds in plans(data))
    assert kept(data, (1, 0)) == [True, False]
    assert weights(data) == [1, 4**5]
    by_value = sorted(plans(data), key=lambda rounds: value(data, rounds, weights(data)))
    assert by_value[-1] == (0, 1)
    assert value(data, by_value[-1], weights(data)) > value(data, by_value[-2], weights(data)) + 1
    assert reference.optimum() == -math.inf


@judges("shockwave/window/shockwave_gap-2")
def test_within_a_thousandth_of_the_value_logarithms_lose_a_twentieth(data: Data, reference: Reference) -> None:
    best = max(value(data, rounds) for rounds in plans(data))
    assert math.isclose(float(reference.optimum()), best)
    one, other = (1, 0, 0), (0, 0, 1)
    assert best - value(data, one) <= abs(best) / 1000
    assert max(after(data, other)) <= max(after(data, one))
    assert logarithms(data, one) < logarithms(data, other) * 1.04
