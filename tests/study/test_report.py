"""Studies: the report."""

import base64
import json
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import instances
from validation import cli, gap_study
from validation.study.report import finish

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
    assert not re.search(r"<(script|link|iframe|object)\b|@import|url\(", page)
    sources = re.findall(r'src="([^"]*)"', page)
    # Four pictures of gaps and times for each problem, and one of the worst instance.
    assert len(sources) == 2 * 5
    for source in sources:
        kind, _, content = source.partition(",")
        assert kind == "data:image/svg+xml;base64"
        picture = base64.b64decode(content, validate=True).decode()
        assert "<svg" in picture
        assert all(link.startswith("#") for link in re.findall(r'href="([^"]*)"', picture))
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


@pytest.mark.usefixtures("pictures")
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
    assert study.report.read_text(encoding="utf-8").count("data:image/svg+xml") == 4


@pytest.mark.usefixtures("pictures")
def test_a_report_of_nothing_and_of_failures_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.study.cells.solve_exactly", lambda *_, **__: 1 / 0)
    study = gap_study(**SMALL, heuristics=[raises], output=tmp_path)
    assert study.metadata["failed"] == 6
    assert "ZeroDivisionError" in study.report.read_text(encoding="utf-8")
    (tmp_path / "rows.jsonl").unlink()
    empty = finish(tmp_path)
    assert empty.rows.empty
    assert "0 of 6 runs have ended" in empty.report.read_text(encoding="utf-8")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "results.parquet"), empty.rows)
