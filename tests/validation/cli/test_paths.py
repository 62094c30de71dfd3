"""The command line: odd paths, which are used as they are or refused in one line."""

import os
from pathlib import Path

import pytest

import instances
from benchmarks.faults.tally import FAULTS
from validation.kinds.study.cases import generate

from .commands import Optgap

STUDY = ("study", "aryl.reclaim", "--heuristic", "server_fraction", "--sizes", "4", "--count", 1, "--jobs", 1)


@pytest.mark.parametrize("name", ["[x]", "[/]", "a 'b' \"c\"", ":smile:", "日本", os.fsdecode(b"\xff\xfe")])
def test_odd_names_of_directories(optgap: Optgap, name: str, tmp_path: Path) -> None:
    said = optgap("generate", "aryl.reclaim", "--seed", 1, "--size", 6, "-o", f"{name}/in")
    assert said.code == 0, said.err
    (made,) = (tmp_path / name / "in").iterdir()
    assert instances.load(made) == generate("aryl.reclaim", 1, 6)
    assert "status     optimal" in optgap("solve", made).out
    said = optgap(*STUDY, "--instances", f"{name}/in", "--seed", 1, "-o", f"{name}/study")
    assert said.code == 0, said.err
    assert said.out.splitlines()[-1] == f"report: {name}/study/report.html".encode(errors="backslashreplace").decode()
    assert (tmp_path / name / "study" / "report.html").exists()
    again = optgap("report", f"{name}/study")
    assert (again.code, again.out) == (0, said.out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "a\0b"), "must have no zero byte in it"),
        (("generate", "aryl.reclaim", "--seed", 1, "-o", "a\0b"), "must have no zero byte in it"),
        (("generate", "aryl.reclaim", "--seed", 1, "--size", 10**12), "must be at most 10,000,000"),
        (("solve", "in"), "in: Is a directory"),
        (("solve", "in/" + "x" * 300), "x: File name too long"),
        ((*STUDY, "--seed", 1, "--instances", "loop", "-o", "study"), "instances: loop is not a directory"),
        ((*STUDY, "--seed", 1, "-o", "loop"), "cannot write to loop"),
        ((*STUDY, "--seed", 1, "-o", "study", "--config", "in"), "in: Is a directory"),
        (("report", "loop"), "loop"),
        (("claims", "aryl.two_job", "--instances", 1, "-o", "loop"), "cannot write to loop"),
        (("claims", "aryl.two_job", "--instances", 1, "-o", "none/page.md"), "none/page.md', must be a directory"),
    ],
)
def test_paths_that_cannot_be_used(optgap: Optgap, tmp_path: Path, arguments: tuple[object, ...], words: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    said = optgap(*arguments)
    assert said.code == 2
    (line,) = said.err.splitlines()
    assert line.startswith("optgap: ")
    assert words in line
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in", "loop"]


def test_names_as_long_as_may_be_are_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    instances.save(generate("aryl.reclaim", 1, 6), path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["x" * 255]


def test_commands_and_odd_names() -> None:
    tally = FAULTS["files.paths"].harm(3, 12)
    assert tally.wrong == []
    assert tally.fine
    assert {"refused", "done"} <= tally.outcomes.keys()
