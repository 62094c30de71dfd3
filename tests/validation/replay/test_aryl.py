"""The setting of Aryl, against traces worked out by hand, and what must hold of any."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validation.errors import ReplayError
from validation.replay import Costs, decider, replay
from validation.replay.settings import aryl
from validation.replay.settings.aryl import NEVER, Aryl, Loans

from .jobs import jobs_of, table

BASE, ELASTIC, PLACEMENT, RECLAIM = (
    "aryl.base_allocation",
    "aryl.elastic_allocation",
    "aryl.placement",
    "aryl.reclaim",
)


def single(durations: list[float], workers: list[int], most: list[int] | None = None, **options: object) -> Aryl:
    """Jobs of one GPU a worker that are all there at the start."""
    least, largest = np.array(workers), np.array(workers if most is None else most)
    n = len(durations)
    return Aryl(
        jobs=jobs_of(np.array(durations) * least, largest),
        min_workers=least,
        max_workers=largest,
        gpus_per_worker=np.ones(n, np.int64),
        **options,  # type: ignore[arg-type]
    )


def test_loans_and_reclaims() -> None:
    # At 0 six GPUs are there and all three jobs start: a on the training server, b and c on one server on loan each.  c
    # is alone on its own, with a GPU idle: base and flexible workers are kept apart there.  At 100 s both go back, and
    # b and c are preempted.  At 300 s a is done, and b, with 100 s left, starts; at 400 s c, with 260 s left on one
    # worker, starts and has a flexible worker: 130 s more.
    replayed = replay(aryl.four_servers())
    assert table(replayed, "started", "ended", "preemptions", "restarts") == [
        [0, 300, 0, 0],
        [0, 400, 1, 1],
        [0, 530, 1, 1],
    ]
    reclaims = replayed.decisions.query("problem == @RECLAIM")
    assert reclaims[["time", "value"]].to_numpy().tolist() == [[100, 2]]
    assert replayed.usage[["time", "gpus", "capacity"]].to_numpy().tolist()[:2] == [[0, 5, 6], [100, 2, 2]]


def test_preempted_jobs_pay_for_their_restart() -> None:
    # As before; b and c hold their GPUs for ten seconds without progress, b from 300 s and c from 410 s on.
    replayed = replay(aryl.four_servers(), costs=Costs(restart=10.0))
    assert table(replayed, "ended") == [[300], [410], [550]]


def test_which_server_goes_back() -> None:
    # Two GPUs a server.  Job 0 has the training server, job 1 the first on loan, jobs 2 and 3 a GPU each of the second.
    # At 10 s one goes back, the one with a single job: job 1 waits until the others are done, and has 90 s left.
    setting = single(
        [100, 100, 100, 100],
        [2, 2, 1, 1],
        num_servers=1,
        server_gpus=2,
        loans=Loans(np.array([0.0, 10.0]), np.array([2, 1])),
    )
    replayed = replay(setting, decider(RECLAIM, "exact"))
    assert replayed.decisions.query("problem == @RECLAIM")["value"].tolist() == [1]
    assert table(replayed, "ended", "preemptions") == [[100, 0], [190, 1], [100, 0], [100, 0]]


def test_shortest_job_first_and_no_interruption() -> None:
    # Two GPUs.  The shortest, job 2 (10 s), starts beside job 1 (20 s); job 0 wants both GPUs and waits until 20 s,
    # although job 2's is free from 10 s on.
    setting = single([30, 20, 10], [2, 1, 1], num_servers=1, server_gpus=2)
    assert table(replay(setting, decider(BASE, "shortest_job_first")), "started", "ended") == [
        [20, 50],
        [0, 20],
        [0, 10],
    ]


def test_first_in_first_out_does_not_overtake() -> None:
    # The same on three GPUs, in order of arrival: job 0 takes two, job 1 the third.  Job 2, of three workers, waits
    # until 30 s; job 3 fits from 20 s on, and is behind it.
    setting = single([30, 20, 10, 5], [2, 1, 3, 1], num_servers=1, server_gpus=3, overtake=False)
    first = replay(setting, decider(BASE, "fifo"))
    assert table(first, "started", "ended") == [[0, 30], [0, 20], [30, 40], [40, 45]]
    overtaken = replay(single([30, 20, 10, 5], [2, 1, 3, 1], num_servers=1, server_gpus=3), decider(BASE, "fifo"))
    assert table(overtaken, "started", "ended")[3] == [20, 25]


def test_flexible_workers_go_where_they_save_most() -> None:
    # Table 4, on seven GPUs of one worker each: A takes 150 s on two workers and can have three, B 60 s on two and can
    # have six.  Three GPUs are left.  A's third worker saves 50 s, two more save B 30 s: one for A and two for B come
    # to 80 s, three for B to 36 s.  B is done after 30 s, on four; A's 300 are done after 100 s, on three.
    setting = single([150, 60], [2, 2], [3, 6], num_servers=1, server_gpus=7)
    assert table(replay(setting, decider(ELASTIC, "exact")), "ended") == [[100], [30]]
    # Gandiva grows the lowest job first, which comes to the same here; with the jobs the other way round it gives all
    # three to B, which has 120 to do on five: 24 s.  A has 300 - 48 left, then, for its three.
    other = single([60, 150], [2, 2], [6, 3], num_servers=1, server_gpus=7)
    assert table(replay(other, decider(ELASTIC, "gandiva")), "ended") == [[24], [108]]


def test_workers_on_loan_are_slower() -> None:
    # Job 0 has the training server's three GPUs, job 1 one of those on loan, where it does a third: 30 s of work take
    # 90 s, of which 60 are left at 30 s, when job 0 is done.  Jobs do not move.
    loan = {"loans": Loans(np.zeros(1), np.ones(1, int)), "inference_speed": 1 / 3}
    setting = single([30, 30], [3, 1], num_servers=1, server_gpus=3, **loan)
    assert table(replay(setting), "ended") == [pytest.approx([30]), pytest.approx([90])]


def test_the_capacity_counts_gpus_on_loan_in_training_gpus() -> None:
    # Three GPUs on loan at a third of the speed are one (section 5.2): job 1, of two, waits for job 0.
    loan = {"loans": Loans(np.zeros(1), np.ones(1, int)), "inference_speed": 1 / 3}
    setting = single([30, 30], [3, 2], num_servers=1, server_gpus=3, **loan)
    assert table(replay(setting), "started", "ended") == [[0, 30], [30, 60]]
    whole = replace(setting, inference_speed=1.0)
    assert table(replay(whole), "started", "ended") == [[0, 30], [0, 30]]


def test_decisions_are_of_estimates() -> None:
    # Job 0 is the shorter one, and is taken for the longer.
    setting = single([20, 30], [2, 2], num_servers=1, server_gpus=2)
    assert table(replay(setting), "ended") == [[20], [50]]
    assert table(replay(replace(setting, estimates=np.array([1.0, 0.5]))), "ended") == [[50], [30]]
    drawn = [aryl.generate(3, num_jobs=200, wrong=wrong).estimates for wrong in (0.0, 0.4)]
    assert (drawn[0] == 1).all()
    assert 0.3 < (drawn[1] != 1).mean() < 0.5
    assert (np.abs(drawn[1] - 1) <= 0.25).all()


def test_workers_join_servers_in_use() -> None:
    # At 0 job 0 takes 2 of the 3 GPUs of a server.  The one of job 1, at 10 s, joins it though the other server, all
    # of whose GPUs job 2 wants at 20 s, is empty.
    setting = replace(single([100, 100, 10], [2, 1, 3], num_servers=2, server_gpus=3), name="joined")
    setting = replace(setting, jobs=replace(setting.jobs, arrivals=np.array([0.0, 10.0, 20.0])))
    assert table(replay(setting), "started", "ended") == [[0, 100], [10, 110], [20, 30]]


def test_a_loan_of_a_daily_shape_goes_on() -> None:
    loans = aryl.daily(4, steps=24, quiet=4.0)
    assert [loans.at(3600.0 * hour) for hour in (4, 16, 28, 40)] == [4, 0, 4, 0]
    # From change to change, ten days long: times rise, and each change is seen at the time at which it was told.
    now = 0.0
    for number in range(240):
        assert loans.at(now) == loans.servers[number % 24]
        now, before = loans.next(now), now
        assert now > before
    assert now == pytest.approx(10 * 86_400)
    assert math.isinf(NEVER.next(5.0))


@pytest.mark.parametrize(
    ("times", "servers", "period"),
    [
        ([1.0], [1], math.inf),
        ([0.0, 0.0], [1, 2], math.inf),
        ([0.0, 5.0], [1, 2], 5.0),
        ([0.0], [-1], math.inf),
        ([], [], 1),
    ],
)
def test_bad_loans_are_refused(times: list[float], servers: list[int], period: float) -> None:
    with pytest.raises(ReplayError, match="loans"):
        Loans(np.array(times), np.array(servers), period)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"server_gpus": 1}, "job 1 has 2 workers"),
        ({"problem": "aryl.two_job"}, "problem"),
        ({"inference_speed": 0.0}, "speed"),
    ],
)
def test_bad_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ReplayError, match=message):
        single([1, 1], [1, 2], None, **{"num_servers": 1, **options})


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    asked=st.sampled_from(
        (
            (ELASTIC, "exact"),
            (ELASTIC, "gandiva"),
            (RECLAIM, "random"),
            (RECLAIM, "server_fraction"),
            (BASE, "fifo"),
            (PLACEMENT, "best_fit_decreasing"),
        )
    ),
    ties=st.sampled_from((None, 0, 1)),
)
def test_all_work_is_done(seed: int, asked: tuple[str, str], ties: int | None) -> None:
    setting = aryl.generate(seed, num_jobs=12, jobs_per_hour=40.0)
    replayed = replay(setting, decider(*asked), ties=ties, gaps=2)
    jobs = replayed.jobs
    assert jobs["ended"].notna().all()
    # Between its base demand and its most workers whenever it runs, on GPUs that are as fast everywhere.
    assert jobs["gpu_seconds"].to_numpy() == pytest.approx((jobs["work"] * setting.gpus_per_worker).to_numpy())
    assert (jobs["ran"] <= jobs["work"] / setting.min_workers * (1 + 1e-9)).all()
    assert (jobs["ran"] >= jobs["work"] / setting.max_workers * (1 - 1e-9)).all()
    assert (replayed.usage["gpus"] <= replayed.usage["capacity"]).all()
    # Nobody is interrupted but by a reclaim.
    reclaims = replayed.decisions.query("problem == @RECLAIM")
    assert jobs["preemptions"].sum() + jobs["migrations"].sum() <= reclaims["value"].sum()
    known = replayed.decisions.dropna(subset=["optimum"])
    sign = 1 if asked[0] == ELASTIC else -1
    assert (sign * known["value"] <= sign * known["optimum"] + 1e-6 * known["optimum"].abs()).all()


def test_loans_shorten_the_queue() -> None:
    lent = aryl.generate(3, num_jobs=30, jobs_per_hour=30.0, loans=Loans(np.zeros(1), np.array([4])))
    alone = replace(lent, loans=NEVER)
    waits = [replay(setting).metrics()["average_wait"] for setting in (lent, alone)]
    assert waits[0] < waits[1]
