"""Studies: how heuristics are named, and what makes a result one to compute again."""

import functools
import importlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import formulations
import instances
from formulations.methods import Choice, Method
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import gap_study
from validation.kernel import keys
from validation.kernel.keys import exact_code, heuristic_code

from .studies import CELLS, FORKED, SMALL, computed, first_servers, servers_from, shifted

pytestmark = FORKED


class Shifted:
    """A heuristic with a state."""

    def __init__(self, start: int) -> None:
        self.start = start

    def __call__(self, instance: Reclaim) -> ReclaimPlan:
        return servers_from(self.start)(instance)


@pytest.mark.parametrize(
    ("heuristics", "names"),
    [
        ("server_fraction", ["server_fraction"]),
        (["gpu_fraction", "server_fraction", "gpu_fraction"], ["gpu_fraction", "server_fraction"]),
        ([first_servers], ["first_servers"]),
        ([lambda instance: first_servers(instance)], ["<lambda>"]),
        ({"one": servers_from(1), "two": servers_from(2)}, ["one", "two"]),
        ({"mine": "server_fraction", "other": "heuristics.aryl.reclaim:random"}, ["mine", "other"]),
        (["heuristics.aryl.reclaim:gpu_fraction"], ["heuristics.aryl.reclaim:gpu_fraction"]),
        ([Shifted(1)], ["Shifted"]),
        ([functools.partial(shifted, start=2)], ["partial"]),
        ((), []),
    ],
)
def test_heuristics_by_name_and_function(heuristics: Any, names: list[str], tmp_path: Path) -> None:
    study = gap_study(**{**SMALL, "count": 1}, heuristics=heuristics, output=tmp_path)
    assert list(study.rows["algorithm"]) == ["exact", *names]
    assert (study.rows["status"].isin(["optimal", "feasible"])).all()


def test_a_name_is_used_where_it_is_known(tmp_path: Path) -> None:
    study = gap_study("aryl", seed=1, sizes=[3], count=1, heuristics=["marginal_greedy"], output=tmp_path)
    pairs = set(zip(study.rows["problem"], study.rows["algorithm"], strict=True))
    assert pairs >= {("aryl.elastic_allocation", "marginal_greedy"), ("aryl.reclaim", "exact")}
    assert ("aryl.reclaim", "marginal_greedy") not in pairs


def test_closures_with_other_values_are_other_heuristics(tmp_path: Path) -> None:
    study = gap_study(**SMALL, heuristics={"one": servers_from(0), "two": servers_from(1)}, output=tmp_path)
    for name, start in (("one", 0), ("two", 1)):
        for row in study.rows[study.rows["algorithm"] == name].to_dict("records"):
            instance = instances.load(tmp_path / row["file"])
            assert row["value"] == instance.objective(servers_from(start)(instance))


@pytest.mark.parametrize(
    ("same", "other"),
    [
        (lambda: servers_from(1), lambda: servers_from(2)),
        (lambda: functools.partial(shifted, start=1), lambda: functools.partial(shifted, start=2)),
        (lambda: Shifted(1), lambda: Shifted(2)),
        (lambda: Shifted(1).__call__, lambda: Shifted(2).__call__),
        (lambda: functools.partial(servers_from(1)), lambda: functools.partial(servers_from(2))),
    ],
    ids=["closure", "partial", "callable", "method", "nested"],
)
def test_the_key_of_a_heuristic_holds_the_values_that_it_carries(
    same: Callable[[], Any], other: Callable[[], Any]
) -> None:
    assert heuristic_code(same()) == heuristic_code(same())
    assert heuristic_code(same()) != heuristic_code(other())


def test_a_heuristic_that_cannot_be_told_is_never_taken_for_another() -> None:
    namespace: dict[str, Any] = {"__name__": "typed_at_a_prompt"}
    exec("def heuristic(instance): return None", namespace)
    assert heuristic_code(namespace["heuristic"]) != heuristic_code(namespace["heuristic"])
    lock = open(os.devnull)  # noqa: SIM115, something that cannot be pickled
    with lock:
        assert heuristic_code(lambda instance: lock) != heuristic_code(lambda instance: lock)


