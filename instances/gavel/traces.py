"""Instances from real input: the tables and traces of :mod:`instances.data.gavel`.

The worker types are the table's own unless others are named.  What a table does not list does not run: a
type that lacks a job type counts as throughput 0 there, and so does a pair that it lacks.  A job type that
no worker type lists is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypedDict, Unpack

import numpy as np

from instances.base import InstanceError
from instances.data.gavel import JobType, read_throughputs, read_trace
from instances.data.lines import Source, reader
from instances.data.origin import origin
from instances.files import instance_type
from instances.gavel.sharing import Sharing
from instances.schema import FloatArray, IntArray, declarations, quoted

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "BATCH_SIZES",
    "ENTITY_RULES",
    "PHYSICAL_CLUSTER",
    "PREEMPTION_OVERHEADS",
    "PRICES",
    "ROUND_SECONDS",
    "UNCONSOLIDATED",
    "WORKER_TYPES",
    "ClusterChoice",
    "TraceChoice",
    "TracedSharing",
    "active_jobs",
    "cluster",
    "draw_jobs",
    "entities_of",
    "from_trace",
    "jobs_from_trace",
    "listed_jobs",
    "price_of_each",
]

WORKER_TYPES = ("k80", "p100", "v100")
"""Those of the published tables."""
BATCH_SIZES = {
    "ResNet-50": (16, 32, 64, 128),
    "ResNet-18": (16, 32, 64, 128, 256),
    "A3C": (4,),
    "LM": (5, 10, 20, 40, 80),
    "Transformer": (16, 32, 64, 128, 256),
    "CycleGAN": (1,),
    "Recommendation": (512, 1024, 2048, 4096, 8192),
}
"""Table 2's batch sizes, 26 job types in all, by the names that the published tables give the models."""
PREEMPTION_OVERHEADS = {
    "ResNet-18": (0.0094, 0.0017),
    "ResNet-50": (0.0158, 0.0025),
    "A3C": (0.0022, 0.0),
    "LSTM": (0.0291, 0.0047),
    "Transformer": (0.0077, 0.0011),
    "CycleGAN": (0.0077, 0.0011),
}
"""Part of a round of 360 s that preemption takes, without and with leases (Table 4)."""
PHYSICAL_CLUSTER = {"v100": 8, "p100": 16, "k80": 24}
"""Workers of each type in the experiments of section 7.2; in those of 7.3 there are 36 of each."""
ROUND_SECONDS = 360.0
"""Length of a round in the experiments (section 5), s."""
UNCONSOLIDATED = "_unconsolidated"
"""Ending of the table's names for a worker type with a job's workers spread over servers."""


class ClusterChoice(TypedDict, total=False):
    """The keyword arguments of ``cluster``, which every reader of real input takes."""

    worker_types: Sequence[str] | None
    num_workers: int | Sequence[int] | None
    unconsolidated: bool
    share_space: bool


class TraceChoice(ClusterChoice, total=False):
    """The keyword arguments of :func:`jobs_from_trace`, which every ``from_trace`` takes beside the number of jobs.

    ``columns`` and ``skip_bad_rows`` are those of :func:`instances.data.gavel.read_trace`.
    """

    columns: Mapping[str, str] | None
    skip_bad_rows: bool


PRICES = {"k80": 0.45, "p100": 1.46, "v100": 2.48}
"""Google Cloud's on-demand prices of the published types, $/h."""

_ALONE, _UNLISTED = -1, -2


