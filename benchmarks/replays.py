"""What the tables of replays ask: a setting to be decided about, and what became of its jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import highspy
import numpy as np

import formulations
from formulations.engine.highs import Session, hand_over
from formulations.gavel.max_min_fairness import program
from formulations.gavel.sharing import within_limits
from heuristics.gavel.schedules import allox_schedule
from instances.gavel.hierarchical_fairness import HierarchicalFairness, growing_cluster
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.sharing import Allocation
from instances.gavel.traces import PRICES, price_of_each
from instances.schema import FloatArray
from validation.claims.gavel.hierarchical_fairness import static_partition, total_throughput
from validation.replay import Costs, Setting, decider, replay
from validation.replay.engine import Ask, Decide, Decision, State
from validation.replay.settings import settings_of
from validation.replay.settings.gavel import Policy, generate
from validation.replay.workloads import HOUR, read_jobs

__all__ = [
    "Growing",
    "ToReplay",
    "allox_first",
    "blind_program",
    "by_allox",
    "by_averaged_allox",
    "by_blind_program",
    "by_interior_point",
    "drawn",
    "figure_12",
    "interior_point",
    "rented",
    "set_up",
]


class ToReplay(NamedTuple):
    """A setting that asks a problem, how it is replayed, the part of its jobs whose completion times count, SLOs.

    Where time goes in rounds, a job is late for its SLO when it ends more than a round after it.
    """

    problem: str
    setting: Setting
    options: dict[str, Any]
    counted: tuple[float, float]
    slos: FloatArray | None = None

    @property
    def rounds(self) -> float | None:
        """Length of the setting's rounds, s."""
        return getattr(self.setting, "round_length", None)

    def answerer(self, name: str) -> Callable[..., SimpleNamespace]:
        """Return who replays it under the decision maker of that name."""
        return partial(_replayed, name=name)


def drawn(
    seed: int,
    *,
    asks: str,
    num_jobs: int,
    trace: Path | None = None,
    counted: tuple[float, float] = (0.0, 1.0),
    seconds_lost: float = 0.0,
    gaps: int = 0,
    to_deadlines: bool = False,
    made: str = "",
    without_slos: bool = False,
    **options: Any,
) -> ToReplay:
    """Draw a setting that asks a problem, or make it of the first jobs of a trace.

    Completion times count from one part of the jobs to another, a restart or a migration loses so many seconds, the
    optimum of so many decisions is found beside, and the replay ends with the last job, or a slot after the last
    deadline.  ``made`` names another generator of the setting; ``without_slos`` hides deadlines from a policy of Gavel,
    and they count all the same.
    """
    module = sys.modules[settings_of(asks).from_jobs.__module__]
    if trace is None:
        draw = getattr(module, made) if made else getattr(module, "derived", module.generate)
        setting = draw(seed, problem=asks, num_jobs=num_jobs, **options)
    else:
        setting = module.from_jobs(read_jobs(trace).head(num_jobs), problem=asks, rng=seed, **options)
    slos = setting.jobs.deadlines
    if without_slos:
        setting = replace(setting, jobs=replace(setting.jobs, deadlines=np.full(num_jobs, np.inf)))
    how: dict[str, Any] = {"costs": Costs(restart=seconds_lost, migration=seconds_lost), "gaps": gaps}
    if to_deadlines:
        how["horizon"] = float(setting.jobs.deadlines.max()) + setting.slot_seconds
    return ToReplay(asks, setting, how, counted, slos)


def _replayed(asked: ToReplay, *, name: str, **options: Any) -> SimpleNamespace:
    """Replay, and return what the tables show."""
    setting, bill = rented(asked.setting) if isinstance(asked.setting, Policy) else (asked.setting, None)
    done = replay(setting, decider(asked.problem, name, **options), **asked.options)
    jobs, decisions = done.jobs, done.decisions
    own = decisions["problem"] == asked.problem
    first, last = (round(part * len(jobs)) for part in asked.counted)
    times = (jobs["ended"] - jobs["arrival"]).iloc[first:last]
    return SimpleNamespace(
        jobs=len(jobs),
        jct=float(times.mean()),
        p99=float(np.percentile(times, 99)),
        makespan=done.metrics()["makespan"],
        met=int(jobs["met"].sum()),
        late=None
        if asked.slos is None
        else float((jobs["ended"].to_numpy() > asked.slos * (1 + 1e-6) + (asked.rounds or 0.0)).mean()),
        rho=done.metrics()["average_rho"],
        average_gap=done.metrics()["average_gap"],
        moved=int(jobs["migrations"].sum()),
        changed=int(jobs["restarts"].sum() + jobs["migrations"].sum()),
        dollars=None if bill is None else bill(float(jobs["ended"].max())),
        turned_away=int(jobs["turned_away"].sum()),
        programs=int(own.sum()),
        mean_program=decisions["jobs"][own].mean(),
        decisions=len(decisions),
        mean_jobs=decisions["jobs"].mean(),
        most_jobs=decisions["jobs"].max(),
        lost=100 * decisions.query("problem == 'aryl.reclaim'")["value"].sum() / len(jobs),
    )


