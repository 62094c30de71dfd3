"""Studies: what a heuristic may do, at the cost of its own row only."""

import ctypes
import dataclasses
import faulthandler
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from instances.aryl import elastic_allocation
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import CATALOGUE, gap_study
from validation.catalogue import Heuristic
from validation.kernel.judging import NO_PLAN

from .studies import FORKED, SMALL, first_servers, log_of, raises, returns_no_servers, returns_nothing, stub_exact

pytestmark = FORKED


def raises_unprintable_characters(instance: Reclaim) -> ReclaimPlan:
    raise ValueError("\udcff\x00")


def hangs(instance: Reclaim) -> ReclaimPlan:
    while True:
        pass


def segfaults(instance: Reclaim) -> ReclaimPlan:
    faulthandler.disable()  # Its trace of a crash that is meant would only alarm the reader.
    ctypes.string_at(0)
    return first_servers(instance)


def exits(instance: Reclaim) -> ReclaimPlan:
    os._exit(7)


def returns_a_number(instance: Reclaim) -> Any:
    return 3


def returns_another_plan(instance: Reclaim) -> Any:
    return elastic_allocation.ElasticAllocationPlan(extra_workers=np.array([1]))


def returns_unknown_server(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.array([instance.num_servers]))


def empties_the_instance(instance: Reclaim) -> ReclaimPlan:
    instance.hosts.setflags(write=True)
    instance.hosts[:] = False
    return ReclaimPlan(servers=np.arange(instance.demand))


def replaces_a_field(instance: Reclaim) -> ReclaimPlan:
    object.__setattr__(instance, "demand", 0)
    return ReclaimPlan(servers=np.array([], int))


def may_decline(instance: Reclaim) -> None:
    """Say of no instance that there is a plan."""


def test_each_misbehaviour_costs_its_own_row(tmp_path: Path) -> None:
    expected = {
        raises: ("failed", r"KeyError: 'servers' \(studies\.py, line \d+\)"),
        raises_unprintable_characters: ("failed", r"ValueError: \\udcff\\x00 \(test_isolation\.py, line \d+\)"),
        hangs: ("failed", r"time limit: stopped after 1 s"),
        segfaults: ("failed", r"the process died: killed by SIGSEGV"),
        exits: ("failed", r"the process died: it exited with code 7"),
        returns_a_number: ("failed", r"aryl\.reclaim: a plan must be a ReclaimPlan, got int"),
        returns_another_plan: ("failed", r"aryl\.reclaim: a plan must be a ReclaimPlan, got ElasticAllocationPlan"),
        returns_no_servers: ("infeasible", r"demand by 1"),
        returns_unknown_server: ("infeasible", r"server_exists\[5\] by 1"),
        returns_nothing: ("failed", r"returned None in place of a plan; one that may declares it \(declines=True\)"),
        Heuristic(may_decline, declines=True): ("declined", r"the heuristic found no plan"),
        empties_the_instance: ("feasible", ""),
        replaces_a_field: ("infeasible", r"demand by 1"),
        first_servers: ("feasible", ""),
    }
    study = gap_study(**{**SMALL, "count": 2}, heuristics=[*expected], time_limit=1.0, output=tmp_path)
    rows = study.rows
    for function, (status, reason) in expected.items():
        name = function.name if isinstance(function, Heuristic) else function.__name__
        mine = rows[rows["algorithm"] == name]
        assert list(mine["status"]) == [status] * 2, name
        assert all(re.fullmatch(reason, given) for given in mine["reason"]), list(mine["reason"])
        if status != "feasible":
            assert mine[["value", "gap", "gap_low", "gap_high"]].isna().all(axis=None)
    assert set(rows[rows["algorithm"] == "exact"]["status"]) == {"optimal"}
    # Whatever a heuristic does to its instance, the instance that judges is another.
    honest = rows[rows["algorithm"] == "first_servers"]["value"]
    assert list(rows[rows["algorithm"] == "empties_the_instance"]["value"]) == list(honest)
    summary = study.summary().set_index("heuristic")
    counts = summary[["feasible", "infeasible", "declined", "failed"]]
    assert list(counts.loc["hangs"]) == [0, 0, 0, 2]
    assert list(counts.loc["returns_no_servers"]) == [0, 2, 0, 0]
    assert list(counts.loc["may_decline"]) == [0, 0, 2, 0]
    assert list(counts.loc["returns_nothing"]) == [0, 0, 0, 2]
    assert study.metadata["failed"] == 16


