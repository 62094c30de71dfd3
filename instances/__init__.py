"""Problems: the data of each, plans for it, and their values.

One module per problem, ``instances.<paper>.<problem>``, with the instance's class, the plan's
class, a generator and the paper's worked examples; ``instances.data`` reads public tables and
traces.  This package imports NumPy and nothing of
the library's other packages, so instances can be made and plans judged without any solver.
"""

from pkgutil import iter_modules

from lazy_loader import attach

from instances.base import (
    TOLERANCE,
    Instance,
    InstanceError,
    Plan,
    PlanError,
    Violation,
    exceeding,
)
from instances.files import instance_type, load, problems, read, save
from instances.schema import Array, BoolArray, FloatArray, IntArray, Ragged, Scalar, StrArray

__all__ = [
    "TOLERANCE",
    "Array",
    "BoolArray",
    "FloatArray",
    "Instance",
    "InstanceError",
    "IntArray",
    "Plan",
    "PlanError",
    "Ragged",
    "Scalar",
    "StrArray",
    "Violation",
    "exceeding",
    "instance_type",
    "load",
    "problems",
    "read",
    "save",
]

_papers, _, _names = attach(__name__, [module.name for module in iter_modules(__path__) if module.ispkg])
__getattr__ = _papers
__all__ += _names


def __dir__() -> list[str]:
    return __all__
