"""Entry of aryl.two_job: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heuristics.aryl import two_job as fast
from instances.aryl.two_job import ArylTwoJob, ArylTwoJobPlan, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, optimum
from validation.testing import st
from validation.testing.arrays import counts, integers, whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_gpus: int = 12, max_work: int = 60) -> ArylTwoJob:
    """Draw two jobs with any bounds that fit together, maxima beyond all GPUs among them."""
    num_gpus = draw(counts(2, max_gpus))
    first = draw(st.integers(1, num_gpus - 1))
    least = np.array([first, draw(st.integers(1, num_gpus - first))])
    # Maxima of any size, or up to what the other's minimum leaves.
    most = least + draw(integers(2, 0, num_gpus))
    most = draw(st.sampled_from((most, np.minimum(most, num_gpus - least[::-1]))))
    return ArylTwoJob(
        num_gpus=num_gpus,
        workloads=draw(whole_floats(2, 1, max_work)),
        min_gpus=least,
        max_gpus=most,
    )


def _both_can_have_their_maximum(instance: ArylTwoJob) -> bool:
    """Return whether either job may have its maximum, or all GPUs, beside the other's minimum."""
    least, most = instance.min_gpus, instance.max_gpus
    return bool((most + least[::-1] <= instance.num_gpus).all())


def _most_to_the_favoured(instance: ArylTwoJob, plan: ArylTwoJobPlan) -> bool:
    """Return whether the job of the smaller maximum, or of the smaller workload, has all that the other's bounds leave.

    The smaller maximum counts where it is at most half of all GPUs.
    """
    most = np.minimum(instance.max_gpus, instance.num_gpus).tolist()
    by = most if 2 * min(most) <= instance.num_gpus else instance.workloads.tolist()
    favoured = by.index(min(by))
    has = min(most[favoured], instance.used_gpus - int(instance.min_gpus[1 - favoured]))
    return bool(plan.gpus[favoured] == has and plan.gpus.sum() == instance.used_gpus)


ENTRY = Entry(
    title="How two elastic jobs share GPUs until the first completes",
    source="Aryl, section 5.1 and Appendix C",
    instance=ArylTwoJob,
    generate=generate,
    size="num_gpus",
    sizes=(8, 64, 512),
    heuristics=named(
        Heuristic(
            fast.closed_form,
            promises=(
                optimum(_both_can_have_their_maximum, "where either job's maximum leaves the other its minimum"),
                Holds("the job that the appendix favours has all that it can", _most_to_the_favoured),
            ),
        ),
        Heuristic(fast.best_breakpoint, optimal=True),
    ),
    rescalings=(Rescaling(("workloads",), 1),),
    enlarge=lambda instance: replace(instance, num_gpus=instance.num_gpus + 1),
    strategy=strategy,
    wide={"max_gpus": 512, "max_work": 10**10},
)
