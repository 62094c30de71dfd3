"""Which jobs run in each of the next rounds: the program of Shockwave (NSDI'23).

A window has R rounds of D seconds, in each of which job j runs on all of its s_j GPUs or not at all.  It has done d_j
of its E_j epochs of e_j seconds, is expected to need l_j seconds more, and makes as much progress as its rounds k_j and
its epochs allow.  With log~ the logarithm interpolated between given points, G GPUs and n jobs:

    max  1/(n R) sum_j w_j log~((d_j + p_j) / E_j)  -  kappa * max_j (l_j - e_j p_j)^+
    s.t. e_j p_j = min(D k_j, e_j (E_j - d_j)),   k_j = the rounds in which j runs,
         sum_{j runs in r} s_j  <=  G                                              for each round r,
         D (rounds past + R) + (l_j - e_j p_j)^+ max(1, n/G)  <=  limit_j          for each job j.

The value depends on how many rounds each job runs; which ones decides whether there are GPUs for all.

As printed / as built
---------------------
Read from the released code.  It writes log~ with binary variables, which a concave function does not need, and asks for
progress by inequalities; more progress is never worse, so here it is what rounds and epochs allow.  Where its solver
finds no plan within the limits, it drops them and weighs the logarithms by how late jobs are: that second program is
:func:`without_limits`, an instance of the same problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction as Exact
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import numpy as np

from instances import pictures
from instances.arguments import AtLeast0, Count, Positive, checked
from instances.arithmetic import power, product, total
from instances.base import TOLERANCE, Instance, InstanceError, Plan, Violation, exceeding
from instances.data.lines import Source
from instances.gavel.round_assignment import RoundAssignment
from instances.gavel.traces import jobs_from_trace
from instances.schema import LONGEST, Array, BoolArray, FloatArray, IntArray, Scalar, default

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "POINTS",
    "Window",
    "WindowPlan",
    "from_frame",
    "from_round",
    "from_trace",
    "generate",
    "limit_before_progress",
    "longest_first",
    "rounds_left_over",
    "turns",
    "without_limits",
]

POINTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Points between which the released configurations interpolate the logarithm."""
SCALES = (1, 2, 4, 8), (0.6, 0.3, 0.09, 0.01)
"""GPUs of jobs, and how often the released traces have them."""
SHORTEST, SPREAD = 720.0, 25.0
"""Of the released traces' jobs: seconds of the shortest, and how many times as long the longest is."""


@dataclass(frozen=True, eq=False)
class WindowPlan(Plan):
    """Jobs of the rounds.

    Attributes
    ----------
    runs : (n, r) bool
        Whether each job runs in each round of the window.
    """

    runs: Annotated[BoolArray, Array(bool, "n r")]


