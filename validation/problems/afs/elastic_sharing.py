"""afs.elastic_sharing: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from heuristics.afs import elastic_sharing as fast
from instances.afs.elastic_sharing import ElasticSharing, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 3, max_gpus: int = 4, max_work: int = 12) -> ElasticSharing:
    """Jobs that are all there at once, with any curves: concave, rigid, flat, or bent upwards."""
    n = draw(st.integers(1, max_jobs))
    num_gpus = draw(st.integers(1, max_gpus))
    steps = draw(integers((n, num_gpus), 0, 4))
    if draw(st.booleans()):
        steps = np.sort(steps, axis=1)[:, ::-1]
    table = np.concatenate([np.zeros((n, 1)), np.cumsum(steps, axis=1)], axis=1)
    # A job that nothing makes run gets one iteration/s on all GPUs.
    table[:, -1] = np.maximum(table[:, -1], 1)
    return ElasticSharing(
        num_gpus=num_gpus,
        work=draw(whole_floats(n, 0, max_work)),
        throughputs=table,
        reallocation=draw(st.sampled_from(("at_completions", "any_time"))),
        requests=draw(integers(n, 0, num_gpus)),
        quantum=float(draw(st.integers(1, max_work))),
    )


ENTRY = Entry(
    title="Who gets the next GPU, so that elastic jobs complete soonest on average",
    source="AFS, sections 2.1 and 3.1",
    instance=ElasticSharing,
    generate=generate,
    size="num_jobs",
    sizes=(2, 3, 4),
    heuristics=named(
        fast.afs_l,
        fast.afs_p,
        fast.afs_s,
        fast.afs_p_measuring,
        Heuristic(fast.two_job_rule, declines=True),
        Heuristic(fast.srtf, declines=True),
        Heuristic(fast.srsf, declines=True),
        fast.srtf_maximum,
        fast.srsf_maximum,
        Heuristic(fast.srtf_elastic, declines=True),
        Heuristic(fast.srsf_elastic, declines=True),
        fast.srtf_filling,
        fast.srsf_filling,
        Heuristic(fast.tiresias_l, declines=True),
        fast.max_min,
        fast.optimus,
        fast.aryl_two_phase,
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("work", "arrivals", "quantum"), 1), Rescaling(("work", "throughputs"), 0)),
    enlarge=lambda instance: replace(
        instance,
        num_gpus=instance.num_gpus + 1,
        throughputs=[[*curve, curve[-1]] for curve in instance.throughputs.tolist()],
    ),
    strategy=strategy,
)
