"""Gavel (OSDI'20): jobs share worker types in time, and if they can in space, under any of its policies.

A decision is an instance of the policy: the jobs that are there and the steps that each has left.  Its allocation X is
realised in one of two ways:

in rounds
    In each round every worker runs one job or one pair (section 5): X is found anew where jobs have come or gone, and
    an instance of ``gavel.round_assignment`` says what runs, with priorities that bring what rows have received to X.
    What a row was to receive and has received is added up since it was first there, because jobs come and go in nearly
    every round: with a constant X that is the printed quotient of X and f.
exactly
    Every job gets the throughput of X, as if time were divided without end; the ideal that section 7.5 compares with.
    Nothing is restarted, and X is found anew at every arrival and completion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from heuristics.gavel.round_assignment import placement, priorities
from instances.base import TOLERANCE, InstanceError
from instances.data.gavel import read_throughputs
from instances.data.lines import Source
from instances.files import instance_type
from instances.gavel import traces
from instances.gavel.priced import PricedSharing
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import BoolArray, FloatArray, IntArray, declarations
from validation.errors import ReplayError
from validation.replay import workloads
from validation.replay.engine import Ask, Decide, Decision, Jobs, State
from validation.replay.plans import renumbered
from validation.replay.ways import Ways

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JITTER", "PROBLEMS", "Policy", "Servers", "cost_workload", "from_jobs", "generate"]

PROBLEMS = (
    "gavel.max_min_fairness",
    "gavel.finish_time_fairness",
    "gavel.fifo",
    "gavel.shortest_job_first",
    "gavel.makespan",
    "gavel.total_throughput",
    "gavel.throughput_per_dollar",
    "gavel.cost",
    "gavel.hierarchical_fairness",
    "gavel.round_assignment",
)

IN_ORDER = ("gavel.fifo", "gavel.hierarchical_fairness")
"""Policies that take the order of the jobs for that of their arrival."""

JITTER = 1e-6
"""Relative error of a job's weight, steps or speed in what the decision maker sees, where ties have a seed."""

EXACT = "exact"

