"""Studies in the hand: loaded, drawn, written for papers; every heuristic by one word; failures told."""

import io
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from validation import Study, StudyError, gap_study
from validation.kinds.study.cases import choose_algorithms

from .studies import FORKED, SMALL, first_servers, raises, returns_nothing, stub_exact

pytestmark = FORKED


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Study:
    from benchmarks.faults.studies import without_pictures

    asked: dict[str, Any] = {"sizes": [4, 6], "heuristics": ["gpu_fraction", "random"]}
    with without_pictures():
        return gap_study(**{**SMALL, **asked}, sweep={"spread": [0.2, 0.8]}, output=tmp_path_factory.mktemp("made"))


def test_a_study_is_loaded_as_it_was_made(made: Study) -> None:
    before = {path: path.stat() for path in made.directory.rglob("*") if path.is_file()}
    loaded = Study.load(str(made.directory))
    pd.testing.assert_frame_equal(loaded.rows, made.rows)
    pd.testing.assert_frame_equal(loaded.summary(), made.summary())
    assert (loaded.metadata, loaded.report, repr(loaded)) == (made.metadata, made.report, repr(made))
    after = {path: path.stat() for path in made.directory.rglob("*") if path.is_file()}
    assert [(path, at.st_mtime_ns) for path, at in after.items()] == [
        (path, at.st_mtime_ns) for path, at in before.items()
    ]


