"""Entry of afs.two_job: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import numpy as np

from heuristics.afs import two_job as fast
from instances.afs.two_job import AfsTwoJob, AfsTwoJobPlan, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, NeverWorseThan, optimum
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_work: int = 60, max_throughput: int = 12) -> AfsTwoJob:
    """Draw two jobs, of which one or both may not run yet, and which the GPU may not help."""
    now = draw(whole_floats(2, 0, max_throughput))
    more = draw(whole_floats(2, 0, max_throughput))
    return AfsTwoJob(
        work=draw(whole_floats(2, 0, max_work)),
        throughputs=np.stack([now, np.maximum(now + more, 1)], axis=1),
        alone=draw(whole_floats(2, 0, 2 * max_throughput)),
    )


def _times(instance: AfsTwoJob) -> tuple[float, float]:
    """Return the time left of both jobs at their present shares, s."""
    first, second = (
        work / speed if speed else np.inf if work else 0.0
        for work, speed in zip(instance.work.tolist(), instance.throughputs[:, 0].tolist(), strict=True)
    )
    return first, second


def _apathetic(instance: AfsTwoJob) -> bool:
    return bool(instance == instance.apathetic())


def _by_formula_3(instance: AfsTwoJob, plan: AfsTwoJobPlan) -> bool:
    """Return whether the GPU goes as formula (3) says, where both jobs run and one is longer."""
    times = _times(instance)
    if times[0] == times[1] or not instance.throughputs.all():
        return True
    a = 0 if times[0] < times[1] else 1
    (now, then), (now_b, then_b) = instance.throughputs[[a, 1 - a]].tolist()
    return bool((plan.receiver != a) == ((then_b - now_b) / then_b > (then - now) / now))


def _to_the_shorter(instance: AfsTwoJob, plan: AfsTwoJobPlan) -> bool:
    times = _times(instance)
    return times[plan.receiver] <= times[1 - plan.receiver]


ENTRY = Entry(
    title="Which of two running jobs gets one more GPU",
    source="AFS, section 3.2, formulas (1) to (3)",
    instance=AfsTwoJob,
    generate=generate,
    size="max_share",
    sizes=(2, 8, 32),
    heuristics=named(
        Heuristic(
            fast.exact_rule,
            optimal=True,
            promises=(NeverWorseThan("pairwise_rule"), NeverWorseThan("shorter_first")),
        ),
        Heuristic(
            fast.pairwise_rule,
            promises=(
                optimum(_apathetic, "where the job that is left goes on as fast as AFS assumes"),
                Holds("the longer job gets the GPU where formula (3) is true", _by_formula_3),
            ),
        ),
        Heuristic(
            fast.shorter_first,
            promises=(Holds("the job that ends sooner at present gets the GPU", _to_the_shorter),),
        ),
    ),
    rescalings=(Rescaling(("work",), 1), Rescaling(("work", "throughputs", "alone"), 0)),
    strategy=strategy,
    wide={"max_work": 10**10, "max_throughput": 10**6},
)
