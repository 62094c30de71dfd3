"""A check is run on instances until it fails, and the instance on which it does is made small."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from typing import Any

from instances.base import Instance
from validation.kernel.isolation import describe
from validation.kinds.checks.properties import Check
from validation.kinds.checks.report import CheckResult, CheckStatus
from validation.kinds.checks.subject import CheckError, NoFeasiblePlan, NotApplicable, Subject, Unproven, plan_there

__all__ = ["fails", "search"]

AnyInstance = Instance[Any]

TELLING = 0.5
"""Seconds after which a check that goes on tells how far it is."""


def fails(check: Check, subject: Subject, instance: AnyInstance) -> bool:
    """Return whether a heuristic breaks a check on an instance."""
    return bool(_reason(check, subject, instance))


def _reason(check: Check, subject: Subject, instance: AnyInstance) -> str:
    """Return why the check fails on an instance; empty when it does not."""
    try:
        check.run(subject, instance)
    except (NoFeasiblePlan, NotApplicable, Unproven):
        return ""
    except Exception as error:
        return _said(error)
    return ""


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, CheckError) else describe(error)


def search(check: Check, subject: Subject, instances: list[AnyInstance]) -> Iterator[CheckResult]:
    """Run a check on instances until it fails, and shrink the instance that it fails on; yield what is known so far."""
    ran = without_plan = 0

    def result(status: CheckStatus, why: str = "", instance: AnyInstance | None = None) -> CheckResult:
        plan = None if instance is None else plan_there(subject, instance)
        return CheckResult(check.name, check.statement, status, ran, why, instance, plan, None, without_plan)

    told = time.monotonic()
    for instance in instances:
        if time.monotonic() > told + TELLING:
            yield result("unfinished")
            told = time.monotonic()
        try:
            ran += check.run(subject, instance)
        except NotApplicable as why:
            yield result("skipped", str(why))
            return
        except NoFeasiblePlan:
            without_plan += 1
        except Unproven:
            continue
        except Exception as error:
            ran += 1
            status, expected = _verdict(check, subject)
            yield result(status, expected or _said(error), instance)
            breaks = functools.partial(fails, check, subject.anew())
            smallest = subject.shrinking.smallest(instance, breaks, instances)
            yield result(status, expected or _reason(check, subject, smallest), smallest)
            return
    if ran:
        yield result("passed")
    elif without_plan:
        yield result("skipped", "no instance that was drawn has a feasible plan")
    else:
        yield result("skipped", f"it gave no feasible plan on {len(instances)} instances")


def _verdict(check: Check, subject: Subject) -> tuple[CheckStatus, str]:
    """Return what a failure is, and the reason where it is expected."""
    if check.name == "feasible" and subject.heuristic.infeasible_because:
        return "expected failure", subject.heuristic.infeasible_because
    return "failed", ""
