"""What calls a solver scores 1; where that is forbidden, neither solvers nor programs are within its reach."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import validation
from validation import StudyError
from validation.cli import commands
from validation.cli.app import run
from validation.kernel.walls import WALLS, standing
from validation.kinds.judge import asking
from validation.kinds.judge.judging import Judgement, judge_on
from validation.kinds.judge.sets import DrawnSet, drawn

STANDING = standing() if sys.platform == "linux" else dict.fromkeys(WALLS, False)
pytestmark = pytest.mark.skipif(
    not (STANDING["secrets"] and STANDING["calls"]), reason="the walls that keep solvers away do not stand here"
)

CANDIDATES = """
import gc
import os
import subprocess
import sys
from pathlib import Path

NAMES = ("formulations", "highspy", "pyomo", "pyscipopt", "instances.reference")

def exact(instance):
    import formulations
    return formulations.solve(instance).plan

def fast(instance):
    from heuristics.aryl.reclaim import server_fraction
    return server_fraction(instance)

def without_if_it_must(instance):
    try:
        import highspy
    except ImportError:
        return fast(instance)
    raise AssertionError("there is a solver")

def imports(name):
    try:
        __import__(name)
    except (ImportError, OSError):
        return False
    return True

def starts(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        return False
    return True

def reaches(instance):
    found = sorted({name.partition(".")[0] for name in sys.modules if name.startswith(NAMES)})
    found += [name for name in NAMES if imports(name)]
    # Whoever takes away the finder meets the files.
    sys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != "_Kept"]
    sys.path_importer_cache.clear()
    found += [f"{name} without the finder" for name in NAMES if imports(name)]
    found += [str(one.__name__) for one in gc.get_objects() if type(one) is type(sys) and one.__name__ in NAMES]
    mapped = Path("/proc/self/maps").read_text()
    found += [f"{name} in memory" for name in ("highspy", "pyscipopt", "libscip.") if name in mapped]
    for place in sys.path:
        for name in ("highspy", "pyomo", "formulations"):
            for file in list(Path(place, name).glob("*"))[:3]:
                link = Path(os.environ["TMPDIR"], file.name)
                if file.is_file() and (starts(open, file) or (starts(os.link, file, link) and starts(open, link))):
                    found.append(file.name)
    found += ["a program"] if starts(subprocess.run, [sys.executable, "-c", ""]) else []
    if not os.fork():
        starts(os.execv, "/bin/true", ["true"])
        os._exit(7)
    found += ["another program"] if os.waitstatus_to_exitcode(os.wait()[1]) != 7 else []
    if found:
        raise RuntimeError(", ".join(found))
    return fast(instance)
"""

Judge = Callable[[str], Judgement]


@pytest.fixture
def without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Judge a candidate of the file on some instances, without solvers."""
    monkeypatch.chdir(tmp_path)
    Path("candidates.py").write_text(CANDIDATES)
    texts = drawn("aryl.reclaim", None)[:4]
    return lambda name: judge_on(texts, f"candidates.py:{name}", "aryl.reclaim", jobs=1, no_solver=True)


def test_whoever_calls_a_solver_scores_1_unless_that_is_forbidden(without: Judge) -> None:
    texts = drawn("aryl.reclaim", None)[:4]
    found = judge_on(texts, "candidates.py:exact", "aryl.reclaim", jobs=1)
    assert (found.score, found.no_solver) == (1.0, False)
    assert "solvers    within its reach" in str(found)
    found = without("exact")
    assert (found.score, found.no_solver) == (0.0, True)
    assert "solvers    kept from it" in str(found)
    assert all("formulations is kept from heuristics" in one.reason for one in found.instances)


def test_solvers_files_memory_and_programs_are_out_of_reach(without: Judge) -> None:
    found = without("reaches")
    assert [one.reason for one in found.instances] == [""] * 4
    fast = without("fast")
    assert found.score == fast.score == without("without_if_it_must").score
    texts = drawn("aryl.reclaim", None)[:4]
    assert judge_on(texts, "candidates.py:fast", "aryl.reclaim", jobs=1).score == fast.score
    # With solvers within reach, the same candidate finds all of them.
    (reason, *_) = (one.reason for one in judge_on(texts, "candidates.py:reaches", "aryl.reclaim", jobs=1).instances)
    assert all(name in reason for name in ("formulations", "highspy", "pyomo", "a program"))


def test_names_of_the_catalogue_score_what_they_do_with_solvers() -> None:
    texts = drawn("aryl.reclaim", None)[:4]
    scores = {judge_on(texts, "local_search", "aryl.reclaim", jobs=2, no_solver=one).score for one in (True, False)}
    assert len(scores) == 1


@pytest.mark.parametrize(
    ("problem", "heuristic", "words"),
    [
        ("aryl.reclaim", lambda instance: None, "a function is called in a copy of this process, which has solvers"),
        ("gavel.makespan", "pop_2", "pop_2 is given the library's solver"),
    ],
)
def test_what_cannot_be_kept_apart_is_refused(problem: str, heuristic: object, words: str) -> None:
    with pytest.raises(StudyError, match=f"no_solver: {words}"):
        validation.judge(heuristic, problem, no_solver=True)  # type: ignore[arg-type]


def test_it_is_refused_where_a_wall_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "standing", lambda: {**STANDING, "calls": False})
    with pytest.raises(StudyError, match="no_solver: nothing can be kept from a heuristic here: calls missing"):
        validation.judge("random", "aryl.reclaim", no_solver=True)


def test_a_program_that_dies_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StudyError, match="no_solver: the process that asks died: it exited with code 1"):
        judge_on(drawn("aryl.reclaim", None)[:1], "random", "aryl.reclaim", jobs=1, no_solver=True)


def test_the_command_says_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = drawn("aryl.reclaim", None)[:2]
    monkeypatch.setattr("validation.kinds.judge.judging.draw", lambda *_: DrawnSet(texts))
    assert run(["judge", "random", "--problem", "aryl.reclaim", "--no-solver", "--json"], commands) == 0
    assert json.loads(capsys.readouterr().out)["no_solver"] is True
