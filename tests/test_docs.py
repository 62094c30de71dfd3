"""What the documents show is what happens."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from validation.catalogue import CATALOGUE

ROOT = Path(__file__).parents[1]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(command: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("number", range(3))
def test_readme_python_runs(number: int, tmp_path: Path) -> None:
    snippets = blocks(ROOT / "README.md", "python")
    assert len(snippets) == 3
    script = tmp_path / "snippet.py"
    script.write_text(snippets[number], encoding="utf-8")
    said = run([sys.executable, str(script)], tmp_path)
    expected = ("status='optimal', objective=0.727272727", "server_fraction", "emptiest_first")[number]
    assert expected in said


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


def test_adding_a_problem_takes_its_files_and_one_entry(tmp_path: Path) -> None:
    """The walk-through, followed to the letter in a copy of the packages."""
    page = ROOT / "docs" / "adding-a-problem.md"
    for room in ("formulations", "heuristics", "instances", "validation"):
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("__pycache__"))
    data, model, fast, entry = blocks(page, "python")
    for room, text in (("instances", data), ("formulations", model), ("heuristics", fast)):
        folder = tmp_path / room / "demo"
        folder.mkdir()
        (folder / "__init__.py").write_text("", encoding="utf-8")
        (folder / "one_server.py").write_text(text, encoding="utf-8")
    catalogue = tmp_path / "validation" / "catalogue.py"
    text = catalogue.read_text(encoding="utf-8")
    text = text.replace("_ENTRIES = [\n", "_ENTRIES = [\n" + entry, 1)
    imports = "from heuristics.demo import one_server as demo_one_server\nfrom instances.demo import one_server\n"
    catalogue.write_text(text.replace("from instances.base", imports + "from instances.base", 1), encoding="utf-8")
    optgap = [sys.executable, "-c", "from validation.cli import main; main()"]
    out = str(tmp_path / "out")
    said = run(
        [*optgap, "study", "demo.one_server", "--seed", "1", "--count", "5", "-o", out],
        tmp_path,
        PYTHONPATH=str(tmp_path),
    )
    assert "densest_first" in said
    rows = [line for line in said.splitlines() if "densest_first" in line]
    assert [line.split()[3:6] for line in rows] == [["5", "5", "5"], ["5", "5", "5"]]


def test_every_problem_has_its_files() -> None:
    for problem in CATALOGUE:
        name = problem.replace(".", "/")
        paper, short = problem.split(".")
        for path in (
            f"instances/{name}.py",
            f"formulations/{name}.py",
            f"heuristics/{name}.py",
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
