"""Entry of shockwave.window: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heuristics.shockwave import window as fast
from instances.schema import IntArray
from instances.shockwave.window import Window, WindowPlan, from_trace, generate
from validation.catalogue import Entry, Heuristic, named
from validation.kinds.promises import BreaksOnly, Holds, optimum
from validation.testing import st
from validation.testing.arrays import counts, integers, quarters, whole_floats

__all__ = ["ENTRY", "strategy"]

POINTS = ((0.0, 1.0), (0.0, 0.5, 1.0), (0.0, 0.25, 0.5, 1.0))
LEAST = (1e-6, 1 / 64)
PENALTIES = (0.0, 1 / 1024, 1 / 16, 1.0)


@st.composite
def strategy(
    draw: st.DrawFn,
    *,
    max_jobs: int = 4,
    max_rounds: int = 3,
    max_gpus: int = 4,
    max_epochs: int = 6,
    limits: bool = True,
) -> Window:
    """Draw jobs on few GPUs for few rounds, some with a limit on their finish time, with few points."""
    n = draw(st.integers(1, max_jobs))
    num_rounds, num_gpus = draw(st.integers(1, max_rounds)), draw(counts(1, max_gpus))
    epochs = draw(integers(n, 1, max_epochs))
    points = draw(st.sampled_from(POINTS))
    window = Window(
        num_gpus=num_gpus,
        num_rounds=num_rounds,
        round_duration=float(draw(st.integers(1, 8))),
        rounds_past=draw(st.integers(0, 3)),
        scale_factors=draw(integers(n, 1, max(2, max_gpus))),
        epochs=epochs,
        epochs_done=np.minimum(draw(integers(n, 0, max_epochs)), epochs),
        epoch_durations=draw(quarters(n, 1, 4)),
        times_left=draw(whole_floats(n, 0, 24)),
        weights=draw(integers(n, 0, 4)).astype(float),
        points=np.array(points),
        least_progress=draw(st.sampled_from(LEAST)),
        remaining_penalty=draw(st.sampled_from(PENALTIES)),
    )
    if not (limits and draw(st.booleans())):
        return window
    # Limits that some number of rounds attains, or none.
    rounds = draw(integers(n, 0, num_rounds + 1))
    jobs = np.arange(n)
    attained = window.finish_times[jobs, np.minimum(rounds, num_rounds)]
    return replace(window, finish_limits=np.where(rounds > num_rounds, np.inf, attained))


def _conserves(instance: Window, plan: WindowPlan) -> bool:
    """Return whether no job is out of a round that there are GPUs for, but those whose epochs are done by then."""
    left = instance.num_gpus - instance.scale_factors @ plan.runs
    before: IntArray = np.cumsum(plan.runs, axis=1) - plan.runs
    open_ = (
        instance.round_duration * before
        < (instance.epoch_durations * (instance.epochs - instance.epochs_done))[:, None]
    )
    return not (~plan.runs & open_ & (instance.scale_factors[:, None] <= left)).any()


def _none_better(instance: Window, plan: WindowPlan) -> bool:
    """Return whether no other round for a job, and no job in place of another in a round, is better."""
    value = instance.objective(plan)
    for at in range(instance.num_rounds):
        for taker in np.flatnonzero(~plan.runs[:, at]).tolist():
            for giver in (None, *np.flatnonzero(plan.runs[:, at]).tolist()):
                changed = plan.runs.copy()
                changed[taker, at] = True
                if giver is not None:
                    changed[giver, at] = False
                other = WindowPlan(runs=changed)
                if not instance.violations(other) and instance.objective(other) > value + 1e-9 * max(1.0, abs(value)):
                    return False
    return True


def _alike(instance: Window) -> bool:
    """Return whether all jobs hold equally many GPUs."""
    return len(np.unique(instance.scale_factors)) <= 1


LIMITS = "the order of the jobs does not look at limits on finish times"
BREAKS = BreaksOnly(("finish_limit",))
CONSERVES = Holds("no job with epochs left is out of a round that there are GPUs for", _conserves)
LOCAL = Holds("no job's round is better given to another, and no round is better used", _none_better)


ENTRY = Entry(
    title="Which jobs run in each of the next rounds",
    source="Shockwave, the program of its released code",
    instance=Window,
    generate=generate,
    size="num_jobs",
    sizes=(10, 30, 90),
    heuristics=named(
        Heuristic(fast.work_conserving, infeasible_because=LIMITS, promises=(BREAKS, CONSERVES)),
        Heuristic(fast.least_finished_first, infeasible_because=LIMITS, promises=(BREAKS, CONSERVES)),
        Heuristic(fast.finish_time_fair, infeasible_because=LIMITS, promises=(BREAKS, CONSERVES)),
        Heuristic(fast.greedy_marginal, declines=True, promises=(LOCAL,)),
        Heuristic(
            fast.priced_rounds,
            declines=True,
            promises=(LOCAL, optimum(_alike, "where all jobs hold equally many GPUs")),
        ),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    strategy=strategy,
    wide={"max_jobs": 8, "max_rounds": 6, "max_gpus": 64, "max_epochs": 40},
)
