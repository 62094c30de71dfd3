"""Worst cases that are proven: how bad a heuristic gets on all instances of a class, and the instance that shows it.

The model of a heuristic's worst case (:mod:`formulations.worst_case`) has the heuristic's run as constraints.  Nothing
in it is believed before the instance that it ends in, the witness, is judged like any other: the heuristic itself must
do on it what its trace did, and the exact model must find what the trace was compared with.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from formulations.engine.linear import ModelError
from formulations.worst_case import Measure, Proven, WorstCaseModel, prove, worst_case_model
from instances.base import Instance, InstanceError, agree
from instances.files import write_whole
from validation import catalogue
from validation.catalogue import Heuristic
from validation.errors import StudyError
from validation.formatting import duration, number_range
from validation.kernel.asking import Asking
from validation.kernel.provenance import memory_of_machine, version
from validation.kinds.hunt import judge
from validation.kinds.options import WorstCaseOptions
from validation.kinds.witness import Judged, facts_of, page, paths_of

__all__ = ["WitnessRefutedError", "WorstCase", "witness_paths", "worst_case"]

JUDGE_SECONDS = 600.0
"""At most, for each side of the witness."""


class WitnessRefutedError(AssertionError):
    """The heuristic, or the exact model, does not on a witness what the model of the worst case says of it."""


@dataclass(frozen=True)
class WorstCase:
    """The worst case of a heuristic on the instances of a class.

    Attributes
    ----------
    problem, heuristic : str
    size : int
    dials : dict
        What else chooses the class.
    measure : "ratio" or "difference"
        Of its value and the optimum: the greater by the lesser, or less the lesser.
    status : "optimal", "feasible" or "unknown"
        "optimal": the witness is proven the worst.  "feasible": the worst lies between ``value`` and ``bound``.
        "unknown": no instance was found in time.
    value : float, optional
        Of the witness, as the heuristic and the exact model judge it.
    bound : float
        Of no instance of the class is it greater; infinite where nothing is proven.
    proof : str
        What the bound rests on, as in :class:`formulations.Solution`.
    instances : str
        The class in words.
    ties : str
        How the model breaks ties: "as the heuristic", or "either way".
    judged : Judged, optional
        The witness with both plans.
    programs : int
        Mixed-integer programs that were solved.
    seconds : float
    """

    problem: str
    heuristic: str
    size: int
    dials: dict[str, Any]
    measure: Measure
    status: Literal["optimal", "feasible", "unknown"]
    value: float | None
    bound: float
    proof: str
    instances: str
    ties: str
    judged: Judged | None
    programs: int
    seconds: float

    @property
    def witness(self) -> Instance[Any] | None:
        """The worst instance found."""
        return None if self.judged is None else self.judged.instance

    def __str__(self) -> str:
        return "\n".join(f"{name.lower():<10} {fact}" for name, fact in self.facts().items())

    def facts(self) -> dict[str, str]:
        """Collect what is to be said, by its name."""
        told = {"Worst": self._verdict(), "Instances": self.instances, "Ties": self.ties}
        if self.judged is not None:
            told["Witness"] = _both(self.judged)
        return {**told, "Proof": f"{self.proof or 'none'}, {self.programs} programs, {duration(self.seconds)}"}

    def _verdict(self) -> str:
        if self.value is None:
            return f"no instance was found; {self.measure} at most {self.bound:.9g}"
        if self.status == "optimal":
            return f"{self.measure} {self.value:.9g}, exactly"
        return f"{self.measure} between {self.value:.9g} and {self.bound:.9g}"

    def to_dict(self) -> dict[str, Any]:
        """Return the worst case as JSON, its witness under "instance"; an infinite bound is None."""
        judged = self.judged
        return {
            "problem": self.problem,
            "heuristic": self.heuristic,
            "size": self.size,
            "dials": self.dials,
            "measure": self.measure,
            "status": self.status,
            "value": self.value,
            "bound": self.bound if math.isfinite(self.bound) else None,
            "proof": self.proof,
            "instances": self.instances,
            "ties": self.ties,
            "heuristic_value": None if judged is None else judged.value,
            "optimum": None if judged is None else judged.optimum,
            "plan": None if judged is None or judged.plan is None else judged.plan.to_dict(),
            "exact_plan": None if judged is None else judged.exact_plan.to_dict(),
            "instance": None if judged is None else judged.instance.to_dict(),
            "programs": self.programs,
            "seconds": self.seconds,
            "versions": {name: version(name) for name in ("scheduling-formulations", "highspy", "numpy")},
        }

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the witness, ``<problem>-<heuristic>-<size>.json``, and its page, ``.html``; returns the JSON's path.

        Raises
        ------
        StudyError
            When there is no witness.
        """
        if self.judged is None:
            raise StudyError(f"there is no witness to be saved: {self._verdict()}")
        Path(directory).mkdir(parents=True, exist_ok=True)
        data, described = witness_paths(directory, self.problem, self.heuristic, self.size, self.dials)
        facts = {**facts_of(self.problem, self.heuristic, self.judged), **self.facts()}
        write_whole(data, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")
        write_whole(described, page(self.problem, self.heuristic, self.judged, facts))
        return data


def witness_paths(
    directory: str | os.PathLike[str], problem: str, heuristic: str, size: int, dials: Mapping[str, Any]
) -> tuple[Path, Path]:
    """Return the files of a worst case, its data and its page; what chooses the class is part of the name."""
    chosen = "".join(f"-{name}-{value}" for name, value in sorted(dials.items()))
    return paths_of(directory, problem, f"{heuristic}-{size}{chosen}")


def _both(judged: Judged) -> str:
    value = math.nan if judged.value is None else judged.value
    return f"heuristic {number_range(value, value)}, optimum {number_range(judged.optimum, judged.optimum)}"


def worst_case(
    problem: str,
    heuristic: str | Callable[..., Any] | Heuristic,
    *,
    size: int,
    measure: Measure = "ratio",
    time_limit: float | None = None,
    verify: bool | None = None,
    **dials: Any,
) -> WorstCase:
    """Prove how bad a heuristic gets on the instances of one size.

    Parameters
    ----------
    problem : str
    heuristic : str, callable or Heuristic
        One whose worst case has a model: the library's own (:mod:`formulations.worst_case`), or one whose
        :class:`Heuristic` brings its ``worst_case``.
    size : int
        What it counts, the model says (``WorstCaseModel.size``).
    measure : "ratio" or "difference"
    time_limit : float, optional
        Seconds for the proof; when they are over, what is known by then.
    verify : bool, optional
        Whether each program's bound is checked a second way: where that is quick, always, or never.
    **dials
        What else chooses the class of instances; the arguments of the model's ``instances``.

    Returns
    -------
    WorstCase

    Raises
    ------
    StudyError
        When there is no model, or it cannot be asked for this.
    WitnessRefutedError
        When the heuristic or the exact model does not confirm the witness: the model of the worst case is wrong.
    """
    name, subject = catalogue.heuristic(problem, heuristic)
    model = _model_of(problem, name, subject)
    time_limit = WorstCaseOptions.checked(measure=measure, time_limit=time_limit)["time_limit"]
    try:
        found = prove(model, problem, size=size, measure=measure, time_limit=time_limit, verify=verify, **dials)
    except (ModelError, InstanceError) as error:
        raise StudyError(f"worst case of {name}: {error}") from None
    judged, value = None, None
    if found.instance is not None:
        judged = _confirmed(found, subject, name)
        value = _measured(judged, measure)
        if value > found.bound and not agree(value, found.bound):
            raise WitnessRefutedError(
                f"{name}: {measure} {value!r} on an instance of a class for which {found.bound!r} is proven: "
                f"{json.dumps(found.instance.to_dict())}"
            )
    return WorstCase(
        problem,
        name,
        size,
        dials,
        measure,
        found.status,
        value,
        found.bound,
        found.proof,
        found.words,
        model.ties,
        judged,
        found.programs,
        found.seconds,
    )


def _model_of(problem: str, name: str, subject: Heuristic) -> WorstCaseModel:
    """Return the model that the heuristic brings, or the library's of one of its own."""
    if isinstance(subject.function, catalogue.Imported):
        named = catalogue.import_tried(subject.function.reference)
        subject = named if isinstance(named, Heuristic) else subject
    if subject.worst_case is not None:
        return subject.worst_case
    known = catalogue.entry(problem).heuristics
    own = known.get(name)
    found = worst_case_model(problem, name) if own is not None and own.function is subject.function else None
    if found is None:
        have = [one for one, that in known.items() if that.worst_case or worst_case_model(problem, one)]
        there = f"those of {problem} with one are {', '.join(have)}" if have else f"no heuristic of {problem} has one"
        raise StudyError(f"{name} has no model of its worst case; {there}")
    return found


def _confirmed(found: Proven, subject: Heuristic, name: str) -> Judged:
    """Judge the witness by the heuristic and the exact model."""
    assert found.instance is not None
    assert found.heuristic_value is not None
    assert found.witness_value is not None
    shown = json.dumps(found.instance.to_dict())
    with Asking(subject, 0, memory=memory_of_machine() // 2) as asking:
        judged = judge(found.instance, asking, seconds=JUDGE_SECONDS)
    if judged is None:
        raise WitnessRefutedError(f"{name}: the optimum of the witness is not proven: {shown}")
    # Of a class with all multiples the witness may be any of them.
    times = judged.optimum / found.witness_value if found.scalable else 1.0
    own, witness = times * found.heuristic_value, times * found.witness_value
    if judged.value is None or not agree(judged.value, own, size=1.0):
        does = "has no feasible plan" if judged.value is None else f"makes {judged.value!r}"
        raise WitnessRefutedError(f"{name} {does} of the witness, its trace in the model {own!r}: {shown}")
    worse = judged.optimum > witness if found.instance.sense == "min" else judged.optimum < witness
    if worse and not agree(judged.optimum, witness, size=1.0):
        raise WitnessRefutedError(
            f"{name}: the optimum of the witness is {judged.optimum!r}, the model has a plan worth {witness!r}: {shown}"
        )
    return judged


def _measured(judged: Judged, measure: Measure) -> float:
    assert judged.value is not None
    lesser, greater = sorted((judged.value, judged.optimum))
    if measure == "difference":
        return greater - lesser
    return greater / lesser if lesser else math.inf