def test_what_a_notebook_defines_has_a_version_of_its_own_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ModuleType("typed_into_a_notebook")
    monkeypatch.setitem(sys.modules, typed.__name__, typed)
    exec("def build(instance): ...", vars(typed))
    entry = SimpleNamespace(build=typed.build)
    monkeypatch.setattr(formulations, "formulation", lambda problem: entry)
    monkeypatch.setattr(keys, "choice", lambda problem: SimpleNamespace(methods=(), again=None))
    one, other = exact_code("demo.typed", "highs"), exact_code("demo.typed", "highs")
    assert one[:-1] == other[:-1]
    assert one[-1] != other[-1]


@pytest.mark.slow
def test_keys_do_not_depend_on_what_else_is_imported() -> None:
    script = """
import sys
from validation.kernel.keys import exact_code, heuristic_code
if len(sys.argv) > 1:
    import formulations
    from validation.catalogue import CATALOGUE
    for problem in CATALOGUE:
        formulations.formulation(problem)
from heuristics.aryl.reclaim import server_fraction
print(heuristic_code(server_fraction), exact_code("aryl.reclaim", "highs"))
"""
    said = [
        subprocess.run([sys.executable, "-c", script, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["all"])
    ]
    assert said[0] == said[1] != ""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes modules of the user's, and imports them anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    written: list[str] = []

    def write(name: str, text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        written.append(name)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        return importlib.import_module(name)

    yield write
    for name in written:
        sys.modules.pop(name, None)


HELPER = """
    import numpy as np

    def rank(instance):
        return np.arange(instance.num_servers)
"""


MINE = """
    from helper_of_mine import rank
    from instances.aryl.reclaim import ReclaimPlan

    def first(instance):
        return ReclaimPlan(servers=rank(instance)[: instance.demand])
"""


OTHERS = """
    from instances.aryl.reclaim import ReclaimPlan
    import numpy as np

    def last(instance):
        return ReclaimPlan(servers=np.arange(instance.num_servers)[::-1][: instance.demand])
"""


@pytest.mark.slow
def test_numbers_are_what_they_are_worth(tmp_path: Path) -> None:
    """Whether they come from Python, NumPy, or a command line that reads 60 as 60.0."""
    assert len(computed(tmp_path, time_limit=60)) == CELLS
    assert computed(tmp_path, time_limit=60.0) == []
    assert computed(tmp_path, seed=np.int64(3), sizes=np.array([5]), count=np.int64(3), time_limit=np.float64(60)) == []
    asked = json.loads((tmp_path / "metadata.json").read_text(encoding="utf-8"))["asked"]
    assert (asked["seed"], asked["sizes"], asked["count"], asked["time_limit"]) == (3, [5], 3, 60.0)


@pytest.mark.slow
def test_a_changed_source_is_computed_again(module: Callable[[str, str], ModuleType], tmp_path: Path) -> None:
    module("helper_of_mine", HELPER)
    module("mine", MINE)
    module("others", OTHERS)
    output = tmp_path / "study"
    both = ["mine:first", "others:last"]
    assert len(computed(output, heuristics=both)) == 9
    assert computed(output, heuristics=both) == []
    module("mine", MINE + "\n    # A remark.\n")
    assert computed(output, heuristics=both) == [("mine:first", 5)] * 3
    # What a heuristic's module draws on counts as much as the module.
    module("helper_of_mine", HELPER.replace("return np", "return -1 - np"))
    module("mine", MINE + "\n    # A remark.\n")
    assert computed(output, heuristics=both) == [("mine:first", 5)] * 3
    assert computed(output, heuristics=both) == []


def test_a_key_depends_on_the_problems_exact_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked up by name, so no module between the key and them holds them."""
    before = exact_code("aryl.reclaim", "highs")

    def solve(instance: object, options: object) -> None:
        """Stand for a method of this file, whose source is another one."""

    known = Choice((Method(name="mine", short="mine", proves="nothing", where="nowhere", solve=solve),))
    monkeypatch.setattr("validation.kernel.keys.choice", lambda problem: known)
    assert exact_code("aryl.reclaim", "highs") != before
