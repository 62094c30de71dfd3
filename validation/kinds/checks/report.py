"""What came of the checks of a heuristic, and where their instances came from."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from instances.base import Instance, Plan

__all__ = ["CheckReport", "CheckResult", "CheckStatus", "Source", "shown"]

AnyInstance = Instance[Any]

STARVING = 0.1
"""A source starves where a smaller part of its instances than this is not refused."""
TOLD_APART = 10
"""Instances of a source from which on it can starve."""

CheckStatus = Literal["passed", "failed", "expected failure", "skipped", "unfinished"]
"""What came of a check; a failure is expected where the entry says so, and one that is unfinished had passed so far."""


@dataclass(frozen=True)
class CheckResult:
    """The outcome of a check.

    Attributes
    ----------
    name, statement : str
    status : "passed", "failed", "expected failure", "skipped" or "unfinished"
    examples : int
        Instances on which the check really ran.
    reason : str
        Why it failed or was skipped.
    instance : Instance, optional
        The smallest instance found on which it fails.
    plan : Plan, optional
        What the heuristic returns there.
    path : Path, optional
        Where that instance was saved.
    without_plan : int
        Instances that have no feasible plan, on which the heuristic is not judged.
    """

    name: str
    statement: str
    status: CheckStatus
    examples: int
    reason: str = ""
    instance: AnyInstance | None = None
    plan: Any = None
    path: Path | None = None
    without_plan: int = 0


@dataclass(frozen=True)
class Source:
    """Where instances come from.

    Attributes
    ----------
    name : str
    instances : int
        How many of those that are checked are from there.
    refused : int
        How many others the problem's own ``_check`` refused.
    """

    name: str
    instances: int
    refused: int

    @property
    def starves(self) -> bool:
        """Whether hardly any instance from there gets past ``_check``."""
        tried = self.instances + self.refused
        return tried >= TOLD_APART and self.instances < STARVING * tried

    def __str__(self) -> str:
        return f"{self.instances} from {self.name}" + (f" ({self.refused} more refused)" if self.refused else "")


@dataclass(frozen=True)
class CheckReport:
    """All results of the checks of a heuristic, and where their instances came from; prints as a table."""

    problem: str
    heuristic: str
    results: tuple[CheckResult, ...]
    sources: tuple[Source, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether all checks were finished, none failed and at least one ran."""
        finished = all(result.status != "unfinished" for result in self.results)
        return finished and not self.failed and any(result.examples for result in self.results)

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if result.status == "failed")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON; a plan is JSON where it is one, else its text."""
        results = [
            {
                "name": one.name,
                "statement": one.statement,
                "status": one.status,
                "examples": one.examples,
                "without_plan": one.without_plan,
                "reason": one.reason,
                "instance": None if one.instance is None else one.instance.to_dict(),
                "plan": one.plan.to_dict()
                if isinstance(one.plan, Plan)
                else None
                if one.plan is None
                else shown(one.plan),
                "path": None if one.path is None else str(one.path),
            }
            for one in self.results
        ]
        sources = [{"name": one.name, "instances": one.instances, "refused": one.refused} for one in self.sources]
        return {
            "problem": self.problem,
            "heuristic": self.heuristic,
            "ok": self.ok,
            "results": results,
            "sources": sources,
            "warnings": self.warnings,
        }

    @property
    def warnings(self) -> list[str]:
        """What the checks may have missed."""
        return [
            f"the problem's _check refuses {one.refused} of {one.refused + one.instances} instances from {one.name}: "
            "what they would show is not checked; a strategy of the problem's own draws valid ones"
            for one in self.sources
            if one.starves
        ]

    def __str__(self) -> str:
        lines = [f"{self.heuristic} on {self.problem}"]
        told: dict[tuple[str, AnyInstance | None], str] = {}
        for result in self.results:
            lines.append(f"  {result.status:<16} {result.name:<24} {result.examples:>5} instances  {result.statement}")
            if result.without_plan:
                lines.append(f"    {result.without_plan} more instances have no feasible plan and are not counted")
            first = told.setdefault((result.reason, result.instance), result.name)
            if first != result.name and result.instance is not None:
                # A heuristic that raises fails most checks alike.
                lines.append(f"    as in {first}")
                continue
            if result.reason:
                lines.append(f"    {result.reason}")
            if result.instance is not None:
                lines.append(f"    smallest instance: {json.dumps(result.instance.to_dict())}")
            if result.plan is not None:
                lines.append(f"    its plan there: {shown(result.plan)}")
            if result.path is not None:
                lines.append(f"    saved as {result.path}")
        if self.sources:
            lines.append(f"  instances: {', '.join(map(str, self.sources))}")
        lines += [f"  warning: {warning}" for warning in self.warnings]
        if not any(result.examples for result in self.results):
            lines.append("  no check ran on any instance: this is a failure")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{result.status}</td><td>{result.name}</td><td>{result.examples}</td>"
            f"<td>{html.escape(result.statement)}</td><td>{html.escape(result.reason)}</td></tr>"
            for result in self.results
        )
        head = "".join(f"<th>{name}</th>" for name in ("status", "check", "instances", "what must hold", "reason"))
        title = html.escape(f"{self.heuristic} on {self.problem}")
        told = [", ".join(map(str, self.sources)), *(f"warning: {warning}" for warning in self.warnings)]
        foot = "".join(f'<tr><td colspan="5">{html.escape(line)}</td></tr>' for line in told if line)
        return f"<table><caption>{title}</caption><tr>{head}</tr>{rows}{foot}</table>"


def shown(plan: Any) -> str:
    """Show a plan in a line, or whatever was returned in its place."""
    if isinstance(plan, Plan):
        return json.dumps(plan.to_dict())
    return "none" if plan is None else repr(plan)
