"""The engine: exact times, costs, rounds, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest

from validation.errors import ConservationError, ReplayError
from validation.replay import Costs, Decision, replay
from validation.replay.engine import _Run

from .queues import Queue, first_come, jobs_of, least_left

FIVE = jobs_of([0, 1, 1, 5, 9], [3, 2, 1, 2, 1])
"""Five jobs, of which the second and the third arrive together."""


def test_first_come_by_hand() -> None:
    # One after the other: 0-3, 3-5, 5-6, 6-8, and after a second without anybody 9-10.
    done = replay(Queue(FIVE))
    assert done.jobs["started"].tolist() == [0, 3, 5, 6, 9]
    assert done.jobs["ended"].tolist() == [3, 5, 6, 8, 10]
    assert done.jobs["gpu_seconds"].tolist() == [3, 2, 1, 2, 1]
    # Waiting and running from each moment on.
    steps = done.usage.set_index("time")[["gpus", "waiting", "running"]]
    assert steps.loc[[1, 8, 9, 10]].to_numpy().tolist() == [[1, 2, 1], [0, 0, 0], [1, 0, 1], [0, 0, 0]]
    metrics = done.metrics()
    # Completion times 3, 4, 5, 3, 1; nine of ten seconds are used.
    assert metrics["average_jct"] == pytest.approx(16 / 5)
    assert metrics["median_jct"] == 3
    assert metrics["makespan"] == 10
    assert metrics["utilisation"] == pytest.approx(9 / 10)
    assert metrics["average_wait"] == pytest.approx((0 + 2 + 4 + 1 + 0) / 5)
    # Slowdowns 1, 2, 5, 3/2, 1: the square of their sum over five times the sum of their squares.
    total, squares = Fraction(21, 2), 1 + 4 + 25 + Fraction(9, 4) + 1
    assert metrics["fairness"] == pytest.approx(float(total**2 / (5 * squares)))


def test_least_left_by_hand() -> None:
    # The third job interrupts the first, 1-2, which has as much left as the second and goes on; then 4-6, 6-8, 9-10.
    done = replay(Queue(FIVE, least_left))
    assert done.jobs["ended"].tolist() == [4, 6, 2, 8, 10]
    assert done.jobs["preemptions"].tolist() == [1, 0, 0, 0, 0]
    assert done.jobs["restarts"].tolist() == [1, 0, 0, 0, 0]


def test_the_least_that_a_gap_may_be_is_no_gap() -> None:
    done = replay(Queue(FIVE))
    row = {"optimum": 4.0, "gap": 0.25, "gap_most": 0.25, "instead": False, "seconds": 0.0}
    decisions = pd.DataFrame([row, row | {"gap": 0.75}, row | {"optimum": np.nan, "gap": 0.5, "gap_most": np.inf}])
    metrics = replace(done, decisions=decisions).metrics()
    assert (metrics["average_gap"], metrics["worst_gap"]) == (0.5, 0.75)


def test_restarts_cost_time_and_no_work() -> None:
    # The first job goes on at 2, gets on from 2.5 and ends at 4.5; the second ends at 6.5, the fourth at 8.5.
    done = replay(Queue(FIVE, least_left), costs=Costs(restart=0.5))
    assert done.jobs["ended"].tolist() == [4.5, 6.5, 2, 8.5, 10]
    assert done.jobs["gpu_seconds"].tolist() == [3.5, 2, 1, 2, 1]


def test_migrations_cost_time() -> None:
    # At 1 the job moves from its GPU to another, and waits for a quarter of a second.
    jobs = jobs_of([0, 1], [2, 1])

    def moved(state, decision):
        place = np.full(len(state.jobs), 1 + int(state.now >= 1))
        return replace(decision, placements=place)

    done = replay(Queue(jobs, num_gpus=2, spoil=moved), costs=Costs(restart=100, migration=0.25))
    assert done.jobs["ended"].tolist() == [2.25, 2]
    assert done.jobs["migrations"].tolist() == [1, 0]
    assert done.jobs["restarts"].tolist() == [0, 0]


def test_a_change_during_a_restart_begins_it_anew() -> None:
    jobs = jobs_of([0, 1, 1.5], [2, 5, 5])

    def moved(state, decision):
        return replace(decision, placements=np.full(len(state.jobs), 1 + len(state.jobs)))

    # Moved at 1 and again at 1.5, it gets on at 2.5 and ends at 3.5; a pause of its own is not cut short by others.
    done = replay(Queue(jobs, num_gpus=3, spoil=moved), costs=Costs(migration=1))
    assert done.jobs["ended"].tolist()[0] == 3.5


def test_rounds_by_hand() -> None:
    # Rounds of 2 s: 0-3, and the GPU is free until 4; 4-6, 6-7, 8-10, 10-11.
    queue = Queue(FIVE)
    done = replay(queue, round_length=2)
    assert done.jobs["ended"].tolist() == [3, 6, 7, 10, 11]
    assert all(time % 2 == 0 for time in queue.seen)


def test_a_decision_stands_until_its_time() -> None:
    queue = Queue(jobs_of([0], [3]), spoil=lambda state, decision: replace(decision, until=state.now + 1))
    assert replay(queue).jobs["ended"].tolist() == [3]
    assert queue.seen == [0, 1, 2]


def test_jobs_without_work_and_without_jobs() -> None:
    done = replay(Queue(jobs_of([0, 4], [0, 1])))
    assert done.jobs["ended"].tolist() == [0, 5]
    empty = replay(Queue(jobs_of([], [])))
    assert len(empty.jobs) == 0
    assert np.isnan(empty.metrics()["average_jct"])


def test_jobs_are_turned_away_and_deadlines_count() -> None:
    jobs = jobs_of([0, 0, 0], [2, 2, 2], deadlines=[2, 3, np.inf])

    def choose(state, decision):
        late = state.jobs == 1
        runs = np.zeros(len(state.jobs))
        runs[np.flatnonzero(~late)[0]] = 1.0
        return Decision(rates=runs, gpus=runs, turned_away=state.jobs[late])

    done = replay(Queue(jobs, spoil=choose))
    assert done.jobs["turned_away"].tolist() == [False, True, False]
    assert done.jobs["met"].tolist()[:2] == [True, False]
    assert done.jobs["met"].isna().tolist() == [False, False, True]
    assert done.metrics()["deadlines_met"] == 0.5


def test_equal_shares_by_hand() -> None:
    # Two jobs of 2 and 1 on one GPU from 0 on.  On equal shares the second would end at 2, the first at 3.
    done = replay(Queue(jobs_of([0, 0], [2, 1])))
    # First come: 2 and 3.  The first is done at 2, when half of its share would have been: one left, at a half, 4.
    assert done.jobs["ended"].tolist() == [2, 3]
    assert done.jobs["rho"].tolist() == pytest.approx([2 / 4, 3 / 2])


def test_a_replay_stops_at_its_horizon() -> None:
    done = replay(Queue(FIVE), horizon=5.5)
    assert done.jobs["ended"].isna().tolist() == [False, False, True, True, True]
    assert done.jobs["gpu_seconds"].tolist() == [3, 2, 0.5, 0, 0]


# --- what cannot be ------------------------------------------------------------------------------


def both(state, decision):
    """The only GPU is given to everybody."""
    return replace(decision, gpus=np.ones(len(state.jobs)), rates=np.ones(len(state.jobs)))


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("capacity", both),
        ("capacity", lambda _, decision: replace(decision, gpus=2 * decision.gpus)),
        ("capacity", lambda _, decision: replace(decision, capacity=np.array([0.0]))),
        ("rate", lambda _, decision: replace(decision, rates=2 * decision.rates)),
        ("rate", lambda _, decision: replace(decision, rates=-decision.rates)),
        ("rate", lambda _, decision: replace(decision, rates=decision.rates * np.nan)),
        ("rate", lambda _, decision: replace(decision, rates=decision.rates * np.inf)),
        ("rate", lambda _, decision: replace(decision, gpus=0 * decision.gpus)),
        ("gpus", lambda _, decision: replace(decision, gpus=-decision.gpus)),
        ("gpus", lambda _, decision: replace(decision, gpus=decision.gpus * np.nan)),
        ("shape", lambda _, decision: replace(decision, rates=np.ones(9))),
        ("time", lambda state, decision: replace(decision, until=state.now)),
        ("time", lambda state, decision: replace(decision, until=state.now - 1)),
        ("turned_away", lambda state, decision: replace(decision, turned_away=state.jobs[:1])),
        ("turned_away", lambda _, decision: replace(decision, turned_away=np.array([4]))),
    ],
)
def test_what_is_not_there_is_not_given(rule, spoil) -> None:
    with pytest.raises(ConservationError, match=r"s$|s stands until") as caught:
        replay(Queue(FIVE, spoil=spoil))
    assert caught.value.rule == rule


def test_a_job_that_has_run_is_not_turned_away() -> None:
    def later(state, decision):
        nothing = np.zeros(len(state.jobs))
        return Decision(rates=nothing, gpus=nothing, turned_away=state.jobs[:1]) if state.now else decision

    with pytest.raises(ConservationError, match="has run") as caught:
        replay(Queue(FIVE, spoil=later))
    assert caught.value.rule == "turned_away"


def test_books_that_do_not_add_up_are_found() -> None:
    def run(spoil) -> None:
        queue = Queue(FIVE)
        running = _Run(queue, None, Costs(), None, np.inf)
        decide = queue.begin()

        class Asked:
            now = 0.0

        while running.advance(decide, Asked()):
            spoil(running)

    def forgets_work(running) -> None:
        running.left[0] = 0.5

    def forgets_service(running) -> None:
        running.books.service[0] = 0.0

    with pytest.raises(ConservationError, match="ends with") as caught:
        run(forgets_work)
    assert caught.value.rule == "work"
    with pytest.raises(ConservationError, match="the jobs held") as caught:
        run(forgets_service)
    assert caught.value.rule == "gpu_seconds"
    run(lambda _: None)


def test_nobody_runs_and_nobody_comes(monkeypatch) -> None:
    monkeypatch.setattr("validation.replay.engine.IDLE", 100)

    def idle(state, _):
        return Decision(rates=np.zeros(len(state.jobs)), gpus=np.zeros(len(state.jobs)))

    with pytest.raises(ReplayError, match="no job runs at 9 s"):
        replay(Queue(FIVE, spoil=idle))
    with pytest.raises(ReplayError, match="no job runs"):
        replay(Queue(jobs_of([0], [1]), spoil=idle), round_length=1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"arrivals": [0, 2, 1]}, "arrivals: job 2 arrives before"),
        ({"work": [1, -1, 1]}, "work: got -1 for job 1"),
        ({"work": [1, np.nan, 1]}, "work: got nan for job 1"),
        ({"fastest": [1, 0, 1]}, "fastest: job 1 has work to do and runs nowhere"),
        ({"deadlines": [1, 2]}, r"deadlines: got shape \(2,\)"),
        ({"columns": {"user": ["a"]}}, "columns: user has 1 entries"),
    ],
)
def test_jobs_that_mean_nothing_are_refused(change, words) -> None:
    with pytest.raises(ReplayError, match=words):
        replace(jobs_of([0, 1, 2], [1, 1, 1]), **change)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"round_length": 0}, "round_length: got 0"),
        ({"gaps": -1}, "gaps: got -1"),
        ({"keep": "some"}, "keep: got 'some'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, words) -> None:
    with pytest.raises(ReplayError, match=words):
        replay(Queue(FIVE), **options)
    with pytest.raises(ReplayError, match="restart: got -1"):
        Costs(restart=-1)


# --- against what is known -----------------------------------------------------------------------


def least_total(arrivals: list[int], work: list[int]) -> int:
    """Least sum of completion times on one GPU, by trying every job in every second."""

    @cache
    def from_then(now: int, left: tuple[int, ...]) -> int:
        there = [job for job, one in enumerate(left) if one and arrivals[job] <= now]
        if not any(left):
            return 0
        waits = sum(1 for one in left if one)
        if not there:
            return waits + from_then(now + 1, left)
        return waits + min(
            from_then(now + 1, tuple(one - (other == job) for other, one in enumerate(left))) for job in there
        )

    # Counted are the seconds from 0 on in which each is not done.
    return from_then(0, tuple(work)) - sum(arrivals)


@pytest.mark.parametrize("seed", range(25))
def test_least_left_is_best_on_one_gpu(seed) -> None:
    rng = np.random.default_rng(seed)
    arrivals, work = np.sort(rng.integers(0, 7, 5)), rng.integers(1, 5, 5)
    done = replay(Queue(jobs_of(arrivals - arrivals[0], work), least_left), ties=seed)
    assert done.metrics()["average_jct"] * 5 == pytest.approx(
        least_total((arrivals - arrivals[0]).tolist(), work.tolist())
    )


@pytest.mark.parametrize(
    ("service", "waiting"),
    [
        # Mean waiting times at a load of a half, in services: rho / (2 (1 - rho)) and rho / (1 - rho).
        ("constant", 0.5),
        ("exponential", 1.0),
    ],
)
def test_queues_wait_as_they_must(service, waiting) -> None:
    rng, n, batches = np.random.default_rng(5), 3000, 20
    arrivals = np.concatenate([[0.0], np.cumsum(rng.exponential(2.0, n - 1))])
    work = np.ones(n) if service == "constant" else rng.exponential(1.0, n)
    table = replay(Queue(jobs_of(arrivals, work), first_come)).jobs
    waits = (table["started"] - table["arrival"]).to_numpy()
    # Waiting times follow one from another (Lindley); batches are long beside the time in which they forget.
    wait, expected = 0.0, []
    for job in range(n):
        expected.append(wait)
        wait = max(0.0, wait + work[job] - (arrivals[job + 1] - arrivals[job])) if job + 1 < n else 0.0
    assert waits == pytest.approx(expected, abs=1e-6)
    means = waits.reshape(batches, -1).mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(batches)
    assert error < 0.15 * waiting
    assert abs(waits.mean() - waiting) < 3 * error


def test_the_same_again() -> None:
    rng = np.random.default_rng(1)
    arrivals = np.sort(rng.integers(0, 20, 40))
    queue = Queue(jobs_of(arrivals - arrivals[0], rng.integers(1, 4, 40)), least_left, num_gpus=2)
    first, second, other = (replay(queue, ties=seed) for seed in (1, 1, 2))
    assert first.jobs.equals(second.jobs)
    assert first.usage.equals(second.usage)
    assert not first.jobs.equals(other.jobs)
    assert replay(queue).jobs.equals(replay(queue).jobs)
