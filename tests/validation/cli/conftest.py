"""Fixtures of the command line."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import instances
from benchmarks.faults.studies import without_pictures
from instances.aryl import reclaim
from validation import cli

from .commands import MINE, MISSING, Optgap, Said


@pytest.fixture
def optgap(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Iterator[Optgap]:
    """Runs a command in this process, with ``tmp_path`` as the current directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["optgap", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err.removeprefix(MISSING))

    with without_pictures():
        yield run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "six.json"
    instances.save(reclaim.six_servers(), path)
    return path


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the user's in the current directory."""
    (tmp_path / "heuristics_of_mine.py").write_text(textwrap.dedent(MINE), encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield "heuristics_of_mine"
    sys.modules.pop("heuristics_of_mine", None)
