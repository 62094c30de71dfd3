"""The command line: check and hunt."""

import json
import os
import re
import signal
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from ...processes import eventually
from .commands import MAIN, MINE, MISSING, Optgap


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("aryl.reclaim", "mine:first"),
        ("mine:first", "--problem", "aryl.reclaim"),
        ("aryl.reclaim", "./mine.py:first"),
        ("aryl.reclaim", "server_fraction"),
    ],
)
def test_problem_and_heuristic_in_either_order(names: tuple[str, ...], optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(textwrap.dedent(MINE), encoding="utf-8")
    checked = optgap("check", *names, "--max-examples", 5)
    assert checked.code == 0, checked.err
    assert " on aryl.reclaim" in checked.out
    hunted = optgap("hunt", *names, "--seed", 1, "--budget", "8s", "--jobs", 1)
    assert hunted.code == 0, hunted.out
    path = re.search(r"^again +optgap solve (\S+)", hunted.out, re.MULTILINE)
    assert path is not None
    assert "status     optimal" in optgap("solve", path.group(1)).out


def test_a_strategy_of_ones_own_on_the_command_line(optgap: Optgap, tmp_path: Path) -> None:
    lines = "from validation import strategy\ndef two(): return strategy('aryl.reclaim', max_servers=2)\nthree = 3\n"
    (tmp_path / "drawn.py").write_text(lines, encoding="utf-8")
    said = optgap("check", "aryl.reclaim", "server_fraction", "--max-examples", 5, "--strategy", "drawn:two")
    assert said.code == 0, said.err
    bad = optgap("check", "aryl.reclaim", "server_fraction", "--strategy", "drawn:three")
    assert (bad.code, bad.err) == (2, "optgap: --strategy: 'drawn:three' is no Hypothesis strategy, but int\n")


@pytest.mark.slow
def test_searches_that_end_early_are_told(optgap: Optgap, tmp_path: Path) -> None:
    crashing = """
    from heuristics.aryl.reclaim import server_fraction
    def crashing(instance):
        if instance.num_servers in (3, 4, 5, 6):
            raise RuntimeError(f"{instance.num_servers} servers")
        return server_fraction(instance)
    """
    (tmp_path / "crashes.py").write_text(textwrap.dedent(crashing), encoding="utf-8")
    hunted = optgap(
        "hunt", "aryl.reclaim", "crashes:crashing", "--seed", 1, "--budget", "6s", "--jobs", 1, "-o", "found"
    )
    # The witness is saved, and the code says that the heuristic failed somewhere.
    assert hunted.code == 3, hunted.err
    (path,) = (tmp_path / "found").glob("*.json")
    failures = json.loads(path.read_text(encoding="utf-8"))["failures"]
    assert failures
    assert re.findall("^ended early (.*)$", hunted.out, re.MULTILINE) == failures


@pytest.mark.slow
def test_an_interrupted_hunt_saves_what_it_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(textwrap.dedent(MINE), encoding="utf-8")
    command = [*MAIN, "hunt", "aryl.reclaim", "mine:first", "--seed", "1", "--budget", "300s", "-o", "found"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "worst gap" in line and "worst gap 0%" not in line:
                process.send_signal(signal.SIGINT)
                break
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted: the instance is as it was found" in out
    assert len(list((tmp_path / "found").glob("*.json"))) == 1


def test_a_heuristic_that_holds_up_the_check(optgap: Optgap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "holds_up.py").write_text("def heuristic(instance):\n    while True: pass\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = optgap("check", "aryl.reclaim", "holds_up:heuristic", "--time-limit", 2)
    assert (found.code, found.out) == (1, "")
    assert found.err == "optgap: holds_up:heuristic: time limit: stopped after 2 s\n"
    assert not (tmp_path / "failures").exists()


def test_a_heuristic_that_ends_its_process_fails(
    optgap: Optgap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "import os\n\n\ndef heuristic(instance):\n    os._exit(0)\n"
    (tmp_path / "ends_the_check.py").write_text(body, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = optgap("check", "aryl.reclaim", "ends_the_check:heuristic", "--max-examples", 2, "--json")
    assert (found.code, found.err) == (1, "")
    failed = [one for one in json.loads(found.out)["results"] if one["status"] == "failed"]
    assert {one["reason"] for one in failed} == {"the process died: it exited with code 0"}
    assert all((tmp_path / one["path"]).exists() for one in failed)


def test_a_reader_that_goes_away_ends_a_check_without_a_word(tmp_path: Path) -> None:
    command = [*MAIN, "check", "aryl.reclaim", "server_fraction", "--max-examples", "2"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read().removeprefix(MISSING) == ""
    assert process.returncode == 1


def test_an_interrupted_check_tells_what_had_been_checked(tmp_path: Path) -> None:
    body = """
        import tempfile, time
        from pathlib import Path
        from heuristics.aryl.reclaim import server_fraction
        asked = []
        def slow(instance):
            asked.append(instance)
            if len(asked) > 40:
                Path(tempfile.gettempdir(), "going").touch()
                time.sleep(1)
            return server_fraction(instance)
    """
    (tmp_path / "mine.py").write_text(textwrap.dedent(body), encoding="utf-8")
    command = [*MAIN, "check", "aryl.reclaim", "mine:slow", "--max-examples", "10"]
    there: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, "TMPDIR": str(tmp_path)}}
    with subprocess.Popen(command, **there, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: any(tmp_path.rglob("going")), meanwhile=process)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "passed           returns_a_plan" in out
    assert err.removeprefix(MISSING) == "optgap: interrupted; what had been checked is above\n"


def test_a_failure_that_the_problem_no_longer_reads_is_replaced(optgap: Optgap, mine: str, tmp_path: Path) -> None:
    path = tmp_path / "failures" / "aryl.reclaim-returns_a_plan.json"
    path.parent.mkdir()
    path.write_text('{"problem": "aryl.reclaim", "another": 3}', encoding="utf-8")
    assert optgap("check", "aryl.reclaim", f"{mine}:a_number", "--max-examples", 1).code == 1
    assert "another" not in path.read_text(encoding="utf-8")
    path.write_text('{"problem": "aryl.placement"}', encoding="utf-8")
    assert "is in the way, and holds no aryl.reclaim" in optgap("check", "aryl.reclaim", f"{mine}:a_number").err
