"""Claims of the placement task of Prism, as ADRS and SkyDiscover ask it (``benchmarks/ADRS/prism``).

What is tried is its program and its evaluator, not the paper.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from heuristics.prism.placement import least_pressure
from instances.prism.placement import PUBLIC_MEMORY, PrismPlacement, PrismPlacementPlan, public_instances
from instances.schema import IntArray
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, better_than, plans_of
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]

CLEAR = 1e-9
"""What one value is better by, as a part of it, where it is said to be better."""

PROGRAM = "Prism, the released task, initial_program.py"
EVALUATOR = "Prism, the released task, evaluator.py"
PUBLIC = "the 50 instances of the released evaluator, those of few models first"


def _public() -> list[PrismPlacement]:
    return sorted(public_instances(), key=lambda instance: instance.num_jobs)


def _small(most: int, memory: int) -> Iterator[PrismPlacement]:
    """Yield up to so many models on two GPUs: sizes and rates that are whole, the greatest rates first."""
    kinds = [(rate, size) for rate in (3, 2, 1) for size in range(1, memory)]
    for count in range(1, most + 1):
        for models in itertools.combinations_with_replacement(kinds, count):
            rates, sizes = np.array(models, float).T
            yield PrismPlacement(memory=np.full(2, float(memory)), sizes=sizes, rates=rates, slos=np.ones(count))


def _is_public(instance: PrismPlacement) -> bool:
    """Return whether models are two for each GPU of 80 GB, of the released ranges."""
    ranged = (instance.sizes >= 10) & (instance.sizes < 30) & (instance.rates < 10) & (instance.slos >= 5)
    alike = bool((instance.memory == PUBLIC_MEMORY).all())
    return alike and bool(ranged.all()) and instance.num_jobs == 2 * instance.num_gpus


def _is_small(instance: PrismPlacement) -> bool:
    """Return whether there are two GPUs that are alike, and models of whole sizes, with objectives of a second."""
    whole = not (instance.sizes % 1).any() and bool((instance.slos == 1).all())
    return instance.num_gpus == 2 and instance.memory[0] == instance.memory[1] and whole


def _released(instance: PrismPlacement) -> IntArray | None:
    """(n,) int: GPUs by the released program, which fills them to the brim; None where it raises its error."""
    free, weight = instance.memory.copy(), np.zeros(instance.num_gpus)
    gpus = np.full(instance.num_jobs, -1)
    for job in np.argsort(-instance.weights, kind="stable").tolist():
        room = (instance.sizes[job] <= free) & (free > 0)
        if not room.any():
            return None
        gpu = int(np.divide(weight, free, out=np.full(len(free), np.inf), where=room).argmin())
        gpus[job], free[gpu], weight[gpu] = gpu, free[gpu] - instance.sizes[job], weight[gpu] + instance.weights[job]
    return gpus


def _not_least(instance: PrismPlacement, *, times: float = 1.0) -> str | None:
    """Describe how the program's placement is worth more than so many times the least."""
    gpus = _released(instance)
    if gpus is None or ((plan := PrismPlacementPlan(gpus=gpus)) and instance.violations(plan)):
        return None
    value = instance.objective(plan)
    best = better_than(instance, value * (1 - CLEAR) / times)
    return None if best is None else f"the program places for {value:.6g}, and {best:.6g} can be had"


def _is_least(instance: PrismPlacement) -> str | None:
    """Describe how the program's placement is the best one."""
    if _not_least(instance) is not None:
        return None
    plan = least_pressure(instance)
    return None if plan is None else f"the program places for {instance.objective(plan):.6g}, the least"


def _fails_beside_a_placement(instance: PrismPlacement) -> str | None:
    """Describe how the program raises its error where there is a placement."""
    if _released(instance) is not None or (best := optimum(instance)) is None:
        return None
    return f"the program finds no GPU for a model, and there is a placement for {float(best):.6g}"


