"""Common ground of Gavel's policies: the cluster, the jobs, allocations, and equal shares.

Gavel (OSDI'20) divides time.  An allocation X says which fraction of wall-clock time each job
spends on each worker type, alone or next to a partner on the same workers (space sharing, 3.1).
Policies differ only in what they ask of X.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from instances import pictures
from instances.arithmetic import dot
from instances.base import Instance, Plan, Violation, exceeding
from instances.schema import Array, BoolArray, FloatArray, IntArray, default

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Allocation", "Sharing"]


@dataclass(frozen=True, eq=False)
class Allocation(Plan):
    """Fractions of time.

    Attributes
    ----------
    time_fractions : (n+q, k) float
        Rows are the jobs alone, then the pairs; columns are the worker types.
    """

    time_fractions: Annotated[FloatArray, Array(float, "n+q k")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Sharing(Instance[Allocation]):
    """Jobs that share a heterogeneous cluster in time, and if they can, in space.

    A job may be wider than every pool, or make no steps alone anywhere.  It then receives nothing
    under X_equal and X_isolated, and what a policy makes of that is said with the policy.

    Attributes
    ----------
    throughputs : (n, k) float
        Steps/s of each job alone on each worker type; 0 where it cannot run, for which section 3.1
        writes minus infinity.
    num_workers : (p,) int
        Workers in each pool.
    pools : (k,) int
        Pool that each type draws its workers from; type j is pool j by default.  Two types on
        one pool model consolidated and unconsolidated placement.
    scale_factors : (n,) int
        Workers that each job holds at once, 1 by default.
    pairs : (q, 2) int
        Pairs of jobs that may share workers; both need the same scale factor.  None by default.
    pair_throughputs : (q, k, 2) float
        Steps/s of either partner when the pair shares a worker of each type.
    """

    plan_type: ClassVar[type[Plan]] = Allocation

    throughputs: Annotated[FloatArray, Array(float, "n k", minimum=0)]
    num_workers: Annotated[IntArray, Array(int, "p", minimum=0)]
    pools: Annotated[IntArray, Array(int, "k", index_of="p")] = default(lambda dims: np.arange(dims["k"]))
    scale_factors: Annotated[IntArray, Array(int, "n", minimum=1)] = default(lambda dims: np.ones(dims["n"], np.int64))
    pairs: Annotated[IntArray, Array(int, "q 2", empty=True, index_of="n")] = default(
        lambda dims: np.zeros((0, 2), np.int64)
    )
    pair_throughputs: Annotated[FloatArray, Array(float, "q k 2", minimum=0, empty=True)] = default(
        lambda dims: np.zeros((dims.get("q", 0), dims["k"], 2))
    )

    def _check(self) -> None:
        if not len(self.pairs):
            return
        first, second = self.pairs.T
        for bad, must in (
            (first == second, "two different jobs"),
            (self.scale_factors[first] != self.scale_factors[second], "two jobs of equal scale factor"),
        ):
            if bad.any():
                pair = int(np.flatnonzero(bad)[0])
                raise self.refuse("pairs", f"got jobs {self.pairs[pair].tolist()} at index [{pair}], must be {must}")
        keys = np.sort(self.pairs, axis=1) @ np.array([self.num_jobs, 1])
        order = np.argsort(keys, kind="stable")
        repeated = np.flatnonzero(np.diff(keys[order]) == 0)
        if repeated.size:
            pair = int(order[repeated[0] + 1])
            raise self.refuse("pairs", f"got jobs {self.pairs[pair].tolist()} at index [{pair}] a second time")

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_types(self) -> int:
        """Number of worker types, k."""
        return self.dims["k"]

    @property
    def num_pairs(self) -> int:
        """Number of pairs, q."""
        return len(self.pairs)

    @cached_property
    def row_scale_factors(self) -> IntArray:
        """(n+q,) int: workers that each row of an allocation holds at once."""
        return np.concatenate([self.scale_factors, self.scale_factors[self.pairs[:, 0]]])

    @cached_property
    def fits(self) -> BoolArray:
        """(n+q, k) bool: whether a row's workers fit the type's pool at all.

        The printed constraint (3) would give a job that is wider than its pool time that no
        round can realise.
        """
        fits: BoolArray = self.row_scale_factors[:, None] <= self.num_workers[self.pools][None, :]
        return fits

    @cached_property
    def runs(self) -> BoolArray:
        """(n+q, k) bool: whether a row makes progress on a type: it fits, and a job of it has a throughput there."""
        together = self.pair_throughputs.any(axis=2)
        runs: BoolArray = self.fits & np.concatenate([self.throughputs > 0, together.reshape(-1, self.num_types)])
        return runs

    def throughput(self, plan: Allocation) -> FloatArray:
        """(n,) float: steps/s that each job receives, over all rows that contain it (3.1)."""
        x = plan.time_fractions if self.num_jobs else np.zeros((0, self.num_types))
        received: FloatArray = (self.throughputs * x[: self.num_jobs]).sum(axis=1)
        if self.num_pairs:
            shared = (self.pair_throughputs * x[self.num_jobs :, :, None]).sum(axis=1)
            received = received + np.bincount(self.pairs.ravel(), weights=shared.ravel(), minlength=self.num_jobs)
        return received

    @cached_property
    def pool_throughputs(self) -> FloatArray:
        """(n, p) float: steps/s of each job alone on each pool, at its best placement there."""
        best = np.zeros((self.num_jobs, len(self.num_workers)))
        usable = np.where(self.fits[: self.num_jobs], self.throughputs, 0.0)
        for kind, pool in enumerate(self.pools):
            best[:, pool] = np.maximum(best[:, pool], usable[:, kind])
        return best

    @cached_property
    def fastest_throughputs(self) -> FloatArray:
        """(n,) float: steps/s of each job alone on the fastest type that it fits; 0 for one that runs nowhere alone."""
        fastest: FloatArray = self.pool_throughputs.max(axis=1)
        return fastest

    @cached_property
    def equal_share_throughputs(self) -> FloatArray:
        """(n,) float: throughput(m, X_equal), a share of each pool by its size (4.1).

        A pool that a job does not fit counts in the sizes and gives it nothing; 0 for a job that runs
        nowhere alone.
        """
        equal: FloatArray = dot(self.pool_throughputs, self.num_workers / max(1, self.num_workers.sum()))
        return equal

    @cached_property
    def level_per_throughput(self) -> FloatArray:
        """(n,) float: normalised throughput that one step/s of each job is worth.

        It is the scale factor over throughput(m, X_equal), and 0 where that is 0: a job that an equal
        share gives nothing has no yardstick, and its normalised throughput is 0 whatever it receives.
        """
        equal = self.equal_share_throughputs
        level: FloatArray = np.divide(self.scale_factors, equal, out=np.zeros(len(equal)), where=equal > 0)
        return level

    @cached_property
    def greatest_throughputs(self) -> FloatArray:
        """(n,) float: steps/s of each job in the row, alone or in a pair, and on the type where it is fastest."""
        return self.greatest(np.ones(self.num_types))

    def greatest(self, worth: FloatArray) -> FloatArray:
        """(n,) float: what each job's throughput is worth at most, a step/s being worth (k,) ``worth`` on each type."""
        alone = np.where(self.fits[: self.num_jobs], self.throughputs * worth, 0.0)
        greatest: FloatArray = alone.max(axis=1)
        if self.num_pairs:
            worths = self.pair_throughputs * worth[:, None]
            np.maximum.at(greatest, self.pairs, np.where(self.fits[self.num_jobs :, :, None], worths, 0.0).max(axis=1))
        return greatest

    def normalized_throughputs(self, plan: Allocation) -> FloatArray:
        """(n,) float: scale factor times throughput, relative to the equal share's (4.1)."""
        normalized: FloatArray = self.throughput(plan) * self.level_per_throughput
        return normalized

    def _broken_rules(self, plan: Allocation) -> Iterator[Violation]:
        x = plan.time_fractions
        yield from exceeding("time_fraction_at_least_0", 0, x)
        yield from exceeding("time_fraction_at_most_1", x, 1)
        yield from exceeding("fits_pool", np.where(self.fits, 0.0, x), 0)
        job_time, workers = self.loads(plan)
        yield from exceeding("job_time", job_time, 1)
        yield from exceeding("pool_capacity", workers, self.num_workers)

    def loads(self, plan: Allocation) -> tuple[FloatArray, FloatArray]:
        """(n,) float: time of each job over all rows; (p,) float: workers of each pool in use."""
        row_time = plan.time_fractions.sum(axis=1)
        job_time = row_time[: self.num_jobs].copy()
        if self.num_pairs:
            np.add.at(job_time, self.pairs.ravel(), np.repeat(row_time[self.num_jobs :], 2))
        type_workers = dot(self.row_scale_factors, plan.time_fractions)
        workers: FloatArray = np.bincount(self.pools, weights=type_workers, minlength=len(self.num_workers)).astype(
            float
        )
        return job_time, workers

    def isolated_share(self) -> Allocation:
        """X_isolated: a 1/n share of every pool for each job, on its best placement there (4.1).

        A job of scale factor s gets ``num_workers / (n * s)`` of each pool, and its row is scaled
        down to sum to at most 1; undivided by s it would be infeasible for wide jobs.
        """
        shares = self.num_workers[None, :] / (max(1, self.num_jobs) * self.scale_factors[:, None])
        return self.on_best_placement(shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True)))

    @cached_property
    def isolated_throughputs(self) -> FloatArray:
        """(n,) float: throughput(m, X_isolated); 0 for a job that runs nowhere alone."""
        return self.throughput(self.isolated_share())

    def on_best_placement(self, pool_fractions: FloatArray) -> Allocation:
        """Jobs alone, with (n, p) fractions per pool spent on the pool's best type for each job."""
        x = np.zeros((self.num_jobs + self.num_pairs, self.num_types))
        usable = np.where(self.fits[: self.num_jobs], self.throughputs, -1.0)
        for pool in range(len(self.num_workers)):
            kinds = np.flatnonzero(self.pools == pool)
            if not kinds.size:
                continue
            best = kinds[usable[:, kinds].argmax(axis=1)]
            jobs = np.flatnonzero(usable[np.arange(self.num_jobs), best] >= 0)
            x[jobs, best[jobs]] = pool_fractions[jobs, pool]
        return Allocation(time_fractions=x)

    def _draw(self, axes: Axes, plan: Allocation | None) -> None:
        if plan is not None:
            pictures.time_fractions(axes, plan.time_fractions, **self._columns())
            pictures.legend(axes, [f"job {job}" for job in range(self.num_jobs)], self._marks())
            return
        fastest = self.throughputs.max(axis=1, keepdims=True)
        pictures.matrix(axes, self.throughputs, columns=self._type_names(), rows=self._job_names(), scale=fastest)
        beside = f"; {self.num_pairs} pairs may share workers" if self.num_pairs else ""
        axes.set_xlabel(f"throughput alone, steps/s, by worker type{beside}")
        axes.set_ylabel("job" if (self.scale_factors == 1).all() else "job × workers it holds at once")

    def _columns(self) -> dict[str, Any]:
        """Return the arguments of :func:`instances.pictures.time_fractions` that describe the cluster."""
        return {
            "scale_factors": self.row_scale_factors,
            "pairs": self.pairs,
            "pools": self.pools,
            "num_workers": self.num_workers,
        }

    def _marks(self) -> dict[str, pictures.Look]:
        """Return the marks that a legend explains beside the jobs' colours."""
        return {"pair on the same workers": pictures.HATCHED} if self.num_pairs else {}

    def _type_names(self) -> list[str]:
        workers = self.num_workers[self.pools].tolist()
        shared = len(set(self.pools.tolist())) < self.num_types
        return [
            f"type {kind}\n{count} workers" + (f" of pool {pool}" if shared else "")
            for kind, (count, pool) in enumerate(zip(workers, self.pools.tolist(), strict=True))
        ]

    def _job_names(self) -> list[str]:
        if (self.scale_factors == 1).all():
            return [str(job) for job in range(self.num_jobs)]
        return [f"{job} × {workers}" for job, workers in enumerate(self.scale_factors.tolist())]
