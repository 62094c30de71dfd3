"""synergy.tuning: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from heuristics.synergy import tuning as fast
from instances.synergy.tuning import Tuning, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.synergy.sensitivity import jobs

__all__ = ["ENTRY", "strategy"]

NO_ROOM_UNSPLIT = (
    "a job that may not be split can find no server with enough free GPUs, and one whose fair throughput is above that "
    "of its share none with enough of the rest"
)
SKIPS_JOBS = "it skips the jobs whose best-case demand no longer fits"


def _stage_one_bound(instance: Tuning) -> float:
    """Synergy's super-machine: the relaxation of stage one (Theorem 4.1)."""
    # Pyomo is imported only where a bound is asked for.
    import formulations
    from formulations.synergy.allocation import relaxation

    return formulations.solve(relaxation(instance.stage_one())).bound


@st.composite
def strategy(draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 4, max_configs: int = 4) -> Tuning:
    """The same jobs, to be placed; they may be split over servers or not."""
    return Tuning(**draw(jobs(max_servers, max_gpus, max_configs)), allow_split=draw(st.booleans()))


ENTRY = Entry(
    title="How much CPU and memory each job gets, and on which servers, for the greatest total throughput",
    source="Synergy, section 4.2",
    instance=Tuning,
    generate=generate,
    size="num_servers",
    sizes=(1, 2, 4),
    heuristics=named(
        Heuristic(fast.proportional, infeasible_because=NO_ROOM_UNSPLIT),
        Heuristic(fast.greedy, infeasible_because=SKIPS_JOBS),
        Heuristic(fast.greedy_split, infeasible_because=SKIPS_JOBS),
        Heuristic(fast.drf, infeasible_because=SKIPS_JOBS),
        Heuristic(fast.tetris, infeasible_because=SKIPS_JOBS),
        Heuristic(fast.tune, infeasible_because=NO_ROOM_UNSPLIT),
        Heuristic(fast.tune_and_upgrade, infeasible_because=NO_ROOM_UNSPLIT),
        Heuristic(fast.balanced_tune, infeasible_because=NO_ROOM_UNSPLIT),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(
        Rescaling(("server_cpus", "configs[0]"), 0),
        Rescaling(("server_memory", "configs[1]"), 0),
        Rescaling(("configs[2]", "fair_throughputs"), 1),
    ),
    enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
    relaxation=_stage_one_bound,
    strategy=strategy,
)
