"""Entry of afs.network_packing: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heuristics.afs import network_packing as fast
from instances.afs.network_packing import NetworkPacking, NetworkPackingPlan, generate
from validation.catalogue import Entry, Heuristic, named
from validation.kinds.promises import Holds, optimum
from validation.testing import st

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 5, max_machines: int = 3, max_exponent: int = 3) -> NetworkPacking:
    """Draw any division of all GPUs, or of more than there are, among the jobs, with and without the guarantee."""
    n = draw(st.integers(1, max_jobs))
    num_machines = draw(st.integers(1, max_machines))
    gpus_per_machine = 2 ** draw(st.integers(0, max_exponent))
    total = num_machines * gpus_per_machine
    total = draw(st.sampled_from((total, total, total, total + 1)))
    cuts = sorted(draw(st.lists(st.integers(0, total), min_size=n - 1, max_size=n - 1)))
    return NetworkPacking(
        shares=np.diff([0, *cuts, total]),
        num_machines=num_machines,
        gpus_per_machine=gpus_per_machine,
        floor_guarantee=draw(st.booleans()),
    )


Step = tuple[int, int, int]
"""A share, what was wanted, and the increment to the next regulated share."""


def _grown(choose: Callable[[list[Step]], Step]) -> Callable[[NetworkPacking, NetworkPackingPlan], bool]:
    """Return the test that shares are the floors, of which ``choose`` picks one after another among those that fit.

    There is no plan where more is wanted than there is.
    """

    def test(instance: NetworkPacking, plan: NetworkPackingPlan) -> bool:
        wanted = instance.shares.tolist()
        shares = [max(int(size) for size in instance.candidates if size <= share) for share in wanted]
        while (left := sum(wanted) - sum(shares)) > 0:
            steps = [
                (share, want, min(share, instance.gpus_per_machine)) for share, want in zip(shares, wanted, strict=True)
            ]
            chosen = choose([step for step in steps if 0 < step[2] <= left])
            shares[steps.index(chosen)] += chosen[2]
        return bool(plan.regulated.tolist() == shares and sum(wanted) <= instance.num_gpus)

    return test


def _nearest(able: list[Step]) -> Step:
    def added(step: Step) -> tuple[int, int]:
        share, want, more = step
        return abs(share + more - want) - abs(share - want), -more

    return min(able, key=added)


GROWN = (
    optimum(lambda instance: instance.num_jobs == 1, "with one job"),
    optimum(lambda instance: bool((instance.floors == instance.shares).all()), "where no share need change"),
    Holds("every job gets at least its floor", lambda instance, plan: bool((plan.regulated >= instance.floors).all())),
)


ENTRY = Entry(
    title="Which shares, near those wanted, pack without sharing networks",
    source="AFS, section 4.4 and Appendix E",
    instance=NetworkPacking,
    generate=generate,
    size="num_jobs",
    sizes=(10, 50, 200),
    heuristics=named(
        Heuristic(
            fast.floor_and_grow,
            promises=(Holds("the lowest job has grown whose increment fits", _grown(lambda able: able[0])), *GROWN),
        ),
        Heuristic(
            fast.floor_and_grow_nearest,
            promises=(Holds("the job has grown that adds the least to the distance", _grown(_nearest)), *GROWN),
        ),
    ),
    symmetric=("n",),
    strategy=strategy,
    wide={"max_jobs": 10, "max_machines": 8, "max_exponent": 4},
)
