"""The least GPU time by a maximum flow, where every GPU-slot of a job does the same work.

The flow and its proof are those of :mod:`formulations.elasticflow.flow`: it carries what each job needs at least, so
its plan is optimal, and where it falls short the jobs of a minimum cut prove that there is none.
"""

from __future__ import annotations

import math
import time

from formulations.elasticflow.flow import Cut, linear_up_to_a_cap, shares_by_flow
from formulations.elasticflow.greedy import could_be_served
from formulations.elasticflow.sharing import shares_alone
from formulations.engine.highs import Result, Status
from formulations.engine.options import Options
from formulations.engine.solution import Solution, judged
from formulations.methods import Choice, GaveUp, Method, one_model
from formulations.methods.rounding import ROUNDING
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare

__all__ = ["CHOICE", "FLOW"]


def solve(instance: MinimumSatisfactoryShare, options: Options) -> Solution:
    """Find the flow; it takes nothing of the options.

    A flow carries what the jobs need in floats.  What is proven is said of what they need at least, which is what the
    judge asks of a plan, less its tolerance (:func:`~formulations.elasticflow.sharing.shares_alone`).
    """
    began = time.perf_counter()
    found, least = shares_by_flow(instance), shares_alone(instance)
    if isinstance(found, Cut):
        jobs = list(found.jobs)
        if could_be_served(instance)[jobs].all() and least[jobs].sum() <= found.available:
            raise GaveUp("the jobs of a minimum cut miss their deadlines by rounding only")
        plan, result = None, Result("infeasible", None, math.inf, None, 0.0, str(found), "argument")
    else:
        bound = float(least.sum())
        status: Status = "optimal" if int(found.gpus.sum()) == bound else "feasible"
        plan, result = found, Result(status, None, bound, None, 0.0, "the flow carries all jobs", "argument")
    return judged(instance, plan, result, began=began, solver="none", solver_version="", method=FLOW.name)


FLOW = Method(
    name="a maximum flow",
    short="flow",
    proves="each job takes the GPU-slots that it needs at least; else the minimum cut",
    where="jobs whose curves are all linear up to a cap",
    solve=solve,
    applies=lambda instance: bool(linear_up_to_a_cap(instance).linear.all()),
    any_solver=True,
    proofs=("argument",),
)
CHOICE = Choice((ROUNDING, one_model.METHOD, FLOW))
