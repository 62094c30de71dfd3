"""What imports what: the rule between the rooms, and what a fresh interpreter loads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import instances

ROOT = Path(instances.__path__[0]).parent
CONFIGURATION = Path(__file__).parents[1] / "pyproject.toml"


def test_imports_between_the_rooms_run_one_way(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(ROOT)
    code = lint_imports(config_filename=str(CONFIGURATION), cache_dir=None, no_cache=True)
    report = capsys.readouterr().out
    assert code == 0, report
    assert ", 0 broken" in report


def test_the_rule_is_one_that_can_be_broken(tmp_path: Path) -> None:
    for room, line in (
        ("instances", "import heuristics"),
        ("heuristics", ""),
        ("formulations", ""),
        ("validation", ""),
    ):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text(line + "\n")
    (tmp_path / "heuristics" / "fast.py").write_text("def f():\n    import pyomo\n")
    (tmp_path / "pyproject.toml").write_text(CONFIGURATION.read_text())
    checked = run("from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))", tmp_path)
    assert checked.returncode == 1
    for contract in ("Imports between the rooms run one way", "Data and heuristics need neither Pyomo nor HiGHS"):
        assert f"{contract} BROKEN" in checked.stdout


def run(program: str, *folders: Path) -> subprocess.CompletedProcess[str]:
    """A program in a fresh interpreter, which sees the library whether it is installed or not."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folders[0],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True,
        text=True,
        timeout=60,
    )


def loaded(program: str, *folders: Path) -> set[str]:
    """Top-level packages that are loaded after ``program``."""
    listing = "\nimport json, sys; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    ran = run(program + listing, ROOT, *folders)
    assert ran.returncode == 0, ran.stderr
    return set(json.loads(ran.stdout.splitlines()[-1]))


EVERY_MODULE = """
import importlib, pkgutil
import {room}
for found in pkgutil.walk_packages({room}.__path__, "{room}."):
    importlib.import_module(found.name)
"""


@pytest.mark.parametrize("room", ["instances", "heuristics"])
def test_data_and_heuristics_load_numpy_alone(room: str) -> None:
    packages = loaded(EVERY_MODULE.format(room=room))
    assert {room, "numpy"} <= packages
    assert packages.isdisjoint(
        {"pyomo", "highspy", "scipy", "pandas", "matplotlib", "networkx", "formulations", "validation", "hypothesis"}
    )


@pytest.mark.parametrize("room", ["instances", "heuristics"])
def test_data_and_heuristics_work_where_nothing_else_is_installed(room: str) -> None:
    blocked = "import sys\nfor name in ('pyomo', 'highspy', 'scipy', 'pandas', 'networkx'): sys.modules[name] = None\n"
    used = (
        "from instances.aryl.reclaim import generate\n"
        "from heuristics.aryl.reclaim import server_fraction\n"
        "instance = generate(0)\n"
        "assert not instance.violations(server_fraction(instance))\n"
    )
    assert room in loaded(blocked + EVERY_MODULE.format(room=room) + used)


@pytest.fixture
def scipy(tmp_path: Path) -> Path:
    """A folder with a SciPy to be found, whether the real one is installed or not."""
    for package in ("scipy", "scipy/sparse", "scipy/stats", "scipy/optimize"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("__version__ = '1.15.0'\n")
    return tmp_path


def test_formulations_load_neither_scipy_nor_pandas(scipy: Path) -> None:
    assert "scipy" in loaded("import scipy", scipy)
    packages = loaded("import formulations", scipy)
    assert {"pyomo", "highspy"} <= packages
    assert packages.isdisjoint({"scipy", "pandas", "matplotlib", "networkx", "heuristics", "validation"})


def test_what_a_study_forks_from_loads_no_pandas(scipy: Path) -> None:
    """It would take most of the time of a fork, and there is one for every run of a heuristic."""
    assert loaded("import validation.study.run, validation.testing.hunt", scipy).isdisjoint({"pandas", "matplotlib"})


def test_solving_loads_neither_scipy_nor_pandas(scipy: Path) -> None:
    program = (
        "import formulations\n"
        "from instances.aryl.reclaim import generate\n"
        "from instances.gavel.max_min_fairness import three_jobs\n"
        "assert formulations.solve(generate(0)).status == 'optimal'\n"
        "assert formulations.solve(three_jobs()).status == 'optimal'\n"
    )
    assert loaded(program, scipy).isdisjoint({"scipy", "pandas", "matplotlib", "networkx"})


def test_every_formulation_loads_networkx_only_when_it_is_used() -> None:
    assert "networkx" not in loaded(EVERY_MODULE.format(room="formulations"))
