"""elasticflow.placement: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from heuristics.elasticflow import placement as fast
from instances.elasticflow.placement import ElasticFlowPlacement, generate
from validation.catalogue import Entry, Heuristic, named
from validation.testing.arrays import integers

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


ENTRY = Entry(
    title="Which GPUs each job runs on, moving the fewest jobs",
    source="ElasticFlow, section 4.3",
    instance=ElasticFlowPlacement,
    generate=generate,
    size="num_servers",
    sizes=(4, 16, 64),
    heuristics=named(
        Heuristic(fast.buddy_best_fit, declines=True),
        fast.buddy_repack,
    ),
    symmetric=("n",),
    enlarge=lambda instance: replace(instance, num_gpus=instance.num_gpus + instance.gpus_per_server),
    strategy=strategy,
)
