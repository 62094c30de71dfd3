"""Settings of users: found by a study of replays, and named where they are wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.faults.studies import without_pictures
from instances.aryl.base_allocation import BaseAllocation
from validation import CatalogueError, ReplayOptions, Settings, StudyError, register, replay_study, settings
from validation.errors import ReplayError
from validation.kinds.replays.study import plan
from validation.replay import Ask, Decision, Jobs, State, decider, replay
from validation.replay.settings import settings_of

PROBLEM = "aryl.base_allocation"
TRACE = pd.DataFrame(
    {"job_id": ["a", "b", "c"], "submit_time": [0, 0, 5], "num_gpus": [2, 1, 1], "duration": [10, 2, 2]}
)


@dataclass
class Own:
    """Jobs on one pool, decided anew at every event, with nothing but what a setting must have."""

    jobs: Any
    gpus: Any = None
    capacity: Any = (2,)
    name: str = "own"

    def begin(self) -> Any:
        return self.decide

    def decide(self, state: State, ask: Ask) -> Decision:
        gpus = self.gpus[state.jobs]
        plan: Any = ask(BaseAllocation(int(self.capacity[0]), gpus, state.left))
        runs = plan.starts == 0
        return Decision(rates=runs * 1.0, gpus=runs * gpus)


def from_jobs(jobs: pd.DataFrame, *, gpus: int = 2) -> Own:
    asked = Jobs(jobs["job_id"], jobs["submit_time"], jobs["duration"], np.ones(len(jobs)))
    return Own(asked, jobs["num_gpus"].to_numpy(), (gpus,))


def generate(rng: np.random.Generator, *, num_jobs: int = 3) -> Own:
    return from_jobs(TRACE.head(num_jobs).assign(duration=rng.uniform(1, 9, num_jobs)))


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is its own."""
    monkeypatch.setattr(settings, "REGISTERED", {})
    monkeypatch.setattr("validation.replay.settings.REGISTERED", settings.REGISTERED)
    monkeypatch.setattr("validation.kinds.replays.study.REGISTERED", settings.REGISTERED)


def studied(tmp_path: Path, trace: str = "", **options: Any) -> Any:
    if not trace:
        trace = str(tmp_path / "jobs.csv")
        TRACE.to_csv(trace, index=False)
    told: dict[str, Any] = {"policies": ["shortest_job_first", "fifo"], "jobs": 1, "gaps": "all", "progress": False}
    with without_pictures():
        return replay_study(trace, problem=PROBLEM, **{**told, "output": tmp_path / "out", **options})


def test_a_replay_by_hand() -> None:
    register(Settings((PROBLEM,), from_jobs))
    done = replay(settings_of(PROBLEM).from_jobs(TRACE), decider(PROBLEM, "shortest_job_first"))
    # The short one first, then the wide one, which waits for the other short one from 5 to 7.
    assert done.jobs["ended"].tolist() == [14.0, 2.0, 7.0]
    # Nobody has told what an equal share would do.
    assert done.jobs["rho"].isna().all()


def test_a_study_finds_it_with_its_options(tmp_path: Path) -> None:
    register(Settings((PROBLEM,), from_jobs))
    study = studied(tmp_path, setting={"gpus": "3"}, policies=["fifo"])
    assert set(study.rows["status"]) == {"ended"}
    assert study.usage["capacity"].max() == 3
    assert study.offline.empty


@pytest.mark.slow
def test_a_study_draws_its_jobs(tmp_path: Path) -> None:
    register(Settings((PROBLEM,), from_jobs, generate))
    drawn = studied(tmp_path, "poisson", length=2, seeds=2)
    assert (len(drawn.rows), drawn.jobs["job"].nunique()) == (4, 2)


