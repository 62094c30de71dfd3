"""Shares that pack without sharing networks: AFS (NSDI'21), section 4.4 and Appendix E.

A job that spans machines uses their network, and two such jobs on one machine slow each other down.
Regulated shares avoid this: if every share is 0, a power of two below the GPUs of a machine, 2^g,
or a multiple of 2^g, the jobs can be placed so that no machine hosts two jobs that span machines
(:mod:`instances.afs.gpu_placement`).  Given the shares that a scheduler wants, which add up to all
GPUs, find regulated shares of the same sum that differ the least, as section 4.4 asks; the measure of
the difference, which it does not name, is the sum of the jobs' own:

    min  sum_i |r_i - s_i|    s.t.  sum_i r_i = sum_i s_i,  r_i regulated.

Proposition 2 guarantees every job its floor x_i, the greatest regulated share up to s_i; the field
``floor_guarantee`` makes this a constraint, r_i >= x_i.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, TypedDict, TypeVar, Unpack

import numpy as np

from instances import pictures
from instances.arguments import Count, Fraction, checked
from instances.arithmetic import power, total
from instances.base import Instance, Plan, Violation, exceeding, unequal
from instances.schema import LONGEST, Array, IntArray, Scalar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "MachineJobs",
    "MachineOptions",
    "NetworkPacking",
    "NetworkPackingPlan",
    "from_frame",
    "generate",
    "is_power_of_two",
    "machines",
    "one_machine",
    "regulated_shares",
    "section_4_4",
]


def is_power_of_two(number: int) -> bool:
    """Return whether ``number`` is 1, 2, 4, 8, ..."""
    return number > 0 and number & (number - 1) == 0


def regulated_shares(num_machines: int, gpus_per_machine: int) -> IntArray:
    """(c,) int: all regulated shares in a cluster, increasing from 0.

    Parameters
    ----------
    num_machines : int
    gpus_per_machine : int
        A power of two.
    """
    powers = 2 ** np.arange(gpus_per_machine.bit_length() - 1)
    return np.concatenate([[0], powers, gpus_per_machine * np.arange(1, num_machines + 1)])


class MachineOptions(TypedDict, total=False):
    """The keyword arguments of :func:`machines`, which generators of clusters of machines take."""

    num_jobs: Count
    num_machines: Count | None
    gpus_per_machine: Count


def machines(*, num_jobs: int = 10, num_machines: int | None = None, gpus_per_machine: int = 8) -> tuple[int, int, int]:
    """Jobs, machines, and GPUs of each machine.

    Parameters
    ----------
    num_jobs : int
        Number of jobs, n.
    num_machines : int, optional
        Machines, m; by default as many as make 4 GPUs per job.
    gpus_per_machine : int
        GPUs of each machine, a power of two.
    """
    if num_machines is None:
        num_machines = -(-4 * num_jobs // gpus_per_machine)
    return num_jobs, num_machines, gpus_per_machine


@dataclass(frozen=True, eq=False)
class NetworkPackingPlan(Plan):
    """Regulated shares.

    Attributes
    ----------
    regulated : (n,) int
        GPUs of each job.
    """

    regulated: Annotated[IntArray, Array(int, "n")]


P = TypeVar("P", bound=Plan)


class MachineJobs(Instance[P]):
    """Jobs on machines of a power of two of GPUs each.

    Machines are servers: ``num_servers`` and ``server_gpus`` are ``num_machines`` and ``gpus_per_machine``.
    """

    num_machines: int
    gpus_per_machine: int

    def _check(self) -> None:
        if not is_power_of_two(self.gpus_per_machine):
            raise self.refuse("gpus_per_machine", f"got {self.gpus_per_machine}, must be a power of two")

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_gpus(self) -> int:
        """GPUs of all servers."""
        return self.num_machines * self.gpus_per_machine

    @property
    def num_servers(self) -> int:
        """Machines, ``num_machines``."""
        return self.num_machines

    @property
    def server_gpus(self) -> int:
        """GPUs of each machine, ``gpus_per_machine``."""
        return self.gpus_per_machine


@dataclass(frozen=True, eq=False)
class NetworkPacking(MachineJobs[NetworkPackingPlan]):
    """Shares to be regulated.

    Machines are servers: ``num_servers`` and ``server_gpus`` are ``num_machines`` and ``gpus_per_machine``.

    Attributes
    ----------
    shares : (n,) int
        GPUs that each job is to have; they add up to all GPUs of the cluster.  More than these make the
        instance infeasible.
    num_machines : int
        Machines, at least 1 and at most 10,000,000.
    gpus_per_machine : int
        GPUs of each machine, a power of two of at most 10,000,000.
    floor_guarantee : bool
        Whether no job may get less than its floor, the guarantee of Proposition 2 (the default).
    """

    problem = "afs.network_packing"
    sense = "min"
    measure = "GPUs that shares change by"
    plan_type = NetworkPackingPlan

    shares: Annotated[IntArray, Array(int, "n", minimum=0)]
    num_machines: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    gpus_per_machine: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    floor_guarantee: Annotated[bool, Scalar(bool)] = True

    def _check(self) -> None:
        super()._check()
        if self.num_jobs and total(self.shares) < self.num_gpus:
            raise self.refuse("shares", f"got a sum of {total(self.shares)}, must be all GPUs, {self.num_gpus}")

    @cached_property
    def candidates(self) -> IntArray:
        """(c,) int: all regulated shares, increasing from 0."""
        return regulated_shares(self.num_machines, self.gpus_per_machine)

    @cached_property
    def floors(self) -> IntArray:
        """(n,) int: greatest regulated share up to each job's share, x of Proposition 2."""
        return self.candidates[np.searchsorted(self.candidates, self.shares, side="right") - 1]

    def _value(self, plan: NetworkPackingPlan) -> float:
        return int(np.abs(plan.regulated - self.shares).sum())

    def _broken_rules(self, plan: NetworkPackingPlan) -> Iterator[Violation]:
        # Candidates increase, so that the ones beside a share are found without a look at the others.
        after = np.searchsorted(self.candidates, plan.regulated)
        for job, (share, at) in enumerate(zip(plan.regulated.tolist(), after.tolist(), strict=True)):
            nearest = min(abs(candidate - share) for candidate in self.candidates[max(0, at - 1) : at + 1].tolist())
            if nearest:
                yield Violation("regulated", (job,), float(nearest))
        yield from unequal("total", total(plan.regulated), total(self.shares))
        yield from exceeding("gpus", total(plan.regulated), self.num_gpus)
        if self.floor_guarantee:
            yield from exceeding("floor", self.floors, plan.regulated)

    def _draw(self, axes: Axes, plan: NetworkPackingPlan | None) -> None:
        wanted = {"wanted": self.shares}
        pictures.side_by_side(axes, wanted if plan is None else wanted | {"regulated": plan.regulated})
        for share in self.candidates[self.candidates <= 1.1 * self.shares.max(initial=0)].tolist():
            axes.axhline(share, color=pictures.OUTLINE, linewidth=0.5, alpha=0.5, zorder=0)
        machines = f"{self.num_machines} machines of {self.gpus_per_machine} GPUs"
        total = "" if plan is None else f"; in all {int(plan.regulated.sum())} of {self.num_gpus} GPUs"
        axes.set_xlabel(f"job ({machines}{total})")
        axes.set_ylabel("GPUs (lines: regulated shares)")


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    skew: Fraction = 0.5,
    floor_guarantee: bool = True,
    **options: Unpack[MachineOptions],
) -> NetworkPacking:
    """All GPUs of a cluster divided among jobs at random.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    skew : float
        From 0 (about equal shares) to 1 (a few jobs hold most GPUs).
    floor_guarantee : bool
        As in :class:`NetworkPacking`.
    **options
        Sizes, as for :func:`machines`.
    """
    rng = np.random.default_rng(rng)
    num_jobs, num_machines, gpus_per_machine = machines(**options)
    appetites = power(math.e, 3 * skew * rng.normal(size=num_jobs))
    shares = rng.multinomial(num_machines * gpus_per_machine, appetites / appetites.sum())
    return NetworkPacking(
        shares=shares, num_machines=num_machines, gpus_per_machine=gpus_per_machine, floor_guarantee=floor_guarantee
    )


from_frame = NetworkPacking.from_frame


def one_machine() -> NetworkPacking:
    """Shares 5, 2 and 1 on one machine of 8 GPUs: the regulated shares 4, 2, 2 differ by 2.  The library's own."""
    return NetworkPacking(shares=np.array([5, 2, 1]), num_machines=1, gpus_per_machine=8)


def section_4_4() -> NetworkPacking:
    """Shares on the 16 machines of 4 GPUs of section 5.1; regulated ones are 1, 2 and multiples of 4 (section 4.4).

    The shares wanted, 23, 14, 11, 6, 5, 3, 1 and 1 GPUs, are the library's.
    """
    return NetworkPacking(shares=np.array([23, 14, 11, 6, 5, 3, 1, 1]), num_machines=16, gpus_per_machine=4)