DAY = 24 * workloads.HOUR
COST_MODELS = ("ResNet-50", "A3C")
"""Models of section 7.3's cost workload."""
DAYS = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Its durations, days."""
SLO_FACTORS = (1.2, 2.0, 10.0)
"""Its SLOs, relative to the durations."""

MOST_SHARING = 100
"""Most jobs of which every pair is a way to run, where schedules are bounded."""


@dataclass(frozen=True, eq=False)
class Servers:
    """Servers on which workers of a pool stand, and the speed of jobs whose workers are spread over more than need be.

    Attributes
    ----------
    size : int
        Workers of each server; the last one of a pool may have fewer.
    throughputs : (n, k) float
        Steps/s of each job alone on each worker type, spread.
    together : (u, u, k, 2) float, optional
        Steps/s of either partner, spread; as :attr:`Policy.together`.
    unconsolidated : (k,) bool
        Worker types of the policy whose jobs are to be spread (section 3.1).
    """

    size: int
    throughputs: FloatArray
    together: FloatArray | None
    unconsolidated: BoolArray


@dataclass(frozen=True, eq=False)
class Policy:
    """Jobs on a heterogeneous pool under a policy.

    Attributes
    ----------
    jobs : Jobs
        Work in steps; deadlines are SLOs.
    problem : str
        The policy's name.
    throughputs : (n, k) float
        Steps/s of each job alone on each worker type, 0 where it does not run.
    num_workers : (p,) int
        Workers of each pool.
    pools : (k,) int
        Pool of each worker type.
    scale_factors : (n,) int
        Workers that each job holds at once.
    kinds : (n,) int, optional
        Job type of each job, with ``together``.
    together : (u, u, k, 2) float, optional
        Steps/s of either partner, for each two of u job types; without it jobs do not share workers.
    of_jobs : mapping of str to (n,) array
        Fields of the policy that each job has one of: ``weights``, ``entities``.
    fields : mapping
        Other fields of the policy: ``costs``, ``entity_weights``, ``entity_policies``, ``paid``.
    round_length : float, optional
        Realise allocations in rounds of so many seconds; None divides time without end.
    policy_by : str
        Who decides the policy where nobody was named for it.
    servers : Servers, optional
        Where the workers of each round's jobs stand (:func:`heuristics.gavel.round_assignment.placement`), and what
        that does to their speed; without it, workers of a pool are alike.
    """

    jobs: Jobs
    problem: str
    throughputs: FloatArray
    num_workers: IntArray
    pools: IntArray
    scale_factors: IntArray
    kinds: IntArray | None = None
    together: FloatArray | None = None
    of_jobs: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    round_length: float | None = None
    policy_by: str = EXACT
    servers: Servers | None = None

    def __post_init__(self) -> None:
        kind = instance_type(self.problem)
        if not issubclass(kind, Sharing):
            raise ReplayError(f"problem: got {self.problem!r}, must be a policy of Gavel")
        if self.servers is not None and self.round_length is None:
            raise ReplayError("servers: jobs stand on servers in rounds; got a round_length of 0")

    @property
    def name(self) -> str:
        """Name of the setting in tables."""
        return f"{self.problem}, " + ("exactly" if self.round_length is None else f"rounds of {self.round_length:g} s")

    @cached_property
    def capacity(self) -> FloatArray:
        """Workers of each pool, (p,) float; of each server where they are told, (s,)."""
        if self.servers is None:
            return np.asarray(self.num_workers, float)
        sizes = [
            min(self.servers.size, workers - start)
            for workers in self.num_workers.tolist()
            for start in range(0, workers, self.servers.size)
        ]
        return np.array(sizes, float)

    @cached_property
    def pool_of(self) -> IntArray:
        """Pool of each entry of the capacity."""
        size = 0 if self.servers is None else self.servers.size
        servers = [-(-workers // size) if size else 1 for workers in self.num_workers.tolist()]
        return np.repeat(np.arange(len(self.num_workers)), servers)

    all_run = True

    def begin(self) -> Decide:
        """Return the function that decides in one replay."""
        return _Course(self).decide

    def ways(self) -> Ways:
        """Return each job on each type, and with each partner; of many jobs with its best one, which pays for half."""
        if self.servers is not None:
            # Wherever a job stands, it is no faster than this.
            shared, spread = self.together, self.servers.together
            if shared is not None and spread is not None:
                shared = np.maximum(shared, spread)
            fastest = np.maximum(self.throughputs, self.servers.throughputs)
            return replace(self, throughputs=fastest, together=shared, servers=None).ways()
        fits = self.scale_factors[:, None] <= self.num_workers[self.pools][None, :]
        job, kind = np.nonzero(fits & (self.throughputs > 0))
        way, rate, width = np.arange(len(job)), self.throughputs[job, kind], self.scale_factors[job].astype(float)
        sharing = self.together is not None and self.kinds is not None
        each_pair = len(self.jobs) <= MOST_SHARING
        if sharing and each_pair:
            fields = pairs_of(self, np.arange(len(self.jobs)))
            pairs, rates = fields["pairs"], fields["pair_throughputs"]
            pair, kind_of_pair = np.nonzero(fits[pairs].all(axis=1) & rates.any(axis=2))
            way = np.append(way, (len(way) + np.arange(len(pair))).repeat(2))
            job, rate = np.append(job, pairs[pair]), np.append(rate, rates[pair, kind_of_pair])
            kind = np.append(kind, kind_of_pair)
            width = np.append(width, self.scale_factors[pairs[pair, 0]])
        elif sharing:
            assert self.together is not None
            best = self.together[..., 0].max(axis=1)[self.kinds]
            shares, kind_of_share = np.nonzero(fits & (best > 0))
            way = np.append(way, len(way) + np.arange(len(shares)))
            job, rate = np.append(job, shares), np.append(rate, best[shares, kind_of_share])
            kind = np.append(kind, kind_of_share)
            width = np.append(width, self.scale_factors[shares] / 2)
        takes = np.zeros((len(kind), len(self.num_workers)))
        takes[np.arange(len(kind)), self.pools[kind]] = width
        some = rate > 0
        attained = self.round_length is None and (each_pair or not sharing)
        return Ways(self.capacity, takes, way[some], job[some], rate[some], attained=attained)

    def slots(self) -> None:
        """Return None: SLOs are told to the decision maker, and have no slots."""

    def equal_rates(self, jobs: IntArray) -> FloatArray:
        """Return each of these jobs' rate under X_isolated (4.1), (m,) float, steps/s."""
        shares = self.num_workers / (len(jobs) * self.scale_factors[jobs, None])
        shares = shares / np.maximum(1.0, shares.sum(axis=1, keepdims=True))
        return np.asarray((shares * self._on_pools[jobs]).sum(axis=1))

    @cached_property
    def _on_pools(self) -> FloatArray:
        """Rate of each job alone on each pool, at its best placement there, (n, p) float, steps/s."""
        return Sharing(
            throughputs=self.throughputs,
            num_workers=self.num_workers,
            pools=self.pools,
            scale_factors=self.scale_factors,
        ).pool_throughputs


