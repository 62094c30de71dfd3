"""Jobs of the next round: Gavel (OSDI'20), section 5 and Algorithm 1.

A policy's allocation is a fraction of time; a round is a few minutes in which each worker runs one
job or one pair.  Every row of the allocation (a job alone, or a pair) has a priority on every type.
Choose at most one eligible (row, type) for each job, within the workers of each pool, so that the total
priority of what runs is greatest: a multiple-choice knapsack with one capacity for each pool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.arithmetic import product, total
from instances.base import Instance, Plan, Violation, exceeding
from instances.gavel.sharing import Allocation
from instances.schema import Array, BoolArray, FloatArray, IntArray, default

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "Entries",
    "RoundAssignment",
    "RoundAssignmentPlan",
    "blocked_round",
    "example_allocation",
    "from_frame",
    "generate",
    "highest_apart",
]


@dataclass(frozen=True, eq=False)
class RoundAssignmentPlan(Plan):
    """The rows that run in the round.

    Attributes
    ----------
    chosen : (n+q, k) bool
        Whether row r runs on type j; rows are the jobs alone, then the pairs.
    """

    chosen: Annotated[BoolArray, Array(bool, "n+q k")]


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundAssignment(Instance[RoundAssignmentPlan]):
    """Priorities of a round.

    Attributes
    ----------
    priorities : (n+q, k) float
        Priority of each row on each type, at least 0.
    num_workers : (p,) int
        Workers in each pool.
    pools : (k,) int
        Pool that each type draws its workers from; type j is pool j by default.
    scale_factors : (n,) int
        Workers that each job holds at once.  There is no default: its length says how many of the
        rows are jobs.
    pairs : (q, 2) int
        Pairs of jobs of equal scale factor that may share workers; none by default.
    eligible : (n+q, k) bool
        Whether a row may run on a type, whatever its priority; all may by default.
    """

    problem = "gavel.round_assignment"
    sense = "max"
    measure = "total priority"
    plan_type = RoundAssignmentPlan

    scale_factors: Annotated[IntArray, Array(int, "n", minimum=1)]
    num_workers: Annotated[IntArray, Array(int, "p", minimum=0)]
    pairs: Annotated[IntArray, Array(int, "q 2", empty=True, index_of="n")] = default(
        lambda dims: np.zeros((0, 2), np.int64)
    )
    priorities: Annotated[FloatArray, Array(float, "n+q k", minimum=0)]
    pools: Annotated[IntArray, Array(int, "k", index_of="p")] = default(lambda dims: np.arange(dims["k"]))
    eligible: Annotated[BoolArray, Array(bool, "n+q k")] = default(
        lambda dims: np.ones((dims["n"] + dims.get("q", 0), dims["k"]), bool), later=True
    )

    def _check(self) -> None:
        if self.num_pairs:
            first, second = self.pairs.T
            for bad, must in (
                (first == second, "two different jobs"),
                (self.scale_factors[first] != self.scale_factors[second], "two jobs of equal scale factor"),
            ):
                if bad.any():
                    pair = int(np.flatnonzero(bad)[0])
                    raise self.refuse(
                        "pairs", f"got jobs {self.pairs[pair].tolist()} at index [{pair}], must be {must}"
                    )

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def num_pairs(self) -> int:
        """Number of pairs, q."""
        return len(self.pairs)

    @property
    def num_types(self) -> int:
        """Number of worker types, k."""
        return self.dims["k"]

    @cached_property
    def row_scale_factors(self) -> IntArray:
        """(n+q,) int: workers that each row holds."""
        return np.concatenate([self.scale_factors, self.scale_factors[self.pairs[:, 0]]])

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """Jobs of each row."""
        alone = [(job,) for job in range(self.num_jobs)]
        return (*alone, *(tuple(pair) for pair in self.pairs.tolist()))

    @cached_property
    def row_jobs(self) -> IntArray:
        """(n+q, 2) int: the jobs of each row, twice the same where it is one."""
        return np.concatenate([np.arange(self.num_jobs)[:, None].repeat(2, axis=1), self.pairs])

    @cached_property
    def fits(self) -> BoolArray:
        """(n+q, k) bool: whether a row is no wider than the type's pool."""
        fits: BoolArray = self.row_scale_factors[:, None] <= self.num_workers[self.pools][None, :]
        return fits

    @cached_property
    def urgent(self) -> BoolArray:
        """(n+q, k) bool: whether an entry may run, fits and has a priority above 0."""
        urgent: BoolArray = self.eligible & self.fits & (self.priorities > 0)
        return urgent

    def filled(self, plan: RoundAssignmentPlan | None = None, *, urgent: bool = True) -> RoundAssignmentPlan:
        """Return a plan, by default that which runs nothing, with what Algorithm 1 takes of the workers that it leaves.

        The highest priority comes first, 0 last; ties go to the lowest row, then type.

        Parameters
        ----------
        plan : RoundAssignmentPlan, optional
            One that breaks no rule.
        urgent : bool
            False leaves the plan what it is worth: only entries of priority 0 are taken.

        References
        ----------
        Gavel (OSDI'20), section 5, Algorithm 1: it takes combinations while workers are left.
        """
        entries = Entries(self)
        some = np.arange(len(entries.priorities)) if urgent else np.flatnonzero(entries.priorities == 0)
        kept = [] if plan is None else np.flatnonzero(plan.chosen[entries.rows, entries.kinds]).tolist()
        return entries.plan(entries.greedy(some, -entries.priorities[some], kept))

    def _value(self, plan: RoundAssignmentPlan) -> float:
        return float(self.priorities[plan.chosen].sum())

    def _broken_rules(self, plan: RoundAssignmentPlan) -> Iterator[Violation]:
        runs = plan.chosen.sum(axis=1)
        times = runs[: self.num_jobs]
        if self.num_pairs:
            np.add.at(times, self.pairs, runs[self.num_jobs :, None])
        yield from exceeding("once", times, 1)
        by_type = np.asarray(product(self.row_scale_factors, plan.chosen))
        used = [total(by_type[self.pools == pool]) for pool in range(len(self.num_workers))]
        yield from exceeding("pool_workers", used, self.num_workers)
        yield from exceeding("eligible", plan.chosen.astype(np.int64), self.eligible.astype(np.int64))

    def _draw(self, axes: Axes, plan: RoundAssignmentPlan | None) -> None:
        names = ["+".join(map(str, members)) for members in self.members]
        if plan is not None:
            pictures.time_fractions(
                axes,
                plan.chosen,
                scale_factors=self.row_scale_factors,
                pairs=self.pairs,
                pools=self.pools,
                num_workers=self.num_workers,
                texts=[f"job {name}" if "+" not in name else f"jobs {name}" for name in names],
            )
            axes.set_ylabel("workers that run a job in this round")
            marks = {"pair on the same workers": pictures.HATCHED} if self.num_pairs else {}
            pictures.legend(axes, [f"job {job}" for job in range(self.num_jobs)], marks)
            return
        workers = [f"type {kind}\n{count} workers" for kind, count in enumerate(self.num_workers[self.pools].tolist())]
        rows = [f"{name} × {scale}" for name, scale in zip(names, self.row_scale_factors.tolist(), strict=True)]
        pictures.matrix(axes, self.priorities, columns=workers, rows=rows)
        axes.set_xlabel("priority on each worker type")
        axes.set_ylabel("job or pair × workers")


