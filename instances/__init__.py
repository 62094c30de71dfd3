"""What is asked: the data of each problem, what a plan for it is, and what the plan is worth.

One module per problem, ``instances.<paper>.<problem>``, with the instance's class, the plan's
class, a generator and the paper's worked examples.  This package imports NumPy and nothing of
the library's other rooms, so instances can be made and plans judged without any solver.
"""

from instances.base import (
    TOLERANCE,
    BoolArray,
    FloatArray,
    Instance,
    InstanceError,
    IntArray,
    Plan,
    PlanError,
    Violation,
)
from instances.files import instance_type, load, problems, read, save

__all__ = [
    "TOLERANCE",
    "BoolArray",
    "FloatArray",
    "Instance",
    "InstanceError",
    "IntArray",
    "Plan",
    "PlanError",
    "Violation",
    "instance_type",
    "load",
    "problems",
    "read",
    "save",
]
