"""Entry of afs.gpu_placement: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heuristics.afs import gpu_placement as fast
from instances.afs.gpu_placement import GpuPlacement, GpuPlacementPlan, from_placements, generate
from instances.afs.network_packing import regulated_shares
from validation.catalogue import Entry, Heuristic, named
from validation.kinds.promises import Holds, optimum
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
        regulated.append(draw(st.sampled_from(sizes[sizes <= left].tolist())))
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


def _largest_first(instance: GpuPlacement, plan: GpuPlacementPlan) -> bool:
    """Return whether the lowest job of the largest share keeps as many GPUs as any placement lets it."""
    job = int(instance.regulated.argmax())
    if not instance.regulated[job]:
        return True
    machines = -(-int(instance.regulated[job]) // instance.gpus_per_machine)
    block = int(instance.regulated[job]) // machines
    possible = np.sort(np.minimum(instance.previous[job], block))[::-1][:machines].sum()
    return bool(np.minimum(instance.previous[job], plan.gpus[job]).sum() == possible)


def _on_the_first(instance: GpuPlacement, plan: GpuPlacementPlan) -> bool:
    """Return whether each job has the lowest machines that those before it, in order of size, have left room on."""
    free = [instance.gpus_per_machine] * instance.num_machines
    for share, job in sorted((-int(share), job) for job, share in enumerate(instance.regulated)):
        block = min(-share, instance.gpus_per_machine)
        needed = -share
        for machine in range(instance.num_machines):
            part = block if block and needed > 0 and free[machine] >= block else 0
            if plan.gpus[job, machine] != part:
                return False
            needed -= part
            free[machine] -= part
    return True


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
            promises=(Holds("jobs from the largest on have the first machines with room", _on_the_first),),
        ),
        Heuristic(
            fast.first_fit_decreasing_in_place,
            promises=(
                optimum(lambda instance: instance.num_jobs == 1, "with one job"),
                Holds("the largest job keeps as many of its GPUs as it can", _largest_first),
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