def pairs_of(policy: Policy, jobs: IntArray) -> dict[str, Any]:
    """Return the pairs of the jobs that may share workers."""
    if policy.together is None or policy.kinds is None:
        return {}
    kinds, widths = policy.kinds[jobs], policy.scale_factors[jobs]
    first, second = np.triu_indices(len(jobs), 1)
    runs = policy.together.max(axis=(2, 3)) > 0
    possible = runs[kinds[first], kinds[second]] & (widths[first] == widths[second])
    first, second = first[possible], second[possible]
    return {
        "pairs": np.stack([first, second], axis=1),
        "pair_throughputs": policy.together[kinds[first], kinds[second]],
    }


class _Course:
    """Memory of one replay."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        n = len(policy.jobs)
        self.kind: Any = instance_type(policy.problem)
        self.declared = declarations(self.kind)
        self.done, self.isolated = np.zeros(n), np.zeros(n)
        self.isolated_rates = np.zeros(n)
        self.instance: Sharing | None = None
        self.plan: Allocation | None = None
        # Of jobs alone by their number, of pairs by both: rounds that a row was to have and has had, by type.
        self.wanted: dict[Any, FloatArray] = {}
        self.received: dict[Any, FloatArray] = {}

    def decide(self, state: State, ask: Ask) -> Decision:
        if self.policy.round_length is not None:
            return self._in_round(state, ask)
        order = self._order(state)
        instance, plan = self._allocate(state, order, ask)
        return self._exactly(state, order, instance, plan)

    def _order(self, state: State) -> IntArray:
        """Return the jobs in the order of the instance, as places in the state, (m,) int."""
        if self.policy.problem in IN_ORDER:
            return np.argsort(state.arrivals, kind="stable")
        return np.arange(len(state.jobs))

    def _allocate(self, state: State, order: IntArray, ask: Ask) -> tuple[Sharing, Allocation]:
        policy, jobs = self.policy, state.jobs[order]
        fields = dict(policy.fields) | {name: np.asarray(values)[jobs] for name, values in policy.of_jobs.items()}
        fields |= pairs_of(policy, jobs)
        if "steps" in self.declared:
            fields["steps"] = state.left[order]
        if "slos" in self.declared:
            assert policy.jobs.deadlines is not None
            left = policy.jobs.deadlines[jobs] - state.now
            # An SLO that a job misses at its fastest asks for nothing: in rounds it may come late by a part of one.
            possible = left * policy.jobs.fastest[jobs] >= state.left[order] * (1 - TOLERANCE)
            fields["slos"] = np.where(possible, left, np.inf)
        if "elapsed" in self.declared:
            self._in_isolation(state)
            fields["elapsed"] = state.now - state.arrivals[order]
            fields["isolated_elapsed"] = self.isolated[jobs]
        instance = self.kind(
            throughputs=policy.throughputs[jobs],
            num_workers=policy.num_workers,
            pools=policy.pools,
            scale_factors=policy.scale_factors[jobs],
            **{name: value for name, value in fields.items() if name in self.declared},
        )
        plan = self._asked(instance, state, order, ask)
        if not plan.time_fractions.any() and isinstance(instance, PricedSharing) and instance.slo_jobs.size:
            # As in the released code: where SLOs cannot all be met, none is asked for.
            instance = replace(instance, slos=np.full(len(jobs), np.inf))
            plan = self._asked(instance, state, order, ask)
        return instance, plan

    def _asked(self, instance: Sharing, state: State, order: IntArray, ask: Ask) -> Allocation:
        """Return who runs how long; nobody where SLOs leave no plan."""
        otherwise = instance.nothing() if isinstance(instance, PricedSharing) and instance.slo_jobs.size else None
        shown, jobs = self._jittered(instance, state.jitter[order]), state.jobs[order]
        plan = ask(instance, default=self.policy.policy_by, asked=shown, otherwise=otherwise, jobs=jobs)
        assert isinstance(plan, Allocation)
        return plan

    def _jittered(self, instance: Sharing, jitter: FloatArray) -> Sharing | None:
        """Return the instance with jitter, so that ties fall otherwise; None without jitter."""
        if not jitter.any():
            return None
        by = 1 + JITTER * jitter
        for name in ("weights", "steps"):
            if name in self.declared:
                return replace(instance, **{name: getattr(instance, name) * by})
        return replace(instance, throughputs=instance.throughputs * by[:, None])

    def _in_isolation(self, state: State) -> None:
        """Update how long the steps done so far would have taken each job on its share of the cluster."""
        jobs = state.jobs
        rates = self.isolated_rates[jobs]
        more = np.divide(state.done - self.done[jobs], rates, out=np.zeros(len(jobs)), where=rates > 0)
        self.isolated[jobs] += more
        self.done[jobs] = state.done
        self.isolated_rates[jobs] = self.policy.equal_rates(jobs)

    # --- exactly ---

    def _exactly(self, state: State, order: IntArray, instance: Sharing, plan: Allocation) -> Decision:
        pools = len(instance.num_workers)
        rates, gpus = np.zeros(len(order)), np.zeros((len(order), pools))
        rates[order] = instance.throughput(plan)
        held = instance.row_scale_factors[:, None] * plan.time_fractions
        of_jobs = held[: instance.num_jobs].copy()
        if instance.num_pairs:
            # Partners hold half of their workers each.
            np.add.at(of_jobs, instance.pairs.ravel(), np.repeat(held[instance.num_jobs :] / 2, 2, axis=0))
        for kind, pool in enumerate(instance.pools.tolist()):
            gpus[order, pool] += of_jobs[:, kind]
        gpus[rates <= 0] = 0.0
        # Time is divided as finely as it takes, so that nobody is restarted.
        return Decision(rates=rates, gpus=gpus, placements=(rates > 0).astype(np.int64))

    # --- in rounds ---

    def _in_round(self, state: State, ask: Ask) -> Decision:
        order = self._order(state)
        jobs = state.jobs[order]
        if state.changed or self.plan is None or self.instance is None:
            self.instance, self.plan = self._allocate(state, order, ask)
        instance = self.instance
        names = self._names(jobs, instance)
        nothing = np.zeros(instance.num_types)
        target = np.maximum(self.plan.time_fractions, 0.0)
        wanted = np.array([self.wanted.get(name, nothing) for name in names]).reshape(target.shape) + target
        received = np.array([self.received.get(name, nothing) for name in names]).reshape(target.shape)
        this_round = RoundAssignment(
            scale_factors=instance.scale_factors,
            num_workers=instance.num_workers,
            pairs=instance.pairs,
            priorities=priorities(wanted, received),
            pools=instance.pools,
            eligible=instance.runs,
        )
        plan = ask(this_round, default="greedy_priority", jobs=jobs)
        assert isinstance(plan, RoundAssignmentPlan)
        received = received + plan.chosen
        # Who has left is forgotten.
        self.wanted = dict(zip(names, wanted, strict=True))
        self.received = dict(zip(names, received, strict=True))
        return self._chosen(state, order, instance, this_round, plan)

    def _names(self, jobs: IntArray, instance: Sharing) -> list[Any]:
        pairs = np.sort(jobs[instance.pairs], axis=1).tolist()
        return [*jobs.tolist(), *map(tuple, pairs)]

    def _chosen(
        self, state: State, order: IntArray, instance: Sharing, asked: RoundAssignment, plan: RoundAssignmentPlan
    ) -> Decision:
        m, n = len(order), instance.num_jobs
        servers, capacity = self.policy.servers, self.policy.capacity
        rates, gpus = np.zeros(m), np.zeros((m, len(capacity)))
        placements = np.zeros(m, np.int64)
        rows, kinds = np.nonzero(plan.chosen)
        width = instance.row_scale_factors[rows]
        if servers is None:
            held = np.zeros((len(rows), len(capacity)))
            held[np.arange(len(rows)), instance.pools[kinds]] = width
            spread = np.zeros(len(rows), bool)
        else:
            on_servers, _ = placement(asked, plan, servers.size, unconsolidated=servers.unconsolidated)
            held = on_servers[rows].astype(float)
            spread = (held > 0).sum(axis=1) > -(-width // servers.size)
        alone = rows < n
        jobs = order[rows[alone]]
        rates[jobs] = instance.throughputs[rows[alone], kinds[alone]]
        gpus[jobs], placements[jobs] = held[alone], 1 + kinds[alone]
        if servers is not None:
            apart = alone & spread
            jobs = order[rows[apart]]
            rates[jobs] = servers.throughputs[state.jobs[jobs], kinds[apart]]
        pair, kind = rows[~alone] - n, kinds[~alone]
        for partner in (0, 1):
            jobs = order[instance.pairs[pair, partner]]
            rates[jobs] = instance.pair_throughputs[pair, kind, partner]
            gpus[jobs], placements[jobs] = held[~alone] / 2, 1 + kind
            if servers is not None and servers.together is not None and self.policy.kinds is not None:
                types = self.policy.kinds[state.jobs[order[instance.pairs[pair]]]]
                slow = servers.together[types[:, 0], types[:, 1], kind, partner]
                rates[jobs] = np.where(spread[~alone], slow, rates[jobs])
        if servers is None:
            return Decision(rates=rates, gpus=gpus, placements=placements)
        for pool, size in {*zip(self.policy.pool_of.tolist(), capacity.tolist(), strict=True)}:
            alike = (self.policy.pool_of == pool) & (capacity == size)
            gpus[:, alike] = renumbered(state.gpus[:, alike], gpus[:, alike])
        return Decision(rates=rates, gpus=gpus)


# --- from tables and traces ------------------------------------------------------------------------


class ClusterChoice(TypedDict, total=False):
    """Options that both ways to make a setting take.

    Attributes
    ----------
    worker_types, unconsolidated
        As in :func:`instances.gavel.traces.cluster`.
    num_workers : int or sequence of int
        Workers of each type; 36 by default, as in section 7.3.
    share_space : bool
        Whether jobs may share workers; not by default.
    reference : str
        Worker type on which durations are told; "v100" by default.
    prices, entities_by, num_entities
        As in :func:`instances.gavel.traces.from_trace`.
    round_length : float
        Seconds of a round, 360 by default, as in the paper; 0 divides time without end.
    policy_by
        As of :class:`Policy`.
    workers_per_server : int
        Workers of each server, where jobs are placed on servers (:class:`Servers`); 0, the default, for workers that
        are alike.  With ``unconsolidated`` the policy knows what spreading a job does to it, otherwise it does not.
    """

    worker_types: Sequence[str] | None
    num_workers: int | Sequence[int]
    unconsolidated: bool
    share_space: bool
    reference: str
    prices: Mapping[str, float] | None
    entities_by: str | None
    num_entities: int
    round_length: float
    policy_by: str
    workers_per_server: int


def generate(
    rng: np.random.Generator | int,
    *,
    problem: str = PROBLEMS[0],
    throughputs: Source,
    num_jobs: int = 1000,
    per_hour: float = 4.0,
    multi_worker: bool = False,
    high_priority: float = 0.0,
    **choice: Unpack[ClusterChoice],
) -> Policy:
    """Draw jobs that arrive at random, as in section 7.1.

    Job types are uniform among those of the table that have the job's number of workers, durations on the reference
    type those of :func:`validation.replay.workloads.durations`.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    problem : str
    throughputs : path, open file or DataFrame
        As from :func:`instances.data.gavel.read_throughputs`.
    num_jobs : int
    per_hour : float
        Jobs that arrive in an hour, on the average; 0 for all at once, a static trace.
    multi_worker : bool
        Whether jobs have several workers ("continuous-multiple").
    high_priority : float
        Part of the jobs whose weight is 5.
    **choice
        As in :class:`ClusterChoice`.
    """
    import pandas as pd

    rng = np.random.default_rng(rng)
    table = read_throughputs(throughputs)
    arrivals = _arrivals(rng, num_jobs, per_hour)
    widths = workloads.scale_factors(rng, num_jobs) if multi_worker else np.ones(num_jobs, np.int64)
    alone = table[table["partner"] == ""]
    of_width = {width: sorted(set(some["model"])) for width, some in alone.groupby("scale_factor")}
    models = []
    for width in widths.tolist():
        if width not in of_width:
            raise InstanceError(f"scale factor {width}: the table has no such job type")
        models.append(of_width[width][int(rng.integers(len(of_width[width])))])
    jobs = pd.DataFrame(
        {
            "job_id": [str(job) for job in range(num_jobs)],
            "submit_time": arrivals,
            "model": models,
            "num_gpus": widths,
            "duration": workloads.durations(rng, num_jobs),
            "priority": np.where(rng.random(num_jobs) < high_priority, 5.0, 1.0),
        }
    )
    return from_jobs(jobs, problem=problem, rng=rng, throughputs=table, **choice)


def _arrivals(rng: np.random.Generator, num_jobs: int, per_hour: float) -> FloatArray:
    """Draw when jobs arrive, s; all at once where none arrive in an hour."""
    return workloads.poisson(rng, num_jobs, per_hour) if per_hour else np.zeros(num_jobs)


def cost_workload(
    rng: np.random.Generator | int,
    *,
    problem: str = "gavel.cost",
    throughputs: Source,
    num_jobs: int = 500,
    per_hour: float = 0.0,
    **choice: Unpack[ClusterChoice],
) -> Policy:
    """Draw the cost workload of section 7.3: ResNet-50 and A3C jobs of one worker, for days, with SLOs.

    Durations on the reference type are 0.5, 1, 2, 4 or 8 days, SLOs 1.2, 2 or 10 times as long, as drawn.  The
    paper does not say when jobs arrive, how many are of which model, or which batch sizes ResNet-50 has: all are there
    at once by default, job types are uniform among those of the table.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    problem : str
    throughputs : path, open file or DataFrame
        As from :func:`instances.data.gavel.read_throughputs`.
    num_jobs : int
    per_hour : float
        Jobs that arrive in an hour, on the average; 0 for all at once.
    **choice
        As in :class:`ClusterChoice`.

    Raises
    ------
    InstanceError
        When the table lacks one of the two models.
    """
    import pandas as pd

    rng = np.random.default_rng(rng)
    table = read_throughputs(throughputs)
    alone = table[(table["partner"] == "") & (table["scale_factor"] == 1)]
    names = sorted(set(alone["model"]))
    of_model = []
    for model in COST_MODELS:
        of_model.append([name for name in names if name.startswith(model)])
        if not of_model[-1]:
            raise InstanceError(f"model {model}: the table has no such job type of one worker")
    arrivals = _arrivals(rng, num_jobs, per_hour)
    kinds = [of_model[int(rng.integers(len(of_model)))] for _ in range(num_jobs)]
    duration = rng.choice(DAYS, num_jobs) * DAY
    jobs = pd.DataFrame(
        {
            "job_id": [str(job) for job in range(num_jobs)],
            "submit_time": arrivals,
            "model": [types[int(rng.integers(len(types)))] for types in kinds],
            "num_gpus": np.ones(num_jobs, np.int64),
            "duration": duration,
            "deadline": arrivals + rng.choice(SLO_FACTORS, num_jobs) * duration,
        }
    )
    return from_jobs(jobs, problem=problem, rng=rng, throughputs=table, **choice)


def from_jobs(
    jobs: pd.DataFrame,
    *,
    problem: str = PROBLEMS[0],
    rng: np.random.Generator | int = 0,
    throughputs: Source,
    only_listed: bool = False,
    **choice: Unpack[ClusterChoice],
) -> Policy:
    """Make jobs of Gavel's of the jobs of a table.

    A job whose model the table of throughputs has, with its number of GPUs, is of that type; any other gets a type of
    that number of workers, or of the nearest smaller one, drawn.  Its steps are those of the job table, else what it
    does in the table's duration on the reference type.  SLOs are the table's deadlines, weights its priorities.

    Parameters
    ----------
    jobs : DataFrame
        A job table (:func:`validation.replay.workloads.read_jobs`).
    problem : str
        A policy, or "gavel.round_assignment" for rounds of max-min fairness.
    rng : Generator or int
        Source of randomness, or its seed.
    throughputs : path, open file or DataFrame
        As from :func:`instances.data.gavel.read_throughputs`.
    only_listed : bool
        Leave out jobs whose type the table lacks, instead of drawing one.
    **choice
        As in :class:`ClusterChoice`.

    Raises
    ------
    InstanceError
        When the table is malformed, or lacks a worker type.
    ReplayError
        When a job has neither steps nor a duration, or runs nowhere.
    """
    rng = np.random.default_rng(rng)
    table = read_throughputs(throughputs)
    jobs = workloads.in_order(jobs)
    typed = jobs.assign(scale_factor=jobs["num_gpus"], model=jobs.get("model", ""))
    if only_listed:
        typed = jobs = traces.listed_jobs(typed, table)
    else:
        typed = _typed(typed, table, rng)
    worker_types = choice.get("worker_types")
    options: dict[str, Any] = {
        "worker_types": worker_types,
        "num_workers": choice.get("num_workers", 36),
        "unconsolidated": choice.get("unconsolidated", False),
    }
    fields = traces.cluster(typed, table, **options, share_space=False)
    known = worker_types or sorted({name for name in table["worker_type"] if not name.endswith(traces.UNCONSOLIDATED)})
    reference = choice.get("reference", "v100")
    if reference not in known:
        raise ReplayError(f"reference: got {reference!r}, must be one of {', '.join(known)}")
    speed = fields["throughputs"][:, list(known).index(reference)]
    steps = np.asarray(typed["iterations"], float) if "iterations" in typed else np.full(len(typed), np.nan)
    # Steps of a model that the table does not have are steps of another.
    told = np.isfinite(steps) & (typed["model"].to_numpy() == typed.get("told_model", typed["model"]).to_numpy())
    work = np.where(told, steps, np.ceil(typed["duration"].to_numpy(float) * speed))
    lacking = np.flatnonzero(~np.isfinite(work))
    if lacking.size:
        raise ReplayError(f"job {typed['job_id'].iloc[lacking[0]]} has neither steps nor a duration")
    kinds, together = _together(typed, table, options) if choice.get("share_space", False) else (None, None)
    fits = fields["scale_factors"][:, None] <= fields["num_workers"][fields["pools"]][None, :]
    fastest = np.where(fits, fields["throughputs"], 0.0).max(axis=1)
    if together is not None and kinds is not None:
        fastest = np.maximum(fastest, together[:, :, :, 0].max(axis=(1, 2))[kinds])
    size = choice.get("workers_per_server", 0)
    servers = _servers(typed, table, options, size, share_space=kinds is not None) if size else None
    if servers is not None:
        fastest = np.maximum(fastest, np.where(fits, servers.throughputs, 0.0).max(axis=1))
        if servers.together is not None and kinds is not None:
            fastest = np.maximum(fastest, servers.together[:, :, :, 0].max(axis=(1, 2))[kinds])
    of_jobs: dict[str, Any] = {}
    if "priority" in typed:
        of_jobs["weights"] = typed["priority"].to_numpy(float)
    others: dict[str, Any] = {}
    policy = "gavel.max_min_fairness" if problem == "gavel.round_assignment" else problem
    if "costs" in declarations(instance_type(policy)):
        others["costs"] = traces.price_of_each(known, choice.get("prices"))[fields["pools"]]
    rule = choice.get("entities_by")
    if rule is not None:
        owned = traces.entities_of(typed, rule, choice.get("num_entities", 3), rng)
        of_jobs["entities"] = owned.pop("entities")
        others |= owned
    deadlines = typed["deadline"].to_numpy(float) if "deadline" in typed else np.full(len(typed), np.inf)
    return Policy(
        jobs=Jobs(
            names=typed["job_id"].tolist(),
            arrivals=typed["submit_time"].to_numpy(float),
            work=work,
            fastest=fastest,
            deadlines=np.where(np.isnan(deadlines), np.inf, deadlines),
            columns={"model": typed["model"].to_numpy(object), "workers": fields["scale_factors"], **of_jobs},
        ),
        problem=policy,
        throughputs=fields["throughputs"],
        num_workers=np.asarray(fields["num_workers"]),
        pools=fields["pools"],
        scale_factors=fields["scale_factors"],
        kinds=kinds,
        together=together,
        of_jobs=of_jobs,
        fields=others,
        round_length=choice.get("round_length", traces.ROUND_SECONDS) or None,
        policy_by=choice.get("policy_by", EXACT),
        servers=servers,
    )


def _servers(
    typed: pd.DataFrame, table: pd.DataFrame, options: Mapping[str, Any], size: int, *, share_space: bool
) -> Servers:
    """Return servers of that size, with the table's throughputs of workers that are spread."""
    if size < 1:
        raise ReplayError(f"workers_per_server: got {size}, must be at least 1")
    both = dict(options) | {"unconsolidated": True}
    throughputs = traces.cluster(typed, table, **both, share_space=False)["throughputs"]
    together = _together(typed, table, both)[1] if share_space else None
    half = throughputs.shape[1] // 2
    # A type and that of its workers spread are spread alike.
    columns = [*range(half, 2 * half)] * (2 if options["unconsolidated"] else 1)
    return Servers(
        size=size,
        throughputs=throughputs[:, columns],
        together=together if together is None else together[:, :, columns],
        unconsolidated=np.arange(len(columns)) >= half,
    )


