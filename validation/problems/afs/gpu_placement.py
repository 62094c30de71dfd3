"""Entry of afs.gpu_placement: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from heuristics.afs import gpu_placement as fast
from instances.afs.gpu_placement import GpuPlacement, GpuPlacementPlan, from_placements, generate
from instances.afs.network_packing import regulated_shares
from validation.catalogue import Entry, Heuristic, named
from validation.kinds.promises import Holds, NeverWorseThan, optimum
from validation.testing import st

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 4, max_machines: int = 3, max_exponent: int = 2) -> GpuPlacement:
    """Draw any regulated shares that fit, and any earlier placement, jobs without shares among them."""
    n = draw(st.integers(1, max_jobs))
    m = draw(st.integers(1, max_machines))
    gpus_per_machine = 2 ** draw(st.integers(0, max_exponent))
    left = m * gpus_per_machine
    regulated = []
    for _ in range(n):
        sizes = regulated_shares(m, gpus_per_machine)
        # Some are too many in all.
        regulated.append(draw(st.sampled_from(sizes[sizes <= max(left, 1)].tolist())))
        left -= regulated[-1]
    previous = np.zeros((n, m), np.int64)
    for machine in range(m):
        free = gpus_per_machine
        for job in range(n):
            previous[job, machine] = draw(st.integers(0, free))
            free -= int(previous[job, machine])
    return GpuPlacement(
        regulated=np.array(regulated), num_machines=m, gpus_per_machine=gpus_per_machine, previous=previous
    )


def _largest_first(*, in_place: bool) -> Callable[[GpuPlacement, GpuPlacementPlan], bool]:
    """Return the test that each job, in order of size, has the lowest machines with room; first where it keeps most."""

    def test(instance: GpuPlacement, plan: GpuPlacementPlan) -> bool:
        free = [instance.gpus_per_machine] * instance.num_machines
        held = np.zeros_like(plan.gpus)
        for share, job in sorted((-int(share), job) for job, share in enumerate(instance.regulated)):
            block = min(-share, instance.gpus_per_machine)
            kept = np.minimum(instance.previous[job], block).tolist() if in_place else [0] * len(free)
            for machine in sorted(range(len(free)), key=lambda machine: -kept[machine]):
                if block and held[job].sum() < -share and free[machine] >= block:
                    held[job, machine] = block
                    free[machine] -= block
        return bool((plan.gpus == held).all() and instance.regulated.sum() <= instance.num_gpus)

    return test


def _could_stay(instance: GpuPlacement) -> bool:
    """Return whether all jobs hold what they are to hold, on as few machines as that needs."""
    held = instance.previous
    spans = -(-instance.regulated // instance.gpus_per_machine)
    return bool((held.sum(axis=1) == instance.regulated).all() and ((held > 0).sum(axis=1) == spans).all())


ENTRY = Entry(
    title="Which machines host which jobs, keeping as many as possible in place",
    source="AFS, section 4.4 and Appendix E, Proposition 1",
    instance=GpuPlacement,
    generate=generate,
    size="num_jobs",
    sizes=(8, 16, 32),
    from_placements=from_placements,
    heuristics=named(
        Heuristic(
            fast.first_fit_decreasing,
            promises=(
                Holds("jobs from the largest on have the first machines with room", _largest_first(in_place=False)),
            ),
        ),
        Heuristic(
            fast.first_fit_decreasing_in_place,
            promises=(
                optimum(lambda instance: instance.num_jobs == 1, "with one job"),
                Holds("jobs from the largest on have the machines where they keep most", _largest_first(in_place=True)),
            ),
        ),
        Heuristic(
            fast.priced_first_fit,
            promises=(
                optimum(lambda instance: instance.num_jobs == 1, "with one job"),
                optimum(_could_stay, "where all jobs can stay"),
                NeverWorseThan("first_fit_decreasing_in_place"),
            ),
        ),
    ),
    symmetric=("n", "m"),
    enlarge=lambda instance: replace(
        instance,
        num_machines=instance.num_machines + 1,
        previous=[[*held, 0] for held in instance.previous.tolist()],
    ),
    strategy=strategy,
    wide={"max_jobs": 8, "max_machines": 6, "max_exponent": 4},
)
