"""What is best: one exact Pyomo model per problem, and the one path from a model to a solver.

``formulations.<paper>.<problem>`` has ``build(instance)`` and ``read(model)``; everything is
solved through :func:`solve`.

HiGHS (highspy 1.15) and OR-Tools (9.15) cannot be imported into one process: use OR-Tools in a
process of its own.
"""

from formulations.certificate import Certificate
from formulations.conflicts import Explanation, explain
from formulations.external import SolverNotFound
from formulations.external import find as find_solver
from formulations.highs import Result, Session, SolverError
from formulations.linear import LinearProgram, ModelError, Rows, translate, weighted_sum
from formulations.solving import Solution, build, formulation, read, relative_gap, solve

__all__ = [
    "Certificate",
    "Explanation",
    "LinearProgram",
    "ModelError",
    "Result",
    "Rows",
    "Session",
    "Solution",
    "SolverError",
    "SolverNotFound",
    "build",
    "explain",
    "find_solver",
    "formulation",
    "read",
    "relative_gap",
    "solve",
    "translate",
    "weighted_sum",
]
