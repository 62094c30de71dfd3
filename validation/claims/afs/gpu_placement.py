"""What AFS states of placing jobs with regulated shares on machines (section 4.4), put to the test.

Optima are found by trying everything, and what judges the heuristics here shares nothing with the
models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from heuristics.afs.gpu_placement import first_fit_decreasing
from instances.afs.gpu_placement import GpuPlacement, two_machines
from instances.afs.network_packing import regulated_shares
from validation.claims.afs.network_packing import REGULATED
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]


def _regulated(most_gpus: int, num_gpus: int, candidates: list[int]) -> Iterator[list[int]]:
    """Sets of regulated shares that need no more than ``num_gpus``, up to numbering."""
    yield []
    for position, share in enumerate(candidates):
        if share <= min(most_gpus, num_gpus):
            for rest in _regulated(share, num_gpus - share, candidates[position:]):
                yield [share, *rest]


def _clusters(most_machines: int, machine_gpus: tuple[int, ...]) -> Iterator[tuple[int, int, list[int]]]:
    """Machines, GPUs of each, and regulated shares of one job or more that need no more."""
    for machines, gpus in itertools.product(range(1, most_machines + 1), machine_gpus):
        candidates = regulated_shares(machines, gpus)[:0:-1].tolist()
        for shares in sorted(_regulated(machines * gpus, machines * gpus, candidates), key=len):
            if shares:
                yield machines, gpus, shares


def _new_jobs() -> Iterator[GpuPlacement]:
    for machines, gpus, shares in _clusters(4, (1, 2, 4, 8)):
        previous = np.zeros((len(shares), machines), np.int64)
        yield GpuPlacement(regulated=np.array(shares), num_machines=machines, gpus_per_machine=gpus, previous=previous)


def _placement_fails(instance: GpuPlacement) -> str:
    plan = first_fit_decreasing(instance)
    assert plan is not None
    return "; ".join(map(str, instance.violations(plan)))


def _all_stay(instance: GpuPlacement) -> str:
    """How all jobs that run can keep a GPU."""
    running = int(((instance.previous.sum(axis=1) > 0) & (instance.regulated > 0)).sum())
    jobs, _ = _most_kept(instance)
    return "" if jobs < running else f"all {running} jobs can keep a GPU"


def _most_kept(instance: GpuPlacement) -> tuple[int, int]:
    """Most jobs that can keep a GPU, and the most GPUs that so many can keep, over all placements."""

    def place(job: int, free: tuple[int, ...], jobs: int, gpus: int) -> tuple[int, int]:
        if job == instance.num_jobs:
            return jobs, gpus
        block, best = int(instance.blocks[job]), (-1, -1)
        for machines in itertools.combinations(range(instance.num_machines), int(instance.spans[job])):
            if all(free[machine] >= block for machine in machines):
                left = tuple(room - block * (machine in machines) for machine, room in enumerate(free))
                kept = sum(min(int(instance.previous[job, machine]), block) for machine in machines)
                best = max(best, place(job + 1, left, jobs + (kept > 0), gpus + kept))
        return best

    return place(0, (instance.gpus_per_machine,) * instance.num_machines, 0, 0)


CLAIMS: list[Claim] = [
    Claim(
        name="proposition_1",
        source="AFS, Appendix E, Proposition 1",
        statement="Jobs with regulated shares can be placed so that no machine hosts two jobs that span machines.",
        reading=f"regulated is {REGULATED}, of a power of two of GPUs each. The proof's placement, whole machines "
        "first and then first fit decreasing, finds room for all, with every job on the fewest machines.",
        instances=lambda rng: _new_jobs(),
        breaks=_placement_fails,
        scope="all sets of regulated shares on up to 4 machines of 1, 2, 4 or 8 GPUs",
        exhaustive=True,
        assumptions="homogeneous machines of a power of two of GPUs each.",
        relaxed="GPUs may be left over, where Appendix E has shares that add up to all GPUs.",
    ),
    Claim(
        name="migration_is_needed",
        source="AFS, section 4.4",
        statement="Regulated shares do not prevent fragmentation, so that jobs still have to be migrated.",
        reading="there are jobs of regulated shares that run, and new regulated shares of these jobs that fit, with "
        "which no placement lets all of them keep a GPU.",
        instances=lambda rng: [two_machines()],
        breaks=_all_stay,
        scope="three jobs on two machines of 4 GPUs",
        exhaustive=True,
        assumptions="homogeneous machines of a power of two of GPUs each.",
        relaxed="",
    ),
]
