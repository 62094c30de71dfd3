"""Entry of gavel.round_assignment: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from heuristics.gavel import round_assignment as fast
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, Relabelled, optimum
from validation.problems.gavel.sharing import WIDE, cluster
from validation.testing import st
from validation.testing.arrays import booleans, quarters, subsets

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None, max_priority: int = 4
) -> RoundAssignment:
    """Draw a round with priorities of 0 to 4 in quarters, ties and zeros among them, or a crowded pool.

    Of some of the former, not all entries may run.
    """
    kind = draw(st.sampled_from(("any", "alike", "wide")))
    if kind != "any":
        return draw(_jobs_alike() if kind == "alike" else _some_wide())
    drawn = draw(cluster() if fields is None else fields)
    rows = len(drawn["scale_factors"]) + len(drawn["pairs"])
    shared = {name: drawn[name] for name in ("num_workers", "pools", "scale_factors", "pairs")}
    shape = (rows, drawn["throughputs"].shape[1])
    eligible = draw(st.just(np.ones(shape, bool)) | booleans(shape))
    return RoundAssignment(**shared, priorities=draw(quarters(shape, 0, max_priority)), eligible=eligible)


@st.composite
def _jobs_alike(draw: st.DrawFn) -> RoundAssignment:
    """Draw one pool and jobs of one worker, all alike, with workers enough to part some of the pairs, whichever."""
    n = draw(st.integers(4, 6))
    possible = [(a, b) for a in range(n) for b in range(a + 1, n)]
    pairs = np.array(draw(st.just(possible) | subsets(possible)), np.int64).reshape(-1, 2)
    priorities = np.repeat([4.0, draw(st.integers(5, 7))], [n, len(pairs)])
    # On a second type of the pool, jobs are worth less.
    kinds = [1.0, 0.5][: draw(st.integers(1, 2))]
    return RoundAssignment(
        num_workers=np.array([draw(st.integers((n + 3) // 2, n - 1))]),
        pools=np.zeros(len(kinds), np.int64),
        scale_factors=np.ones(n, np.int64),
        pairs=pairs,
        priorities=np.outer(priorities, kinds),
    )


@st.composite
def _some_wide(draw: st.DrawFn) -> RoundAssignment:
    """Draw one pool with wide jobs, of all of it or all but one, at half the priority a worker, and narrow ones."""
    n = draw(st.integers(7, 8))
    workers = draw(st.integers(5, 6))
    # Few of what Hypothesis draws have many numbers that differ.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    wide = rng.random(n) < 0.25
    priorities = rng.integers(1, 17, n) / 4 * np.where(wide, workers / 2, 1)
    return RoundAssignment(
        num_workers=np.array([workers]),
        scale_factors=np.where(wide, workers - rng.integers(0, 2, n), 1),
        priorities=priorities[:, None],
    )


def _one_pool(instance: RoundAssignment) -> bool:
    return len(instance.num_workers) == 1


def _by_priority(instance: RoundAssignment, plan: RoundAssignmentPlan) -> bool:
    """Return whether eligible entries not chosen lack jobs or workers to entries of no lower priority."""
    chosen = [(int(row), int(kind)) for row, kind in np.argwhere(plan.chosen)]
    for row, kind in np.argwhere(instance.eligible & ~plan.chosen):
        before = [entry for entry in chosen if instance.priorities[entry] >= instance.priorities[row, kind]]
        running = {job for other, _ in before for job in instance.members[other]}
        pool = instance.pools[kind]
        taken = sum(int(instance.row_scale_factors[other]) for other, on in before if instance.pools[on] == pool)
        room = instance.row_scale_factors[row] <= instance.num_workers[pool] - taken
        if room and running.isdisjoint(instance.members[row]):
            return False
    return True


def _none_idle(instance: RoundAssignment, plan: RoundAssignmentPlan) -> bool:
    """Return whether each row that does not run lacks an idle job or workers on every type where it may."""
    running = {job for row in np.flatnonzero(plan.chosen.any(axis=1)) for job in instance.members[row]}
    left = instance.num_workers.tolist()
    for row, kind in np.argwhere(plan.chosen):
        left[instance.pools[kind]] -= int(instance.row_scale_factors[row])
    return not any(
        running.isdisjoint(instance.members[row]) and instance.row_scale_factors[row] <= left[instance.pools[kind]]
        for row, kind in np.argwhere(instance.eligible)
    )


BUSY = Holds("no row waits whose jobs and workers are idle", _none_idle)


ENTRY = Entry(
    title="Which jobs run in the next round, by priority",
    source="Gavel, section 5 and Algorithm 1",
    instance=RoundAssignment,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.greedy_priority,
            promises=(Relabelled(ties=False), Holds("no entry waits for one of lower priority", _by_priority)),
        ),
        Heuristic(fast.iterated_greedy, promises=(BUSY, NeverWorseThan("greedy_priority"))),
        Heuristic(
            fast.matching_round,
            declines=True,
            imports=("networkx",),
            promises=(
                BUSY,
                BreaksOnly((), _one_pool, "with one pool"),
                NeverWorseThan("greedy_priority", _one_pool, "with one pool"),
                optimum(
                    lambda instance: _one_pool(instance) and bool((instance.scale_factors == 1).all()),
                    "with one pool and jobs of one worker",
                ),
            ),
        ),
    ),
    symmetric=("n", "k", "p"),
    rescalings=(Rescaling(("priorities",), 1),),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
    wide=WIDE,
)
