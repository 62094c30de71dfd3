"""The command line: compare."""

import json
from pathlib import Path

import pytest

from benchmarks.faults.studies import without_pictures
from validation import Study, gap_study

from .commands import Optgap


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two studies of the same instances, of which one has more heuristics and the other more instances."""
    folder = tmp_path_factory.mktemp("studies")
    with without_pictures():
        for name, heuristics, count in (("a", ["random"], 3), ("b", ["random", "gpu_fraction"], 2)):
            gap_study(
                "aryl.reclaim", seed=1, sizes=[4], count=count, heuristics=heuristics, jobs=1, output=folder / name
            )
    return folder


def test_two_studies_are_compared(optgap: Optgap, studies: Path, tmp_path: Path) -> None:
    said = optgap("compare", studies / "a", studies / "b", "-o", "compared.html")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0].startswith(f"A  {studies / 'a'}: scheduling-formulations ")
    (row,) = [line.split() for line in lines if line.startswith("random")]
    assert row[1:4] == ["2", "0", "0"]
    assert row[-3:] == ["0", "2", "0"]
    assert "only in A: 1 instance" in lines
    assert "only in B: 1 heuristic: gpu_fraction" in lines
    assert lines[-1] == "page: compared.html"
    assert (tmp_path / "compared.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_comparison_is_json(optgap: Optgap, studies: Path) -> None:
    said = optgap("compare", studies / "a", studies / "b", "--json")
    told = json.loads(said.out)
    assert (said.code, said.err) == (0, "")
    assert told["heuristics"][0]["heuristic"] == "random"
    assert told["heuristics"][0]["same"] == 2
    assert told["b"]["asked"]["count"] == 2


def test_the_heuristics_of_one_study_are_compared(optgap: Optgap, studies: Path) -> None:
    said = optgap("compare", studies / "b")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert [line.split()[:4] for line in lines[:2]] == [["aryl.reclaim"], ["A", "B", "so", "pairs"]]
    assert sorted(lines[2].split()[:2]) == ["gpu_fraction", "random"]
    assert lines[2].split()[2:7] == ["too", "few", "to", "tell", "2"]
    assert "percentage points" in lines[3]
    chosen = optgap("compare", studies / "b", "--heuristic", "gpu_fraction", "--heuristic", "random", "--json")
    (row,) = json.loads(chosen.out)["comparisons"]
    assert (row["a"], row["b"], row["pairs"], row["level"], row["verdict"]) == (
        "gpu_fraction",
        "random",
        2,
        0.95,
        "few",
    )
    study = Study.load(studies / "b").compare("gpu_fraction", "random")
    assert row == json.loads(json.dumps(study.to_dict()))["comparisons"][0]


def test_disagreements_are_told_loudly(optgap: Optgap, studies: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    for file in (studies / "a").iterdir():
        if file.name != "rows.jsonl" and file.is_file():
            (wrong / file.name).write_bytes(file.read_bytes())
    rows = [json.loads(line) for line in (studies / "a" / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    first = next(row for row in rows if row["algorithm"] == "exact")
    first["value"], first["bound"] = first["value"] + 5, first["bound"] + 5
    (wrong / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    said = optgap("compare", studies / "b", wrong)
    assert said.code == 1
    assert "oracle disagreement: aryl.reclaim, instance " in said.err
    assert optgap("compare", studies / "b", wrong, "--json").code == 1


def test_a_study_that_contradicts_itself_is_told_loudly(
    optgap: Optgap, studies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.load(studies / "b")
    study.rows["disagreement"] = study.rows["instance"] == study.rows["instance"].iloc[0]
    monkeypatch.setattr(Study, "load", lambda *_: study)
    said = optgap("compare", studies / "b")
    assert said.code == 1
    assert "oracle disagreements on 1 instances, which are in no number" in said.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a", "nowhere"), "nowhere"),
        (("a", "a", "-o", "x/y.html"), "cannot write to x/y.html: No such file or directory"),
        (("a",), "no two heuristics were run on the same instance"),
        (("a", "--heuristic", "random"), "heuristics: got random, must be at least two, each once"),
        (
            ("a", "--heuristic", "randon", "--heuristic", "random"),
            "got 'randon' (did you mean 'random'?), there are random",
        ),
        (("a", "-o", "x.html"), "output: a page is of two studies"),
        (("a", "a", "--heuristic", "random"), "heuristic: of one study"),
    ],
)
def test_bad_input_is_one_line_and_2(
    optgap: Optgap, studies: Path, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    (tmp_path / "a").symlink_to(studies / "a")
    said = optgap("compare", *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("optgap: ")
    assert words in said.err
    assert len(said.err.splitlines()) == 1
