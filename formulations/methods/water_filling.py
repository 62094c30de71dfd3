"""Hierarchical fairness by water filling: levels that rise until a limit proves that they cannot.

Solvers that give no prices are led through the definition step by step, by the programs of
:mod:`formulations.gavel.hierarchical_fairness`.

HiGHS takes fewer.  Prices of the pools' workers limit every allocation, and under
finitely many such limits levels can be filled without a solver (:mod:`formulations.methods.filling`).  So

1. fill under the limits known so far, at first the jobs' ceilings (v_m when all of m's time is spent
   in the best place), until some limits are reached;
2. ask whether some allocation attains the levels:  max  slack <= 0  such that, for each job m,
   attains[m]:  v_m(X) / ceiling_m  -  slack  >=  l_m / ceiling_m;
3. if so, go on from there, until twice as many more are reached; if not, the program's prices give a limit that
   these levels break: go back and fill anew under one limit more, until one more is reached.

The levels that allocations attain satisfy all limits, so when filling under a few of them ends in
levels that are attained, it has frozen every job exactly where water filling does, whatever
vertices the solver returned; and for each job the limit that froze it is the proof that it cannot
rise.  Only the limits of rows differ between programs, so each is solved warm from the one before,
with many pairs by generating columns (:mod:`formulations.methods.generation`).  Of more than some tens of jobs without
pairs no program is asked: mixes of plans and the prices of pools answer (:mod:`formulations.methods.mixing`).  Where
these find neither, the program is asked, and the message says so.

A limit of time may cut the first program of many pairs off.  So before it the jobs alone are filled, by mixes, and
until levels are attained the best plan of these and of all attempts is kept.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np

from formulations.engine import clock, highs
from formulations.engine.highs import Proof, Result, Session, SolverError
from formulations.engine.linear import translate
from formulations.engine.options import Options
from formulations.engine.scaling import unit
from formulations.engine.solution import Solution, judged
from formulations.engine.solving import run
from formulations.gavel.hierarchical_fairness import build
from formulations.gavel.sharing import SharingProgram, within_limits
from formulations.methods import Choice, Method
from formulations.methods.filling import NOISE, TIE, Filled, Level, Limit, Limits
from formulations.methods.generation import ColumnGeneration
from formulations.methods.mixing import Mixing
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness
from instances.gavel.sharing import Allocation
from instances.schema import FloatArray

__all__ = [
    "CHOICE",
    "METHOD",
    "STEPS",
    "Level",
    "Limit",
    "WaterFilling",
    "printed_water_filling",
    "solve",
    "solve_step_by_step",
    "step_by_step",
    "water_filling",
]

TOLERANCE = 1e-10
"""Feasibility that HiGHS is asked for, primal and dual: an error in one level moves all later ones."""
ATTAINED = 1e-10
"""By how much an allocation may miss a level, relative to the job's ceiling, and still attain it."""
PRECISION = 1e-8
"""By how much it may miss it where one limit more brings the two no closer: a solver's rounding."""
SATURATED = 1e-6
"""Without prices: a job is frozen when it can rise by no more than this, relative to its ceiling."""
EXACT = 1e-6
"""By how much the last allocation may differ from a level, relative to that level, for a proof."""
REPAIRS = 20
"""How often limits may be eased that froze jobs too early by rounding."""
MIXED_JOBS = 64
"""From so many jobs on, levels without pairs are asked of mixes of plans."""
ALONE = 0.5
"""Part of the time that filling the jobs alone may take, before pairs are looked at."""


@dataclass(frozen=True, eq=False)
class WaterFilling:
    """The whole procedure.

    Attributes
    ----------
    levels : tuple of Level
        In order of height.
    vector : (n,) float
        Level of each job.
    allocation : Allocation
        Attains the vector.
    complete : bool
        Whether every job is frozen, and the allocation gives each its level and no more; else the
        solver has not come to an end, and levels may rise further.
    bound : float
        Height that the first level is proven not to exceed.
    programs : int
        Vectors of levels that were asked for, each a linear program or mixes of plans.
    seconds : float
        Time in the solver, s.
    message : str
        The solver's own words.
    """

    levels: tuple[Level, ...]
    vector: FloatArray
    allocation: Allocation
    complete: bool
    bound: float
    programs: int
    seconds: float
    message: str

    @property
    def num_levels(self) -> int:
        """Different heights at which jobs are frozen."""
        heights = np.sort([level.height for level in self.levels])
        return int((np.diff(heights, prepend=-1.0) > ATTAINED * np.maximum(heights, 1.0)).sum())


