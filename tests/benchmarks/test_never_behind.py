"""The table of solves behind heuristics: empty at the smallest sizes, and one that can fail."""

import math
from dataclasses import replace
from typing import Any

import pytest

import formulations
from benchmarks import never_behind, peers
from benchmarks.tables import Broken, Setup
from instances.base import Instance
from validation.catalogue import CATALOGUE, Catalogue, Heuristic, entry

PROBLEM = "aryl.reclaim"


def test_no_solve_is_behind_at_the_smallest_sizes() -> None:
    *rows, total = never_behind.never_behind(Setup(quick=True, limit=10.0))
    assert [row[0] for row in rows] == [f"`{problem}`" for problem in CATALOGUE]
    assert {row[3] for row in rows} == {"0 of 1"}
    assert total[3] == f"0 behind of {len(rows)}"


def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solves have no time, and so return what is at hand."""
    solve = formulations.solve
    monkeypatch.setattr(formulations, "solve", lambda instance, **_: solve(instance, time_limit=1e-9))


def test_a_heuristic_with_a_better_plan_fails_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    # What is at hand there is far from the best plan.
    problem = entry("gavel.total_throughput")
    setup = Setup(quick=True, limit=60.0, problems=[problem.problem])
    best = formulations.solve(problem.generate(0, num_jobs=problem.sizes[0])).plan
    planted: Any = Catalogue()
    planted.add(replace(problem, heuristics={"planted": Heuristic(lambda instance: best)}))
    monkeypatch.setattr(never_behind, "CATALOGUE", planted)
    assert [row[3] for row in never_behind.never_behind(setup)] == ["0 of 1", "0 behind of 1"]
    cut(monkeypatch)
    told = []
    with pytest.raises(Broken, match=r"^1 behind, 0 loose bounds$"):
        told.extend(never_behind.never_behind(setup))
    rows = never_behind.never_behind(setup)
    row = next(rows)
    assert (row[3], row[5]) == ("1 of 1", "`planted`")
    assert float(row[4].rstrip("%")) > 0


def test_a_loose_bound_fails_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = formulations.solve
    monkeypatch.setattr(
        formulations,
        "solve",
        lambda instance, **options: replace(solve(instance, **options), status="feasible", bound=0.0),
    )
    with pytest.raises(Broken, match=r"^0 behind, 1 loose bounds$"):
        list(never_behind.never_behind(Setup(quick=True, limit=10.0, problems=["aryl.base_allocation"])))


def slow(instance: Instance[Any]) -> Any:
    while True:
        pass


def test_heuristics_that_take_too_long_decline_or_break_a_rule_do_not_count() -> None:
    instance = entry(PROBLEM).generate(0, num_servers=10)
    fine = entry(PROBLEM).heuristics["server_fraction"]
    plan = fine.function(instance)
    others = {
        "slow": Heuristic(slow),
        "declines": Heuristic(lambda instance: None, declines=True),
        "breaks": Heuristic(lambda instance: replace(plan, servers=plan.servers[:0])),
        "fine": fine,
    }
    found = never_behind.answers(replace(entry(PROBLEM), heuristics=others), instance, 0.5)
    assert [name for _, _, name in found] == ["fine"]
    assert found[0][1] == instance.objective(plan)


def test_how_far_behind() -> None:
    least, most = entry(PROBLEM).generate(0, num_servers=10), entry("synergy.allocation").generate(0, num_servers=4)
    assert never_behind.shortfall(least, 3.0, 2.0) == 0.5
    assert never_behind.shortfall(least, 2.0, 3.0) == 0.0
    assert never_behind.shortfall(most, 2.0, 4.0) == 0.5
    assert never_behind.shortfall(most, 4.0, 4.0) == 0.0
    assert never_behind.shortfall(most, None, 4.0) == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["aryl.base_allocation", "afs.network_packing"])
def test_peers_prove_the_same(problem: str) -> None:
    (row,) = peers.peers(Setup(quick=True, limit=20.0, problems=[problem]))
    assert row[-1] == 0
    own, *others = row[2:5]
    assert own == "1 of 1"
    # Who is not as fast may have too little time.
    assert "1 of 1" in others


def test_values_that_cannot_both_be_right_differ() -> None:
    def run(value: float | None, proven: bool = True) -> peers.Run:
        return peers.Run(proven, value, 1.0)

    assert not peers._differ(run(3.0), run(3.0 + 1e-6), run(4.0, proven=False))
    assert peers._differ(run(3.0), run(3.1))
    assert peers._differ(run(3.0), run(None))
    assert not peers._differ(run(None), run(None))
