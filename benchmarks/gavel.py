"""What the tables of Gavel's policies ask beside the library's own functions, and two that are no studies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import formulations
from benchmarks import drawn
from benchmarks.overhead import highs_alone
from benchmarks.tables import Row, Setup, benchmark, described, gap, median_seconds, seconds, timed
from formulations import Options, Session, Solution
from formulations.engine.exact import exact_bound, exact_optimum
from formulations.engine.linear import LinearProgram
from formulations.methods.prices import search as prices_of_jobs
from formulations.methods.water_filling import step_by_step, water_filling
from instances.gavel import hierarchical_fairness, max_min_fairness, round_assignment
from instances.gavel.hierarchical_fairness import HierarchicalAllocation, HierarchicalFairness
from validation import catalogue

__all__ = ["Timing", "alone", "behind", "by_highs", "compared", "conic", "gavel", "hierarchies_compared", "small_round"]

ONE_PROGRAM = ("max_min_fairness", "makespan", "fifo", "total_throughput", "cost", "throughput_per_dollar")
"""Policies that are one linear program."""
LARGEST = 2048
"""With more jobs than this, whole programs are not solved for comparison."""


@dataclass(frozen=True)
class Timing:
    """Median processor time of a solve, s, with its limit: in seconds, or as a ratio to HiGHS on the arrays."""

    what: str
    seconds: float
    ratio: float | None
    limit: float


def gavel(repeats: int = 5, *, throughputs: str | None = None, trace: str | None = None) -> list[Timing]:
    """Time Gavel's policies, as the table ``gavel.policies`` describes.

    With all jobs different each one-program policy runs in turn with HiGHS on the same arrays, by
    simplex and by interior point; the ratio is to the faster of the two.  Then the other policies,
    all pairs of half as many jobs, and, where files are given, twice as many jobs of a real trace,
    of which many are alike.

    Parameters
    ----------
    repeats : int
        Timed repetitions; the median counts.
    throughputs, trace : path, optional
        The published table and a trace.
    """
    files = {"gavel/simulation_throughputs.json": throughputs, "gavel/msr_seed0_0e4a51.trace": trace}
    setup = Setup(repeats=repeats, files={name: Path(path) for name, path in files.items() if path is not None})
    found = described.rows("gavel.policies", setup)
    return [
        Timing(cells[0], names["row"].median[0], names["row"].times[0], names["ratio"] or names["most"])
        for cells, names in found
    ]


def small_round(seed: int, *, num_jobs: int) -> round_assignment.RoundAssignment:
    """Draw a round of at most so many jobs with wide ones on one pool."""
    jobs = 2 + seed % (num_jobs - 1)
    workers = 1 + seed % jobs
    return round_assignment.generate(
        seed, num_jobs=jobs, num_types=1, workers_per_pool=workers, wide=0.6, pair_fraction=0.6
    )


def behind(instance: Any, plan: Any, solution: Solution) -> float:
    """Return how far a plan is from the optimum; of entities, the sum of differences of levels over theirs."""
    if not isinstance(instance, HierarchicalFairness):
        return gap(instance.objective(plan), float(solution.objective or 0.0))
    assert isinstance(solution.plan, HierarchicalAllocation)
    best = solution.plan.normalized_throughputs
    return float(np.abs(plan.normalized_throughputs - best).sum() / best.sum())


def _arrays(instance: Any) -> LinearProgram:
    """Return a policy's program, made of the instance."""
    program: LinearProgram = import_module(f"formulations.{instance.problem}").program(instance).arrays()
    return program


def by_highs(instance: Any, *, method: str) -> float:
    """Return the optimum by HiGHS, which is told the arrays."""
    return highs_alone(_arrays(instance), method)


def alone(instance: Any, *, solver: str) -> str:
    """Return the processor time of a solver that is told the arrays; "" without the solver or for no small program."""
    if instance.num_jobs > LARGEST or instance.problem.rpartition(".")[2] not in ONE_PROGRAM:
        return ""
    if solver in ("simplex", "ipm"):
        return seconds(median_seconds(3, by_highs, instance, method=solver))
    try:
        import cvxpy
    except ImportError:
        return ""
    if solver not in cvxpy.installed_solvers():
        return ""
    try:
        return seconds(median_seconds(3, partial(_by_cvxpy, instance, solver)))
    except cvxpy.SolverError:
        return "failed"