def solve(instance: HierarchicalFairness, options: Options) -> Solution:
    """Fill until every job is proven unable to rise; the bound is that of the first level."""
    began = time.perf_counter()
    if options.solver != "highs":
        return solve_step_by_step(instance, options)
    return _solution(instance, options, water_filling(instance, options), highs.version(), "prices", began)


def solve_step_by_step(instance: HierarchicalFairness, options: Options) -> Solution:
    """Fill as the definition says, by any solver; the bound is that of the first level."""
    began = time.perf_counter()
    filling, version = step_by_step(instance, options)
    return _solution(instance, options, filling, version, "one run", began)


def _solution(
    instance: HierarchicalFairness, options: Options, filling: WaterFilling, version: str, proof: Proof, began: float
) -> Solution:
    return judged(
        instance,
        instance.plan(filling.allocation),
        Result(
            status="optimal" if filling.complete else "feasible",
            x=None,
            bound=filling.bound,
            certificate=None,
            seconds=filling.seconds,
            message=f"{filling.message}; {filling.num_levels} levels, {filling.programs} programs",
            proof=proof,
        ),
        began=began,
        solver=options.solver,
        solver_version=version,
        method="water filling",
    )


def water_filling(instance: HierarchicalFairness, options: Options | None = None) -> WaterFilling:
    """Levels by HiGHS, each with the limit that proves it.

    Parameters
    ----------
    instance : HierarchicalFairness
    options : Options, optional
        Of :func:`formulations.solve`; the solver is HiGHS.
    """
    options = options or Options()
    scales = _scales(instance)
    programs = _Programs(instance, options)
    limits = Limits(instance)
    filled, allocation, complete = limits.fill(0), _at_hand(instance, options), False
    start: Filled | None = filled
    ahead, bound, message = 1, math.inf, "no program"
    missed, misses, repairs = np.full(instance.num_jobs, np.inf), 0, 0
    while not complete:
        target = limits.fill(filled.reached + ahead, after=start)
        bound = min(bound, float(target.heights.min()))
        # How often these levels were missed, although each time there was one limit more.
        misses = misses + 1 if np.abs(target.levels - missed).max() <= TIE else 0
        if misses == 2:
            # Without the last basis, the solver may find other prices.
            programs.forget()
        try:
            answer = programs.ask(target.levels)
        except clock.TimeIsUp:
            message = "the time is over"
            break
        message = answer.message
        if answer.fractions is None:
            if misses > 1 or options.time_limit is not None:
                break
            missed, misses = target.levels, 1
            continue
        candidate = within_limits(instance, answer.fractions)
        received = instance.normalized_throughputs(candidate)
        shortage = float(((target.levels - received) / scales).max())
        if not filled.limits:
            allocation = _better(instance, allocation, candidate)
        if (shortage > (PRECISION if misses else ATTAINED) or (answer.missed and not misses)) and misses < 3:
            limits.add(answer.prices, answer.time_prices, answer.pool_prices)
            if filled.limits and not instance.num_pairs:
                limits.add_beside(filled.limits[-1], answer.pool_prices)
            missed, ahead = target.levels, 1
        elif shortage > PRECISION:
            message += f"; levels are missed by {shortage:.1g} of a ceiling"
            break
        else:
            filled, allocation, start, ahead = target, candidate, target, 2 * ahead
            more = np.flatnonzero(received - target.levels > EXACT / 10 * instance.ceilings)
            complete = target.complete
            if complete and more.size and repairs < REPAIRS:
                # A level that is too high by rounding makes the limits that it has a price in look reached
                # too early, which matters where others have prices a million times lower.
                limits.ease(more, target.causes[more])
                repairs, start, complete = repairs + 1, None, False
    return _ended(
        instance,
        limits.levels(filled),
        filled.levels,
        allocation,
        complete,
        least=TIE,
        bound=bound,
        programs=programs.count,
        seconds=programs.seconds,
        message=message,
    )


def _at_hand(instance: HierarchicalFairness, options: Options) -> Allocation:
    """Return a plan for when time ends before any levels are attained: of many jobs, what they have without pairs."""
    if not instance.num_pairs or instance.num_jobs < MIXED_JOBS or options.time_limit is None:
        return instance.isolated_share()
    no_pairs = np.zeros((0, 2), np.int64), np.zeros((0, instance.num_types, 2))
    alone = replace(instance, pairs=no_pairs[0], pair_throughputs=no_pairs[1])
    with clock.within(ALONE * clock.left()):
        fractions = water_filling(alone, options).allocation.time_fractions
    return Allocation(time_fractions=np.vstack([fractions, np.zeros((instance.num_pairs, instance.num_types))]))


def _better(instance: HierarchicalFairness, known: Allocation, found: Allocation) -> Allocation:
    """Return the plan of the higher first level; what is found may have been cut off on the way to a plan."""
    plan = instance.plan(found)
    better = instance.objective(plan) > instance.objective(instance.plan(known))
    return found if better and not instance.violations(plan) else known


