"""A problem inside the library: the walk-through's files in a copy of it, its commands, and what is asked of it."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from .test_outside import INSIDE, MODULE, OPTGAP, PAGE, ROOT, fine, run, session

PACKAGES = ("instances", "formulations", "heuristics", "validation")
PROBLEM_PAGE = """# demo.one_server: which jobs run on one server

Choose jobs for one server so that their value is greatest. (An example.)

## Given

`instances.demo.one_server.OneServer`

| field | shape | unit | meaning |
| --- | --- | --- | --- |
| `gpus` | (n,) int | GPUs | of each job |
| `values` | (n,) float | | of each job |
| `capacity` | int | GPUs | of the server |

**Plan** `OneServerPlan(chosen)`: the jobs that run. **Value**: theirs together, to be maximised.

## Mathematics

$$\\max \\sum_j v_j x_j \\tag{1}$$

$$\\sum_j g_j x_j \\le c \\tag{2}$$

$$x_j \\in \\{0, 1\\} \\tag{3}$$

| equation | in the Pyomo model | kind |
| --- | --- | --- |
| $x_j$ | `chosen[j]` | variable |
| (1) | `total_value` | objective |
| (2) | `capacity` | constraint |
| (3) | `chosen` | bounds |

## Heuristics

`densest_first` takes the greatest value per GPU first; nothing is promised of it.
"""
TEST = '''"""demo.one_server: what the catalogue's tests cannot know."""

import pytest

import formulations
from heuristics.demo.one_server import densest_first
from instances.demo.one_server import OneServer


def test_a_dense_job_may_be_in_the_way() -> None:
    instance = OneServer(gpus=[1, 4], values=[2.0, 4.0], capacity=4)
    assert formulations.solve(instance).objective == pytest.approx(4.0)
    assert instance.objective(densest_first(instance)) == 2.0
'''


WHOLE = (
    "docs/test_docs.py::test_every_problem_has_its_files",
    "docs/test_docs.py::test_every_problem_of_the_collection_is_found_from_a_question",
    "docs/test_docs.py::test_every_problem_of_the_collection_has_its_card",
    "docs/test_docs.py::test_the_picture_of_the_rooms_is_true",
    "docs/test_gallery.py::test_each_picture_has_its_code_and_its_page",
    "validation/cli/test_json.py::test_list",
    "validation/cli/test_problems.py::test_list_names_everything",
    "validation/kinds/collection/test_collection.py::test_it_holds_what_it_is_said_to_hold",
    "validation/kinds/collection/test_collection.py::test_every_record_is_whole_and_its_files_are_those_it_has_the_hashes_of",
    "validation/kinds/study/test_real.py::test_every_option_of_every_reader_is_of_a_known_type",
    "validation/kinds/test_claims.py::test_claims_of_one_problem",
    "validation/test_optima.py::test_there_is_a_reference_of_every_problem_of_the_collection",
    "validation/test_selftest.py::test_all_is_well_here_and_every_problem_is_tried",
)
"""Tests that look at all problems at once."""


def copied(folder: Path, *names: str) -> None:
    """Copy folders of the checkout."""
    for name in names:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def add(folder: Path, count: int) -> list[str]:
    """Write the first files of the walk-through's table, with what makes packages of the rooms' folders."""
    parts = re.split(r"^# --- .* -+\n", MODULE, flags=re.MULTILINE)[1:4]
    table = re.findall(r"^\| [a-z ]+ \| `(\S+)` \| (?:`(.*)`)? ?(?:see below )?\|$", PAGE, re.MULTILINE)
    assert len(table) == 6
    texts = [f'"""A knapsack."""\n\n{opening}\n{part}' for (_, opening), part in zip(table, parts, strict=False)]
    written = dict(zip([name for name, _ in table], [*texts, INSIDE, PROBLEM_PAGE, TEST], strict=True))
    for name in list(written)[:count]:
        path = folder / name
        path.parent.mkdir()
        path.write_text(written[name], encoding="utf-8")
        if name.startswith(PACKAGES):
            (path.parent / "__init__.py").write_text("")
    return list(written)[:count]


@pytest.mark.slow
def test_inside_the_library_it_is_the_same_parts_in_four_files(tmp_path: Path) -> None:
    copied(tmp_path, *PACKAGES)
    add(tmp_path, 4)
    first = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "

    def optgap(*arguments: str, code_: int) -> str:
        return run([*OPTGAP[:-1], first + OPTGAP[-1], *arguments], tmp_path, tmp_path, code=code_)

    commands = [
        ["list"],
        ["study", "demo.one_server", "--seed", "1", "--count", "5", "-o", "study"],
        ["check", "demo.one_server", "densest_first", "--max-examples", "20"],
        ["hunt", "demo.one_server", "densest_first", "--seed", "1", "--budget", "10s"],
    ]
    listed, studied, checked, hunted = fine(session(tmp_path, tmp_path, commands=commands, first=first))
    assert "densest_first" in listed
    assert [line.split()[3:6] for line in studied.splitlines() if "densest_first" in line] == [["5", "5", "5"]] * 2
    assert "failed" not in checked
    assert "smallest    gap" in hunted
    # What is missing is named, each thing in its own words.
    (tmp_path / "validation/problems/demo/one_server.py").unlink()
    words = "demo.one_server has no entry in the catalogue: validation/problems/demo/one_server.py is missing"
    assert words in optgap("check", "demo.one_server", "densest_first", code_=2)
    (tmp_path / "instances/demo/__init__.py").unlink()
    said = optgap("generate", "demo.one_server", "--seed", "1", code_=2)
    assert "demo/__init__.py is missing beside demo/one_server.py" in said


@pytest.mark.slow
def test_six_files_are_all_that_the_tests_of_the_catalogue_ask_for(tmp_path: Path) -> None:
    copied(tmp_path, *PACKAGES, "benchmarks", "collection", "docs", "examples", "tests")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    before = files(tmp_path)
    six = add(tmp_path, 6)
    modules = {(Path(name).parent / "__init__.py").as_posix() for name in six if name.startswith(PACKAGES)}
    assert files(tmp_path) - before == {*six, *modules}
    assert len(six) == 6

    def passed(*arguments: str) -> int:
        """How many tests of the copy there are, all of which pass."""
        options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-n", "0"]
        said = run([sys.executable, "-m", "pytest", *options, *arguments], tmp_path, tmp_path)
        assert "failed" not in said
        return int(re.search(r"(\d+) passed", said).group(1))  # type: ignore[union-attr]

    assert passed("tests/demo") == 1
    assert passed(*(f"tests/{name}" for name in WHOLE)) >= len(WHOLE)