def _by_cvxpy(instance: Any, solver: str) -> None:
    import cvxpy
    from scipy.sparse import csr_matrix

    program = _arrays(instance)
    matrix = csr_matrix((program.value, program.index, program.indptr), (program.num_rows, program.num_cols))
    above, below = np.isfinite(program.row_upper), np.isfinite(program.row_lower)
    bounded, started = np.isfinite(program.col_upper), np.isfinite(program.col_lower)
    x = cvxpy.Variable(program.num_cols)
    limits = [
        matrix[above] @ x <= program.row_upper[above],
        x[np.flatnonzero(started)] >= program.col_lower[started],
        x[np.flatnonzero(bounded)] <= program.col_upper[bounded],
    ]
    if below.any():
        limits.append(matrix[below] @ x >= program.row_lower[below])
    problem = cvxpy.Problem(cvxpy.Maximize(program.cost @ x), limits)
    problem.solve(solver=solver)
    if problem.status not in ("optimal", "optimal_inaccurate"):
        raise cvxpy.SolverError(problem.status)


CONIC_JOBS = (16, 64, 128, 256, 384, 512, 768, 1024, 2048, 4096)


@benchmark("gavel.max_min_fairness.conic", "jobs", "whole", "ECOS", "Clarabel", "whole over the faster")
def conic(setup: Setup) -> Iterator[Row]:
    """Processor time of max-min fairness with all jobs different, and of conic solvers by their own interfaces.

    The library gets the instance, and its time is of the whole call; a solver gets matrices that are there, and its
    time is of setup and solve.  In turn, medians of five seeds; a solver that is not installed has no figure.
    """
    for jobs in setup.few(CONIC_JOBS):
        found: dict[str, list[float]] = {"whole": [], "ECOS": [], "Clarabel": []}
        for seed in range(setup.size(5, 1)):
            instance = max_min_fairness.generate(seed, num_jobs=jobs, pair_fraction=0.0)
            arrays = _arrays(instance)
            rounds: dict[str, list[float]] = {name: [] for name in found}
            for _ in range(setup.size(4, 2)):
                rounds["whole"].append(timed(formulations.solve, replace(instance))[1])
                for name, solve in (("ECOS", _by_ecos), ("Clarabel", _by_clarabel)):
                    if find_spec(name.lower()) and find_spec("scipy"):
                        rounds[name].append(solve(arrays))
            for name, times in rounds.items():
                found[name] += [median(times[1:])] if times else []
        whole, *others = (median(times) if times else None for times in found.values())
        fastest = min((other for other in others if other is not None), default=None)
        ratio = "not installed" if fastest is None or whole is None else f"{whole / fastest:.2f}"
        yield f"{jobs:,}", *("not installed" if one is None else seconds(one) for one in (whole, *others)), ratio


def _cone(program: LinearProgram) -> tuple[Any, Any, Any]:
    """Return costs, matrix and limits of ``min c x, G x <= h``."""
    sparse = import_module("scipy.sparse")
    shape = (program.num_rows, program.num_cols)
    matrix, one = sparse.csr_matrix((program.value, program.index, program.indptr), shape), sparse.identity(shape[1])
    above, below = np.isfinite(program.row_upper), np.isfinite(program.row_lower)
    # That a share is at most 1 follows from the job's time.
    upper, lower = program.col_upper == 0, np.isfinite(program.col_lower)
    one = one.tocsr()
    limits = (program.row_upper[above], -program.row_lower[below], program.col_upper[upper], -program.col_lower[lower])
    rows = sparse.vstack([matrix[above], -matrix[below], one[upper], -one[lower]], format="csc")
    return -program.cost, rows, np.concatenate(limits)


def _by_ecos(program: LinearProgram) -> float:
    """Return the processor time of ECOS, s."""
    cost, rows, limits = _cone(program)
    cones = {"l": len(limits), "q": [], "e": 0}
    told, took = timed(import_module("ecos").solve, cost, rows, limits, cones, verbose=False)
    if told["info"]["exitFlag"] not in (0, 10):
        raise RuntimeError(f"ECOS: {told['info']['infostring']}")
    return took


