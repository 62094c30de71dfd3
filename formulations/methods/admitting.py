"""Admission by a search of this problem's own: parts of the plans by who is admitted, and GPUs one job after the other.

The rows of the model on what is admitted in part (:mod:`formulations.elasticflow.admission`) leave its relaxation few
jobs that are, and a bound that is less than a job off, most often.  A part of the plans admits some jobs for certain
and turns some away.

1. *Bound.*  The relaxation of the part, rounded down to whole jobs.
2. *Plan.*  As many jobs, first those of which the relaxation admits most.  They must all be served, which is the
   question of :mod:`instances.elasticflow.minimum_satisfactory_share`; its relaxation has GPU-slots in parts.  In order
   of their deadlines each job gets whole ones: those that it has whole, and then one more where the greatest part is
   cut off, until its work is done.  With these fixed, the relaxation is solved anew for the jobs that are due later.
3. *Parts.*  Where that ends without a plan, the part is divided by a job of which the relaxation admits about half.
   Where it admits each job or none of it, the model of these jobs is searched; if they cannot all be served, neither
   can they with others, and each plan that is left turns one of them away.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import replace

import highspy
import numpy as np

from formulations.elasticflow.admission import most
from formulations.elasticflow.greedy import could_be_served
from formulations.elasticflow.sharing import read, shares_alone
from formulations.engine import clock
from formulations.engine.highs import WEAKEST_FIRST, Proof, Result, Status, hand_over, limit_run, version
from formulations.engine.linear import translate
from formulations.engine.options import Options
from formulations.engine.polishing import accepted
from formulations.engine.solution import Solution, judged, write_point
from formulations.engine.solving import build
from formulations.methods import Choice, Method, one_model
from formulations.methods.rounding import with_shares_alone
from instances.elasticflow.admission import Admission, AdmissionPlan
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.sharing import SlotPlan
from instances.schema import BoolArray, FloatArray, IntArray

__all__ = ["ADMITTING", "CHOICE", "search"]

WHOLE = 1e-6
"""Amount by which a number may miss a whole one and be taken for it."""


def search(instance: Admission, options: Options) -> Solution:
    """Return the plan that admits most, by dividing the plans by who is admitted until no part can hold a better one.

    Parameters
    ----------
    instance : Admission
        With concave curves.
    options : Options
        With a plan to start from, if there is one.
    """
    began = time.perf_counter()
    found = _Search(instance, options)
    try:
        found.run()
    except clock.TimeIsUp:
        found.message = "time limit, "
    status: Status = "optimal" if found.value >= found.bound else "feasible"
    result = Result(
        status, None, found.bound, None, found.seconds, f"{found.message}{found.parts:,} parts", found.proof
    )
    return judged(
        instance, found.plan, result, began=began, solver="highs", solver_version=version(), method=ADMITTING.name
    )


class _Search:
    """The search under way.

    Attributes
    ----------
    plan : AdmissionPlan
        The best plan found.
    bound : float
        Jobs that no plan admits more of.
    parts : int
        Parts that were bounded.
    seconds : float
        Time in the solver, s.
    proof : str
        Ground of the bound.
    """

    def __init__(self, instance: Admission, options: Options) -> None:
        self.instance, self.options = instance, options
        nobody = np.zeros(instance.num_jobs, bool)
        self.plan = AdmissionPlan(admitted=nobody, gpus=np.zeros((instance.num_jobs, instance.horizon), np.int64))
        if isinstance(options.start, AdmissionPlan) and not instance.violations(options.start):
            self.plan = options.start
        self.bound, self.parts, self.seconds, self.message = most(instance), 0, 0.0, ""
        self.proof: Proof = "argument"
        self._alone = shares_alone(instance)
        self._tried: set[bytes] = set()

    @property
    def value(self) -> float:
        """Jobs that the best plan admits."""
        return float(self.plan.admitted.sum())

    def run(self) -> None:
        """Search until the bound is met, or as near as is asked for."""
        relaxation = _Relaxation(self.instance, self.options)
        must = np.zeros(self.instance.num_jobs, bool)
        # Parts as (minus the bound, minus the number, who is admitted for certain, who may be).
        parts = [(-self.bound, 0, must, could_be_served(self.instance))]
        number, undecided = 0, 0.0
        while parts:
            above, _, must, may = heapq.heappop(parts)
            self.bound = max(-above, undecided, self.value)
            if -above <= self.value or self.bound - self.value <= self.options.mip_gap * self.value:
                break
            clock.check()
            result, share = relaxation.solve(must, may)
            self.parts, self.seconds = self.parts + 1, self.seconds + result.seconds
            if share is None and result.status != "infeasible":
                undecided = max(undecided, -above)
                continue
            self._rests_on(result.proof)
            bound = 0.0 if share is None else min(-above, math.floor(result.bound + WHOLE))
            if share is None or bound <= self.value:
                continue
            split = self._divided(must, may, share, int(bound))
            undecided = max(undecided, bound) if split is None else undecided
            for each in split or []:
                number += 1
                heapq.heappush(parts, (-bound, -number, *each))
        else:
            self.bound = max(undecided, self.value)

    def _divided(
        self, must: BoolArray, may: BoolArray, share: FloatArray, count: int
    ) -> list[tuple[BoolArray, BoolArray]] | None:
        """Return the parts of a part that may hold a plan of ``count`` jobs, which are none where one is found.

        None where it stays open whether there is one.
        """
        jobs = np.sort(np.lexsort((self._alone, -share.round(6)))[:count])
        if jobs.tobytes() not in self._tried:
            self._tried.add(jobs.tobytes())
            if self._take(_Served(self.instance, jobs).one_by_one()):
                return []
        half = np.minimum(share, 1 - share)
        job = int(half.argmax())
        if half[job] > WHOLE:
            this = np.arange(len(share)) == job
            return [(must | this, may), (must, may & ~this)]
        jobs = np.flatnonzero(share > 0.5)
        plan, result = _Served(self.instance, jobs).searched(self.options)
        self.seconds += result.seconds
        if self._take(plan):
            return []
        if result.status != "infeasible":
            return None
        self._rests_on(result.proof)
        split = []
        for this in np.eye(len(share), dtype=bool)[jobs[~must[jobs]]]:
            split.append((must, may & ~this))
            must = must | this
        return split

    def _rests_on(self, proof: Proof) -> None:
        """Take a proof for one that the bound rests on, as it does on the weakest of them."""
        self.proof = min(self.proof, proof, key=WEAKEST_FIRST.index)

    def _take(self, plan: AdmissionPlan | None) -> bool:
        """Keep a plan that is found, which is better than those before."""
        self.plan = self.plan if plan is None else plan
        return plan is not None


class _Relaxation:
    """The relaxation of the model, part after part from the last basis."""

    def __init__(self, instance: Admission, options: Options) -> None:
        model = build(instance)
        program = translate(model)
        column = {id(variable): position for position, variable in enumerate(program.variables)}
        self._admitted = [column[id(variable)] for variable in model.admitted.values()]
        self._program = replace(program, integer=np.zeros_like(program.integer))
        self._session = options.session()

    def solve(self, must: BoolArray, may: BoolArray) -> tuple[Result, FloatArray | None]:
        """Return the result of a part, and how much of each job the relaxation admits, where it is solved."""
        lower, upper = self._program.col_lower.copy(), self._program.col_upper.copy()
        lower[self._admitted], upper[self._admitted] = must, may
        found = self._session.run(replace(self._program, col_lower=lower, col_upper=upper))
        return found, found.x[self._admitted] if found.status == "optimal" and found.x is not None else None


class _Served:
    """Jobs that are all to be served.

    Parameters
    ----------
    instance : Admission
    jobs : (m,) int
    """

    def __init__(self, instance: Admission, jobs: IntArray) -> None:
        self._all, self._jobs = instance, jobs[np.argsort(instance.deadlines[jobs], kind="stable")]
        self._instance = MinimumSatisfactoryShare(
            num_gpus=instance.num_gpus,
            iterations=instance.iterations[self._jobs],
            deadlines=instance.deadlines[self._jobs],
            throughputs=instance.throughputs[self._jobs],
        )
        self._model = build(self._instance)
        program = translate(self._model)
        before = [component for component, _ in program.constraints].index(self._model.work)
        first = sum(len(indices) for _, indices in program.constraints[:before])
        self._work = range(first, first + len(jobs))
        self._program = with_shares_alone(program, self._model, self._instance)

    def one_by_one(self) -> AdmissionPlan | None:
        """Give the jobs whole GPU-slots, those of the first deadline first; None where that does not serve them all."""
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        hand_over(highs, replace(self._program, integer=np.zeros_like(self._program.integer)))
        point = _optimum(highs)
        for row in self._work:
            if point is None:
                return None
            entries = slice(self._program.indptr[row], self._program.indptr[row + 1])
            columns = self._program.index[entries]
            gains, need = self._program.value[entries], float(self._program.row_lower[row])
            whole = _rounded(point[columns], self._program.col_upper[columns], gains, need)
            highs.changeColsBounds(len(columns), columns, whole, whole)
            if np.abs(whole - point[columns]).max(initial=0.0) > WHOLE:
                point = _optimum(highs)
        if point is None:
            return None
        plan = self._admitting(self._read(point))
        return None if self._all.violations(plan) else plan

    def searched(self, options: Options) -> tuple[AdmissionPlan | None, Result]:
        """Search for a plan, any, and return it, if there is one, with the result of the search."""
        # With GPU-slots to spare, searches refute sooner what none can serve; any number of them will do.
        options = replace(options, start=None, mip_gap=1.0)
        result = options.session().run(self._program)
        plan, result = accepted(self._instance, self._program, result, self._read, options)
        if plan is None or self._instance.violations(plan):
            return None, result
        return self._admitting(plan), result

    def _read(self, x: FloatArray) -> SlotPlan:
        write_point(self._program, x)
        return read(self._model)

    def _admitting(self, plan: SlotPlan) -> AdmissionPlan:
        """Return the plan that admits these jobs and no others."""
        gpus = np.zeros((self._all.num_jobs, self._all.horizon), np.int64)
        gpus[self._jobs, : self._instance.horizon] = plan.gpus
        return AdmissionPlan(admitted=np.isin(np.arange(len(gpus)), self._jobs), gpus=gpus)


def _optimum(highs: highspy.Highs) -> FloatArray | None:
    """Return the optimum of a linear program, from the last basis; None where it has none."""
    clock.check()
    limit_run(highs, clock.left())
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(highs.getSolution().col_value)


def _rounded(point: FloatArray, most: FloatArray, gains: FloatArray, need: float) -> FloatArray:
    """Return whole numbers near a point whose gains come to a need, if they can, and none to spare."""
    whole = np.minimum(np.floor(point + WHOLE), most)
    for unit in np.argsort(whole - point, kind="stable").tolist():
        if gains @ whole >= need:
            break
        whole[unit] = min(whole[unit] + 1, most[unit])
    for unit in np.argsort(gains, kind="stable").tolist():
        spare = math.floor(float(gains @ whole - need) / gains[unit])
        whole[unit] -= min(whole[unit], max(0, spare))
    return whole


ADMITTING = Method(
    name="who is admitted",
    short="who",
    proves="prices of the relaxation of each part of the plans that is left, rounded down: jobs are counted; and for "
    "jobs that the relaxation serves and no plan does, the search of the model of these",
    where="jobs whose curves are all concave",
    solve=search,
    applies=lambda instance: instance.concave,
)
CHOICE = Choice((ADMITTING, one_model.METHOD))
