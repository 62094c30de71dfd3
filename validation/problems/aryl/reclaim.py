"""Entry of aryl.reclaim: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
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


Share = Callable[[Reclaim, int, int], Fraction]
"""What a job costs one of its servers."""


def _cheapest(instance: Reclaim, share: Share) -> list[int]:
    """Return servers, each in turn the lowest of the cheapest, by the shares of the jobs that none before it hosts."""
    hosts, taken = instance.hosts, list[int]()
    shares = {(job, server): share(instance, job, server) for job, server in np.argwhere(hosts).tolist()}
    while len(taken) < min(instance.demand, instance.num_servers):
        there = {pair: cost for pair, cost in shares.items() if not hosts[pair[0], taken].any()}
        costs = [sum(cost for (_, on), cost in there.items() if on == server) for server in range(hosts.shape[1])]
        taken.append(min(set(range(len(costs))).difference(taken), key=lambda server: (costs[server], server)))
    return taken


def _cheapest_first(share: Share) -> Callable[[Reclaim, ReclaimPlan], bool]:
    return lambda instance, plan: plan.servers.tolist() == _cheapest(instance, share)


def _of_servers(instance: Reclaim, job: int, server: int) -> Fraction:
    # Of a single server, the paper takes the one with the fewest jobs.
    return Fraction(1) if instance.demand == 1 else Fraction(1, int(instance.hosts[job].sum()))


def _of_gpus(instance: Reclaim, job: int, server: int) -> Fraction:
    return Fraction(int(instance.gpus[job, server]), int(instance.gpus[job, instance.hosts[job]].sum()))


def _of_jobs(instance: Reclaim, job: int, server: int) -> Fraction:
    return Fraction(1)


def _best_swaps(instance: Reclaim, plan: ReclaimPlan) -> bool:
    """Return whether the servers are the best that the best swaps in turn come to from those of three greedy rules."""
    every = range(instance.num_servers)

    def preempted(servers: list[int]) -> int:
        return int(instance.hosts[:, servers].any(axis=1).sum())

    ends = []
    for share in (_of_servers, _of_gpus, _of_jobs):
        best = sorted(_cheapest(instance, share))
        while True:
            now = best
            for out, new in product(now, sorted(set(every).difference(now))):
                swapped = sorted({*now, new} - {out})
                best = swapped if preempted(swapped) < preempted(best) else best
            if best == now:
                break
        ends.append(now)
    return bool(plan.servers.tolist() == min(ends, key=preempted))


def _released_first(instance: Reclaim, plan: ReclaimPlan) -> bool:
    """Return whether servers that host no job's base workers, the lowest first, come before those of Algorithm 1."""
    released = np.flatnonzero(~instance.hosts.any(axis=0))[: instance.demand].tolist()
    others = np.setdiff1d(np.arange(instance.num_servers), released)
    if not others.size:
        return bool(plan.servers.tolist() == released)
    left = instance.demand - len(released)
    rest = replace(instance, hosts=instance.hosts[:, others], gpus=instance.gpus[:, others], demand=left)
    return bool(plan.servers.tolist() == released + others[_cheapest(rest, _of_servers)].tolist())


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
                Holds("each server costs the fewest jobs", _cheapest_first(_of_jobs)),
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
                Holds("the servers are those of the best swaps from three greedy rules", _best_swaps),
            ),
        ),
        Heuristic(
            fast.tabu_search,
            promises=(
                NeverWorseThan("local_search"),
                optimum(
                    lambda instance: min(instance.demand, instance.num_servers - instance.demand) <= 1,
                    "where at most one server is demanded, or all but one are",
                ),
            ),
        ),
    ),
    symmetric=("n", "s"),
    strategy=strategy,
    wide={"max_jobs": 24, "max_servers": 10, "max_gpus": 64},
)
