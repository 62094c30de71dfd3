"""The command line: what it says to bad input, in one line."""

import errno
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import formulations
from instances.aryl import reclaim
from validation.kinds.witness import Judged, Witness

from .commands import Optgap, lines_of


def variant(**changes: Any) -> str:
    data = {**reclaim.six_servers().to_dict(), **changes}
    return json.dumps({name: value for name, value in data.items() if value is not ...})


def with_gpus(value: Any) -> str:
    gpus = reclaim.six_servers().gpus.tolist()
    gpus[1][2] = value
    return variant(gpus=gpus)


BAD_FILES = {
    "wrong shape": (variant(gpus=[[1, 2], [3, 4]]), "Reclaim.gpus: got shape (2, 2), must be (n, s) with n = 6, s = 6"),
    "ragged": (variant(gpus=[[1], [2, 3]]), "Reclaim.gpus: got rows of different lengths"),
    "NaN": (with_gpus(float("nan")), "Reclaim.gpus: got nan at index [1, 2], must be a whole number"),
    "negative": (with_gpus(-1), "Reclaim.gpus: got -1 at index [1, 2], must be at least 0"),
    "text": (with_gpus("many"), "Reclaim.gpus: got 'many' at index [1, 2], must be a whole number"),
    "beyond 64 bits": (with_gpus(10**30), "Reclaim.gpus: got"),
    "negative count": (variant(demand=-3), "Reclaim.demand: got -3, must be at least 0"),
    "unknown field": (variant(demnad=2), "Reclaim: unknown field 'demnad' (did you mean 'demand'?)"),
    "missing field": (variant(demand=...), "Reclaim: field 'demand' is missing"),
    "no problem": (variant(problem=...), "field 'problem' is missing"),
    "unknown problem": (variant(problem="aryl.reclam"), "unknown problem 'aryl.reclam' (did you mean 'aryl.reclaim'?)"),
    "odd problem": (variant(problem=["aryl.reclaim"]), "field 'problem': got ['aryl.reclaim']"),
    "a list": ("[1, 2]", "an instance must be a JSON object, got list"),
    "truncated": (variant()[:60], "not valid JSON at line 1"),
    "empty": ("", "not valid JSON at line 1"),
    "nested without end": ("[" * 100_000, "not valid JSON"),
    "four hundred digits": (variant(demand=10**400), "not valid JSON: a whole number of 401 digits, beyond any float"),
    "four hundred digits below": (with_gpus(-(10**400)), "not valid JSON: a whole number of 401 digits"),
    "four hundred digits of its origin": (variant(origin={"x": 10**400}), "not valid JSON: a whole number of 401"),
    "digits of another script": (variant().replace('"demand": ', '"demand": \uff14'), "not valid JSON at line 1"),
    "a name without end": (variant(problem="x" * 10**5), "unknown problem 'xxx"),
    "unpacks without end": (gzip.compress(b" " * (2 * 10**8 + 1), 1), "unpacks to more than 200 MB"),
    "unpacks to empty lists": (gzip.compress(b"[" + b"[]," * 10**7 + b"1]", 1), "more than 20,000,000 numbers, words"),
    "not text": (b"\xff\xfe\x00\x01", "not a text file"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_named_in_one_line(optgap: Optgap, case: str, tmp_path: Path) -> None:
    content, words = BAD_FILES[case]
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "bad.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    commands = (
        ("solve", "in/bad.json"),
        ("solve", "in/bad.json", "--heuristic", "random", "--json"),
        ("study", "aryl.reclaim", "--instances", "in", "--seed", 1, "-o", "study"),
    )
    for command in commands:
        said = optgap(*command)
        assert (said.code, said.out) == (2, "")
        (line,) = said.err.splitlines()
        assert line.startswith("optgap: in/bad.json: ")
        assert words in line
        assert len(line) < 200
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in"]


HUNT = ("hunt", "aryl.reclaim", "random", "--seed", 1)
CHECK = ("check", "aryl.reclaim", "random")
STUDY = ("study", "aryl.reclaim", "--seed", 1, "-o", "study")
JUDGE = ("judge", "random", "--problem", "aryl.reclaim")
REPLAY = ("replay", "poisson", "--problem", "synergy.tuning", "--policy", "tune", "--seed", 1, "-o", "study")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # Names.
        (("generate", "aryl.reclam", "--seed", 1), "unknown problem 'aryl.reclam' (did you mean 'aryl.reclaim'?)"),
        (("study", "aril", "--seed", 1, "-o", "study"), "unknown problem 'aril' (did you mean 'aryl'?)"),
        (("solve", "six.json", "--heuristic", "gpu_fract"), "no heuristic 'gpu_fract' (did you mean 'gpu_fraction'?)"),
        ((*STUDY, "--heuristic", "local-search"), "no heuristic 'local-search' (did you mean 'local_search'?)"),
        ((*STUDY, "--heuristic", "nowhere:f"), "cannot import 'nowhere'"),
        (("solve", "six.json", "--heuristic", "json:lods"), "'json' has no 'lods' (did you mean 'loads'?)"),
        (("solve", "six.json", "--solver", "higsh"), "unknown solver 'higsh' (did you mean 'highs'?)"),
        ((*STUDY, "--solver", "glpk_persistent_nosuch"), "unknown solver 'glpk_persistent_nosuch'"),
        (("stdy",), "No such command 'stdy'"),
        ((*STUDY, "--sed", 1), "No such option: --sed"),
        # Numbers.
        ((*STUDY, "--count", 0), "count: got 0, must be at least 1"),
        ((*STUDY, "--count", -5), "count: got -5, must be at least 1"),
        ((*STUDY, "--count", "many"), "'--count'"),
        ((*STUDY, "--sizes", "4,x"), "--sizes: got '4,x', must be whole numbers such as 10,20"),
        ((*STUDY, "--sizes", "0"), "sizes: got 0, must be a whole number of at least 1"),
        ((*STUDY, "--sizes", "-4"), "sizes: got -4, must be a whole number of at least 1"),
        ((*STUDY, "--sizes", "aryl.reclaims=4"), "sizes are given for 'aryl.reclaims', which is not studied"),
        ((*STUDY, "--sizes", "4", "--sizes", "aryl.reclaim=4"), "--sizes: either sizes for all problems or"),
        ((*STUDY, "--sizes", "\uff14"), "--sizes: got '\uff14', must be whole numbers such as 10,20"),
        ((*STUDY, "--sizes", "1_0"), "--sizes: got '1_0', must be whole numbers such as 10,20"),
        ((*STUDY, "--sizes", "1" + 400 * "0"), "cannot generate aryl.reclaim with num_servers = 100000"),
        ((*STUDY, "--sweep", f"spread=0.1,1{400 * '0'}"), "sweep: spread of aryl.reclaim: got '1000"),
        ((*STUDY, "--sweep", "spread=\uff14"), "sweep: spread of the generator of aryl.reclaim: got '\uff14', must"),
        ((*STUDY, "--jobs", 10**20), "jobs: got 100000000000000000000, must be at most 1,000"),
        ((*HUNT, "--jobs", 10**20), "'--jobs'"),
        ((*JUDGE, "--jobs", 10**20), "'--jobs'"),
        ((*REPLAY, "--length", 10**18), "length: got 1000000000000000000, must be at most 10,000,000"),
        (("generate", "aryl.reclaim", "--seed", 1, "--count", 10**18, "-o", "x"), "'--count'"),
        ((*STUDY, "--config", 10**5 * "x"), "File name too long"),
        ((10**5 * "x",), "No such command 'xxx"),
        (("compare", 10**5 * "x", "y"), "holds no study"),
        ((*STUDY, "--time-limit", -1), "time_limit: got -1.0, must be positive seconds"),
        ((*STUDY, "--time-limit", "nan"), "time_limit: got nan, must be positive seconds"),
        ((*STUDY, "--jobs", 0), "jobs: got 0, must be at least 1"),
        (("study", "aryl.reclaim", "--seed", -1, "-o", "study"), "seed: got -1, must be at least 0"),
        (("generate", "aryl.reclaim", "--seed", -1), "'--seed'"),
        (("generate", "aryl.reclaim", "--seed", 1, "--size", 0), "num_servers: got 0, must be at least 1"),
        (("generate", "aryl.reclaim", "--seed", 1, "--sizes", "4,x"), "--sizes: got '4,x', must be whole numbers"),
        ((*STUDY, "--memory-limit", "4 GPUs"), "memory_limit: got '4 GPUs', must be a number of bytes, or a size such"),
        ((*STUDY, "--memory-limit", "4kB"), "memory_limit: got 4000, must be at least 1048576"),
        (("generate", "aryl.reclaim", "--seed", 1, "--count", -1), "'--count'"),
        (("generate", "aryl.reclaim", "--seed", 1, "--count", 2), "more than one instance needs a directory: -o DIR"),
        (("solve", "six.json", "--time-limit", 0), "got 0.0, must be positive seconds"),
        ((*CHECK, "--ratio", 0.5), "'--ratio'"),
        ((*CHECK, "--ratio", "nan"), "'--ratio'"),
        ((*CHECK, "once more"), "got 'aryl.reclaim random once more', must be PROBLEM HEURISTIC, or HEURISTIC"),
        ((*HUNT, "--budget", "soon"), "budget: got 'soon', must be a positive time such as 60, 60s or 5m"),
        ((*HUNT, "--budget", "0s"), "budget: got 0.0, must be a positive time"),
        ((*HUNT, "--keep", 0), "keep: got 0.0, must be above 0 and at most 1"),
        ((*HUNT, "--measure", "sum"), "measure: got 'sum', must be ratio or difference"),
        ((*HUNT, "--fix", "four"), "--fix: got 'four', must be NAME=VALUE"),
        # What is missing.
        (("study", "--seed", 1, "-o", "study"), "missing a problem"),
        (("study", "aryl.reclaim", "-o", "study"), "missing --seed"),
        (("study", "aryl.reclaim", "--seed", 1), "missing -o DIR"),
        (("solve",), "Missing argument"),
        (("bench",), "Missing command"),
        (("solve", "nowhere.json"), "nowhere.json: No such file or directory"),
        (("solve", "."), ".: Is a directory"),
        (("report", "nowhere"), "nowhere holds no study: there is no study.json in it"),
        (("report", "six.json"), "six.json holds no study: there is no study.json in it"),
        ((*STUDY, "--instances", "nowhere"), "instances: nowhere is not a directory"),
        ((*STUDY, "--config", "nowhere.toml"), "nowhere.toml: No such file or directory"),
        ((*STUDY, "--throughputs", "nowhere"), "throughputs: aryl.reclaim cannot read real data"),
        ((*STUDY, "--trace", "a", "--trace", "afs=b"), "got 'a' among paths of papers, must be PAPER=PATH"),
        ((*STUDY, "--times", "soon"), "--times: got 'soon', must be seconds such as 600,1200"),
        ((*STUDY, "--reader", "num_gpus=4"), "reader: there is no real data to read, give --throughputs and --trace"),
        ((*STUDY, "--real-only"), "real_only: there is no real data to read, give --throughputs and --trace"),
        # What cannot be written.
        (("study", "aryl.reclaim", "--seed", 1, "-o", "six.json"), "cannot write to six.json: File exists"),
        (("study", "aryl.reclaim", "--seed", 1, "-o", "six.json/x"), "cannot write to six.json/x: Not a directory"),
        (("generate", "aryl.reclaim", "--seed", 1, "-o", "six.json/x"), "cannot write to six.json/x: Not a directory"),
        ((*HUNT, "-o", "six.json"), "cannot write to six.json: File exists"),
        ((*HUNT, "-o", "six.json/x"), "cannot write to six.json/x: Not a directory"),
        ((*CHECK, "-o", "six.json/x"), "cannot write to six.json/x: Not a directory"),
        (("claims", "aryl", "-o", "six.json/x"), "cannot write to six.json/x: Not a directory"),
        (("claims", "aryl", "-o", "six.json"), "cannot write to six.json: File exists"),
        (("claims", "aryl", "-o", "x/claims.md"),
         "--output: got 'x/claims.md', must be a directory, which gets a page for each claim"),
    ],
    ids=lambda value: " ".join(map(str, value))[:60] if isinstance(value, tuple) else "",
)  # fmt: skip
def test_bad_input_is_one_line_and_2(
    optgap: Optgap, file: Path, arguments: tuple[object, ...], words: str, tmp_path: Path
) -> None:
    before = file.read_bytes()
    said = optgap(*arguments)
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith("optgap: ")
    assert words in line
    assert len(line) < 2100
    assert [entry.name for entry in tmp_path.iterdir()] == ["six.json"]
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("seed = 1\nproblem = ['x']", "unknown option 'problem' (did you mean 'problems'?)"),
        ("time-limit = 3", "unknown option 'time-limit' (did you mean 'time_limit'?)"),
        ("seed = '1'", "seed: got '1', must be int"),
        ("seed = 1.5", "seed: got 1.5, must be int"),
        ("count = true", "count: got True, must be int"),
        ("heuristics = 'random'", "heuristics: got 'random', must be list"),
        ("seed = ", "not valid TOML"),
        ("sizes = [4, 'x']", "sizes: got 'x', must be a whole number of at least 1"),
        ("sizes = { 'aryl.reclaim' = 4 }", "sizes: got 4, must be a list of whole numbers"),
        ("heuristics = [3]", "heuristics: got 3, must be a name or a function"),
        ("problems = [3]", "problems: got 3, must be a name"),
        ("trace = { gavle = 'x' }", "trace: no problem studied reads real data of 'gavle'"),
        (b"\xff\xfe", "not valid TOML"),
        (f"seed = 1{400 * '0'}", "seed: got 1000"),
        (f"sizes = [1{400 * '0'}]", "cannot generate aryl.reclaim with num_servers = 1000"),
        (f"count = 1{400 * '0'}", "count: got 1000"),
        (f"time_limit = 1{400 * '0'}", "time_limit: got 1000"),
        (f"sweep = {{ spread = [0.1, 1{400 * '0'}] }}", "sweep: spread of the generator of aryl.reclaim: got 1000"),
        ("seed = \uff14", "not valid TOML"),
        (f"{10**5 * 'x'} = 1", "unknown option 'xxx"),
        (f"problems = ['{10**5 * 'x'}']", "unknown problem 'xxx"),
    ],
)
def test_bad_toml_is_named(optgap: Optgap, content: str | bytes, words: str, tmp_path: Path) -> None:
    whole = {"problems": "problems = ['aryl.reclaim']", "seed": "seed = 1", "output": "output = 'study'"}
    text = content.encode() if isinstance(content, str) else content
    lines = [line.encode() for name, line in whole.items() if not text.startswith(name.encode())]
    (tmp_path / "study.toml").write_bytes(b"\n".join([*lines, text]))
    said = optgap("study", "--config", "study.toml")
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert line.startswith("optgap: ")
    assert words in line
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.toml"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("traces = [[{a=[]}]]", "trace"),
        (f"traces = [1{400 * '0'}]", "trace"),
        (f"length = 1{400 * '0'}", "length: got 1000"),
        (f"setting = {{ num_gpus = 1{400 * '0'} }}", "num_gpus"),
        (f"restart = 1{400 * '0'}", "restart: got 1000"),
        (f"gaps = 1{400 * '0'}", "gaps: got 1000"),
    ],
)
def test_bad_toml_of_a_replay_is_named(optgap: Optgap, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "replay.toml").write_text(content)
    given = REPLAY if not content.startswith("traces") else (REPLAY[0], *REPLAY[2:])
    said = optgap(*given, "--config", "replay.toml")
    assert (said.code, said.out) == (2, "")
    (line,) = said.err.splitlines()
    assert words in line
    assert len(line) < 2100
    assert [entry.name for entry in tmp_path.iterdir()] == ["replay.toml"]


