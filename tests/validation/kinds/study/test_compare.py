"""Two studies side by side: pairs, intervals, and what cannot be."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from validation import StudyError, compare_studies, gap_study
from validation.formatting import difference_range, ratio_range
from validation.kernel.gaps import gap_interval, gap_to
from validation.kinds.study import pairs
from validation.kinds.study.comparison import page
from validation.kinds.study.results import Study

from .studies import FORKED, first_servers, servers_from

METADATA: dict[str, Any] = {
    "command": "optgap study",
    "commit": "",
    "versions": {"highspy": "1"},
    "machine": {"processor": "one", "cores": 2, "system": "Linux"},
    "asked": {"seed": 1},
    "finished": True,
    "cells": 4,
    "cells_ended": 4,
}


def exact(value: float, bound: float | None = None, *, status: str = "", seconds: float = 1.0) -> dict[str, Any]:
    """An exact side that proves a value, or that leaves it between the two."""
    status = status or ("optimal" if bound is None else "feasible")
    return {"status": status, "value": value, "bound": value if bound is None else bound, "seconds": seconds}


def study(name: str, instances: dict[str, dict[str, Any]], *, sense: str = "min", **metadata: Any) -> Study:
    """Of each instance: what the exact side found, and the value of each heuristic; None for no plan."""
    rows = []
    for instance, found in instances.items():
        told = dict(found)
        side = told.pop("exact")
        plans = [value for value in (side["value"], *told.values()) if value is not None and math.isfinite(value)]
        best = (min if sense == "min" else max)(plans, default=math.nan)
        entry = {"problem": "demo.one", "sense": sense, "instance": instance, "best_value": best, "disagreement": False}
        entry |= {f"exact_{key}": value for key, value in side.items()}
        rows.append({**entry, "algorithm": "exact", **side})
        for heuristic, value in told.items():
            plan = {"status": "failed", "value": math.nan} if value is None else {"status": "feasible", "value": value}
            rows.append({**entry, "algorithm": heuristic, "seconds": 0.1, "bound": math.nan, **plan})
    return Study(Path(name), pd.DataFrame(rows), {**METADATA, **metadata})


def only(frame: pd.DataFrame) -> dict[str, Any]:
    (row,) = frame.to_dict("records")
    return {str(name): value for name, value in row.items()}


# --- pairs ----------------------------------------------------------------------------------------


def test_pairs_are_counted_and_compared() -> None:
    a = study("a", {f"i{n}": {"exact": exact(10), "mine": value} for n, value in enumerate([10, 12, 15, 20, 11])})
    b = study("b", {f"i{n}": {"exact": exact(10), "mine": value} for n, value in enumerate([10, 11, 10, 25, 11])})
    found = compare_studies(a, b)
    row = only(found.heuristics)
    assert (row["problem"], row["heuristic"], row["pairs"], row["unproven"]) == ("demo.one", "mine", 5, 0)
    assert (row["better"], row["same"], row["worse"]) == (2, 2, 1)
    assert row["gap_a_mean_low"] == row["gap_a_mean_high"] == pytest.approx((0 + 0.2 + 0.5 + 1 + 0.1) / 5)
    assert row["gap_b_worst_low"] == row["gap_b_worst_high"] == pytest.approx(1.5)
    differences = [0, -0.1, -0.5, 0.5, 0]
    assert row["difference_low"] == row["difference_high"] == pytest.approx(np.mean(differences))
    assert found.pairs["b_is"].tolist() == ["same", "better", "better", "worse", "same"]
    assert found.pairs["difference_low"].tolist() == pytest.approx(differences)


def test_greater_values_may_be_better() -> None:
    a = study("a", {"i": {"exact": exact(10), "mine": 5}}, sense="max")
    b = study("b", {"i": {"exact": exact(10), "mine": 8}}, sense="max")
    row = only(compare_studies(a, b).heuristics)
    assert row["better"] == 1
    assert row["difference_low"] == row["difference_high"] == pytest.approx(0.2 - 0.5)


def test_both_plans_are_judged_by_what_the_two_studies_know_together() -> None:
    a = study("a", {"i": {"exact": exact(10, 4), "mine": 12}})
    b = study("b", {"i": {"exact": exact(8), "mine": 12}})
    row = only(compare_studies(a, b).pairs)
    assert row["gap_a_low"] == row["gap_a_high"] == row["gap_b_low"] == pytest.approx(0.5)
    assert row["proven"]
    open_still = study("b", {"i": {"exact": exact(9, 5), "mine": 12}})
    row = only(compare_studies(a, open_still).pairs)
    assert (row["gap_a_low"], row["gap_a_high"]) == gap_interval(12, 9, 5)
    assert not row["proven"]


@pytest.mark.parametrize("ends", [(10.0, 8.0), (8.0, 2.0), (-4.0, -9.0), (3.0, -2.0), (5.0, -math.inf), (4.0, 0.0)])
def test_an_unproven_difference_is_that_over_all_optima_that_may_be(ends: tuple[float, float]) -> None:
    """Against a fine grid of optima, each of which is one that the two studies leave possible."""
    best, bound = ends
    above = best + 5
    for value_a, value_b in ((above, above + 2), (above + 2, above), (best, above), (above, above)):
        a = study("a", {"i": {"exact": exact(best, bound), "mine": value_a}})
        b = study("b", {"i": {"exact": exact(best, bound), "mine": value_b}})
        row = only(compare_studies(a, b).pairs)
        grid = np.concatenate([np.linspace(max(bound, -1e6), best, 2001), -np.geomspace(1e3, 1e9, 30)])
        grid = grid[(grid >= bound) & (grid <= best) & (grid != 0)]
        possible = [gap_to(value_b, optimum) - gap_to(value_a, optimum) for optimum in grid]
        low, high = row["difference_low"], row["difference_high"]
        assert low - 1e-9 <= min(possible)
        assert max(possible) <= high + 1e-9
        # Nothing is added: each end is come to, but for that which has no end where the optimum may be 0.
        endless = (value_a > value_b, value_b > value_a) if bound <= 0 <= best else (False, False)
        for end, extreme, has_none in zip((low, high), (min(possible), max(possible)), endless, strict=True):
            assert math.isinf(end) == has_none
            assert has_none or end == pytest.approx(extreme, abs=1e-6)
        expected = "same" if value_a == value_b else "better" if value_b < value_a else "worse"
        assert row["b_is"] == expected


def test_an_unproven_difference_is_less_than_the_two_intervals_leave() -> None:
    a = study("a", {"i": {"exact": exact(10, 5), "mine": 12}})
    b = study("b", {"i": {"exact": exact(10, 5), "mine": 11}})
    row = only(compare_studies(a, b).heuristics)
    assert (row["difference_low"], row["difference_high"]) == (pytest.approx(-0.2), pytest.approx(-0.1))
    assert row["gap_b_mean_low"] - row["gap_a_mean_high"] < row["difference_low"]
    assert row["gap_b_mean_high"] - row["gap_a_mean_low"] > 0 > row["difference_high"]
    assert (row["unproven"], row["better"]) == (1, 1)


def test_to_an_optimum_of_0_the_difference_has_no_end() -> None:
    found = {"i": {"exact": exact(0), "mine": 1}, "j": {"exact": exact(10), "mine": 10}}
    row = only(
        compare_studies(study("a", found), study("b", {**found, "i": {"exact": exact(0), "mine": 2}})).heuristics
    )
    assert row["difference_low"] == row["difference_high"] == math.inf
    assert math.isnan(row["low"])
    assert (row["worse"], row["same"]) == (1, 1)


def test_plans_of_one_study_only_are_told_and_not_compared() -> None:
    a = study("a", {"i": {"exact": exact(10), "mine": 12}, "j": {"exact": exact(10), "mine": None}})
    b = study("b", {"i": {"exact": exact(10), "mine": None}, "j": {"exact": exact(10), "mine": None}})
    found = compare_studies(a, b)
    row = only(found.heuristics)
    assert (row["pairs"], row["only_a"], row["only_b"]) == (0, 1, 0)
    assert math.isnan(row["difference_low"])
    assert found.pairs.empty


def test_an_instance_that_a_study_has_twice_is_one() -> None:
    a = study("a", {"i": {"exact": exact(10), "mine": 12}})
    twice = Study(a.directory, pd.concat([a.rows, a.rows]), a.metadata)
    assert only(compare_studies(twice, a).heuristics)["pairs"] == 1


# --- the interval ---------------------------------------------------------------------------------


def differing(values: list[float]) -> tuple[Study, Study]:
    instances = {f"i{n}": {"exact": exact(100), "mine": 100} for n in range(len(values))}
    others = {f"i{n}": {"exact": exact(100), "mine": 100 + value} for n, value in enumerate(values)}
    return study("a", instances), study("b", others)


def test_the_interval_is_that_of_a_bootstrap_over_the_pairs() -> None:
    values = np.random.default_rng(1).exponential(10, 40)
    row = only(compare_studies(*differing(values.tolist())).heuristics)
    drawn = np.random.default_rng(2).choice(values / 100, (4000, 40)).mean(axis=1)
    width = row["high"] - row["low"]
    assert row["low"] == pytest.approx(np.quantile(drawn, 0.025), abs=0.1 * width)
    assert row["high"] == pytest.approx(np.quantile(drawn, 0.975), abs=0.1 * width)
    assert row["low"] < row["difference_low"] < row["high"]


def test_the_same_studies_have_the_same_interval() -> None:
    sides = differing(np.random.default_rng(1).exponential(10, 40).tolist())
    first, again, other = (only(compare_studies(*sides, seed=seed).heuristics) for seed in (0, 0, 1))
    assert (first["low"], first["high"]) == (again["low"], again["high"]) != (other["low"], other["high"])


def test_pairs_that_all_differ_alike_leave_nothing_open_and_one_pair_has_no_interval() -> None:
    row = only(compare_studies(*differing([7] * 5)).heuristics)
    assert row["low"] == row["high"] == pytest.approx(0.07)
    row = only(compare_studies(*differing([7])).heuristics)
    assert math.isnan(row["low"])
    assert math.isnan(row["high"])


# --- the exact side, and what cannot be -----------------------------------------------------------


def test_times_of_the_exact_side_where_both_proved_it() -> None:
    a = study(
        "a",
        {
            "i": {"exact": exact(10, seconds=1)},
            "j": {"exact": exact(10, seconds=2)},
            "k": {"exact": exact(10, 5, seconds=60)},
            "l": {"exact": exact(math.nan, status="infeasible", seconds=4)},
        },
    )
    b = study(
        "b",
        {
            "i": {"exact": exact(10, seconds=4)},
            "j": {"exact": exact(10, seconds=4)},
            "k": {"exact": exact(10, seconds=6)},
            "l": {"exact": exact(math.nan, status="infeasible", seconds=4)},
        },
    )
    row = only(compare_studies(a, b).exact)
    assert (row["instances"], row["both"], row["only_a"], row["only_b"]) == (4, 3, 0, 1)
    assert row["ratio"] == pytest.approx((4 * 2 * 1) ** (1 / 3))
    assert 1 <= row["low"] < row["ratio"] < row["high"] <= 4


@pytest.mark.parametrize(
    ("side_a", "side_b", "why"),
    [
        (exact(10), exact(11), "the optimum is 10 in A and 11 in B"),
        (exact(12, 11), exact(10), "B found a plan of 10, better than A's bound 11"),
        (exact(10), exact(20, 12), "A found a plan of 10, better than B's bound 12"),
        (exact(math.nan, status="infeasible"), exact(20, 12), "A proved that there is no plan, B found one of 20"),
    ],
)
def test_studies_that_cannot_both_be_right(side_a: dict[str, Any], side_b: dict[str, Any], why: str) -> None:
    right = {"exact": exact(10), "mine": 12}
    a = study("a", {"wrong": {"exact": side_a, "mine": 30}, "right": right})
    b = study("b", {"wrong": {"exact": side_b, "mine": 30}, "right": right})
    found = compare_studies(a, b)
    assert only(found.disagreements) == {"problem": "demo.one", "instance": "wrong", "why": why}
    assert found.pairs["instance"].tolist() == ["right"]
    assert found.exact["instances"].tolist() == [1]
    assert "1 oracle disagreements" in repr(found)
    assert why.replace("'", "&#39;") in page(found)


def test_studies_that_agree_on_nothing() -> None:
    a, b = (study(name, {"i": {"exact": exact(value), "mine": 30}}) for name, value in (("a", 10), ("b", 11)))
    found = compare_studies(a, b)
    assert found.exact.empty
    assert found.heuristics.empty
    assert "What cannot be".lower() in page(found)


def test_optima_that_agree_but_for_rounding_are_no_disagreement() -> None:
    a, b = (study(name, {"i": {"exact": exact(value), "mine": 12}}) for name, value in (("a", 10), ("b", 10 + 1e-7)))
    assert compare_studies(a, b).disagreements.empty


def test_what_a_study_itself_found_wrong_is_not_compared() -> None:
    a = study("a", {"i": {"exact": exact(10), "mine": 9}, "j": {"exact": exact(10), "mine": 12}})
    a.rows.loc[a.rows["value"] == 9, "disagreement"] = True
    found = compare_studies(
        a, study("b", {"i": {"exact": exact(8), "mine": 12}, "j": {"exact": exact(10), "mine": 12}})
    )
    assert found.disagreements["instance"].tolist() == ["i"]
    assert found.pairs["instance"].tolist() == ["j"]


def test_what_only_one_study_has_is_told() -> None:
    a = study("a", {"i": {"exact": exact(10), "mine": 12, "old": 12}, "gone": {"exact": exact(10), "mine": 12}})
    b = study("b", {"i": {"exact": exact(10), "mine": 12, "new": 12}, "more": {"exact": exact(10), "mine": 12}})
    found = compare_studies(a, b).alone
    told = [(row["what"], row["name"], row["study"]) for row in found.to_dict("records")]
    assert told == [
        ("instance", "gone", "A"),
        ("instance", "more", "B"),
        ("heuristic", "old", "A"),
        ("heuristic", "new", "B"),
    ]


def test_studies_without_a_common_instance_are_not_compared() -> None:
    a, b = (study(name, {name: {"exact": exact(10), "mine": 12}}) for name in "ab")
    with pytest.raises(StudyError, match=r"^a and b have run nothing on the same instance$"):
        compare_studies(a, b)


def test_studies_without_a_common_heuristic_are_compared_by_their_exact_sides() -> None:
    a, b = (study(name, {"i": {"exact": exact(10), name: 12}}) for name in "ab")
    found = compare_studies(a, b)
    assert found.heuristics.empty
    assert found.exact["instances"].tolist() == [1]
    assert "demo.one" in page(found)


# --- real studies, and the page -------------------------------------------------------------------


@FORKED
@pytest.mark.slow
def test_real_studies_by_their_directories(tmp_path: Path) -> None:
    told: dict[str, Any] = {"seed": 3, "sizes": [4], "count": 3, "jobs": 1}
    for name, heuristic in (("a", first_servers), ("b", servers_from(1))):
        gap_study("aryl.reclaim", heuristics={"mine": heuristic}, output=tmp_path / name, **told)
    found = compare_studies(tmp_path / "a", tmp_path / "b")
    row = only(found.heuristics)
    assert (row["heuristic"], row["pairs"]) == ("mine", 3)
    for side, each in (("a", found.a), ("b", found.b)):
        mine = each.rows[each.rows["algorithm"] == "mine"]
        assert row[f"gap_{side}_mean_low"] == pytest.approx(mine["gap_low"].mean())
    assert found.disagreements.empty
    assert found.alone.empty
    # Nothing is written into the studies.
    assert compare_studies(tmp_path / "a", tmp_path / "a").heuristics["same"].tolist() == [3]


def test_a_directory_without_a_study(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="holds no study"):
        compare_studies(tmp_path, tmp_path)


def test_the_comparison_as_json() -> None:
    a, b = differing([1, 2, 3])
    told = json.loads(json.dumps(compare_studies(a, b).to_dict()))
    assert (told["a"]["directory"], told["b"]["machine"]["processor"]) == ("a", "one")
    assert told["heuristics"][0]["worse"] == 3
    assert told["exact"][0]["both"] == 3
    assert told["alone"] == told["disagreements"] == []


def test_the_page_shows_both_versions_and_asks_the_network_for_nothing() -> None:
    a, b = differing([1, 2, 3])
    other = Study(Path("<b>"), b.rows, {**b.metadata, "versions": {"highspy": "2"}, "finished": False})
    written = page(compare_studies(a, other))
    assert (
        '<td class="text">highspy</td><td class="text">1</td><td class="text">2</td><td class="text">differs</td>'
        in written
    )
    assert '<td class="text">machine</td>' in written
    assert "4 of 4 runs have ended" in written
    assert "&lt;b&gt;" in written
    assert "<b> side by side" not in written
    assert ">+2%<" in written
    assert not [word for word in ("http://", "https://", "<img", "<link") if word in written]
    assert written.count('<th scope="col"') + written.count('<th class="text" scope="col"') == written.count("<th ")


def test_the_level_of_the_interval_is_what_is_said() -> None:
    assert pairs.corrected(1) == 0.95


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (difference_range(0.25, 0.25), "+25%"),
        (difference_range(-0.25, 0), "−25% to 0%"),
        (difference_range(-math.inf, 0.1), "−∞ to +10%"),
        (difference_range(math.nan, 1), "–"),
        (ratio_range(2, 2), "2 ×"),
        (ratio_range(0.5, 1.25), "0.5 × to 1.25 ×"),
        (ratio_range(math.nan, math.nan), "–"),
    ],
)
def test_differences_and_ratios_in_words(said: str, words: str) -> None:
    assert said == words
