"""CPU and memory over machine types: Synergy (OSDI'22), appendix A.2, program (22)-(26).

As :mod:`instances.synergy.allocation`, with several types of machine.  A job runs on one type, its
throughput depends on the type too, and every type has its own CPUs, memory and GPUs:

    max  sum_j W_j[i_j, c_j, m_j]
    s.t. sum_{j: i_j = i} c_j <= C_i,   m_j likewise <= M_i,   g_j likewise <= G_i    for each type i,
         W_j[i_j, c_j, m_j] >= W_j^fair.

As printed / as built
---------------------
The printed program has no GPU capacity per type, so all jobs could crowd onto the fastest type;
here each type's GPUs are a limit.  W^fair is given by an oracle in print: that is the field
``fair_throughputs``.  The default is this library's: of the types on which the job has a
configuration at or below its GPU-proportional share, the least of the best throughputs there, so
that on whichever type a job ends up, its proportional share satisfies (26).  The server cap of
section 6 applies on each type that can hold the job's GPUs in one server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Self, Unpack

import numpy as np

from instances import pictures
from instances.arithmetic import product, total
from instances.base import Instance, InstanceError, PlanError, Violation, exceeding
from instances.schema import Array, BoolArray, FloatArray, IntArray, Ragged, Scalar, default
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.placement import SynergyPlacement
from instances.synergy.profiles import CPUS_PER_GPU, MEMORY_SHARES, draw_matrix
from instances.synergy.sensitivity import (
    CPU,
    MEMORY,
    THROUGHPUT,
    above_server,
    at_least_fair,
    draw_sensitivity,
    draw_shares,
    fastest,
    from_matrix,
    undominated,
    within,
    within_server,
)
from instances.synergy.synthetic import SERVER_CPUS, SERVER_GPUS, SERVER_MEMORY, DemandOptions, draw_demands

__all__ = ["HeterogeneousAllocation", "from_frame", "generate", "one_fast_machine"]

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, kw_only=True)
class HeterogeneousAllocation(Instance[SynergyAllocationPlan]):
    """Jobs that divide CPUs, memory and GPUs of several machine types.

    ``num_gpus`` is the sum of ``num_servers * server_gpus`` over the types.

    Attributes
    ----------
    num_servers : (k,) int
        Servers of each type.
    server_gpus : (k,) int
        GPUs of a server of each type.
    server_cpus, server_memory : (k,) float
        CPU cores and memory (GB) of a server of each type.
    gpu_demands : (n,) int
        GPUs that each job holds.
    configs : tuple of n arrays (a_j, 3)
        For each job the CPU cores, memory (GB) and throughput that it may be given, in total for
        the job.
    config_types : tuple of n arrays (a_j,) int
        The machine type of each configuration.
    fair_throughputs : (n,) float
        Throughput that each job must at least have, as an oracle gives it; the default is described above.
    server_cap : bool
        Whether a job is given at most one server's CPUs and memory on the types of which one server holds
        its GPUs (section 6).  True by default.
    """

    problem = "synergy.heterogeneous_allocation"
    sense = "max"
    measure = "total throughput"
    plan_type = SynergyAllocationPlan

    num_servers: Annotated[IntArray, Array(int, "k", minimum=1)]
    server_gpus: Annotated[IntArray, Array(int, "k", minimum=1)]
    server_cpus: Annotated[FloatArray, Array(float, "k", minimum=0)]
    server_memory: Annotated[FloatArray, Array(float, "k", minimum=0)]
    gpu_demands: Annotated[IntArray, Array(int, "n", minimum=1)]
    configs: Annotated[tuple[FloatArray, ...], Ragged(float, "n a 3", minimum=0)]
    config_types: Annotated[tuple[IntArray, ...], Ragged(int, "n a", minimum=0)]
    fair_throughputs: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"]))
    server_cap: Annotated[bool, Scalar(bool)] = True

    def __post_init__(self) -> None:
        # The default needs the other fields, which are only known to be sound afterwards.
        left_out = not isinstance(self.fair_throughputs, (np.ndarray, Sequence))
        super().__post_init__()
        if left_out:
            object.__setattr__(self, "fair_throughputs", self._least_proportional_throughputs())

    def _check(self) -> None:
        for job, (table, types) in enumerate(zip(self.configs, self.config_types, strict=True)):
            if len(types) != len(table):
                raise self.refuse("config_types", f"entry {job}: got {len(types)} types, must be {len(table)}")
            if types.max() >= self.num_types:
                raise self.refuse(
                    "config_types",
                    f"entry {job}: got type {types.max()}, must be below the number of types, {self.num_types}",
                )

    def _least_proportional_throughputs(self) -> FloatArray:
        fair = []
        for job, (table, best) in enumerate(zip(self.configs, self.proportional_choices, strict=True)):
            known = best[best >= 0]
            if not known.size:
                raise self.refuse(
                    "fair_throughputs",
                    f"left out, but job {job} has no configuration at or below its GPU-proportional share "
                    "on any type; must be given",
                )
            fair.append(table[known, THROUGHPUT].min())
        least = np.array(fair, float)
        least.setflags(write=False)
        return least

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_gpus(self) -> int:
        """GPUs of all types."""
        return int(product(self.num_servers, self.server_gpus))

    @property
    def num_types(self) -> int:
        """Number of worker types, k."""
        return self.dims["k"]

    @cached_property
    def capacity(self) -> FloatArray:
        """(k, 3) float: CPU cores, memory (GB) and GPUs of each type."""
        sizes: FloatArray = np.column_stack([self.server_cpus, self.server_memory, self.server_gpus])
        capacity: FloatArray = self.num_servers[:, None] * sizes
        return capacity

    @cached_property
    def shares(self) -> FloatArray:
        """(n, k, 2) float: CPU cores and memory (GB) of each job's GPU-proportional share of each type."""
        per_gpu = np.column_stack([self.server_cpus, self.server_memory]) / self.server_gpus[:, None]
        shares: FloatArray = self.gpu_demands[:, None, None] * per_gpu
        return shares

    @cached_property
    def proportional_choices(self) -> tuple[IntArray, ...]:
        """For each job, (k,) int: its fastest configuration at or below its share of each type; -1 if none."""
        return tuple(
            np.array([fastest(table, (types == kind) & within(table, shares[kind])) for kind in range(self.num_types)])
            for table, types, shares in zip(self.configs, self.config_types, self.shares, strict=True)
        )

    @cached_property
    def proportional_throughputs(self) -> FloatArray:
        """(n, k) float: each job's throughput with its GPU-proportional share of each type; 0 where it has none.

        With ``num_servers * server_gpus`` workers of each type and ``gpu_demands`` as scale factors, they are a cluster
        of Gavel's policies, such as :class:`instances.gavel.max_min_fairness.MaxMinFairness`.
        """
        jobs = zip(self.configs, self.proportional_choices, strict=True)
        found = [np.where(best >= 0, table[best, THROUGHPUT], 0.0) for table, best in jobs]
        return np.array(found).reshape(self.num_jobs, self.num_types)

    def fair_under(self, time_fractions: FloatArray) -> Self:
        """Return the same jobs with the fair throughputs that an allocation in time gives them (A.2.2).

        The paper's oracle is a scheduler that knows types, such as Gavel.  A job that divides its time over types has
        the mean of its throughputs there, which may be more than every slower type gives: (26) can then leave no plan.

        Parameters
        ----------
        time_fractions : (n, k) float
            Part of the time that each job runs on each type, as of :class:`instances.gavel.sharing.Allocation`.

        Raises
        ------
        InstanceError
            When they are not n times k numbers.
        """
        fractions = np.asarray(time_fractions, float)
        if fractions.shape != (self.num_jobs, self.num_types):
            wanted = f"({self.num_jobs}, {self.num_types})"
            raise InstanceError(f"time_fractions: got shape {fractions.shape}, must be {wanted}")
        return replace(self, fair_throughputs=total(self.proportional_throughputs * fractions, axis=1))

    @cached_property
    def fair_configs(self) -> tuple[BoolArray, ...]:
        """For each job, (a_j,) bool: the configurations that give it its fair throughput."""
        return tuple(
            at_least_fair(table, fair) for table, fair in zip(self.configs, self.fair_throughputs.tolist(), strict=True)
        )

    @cached_property
    def allowed_configs(self) -> tuple[BoolArray, ...]:
        """For each job, (a_j,) bool: the configurations that the server cap allows."""
        found = []
        for table, types, gpus in zip(self.configs, self.config_types, self.gpu_demands.tolist(), strict=True):
            allowed = np.ones(len(table), bool)
            for kind in range(self.num_types) if self.server_cap else ():
                rows = np.flatnonzero(types == kind)
                server = (self.server_gpus[kind], self.server_cpus[kind], self.server_memory[kind])
                allowed[rows] = within_server(table[rows], gpus, *server)
            found.append(allowed)
        return tuple(found)

    @cached_property
    def usable_configs(self) -> tuple[BoolArray, ...]:
        """For each job, (a_j,) bool: the configurations that are fair and that the server cap allows."""
        return tuple(fair & allowed for fair, allowed in zip(self.fair_configs, self.allowed_configs, strict=True))

    @cached_property
    def undominated(self) -> tuple[IntArray, ...]:
        """For each job, the allowed configurations that no other one of the same type dominates; of all, where none is.

        Allowed are those that the server cap allows.
        """
        found = []
        for table, types, allowed in zip(self.configs, self.config_types, self.allowed_configs, strict=True):
            counted = allowed if allowed.any() else np.ones(len(table), bool)
            of_type = [np.flatnonzero((types == kind) & counted) for kind in range(self.num_types)]
            found.append(np.sort(np.concatenate([rows[undominated(table[rows])] for rows in of_type])))
        return tuple(found)

    def uncapped(self) -> HeterogeneousAllocation:
        """Return the same jobs without the cap of one server's CPUs and memory."""
        return replace(self, server_cap=False)

    def restricted_to(self, jobs: Sequence[int] | IntArray) -> HeterogeneousAllocation:
        """Return the same machines with some of the jobs only, in the order given."""
        kept = np.asarray(jobs, np.int64)
        return replace(
            self,
            gpu_demands=self.gpu_demands[kept],
            configs=tuple(self.configs[job] for job in kept.tolist()),
            config_types=tuple(self.config_types[job] for job in kept.tolist()),
            fair_throughputs=self.fair_throughputs[kept],
        )

    def jobs_on(self, plan: SynergyAllocationPlan, kind: int) -> IntArray:
        """(k,) int: the jobs that a plan gives a configuration of a type, in ascending order."""
        known = np.setdiff1d(np.arange(self.num_jobs), self._unknown(plan))
        return np.array([job for job in known.tolist() if self.config_types[job][plan.choices[job]] == kind], np.int64)

    def placement(self, plan: SynergyAllocationPlan, kind: int, *, integral_gpus: bool = False) -> SynergyPlacement:
        """Return the second stage of one type (A.2.3, by the program of A.1.3): place the jobs that a plan has there.

        Its jobs are those of :meth:`jobs_on`.  Jobs with choice -1, which wait, have no part in it.
        """
        jobs = self.jobs_on(plan, kind)
        given = [self.configs[job][plan.choices[job], :THROUGHPUT] for job in jobs.tolist()]
        return SynergyPlacement(
            num_servers=int(self.num_servers[kind]),
            server_gpus=int(self.server_gpus[kind]),
            server_cpus=float(self.server_cpus[kind]),
            server_memory=float(self.server_memory[kind]),
            demands=np.column_stack([self.gpu_demands[jobs], np.array(given, float).reshape(-1, THROUGHPUT)]),
            integral_gpus=integral_gpus,
        )

    def _unknown(self, plan: SynergyAllocationPlan) -> IntArray:
        counts = np.array([len(table) for table in self.configs])
        return np.flatnonzero((plan.choices < 0) | (plan.choices >= counts))

    def _value(self, plan: SynergyAllocationPlan) -> float:
        unknown = self._unknown(plan)
        if unknown.size:
            job = unknown[0]
            raise PlanError(
                f"{self.problem}: choices is {plan.choices[job]} at index [{job}], "
                f"must be 0 to {len(self.configs[job]) - 1}"
            )
        return float(sum(table[choice, THROUGHPUT] for table, choice in zip(self.configs, plan.choices, strict=True)))

    def _broken_rules(self, plan: SynergyAllocationPlan) -> Iterator[Violation]:
        unknown = set(self._unknown(plan).tolist())
        used = np.zeros((self.num_types, 2))
        holders: list[list[int]] = [[] for _ in range(self.num_types)]
        for job, choice in enumerate(plan.choices.tolist()):
            if job in unknown:
                yield Violation("one_config", (job,), 1.0)
                continue
            config, fair, kind = self.configs[job][choice], self.fair_throughputs[job], self.config_types[job][choice]
            used[kind] += config[:THROUGHPUT]
            holders[kind].append(job)
            if not self.allowed_configs[job][choice]:
                yield from above_server(job, config, self.server_cpus[kind], self.server_memory[kind])
            if not self.fair_configs[job][choice]:
                yield Violation("fair_throughput", (job,), float(fair - config[THROUGHPUT]))
        for resource, name in enumerate(("cpus", "memory")):
            yield from exceeding(name, used[:, resource], self.capacity[:, resource])
        held = [total(self.gpu_demands[jobs]) for jobs in holders]
        yield from exceeding("gpus", held, self.num_servers.astype(object) * self.server_gpus.astype(object))

    def _draw(self, axes: Axes, plan: SynergyAllocationPlan | None) -> None:
        if plan is None:
            self._draw_sensitivity(axes)
            return
        choices = plan.choices.copy()
        unknown = self._unknown(plan)
        choices[unknown] = 0
        kinds = np.array([types[choice] for types, choice in zip(self.config_types, choices, strict=True)], np.int64)
        given = np.array([table[c] for table, c in zip(self.configs, choices, strict=True)], float).reshape(-1, 3)
        given[unknown] = 0.0
        # Jobs on the same type stand together.
        order = np.argsort(kinds, kind="stable")
        shares = self.shares[np.arange(self.num_jobs), kinds]
        draw_shares(axes, given[order], shares[order], self.fair_throughputs[order])
        pictures.number_axis(axes.xaxis, self.num_jobs, [str(job) for job in order.tolist()])
        if self.num_jobs > pictures.MOST_NUMBERED:
            axes.set_xticks([])
        known = np.setdiff1d(np.arange(self.num_jobs), unknown)
        edge, lines = -0.5, []
        for kind, (cpus, memory, gpus) in enumerate(self.capacity.tolist()):
            on = known[kinds[known] == kind]
            lines.append(
                f"type {kind}: {len(on)} jobs, {given[on, CPU].sum():.5g} of {cpus:g} cores, "
                f"{given[on, MEMORY].sum():.5g} of {memory:g} GB, {self.gpu_demands[on].sum()} of {gpus:g} GPUs"
            )
            count = int((kinds == kind).sum())
            if kind % 2:
                axes.axvspan(edge, edge + count, color=pictures.OUTLINE, alpha=0.1, linewidth=0)
            edge += count
        axes.set_xlabel("job, grouped by machine type (odd types shaded)\n" + "\n".join(lines[:4]), fontsize=8)

    def _draw_sensitivity(self, axes: Axes) -> None:
        styles = ("-", "--", ":", "-.")
        for kind in range(self.num_types):
            on = [types == kind for types in self.config_types]
            draw_sensitivity(
                axes,
                [table[rows] for table, rows in zip(self.configs, on, strict=True)],
                self.gpu_demands,
                self.fair_throughputs,
                linestyle=styles[kind % len(styles)],
            )
        pictures.from_zero(axes, y=True)
        axes.set_xlabel("CPU cores per GPU, with memory as wanted (solid: type 0, dashed: type 1, ...)")
        pictures.legend(axes, [f"job {job} ({gpus} GPU)" for job, gpus in enumerate(self.gpu_demands.tolist())])


