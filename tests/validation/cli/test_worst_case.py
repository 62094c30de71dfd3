"""``optgap worst-case``: what it says, writes and refuses."""

import json
import textwrap
from pathlib import Path

import instances

from .commands import Optgap

ASKED = ("worst-case", "gavel.round_assignment", "greedy_priority", "--size", 3)

WRONG = """
from dataclasses import replace
from formulations.worst_case.gavel.round_assignment import WORST_CASES
from heuristics.gavel.round_assignment import greedy_priority
from validation import Heuristic

def turned(instance):
    '''Job 0 last, which the trace does not know.'''
    from instances.gavel.round_assignment import RoundAssignment
    data = {name: value for name, value in instance.to_dict().items() if name != "problem"}
    data["priorities"] = instance.priorities * ([[0.01]] + [[1.0]] * (instance.num_jobs - 1))
    return greedy_priority(RoundAssignment(**data))

mine = Heuristic(turned, worst_case=WORST_CASES["greedy_priority"])
"""


def test_a_worst_case_is_told_and_its_witness_solved(optgap: Optgap, tmp_path: Path) -> None:
    said = optgap(*ASKED, "--fix", "num_workers=2", "-o", "worst")
    assert said.code == 0, said.err
    told = dict(line.split(maxsplit=1) for line in said.out.splitlines())
    assert told["worst"] == "ratio 2, exactly"
    assert told["instances"].startswith("3 jobs of 1 to 2 workers, no pairs, on one type of 2 workers")
    path = Path(told["saved"])
    assert path.with_suffix(".html") == Path(told["page"])
    assert (tmp_path / told["page"]).stat().st_size > 0
    assert "objective  2" in optgap("solve", path).out
    assert "objective  1" in optgap("solve", path, "--heuristic", "greedy_priority").out
    # What is there was written by the same command.
    assert optgap(*ASKED, "--fix", "num_workers=2", "-o", "worst").code == 0


def test_a_worst_case_as_json(optgap: Optgap) -> None:
    said = optgap(*ASKED, "--fix", "widest=1", "--measure", "difference", "--verify", "--json")
    told = json.loads(said.out)
    assert (told["measure"], told["value"], told["status"], told["dials"]) == (
        "difference",
        0.0,
        "optimal",
        {"widest": 1},
    )
    assert told["proof"] in ("two runs", "prices")
    assert instances.read(told["instance"]).dims["n"] == 3


def test_what_cannot_be_asked_is_one_line(optgap: Optgap, tmp_path: Path) -> None:
    for words, arguments in {
        "there is no 'num_worker'": ("--fix", "num_worker=2"),
        "--fix: got 'num_workers'": ("--fix", "num_workers"),
        "num_workers: got 'many', must be a whole number": ("--fix", "num_workers=many"),
        "measure: got 'gap', must be ratio or difference": ("--measure", "gap"),
        "time_limit: got 0.0, must be positive seconds": ("--time-limit", 0),
    }.items():
        said = optgap(*ASKED, *arguments, "-o", "worst")
        assert said.code == 2
        assert words in said.err
        assert said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
    said = optgap("worst-case", "gavel.round_assignment", "matching_round", "--size", 3)
    assert (said.code, said.out) == (2, "")
    assert "matching_round has no model of its worst case; those of gavel.round_assignment with one are gre" in said.err


def test_a_file_that_is_somebody_elses_stays(optgap: Optgap, tmp_path: Path) -> None:
    name = "gavel.round_assignment-greedy_priority-3-num_workers-2.json"
    (tmp_path / name).write_text("mine")
    said = optgap(*ASKED, "--fix", "num_workers=2", "-o", ".")
    assert said.code == 2
    assert f"{name} is in the way" in said.err
    assert (tmp_path / name).read_text() == "mine"


def test_a_model_that_is_wrong_ends_with_1(optgap: Optgap, tmp_path: Path) -> None:
    """Of a heuristic of the user's, which brings its model, by a reference."""
    (tmp_path / "turned_round.py").write_text(textwrap.dedent(WRONG), encoding="utf-8")
    said = optgap("worst-case", "gavel.round_assignment", "turned_round.py:mine", "--size", 3, "-o", "worst")
    assert said.code == 1, said.err
    assert "the model of the worst case is wrong: turned_round.py:mine makes" in said.err
    assert not (tmp_path / "worst").exists()