class Entries:
    """Entries (row, type) of a round, in the order of rows and then of types.

    Parameters
    ----------
    instance : RoundAssignment
    among : (n+q, k) bool, optional
        Which entries; by default those that may run and fit.

    Attributes
    ----------
    rows, kinds : (e,) int
        Of the instance.
    priorities : (e,) float
    first, second : (e,) int
        Jobs of the row; both are the same where there is one.
    workers, pools : (e,) int
        What the row holds, and of which pool.
    """

    def __init__(self, instance: RoundAssignment, among: BoolArray | None = None) -> None:
        self.instance = instance
        self.rows, self.kinds = np.nonzero(instance.eligible & instance.fits if among is None else among)
        self.priorities = instance.priorities[self.rows, self.kinds]
        self.first, self.second = instance.row_jobs[self.rows].T
        self.workers, self.pools = instance.row_scale_factors[self.rows], instance.pools[self.kinds]

    def plan(self, chosen: Sequence[int]) -> RoundAssignmentPlan:
        """Return the plan in which these entries run."""
        where = np.zeros(self.instance.priorities.shape, bool)
        where[self.rows[chosen], self.kinds[chosen]] = True
        return RoundAssignmentPlan(chosen=where)

    def greedy(self, some: IntArray, keys: FloatArray | IntArray, kept: Sequence[int] = ()) -> list[int]:
        """Return the entries kept, and those of some that, by ascending keys, find their jobs idle and workers enough.

        Parameters
        ----------
        some : (m,) int
        keys : (m,) float or int
            Of these entries; of equal ones the entry that stands first in ``some`` comes first.
        kept : sequence of int
            Entries of a plan that breaks no rule.
        """
        chosen = list(kept)
        running, left = np.zeros(self.instance.num_jobs, bool), self.instance.num_workers.copy()
        running[self.first[chosen]] = running[self.second[chosen]] = True
        np.subtract.at(left, self.pools[chosen], self.workers[chosen])
        length = 1000
        while left.any():
            # What is out of the question by now is so for good, and need not be sorted.
            possible = ~(running[self.first[some]] | running[self.second[some]])
            possible &= self.workers[some] <= left[self.pools[some]]
            some, keys = some[possible], keys[possible]
            if not some.size:
                break
            soon = np.ones(len(some), bool)
            if len(some) > length:
                soon = keys <= np.partition(keys, length)[length]
            order = np.argsort(keys[soon], kind="stable")
            later, some, keys = some[~soon], some[soon][order], keys[~soon]
            length *= 2
            columns = (some, self.first[some], self.second[some], self.workers[some], self.pools[some])
            busy, free = set[int](), left.tolist()
            for entry, first, second, workers, pool in zip(*(column.tolist() for column in columns), strict=True):
                if first in busy or second in busy or workers > free[pool]:
                    continue
                chosen.append(entry)
                busy |= {first, second}
                free[pool] -= workers
            running[list(busy)] = True
            left, some = np.array(free), later
        return chosen


