"""Studies: the report."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import instances
from validation import cli, gap_study
from validation.kinds.study.report import finish

from .studies import (
    FORKED,
    SMALL,
    constant,
    first_servers,
    one_job_each,
    raises,
    returns_no_servers,
    returns_nothing,
    stub_exact,
)

pytestmark = FORKED


@pytest.mark.slow
@pytest.mark.usefixtures("pictures")
def test_the_report_stands_alone(tmp_path: Path) -> None:
    study = gap_study(
        ["aryl.reclaim", "aryl.elastic_allocation"],
        seed=1,
        sizes=[4, 8],
        count=3,
        heuristics={
            "<b>bold</b>": first_servers,
            "server_fraction": "server_fraction",
            "random": "random",
            "raises": raises,
            "none": returns_no_servers,
            "marginal_greedy": "marginal_greedy",
        },
        output=tmp_path,
    )
    page = study.report.read_text(encoding="utf-8")
    assert "http://" not in page
    assert "https://" not in page
    assert not re.search(r"<(link|iframe|object|img)\b|@import|url\((?!#)|\bsrc=", page)
    worse = study.rows[study.rows["gap_high"] > 0].groupby("problem")["algorithm"].nunique()
    # Four plots for each problem, and both plans where each heuristic is worst.
    assert page.count("<svg ") == 2 * 4 + worse.sum()
    assert "Not drawn" not in page
    names = re.findall(r' id="([^"]*)"', page)
    assert len(names) == len(set(names))
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(names)
    links = re.findall(r'href="([^"]*)"', page)
    files = {link for link in links if not link.startswith("#")}
    assert {"results.parquet", "metadata.json"} < files
    instance_files = files - {"results.parquet", "metadata.json"}
    assert instance_files
    for link in files:
        assert (tmp_path / link).is_file()
    for link in instance_files:
        assert instances.load(tmp_path / link).digest.startswith(Path(link).stem)
    for anchor in {link[1:] for link in links} - {link[1:] for link in files}:
        assert f'id="{anchor}"' in page
    # A name is text, never markup.
    assert "<b>bold" not in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert "KeyError" in page
    assert "demand by 1" in page


def test_the_worst_instances_can_be_seen_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = gap_study(**{**SMALL, "count": 6}, heuristics=["random", first_servers], output=tmp_path)
    page = study.report.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"<code>(optgap solve [^<]*)</code>", page)
    assert commands
    assert all("first_servers" not in command for command in commands)
    values = study.rows.set_index(["file", "algorithm"])["value"]
    for command in commands:
        optgap, *arguments = command.split()
        assert optgap == "optgap"
        monkeypatch.setattr(sys, "argv", [optgap, *arguments, "--json"])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code
        assert json.loads(capsys.readouterr().out)["objective"] == values[arguments[1], "random"]


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(
    "said", [{}, {"status": "feasible", "value": 4.0, "bound": 3.0}, {"status": "optimal", "value": 4.0, "bound": 4.0}]
)
def test_pictures_of_anything(said: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_exact(monkeypatch, **said)
    heuristics = {"four": constant(0), "six": constant(1), "raises": raises, "none": returns_nothing}
    study = gap_study("aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics=heuristics, output=tmp_path)
    assert study.report.read_text(encoding="utf-8").count("Distribution of gaps of aryl.reclaim.") == 1


@pytest.mark.usefixtures("pictures")
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({}, "<td>no bound, best found 4</td>"),
        ({"status": "feasible", "value": 6.0, "bound": 3.0, "plan": {"servers": [1]}}, "<td>between 3 and 4</td>"),
    ],
)
def test_nothing_passes_for_the_best_that_is_not(
    said: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exact side was stopped, and a heuristic found a better plan than its own."""
    stub_exact(monkeypatch, **said)
    monkeypatch.setattr("validation.kinds.study.report.problem_pictures", lambda *_: [])
    study = gap_study(
        "aryl.reclaim", seed=1, instances=[one_job_each(4, 6)], heuristics={"four": constant(0)}, output=tmp_path
    )
    page = study.report.read_text(encoding="utf-8")
    assert words in page
    title = "The plan of four beside the exact side&#39;s one, on the same instance."
    assert (title in page) == ("plan" in said)


