"""Replays of the papers' settings: their headline results, and what comes out here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.tables import Row, Setup, benchmark, seconds, timed
from formulations.engine.highs import Session
from validation.replay import Costs, Replayed, decider, replay
from validation.replay.settings import aryl, elasticflow, gavel, synergy
from validation.replay.workloads import read_jobs

__all__ = ["aryl_loans", "elasticflow_deadlines", "gavel_setup", "large", "synergy_rounds"]


# --- Gavel ---------------------------------------------------------------------------------------


@benchmark("replays.setup", "jobs", "programs", "jobs in one", "processor time", "of it set-up of the solver", "share")
def gavel_setup(setup: Setup) -> Iterator[Row]:
    """What sessions kept between decisions would save: a solver made and a program handed over for each."""
    if setup.data is None:
        return
    setting = gavel.generate(
        0,
        throughputs=setup.data / "gavel" / "simulation_throughputs.json",
        num_jobs=setup.size(1200, 20),
        per_hour=5.6,
    )
    spent = [0.0]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def timed_call(*arguments: Any, **options: Any) -> Any:
            began = time.process_time()
            result = call(*arguments, **options)
            spent[0] += time.process_time() - began
            return result

        return timed_call

    with ExitStack() as stack:
        for name in ("__init__", "_push"):
            stack.enter_context(patch.object(Session, name, counted(getattr(Session, name))))
        replayed, took = timed(replay, setting, decider(setting.problem, "exact"))
    sizes = replayed.decisions["jobs"]
    yield (
        len(setting.jobs),
        len(sizes),
        f"{sizes.mean():.0f}",
        seconds(took),
        seconds(spent[0]),
        f"{spent[0] / took:.0%}",
    )


@benchmark(
    "replays.large", "jobs", "jobs/h", "who decides", "decisions", "jobs at a time: mean", "most", "processor time"
)
def large(setup: Setup) -> Iterator[Row]:
    """Replays of thousands of jobs under max-min fairness, on 36 workers of each of three types."""
    if setup.data is None:
        return
    for jobs, per_hour, who in setup.few(
        ((5000, 5.6, "exact"), (5000, 5.6, "heterogeneity_agnostic"), (10_000, 4.0, "heterogeneity_agnostic"))
    ):
        setting = gavel.generate(
            0,
            throughputs=setup.data / "gavel" / "simulation_throughputs.json",
            num_jobs=setup.size(jobs, 20),
            per_hour=per_hour,
        )
        replayed, took = timed(replay, setting, decider(setting.problem, who))
        sizes = replayed.decisions["jobs"]
        yield (
            f"{len(setting.jobs):,}",
            per_hour,
            f"`{who}`",
            f"{len(sizes):,}",
            f"{sizes.mean():.0f}",
            int(sizes.max()),
            seconds(took),
        )


# --- Synergy -------------------------------------------------------------------------------------

FIGURE_9 = {"proportional": 81.0, "tune": 22.0, "exact": 20.0}
"""Average completion time at 9 jobs/h under FIFO, h: Synergy, Figure 9."""


@benchmark("replays.synergy", "who decides", "problem", "paper, h", "here, h", "p99 here, h", "rounds")
def synergy_rounds(setup: Setup) -> Iterator[Row]:
    """Synergy: average completion time under FIFO, the middle half of 1,000 jobs of a GPU; 2.25 jobs/h on 32 GPUs."""
    if setup.data is None:
        return
    count = setup.size(1000, 4)
    for problem, policy in (
        ("synergy.tuning", "proportional"),
        ("synergy.tuning", "tune"),
        ("synergy.allocation", "exact"),
    ):
        setting = synergy.derived(
            0,
            throughputs=setup.data / "synergy" / "sensitivity_profiles.json",
            num_jobs=count,
            # A quarter of the paper's cluster, and of its rate.
            jobs_per_hour=2.25,
            num_servers=setup.size(4, 1),
            problem=problem,
        )
        # Those in the middle are through long before the last ones have come and gone.
        replayed = replay(setting, decider(problem, policy, time_limit=setup.seconds(60)))
        jct = (replayed.jobs["ended"] - replayed.jobs["arrival"]).to_numpy()[count // 4 : 3 * count // 4] / 3600
        yield (
            policy,
            f"`{problem}`",
            f"{FIGURE_9[policy]:.0f}",
            f"{jct.mean():.1f}",
            f"{np.percentile(jct, 99):.0f}",
            len(replayed.decisions),
        )


# --- ElasticFlow ---------------------------------------------------------------------------------


@benchmark(
    "replays.elasticflow", "trace", "GPUs", "deadlines", "EDF meets", "ElasticFlow meets", "times", "turned away"
)
def elasticflow_deadlines(setup: Setup) -> Iterator[Row]:
    """ElasticFlow: deadlines met, against EDF without admission control; 7.65 times as many in the paper (6.2)."""
    if setup.data is None:
        return
    folder = setup.data / "elasticflow"
    traces = [
        ("traces/elasticVpollux_e.csv", "throughputs_T4", 64, 195),
        ("microsoft/raw/cluster02.csv", "throughputs_A100", 128, 195),
        ("microsoft/raw/cluster02.csv", "throughputs_A100", 32, 195),
    ]
    for trace, throughputs, num_gpus, count in setup.few(traces):
        edf, kept = (
            _deadlines(folder / trace, folder / throughputs, num_gpus, setup.size(count, 8), admission)
            for admission in (False, True)
        )
        met = [int(replayed.jobs["met"].sum()) for replayed in (edf, kept)]
        yield (
            trace.rpartition("/")[2],
            num_gpus,
            len(edf.jobs),
            met[0],
            met[1],
            f"{met[1] / met[0]:.2f}" if met[0] else "",
            int(kept.jobs["turned_away"].sum()),
        )


def _deadlines(trace: Path, throughputs: Path, num_gpus: int, count: int, admission: bool) -> Replayed:
    """A trace until its last deadline, under ElasticFlow with hard deadlines or under EDF."""
    problem, policy = (
        ("elasticflow.admission", "progressive_filling")
        if admission
        else ("elasticflow.minimum_satisfactory_share", "edf")
    )
    setting = elasticflow.from_jobs(
        read_jobs(trace).head(count),
        problem=problem,
        throughputs=throughputs,
        num_gpus=num_gpus,
        admission_control=admission,
        turned_away="leave",
    )
    assert setting.jobs.deadlines is not None
    return replay(setting, decider(problem, policy), horizon=float(setting.jobs.deadlines.max()) + setting.slot_seconds)


# --- Aryl ----------------------------------------------------------------------------------------


@benchmark("replays.aryl", "scheme", "paper, s", "paper, times", "here, s", "here, times", "preempted, paper", "here")
def aryl_loans(setup: Setup) -> Iterator[Row]:
    """Aryl: average completion time with loans and elastic jobs, against FIFO without either (Table 5)."""
    if setup.data is None:
        return
    jobs = read_jobs(setup.data / "elasticflow" / "microsoft" / "raw" / "cluster02.csv").head(setup.size(1000, 60))
    plain = {"loaned": 0, "elastic": 0.0}
    lent = {"loaned": 6, "elastic": 0.0}
    scaled = {"loaned": 0, "elastic": 0.05}
    schemes = [
        ("Baseline: FIFO", 16610, 0.0, plain | {"overtake": False}, ("aryl.base_allocation", "fifo")),
        ("shortest job first, neither", None, None, plain, ("aryl.base_allocation", "shortest_job_first")),
        ("loans, Random", 14657, 0.2089, lent, ("aryl.reclaim", "random")),
        ("loans, SCF", 14965, 0.1874, lent, ("aryl.reclaim", "smallest_count_first")),
        ("loans, Aryl", 12414, 0.1234, lent, ("aryl.reclaim", "flexible_first")),
        ("loans, exact", None, None, lent, ("aryl.reclaim", "exact")),
        ("elastic, Gandiva", 15912, None, scaled, ("aryl.elastic_allocation", "gandiva")),
        ("elastic, AFS", 15045, None, scaled, ("aryl.elastic_allocation", "afs")),
        ("elastic, Aryl", 12048, None, scaled, ("aryl.elastic_allocation", "dynamic_program")),
        ("both", 11089, 0.102, lent | scaled | {"loaned": 6}, ("aryl.elastic_allocation", "dynamic_program")),
    ]
    first = 0.0
    for name, paper, preempted, options, asked in setup.few(schemes):
        setting = aryl.from_jobs(
            jobs,
            problem=asked[0],
            num_servers=12,
            inference_speed=1 / 3,
            **options,  # type: ignore[arg-type]
        )
        replayed = replay(setting, decider(*asked, time_limit=setup.seconds(60)), costs=Costs(restart=63, migration=63))
        jct = replayed.metrics()["average_jct"]
        first = first or jct
        lost = replayed.decisions.query("problem == 'aryl.reclaim'")["value"].sum() / len(jobs)
        yield (
            name,
            "" if paper is None else f"{paper:,}",
            "" if paper is None else f"{16610 / paper:.2f}",
            f"{jct:,.0f}",
            f"{first / jct:.2f}",
            "" if preempted is None else f"{100 * preempted:.2f} %",
            f"{100 * lost:.2f} %",
        )