def rented(policy: Policy) -> tuple[Policy, Callable[[float], float]]:
    """Return a setting that keeps who holds workers, and what they have cost until a time, $.

    A worker is paid for from decision to decision, in rounds to the end of the round; pools without prices of the
    setting's are those of the published types, in their order.
    """
    held: list[tuple[float, Any]] = []
    observed = copy(policy)

    def begin() -> Decide:
        decide = policy.begin()

        def kept(state: State, ask: Ask) -> Decision:
            decision = decide(state, ask)
            held.append((state.now, decision.gpus.sum(axis=0)))
            return decision

        return kept

    def bill(end: float) -> float:
        prices = price_of_each(sorted(PRICES), None)
        if "costs" in policy.fields:
            prices = np.zeros(len(policy.num_workers))
            prices[policy.pools] = policy.fields["costs"]
        prices = prices[policy.pool_of]
        ends = [*(now for now, _ in held[1:]), end]
        return sum(
            max(0.0, until - now) / HOUR * float(gpus @ prices) for (now, gpus), until in zip(held, ends, strict=True)
        )

    object.__setattr__(observed, "begin", begin)
    return observed, bill


class Growing(NamedTuple):
    """Hierarchies as jobs come, of which the total throughput counts."""

    hierarchies: list[HierarchicalFairness]

    def answerer(self, name: str) -> Callable[..., SimpleNamespace]:
        """Return who divides the cluster, ``static`` or ``exact``, all along."""
        return partial(_divided, divide=static_partition if name == "static" else _exact_levels)


def _exact_levels(instance: HierarchicalFairness) -> Allocation:
    plan = formulations.solve(instance).plan
    assert isinstance(plan, Allocation)
    return plan


def _divided(growing: Growing, *, divide: Callable[[HierarchicalFairness], Allocation]) -> SimpleNamespace:
    return SimpleNamespace(total=sum(total_throughput(one, divide(one)) for one in growing.hierarchies))


def figure_12(seed: int, *, throughputs: Path, **options: Any) -> Growing:
    """Return Figure 12's cluster whenever a job has come, with jobs of one worker of the published table."""
    del options
    speeds = generate(seed, throughputs=throughputs, num_jobs=18, num_workers=3).throughputs
    return Growing([replace(growing_cluster(4 * job), throughputs=speeds[: job + 1]) for job in range(18)])


def interior_point(instance: MaxMinFairness) -> Allocation:
    """Return the optimum that an interior-point method ends at, between the vertices."""
    policy = program(instance)
    arrays = policy.arrays()
    solver = highspy.Highs()
    for option, value in {"output_flag": False, "threads": 1, "solver": "ipm", "run_crossover": "off"}.items():
        solver.setOptionValue(option, value)
    hand_over(solver, arrays)
    solver.run()
    shares = np.array(solver.getSolution().col_value)[: instance.fits.size]
    return within_limits(instance, shares.reshape(instance.fits.shape))


def blind_program(instance: MaxMinFairness) -> Allocation:
    """Return a vertex of the linear program with one throughput for all types on which a job runs."""
    blind = replace(instance, throughputs=(instance.throughputs > 0).astype(float))
    plan = formulations.solve(blind).plan
    assert isinstance(plan, Allocation)
    return plan


def allox_first(instance: Makespan) -> Allocation:
    """Return who runs now under AlloX: the first job of each worker, all the time."""
    schedule = allox_schedule(instance)
    assert schedule is not None
    first = np.flatnonzero((schedule.types >= 0) & (schedule.starts == 0))
    time_fractions = np.zeros(instance.fits.shape)
    time_fractions[first, schedule.types[first]] = 1.0
    return Allocation(time_fractions)


by_allox = partial(_replayed, name="benchmarks.replays:allox_first")
by_averaged_allox = partial(_replayed, name="allox")
by_interior_point = partial(_replayed, name="benchmarks.replays:interior_point")
by_blind_program = partial(_replayed, name="benchmarks.replays:blind_program")


def set_up(asked: ToReplay) -> SimpleNamespace:
    """Replay under the exact model and count the processor time that makes solvers and hands programs over, s."""
    spent = 0.0

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def timed_call(*arguments: Any, **options: Any) -> Any:
            nonlocal spent
            began = time.process_time()
            result = call(*arguments, **options)
            spent += time.process_time() - began
            return result

        return timed_call

    with ExitStack() as stack:
        for name in ("__init__", "_push"):
            stack.enter_context(patch.object(Session, name, counted(getattr(Session, name))))
        done = _replayed(asked, name="exact")
    done.spent = spent
    return done
