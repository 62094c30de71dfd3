"""What the documents show is what happens."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from validation import CATALOGUE, ReplayOptions, StudyOptions

ROOT = Path(__file__).parents[1]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", range(3))
def test_readme_python_runs(number: int, tmp_path: Path) -> None:
    snippets = blocks(ROOT / "README.md", "python")
    assert len(snippets) == 3
    script = tmp_path / "snippet.py"
    script.write_text(snippets[number], encoding="utf-8")
    said = run([sys.executable, str(script)], tmp_path)
    expected = ("status='optimal', objective=0.727272727", "server_fraction", "emptiest_first")[number]
    assert expected in said


@pytest.mark.slow
def test_readme_study_command_runs(tmp_path: Path) -> None:
    commands = [
        line
        for block in blocks(ROOT / "README.md", "sh")
        for line in block.splitlines()
        if line.startswith("optgap study")
    ]
    assert len(commands) == 1
    command = commands[0].replace("--count 20", "--count 2").split()
    said = run([str(Path(sys.executable).parent / command[0]), *command[1:]], tmp_path)
    assert "local_search" in said
    assert (tmp_path / "study" / "report.html").exists()


@pytest.mark.slow
def test_readme_replay_command_runs(tmp_path: Path) -> None:
    (block,) = (one for one in blocks(ROOT / "README.md", "sh") if one.startswith("optgap replay"))
    command = block.replace("\\\n", "").replace("examples/", f"{ROOT}/examples/")
    for option in ("windows 4", "seeds 2", "ties 3"):
        assert f"--{option}" in command
        command = command.replace(f"--{option}", f"--{option[:-1]}1")
    words = command.split()
    said = run([str(Path(sys.executable).parent / words[0]), *words[1:]], tmp_path)
    assert "jobs.csv, gandiva: jobs take" in said
    assert (tmp_path / "replays" / "report.html").exists()


@pytest.mark.parametrize("target", ["study", "test"])
def test_readme_make_targets_exist(target: str) -> None:
    assert f"make {target}" in "\n".join(blocks(ROOT / "README.md", "sh"))
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target, "VENV=nowhere"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"study": "nowhere/bin/optgap study", "test": "nowhere/bin/python -m pytest"}[target] in done.stdout


def test_every_problem_has_its_files() -> None:
    for problem in CATALOGUE:
        name = problem.replace(".", "/")
        paper, short = problem.split(".")
        for path in (
            f"instances/{name}.py",
            f"formulations/{name}.py",
            f"heuristics/{name}.py",
            f"validation/problems/{name}.py",
            f"docs/problems/{name}.md",
            f"tests/{paper}/test_{short}.py",
        ):
            assert (ROOT / path).exists(), f"{problem}: {path} is missing"


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")), ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


@pytest.mark.parametrize(("name", "options"), [("studies.md", StudyOptions), ("replay.md", ReplayOptions)])
def test_the_options_of_a_study_are_shown_as_they_are(name: str, options: type[StudyOptions | ReplayOptions]) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert options.table() in page
    names = [one.name for one in fields(options)]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)[: len(names)] == names


def test_the_picture_of_the_rooms_is_true() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    room, named = "", set()
    for line in re.search(r"```text\n(.*?)```", page, re.DOTALL).group(1).splitlines():  # type: ignore[union-attr]
        name = re.match(r"( *)(\S+/?)", line)
        if name is None or "<" in name.group(2) or len(name.group(1)) > 2:
            continue
        path = name.group(2) if not name.group(1) else room + name.group(2)
        room = name.group(2) if not name.group(1) else room
        assert (ROOT / path).exists(), f"{path} is in the picture only"
        named.add(path.rstrip("/"))
    papers = {"afs", "aryl", "elasticflow", "gavel", "synergy"}
    for top in ("instances", "formulations", "heuristics", "validation"):
        for path in (ROOT / top).iterdir():
            if path.name not in {"__init__.py", "__pycache__", "py.typed", *papers}:
                assert f"{top}/{path.name}" in named, f"{top}/{path.name} is missing in the picture"
