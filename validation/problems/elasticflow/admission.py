"""elasticflow.admission: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from heuristics.elasticflow import admission as fast
from instances.elasticflow.admission import Admission, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.problems.elasticflow.sharing import deadline_jobs, one_more_gpu

__all__ = ["ENTRY", "strategy"]

TAKES_CURVES_FOR_LINEAR = "Theorem 1 takes every curve for linear, so jobs can fall short of their iterations"


@st.composite
def strategy(draw: st.DrawFn, /, **sizes: int) -> Admission:
    """Jobs in any order of arrival."""
    fields = draw(deadline_jobs(**sizes))
    order = draw(st.permutations(range(len(fields["iterations"]))))
    return Admission(**fields, arrival_order=np.array(order))


ENTRY = Entry(
    title="Which jobs are promised their deadlines, as many as possible",
    source="ElasticFlow, section 4.1, Theorem 1 and Algorithm 1",
    instance=Admission,
    generate=generate,
    size="num_jobs",
    sizes=(5, 10, 15),
    heuristics=named(
        fast.progressive_filling,
        Heuristic(fast.edf_condition, infeasible_because=TAKES_CURVES_FOR_LINEAR),
        fast.edf,
        fast.edf_with_admission,
        fast.edf_with_elastic_scaling,
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("iterations", "throughputs"), 0),),
    enlarge=one_more_gpu,
    strategy=strategy,
)