@dataclass(frozen=True, eq=False)
class _Attempt:
    """Attempt at some levels: the best allocation that there is, and what limits it.

    Attributes
    ----------
    fractions : (n+q, k) float, optional
        An allocation that attains as large a part of each level as is known; None where nothing was found out.
    prices, time_prices, pool_prices : (n,), (n,) and (p,) float
        Of normalised throughput, of jobs' time and of workers, where levels are missed.
    message : str
    missed : bool
        Whether prices prove that the levels are not attained, by however little.
    """

    fractions: FloatArray | None
    prices: FloatArray
    time_prices: FloatArray
    pool_prices: FloatArray
    message: str
    missed: bool = False


class _Programs:
    """Programs for one vector of levels after the other: mixes of plans, or one program, each solved warm."""

    def __init__(self, instance: HierarchicalFairness, options: Options) -> None:
        self._instance, self._options = instance, options
        self.count = 0
        self.seconds = 0.0
        mixed = instance.num_jobs >= MIXED_JOBS and not instance.num_pairs
        self._mixing = Mixing(instance, options) if mixed else None
        self._generation: ColumnGeneration | None = None

    def forget(self) -> None:
        """Go on without mixes and without the last basis, so that other prices may be found."""
        self._mixing = self._generation = None

    def ask(self, levels: FloatArray) -> _Attempt:
        self.count += 1
        found = None if self._mixing is None else self._mixing.at(levels, tolerance=ATTAINED)
        if found is None:
            return self._by_program(levels)
        self.seconds += found.seconds
        none = np.zeros(self._instance.num_jobs)
        fractions = found.allocation.time_fractions / max(1.0, 1.0 + found.overload)
        said = f"mixes of plans, {found.plans} in the last"
        return _Attempt(fractions, none, none, found.pool_prices, said, found.missed)

    def _by_program(self, levels: FloatArray) -> _Attempt:
        instance, scales = self._instance, _scales(self._instance)
        if self._generation is None:
            self._policy = SharingProgram(instance)
            slack = self._policy.variable("slack", upper=0)
            self._policy.maximize("greatest_slack", slack)
            levels_of_ceilings = instance.level_per_throughput / scales * self._policy.throughput
            self._policy.constraint("attains", levels_of_ceilings >= slack)
            self._program = self._policy.arrays()
            self._generation = ColumnGeneration(self._policy, self._program, self._options, tolerance=TOLERANCE)
        attains = self._policy.rows("attains")
        row_lower = self._program.row_lower.copy()
        row_lower[attains] = levels / scales
        result = self._generation.run(row_lower)
        self.seconds += result.seconds
        if result.x is None or result.certificate is None:
            none = np.zeros(instance.num_jobs)
            return _Attempt(None, none, none, np.zeros(len(instance.num_workers)), result.message)
        duals = result.certificate.row_duals
        prices = np.where(-duals[attains] > NOISE, -duals[attains], 0.0) / scales
        time_prices, pool_prices = (
            np.maximum(0.0, duals[self._policy.rows(name)]) for name in ("job_time", "pool_capacity")
        )
        fractions = result.x[:-1].reshape(instance.fits.shape)
        return _Attempt(fractions, prices, time_prices, pool_prices, f"{result.message}; by one program")


def printed_water_filling(instance: HierarchicalFairness, *, favoured: int | None = None) -> HierarchicalAllocation:
    """Follow the procedure of section 4.3 as printed: each step rises from what jobs have, not from their levels.

    A step maximises the least (v_m - t_m) / w_m over the jobs of positive weight, where t_m is the
    normalised throughput that job m had in the step before, and no job's throughput drops.  Then jobs that
    cannot have more unless another has less get weight 0, and weights are shared anew, until no job has any.

    Parameters
    ----------
    instance : HierarchicalFairness
    favoured : int, optional
        Of the many optimal allocations of a step, take one that gives this job most.  The print says
        nothing of the choice; by default it is the solver's.

    Returns
    -------
    HierarchicalAllocation
        What the jobs have in the end, which depends on the choice.

    Raises
    ------
    SolverError
        When a step is not solved.

    References
    ----------
    Gavel (OSDI'20), section 4.3.
    """
    n, scales = instance.num_jobs, _scales(instance)
    plan = instance.plan(Allocation(time_fractions=np.zeros(instance.fits.shape)))
    frozen = instance.ceilings <= 0

    def step(rates: FloatArray, least: FloatArray) -> HierarchicalAllocation:
        solved = Session().run(translate(build(instance, least, rates)))
        if solved.x is None:
            raise SolverError(f"{instance.problem}: a step of water filling was not solved: {solved.message}")
        return instance.plan(within_limits(instance, solved.x[:-1].reshape(instance.fits.shape)))

    while not frozen.all():
        rates, before = instance.rates(frozen), plan.normalized_throughputs
        plan = step(rates, before)
        if favoured is not None:
            rising = rates > 0
            rise = float(((plan.normalized_throughputs - before)[rising] / rates[rising]).min())
            # A hair less, so that rounding leaves a plan.
            plan = step(np.eye(n)[favoured], before + max(0.0, rise - SATURATED) * rates)
        received = plan.normalized_throughputs
        most = np.array([step(np.eye(n)[job], received).normalized_throughputs[job] for job in range(n)])
        stuck = ~frozen & (most - received <= 10 * SATURATED * scales)
        if not stuck.any():
            break
        frozen |= stuck
    return plan


