"""Entry of aryl.reclaim: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from heuristics.aryl import reclaim as fast
from instances.aryl.reclaim import Reclaim, ReclaimPlan, from_placements, generate
from validation.catalogue import Entry, Heuristic, named
from validation.kinds.promises import Holds, NeverWorseThan, optimum
from validation.testing import st
from validation.testing.arrays import booleans, integers

__all__ = ["ENTRY", "strategy"]


FEW = 25
"""Jobs times servers of small instances."""


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 5, max_servers: int = 5, max_gpus: int = 4) -> Reclaim:
    """Draw reclaims of any hosts, with flexible workers, and of every demand."""
    # Greedy methods go wrong where there is much to choose from: often as many as there may be.
    n = draw(st.integers(1, max_jobs) | st.just(max_jobs))
    s = draw(st.integers(1, max_servers) | st.just(max_servers))
    if n * s <= FEW and draw(st.booleans()):
        hosts = draw(booleans((n, s)))
        flexible = draw(integers((n, s), 0, max_gpus - 1))
    else:
        # Hypothesis rarely comes to the end of large arrays; few hosts leave more to choose from.
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        hosts = rng.random((n, s)) < draw(st.sampled_from((0.2, 0.3, 0.4)))
        flexible = rng.integers(0, max_gpus, (n, s))
    return Reclaim(
        hosts=hosts, gpus=flexible + hosts, demand=draw(st.just(1) | st.integers(0, s) | st.just((s + 1) // 2))
    )


def _cheapest_first(share: Callable[[Reclaim, int, int], float]) -> Callable[[Reclaim, ReclaimPlan], bool]:
    """Return the test that each server in turn is the cheapest of those left, by the shares of the jobs still there."""

    def test(instance: Reclaim, plan: ReclaimPlan) -> bool:
        running = set(range(instance.num_jobs))
        left = set(range(instance.num_servers))
        for server in plan.servers.tolist():
            cost = {
                other: sum(share(instance, job, other) for job in running if instance.hosts[job, other])
                for other in left
            }
            if cost[server] > min(cost.values()) + 1e-6:
                return False
            left.remove(server)
            running -= set(np.flatnonzero(instance.hosts[:, server]).tolist())
        return True

    return test


def _of_servers(instance: Reclaim, job: int, server: int) -> float:
    # Of a single server, the paper takes the one with the fewest jobs.
    return 1.0 if instance.demand == 1 else 1 / int(instance.hosts[job].sum())


def _of_gpus(instance: Reclaim, job: int, server: int) -> float:
    return float(instance.gpus[job, server] / instance.gpus[job, instance.hosts[job]].sum())


def _no_better_swap(instance: Reclaim, plan: ReclaimPlan) -> bool:
    """Return whether no returned server can be exchanged for a kept one with fewer jobs preempted."""
    kept = np.setdiff1d(np.arange(instance.num_servers), plan.servers)
    now = instance.hosts[:, plan.servers].any(axis=1).sum()
    return not any(
        instance.hosts[:, [*np.delete(plan.servers, position), other]].any(axis=1).sum() < now
        for position, other in product(range(len(plan.servers)), kept)
    )


def _released_first(instance: Reclaim, plan: ReclaimPlan) -> bool:
    """Return whether as many servers as can be are returned that host no job's base workers, and these first."""
    none = np.logical_not(instance.hosts.any(axis=0))
    first = min(int(none.sum()), instance.demand)
    return bool(none[plan.servers[:first]].all())


def _fewest_jobs(instance: Reclaim, plan: ReclaimPlan) -> bool:
    counts = instance.hosts.sum(axis=0)
    kept = np.setdiff1d(np.arange(instance.num_servers), plan.servers)
    return not len(plan.servers) or not len(kept) or bool(counts[plan.servers].max() <= counts[kept].min())


SINGLE = optimum(lambda instance: bool((instance.hosts.sum(axis=1) <= 1).all()), "where no job has two servers")
ONE = optimum(lambda instance: instance.demand <= 1, "where one server is demanded")


def _first_drawn(instance: Reclaim, plan: ReclaimPlan, rng: np.random.Generator) -> bool:
    drawn = rng.permutation(instance.num_servers)[: instance.demand]
    return bool(plan.servers.tolist() == sorted(drawn.tolist()))


ENTRY = Entry(
    title="Which servers to give back, preempting the fewest jobs",
    source="Aryl, section 4 and Appendix B, Algorithm 1",
    instance=Reclaim,
    generate=generate,
    size="num_servers",
    sizes=(10, 20, 40),
    from_placements=from_placements,
    heuristics=named(
        Heuristic(
            fast.server_fraction,
            promises=(
                SINGLE,
                ONE,
                Holds("each server costs the fewest jobs, by their servers", _cheapest_first(_of_servers)),
            ),
        ),
        Heuristic(
            fast.flexible_first,
            promises=(SINGLE, ONE, Holds("servers without base workers go first", _released_first)),
        ),
        Heuristic(
            fast.gpu_fraction,
            promises=(SINGLE, Holds("each server costs the fewest jobs, by their GPUs", _cheapest_first(_of_gpus))),
        ),
        Heuristic(
            fast.smallest_count_first,
            promises=(SINGLE, ONE, Holds("no server that is kept hosts fewer jobs", _fewest_jobs)),
        ),
        Heuristic(
            fast.smallest_count_updated,
            promises=(
                SINGLE,
                ONE,
                Holds("each server costs the fewest jobs", _cheapest_first(lambda instance, job, server: 1.0)),
            ),
        ),
        Heuristic(
            fast.random, promises=(Holds("the servers are the first of a random order", _first_drawn, stream=True),)
        ),
        Heuristic(
            fast.local_search,
            promises=(
                NeverWorseThan("server_fraction"),
                NeverWorseThan("gpu_fraction"),
                NeverWorseThan("smallest_count_updated"),
                Holds("no swap of servers is better", _no_better_swap),
            ),
        ),
    ),
    symmetric=("n", "s"),
    strategy=strategy,
    wide={"max_jobs": 24, "max_servers": 10, "max_gpus": 64},
)
