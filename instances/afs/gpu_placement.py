"""Placement of jobs on machines: AFS (NSDI'21), section 4.4, and Appendix E, Proposition 1.

Jobs have regulated shares (:mod:`instances.afs.network_packing`): 0, a power of two below the GPUs
of a machine, 2^g, or a multiple of 2^g.  Every job is placed on as few machines as its share needs,
and no machine hosts two jobs that span machines.  When shares change, jobs already run somewhere;
a job that keeps one of its GPUs goes on without being migrated.  Choose the placement by which, as
section 4.4 prints it,

    first as many jobs as possible keep a GPU, then as many GPUs as possible are kept:

    max  (jobs that keep a GPU) + (GPUs kept) / (1 + all GPUs).

Job j keeps ``min(previous[j, m], gpus[j, m])`` GPUs on machine m.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Unpack

import numpy as np

from instances import pictures
from instances.afs.network_packing import MachineJobs, MachineOptions, machines, regulated_shares
from instances.arguments import Fraction, checked
from instances.arithmetic import total
from instances.base import Plan, Violation, exceeding, unequal
from instances.data.lines import Source
from instances.data.placements import PlacementChoice, draw_held
from instances.schema import LONGEST, Array, IntArray, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GpuPlacement", "GpuPlacementPlan", "from_frame", "from_placements", "generate", "two_machines"]


@dataclass(frozen=True, eq=False)
class GpuPlacementPlan(Plan):
    """A placement.

    Attributes
    ----------
    gpus : (n, m) int
        GPUs of each job on each machine.
    """

    gpus: Annotated[IntArray, Array(int, "n m")]


@dataclass(frozen=True, eq=False)
class GpuPlacement(MachineJobs[GpuPlacementPlan]):
    """Regulated shares, and where the jobs have run so far.

    Machines are servers: ``num_servers`` and ``server_gpus`` are ``num_machines`` and ``gpus_per_machine``.

    Attributes
    ----------
    regulated : (n,) int
        GPUs of each job: 0, a power of two below ``gpus_per_machine``, or a multiple of it.  More than
        all GPUs together make the instance infeasible.
    num_machines : int
        Machines, at least 1 and at most 10,000,000.
    gpus_per_machine : int
        GPUs of each machine, a power of two of at most 10,000,000.
    previous : (n, m) int
        GPUs that each job has held on each machine, m = ``num_machines``; 0 for new jobs.
    """

    problem = "afs.gpu_placement"
    sense = "max"
    measure = "jobs that keep a GPU + GPUs kept / (1 + all)"
    plan_type = GpuPlacementPlan

    regulated: Annotated[IntArray, Array(int, "n", minimum=0)]
    num_machines: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    gpus_per_machine: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    previous: Annotated[IntArray, Array(int, "n m", minimum=0)]

    def _check(self) -> None:
        super()._check()
        small = regulated_shares(1, self.gpus_per_machine)
        odd = np.flatnonzero(~np.isin(self.regulated, small) & (self.regulated % self.gpus_per_machine != 0))
        if odd.size:
            raise self.refuse(
                "regulated",
                f"got {self.regulated[odd[0]]} at index [{odd[0]}], must be 0, a power of two below "
                f"{self.gpus_per_machine} or a multiple of it",
            )
        if not self.num_jobs:
            # A table without rows has lost its columns.
            object.__setattr__(self, "previous", self.previous.reshape(0, self.num_machines))
        if self.previous.shape[1] != self.num_machines:
            raise self.refuse(
                "previous", f"got {self.previous.shape[1]} machines, must be num_machines, {self.num_machines}"
            )
        over = np.flatnonzero(total(self.previous, axis=0) > self.gpus_per_machine)
        if over.size:
            raise self.refuse(
                "previous",
                f"got {total(self.previous[:, over[0]])} GPUs on machine {over[0]}, must be at most "
                f"gpus_per_machine, {self.gpus_per_machine}",
            )

    @cached_property
    def spans(self) -> IntArray:
        """(n,) int: machines that each job needs."""
        return -(-self.regulated // self.gpus_per_machine)

    @cached_property
    def blocks(self) -> IntArray:
        """(n,) int: GPUs of each job on each of its machines."""
        return np.minimum(self.regulated, self.gpus_per_machine)

    def kept(self, plan: GpuPlacementPlan) -> IntArray:
        """(n,) int: GPUs that each job keeps."""
        return np.asarray(np.minimum(plan.gpus.reshape(self.previous.shape), self.previous).sum(axis=1))

    def _value(self, plan: GpuPlacementPlan) -> float:
        kept = self.kept(plan)
        return int((kept > 0).sum()) + int(kept.sum()) / (1 + self.num_gpus)

    def _broken_rules(self, plan: GpuPlacementPlan) -> Iterator[Violation]:
        yield from exceeding("nonnegative", 0, plan.gpus)
        yield from unequal("share", total(plan.gpus, axis=1), self.regulated)
        yield from exceeding("capacity", total(plan.gpus, axis=0), self.gpus_per_machine)
        hosted = plan.gpus > 0
        yield from exceeding("fewest_machines", hosted.sum(axis=1), self.spans)
        spanning = hosted.sum(axis=1) > 1
        yield from exceeding("one_spanning_job", hosted[spanning].sum(axis=0), 1)

    def _draw(self, axes: Axes, plan: GpuPlacementPlan | None) -> None:
        if plan is None:
            pictures.servers(axes, self.previous, capacity=np.full(self.num_machines, self.gpus_per_machine))
            axes.set_xlabel("machine, before")
            before = self.previous.sum(axis=1).tolist()
            names = [
                f"job {j}: {a} to {b} GPUs"
                for j, (a, b) in enumerate(zip(before, self.regulated.tolist(), strict=True))
            ]
            pictures.legend(axes, names)
        else:
            gpus = plan.gpus.reshape(self.previous.shape)
            kept = np.minimum(gpus, self.previous)
            # Each job twice in a row: what it keeps, and what it did not have before.
            parts = np.stack([kept, gpus - kept], axis=1).reshape(2 * self.num_jobs, self.num_machines)
            new = np.broadcast_to((np.arange(len(parts)) % 2 == 1)[:, None], parts.shape)
            pictures.servers(
                axes,
                parts,
                capacity=np.full(self.num_machines, self.gpus_per_machine),
                faded=new,
                colours=[pictures.colour(job) for job in np.repeat(np.arange(self.num_jobs), 2).tolist()],
                texts=[str(job) for job in np.repeat(np.arange(self.num_jobs), 2).tolist()],
            )
            axes.set_xlabel("machine")
            pictures.legend(
                axes, [f"job {job}" for job in range(self.num_jobs)], {"GPUs not held before": pictures.FADED}
            )
        axes.set_ylabel("GPUs")


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    change: Fraction = 0.5,
    load: Fraction = 1.0,
    **options: Unpack[MachineOptions],
) -> GpuPlacement:
    """Draw a full cluster whose shares change.

    Jobs of random regulated shares, up to three machines and mostly small, are placed at random;
    then some of the shares are drawn anew.  Jobs that find no room get a share of 0.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    change : float
        Hardness dial from 0 to 1: the chance that a job's share is drawn anew.  At 0 every job can
        stay where it is.
    load : float
        Part of the GPUs, from 0 to 1, that shares may take.
    **options
        Sizes, as for :func:`instances.afs.network_packing.machines`.
    """
    rng = np.random.default_rng(rng)
    num_jobs, num_machines, gpus_per_machine = machines(**options)
    sizes = regulated_shares(min(3, num_machines), gpus_per_machine)[1:]
    room = int(load * num_machines * gpus_per_machine)
    before = np.zeros(num_jobs, np.int64)
    after = np.zeros(num_jobs, np.int64)
    for job in range(num_jobs):
        drawn = rng.choice(sizes, 2, p=1 / sizes / (1 / sizes).sum())
        redrawn = rng.uniform() < change
        if before.sum() + drawn[0] <= room:
            before[job] = drawn[0]
        wanted = drawn[1] if redrawn else before[job]
        if after.sum() + wanted <= room:
            after[job] = wanted
    # Powers of two in decreasing order fit whatever machines are taken.
    previous = np.zeros((num_jobs, num_machines), np.int64)
    for job in np.argsort(-before, kind="stable"):
        block = min(int(before[job]), gpus_per_machine)
        if block:
            open_machines = rng.permutation(np.flatnonzero(previous.sum(axis=0) + block <= gpus_per_machine))
            previous[job, open_machines[: int(before[job]) // block]] = block
    return GpuPlacement(
        regulated=after, num_machines=num_machines, gpus_per_machine=gpus_per_machine, previous=previous
    )


from_frame = GpuPlacement.from_frame


def from_placements(
    rng: np.random.Generator | int,
    *,
    placements: Source,
    num_jobs: int = 8,
    num_machines: int = 8,
    gpus_per_machine: int = 8,
    **choice: Unpack[PlacementChoice],
) -> GpuPlacement:
    """Jobs where they ran at a time, some of whose shares change: what they held is rounded to regulated shares.

    Shares are drawn: each job is to hold half of what it held, the same, or twice that, alike, and the last ones less
    where all would not fit.

    The table, the time and the errors are those of :class:`instances.data.placements.PlacementChoice`; the generator
    draws the jobs on the machines and the shares, too.

    Parameters
    ----------
    num_jobs : int
        Most jobs, n; there are fewer where fewer ran.
    num_machines, gpus_per_machine : int
        As the fields; what was held on a machine beyond its GPUs is cut.
    """
    rng = np.random.default_rng(rng)
    held = draw_held(rng, placements, num_machines, **choice)
    chosen = np.sort(rng.permutation(len(held.jobs))[:num_jobs])
    asked = held.gpus[chosen]
    # Of each machine the first jobs keep what they held.
    previous = np.diff(np.minimum(np.cumsum(asked, axis=0), gpus_per_machine), axis=0, prepend=0)
    wanted = asked.sum(axis=1) * rng.choice([0.5, 1.0, 2.0], len(chosen))
    shares, left = regulated_shares(num_machines, gpus_per_machine), num_machines * gpus_per_machine
    regulated = np.zeros(len(chosen), np.int64)
    for job, most in enumerate(wanted.tolist()):
        regulated[job] = shares[np.searchsorted(shares, min(most, left), side="right") - 1]
        left -= regulated[job]
    told = held.origin(
        "instances.afs.gpu_placement.from_placements",
        jobs=[held.jobs[job] for job in chosen],
        repairs={
            "share is drawn": len(chosen),
            "GPUs beyond those of a machine are cut": int((previous != asked).any(axis=1).sum()),
        },
        num_jobs=num_jobs,
        num_machines=num_machines,
        gpus_per_machine=gpus_per_machine,
    )
    return GpuPlacement(
        regulated=regulated, num_machines=num_machines, gpus_per_machine=gpus_per_machine, previous=previous
    ).with_origin(told)


def two_machines() -> GpuPlacement:
    """Three jobs on two machines of 4 GPUs, two of which grow from 1 GPU to 2 and from 2 to 4.

    Job 0 held 1 GPU on machine 0, job 1 2 GPUs there, and job 2 2 GPUs on machine 1.  Job 1 now needs
    a machine for itself.  If it stays on machine 0, it keeps 2 GPUs, and job 2 keeps its 2 on machine
    1, where job 0 has to follow; that is the optimum, 2 jobs and 4 GPUs.  The data are the library's.
    """
    return GpuPlacement(
        regulated=np.array([2, 4, 2]),
        num_machines=2,
        gpus_per_machine=4,
        previous=np.array([[1, 0], [2, 0], [0, 2]]),
    )