def _typed(jobs: pd.DataFrame, table: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the jobs, each of a type that the throughput table has."""
    alone = table[table["partner"] == ""]
    listed = set(zip(alone["model"], alone["scale_factor"], strict=True))
    of_width: dict[int, list[str]] = {}
    for kind, workers in sorted(listed):
        of_width.setdefault(int(workers), []).append(kind)
    models, widths = [], []
    for model, width in zip(jobs["model"].tolist(), jobs["scale_factor"].tolist(), strict=True):
        if (model, width) not in listed:
            width = max((one for one in of_width if one <= width), default=min(of_width))
            if (model, width) not in listed:
                model = of_width[width][int(rng.integers(len(of_width[width])))]
        models.append(model)
        widths.append(width)
    return jobs.assign(told_model=jobs["model"], model=models, scale_factor=widths)


def _together(typed: pd.DataFrame, table: pd.DataFrame, options: Mapping[str, Any]) -> tuple[IntArray, FloatArray]:
    """Return the type of each job, (n,) int, and the rates of two of them together, (u, u, k, 2) float, steps/s."""
    pairs = list(zip(typed["model"], typed["scale_factor"], strict=True))
    number = {kind: place for place, kind in enumerate(dict.fromkeys(pairs))}
    # Two of each type, so that a type meets itself.
    twice = typed.drop_duplicates(["model", "scale_factor"])
    twice = twice.loc[np.repeat(twice.index.to_numpy(), 2)]
    fields = traces.cluster(twice, table, **options, share_space=True)
    u, k = len(number), fields["throughputs"].shape[1]
    together = np.zeros((u, u, k, 2))
    first, second = (fields["pairs"] // 2).T
    together[first, second] = fields["pair_throughputs"]
    together[second, first] = fields["pair_throughputs"][:, :, ::-1]
    return np.array([number[kind] for kind in pairs], np.int64), together
