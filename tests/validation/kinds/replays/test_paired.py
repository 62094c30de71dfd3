"""Statistics of paired replays, against enumeration, closed forms and numbers made by hand."""

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from validation.kinds.replays.paired import (
    Resamples,
    comparisons,
    corrected,
    cost_of_gaps,
    differences,
    gap_points,
    gaps,
    verdict,
)


def replay(policy: str, times: list[float], **cell: Any) -> pd.DataFrame:
    """The jobs of a replay that all arrive at 0 and end after ``times``."""
    where = {"trace": "t", "window": 0, "seed": 0, "tie": 0, **cell}
    columns = {"job": [f"job {number}" for number in range(len(times))], "arrival": 0.0, "ended": times}
    rest = {"deadline": np.nan, "met": pd.NA}
    return pd.DataFrame({**columns, **rest}).assign(policy=policy, **where).astype({"met": "boolean"})


def decided(policy: str, gaps: list[float], **cell: Any) -> pd.DataFrame:
    where = {"trace": "t", "window": 0, "seed": 0, "tie": 0, **cell}
    told = pd.DataFrame({"problem": "gavel.fifo", "optimum": 1.0, "gap": gaps, "gap_most": gaps})
    return told.assign(policy=policy, **where)


def of(found: pd.DataFrame, measure: str, policy: str = "greedy") -> Any:
    return found[(found["measure"] == measure) & (found["policy"] == policy)].iloc[0]


# --- the bootstrap ---


def test_intervals_are_those_of_all_samples_that_there_are() -> None:
    values = np.array([1.0, 2.0, 4.0, 8.0])
    runs = pd.DataFrame({"trace": "t", "window": 0, "seed": range(4)})
    every = sorted(np.mean(sample) for sample in itertools.product(values, repeat=4))
    samples = Resamples(runs, seed=1, number=50_000)
    for level in (0.5, 0.9, 0.95):
        low, high = samples.interval((values, np.ones(4)), level)
        # The ends lie between neighbours of the exact distribution, whose steps are 1/256 wide or more.
        for end, share in ((low, (1 - level) / 2), (high, (1 + level) / 2)):
            assert np.quantile(every, share - 0.01) <= end <= np.quantile(every, share + 0.01)


def test_windows_are_drawn_and_then_their_seeds() -> None:
    runs = pd.DataFrame({"trace": "t", "window": [0, 0, 0, 1, 2, 2], "seed": [0, 1, 2, 0, 0, 1]})
    samples = Resamples(runs, seed=2, number=40_000)
    sizes = {0: 3, 1: 1, 2: 2}
    by_window = {
        window: samples.times[:, (runs["window"] == window).to_numpy()].sum(axis=1) / size
        for window, size in sizes.items()
    }
    # Each sample has as many windows as there are, and whole ones.
    assert (sum(by_window.values()) == 3).all()
    assert all((counts == np.round(counts)).all() for counts in by_window.values())
    values = np.array([1.0, 5.0, 3.0, 2.0, 9.0, 7.0])
    ends = samples.times @ values
    # The law of total variance, by windows: three draws of a window, each the sum of so many draws of its seeds.
    totals = {w: values[(runs["window"] == w).to_numpy()] for w in sizes}
    between = np.var([of_window.sum() for of_window in totals.values()])
    within = np.mean([len(of_window) * of_window.var() for of_window in totals.values()])
    assert ends.var() == pytest.approx(3 * (between + within), rel=0.03)
    assert ends.mean() == pytest.approx(values.sum(), rel=0.01)


def test_one_run_has_no_interval() -> None:
    runs = pd.DataFrame({"trace": ["t"], "window": [0], "seed": [0]})
    assert all(map(math.isnan, Resamples(runs).interval((np.ones(1), np.ones(1)))))


def test_the_same_runs_have_the_same_interval() -> None:
    runs = pd.DataFrame({"trace": "t", "window": range(5), "seed": 0})
    sums = (np.arange(5.0), np.ones(5))
    assert Resamples(runs, seed=3).interval(sums) == Resamples(runs, seed=3).interval(sums)
    assert (Resamples(runs, seed=3).times != Resamples(runs, seed=4).times).any()


# --- differences ---


def test_differences_by_hand() -> None:
    jobs = pd.concat(
        [
            replay("exact", [10.0, 20.0, 30.0], seed=0),
            replay("greedy", [15.0, 20.0, 40.0], seed=0),
            replay("exact", [10.0, 10.0], seed=1),
            replay("greedy", [20.0, 5.0], seed=1),
        ]
    )
    found = differences(jobs, "exact")
    assert of(found, "average completion time")["value"] == pytest.approx(100 / 80 - 1)
    assert of(found, "completion time, s")["value"] == pytest.approx(20 / 5)
    assert of(found, "completion time, each job")["value"] == pytest.approx((0.5 + 0 + 1 / 3 + 1 - 0.5) / 5)
    assert of(found, "makespan")["value"] == pytest.approx(60 / 40 - 1)
    assert "deadlines met" not in set(found["measure"])
    assert set(found["jobs"]) == {5}
    assert set(found["runs"]) == {2}
    assert found["spread"].isna().all()
    # Of two runs a sample has one twice, or both.
    low, high = of(found, "completion time, s")[["low", "high"]]
    assert (low, high) == pytest.approx((2.5, 5.0))


