"""What is built and installed is the four packages, typed, and nothing else."""

import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name as canonical

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the test extra")

ROOT = Path(__file__).parents[1]
ROOMS = ("formulations", "heuristics", "instances", "validation")


def run(*command: object, folder: Path = ROOT) -> str:
    """What a command prints; one that takes nothing from the checkout but what it is given."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=kept, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (made,) = folder.glob("scheduling_formulations-*.whl")
    return made


def test_wheel_holds_the_four_packages(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {*ROOMS, wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"}
    packed = {name for name in names if name.split("/")[0] in ROOMS}
    tracked = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == tracked
    assert {f"{room}/py.typed" for room in ROOMS} <= packed
    entry_points = next(name for name in names if name.endswith("entry_points.txt"))
    assert "optgap = validation.cli:main" in zipfile.ZipFile(wheel).read(entry_points).decode()


@pytest.mark.slow
def test_the_wheel_works_where_nothing_else_is(wheel: Path, tmp_path: Path) -> None:
    """In a fresh environment, outside the checkout, the smoke suite that ships with the library passes."""
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", environment)
    run(environment / "bin" / "python", "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", wheel)
    said = run(environment / "bin" / "optgap", "selftest", folder=tmp_path)
    assert "BAD" not in said
    assert "Gavel, section 4.1: 8/11" in said
    where = "import validation; print(validation.__file__)"
    assert run(environment / "bin" / "python", "-c", where, folder=tmp_path).startswith(str(environment))


def test_version_changelog_and_citation_agree() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) \((\S+)\)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == version
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {newest.group(2)}\n" in citation


def about() -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    told: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return told


def test_what_is_told_elsewhere_is_what_pyproject_says() -> None:
    told = about()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    archive = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    recipe = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    assert {told["version"]} == {citation["version"], archive["version"], recipe["context"]["version"]}
    assert {told["license"]} == {citation["license"], archive["license"], recipe["about"]["license"]}
    assert told["description"] == archive["description"] == recipe["about"]["summary"]
    assert told["keywords"] == citation["keywords"] == archive["keywords"]
    assert archive["title"] == citation["title"]
    assert [one["name"] for one in told["authors"]] == [one["name"] for one in archive["creators"]]
    write = runpy.run_path(str(ROOT / "docs" / "write.py"))
    for name, written in (("docs/cite.md", "with_citation"), ("README.md", "with_badges")):
        page = (ROOT / name).read_text(encoding="utf-8")
        assert write[written](page) == page


def test_the_recipe_needs_what_the_wheel_needs() -> None:
    told, recipe = about(), yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8"))
    # conda-forge has other names for these, and Matplotlib without its windows.
    names = {"lazy_loader": "lazy-loader", "matplotlib": "matplotlib-base"}
    wanted = {names.get(one.name, one.name): one.specifier for one in map(Requirement, told["dependencies"])}
    python, *needed = map(Requirement, recipe["requirements"]["run"])
    assert python.specifier == SpecifierSet(told["requires-python"])
    assert recipe["context"]["python_min"] in told["requires-python"]
    assert {one.name: one.specifier for one in needed} == wanted
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {to}" for name, to in told["scripts"].items()]


def test_a_release_is_tried_before_it_is_published() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert {"run": "make dist"} in jobs["build"]["steps"]
    assert jobs["index"]["needs"] == "build"
    assert jobs["index"]["permissions"] == {"id-token": "write"}
    assert jobs["release"]["needs"] == "index"
    asked = subprocess.run(
        ["make", "--dry-run", "--always-make", "dist", "VENV=nowhere"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for step in ("-m build", "twine check --strict", "optgap doctor", "optgap selftest", "check.py --pack"):
        assert step in asked.stdout


def test_what_is_missing_for_a_release_is_said_in_one_place() -> None:
    """No address is made up: where pyproject.toml has none, the list of what is missing has it."""
    missing = (ROOT / "RELEASING.md").read_text(encoding="utf-8").partition("## What is not known yet")[2]
    for what, known in (
        ("address of the repository", "Source" in about().get("urls", {})),
        ("address of the site", "Documentation" in about().get("urls", {})),
        ("DOI", "\ndoi:" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")),
    ):
        assert (f"| {what} |" in missing) is not known, what


def test_the_workflow_runs_what_ci_runs() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "- run: .ci/run" in workflow
    for version in ("3.11", "3.12", "3.13", "ubuntu", "macos"):
        assert version in workflow
    assert "constraints.txt" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_constraints_pin_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {
        canonical(line.split("==")[0]): line
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    }
    assert all("==" in line for line in pinned.values())
    extras = project["optional-dependencies"]
    wanted = [Requirement(needed) for needed in [*project["dependencies"], *extras["test"]]]
    ours = [requirement for requirement in wanted if requirement.name == project["name"]]
    assert ours
    wanted += [Requirement(needed) for requirement in ours for extra in requirement.extras for needed in extras[extra]]
    for requirement in wanted:
        if requirement in ours:
            continue
        version = pinned[canonical(requirement.name)].split("==")[1]
        assert requirement.specifier.contains(version), requirement
