"""What Gavel (OSDI'20) states of finish-time fairness, put to the test."""

from __future__ import annotations

from heuristics.gavel.finish_time_fairness import same_ratio
from instances.gavel.finish_time_fairness import FinishTimeFairness
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import homogeneous, job_incentive, no_starvation, objective_incentive
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]

_NEW = Family(FinishTimeFairness, 3, (1, 2), jobs={"steps": (1.0, 2.0)})
_RUNNING = Family(
    FinishTimeFairness,
    2,
    (1, 2),
    jobs={"steps": (1.0,), "elapsed": (0.0, 1.0, 2.0), "isolated_elapsed": (0.0, 1.0)},
)

CLAIMS: list[Claim] = [
    objective_incentive(FinishTimeFairness),
    job_incentive(_NEW, jobs="for new jobs"),
    job_incentive(_RUNNING, "_running", "for jobs in the middle of their lives"),
    homogeneous(
        "finish_time_fairness",
        FinishTimeFairness,
        same_ratio,
        "time that gives all jobs the same ratio, the least that fits.",
    ),
    no_starvation(_NEW, jobs="for new jobs"),
    no_starvation(_RUNNING, "_running", "for jobs in the middle of their lives"),
]
