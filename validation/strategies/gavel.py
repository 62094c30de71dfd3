"""Instances of Gavel's problems: one cluster, and what each policy adds to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from instances.gavel.cost import Cost
from instances.gavel.fifo import Fifo
from instances.gavel.finish_time_fairness import FinishTimeFairness
from instances.gavel.hierarchical_fairness import HierarchicalFairness
from instances.gavel.makespan import Makespan
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.round_assignment import RoundAssignment
from instances.gavel.shortest_job_first import ShortestJobFirst
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.gavel.total_throughput import TotalThroughput
from validation.strategies.arrays import integers, quarters, subsets, whole_floats


@st.composite
def cluster(draw: st.DrawFn, *, max_jobs: int = 4, max_types: int = 3, max_workers: int = 4) -> dict[str, Any]:
    """Fields that all policies share: zero throughputs, wide jobs, shared pools and pairs included."""
    n = draw(st.integers(1, max_jobs))
    k = draw(st.integers(1, max_types))
    p = draw(st.integers(1, k))
    num_workers = draw(integers(p, 0, max_workers))
    # The first type belongs to the first pool, which has a worker, and every job runs there alone.
    num_workers[0] = max(1, num_workers[0])
    pools = np.concatenate([[0], draw(integers(k - 1, 0, p - 1))]).astype(np.int64)
    throughputs = draw(quarters((n, k), 0, 4))
    throughputs[:, 0] = np.maximum(throughputs[:, 0], 1.0)
    scale_factors = draw(integers(n, 1, int(num_workers[0])))
    possible = [(a, b) for a in range(n) for b in range(a + 1, n) if scale_factors[a] == scale_factors[b]]
    pairs = np.array(draw(subsets(possible)), np.int64).reshape(-1, 2)
    return {
        "throughputs": throughputs,
        "num_workers": num_workers,
        "pools": pools,
        "scale_factors": scale_factors,
        "pairs": pairs,
        "pair_throughputs": draw(quarters((len(pairs), k, 2), 0, 4)),
    }


@st.composite
def max_min_fairness(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> MaxMinFairness:
    """Max-min fairness with weights 1 to 4."""
    drawn = draw(cluster() if fields is None else fields)
    return MaxMinFairness(**drawn, weights=draw(whole_floats(len(drawn["throughputs"]), 1, 4)))


@st.composite
def makespan(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> Makespan:
    """Makespan with 1 to 60 steps left."""
    drawn = draw(cluster() if fields is None else fields)
    return Makespan(**drawn, steps=draw(whole_floats(len(drawn["throughputs"]), 1, 60)))


@st.composite
def finish_time_fairness(
    draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None
) -> FinishTimeFairness:
    """Finish-time fairness with jobs new or in the middle of their lives."""
    drawn = draw(cluster() if fields is None else fields)
    n = len(drawn["throughputs"])
    return FinishTimeFairness(
        **drawn,
        steps=draw(whole_floats(n, 1, 60)),
        elapsed=draw(whole_floats(n, 0, 60)),
        isolated_elapsed=draw(whole_floats(n, 0, 60)),
    )


@st.composite
def fifo(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> Fifo:
    """FIFO: the jobs are in the order of their arrival."""
    return Fifo(**draw(cluster() if fields is None else fields))


@st.composite
def shortest_job_first(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> ShortestJobFirst:
    """Shortest job first with 1 to 60 steps left."""
    drawn = draw(cluster() if fields is None else fields)
    return ShortestJobFirst(**drawn, steps=draw(whole_floats(len(drawn["throughputs"]), 1, 60)))


@st.composite
def total_throughput(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> TotalThroughput:
    """Total throughput."""
    return TotalThroughput(**draw(cluster() if fields is None else fields))


@st.composite
def priced(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A cluster with prices, steps and SLOs, some of which cannot be met."""
    drawn = draw(cluster() if fields is None else fields)
    n, k = drawn["throughputs"].shape
    slos = draw(whole_floats(n, 1, 240))
    without = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    return {
        **drawn,
        "costs": draw(whole_floats(k, 1, 4)),
        "steps": draw(whole_floats(n, 1, 60)),
        "slos": np.where(without, slos, np.inf),
    }


@st.composite
def cost(draw: st.DrawFn) -> Cost:
    """Throughput per price of what is used, as a ratio of sums."""
    return Cost(**draw(priced()))


@st.composite
def throughput_per_dollar(draw: st.DrawFn) -> ThroughputPerDollar:
    """Throughput per price, as a sum of ratios."""
    return ThroughputPerDollar(**draw(priced()))


@st.composite
def round_assignment(
    draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None, max_priority: int = 4
) -> RoundAssignment:
    """A round with priorities of 0 to 4 in quarters, ties and zeros among them."""
    drawn = draw(cluster() if fields is None else fields)
    rows = len(drawn["scale_factors"]) + len(drawn["pairs"])
    shared = {name: drawn[name] for name in ("num_workers", "pools", "scale_factors", "pairs")}
    return RoundAssignment(**shared, priorities=draw(quarters((rows, drawn["throughputs"].shape[1]), 0, max_priority)))


@st.composite
def hierarchical_fairness(
    draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None, max_entities: int = 2
) -> HierarchicalFairness:
    """Entities that share by weight, whose jobs do too or are served in order."""
    drawn = draw(cluster() if fields is None else fields)
    n = len(drawn["throughputs"])
    e = draw(st.integers(1, max_entities))
    policies = draw(st.lists(st.sampled_from(["fairness", "fifo"]), min_size=e, max_size=e))
    return HierarchicalFairness(
        **drawn,
        entities=draw(integers(n, 0, e - 1)),
        entity_weights=draw(whole_floats(e, 1, 4)),
        entity_policies=np.array(policies),
        weights=draw(whole_floats(n, 1, 4)),
    )
