"""The setting of ElasticFlow, against traces worked out by hand, and the promise that it makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.data.jobs import read_trace
from validation.errors import ReplayError
from validation.replay import Costs, Jobs, decider, replay
from validation.replay.settings import elasticflow
from validation.replay.settings.elasticflow import ElasticFlow

from .jobs import jobs_of, table

ADMISSION, ALLOCATION = "elasticflow.admission", "elasticflow.allocation"
SHARES, BEST_EFFORT, PLACEMENT = (
    "elasticflow.minimum_satisfactory_share",
    "elasticflow.best_effort",
    "elasticflow.placement",
)


def linear(
    works: list[float],
    deadlines: list[float],
    *,
    arrivals: list[float] | None = None,
    num_gpus: int = 2,
    **options: object,
) -> ElasticFlow:
    """Jobs that do one iteration a second on each GPU, in slots of a second."""
    n = len(works)
    return ElasticFlow(
        jobs=jobs_of(works, np.full(n, num_gpus), arrivals, deadlines=np.array(deadlines)),
        num_gpus=num_gpus,
        throughputs=np.tile(np.arange(num_gpus + 1.0), (n, 1)),
        slot_seconds=1.0,
        **options,  # type: ignore[arg-type]
    )


def test_edf_misses_what_a_gpu_each_meets() -> None:
    # Figure 3.  EDF gives job A both GPUs, 1.5 a second, until 2 s, then job B, until 4 s: half a second too late.
    edf = elasticflow.figure_3(problem=SHARES, admission_control=False)
    assert table(replay(edf, decider(SHARES, "edf")), "started", "ended", "met") == [[0, 2, True], [2, 4, False]]
    # Both are admitted, and run on a GPU each.
    admitted = replay(elasticflow.figure_3(), decider(ADMISSION, "progressive_filling"))
    assert table(admitted, "started", "ended", "met") == [[0, 3, True], [0, 3, True]]


def test_a_job_that_cannot_be_promised_leaves() -> None:
    # Two GPUs.  Job 0 needs both for all three slots; job 1 would need one.
    setting = linear([6, 2], [3, 3], turned_away="leave")
    replayed = replay(setting, decider(ADMISSION, "exact"))
    assert table(replayed, "turned_away", "met") == [[False, True], [True, False]]
    assert replayed.jobs["ended"].isna().tolist() == [False, True]


def test_a_job_that_cannot_be_promised_is_served_after() -> None:
    # The same, and job 1 runs on both GPUs when job 0 is done: from 3 s to 4 s.
    replayed = replay(linear([6, 2], [3, 3]), decider(ADMISSION, "exact"))
    assert table(replayed, "started", "ended", "met") == [[0, 3, True], [3, 4, False]]


def test_a_job_that_comes_within_a_slot_is_judged_at_its_end() -> None:
    # Job 1 comes at 0.5 s and has until 2.5 s.  From 1 s on that is one whole slot, in which both GPUs could do its two
    # iterations, were not one of them promised to job 0, which has three slots for four iterations: it runs on two GPUs
    # in the first, as Algorithm 2 has it, has two left and two slots, and can wait.
    replayed = replay(linear([4, 2], [3, 2.5], arrivals=[0, 0.5]), decider(ADMISSION, "exact"))
    assert table(replayed, "started", "ended", "met") == [[0, 3, True], [1, 2, True]]


def test_who_comes_later_does_not_take_what_is_promised() -> None:
    # Job 0 is promised both GPUs until 3 s.  Two short jobs could be admitted in its place, and are not.
    setting = linear([6, 1, 1], [3, 3, 3], arrivals=[0, 0.25, 0.25], turned_away="leave")
    replayed = replay(setting, decider(ADMISSION, "exact"))
    assert replayed.jobs["met"].tolist() == [True, False, False]


def test_best_effort_jobs_get_what_shares_leave() -> None:
    # Job 0 has four slots for four iterations: its share is one GPU in each.  Job 1 has no deadline and gets the other,
    # for two slots.  Then nobody but job 0 is there, and Algorithm 2 gives it both GPUs: it is done at 3 s.
    replayed = replay(linear([4, 2], [4, np.inf]), decider(ADMISSION, "progressive_filling"))
    assert table(replayed, "started", "ended") == [[0, 3], [0, 2]]
    assert replayed.jobs["met"].isna().tolist() == [False, True]
    assert replayed.decisions["problem"].tolist() == [ADMISSION, BEST_EFFORT, BEST_EFFORT, ALLOCATION]


def test_the_best_for_best_effort_jobs_is_a_slot_better() -> None:
    # The example share_in_the_way: job 0 has two slots for two iterations; if it waits for the second, job 1 is done
    # after the first one.
    setting = linear([2, 2], [2, np.inf], problem=BEST_EFFORT)
    exact, shares = (replay(setting, decider(BEST_EFFORT, name)) for name in ("exact", "minimum_shares_first"))
    assert table(exact, "ended") == [[2], [1]]
    assert table(shares, "ended") == [[2], [2]]


def test_minimum_shares_alone_leave_gpus_idle() -> None:
    # Four iterations in four slots: a GPU in each, although the other one is idle.
    replayed = replay(linear([4], [4], problem=SHARES), decider(SHARES, "exact"))
    assert table(replayed, "ended", "gpu_seconds") == [[4, 4]]
    # Algorithm 2 uses both, for half of the time.
    replayed = replay(linear([4], [4], problem=ALLOCATION), decider(ALLOCATION, "exact"))
    assert table(replayed, "ended", "gpu_seconds") == [[2, 4]]


def inelastic(baseline: str, works: list[float], requests: list[int], deadlines: list[float]) -> list[list[float]]:
    """When jobs of an iteration a second on each of two GPUs end under a baseline, in slots of a second."""
    setting = linear(
        works, deadlines, problem=SHARES, admission_control=False, baseline=baseline, requests=np.array(requests)
    )
    replayed = replay(setting)
    assert not len(replayed.decisions)
    return table(replayed, "ended")


def test_schedulers_that_are_not_elastic() -> None:
    # Job 0 runs first, as nobody has run yet, and job 1 next.  Then Gandiva lets them take turns; Tiresias goes on with
    # job 1, which has held a GPU for a second where job 0 has held two.
    later = [np.inf, np.inf]
    assert inelastic("gandiva", [4, 2], [2, 1], later) == [[3], [4]]
    assert inelastic("tiresias", [4, 2], [2, 1], later) == [[4], [3]]
    # At 1 s job 0 will be done 2 s after it came, as it is alone, and job 1, which takes 1 s alone, after 2 s.
    assert inelastic("themis", [4, 2], [2, 2], later) == [[3], [2]]
    # Of 3 s each alone: at 1 s the ratios are 1 and 4/3, at 2 s 4/3 and 4/3, at 3 s 4/3 and 5/3, at 4 s 5/3 and 5/3.
    assert inelastic("themis", [6, 6], [2, 2], later) == [[5], [6]]
    # The second's lease is the first slot, so that the third cannot be in time and waits for the first.
    assert inelastic("chronus", [4, 2, 4], [2, 2, 2], [10, 1, 2]) == [[3], [1], [5]]
    # What is left of the GPUs goes to the shorter of those without a lease.
    assert inelastic("chronus", [2, 3, 1], [1, 1, 1], [2, np.inf, np.inf]) == [[2], [4], [1]]


def test_blocks_are_joined_by_moving_a_job() -> None:
    # Four GPUs, a server.  Jobs 0 to 3 run on a GPU each, at offsets 0 to 3.  Jobs 0 and 2 end at 1 s and job 4, which
    # needs two GPUs for two slots, comes: GPUs 0 and 2 are free, and job 1 or job 3 has to make room.
    curves = np.tile([0.0, 1, 1, 1, 1], (5, 1))
    curves[4] = [0.0, 0, 2, 2, 2]
    setting = ElasticFlow(
        jobs=Jobs(
            names=range(5),
            arrivals=np.array([0.0, 0, 0, 0, 1]),
            work=np.array([1.0, 3, 1, 3, 4]),
            fastest=curves.max(axis=1),
            deadlines=np.array([1.0, 3, 1, 3, 3]),
        ),
        num_gpus=4,
        throughputs=curves,
        problem=PLACEMENT,
        slot_seconds=1.0,
        server_gpus=4,
    )
    replayed = replay(setting, decider(PLACEMENT, "exact"))
    assert table(replayed, "ended", "met") == [[1, True], [3, True], [1, True], [3, True], [3, True]]
    assert replayed.jobs["migrations"].sum() == 1
    # A migration that costs half a slot makes the moved job late, which the promise does not know.
    late = replay(setting, decider(PLACEMENT, "exact"), costs=Costs(migration=0.5))
    assert late.jobs["met"].sum() == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"problem": PLACEMENT}, "server_gpus"),
        ({"admission_control": False}, "admission_control"),
        ({"problem": "elasticflow.nothing"}, "problem"),
        ({"turned_away": "wait"}, "turned_away"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        linear([1], [1], arrivals=None, num_gpus=2, **options)


def test_a_round_length_beside_slots_is_refused() -> None:
    with pytest.raises(ReplayError, match="rounds of its own"):
        replay(linear([1], [1]), round_length=2.0)


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    asked=st.sampled_from(
        (
            (ADMISSION, "exact"),
            (ADMISSION, "progressive_filling"),
            (ALLOCATION, "greedy_marginal_return"),
            (SHARES, "progressive_filling_cleared"),
            (BEST_EFFORT, "shortest_first"),
            (PLACEMENT, "buddy_best_fit"),
        )
    ),
    away=st.sampled_from(("best_effort", "leave")),
    ties=st.sampled_from((None, 0, 1)),
)
def test_what_is_admitted_is_met(seed: int, asked: tuple[str, str], away: str, ties: int | None) -> None:
    setting = elasticflow.generate(
        seed,
        num_jobs=8,
        num_gpus=4,
        problem=asked[0],
        turned_away=away,
        server_gpus=2 if asked[0] == PLACEMENT else None,
    )
    replayed = replay(setting, decider(*asked), ties=ties)
    jobs = replayed.jobs
    # All work is done but that of jobs that left.
    assert jobs["ended"].notna().tolist() == (~jobs["turned_away"]).tolist()
    assert replayed.usage["gpus"].max() <= setting.num_gpus
    if away == "leave":
        # Who has a deadline and was not turned away was admitted, and meets it, whoever decided.
        promised = jobs["deadline"].notna() & ~jobs["turned_away"]
        assert jobs.loc[promised, "met"].all()
    # A job judged once is asked for in one instance, the last of its order.
    asked_for = (replayed.decisions["problem"] == ADMISSION).sum()
    assert asked_for <= jobs["deadline"].notna().sum()


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_first_questions_are_answered_best_by_the_exact_model(seed: int) -> None:
    setting = elasticflow.generate(seed, num_jobs=6, num_gpus=4)
    replayed = replay(setting, decider(ADMISSION, "progressive_filling"), gaps="all")
    asked = replayed.decisions.query("problem == @ADMISSION").dropna(subset=["optimum"])
    assert len(asked)
    assert (asked["value"] <= asked["optimum"]).all()


def test_the_trace_of_the_authors(data: Path) -> None:
    folder = data / "elasticflow"
    jobs = read_trace(folder / "traces" / "philly_103959.csv").head(12)
    setting = elasticflow.from_jobs(
        jobs, throughputs=folder / "throughputs_A100", num_gpus=16, slot_seconds=3600.0, turned_away="leave"
    )
    assert setting.jobs.work.tolist() == jobs["iterations"].tolist()
    replayed = replay(setting, decider(ADMISSION, "progressive_filling"))
    kept = ~replayed.jobs["turned_away"]
    assert kept.any()
    assert replayed.jobs.loc[kept, "met"].all()
