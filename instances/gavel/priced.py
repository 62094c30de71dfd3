"""Common ground of Gavel's two cost policies: workers that are paid by the hour, and service objectives.

A job with a service level objective (SLO) must have finished its steps when the time is up:

    throughput(m, X) >= steps_m / slo_m.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Self, Unpack

import numpy as np

from instances.arithmetic import power
from instances.base import Violation, exceeding
from instances.data.lines import Source
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.steps import SharingWithSteps
from instances.gavel.synthetic import ClusterOptions, draw_cluster, draw_steps
from instances.gavel.traces import PRICES, TraceChoice, jobs_from_trace, price_of_each
from instances.schema import Array, FloatArray, IntArray, default

__all__ = ["PRICES", "PricedSharing", "draw_slos"]


@dataclass(frozen=True, eq=False, kw_only=True)
class PricedSharing(SharingWithSteps):
    """Jobs that share paid workers; the other fields are those of :class:`SharingWithSteps`.

    Attributes
    ----------
    costs : (k,) float
        Price of one worker of each type, $/h, positive.
    slos : (n,) float
        Time in which each job must finish, s, positive; infinite (``null`` in JSON) for none, which
        is the default.
    """

    costs: Annotated[FloatArray, Array(float, "k", above=0)]
    slos: Annotated[FloatArray, Array(float, "n", above=0, infinite=True)] = default(
        lambda dims: np.full(dims["n"], np.inf)
    )

    @cached_property
    def slo_jobs(self) -> IntArray:
        """Jobs that have an SLO and steps left; a finished job is in time."""
        return np.flatnonzero(np.isfinite(self.slos) & self.active)

    def _broken_rules(self, plan: Allocation) -> Iterator[Violation]:
        yield from super()._broken_rules(plan)
        jobs = self.slo_jobs
        for late in exceeding("slo", self.times_left(plan)[jobs], self.slos[jobs]):
            yield Violation(late.rule, (int(jobs[late.index[0]]),), late.amount)

    @classmethod
    def from_trace(
        cls,
        rng: np.random.Generator | int,
        *,
        throughputs: Source,
        trace: Source,
        num_jobs: int = 16,
        prices: Mapping[str, float] | None = None,
        slo_fraction: float = 0.25,
        slo_tightness: float = 0.8,
        **choice: Unpack[TraceChoice],
    ) -> Self:
        """Jobs of a real trace with all their steps to do, and the throughputs of a published table.

        The other parameters and errors are those of :func:`instances.gavel.traces.jobs_from_trace`.

        Parameters
        ----------
        prices : mapping
            $/h of one worker of each type; by default those of the published types.
        slo_fraction, slo_tightness : float
            As in ``generate``: the published traces have no SLOs.  A job that has one keeps it.
        """
        rng = np.random.default_rng(rng)
        jobs, fields = jobs_from_trace(rng, throughputs=throughputs, trace=trace, num_jobs=num_jobs, **choice)
        told = jobs.attrs["origin"]
        of_pool = price_of_each(told["options"]["worker_types"], prices)
        steps = jobs["steps"].to_numpy(float)
        drawn = draw_slos(rng, fields, steps, fraction=slo_fraction, tightness=slo_tightness)
        given = jobs["slo"].to_numpy(float)
        told["options"] |= {"slo_fraction": slo_fraction, "slo_tightness": slo_tightness}
        if prices is not None:
            told["options"]["prices"] = dict(prices)
        told["repairs"]["SLO is drawn, of which the trace has none"] = int(
            (np.isfinite(drawn) & ~np.isfinite(given)).sum()
        )
        return cls(
            **fields, costs=of_pool[fields["pools"]], steps=steps, slos=np.where(np.isfinite(given), given, drawn)
        ).with_origin(told)

    @classmethod
    def generate(
        cls,
        rng: np.random.Generator | int,
        *,
        slo_fraction: float = 0.25,
        slo_tightness: float = 0.8,
        **options: Unpack[ClusterOptions],
    ) -> Self:
        """Synthetic jobs with the durations of the paper's traces on workers that cost more the faster.

        Parameters
        ----------
        rng : Generator or int
            Source of randomness, or its seed.
        slo_fraction : float
            Fraction from 0 to 1 of the jobs with an SLO.
        slo_tightness : float
            Hardness dial: throughput that SLOs ask for, relative to that of an isolated 1/n share.
            Up to 1 all SLOs can be met together; above, perhaps not.
        **options
            Sizes and the hardness dial of :func:`instances.gavel.synthetic.draw_cluster`.
        """
        rng = np.random.default_rng(rng)
        fields = draw_cluster(rng, **options)
        steps = draw_steps(rng, fields["throughputs"])
        of_pool = np.sort(np.round(power(10, rng.uniform(-0.5, 0.7, len(fields["num_workers"]))), 2))
        slos = draw_slos(rng, fields, steps, fraction=slo_fraction, tightness=slo_tightness)
        return cls(**fields, costs=of_pool[fields["pools"]], steps=steps, slos=slos)


def draw_slos(
    rng: np.random.Generator, cluster: dict[str, Any], steps: FloatArray, *, fraction: float, tightness: float
) -> FloatArray:
    """(n,) float: SLOs for a fraction of the jobs of a cluster, s; infinite for the others.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    cluster : dict
        Fields of :class:`Sharing`.
    steps : (n,) float
    fraction : float
        From 0 to 1.
    tightness : float
        Throughput that SLOs ask for, relative to that of an isolated 1/n share.
    """
    isolated = steps / Sharing(**cluster).isolated_throughputs
    return np.where(rng.random(len(steps)) < fraction, isolated / tightness, np.inf)
