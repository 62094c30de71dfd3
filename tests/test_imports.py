"""What imports what: the rule between the rooms, and what a fresh interpreter loads."""

import ast
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

import instances

ROOT = Path(instances.__path__[0]).parent
CONFIGURATION = Path(__file__).parents[1] / "pyproject.toml"


def test_imports_between_the_rooms_run_one_way(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    cli = pytest.importorskip("importlinter.cli", reason="import-linter comes with the test extra")
    monkeypatch.chdir(ROOT)
    code = cli.lint_imports(config_filename=str(CONFIGURATION), cache_dir=None, no_cache=True)
    report = capsys.readouterr().out
    assert code == 0, report
    assert ", 0 broken" in report


def test_the_rule_is_one_that_can_be_broken(tmp_path: Path) -> None:
    pytest.importorskip("importlinter", reason="import-linter comes with the test extra")
    broken = {
        "instances": "import heuristics",
        "validation/kernel": "def f():\n    import validation.kinds",
        "instances/reference": "import numpy",
    }
    parts = {path.stem for path in (ROOT / "validation").iterdir() if path.is_dir() or path.suffix == ".py"}
    for room in (
        "instances",
        "instances/reference",
        "heuristics",
        "formulations",
        *(f"validation/{part}" for part in parts - {"__init__"}),
    ):
        (tmp_path / room).mkdir(parents=True)
        (tmp_path / room / "__init__.py").write_text(broken.get(room, "") + "\n")
    (tmp_path / "validation" / "__init__.py").touch()
    (tmp_path / "heuristics" / "fast.py").write_text("def f():\n    import pyomo\n")
    (tmp_path / "formulations" / "model.py").write_text("import heuristics\n")
    (tmp_path / "pyproject.toml").write_text(CONFIGURATION.read_text())
    checked = run("from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))", tmp_path)
    assert checked.returncode == 1
    for contract in (
        "Imports between the rooms run one way",
        "Models and methods import no heuristic",
        "Data and heuristics need neither Pyomo nor HiGHS",
        "The reference shares nothing with what it judges",
        "Pages, the kernel and the catalogue know no kind",
    ):
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
    assert loaded("import validation.kinds.study.run, validation.kinds.hunt", scipy).isdisjoint(
        {"pandas", "matplotlib"}
    )


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"]])
def test_the_command_line_starts_with_what_it_needs(words: list[str], scipy: Path) -> None:
    """Each of these takes longer to import than the catalogue."""
    program = f"""
import sys
from validation.cli import main
sys.argv = ["optgap", *{words!r}]
try:
    main()
except SystemExit as ended:
    assert not ended.code
"""
    packages = loaded(program, scipy)
    assert "validation" in packages
    assert packages.isdisjoint(
        {"hypothesis", "pyomo", "highspy", "scipy", "pandas", "matplotlib", "networkx", "rich", "jinja2", "distributed"}
    )


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


# --- the graph of all imports -------------------------------------------------------------------


@functools.cache
def imports_of(package: str) -> nx.DiGraph:
    """What each module of a package imports of it, imports inside functions counted.

    Not what types alone need, and not what hands on names that have moved.
    """
    modules = {}
    for path in (ROOT / package).rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        modules[name.removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    graph = nx.DiGraph()
    for name, tree in modules.items():
        typing = [
            node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        ]
        moved = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"]
        skipped = {id(node) for block in [*typing, *moved] for one in block.body for node in ast.walk(one)}
        for node in ast.walk(tree):
            if id(node) in skipped:
                continue
            if isinstance(node, ast.Import):
                found = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                # A module of a package is no name of the package's.
                found = [
                    module if (module := f"{node.module}.{one.name}") in modules else node.module for one in node.names
                ]
            else:
                continue
            graph.add_edges_from((name, one) for one in found if one in modules and one != name)
    return graph


@pytest.mark.parametrize("package", ["instances", "heuristics", "formulations", "validation", "benchmarks"])
def test_no_imports_lead_round_in_a_circle(package: str) -> None:
    graph = imports_of(package)
    assert graph.number_of_edges() > 20
    assert [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1] == []


def test_imports_inside_functions_are_seen() -> None:
    graph = imports_of("validation")
    assert graph.has_edge("validation.kernel.run", "validation.kernel.cluster")
    # A type alone is no import.
    assert not graph.has_edge("validation.kernel.kind", "validation.catalogue")
