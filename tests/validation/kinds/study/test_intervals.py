"""Studies: gaps where the optimum is not proven, disagreements, and how gaps are summed up."""

import faulthandler
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import instances
from instances.aryl import reclaim
from validation import gap_study
from validation.kinds.study.results import summarize
from validation.pages.plots import plot_sizes

from .studies import FORKED, constant, one_job_each, stub_exact

pytestmark = FORKED


@pytest.mark.parametrize(
    ("said", "intervals"),
    [
        ({"status": "feasible", "value": 5.0, "bound": 2.0}, {"four": (0, 1), "six": (0.5, 2), "eight": (1, 3)}),
        # The exact side's own plan may be the best.
        ({"status": "feasible", "value": 3.0, "bound": 2.0}, {"four": (1 / 3, 1), "six": (1, 2), "eight": (5 / 3, 3)}),
        ({"status": "feasible", "value": 4.0, "bound": 0.0}, {"four": (0, math.inf), "six": (0.5, math.inf)}),
        ({"status": "unknown"}, {"four": (0, math.inf), "six": (0.5, math.inf), "eight": (1, math.inf)}),
        ({"status": "unknown", "bound": 4.0}, {"four": (0, 0), "six": (0.5, 0.5), "eight": (1, 1)}),
        ({"status": "optimal", "value": 4.0, "bound": 4.0}, {"four": (0, 0), "six": (0.5, 0.5), "eight": (1, 1)}),
    ],
)
def test_an_unproven_gap_is_an_interval(
    said: dict[str, Any], intervals: dict[str, tuple[float, float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_exact(monkeypatch, **said)
    heuristics = {"four": constant(0), "six": constant(1), "eight": constant(2)}
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6, 8)], heuristics=heuristics, output=tmp_path)
    rows = study.rows.set_index("algorithm")
    assert not rows["disagreement"].any()
    for name, (low, high) in intervals.items():
        assert (rows.loc[name, "gap_low"], rows.loc[name, "gap_high"]) == pytest.approx((low, high))
        assert rows.loc[name, "gap"] == pytest.approx(low if low == high else math.nan, nan_ok=True)
    summary = study.summary().set_index("heuristic")
    assert summary.loc["six", "proven"] == (said["status"] == "optimal")
    low, high = intervals["six"]
    assert tuple(summary.loc["six", ["gap_worst_low", "gap_worst_high"]]) == pytest.approx((low, high))
    assert study.report.exists()


def test_a_failed_exact_side_leaves_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: Any) -> Any:
        os.abort()

    monkeypatch.setattr(
        "validation.kinds.study.cells.solve_exactly", lambda *_, **__: (faulthandler.disable(), crash())
    )
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics=[constant(1)], output=tmp_path)
    row = study.rows.iloc[1]
    assert (row["exact_status"], row["gap_low"], row["gap_high"]) == ("failed", 0.0, math.inf)
    assert study.rows.iloc[0]["reason"] == "the process died: killed by SIGABRT"


def test_a_time_limit_on_the_exact_side(tmp_path: Path) -> None:
    from validation.kinds.study.cells import solve_exactly

    instance = reclaim.generate(1, num_servers=60, demand=20, spread=1.0)
    row = solve_exactly(instance, "highs", 1e-3, verify=False)
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert row["status"] in ("unknown", "feasible")
    assert row["status"] == "unknown" or row["value"] is not None
    best = solve_exactly(instance, "highs", 1.0, verify=False)
    assert row["bound"] is None or row["bound"] <= best["value"]


@pytest.mark.parametrize(
    "said",
    [
        {"status": "optimal", "value": 5.0, "bound": 5.0},
        {"status": "feasible", "value": 7.0, "bound": 4.5},
        {"status": "unknown", "bound": 4.001},
        {"status": "infeasible"},
    ],
)
def test_a_value_better_than_a_proven_bound_is_a_disagreement(
    said: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_exact(monkeypatch, **said)
    heuristics = {"four": constant(0), "six": constant(1)}
    if said["status"] == "infeasible":
        heuristics = {"four": constant(0)}
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics=heuristics, output=tmp_path)
    assert list(study.disagreements["algorithm"]) == ["four"]
    row = study.disagreements.iloc[0]
    assert math.isnan(row["gap_low"])
    assert math.isnan(row["gap_high"])
    assert instances.load(tmp_path / row["file"]) == one_job_each(4, 6)
    assert study.metadata["disagreements"] == 1
    page = study.report.read_text(encoding="utf-8")
    assert '<p class="bad">1 oracle disagreement: see below.</p>' in page
    assert "Oracle disagreements" in page


def test_a_value_better_within_the_tolerance_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_exact(monkeypatch, status="optimal", value=4 * (1 + 5e-7), bound=4 * (1 + 5e-7))
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics=[constant(0)], output=tmp_path)
    assert study.disagreements.empty
    assert study.rows.iloc[1]["gap"] == 0


