"""What a gap is, at its edges, and how gaps, times and values are written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.base import OPTIMALITY_TOLERANCE
from validation.formatting import duration, gap_range, number, percent
from validation.kernel.gaps import beats, gap_interval, gap_to

finite = st.floats(-1e9, 1e9)


@pytest.mark.parametrize(
    ("value", "reference", "gap"),
    [
        (10.0, 8.0, 0.25),
        (8.0, 10.0, 0.2),
        (-10.0, -8.0, 0.25),
        (3.0, -1.0, 4.0),
        (0.0, 5.0, 1.0),
        # Zero optimum: nothing but zero is close to it.
        (0.0, 0.0, 0.0),
        (-0.0, 0.0, 0.0),
        (1e-12, 0.0, math.inf),
        (1e-3, 0.0, math.inf),
        (-5.0, 0.0, math.inf),
        # Nothing is known about the optimum.
        (10.0, math.inf, math.inf),
        (10.0, -math.inf, math.inf),
    ],
)
def test_gap_to(value: float, reference: float, gap: float) -> None:
    assert gap_to(value, reference) == gap


def test_values_within_the_tolerance_have_no_gap() -> None:
    assert gap_to(1e6 * (1 + 0.9 * OPTIMALITY_TOLERANCE), 1e6) == 0
    assert gap_to(1e6 * (1 + 2.1 * OPTIMALITY_TOLERANCE), 1e6) == pytest.approx(2.1 * OPTIMALITY_TOLERANCE)


@pytest.mark.parametrize(
    ("value", "best", "bound", "interval"),
    [
        # Proven: best and bound are one.
        (12.0, 10.0, 10.0, (0.2, 0.2)),
        (10.0, 10.0, 10.0, (0.0, 0.0)),
        # A minimum between 8 and 10, and a maximum between 10 and 16.
        (12.0, 10.0, 8.0, (0.2, 0.5)),
        (8.0, 10.0, 16.0, (0.2, 0.5)),
        # The best plan known: it may be optimal.
        (10.0, 10.0, 8.0, (0.0, 0.25)),
        # No bound at all.
        (12.0, 10.0, -math.inf, (0.2, math.inf)),
        (12.0, 12.0, -math.inf, (0.0, math.inf)),
        # The optimum may be 0.
        (2.0, 1.0, 0.0, (1.0, math.inf)),
        (0.0, 0.0, 0.0, (0.0, 0.0)),
        # It may lie on either side of 0, where a gap is as great as one likes; of -100 it would be 1.02.
        (2.0, 1.0, -1.0, (1.0, math.inf)),
        (2.0, 0.5, -100.0, (1.02, math.inf)),
        (1.0, 1.0, -1.0, (0.0, math.inf)),
        (-2.0, -1.0, 4.0, (1.0, math.inf)),
        # Far off it would be 1, however far the best plan is.
        (12.0, 4.0, -math.inf, (1.0, math.inf)),
        # The best known is 0, and so is the optimum, or it is less.
        (3.0, 0.0, -1.0, (4.0, math.inf)),
        (0.0, 0.0, -1.0, (0.0, 1.0)),
        # The value and the optimum are of two signs: the gap is greatest to the best plan.
        (3.0, -1.0, -3.0, (2.0, 4.0)),
        (-3.0, 1.0, 3.0, (2.0, 4.0)),
    ],
)
def test_gap_interval(value: float, best: float, bound: float, interval: tuple[float, float]) -> None:
    assert gap_interval(value, best, bound) == interval


@given(finite, finite, finite, st.floats(0, 1), st.sampled_from(["min", "max"]))
def test_the_interval_holds_the_true_gap(a: float, b: float, c: float, share: float, sense: str) -> None:
    """Of an optimum anywhere between bound and best, on whatever side of 0 they are."""
    bound, best, value = sorted((a, b, c), reverse=sense == "max")
    optimum = bound + share * (best - bound)
    low, high = gap_interval(value, best, bound)
    assert 0 <= low <= high
    # Nearer to 0 than values are told apart, a gap is what it likes.
    if abs(optimum) > 1e-3:
        true = abs(value - optimum) / abs(optimum)
        slack = 4e-6 * max(1.0, abs(value / optimum))
        assert low - slack <= true <= high + slack


@given(finite, finite)
def test_without_a_bound_nothing_is_exact(a: float, b: float) -> None:
    best, value = sorted((a, b))
    low, high = gap_interval(value, best, -math.inf)
    assert 0 <= low <= 1
    assert high == math.inf


@pytest.mark.parametrize(
    ("sense", "value", "bound", "wrong"),
    [
        ("min", 9.0, 10.0, True),
        ("min", 10.0, 10.0, False),
        ("min", 11.0, 10.0, False),
        ("max", 11.0, 10.0, True),
        ("max", 10.0, 10.0, False),
        ("max", 9.0, 10.0, False),
        ("min", -1.0, 0.0, True),
        ("min", -1e-10, 0.0, True),
        ("min", 1e6 * (1 - 0.9e-6), 1e6, False),
        ("min", 1e6 * (1 - 1.1e-6), 1e6, True),
        ("max", 1e6 * (1 + 0.9e-6), 1e6, False),
        ("max", 1e6 * (1 + 1.1e-6), 1e6, True),
        # A bound that says nothing cannot be beaten; a proof of infeasibility is beaten by any plan.
        ("min", -1e300, -math.inf, False),
        ("max", 1e300, math.inf, False),
        ("min", 1e300, math.inf, True),
        ("max", -1e300, -math.inf, True),
    ],
)
def test_beats(sense: str, value: float, bound: float, wrong: bool) -> None:
    assert beats(sense, value, bound) is wrong


@given(finite, finite)
def test_not_both_sides_beat_each_other(value: float, bound: float) -> None:
    assert not (beats("min", value, bound) and beats("max", value, bound))
    assert beats("min", value, bound) == beats("max", -value, -bound)


@pytest.mark.parametrize(
    ("gap", "text"),
    [
        (0.0, "0%"),
        (1e-9, "<0.01%"),
        (0.0001, "0.01%"),
        (0.01234, "1.23%"),
        (0.5, "50%"),
        (0.9994, "99.9%"),
        (0.9996, ">99.9%"),
        (1 - 1e-12, ">99.9%"),
        (1.0, "100%"),
        (9.99, "999%"),
        (9.9951, "1,000%"),
        (123.4, "12,340%"),
        (math.inf, "∞"),
        (math.nan, "–"),
    ],
)
def test_percent(gap: float, text: str) -> None:
    assert percent(gap) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.1, 0.1, "10%"),
        (0.1, 0.25, "10% to 25%"),
        (0.0, math.inf, "0% to ∞"),
        (math.inf, math.inf, "∞"),
        (math.nan, math.nan, "–"),
    ],
)
def test_gap_range(low: float, high: float, text: str) -> None:
    assert gap_range(low, high) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (1.234e-6, "1.2 µs"),
        (999e-6, "999 µs"),
        (0.0123, "12 ms"),
        (0.0999, "100 ms"),
        (1.26, "1.3 s"),
        (119.0, "119 s"),
        (600.0, "10 min"),
        (math.nan, "–"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_number() -> None:
    assert [number(value) for value in (5.0, 1 / 3, 1e9, math.nan)] == ["5", "0.333333", "1e+09", "–"]
