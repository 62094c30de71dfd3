"""The judge: every plan is asked for apart, judged by its instance, and measured against a proven optimum.

The order is what keeps the answers from the heuristic: its processes are forked from one that knows neither the seed of
a hidden set nor, of instances that it meets for the first time, an optimum.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from instances.base import agree
from instances.files import read
from validation.catalogue import Heuristic
from validation.errors import OracleDisagreementError, StudyError
from validation.formatting import duration, number
from validation.kernel.gaps import beats
from validation.kernel.isolation import plain
from validation.kernel.judging import Status, worst
from validation.kernel.provenance import cores, version
from validation.kernel.walls import ruled, standing
from validation.kernel.workers import Task, run_tasks
from validation.kinds.judge.asking import GRACE, HEURISTIC_SEED, MEMORY, all_of, rows_of
from validation.kinds.judge.headroom import Headroom, headroom
from validation.kinds.judge.sets import PUBLIC_SEED, DrawnSet, draw, seed_file, set_digest
from validation.kinds.options import JudgeOptions
from validation.kinds.study.cells import solve_exactly

__all__ = ["BUDGET", "Judged", "Judgement", "judge", "judge_on", "score"]

BUDGET = JudgeOptions.budget
"""Seconds that a heuristic has for an instance, unless told otherwise."""

EXACT_SECONDS = 120.0
"""For the proof of an optimum: far more than any of the sets takes."""

CHECKED = ("argument", "certificate", "prices")
"""What an optimum rests on that anyone checks again without a solver (:attr:`formulations.Solution.proof`)."""

_NUMBERS_OF = ("scheduling-formulations", "pyomo", "highspy", "numpy")
"""Distributions whose versions a judgement tells."""

STATUSES = (Status.FEASIBLE, Status.INFEASIBLE, Status.DECLINED, Status.FAILED, Status.LATE)
"""What may come of a question; what is not feasible scores 0."""


@dataclass(frozen=True)
class Judged:
    """A heuristic on one instance.

    Attributes
    ----------
    digest : str
        Of the instance.
    status : "feasible", "infeasible", "declined", "failed" or "late"
    value : float, optional
        Of its plan, as the instance judges it; None where there is no feasible plan.
    optimum : float
    proof : str
        What the optimum rests on, as in :attr:`formulations.Solution.proof`.
    score : float
        From 0 to 1, see :func:`score`.
    seconds : float
        That it took, by the clock; no score depends on them.
    reason : str
        Why it has no feasible plan.
    steps : int, optional
        Lines of Python that it ran, where they were counted, as its own process says.
    """

    digest: str
    status: str
    value: float | None
    optimum: float
    proof: str
    score: float
    seconds: float
    reason: str
    steps: int | None = None


@dataclass(frozen=True)
class Judgement:
    """A heuristic's score on a set, and what that is made of.

    Attributes
    ----------
    problem, heuristic : str
    split : "public" or "hidden"
    score : float
        Mean of the instances' scores: 1 where every plan is optimal, 0 where none is feasible.
    counts : dict of str to int
        Instances by status.
    without_plan : int
        Drawn instances that are proven to have no feasible plan; they are not in the mean.
    set : str
        Digest of the instances' digests: scores of equal sets can be compared, others cannot.
    edition : int
        Of the rule by which the set was drawn.
    commitment : str, optional
        Of the secret that a hidden set was drawn from, where that was sealed.
    program : str, optional
        SHA-256 of the file of a heuristic that is file.py:function.
    seeds : dict of str to int or None
        Of the instances, None of a hidden set, and of the heuristic.
    budget : float
        Seconds for an instance.
    no_solver : bool
        Whether solvers were kept from the heuristic.
    versions : dict of str to str
    walls : dict of str to bool
        Those around the heuristic, and whether each stood.
    instances : tuple of Judged
        In the order of their digests.
    """

    problem: str
    heuristic: str
    split: str
    score: float
    counts: dict[str, int]
    without_plan: int
    set: str
    edition: int
    commitment: str | None
    program: str | None
    seeds: dict[str, int | None]
    budget: float
    no_solver: bool
    versions: dict[str, str]
    walls: dict[str, bool]
    instances: tuple[Judged, ...]

    @property
    def worst(self) -> float:
        """Least score of an instance."""
        return min(one.score for one in self.instances)

    @property
    def optimal(self) -> int:
        """Instances whose plan is optimal."""
        return sum(one.score == 1.0 for one in self.instances)

    @property
    def certified(self) -> int:
        """Instances whose optimum rests on what is checked without a solver, and not on the word of one."""
        return sum(one.proof in CHECKED for one in self.instances)

    @property
    def headroom(self) -> Headroom | None:
        """What the best known heuristic leaves to gain on the problem's public set; None where nobody measured."""
        return headroom(self.problem, self.edition)

    def to_dict(self) -> dict[str, Any]:
        """Return the judgement as JSON; a value that is infinite becomes None."""
        told = asdict(self)
        known = self.headroom
        more: dict[str, Any] = {"worst": self.worst, "optimal": self.optimal, "certified": self.certified}
        more["headroom"] = None if known is None else {**asdict(known), "saturated": known.saturated}
        told = {**{name: told[name] for name in ("problem", "heuristic", "split", "score")}, **more, **told}
        for one in told["instances"]:
            one["value"] = None if one["value"] is None or math.isinf(one["value"]) else one["value"]
        return {**told, "instances": list(told["instances"])}

    def __str__(self) -> str:
        told = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        slowest = max(one.seconds for one in self.instances)
        lines = [
            f"score      {self.score:.4f} (1: every plan optimal; 0: none feasible)",
            f"instances  {told}; {self.optimal} of {len(self.instances)} optimal"
            + (f"; {self.without_plan} more have no plan" if self.without_plan else ""),
            f"slowest    {duration(slowest)} of {self.budget:g} s",
            f"set        {self.split}, {self.set[:16]}, edition {self.edition}",
            f"proofs     {self.certified} of {len(self.instances)} checked without a solver",
            f"solvers    {'kept from it' if self.no_solver else 'within its reach'}",
        ]
        worst = min(self.instances, key=lambda one: one.score)
        if worst.score < 1.0:
            why = worst.reason if worst.value is None else f"{number(worst.value)} for {number(worst.optimum)}"
            lines.append(f"worst      {worst.score:.4f} on {worst.digest[:16]}: {worst.status}, {why}")
        if self.headroom is not None:
            lines.append(f"headroom   {self.headroom}")
        if steps := [one.steps for one in self.instances if one.steps is not None]:
            lines.append(f"steps      {max(steps):,} lines of Python at most, {sum(steps):,} in all")
        if gone := [name for name, stands in self.walls.items() if not stands]:
            lines.append(f"walls      {', '.join(gone)} missing here, see optgap doctor")
        return "\n".join(lines)


