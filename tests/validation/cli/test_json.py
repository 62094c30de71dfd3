"""The command line: every command that prints results prints them as one JSON document, too."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import instances
from instances.aryl import reclaim
from validation import CATALOGUE, Study
from validation.cli import commands
from validation.cli.app import say_json

from .commands import Optgap


def all_commands(name: str = "", command: Any = None) -> Iterator[tuple[str, Any]]:
    command = command or get_command(commands())
    for short, member in getattr(command, "commands", {}).items():
        yield from all_commands(f"{name} {short}".strip(), member)
    if not hasattr(command, "commands"):
        yield name, command


@pytest.mark.parametrize(("name", "command"), list(all_commands()), ids=lambda one: one if isinstance(one, str) else "")
def test_every_command_has_the_option(name: str, command: Any) -> None:
    assert ["--json"] in [one.opts for one in command.params], name


def read(optgap: Optgap, *arguments: object, code: int = 0) -> Any:
    said = optgap(*arguments, "--json")
    assert said.code == code, said.err
    return json.loads(said.out)


def test_list(optgap: Optgap) -> None:
    told = read(optgap, "list")
    assert [one["problem"] for one in told] == list(CATALOGUE)
    assert {one["problem"]: one["heuristics"] for one in told} == {
        problem: list(entry.heuristics) for problem, entry in CATALOGUE.items()
    }


def test_generate(optgap: Optgap, tmp_path: Path) -> None:
    told = read(optgap, "generate", "aryl.reclaim", "--seed", 1, "--count", 2, "-o", "made")
    assert [instances.load(tmp_path / file).problem for file in told["files"]] == ["aryl.reclaim"] * 2


def test_solve(optgap: Optgap, file: Path) -> None:
    told = read(optgap, "solve", file)
    assert (told["problem"], told["status"]) == ("aryl.reclaim", "optimal")
    assert told["objective"] == reclaim.six_servers().objective(reclaim.ReclaimPlan.from_dict(told["plan"]))


def test_doctor(optgap: Optgap) -> None:
    told = read(optgap, "doctor")
    assert all(one["ok"] for one in told)
    assert any("8/11" in one["text"] for one in told)


def test_check_that_holds_and_one_that_fails(optgap: Optgap, mine: str) -> None:
    told = read(optgap, "check", "aryl.reclaim", "server_fraction", "--max-examples", 3)
    assert told["ok"] is True
    assert {one["status"] for one in told["results"]} <= {"passed", "skipped"}
    told = read(optgap, "check", "aryl.reclaim", f"{mine}:too_few", "--max-examples", 3, code=1)
    assert told["ok"] is False
    (failed, *_) = [one for one in told["results"] if one["status"] == "failed"]
    assert instances.read(failed["instance"]).problem == "aryl.reclaim"
    assert failed["plan"] == {"servers": []}
    assert failed["reason"]


def test_hunt(optgap: Optgap, tmp_path: Path) -> None:
    asked = ("--seed", 1, "--restarts", 1, "--jobs", 1, "--fix", "num_servers=3", "-o", "hunted")
    told = read(optgap, "hunt", "aryl.reclaim", "server_fraction", *asked)
    (kept,) = (tmp_path / "hunted").glob("*.json")
    assert told == json.loads(kept.read_text(encoding="utf-8"))


def test_convert(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("JobID,submit_time,duration,num_gpu\na,0,60,1\nb,5,60,2\n", encoding="utf-8")
    told = read(optgap, "convert", "jobs", "log.csv", "-o", "jobs.csv", "--reader", "columns.job_id=JobID")
    assert (told["file"], told["rows"], told["reading"]["rows"]) == ("jobs.csv", 2, 2)
    assert (tmp_path / "jobs.csv").exists()


def test_collection(optgap: Optgap) -> None:
    listed = read(optgap, "collection", "list", "--problem", "aryl.two_job")
    name = listed[0]["name"]
    record = read(optgap, "collection", "show", name)
    found = read(optgap, "collection", "solve", name, "--time-limit", 30)
    assert found["known"]["value"] == record["best"]["value"] == listed[0]["value"]
    assert found["objective"] == pytest.approx(record["best"]["value"])


def test_study_merge_and_report_tell_the_same(optgap: Optgap, tmp_path: Path) -> None:
    asked = ("study", "aryl.reclaim", "--sizes", 4, "--count", 2, "--seed", 1, "--heuristic", "server_fraction")
    plan = read(optgap, *asked, "-o", "study", "--dry-run")
    assert (plan["cells"], plan["ended"]) == (4, 0)
    told = read(optgap, *asked, "-o", "study")
    assert (told["finished"], told["runs"], told["ended"], told["failed"]) == (True, 4, 4, 0)
    study = Study.load(tmp_path / "study")
    (row,), summary = told["summary"], study.summary()
    assert {name: row[name] for name in ("heuristic", "gap_mean_high", "proven")} == {
        name: summary[name].item() for name in ("heuristic", "gap_mean_high", "proven")
    }
    again = read(optgap, "report", "study", "--csv")
    assert again == {**told, "written": ["study/summary.csv"]}
    merged = read(optgap, "merge", "study", "-o", "merged")
    assert {**merged, "directory": "study", "report": told["report"]} == told


def test_a_study_whose_runs_fail_says_so_in_its_code(optgap: Optgap, mine: str) -> None:
    asked = ("study", "aryl.reclaim", "--sizes", 4, "--count", 1, "--seed", 1, "--heuristic", f"{mine}:a_number")
    told = read(optgap, *asked, "-o", "study", code=3)
    assert told["failed"] == 1


@pytest.mark.slow
def test_replay(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "job_id,submit_time,duration,num_gpu\n" + "".join(f"{job},{60 * job},600,1\n" for job in range(4)),
        encoding="utf-8",
    )
    asked = ("jobs.csv", "--problem", "aryl.elastic_allocation", "--policy", "exact", "--policy", "afs", "--length", 4)
    setting = ("--setting", "num_servers=1", "--setting", "loaned=0", "--setting", "scaling=2", "--offline", 0)
    told = read(optgap, "replay", *asked, *setting, "-o", "replays")
    assert (told["finished"], told["failed"]) == (True, 0)
    assert {row["policy"] for row in told["averages"]} == {"exact", "afs"}
    assert read(optgap, "report", "replays") == told


@pytest.mark.slow
def test_benchmarks(optgap: Optgap) -> None:
    told = read(optgap, "bench", "overhead", "--repeats", 1)
    assert all(one["ratio"] == pytest.approx(one["whole"] / one["raw"]) for one in told)


def test_numbers_that_json_does_not_have_are_null(capsys: pytest.CaptureFixture[str]) -> None:
    say_json({"gap": math.inf, "rows": [{"gap": math.nan}, (1.5, -math.inf)], "name": "a"})
    assert json.loads(capsys.readouterr().out) == {"gap": None, "rows": [{"gap": None}, [1.5, None]], "name": "a"}


def test_judge_export(optgap: Optgap) -> None:
    told = read(optgap, "judge", "export", "aryl.reclaim", "--for", "gepa", "-o", "task")
    assert told == {"files": [f"task/{name}" for name in ("evaluator.py", "initial_program.py", "instructions.md")]}
