"""Claims of Sia (SOSP'23) about its configurations (section 3.2)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import formulations
from heuristics.afs.gpu_placement import first_fit_decreasing
from instances.afs.gpu_placement import GpuPlacement
from instances.schema import BoolArray
from instances.sia.configurations import sizes_within
from instances.sia.goodput import SERVER_GPUS, Goodput, generate
from validation.claims.afs.gpu_placement import new_jobs
from validation.claims.claim import Claim, Reading
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]

LITTLE = 0.05
"""What the restriction to powers of two may cost of a round's value."""
DRAWN = 60
"""Rounds that are tried."""


def _cannot_be_placed(instance: GpuPlacement) -> str | None:
    """Describe how no placement has all jobs on the fewest nodes, and no node with two that span some."""
    plan = first_fit_decreasing(instance)
    if plan is not None and not instance.violations(plan):
        return None
    return "there is no placement" if optimum(instance) is None else None


def _after_departures() -> Iterator[GpuPlacement]:
    """Yield jobs that stay on up to 3 nodes of 1, 2 or 4 GPUs, each on one node, and jobs that come to what is free."""
    for nodes, gpus in itertools.product(range(1, 4), (1, 2, 4)):
        sizes = sizes_within(gpus, nodes)
        single = [size for size in sizes if size <= gpus]
        on_node = list(_multisets(single, gpus, gpus))
        for held in itertools.combinations_with_replacement(on_node, nodes):
            free = nodes * gpus - sum(map(sum, held))
            for new in _multisets(sizes, nodes * gpus, free):
                if new and any(held):
                    stay = [(size, node) for node, of in enumerate(held) for size in of]
                    previous = np.zeros((len(stay) + len(new), nodes), np.int64)
                    for job, (size, node) in enumerate(stay):
                        previous[job, node] = size
                    yield GpuPlacement(
                        regulated=np.array([size for size, _ in stay] + list(new)),
                        num_machines=nodes,
                        gpus_per_machine=gpus,
                        previous=previous,
                    )


def _multisets(sizes: list[int], most: int, total: int) -> Iterator[tuple[int, ...]]:
    """Yield sizes of jobs, none above ``most``, that add up to no more than ``total``, the greatest first."""
    yield ()
    for size in sizes:
        if size <= min(most, total):
            for rest in _multisets(sizes, size, total - size):
                yield (size, *rest)


def _some_must_move(instance: GpuPlacement) -> str | None:
    """Describe how no placement leaves all jobs that run where they are."""
    running = int((instance.previous.sum(axis=1) > 0).sum())
    best = optimum(instance)
    # Jobs that keep a GPU count one each, and a job on one node that keeps one keeps all.
    stay = 0 if best is None else int(best)
    return None if stay >= running else f"of {running} jobs that run at most {stay} can stay where they are"


def _fit(instance: GpuPlacement) -> bool:
    """Return whether jobs want no more GPUs than there are."""
    return int(instance.regulated.sum()) <= instance.num_machines * instance.gpus_per_machine


def _drawn(rng: np.random.Generator) -> Iterator[Goodput]:
    """Yield jobs with all numbers of GPUs, on types that have few or many for each."""
    for _ in range(DRAWN):
        yield generate(
            rng,
            num_jobs=int(rng.integers(4, 13)),
            num_types=int(rng.integers(1, 4)),
            gpus_per_job=float(rng.choice((0.5, 1.0, 2.0, 4.0))),
            configurations="all",
        )


def _in_paper(instance: Goodput) -> BoolArray:
    """(k,) bool: whether a configuration is one of the paper's, on servers as :func:`generate` has them."""
    server = np.array(SERVER_GPUS)[np.arange(instance.num_types) % len(SERVER_GPUS)]
    sizes = [
        sizes_within(int(size), int(gpus) // int(size)) for size, gpus in zip(server, instance.num_gpus, strict=True)
    ]
    pairs = zip(instance.config_types.tolist(), instance.config_gpus.tolist(), strict=True)
    return np.array([gpus in sizes[kind] for kind, gpus in pairs])


def _whole_servers(instance: Goodput) -> bool:
    """Return whether types have whole servers of a power of two of GPUs, and jobs the paper's p and penalty."""
    server = np.array(SERVER_GPUS)[np.arange(instance.num_types) % len(SERVER_GPUS)]
    return not (instance.num_gpus % server).any() and (instance.power, instance.queue_penalty) == (-0.5, 1.1)


def _costs_more(instance: Goodput) -> str | None:
    """Describe how the optimum is worse by more than a part of it where jobs have the paper's configurations alone."""
    restricted = replace(instance, goodputs=np.where(_in_paper(instance), instance.goodputs, 0.0))
    best, paper = formulations.solve(instance), formulations.solve(restricted)
    assert best.status == paper.status == "optimal"
    assert best.objective is not None
    assert paper.objective is not None
    cost = paper.objective / best.objective - 1
    if cost <= LITTLE:
        return None
    return f"{paper.objective:.6g} with powers of two, {best.objective:.6g} with all: {cost:.2%} more"


CLAIMS: list[Claim] = [
    Claim(
        name="configurations_can_be_placed",
        source="Sia, section 3.2",
        statement="All choices of configurations within the GPUs of the types can be placed, so that no two jobs "
        "that span nodes share one.",
        reading="jobs may be moved for it, as the rules for placements in section 3.1 have it: those of less than a "
        "node are on one node, others on whole nodes. Types do not compete for nodes, so one is enough.",
        instances=lambda rng: new_jobs(),
        breaks=_cannot_be_placed,
        scope="all sets of powers of two below a node and of whole nodes, on up to 4 nodes of 1, 2, 4 or 8 GPUs",
        exhaustive=True,
        assumes=_fit,
        assumptions="nodes of a type have the same power of two of GPUs, and jobs configurations of section 3.2.",
        relaxed="",
        others=(
            Reading(
                "where jobs have left, those that run stay where they are.",
                _some_must_move,
                assumes=_fit,
                instances=lambda rng: _after_departures(),
                scope="jobs that stay, each on one node, and others that come to what is free, on up to 3 nodes of 1, "
                "2 or 4 GPUs",
            ),
        ),
    ),
    Claim(
        name="powers_of_two_cost_little",
        source="Sia, section 3.2",
        statement="The restriction to powers of two within a node and to whole nodes does not cost much.",
        reading=f"in a round: the best value with these configurations is at most {LITTLE:.0%} worse than that with "
        "all numbers of GPUs up to the greatest of them, of the same jobs.",
        instances=_drawn,
        assumes=_whole_servers,
        breaks=_costs_more,
        scope="random, 4 to 12 jobs on 1 to 3 types, with 0.5 to 4 GPUs for each",
        shrink=False,
        assumptions="nodes of a type have the same power of two of GPUs; p is -0.5 and the penalty 1.1.",
        relaxed="Goodputs follow from drawn parameters of the model, not from measured jobs.",
    ),
]
