"""The command line: study and report."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import instances
from benchmarks.faults.studies import without_pictures
from validation import CATALOGUE, Study, gap_study
from validation.cli.app import FAILED
from validation.kernel.judging import NO_PLAN

from .commands import SMALL, UNDRAWN, Optgap, assert_goes_on


@pytest.mark.slow
def test_study_from_options(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("study", "aryl", *SMALL, "--jobs", 2, "--time-limit", 30, "--solver", "highs")
    assert said.code == 0
    assert said.out.splitlines()[-1] == "report: study/report.html"
    for problem in ("aryl.reclaim", "aryl.elastic_allocation"):
        assert f"\n{problem}" in f"\n{said.out}"
    rows = [line.split() for line in said.out.splitlines() if line.startswith("generated")]
    expected = sum(2 * len(entry.heuristics) for name, entry in CATALOGUE.items() if name.startswith("aryl."))
    assert len(rows) == expected
    assert all(row[3:6] == ["2", "2", "2"] for row in rows)
    # Progress goes to standard error, and ends with all.
    total = len(pd.read_parquet(tmp_path / "study" / "results.parquet"))
    assert said.err.splitlines()[-1].startswith(f"{total} of {total} runs")
    meta = json.loads((tmp_path / "study" / "metadata.json").read_text(encoding="utf-8"))
    assert meta["command"].startswith("optgap study aryl --sizes 4,5 --count 2")
    assert (meta["jobs"], meta["asked"]["time_limit"]) == (2, 30)


def test_the_command_line_and_python_are_one(optgap: Optgap, tmp_path: Path) -> None:
    optgap("study", "aryl.reclaim", *SMALL, "--heuristic", "random", "--heuristic", "gpu_fraction")
    by_command = pd.read_parquet(tmp_path / "study" / "results.parquet")
    by_call = gap_study(
        "aryl.reclaim",
        seed=1,
        sizes=[4, 5],
        count=2,
        heuristics=["random", "gpu_fraction"],
        output=tmp_path / "study",
    )
    pd.testing.assert_frame_equal(by_command, by_call.rows)
    assert len((tmp_path / "study" / "rows.jsonl").read_text(encoding="utf-8").splitlines()) == 12


TOML = """
problems = ["aryl.reclaim", "aryl.elastic_allocation"]
sizes = { "aryl.reclaim" = [4], "aryl.elastic_allocation" = [3] }
heuristics = ["random", "marginal_greedy"]
count = 2
seed = 7
time_limit = 20
jobs = 1
output = "from-toml"
"""


def test_study_from_toml(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TOML, encoding="utf-8")
    assert optgap("study", "--config", "study.toml").code == 0
    rows = pd.read_parquet(tmp_path / "from-toml" / "results.parquet")
    expected = gap_study(
        ["aryl.reclaim", "aryl.elastic_allocation"],
        seed=7,
        sizes={"aryl.reclaim": [4], "aryl.elastic_allocation": [3]},
        heuristics=["random", "marginal_greedy"],
        count=2,
        output=tmp_path / "by-call",
    ).rows
    pd.testing.assert_series_equal(rows["instance"], expected["instance"])
    pd.testing.assert_series_equal(rows["gap"], expected["gap"])
    asked = json.loads((tmp_path / "from-toml" / "metadata.json").read_text(encoding="utf-8"))["asked"]
    assert (asked["seed"], asked["time_limit"]) == (7, 20)


def test_options_win_over_toml(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TOML, encoding="utf-8")
    said = optgap(
        "study",
        "aryl.reclaim",
        "--config",
        "study.toml",
        "--sizes",
        "5",
        "--count",
        1,
        "-o",
        "other",
        "--heuristic",
        "random",
    )
    assert said.code == 0
    assert not (tmp_path / "from-toml").exists()
    rows = pd.read_parquet(tmp_path / "other" / "results.parquet")
    assert list(rows["algorithm"]) == ["exact", "random"]
    assert set(rows["problem"]) == {"aryl.reclaim"}
    assert set(rows["size"]) == {5}


def test_sizes_for_each_problem(optgap: Optgap, tmp_path: Path) -> None:
    sizes = ("--sizes", "aryl.reclaim=3,4", "--sizes", "aryl.elastic_allocation=2")
    said = optgap("study", "aryl.reclaim", "aryl.elastic_allocation", *sizes, "--count", 1, "--seed", 1, "-o", "study")
    assert said.code == 0
    rows = pd.read_parquet(tmp_path / "study" / "results.parquet")
    found = {problem: sorted(set(group["size"])) for problem, group in rows.groupby("problem")}
    assert found == {"aryl.reclaim": [3, 4], "aryl.elastic_allocation": [2]}


def test_study_of_files_with_a_function(optgap: Optgap, mine: str, tmp_path: Path) -> None:
    optgap("generate", "aryl.reclaim", "--seed", 1, "--count", 2, "-o", "in")
    said = optgap(
        "study", "aryl.reclaim", "--instances", "in", "--heuristic", f"{mine}:first", "--heuristic", f"{mine}:a_number",
        "--seed", 1, "-o", "study",
    )  # fmt: skip
    # Failures are told by the exit code; so are they by every command that prints them again.
    assert said.code == FAILED
    assert optgap("report", "study").code == FAILED
    rows = pd.read_parquet(tmp_path / "study" / "results.parquet")
    assert set(rows["source"]) == {"file"}
    assert list(rows["algorithm"]) == ["exact", f"{mine}:first", f"{mine}:a_number"] * 2
    assert f"2 runs failed; the first: {mine}:a_number: aryl.reclaim: a plan must be a ReclaimPlan" in said.out
    # The same command once more tries the failures again, and nothing else.
    log = tmp_path / "study" / "rows.jsonl"
    before = len(log.read_bytes().splitlines())
    again = optgap(
        "study", "aryl.reclaim", "--instances", "in", "--heuristic", f"{mine}:first", "--heuristic", f"{mine}:a_number",
        "--seed", 1, "-o", "study",
    )  # fmt: skip
    assert again.code == FAILED
    assert len(log.read_bytes().splitlines()) == before + 2


def test_a_heuristic_that_returns_none_is_told_and_ends_in_3(optgap: Optgap, mine: str) -> None:
    asked = (
        "study",
        "aryl.reclaim",
        "--heuristic",
        f"{mine}:gives_up",
        "--sizes",
        4,
        "--count",
        2,
        "--seed",
        1,
        "-o",
        "s",
    )
    said = optgap(*asked)
    assert said.code == FAILED
    assert f"2 runs failed; the first: {mine}:gives_up: {NO_PLAN}" in said.out
    assert optgap("report", "s").code == FAILED


def test_report_prints_what_the_study_printed(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("study", "aryl.reclaim", *SMALL)
    meta = (tmp_path / "study" / "metadata.json").read_text(encoding="utf-8")
    for name in ("report.html", "results.parquet", "metadata.json"):
        (tmp_path / "study" / name).unlink()
    again = optgap("report", "study")
    assert (again.code, again.out, again.err) == (0, said.out, "")
    assert (tmp_path / "study" / "report.html").exists()
    assert (tmp_path / "study" / "results.parquet").exists()
    # Where the numbers come from is the study, whoever prints them again.
    assert (tmp_path / "study" / "metadata.json").read_text(encoding="utf-8") == meta


def test_a_sweep_and_its_tables(optgap: Optgap, mine: str, tmp_path: Path) -> None:
    asked = ("aryl.reclaim", "--sizes", 4, "--count", 1, "--sweep", "spread=0.2,0.8", "-o", "study")
    said = optgap("study", *asked, "--seed", 1, "--heuristic", "all", "--heuristic", f"{mine}:first")
    assert said.code == 0
    head = said.out.splitlines()[1].split()
    assert head[:4] == ["from", "num_servers", "spread", "heuristic"]
    lines = [line.split() for line in said.out.splitlines() if line.startswith("generated")]
    names = [*CATALOGUE["aryl.reclaim"].heuristics, f"{mine}:first"]
    assert [line[2:4] for line in lines] == [[value, name] for value in ("0.2", "0.8") for name in names]
    said = optgap("report", "study", "--latex", "--csv")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[-3:] == [
        "table: study/summary.tex",
        "table: study/summary.csv",
        "report: study/report.html",
    ]
    table = pd.read_csv(tmp_path / "study" / "summary.csv")
    # Nothing is equal to NaN, which stands where there are too few gaps for a percentile.
    read, kept = (
        one.astype(object).where(one.notna(), None) for one in (table, Study.load(tmp_path / "study").summary())
    )
    assert read.to_dict("list") == kept.to_dict("list")
    latex = (tmp_path / "study" / "summary.tex").read_text(encoding="utf-8")
    assert r"generated & 4 & 0.8 & server\_fraction & 1 &" in latex
    # Another seed is told before, and when it is done.
    runs = 2 * (1 + len(names))
    for more in (("--dry-run",), ()):
        said = optgap("study", *asked, "--seed", 2, "--heuristic", "random", *more)
        told = [line for line in said.err.splitlines() if line.startswith("optgap: ")]
        assert len(told) == 1
        assert told[0].startswith("optgap: study: another study was here: heuristics was ")
        assert told[0].endswith(
            f"; seed was 1 and is 2; {runs} of its {runs} runs are no part of this one, and stay in the log"
        )
    said = optgap("report", ".", "--csv")
    assert (said.code, said.err) == (2, "optgap: . holds no study: there is no study.json in it\n")


def doctor_the_log(directory: Path) -> str:
    """Makes the exact side of the first instance claim more than is true; its instance's file."""
    log = directory / "rows.jsonl"
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    row = next(row for row in rows if row["algorithm"] == "exact")
    row["value"] = row["bound"] = row["value"] + 1.0
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(row["file"])


