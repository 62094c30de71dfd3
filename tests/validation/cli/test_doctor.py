"""The command line: doctor and bench."""

import base64
import hashlib
import re
import subprocess
import sys
from importlib.metadata import FileHash, PackagePath
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.overhead import LIMITS
from validation import cli

from .commands import Optgap


def test_doctor(optgap: Optgap) -> None:
    said = optgap("doctor")
    assert said.code == 0, said.out
    assert "solver highs 1." in said.out
    assert "the example of Gavel's section 4.1 gives 0.727" in said.out
    assert "BAD" not in said.out


def test_doctor_needs_no_extra() -> None:
    """Where only what the library depends on can be imported, everything is as it should be."""
    extras = ("pyscipopt", "ortools", "pytest", "nbclient", "nbformat", "ipykernel")
    blocked = f"import sys\nfor name in {extras}: sys.modules[name] = None\n"
    command = [sys.executable, "-c", f"{blocked}from validation.cli import main; main()", "doctor"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    assert "BAD" not in told.stdout
    assert "solver 'scip' is not installed: pip install PySCIPOpt" in told.stdout
    assert "solver 'cp-sat' is not installed: pip install ortools" in told.stdout
    assert "networkx" in told.stdout


def test_doctor_names_who_else_installed_a_package(optgap: Optgap, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = {"heuristics": ["scheduling-formulations", "other-heuristics"], "numpy": ["numpy"]}
    monkeypatch.setattr("importlib.metadata.packages_distributions", lambda: owners)
    said = optgap("doctor")
    assert said.code == 1
    assert "BAD  package heuristics is also installed by other-heuristics: uninstall that" in said.out.replace(
        "BAD ", "BAD  "
    ).replace("BAD   ", "BAD  ")


def test_doctor_tells_a_package_that_was_written_over(
    optgap: Optgap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As an installer leaves it: the file is another than the one whose hash is on record."""
    here = Path(cli.__file__).parents[2]

    def recorded(content: bytes) -> list[PackagePath]:
        path = PackagePath("instances/__init__.py")
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        path.hash, path.size = FileHash(f"sha256={digest}"), len(content)
        path.dist = SimpleNamespace(locate_file=lambda file: here / file)  # type: ignore[assignment]
        return [path]

    own = (here / "instances" / "__init__.py").read_bytes()
    monkeypatch.setattr("importlib.metadata.files", lambda name: recorded(own))
    assert optgap("doctor").code == 0
    monkeypatch.setattr("importlib.metadata.files", lambda name: recorded(b"another"))
    said = optgap("doctor")
    assert said.code == 1
    assert "package instances is not as it was installed, another package has written over it" in said.out
    here = tmp_path
    (tmp_path / "instances").mkdir()
    said = optgap("doctor")
    assert said.code == 1
    assert "package instances is not as it was installed, another package has written over it" in said.out


@pytest.mark.slow
def test_doctor_names_a_folder_that_is_in_the_way(tmp_path: Path) -> None:
    """A folder without code is a package, too."""
    (tmp_path / "instances" / "mine").mkdir(parents=True)
    code = (
        "import sys, validation.cli.installation as installation\n"
        f"sys.path[:] = [{str(tmp_path)!r}]\nsys.modules.pop('instances', None); sys.path_importer_cache.clear()\n"
        "sys.meta_path[:] = [one for one in sys.meta_path if 'Editable' not in str(one)]\n"
        "print(*(one.text for one in installation.rooms()), sep='\\n')"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"package instances is imported from {tmp_path}, not from " in told


@pytest.mark.slow
@pytest.mark.parametrize("room", ["formulations", "heuristics", "instances"])
def test_doctor_reports_a_mix_up(room: str, tmp_path: Path) -> None:
    """Another package of the same name comes first on the path."""
    (tmp_path / room).mkdir()
    (tmp_path / room / "__init__.py").write_text("", encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from validation.cli import main; main()"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)

    told = run("doctor")
    words = f"package {room} is imported from {tmp_path}, not from {Path(cli.__file__).parents[2]}"
    assert told.returncode == 1, told.stderr
    assert f"BAD package {room} " in told.stdout.replace("BAD  ", "BAD ")
    assert words in told.stdout
    assert told.stderr == ""
    other = run("study", "aryl.reclaim", "--seed", "1", "-o", str(tmp_path / "study"))
    assert other.returncode == 2, other.stderr
    assert other.stderr == f"optgap: {words}: another package has its name\n"


@pytest.mark.slow
def test_bench_overhead_prints_a_table(optgap: Optgap) -> None:
    said = optgap("bench", "overhead", "--repeats", 1)
    assert (said.code, said.err) == (0, "")
    header, *lines = said.out.splitlines()
    assert header.split() == ["jobs", "whole", "HiGHS", "on", "the", "arrays", "ratio", "at", "most"]
    found = [re.fullmatch(r"\s*(\d+)\s+\S+ m?s\s+\S+ m?s\s+(\d+\.\d\d)\s+(\d\.\d\d)\s*", line) for line in lines]
    assert [(int(row[1]), float(row[3])) for row in found if row] == list(LIMITS.items())
    assert all(row is not None and float(row[2]) > 0 for row in found)