def table_of(gaps: Sequence[tuple[float, float]], statuses: Sequence[str] | None = None) -> pd.DataFrame:
    """A table as studies make it, with these gaps."""
    statuses = statuses or ["feasible"] * len(gaps)
    records = []
    for number, ((low, high), status) in enumerate(zip(gaps, statuses, strict=True)):
        common = {"problem": "p.q", "source": "generated", "size": 5, "instance": str(number), "disagreement": False}
        exact_status = "optimal" if low == high else "feasible"
        records.append({**common, "algorithm": "exact", "status": exact_status, "seconds": 2.0})
        records.append(
            {
                **common,
                "algorithm": "h",
                "status": status,
                "seconds": float(number),
                "exact_status": exact_status,
                "exact_seconds": 2.0,
                "gap_low": low,
                "gap_high": high,
                # Of optima of 2.
                "difference_low": 2 * low,
                "difference_high": 2 * high,
            }
        )
    return pd.DataFrame(records)


@pytest.mark.parametrize("count", [1, 2, 19, 20, 21, 40, 100, 101])
def test_the_percentile_is_an_observed_gap_that_95_percent_do_not_exceed(count: int) -> None:
    gaps = np.random.default_rng(count).permutation(count) / count
    (row,) = summarize(table_of([(gap, gap) for gap in gaps])).to_dict("records")
    # Counted, not computed: the smallest gap that at least 95 of 100 do not exceed.
    expected = min(gap for gap in gaps if 100 * sum(other <= gap for other in gaps) >= 95 * count)
    if count < 20:  # It would be the worst.
        assert math.isnan(row["gap_p95_low"])
        assert math.isnan(row["gap_p95_high"])
        assert expected == max(gaps)
    else:
        assert row["gap_p95_low"] == row["gap_p95_high"] == expected
    assert row["gap_worst_high"] == max(gaps)
    assert row["gap_mean_low"] == pytest.approx(sum(gaps) / count)
    assert row["instances"] == row["proven"] == row["feasible"] == count
    assert row["median_seconds"] == (count - 1) / 2
    assert row["exact_median_seconds"] == 2.0


def test_percentiles_with_infinite_gaps() -> None:
    for infinite, expected in ((1, 0.5), (2, math.inf)):
        gaps = [(0.0, 0.5)] * (20 - infinite) + [(0.25, math.inf)] * infinite
        (row,) = summarize(table_of(gaps)).to_dict("records")
        assert row["gap_p95_high"] == expected
        assert row["gap_p95_low"] == (0.0 if infinite == 1 else 0.25)
        assert row["gap_mean_high"] == row["gap_worst_high"] == math.inf
        assert row["proven"] == 0


def test_gaps_are_over_feasible_plans_and_counts_over_all() -> None:
    nothing = (math.nan, math.nan)
    table = table_of([(0.5, 0.5), nothing, nothing, nothing], ["feasible", "infeasible", "declined", "failed"])
    (row,) = summarize(table).to_dict("records")
    counts = [row[name] for name in ("instances", "feasible", "infeasible", "declined", "failed")]
    assert counts == [4, 1, 1, 1, 1]
    assert row["gap_mean_low"] == row["gap_worst_high"] == 0.5
    (row,) = summarize(table_of([nothing], ["failed"])).to_dict("records")
    assert math.isnan(row["gap_mean_low"])
    assert math.isnan(row["gap_p95_high"])


def test_differences_say_what_a_gap_to_zero_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_exact(monkeypatch, status="optimal", value=0.0, bound=0.0)
    instances = [one_job_each(4, 6)]
    study = gap_study("aryl.reclaim", seed=1, instances=instances, heuristics={"six": constant(1)}, output=tmp_path)
    row = study.rows.set_index("algorithm").loc["six"]
    assert (row["gap_low"], row["gap_high"]) == (math.inf, math.inf)
    assert (row["difference_low"], row["difference_high"]) == (6, 6)
    (summed,) = study.summary().to_dict("records")
    assert summed["difference_mean_low"] == summed["difference_worst_high"] == 6
    assert study.overview()["difference mean"].tolist() == ["6"]
    assert "difference, mean" in study.report.read_text(encoding="utf-8")


def test_a_mean_is_drawn_where_all_gaps_are_finite() -> None:
    """That of the finite ones alone would be a better heuristic's."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    gaps = {4: [0.1, 0.3], 5: [0.0, math.inf]}
    rows = pd.DataFrame([("aryl.reclaim", "mine", size, gap) for size, some in gaps.items() for gap in some])
    plot_sizes(axes, rows.set_axis(["problem", "algorithm", "size", "gap_high"], axis=1))
    assert axes.lines[0].get_ydata() == pytest.approx([20.0])


def test_what_has_no_plan_is_counted_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_exact(monkeypatch, status="infeasible")
    heuristics = {"none": lambda instance: None}
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4)], heuristics=heuristics, output=tmp_path)
    (row,) = study.summary().to_dict("records")
    assert [row[name] for name in ("instances", "proven", "without_plan", "declined")] == [1, 0, 1, 0]
    assert study.overview()["without plan"].tolist() == [1]
    page = study.report.read_text(encoding="utf-8")
    assert "1 proven to have no plan" in page
    assert "Runs without a feasible plan" not in page
