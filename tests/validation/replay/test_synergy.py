"""The setting of Synergy, against traces worked out by hand, and what must hold of any."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.base import Instance
from instances.synergy.tuning import Tuning, TuningPlan
from validation.errors import ReplayError
from validation.kernel.asking import ask_here
from validation.replay import Answer, Jobs, Replayed, decider, deciders, replay
from validation.replay.plans import renumbered
from validation.replay.settings import synergy

from .jobs import jobs_of


def ends(replayed: Replayed) -> list[float]:
    return replayed.jobs["ended"].tolist()


def alike(
    works: list[float], gpus: list[int], *, arrivals: list[float] | None = None, queue: str = "fifo"
) -> synergy.Synergy:
    """Jobs on one server of 2 GPUs, 2 cores and 2 GB that do 1 per second on each of their GPUs, whatever they get."""
    configs = tuple(np.array([[size, size, size]], float) for size in gpus)
    return synergy.Synergy(
        jobs=jobs_of(works, gpus, arrivals),
        cluster=Tuning(
            num_servers=1,
            server_gpus=2,
            server_cpus=2.0,
            server_memory=2.0,
            gpu_demands=np.array(gpus),
            configs=configs,
        ),
        queue=queue,
        round_length=10.0,
    )


def test_proportional_shares_train_all_at_their_pace() -> None:
    # Each of the four jobs trains at 4 and has 600 s of it to do.
    assert ends(replay(synergy.two_rounds(), decider("synergy.tuning", "proportional"))) == [600, 600, 600, 600]


def test_what_the_best_tuning_comes_to() -> None:
    # In the first round Audio-M5 has a server's 24 cores and 500 GB and trains at 8: 2400 are done at 300 s.  ResNet18
    # gets 16 of the other 24 cores, and trains at 5.2; the others get one core a GPU, 4 each, and train at 4.  In the
    # second round ResNet18 gets a server's cores and trains at 7: (2400 - 5.2 * 300) / 7 = 120 s more.
    assert ends(replay(synergy.two_rounds(), decider("synergy.tuning", "exact"))) == pytest.approx([420, 300, 600, 600])


def test_greedy_makes_jobs_wait() -> None:
    # Best cases first: ResNet18 and Audio-M5 take a server's 24 cores each, at 7 and 8, and the others are skipped.
    # They run from the round at 300 s, in which ResNet18 has 2400 / 7 - 300 s left, on Audio-M5's server, at 4.
    replayed = replay(synergy.two_rounds(), decider("synergy.tuning", "greedy"))
    assert ends(replayed) == pytest.approx([2400 / 7, 300, 900, 900])
    assert replayed.jobs["started"].tolist() == [0, 0, 300, 300]


def test_allocation_of_one_super_machine() -> None:
    # Without servers, 48 cores and 1000 GB are divided.  The first round is that of the best tuning, which uses all
    # cores; in the second ResNet18 has 24 (the cap of one server), at 7.
    replayed = replay(synergy.two_rounds(problem="synergy.allocation"), decider("synergy.allocation", "exact"))
    assert ends(replayed) == pytest.approx([420, 300, 600, 600])


def test_placement_costs_nothing_and_asks_both_problems() -> None:
    setting = synergy.two_rounds(problem="synergy.placement")
    replayed = replay(setting, decider("synergy.allocation", "exact"), decider("synergy.placement", "best_fit"))
    assert ends(replayed) == pytest.approx([420, 300, 600, 600])
    assert replayed.decisions["problem"].tolist() == ["synergy.allocation", "synergy.placement"] * 2


def test_rounds_first_in_first_out() -> None:
    # Rounds of 10 s, 2 GPUs.  Jobs 0 (1 GPU, 15 s) and 2 (1 GPU, 5 s) run in the first round, for job 1 wants both and
    # is passed over; job 2 ends at 5 s and its GPU is idle until 10 s.  In the second round only one GPU is left beside
    # job 0.  Job 1 (40 of work at 2 a second) runs from 20 s to 40 s; job 3, which comes at 12 s, waits for it.
    setting = alike([15, 40, 5, 6], [1, 2, 1, 2], arrivals=[0, 0, 0, 12])
    replayed = replay(setting, decider("synergy.tuning", "tune"))
    assert ends(replayed) == [15, 40, 5, 43]
    assert replayed.jobs["started"].tolist() == [0, 20, 0, 40]


def test_rounds_of_the_shortest_remaining_time() -> None:
    # All three want both GPUs.  By remaining time: job 2 (8 of work, 4 s), job 1 (24, 12 s), job 0 (60, 30 s).
    # Job 2 runs in the first round, job 1 in the second and third, job 0 from 30 s on.
    setting = alike([60, 24, 8], [2, 2, 2], queue="srtf")
    assert ends(replay(setting, decider("synergy.tuning", "tune"))) == [60, 22, 4]


def test_rounds_of_least_attained_service() -> None:
    # Both want both GPUs and have 20 s to run.  They take turns, the first one first: 10 s each, twice.
    setting = alike([40, 40], [2, 2], queue="las")
    replayed = replay(setting, decider("synergy.tuning", "tune"))
    assert ends(replayed) == [30, 40]
    assert replayed.jobs["preemptions"].tolist() == [1, 1]


def test_rounds_of_finish_time_fairness() -> None:
    # Both want both GPUs; job 0 takes 40 s alone, job 1 10 s.  At 0 both ratios are 1, and job 0 is first.  At 10 s job
    # 1's is (10 + 10) / 10 = 2, job 0's (10 + 30) / 40 = 1: job 1 runs and is done at 20 s.
    setting = alike([80, 20], [2, 2], queue="ftf")
    assert ends(replay(setting, decider("synergy.tuning", "tune"))) == [50, 20]


def test_jobs_stay_where_they_are() -> None:
    # Servers are numbered anew each round, so that a job alone on its server keeps it, whoever is placed first.
    before = np.array([[0.0, 4.0], [4.0, 0.0]])
    assert renumbered(before, before[:, ::-1]).tolist() == before.tolist()


def test_rounds_of_the_same_jobs_are_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def counted(instance: Any, *rest: Any) -> Any:
        asked.append(instance)
        return ask_here(instance, *rest)

    monkeypatch.setattr(deciders, "ask_here", counted)
    # Job 0 takes 8 rounds; job 1 comes after two of them and is there for three.
    done = replay(alike([80, 30], [1, 1], arrivals=[0, 20]), decider("synergy.tuning", "tune"))
    assert ends(done) == [80, 50]
    assert len(done.decisions) == 8
    assert [instance.num_jobs for instance in asked] == [1, 2, 1]


def test_a_plan_that_overfills_a_server_is_refused() -> None:
    class AllAtTheirBest(contextlib.AbstractContextManager["AllAtTheirBest"]):
        problem, name = "synergy.tuning", "all at their best"

        def __exit__(self, *_: object) -> None:
            pass

        def ask(self, instance: Instance[Any], *, briefly: object = None) -> Answer:
            assert isinstance(instance, Tuning)
            return Answer(
                TuningPlan(choices=instance.best_choices, gpus=np.array([[4, 0], [4, 0], [0, 4], [0, 4]])), "infeasible"
            )

    with pytest.raises(ReplayError, match="server_cpus"):
        replay(synergy.two_rounds(), AllAtTheirBest())


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"queue": "lifo"}, "queue"), ({"problem": "synergy.heterogeneous_allocation"}, "problem")],
)
def test_bad_options_are_named(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        synergy.two_rounds(**changed)  # type: ignore[arg-type]


def test_a_job_wider_than_the_cluster_is_refused() -> None:
    with pytest.raises(ReplayError, match="job 1 wants 3 GPUs"):
        alike([1, 1], [1, 3])


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    queue=st.sampled_from(("fifo", "srtf", "las", "ftf")),
    policy=st.sampled_from(("proportional", "greedy", "tune", "balanced_tune")),
    ties=st.sampled_from((None, 0, 1)),
)
def test_all_work_is_done(seed: int, queue: str, policy: str, ties: int | None) -> None:
    setting = synergy.generate(seed, num_jobs=6, queue=queue)
    replayed = replay(setting, decider("synergy.tuning", policy), ties=ties, gaps=3)
    jobs = replayed.jobs
    assert jobs["ended"].notna().all()
    # No faster than at its best, and, running, no slower than at its share.
    assert (jobs["ended"] - jobs["arrival"] >= jobs["work"] / jobs["fastest"] * (1 - 1e-9)).all()
    assert (jobs["ran"] <= jobs["work"] / setting.cluster.fair_throughputs * (1 + 1e-9)).all()
    assert jobs["gpu_seconds"].to_numpy() == pytest.approx(4 * jobs["ran"].to_numpy())
    assert replayed.usage["gpus"].max() <= setting.cluster.num_gpus
    # What a round is worth is never more than what the exact model proves of it.
    known = replayed.decisions.dropna(subset=["optimum"])
    assert (known["value"] <= known["optimum"] * (1 + 1e-9)).all()


def test_ties_between_alike_jobs_fall_by_their_seed() -> None:
    # Two alike jobs, and cores for one of them to train at 2 instead of 1: whoever it is, it ends first.
    table = np.array([[1.0, 1, 1], [2, 1, 2]])
    setting = synergy.Synergy(
        jobs=Jobs(names=("a", "b"), arrivals=np.zeros(2), work=np.full(2, 20.0), fastest=np.full(2, 2.0)),
        cluster=Tuning(
            num_servers=1,
            server_gpus=2,
            server_cpus=3.0,
            server_memory=2.0,
            gpu_demands=np.array([1, 1]),
            configs=(table, table),
        ),
        round_length=10.0,
    )
    runs = [replay(setting, decider("synergy.tuning", "exact"), ties=seed) for seed in range(8)]
    assert {tuple(run.jobs["ended"]) for run in runs} == {(10.0, 15.0), (15.0, 10.0)}
    # What a plan is worth is what the instance as it is says.
    assert {run.decisions["value"].iloc[0] for run in runs} == {3.0}


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_first_round_of_the_exact_model_is_worth_the_most(seed: int) -> None:
    setting = synergy.generate(seed, num_jobs=5)
    first = {
        policy: replay(setting, decider("synergy.tuning", policy)).decisions["value"].iloc[0]
        for policy in ("exact", "tune", "proportional")
    }
    assert first["exact"] >= max(first["tune"], first["proportional"]) * (1 - 1e-9)


@pytest.mark.slow
def test_published_profiles_make_a_trace(data: Path) -> None:
    profiles = data / "synergy" / "sensitivity_profiles.json"
    wide = synergy.derived(0, throughputs=profiles, num_jobs=200, num_servers=4, multi_gpu=True, widest=16)
    usual = synergy.derived(0, throughputs=profiles, num_jobs=200, num_servers=4, multi_gpu=True)
    assert (np.minimum(wide.cluster.gpu_demands, 8) == usual.cluster.gpu_demands).all()
    assert wide.cluster.gpu_demands.max() == 16
    setting = synergy.derived(0, throughputs=profiles, num_jobs=20, num_servers=1)
    replayed = replay(setting, decider("synergy.tuning", "tune"))
    assert replayed.jobs["ended"].notna().all()
    # Ten to the 1.5 to ten to the 4 minutes with the GPU-proportional share.
    seconds = setting.jobs.work / setting.cluster.fair_throughputs
    assert ((seconds >= 60 * 10**1.5) & (seconds <= 60 * 10**4)).all()
