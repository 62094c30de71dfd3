"""Entry of eplb.placement: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

from heuristics.eplb import placement as fast
from instances.eplb.placement import EplbPlacement, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, NeverWorseThan, optimum
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, max_experts: int = 4, max_gpus: int = 3, max_slots: int = 3, max_load: int = 12
) -> EplbPlacement:
    """Draw experts of any loads, and GPUs with as many slots as they need, or more."""
    e, g = draw(st.integers(1, max_experts)), draw(st.integers(1, max_gpus))
    least = -(-e // g)
    most = max(least, min(max_slots, e))
    return EplbPlacement(
        loads=draw(whole_floats(e, 0, max_load)),
        num_gpus=g,
        slots=draw(st.integers(least, most)),
        one_per_gpu=draw(st.booleans()),
    )


def _one_gpu(instance: EplbPlacement) -> bool:
    return instance.num_gpus == 1


ONE_GPU = optimum(_one_gpu, "with one GPU")


ENTRY = Entry(
    title="Which experts have how many replicas, and on which GPUs",
    source="EPLB, its global policy",
    instance=EplbPlacement,
    generate=generate,
    size="num_experts",
    sizes=(8, 12, 32),
    heuristics=named(
        Heuristic(
            fast.released_global,
            infeasible_because="as released, it may put several replicas of an expert on one GPU",
            promises=(BreaksOnly(("one_per_gpu",)), ONE_GPU),
        ),
        Heuristic(fast.distinct_longest_first, promises=(ONE_GPU,)),
        Heuristic(
            fast.fewest_extra,
            promises=(NeverWorseThan("released_global"), NeverWorseThan("distinct_longest_first"), ONE_GPU),
        ),
        Heuristic(fast.local_search, promises=(NeverWorseThan("fewest_extra"), ONE_GPU)),
    ),
    symmetric=("e",),
    rescalings=(Rescaling(("loads",), 1),),
    enlarge=lambda instance: replace(instance, num_gpus=instance.num_gpus + 1),
    strategy=strategy,
    wide={"max_experts": 32, "max_gpus": 32, "max_slots": 5, "max_load": 10_000},
)
