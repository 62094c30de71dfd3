"""Problems from outside: the walk-through word for word, a module, a package, and what can go wrong."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from instances.base import Instance

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-problem.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "outside"
OPTGAP = [sys.executable, "-W", "error", "-c", "from validation.cli import main; main()"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


MODULE, SCRIPT, INSIDE = blocks("python")


SESSION = """
import contextlib, io, json, sys
ended = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["optgap", *arguments]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main()
        except SystemExit as end:
            ended.append([end.code or 0, said.getvalue()])
print(json.dumps(ended))
"""


def session(folder: Path, *path: Path, commands: list[list[str]], first: str = "") -> list[tuple[int, str]]:
    """How commands end, and what they say, that are given one after the other to one interpreter.

    It takes most of a command's time to start one.
    """
    code = f"{first}from validation.cli import main{SESSION}"
    said = run([*OPTGAP[:-1], code, json.dumps(commands)], folder, *path)
    return [(code, words) for code, words in json.loads(said)]


def fine(ended: list[tuple[int, str]]) -> list[str]:
    """What commands say of which none fails."""
    assert [code for code, _ in ended] == [0] * len(ended), ended
    return [words for _, words in ended]


def run(command: list[str], folder: Path, *path: Path, code: int = 0) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*path, ROOT]))},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A folder with the walk-through's module."""
    (tmp_path / "one_server.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the example package is installed into, from its own folder."""
    pytest.importorskip("hatchling", reason="hatchling comes with the test extra")
    source = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("source") / "outside")
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target"]
    done = subprocess.run([*pip, str(target), str(source)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return target


def test_the_page_shows_the_example() -> None:
    assert (EXAMPLE / "outside_example" / "one_server.py").read_text(encoding="utf-8") == MODULE
    assert blocks("toml")[0] in (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_commands_of_the_page(module: Path) -> None:
    commands = [line.split() for line in blocks("sh")[0].splitlines()]
    assert [command[3] for command in commands] == ["list", "study", "check", "hunt"]
    # The first in an interpreter of its own, as a reader would type it.
    said = [run([*OPTGAP, *commands[0][1:]], module)]
    said += fine(session(module, commands=[command[1:] for command in commands[1:]]))
    assert "demo.one_server\n    Which jobs run on one server (an example)\n    heuristics: densest_first" in said[0]
    rows = [line.split() for line in said[1].splitlines() if "densest_first" in line]
    assert [row[1:6] for row in rows] == [[size, "densest_first", "5", "5", "5"] for size in ("10", "20")]
    assert re.search(r"passed +feasible +1\d\d instances", said[2])
    assert "failed" not in said[2]
    assert "smallest    gap" in said[3]
    witness = module / "hunt" / "demo.one_server-densest_first.json"
    # How bad an instance is found in so many seconds is the machine's affair.
    assert json.loads(witness.read_text(encoding="utf-8"))["gap"] > 0
    assert "status     optimal" in run([*OPTGAP, "solve", str(witness), "--load", "one_server"], module)


@pytest.mark.slow
def test_the_script_of_the_page(module: Path) -> None:
    (module / "script.py").write_text(SCRIPT, encoding="utf-8")
    said = run([sys.executable, "-W", "error", "script.py"], module)
    assert "status='optimal'" in said
    assert "densest_first on demo.one_server" in said
    assert "gap_worst_high" in said


@pytest.mark.slow
def test_an_installed_package_is_found_without_a_word(installed: Path, tmp_path: Path) -> None:
    drawn = "in/demo.one_server-6-1-0.json"
    study = ["--sizes", "6", "--count", "3", "--seed", "1", "-o", "s"]
    *ended, refused = session(
        tmp_path,
        installed,
        commands=[
            ["list"],
            ["generate", "demo.one_server", "--seed", "1", "--size", "6", "-o", "in"],
            ["solve", drawn],
            ["solve", drawn, "--heuristic", "densest_first"],
            ["study", "demo.one_server", "aryl.reclaim", *study],
            ["study", "demo.one_server", *study],
            ["check", "demo.one_server", "densest_first", "--max-examples", "20"],
            ["check", "aryl.reclaim", "emptiest_first", "--max-examples", "20"],
            ["hunt", "demo.one_server", "densest_first", "--seed", "1", "--budget", "10s"],
            ["claims", "demo"],
            ["claims", "dmo"],
        ],
    )
    listed, generated, solved, fast, both, one, *checked, hunted, claimed = fine(ended)
    assert "demo.one_server\n" in listed
    assert "tabu_search, emptiest_first" in listed
    assert generated == f"{drawn}\n"
    assert "status     optimal" in solved
    assert "status     feasible" in fast
    assert "densest_first" in both
    assert "emptiest_first" in both
    assert one
    assert all("failed" not in words for words in checked)
    assert "smallest    gap" in hunted
    assert "refuted: densest_first_is_half" in claimed
    assert refused[0] == 2
    assert "no claims of 'dmo' (did you mean 'demo'?)" in refused[1]


@pytest.mark.slow
def test_the_packages_own_tests_pass(installed: Path, tmp_path: Path) -> None:
    tests = shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tests)]
    assert "25 passed" in run(command, tmp_path, installed)


def test_a_package_that_cannot_be_loaded_is_a_warning(installed: Path, tmp_path: Path) -> None:
    site = shutil.copytree(installed, tmp_path / "site")
    (site / "outside_example" / "additions.py").write_text("import nowhere\n", encoding="utf-8")
    said = run([sys.executable, "-c", OPTGAP[-1], "list"], tmp_path, site)
    assert "outside-example: 'additions' cannot be loaded: No module named 'nowhere'" in said
    assert "demo.one_server\n" in said
    assert "aryl.reclaim\n" in said


REFUSED = {
    "register(3)": "got int, must be an entry, a heuristic, a strategy, a claim or settings",
    "register(densest_first)": "problem=...",
    "register(densest_first, problem='demo.one_sever')": "unknown problem 'demo.one_sever' (did you mean",
    "register(replace(entry, formulation=None))": "demo.one_server: an entry from outside must bring its",
    "OneServer.problem = 'aryl.reclaim'; register(entry)": "'aryl.reclaim' is a problem of the library",
    "OneServer.problem = 'one server'; register(entry)": "got 'one server', must be a name such as",
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said to each program, all of them run by one interpreter."""
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "one_server.py").write_text(MODULE, encoding="utf-8")
    script = f"""
import json
from dataclasses import replace
from one_server import *
from validation import CATALOGUE
entry = CATALOGUE["demo.one_server"]
said = {{}}
for program in {list(REFUSED)}:
    try:
        exec(program)
    except ValueError as error:
        said[program] = str(error)
    OneServer.problem = "demo.one_server"
print(json.dumps(said))
"""
    said: dict[str, str] = json.loads(run([sys.executable, "-c", script], folder))
    return said


@pytest.mark.parametrize("program", REFUSED)
def test_what_cannot_be_registered_is_named(program: str, refusals: dict[str, str]) -> None:
    assert REFUSED[program] in refusals[program]


def test_what_cannot_be_loaded_is_one_line_and_2(module: Path) -> None:
    refused = {
        "cannot import 'nowhere'": ["--load", "nowhere", "list"],
        "expects a module": ["list", "--load"],
        "'one_server' has no 'nothing'": ["--load=one_server:nothing", "list"],
        "problem=...": ["--load", "one_server:generate", "list"],
    }
    for words, (code, said) in zip(refused, session(module, commands=list(refused.values())), strict=True):
        assert code == 2
        assert said.startswith("optgap: ")
        assert said.count("\n") == 1
        assert words in said


@pytest.mark.slow
def test_registering_again_replaces(module: Path) -> None:
    script = """
from dataclasses import replace
from hypothesis import strategies as st
import one_server
from validation import CATALOGUE, check_heuristic, register, strategy
register(replace(CATALOGUE["demo.one_server"], title="Another"))
assert CATALOGUE["demo.one_server"].title == "Another"
one = one_server.OneServer(gpus=[1], values=[2.0], capacity=1)
register(st.just(one), problem="demo.one_server")
report = check_heuristic("demo.one_server", "densest_first", max_examples=5)
assert report.ok
assert strategy("demo.one_server").example() == one
def twice(instance):
    return one_server.densest_first(instance)
register(twice, problem="demo.one_server")
assert list(CATALOGUE["demo.one_server"].heuristics) == ["densest_first", "twice"]
print("done")
"""
    assert "done" in run([sys.executable, "-c", script], module)


def test_a_field_called_origin_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Mine\.origin: every instance has one"):

        class Mine(Instance[Any]):
            origin: int