@dataclass(frozen=True)
class _Rates:
    """A table of throughputs by numbers: each of its entries with the numbers of worker type and job types.

    Attributes
    ----------
    attrs : dict
        Those of the table.
    worker_types, job_types : dict
        Name to number.
    worker, own, partner : (e,) int
        What each entry is about; the partner is ``_ALONE`` for a job alone.
    rates : (e, 2) float
        Steps/s, own and partner's.
    """

    attrs: dict[Any, Any]
    worker_types: dict[str, int]
    job_types: dict[JobType, int]
    worker: IntArray
    own: IntArray
    partner: IntArray
    rates: FloatArray

    @cached_property
    def consolidated(self) -> tuple[str, ...]:
        """Worker types whose workers are together, in alphabetical order."""
        return tuple(sorted(name for name in self.worker_types if not name.endswith(UNCONSOLIDATED)))

    def alone(self, names: Sequence[str], kinds: Sequence[JobType]) -> FloatArray:
        """(u, k) float: steps/s of each of the u different job types among ``kinds``, 0 where the table lists none."""
        for name in names:
            if name not in self.worker_types:
                raise InstanceError(f"worker type {name!r}: the table has only {', '.join(sorted(self.worker_types))}")
        different = list(dict.fromkeys(kinds))
        column = _renumbered(self.worker_types, names)[self.worker[self._single]]
        own = _renumbered(self.job_types, different)[self.own[self._single]]
        listed = (column >= 0) & (own >= 0)
        alone = np.full((len(different), len(names)), -1.0)
        alone[own[listed], column[listed]] = self.rates[self._single, 0][listed]
        missing = np.flatnonzero((alone < 0).all(axis=1))
        if missing.size:
            model, scale = different[missing[0]]
            raise InstanceError(
                f"model {model!r} with scale factor {scale}: the table has no such job type{self._advice(model, scale)}"
            )
        return np.asarray(np.maximum(alone, 0.0))

    @cached_property
    def _single(self) -> IntArray:
        """Entries of jobs alone."""
        return np.flatnonzero(self.partner == _ALONE)

    def together(self, names: Sequence[str], kinds: Sequence[JobType]) -> FloatArray:
        """(u, u, k, 2) float: steps/s of the same job types in pairs, 0 where the table lists none."""
        different = dict.fromkeys(kinds)
        number = _renumbered(self.job_types, different)
        column, own = _renumbered(self.worker_types, names)[self.worker], number[self.own]
        other = np.where(self.partner >= 0, number[self.partner], -1)
        pair = (column >= 0) & (own >= 0) & (other >= 0)
        together = np.zeros((len(different), len(different), len(names), 2))
        # Each entry and then its mirror image, which says the same where the table has it; the last one holds.
        first = np.stack([own[pair], other[pair]], axis=1)
        rates = np.stack([self.rates[pair], self.rates[pair, ::-1]], axis=1)
        together[first.ravel(), first[:, ::-1].ravel(), np.repeat(column[pair], 2)] = rates.reshape(-1, 2)
        return together

    def _advice(self, model: str, scale: int) -> str:
        """Advise on a job type of which nothing is known on the worker types that are asked for."""
        others = sorted(other for name, other in self.job_types if name == model and other != scale)
        has = f"; of this model it has scale factors {', '.join(map(str, others))}" if others else ""
        if not model:
            return " without a name; a snapshot draws no models: name them in the trace"
        if (model, scale) in self.job_types:
            return f" alone on these worker types{has}; give its throughputs there, or name others"
        out = "only_listed=True, in the shell --reader only_listed=true"
        return f"{has}; give its throughputs, or leave such jobs out ({out})"


def _renumbered(numbers: Mapping[Any, int], wanted: Iterable[Any]) -> IntArray:
    """For each number the place of what it stands for among what is wanted, -1 where it is not."""
    places = np.full(len(numbers), -1)
    for place, name in enumerate(wanted):
        if name in numbers:
            places[numbers[name]] = place
    return places


