"""What AFS states of placing jobs with regulated shares on machines (section 4.4), put to the test.

Optima are found by trying everything, and what judges the heuristics here shares nothing with the
models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from heuristics.afs.gpu_placement import first_fit_decreasing
from instances.afs.gpu_placement import GpuPlacement
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


def _running_jobs() -> Iterator[GpuPlacement]:
    """Up to 3 jobs that were anywhere on up to 2 machines."""
    for machines, gpus, shares in _clusters(2, (2, 4)):
        if len(shares) <= 3:
            held = [c for c in itertools.product(range(gpus + 1), repeat=len(shares)) if sum(c) <= gpus]
            for columns in itertools.product(held, repeat=machines):
                yield GpuPlacement(
                    regulated=np.array(shares),
                    num_machines=machines,
                    gpus_per_machine=gpus,
                    previous=np.array(columns).T,
                )


def _placement_fails(instance: GpuPlacement) -> str:
    return "; ".join(map(str, instance.violations(first_fit_decreasing(instance))))


def _placement_keeps_less(instance: GpuPlacement) -> str:
    """How another placement keeps more jobs where they are, or as many with more GPUs."""
    plan = first_fit_decreasing(instance)
    kept = instance.kept(plan)
    jobs, gpus = _most_kept(instance)
    if (int((kept > 0).sum()), int(kept.sum())) >= (jobs, gpus):
        return ""
    return f"{(kept > 0).sum()} jobs keep {kept.sum()} GPUs, {jobs} could keep {gpus}"


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
        source="AFS, section 4.4, Proposition 1",
        statement="Jobs with regulated shares can be placed so that no machine hosts two jobs that span machines.",
        reading=f"regulated is {REGULATED}, of a power of two of GPUs each. First fit decreasing finds a placement on "
        "which every job is also on the fewest machines.",
        instances=lambda rng: _new_jobs(),
        breaks=_placement_fails,
        scope="all sets of regulated shares on up to 4 machines of 1, 2, 4 or 8 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="proposition_1_running_jobs",
        source="AFS, section 4.4, Proposition 1",
        statement="Jobs with regulated shares can be placed so that no machine hosts two jobs that span machines.",
        reading="the same when each job prefers the machines on which it keeps the most GPUs.",
        instances=lambda rng: _running_jobs(),
        breaks=_placement_fails,
        scope="up to 3 jobs of regulated shares that held any GPUs before, on up to 2 machines of 2 or 4 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="placement_keeps_most",
        source="AFS, section 4.4",
        statement="When shares change, jobs stay where they are as far as possible.",
        reading="first fit decreasing with a preference for old machines lets the most jobs keep a GPU, and so many "
        "keep the most GPUs. The preference and the two aims are this library's.",
        instances=lambda rng: _running_jobs(),
        breaks=_placement_keeps_less,
        scope="up to 3 jobs of regulated shares that held any GPUs before, on up to 2 machines of 2 or 4 GPUs",
        exhaustive=True,
    ),
]
