"""afs.two_job: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from heuristics.afs import two_job as fast
from instances.afs.two_job import AfsTwoJob, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.testing.arrays import whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_work: int = 60, max_throughput: int = 12) -> AfsTwoJob:
    """Two jobs, of which one or both may not run yet, and which the GPU may not help."""
    now = draw(whole_floats(2, 0, max_throughput))
    more = draw(whole_floats(2, 0, max_throughput))
    return AfsTwoJob(
        work=draw(whole_floats(2, 0, max_work)),
        throughputs=np.stack([now, np.maximum(now + more, 1)], axis=1),
        alone=draw(whole_floats(2, 0, 2 * max_throughput)),
    )


ENTRY = Entry(
    title="Which of two running jobs gets one more GPU",
    source="AFS, section 3.2, formulas (1) to (3)",
    instance=AfsTwoJob,
    generate=generate,
    size="max_share",
    sizes=(2, 8, 32),
    heuristics=named(
        Heuristic(fast.exact_rule, optimal=True),
        fast.pairwise_rule,
        fast.shorter_first,
    ),
    rescalings=(Rescaling(("work",), 1), Rescaling(("work", "throughputs", "alone"), 0)),
    strategy=strategy,
)
