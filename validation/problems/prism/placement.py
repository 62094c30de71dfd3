"""Entry of prism.placement: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from heuristics.prism import placement as fast
from instances.prism.placement import PrismPlacement, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, NeverWorseThan, Ratio, optimum
from validation.testing import st
from validation.testing.arrays import counts, integers, whole_floats

__all__ = ["ENTRY", "strategy"]

KNOWS_NO_MOVES = "it knows no limit of moves"


@st.composite
def strategy(
    draw: st.DrawFn, *, max_jobs: int = 5, max_gpus: int = 3, max_memory: int = 12, max_size: int = 5
) -> PrismPlacement:
    """Draw models and GPUs of a few sizes, some models placed; some instances have no plan."""
    n, m = draw(st.integers(1, max_jobs)), draw(counts(1, max_gpus))
    return PrismPlacement(
        memory=draw(whole_floats(m, max(1, max_memory // 2), max_memory)),
        sizes=draw(whole_floats(n, 0, max_size)),
        rates=draw(whole_floats(n, 0, 6)),
        slos=draw(whole_floats(n, 1, 4)),
        current=draw(integers(n, -1, m - 1)),
        move_limit=draw(st.sampled_from((math.inf, math.inf, 0.0, 2.0, 5.0))),
    )


def _unlimited(instance: PrismPlacement) -> bool:
    return math.isinf(instance.move_limit)


def _no_sizes(instance: PrismPlacement) -> bool:
    alike = len(np.unique(instance.memory)) == 1
    return _unlimited(instance) and alike and not instance.sizes.any()


def _one_gpu(instance: PrismPlacement) -> bool:
    return _unlimited(instance) and instance.num_gpus == 1


MOVES = BreaksOnly(("moves",))
OURS = tuple(
    NeverWorseThan(name) for name in ("least_pressure", "greatest_weight_first", "best_fit_level", "first_fit")
)

ENTRY = Entry(
    title="Which GPU serves each model, so that caches are least pressed",
    source="Prism, the placement of its Algorithm 1 as the released task states it",
    instance=PrismPlacement,
    generate=generate,
    size="num_jobs",
    sizes=(8, 20, 60),
    heuristics=named(
        Heuristic(fast.first_fit, declines=True, infeasible_because=KNOWS_NO_MOVES, promises=(MOVES,)),
        Heuristic(fast.least_pressure, declines=True, infeasible_because=KNOWS_NO_MOVES, promises=(MOVES,)),
        Heuristic(fast.least_pressure_unless_near, declines=True, infeasible_because=KNOWS_NO_MOVES, promises=(MOVES,)),
        Heuristic(
            fast.greatest_weight_first,
            declines=True,
            infeasible_because=KNOWS_NO_MOVES,
            promises=(
                MOVES,
                Ratio(4 / 3, _no_sizes, "with models of no size on GPUs of equal memory, moves not limited"),
            ),
        ),
        Heuristic(
            fast.best_fit_level,
            declines=True,
            promises=(optimum(_one_gpu, "with one GPU, moves not limited"),),
        ),
        Heuristic(fast.local_search, declines=True, promises=OURS),
    ),
    symmetric=("n", "m"),
    rescalings=(
        Rescaling(("rates",), 1),
        Rescaling(("slos",), -1),
        Rescaling(("memory", "sizes", "move_limit"), -1),
    ),
    enlarge=lambda instance: replace(instance, memory=np.append(instance.memory, instance.memory.max())),
    strategy=strategy,
    wide={"max_jobs": 8, "max_gpus": 32, "max_memory": 60, "max_size": 30},
)