@dataclass(frozen=True, eq=False, kw_only=True)
class Window(Instance[WindowPlan]):
    """Jobs with what they have done and have left, and the window's rounds.

    Attributes
    ----------
    num_gpus : int
        GPUs that there are, G.
    num_rounds : int
        Rounds of the window, R.
    round_duration : float
        Of a round, s.
    rounds_past : int
        Rounds before the window, from which finish times count; 0 by default.
    scale_factors : (n,) int
        GPUs that each job holds in a round in which it runs.
    epochs : (n,) int
        Epochs of each job, all in all.
    epochs_done : (n,) int
        Epochs that it has done, at most all.
    epoch_durations : (n,) float
        Of an epoch of each job, s.
    times_left : (n,) float
        Running time that each job is expected to need still, s; a forecast, which epochs left times their duration need
        not be.
    finish_limits : (n,) float
        What the finish time of each job must not exceed, s; infinite (the default) where there is none.
    weights : (n,) float
        Of each job's logarithm, at least 0; 1 by default.
    points : (b,) float
        Parts of a job's epochs between which the logarithm is interpolated, from 0 to 1, ascending; :data:`POINTS` by
        default.
    least_progress : float
        What stands for the point 0 in the logarithm, above 0, and small enough beside the next point for the
        interpolation to be concave; 1e-6 by default.
    remaining_penalty : float
        Value of a second of the longest time that a job has left after the window, at least 0; 0.001 by default.
    """

    problem = "shockwave.window"
    sense = "max"
    measure = "mean of the jobs' log utilities for each round, less what the longest time left costs"
    plan_type = WindowPlan

    num_gpus: Annotated[int, Scalar(int, minimum=1)]
    num_rounds: Annotated[int, Scalar(int, minimum=1, maximum=LONGEST)]
    round_duration: Annotated[float, Scalar(float, above=0)]
    rounds_past: Annotated[int, Scalar(int, minimum=0)] = 0
    scale_factors: Annotated[IntArray, Array(int, "n", minimum=1)]
    epochs: Annotated[IntArray, Array(int, "n", minimum=1)]
    epochs_done: Annotated[IntArray, Array(int, "n", minimum=0)]
    epoch_durations: Annotated[FloatArray, Array(float, "n", above=0)]
    times_left: Annotated[FloatArray, Array(float, "n", minimum=0)]
    finish_limits: Annotated[FloatArray, Array(float, "n", above=0, infinite=True)] = default(
        lambda dims: np.full(dims["n"], np.inf)
    )
    weights: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.ones(dims["n"]))
    points: Annotated[FloatArray, Array(float, "b", minimum=0)] = default(lambda dims: np.array(POINTS))
    least_progress: Annotated[float, Scalar(float, above=0)] = 1e-6
    remaining_penalty: Annotated[float, Scalar(float, minimum=0)] = 1e-3

    def _check(self) -> None:
        self._refuse_tables("num_rounds", self.num_rounds, "rounds")
        done = np.flatnonzero(self.epochs_done > self.epochs)
        if done.size:
            job = done[0]
            raise self.refuse(
                "epochs_done",
                f"got {self.epochs_done[job]} at index [{job}], must be at most {self.epochs[job]} epochs",
            )
        points, logs = (list(map(Exact, array)) for array in (self.points.tolist(), self.logs.tolist()))
        if points[0] != 0 or points[-1] != 1 or any(p >= q for p, q in pairwise(points)):
            raise self.refuse("points", f"got {self.points.tolist()}, must ascend from 0 to 1")
        rises = [(b - a) / (q - p) for (p, q), (a, b) in zip(pairwise(points), pairwise(logs), strict=True)]
        if rises[-1] < 0 or any(rise < later for rise, later in pairwise(rises)):
            raise self.refuse(
                "least_progress", f"got {self.least_progress:g}, must leave the interpolation between points concave"
            )

    @property
    def num_jobs(self) -> int:
        """Number of jobs, n."""
        return self.dims["n"]

    @property
    def capacity(self) -> int:
        """GPU-rounds of the window."""
        return self.num_gpus * self.num_rounds

    @cached_property
    def logs(self) -> FloatArray:
        """(b,) float: logarithms of the points, correctly rounded, so that they are the same on every machine."""
        # Whatever the context of the caller's decimals is.
        digits = Context(prec=28)
        return np.array([float(Decimal(point or self.least_progress).ln(digits)) for point in self.points.tolist()])

    @cached_property
    def segments(self) -> tuple[FloatArray, FloatArray]:
        """(b-1,) float each: where the lines of the interpolated logarithm meet 0, and how they rise."""
        slopes = np.diff(self.logs) / np.diff(self.points)
        return self.logs[:-1] - slopes * self.points[:-1], slopes

    def planned(self, rounds: IntArray) -> FloatArray:
        """(n, ...) float: running time that jobs get of some numbers of rounds, s; no more than their epochs take."""
        left = self.epoch_durations * (self.epochs - self.epochs_done)
        shape = (self.num_jobs,) + (1,) * (np.ndim(rounds) - 1)
        planned: FloatArray = np.minimum(self.round_duration * rounds, left.reshape(shape))
        return planned

    @cached_property
    def _by_rounds(self) -> FloatArray:
        """(n, r+1) float: running time that each job gets of 0 to R rounds, s."""
        return self.planned(np.broadcast_to(np.arange(self.num_rounds + 1), (self.num_jobs, self.num_rounds + 1)))

    @cached_property
    def utilities(self) -> FloatArray:
        """(n, r+1) float: what each job's weighted logarithm adds to the value if it runs in 0 to R rounds."""
        progress = (self.epochs_done[:, None] + self._by_rounds / self.epoch_durations[:, None]) / self.epochs[:, None]
        found = np.full(progress.shape, np.inf)
        for at_0, slope in zip(*self.segments, strict=True):
            found = np.minimum(found, at_0 + slope * progress)
        utilities: FloatArray = self.weights[:, None] * found / (self.num_jobs * self.num_rounds)
        return utilities

    @cached_property
    def times_after(self) -> FloatArray:
        """(n, r+1) float: time that each job still needs after the window if it runs in 0 to R rounds, s."""
        after: FloatArray = np.maximum(self.times_left[:, None] - self._by_rounds, 0.0)
        return after

    @cached_property
    def finish_times(self) -> FloatArray:
        """(n, r+1) float: when each job finishes if it runs in 0 to R rounds and has its share afterwards, s."""
        # After the window each job has the part min(1, G/n) of its time.
        later = self.times_after * max(1.0, self.num_jobs / self.num_gpus)
        finish: FloatArray = self.round_duration * (self.rounds_past + self.num_rounds) + later
        return finish

    @cached_property
    def least_rounds(self) -> IntArray:
        """(n,) int: rounds in which each job must run to keep its limit; R + 1 where it cannot."""
        limits = self.finish_limits[:, None]
        slack = TOLERANCE * np.where(np.isfinite(limits), limits, 0.0)
        late = (self.finish_times > limits) & (self.finish_times - limits > slack)
        least: IntArray = late.sum(axis=1)
        return least

    @cached_property
    def most_rounds(self) -> IntArray:
        """(n,) int: rounds in which each job can run, 0 for one that needs more GPUs than there are."""
        return np.where(self.scale_factors <= self.num_gpus, self.num_rounds, 0)

    def rounds_of(self, plan: WindowPlan) -> IntArray:
        """(n,) int: rounds in which each job runs."""
        return np.array(total(plan.runs, axis=1), np.int64)

    def value_of(self, rounds: IntArray) -> float:
        """Return the value of jobs that run in so many rounds each, whether there are GPUs for them or not."""
        jobs = np.arange(self.num_jobs)
        longest = float(self.times_after[jobs, rounds].max(initial=0.0))
        return math.fsum(self.utilities[jobs, rounds].tolist()) - self.remaining_penalty * longest

    def _value(self, plan: WindowPlan) -> float:
        return self.value_of(self.rounds_of(plan))

    def _broken_rules(self, plan: WindowPlan) -> Iterator[Violation]:
        yield from exceeding("gpus", product(self.scale_factors, plan.runs), self.num_gpus)
        finish = self.finish_times[np.arange(self.num_jobs), self.rounds_of(plan)]
        yield from exceeding("finish_limit", finish, self.finish_limits)

    def _plan_dims(self) -> dict[str, int]:
        return {"n": self.num_jobs, "r": self.num_rounds}

    def _draw(self, axes: Axes, plan: WindowPlan | None) -> None:
        names = [f"job {job}" for job in range(self.num_jobs)]
        if plan is None:
            jobs = np.arange(self.num_jobs)
            axes.bar(jobs, self.epochs_done / self.epochs, color=[pictures.colour(job) for job in range(self.num_jobs)])
            pictures.number_axis(axes.xaxis, self.num_jobs)
            axes.set_ylim(0, 1)
            axes.set_xlabel("job")
            axes.set_ylabel("part of its epochs done")
            return
        if not self.num_jobs:
            return
        gpus = np.where(plan.runs, self.scale_factors[:, None], 0).T
        pictures.over_time(axes, np.arange(self.num_rounds + 1), gpus, capacity=self.num_gpus)
        pictures.whole_numbers(axes.xaxis, axes.yaxis)
        pictures.legend(axes, names)
        axes.set_xlabel("round")
        axes.set_ylabel("GPUs")


