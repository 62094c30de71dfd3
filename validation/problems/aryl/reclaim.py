"""aryl.reclaim: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from hypothesis import strategies as st

from heuristics.aryl import reclaim as fast
from instances.aryl.reclaim import Reclaim, generate
from validation.catalogue import Entry, named
from validation.testing.arrays import booleans, integers

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 5, max_servers: int = 5, max_gpus: int = 4) -> Reclaim:
    """Reclaim instances: any hosts, with flexible workers, and every demand."""
    n = draw(st.integers(1, max_jobs))
    s = draw(st.integers(1, max_servers))
    hosts = draw(booleans((n, s)))
    flexible = draw(integers((n, s), 0, max_gpus - 1))
    return Reclaim(hosts=hosts, gpus=flexible + hosts, demand=draw(st.integers(0, s)))


ENTRY = Entry(
    title="Which servers to give back, preempting the fewest jobs",
    source="Aryl, section 4 and Appendix B, Algorithm 1",
    instance=Reclaim,
    generate=generate,
    size="num_servers",
    sizes=(10, 20, 40),
    heuristics=named(
        fast.server_fraction,
        fast.flexible_first,
        fast.gpu_fraction,
        fast.smallest_count_first,
        fast.smallest_count_updated,
        fast.random,
        fast.local_search,
    ),
    symmetric=("n", "s"),
    strategy=strategy,
)
