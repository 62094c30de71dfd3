"""The way that every problem knows, but for those that no one model states: build the model, solve it once."""

from __future__ import annotations

from dataclasses import replace

from formulations.engine.protocol import Formulation
from formulations.engine.solution import ONE_MODEL
from formulations.engine.solving import solve_one_model
from formulations.methods import Choice, Method

__all__ = ["LINEAR", "METHOD", "choice"]

METHOD = Method(
    name=ONE_MODEL,
    short="model",
    proves="prices of the linear program, or a mixed-integer search that is checked a second way",
    where="every instance",
    solve=solve_one_model,
    any_solver=True,
)

LINEAR = replace(METHOD, proofs=("prices",))
"""The same of problems whose model is a linear program."""


def choice(offered: Formulation) -> Choice:
    """Offer the one model, and before it what a formulation offers itself."""
    again = None
    if offered.again is not None:
        again = Method(
            name="the formulation's second procedure",
            short="again",
            proves="what the formulation says",
            where="every instance",
            solve=offered.again,
            any_solver=True,
        )
    own = [again] if again is not None else []
    if not offered.any_solver:
        own.insert(0, METHOD)
    if offered.solve is not None:
        first = Method(
            name="the formulation's own",
            short="own",
            proves="what the formulation says",
            where="every instance",
            solve=offered.solve,
            any_solver=offered.any_solver,
        )
        own.insert(0, first)
    return Choice(tuple(own), again=again)
