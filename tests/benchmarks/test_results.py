"""Pages of results hold what was measured: their numbers are computed here once more, by other code."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from benchmarks.results import collection, page, real, times
from benchmarks.results.__main__ import PARTS, app, index
from benchmarks.results.kept import Asked
from formulations import solve
from validation import CATALOGUE
from validation.kinds.collection import load
from validation.pages.render import render

PROBLEM = "afs.two_job"


def cells(text: str) -> list[list[str]]:
    """The rows of all tables of a page, heads and rules included."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def csv_rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def answered(status: str, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {
        "problem": "p.q",
        "heuristic": "h",
        "status": status,
        "proven": low == high,
        "gap_low": low,
        "gap_high": high,
    }


def test_gaps_of_open_instances_are_intervals() -> None:
    answers = [
        answered("feasible", 0.0, 0.0),
        answered("feasible", 0.005, 0.02),
        answered("feasible", 0.5, None),
        answered("declined"),
    ]
    (row,) = page.summarized(answers, ("problem", "heuristic"))
    assert (row["instances"], row["plan"], row["proven"], row["optimal"], row["infinite"]) == (4, 3, 1, 1, 1)
    assert (row["mean_low"], row["mean_high"]) == pytest.approx((0.0025, 0.01))
    assert (row["worst_low"], row["worst_high"]) == (0.5, math.inf)
    assert (row["within_low"], row["within_high"]) == (0.25, 0.5)
    text = render(page.TEMPLATES / "gaps.md.j2", problems={"p.q": [row]}, names=["heuristic"])
    assert "\n### [p.q](../problems/p/q.md)\n\n" in text
    shown = cells(text)
    assert shown[0][1:] == ["instances", "plan", "proven", "optimal", "within 1%", "mean gap", "worst gap", "∞"]
    assert shown[2] == ["`h`", "4", "3", "1", "1", "25% to 50%", "0.25% to 1%", "50% to ∞", "1"]


def test_without_a_plan_there_is_no_gap() -> None:
    (row,) = page.summarized([answered("failed"), answered("declined")], ("heuristic",))
    assert (row["plan"], row["within_low"], row["within_high"]) == (0, 0.0, 0.0)
    assert math.isnan(row["mean_low"])
    assert math.isnan(row["worst_high"])


@pytest.mark.parametrize(
    ("value", "expected"),
    [(110.0, (0.1 / 1.0, 0.375)), (100.0, (0.0, 0.25)), (90.0, (0.0, 0.125))],
)
def test_an_open_record_gives_an_interval(value: float, expected: tuple[float, float]) -> None:
    record = {"name": "n", "sense": "min", "class": "open", "best": {"value": 100.0}, "bound": {"value": 80.0}}
    assert collection.gap(record, value) == pytest.approx(expected)
    low, high = collection.gap({**record, "bound": {"value": None}}, value)
    assert (low, high) == pytest.approx((expected[0], math.inf))
    closed = {**record, "class": "easy", "bound": {"value": 100.0}}
    with pytest.raises(AssertionError, match="beyond the bound"):
        collection.gap(closed, 90.0)


def test_what_was_measured_is_kept_until_the_code_changes(tmp_path: Path) -> None:
    asked = Asked(tmp_path)
    first = asked.once("some/part", lambda: {"a": 1})
    assert asked.once("some/part", lambda: {"a": 2}) == first
    assert first.where["versions"]["highspy"]
    assert len(first.where["load"]) == 2
    told = json.loads((tmp_path / "some" / "part.json").read_text(encoding="utf-8"))
    (tmp_path / "some" / "part.json").write_text(json.dumps({**told, "depends": {}}), encoding="utf-8")
    assert asked.once("some/part", lambda: {"a": 2}).content == {"a": 2}
    assert asked.once("some/part", lambda: {"a": 3}, seed=1).content == {"a": 3}
    assert asked.once("some/part", lambda: {"a": 4}, seed=1).content == {"a": 3}