def without_limits(instance: Window, *, rho: float = 1.0, exponent: float = 5.0, most: float = math.inf) -> Window:
    """Return the program that the released code solves where limits cannot be met.

    There are no limits, and the logarithm of a job whose projected finish time is beyond its limit has the weight
    ratio ** ``exponent``; ratio ** 100 where it is expected to need less than a round.  The ratio is that of the
    projection, as if the job had its share from now on, to the time whose ``rho``-fold is the limit.

    Parameters
    ----------
    instance : Window
    rho : float
        Part of the fair finish time that the limits are, 1 in the released configurations.
    exponent : float
        Their ``lambda``: 5, 12 or 15.
    most : float
        What no ratio's power exceeds; there is no such limit in the released code.

    Raises
    ------
    InstanceError
        When a weight is too large for a number.
    """
    share = max(1.0, instance.num_jobs / instance.num_gpus)
    projected = instance.round_duration * instance.rounds_past + instance.times_left * share
    ratios = projected / (instance.finish_limits / rho)
    exponents = np.where(instance.times_left < instance.round_duration, 100.0, exponent)
    with np.errstate(over="ignore"):
        late = np.minimum(power(ratios, exponents), most)
    return replace(
        instance,
        finish_limits=np.full(instance.num_jobs, np.inf),
        weights=instance.weights * np.where(ratios > rho, late, 1.0),
    )


