"""The command line: what a user sees first, what is silent, and what has colours."""

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from validation.cli import MODULES, commands, installation
from validation.cli.app import EXIT_CODES, FAILED
from validation.cli.help import COMMANDS
from validation.selftest import Finding

from .commands import MAIN, Optgap

SMALL_SERVERS = ("--fix", "num_servers=3")


def test_without_arguments_it_says_what_to_do_next(optgap: Optgap) -> None:
    said = optgap()
    assert (said.code, said.err) == (0, "")
    commands = re.findall(r"^    optgap (.+)$", said.out, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["study", "generate", "solve", "check"]
    assert "optgap --help" in said.out
    assert max(map(len, said.out.splitlines())) <= 80
    assert len(said.out.splitlines()) < 24


def test_the_first_steps_can_be_gone(optgap: Optgap, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from heuristics.aryl.reclaim import server_fraction\n"
        "def my_heuristic(instance):\n    return server_fraction(instance)\n",
        encoding="utf-8",
    )
    for command in re.findall(r"^    optgap (.+)$", optgap().out, re.MULTILINE):
        shorter = command.replace("--sizes 10,20 --count 10", "--sizes 4 --count 1")
        *words, last = shlex.split(shorter)
        if "> one.json" in command:
            said = optgap(*words[:-1])
            (tmp_path / last).write_text(said.out, encoding="utf-8")
        else:
            said = optgap(*words, last, *(["--max-examples", 5] if words[0] == "check" else []))
        assert (said.code, said.out == "") == (0, False), said.err


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("list",),
        ("doctor",),
        ("solve", "six.json"),
        ("generate", "aryl.reclaim", "--seed", 1, "-o", "made"),
        ("check", "aryl.reclaim", "server_fraction", "--max-examples", 3),
        ("hunt", "aryl.reclaim", "server_fraction", "--seed", 1, "--restarts", 1, "--jobs", 1, *SMALL_SERVERS),
        ("study", "aryl.reclaim", "--sizes", 4, "--count", 1, "--seed", 1, "-o", "study"),
    ],
    ids=lambda command: command[0] if command else "nothing",
)
def test_quiet_is_silent(optgap: Optgap, file: Path, command: tuple[object, ...]) -> None:
    said = optgap(*command, "--quiet")
    assert (said.code, said.out, said.err) == (0, "", "")


def test_quiet_still_says_what_is_wrong(optgap: Optgap) -> None:
    said = optgap("--quiet", "solve", "nowhere.json")
    assert (said.code, said.out) == (2, "")
    assert said.err == "optgap: nowhere.json: No such file or directory\n"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("check", "aryl.reclaim", "{}:too_few", "--max-examples", 3), 1, "feasible failed"),
        (
            (
                "study",
                "aryl.reclaim",
                "--heuristic",
                "{}:a_number",
                "--sizes",
                4,
                "--count",
                1,
                "--seed",
                1,
                "-o",
                "one",
            ),
            FAILED,
            "optgap: 1 runs failed; the first: {}:a_number: aryl.reclaim: a plan must be a ReclaimPlan, got int\n",
        ),
    ],
)
def test_quiet_is_not_blind(optgap: Optgap, mine: str, command: tuple[object, ...], code: int, words: str) -> None:
    said = optgap(*(str(word).format(mine) for word in command), "--quiet")
    assert (said.code, said.out) == (code, "")
    assert words.format(mine) in said.err
    assert said.err.count("\n") == 1


def test_quiet_names_what_is_bad_in_an_installation(optgap: Optgap, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [Finding(True, "this is"), Finding(False, "that is not")]
    monkeypatch.setattr(installation, "examine", lambda: bad)
    said = optgap("doctor", "--quiet")
    assert (said.code, said.out, said.err) == (1, "", "optgap: that is not\n")


def test_quiet_gives_json_where_it_is_asked_for(optgap: Optgap, file: Path) -> None:
    assert optgap("solve", file, "--json", "--quiet").out.startswith('{"problem": "aryl.reclaim"')


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colours_are_of_a_terminal_that_wants_them(variables: dict[str, str], coloured: bool) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*MAIN, "doctor"], stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm-256color", **variables}
    ) as started:
        os.close(theirs)
        read = b""
        while True:
            try:
                some = os.read(ours, 65536)
            except OSError:  # Linux tells the end of a terminal so.
                some = b""
            if not some:
                break
            read += some
    os.close(ours)
    assert started.returncode == 0
    assert b"package validation from" in read
    assert (re.search(rb"\x1b\[[0-9;]*3[0-7]m", read) is not None) == coloured


def test_every_command_is_found_in_the_module_that_adds_it() -> None:
    found: dict[str, list[str]] = {}
    for name, command in get_command(commands()).commands.items():  # type: ignore[attr-defined]
        leaf = next(iter(getattr(command, "commands", {"": command}).values()))
        found.setdefault(leaf.callback.__module__.removeprefix("validation.cli."), []).append(name)
    assert {module: set(names) for module, names in found.items()} == {one: {*MODULES[one]} for one in MODULES}


