"""Settings of AFS and Gavel: by hand, against the room's own simulation, and what is recorded of decisions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import formulations
from heuristics.afs import elastic_sharing as schedulers
from instances.afs.elastic_sharing import ElasticSharing, generate
from instances.base import InstanceError
from instances.data.gavel import read_throughputs
from validation.errors import ReplayError
from validation.kernel.judging import Asked, judge
from validation.replay import Costs, Jobs, decider, replay
from validation.replay.settings import afs, gavel, problems, settings_of
from validation.replay.settings.afs import Elastic
from validation.replay.settings.gavel import Policy, Servers
from validation.replay.workloads import poisson, rate_at, read_jobs

PROBLEM = "afs.elastic_sharing"


def elastic(instance: ElasticSharing, **options) -> Elastic:
    n = instance.num_jobs
    jobs = Jobs(range(n), instance.arrivals, instance.work, instance.throughputs[:, -1])
    return Elastic(
        jobs,
        instance.num_gpus,
        instance.throughputs,
        instance.requests,
        reallocation=instance.reallocation,
        quantum=instance.quantum,
        **options,
    )


def afs_by(name: str, setting: Elastic, **options):
    return replay(setting, decider(PROBLEM, name), **options)


# --- AFS -----------------------------------------------------------------------------------------

FIVE = ElasticSharing(num_gpus=2, work=[6, 3, 1, 1.5, 1], throughputs=[[0, 1, 1.5]] * 5, arrivals=[0, 2, 4, 7, 7.5])
"""Five jobs that run at 1 on one GPU and at 3/2 on two."""


def test_five_elastic_jobs_by_hand() -> None:
    # Max-min: the first has 3 left at 2, both end at 5 on a GPU each while the third waits; that runs on two for 2/3 s.
    # The fourth has 3/4 left at 7.5 and ends at 8.25, when the fifth has 1/4 left, for two GPUs 1/6 s.
    done = afs_by("max_min", elastic(FIVE))
    assert done.jobs["ended"].tolist() == pytest.approx([5, 5, 5 + 2 / 3, 8.25, 8.25 + 1 / 6])
    # Asked at arrivals only: the plan says what is done at completions.
    assert done.decisions["time"].tolist() == [0, 2, 4, 7, 7.5]


def test_a_restart_makes_a_plan_late_and_another_is_asked() -> None:
    # A GPU each until 2, when the first ends and the second goes on to two GPUs, with 2 left, from 2.25 on.  At 3 the
    # third ends, and the second has 7/8 left, where the plan has 1/2: it is asked anew, and goes on to three at 3.25.
    three = ElasticSharing(num_gpus=3, work=[2, 4, 3], throughputs=[[0, 1, 1.5, 2]] * 3)
    done = afs_by("max_min", elastic(three), costs=Costs(restart=0.25))
    assert done.jobs["ended"].tolist() == pytest.approx([2, 3.25 + 7 / 16, 3])
    assert done.decisions["time"].tolist() == [0, 3]
    assert afs_by("max_min", elastic(three)).decisions["time"].tolist() == [0]


DETERMINISTIC = [
    schedulers.afs_l,
    schedulers.afs_s,
    schedulers.srtf_maximum,
    schedulers.srsf_maximum,
    schedulers.srtf_filling,
    schedulers.srtf_elastic,
    schedulers.max_min,
    schedulers.optimus,
    schedulers.tiresias_l,
    schedulers.tiresias_l_maximum,
    schedulers.aryl_two_phase,
]


@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
@pytest.mark.parametrize("seed", range(4))
def test_a_replay_is_what_the_scheduler_does_with_the_whole_trace(seed, reallocation) -> None:
    """Which sees only who has arrived: so a replay of decisions must come to the same."""
    whole = generate(seed, num_jobs=12, num_gpus=8, arrival_gap=2000.0, reallocation=reallocation, requests=True)
    whole = replace(whole, quantum=900.0)
    for scheduler in DETERMINISTIC:
        expected = whole.completions(scheduler(whole))
        done = afs_by(scheduler.__name__, elastic(whole))
        assert done.jobs["ended"].tolist() == pytest.approx(expected.tolist(), rel=1e-6), scheduler.__name__


def test_without_preemption_who_runs_keeps_running() -> None:
    whole = generate(1, num_jobs=12, num_gpus=4, arrival_gap=500.0, rigid=0.5)
    assert afs_by("srtf_maximum", elastic(whole)).jobs["preemptions"].sum() > 0
    done = afs_by("srtf_maximum", elastic(whole, preemption=False))
    assert done.jobs["preemptions"].sum() == 0
    assert done.jobs["ended"].notna().all()


def test_ties_fall_by_a_seed() -> None:
    alike = ElasticSharing(num_gpus=1, work=[1] * 4, throughputs=[[0, 1]] * 4)
    found = {tuple(afs_by("srtf", elastic(alike), ties=seed).jobs["ended"]) for seed in range(8)}
    assert len(found) > 1
    assert all(sorted(ends) == [1, 2, 3, 4] for ends in found)
    assert afs_by("srtf", elastic(alike), ties=3).jobs.equals(afs_by("srtf", elastic(alike), ties=3).jobs)


# --- Gavel ---------------------------------------------------------------------------------------


def policy(arrivals, work, num_workers, *, problem="gavel.max_min_fairness", **options) -> Policy:
    n = len(work)
    return Policy(
        Jobs(range(n), arrivals, work, np.ones(n)),
        problem,
        throughputs=np.ones((n, 1)),
        num_workers=np.array([num_workers]),
        pools=np.array([0]),
        **{"scale_factors": np.ones(n, np.int64), **options},
    )


FAIR = "gavel.max_min_fairness"


@pytest.mark.parametrize("who", ["exact", "heterogeneity_agnostic", "isolated"])
def test_two_workers_shared_in_time_by_hand(who) -> None:
    # Three jobs of 2 get 2/3 each; at 1 a fourth of 1 comes, all get 1/2 and it ends at 3, when they have 1/3 left.  At
    # 3.25 they have 1/6 left, the fifth of 2 comes, they end at 43/12, it has 11/6 left and ends at 65/12.
    done = replay(policy([0, 0, 0, 1, 3.25], [2, 2, 2, 1, 2], 2), decider(FAIR, who))
    assert done.jobs["ended"].tolist() == pytest.approx([43 / 12] * 3 + [3, 65 / 12])
    assert done.jobs["restarts"].sum() == done.jobs["preemptions"].sum() == 0
    # An equal share is all that anybody gets.
    assert done.jobs["rho"].tolist() == pytest.approx([1] * 5)


def test_rounds_take_turns_by_hand() -> None:
    # One worker: the first in rounds 0 and 2, the second in 1 and 3.
    done = replay(policy([0, 0], [2, 2], 1, round_length=1.0), decider(FAIR, "exact"))
    assert done.jobs["ended"].tolist() == [3, 4]
    assert done.jobs["preemptions"].tolist() == [1, 1]
    rounds = done.decisions[done.decisions["problem"] == "gavel.round_assignment"]
    assert rounds["time"].tolist() == [0, 1, 2, 3]
    # The policy is asked where somebody has come or gone.
    assert done.decisions[done.decisions["problem"] == FAIR]["time"].tolist() == [0, 3]


def test_rounds_can_be_what_is_decided() -> None:
    setting = policy([0, 0], [2, 2], 1, round_length=1.0)
    done = replay(setting, decider("gavel.round_assignment", "exact"))
    assert sorted(done.jobs["ended"]) == [3, 4]
    assert set(done.decisions["algorithm"]) == {"exact"}


def test_rounds_approach_the_allocation() -> None:
    rng = np.random.default_rng(0)
    arrivals, work = np.arange(12) * 40.0, rng.uniform(50, 150, 12)
    exactly = replay(policy(arrivals, work, 2), decider(FAIR, "heterogeneity_agnostic")).metrics()["average_jct"]
    off = [
        abs(
            replay(policy(arrivals, work, 2, round_length=length), decider(FAIR, "heterogeneity_agnostic")).metrics()[
                "average_jct"
            ]
            - exactly
        )
        for length in (40.0, 1.0)
    ]
    assert off[1] < off[0]
    assert off[1] < 0.02 * exactly


def test_partners_share_a_worker() -> None:
    # Alone they take turns at 1/2 each; together each makes 3/4 of its steps, so both end after 4/3.
    setting = policy([0, 0], [1, 1], 1, kinds=np.array([0, 0]), together=np.full((1, 1, 1, 2), 0.75))
    done = replay(setting, decider(FAIR, "exact"))
    assert done.jobs["ended"].tolist() == pytest.approx([4 / 3, 4 / 3])
    # One worker, half of it each.
    assert done.usage["gpus"].tolist() == pytest.approx([1, 0])
    rounds = replay(replace(setting, round_length=1.0), decider(FAIR, "exact"))
    assert rounds.jobs["ended"].tolist() == pytest.approx([4 / 3, 4 / 3])


def test_the_first_in_line_is_the_first_in_the_instance() -> None:
    done = replay(policy([0, 0.5, 1], [2, 1, 1], 1, problem="gavel.fifo"), decider("gavel.fifo", "exact"), ties=4)
    assert done.jobs["ended"].tolist() == pytest.approx([2, 3, 4])


def test_finish_time_fairness_knows_the_past() -> None:
    seen = {}

    def look(instance):
        seen[len(seen)] = (instance.elapsed.tolist(), instance.isolated_elapsed.tolist(), instance.steps.tolist())
        return instance.isolated_share()

    problem = "gavel.finish_time_fairness"
    setting = policy([0, 1, 2], [5, 5, 5], 1, problem=problem)
    with_own = _Told(problem, look)
    replay(setting, with_own, horizon=2.5)
    # Alone until 1, then on halves: the first has done 1.5 by 2, which isolation would have taken as long to do.
    assert seen[2][0] == [2, 1, 0]
    assert seen[2][1] == pytest.approx([2, 1, 0])
    assert seen[2][2] == pytest.approx([3.5, 4.5, 5])


class _Told:
    """Whatever a function says, unjudged."""

    name = "told"

    def __init__(self, problem, function) -> None:
        self.problem, self.function = problem, function

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        pass

    def ask(self, instance, *, briefly=None):
        return judge(instance, Asked(self.function(instance)))


# --- what is recorded ----------------------------------------------------------------------------


def test_gaps_are_those_of_the_instances() -> None:
    whole = generate(5, num_jobs=6, num_gpus=2, arrival_gap=9000.0)
    done = afs_by("max_min", elastic(whole), gaps="all", keep="all")
    rows = done.decisions
    assert sorted(done.kept) == rows["number"].tolist()
    assert (rows["instance"] != "").all()
    for number, instance in done.kept.items():
        row = rows.iloc[number]
        optimum = formulations.solve(instance).objective
        assert row["value"] == pytest.approx(instance.objective(schedulers.max_min(instance)))
        assert row["optimum"] == pytest.approx(optimum)
        assert row["gap"] == pytest.approx((row["value"] - optimum) / optimum, abs=2e-6)
    # Looking at the optima changes nothing.
    assert done.jobs.equals(afs_by("max_min", elastic(whole)).jobs)


def test_samples_are_drawn_by_a_seed() -> None:
    whole = generate(5, num_jobs=8, num_gpus=2, arrival_gap=9000.0)
    setting = elastic(whole)
    kept = [sorted(afs_by("max_min", setting, keep=3, seed=seed).kept) for seed in (0, 0, 1, 2, 3)]
    assert kept[0] == kept[1]
    assert all(len(one) == 3 for one in kept)
    assert len({tuple(one) for one in kept}) > 1
    given = {}
    replay(setting, decider(PROBLEM, "max_min"), keep=3, sink=given.__setitem__)
    assert sorted(given) == kept[0]
    drawn = afs_by("max_min", setting, gaps=3).decisions
    assert drawn["gap"].notna().sum() == 3


def test_a_decision_maker_of_the_users_is_asked_apart() -> None:
    whole = generate(2, num_jobs=4, num_gpus=4, arrival_gap=1500.0)
    mine = replay(elastic(whole), decider(PROBLEM, lambda instance: schedulers.max_min(instance)))
    assert mine.jobs["ended"].tolist() == afs_by("max_min", elastic(whole)).jobs["ended"].tolist()

    def fails(_):
        raise ValueError("no idea")

    with pytest.raises(ReplayError, match=r"no plan: .*no idea"):
        replay(elastic(whole), decider(PROBLEM, fails))
    fair = replay(policy([0, 0], [1, 1], 1), decider(FAIR, fails))
    assert fair.decisions["status"].tolist() == ["failed", "optimal"]
    assert fair.decisions["instead"].tolist() == [False, True]
    assert fair.metrics()["instead"] == 1


def test_who_decides_is_told_apart() -> None:
    with pytest.raises(ReplayError, match=r"nobody decides afs\.elastic_sharing"):
        replay(elastic(FIVE))
    with pytest.raises(ReplayError, match=r"two decision makers of afs\.elastic_sharing"):
        replay(elastic(FIVE), decider(PROBLEM, "srtf"), decider(PROBLEM, "max_min"))
    with pytest.raises(ReplayError, match="is in no replay"):
        settings_of("gavel.nothing")
    assert {"afs.elastic_sharing", FAIR} <= set(problems())


def test_jitters_are_seen_by_who_decides_and_by_nobody_else() -> None:
    setting = policy([0, 0, 0], [1, 1, 1], 2)
    plain, jittered = (replay(setting, decider(FAIR, "exact"), ties=seed, keep="all") for seed in (None, 1))
    assert not plain.decisions["jittered"].any()
    assert jittered.decisions["jittered"].all()
    assert (jittered.kept[0].weights == 1).all()
    assert jittered.decisions["value"].iloc[0] == pytest.approx(plain.decisions["value"].iloc[0], rel=1e-5)


# --- workloads -----------------------------------------------------------------------------------


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "job_id": ["a", "b", "c"],
            "submit_time": [100.0, 40.0, 70.0],
            "num_gpus": [1, 2, 16],
            "duration": [60.0, 30.0, 10.0],
        }
    )


THROUGHPUTS = pd.DataFrame(
    {
        "worker_type": ["k80", "v100", "v100", "v100"],
        "model": ["x", "x", "x", "y"],
        "scale_factor": [1, 1, 2, 1],
        "partner": [""] * 4,
        "partner_scale_factor": [0] * 4,
        "throughput": [1.0, 4.0, 7.0, 3.0],
        "partner_throughput": [np.nan] * 4,
    }
)


def test_jobs_of_a_table_run_as_long_as_it_says() -> None:
    read = read_jobs(table())
    assert read["job_id"].tolist() == ["b", "c", "a"]
    assert read["submit_time"].tolist() == [0, 30, 60]
    of_table = partial(
        gavel.from_jobs,
        read.assign(model=["x", "x", "z"]),
        throughputs=read_throughputs(THROUGHPUTS),
        num_workers=8,
        rng=1,
    )
    setting = of_table(round_length=0.0)
    # On v100: two workers for 30 s, as many for 16, and a type drawn for a model that is not there.
    assert setting.scale_factors.tolist() == [2, 2, 1]
    assert setting.jobs.work.tolist()[:2] == [210, 70]
    assert setting.jobs.columns["model"][2] in ("x", "y")
    done = replay(setting, decider(FAIR, "exact"))
    assert done.jobs["ended"].tolist() == pytest.approx([30, 40, 120])
    # By default the second and the third wait for the round that begins after they have come.
    done = replay(of_table(), decider(FAIR, "exact"))
    assert done.jobs["ended"].tolist() == pytest.approx([30, 370, 420])


def test_arrivals_come_at_the_rate() -> None:
    arrivals = poisson(np.random.default_rng(0), 4000, 6.0)
    assert arrivals[0] == 0
    assert (np.diff(arrivals) >= 0).all()
    # Gaps of 600 s, whose mean has an error of 600 over the root of their number.
    assert abs(np.diff(arrivals).mean() - 600) < 3 * 600 / np.sqrt(3999)
    # Ten GPUs at a half: 18,000 GPU-seconds an hour, of jobs of 900.
    assert rate_at(0.5, np.array([600.0, 1200.0]), 10) == pytest.approx(20)
    with pytest.raises(ReplayError, match="per_hour: got 0"):
        poisson(np.random.default_rng(0), 3, 0.0)


def test_jobs_at_random_are_replayed() -> None:
    setting = gavel.generate(0, throughputs=read_throughputs(THROUGHPUTS), num_jobs=20, num_workers=4)
    assert replay(setting, decider(FAIR, "heterogeneity_agnostic")).jobs["ended"].notna().all()
    assert afs.PROBLEMS == (PROBLEM,)


def test_the_cost_workload_is_that_of_section_7_3() -> None:
    """ResNet-50 and A3C jobs of one worker, for 0.5 to 8 days on a V100, with SLOs of 1.2, 2 or 10 times as long."""
    models = ["ResNet-50 (batch size 16)", "ResNet-50 (batch size 64)", "A3C"]
    table = pd.concat(
        [THROUGHPUTS.assign(model=model)[lambda one: one["scale_factor"] == 1].iloc[:2] for model in models]
    )
    setting = gavel.cost_workload(0, throughputs=read_throughputs(table), num_jobs=300)
    days = setting.jobs.work / setting.throughputs[:, 1] / 86_400
    assert set(np.round(days, 4)) == {0.5, 1, 2, 4, 8}
    factors = setting.jobs.deadlines / (days * 86_400)
    assert set(np.round(factors, 4)) == {1.2, 2, 10}
    drawn = pd.Series(setting.jobs.columns["model"])
    assert set(drawn) == set(models)
    assert 0.4 < (drawn == "A3C").mean() < 0.6
    assert (setting.jobs.arrivals == 0).all()
    assert setting.fields["costs"].tolist() == [0.45, 2.48]
    with pytest.raises(InstanceError, match="model A3C: the table has no such job type"):
        gavel.cost_workload(0, throughputs=read_throughputs(table[table["model"] != "A3C"]))


def test_rows_of_priority_0_fill_idle_workers_in_rounds() -> None:
    """Shortest job first gives the second job nothing beside the first; in a round it fills the K80 that is idle."""
    policy = "gavel.shortest_job_first"
    jobs = pd.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit_time": 0.0,
            "model": "x",
            "num_gpus": 1,
            "duration": np.nan,
            "iterations": [4 * 360.0, 4 * 720.0],
        }
    )
    ended = [
        replay(
            gavel.from_jobs(
                jobs, problem=policy, throughputs=read_throughputs(THROUGHPUTS), num_workers=1, round_length=seconds
            ),
            decider(policy, "exact"),
        ).jobs["ended"]
        for seconds in (0.0, 360.0)
    ]
    assert ended[0].tolist() == pytest.approx([360, 360 + 720])
    # Beside a, b does 360 of its 2,880 steps on the K80, and 4 a second on the V100 from then on.
    assert ended[1].tolist() == pytest.approx([360, 360 + (2880 - 360) / 4])


def priced(deadlines, work, arrivals) -> Policy:
    made = policy(arrivals, work, 1, problem="gavel.cost", round_length=1.0, fields={"costs": np.ones(1)})
    return replace(made, jobs=replace(made.jobs, deadlines=np.array(deadlines, float)))


def test_an_slo_that_a_round_makes_too_late_asks_for_nothing() -> None:
    # The second comes within a round with just the time that it needs, and starts half a second too late.
    done = replay(priced([np.inf, 2.5], [1, 2], [0, 0.5]), decider("gavel.cost", "exact"))
    assert done.jobs["ended"].tolist() == pytest.approx([1, 3])
    assert set(done.decisions["status"]) <= {"optimal", "feasible"}


def test_where_slos_cannot_all_be_met_none_is_asked_for() -> None:
    # Each could be done by 3 s alone; of both, one is done at 4 s.
    done = replay(priced([3, 3], [2, 2], [0, 0]), decider("gavel.cost", "exact"))
    assert sorted(done.jobs["ended"]) == pytest.approx([2, 4])
    asked = done.decisions[done.decisions["problem"] == "gavel.cost"]
    assert {"infeasible", "optimal"} <= set(asked["status"])


def on_servers(**options) -> Policy:
    """Return two jobs of two workers on servers of three and one, half as fast on both."""
    made = policy([0, 0], [4, 3], 4, scale_factors=np.array([2, 2]), round_length=1.0, **options)
    return replace(made, servers=Servers(3, np.full((2, 1), 0.5), None, np.array([False])))


def test_a_job_whose_workers_are_spread_is_slower() -> None:
    # The first takes the server of three until 4 s; the second has done 2 of 3 by then, and gets that server.
    done = replay(on_servers(), decider(FAIR, "exact"))
    assert done.jobs["ended"].tolist() == pytest.approx([4, 5])
    assert done.jobs["migrations"].tolist() == [0, 1]
    alike = replay(replace(on_servers(), servers=None), decider(FAIR, "exact"))
    assert alike.jobs["ended"].tolist() == pytest.approx([4, 3])


def test_workers_of_an_unconsolidated_type_stand_apart() -> None:
    made = policy([0], [2], 4, scale_factors=np.array([2]), round_length=1.0)
    made = replace(made, servers=Servers(2, np.full((1, 1), 0.5), None, np.array([True])))
    assert made.capacity.tolist() == [2, 2]
    seen = []
    decide = made.begin()

    def kept(state, ask):
        seen.append(decide(state, ask).gpus.tolist())
        return decide(state, ask)

    object.__setattr__(made, "begin", lambda: kept)
    replay(made, decider(FAIR, "exact"))
    assert seen[0] == [[1, 1]]


def test_servers_are_made_of_a_table() -> None:
    spread = THROUGHPUTS.assign(
        worker_type=THROUGHPUTS["worker_type"] + "_unconsolidated", throughput=THROUGHPUTS["throughput"] / 2
    )
    both = read_throughputs(pd.concat([THROUGHPUTS, spread]))
    jobs = table().assign(model="x").iloc[:2]
    for told, columns in ((False, [[0.5, 2.0], [0.0, 3.5]]), (True, [[0.5, 2.0] * 2, [0.0, 3.5] * 2])):
        made = gavel.from_jobs(jobs, throughputs=both, num_workers=5, workers_per_server=2, unconsolidated=told)
        assert made.servers.throughputs[np.argsort(made.scale_factors)].tolist() == columns
        assert made.servers.unconsolidated.tolist() == [False] * 2 + [True] * 2 * told
        assert made.capacity.tolist() == [2, 2, 1] * 2
        assert made.pool_of.tolist() == [0] * 3 + [1] * 3
        assert replay(made, decider(FAIR, "exact")).jobs["ended"].notna().all()
        # Time divided without end is bounded by workers, wherever they stand.
        assert made.ways().capacity.tolist() == [5, 5]
    with pytest.raises(ReplayError, match="servers: jobs stand on servers in rounds"):
        gavel.from_jobs(jobs, throughputs=both, num_workers=5, workers_per_server=2, round_length=0.0)
