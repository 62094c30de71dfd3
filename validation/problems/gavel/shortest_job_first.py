"""Entry of gavel.shortest_job_first: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from heuristics.gavel import shortest_job_first as fast
from instances.gavel import traces
from instances.gavel.shortest_job_first import ShortestJobFirst, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Relabelled, optimum
from validation.problems.gavel.sharing import WIDE, alone, cluster, of_all_policies, one_by_one
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> ShortestJobFirst:
    """Draw clusters for shortest job first, jobs with up to 60 steps left."""
    drawn = draw(cluster() if fields is None else fields)
    return ShortestJobFirst(**drawn, steps=draw(whole_floats(len(drawn["throughputs"]), 0, 60)))


def _shortest(instance: ShortestJobFirst) -> list[int]:
    """Return the jobs that are not done, by their time left where they are fastest."""

    def time(job: int) -> float:
        fastest = float(instance.fastest_throughputs[job])
        return float(instance.steps[job]) / fastest if fastest else math.inf

    return sorted(np.flatnonzero(instance.active).tolist(), key=time)


ENTRY = Entry(
    title="Time on worker types, so that one job finishes as soon as possible",
    source="Gavel, section 4.2",
    instance=ShortestJobFirst,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.shortest_first,
            promises=(Relabelled(ties=False), optimum(alone, "without pairs"), one_by_one(_shortest, blocking=False)),
        ),
        Heuristic(fast.shortest_first_in_pairs, optimal=True),
        *of_all_policies(fast),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, ShortestJobFirst.problem),
    symmetric=("n", "k", "p", "q"),
    rescalings=(Rescaling(("throughputs", "pair_throughputs"), -1), Rescaling(("steps",), 1)),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    strategy=strategy,
    wide=WIDE,
)
