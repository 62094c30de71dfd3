"""Finish-time fairness over heterogeneous workers: Gavel (OSDI'20), section 4.2, after Themis.

Share a cluster of several worker types in time, so that no job finishes much later than it would
have with a 1/n share of the cluster to itself:

    min_X  max_m  rho_m(X),

               elapsed_m          + steps_m / throughput(m, X)
    rho_m(X) = -------------------------------------------------------- .
               isolated_elapsed_m + steps_m / throughput(m, X_isolated)

Each rho_m is convex in the job's throughput but not linear, and the optimum can be irrational.

A finished job has the ratio of its two times, elapsed_m / isolated_elapsed_m, whatever the plan.  A job
whose time in isolation is 0 or infinite (a finished one without a past, one that runs nowhere alone) has
nothing to be compared with: its ratio is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Unpack

import numpy as np

from instances.gavel.sharing import Allocation
from instances.gavel.steps import SharingWithSteps
from instances.gavel.synthetic import ClusterOptions, draw_cluster, draw_steps, three_jobs_on_two_types
from instances.schema import Array, FloatArray, IntArray, default

__all__ = ["FinishTimeFairness", "from_frame", "from_trace", "generate", "late_job", "three_jobs"]


@dataclass(frozen=True, eq=False, kw_only=True)
class FinishTimeFairness(SharingWithSteps):
    """Jobs with a past that share a cluster; the other fields are those of :class:`SharingWithSteps`.

    Attributes
    ----------
    elapsed : (n,) float
        Time since each job started, s, 0 by default.
    isolated_elapsed : (n,) float
        Time that the steps done so far would have taken each job in isolation, s, 0 by default.
    """

    problem = "gavel.finish_time_fairness"
    sense = "min"
    measure = "greatest finish time over that in isolation"

    elapsed: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"]))
    isolated_elapsed: Annotated[FloatArray, Array(float, "n", minimum=0)] = default(lambda dims: np.zeros(dims["n"]))

    @cached_property
    def isolated_times(self) -> FloatArray:
        """(n,) float: finish time of each job in isolation, since its start, s; infinite if it runs nowhere alone."""
        return self.isolated_elapsed + self.times_left(self.isolated_share())

    @cached_property
    def isolated_value(self) -> float:
        """Value of X_isolated, which is always attainable."""
        return self._value(self.isolated_share())

    def finish_time_ratios(self, plan: Allocation) -> FloatArray:
        """(n,) float: rho of each job; infinite for one that receives nothing, 0 if there is nothing to compare."""
        isolated = self.isolated_times
        ratios: FloatArray = np.divide(
            self.elapsed + self.times_left(plan),
            isolated,
            out=np.zeros(self.num_jobs),
            where=np.isfinite(isolated) & (isolated > 0),
        )
        return ratios

    @cached_property
    def weighed(self) -> IntArray:
        """Jobs whose ratio an allocation decides: they have steps left, and run alone somewhere."""
        return np.flatnonzero(self.active & np.isfinite(self.isolated_times))

    def _value(self, plan: Allocation) -> float:
        return float(self.finish_time_ratios(plan).max())


def generate(
    rng: np.random.Generator | int, *, unevenness: float = 1.0, **options: Unpack[ClusterOptions]
) -> FinishTimeFairness:
    """Synthetic jobs with the durations of the paper's traces, in the middle of their lives.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    unevenness : float
        Hardness dial: each job has run for up to this many times what it has left in isolation,
        and has done between half and one and a half of an isolated share's work in that time.  At
        0 all jobs are new and the problem is one linear program.
    **options
        Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
    """
    rng = np.random.default_rng(rng)
    fields = draw_cluster(rng, **options)
    new = FinishTimeFairness(**fields, steps=draw_steps(rng, fields["throughputs"]))
    elapsed = np.round(unevenness * rng.random(new.num_jobs) * new.isolated_times)
    return FinishTimeFairness(
        **fields,
        steps=new.steps,
        elapsed=elapsed,
        isolated_elapsed=np.round(elapsed * rng.uniform(0.5, 1.5, new.num_jobs)),
    )


from_trace = FinishTimeFairness.from_trace
from_frame = FinishTimeFairness.from_frame


def three_jobs() -> FinishTimeFairness:
    """Return the cluster of section 4.1 with 100 s of work for each job on the V100, all jobs new.

    The optimum is 11/12: all jobs finish 8.3% earlier than with an isolated third each.
    """
    return FinishTimeFairness(**three_jobs_on_two_types(), steps=np.array([4000.0, 1200.0, 10000.0]))


def late_job() -> FinishTimeFairness:
    """Two jobs of 100 s on one worker, of which job 1 has already waited for 100 s.

    The optimum, (3 + sqrt(5)) / 4 = 1.309..., is irrational although all data are whole.
    """
    return FinishTimeFairness(
        throughputs=np.array([[1.0], [1.0]]),
        num_workers=np.array([1]),
        steps=np.array([100.0, 100.0]),
        elapsed=np.array([0.0, 100.0]),
    )
