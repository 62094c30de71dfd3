"""Claims of Gavel (OSDI'20) about all its policies (sections 4.2 and 4.4), of one policy each."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

from formulations.gavel.sharing import SharingProgram
from instances.base import agree
from instances.gavel.priced import PricedSharing
from instances.gavel.sharing import Allocation, Sharing
from instances.gavel.throughput_per_dollar import ThroughputPerDollar
from instances.schema import FloatArray
from validation.claims.claim import Claim, Reading
from validation.claims.gavel.clusters import (
    DRAWN,
    DRAWN_ASSUMPTIONS,
    DRAWN_OF_ONE_WORKER,
    DRAWN_ON_ONE_TYPE,
    FAMILY_ASSUMPTIONS,
    SLOS,
    Family,
    are_drawn,
    are_drawn_of_one_worker,
    drawn,
    late_if_split,
    of_family,
)
from validation.claims.gavel.optima import attained, fairest_optimum, optimum, run
from validation.claims.plans import OPTIMAL, plans_of
from validation.claims.words import listed
from validation.kernel.gaps import beats

__all__ = ["homogeneous", "job_incentive", "objective_incentive", "wasteful"]


def _list(numbers: FloatArray) -> str:
    """Return a list in words: ``1``, ``1 and 2`` or ``1, 2 and 3``."""
    return listed(f"{round(number, 6) + 0.0:.6g}" for number in numbers.tolist())


# --- sharing incentive ---------------------------------------------------------------------------


def _below_isolation(instance: Sharing) -> str | None:
    """Describe how the optimum is worse than a static share for each job."""
    found = optimum(instance)
    isolated = instance.objective(instance.isolated_share())
    if found is None or not beats(instance.sense, isolated, value := found[0]):
        return None
    rules = {violation.rule for violation in instance.violations(instance.isolated_share())}
    feasible = f", but break {' and '.join(sorted(rules))}" if rules else ""
    return f"the optimum is {value:.6g}, isolated shares attain {isolated:.6g}{feasible}"


def _job_below_isolation(instance: Sharing) -> str | None:
    """Describe how every optimal allocation gives some job less than its static share does."""
    fairest = fairest_optimum(instance)
    if fairest is None or not beats("max", 1.0, fairest[0]):
        return None
    share, allocation = fairest
    return (
        f"every optimal allocation leaves some job at most {share:.6g} of its isolated throughput, such as jobs "
        f"at {_list(instance.throughput(allocation))} steps/s, in isolation {_list(instance.isolated_throughputs)}"
    )


def _fairest(instance: Sharing) -> Allocation | None:
    found = fairest_optimum(instance)
    return None if found is None else found[1]


def _title(policy: type[Sharing]) -> str:
    return policy.problem.split(".")[1]


def _below_feasible_split(instance: Sharing) -> str | None:
    """Describe how the optimum is worse than a static share for each job that meets all SLOs."""
    return None if instance.violations(instance.isolated_share()) else _below_isolation(instance)


_SPLIT = (
    "The split is X_isolated: 1/n of every pool, divided by the workers that a job holds and scaled down to all of the "
    "time where it is more"
)


def objective_incentive(policy: type[Sharing], *, slos: bool = False, others: tuple[Reading, ...] = ()) -> Claim:
    """Return the claim of a policy's sharing incentive of the objective, with ``others`` of its readings."""
    without = "with SLOs that can be met" if slos else "without SLOs"
    about = _about(policy, without if issubclass(policy, PricedSharing) else "")
    whatever = f"{about}. {_SPLIT}."
    return Claim(
        name=f"sharing_incentive_{_title(policy)}{'_slos' if slos else ''}",
        source="Gavel, section 4.4",
        statement="A policy's objective is at least as good as under an equal split of all resources, because that "
        "split is a feasible solution.",
        reading=f"{about}. {_SPLIT}; it counts where it meets the SLOs." if slos else whatever,
        instances=drawn(policy, slos=slos),
        assumes=are_drawn,
        by=_stated_by(policy),
        breaks=_below_feasible_split if slos else _below_isolation,
        scope=DRAWN + (SLOS if slos else ""),
        assumptions=DRAWN_ASSUMPTIONS,
        relaxed="",
        plans=plans_of("isolated", OPTIMAL),
        others=(
            Reading(
                f"{whatever[:-1]}; it counts even where it misses SLOs. Jobs are of one worker, so that a job's "
                "time costs what a worker's does.",
                _below_isolation,
                lambda rng: itertools.chain([late_if_split(policy)], drawn(policy, slos=True, wide=False)(rng)),
                scope=f"a worked example, then {DRAWN_OF_ONE_WORKER}{SLOS}",
                assumes=are_drawn_of_one_worker,
            ),
        )
        if slos
        else others,
    )


