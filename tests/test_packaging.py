"""What is built and installed is the four packages, typed, and nothing else."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical

ROOT = Path(__file__).parents[1]
ROOMS = ("formulations", "heuristics", "instances", "validation")


def test_wheel_holds_the_four_packages(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (wheel,) = tmp_path.glob("scheduling_formulations-*.whl")
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


def test_version_changelog_and_citation_agree() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) \((\S+)\)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest.group(1) == version
    assert f"\nversion: {version}\n" in citation
    assert f"\ndate-released: {newest.group(2)}\n" in citation


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
    for needed in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        requirement = Requirement(needed)
        version = pinned[canonical(requirement.name)].split("==")[1]
        assert requirement.specifier.contains(version), needed
