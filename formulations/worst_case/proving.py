"""Models of worst cases, and the search for the greatest ratio or difference, with a bound that is proven.

The ratio of two linear expressions is found by Newton's method (Dinkelbach's): with the greatest ratio r known so far,

    max  greater - r * lesser    over the instances of the class

is one mixed-integer program.  Its bound u proves that no ratio is above r + u / l, where l is the least that ``lesser``
is in the class, and its point has a greater ratio unless u is 0.  Where ``lesser`` is 1 throughout, because the model
measures the data so, one program suffices.  Parts of a class share r, so that most are done with after one program.
"""

from __future__ import annotations

import importlib
import inspect
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import pyomo.environ as pyo

from formulations.engine import clock
from formulations.engine.highs import WEAKEST_FIRST, Proof, Session, SolverError
from formulations.engine.linear import ModelError
from formulations.engine.solving import solve
from instances.base import Instance, Sense, agree
from instances.files import instance_type, is_own

__all__ = ["InstanceClass", "Measure", "Proven", "WorstCaseModel", "prove", "worst_case_model"]

Measure = Literal["ratio", "difference"]
"""Of a heuristic's value and the optimum: the greater by the lesser, or less the lesser."""

SHARP = 1e-10
"""Tolerance of the numbers of an instance, once the choices are made."""


@dataclass(frozen=True)
class InstanceClass:
    """Instances that a worst case is the worst of.

    Attributes
    ----------
    words : str
        Which they are: limits of the data, whole numbers or not.
    parts : iterable of ConcreteModel
        Models whose points together are the instances of the class, each with the heuristic's plan and any other plan.
        Each has expressions or variables ``heuristic_value`` and ``witness_value``, what the two are worth, which must
        be linear.  Parts are for data that a model must have as numbers; one model proves more in the same time.
    scalable : bool
        Whether any multiple of a point is one, too, so that parts set what the witness is worth to 1.  Instances that
        are read may then be multiples, and differences mean nothing.
    """

    words: str
    parts: Iterable[pyo.ConcreteModel]
    scalable: bool = False


