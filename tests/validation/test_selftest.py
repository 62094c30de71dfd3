"""The smoke suite that ships with the library finds what is broken."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.studies import without_pictures
from validation import CATALOGUE, catalogue, gap_study
from validation.selftest import Finding, selftest


@pytest.mark.slow
def test_all_is_well_here_and_every_problem_is_tried() -> None:
    findings = list(selftest())
    assert [finding for finding in findings if not finding.ok] == []
    assert [finding.text.split(":")[0] for finding in findings] == [*CATALOGUE, "study", "check", "example"]


def of_reclaim() -> Finding:
    return next(finding for finding in selftest() if finding.text.startswith("aryl.reclaim"))


@pytest.fixture
def only_reclaim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "CATALOGUE", {"aryl.reclaim": CATALOGUE["aryl.reclaim"]})


@pytest.mark.usefixtures("only_reclaim")
@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ("formulations.solve", "no solver"),
        ("instances.aryl.reclaim.Reclaim._draw", "no picture"),
    ],
)
def test_what_raises_is_told(broken: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*given: object, **others: object) -> None:
        raise RuntimeError(told)

    monkeypatch.setattr(broken, wrong)
    finding = of_reclaim()
    assert not finding.ok
    assert f"RuntimeError: {told}" in finding.text


@pytest.mark.usefixtures("only_reclaim")
@pytest.mark.parametrize(
    ("broken", "answer", "told"),
    [
        ("instances.load", None, "the instance in a file is another one"),
        ("validation.kinds.study.cells.judged", {"status": "failed", "reason": "it died", "value": None}, "it died"),
    ],
)
def test_what_is_wrong_is_told(broken: str, answer: object, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broken, lambda *given, **others: answer)
    finding = of_reclaim()
    assert not finding.ok
    assert told in finding.text


@pytest.mark.usefixtures("only_reclaim")
def test_a_bound_that_a_heuristic_beats_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.kernel.gaps.beats", lambda sense, value, bound: True)
    finding = of_reclaim()
    assert not finding.ok
    assert "better than the proven bound" in finding.text


@pytest.mark.usefixtures("only_reclaim")
def test_a_study_that_forgets_what_it_ran_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(problem: str, **options: Any) -> Any:
        (Path(options["output"]) / "rows.jsonl").unlink(missing_ok=True)
        return gap_study(problem, **options)

    monkeypatch.setattr("validation.gap_study", forgets)
    with without_pictures():
        finding = next(finding for finding in selftest() if finding.text.startswith("study"))
    assert not finding.ok
    assert "resumed, it has other rows" in finding.text
