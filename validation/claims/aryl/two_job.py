"""What Aryl (EuroSys'23 as Lyra) states of two elastic jobs (section 5.1, Appendix C), put to the test.

Optima are found by trying everything: the instances are small, and what judges the heuristics
here shares nothing with the models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from heuristics.aryl.two_job import closed_form
from instances.aryl.two_job import ArylTwoJob, ArylTwoJobPlan
from validation.claims.words import listed
from validation.gaps import beats
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]

Bounds = tuple[tuple[int, int], tuple[int, int]]
"""Minimum and maximum of the one and of the other job."""


def _slack_bounds(num_gpus: int) -> Iterator[Bounds]:
    """Minima of one GPU, which never keep the other job from its maximum."""
    for most_0, most_1 in itertools.product(range(1, num_gpus), repeat=2):
        yield (1, most_0), (1, most_1)


def _any_bounds(num_gpus: int) -> Iterator[Bounds]:
    yield from itertools.product(itertools.combinations_with_replacement(range(1, num_gpus + 1), 2), repeat=2)


def _equal_bounds(num_gpus: int) -> Iterator[Bounds]:
    yield from ((each, each) for each in itertools.combinations_with_replacement(range(1, num_gpus + 1), 2))


def _pairs(most_gpus: int, bounds: Callable[[int], Iterator[Bounds]], *, equal: bool = False) -> Iterator[ArylTwoJob]:
    """All pairs of jobs that leave a choice, of 1 to 6 GPU-seconds each; ``equal``: of equal work too."""
    workloads = [work for work in itertools.product(range(1, 7), repeat=2) if equal or work[0] != work[1]]
    for num_gpus in range(2, most_gpus + 1):
        for work in sorted(workloads, key=sum):
            for (least_0, most_0), (least_1, most_1) in bounds(num_gpus):
                if least_0 + least_1 < num_gpus < most_0 + most_1 and least_0 < most_0 and least_1 < most_1:
                    yield ArylTwoJob(
                        num_gpus=num_gpus,
                        workloads=np.array(work, float),
                        min_gpus=np.array([least_0, least_1]),
                        max_gpus=np.array([most_0, most_1]),
                    )


def _loses_to_a_split(instance: ArylTwoJob, plan: ArylTwoJobPlan) -> str:
    """How another split beats ``plan``; empty if none does."""
    best = min(map(instance.split, instance.splits), key=instance.objective)
    value, least = instance.objective(plan), instance.objective(best)
    if not beats("min", least, value):
        return ""
    return (
        f"it starts the jobs on {listed(plan.gpus)} GPUs and completes them in {value:g} s on average, "
        f"{listed(best.gpus)} GPUs take {least:g} s"
    )


def _rule_errs(instance: ArylTwoJob) -> str:
    return _loses_to_a_split(instance, closed_form(instance))


def _neither_first(instance: ArylTwoJob) -> str:
    ends = instance.split(instance.splits[0]), instance.split(instance.splits[-1])
    return _loses_to_a_split(instance, min(ends, key=instance.objective))


def _smaller_first_errs(instance: ArylTwoJob) -> str:
    smaller = int(np.argmin(instance.workloads))
    return _loses_to_a_split(instance, instance.split(instance.splits[-1 if smaller == 0 else 0]))


CLAIMS: list[Claim] = [
    Claim(
        name="two_job_rule",
        source="Aryl, section 5.1 and Appendix C",
        statement="Which of two elastic jobs should start with its maximum of GPUs, so that their average completion "
        "time is least, follows from their workloads and maxima.",
        reading="no bound binds: either job can have its maximum while the other has its minimum. The rule is that of "
        "heuristics.aryl.two_job.closed_form, which is derived from the appendix's setting and not copied from it.",
        instances=lambda rng: _pairs(8, _slack_bounds, equal=True),
        breaks=_rule_errs,
        scope="pairs of jobs of 1 to 6 GPU-seconds on up to 8 GPUs, with minima of 1 and any maxima below all GPUs "
        "that do not fit together",
        exhaustive=True,
    ),
    Claim(
        name="two_job_rule_with_minima",
        source="Aryl, section 5.1 and Appendix C",
        statement="Which of two elastic jobs should start with its maximum of GPUs, so that their average completion "
        "time is least, follows from their workloads and maxima.",
        reading="any bounds, and workloads that differ: the job that the rule names gets as much as the other's "
        "minimum leaves.",
        instances=lambda rng: _pairs(8, _any_bounds),
        breaks=_rule_errs,
        scope="pairs of jobs of different work, 1 to 6 GPU-seconds, on up to 8 GPUs, with any bounds that leave a "
        "choice",
        exhaustive=True,
    ),
    Claim(
        name="two_job_extremes",
        source="Aryl, section 5.1 and Appendix C",
        statement="One of two elastic jobs should get as many GPUs as it can at first.",
        reading="any bounds: no split in between is better than both of giving all that the bounds allow to one job "
        "and to the other.",
        instances=lambda rng: _pairs(6, _any_bounds, equal=True),
        breaks=_neither_first,
        scope="pairs of jobs of 1 to 6 GPU-seconds on up to 6 GPUs, with any bounds that leave a choice",
        exhaustive=True,
    ),
    Claim(
        name="two_job_smaller_first",
        source="Aryl, section 5.1, Tables 2 and 3",
        statement="Of two jobs that differ in nothing but their workloads, the smaller should go first.",
        reading="equal minima and equal maxima: the smaller workload gets all that the bounds allow.",
        instances=lambda rng: _pairs(10, _equal_bounds),
        breaks=_smaller_first_errs,
        scope="pairs of jobs of different work, 1 to 6 GPU-seconds, and equal bounds on up to 10 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="two_job_smaller_first_any_bounds",
        source="Aryl, section 5.1, Table 4",
        statement="The job of the smaller workload should go first.",
        reading="any bounds, and workloads that differ. Table 4, as reconstructed in instances.aryl.two_job, is an "
        "example against it.",
        instances=lambda rng: _pairs(8, _any_bounds),
        breaks=_smaller_first_errs,
        scope="pairs of jobs of different work, 1 to 6 GPU-seconds, on up to 8 GPUs, with any bounds that leave a "
        "choice",
        exhaustive=True,
    ),
]
