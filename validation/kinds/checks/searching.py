"""A check is run on instances until it fails, and the instance on which it does is made small."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Any

from instances.base import Instance
from validation.kernel.isolation import describe
from validation.kinds.checks.properties import Check
from validation.kinds.checks.report import CheckResult, CheckStatus
from validation.kinds.checks.shrinking import Shrinking
from validation.kinds.checks.subject import (
    CheckError,
    NoFeasiblePlan,
    NotApplicable,
    Subject,
    Unproven,
    is_failure,
    result_of,
    results_of,
)

__all__ = ["ahead", "batches", "fails", "search"]

AnyInstance = Instance[Any]

TELLING = 0.5
"""Seconds after which a check that goes on tells how far it is."""


def fails(check: Check, subject: Subject, instance: AnyInstance) -> bool:
    """Return whether a heuristic breaks a check on an instance."""
    return bool(_reason(check, subject, instance))


def _reason(check: Check, subject: Subject, instance: AnyInstance) -> str:
    """Return why the check fails on an instance; empty when it does not."""
    try:
        result_of(check.run(subject, instance))
    except (NoFeasiblePlan, NotApplicable, Unproven):
        return ""
    except Exception as error:
        return _said(error)
    return ""


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, CheckError) else describe(error)


def batches(instances: Iterable[AnyInstance]) -> Iterator[list[AnyInstance]]:
    """Yield instances so many at a time as are done with in a small part of ``TELLING``."""
    waiting, most = iter(instances), 1
    while batch := list(itertools.islice(waiting, most)):
        began = time.monotonic()
        yield batch
        most = max(1, most * 2 if time.monotonic() - began < TELLING / 4 else most // 2)


def ahead(check: Check, subject: Subject, instances: list[AnyInstance]) -> Iterator[CheckResult]:
    """Ask a heuristic for its plans for all instances; while that takes long yield what a check has come to so far."""
    told, waiting, ran = time.monotonic(), list[AnyInstance](), 0
    for batch in batches(instances):
        result_of(subject.foresee(batch))
        waiting += batch
        if time.monotonic() > told + TELLING:
            found = results_of(check.run(subject, instance) for instance in waiting)
            ran += sum(one is True for one in found)
            # Where one fails nothing after it is run, as in the search that comes to it.
            waiting = waiting[len(found) - is_failure(found[-1]) :]
            yield CheckResult(check.name, check.statement, "unfinished", ran)
            told = time.monotonic()


def search(check: Check, subject: Subject, instances: list[AnyInstance], shrinking: Shrinking) -> Iterator[CheckResult]:
    """Run a check on instances until it fails, and shrink the instance that it fails on; yield what is known so far."""
    ran = without_plan = 0

    def result(status: CheckStatus, why: str = "", instance: AnyInstance | None = None) -> CheckResult:
        plan = None if instance is None else _plan_there(subject, instance)
        return CheckResult(check.name, check.statement, status, ran, why, instance, plan, None, without_plan)

    told = time.monotonic()
    for batch in batches(instances):
        if time.monotonic() > told + TELLING:
            yield result("unfinished")
            told = time.monotonic()
        found = results_of(check.run(subject, instance) for instance in batch)
        for instance, one in zip(batch, found, strict=False):
            if isinstance(one, NotApplicable):
                yield result("skipped", str(one))
                return
            if isinstance(one, NoFeasiblePlan):
                without_plan += 1
            elif is_failure(one):
                ran += 1
                status, expected = _verdict(check, subject)
                yield result(status, expected or _said(one), instance)
                smallest = shrinking.smallest(instance, functools.partial(fails, check, subject.anew()), instances)
                yield result(status, expected or _reason(check, subject, smallest), smallest)
                return
            elif not isinstance(one, Exception):
                ran += one
    if ran:
        yield result("passed")
    elif without_plan:
        yield result("skipped", "no instance that was drawn has a feasible plan")
    else:
        yield result("skipped", f"it gave no feasible plan on {len(instances)} instances")


def _plan_there(subject: Subject, instance: AnyInstance) -> Any:
    """Return the heuristic's first plan for an instance, or what it returned in place of one, in words."""
    result_of(subject.foresee([instance]))
    answer = subject.firsts[instance.digest]
    return answer.plan if answer.plan is not None else answer.shown or None


def _verdict(check: Check, subject: Subject) -> tuple[CheckStatus, str]:
    """Return what a failure is, and the reason where it is expected."""
    if check.name == "feasible" and subject.heuristic.infeasible_because:
        return "expected failure", subject.heuristic.infeasible_because
    return "failed", ""
