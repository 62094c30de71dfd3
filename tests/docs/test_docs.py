"""What the documents show is what happens."""

import inspect
import json
import os
import re
import runpy
import subprocess
import sys
import textwrap
from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks.growth import main
from validation import CATALOGUE, ReplayOptions, StudyOptions
from validation.kinds.options import CheckOptions

from ..files import COLLECTED, module_of

ROOT = Path(__file__).parents[2]
OPTGAP = str(Path(sys.executable).parent / "optgap")


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
    # They need no solver but HiGHS.
    without = "import sys\nsys.modules['pyscipopt'] = None\n"
    script.write_text(without + snippets[number], encoding="utf-8")
    said = run([sys.executable, str(script)], tmp_path)
    expected = ("status='optimal', objective=0.727272727", "server_fraction", "emptiest_first")[number]
    assert expected in said


def test_git_ignores_what_the_readme_s_commands_write() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    written = {*re.findall(r" -o ([\w-]+)", text), *re.findall(r'output="([\w-]+)"', text)}
    # Directories that commands write of themselves.
    written |= {str(CheckOptions.output), "hunt", "study"}
    assert written >= {"first-gap", "study-api", "study-mine", "replays", "failures"}
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {f"/{folder}/" for folder in written} <= {*ignored}
    for command in re.findall(r"optgap (check|hunt)", text):
        told = subprocess.run([OPTGAP, command, "--help"], capture_output=True, text=True, check=True).stdout
        (default,) = re.findall(r"-o, --output <path>.*?\[default:\s+(\w+)\]", told, re.DOTALL)
        assert default in written


def test_what_the_example_from_outside_needs_is_said_before_it_is_used() -> None:
    text = (ROOT / "examples" / "outside" / "README.md").read_text(encoding="utf-8")
    assert "pip install pytest" in text.partition("-m pytest")[0]


@pytest.mark.slow
def test_front_page_python_runs(tmp_path: Path) -> None:
    script = tmp_path / "snippet.py"
    for snippet in blocks(ROOT / "docs" / "index.md", "python"):
        script.write_text(f'if __name__ == "__main__":\n{textwrap.indent(snippet, "    ")}', encoding="utf-8")
        said = run([sys.executable, str(script)], tmp_path)
        assert "status='optimal'" in said or "server_fraction" in said


@pytest.mark.slow
def test_the_first_gap_is_what_the_front_pages_say(tmp_path: Path) -> None:
    pages = [ROOT / "README.md", ROOT / "docs" / "index.md"]
    commands = {
        block.replace("\\\n", "")
        for page in pages
        for block in blocks(page, "sh")
        if block.startswith("optgap study") and "first-gap" in block
    }
    words = {" ".join(command.split()) for command in commands}
    assert len(words) == 1
    command = words.pop().split()
    said = run([str(Path(sys.executable).parent / command[0]), *command[1:]], tmp_path, COLUMNS="200")
    assert (tmp_path / "first-gap" / "report.html").exists()
    (row,) = (line.split() for line in said.splitlines() if "server_fraction" in line)
    generated, _, _, instances, proven, _, mean, _, worst = row[:9]
    assert (generated, instances) == ("generated", proven)
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert f"{mean} more on average, {worst} at worst, every optimum proven" in text


@pytest.mark.slow
def test_readme_replay_command_runs(tmp_path: Path) -> None:
    (block,) = (one for one in blocks(ROOT / "README.md", "sh") if one.startswith("optgap replay"))
    command = block.replace("\\\n", "").replace("examples/", f"{ROOT}/examples/")
    for option in ("windows 4", "seeds 2", "ties 3"):
        assert f"--{option}" in command
        command = command.replace(f"--{option}", f"--{option[:-1]}1")
    words = command.split()
    said = run([str(Path(sys.executable).parent / words[0]), *words[1:]], tmp_path)
    assert "jobs.csv: average completion time" in said
    assert (tmp_path / "replays" / "report.html").exists()