@pytest.mark.usefixtures("pictures")
def test_a_report_of_nothing_and_of_failures_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.kinds.study.cells.solve_exactly", lambda *_, **__: 1 / 0)
    study = gap_study(**SMALL, heuristics=[raises], output=tmp_path)
    assert study.metadata["failed"] == 6
    assert "ZeroDivisionError" in study.report.read_text(encoding="utf-8")
    (tmp_path / "rows.jsonl").unlink()
    empty = finish(tmp_path)
    assert empty.rows.empty
    assert "0 of 6 runs have ended" in empty.report.read_text(encoding="utf-8")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "results.parquet"), empty.rows)


@pytest.mark.usefixtures("pictures")
def test_each_heuristic_has_its_worst_instance_up_to_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_exact(monkeypatch, status="optimal", value=4.0, bound=4.0, plan={"servers": [0]})
    monkeypatch.setattr("validation.kinds.study.report.problem_pictures", lambda *_: [])
    heuristics = {"six": constant(1), "eight": constant(2), "four": constant(0)}
    instance = one_job_each(4, 6, 8)
    study = gap_study("aryl.reclaim", seed=1, instances=[instance], heuristics=heuristics, output=tmp_path)

    def worst() -> list[str]:
        """What stands under each heuristic's name."""
        page = finish(study.directory).report.read_text(encoding="utf-8")
        assert re.findall(r'href="#(aryl.reclaim-worst-\d)">([^<]*)<', page) == [
            ("aryl.reclaim-worst-2", "50%"),
            ("aryl.reclaim-worst-1", "100%"),
        ]
        folded = re.findall(
            r"<details><summary>([^<]*)</summary><div id=\"(.*?)\">(.*?)</div></details>", page, re.DOTALL
        )
        assert [(name, place) for name, place, _ in folded] == [
            ("eight: a gap of 100% on an instance of size 3", "aryl.reclaim-worst-1"),
            ("six: a gap of 50% on an instance of size 3", "aryl.reclaim-worst-2"),
        ]
        return [content for *_, content in folded]

    assert ["<svg" in content for content in worst()] == [True, True]
    monkeypatch.setattr("validation.kinds.study.report.MOST_DRAWN", 1)
    assert [content.partition("<svg")[0][:60] for content in worst()][1] == (
        "<p>Not drawn: a report has 1 such pictures at most.</p>"
    )
    monkeypatch.setattr("validation.kinds.study.report.LARGEST_DRAWN", 2)
    said = "<p>Not drawn: of an instance of more than size 2 a picture says little.</p>"
    assert worst() == [said, said]


def test_heuristics_are_compared_two_by_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {**SMALL, "count": 8, "heuristics": ["gpu_fraction", "random", "server_fraction"]}
    study = gap_study(**told, output=tmp_path)
    page = study.report.read_text(encoding="utf-8")
    section = page.partition('id="aryl.reclaim-beside"')[2].partition("<section")[0]
    assert "corrected for the\n3 comparisons" in section
    overview = study.compare(problem="aryl.reclaim").overview()
    for row in overview.to_dict("records"):
        for name in ("A", "B", "pairs", "B less A", "B over A", "better", "same", "worse", "so"):
            assert f">{row[name]}</td>" in section
    # A report does not take longer than its study for it.
    monkeypatch.setattr("validation.kinds.study.report.MOST_PAIRED", 10)
    finish(tmp_path)
    assert "<code>optgap compare DIR</code>" in study.report.read_text(encoding="utf-8")


def test_one_heuristic_is_compared_with_none(tmp_path: Path) -> None:
    study = gap_study(**SMALL, heuristics=["random"], output=tmp_path)
    assert "two by two" not in study.report.read_text(encoding="utf-8")