@checked
def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: Count = 20,
    num_rounds: Count = 20,
    num_gpus: Count | None = None,
    contention: Positive = 3.0,
    slack: AtLeast0 | None = 1.0,
    remaining_penalty: AtLeast0 = 1e-3,
) -> Window:
    """Jobs of Shockwave's traces after some hours.

    GPUs of jobs are drawn as often as in the released traces, running times from 0.2 to 5 hours, evenly by their
    logarithms; epochs, what is done of them, and forecasts that miss by up to a fifth, are this library's.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs, num_rounds : int
        n jobs, and R rounds of 120 s.
    num_gpus : int, optional
        GPUs; by default those that the jobs hold together, divided by ``contention``, and enough for each.
    contention : float
        Hardness dial: GPUs of all jobs for each GPU that there is, where ``num_gpus`` is left out.
    slack : float, optional
        Limits on finish times: a job that has had its share so far, and has it from now on, keeps its limit with a
        spare time drawn evenly from 0 to twice this part of the window.  None for no limits.
    remaining_penalty : float
        As the instance has it.
    """
    rng = np.random.default_rng(rng)
    scale_factors = rng.choice(SCALES[0], num_jobs, p=SCALES[1])
    gpus = _shared_gpus(scale_factors, contention) if num_gpus is None else num_gpus
    running = SHORTEST * power(SPREAD, rng.random(num_jobs))
    durations = np.round(power(10, rng.uniform(0.5, 2.0, num_jobs)), 1)
    return _begun(
        rng,
        num_gpus=gpus,
        num_rounds=num_rounds,
        scale_factors=scale_factors,
        epochs=np.maximum(1, np.rint(running / durations)).astype(np.int64),
        epoch_durations=durations,
        slack=slack,
        remaining_penalty=remaining_penalty,
    )


