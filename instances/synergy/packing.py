"""The first stage of :class:`instances.synergy.tuning.Tuning`, and how its plans are packed onto servers.

The first stage sees all servers as one, and chooses configurations.  They are packed with overload, which a walk of
moves and swaps lowers (:mod:`instances.synergy.swapping`): jobs whole, those in pieces that take more of a server than
the average leaves; and if that does not end it, all jobs that may be split GPU by GPU.  Where overload is left, jobs on
overloaded servers take less, and others what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from instances.base import widened
from instances.schema import FloatArray, IntArray
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan
from instances.synergy.sensitivity import THROUGHPUT
from instances.synergy.swapping import STEPS, placed, walk
from instances.synergy.tuning import Tuning, TuningPlan

__all__ = ["first_stage", "own_choices", "packings", "repaired"]

TINY = 1e-12
"""Part of a server by which sums may exceed it without being overload."""


def first_stage(instance: Tuning) -> tuple[SynergyAllocation, list[IntArray]]:
    """Return the first stage without configurations that no plan has, and which of each job's configurations it has."""
    stage = instance.stage_one()
    usable = [np.flatnonzero(some) for some in instance.usable_configs]
    if not instance.num_jobs or not all(map(len, usable)):
        return stage, [np.arange(len(table)) for table in instance.configs]
    per_gpu = [
        table[some, :THROUGHPUT] / gpus
        for table, some, gpus in zip(instance.configs, usable, instance.gpu_demands.tolist(), strict=True)
    ]
    least = np.array([amounts.min(axis=0) for amounts in per_gpu]).min(axis=0)
    spare = instance.num_gpus - int(instance.gpu_demands.sum())
    kept = []
    for some, amounts, gpus in zip(usable, per_gpu, instance.gpu_demands.tolist(), strict=True):
        here = 1 if instance.allow_split else gpus
        beside = max(0, instance.server_gpus - here - spare)
        taken = here * amounts + beside * least
        limits = (instance.server_cpus, instance.server_memory)
        fits = [taken[:, r] <= widened([*amounts[:, r], least[r]], limit) for r, limit in enumerate(limits)]
        kept.append(some[np.logical_and(*fits)])
    if not all(map(len, kept)):
        kept = usable
    configs = tuple(table[some] for table, some in zip(instance.configs, kept, strict=True))
    return replace(stage, configs=configs), kept


def own_choices(plan: SynergyAllocationPlan, kept: list[IntArray]) -> IntArray:
    """(n,) int: the instance's own numbers of the configurations of a plan of the first stage; -1 where it has none."""
    chosen = zip(kept, plan.choices.tolist(), strict=True)
    return np.array([int(rows[choice]) if choice >= 0 else -1 for rows, choice in chosen], np.int64)


def packings(
    instance: Tuning,
    choices: IntArray,
    rng: np.random.Generator,
    *,
    steps: int = STEPS[0],
    late: Callable[[], bool] = lambda: False,
) -> Iterator[IntArray]:
    """Yield GPUs of each job on each server, up to the first without overload: in large pieces, then GPU by GPU.

    Parameters
    ----------
    instance : Tuning
    choices : (n,) int
        Configurations, one for each job.
    rng : Generator
    steps : int
        Moves and swaps of each walk at most.
    late : callable
        Whether time is up.

    Yields
    ------
    (n, s) int
        The least overload that a walk came to.
    """
    server = np.array([instance.server_gpus, instance.server_cpus, instance.server_memory], float)
    limit = (server > 0).astype(float)
    demands = np.column_stack([instance.gpu_demands, instance.chosen(choices)[:, :THROUGHPUT]])
    per_gpu = demands / np.where(server > 0, server, 1.0) / instance.gpu_demands[:, None]
    mean = (per_gpu * instance.gpu_demands[:, None]).sum(axis=0) / instance.num_gpus
    counts = np.arange(1, instance.server_gpus + 1)
    beside = (instance.server_gpus - counts)[:, None] * mean
    for whole in (True, False) if instance.allow_split else (True,):
        jobs: list[int] = []
        pieces: list[int] = []
        for job, gpus in enumerate(instance.gpu_demands.tolist()):
            fits = (counts[:, None] * per_gpu[job] + beside <= limit).all(axis=1)
            largest = int(counts[fits].max(initial=1)) if whole else 1
            if not instance.allow_split or instance.penalised[job]:
                largest = gpus
            parts = -(-gpus // largest)
            jobs += [job] * parts
            pieces += [largest] * (parts - 1) + [gpus - largest * (parts - 1)]
        size = per_gpu[jobs] * np.array(pieces)[:, None]
        start = placed(size, instance.num_servers, limit)
        home, least = np.zeros(0, np.int64), np.inf
        for there, now in walk(size, start, instance.num_servers, limit, rng, steps=steps, late=late):
            if now < least:
                home, least = there, now
            if not now:
                break
        if len(home):
            table = np.zeros((instance.num_jobs, instance.num_servers), np.int64)
            np.add.at(table, (np.array(jobs), home), pieces)
            yield table
        if not least:
            return


def repaired(
    instance: Tuning, choices: IntArray, gpus: IntArray, *, late: Callable[[], bool] = lambda: False
) -> TuningPlan | None:
    """Give jobs on overloaded servers less, and then others what is left; None where that does not end overload.

    Parameters
    ----------
    instance : Tuning
    choices : (n,) int
        Configurations, one for each job.
    gpus : (n, s) int
        GPUs of each job on each server.
    late : callable
        Whether time is up, for others to get what is left.
    """
    server = np.where(np.array([instance.server_cpus, instance.server_memory]) > 0, 1.0, 0.0)
    size = np.maximum([instance.server_cpus, instance.server_memory], 1e-300)
    choices = choices.copy()
    part = gpus / instance.gpu_demands[:, None]
    used = instance.used(choices, gpus) / size

    def options(job: int, *, least: float = -np.inf) -> Iterator[tuple[int, float, FloatArray]]:
        """Yield other configurations of a job that gain more: number, gain and change of what servers have in use."""
        usable = instance.undominated[job]
        usable = usable[instance.usable_configs[job][usable]]
        more = instance.configs[job][usable] - instance.configs[job][choices[job]]
        for row in np.flatnonzero((usable != choices[job]) & (more[:, THROUGHPUT] > least)).tolist():
            yield int(usable[row]), float(more[row, THROUGHPUT]), part[job][:, None] * (more[row, :THROUGHPUT] / size)

    def beyond(used: FloatArray) -> float:
        return float(np.maximum(used - server - TINY, 0.0).sum())

    while (over := beyond(used)) > 0:
        worst = int(np.maximum(used - server, 0.0).sum(axis=1).argmax())
        ways = [
            (-gain / (over - after), job, other, change)
            for job in np.flatnonzero(gpus[:, worst]).tolist()
            for other, gain, change in options(job)
            if (after := beyond(used + change)) < over - TINY
        ]
        if not ways:
            return None
        _, job, other, change = min(ways, key=lambda way: way[:3])
        choices[job], used = other, used + change
    waiting = list(range(instance.num_jobs))
    while waiting and not late():
        job = waiting.pop()
        better = [
            (gain, other, change)
            for other, gain, change in options(job, least=0.0)
            if (used + change <= np.maximum(server + TINY, used)).all()
        ]
        if better:
            _, other, change = max(better, key=lambda way: way[:2])
            choices[job], used = other, used + change
    return TuningPlan(choices=choices, gpus=gpus)