def test_a_catalogued_heuristic_must_have_leave_to_decline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = CATALOGUE["aryl.reclaim"]
    doctored = {"strict": Heuristic(returns_nothing), "lax": Heuristic(returns_nothing, declines=True)}
    monkeypatch.setattr("validation.problems.aryl.reclaim.ENTRY", dataclasses.replace(entry, heuristics=doctored))
    rows = gap_study(**{**SMALL, "count": 1}, output=tmp_path).rows.set_index("algorithm")
    assert rows.loc["strict", ["status", "reason"]].tolist() == ["failed", NO_PLAN]
    assert rows.loc["lax", "status"] == "declined"


def test_a_plan_worth_infinity_is_feasible_and_has_no_number_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reclaim, "_value", lambda self, plan: math.inf if 0 in plan.servers else 1.0)
    stub_exact(monkeypatch, status="optimal", value=1.0, bound=1.0)
    study = gap_study(**{**SMALL, "count": 1}, heuristics=[first_servers], output=tmp_path)
    row = study.rows.set_index("algorithm").loc["first_servers"]
    assert (row["status"], row["reason"]) == ("feasible", "")
    assert (row["value"], row["best_value"], row["exact_value"]) == (math.inf, 1.0, 1.0)
    assert row["gap"] == row["difference_low"] == math.inf
    (logged,) = (one for one in log_of(tmp_path) if one["algorithm"] == "first_servers")
    assert (logged["value"], logged["infinite"]) == (None, True)
    # Every plan is: then it is as good as any.
    stub_exact(monkeypatch, status="optimal", value=math.inf)
    alone = gap_study(**{**SMALL, "count": 1}, heuristics=[first_servers], output=tmp_path / "alone").rows
    assert alone["value"].tolist() == [math.inf] * 2
    assert alone.set_index("algorithm").loc["first_servers", "gap"] == 0.0


@pytest.mark.slow
def test_failures_are_tried_again(tmp_path: Path) -> None:
    flag = tmp_path / "flag"

    def flaky(instance: Reclaim) -> ReclaimPlan:
        if not flag.exists():
            raise OSError("no licence")
        return first_servers(instance)

    output = tmp_path / "study"
    arguments: dict[str, Any] = {**SMALL, "heuristics": [flaky, "server_fraction"], "output": output}
    before = gap_study(**arguments)
    assert before.metadata["failed"] == 3
    assert len(log_of(output)) == 9
    again = gap_study(**arguments)
    assert again.metadata["failed"] == 3
    assert len(log_of(output)) == 12
    flag.touch()
    after = gap_study(**arguments)
    assert after.metadata["failed"] == 0
    assert len(log_of(output)) == 15
    assert len(after.rows) == 9
    gap_study(**arguments)
    assert len(log_of(output)) == 15


def test_modules_that_a_reference_declares_do_not_run_where_it_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in_the_judge.py").write_text(
        "from instances.aryl.reclaim import Reclaim\nReclaim.objective = lambda self, plan: 0.0\n"
    )
    (tmp_path / "declares.py").write_text(
        "from heuristics.aryl.reclaim import server_fraction\nfrom validation.catalogue import Heuristic\n"
        "mine = Heuristic(server_fraction, imports=('in_the_judge', 'networkx'))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    heuristics = {"mine": f"{tmp_path}/declares.py:mine", "theirs": "server_fraction"}
    rows = gap_study(**{**SMALL, "count": 1}, heuristics=heuristics, output=tmp_path / "study").rows
    values = rows.set_index("algorithm")["value"]
    assert values["mine"] == values["theirs"] > 0