def judge(
    heuristic: str | Callable[..., Any] | Heuristic,
    problem: str,
    *,
    split: str = "public",
    edition: int | None = None,
    budget: float | str = BUDGET,
    jobs: int | None = None,
    no_solver: bool = False,
    steps: bool = False,
) -> Judgement:
    """One number for a heuristic: how near its plans are to proven optima, on a fixed set of instances.

    Parameters
    ----------
    heuristic : str, callable or Heuristic
        A name of the catalogue, "module:function", "file.py:function", or a function from instance to plan.  Code that
        is not trusted goes by a reference, or through ``optgap judge``: a function is called in a copy of this
        process, and may look at whatever it holds.
    problem : str
    split : str
        "public", or "hidden:FILE": a set drawn from the seed in a file, which the heuristic cannot read.
    edition : int, optional
        Of the rule by which the set is drawn; the latest by default, or that of a sealed secret.
    budget : float or str
        Seconds for an instance, by the clock; a plan that comes later counts for nothing.
    jobs : int, optional
        Instances at once; one for each core by default.
    no_solver : bool
        Whether solvers, the library's exact side and programs are kept from the heuristic, which is then named by a
        reference or in the catalogue.  Without, calling a solver within the budget scores 1.
    steps : bool
        Whether the lines of Python are counted that the heuristic runs, which makes it slower.

    Returns
    -------
    Judgement

    Raises
    ------
    StudyError, CatalogueError
        When nothing can be judged as asked, or an optimum is not proven.
    OracleDisagreementError
        When a plan beats a proven bound: a model, a bound or a judge is wrong then, and there is no score.
    """
    seconds = JudgeOptions.checked(budget=budget, jobs=jobs, edition=edition)["budget"]
    file = seed_file(split)
    # From a pipe the seed is gone once it is read.
    with ruled(hidden=() if file is None or not file.is_file() else (file,)):
        if file is not None:
            _try_walls(file)
        found = draw(problem, file, edition)
        return judge_on(
            found,
            heuristic,
            problem,
            budget=seconds,
            jobs=jobs,
            hidden=file is not None,
            no_solver=no_solver,
            steps=steps,
        )


def judge_on(
    given: DrawnSet | Sequence[str],
    heuristic: str | Callable[..., Any] | Heuristic,
    problem: str,
    *,
    budget: float = BUDGET,
    jobs: int | None = None,
    hidden: bool = False,
    no_solver: bool = False,
    steps: bool = False,
) -> Judgement:
    """:func:`judge` on a given set or instances as JSON, of a ``hidden`` set or the public one."""
    drawn_set = given if isinstance(given, DrawnSet) else DrawnSet(list(given))
    texts, jobs, program = drawn_set.texts, jobs or cores(), _program(heuristic)
    with ruled(strict=True, network=False, memory=MEMORY):
        walls = standing()
        name, rows = rows_of(heuristic, problem, texts, budget, jobs, no_solver=no_solver, steps=steps)
    _prove(texts, jobs)
    digests, instances, without_plan = [], [], 0
    for text, row in zip(texts, rows, strict=True):
        proven = _PROVEN[text]
        digests.append(proven.digest)
        if beats(proven.sense, math.nan if row["value"] is None else row["value"], proven.bound):
            raise OracleDisagreementError(
                f"{problem}, instance {proven.digest}: {name} found {number(row['value'])}, and the bound "
                f"{number(proven.bound)} was proven"
            )
        if proven.optimum is None:
            without_plan += 1
            continue
        instances.append(_scored(row, proven))
    if not instances:
        raise StudyError(f"{problem}: no instance of the set has a feasible plan")
    counts = Counter(one.status for one in instances)
    return Judgement(
        problem=problem,
        heuristic=name,
        split="hidden" if hidden else "public",
        score=math.fsum(one.score for one in instances) / len(instances),
        counts={status: counts[status] for status in STATUSES},
        without_plan=without_plan,
        set=set_digest(digests),
        edition=drawn_set.edition,
        commitment=drawn_set.commitment,
        program=program,
        seeds={"instances": None if hidden else PUBLIC_SEED, "heuristic": HEURISTIC_SEED},
        budget=budget,
        no_solver=no_solver,
        versions={one: version(one) for one in _NUMBERS_OF} | {"python": platform.python_version()},
        walls=walls,
        instances=tuple(instances),
    )