def generate(
    rng: np.random.Generator | int,
    *,
    num_servers: int = 4,
    heterogeneity: float = 3.0,
    server_cap: bool = True,
    **demands: Unpack[DemandOptions],
) -> HeterogeneousAllocation:
    """Synthetic jobs on two types of server: plain ones, and as many with faster GPUs and more cores each.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_servers : int
        Servers of each type, of 8 GPUs and 500 GB; 24 cores on the first type, 32 on the second.
    heterogeneity : float
        Hardness dial: on the second type a job is faster by a factor drawn uniformly from 1 to this.
    server_cap : bool
        Whether a job is given at most one server's CPUs and memory.
    **demands
        Task mix and GPUs of the jobs, as for :func:`instances.synergy.synthetic.draw_demands`.
    """
    rng = np.random.default_rng(rng)
    server_cpus = np.array([SERVER_CPUS, 32.0])
    tasks, gpu_demands = draw_demands(rng, 2 * num_servers * SERVER_GPUS, **demands)
    cpus = np.array(CPUS_PER_GPU)
    memory = np.floor(100 * SERVER_MEMORY / SERVER_GPUS * np.array(MEMORY_SHARES)) / 100
    configs, types = [], []
    for task, gpus in zip(tasks, gpu_demands.tolist(), strict=True):
        tables = []
        # The same job on both types: the same stream of numbers draws its profile.
        state = int(rng.integers(2**32))
        faster = rng.uniform(1, heterogeneity)
        for kind, factor in enumerate((1.0, faster)):
            share = np.array([server_cpus[kind], SERVER_MEMORY]) / SERVER_GPUS
            matrix = draw_matrix(
                np.random.default_rng(state), task, gpus, cpus=gpus * cpus, memory=gpus * memory, share=gpus * share
            )
            tables.append(from_matrix(np.round(factor * matrix / gpus, 4), cpus, memory, gpus=gpus))
        configs.append(np.concatenate(tables))
        types.append(np.repeat([0, 1], len(tables[0])))
    return HeterogeneousAllocation(
        num_servers=np.full(2, num_servers),
        server_gpus=np.full(2, SERVER_GPUS),
        server_cpus=server_cpus,
        server_memory=np.full(2, SERVER_MEMORY),
        gpu_demands=gpu_demands,
        configs=tuple(configs),
        config_types=tuple(types),
        server_cap=server_cap,
    )


from_frame = HeterogeneousAllocation.from_frame


def one_fast_machine() -> HeterogeneousAllocation:
    """Two jobs of one GPU; one machine is twice as fast for both, and has one GPU.

    Without the limit on GPUs both jobs would share the fast machine's 4 cores, 2 each, for a
    total of 8.  With it, one of them runs on the slow machine, for a total of 6.
    """
    table = np.array([[2.0, 10.0, 2.0], [2.0, 10.0, 4.0]])
    return HeterogeneousAllocation(
        num_servers=np.array([1, 1]),
        server_gpus=np.array([1, 1]),
        server_cpus=np.array([4.0, 4.0]),
        server_memory=np.array([20.0, 20.0]),
        gpu_demands=np.array([1, 1]),
        configs=(table, table),
        config_types=(np.array([0, 1]), np.array([0, 1])),
    )
