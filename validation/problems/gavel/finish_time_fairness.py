"""Entry of gavel.finish_time_fairness: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from heuristics.gavel import finish_time_fairness as fast
from instances.gavel import traces
from instances.gavel.finish_time_fairness import FinishTimeFairness, from_trace, generate
from instances.gavel.sharing import Allocation
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, NeverWorseThan, Relabelled
from validation.problems.gavel.sharing import WIDE, cluster, in_mix, of_all_policies
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> FinishTimeFairness:
    """Draw clusters for finish-time fairness, with jobs new or in the middle of their lives."""
    drawn = draw(cluster() if fields is None else fields)
    n = len(drawn["throughputs"])
    return FinishTimeFairness(
        **drawn,
        steps=draw(whole_floats(n, 0, 60)),
        elapsed=draw(whole_floats(n, 0, 60)),
        isolated_elapsed=draw(whole_floats(n, 0, 60)),
    )


def _equal_ratios(instance: FinishTimeFairness, plan: Allocation) -> bool:
    """Return whether all jobs that are weighed end equally late."""
    ratios = instance.finish_time_ratios(plan)[instance.weighed]
    return bool(np.allclose(ratios, ratios.max(initial=0), rtol=1e-6))


SAME_RATIO = (
    in_mix("jobs run as long as fits", lambda instance, plan, mix: plan.time_fractions[: len(mix)].sum(axis=1)),
    Holds("all jobs end equally late, relative to isolation", _equal_ratios),
)


ENTRY = Entry(
    title="Time on worker types, so that no job finishes much later than in isolation",
    source="Gavel, section 4.2, after Themis",
    instance=FinishTimeFairness,
    generate=generate,
    size="num_jobs",
    sizes=(8, 32, 128),
    heuristics=named(
        Heuristic(
            fast.same_ratio,
            promises=(*SAME_RATIO, Relabelled(ties=False), NeverWorseThan("isolated"), NeverWorseThan("equal_share")),
        ),
        *of_all_policies(fast),
        Heuristic(fast.interior_point, promises=(NeverWorseThan("same_ratio"),)),
    ),
    from_trace=from_trace,
    snapshot=partial(traces.from_trace, FinishTimeFairness.problem),
    symmetric=("n", "k", "p", "q"),
    rescalings=(
        Rescaling(("throughputs", "pair_throughputs", "steps"), 0),
        Rescaling(("steps", "elapsed", "isolated_elapsed"), 0),
    ),
    strategy=strategy,
    wide=WIDE,
)
