"""The command line: modules of the user's that misbehave as soon as they are imported."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from instances.aryl.reclaim import Reclaim
from validation import catalogue

from .commands import Optgap

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a module's process takes a while to start")

MODULE = """
import os, sys
from heuristics.aryl.reclaim import server_fraction as honest
from instances.aryl.reclaim import Reclaim
from validation import strategy as made

def strategy():
    return made("aryl.reclaim", max_servers=2)

"""
SMALL = ("--sizes", 5, "--count", 1, "--seed", 1, "-o", "made")
COMMANDS = {
    "study": ("study", "aryl.reclaim", "--heuristic", "{}:honest", *SMALL),
    "solve": ("solve", "six.json", "--heuristic", "{}:honest", "--json"),
    "check": ("check", "aryl.reclaim", "{}:honest", "--max-examples", 1, "-o", "made"),
    "hunt": ("hunt", "aryl.reclaim", "{}:honest", "--seed", 1, "--budget", "2s", "--jobs", 1, "-o", "made"),
    "check a strategy": (
        *("check", "aryl.reclaim", "server_fraction", "--strategy", "{}:strategy"),
        *("--max-examples", 1, "-o", "made"),
    ),
    "hunt a strategy": (
        *("hunt", "aryl.reclaim", "server_fraction", "--strategy", "{}:strategy"),
        *("--seed", 1, "--budget", "2s", "--jobs", 1, "-o", "made"),
    ),
    "load": ("--load", "{}", "solve", "six.json", "--json"),
}
ENDS = {
    "os._exit(0)": "the process died: it exited with code 0",
    "sys.exit(0)": "it exits: 0",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "raise ValueError('\\x1b[2J' * 10_000)": r"\x1b[2J\x1b[2J",
    "while True: pass": "time limit: stopped after 1 s",
}


@pytest.fixture
def module(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A module that ends with the test's line; forgotten afterwards."""
    name = f"misbehaves_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(f"{MODULE}\n{request.param}\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield name
    sys.modules.pop(name, None)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("module", ENDS, indirect=True)
def test_a_module_that_ends_the_process_or_holds_it_up_is_refused(
    command: str, module: str, optgap: Optgap, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (tmp_path / f"{module}.py").read_text(encoding="utf-8").splitlines()[-1]
    if "while" in line:
        monkeypatch.setattr(catalogue, "IMPORT_SECONDS", 1.0)
    said = optgap(*(str(word).format(module) for word in COMMANDS[command]))
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("optgap: cannot import")
    assert ENDS[line] in said.err
    assert (said.err.count("\n"), len(said.err) < 2500) == (1, True)
    assert not (tmp_path / "made").exists()


LOUD = "print('owned' * 10**6); sys.stdout.flush(); os.write(1, b'owned' * 10**6)"
PATCHES = "Reclaim.objective = lambda *_: -1.0; Reclaim.violations = lambda *_: []"


@pytest.mark.parametrize("module", [f"{LOUD}; {PATCHES}"], indirect=True)
def test_a_module_that_floods_and_changes_the_judge_is_heard_by_nobody(
    module: str, optgap: Optgap, file: Path, tmp_path: Path
) -> None:
    judged = Reclaim.objective
    said = optgap("solve", file.name, "--heuristic", f"{module}:honest", "--json")
    assert (
        json.loads(said.out)["objective"]
        == json.loads(optgap("solve", file.name, "--heuristic", "server_fraction", "--json").out)["objective"]
    )
    studied = optgap(*(str(word).format(module) for word in COMMANDS["study"]))
    assert (studied.code, "owned" in studied.out + studied.err) == (0, False)
    rows = [json.loads(line) for line in (tmp_path / "made" / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["status"] for row in rows} == {"optimal", "feasible"}
    assert min(row["value"] for row in rows) >= 0
    assert Reclaim.objective is judged


@pytest.mark.parametrize("module", ["print('owned' * 10**6)"], indirect=True)
def test_what_a_loaded_module_prints_is_not_the_output(module: str, optgap: Optgap, file: Path) -> None:
    said = optgap("--load", module, "solve", file.name, "--json")
    assert json.loads(said.out)["status"] == "optimal"