def score(sense: str, value: float, optimum: float) -> float:
    """Return how near a feasible value is to the optimum: 1 where they agree, else the ratio that is below 1.

    ``optimum / value`` where less is better, ``value / optimum`` where more is.  Beside an optimum of 0 every other
    value scores 0, because no ratio tells how near it is.

    Raises
    ------
    ValueError
        When the optimum is negative or infinite, so that there is no ratio.
    """
    if not 0 <= optimum < math.inf:
        raise ValueError(f"the optimum is {optimum:g}, beside which no ratio says anything")
    if agree(value, optimum) or beats(sense, value, optimum):
        return 1.0  # What is better than the plan found, but not than the bound, is as good as proven optimal.
    return optimum / value if sense == "min" else max(0.0, value / optimum) if optimum else 0.0


def _program(heuristic: Any) -> str | None:
    """SHA-256 of the file that a reference names, before anybody has run it."""
    place = heuristic.partition(":")[0] if isinstance(heuristic, str) else ""
    if not place.endswith(".py") or not os.path.isfile(place):
        return None
    return hashlib.sha256(Path(place).read_bytes()).hexdigest()


# --- asking -------------------------------------------------------------------------------------


def _try_walls(file: Path) -> None:
    """Refuse a hidden set where a wall is missing, or the file can be read by those who ask the heuristic.

    Raises
    ------
    StudyError
    """
    if gone := [name for name, stands in standing().items() if not stands]:
        raise StudyError(
            f"split: nothing can be hidden from a heuristic here: {', '.join(gone)} missing, see optgap doctor"
        )
    if not file.is_file():
        return
    with closing(run_tasks(_is_readable, [Task((file,), GRACE, asks=True)], jobs=1)) as outcomes:
        if any(outcome.result is not False for outcome in outcomes):
            raise StudyError(f"split: {file} cannot be hidden from a heuristic here")


def _is_readable(file: Path) -> bool:
    try:
        file.read_bytes()
    except PermissionError:
        return False
    return True


# --- what is best -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Proven:
    """The proven side of an instance; there is no optimum where it has no feasible plan."""

    digest: str
    sense: str
    optimum: float | None
    bound: float
    proof: str


_PROVEN: dict[str, _Proven] = {}
"""By the instances' JSON: a search that judges many heuristics has each optimum proven once."""


def _prove(texts: Sequence[str], jobs: int) -> None:
    """Prove the optima that are not known yet.

    Raises
    ------
    StudyError
        When one is not proven.
    """
    new = [text for text in texts if text not in _PROVEN]
    for text, row in zip(new, all_of(_solved, new, EXACT_SECONDS, jobs), strict=True):
        instance = read(json.loads(text))
        what = f"{instance.problem}, instance {instance.digest}"
        if row["status"] not in (Status.OPTIMAL, Status.INFEASIBLE):
            raise StudyError(f"{what}: the optimum is not proven ({row['status']}: {plain(row['reason'])})")
        optimum = row["value"] if row["status"] == Status.OPTIMAL else None
        if optimum is not None and not 0 <= optimum < math.inf:
            raise StudyError(f"{what}: the optimum is {optimum:g}, beside which no ratio says anything")
        bound = worst(instance.sense) if row["status"] == Status.INFEASIBLE else row["bound"]
        _PROVEN[text] = _Proven(instance.digest, instance.sense, optimum, bound, row["reason"].rpartition("proof: ")[2])


def _solved(text: str) -> dict[str, Any]:
    return solve_exactly(read(json.loads(text)), "highs", EXACT_SECONDS, verify=False)


def _scored(row: dict[str, Any], proven: _Proven) -> Judged:
    assert proven.optimum is not None
    value = row["value"]
    return Judged(
        digest=proven.digest,
        status=row["status"],
        value=value,
        optimum=proven.optimum,
        proof=proven.proof,
        score=0.0 if value is None else score(proven.sense, value, proven.optimum),
        seconds=row["seconds"],
        reason="" if value is not None else row["reason"],
        steps=row.get("steps"),
    )