@pytest.mark.parametrize("target", ["study", "test", "docs"])
def test_readme_make_targets_exist(target: str) -> None:
    assert f"make {target}" in (ROOT / "README.md").read_text(encoding="utf-8")
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", target, "VENV=nowhere"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    commands = {"study": "optgap study", "test": "python -m pytest", "docs": "python -m sphinx -W -n"}
    assert f"nowhere/bin/{commands[target]}" in done.stdout


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


def test_every_problem_of_the_collection_is_found_from_a_question() -> None:
    page = (ROOT / "docs" / "which-problem.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| .*\[(\S+)\]\(problems/(\S+)\.md\)(.*)$", page, re.MULTILINE)
    names = {name for name, _, _ in rows}
    assert len(names) == len(rows)
    assert set(CATALOGUE) >= names >= COLLECTED
    for name, link, rest in rows:
        assert link == name.replace(".", "/")
        paper = rest.split("|")[-4]
        assert paper.split(",")[0].split()[-1] == CATALOGUE[name].source.split(",")[0].split()[-1]
    growth = (ROOT / "docs" / "growth.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(ROOT / "docs" / "write.py"))["with_sizes"](page, growth) == page
    # What the pages say is what the command does that they name.
    seconds = re.search(r"would take more than (\d+) s.*not proven in\s+(\d+) s", growth, re.DOTALL)
    limit, proof = (inspect.signature(main).parameters[name].default for name in ("limit", "proof"))
    assert seconds is not None
    assert (float(seconds[1]), float(seconds[2])) == (limit, proof)
    assert page.count(f"| proven in {proof:g} s up to | at the papers' size |") == page.count("| question |")


def test_every_problem_of_the_collection_has_its_card() -> None:
    page = (ROOT / "docs" / "problems" / "index.md").read_text(encoding="utf-8")
    cards = dict(re.findall(r"^:::\{grid-item-card\} \[(\S+)\]\((\S+)\.md\)$", page, re.MULTILINE))
    assert set(CATALOGUE) >= set(cards) >= COLLECTED
    assert cards == {name: name.replace(".", "/") for name in cards}


def test_the_picture_of_the_front_page_is_what_its_code_draws(tmp_path: Path) -> None:
    drawn, kept = tmp_path / "first_gap.svg", ROOT / "docs" / "first_gap.svg"
    drawn.write_text(runpy.run_path(str(kept.with_suffix(".py")))["picture"](), encoding="utf-8")
    # Where the words stand differs between versions of Matplotlib.
    words_of = module_of(ROOT / "docs" / "run.py").words_of
    assert words_of(kept) == words_of(drawn) != []


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_hold_no_outputs(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert not [cell for cell in cells if cell["cell_type"] == "code" and (cell["outputs"] or cell["execution_count"])]


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
    assert runpy.run_path(str(ROOT / "docs" / "write.py"))["with_options"](page, options) == page
    names = [one.name for one in fields(options)]
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)[: len(names)] == names


def test_the_walls_of_the_docs_are_those_there_are() -> None:
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    assert "| wall |" in page
    assert runpy.run_path(str(ROOT / "docs" / "write.py"))["with_walls"](page) == page


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
    assert len(named) > 20
    papers = {problem.split(".")[0] for problem in CATALOGUE}
    for top in ("instances", "heuristics"):
        told = re.search(rf"^{top}/\n.*?<helper>.py(.*?)\n\S", page, re.DOTALL | re.MULTILINE).group(1)  # type: ignore[union-attr]
        helpers = {
            f"{paper}.{name}"
            for paper, names in re.findall(r"(\w+): ([\w,\s]+)", told)
            for name in re.findall(r"\w+", names)
        }
        modules = {
            f"{path.parent.name}.{path.stem}" for paper in papers for path in (ROOT / top / paper).glob("[!_]*.py")
        }
        assert helpers == modules - set(CATALOGUE), top
    for top in ("instances", "formulations", "heuristics", "validation"):
        for path in (ROOT / top).iterdir():
            if path.name not in {"__init__.py", "__pycache__", "py.typed", *papers}:
                assert f"{top}/{path.name}" in named, f"{top}/{path.name} is missing in the picture"