def test_a_stamp_tells_machine_versions_commit_and_load(tmp_path: Path) -> None:
    kept = Asked(tmp_path).once("part", list)
    kept.where.update(commit="0123456789abcdef (changed)", started="2026-01-02T03:04:05+00:00", load=[0.5, 9.0])
    kept.where["machine"] = {"processor": "A processor", "cores": 2}
    said = " ".join(page.stamp([kept], "python -m benchmarks.results --only part").split())
    assert "Measured 2026-01-02 by `python -m benchmarks.results --only part` at commit 0123456789ab (changed)" in said
    assert "A processor (2 cores, load average 0.5 to 9, that is, beside other programs)" in said
    assert f"HiGHS {kept.where['versions']['highspy']}" in said


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of one problem of the collection, and of its times."""
    folder = tmp_path_factory.mktemp("results")
    asked = ["-o", str(folder / "pages"), "--kept", str(folder / "kept"), "--problem", PROBLEM, "--jobs", "1"]
    said = CliRunner().invoke(app, [*asked, "--only", "collection,times"], catch_exceptions=False)
    assert said.exit_code == 0, said.output
    assert said.output.splitlines() == [f"collection/{PROBLEM}: measured", f"times/{PROBLEM}: measured"]
    again = CliRunner().invoke(app, [*asked, "--only", "collection,times"], catch_exceptions=False)
    assert (again.exit_code, again.output) == (0, "")
    return folder / "pages"


@pytest.mark.slow
def test_the_page_of_the_collection_has_the_gaps(made: Path) -> None:
    """Against plans made in this process, and optima that are solved for, not taken from the records."""
    known = load()
    instances = [known.instance(name) for name, record in known.records.items() if record["problem"] == PROBLEM]
    optima = [float(solve(instance).objective or math.nan) for instance in instances]
    rows = {line[0]: line for line in cells((made / "collection.md").read_text(encoding="utf-8"))[2:]}
    numbers = {row["heuristic"]: row for row in csv_rows((made / "collection.csv").read_text(encoding="utf-8"))}
    heuristics = CATALOGUE[PROBLEM].heuristics
    assert set(numbers) == set(heuristics)
    for name, heuristic in heuristics.items():
        values = [instance.objective(heuristic.function(instance)) for instance in instances]
        gaps = [abs(value - optimum) / optimum for value, optimum in zip(values, optima, strict=True)]
        gaps = [0.0 if gap < 1e-9 else gap for gap in gaps]
        row = rows[f"`{name}`"]
        assert row[:4] == [f"`{name}`", *3 * [str(len(instances))]]
        assert row[4] == str(gaps.count(0.0))
        assert row[5] == f"{sum(gap <= 0.01 for gap in gaps) / len(gaps):.0%}"
        assert row[6] == ("0%" if not any(gaps) else f"{100 * sum(gaps) / len(gaps):.3g}%")
        assert float(numbers[name]["mean_high"]) == pytest.approx(sum(gaps) / len(gaps))
        assert float(numbers[name]["worst_low"]) == float(numbers[name]["worst_high"]) == pytest.approx(max(gaps))


@pytest.mark.slow
def test_the_page_of_times_has_every_algorithm_and_size(made: Path) -> None:
    text = (made / "times.md").read_text(encoding="utf-8")
    entry = CATALOGUE[PROBLEM]
    head, _, *rows = cells(text)
    assert head == ["algorithm", *map(str, entry.sizes)]
    assert [row[0] for row in rows] == ["exact model", *(f"`{name}`" for name in entry.heuristics)]
    assert all(re.fullmatch(r"[\d.]+ (s|ms|µs)", cell) for row in rows for cell in row[1:])
    assert len(csv_rows((made / "times.csv").read_text(encoding="utf-8"))) == len(rows) * len(entry.sizes)
    for picture in re.findall(r"\]\(([^)]*\.svg)\)", text):
        assert (made / picture).read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.slow
def test_real_data_are_a_page_or_none(data: Path, tmp_path: Path) -> None:
    assert real.make(Asked(tmp_path)) is None
    assert real.make(Asked(tmp_path, tmp_path)) is None
    few = [replace(one, sizes=(2,)) for one in real.SOURCES if one.paper == "synergy"]
    with mock.patch.object(real, "SOURCES", few), mock.patch.object(real, "COUNT", 1):
        made = real.make(Asked(tmp_path, data, jobs=2))
    assert made is not None
    rows = csv_rows(made.files["real.csv"])
    assert {row["problem"] for row in rows} == {
        name for name, entry in CATALOGUE.items() if name.startswith("synergy.") and entry.from_trace
    }
    # The table of the sources, and a head and a rule above the rows of each problem.
    assert len(cells(made.text)) == 3 + 2 * made.text.count("\n### ") + len(rows)
    assert "real-synergy.svg" in made.files


def test_a_part_without_data_is_left_out_and_said(tmp_path: Path) -> None:
    out = tmp_path / "pages"
    out.mkdir()
    (out / "real.md").write_text("of an earlier release", encoding="utf-8")
    said = CliRunner().invoke(app, ["-o", str(out), "--kept", str(tmp_path), "--only", "real", "--data", "nowhere"])
    assert said.exit_code == 0, said.output
    assert said.output.startswith("real: left out, because there are no public data in nowhere")
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("wrong", [["--only", "gaps"], ["--problem", "aryl.nothing"], ["--with", "pictures"]])
def test_what_is_asked_wrongly_is_refused(wrong: list[str], tmp_path: Path) -> None:
    said = CliRunner().invoke(app, ["-o", str(tmp_path), *wrong])
    assert said.exit_code == 2
    assert wrong[1] in said.output


def test_the_commands_of_the_pages_need_no_other_option() -> None:
    assert [one.name for one in get_command(app).params if one.required] == []


def test_pages_of_some_problems_only_are_written_elsewhere() -> None:
    said = CliRunner().invoke(app, ["--problem", PROBLEM])
    assert said.exit_code == 2
    assert "with -o" in said.output


def test_open_optima_have_no_time() -> None:
    row = {"problem": PROBLEM, "algorithm": "exact model", "size": 2, "seconds": 5.0, "open": 2}
    assert times._cell(row) == "2 of 3 open"
    assert times._cell({**row, "open": 0, "seconds": None}) == "no plan"
    assert times._cell({**row, "open": 0, "seconds": 0.25}) == "250 ms"


def test_the_index_leads_to_the_pages_that_there_are() -> None:
    with_data, without = index(dict.fromkeys(PARTS, page.Page(""))), index({PARTS[0]: page.Page("")})
    for part in PARTS:
        assert f"]({part.name}.md)" in with_data
        assert f"`python -m benchmarks.results --only {part.name}`" in with_data
    assert re.findall(r"\]\((\w+)\.md\)", without) == [PARTS[0].name]
    assert f":hidden:\n\n{PARTS[0].name}\n```" in without