def test_jobs_that_one_did_not_complete_are_left_out_and_counted() -> None:
    jobs = pd.concat([replay("exact", [10.0, 20.0, np.nan]), replay("greedy", [12.0, np.nan, 7.0])])
    found = differences(jobs, "exact")
    assert of(found, "completion time, s")["value"] == pytest.approx(2.0)
    assert set(found["jobs"]) == {1}
    assert set(found["left_out"]) == {2}


def test_a_run_of_which_a_replay_is_missing_does_not_count() -> None:
    jobs = pd.concat(
        [
            replay("exact", [10.0], seed=0),
            replay("greedy", [12.0], seed=0),
            replay("exact", [10.0], seed=1),
        ]
    )
    found = differences(jobs, "exact")
    assert set(found["runs"]) == {1}
    assert of(found, "completion time, s")["value"] == pytest.approx(2.0)


def test_deadlines_are_of_all_jobs_that_have_one() -> None:
    exact = replay("exact", [10.0, 20.0, 30.0]).assign(
        deadline=[15.0, 15.0, np.nan], met=pd.array([True, False, pd.NA], dtype="boolean")
    )
    greedy = replay("greedy", [10.0, np.nan, 30.0]).assign(
        deadline=[5.0, 15.0, np.nan], met=pd.array([False, pd.NA, pd.NA], dtype="boolean")
    )
    found = of(differences(pd.concat([exact, greedy]), "exact"), "deadlines met")
    assert found["value"] == pytest.approx(-0.5)


def test_the_spread_over_tie_breaks() -> None:
    jobs = pd.concat(
        [
            replay("exact", [10.0], tie=0),
            replay("exact", [12.0], tie=1),
            replay("greedy", [11.0], tie=0),
            replay("greedy", [16.0], tie=1),
            replay("greedy", [12.0], tie=2),
        ]
    )
    found = of(differences(jobs, "exact"), "completion time, s")
    assert found["value"] == pytest.approx(13 - 11)
    assert found["spread"] == pytest.approx(16 - 11)
    assert found["verdict"] == "luck"


def test_an_average_over_tie_breaks_has_a_smaller_spread_the_more_runs_there_are() -> None:
    rng = np.random.default_rng(5)
    spreads = []
    for runs in (2, 50):
        jobs = pd.concat(
            replay(policy, [100 + rng.normal()], seed=seed, tie=tie)
            for seed in range(runs)
            for policy in ("exact", "greedy")
            for tie in range(2)
        )
        spreads.append(of(differences(jobs, "exact", resamples=10), "completion time, s")["spread"])
    assert spreads[1] < spreads[0]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.0, 0.0, 0.0, 0.0), "none"),
        ((0.2, 0.1, 0.3, 0.05), "effect"),
        ((0.2, 0.1, 0.3, math.nan), "effect"),
        ((-0.2, -0.3, -0.1, 0.2), "luck"),
        ((0.2, -0.1, 0.3, 0.1), "open"),
        ((0.2, math.nan, math.nan, 0.1), "one run"),
    ],
)
def test_verdicts(numbers: tuple[float, float, float, float], expected: str) -> None:
    assert verdict(*numbers) == expected
    # So few runs that chance alone could make all of them fall one way are no effect.
    assert verdict(*numbers, few=True) == ("few" if expected == "effect" else expected)


def test_an_effect_takes_more_runs_the_more_comparisons_there_are() -> None:
    """One of twelve intervals that begin just above 0 is no effect; all of them are made to hold together."""
    rng = np.random.default_rng(3)
    extra = rng.normal(1.0, 1.0, 12)
    jobs = pd.concat(
        replay(policy, [100.0 + extra[seed] * (policy == "greedy")], seed=seed)
        for seed in range(12)
        for policy in ("exact", "greedy")
    )
    alone, of_twelve = (of(differences(jobs, "exact", level=corrected(many)), "completion time, s") for many in (1, 12))
    assert (alone["verdict"], of_twelve["verdict"]) == ("effect", "open")
    assert of_twelve["low"] < alone["low"] < alone["high"] < of_twelve["high"]
    # Against every sample there is, by the normal law that the mean of so many nearly follows.
    half = 2.8653 * extra.std() / math.sqrt(12)
    assert of_twelve["high"] - of_twelve["low"] == pytest.approx(2 * half, rel=0.15)


def test_a_few_runs_that_all_fall_one_way_are_no_effect() -> None:
    def found(runs: int, windows: int = 1) -> str:
        jobs = pd.concat(
            replay(policy, [time + run], window=run % windows, seed=run)
            for run in range(runs)
            for policy, time in (("exact", 100.0), ("greedy", 110.0))
        )
        return str(of(differences(jobs, "exact"), "completion time, s")["verdict"])

    assert [found(runs) for runs in (1, 2, 5, 6)] == ["one run", "few", "few", "effect"]
    # Seeds of the same windows are no further evidence.
    assert found(12, windows=2) == "few"


