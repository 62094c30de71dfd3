"""Shares of elastic jobs over time: AFS (NSDI'21), the problem of its sections 2.1 and 3.1.

Jobs share a cluster of M identical GPUs.  Job j has ``work`` iterations to do and runs at T_j(s)
iterations/s on s GPUs; its share can change while it runs, at no cost.  Choose the shares over time
so that the average job completion time (JCT) is least:

    min  (1/n) * sum_j (C_j - arrival_j),    C_j the moment at which job j's work is done,
    s.t. sum_j s_j(t) <= M at every time t,  s_j(t) whole.

How often shares may change is the field ``reallocation``: ``"at_completions"``, only when a job
arrives or completes, the events of section 3.1; ``"any_time"``, whenever it helps, which schedulers
that evict jobs after some time need (footnote 5).

Rigid jobs and jobs of bounded elasticity, such as Aryl's, are throughput tables too: nothing below
the minimum, then linear, flat above the maximum; see :func:`bounded_linear`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.afs.curves import RepairWarning, curves
from instances.arguments import AtLeast0, Count, Fraction, checked
from instances.arithmetic import dot, power, total
from instances.base import TOLERANCE, Instance, Plan, PlanError, Violation, exceeding
from instances.data.jobs import draw_first, read_trace
from instances.data.lines import Source
from instances.data.origin import origin
from instances.renamed import moved_names
from instances.schema import LONGEST, Array, BoolArray, FloatArray, IntArray, Scalar, default

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "EXACT",
    "HOUR",
    "MAX_GPUS",
    "ElasticSharing",
    "Schedule",
    "appendix_a",
    "appendix_a_sequel",
    "bounded_linear",
    "from_frame",
    "from_trace",
    "generate",
    "table_4",
    "three_job_cycle",
]

EXACT = 1e-12
"""Part of a job's work that is rounding: what is left when sums of many intervals are compared."""

__getattr__ = moved_names(__name__, "instances.afs.simulation", "Policy", "State", "Turns", "beginning", "simulate")


@dataclass(frozen=True, eq=False)
class Schedule(Plan):
    """Shares over time, piecewise constant.

    Attributes
    ----------
    times : (t+1,) float
        Ends of the intervals, s, increasing: interval k lasts from ``times[k]`` to ``times[k+1]``.
        Before the first and after the last every share is 0.
    shares : (t, n) int
        GPUs of each job in each interval; there is none where no job has anything to do.
    """

    times: Annotated[FloatArray, Array(float, "t+1", minimum=0)]
    shares: Annotated[IntArray, Array(int, "t n", empty=True)]

    def _check(self) -> None:
        late = np.flatnonzero(np.diff(self.times) <= 0)
        if late.size:
            k = int(late[0])
            raise self.refuse(
                "times", f"got {self.times[k + 1]:g} after {self.times[k]:g} at index [{k + 1}], must increase"
            )


