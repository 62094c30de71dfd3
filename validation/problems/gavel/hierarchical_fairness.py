"""Entry of gavel.hierarchical_fairness: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from heuristics.gavel import hierarchical_fairness as fast
from instances.gavel import traces
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, NeverWorseThan, Relabelled
from validation.problems.gavel.peers import MOST_WORTH, SOLVER, maximize, pops, poured
from validation.problems.gavel.sharing import WIDE, cluster, of_all_policies
from validation.testing import st
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "geometric_binner", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None, max_entities: int = 2
) -> HierarchicalFairness:
    """Draw entities that share by weight, and whose jobs share by weight or are served in order."""
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


def _divided(instance: HierarchicalFairness, plan: HierarchicalAllocation) -> bool:
    """Return whether each job has its part by weight, or in order, of what its entity has of each pool."""
    times = np.zeros((instance.num_jobs, len(instance.num_workers)))
    np.add.at(times.T, instance.pools, plan.time_fractions[: instance.num_jobs].T)
    held = instance.scale_factors[:, None] * times
    for entity, policy in enumerate(instance.entity_policies.tolist()):
        jobs = np.flatnonzero(instance.entities == entity)
        share = instance.num_workers * instance.entity_weights[entity] / instance.entity_weights.sum()
        for position, job in enumerate(jobs):
            part = share - held[jobs[:position]].sum(axis=0)
            if policy == "fairness":
                part = share * instance.weights[job] / instance.weights[jobs].sum()
            wanted = np.where(
                instance.pool_throughputs[job] > 0, np.maximum(part, 0.0) / instance.scale_factors[job], 0.0
            )
            wanted /= max(1.0, float(wanted.sum()))
            if not np.allclose(times[job], wanted, rtol=1e-6, atol=1e-9):
                return False
    return True


def geometric_binner(instance: HierarchicalFairness) -> HierarchicalAllocation:
    """Return the geometric binner's plan, its programs solved by HiGHS."""
    return fast.geometric_binner(instance, maximize)


ENTRY = Entry(
    title="How entities share a cluster, and their jobs what each gets, by water filling",
    source="Gavel, section 4.3",
    instance=HierarchicalFairness,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.entity_share,
            promises=(Relabelled(ties=False), Holds("each entity divides its share of every pool", _divided)),
        ),
        *of_all_policies(fast),
        Heuristic(fast.interior_point, promises=(NeverWorseThan("isolated"),)),
        Heuristic(fast.approximate_waterfiller, promises=(poured(1),)),
        Heuristic(fast.adaptive_waterfiller, promises=(poured(10),)),
        Heuristic(geometric_binner, imports=SOLVER, promises=(MOST_WORTH,)),
        *pops(),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, HierarchicalFairness.problem),
    symmetric=("k", "p", "q", "e"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), 0), Rescaling(("entity_weights",), -1)),
    strategy=strategy,
    wide=WIDE,
)
