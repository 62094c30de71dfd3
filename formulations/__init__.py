"""Optima: one exact Pyomo model per problem, and the one path from a model to a solver.

``formulations.<paper>.<problem>`` has ``build(instance)`` and ``read(model)``; everything is
solved through :func:`solve`, by one of the exact methods that :func:`methods` lists.

HiGHS (highspy 1.15) and OR-Tools (9.15) cannot be imported into one process: use OR-Tools in a
process of its own.
"""

from pkgutil import iter_modules

from lazy_loader import attach

from formulations.engine.certificate import Certificate
from formulations.engine.conflicts import Explanation, explain
from formulations.engine.external import SolverNotFound
from formulations.engine.external import find as find_solver
from formulations.engine.highs import Proof, Result, Session, SolverDisagreement, SolverError, Status
from formulations.engine.linear import LinearProgram, ModelError, Rows, translate, weighted_sum
from formulations.engine.options import Options
from formulations.engine.protocol import Formulation, formulation
from formulations.engine.solution import Solution, judged, relative_gap
from formulations.engine.solving import build, certify, read, solve, solve_one_model
from formulations.engine.verification import Verification, verify
from formulations.methods import Method, MethodError, methods
from instances.renamed import moved_modules

__all__ = [
    "Certificate",
    "Explanation",
    "Formulation",
    "LinearProgram",
    "Method",
    "MethodError",
    "ModelError",
    "Options",
    "Proof",
    "Result",
    "Rows",
    "Session",
    "Solution",
    "SolverDisagreement",
    "SolverError",
    "SolverNotFound",
    "Status",
    "Verification",
    "build",
    "certify",
    "explain",
    "find_solver",
    "formulation",
    "judged",
    "methods",
    "read",
    "relative_gap",
    "solve",
    "solve_one_model",
    "translate",
    "verify",
    "weighted_sum",
]

_papers, _, _names = attach(
    __name__, [one.name for one in iter_modules(__path__) if one.ispkg and one.name != "methods"]
)
__getattr__ = _papers
__all__ += _names


def __dir__() -> list[str]:
    return __all__


moved_modules(
    {
        f"formulations.{old}": f"formulations.methods.{new}"
        for old, new in {
            "afs.completions": "completions",
            "aryl.branching": "branching",
            "elasticflow.rounding": "rounding",
            "gavel.filling": "filling",
            "gavel.mixing": "mixing",
            "gavel.prices": "prices",
            "gavel.pricing": "generation",
            "synergy.walking": "walking",
        }.items()
    }
)