def test_exit_codes_are_told_apart() -> None:
    assert {0, 1, 2} <= set(EXIT_CODES)
    assert all(EXIT_CODES.values())
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)


@pytest.mark.skipif(sys.platform == "win32", reason="the shells that are completed for are those of Unix")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("optgap wor", "worst-case"),
        ("optgap generate aryl.rec", "aryl.reclaim"),
        ("optgap check aryl.rec", "aryl.reclaim"),
        ("optgap check aryl.reclaim loc", "local_search"),
        ("optgap study synergy.tun", "synergy.tuning"),
        ("optgap study aryl.reclaim --heuristic server_f", "server_fraction"),
        ("optgap solve --solver hi", "highs"),
        ("optgap claims aryl.two", "aryl.two_job"),
        ("optgap convert phil", "philly\nphilly-placements\nphilly-distribution"),
        ("optgap judge --problem gavel.fi", "gavel.fifo\ngavel.finish_time_fairness"),
    ],
)
def test_a_shell_completes(monkeypatch: pytest.MonkeyPatch, optgap: Optgap, words: str, expected: str) -> None:
    monkeypatch.setenv("_OPTGAP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    assert optgap().out.strip() == expected


def _all_commands() -> dict[str, Any]:
    """Every command and group by its words."""
    found = {"": get_command(commands())}
    for name, command in list(found[""].commands.items()):  # type: ignore[attr-defined]
        found[name] = command
        found |= {f"{name} {member}": one for member, one in getattr(command, "commands", {}).items()}
    return found


@pytest.mark.parametrize("name", _all_commands())
def test_help_tells_values_in_words(name: str, optgap: Optgap) -> None:
    told = optgap(*name.split(), "--help").out
    # Not ranges such as 1<=x<=10.
    values = set(re.findall(r"<[^<>=]*>", told))
    assert values <= {"<text>", "<number>", "<path>"}, values
    assert not re.search(r"\b(list|str|int|float)\[|<class", told)


def test_help_groups_commands_and_many_options_by_their_use(optgap: Optgap) -> None:
    told = optgap("--help").out
    groups = {title: re.findall(r"^  ([a-z-]+) ", rows, re.MULTILINE) for title, rows in _sections(told).items()}
    assert {title: names for title, names in groups.items() if title in COMMANDS} == {
        title: list(names) for title, names in COMMANDS.items()
    }
    every = sorted(name for names in COMMANDS.values() for name in names)
    assert every == sorted(name for name in _all_commands() if name and " " not in name)
    study = _sections(optgap("study", "--help").out)
    assert [*study] == ["Arguments", "Options", "Real data", "Solver and limits", "Machines", "Output"]
    assert "--trace" in study["Real data"]
    shown = [one.name for one in get_command(commands()).commands["study"].params]  # type: ignore[attr-defined]
    assert sum(len(re.findall(r"^  (?:-o, )?--", rows, re.MULTILINE)) for rows in study.values()) == len(shown)
    # A few options need no groups.
    judge = _sections(optgap("judge", "--help").out)
    assert [*judge] == ["Arguments", "Options", "Commands"]
    commands_of_judge = re.findall(r"^  ([a-z-]+) ", judge["Commands"], re.MULTILINE)
    assert sorted(commands_of_judge) == ["board", "compare", "export", "reveal", "seal"]


def _sections(told: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Z][^\n]*):\n((?:(?:  [^\n]*)?\n)+)", told, re.MULTILINE))


def test_bash_takes_the_script(optgap: Optgap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    said = optgap("--show-completion", "bash")
    assert said.code == 0
    script = tmp_path / "completion.bash"
    script.write_text(said.out, encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", f"source {script} && complete -p optgap"], capture_output=True, text=True, check=True
    )
    assert "_optgap_completion optgap" in done.stdout


@pytest.mark.slow
def test_who_has_no_home_sees_and_gets_the_same(tmp_path: Path) -> None:
    """In the language of machines, in another time zone, in a folder with blanks in its name."""
    folder = tmp_path / "a folder of mine"
    folder.mkdir()
    # Below a file nobody can make a folder, not even root.
    (tmp_path / "file").touch()
    odd = {"HOME": str(tmp_path / "file" / "home"), "LANG": "C", "LC_ALL": "C", "TZ": "Asia/Kathmandu"}
    asked = ["study", "aryl.reclaim", "--heuristic", "server_fraction", "--sizes", "3", "--count", "1", "--seed", "1"]
    done = subprocess.run(
        [*MAIN, *asked, "--quiet", "-o", "my study"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "MPLCONFIGDIR"} | odd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert "≤" in (folder / "my study" / "report.html").read_text(encoding="utf-8")