@dataclass(frozen=True)
class WorstCaseModel:
    """Model of the worst case of one heuristic.

    Attributes
    ----------
    instances : callable
        ``instances(*, <size>, ...) -> InstanceClass``; its other arguments have defaults.
    read : callable
        ``read(model) -> Instance``: the instance in the values of a part's variables.
    size : str
        The argument of ``instances`` that says how large instances are.
    ties : "as the heuristic" or "either way"
        How the trace breaks ties: as the heuristic does, whichever instance; or either way, so that the worst case is
        a supremum.  Witnesses are the heuristic's own in both cases.
    least : float, optional
        Of a ratio: only instances count whose lesser value, that of the witness (min) or the heuristic (max), is at
        least this.  None where the parts measure the data so that it is 1 throughout.
    """

    instances: Callable[..., InstanceClass]
    read: Callable[[pyo.ConcreteModel], Instance[Any]]
    size: str = "num_jobs"
    ties: Literal["as the heuristic", "either way"] = "as the heuristic"
    least: float | None = None

    def arguments(self, size: int, dials: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments of ``instances`` by name, defaults among them.

        Raises
        ------
        ModelError
            When there is no such argument; the message lists those there are.
        """
        known = inspect.signature(self.instances).parameters
        for name in dials:
            if name == self.size or name not in known:
                others = ", ".join(other for other in known if other != self.size) or "none"
                raise ModelError(f"there is no {name!r} to choose instances by beside the size; there are: {others}")
        defaults = {name: one.default for name, one in known.items() if one.default is not one.empty}
        return {self.size: size, **defaults, **dials}


@dataclass(frozen=True)
class Proven:
    """Result of a search for the worst case.

    Attributes
    ----------
    status : "optimal", "feasible" or "unknown"
        "optimal": the instance is proven the worst of the class.  "feasible": there is one, and the worst lies between
        ``value`` and ``bound``.  "unknown": there is none yet.
    instance : Instance, optional
        The worst found.
    value : float, optional
        Its ratio or difference.
    heuristic_value, witness_value : float, optional
        What the trace and the witness are worth on it, as the model has it; where the class is ``scalable``, up to a
        factor that is the same for both.
    bound : float
        Of no instance of the class is the ratio or difference greater; infinite where nothing is proven.
    words : str
        The class of instances.
    scalable : bool
        As the class is.
    proof : str
        What the bound rests on, as in :class:`formulations.Solution`; of several programs the weakest.
    programs : int
        How many were solved.
    seconds : float
    """

    status: Literal["optimal", "feasible", "unknown"]
    instance: Instance[Any] | None
    value: float | None
    heuristic_value: float | None
    witness_value: float | None
    bound: float
    words: str
    scalable: bool
    proof: Proof
    programs: int
    seconds: float


def worst_case_model(problem: str, heuristic: str) -> WorstCaseModel | None:
    """Return the model of ``formulations.worst_case.<paper>.<problem>`` for a heuristic of that name, or None."""
    if not is_own(problem):
        return None
    name = f"{__package__}.{problem}"
    try:
        found: Mapping[str, WorstCaseModel] = importlib.import_module(name).WORST_CASES
    except ModuleNotFoundError as error:
        if error.name is None or not name.startswith(error.name):
            raise
        return None
    return found.get(heuristic)


def prove(
    model: WorstCaseModel,
    problem: str,
    *,
    size: int,
    measure: Measure = "ratio",
    time_limit: float | None = None,
    verify: bool | None = None,
    **dials: Any,
) -> Proven:
    """Return the worst case of a heuristic at one size, as its model has it.

    Parameters
    ----------
    model : WorstCaseModel
    problem : str
        Whose sense says which of the two values is the greater.
    size : int
    measure : "ratio" or "difference"
        The greater of the heuristic's value and the optimum by the lesser, or less the lesser.
    time_limit : float, optional
        Seconds in all.
    verify : bool, optional
        Whether each program's bound is checked a second way, as in :func:`formulations.solve`.
    **dials
        Other arguments of the model's ``instances``.

    Returns
    -------
    Proven
        Its instance is not judged yet: ``validation.worst_case`` does that.

    Raises
    ------
    ModelError
        When an argument is none, the class has no instances, or the values of its instances have no bound.
    """
    if measure not in get_args(Measure):
        raise ModelError(f"measure: got {measure!r}, must be {' or '.join(get_args(Measure))}")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ModelError(f"size: got {size!r}, must be a whole number, at least 1")
    if time_limit is not None and not time_limit > 0:
        raise ModelError(f"time_limit: got {time_limit!r}, must be positive seconds")
    search = _Search(model, instance_type(problem).sense, measure, verify)
    arguments = model.arguments(size, dials)
    with clock.within(time_limit):
        chosen = model.instances(**arguments)
        words = chosen.words
        if chosen.scalable and measure == "difference":
            raise ModelError(f"measure: got 'difference', which has no limit over {words}; the ratio has")
        if measure == "ratio" and model.least is not None:
            words += f"; {'optimum' if search.sense == 'min' else 'heuristic'} at least {model.least:g}"
        try:
            for part in chosen.parts:
                clock.check()
                search.over(part)
        except clock.TimeIsUp:
            search.bound = math.inf
    return search.outcome(words, chosen.scalable)


def _sharpen(part: pyo.ConcreteModel) -> None:
    """Solve a part again with its choices as they are, so that numbers that the model means to be equal are."""
    choices = [
        one for one in part.component_data_objects(pyo.Var, active=True) if not (one.is_continuous() or one.fixed)
    ]
    for one in choices:
        one.fix(round(one.value))
    try:
        solution = solve(part, session=Session(tolerance=SHARP))
    finally:
        for one in choices:
            one.unfix()
    if solution.objective is not None:
        solution.load()


class _Search:
    """The worst so far, and what is proven of the parts that are behind."""

    def __init__(self, model: WorstCaseModel, sense: Sense, measure: Measure, verify: bool | None) -> None:
        self.model, self.sense, self.measure, self.verify = model, sense, measure, verify
        self.least = 1.0 if model.least is None else model.least
        self.began = time.monotonic()
        self.found: tuple[Instance[Any], float, float] | None = None
        self.value = -math.inf
        self.bound = -math.inf
        self.proofs: list[Proof] = []

    def over(self, part: pyo.ConcreteModel) -> None:
        """Search one part; the bound of the whole is the greatest of the parts'."""
        worths = part.witness_value, part.heuristic_value
        greater, lesser = worths if self.sense == "max" else worths[::-1]
        if self.measure == "ratio":
            part.lesser_is_counted = pyo.Constraint(expr=lesser >= self.least)
        bound = math.inf
        while True:
            # A ratio below 1 is none: the heuristic's plan is a witness, too.
            factor = max(1.0, self.value) if self.measure == "ratio" else 1.0
            part.del_component("excess")
            part.excess = pyo.Objective(expr=greater - factor * lesser, sense=pyo.maximize)
            if clock.is_up():
                break
            solution = solve(part, verify=self.verify)
            self.proofs.append(solution.proof)
            if solution.status == "infeasible":
                bound = -math.inf
                break
            if solution.status == "unbounded":
                raise ModelError(f"{part.name}: the values of the class have no bound")
            if self.measure == "ratio":
                bound = min(bound, factor + max(0.0, solution.bound) / self.least)
            else:
                bound = solution.bound
            if solution.objective is not None:
                solution.load()
                _sharpen(part)
                self._note(part, pyo.value(greater), pyo.value(lesser))
            ended = solution.status != "optimal" or self.measure == "difference"
            if ended or agree(max(1.0, self.value), bound) or self.value <= factor:
                break
        self.bound = max(self.bound, bound)

    def _note(self, part: pyo.ConcreteModel, greater: float, lesser: float) -> None:
        value = greater / lesser if self.measure == "ratio" else greater - lesser
        if value > self.value:
            own, witness = (lesser, greater) if self.sense == "max" else (greater, lesser)
            self.found, self.value = (self.model.read(part), own, witness), value

    def outcome(self, words: str, scalable: bool) -> Proven:
        seconds = time.monotonic() - self.began
        proof: Proof = min(self.proofs, key=WEAKEST_FIRST.index, default="")
        rest = words, scalable, proof, len(self.proofs), seconds
        if self.found is None:
            if self.bound == -math.inf:
                raise ModelError(f"there is no such instance: {words}")
            return Proven("unknown", None, None, None, None, self.bound, *rest)
        instance, own, witness = self.found
        if self.value > self.bound:
            if not agree(self.value, self.bound) and self.value - self.bound > 1e-6:
                raise SolverError(
                    f"an instance is worse, {self.value!r}, than the bound {self.bound!r} that was proven"
                )
            self.bound = self.value
        near = agree(self.value, self.bound) or self.bound - self.value <= 1e-9
        status: Literal["optimal", "feasible"] = "optimal" if near else "feasible"
        return Proven(status, instance, self.value, own, witness, self.bound, *rest)
