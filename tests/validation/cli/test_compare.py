"""The command line: compare."""

import json
from pathlib import Path

import pytest

from benchmarks.faults.studies import without_pictures
from validation import gap_study

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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a", "nowhere"), "nowhere"),
        (("a", "a", "-o", "x/y.html"), "cannot write to x/y.html: No such file or directory"),
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