def test_an_unfinished_study_says_so(made: Study, tmp_path: Path) -> None:
    os.link(made.directory / "study.json", tmp_path / "study.json")
    assert repr(Study.load(tmp_path)).startswith(f"Study of 0 of 36 cells in {tmp_path}, unfinished\n")
    log = (made.directory / "rows.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "rows.jsonl").write_bytes(b"".join(log[:9]) + b'{"key"')
    partly = Study.load(tmp_path)
    assert (len(partly.rows), partly.metadata["finished"]) == (9, False)
    assert "9 of 36 cells" in partly._repr_html_()
    assert "unfinished" in partly._repr_html_()


def test_what_is_no_study_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(StudyError, match=re.escape(f"{folder} holds no study: there is no study.json in it")):
            Study.load(folder)


def test_what_the_page_shows_is_so(made: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Path(__file__).parents[4] / "docs" / "studies.md"
    codes = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "study").symlink_to(made.directory)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for code in codes:
        exec(code.replace('"gandiva", "afs"', '"gpu_fraction", "random"'), names)
    assert (tmp_path / "gaps.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("kind", ["gaps", "sizes", "times", "profile", "spread"])
def test_a_study_is_drawn(made: Study, kind: str) -> None:
    before = (dict(mpl.rcParams), mpl.get_backend(), mpl.is_interactive())
    axes = made.plot(kind)
    legend = axes.get_legend()
    assert legend is not None
    words = {text.get_text().partition(",")[0] for text in legend.get_texts()}
    assert {"gpu_fraction", "random"} <= words
    assert axes.get_xlabel() == {"gaps": "gap x, %", "profile": "time t", "spread": "spread"}.get(kind, "num_servers")
    assert (dict(mpl.rcParams), mpl.get_backend(), mpl.is_interactive()) == before


def test_a_drawing_is_a_file_for_a_paper(made: Study) -> None:
    axes = Figure().add_subplot()
    assert made.plot("gaps", ax=axes) is axes
    for kind, begins in (("pdf", b"%PDF"), ("svg", b"<?xml")):
        file = io.BytesIO()
        axes.figure.savefig(file, format=kind)
        assert file.getvalue().startswith(begins)


@pytest.mark.parametrize("kind", ["gaps", "sizes", "times", "profile", "spread"])
def test_in_a_column_of_a_paper_nothing_is_cut(kind: str, made: Study) -> None:
    axes = made.plot(kind, width=3.4)
    figure = axes.get_figure(root=True)
    assert figure is not None
    assert figure.get_figwidth() == 3.4
    figure.draw_without_rendering()
    # All that is drawn, in inches.
    box = figure.get_tightbbox()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= 3.4
    assert box.y1 <= figure.get_figheight()


def test_letters_of_a_figure_are_truetype(made: Study) -> None:
    before = dict(mpl.rcParams)
    axes = made.plot("gaps", width=3.4)
    for kind, type_3 in (("pdf", b"/Type3"), ("ps", b"/FontType 3")):
        file = io.BytesIO()
        axes.get_figure(root=True).savefig(file, format=kind)  # type: ignore[union-attr]
        assert type_3 not in file.getvalue()
        assert b"DejaVuSans" in file.getvalue()
    assert dict(mpl.rcParams) == before


def test_a_notebook_shows_a_drawing(made: Study) -> None:
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython comes with the test extra")
    axes = made.plot("gaps")
    for shown in (axes, axes.figure):
        data, _ = formatters.DisplayFormatter().format(shown)
        assert data["image/png"].startswith(b"\x89PNG")


def test_a_caption_says_what_is_drawn_and_by_what(made: Study) -> None:
    said = made.caption("gaps")
    assert said.startswith("Distribution of gaps of aryl.reclaim. Higher is better; ")
    exact = made.rows[made.rows["algorithm"] == "exact"]
    assert f" {len(exact)} instances, {(exact['status'] == 'optimal').sum()} of them with a proven optimum. " in said
    assert " gap_study(problems=['aryl.reclaim'], " in said
    assert said.endswith(f", HiGHS {made.metadata['versions']['highspy']}.")
    assert made.caption("spread").startswith("Gap against spread of aryl.reclaim. Mean gap (line)")
    command = replace(made, metadata={**made.metadata, "command": "/somewhere/bin/optgap study aryl.reclaim --seed 1"})
    assert " optgap study aryl.reclaim --seed 1; scheduling-formulations " in command.caption("times")
    with pytest.raises(StudyError, match="kind: got 'gap' "):
        made.caption("gap")
    with pytest.raises(StudyError, match="width: got 0, must be inches"):
        made.plot(width=0)


def test_what_cannot_be_drawn_is_told(made: Study, tmp_path: Path) -> None:
    for call, words in (
        (
            {"kind": "gap"},
            "kind: got 'gap' (did you mean 'gaps'?), must be one of 'gaps', 'sizes', 'times', 'profile', 'spread'",
        ),
        (
            {"problem": "aryl.recliam"},
            "problem: got 'aryl.recliam' (did you mean 'aryl.reclaim'?), there are aryl.reclaim",
        ),
    ):
        with pytest.raises(StudyError) as caught:
            made.plot(**call)
        assert str(caught.value) == words
    os.link(made.directory / "study.json", tmp_path / "study.json")
    with pytest.raises(StudyError, match="no run has ended that could be drawn"):
        Study.load(tmp_path).plot()


def test_of_several_problems_one_is_drawn(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"seed": 1, "sizes": [3], "count": 1, "heuristics": ["random", "marginal_greedy"]}
    study = gap_study(["aryl.reclaim", "aryl.elastic_allocation"], **asked, output=tmp_path)
    with pytest.raises(StudyError, match=r"name the one to be drawn, there are aryl.reclaim, aryl.elastic_allocation"):
        study.plot("gaps")
    legend = study.plot("gaps", problem="aryl.elastic_allocation").get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["marginal_greedy"]


def test_all_and_mine(tmp_path: Path) -> None:
    mine = choose_algorithms(["aryl.reclaim", "gavel.makespan"], ["all", first_servers], "highs", 60)
    plain = choose_algorithms(["aryl.reclaim", "gavel.makespan"], None, "highs", 60)
    for problem, found in mine.items():
        assert [one.name for one in found] == [*(one.name for one in plain[problem]), "first_servers"]
        # They are those of a study of the catalogue's own, and their rows stand for both.
        assert found[:-1] == plain[problem]


def test_what_counts_as_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heuristics = {"raises": raises, "nothing": returns_nothing, "fine": first_servers}
    study = gap_study(**{**SMALL, "count": 1}, heuristics=heuristics, output=tmp_path / "one")
    assert list(study.failures["algorithm"]) == ["raises", "nothing"]
    assert study.stopped.empty
    # An exact solve that is stopped at its limit has not failed, one that died has.
    for reason, failed in (("time limit: stopped after 70 s", False), ("the process died: killed by SIGSEGV", True)):
        stub_exact(monkeypatch, status="failed", reason=reason)
        study = gap_study(**{**SMALL, "count": 1}, heuristics=[first_servers], output=tmp_path / str(failed))
        assert list(study.failures["algorithm"]) == ["exact"] * failed
        assert list(study.stopped["algorithm"]) == ["exact"] * (not failed)
        words = ("1 runs failed.", ", 1 failed") if failed else ("0 runs failed, 1 exact", ", 1 stopped at a limit")
        assert words[0] in study.report.read_text(encoding="utf-8")
        assert words[1] in repr(study).splitlines()[0]
    # What breaks a rule is an answer, and counts as one that is wrong.
    assert study.metadata["failed"] == 1