@pytest.mark.slow
def test_an_oracle_disagreement_ends_in_1(optgap: Optgap, tmp_path: Path) -> None:
    assert optgap("study", "aryl.reclaim", *SMALL).code == 0
    file = doctor_the_log(tmp_path / "study")
    # The report and the study itself say so, and both name the instance.
    for command in (("report", "study"), ("study", "aryl.reclaim", *SMALL)):
        said = optgap(*command)
        assert said.code == 1
        lines = [line for line in said.out.splitlines() if line.startswith("oracle disagreement: aryl.reclaim:")]
        assert lines
        assert all(line.endswith(f"instance: study/{file}") for line in lines)
        assert instances.load(tmp_path / "study" / file).problem == "aryl.reclaim"
        assert "Oracle disagreements" in (tmp_path / "study" / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_disagreement_is_red_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "study"
    with without_pictures():
        gap_study("aryl.reclaim", seed=1, sizes=[4], count=1, output=output)
    doctor_the_log(output)
    done = subprocess.run(
        [*UNDRAWN, "report", str(output)],
        env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "\x1b[1;31moracle disagreement" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="signals are sent as on Linux")
def test_an_interrupted_study_goes_on(tmp_path: Path, mine: str) -> None:
    slow = tmp_path / "slow_one.py"
    slow.write_text(
        "import time\nfrom heuristics_of_mine import first\n\ndef f(i):\n    time.sleep(0.05)\n    return first(i)\n"
    )
    command = [*UNDRAWN, "study", "aryl.reclaim", "--heuristic", "slow_one:f", "--sizes", "4", "--count", "16"]
    command += ["--seed", "1", "--jobs", "1", "-o", "study"]
    assert_goes_on(command, tmp_path, "study", enough=4, whole=32, said="what ended is")


@pytest.mark.slow
def test_a_damaged_log_is_named(optgap: Optgap, tmp_path: Path) -> None:
    optgap("study", "aryl.reclaim", *SMALL)
    log = tmp_path / "study" / "rows.jsonl"
    log.write_text("oh no\n" + log.read_text(encoding="utf-8"), encoding="utf-8")
    named = "optgap: study/rows.jsonl, line 1: not valid JSON; "
    for command in (("report", "study"), ("study", "aryl.reclaim", *SMALL)):
        said = optgap(*command)
        assert said.code == 0
        assert next(line for line in said.err.splitlines() if line.startswith("optgap")).startswith(named)
    assert (tmp_path / "study" / "rows.damaged.jsonl").read_text(encoding="utf-8") == "oh no\n"
    said = optgap("report", "study")
    assert (said.code, said.err) == (0, "")
    (tmp_path / "study" / "study.json").write_text("oh no", encoding="utf-8")
    for command in (("report", "study"), ("study", "aryl.reclaim", *SMALL)):
        said = optgap(*command)
        assert (said.code, said.out, said.err) == (2, "", "optgap: study/study.json: not valid JSON\n")


def test_what_was_filled_in_of_real_data_is_said(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text("worker_type,model,scale_factor,throughput\nv100,m,1,2\n", encoding="utf-8")
    rows = "".join(f"{60 * row},1,{600 + row}\n" for row in range(9))
    (tmp_path / "jobs.csv").write_text(f"arrival,gpus,duration\n{rows}", encoding="utf-8")
    asked = ("study", "gavel.makespan", "--trace", "jobs.csv", "--sizes", 3, "--count", 2, "--seed", 1, "--real-only")
    given = ("--heuristic", "isolated", "-o", "s", "--jobs", 1)
    assert optgap(*asked, *given).err == (
        "optgap: real data of gavel.makespan: needs throughputs, too: --throughputs PATH\n"
    )
    said = optgap(*asked, *given, "--throughputs", "rates.csv")
    assert said.code == 0
    assert "filled in or changed of the real data, jobs in all: model is drawn (6), steps are what" in said.out
