"""Heuristics of one study, two by two: pairs, intervals that hold together, and what is better."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from validation import SideBySide, StudyError
from validation.kernel.gaps import gap_to
from validation.kinds.study.pairs import Intervals

from .test_compare import exact, only, study


def of_values(*, optimum: float = 10, sense: str = "min", **values: list[Any]) -> Any:
    """Of each heuristic its values on as many instances, all of one optimum."""
    (count,) = {len(of) for of in values.values()}
    instances = {
        f"i{n}": {"exact": exact(optimum), **{name: of[n] for name, of in values.items()}} for n in range(count)
    }
    return study("one", instances, sense=sense)


def row_of(found: SideBySide) -> dict[str, Any]:
    return only(found.table)


# --- pairs ---


def test_two_heuristics_by_hand() -> None:
    one = of_values(slow=[10, 12, 15, 20, 11], fast=[10, 11, 10, 25, 11])
    found = one.compare("slow", "fast")
    row = row_of(found)
    differences = [0, -0.1, -0.5, 0.5, 0]
    assert (row["a"], row["b"], row["instances"], row["pairs"], row["comparisons"]) == ("slow", "fast", 5, 5, 1)
    assert (row["better"], row["same"], row["worse"]) == (2, 2, 1)
    assert row["gap_a_mean_low"] == row["gap_a_mean_high"] == pytest.approx((0 + 0.2 + 0.5 + 1 + 0.1) / 5)
    assert row["difference_low"] == row["difference_high"] == pytest.approx(np.mean(differences))
    assert row["ratio"] == pytest.approx(math.prod([1, 11 / 12, 10 / 15, 25 / 20, 1]) ** 0.2)
    assert row["ratio_low"] < row["ratio"] < row["ratio_high"]
    assert row["value"] == pytest.approx(np.mean([0, -1, -5, 5, 0]))
    assert found.pairs["difference_low"].tolist() == pytest.approx(differences)
    # The other way round everything has the other sign.
    back = row_of(one.compare("fast", "slow"))
    assert (back["better"], back["worse"]) == (1, 2)
    assert back["difference_low"] == pytest.approx(-row["difference_low"])
    assert back["ratio"] == pytest.approx(1 / row["ratio"])


def test_pairs_without_a_plan_are_counted_apart() -> None:
    row = row_of(of_values(a=[12, None, 12, None], b=[11, 11, None, None]).compare("a", "b"))
    assert (row["instances"], row["pairs"]) == (4, 1)
    assert (row["only_a"], row["only_b"], row["neither"]) == (1, 1, 1)
    shown = of_values(a=[12, None, 12, None], b=[11, 11, None, None]).compare("a", "b").overview().iloc[0]
    assert (shown["A only"], shown["B only"], shown["neither"]) == (1, 1, 1)
    assert "neither" not in of_values(a=[12, 12], b=[11, 11]).compare().overview()


def test_an_instance_with_an_oracle_disagreement_is_in_no_number() -> None:
    one = of_values(a=[12, 9], b=[11, 11])
    one.rows["disagreement"] = one.rows["value"] == 9
    found = one.compare("a", "b")
    assert (row_of(found)["pairs"], found.wrong) == (1, 1)
    assert "1 instance with an oracle disagreement left out" in repr(found)


def test_an_instance_that_the_study_has_twice_is_one_pair() -> None:
    one = of_values(a=[12, 12], b=[11, 11])
    twice = pd.concat([one.rows, one.rows], ignore_index=True)
    assert row_of(type(one)(one.directory, twice, one.metadata).compare("a", "b"))["pairs"] == 2


def test_every_problem_has_its_own_comparisons() -> None:
    one = of_values(a=[12] * 3, b=[11] * 3, c=[10] * 3)
    other = of_values(a=[12] * 3, b=[11] * 3).rows.assign(problem="demo.two")
    both = type(one)(one.directory, pd.concat([one.rows, other], ignore_index=True), one.metadata)
    found = both.compare().table
    assert found[["problem", "a", "b", "comparisons"]].to_numpy().tolist() == [
        ["demo.one", "a", "b", 3],
        ["demo.one", "a", "c", 3],
        ["demo.one", "b", "c", 3],
        ["demo.two", "a", "b", 1],
    ]
    assert both.compare(problem="demo.two").table["b"].tolist() == ["b"]
    assert both.compare("c", "a").table[["problem", "a", "b"]].to_numpy().tolist() == [["demo.one", "c", "a"]]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a",), "heuristics: got a, must be at least two, each once"),
        (("a", "a"), "heuristics: got a, a, must be at least two, each once"),
        (("a", "bb"), r"heuristics: got 'bb'.*, there are a, b$"),
        (("exact", "a"), r"heuristics: got 'exact', there are a, b$"),
    ],
)
def test_what_cannot_be_compared_is_named(names: tuple[str, ...], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        of_values(a=[12, 12], b=[11, 11]).compare(*names)


def test_one_heuristic_alone_is_no_comparison() -> None:
    with pytest.raises(StudyError, match="no two heuristics were run on the same instance"):
        of_values(a=[12, 12]).compare()


# --- intervals ---


@pytest.mark.parametrize("comparisons", [1, 3, 10])
def test_the_interval_is_that_of_all_samples_that_there_are(comparisons: int) -> None:
    """Against every sample of six pairs, which are 46,656, at the level that is left for each comparison."""
    values = np.array([-0.02, 0.0, 0.01, 0.05, 0.11, 0.4])
    every = np.array(list(itertools.product(values, repeat=6))).mean(axis=1)
    low, high = Intervals(0, comparisons)(values)
    tail = 0.05 / comparisons / 2
    # Of ten samples beyond an end or more, by as many as such a count is off by chance.
    near, far = np.quantile(every, [0.5 * tail, 2 * tail])
    assert near - 1e-12 <= low <= far + 1e-12
    far, near = np.quantile(every, [1 - 2 * tail, 1 - 0.5 * tail])
    assert far - 1e-12 <= high <= near + 1e-12


def test_of_heuristics_that_are_alike_none_is_called_better() -> None:
    """Seven that differ by chance alone: one by one some of the 21 comparisons mislead, together none does."""
    rng = np.random.default_rng(2)
    alike = {f"h{n}": (10 + rng.exponential(1, 40)).tolist() for n in range(7)}
    one = of_values(**alike)
    alone = [row_of(one.compare(*two))["verdict"] for two in itertools.combinations(alike, 2)]
    assert {"a", "b"} & set(alone)
    together = one.compare().table
    assert len(together) == 21
    assert set(together["level"]) == {1 - 0.05 / 21}
    assert set(together["verdict"]) == {"open"}


def test_the_same_study_has_the_same_intervals() -> None:
    one = of_values(a=[12, 15, 11, 10.5, 13, 14.1], b=[11, 16.3, 10, 12, 13.7, 12.2])
    first, again, other = (row_of(one.compare(seed=seed)) for seed in (0, 0, 1))
    assert (first["low"], first["high"]) == (again["low"], again["high"])
    assert (first["ratio_low"], first["ratio_high"]) != (other["ratio_low"], other["ratio_high"])


def test_many_pairs_take_little_memory() -> None:
    """More than are drawn at once, against the normal law that the mean of so many follows."""
    values = np.random.default_rng(1).normal(0.1, 1.0, 5000)
    low, high = Intervals(0)(values)
    half = 1.959964 * values.std() / math.sqrt(len(values))
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.1 * half)


# --- what is better ---


@pytest.mark.parametrize(("sense", "expected"), [("min", "b"), ("max", "a")])
def test_the_better_one_is_named(sense: str, expected: str) -> None:
    optimum, a, b = (10, 13, 11) if sense == "min" else (10, 9, 7)
    found = of_values(optimum=optimum, sense=sense, mine=[a + 0.1 * n for n in range(9)], theirs=[b] * 9).compare()
    assert row_of(found)["verdict"] == expected
    assert found.overview()["so"].tolist() == [f"{expected.upper()} is better"]


@pytest.mark.parametrize("comparisons", [1, 3])
def test_so_few_that_chance_alone_makes_all_of_them_alike(comparisons: int) -> None:
    """As many as all fall one way in more of all the patterns of signs than are left for a comparison."""
    names = ("a", "b", "c")[: comparisons if comparisons == 3 else 2]
    for count in range(1, 9):
        signs = [*itertools.product([-1, 1], repeat=count)]
        alike = sum(abs(sum(pattern)) == count for pattern in signs) / len(signs)
        # One more pair is the same, which says nothing.
        found = of_values(**{name: [10 + at + 0.01 * n for n in range(count)] + [20] for at, name in enumerate(names)})
        verdicts = set(found.compare().table["verdict"])
        assert verdicts == ({"few"} if alike > 0.05 / comparisons else {"a"})


def test_where_nothing_differs_that_is_said() -> None:
    found = of_values(a=[12] * 4, b=[12] * 4).compare()
    assert found.overview()["so"].tolist() == ["no difference"]


def test_to_an_optimum_of_0_the_values_are_compared() -> None:
    instances = {f"i{n}": {"exact": exact(0), "a": 3 + n % 2, "b": 1} for n in range(8)}
    found = study("one", instances).compare("a", "b")
    row = row_of(found)
    assert row["difference_low"] == -math.inf
    assert math.isnan(row["low"])
    assert (row["value"], row["verdict"]) == (-2.5, "b")
    assert row["value_low"] < -2.5 < row["value_high"] < 0
    assert "in values −2.5" in found.overview()["B less A"].iloc[0]


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (-1.0, 2.0)])
def test_there_is_no_ratio_where_a_value_is_not_above_0(a: float, b: float) -> None:
    row = row_of(of_values(optimum=-10, a=[a, 2], b=[b, 3]).compare())
    assert math.isnan(row["ratio"])
    assert math.isnan(row["ratio_low"])


def test_optima_that_are_not_proven_leave_an_interval() -> None:
    instances = {f"i{n}": {"exact": exact(10, 5), "a": 12, "b": 11} for n in range(8)}
    row = row_of(study("one", instances).compare())
    assert row["unproven"] == 8
    assert (row["difference_low"], row["difference_high"]) == (pytest.approx(-0.2), pytest.approx(-0.1))
    assert gap_to(11, 5) - gap_to(12, 5) == pytest.approx(row["low"])
    assert row["verdict"] == "b"


def test_the_comparison_as_json() -> None:
    told = json.loads(json.dumps(of_values(a=[12, 12], b=[11, 11]).compare().to_dict()))
    assert (told["directory"], told["disagreements"]) == ("one", 0)
    assert told["comparisons"][0]["better"] == 2