def _by_clarabel(program: LinearProgram) -> float:
    """Return the processor time of Clarabel, s."""
    clarabel, sparse = import_module("clarabel"), import_module("scipy.sparse")
    cost, rows, limits = _cone(program)
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads = False, 1
    nothing, cones = sparse.csc_matrix((len(cost), len(cost))), [clarabel.NonnegativeConeT(len(limits))]
    told, took = timed(lambda: clarabel.DefaultSolver(nothing, cost, rows, limits, cones, settings).solve())
    if "Solved" not in str(told.status):
        raise RuntimeError(f"Clarabel: {told.status}")
    return took


@benchmark(
    "gavel.sharing.compared",
    *("policy", "programs", "solved by prices", "furthest apart", "in fractions", "furthest below"),
)
def compared(setup: Setup) -> Iterator[Row]:
    """Small programs by prices against the whole ones by simplex, and their bounds against fractions.

    Jobs have ties, zeros, several widths, throughputs and weights over six decades, one type or some, types that
    nobody can use.  Samples are made small, so that prices are found as for thousands of jobs.  Distances are
    relative to the optimum.
    """
    usual, prices_of_jobs.SAMPLE = prices_of_jobs.SAMPLE, (8, 1.0, 500)
    try:
        for name in setup.few(ONE_PROGRAM):
            kind, module = catalogue.entry(f"gavel.{name}").instance, import_module(f"formulations.gavel.{name}")
            instances = (drawn.policy(kind, seed) for seed in range(setup.size(500, 5)))
            programs, apart, below = 0, [0.0], [0.0]
            for instance in filter(drawn.needs_program, instances):
                policy = module.program(instance)
                program = policy.arrays()
                result = prices_of_jobs.PricedJobs(policy, program, Options()).run()
                programs += 1
                if result is None or result.x is None or result.certificate is None:
                    continue
                simplex = Session().run(program)
                if simplex.x is None:
                    raise RuntimeError(f"the whole program has no optimum: {simplex.message}")
                whole = program.objective(simplex.x)
                apart.append(max(gap(program.objective(result.x), whole), gap(result.bound, whole)))
                if instance.num_jobs > 30 or len(below) > setup.size(50, 1):
                    continue
                best, bound = exact_optimum(program), exact_bound(program, result.certificate.row_duals)
                # A basis that is not quite optimal, or a reduced cost that faces no bound, proves nothing unrounded.
                if best.proven and best.value is not None and bound is not None:
                    below.append(gap(float(bound), float(best.value)))
            yield f"`{name}`", programs, len(apart) - 1, f"{max(apart):.0e}", len(below) - 1, f"{max(below):.0e}"
    finally:
        prices_of_jobs.SAMPLE = usual


@benchmark("gavel.hierarchical_fairness.compared", "instances", "levels at most", "furthest apart", "furthest bounds")
def hierarchies_compared(setup: Setup) -> Iterator[Row]:
    """Small hierarchies by limits that prices prove against the definition, step by step; relative to ceilings."""
    levels, apart, bounds = 0, 0.0, 0.0
    count = setup.size(1000, 3)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        one = hierarchical_fairness.generate(
            rng,
            num_jobs=int(rng.integers(1, 13)),
            num_entities=int(rng.integers(1, 4)),
            workers_per_pool=int(rng.integers(1, 10)),
            pair_fraction=float(rng.choice([0.0, 0.0, 0.5])),
            multi_worker=bool(rng.integers(2)),
            weight_spread=float(rng.choice([1.0, 8.0, 100.0])),
        )
        filled, (steps, _) = water_filling(one), step_by_step(one, Options())
        if not (filled.complete and steps.complete):
            raise RuntimeError(f"seed {seed} is not filled: {filled.message}; {steps.message}")
        levels = max(levels, filled.num_levels)
        ceilings = np.where(one.ceilings > 0, one.ceilings, 1.0)
        apart = max(apart, float((np.abs(filled.vector - steps.vector) / ceilings).max()))
        bounds = max(bounds, gap(filled.bound, steps.bound))
    yield f"{count:,}", levels, f"{apart:.0e}", f"{bounds:.0e}"
