"""Entry of aryl.placement: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from heuristics.aryl import placement as fast
from instances.aryl.placement import ArylPlacement, ArylPlacementPlan, from_placements, generate
from validation.catalogue import Entry, Heuristic, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, optimum
from validation.testing import st
from validation.testing.arrays import booleans, integers

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, max_jobs: int = 4, max_servers: int = 4, max_workers: int = 3, max_gpus: int = 8
) -> ArylPlacement:
    """Draw placements on servers of any sizes in both groups; not all workers need fit."""
    n = draw(st.integers(1, max_jobs))
    s = draw(st.integers(1, max_servers))
    if draw(st.booleans()):
        # Sizes that divide one another, on servers that are alike.
        exponent = draw(st.integers(0, max_gpus.bit_length() - 1))
        return ArylPlacement(
            gpus_per_worker=2 ** draw(integers(n, 0, exponent)),
            num_workers=draw(integers(n, 0, max_workers)),
            elastic=draw(booleans(n)),
            server_gpus=np.full(s, 2**exponent),
            server_groups=np.full(s, draw(st.sampled_from(("training", "inference")))),
        )
    groups = draw(st.lists(st.sampled_from(("training", "inference")), min_size=s, max_size=s))
    elastic = draw(booleans(n))
    # Small workers mostly find room, and share servers; only there does it matter which are flexible.
    widest = draw(st.sampled_from((max(1, max_gpus // 4), max_gpus)))
    return ArylPlacement(
        gpus_per_worker=draw(integers(n, 1, widest)),
        num_workers=draw(integers(n, 0, max_workers)),
        elastic=elastic,
        server_gpus=draw(integers(s, 1, max_gpus)),
        server_groups=np.array(groups),
        flexible=elastic & draw(booleans(n)),
        heterogeneous=draw(booleans(n)),
        # Without any, faults elsewhere show more simply.
        used_gpus=draw(st.just(np.zeros(s, np.int64)) | integers(s, 0, 2)),
    )


def _divisible(instance: ArylPlacement) -> bool:
    """Return whether servers are one group of equals, jobs are plain, and every size divides the next larger one."""
    sizes = [*np.unique(instance.gpus_per_worker[instance.num_workers > 0]), instance.server_gpus[0]]
    alike = len(set(instance.server_groups)) == 1 and len(set(instance.server_gpus)) == 1 and not instance.in_use.any()
    if instance.flexible.any() or instance.heterogeneous.any():
        return False
    return alike and all(large % small == 0 for small, large in pairwise(sizes))


def _none_left_out_that_fits(*, apart: bool) -> Callable[[ArylPlacement, ArylPlacementPlan], bool]:
    """Return the test that no worker is left out that some server has room for, of those it may join."""

    def test(instance: ArylPlacement, plan: ArylPlacementPlan) -> bool:
        free = instance.server_gpus - instance.gpus_per_worker @ plan.workers
        for job in np.flatnonzero(plan.workers.sum(axis=1) < instance.num_workers):
            others = plan.workers[instance.flexible != instance.flexible[job]].any(axis=0)
            others |= instance.in_use & instance.flexible[job]
            joins = ~(others & (instance.server_groups == "inference") & apart)
            if (free[joins] >= instance.gpus_per_worker[job]).any():
                return False
        return True

    return test


def _by_elasticity(instance: ArylPlacement, job: int) -> bool:
    """Return whether a job prefers inference servers: elastic ones do, but not base workers of heterogeneous ones."""
    return bool(instance.elastic[job] and (instance.flexible[job] or not instance.heterogeneous[job]))


def _preferred_group_first(
    prefers_loan: Callable[[ArylPlacement, int], bool],
) -> Callable[[ArylPlacement, ArylPlacementPlan], bool]:
    """Return the test that no worker is in the other group while an empty server of the preferred one holds it."""

    def test(instance: ArylPlacement, plan: ArylPlacementPlan) -> bool:
        empty = ~(plan.workers.any(axis=0) | instance.in_use)
        for job, need in enumerate(instance.gpus_per_worker):
            preferred = instance.server_groups == ("inference" if prefers_loan(instance, job) else "training")
            if plan.workers[job, ~preferred].any() and (empty & preferred & (instance.server_gpus >= need)).any():
                return False
        return True

    return test


def _best_fit(
    prefers_loan: Callable[[ArylPlacement, int], bool], *, apart: bool
) -> Callable[[ArylPlacement, ArylPlacementPlan], bool]:
    """Return the test that the plan is that of best fit decreasing, worker by worker."""

    def test(instance: ArylPlacement, plan: ArylPlacementPlan) -> bool:
        free, workers = instance.server_gpus.tolist(), np.zeros_like(plan.workers)
        loaned = instance.server_groups == "inference"
        kinds: list[bool | None] = [False if used else None for used in instance.in_use]
        for _, size, job in sorted(
            (bool(instance.heterogeneous[job]) and apart, -int(size), job)
            for job, size in enumerate(instance.gpus_per_worker)
        ):
            flexible = bool(instance.flexible[job]) and apart
            for _ in range(int(instance.num_workers[job])):
                # In order: the preferred group, opened servers, the fewest free GPUs, the lowest number.
                able = [
                    (bool(loaned[i]) != prefers_loan(instance, job), kinds[i] is None, free[i], i)
                    for i in range(len(free))
                    if free[i] >= -size and (kinds[i] is None or not loaned[i] or kinds[i] == flexible)
                ]
                if able:
                    server = min(able)[-1]
                    kinds[server] = flexible
                    free[server] += size
                    workers[job, server] += 1
        return bool((workers == plan.workers).all())

    return test


ENTRY = Entry(
    title="Which servers hold the workers, opening the fewest",
    source="Aryl, sections 5.3 and 6",
    instance=ArylPlacement,
    generate=generate,
    from_placements=from_placements,
    size="total_workers",
    sizes=(10, 20, 40),
    heuristics=named(
        Heuristic(
            fast.best_fit_decreasing,
            infeasible_because="a worker that fits on no server any more is left out",
            promises=(
                BreaksOnly(("all_placed",)),
                Holds("no worker is left out for which a server has room", _none_left_out_that_fits(apart=True)),
                Holds(
                    "no worker is in the other group while an empty server suits it better",
                    _preferred_group_first(_by_elasticity),
                ),
                Holds("workers are placed as best fit decreasing places them", _best_fit(_by_elasticity, apart=True)),
                BreaksOnly((), _divisible, "where the servers are alike and sizes divide one another"),
                optimum(_divisible, "where the servers are alike and sizes divide one another"),
            ),
        ),
        Heuristic(
            fast.local_search,
            infeasible_because="a worker that fits on no server any more is left out of the placements it starts from",
            promises=(
                BreaksOnly(("all_placed",)),
                NeverWorseThan("best_fit_decreasing"),
                BreaksOnly((), _divisible, "where the servers are alike and sizes divide one another"),
                optimum(_divisible, "where the servers are alike and sizes divide one another"),
            ),
        ),
        Heuristic(
            fast.naive_best_fit_decreasing,
            infeasible_because="base and flexible workers share servers; a worker that fits on no server any more is "
            "left out",
            promises=(
                BreaksOnly(("all_placed", "separate_groups")),
                Holds("no worker is left out for which a server has room", _none_left_out_that_fits(apart=False)),
                Holds(
                    "no worker is on an inference server while an empty training one holds it",
                    _preferred_group_first(lambda instance, job: False),
                ),
                Holds(
                    "workers are placed as best fit decreasing places them",
                    _best_fit(lambda instance, job: False, apart=False),
                ),
                optimum(_divisible, "where the servers are alike and sizes divide one another"),
            ),
        ),
    ),
    symmetric=("n", "s"),
    enlarge=lambda instance: replace(instance, server_gpus=instance.server_gpus + 1),
    strategy=strategy,
    wide={"max_jobs": 6, "max_servers": 12, "max_workers": 4, "max_gpus": 32},
)