@checked
def from_trace(
    rng: np.random.Generator | int,
    *,
    throughputs: Source,
    trace: Source,
    num_jobs: Count = 20,
    num_rounds: Count = 20,
    worker_type: str | None = None,
    num_gpus: Count | None = None,
    contention: Positive = 3.0,
    epoch_seconds: Positive = 600.0,
    slack: AtLeast0 | None = 1.0,
    remaining_penalty: AtLeast0 = 1e-3,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
) -> Window:
    """Jobs drawn from a trace, with the running times of a published table on one worker type.

    A job runs for its steps over its throughput on as many workers as it asks for, in epochs of about the same length.
    What a trace does not tell, the part of its epochs that each job has done, the forecast, the rounds past and the
    limit, is drawn as :func:`generate` draws it.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    throughputs, trace : path, open file or DataFrame
        What :func:`instances.data.gavel.read_throughputs` and ``read_trace`` read; Shockwave's traces are among them.
    num_jobs : int
        Jobs drawn, n (:func:`instances.gavel.traces.draw_jobs`).
    num_rounds : int
        R rounds of 120 s.
    worker_type : str, optional
        The table's type that all GPUs are of; by default that on which the jobs run for the least time in all.
    num_gpus, contention
        As in :func:`generate`.
    epoch_seconds : float
        Length of an epoch, s, up to rounding; a shorter job has one.
    slack, remaining_penalty
        As in :func:`generate`.
    columns, skip_bad_rows
        As in :class:`instances.gavel.traces.TraceChoice`.

    Raises
    ------
    InstanceError
        When a file is malformed, the table has none of the trace's job types, or a job does not run on the type.
    """
    rng = np.random.default_rng(rng)
    jobs, fields = jobs_from_trace(
        rng,
        throughputs=throughputs,
        trace=trace,
        num_jobs=num_jobs,
        columns=columns,
        skip_bad_rows=skip_bad_rows,
        worker_types=None if worker_type is None else [worker_type],
        share_space=False,
    )
    told = jobs.attrs["origin"]
    names = told["options"].pop("worker_types")
    del told["options"]["share_space"]
    rates, scale_factors = fields["throughputs"], fields["scale_factors"]
    runs = (rates > 0).all(axis=0)
    if not runs.any():
        row = int(np.flatnonzero((rates <= 0).any(axis=1))[0])
        raise InstanceError(
            f"worker_type: model {jobs['model'][row]!r} with scale factor {scale_factors[row]} does not run on "
            f"{names[int(rates[row].argmin())]}, and no type of {', '.join(names)} runs all jobs drawn"
        )
    steps = jobs["steps"].to_numpy(float)
    times = [total(steps / rates[:, kind]) if runs[kind] else math.inf for kind in range(len(names))]
    kind = int(np.argmin(times))
    running = steps / rates[:, kind]
    epochs = np.maximum(1, np.rint(running / epoch_seconds)).astype(np.int64)
    window = _begun(
        rng,
        num_gpus=_shared_gpus(scale_factors, contention) if num_gpus is None else num_gpus,
        num_rounds=num_rounds,
        scale_factors=scale_factors,
        epochs=epochs,
        epoch_durations=running / epochs,
        slack=slack,
        remaining_penalty=remaining_penalty,
    )
    told["reader"] = "instances.shockwave.window.from_trace"
    told["repairs"]["what the job has done, its forecast and its limit are drawn"] = num_jobs
    told["options"] |= {
        "num_rounds": num_rounds,
        "worker_type": names[kind],
        "num_gpus": window.num_gpus,
        "epoch_seconds": epoch_seconds,
        "slack": slack,
        "remaining_penalty": remaining_penalty,
    }
    return window.with_origin(told)


def _shared_gpus(scale_factors: IntArray, contention: float) -> int:
    """Return the GPUs that jobs hold together, divided by the contention, and enough for each."""
    return max(int(scale_factors.max()), round(int(scale_factors.sum()) / contention))


def _begun(
    rng: np.random.Generator,
    *,
    num_gpus: int,
    num_rounds: int,
    scale_factors: IntArray,
    epochs: IntArray,
    epoch_durations: FloatArray,
    slack: float | None,
    remaining_penalty: float,
) -> Window:
    """Return jobs that have done a part of their epochs, with forecasts and limits, all of which are drawn."""
    n, round_duration = len(epochs), 120.0
    done = np.floor(epochs * rng.uniform(0, 1, n)).astype(np.int64)
    done = np.where(rng.random(n) < 0.3, 0, done)
    left = np.round((epochs - done) * epoch_durations * rng.uniform(0.8, 1.2, n), 1)
    past = int(rng.integers(0, 100))
    window = Window(
        num_gpus=num_gpus,
        num_rounds=num_rounds,
        round_duration=round_duration,
        rounds_past=past,
        scale_factors=scale_factors,
        epochs=epochs,
        epochs_done=done,
        epoch_durations=epoch_durations,
        times_left=left,
        remaining_penalty=remaining_penalty,
    )
    if slack is None:
        return window
    share = max(1.0, n / num_gpus)
    spare = slack * round_duration * num_rounds * rng.uniform(0, 2, n)
    # As the program counts, nobody finishes before the window's end, or without what forecasts have beyond the epochs.
    never = np.maximum(left - (epochs - done) * epoch_durations, 0.0)
    fair = np.maximum(
        round_duration * past + left * share + spare, round_duration * (past + num_rounds) + never * share
    )
    return replace(window, finish_limits=np.ceil(fair))