@dataclass(frozen=True, eq=False)
class ElasticSharing(Instance[Schedule]):
    """Jobs of known work and speed that share GPUs.

    ``work`` is also found as ``iterations``.

    Attributes
    ----------
    num_gpus : int
        GPUs of the cluster, M, at least 1 and at most 10,000,000.
    work : (n,) float
        Iterations of each job; one of 0 is finished: it completes when it arrives.
    throughputs : (n, num_gpus+1) float
        Iterations/s of each job at 0, 1, ..., num_gpus GPUs: 0 at 0, never falling.  A job of some
        work that runs on no number of GPUs makes the instance infeasible.
    arrivals : (n,) float
        Time at which each job arrives, s; 0 by default.
    reallocation : str
        When shares may change: "at_completions" (arrivals and completions only) or "any_time".
    requests : (n,) int
        GPUs that each job's user asks for, which schedulers that are not elastic go by; where it is
        0, the default, the fewest GPUs on which the job is as fast as it can be.  No rule of plans.
    quantum : float
        Unit of time, s, after which schedulers that do not know how long jobs are take a job's turn
        for over; 2 h by default, as in section 3.3 (footnote 11).  No rule of plans.
    attained : (n,) float
        Time for which each job has run before, s, which such schedulers go by; 0 by default.  No rule of plans.
    held : (n,) int
        GPUs that each job has held until now, which some schedulers let it keep; 0 by default.  No rule of plans.
    """

    problem = "afs.elastic_sharing"
    sense = "min"
    measure = "average completion time, s"
    plan_type = Schedule

    num_gpus: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    work: Annotated[FloatArray, Array(float, "n", minimum=0)]
    throughputs: Annotated[FloatArray, Array(float, "n m", minimum=0)]
    arrivals: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"]))
    reallocation: Annotated[str, Scalar(str, choices=("at_completions", "any_time"))] = "at_completions"
    requests: Annotated[IntArray, Array(int, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"], np.int64))
    quantum: Annotated[float, Scalar(float, above=0)] = 7200.0
    attained: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"]))
    held: Annotated[IntArray, Array(int, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"], np.int64))

    def _check(self) -> None:
        table = self.throughputs
        if not self.num_jobs:
            # A table without rows has lost its columns.
            object.__setattr__(self, "throughputs", table.reshape(0, self.num_gpus + 1))
            return
        if table.shape[1] != self.num_gpus + 1:
            raise self.refuse(
                "throughputs", f"got {table.shape[1]} columns, must be num_gpus + 1, {self.num_gpus + 1}: 0 to num_gpus"
            )
        for job in np.flatnonzero(table[:, 0]).tolist():
            raise self.refuse("throughputs", f"got {table[job, 0]:g} at index [{job}, 0], must be 0 on no GPUs")
        falling = np.argwhere(np.diff(table, axis=1) < 0)
        if falling.size:
            job, gpus = (int(i) for i in falling[0])
            raise self.refuse(
                "throughputs",
                f"got {table[job, gpus + 1]:g} after {table[job, gpus]:g} at index [{job}, {gpus + 1}], must not fall",
            )

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def iterations(self) -> FloatArray:
        """(n,) float: iterations of each job, ``work``."""
        return self.work

    @cached_property
    def concave(self) -> BoolArray:
        """(n,) bool: whether each further GPU adds no more throughput than the one before."""
        steps = np.diff(self.throughputs, axis=1)
        # Differences of measured numbers carry the rounding of the numbers themselves.
        slack = EXACT * self.throughputs[:, -1:]
        concave: BoolArray = np.asarray((np.diff(steps, axis=1) <= slack).all(axis=1))
        return concave

    @cached_property
    def stuck(self) -> BoolArray:
        """(n,) bool: which jobs have work to do and run on no number of GPUs."""
        return np.asarray((self.work > 0) & (self.throughputs[:, -1] == 0))

    @cached_property
    def requested(self) -> IntArray:
        """(n,) int: GPUs that each job asks for, ``requests`` or else ``max_shares``."""
        return np.where(self.requests > 0, self.requests, self.max_shares)

    @cached_property
    def min_shares(self) -> IntArray:
        """(n,) int: fewest GPUs on which each job runs at all; 0 where there are none."""
        return np.asarray((self.throughputs > 0).argmax(axis=1))

    @cached_property
    def max_shares(self) -> IntArray:
        """(n,) int: fewest GPUs on which each job is as fast as it can be."""
        return np.asarray((self.throughputs == self.throughputs[:, -1:]).argmax(axis=1))

    def completions(self, plan: Schedule) -> FloatArray:
        """(n,) float: when each job's work is done, s; infinite where it never is.

        A job without work is done when it arrives.  One that has no more than the tolerance of its work
        left is taken to run on at its throughput, so that stopping short wins nothing.
        """
        rates = self._rates(plan)
        done = np.cumsum(rates * np.diff(plan.times)[:, None], axis=0)
        slack = self._work_slack(plan, rates)
        completions = np.full(self.num_jobs, np.inf)
        for job in range(self.num_jobs):
            work, rate = self.work[job], rates[:, job]
            enough = np.flatnonzero((done[:, job] >= work - slack[:, job]) & (rate > 0))
            if enough.size:
                interval = int(enough[0])
                left = work - (done[interval - 1, job] if interval else 0.0)
                completions[job] = plan.times[interval] + left / rate[interval]
        return np.where(self.work > 0, completions, self.arrivals)

    def _work_slack(self, plan: Schedule, rates: FloatArray) -> FloatArray:
        """(t, n) float: by how much each job's work may be missed when an interval ends, iterations.

        Times are numbers with a last digit too, which counts at each change of a job's speed: among
        seconds since 1970 it is worth more than the tolerance of a short job.  That of later times excuses nothing.
        """
        changes = 2 + np.cumsum(np.diff(rates, axis=0, prepend=rates[:1]) != 0, axis=0)
        slack: FloatArray = TOLERANCE * self.work + changes * self.throughputs[:, -1] * np.spacing(plan.times[1:, None])
        return slack

    def _rates(self, plan: Schedule) -> FloatArray:
        """(t, n) float: iterations/s of each job in each interval."""
        outside = self._outside(plan)
        if outside.size:
            k, job = outside[0]
            raise PlanError(
                f"{self.problem}: shares is {plan.shares[k, job]} at index [{k}, {job}], must be 0 to {self.num_gpus}"
            )
        return np.asarray(self.throughputs[np.arange(self.num_jobs), self.shares_of(plan)])

    def shares_of(self, plan: Schedule) -> IntArray:
        """(t, n) int: the shares of a plan, which has lost its columns where it has no intervals."""
        return plan.shares.reshape(len(plan.times) - 1, self.num_jobs)

    def _plan_dims(self) -> dict[str, int]:
        return self.dims if self.num_jobs else {**self.dims, "t": 0}

    def _outside(self, plan: Schedule) -> IntArray:
        return np.argwhere((plan.shares < 0) | (plan.shares > self.num_gpus))

    def _value(self, plan: Schedule) -> float:
        return float((self.completions(plan) - self.arrivals).mean())

    def _broken_rules(self, plan: Schedule) -> Iterator[Violation]:
        outside = self._outside(plan)
        if outside.size:
            for k, job in outside.tolist():
                share = int(plan.shares[k, job])
                yield Violation("share_range", (k, job), float(max(-share, share - self.num_gpus)))
            return
        yield from exceeding("gpus", total(plan.shares, axis=1), self.num_gpus)
        early = (self.arrivals - plan.times[:-1, None]) * (self.shares_of(plan) > 0)
        yield from exceeding("arrival", early, 0)
        rates = self._rates(plan)
        done = dot(np.diff(plan.times), rates)
        # What may be missed grows with time: the most of it is what may be missed when the job runs last.
        slack = np.where(rates > 0, self._work_slack(plan, rates), TOLERANCE * self.work).max(axis=0, initial=0.0)
        for job in np.flatnonzero(np.abs(done - self.work) > slack):
            yield Violation("work_done", (int(job),), float(abs(done[job] - self.work[job])))
        if self.reallocation == "at_completions" and self.num_jobs:
            yield from self._unprompted_changes(plan)

    def _unprompted_changes(self, plan: Schedule) -> Iterator[Violation]:
        """Find changes of shares at times when no job arrives or completes."""
        idle = np.zeros((1, self.num_jobs), np.int64)
        changes = np.flatnonzero(np.diff(np.concatenate([idle, self.shares_of(plan), idle]), axis=0).any(axis=1))
        completions = self.completions(plan)
        events = np.concatenate([self.arrivals, completions[np.isfinite(completions)]])
        # Completions are sums of intervals, of times that have a last digit.
        since = plan.times - min(float(plan.times[0]), float(self.arrivals.min()))
        slack = TOLERANCE * since + len(plan.times) * np.spacing(plan.times)
        for k in changes.tolist():
            away = float(np.abs(events - plan.times[k]).min())
            if away > slack[k]:
                yield Violation("reallocation", (k,), away)

    def _draw(self, axes: Axes, plan: Schedule | None) -> None:
        names = [f"job {job}" for job in range(self.num_jobs)]
        if plan is None:
            most = self.throughputs[:, -1]
            gpus = np.arange(self.num_gpus + 1)
            shown = np.divide(
                self.throughputs, most[:, None], where=most[:, None] > 0, out=np.zeros_like(self.throughputs)
            )
            pictures.curves(axes, [gpus] * self.num_jobs, shown)
            axes.set_xlabel("GPUs")
            pictures.whole_numbers(axes.xaxis)
            axes.set_ylabel("throughput / throughput on all GPUs")
            on_all = np.divide(self.work, most, where=most > 0, out=np.where(self.work > 0, np.inf, 0.0)).tolist()
            pictures.legend(axes, [f"{name}: {time:.4g} s on all" for name, time in zip(names, on_all, strict=True)])
            return
        if len(plan.shares):
            pictures.over_time(axes, plan.times, plan.shares, capacity=self.num_gpus)
        if not self._outside(plan).size:
            pictures.completions(axes, self.completions(plan))
        axes.set_xlabel("time, s (dotted: completions)")
        axes.set_ylabel("GPUs")
        pictures.whole_numbers(axes.yaxis)
        pictures.legend(axes, names)


# --- instances -------------------------------------------------------------------------------


def bounded_linear(min_share: int, max_share: int, per_gpu: float, num_gpus: int) -> FloatArray:
    """(num_gpus+1,) float: curve of a job with a minimum and a maximum, as in Aryl; iterations/s.

    Nothing below ``min_share`` GPUs, ``per_gpu`` iterations/s for each from there on, and no more
    than at ``max_share``.  Equal bounds make a rigid job.  Such a curve is concave only if
    ``min_share`` is 1.
    """
    if not 1 <= min_share <= min(max_share, num_gpus):
        raise ValueError(f"min_share: got {min_share}, must be 1 to {min(max_share, num_gpus)}")
    gpus = np.arange(num_gpus + 1)
    return np.where(gpus < min_share, 0.0, per_gpu * np.minimum(gpus, max_share))


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: Count = 4,
    num_gpus: Count = 8,
    loss: Fraction = 0.5,
    rigid: Fraction = 0.0,
    arrival_gap: AtLeast0 = 0.0,
    reallocation: str = "at_completions",
    requests: bool = False,
) -> ElasticSharing:
    """Jobs with concave curves up to the most GPUs that each can use.

    Durations on one GPU are log-uniform from 10 minutes to a day; the most GPUs that a job can use
    are a power of two, 2 to ``num_gpus``.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs : int
        Number of jobs, n.
    num_gpus : int
        GPUs of the cluster, M.
    loss : float
        Hardness dial from 0 to 1: a job on s GPUs is s^(1 - e) times as fast as on one, with e
        uniform from 0 to ``loss``.  At 0 jobs scale linearly up to their maximum; the more is
        lost, the more sharing conflicts with finishing short jobs first.
    rigid : float
        Fraction of the jobs that run on their maximum of GPUs only.
    arrival_gap : float
        Mean time between arrivals, s (exponential); with 0 all jobs are there at once.
    reallocation : str
        "at_completions" or "any_time".
    requests : bool
        Whether jobs ask for GPUs: for a power of two up to the most that each can use, for those and
        no fewer where it is rigid.
    """
    rng = np.random.default_rng(rng)
    gpus = np.arange(num_gpus + 1)
    work, tables, mosts = [], [], []
    for _ in range(num_jobs):
        most = 2 ** int(rng.integers(min(1, num_gpus.bit_length() - 1), num_gpus.bit_length()))
        exponent = 1 - loss * rng.uniform()
        single = 10 ** rng.uniform(-1.0, 1.0)
        table = single * power(np.minimum(gpus, most), exponent)
        if rng.uniform() < rigid:
            table[:most] = 0.0
        duration = 600 * 10 ** rng.uniform(0.0, math.log10(144))
        work.append(np.ceil(duration * single))
        tables.append(table)
        mosts.append(most)
    arrivals = np.cumsum(rng.exponential(arrival_gap, num_jobs)) if arrival_gap else np.zeros(num_jobs)
    asked = np.zeros(num_jobs, np.int64)
    if requests:
        drawn = [2 ** int(rng.integers(0, most.bit_length())) for most in mosts]
        least = [int((table > 0).argmax()) for table in tables]
        asked = np.maximum(drawn, least)
    return ElasticSharing(
        num_gpus=num_gpus,
        work=np.array(work),
        throughputs=np.array(tables),
        arrivals=arrivals - arrivals[0],
        reallocation=reallocation,
        requests=asked,
    )


def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_jobs: int = 4,
    repair: bool = False,
    num_gpus: int = 8,
    arrivals: bool = False,
    models: Sequence[str] | None = None,
    reallocation: str = "at_completions",
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
    time: float | None = None,
) -> ElasticSharing:
    """Consecutive jobs of a trace as elastic jobs.

    A job of the trace that names a model for which there is a table gets that model's curve, at a
    batch size drawn uniformly; any other job, a curve drawn uniformly.  It asks for the trace's GPUs,
    or for all of the cluster if those are fewer, and its work is what it would do on them in the trace's
    duration (section 5.1).

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed: it chooses the stretch of the trace, and draws curves.
    throughputs : path, open file or DataFrame
        Tables for :func:`instances.data.elasticflow.read_throughputs`, mostly a folder.
    trace : path, open file or DataFrame
        A job table for :func:`instances.data.jobs.read_trace`, such as a raw Microsoft trace or the Tiresias trace.
    num_jobs : int
        Number of jobs, n.
    repair : bool
        Whether curves that fall or are not concave are repaired, with a :class:`RepairWarning` that
        lists them, rather than refused.
    num_gpus : int
        GPUs of the cluster, M.
    arrivals : bool
        Whether jobs arrive at the trace's distances; otherwise all are there at once, which the
        exact model needs.
    models : sequence of str, optional
        Use the curves of these models only.
    reallocation : str
        "at_completions" or "any_time".
    columns, skip_bad_rows, time
        As in :class:`instances.data.jobs.TraceChoice`.

    Raises
    ------
    InstanceError
        When a file is malformed, a curve is not in order and ``repair`` is false, or the trace has
        too few jobs.
    """
    rng = np.random.default_rng(rng)
    known = curves(throughputs, num_gpus=num_gpus, models=models, repair=repair)
    if known.repairs:
        warnings.warn(
            f"{known.attrs['reading']['source']}: repaired {'. '.join(known.repairs)}", RepairWarning, stacklevel=2
        )
    arriving = read_trace(trace, columns=columns, skip_bad_rows=skip_bad_rows)
    first = draw_first(rng, arriving, num_jobs, time)
    jobs = arriving.iloc[first : first + num_jobs]
    in_order = sorted(known.tables)
    drawn = 0
    work, tables, requests = [], [], []
    models_of = jobs["model"].tolist() if "model" in jobs else [""] * num_jobs
    for model, duration, held in zip(models_of, jobs["duration"].tolist(), jobs["num_gpus"].tolist(), strict=True):
        own = [kind for kind in in_order if kind[0] == model]
        kinds = own or in_order
        drawn += not own
        table = known.tables[kinds[int(rng.integers(len(kinds)))]]
        tables.append(table)
        requests.append(min(held, num_gpus))
        work.append(duration * table[requests[-1]])
    submitted = jobs["submit_time"].to_numpy(float)
    return ElasticSharing(
        num_gpus=num_gpus,
        work=np.array(work),
        throughputs=np.array(tables),
        arrivals=submitted - submitted.min() if arrivals else np.zeros(num_jobs),
        reallocation=reallocation,
        requests=np.array(requests),
    ).with_origin(
        origin(
            "instances.afs.elastic_sharing.from_trace",
            throughputs=known.attrs,
            trace=arriving.attrs,
            rows=np.arange(first, first + num_jobs),
            jobs=jobs["job_id"].tolist(),
            repairs={
                "model is drawn, of which there is no table": drawn,
                "request is cut to the cluster's GPUs": int((jobs["num_gpus"] > num_gpus).sum()),
                "curve of the tables, used or not, is repaired": len(known.repairs),
                "arrival is put at the start": 0 if arrivals else int((submitted > submitted.min()).sum()),
            },
            options={
                "num_jobs": num_jobs,
                "num_gpus": num_gpus,
                "repair": repair,
                "repaired_curves": list(known.repairs),
                "arrivals": arrivals,
                "models": models,
                "time": time,
            },
        )
    )


from_frame = ElasticSharing.from_frame


HOUR = 3600.0
"""Seconds."""

MAX_GPUS = {
    "VGG16": 8,
    "GoogLeNet": 20,
    "Inception-v4": 52,
    "ResNet-50": 28,
    "DCGAN": 20,
    "Video Prediction": 28,
    "Chatbot": 4,
    "Deep Speech 2": 20,
    "Transformer": 44,
}
"""The models of Table 4, and the number of GPUs up to which the throughput of each grows."""


def appendix_a() -> ElasticSharing:
    """Jobs A and B of Appendix A on 2 GPUs: 2 h each on one, 1 h and 1.5 h on two.

    Shortest first takes 1 h and 2.5 h, 1.75 h on average, which is the optimum; the printed 1.25 h is
    the average of the two running times, without the hour for which B waits.  Equal shares take 2 h.
    """
    return ElasticSharing(
        num_gpus=2,
        work=np.array([2.0, 2.0]) * HOUR,
        throughputs=np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 4 / 3]]),
    )