def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: int = 16,
    num_types: int = 3,
    workers_per_pool: int | None = None,
    pair_fraction: float = 0.1,
    wide: float = 0.5,
    ineligible: float = 0.0,
) -> RoundAssignment:
    """Rows with the priorities of a mechanism under way: most small, a few urgent.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs, num_types : int
        n jobs, k types, each a pool of its own.
    workers_per_pool : int, optional
        Workers of each type; by default a quarter of the jobs, at least 8.
    pair_fraction : float
        Fraction of the possible pairs that have a row.
    wide : float
        Hardness dial: fraction of the jobs that hold 2, 4 or 8 workers instead of 1.  At 0 the
        greedy order loses little; wide jobs of high priority can block many narrow ones.
    ineligible : float
        Fraction of the entries that may not run.
    """
    rng = np.random.default_rng(rng)
    workers = max(8, num_jobs // 4) if workers_per_pool is None else workers_per_pool
    scale_factors = np.where(rng.random(num_jobs) < wide, rng.choice([2, 4, 8], num_jobs), 1)
    scale_factors = np.minimum(scale_factors, workers)
    pairs = np.array([(a, b) for a in range(num_jobs) for b in range(a + 1, num_jobs)], np.int64).reshape(-1, 2)
    pairs = pairs[scale_factors[pairs[:, 0]] == scale_factors[pairs[:, 1]]]
    pairs = pairs[rng.random(len(pairs)) < pair_fraction]
    rows = num_jobs + len(pairs)
    priorities = np.round(rng.exponential(1.0, (rows, num_types)), 3)
    priorities[rng.random(priorities.shape) < 0.3] = 0.0
    return RoundAssignment(
        scale_factors=scale_factors,
        num_workers=np.full(num_types, workers),
        pairs=pairs,
        priorities=priorities,
        eligible=rng.random(priorities.shape) >= ineligible,
    )


from_frame = RoundAssignment.from_frame


def blocked_round() -> RoundAssignment:
    """Return a round in which the most urgent job blocks three others.

    On a pool of three workers, job 0 needs all three and has priority 4; jobs 1 to 3 need one each
    and have priority 3.  Algorithm 1 runs job 0, worth 4; the optimum is 9.
    """
    return RoundAssignment(
        scale_factors=np.array([3, 1, 1, 1]),
        num_workers=np.array([3]),
        priorities=np.array([[4.0], [3.0], [3.0], [3.0]]),
    )


def highest_apart() -> RoundAssignment:
    """Two jobs of one worker on two types of one: the highest priority, 3, leaves 0.1, and 2 + 2 is more."""
    return RoundAssignment(
        scale_factors=np.array([1, 1]), num_workers=np.array([1, 1]), priorities=np.array([[3.0, 2.0], [2.0, 0.1]])
    )


def example_allocation() -> Allocation:
    """X_example of section 3.1: the time of three jobs on a V100, a P100 and a K80, all of which are always busy."""
    return Allocation(time_fractions=np.array([[0.6, 0.4, 0.0], [0.2, 0.6, 0.2], [0.2, 0.0, 0.8]]))