from_frame = Window.from_frame


def from_round(assignment: RoundAssignment) -> Window:
    """Return a round of Gavel's as a window of one round, whose values are the round's less the sum of all priorities.

    Each job has one epoch as long as the round, so that it is done or at the least progress, and a weight by which that
    difference is its priority.  Nothing depends on times.

    Parameters
    ----------
    assignment : RoundAssignment
        Of jobs alone, on one worker type on which all may run.

    Raises
    ------
    InstanceError
        When there are pairs, several types, or jobs that may not run.
    """
    if assignment.num_types != 1 or assignment.num_pairs or not assignment.eligible.all():
        raise InstanceError(
            f"shockwave.window: got {assignment.num_types} types and {assignment.num_pairs} pairs, must be jobs alone "
            "on one type on which all may run"
        )
    n, ones = assignment.num_jobs, np.ones(assignment.num_jobs)
    window = Window(
        num_gpus=int(assignment.num_workers[assignment.pools[0]]),
        num_rounds=1,
        round_duration=1.0,
        scale_factors=assignment.scale_factors,
        epochs=ones.astype(int),
        epochs_done=np.zeros(n, int),
        epoch_durations=ones,
        times_left=np.zeros(n),
        points=np.array([0.0, 1.0]),
        remaining_penalty=0.0,
    )
    return replace(window, weights=assignment.priorities[:, 0] * n / -window.logs[0])


def turns() -> Window:
    """Two jobs, one GPU and two rounds: each runs once.

    Either has ten epochs of 60 s and none done, and 600 s left.  Five epochs in a round of 300 s: the logarithm of one
    half, between log 0.4 and log 0.6, and 300 s left; if one ran twice, the other were at log 1e-6, with 600 s left.
    """
    return Window(
        num_gpus=1,
        num_rounds=2,
        round_duration=300.0,
        scale_factors=np.array([1, 1]),
        epochs=np.array([10, 10]),
        epochs_done=np.array([0, 0]),
        epoch_durations=np.array([60.0, 60.0]),
        times_left=np.array([600.0, 600.0]),
    )


def longest_first() -> Window:
    """One of the two jobs of :func:`turns` has twice as much to do, and each second of the longest time left costs 1.

    It runs in both rounds, and has 600 s left after them, as the other has, which never runs.
    """
    return replace(turns(), epochs=np.array([20, 10]), times_left=np.array([1200.0, 600.0]), remaining_penalty=1.0)


def limit_before_progress() -> Window:
    """Two jobs on one GPU for two rounds, of which one keeps its limit only if it has both.

    It is half done, and has 600 s left: after one round it would finish at 600 + 2 * 300 s, and its limit is 700 s.
    The other stays at log 1e-6.
    """
    return replace(
        turns(), epochs=np.array([20, 10]), epochs_done=np.array([10, 0]), finish_limits=np.array([700.0, np.inf])
    )


def rounds_left_over() -> Window:
    """GPU-rounds for what would be better, and no rounds: jobs of two, two and one GPU, on three GPUs.

    Two that hold two GPUs cannot run in one round, so each has one of the two, and one GPU is left in both for the
    third, which runs twice.  Counted in GPU-rounds alone, six would be enough for three rounds of the first two.
    """
    return Window(
        num_gpus=3,
        num_rounds=2,
        round_duration=300.0,
        scale_factors=np.array([2, 2, 1]),
        epochs=np.array([10, 10, 10]),
        epochs_done=np.array([0, 0, 0]),
        epoch_durations=np.array([60.0, 60.0, 60.0]),
        times_left=np.array([600.0, 600.0, 600.0]),
    )
