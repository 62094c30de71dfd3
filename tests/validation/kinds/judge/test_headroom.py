"""What the best known heuristics leave to gain: the table is the page's, and what is measured anew."""

import re
from pathlib import Path

import pytest

from benchmarks.judge import best_known, cells
from validation.catalogue import CATALOGUE
from validation.kinds.judge.headroom import KNOWN, Headroom, headroom
from validation.kinds.judge.judging import judge_on
from validation.kinds.judge.sets import EDITION, draw
from validation.pages.render import table_lines

from ..study.studies import FORKED

PAGE = (Path(__file__).parents[4] / "docs" / "judge.md").read_text(encoding="utf-8")
THEOREM = {"afs.two_job", "aryl.two_job", "aryl.elastic_allocation", "gavel.shortest_job_first"}


def test_the_page_has_the_table() -> None:
    rows = [cells(problem, edition, known) for (problem, edition), known in KNOWN.items()]
    _, _, *lines = table_lines([""] * len(rows[0]), rows)
    told = PAGE.partition("\n## Headroom\n")[2].partition("\n## ")[0]
    assert lines == re.findall(r"^\| `.*$", told, re.MULTILINE)


def test_every_problem_that_is_judged_is_in_it() -> None:
    # Of the first edition's sets of eplb.placement not all optima are proven in time.
    assert {problem for problem, _ in KNOWN} == CATALOGUE.keys() - {"shockwave.window"}
    assert {problem for problem, known in KNOWN.items() if known.theorem} == {(one, EDITION) for one in THEOREM}


def test_saturated_is_more_than_95_percent() -> None:
    assert not Headroom("", "h", 19, 20, 0.9).saturated
    assert Headroom("", "h", 20, 20, 1.0).saturated
    assert Headroom("", "h", 23, 24, 0.9).saturated


def test_sets_of_an_edition_that_changed_nothing_are_the_later_ones() -> None:
    assert headroom("aryl.two_job", 1) == headroom("aryl.two_job", EDITION)
    assert headroom("aryl.reclaim", 1) != headroom("aryl.reclaim", EDITION)
    assert headroom("nobody.knows", 1) is None


@FORKED
@pytest.mark.parametrize(("problem", "edition"), [("aryl.two_job", 1), ("afs.network_packing", 2)])
def test_it_is_what_is_measured(problem: str, edition: int) -> None:
    known = headroom(problem, edition)
    assert known is not None
    assert best_known(problem, draw(problem, None, edition), [known.heuristic]) == known


@FORKED
@pytest.mark.slow
@pytest.mark.parametrize(("problem", "edition"), KNOWN)
def test_all_of_it_is_what_is_measured(problem: str, edition: int) -> None:
    known = KNOWN[problem, edition]
    assert best_known(problem, draw(problem, None, edition), [known.heuristic]) == known


@FORKED
def test_a_judgement_tells_it() -> None:
    found = draw("aryl.two_job")
    judged = judge_on(found, "best_breakpoint", "aryl.two_job")
    assert f"headroom   {headroom('aryl.two_job', EDITION)}" in str(judged)
    told = judged.to_dict()["headroom"]
    assert told["saturated"]
    assert told["theorem"]
    assert told["set"] == judged.set[:16]
