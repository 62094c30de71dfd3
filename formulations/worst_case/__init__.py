"""Worst cases of heuristics: one program whose points are instances, and whose bound holds for all of them.

A worst case is found over all instances of a class at once.  The data are variables, the heuristic's run is constraints
(its trace), and beside its plan there is another plan of the same instance, the witness: what the optimum is worth at
least.  Where the first is as bad as can be beside the second, the second is an optimum, so that no program within the
program is needed, and the solver's bound is one on every instance of the class.

``formulations.worst_case.<paper>.<problem>`` has ``WORST_CASES``, models by the names of heuristics; :func:`prove`
solves them.  Nothing here runs a heuristic: that the trace is the heuristic's is seen where the witness is judged.
"""

from formulations.worst_case.pieces import snapped, switched, whole_multiples
from formulations.worst_case.proving import (
    InstanceClass,
    Measure,
    Proven,
    WorstCaseModel,
    prove,
    worst_case_model,
)

__all__ = [
    "InstanceClass",
    "Measure",
    "Proven",
    "WorstCaseModel",
    "prove",
    "snapped",
    "switched",
    "whole_multiples",
    "worst_case_model",
]
