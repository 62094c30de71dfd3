"""Claims of AFS about placing jobs with regulated shares on machines (section 4.4)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial

import numpy as np

from heuristics.afs.gpu_placement import first_fit_decreasing
from instances.afs.gpu_placement import GpuPlacement, two_machines
from instances.afs.network_packing import regulated_shares
from validation.claims.afs.network_packing import REGULATED
from validation.claims.assumed import only, power_of_two
from validation.claims.claim import Claim
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS", "new_jobs"]


def _regulated(most_gpus: int, num_gpus: int, candidates: list[int]) -> Iterator[list[int]]:
    """Yield sets of regulated shares that need no more than ``num_gpus``, up to numbering."""
    yield []
    for position, share in enumerate(candidates):
        if share <= min(most_gpus, num_gpus):
            for rest in _regulated(share, num_gpus - share, candidates[position:]):
                yield [share, *rest]


def _clusters(most_machines: int, machine_gpus: tuple[int, ...]) -> Iterator[tuple[int, int, list[int]]]:
    """Yield machines, GPUs of each, and regulated shares of one job or more that need no more."""
    for machines, gpus in itertools.product(range(1, most_machines + 1), machine_gpus):
        candidates = regulated_shares(machines, gpus)[:0:-1].tolist()
        for shares in sorted(_regulated(machines * gpus, machines * gpus, candidates), key=len):
            if shares:
                yield machines, gpus, shares


def new_jobs() -> Iterator[GpuPlacement]:
    """Yield all sets of regulated shares of jobs that run nowhere yet, on up to 4 machines of 1, 2, 4 or 8 GPUs."""
    for machines, gpus, shares in _clusters(4, (1, 2, 4, 8)):
        previous = np.zeros((len(shares), machines), np.int64)
        yield GpuPlacement(regulated=np.array(shares), num_machines=machines, gpus_per_machine=gpus, previous=previous)


def _placement_fails(instance: GpuPlacement) -> str | None:
    plan = first_fit_decreasing(instance)
    assert plan is not None
    return "; ".join(map(str, instance.violations(plan))) or None


def _all_stay(instance: GpuPlacement) -> str | None:
    """Describe how all jobs that run can keep a GPU."""
    running = int(((instance.previous.sum(axis=1) > 0) & (instance.regulated > 0)).sum())
    best = optimum(instance)
    # Jobs that keep a GPU count one each, and all GPUs that are kept less than one.
    return None if best is None or int(best) < running else f"all {running} jobs can keep a GPU"


def _regulated_jobs(instance: GpuPlacement) -> bool:
    """Return whether machines have a power of two of GPUs, and shares are regulated and no more than there are GPUs."""
    machines, gpus = instance.num_machines, instance.gpus_per_machine
    regulated = set(regulated_shares(machines, gpus).tolist())
    return (
        power_of_two(gpus)
        and set(instance.regulated.tolist()) <= regulated
        and int(instance.regulated.sum()) <= machines * gpus
    )


_claim = partial(
    Claim,
    exhaustive=True,
    assumes=_regulated_jobs,
    assumptions="homogeneous machines of a power of two of GPUs each.",
    relaxed="",
)

CLAIMS: list[Claim] = [
    _claim(
        name="proposition_1",
        source="AFS, Appendix E, Proposition 1",
        statement="Jobs with regulated shares can be placed on the fewest machines each, so that no machine hosts two "
        "jobs that span machines.",
        reading=f"regulated is {REGULATED}, of a power of two of GPUs each. The proof's placement, whole machines "
        "first and then first fit decreasing, finds room for all, with every job on the fewest machines.",
        instances=lambda rng: new_jobs(),
        breaks=_placement_fails,
        scope="all sets of regulated shares on up to 4 machines of 1, 2, 4 or 8 GPUs",
        relaxed="GPUs may be left over, where Appendix E has shares that add up to all GPUs.",
    ),
    _claim(
        name="migration_is_needed",
        assumes=only(two_machines()),
        source="AFS, section 4.4",
        statement="Regulated shares do not prevent fragmentation, so that jobs still have to be migrated.",
        reading="there are jobs of regulated shares that run, and new regulated shares of these jobs that fit, with "
        "which no placement lets all of them keep a GPU.",
        instances=lambda rng: [two_machines()],
        breaks=_all_stay,
        scope="three jobs on two machines of 4 GPUs",
    ),
]
