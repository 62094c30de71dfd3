"""Fast methods for :class:`instances.afs.gpu_placement.GpuPlacement`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from instances.afs.gpu_placement import GpuPlacement, GpuPlacementPlan
from instances.arithmetic import total
from instances.schema import FloatArray, IntArray

__all__ = ["first_fit_decreasing", "first_fit_decreasing_in_place", "priced_first_fit"]


def first_fit_decreasing(instance: GpuPlacement) -> GpuPlacementPlan | None:
    """Place jobs as the proof of Proposition 1 does: largest share first, on the first machines that fit.

    It does not look at where jobs were.  Whole machines go first, then powers of two, in decreasing order.

    Guarantee: feasible; none on the GPUs kept.  ``None`` where the jobs have more GPUs than there are.
    Complexity: O(n * m).

    References
    ----------
    AFS (NSDI'21), Appendix E, proof of Proposition 1.
    """
    return _placed(instance, lambda job, fitting: fitting)


def first_fit_decreasing_in_place(instance: GpuPlacement) -> GpuPlacementPlan | None:
    """As :func:`first_fit_decreasing`, but first on the machines where the job keeps the most GPUs.

    Because shares are powers of two or whole machines, in decreasing order every machine has room for
    whole blocks of the size at hand, and so all jobs find room whatever machines they prefer.  Ties
    go to the lowest job and the lowest machine.

    Guarantee: feasible; none known on the GPUs kept.  ``None`` where the jobs have more GPUs than there are.
    Complexity: O(n * m log m).

    References
    ----------
    None: the library's own preference in the placement of Proposition 1.
    """

    def preferred(job: int, fitting: IntArray) -> IntArray:
        kept = np.minimum(instance.previous[job, fitting], instance.blocks[job])
        return np.asarray(fitting[np.argsort(-kept, kind="stable")])

    return _placed(instance, preferred)


def priced_first_fit(instance: GpuPlacement, *, budget: int = 4000) -> GpuPlacementPlan | None:
    """Place jobs as :func:`first_fit_decreasing` does, on machines whose GPUs have prices, round after round.

    A large job should leave a machine alone where many small ones want to stay.  Each machine has a price of a GPU, the
    Lagrangian multiplier of its capacity: a job prefers the machines where what it keeps is worth most after
    what it pays.  After each round prices rise where jobs would have more GPUs than there are, did they not have to
    fit, and fall where they would have fewer.  In each round's placement jobs then go back to machines that they held
    wherever that gains, in exchange for as many GPUs there.

    Guarantee: feasible, and never worse than :func:`first_fit_decreasing_in_place`; none known relative to the optimum.
    ``None`` where the jobs have more GPUs than there are.
    Complexity: O(n m + h) for each round, with h pairs of a job and a machine that it held, and O(h k log k) for each
    pass of exchanges with k jobs on a machine.

    Parameters
    ----------
    instance : GpuPlacement
    budget : int
        Jobs that are placed in all rounds, of which there are at most 60.

    References
    ----------
    Fisher, The Lagrangian relaxation method for solving integer programming problems (Management Science 27, 1981), for
    the prices; the placement is that of AFS (NSDI'21), Appendix E, proof of Proposition 1.
    """
    best = first_fit_decreasing_in_place(instance)
    if best is None:
        return None
    value = instance.objective(best)
    exchanges = _Exchanges(instance)
    kept = np.minimum(instance.previous, instance.blocks[:, None])
    worth = (kept > 0) / np.maximum(instance.spans, 1)[:, None] + kept / (1 + instance.num_gpus)
    prices = np.zeros(instance.num_machines)
    for step in range(1, min(ROUNDS, budget // max(1, instance.num_jobs)) + 1):
        wanted = worth - prices * instance.blocks[:, None]
        plan = exchanges.improved(_most_wanted(instance, wanted))
        if instance.objective(plan) > value:
            best, value = plan, instance.objective(plan)
        over = _load(instance, wanted) - instance.gpus_per_machine
        prices = np.maximum(prices + STEP / step * over / instance.gpus_per_machine**2, 0)
    return best


ROUNDS = 60
STEP = 6.0
"""Of the first round's prices, in jobs kept for all GPUs of a machine, where twice as many are wanted as there are."""


def _most_wanted(instance: GpuPlacement, wanted: FloatArray) -> GpuPlacementPlan:
    """Place jobs from the largest share on, each on the machines that it wants most of those that fit."""
    free = np.full(instance.num_machines, instance.gpus_per_machine)
    gpus = np.zeros((instance.num_jobs, instance.num_machines), np.int64)
    blocks, spans = instance.blocks.tolist(), instance.spans.tolist()
    for job in np.argsort(-instance.regulated, kind="stable").tolist():
        if not spans[job]:
            break
        fitting = np.where(free >= blocks[job], wanted[job], -np.inf)
        chosen = fitting.argmax() if spans[job] == 1 else np.argsort(-fitting, kind="stable")[: spans[job]]
        gpus[job, chosen] = blocks[job]
        free[chosen] -= blocks[job]
    return GpuPlacementPlan(gpus=gpus)


def _load(instance: GpuPlacement, wanted: FloatArray) -> IntArray:
    """(m,) int: GPUs that jobs would have of each machine if each had those that it wants most."""
    load = np.zeros(instance.num_machines, np.int64)
    single = instance.spans == 1
    np.add.at(load, wanted[single].argmax(axis=1), instance.blocks[single])
    for job in np.flatnonzero(instance.spans > 1).tolist():
        load[np.argsort(-wanted[job], kind="stable")[: instance.spans[job]]] += instance.blocks[job]
    return load


class _Exchanges:
    """Exchanges of GPUs by which jobs come back to machines that they held."""

    def __init__(self, instance: GpuPlacement) -> None:
        self.instance = instance
        self.blocks: list[int] = instance.blocks.tolist()
        self.held: list[dict[int, int]] = [{} for _ in range(instance.num_jobs)]
        for job, machine in np.argwhere(instance.previous > 0).tolist():
            self.held[job][machine] = int(instance.previous[job, machine])

    def improved(self, plan: GpuPlacementPlan) -> GpuPlacementPlan:
        """Return a plan after all exchanges that gain, job after job."""
        self.machines: list[set[int]] = [set() for _ in self.blocks]
        self.jobs: list[set[int]] = [set() for _ in range(self.instance.num_machines)]
        self.kept: list[int] = self.instance.kept(plan).tolist()
        for job, machine in np.argwhere(plan.gpus > 0).tolist():
            self.machines[job].add(machine)
            self.jobs[machine].add(job)
        gains = True
        while gains:
            gains = sum(self._back(job) for job in range(len(self.blocks))) > 0
        gpus = np.zeros_like(plan.gpus)
        for job, machines in enumerate(self.machines):
            gpus[job, sorted(machines)] = self.blocks[job]
        return GpuPlacementPlan(gpus=gpus)

    def _back(self, job: int) -> bool:
        """Bring a job back to machines that it held; return whether any exchange was made."""
        found = False
        for to in self.held[job]:
            if to in self.machines[job] or not self.blocks[job]:
                continue
            choices = []
            for machine in sorted(self.machines[job]):
                gain = self._gain(job, machine, to)
                left = self._least_loss(to, machine, self.blocks[job]) if gain > 0 else None
                if left is not None:
                    choices.append((left[0] - gain, machine, left[1]))
            change, machine, others = min(choices, default=(0, 0, []))
            if change < 0:
                for other in others:
                    self._move(other, to, machine)
                self._move(job, machine, to)
                found = True
        return found

    def _keeps(self, job: int, machine: int) -> int:
        return min(self.blocks[job], self.held[job].get(machine, 0))

    def _gain(self, job: int, machine: int, to: int) -> int:
        """Return what the value, in the measure of whole numbers, gains when a job goes from a machine to another."""
        now = self.kept[job]
        then = now - self._keeps(job, machine) + self._keeps(job, to)
        return ((then > 0) - (now > 0)) * (1 + self.instance.num_gpus) + then - now

    def _move(self, job: int, machine: int, to: int) -> None:
        self.kept[job] += self._keeps(job, to) - self._keeps(job, machine)
        self.machines[job].symmetric_difference_update((machine, to))
        self.jobs[machine].discard(job)
        self.jobs[to].add(job)

    def _least_loss(self, machine: int, to: int, size: int) -> tuple[int, list[int]] | None:
        """Return what is lost, and the jobs, if some that lose least leave so many GPUs of a machine for another.

        Blocks are powers of two, so pairs of the same size are made, from the smallest on, each of those that lose
        least, or of one and as many free GPUs.
        """
        on = [job for job in sorted(self.jobs[machine]) if self.blocks[job] <= size and to not in self.machines[job]]
        free = self.instance.gpus_per_machine - sum(self.blocks[job] for job in self.jobs[machine])
        pieces: list[tuple[int, list[int]]] = []
        block = 1
        while True:
            pieces += [(-self._gain(job, machine, to), [job]) for job in on if self.blocks[job] == block]
            if block == size:
                return min(pieces + [(0, [])] * (free >= size), default=None)
            if len(pieces) % 2 and free >= block:
                pieces.append((0, []))
                free -= block
            pieces.sort()
            pieces = [(a + b, c + d) for (a, c), (b, d) in zip(pieces[::2], pieces[1::2], strict=False)]
            block *= 2


def _placed(instance: GpuPlacement, preferred: Callable[[int, IntArray], IntArray]) -> GpuPlacementPlan | None:
    """Jobs from the largest share on, each on the first of the machines that fit, as ``preferred`` orders them."""
    if total(instance.regulated) > instance.num_gpus:
        return None
    free = np.full(instance.num_machines, instance.gpus_per_machine)
    gpus = np.zeros((instance.num_jobs, instance.num_machines), np.int64)
    for job in np.argsort(-instance.regulated, kind="stable").tolist():
        block = int(instance.blocks[job])
        chosen = preferred(job, np.flatnonzero(free >= block))[: int(instance.spans[job])]
        gpus[job, chosen] = block
        free[chosen] -= block
    return GpuPlacementPlan(gpus=gpus)
