"""Programs that decide online: what they are told, what becomes of what they answer, and what they cannot reach."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from instances.aryl.base_allocation import BaseAllocation
from instances.base import Instance
from validation.errors import ReplayError
from validation.kernel.judging import Answer
from validation.kernel.walls import ruled, standing
from validation.replay import Jobs, Replayed, Setting, decider, replay
from validation.replay.online import OnlineProgram, is_program
from validation.replay.settings import afs, aryl, elasticflow, gavel, shockwave, sia, synergy

from ..kinds.study.studies import FORKED
from .programs import SHORTEST, program

pytestmark = FORKED
PROBLEM = "aryl.base_allocation"
WALLED = pytest.mark.skipif(not all(standing().values()), reason="this kernel cannot keep a program from what it tries")


def waiting(num_jobs: int = 20, **options: Any) -> Setting:
    options = {"num_servers": 3, "elastic": 0.0, "loaned": 0, "jobs_per_hour": 6.0, **options}
    return aryl.generate(np.random.default_rng(5), num_jobs=num_jobs, **options)


def run(folder: Path, text: str, setting: Setting | None = None, problem: str = PROBLEM, **options: Any) -> Replayed:
    return replay(waiting() if setting is None else setting, decider(problem, program(folder, text), **options))


# --- the protocol -------------------------------------------------------------------------------


def test_a_program_decides_as_the_heuristic_that_it_is(tmp_path: Path) -> None:
    def shortest(instance: BaseAllocation) -> Any:
        names: dict[str, Any] = {}
        exec(SHORTEST, names)
        return instance.plan_type.from_dict(names["decide"]({"instance": instance.to_dict()}))

    setting = waiting()
    here = replay(setting, decider(PROBLEM, shortest))
    done = run(tmp_path, SHORTEST, setting)
    pd.testing.assert_frame_equal(done.jobs, here.jobs)
    told = ["time", "problem", "jobs", "status", "value", "instead"]
    pd.testing.assert_frame_equal(done.decisions[told], here.decisions[told])
    assert done.decisions.loc[done.decisions["problem"] == PROBLEM, "status"].eq("feasible").all()


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("mine.py:decide", True),
        ("package.mine:decide", True),
        ("mine.py:decided", False),
        ("decide", False),
        (len, False),
    ],
)
def test_a_program_is_told_by_the_name_of_its_function(given: Any, found: bool) -> None:
    assert is_program(given) is found


class Witness(OnlineProgram):
    """Notes what a program would be told, and answers as a heuristic does."""

    def __init__(self, problem: str, who: str) -> None:
        super().__init__(problem, f"{who}:decide", time_limit=1.0)
        self.who, self.told = decider(problem, who), list[dict[str, Any]]()

    def decide(self, instance: Instance[Any], told: Mapping[str, Any], forgiven: Collection[str] = ()) -> Answer:
        self.told.append(json.loads(json.dumps({**told, "instance": instance.to_dict()})))
        return self.who.ask(instance)


RNG = np.random.default_rng
CURVES = np.array([[0, 1, 1.5, 2.0, 2.2]] * 12)
ARRIVALS = np.arange(12) * 400.0
ALONE = Jobs([f"job {one}" for one in range(12)], ARRIVALS, np.linspace(300, 2500, 12), np.full(12, 2.2))
LOANS = aryl.Loans(np.array([0.0, 900.0, 1200.0]), np.array([4, 1, 3]))
ELASTIC = afs.Elastic(ALONE, 4, CURVES, np.ones(12, np.int64))
SETTINGS: list[tuple[str, str, Setting]] = [
    (PROBLEM, "shortest_job_first", waiting(12)),
    *(
        (problem, who, aryl.generate(RNG(4), num_jobs=12, num_servers=2, elastic=0.6, loans=LOANS))
        for problem, who in (
            ("aryl.elastic_allocation", "dynamic_program"),
            ("aryl.placement", "best_fit_decreasing"),
            ("aryl.reclaim", "server_fraction"),
        )
    ),
    ("afs.elastic_sharing", "max_min", ELASTIC),
    *(
        (
            problem,
            who,
            gavel.Policy(
                replace(ALONE, fastest=np.ones(12)),
                "gavel.max_min_fairness",
                throughputs=np.ones((12, 2)) * (1.0, 0.5),
                num_workers=np.array([2, 1]),
                pools=np.array([0, 1]),
                scale_factors=np.ones(12, np.int64),
                round_length=360.0,
            ),
        )
        for problem, who in (
            ("gavel.max_min_fairness", "heterogeneity_agnostic"),
            ("gavel.round_assignment", "greedy_priority"),
        )
    ),
    *(
        (problem, who, synergy.generate(RNG(2), problem=problem, num_jobs=12, num_servers=2))
        for problem, who in (("synergy.tuning", "tune"), ("synergy.allocation", "greedy_marginal"))
    ),
    *(
        (problem, who, elasticflow.generate(RNG(3), problem=problem, num_jobs=12, num_gpus=8, server_gpus=4))
        for problem, who in (
            ("elasticflow.admission", "progressive_filling"),
            ("elasticflow.allocation", "greedy_marginal_return_repaired"),
            ("elasticflow.placement", "buddy_repack"),
        )
    ),
    ("sia.goodput", "greedy_marginal", sia.on_powers_of_two(ELASTIC, server_gpus=4)),
    (
        "shockwave.window",
        "greedy_marginal",
        shockwave.Shockwave(
            jobs=replace(ALONE, fastest=np.ones(12)),
            num_gpus=2,
            scale_factors=np.ones(12, np.int64),
            epochs=np.full(12, 3),
            num_rounds=4,
        ),
    ),
]


@pytest.mark.parametrize(("problem", "who", "setting"), SETTINGS, ids=[problem for problem, *_ in SETTINGS])
def test_what_a_program_is_told_does_not_depend_on_who_comes_later(problem: str, who: str, setting: Setting) -> None:
    """Jobs that come later come at another time, have other work and another name: until then not a digit differs."""
    jobs, middle = setting.jobs, len(setting.jobs) // 2
    later = np.arange(len(jobs)) >= middle
    other = replace(
        jobs,
        names=[f"late {name}" if late else name for name, late in zip(jobs.names, later, strict=True)],
        arrivals=jobs.arrivals + np.where(later, 7777.0, 0.0),
        work=jobs.work * np.where(later, 1.5, 1.0),
    )
    witnesses = [Witness(problem, who) for _ in range(2)]
    for one, with_jobs in zip(witnesses, (setting, replace(setting, jobs=other)), strict=True):  # type: ignore[type-var]
        replay(with_jobs, one, horizon=float(jobs.arrivals[middle]))
    first, second = (one.told for one in witnesses)
    assert first == second
    assert first
    for one in first:
        assert all(job["arrived"] <= one["time"] for job in one["jobs"])
        assert all(job["number"] < middle for job in one["jobs"])
        # Every job of the instance is one that is there.
        assert one["rows"] is not None
        assert len(set(one["rows"])) == len(one["rows"]) <= len(one["jobs"])


def test_rows_are_the_jobs_of_the_instance() -> None:
    witness = Witness(PROBLEM, "shortest_job_first")
    setting: Any = waiting(12)
    replay(setting, witness, ties=3)
    gpus = dict(zip(setting.jobs.names, setting.min_workers * setting.gpus_per_worker, strict=True))
    assert any(len(one["rows"]) < len(one["jobs"]) for one in witness.told)
    for one in witness.told:
        named = [one["jobs"][row]["name"] for row in one["rows"]]
        assert [gpus[name] for name in named] == one["instance"]["gpu_demands"]
    assert all(job["started"] is None for one in witness.told for job in (one["jobs"][row] for row in one["rows"]))
    assert any(job["started"] is not None and sum(job["gpus"]) > 0 for one in witness.told for job in one["jobs"])


def test_a_program_may_remember_what_has_been_and_no_other_replay(tmp_path: Path) -> None:
    text = SHORTEST.replace("def decide", "def plan_of") + (
        "times = []\n"
        "def decide(state):\n"
        "    times.append(state['time'])\n"
        "    assert times == sorted(times)\n"
        "    assert len(times) < 12 or state['time'] == times[0], f'{len(times)} events so far'\n"
        "    return plan_of(state)\n"
    )
    for _ in range(2):
        with pytest.raises(ReplayError, match=r"AssertionError: 12 events so far") as raised:
            run(tmp_path, text, waiting(60, jobs_per_hour=40.0))
    assert "policy.py:decide, event " in str(raised.value)


# --- what is not carried out --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return {'starts': [0.0] * len(state['rows'])}", "capacity"),
        ("return {'starts': 'at once'}", "BaseAllocationPlan.starts"),
        ("return {'begins': []}", "unknown field 'begins'"),
        ("return {}", "field 'starts' is missing"),
        ("return [1.0]", "got list, must be a JSON object"),
        ("return {1j}", "decide returned what is no JSON: TypeError: set is not among what it has"),
        ("return float('nan')", "got float, must be a JSON object"),
        ("raise RuntimeError('not yet')", r"RuntimeError: not yet \(policy.py, line 3\)"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import os; os._exit(3)", "the process died: it exited with code 3"),
        ("import time; time.sleep(60)", "time limit: stopped after 0.5 s"),
        ("return {'starts': [0.0] * 10**9}", "MemoryError|memory limit"),
    ],
)
def test_what_breaks_a_rule_ends_the_replay(tmp_path: Path, body: str, said: str) -> None:
    text = f"def decide(state):\n    if len(state['rows']) > 2:\n        {body}\n    return None\n"
    with pytest.raises(ReplayError, match=rf"policy\.py:decide, event \d+ at [\d.]+ s, {PROBLEM}: .*({said})"):
        run(tmp_path, text, waiting(60, jobs_per_hour=40.0), time_limit=0.5, memory=10**9)


def test_none_leaves_a_decision_to_the_setting(tmp_path: Path) -> None:
    setting = waiting()
    done = run(tmp_path, "def decide(state):\n    return None\n", setting)
    pd.testing.assert_frame_equal(done.jobs, replay(setting, decider(PROBLEM, "shortest_job_first")).jobs)
    asked = done.decisions[done.decisions["problem"] == PROBLEM]
    assert set(asked["status"]) == {"declined", "feasible"}
    assert asked["instead"].sum() == len(asked) / 2


def test_a_rule_that_a_setting_can_live_without_may_be_broken(tmp_path: Path) -> None:
    """As Synergy-Greedy skips jobs, which wait then."""
    setting = synergy.generate(RNG(2), problem="synergy.tuning", num_jobs=6, num_servers=1)
    text = (
        "def decide(state):\n"
        "    n, servers = len(state['rows']), state['instance']['num_servers']\n"
        "    fair, tables = state['instance']['fair_throughputs'], state['instance']['configs']\n"
        "    best = [min((memory, row) for row, (_, memory, speed) in enumerate(table) if speed >= least)[1]\n"
        "            for table, least in zip(tables, fair)]\n"
        "    return {'choices': best, 'gpus': [[0] * servers] * n} if state['time'] < 1800 else None\n"
    )
    done = run(tmp_path, text, setting, "synergy.tuning")
    early = done.decisions["time"] < 1800
    assert set(done.decisions.loc[early, "status"]) == {"infeasible"}
    assert done.decisions.loc[early, "reason"].str.startswith("placed").all()
    assert done.jobs["started"].min() == 1800


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def decides(state):\n    pass\n", r"policy.py has no function decide\(state\)"),
        ("decide = 3\n", r"policy.py has no function decide\(state\)"),
        ("import nothing_like_it\n", "No module named 'nothing_like_it'"),
        ("raise SystemExit\n", "it exits"),
    ],
)
def test_a_program_that_cannot_be_had(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ReplayError, match=said):
        run(tmp_path, text)


# --- what it cannot reach -----------------------------------------------------------------------


def tries(body: str) -> str:
    return f"def decide(state):\n    if len(state['rows']) > 2:\n        {body}\n    return None\n"


@WALLED
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("open(__file__.replace('policy.py', 'jobs.csv')).read()", "PermissionError"),
        ("open(__file__.replace('policy.py', 'left'), 'w')", "PermissionError"),
        ("import socket; socket.socket()", "PermissionError"),
        ("import os; os.kill(os.getppid(), 9)", "PermissionError"),
        ("import multiprocessing; multiprocessing.Lock()", "PermissionError"),
    ],
)
def test_the_walls_are_the_judges(tmp_path: Path, body: str, said: str) -> None:
    (tmp_path / "jobs.csv").write_text("the trace")
    with ruled(hidden=(tmp_path / "jobs.csv",)), pytest.raises(ReplayError, match=said):
        run(tmp_path, tries(body), waiting(60, jobs_per_hour=40.0))


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with pytest.raises(ReplayError, match="time limit"):
        run(
            tmp_path,
            tries("import os, time; os.fork(); time.sleep(60)"),
            waiting(60, jobs_per_hour=40.0),
            time_limit=0.5,
        )
    assert os.listdir(tmp_path / "temporary") == []