def _ended(
    instance: HierarchicalFairness,
    levels: tuple[Level, ...],
    vector: FloatArray,
    allocation: Allocation,
    complete: bool,
    *,
    least: float,
    bound: float,
    programs: int,
    seconds: float,
    message: str,
) -> WaterFilling:
    """Make the outcome, complete only when the allocation gives each job its level and no more.

    Levels can be as far apart as weights are, so each is looked at in its own size; those below ``least`` of a ceiling
    are what rounding leaves of 0.
    """
    scales = _scales(instance)
    sizes = np.where(vector > least * scales, np.minimum(vector, scales), scales)
    off = float((np.abs(instance.normalized_throughputs(allocation) - vector) / sizes).max())
    if complete and off > EXACT:
        complete = False
        message += f"; the allocation is {off:.1g} of a level off it"
    return WaterFilling(levels, vector, allocation, complete, bound, programs, seconds, message)


def step_by_step(instance: HierarchicalFairness, options: Options) -> tuple[WaterFilling, str]:
    """Follow the definition to the letter: one program for each step, and one for each job that may be frozen."""
    levels, frozen, height = np.zeros(instance.num_jobs), np.zeros(instance.num_jobs, bool), 0.0
    stops: list[Level] = []
    allocation = instance.isolated_share()
    programs, seconds, message, version = 0, 0.0, "no program", ""

    def rise(rates: FloatArray) -> Result:
        nonlocal programs, seconds, message, version
        # Weights may be of any size, and rises are as small as they are large.
        size = unit(rates)
        model = build(instance, levels, rates / size)
        result, _, version = run(model, translate(model), options)
        programs, seconds, message = programs + 1, seconds + result.seconds, result.message
        return replace(result, bound=result.bound / size)

    scales = _scales(instance)
    bound = math.inf
    while not frozen.all():
        rates = instance.rates(frozen)
        rising = np.flatnonzero(rates > 0)
        result = rise(rates)
        bound = min(bound, height + result.bound) if not frozen.any() else bound
        if result.status != "optimal" or result.x is None:
            break
        allocation = within_limits(instance, result.x[:-1].reshape(instance.fits.shape))
        received = instance.normalized_throughputs(allocation)
        step = max(0.0, float(((received - levels)[rising] / rates[rising]).min()))
        levels, height = levels + step * rates, height + step
        unproven = rising[received[rising] - levels[rising] <= SATURATED * scales[rising]]
        alone = [rise(np.eye(instance.num_jobs)[job]).bound / scales[job] for job in unproven]
        stuck = unproven[np.array(alone) <= SATURATED]
        if not stuck.size:
            message += "; no job is proven unable to rise"
            break
        frozen[stuck] = True
        stops.append(Level(height, stuck, None))
    filling = _ended(
        instance,
        tuple(stops),
        levels,
        allocation,
        bool(frozen.all()),
        least=SATURATED,
        bound=bound,
        programs=programs,
        seconds=seconds,
        message=message,
    )
    return filling, version


def _scales(instance: HierarchicalFairness) -> FloatArray:
    """(n,) float: the jobs' ceilings, and 1 for a job that cannot rise."""
    scales: FloatArray = np.where(instance.ceilings > 0, instance.ceilings, 1.0)
    return scales


METHOD = Method(
    name="water filling",
    short="filling",
    proves="for each job a limit by prices that keeps it from rising; by other solvers, one program for each job",
    where="every instance",
    solve=solve,
    any_solver=True,
    proofs=("prices",),
)
STEPS = Method(
    name="water filling step by step",
    short="steps",
    proves="one program for each job, as the definition has it, that it cannot rise",
    where="every instance",
    solve=solve_step_by_step,
    any_solver=True,
    proofs=("one run",),
)
CHOICE = Choice((METHOD, STEPS), again=STEPS)
