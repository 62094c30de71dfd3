"""elasticflow.placement: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from heuristics.elasticflow import placement as fast
from instances.elasticflow.placement import ElasticFlowPlacement, ElasticFlowPlacementPlan, generate
from validation.catalogue import Entry, Heuristic, named
from validation.testing.arrays import integers
from validation.testing.promises import BreaksOnly, Holds, NeverWorseThan, optimum

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, max_jobs: int = 5, max_servers: int = 3, max_exponent: int = 2
) -> ElasticFlowPlacement:
    """New jobs, and running ones anywhere, as if their sizes had changed; not all need fit."""
    n = draw(st.integers(1, max_jobs))
    server = 2 ** draw(st.integers(0, max_exponent))
    num_gpus = server * draw(st.integers(1, max_servers))
    exponents = draw(integers(n, 0, min(max_exponent, num_gpus.bit_length() - 1)))
    previous = [draw(st.none() | st.integers(0, num_gpus - 1)) for _ in range(n)]
    return ElasticFlowPlacement(
        num_gpus=num_gpus,
        gpus_per_server=server,
        sizes=2**exponents,
        previous_offsets=np.array([np.inf if offset is None else offset for offset in previous]),
    )


NEW = BreaksOnly((), lambda instance: bool(np.isinf(instance.previous_offsets).all()), "where no job runs yet")


def _largest_stay(instance: ElasticFlowPlacement, plan: ElasticFlowPlacementPlan) -> bool:
    """Whether of the jobs of the largest size that can stay, one stays in each block."""
    can = (instance.sizes == instance.sizes.max()) & instance.can_stay
    stays = can & (plan.offsets == instance.previous_offsets)
    return len(set(instance.previous_offsets[can])) == int(stays.sum())


ENTRY = Entry(
    title="Which GPUs each job runs on, moving the fewest jobs",
    source="ElasticFlow, section 4.3",
    instance=ElasticFlowPlacement,
    generate=generate,
    size="num_servers",
    sizes=(4, 16, 64),
    heuristics=named(
        Heuristic(fast.buddy_best_fit, optimal=True, declines=True, promises=(NEW,)),
        Heuristic(
            fast.buddy_repack,
            promises=(
                BreaksOnly(),
                Holds("running jobs of the largest size stay, one in each block", _largest_stay),
                NeverWorseThan("buddy_best_fit"),
                optimum(lambda instance: instance.num_jobs == 1, "with one job"),
            ),
        ),
    ),
    symmetric=("n",),
    enlarge=lambda instance: replace(instance, num_gpus=instance.num_gpus + instance.gpus_per_server),
    strategy=strategy,
    wide={"max_jobs": 12, "max_servers": 8, "max_exponent": 4},
)