def test_another_setting_is_another_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TRACE.to_csv(tmp_path / "jobs.csv", index=False)
    options = ReplayOptions(
        traces=str(tmp_path / "jobs.csv"), problem=PROBLEM, policies=["fifo"], output=str(tmp_path / "out")
    )
    register(Settings((PROBLEM,), from_jobs))
    first = {cell.key for cell in plan(options).cells}
    assert {cell.key for cell in plan(options).cells} == first
    monkeypatch.setitem(from_jobs.__kwdefaults__ or {}, "gpus", 4)
    assert not first & {cell.key for cell in plan(options).cells}


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"problems": ()}, r"problems: got \(\), must be names"),
        ({"problems": (3,)}, r"problems: got \(3,\), must be names"),
        ({"from_jobs": 3}, "from_jobs: got int, must be a function"),
        ({"from_jobs": lambda: 3}, r"from_jobs: takes no argument, must be from_jobs\(jobs, \*, ...\)"),
        ({"from_jobs": lambda jobs, gpus=2: 3}, r"options stand behind a \*, must be from_jobs\(jobs, \*, gpus\)"),
        ({"generate": lambda rng: 3}, "generate: has no num_jobs"),
        ({"generate": lambda *, num_jobs: 3}, "generate: takes no argument"),
    ],
)
def test_wrong_settings_are_named_when_they_are_made(told: dict[str, Any], words: str) -> None:
    with pytest.raises(ReplayError, match=words):
        Settings(**{"problems": (PROBLEM,), "from_jobs": from_jobs, **told})


def test_a_problem_that_there_is_not() -> None:
    with pytest.raises(CatalogueError, match=r"demo\.nothing"):
        register(Settings(("demo.nothing",), from_jobs))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda jobs: 3, "from_jobs: got int without name, must be a setting"),
        (lambda jobs: Own(jobs), "from_jobs: jobs: got DataFrame, must be Jobs"),
        (
            lambda jobs: Own(from_jobs(jobs).jobs, capacity=8),
            "from_jobs: capacity: got 8, must be the GPUs of each pool",
        ),
        (lambda jobs: Own(from_jobs(jobs).jobs, capacity=[np.nan]), r"from_jobs: capacity: got \[nan\]"),
        (lambda jobs: jobs["colour"], "from_jobs: KeyError: 'colour'"),
        (lambda jobs: from_jobs(jobs.assign(duration=-1)), "work: got -1 for job a, must be a number, at least 0"),
    ],
)
def test_a_wrong_setting_is_named_before_anything_runs(
    tmp_path: Path, made: Callable[[pd.DataFrame], Any], words: str
) -> None:
    def wrong(jobs: pd.DataFrame) -> Any:
        return made(jobs)

    wrong.__name__ = "from_jobs"
    register(Settings((PROBLEM,), wrong))
    with pytest.raises(ReplayError, match=words):
        studied(tmp_path)
    assert not (tmp_path / "out").exists()


def test_without_generate_there_are_no_drawn_jobs(tmp_path: Path) -> None:
    register(Settings((PROBLEM,), from_jobs, name="mine"))
    with pytest.raises(StudyError, match="poisson: mine draws no jobs: give a trace"):
        studied(tmp_path, "poisson")
    with pytest.raises(StudyError, match="setting: mine has no option 'colour'"):
        studied(tmp_path, setting={"colour": "red"})


@pytest.mark.parametrize(
    ("decides", "words"),
    [
        (lambda state, ask: [1.0], "own decided list, must be a Decision"),
        (lambda state, ask: Decision(np.ones(1), np.ones(1)), "shape: rates"),
        (3, "begin: got int, must be a function that decides"),
    ],
)
def test_a_wrong_decision_is_named(decides: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "begin", lambda self: decides)
    with pytest.raises(ReplayError, match=words):
        replay(from_jobs(TRACE), decider(PROBLEM, "fifo"))


def test_a_problem_in_no_replay_says_how_to_add_one() -> None:
    with pytest.raises(ReplayError, match=r"is in no replay; .* register\(Settings\(...\)\), in a module that --load"):
        settings_of("aryl.two_job")