def test_comparisons_are_counted() -> None:
    jobs = pd.concat([replay(name, [10.0, 20.0]) for name in ("exact", "greedy", "other")])
    assert comparisons(jobs, "exact") == len(differences(jobs, "exact")) == 8
    assert comparisons(jobs.assign(deadline=15.0, met=True), "exact") == 10
    assert comparisons(jobs, "nobody") == 0


# --- gaps and their cost ---


def test_distribution_of_gaps() -> None:
    decisions = pd.concat(
        [decided("greedy", [0.0, 0.1, np.nan, np.inf], seed=0), decided("greedy", [0.3, 0.0], seed=1)]
    )
    (found,) = gaps(decisions).to_dict("records")
    assert (found["decisions"], found["asked"], found["proven"]) == (6, 5, 4)
    assert found["mean"] == pytest.approx(0.1)
    assert (found["median"], found["worst"], found["optimal"]) == (0.0, 0.3, 0.5)
    assert (found["low"], found["high"]) == pytest.approx((0.05, 0.15))


def test_a_percentile_is_told_of_twenty_gaps() -> None:
    few, enough = (gaps(decided("greedy", [0.3, *[0.1] * more])).iloc[0] for more in (18, 19))
    assert np.isnan(few["p95"])
    assert enough["p95"] == 0.1


def test_a_gap_that_is_an_interval_is_no_number() -> None:
    decisions = decided("greedy", [0.1, 0.0, 0.2]).assign(gap_most=[0.1, 0.4, 0.3], optimum=[2.0, np.nan, np.nan])
    (found,) = gaps(decisions).to_dict("records")
    assert (found["asked"], found["proven"], found["mean"], found["worst"]) == (3, 1, 0.1, 0.1)
    assert (found["least"], found["most"]) == pytest.approx((0.1, 0.8 / 3))
    jobs = pd.concat([replay("exact", [10.0]), replay("greedy", [12.0])])
    assert gap_points(jobs, decisions, "exact")["gap"].tolist() == [0.1]


def line(slope: float, noise: float, runs: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Replays whose cost is ``slope`` times their mean gap, and some noise."""
    rng = np.random.default_rng(11)
    jobs, decisions = [], []
    for seed in range(runs):
        gap = float(rng.uniform(0.01, 0.2))
        cost = slope * gap + noise * rng.normal()
        jobs += [replay("exact", [100.0, 300.0], seed=seed)]
        jobs += [replay("greedy", [100.0 * (1 + cost), 300.0 * (1 + cost)], seed=seed)]
        decisions += [decided("exact", [0.0], seed=seed), decided("greedy", [0.5 * gap, 1.5 * gap], seed=seed)]
    return pd.concat(jobs), pd.concat(decisions)


def test_the_cost_of_gaps_is_found_where_it_is_a_line() -> None:
    points = gap_points(*line(2.5, 0.0, 6), "exact")
    (found,) = cost_of_gaps(points, ["greedy"]).to_dict("records")
    assert (found["slope"], found["low"], found["high"]) == pytest.approx((2.5, 2.5, 2.5))
    assert found["runs"] == 6


def test_the_cost_of_gaps_is_that_of_least_squares_and_its_interval_is_as_wide() -> None:
    points = gap_points(*line(2.5, 0.05, 60), "exact")
    (found,) = cost_of_gaps(points, ["greedy"]).to_dict("records")
    x, y = points["gap"].to_numpy(), points["cost"].to_numpy()
    (slope,), (left,) = np.linalg.lstsq(x[:, None], y, rcond=None)[:2]
    assert found["slope"] == pytest.approx(slope)
    # By the textbook, for errors of one variance.
    error = math.sqrt(left / (len(x) - 1) / (x @ x))
    assert found["high"] - found["low"] == pytest.approx(2 * 1.96 * error, rel=0.35)
    assert found["low"] < 2.5 < found["high"]


def test_where_the_cost_of_gaps_is_not_defined() -> None:
    jobs, decisions = line(1.0, 0.0, 1)
    points = gap_points(jobs, decisions, "exact")
    (one,) = cost_of_gaps(points, ["greedy"]).to_dict("records")
    assert one["slope"] == pytest.approx(1.0)
    assert math.isnan(one["low"])
    assert "one run" in one["reason"]
    (none,) = cost_of_gaps(points.assign(gap=0.0), ["greedy"]).to_dict("records")
    assert math.isnan(none["slope"])
    assert none["reason"] == "no decision has a gap"
    (nothing,) = cost_of_gaps(points[:0], ["greedy"]).to_dict("records")
    assert math.isnan(nothing["slope"])
    assert "no run" in nothing["reason"]


def test_infinite_gaps_are_no_points() -> None:
    jobs, decisions = line(1.0, 0.0, 2)
    decisions["gap"] = decisions["gap_most"] = np.where(decisions["policy"] == "greedy", np.inf, 0.0)
    assert gap_points(jobs, decisions, "exact").empty