def _stated_by(policy: type[Sharing]) -> str:
    """Return who states of a policy what section 4.4 states of all of them, where that is not the paper."""
    unprinted = policy is ThroughputPerDollar
    return (
        "the library: the policy is in the released code only, and section 4.4 speaks of Gavel's" if unprinted else ""
    )


def _about(policy: type[Sharing], jobs: str) -> str:
    """Return the policy in words, such as ``gavel.cost, without SLOs``."""
    unprinted = " (the released code's objective, which is not printed)" if policy is ThroughputPerDollar else ""
    return f"{policy.problem}{unprinted}{', ' if jobs else ''}{jobs}"


def job_incentive(family: Family, suffix: str = "", jobs: str = "") -> Claim:
    """Return the claim of a policy's sharing incentive of each job, for the ``jobs`` of a family."""
    about = _about(family.policy, jobs)
    return of_family(
        family,
        name=f"sharing_incentive_per_job_{_title(family.policy)}{suffix}",
        source="Gavel, section 4.4",
        statement="Every policy has sharing incentive: users have no reason to prefer a fixed part of the cluster of "
        "their own.",
        reading=f"of the objective, as the section argues it: under {about}, the optimum is at least as good as under "
        "X_isolated.",
        breaks=_below_isolation,
        by=_stated_by(family.policy),
        others=(
            Reading(
                "of each user, as the work that the section cites for the term has it; each job is a user: under "
                f"{about}, some optimal allocation gives every job at least its throughput under X_isolated.",
                _job_below_isolation,
                plans=plans_of(("the fairest optimum", _fairest), "isolated"),
            ),
        ),
    )


# --- Pareto efficiency ---------------------------------------------------------------------------


def wasteful(instance: Sharing) -> str | None:
    """Describe how the optimal allocation found leaves throughput that a job could have at no other's expense."""
    received = instance.throughput(attained(instance)[1])
    program = SharingProgram(instance)
    program.constraint("kept", program.throughput >= received)
    program.maximize("total_share", (1 / instance.isolated_throughputs * program.throughput).sum())
    better = run(instance, program)
    assert better is not None
    possible = instance.throughput(better)
    before, after = (float((each / instance.isolated_throughputs).sum()) for each in (received, possible))
    if not beats("max", after, before):
        return None
    return f"it gives jobs {_list(received)} steps/s, {_list(possible)} are possible"


# --- homogeneous clusters ------------------------------------------------------------------------


def _differs(instance: Sharing, baseline: Callable[[Any], Allocation]) -> str | None:
    """Describe how the policy's optimum differs from the baseline's value."""
    value, other = attained(instance)[0], instance.objective(baseline(instance))
    return None if agree(value, other) else f"the optimum is {value:.6g}, the baseline attains {other:.6g}"


def homogeneous(
    name: str,
    policy: type[Sharing],
    baseline: Callable[[Any], Allocation],
    words: str,
    family: Family | None = None,
    other: tuple[Callable[[Any], Allocation], str] | None = None,
) -> Claim:
    """Return the claim that a policy attains on one type what a baseline, in ``words``, or an ``other`` one attains."""
    said = f"the optimum of {policy.problem} with one type and no pairs is the value of "
    return Claim(
        name=f"homogeneous_{name}",
        source="Gavel, section 4.4",
        statement="Where all workers are of one type, each policy comes down to the one that it extends.",
        reading=said + words,
        instances=drawn(policy, most_types=1, pairs=False) if family is None else family.instances,
        breaks=partial(_differs, baseline=baseline),
        scope=DRAWN_ON_ONE_TYPE if family is None else family.scope,
        exhaustive=family is not None,
        assumes=are_drawn if family is None else family.has,
        assumptions=DRAWN_ASSUMPTIONS if family is None else FAMILY_ASSUMPTIONS,
        relaxed="",
        plans=None if other is None else plans_of(("the baseline", other[0]), OPTIMAL),
        others=() if other is None else (Reading(said + other[1], partial(_differs, baseline=other[0])),),
    )