def _rates(throughputs: pd.DataFrame | _Rates) -> _Rates:
    """Return a table by numbers."""
    if isinstance(throughputs, _Rates):
        return throughputs
    columns = {name: throughputs[name].tolist() for name in ("worker_type", "model", "scale_factor")}
    partners = list(zip(throughputs["partner"].tolist(), throughputs["partner_scale_factor"].tolist(), strict=True))
    kinds = list(zip(columns["model"], columns["scale_factor"], strict=True))
    worker_types = {name: number for number, name in enumerate(dict.fromkeys(columns["worker_type"]))}
    job_types = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    return _Rates(
        throughputs.attrs,
        worker_types,
        job_types,
        worker=np.array([worker_types[name] for name in columns["worker_type"]], np.int64),
        own=np.array([job_types[kind] for kind in kinds], np.int64),
        # A partner of which the table says nothing else is none of its job types.
        partner=np.array([job_types.get(kind, _UNLISTED if kind[1] else _ALONE) for kind in partners], np.int64),
        rates=throughputs[["throughput", "partner_throughput"]].to_numpy(float),
    )


@reader
def _read_rates(source: Source) -> _Rates:
    return _rates(read_throughputs(source))


def cluster(
    jobs: pd.DataFrame,
    throughputs: pd.DataFrame | _Rates,
    *,
    worker_types: Sequence[str] | None = None,
    num_workers: int | Sequence[int] | None = None,
    unconsolidated: bool = False,
    share_space: bool = True,
) -> dict[str, Any]:
    """Fields of :class:`instances.gavel.sharing.Sharing` for jobs of a trace.

    Parameters
    ----------
    jobs : DataFrame
        With ``model`` and ``scale_factor``.
    throughputs : DataFrame
        As from :func:`instances.data.gavel.read_throughputs`.
    worker_types : sequence of str, optional
        Worker types, one pool each; by default all of the table's, in alphabetical order, but for those of workers
        spread over servers.
    num_workers : int or sequence of int, optional
        Workers of each type; by default a quarter of the jobs, at least 8.
    unconsolidated : bool
        Whether each pool has a second type, for workers spread over servers.
    share_space : bool
        Whether jobs of equal scale factor may share workers, where the table has a throughput for
        the pair that is not zero.

    Raises
    ------
    InstanceError
        When the table lacks a worker type or a job's type; the message names it.
    """
    n = len(jobs)
    rates = _rates(throughputs)
    worker_types = rates.consolidated if worker_types is None else worker_types
    names = list(worker_types)
    if unconsolidated:
        names += [f"{name}{UNCONSOLIDATED}" for name in worker_types]
    kinds = _kinds(jobs)
    alone = rates.alone(names, kinds)
    together = rates.together(names, kinds if share_space else ())
    number = _numbers(kinds)
    scale_factors = jobs["scale_factor"].to_numpy(np.int64)
    first, second = np.triu_indices(n if share_space else 0, 1)
    runs = together.max(axis=(2, 3)) > 0
    possible = runs[number[first], number[second]] & (scale_factors[first] == scale_factors[second])
    first, second = first[possible], second[possible]
    workers = np.asarray(max(8, n // 4) if num_workers is None else num_workers)
    if workers.shape not in ((), (len(worker_types),)):
        types = ", ".join(worker_types)
        raise InstanceError(
            f"num_workers: got {quoted(workers.tolist())}, must be a number, or one for each of {types}"
        )
    return {
        "throughputs": alone[number],
        "num_workers": np.broadcast_to(workers, len(worker_types)),
        "pools": np.arange(len(names)) % len(worker_types),
        "scale_factors": scale_factors,
        "pairs": np.stack([first, second], axis=1),
        "pair_throughputs": together[number[first], number[second]],
    }


def listed_jobs(trace: pd.DataFrame, throughputs: pd.DataFrame | _Rates) -> pd.DataFrame:
    """Return the jobs of a trace whose type, model and scale factor, the table has on some worker type.

    Raises
    ------
    InstanceError
        When there are none.
    """
    return trace.iloc[_listed(trace, _rates(throughputs))].reset_index(drop=True)


def _kinds(jobs: pd.DataFrame) -> list[JobType]:
    return list(zip(jobs["model"].tolist(), jobs["scale_factor"].tolist(), strict=True))


def _listed(trace: pd.DataFrame, rates: _Rates) -> IntArray:
    """Return the rows of :func:`listed_jobs`."""
    listed, kinds = rates.job_types, _kinds(trace)
    known = np.array([kind in listed for kind in kinds])
    if not known.any():
        model, scale = kinds[0]
        has = ", ".join(f"{one} ({workers})" for one, workers in list(listed)[:3])
        raise InstanceError(
            f"model {model!r} with scale factor {scale}, as all others of the trace: the table has no such job type, "
            f"only {has}, ...; give the throughputs of the trace's models, or a trace of these"
        )
    return np.flatnonzero(known)


def draw_jobs(
    rng: np.random.Generator | int, trace: pd.DataFrame, throughputs: pd.DataFrame | _Rates, num_jobs: int
) -> pd.DataFrame:
    """Jobs drawn from a trace, among those whose type the table has.

    They are drawn without replacement and keep the trace's order; with replacement, in the order
    drawn, when the trace has too few.

    Raises
    ------
    InstanceError
        When the table has none of the trace's job types.
    """
    rows = _drawn(np.random.default_rng(rng), _listed(trace, _rates(throughputs)), num_jobs)
    return trace.iloc[rows].reset_index(drop=True)


def _drawn(rng: np.random.Generator, listed: IntArray, num_jobs: int) -> IntArray:
    """Return the rows of :func:`draw_jobs`, of those that the table has."""
    if num_jobs < 1:
        raise InstanceError(f"num_jobs: got {num_jobs}, must be at least 1")
    if num_jobs <= len(listed):
        return listed[np.sort(rng.permutation(len(listed))[:num_jobs])]
    return listed[rng.integers(0, len(listed), num_jobs)]


def jobs_from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_jobs: int = 16,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    **choice: Unpack[ClusterChoice],
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Jobs drawn from a real trace, and the cluster that they share.

    Models that the trace does not name are drawn, uniformly of those that the table has with as many workers.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed: it draws the jobs, without replacement if the trace has
        enough of the table's types (:func:`draw_jobs`).
    throughputs, trace : path, open file or DataFrame
        What :func:`instances.data.gavel.read_throughputs` and ``read_trace`` read.
    num_jobs : int
        Number of jobs, n.
    columns, skip_bad_rows
        As in :func:`instances.data.gavel.read_trace`.
    **choice
        Worker types, their numbers and placements, and space sharing, as in ``cluster``.

    Returns
    -------
    jobs : DataFrame
        Rows of the trace; where they are from is ``attrs["origin"]``.
    fields : dict
        Fields of :class:`instances.gavel.sharing.Sharing`.

    Raises
    ------
    InstanceError
        When a file is malformed, or the table has none of the trace's job types.
    """
    rates = _read_rates(throughputs)
    arriving = read_trace(trace, columns=columns, skip_bad_rows=skip_bad_rows)
    rng = np.random.default_rng(rng)
    unnamed = arriving["model"].to_numpy() == ""
    arriving = _named(rng, arriving, rates)
    listed = _listed(arriving, rates)
    rows = _drawn(rng, listed, num_jobs)
    choice["worker_types"] = list(choice.get("worker_types") or rates.consolidated)
    without_steps = arriving["steps"].isna().to_numpy()
    jobs = _with_steps(arriving.iloc[rows].reset_index(drop=True), rates, choice["worker_types"])
    jobs.attrs["origin"] = origin(
        "instances.gavel.traces.jobs_from_trace",
        throughputs=rates.attrs,
        trace=arriving.attrs,
        rows=rows,
        repairs={
            LACKING: len(arriving) - len(listed),
            "job is in the trace once, and drawn again": num_jobs - len(np.unique(rows)),
            "model is drawn": int(unnamed[rows].sum()),
            FILLED_STEPS: int(without_steps[rows].sum()),
        },
        options={"num_jobs": num_jobs, **choice},
    )
    return jobs, cluster(jobs, rates, **choice)


LACKING = "job of the trace left out, whose type the table lacks"
FILLED_STEPS = "steps are what the job does in its duration on its fastest worker type"
"""What is told of jobs that a table does not have, and of those whose trace tells durations."""


def _named(rng: np.random.Generator, trace: pd.DataFrame, rates: _Rates) -> pd.DataFrame:
    """Return a trace with models drawn where it names none, of those that the table has with as many workers."""
    unnamed = np.flatnonzero(trace["model"].to_numpy() == "")
    if not unnamed.size:
        return trace
    of_width: dict[int, list[str]] = {}
    for model, width in rates.job_types:
        of_width.setdefault(width, []).append(model)
    models, widths = trace["model"].tolist(), trace["scale_factor"].tolist()
    for row in unnamed.tolist():
        known = of_width.get(widths[row])
        models[row] = known[int(rng.integers(len(known)))] if known else ""
    return trace.assign(model=models)


def _with_steps(jobs: pd.DataFrame, rates: _Rates, worker_types: Sequence[str] | None) -> pd.DataFrame:
    """Return jobs with steps where their trace tells durations: those done on the fastest worker type, 1 at least."""
    steps = jobs["steps"].to_numpy(float)
    lacking = np.isnan(steps)
    if not lacking.any():
        return jobs
    durations = jobs["duration"].to_numpy(float)
    return jobs.assign(
        steps=np.where(lacking, np.maximum(1, np.ceil(durations * _speed(jobs, rates, worker_types))), steps)
    )


def _speed(jobs: pd.DataFrame, rates: _Rates, worker_types: Sequence[str] | None) -> FloatArray:
    """(n,) float: steps/s of each job alone on its fastest worker type."""
    if not len(jobs):
        return np.zeros(0)
    kinds = _kinds(jobs)
    alone = rates.alone(rates.consolidated if worker_types is None else worker_types, kinds)
    speed: FloatArray = alone.max(axis=1)[_numbers(kinds)]
    return speed


class TracedSharing(Sharing):
    """A policy's jobs that a trace can tell; the fields are those of :class:`Sharing`."""

    of_trace: ClassVar[Mapping[str, str]] = {}
    """Fields that columns of the trace hold, each with its column."""

    @classmethod
    def from_trace(
        cls,
        rng: np.random.Generator | int,
        *,
        throughputs: Source,
        trace: Source,
        num_jobs: int = 16,
        **choice: Unpack[TraceChoice],
    ) -> Self:
        """Jobs of a real trace in the trace's order, all new, with the throughputs of a published table.

        They have all their steps to do, and the trace's priorities for weights.  The parameters and errors are those
        of :func:`instances.gavel.traces.jobs_from_trace`.
        """
        jobs, fields = jobs_from_trace(rng, throughputs=throughputs, trace=trace, num_jobs=num_jobs, **choice)
        told = {name: jobs[column].to_numpy(float) for name, column in cls.of_trace.items()}
        return cls(**fields, **told).with_origin(jobs.attrs["origin"])


def active_jobs(
    trace: pd.DataFrame,
    throughputs: pd.DataFrame | _Rates,
    time: float,
    *,
    slowdown: float = 1.0,
    worker_types: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Jobs that have arrived by ``time`` and are not done, in order of arrival.

    A trace does not say how fast its jobs ran.  Here each has run, since it arrived, ``slowdown``
    times slower than alone on its fastest worker type.

    Returns
    -------
    DataFrame
        The trace's columns, with ``steps`` left to do, ``steps_done`` and ``elapsed`` (s).

    Raises
    ------
    InstanceError
        When a job that has arrived is of a type that the table lacks, or none is active.
    """
    everyone = np.arange(len(trace))
    _, active = _active(trace, _rates(throughputs), everyone, time, slowdown=slowdown, worker_types=worker_types)
    return active.reset_index(drop=True)


def _active(
    trace: pd.DataFrame,
    rates: _Rates,
    rows: IntArray,
    time: float,
    *,
    slowdown: float,
    worker_types: Sequence[str] | None,
) -> tuple[IntArray, pd.DataFrame]:
    """Those of ``rows`` of the trace that :func:`active_jobs` are made of, and these."""
    if not slowdown > 0:
        raise InstanceError(f"slowdown: got {slowdown}, must be positive")
    arrivals = trace["arrival"].to_numpy(float)
    rows = rows[np.argsort(arrivals[rows], kind="stable")]
    rows = rows[: np.searchsorted(arrivals[rows], time, side="right")]
    jobs = _with_steps(trace.iloc[rows], rates, worker_types)
    elapsed = time - arrivals[rows]
    done = np.floor(elapsed * _speed(jobs, rates, worker_types) / slowdown)
    steps = jobs["steps"].to_numpy(float)
    left = done < steps
    if not left.any():
        name = trace.attrs.get("reading", {}).get("source", "the trace")
        raise InstanceError(f"time: got {time:g}, must be a time at which some job of {name} is active")
    return rows[left], jobs.assign(steps=steps - done, steps_done=done, elapsed=elapsed)[left]


def _numbers(kinds: Sequence[JobType]) -> IntArray:
    """Return the number of each job's type among the different ones, in order of their first job."""
    number_of = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    return np.array([number_of[kind] for kind in kinds], np.int64)


def price_of_each(worker_types: Sequence[str], prices: Mapping[str, float] | None) -> FloatArray:
    """(k,) float: $/h of a worker of each type; the published types have prices of their own.

    Raises
    ------
    InstanceError
        When there is none of a type; the message says what to give.
    """
    prices = PRICES if prices is None else prices
    for name in worker_types:
        if name not in prices:
            raise InstanceError(f"prices: there is none of worker type {name!r}, give prices={{{name!r}: ...}} in $/h")
    return np.array([prices[name] for name in worker_types])


ENTITY_RULES = ("random", "in_turn", "model", "scale_factor")
"""By what jobs belong to entities, which traces do not name."""


def entities_of(
    jobs: pd.DataFrame, by: str, num_entities: int = 3, rng: np.random.Generator | None = None
) -> dict[str, Any]:
    """Fields of :class:`instances.gavel.hierarchical_fairness.HierarchicalFairness`: whose the jobs of a trace are.

    Parameters
    ----------
    jobs : DataFrame
        With ``model`` and ``scale_factor``.
    by : str
        "random", to any entity alike; "in_turn", the first job to the first entity, the second to the second, and so
        on; "model" or "scale_factor", one entity for each of these, in the order of their first jobs.
    num_entities : int
        Entities, for the first two.
    rng : Generator, optional
        For "random".

    Returns
    -------
    dict
        ``entities``, and of these the weights, 1, 2, 3, ..., and the policies: every second one serves its jobs in
        order.

    Raises
    ------
    InstanceError
        When there is no such rule, or no entity.
    """
    rules = ENTITY_RULES if rng is not None else ENTITY_RULES[1:]
    if by not in rules:
        raise InstanceError(f"entities_by: got {quoted(by)}, must be one of {', '.join(rules)}")
    if num_entities < 1:
        raise InstanceError(f"num_entities: got {num_entities}, must be at least 1")
    if by in ("model", "scale_factor"):
        numbers = {name: number for number, name in enumerate(dict.fromkeys(jobs[by].tolist()))}
        entities, num_entities = np.array([numbers[name] for name in jobs[by].tolist()], np.int64), len(numbers)
    elif rng is not None and by == "random":
        entities = rng.integers(0, num_entities, len(jobs))
    else:
        entities = np.arange(len(jobs)) % num_entities
    return {
        "entities": entities,
        "entity_weights": np.arange(1.0, num_entities + 1),
        "entity_policies": np.where(np.arange(num_entities) % 2, "fifo", "fairness"),
    }


def from_trace(
    problem: str,
    *,
    throughputs: Source,
    trace: Source,
    time: float,
    slowdown: float = 1.0,
    worker_types: Sequence[str] | None = None,
    num_workers: int | Sequence[int] | None = None,
    unconsolidated: bool = False,
    share_space: bool = True,
    only_listed: bool = False,
    prices: Mapping[str, float] | None = None,
    entities_by: str | None = None,
    num_entities: int = 3,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    **fields: Any,
) -> Sharing:
    """Take a snapshot: the jobs of a trace that are active at a time, as an instance of any policy.

    Parameters
    ----------
    problem : str
        A policy's name, such as "gavel.finish_time_fairness".
    throughputs, trace : path, open file or DataFrame
        What :func:`instances.data.gavel.read_throughputs` and ``read_trace`` read.
    time : float
        When, s after the start of the trace.
    slowdown : float
        How the jobs have run so far; see :func:`active_jobs`.
    worker_types, num_workers, unconsolidated, share_space
        As in ``cluster``.
    only_listed : bool
        Whether jobs whose type the table lacks are left out; otherwise they are an error.
    prices : mapping, optional
        $/h of one worker of each type, for policies that pay; by default those of the published types.
    entities_by : str, optional
        To which entity a job belongs, where a policy asks for that: "in_turn", "model" or "scale_factor", as in
        :func:`entities_of`; to one and the same by default.
    num_entities : int
        As in :func:`entities_of`.
    columns, skip_bad_rows
        As in :func:`instances.data.gavel.read_trace`.
    **fields
        Fields by name, such as ``costs`` or ``entities``; they go before those of the
        trace: ``weights`` (its priorities), ``steps`` (left to do), ``slos`` (time left; none for
        jobs that have missed theirs), ``elapsed`` and ``isolated_elapsed``.

    Raises
    ------
    InstanceError
        When a file is malformed, the table lacks a job's type, no job is active, or ``problem``
        is no policy.
    """
    kind = instance_type(problem)
    if not issubclass(kind, Sharing):
        raise InstanceError(f"problem: got {problem!r}, must be a policy of Gavel with throughputs")
    rates = _read_rates(throughputs)
    whole = read_trace(trace, columns=columns, skip_bad_rows=skip_bad_rows)
    rows = _listed(whole, rates) if only_listed else np.arange(len(whole))
    left_out = len(whole) - len(rows)
    rows, jobs = _active(whole, rates, rows, time, slowdown=slowdown, worker_types=worker_types)
    done, elapsed = jobs["steps_done"].to_numpy(float), jobs["elapsed"].to_numpy(float)
    shared = cluster(
        jobs,
        rates,
        worker_types=worker_types,
        num_workers=num_workers,
        unconsolidated=unconsolidated,
        share_space=share_space,
    )
    slo = jobs["slo"].to_numpy(float)
    missed = slo <= elapsed
    known = {
        "weights": jobs["priority"].to_numpy(float),
        "steps": jobs["steps"].to_numpy(float),
        "slos": np.where(missed, np.inf, slo - elapsed),
        "elapsed": elapsed,
        "isolated_elapsed": done / Sharing(**shared).isolated_throughputs,
    }
    declared = declarations(kind)
    if "costs" in declared and "costs" not in fields:
        known["costs"] = price_of_each(worker_types or rates.consolidated, prices)[shared["pools"]]
    if "entities" in declared and entities_by is not None:
        known |= entities_of(jobs, entities_by, num_entities)
    taken = {name: value for name, value in known.items() if name in declared and name not in fields}
    told = origin(
        "instances.gavel.from_trace",
        throughputs=rates.attrs,
        trace=whole.attrs,
        rows=rows,
        repairs={
            LACKING: left_out,
            "SLO is missed already, and left out": int(missed.sum()) if "slos" in taken else 0,
            FILLED_STEPS: int(whole["steps"].isna().to_numpy()[rows].sum()),
        },
        options={
            "time": time,
            "slowdown": slowdown,
            "worker_types": worker_types,
            "num_workers": num_workers,
            "unconsolidated": unconsolidated,
            "share_space": share_space,
            "only_listed": only_listed,
            "prices": prices,
            "entities_by": entities_by,
            "num_entities": num_entities if entities_by == "in_turn" else None,
        },
    )
    return kind(**shared, **taken, **fields).with_origin(told)
