"""Shortest job first by its closed form, which needs no solver (:mod:`formulations.gavel.shortest_job_first`)."""

from __future__ import annotations

import math
import time

import numpy as np

from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.gavel.shortest_job_first import shortest
from formulations.methods import Choice, Method, one_model
from instances.gavel.sharing import Allocation
from instances.gavel.shortest_job_first import ShortestJobFirst

__all__ = ["CHOICE", "METHOD", "solve"]


def solve(instance: ShortestJobFirst, options: Options) -> Solution:
    """Evaluate the closed form; it is the bound, and the plan attains it."""
    began = time.perf_counter()
    least, column = shortest(instance)
    fractions = np.zeros((instance.num_jobs + instance.num_pairs, instance.num_types))
    # A job that has finished needs nothing, and where no job runs nothing helps.
    if 0 < least < math.inf:
        fractions.ravel()[column] = 1.0
    return judged(
        instance,
        Allocation(time_fractions=fractions),
        Result("optimal", None, least, None, 0.0, "closed form", "argument"),
        began=began,
        solver="closed form",
        solver_version="",
        method=METHOD.name,
    )


METHOD = Method(
    name="closed form",
    short="formula",
    proves="no job is faster than with all of its time in its best place",
    where="every instance",
    solve=solve,
    proofs=("argument",),
)
CHOICE = Choice((METHOD, one_model.METHOD))