def test_a_missing_solver_says_what_to_install(optgap: Optgap, file: Path) -> None:
    said = optgap("solve", file, "--solver", "ipopt")
    if said.code == 0:
        pytest.skip("ipopt is installed here")
    assert said.code == 2
    assert said.err.startswith("optgap: solver 'ipopt' is not installed: ")
    assert len(said.err.splitlines()) == 1


def test_nonsense_of_a_heuristic_is_named(optgap: Optgap, file: Path, mine: str) -> None:
    why = "aryl.reclaim: a plan must be a ReclaimPlan, got int"
    said = optgap("solve", file, "--heuristic", f"{mine}:a_number")
    assert (said.code, said.err) == (3, "")
    assert (lines_of(said)["status"], lines_of(said)["message"]) == ("failed", why)
    said = optgap("solve", file, "--heuristic", f"{mine}:a_number", "--quiet")
    assert (said.code, said.out, said.err) == (3, "", f"optgap: {mine}:a_number: {why}\n")


def test_a_bug_keeps_its_traceback(optgap: Optgap, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulations, "solve", lambda *_, **__: 1 / 0)
    said = optgap("solve", file)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("Traceback")
    assert said.err.endswith("ZeroDivisionError: division by zero\n")


def test_a_folder_made_for_a_hunt_that_fails_goes_again(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap("hunt", "aryl.reclaim", "randm", "--seed", 1, "-o", "a/b/c")
    assert said.code == 2
    assert list(tmp_path.iterdir()) == []


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_what_a_hunt_found_is_printed_where_it_cannot_be_saved(
    optgap: Optgap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    instance = reclaim.six_servers()
    plan = instance.nothing()
    found = Witness("aryl.reclaim", "random", Judged(instance, plan, 2.0, plan, 1.0, 1.0), 1.0, "luck", 7, 1, ())
    monkeypatch.setattr("validation.kinds.hunt.find_worst", lambda *_, **__: found)
    monkeypatch.setattr("validation.kinds.witness.write_whole", full)
    said = optgap(*HUNT, "-o", "found")
    assert (said.code, said.err) == (2, "optgap: cannot write to found: No space left on device\n")
    assert f"instance    {json.dumps(instance.to_dict())}" in said.out.splitlines()
    assert list(tmp_path.iterdir()) == []


def test_what_a_check_found_is_told_where_it_cannot_be_saved(
    optgap: Optgap, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("validation.kinds.checks.running.save", full)
    said = optgap("check", "aryl.reclaim", f"{mine}:a_number", "--max-examples", 1)
    assert said.code == 1
    assert "got int; not saved, failures/aryl.reclaim-returns_a_plan.json: No space left" in said.out
    assert "smallest instance: " in said.out
