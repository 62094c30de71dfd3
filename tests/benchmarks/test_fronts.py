"""What a front says follows from its answers, and pages are written anew without anything left of before."""

import math
from typing import Any

import pytest

from benchmarks import fronts
from benchmarks.fronts import COLLECTION, Front
from benchmarks.results.kept import Asked
from benchmarks.tables import Setup
from validation import CATALOGUE

PROBLEM = "afs.two_job"
SIZES = ("max_share=8", "max_share=16", "max_share=64")
PAGE = "# A title\n\nThe problem.\n\n## Heuristics\n\nSome.\n\n## As printed / as built\n\n- This.\n"


def answered(algorithm: str, gaps: list[float | None], seconds: float) -> list[dict[str, Any]]:
    """Answers of an algorithm in each sample, a gap for each instance of the collection; None where it has no plan."""
    found = []
    for sample, own in ((COLLECTION, gaps), *((size, gaps[:1]) for size in SIZES)):
        for number, gap in enumerate(own):
            one = {"sample": sample, "instance": number, "algorithm": algorithm, "seconds": seconds, "proven": True}
            if gap is None:
                found.append({**one, "status": "infeasible"})
            else:
                found.append({**one, "status": "feasible", "gap_low": gap, "gap_high": gap})
    return found


def front(*found: list[dict[str, Any]], problem: str = PROBLEM) -> Front:
    return Front(problem, [one for some in (answered("exact, 1 s", [0.0] * 3, 0.3), *found) for one in some])


def test_the_goal_is_of_means_and_worst_gaps_and_of_plans() -> None:
    made = front(
        answered("exact_rule", [0.0, 0.0, 0.03], 0.2),
        answered("pairwise_rule", [0.0, 0.0, 0.06], 0.001),
        answered("shorter_first", [0.0, 0.0, None], 0.001),
    )
    assert [made.close(name) for name in made.entry.heuristics] == [True, False, False]
    assert [made.fast(name) for name in made.entry.heuristics] == [False, True, True]
    assert made.speedup("pairwise_rule") == pytest.approx(300.0)
    assert made.use == "exact_rule"
    assert made.cell(COLLECTION, "shorter_first") == "0%, 0%; 1 ms; 2 of 3"
    # Of two that are close, the one that is fast.
    made = front(
        answered("exact_rule", [0.0] * 3, 0.2),
        answered("pairwise_rule", [0.0, 0.01, 0.01], 0.001),
        answered("shorter_first", [0.5] * 3, 1e-5),
    )
    assert made.use == "pairwise_rule"
    # Of none that is close, the one with most plans, and then the closest.
    made = front(
        answered("exact_rule", [0.0, 0.0, None], 0.2),
        answered("pairwise_rule", [0.1, 0.1, 0.2], 0.001),
        answered("shorter_first", [0.5] * 3, 1e-5),
    )
    assert made.use == "pairwise_rule"


def test_what_is_counted_must_be_optimal() -> None:
    first, second, *_ = CATALOGUE["aryl.placement"].heuristics
    gaps = [0.0] * 9 + [0.5]
    made = front(answered(first, gaps, 1e-3), answered(second, [0.0] * 8 + [0.01] * 2, 1e-3), problem="aryl.placement")
    assert (made.close(first), made.close(second)) == (True, False)


def test_pages_are_written_anew(tmp_path: Any) -> None:
    kept = Asked(tmp_path).once("part", list)
    rules = [answered(name, [0.0, 0.0, 0.03], 0.001) for name in CATALOGUE[PROBLEM].heuristics]
    setup = Setup(limit=1.0, count=2)
    page = fronts.paged(PAGE, front(*rules), kept, setup)
    assert page.startswith(
        "# A title\n\n**Use `exact_rule`**: on the collection's 3 instances 2 of its plans are proven"
    )
    assert "\n\nThe problem.\n\n## Heuristics\n\nSome.\n\n## The front\n\nMeasured " in page
    assert "`python -m benchmarks fronts --docs docs --limit 1 --count 2`" in " ".join(page.split())
    assert "| `exact_rule` | 1%, 3%; 1 ms | 0%, 0%; 1 ms | 0%, 0%; 1 ms | 0%, 0%; 1 ms |\n" in page
    assert "takes 1/300 of the exact solve's, which is short enough, and is fast enough at" in " ".join(page.split())
    close, *others = CATALOGUE[PROBLEM].heuristics
    worse = [answered(name, [0.5] * 3, 0.1 / at) for at, name in enumerate(others, 2)]
    slow = fronts.paged(PAGE, front(answered(close, [0.0] * 3, 0.1), *worse), kept, setup)
    assert f"not short enough (the fastest of all, `{others[-1]}`, takes 1/" in " ".join(slow.split())
    assert page.endswith("two_job.svg)\n\n## As printed / as built\n\n- This.\n")
    rules = [answered(name, [0.0, 0.0, 0.3], 0.001) for name in CATALOGUE[PROBLEM].heuristics]
    again = fronts.paged(page, front(*rules), kept, setup)
    assert "**Use `exact_rule`**, the closest so far: on" in again
    assert again.count("## The front") == again.count("**Use `") == 1
    assert "1%, 3%" not in again
    assert "\n\nThe problem.\n\n## Heuristics\n\nSome.\n\n## The front" in again


@pytest.mark.parametrize(("sense", "values"), [("min", (3.0, 2.0, 1.0)), ("max", (1.0, 2.0, 3.0))])
def test_open_instances_have_intervals(sense: str, values: tuple[float, float, float]) -> None:
    worse, best, bound = values

    class Stub:
        digest = "stub"

    Stub.sense = sense  # type: ignore[attr-defined]
    by = {
        "exact, 1 s": {"status": "feasible", "value": worse, "bound": bound},
        "exact, 10 s": {"status": "unknown", "value": None, "bound": None},
        "h": {"status": "feasible", "value": best, "bound": None},
    }
    record = fronts._record(Stub(), by)  # type: ignore[arg-type]
    assert (record["class"], record["best"]["value"], record["bound"]["value"]) == ("open", best, bound)
    low, high = fronts.gap(record, worse)
    assert low == pytest.approx(abs(worse - best) / best)
    assert high == pytest.approx(abs(worse - bound) / bound)
    proven = {**by, "exact, 10 s": {"status": "optimal", "value": best, "bound": best}}
    record = fronts._record(Stub(), proven)  # type: ignore[arg-type]
    assert (record["class"], record["best"]["value"], record["bound"]["value"]) == ("closed", best, best)


def test_answers_are_of_every_algorithm_and_judged() -> None:
    found = fronts.answers(PROBLEM, Setup(quick=True))
    made = Front(PROBLEM, found)
    assert made.algorithms == ["exact, 1 s", *CATALOGUE[PROBLEM].heuristics]
    assert {one["status"] for one in found} == {"feasible"}
    assert {one["gap_high"] for one in found if one["algorithm"] in ("exact, 1 s", "exact_rule")} == {0.0}
    assert all(0 < one["seconds"] < math.inf for one in found)
