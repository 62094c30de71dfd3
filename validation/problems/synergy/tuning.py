"""Entry of synergy.tuning: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heuristics.synergy import tuning as fast
from instances.synergy.tuning import Tuning, TuningPlan, from_trace, generate
from validation.catalogue import Heuristic, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, Relabelled
from validation.problems.synergy.sensitivity import fair_by_default, jobs, sensitive_entry
from validation.testing import st
from validation.testing.arrays import quarters

__all__ = ["ENTRY", "strategy"]

NO_ROOM_UNSPLIT = (
    "a job that may not be split can find no server with enough free GPUs, and one whose fair throughput is above that "
    "of its share none with enough of the rest"
)
SKIPS_JOBS = "it skips the jobs whose best-case demand no longer fits"


def _stage_one_bound(instance: Tuning) -> float:
    """Return the value of Synergy's super-machine: the relaxation of stage one (Theorem 4.1)."""
    # Pyomo is imported only where a bound is asked for.
    import formulations
    from formulations.synergy.allocation import relaxation

    return formulations.solve(relaxation(instance.stage_one())).bound


@st.composite
def strategy(draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 4, max_configs: int = 4) -> Tuning:
    """Draw jobs to be tuned and placed; they may be split over servers or not, or some have to be."""
    if draw(st.booleans()):
        return draw(_to_split())
    return Tuning(**draw(jobs(max_servers, max_gpus, max_configs)), allow_split=draw(st.booleans()))


@st.composite
def _to_split(draw: st.DrawFn) -> Tuning:
    """Draw servers of 4 GPUs and jobs of 3, of which one has to be split, each faster with a little more."""
    share = draw(quarters(2, 1, 3))
    # Of many configurations, Hypothesis draws few that differ.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = []
    for _ in range(4):
        first = [rng.integers(0, int(3 * share[0]) + 1), rng.integers(0, int(3 * share[1]) + 1), rng.integers(0, 5)]
        tables.append(np.cumsum([first, *rng.integers(0, 3, (3, 3))], axis=0).astype(float))
    return Tuning(
        num_servers=3,
        server_gpus=4,
        server_cpus=float(4 * share[0]),
        server_memory=float(4 * share[1]),
        gpu_demands=np.full(4, 3),
        configs=tuple(tables),
        allow_split=True,
    )


def _owed_no_more(instance: Tuning) -> bool:
    """Return whether jobs may be split and none is owed more than its share gives it."""
    return instance.allow_split and fair_by_default(instance)


def _within_share(instance: Tuning, plan: TuningPlan) -> bool:
    """Return whether each job that runs has its fastest configuration within its share."""
    return all(choice in (-1, share) for choice, share in zip(plan.choices, instance.proportional_choices, strict=True))


def _no_upgrade_fits(instance: Tuning, plan: TuningPlan) -> bool:
    """Return whether no job that runs has a faster configuration for which all of its servers have something left."""
    left = np.array([instance.server_cpus, instance.server_memory]) - instance.used(plan.choices, plan.gpus)
    for job, choice in enumerate(plan.choices.tolist()):
        if choice < 0:
            continue
        table, parts = instance.configs[job], plan.gpus[job] / instance.gpu_demands[job]
        for config in table[(table[:, 2] > table[choice, 2]) & instance.allowed_configs[job]]:
            more = parts[:, None] * (config - table[choice])[:2]
            if (more <= np.maximum(left, 0.0) * (1 - 1e-9))[parts > 0].all():
                return False
    return True


def _left_out_only_if_full(
    choices_of: Callable[[Tuning], Any], *, split: bool = True
) -> Callable[[Tuning, TuningPlan], bool]:
    """Return the test that no job is left out that the servers, as they end, could hold as ``choices_of`` says."""

    def test(instance: Tuning, plan: TuningPlan) -> bool:
        left = np.array([instance.server_cpus, instance.server_memory]) - instance.used(plan.choices, plan.gpus)
        free = np.column_stack([instance.server_gpus - plan.gpus.sum(axis=0), left])
        for job, choice in enumerate(choices_of(instance)):
            if plan.choices[job] >= 0 or choice < 0 or not instance.fair_configs[job][choice]:
                continue
            gpus = int(instance.gpu_demands[job])
            demand = np.array([gpus, *instance.configs[job][choice][:2]])
            needed = demand > 0
            room = np.floor((free[:, needed] * (1 - 1e-9) + 1e-12) / (demand[needed] / gpus) + 1e-9).min(axis=1)
            room = np.where(
                (free[:, needed] * (1 - 1e-9) >= demand[needed] / gpus * room[:, None]).all(axis=1), room, 0
            )
            if room.max() >= gpus or (split and instance.allow_split and room.sum() >= gpus):
                return False
        return True

    return test