def _gpus_that_are_not_there(instance: PrismPlacement) -> str | None:
    """Describe how a GPU for each model is worth less than the best placement, as the evaluator counts it."""
    counted = float((instance.weights / (PUBLIC_MEMORY - instance.sizes)).max())
    best = better_than(instance, np.inf)
    if best is None or counted >= best * (1 - CLEAR):
        return None
    return (
        f"{instance.num_jobs} models, each on a GPU of its own, count for {counted:.6g}, and placements on "
        f"{instance.num_gpus} GPUs have {best:.6g} at least"
    )


@cache
def _optima() -> tuple[float, ...]:
    """Return the least pressures of all released instances."""
    return tuple(float(optimum(instance) or 0) for instance in public_instances())


def _pays_to_be_left_out(instance: PrismPlacement) -> str | None:
    """Describe how the score of best placements rises where this instance is not answered."""
    every, own = _optima(), float(optimum(instance) or 0)
    score = len(every) / sum(every) + 1
    rest = (len(every) - 1) / (sum(every) - own) + (len(every) - 1) / len(every)
    if rest <= score * (1 + CLEAR):
        return None
    return f"best placements of all score {score:.4f}, and without this one, of {own:.6g}, {rest:.4f}"


_claim: Any = partial(
    Claim,
    exhaustive=True,
    assumes=_is_public,
    assumptions="the task's models: sizes of 10 to 29 GB, rates of 1 to 9/s and objectives of 5 to 9 s, two models for "
    "each GPU of 80 GB.",
    relaxed="",
    instances=lambda rng: _public(),
    scope=PUBLIC,
)

SMALL: dict[str, Any] = {
    "instances": lambda rng: _small(3, 5),
    "assumes": _is_small,
    "scope": "up to 3 models of whole sizes, and weights of 1 to 3, on two GPUs of 5 GB",
    "relaxed": "Two GPUs of 5 GB, and up to three models of 1 to 4 GB.",
}
"""What readings of small instances have alike."""

CLAIMS: list[Claim] = [
    _claim(
        name="prism_program_places_best",
        source=PROGRAM,
        statement="The program's placement has the least of the greatest KV pressures.",
        by="the library: the program is said to minimise it",
        reading="on the released instances.",
        breaks=_not_least,
        plans=plans_of("least_pressure", OPTIMAL),
        others=(
            Reading(
                "on small ones, where it finds a placement that leaves something on each GPU.",
                _not_least,
                **SMALL,
            ),
            Reading(
                "on the released instances, but for half as much again.",
                partial(_not_least, times=1.5),
            ),
        ),
    ),
    _claim(
        name="prism_program_never_best",
        source=PROGRAM,
        statement="On none of the released instances does the program place the models best.",
        by="the library",
        reading="some other placement has a lower greatest pressure.",
        breaks=_is_least,
    ),
    _claim(
        name="prism_failure_means_no_placement",
        source=PROGRAM,
        statement="Where the program finds no GPU for a model, there is no placement.",
        by="the library: the program raises an error then",
        reading="on the released instances.",
        breaks=_fails_beside_a_placement,
        plans=plans_of(OPTIMAL),
        others=(
            Reading(
                "on small ones.",
                _fails_beside_a_placement,
                **SMALL,
            ),
        ),
    ),
    _claim(
        name="prism_evaluator_counts_gpus",
        source=EVALUATOR,
        statement="No answer that the evaluator takes counts for less than the best placement.",
        by="the library: the evaluator checks sizes, and that each model is placed once",
        reading="where a program answers with names of GPUs that are not there, one for each model.",
        breaks=_gpus_that_are_not_there,
        plans=plans_of(OPTIMAL),
    ),
    _claim(
        name="prism_answers_raise_the_score",
        source=EVALUATOR,
        statement="To answer one instance more never lowers the score.",
        by="the library: the score is one over the mean of what was answered, and the part that was",
        reading="with best placements of all others, and of this one.",
        breaks=_pays_to_be_left_out,
        plans=plans_of(OPTIMAL),
    ),
]