def appendix_a_sequel(x: float = 1.75, *, num_future: int = 2) -> ElasticSharing:
    """Jobs A and B of :func:`appendix_a`, and identical jobs that arrive after them.

    Each takes 2 h on one GPU and ``x`` h on two.  The first arrives after 1 h, and each other ``x`` h
    after the one before.

    Parameters
    ----------
    x : float
        Hours, more than 1 and less than 2.
    num_future : int
        How many arrive; Appendix A does not say.

    Raises
    ------
    ValueError
        When ``x`` is not between 1 and 2.
    """
    if not 1 < x < 2:
        raise ValueError(f"x: got {x}, must be more than 1 and less than 2")
    first = appendix_a()
    return ElasticSharing(
        num_gpus=2,
        work=np.full(2 + num_future, 2 * HOUR),
        throughputs=np.array([*first.throughputs.tolist(), *([[0.0, 1.0, 2 / x]] * num_future)]),
        arrivals=np.concatenate([np.zeros(2), HOUR * (1 + x * np.arange(num_future))]),
    )


def table_4(num_gpus: int = 64) -> ElasticSharing:
    """Return a job of each model of Table 4, in its order, on the 64 GPUs of section 5.1.

    Printed are the numbers of GPUs up to which throughputs grow, which are asked for here.  The
    curves are not printed: they are linear up to there, and each job takes an hour on its maximum.

    Parameters
    ----------
    num_gpus : int
        GPUs of the cluster, at least 52.
    """
    gpus = np.arange(num_gpus + 1.0)
    most = np.array(list(MAX_GPUS.values()))
    return ElasticSharing(
        num_gpus=num_gpus, work=most * HOUR, throughputs=np.minimum(gpus, most[:, None]), requests=most
    )


def three_job_cycle() -> ElasticSharing:
    """Three jobs on 4 GPUs among which AFS-L's comparison goes round in a circle.

    Each has a GPU and wants the fourth: job 0 wins against job 1, job 1 against job 2, and job 2
    against job 0.  The scan in order of index gives it to job 2; another order, to another job.
    Appendix C excludes other circles only.  The data are the library's.
    """
    return ElasticSharing(
        num_gpus=4,
        work=np.array([1000.0, 2000.0, 3000.0]),
        throughputs=np.array([[0, 10, 14, 14, 14], [0, 10, 16, 16, 16], [0, 10, 18, 18, 18]], float),
    )
