"""Entry of eplb.placement: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace

import numpy as np

from heuristics.eplb import placement as fast
from instances.base import InstanceError
from instances.eplb.placement import EplbPlacement, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, NeverWorseThan, Ratio, optimum
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(
    draw: st.DrawFn, *, max_experts: int = 4, max_gpus: int = 3, max_slots: int = 3, max_load: int = 12
) -> EplbPlacement:
    """Draw experts of any loads, and GPUs with as many slots as they need, or more; a third is no plain instance."""
    e, g = draw(st.integers(1, max_experts)), draw(st.integers(1, max_gpus))
    least = -(-e // g)
    most = max(least, min(max_slots, e))
    plain = EplbPlacement(
        loads=draw(whole_floats(e, 0, max_load)),
        num_gpus=g,
        slots=draw(st.integers(least, most)),
        one_per_gpu=draw(st.booleans()),
    )
    return draw(_variant(plain, max_load)) if draw(st.integers(0, 2)) == 0 else plain


@st.composite
def _variant(draw: st.DrawFn, plain: EplbPlacement, max_load: int) -> EplbPlacement:
    """Draw groups on nodes, further loads, and what is held and what may move, where there is a plan."""
    e, g = plain.num_experts, plain.num_gpus
    nodes = draw(st.sampled_from([nodes for nodes in range(g, 0, -1) if g % nodes == 0 and nodes <= e]))
    size = draw(st.sampled_from([size for size in range(1, e // nodes + 1) if e % size == 0]))
    groups = np.array(draw(st.permutations(range(e)))) // size
    found = plain
    if draw(st.booleans()):
        rows = [draw(whole_floats(e, 0, max_load)) for _ in range(draw(st.integers(1, 2)))]
        found = replace(found, more_loads=np.array(rows), aggregate=draw(st.sampled_from(("worst", "mean"))))
    # Not all groups fit onto the nodes.
    with contextlib.suppress(InstanceError):
        found = replace(found, num_nodes=nodes, groups=groups)
    if draw(st.booleans()):
        held = fast.distinct_longest_first(replace(found, loads=draw(whole_floats(e, 0, max_load))))
        limit, price = draw(st.sampled_from((math.inf, 0.0, 1.0, 2.0, 3.0))), draw(st.sampled_from((0.0, 1.0, 2.0)))
        found = replace(found, current=held.replicas, move_limit=limit, move_price=price)
    return found


def _one_gpu(instance: EplbPlacement) -> bool:
    return instance.num_gpus == 1 and instance.is_plain


ONE_GPU = optimum(_one_gpu, "with one GPU, of a plain instance")
ONE_SLOT = optimum(lambda instance: instance.slots == 1 and instance.is_plain, "with one slot, of a plain instance")
TWO_SLOTS = Ratio(
    2.0,
    lambda instance: instance.slots == 2 and instance.is_plain and not instance.one_per_gpu,
    "with two slots, of a plain instance on whose GPUs an expert may be twice",
)


def _divides(instance: EplbPlacement) -> bool:
    return instance.num_groups % instance.num_nodes == 0


def _larger(instance: EplbPlacement) -> EplbPlacement:
    """Return it with a GPU more, or where GPUs are not alike with one slot that all may move at no price."""
    if instance.num_nodes == 1 and not instance.counts_moves:
        return replace(instance, num_gpus=instance.num_gpus + 1, current=instance.current[:, :0])
    return replace(instance, move_limit=math.inf, move_price=0.0)


ENTRY = Entry(
    title="Which experts have how many replicas, and on which GPUs",
    source="EPLB, its two policies",
    instance=EplbPlacement,
    generate=generate,
    size="num_experts",
    sizes=(8, 12, 32),
    heuristics=named(
        Heuristic(
            fast.released_global,
            infeasible_because="as released, it knows neither nodes nor moves, and may put an expert on a GPU twice",
            promises=(BreaksOnly(("one_per_gpu", "one_node", "moves")), ONE_GPU, ONE_SLOT, TWO_SLOTS),
        ),
        Heuristic(
            fast.released_hierarchical,
            infeasible_because="as released, it may put an expert on a GPU twice, and knows no moves",
            promises=(
                BreaksOnly(("one_per_gpu", "moves"), _divides, "where the nodes divide the groups"),
                BreaksOnly(("one_per_gpu", "one_node", "moves")),
                ONE_GPU,
            ),
        ),
        Heuristic(
            fast.distinct_longest_first,
            infeasible_because="it knows no limit of moves",
            promises=(BreaksOnly(("moves",)), ONE_GPU),
        ),
        Heuristic(
            fast.keep_and_exchange,
            infeasible_because="it knows no limit of moves",
            promises=(BreaksOnly(("moves",)), ONE_GPU),
        ),
        Heuristic(
            fast.lowest_peaks,
            infeasible_because="it knows no limit of moves",
            promises=(BreaksOnly(("moves",)), ONE_GPU),
        ),
        Heuristic(
            fast.fewest_extra,
            promises=(
                NeverWorseThan("released_global"),
                NeverWorseThan("released_hierarchical"),
                NeverWorseThan("distinct_longest_first"),
                ONE_GPU,
            ),
        ),
        Heuristic(fast.local_search, promises=(NeverWorseThan("fewest_extra"), ONE_GPU)),
    ),
    symmetric=("e",),
    rescalings=(Rescaling(("loads", "more_loads", "move_price"), 1),),
    enlarge=_larger,
    strategy=strategy,
    wide={"max_experts": 32, "max_gpus": 32, "max_slots": 5, "max_load": 10_000},
)