def _most_balanced(instance: Tuning, plan: TuningPlan) -> bool:
    """Return whether jobs, those of most GPUs first, are where the scarcest resource is least scarce, at their best.

    Where a job finds no server with room, jobs are split or reduced, and nothing is said.
    """
    capacity = np.array([instance.server_gpus, instance.server_cpus, instance.server_memory])
    best = instance.best_choices
    if not capacity.all() or (best < 0).any():
        return True
    demands = np.column_stack([instance.gpu_demands, instance.chosen(best)[:, :2]])
    free = np.ones((instance.num_servers, 3))
    for *_, job in sorted((*(-row).tolist(), job) for job, row in enumerate(demands)):
        if not instance.fair_configs[job][best[job]]:
            return True
        left = (free - demands[job] / capacity).min(axis=1)
        if left.max() < 1e-9:
            return True
        server = int(plan.gpus[job].argmax())
        if plan.gpus[job, server] < instance.gpu_demands[job] or left[server] < left.max() - 1e-9:
            return False
        free[server] -= demands[job] / capacity
    return True


BEST_LEFT_OUT = Holds(
    "no job is left out that a server has room for", _left_out_only_if_full(lambda instance: instance.best_choices)
)
WHOLE_LEFT_OUT = Holds(
    "no job is left out that one server has room for",
    _left_out_only_if_full(lambda instance: instance.best_choices, split=False),
)
SHARE_LEFT_OUT = Holds(
    "no job is left out that a server has room for",
    _left_out_only_if_full(lambda instance: instance.proportional_choices),
)
LEFT_OUT = BreaksOnly(("placed",))
SKIPPED = BreaksOnly(("placed", "fair_throughput"))
SPLIT = BreaksOnly((), _owed_no_more, "where jobs may be split and none is owed more than its share gives it")
NOT_BELOW_SHARES = NeverWorseThan("proportional", _owed_no_more, SPLIT.when)
UPGRADED = Holds("no upgrade of a job fits any more", _no_upgrade_fits)


ENTRY = sensitive_entry(
    title="How much CPU and memory each job gets, and on which servers, for the greatest total throughput",
    source="Synergy, section 4.2",
    instance=Tuning,
    generate=generate,
    sizes=(1, 2, 4),
    heuristics=named(
        Heuristic(
            fast.proportional,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(
                LEFT_OUT,
                SHARE_LEFT_OUT,
                SPLIT,
                Relabelled(ties=False),
                Holds("each job that runs is as fast as its share lets it", _within_share),
            ),
        ),
        # All that run are at their best, so that a plan in which all run is optimal.
        Heuristic(fast.greedy, optimal=True, infeasible_because=SKIPS_JOBS, promises=(SKIPPED, WHOLE_LEFT_OUT)),
        Heuristic(fast.greedy_split, optimal=True, infeasible_because=SKIPS_JOBS, promises=(SKIPPED, BEST_LEFT_OUT)),
        Heuristic(
            fast.drf,
            optimal=True,
            infeasible_because=SKIPS_JOBS,
            promises=(SKIPPED, BEST_LEFT_OUT, Relabelled(ties=False)),
        ),
        Heuristic(
            fast.tetris,
            optimal=True,
            infeasible_because=SKIPS_JOBS,
            promises=(SKIPPED, BEST_LEFT_OUT, Relabelled(ties=False)),
        ),
        Heuristic(
            fast.tune,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(LEFT_OUT, SPLIT, NOT_BELOW_SHARES, Relabelled(ties=False)),
        ),
        Heuristic(
            fast.tune_and_upgrade,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(LEFT_OUT, SPLIT, NOT_BELOW_SHARES, NeverWorseThan("tune"), UPGRADED),
        ),
        Heuristic(
            fast.balanced_tune,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(
                LEFT_OUT,
                SPLIT,
                NOT_BELOW_SHARES,
                UPGRADED,
                Holds("while jobs fit whole, each is on the server that it leaves most balanced", _most_balanced),
            ),
        ),
    ),
    from_trace=from_trace,
    relaxation=_stage_one_bound,
    strategy=strategy,
    wide={"max_servers": 5, "max_gpus": 16, "max_configs": 6},
)
