"""Claims of Aryl (EuroSys'23 as Lyra) about placing workers (section 5.3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from heuristics.aryl.placement import best_fit_decreasing
from instances.aryl.placement import ArylPlacement
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, plans_of
from validation.testing.second_opinion import optimum
from validation.testing.transform import take

__all__ = ["CLAIMS"]


def _placements(
    workers: tuple[int, ...], gpus: tuple[int, ...], server_gpus: int, groups: tuple[str, ...] = ("training",)
) -> Iterator[ArylPlacement]:
    """Yield workers of the sizes ``gpus`` on equal servers, in each group as many as there are workers."""
    kinds = list(itertools.product(gpus, [group == "inference" for group in groups]))
    for number in workers:
        for chosen in itertools.combinations_with_replacement(kinds, number):
            sizes = sorted(set(chosen))
            yield ArylPlacement(
                gpus_per_worker=np.array([size for size, _ in sizes]),
                num_workers=np.array([chosen.count(kind) for kind in sizes]),
                elastic=np.array([elastic for _, elastic in sizes]),
                server_gpus=np.full(number * len(groups), server_gpus),
                server_groups=np.repeat(groups, number),
            )


def _fewest(instance: ArylPlacement) -> float:
    """Return the fewest servers that hold all workers; beside them the objective has less than one."""
    best = optimum(instance)
    return math.inf if best is None else math.floor(best)


def _opens_more(instance: ArylPlacement) -> str | None:
    """Describe how best fit decreasing opens more servers than are needed."""
    opened = instance.servers_opened(best_fit_decreasing(instance))
    return f"it opens {opened} servers, {opened - 1} would do" if opened > _fewest(instance) else None


def _opens_more_in_a_group(instance: ArylPlacement) -> str | None:
    """Describe how best fit decreasing opens more servers of a group than the workers that prefer it need."""
    plan = best_fit_decreasing(instance)
    for on_loan, name in ((False, "training"), (True, "inference")):
        mine, there = (np.flatnonzero(each == on_loan) for each in (instance.on_loan, instance.prefers_loan))
        opened = int((plan.workers[:, mine] > 0).any(axis=0).sum())
        if opened > _fewest(take(take(instance, "s", mine), "n", there)):
            return f"it opens {opened} {name} servers, {opened - 1} would do"
    return None


def _servers_of_8(instance: ArylPlacement) -> bool:
    """Return whether servers have 8 GPUs, workers 1, 2, 4 or 8, and each group has a server for every worker."""
    return set(instance.gpus_per_worker.tolist()) <= {1, 2, 4, 8} and _on_servers_of_8(instance)


def _on_servers_of_8(instance: ArylPlacement) -> bool:
    """Return whether servers have 8 GPUs, no worker needs more, and each group has a server for every worker."""
    groups = instance.server_groups.tolist()
    enough = all(groups.count(group) >= instance.num_workers.sum() for group in set(groups))
    return bool((instance.server_gpus == 8).all() and (instance.gpus_per_worker <= 8).all()) and enough


_claim = partial(Claim, exhaustive=True, relaxed="", assumes=_servers_of_8, ties="do not matter")

CLAIMS: list[Claim] = [
    _claim(
        name="placement_fewest_servers",
        source="Aryl, sections 1 and 5.3",
        statement="Best fit decreasing places workers so that little is left in fragments.",
        reading="in one group of servers of 8 GPUs it opens the fewest for workers of 1, 2, 4 and 8.",
        instances=lambda rng: _placements(tuple(range(1, 13)), (1, 2, 4, 8), 8),
        breaks=_opens_more,
        scope="up to 12 workers of 1, 2, 4 or 8 GPUs on servers of 8",
        assumptions="servers of 8 GPUs, as in section 7.1. The paper names no sizes of workers. Fewest servers is this "
        "library's measure of fragments; the paper has best fit decreasing for a heuristic.",
        plans=plans_of("best_fit_decreasing", OPTIMAL),
        others=(
            Reading(
                "in one group of servers of 8 GPUs it opens the fewest, whatever GPUs workers need.",
                breaks=_opens_more,
                instances=lambda rng: _placements(tuple(range(1, 7)), tuple(range(1, 9)), 8),
                scope="up to 6 workers of 1 to 8 GPUs on servers of 8",
                assumes=_on_servers_of_8,
            ),
        ),
    ),
    _claim(
        name="placement_two_groups",
        source="Aryl, section 5.3",
        statement="Best fit decreasing places workers so that little is left in fragments, while elastic jobs prefer "
        "the servers on loan.",
        reading="of each group it opens the fewest servers that hold the workers that prefer it.",
        instances=lambda rng: _placements(tuple(range(1, 7)), (1, 2, 4, 8), 8, ("training", "inference")),
        breaks=_opens_more_in_a_group,
        scope="up to 6 workers of 1, 2, 4 or 8 GPUs, elastic or not, on servers of 8 in two groups",
        assumptions="servers of 8 GPUs and room for all in their group. The paper does not say which of its two aims "
        "comes first.",
        plans=plans_of("best_fit_decreasing", OPTIMAL),
        others=(Reading("of both groups together it opens the fewest, wherever workers are.", _opens_more),),
    ),
]
