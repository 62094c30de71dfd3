"""Tables of the pages on Gavel's policies."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import formulations
from benchmarks import drawn
from benchmarks.overhead import highs_alone
from benchmarks.tables import Row, Setup, benchmark, gap, median_seconds, seconds, timed
from formulations import Options, Session
from formulations.engine.exact import exact_bound, exact_optimum
from formulations.engine.highs import Result
from formulations.engine.linear import LinearProgram, translate
from formulations.engine.solution import Solution
from formulations.methods.prices import search as prices_of_jobs
from formulations.methods.water_filling import step_by_step, water_filling
from heuristics.gavel.max_min_fairness import multiplicative_weights
from heuristics.gavel.round_assignment import matching_round
from heuristics.gavel.sharing import equal_share, heterogeneity_agnostic, isolated, matched_packing, random_packing
from instances.gavel import cost, finish_time_fairness, hierarchical_fairness, max_min_fairness, round_assignment
from validation import catalogue
from validation.replay import decider, replay
from validation.replay.settings import gavel as replayed

__all__ = [
    "ONE_PROGRAM",
    "Timing",
    "all_pairs",
    "classes",
    "compared",
    "conflicts",
    "finish_time_fairness_times",
    "gaps",
    "gavel",
    "hierarchical_fairness_times",
    "hierarchies_compared",
    "matchings",
    "max_min_fairness_gaps",
    "max_min_fairness_times",
    "packed",
    "pairs",
    "peers",
    "prices",
    "replays",
    "rounds",
    "small",
]

ONE_PROGRAM = ("max_min_fairness", "makespan", "fifo", "total_throughput", "cost", "throughput_per_dollar")
"""Policies that are one linear program."""
SOLVERS = ("simplex", "ipm")


@dataclass(frozen=True)
class Timing:
    """Median processor time of a solve, s, with its limit: in seconds, or as a ratio to HiGHS on the arrays."""

    what: str
    seconds: float
    ratio: float | None
    limit: float


def gavel(
    repeats: int = 5, *, throughputs: str | None = None, trace: str | None = None, jobs: int = 1024
) -> list[Timing]:
    """Time Gavel's policies.

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
    jobs : int
        Jobs; the limits are for 1,024.
    """
    rows = []
    for name in ONE_PROGRAM:
        instance = _generate(name)(0, num_jobs=jobs, multi_worker=False, pair_fraction=0.0)
        program = translate(formulations.build(instance))
        pairs = [
            (
                timed(formulations.solve, instance)[1],
                min(timed(highs_alone, program, method)[1] for method in SOLVERS),
            )
            for _ in range(repeats + 1)
        ][1:]
        ratio = statistics.median(whole / raw for whole, raw in pairs)
        rows.append(Timing(f"{name}, {jobs:,} jobs", statistics.median(whole for whole, _ in pairs), ratio, 1.35))
    distinct: dict[str, Any] = {"pair_fraction": 0.0}
    paired: dict[str, Any] = {"num_jobs": jobs // 2, "multi_worker": False, "pair_fraction": 1.0}
    for name, what, limit, options in (
        ("shortest_job_first", f"{jobs:,} jobs", 0.01, {"num_jobs": jobs, **distinct}),
        ("finish_time_fairness", f"{jobs:,} jobs", 0.6, {"num_jobs": jobs, **distinct}),
        ("max_min_fairness", f"all pairs of {jobs // 2:,} jobs", 3.0, paired),
        ("makespan", f"all pairs of {jobs // 2:,} jobs", 3.0, paired),
        ("hierarchical_fairness", f"{jobs:,} jobs, 1 entity", 2.0, {"num_jobs": jobs, "num_entities": 1, **distinct}),
        ("hierarchical_fairness", f"{jobs:,} jobs, 5 entities", 4.0, {"num_jobs": jobs, "num_entities": 5, **distinct}),
        (
            "hierarchical_fairness",
            f"{2 * jobs:,} jobs, 5 entities",
            15.0,
            {"num_jobs": 2 * jobs, "num_entities": 5, **distinct},
        ),
    ):
        instance = _generate(name)(0, **options)
        rows.append(
            Timing(f"{name}, {what}", median_seconds(min(3, repeats), formulations.solve, instance), None, limit)
        )
    if throughputs is not None and trace is not None:
        for name in ONE_PROGRAM:
            draw = catalogue.entry(f"gavel.{name}").from_trace
            assert draw is not None
            instance = draw(0, throughputs=throughputs, trace=trace, num_jobs=2 * jobs, share_space=False)
            what = f"{name}, {2 * jobs:,} real jobs"
            rows.append(Timing(what, median_seconds(repeats, formulations.solve, instance), None, 0.1))
    return rows


def _generate(name: str) -> Callable[..., Any]:
    return catalogue.entry(f"gavel.{name}").generate


def _real(setup: Setup) -> dict[str, Any]:
    """Published table and trace of 1,181 jobs, where there is a folder of data."""
    if setup.data is None:
        return {}
    folder = setup.data / "gavel"
    return {
        "throughputs": str(folder / "simulation_throughputs.json"),
        "trace": str(folder / "msr_seed0_0e4a51.trace"),
    }


@benchmark("gavel.policies", "policy", "whole", "ratio to HiGHS on the arrays", "at most")
def _policies(setup: Setup) -> Iterator[Row]:
    """Processor time of all policies (`optgap bench gavel`), against HiGHS where there is one program."""
    for row in gavel(setup.repeats, jobs=setup.size(1024, 16), **_real(setup)):
        limit = f"{row.limit:.2f}" if row.ratio is not None else seconds(row.limit)
        yield row.what, seconds(row.seconds), "" if row.ratio is None else f"{row.ratio:.2f}", limit


@benchmark(
    "gavel.gaps",
    "policy",
    "its own heuristics",
    "`isolated`",
    "`equal_share`",
    "`heterogeneity_agnostic`",
    "`random_packing`",
)
def gaps(setup: Setup) -> Iterator[Row]:
    """Mean and worst gap of the heuristics over 16 jobs on 4 workers per pool, without SLOs, seeds 0 to 99."""
    own = {
        "total_throughput": ["fastest_first"],
        "makespan": ["same_finish", "agnostic_fifo"],
        "fifo": ["fastest_free_type", "backfilling", "agnostic_fifo"],
        "shortest_job_first": ["shortest_first"],
        "finish_time_fairness": ["same_ratio"],
        "cost": ["best_bargain", "fastest_first"],
        "throughput_per_dollar": ["best_bargain_first"],
    }
    shared = (isolated, equal_share, heterogeneity_agnostic, random_packing)
    for name, functions in own.items():
        room = import_module(f"heuristics.gavel.{name}")
        slos = {"slo_fraction": 0.0} if name in ("cost", "throughput_per_dollar") else {}
        drawn = [
            _generate(name)(seed, num_jobs=16, workers_per_pool=4, **slos) for seed in setup.size(range(100), range(2))
        ]
        best = [_value(formulations.solve(one)) for one in drawn]
        cells = []
        for heuristic in (*(getattr(room, function) for function in functions), *shared):
            found = [gap(one.objective(heuristic(one)), most) for one, most in zip(drawn, best, strict=True)]
            cells.append(f"{statistics.mean(found):.0%} ({max(found):.0%})")
        first = "; ".join(f"`{function}` {cell}" for function, cell in zip(functions, cells, strict=False))
        yield f"`{name}`", first, *cells[len(functions) :]


@benchmark(
    "gavel.sharing.packed",
    "policy",
    "without pairs (`heterogeneity_agnostic`)",
    "`random_packing`",
    "`matched_packing`",
)
def packed(setup: Setup) -> Iterator[Row]:
    """Mean gap over 20 clusters where workers are short: `num_jobs=16, workers_per_pool=2, pair_fraction=1.0`."""
    for name in setup.few(
        ("max_min_fairness", "finish_time_fairness", "fifo", "makespan", "total_throughput", "shortest_job_first")
    ):
        drawn = [
            _generate(name)(seed, num_jobs=16, workers_per_pool=2, pair_fraction=1.0) for seed in setup.few(range(20))
        ]
        best = [_value(formulations.solve(one)) for one in drawn]
        shared = (heterogeneity_agnostic, random_packing, matched_packing)
        found = [
            [gap(one.objective(heuristic(one)), most) for one, most in zip(drawn, best, strict=True)]
            for heuristic in shared
        ]
        yield f"`{name}`", *(f"{statistics.mean(gaps):.0%}" for gaps in found)


@benchmark("gavel.sharing.matchings", "jobs", "pairs", "`matched_packing`")
def matchings(setup: Setup) -> Iterator[Row]:
    """Processor time of matching jobs with all pairs of equal scale factor."""
    for jobs in setup.few((128, 256)):
        one = max_min_fairness.generate(0, num_jobs=jobs, pair_fraction=1.0)
        yield jobs, f"{len(one.pairs):,}", seconds(median_seconds(1, matched_packing, one))


@benchmark(
    "gavel.round_assignment.matchings", "rounds", "`matching_round`: optimal", "worst gap", "its time", "exact model"
)
def rounds(setup: Setup) -> Iterator[Row]:
    """`matching_round` on one pool: 100 rounds of 2 to 8 jobs with wide ones, and one of 512 narrow jobs."""
    drawn = [
        round_assignment.generate(
            seed,
            num_jobs=2 + seed % 7,
            num_types=1,
            workers_per_pool=1 + seed % (2 + seed % 7),
            wide=0.6,
            pair_fraction=0.6,
        )
        for seed in setup.size(range(100), range(3))
    ]
    large = round_assignment.generate(0, num_jobs=setup.size(512, 16), num_types=1, wide=0.0)
    for what, some in (
        (f"{len(drawn)} small ones", drawn),
        (f"{large.num_jobs} jobs, {len(large.pairs):,} pairs", [large]),
    ):
        exact = [timed(formulations.solve, one) for one in some]
        answers = [timed(matching_round, one) for one in some]
        found = [
            gap(one.objective(plan), _value(solution))
            for one, (plan, _), (solution, _) in zip(some, answers, exact, strict=True)
            if plan is not None
        ]
        yield (
            what,
            f"{sum(value < 1e-6 for value in found)} of {len(some)}",
            f"{max(found):.0%}",
            *(seconds(sum(took for _, took in side)) for side in (answers, exact)),
        )


def _value(solution: Solution) -> float:
    if solution.status != "optimal" or solution.objective is None:
        raise RuntimeError(f"no proven optimum: {solution}")
    return float(solution.objective)


@benchmark(
    "gavel.max_min_fairness.gaps",
    "n",
    "`isolated`",
    "`equal_share`",
    "`heterogeneity_agnostic`",
    "`random_packing`",
    "`multiplicative_weights`",
)
def max_min_fairness_gaps(setup: Setup) -> Iterator[Row]:
    """Median and largest gap over `generate(seed, num_jobs=n)`, seeds 0 to 19."""
    heuristics = (isolated, equal_share, heterogeneity_agnostic, random_packing, multiplicative_weights)
    for jobs in setup.few((8, 32, 128)):
        drawn = [max_min_fairness.generate(seed, num_jobs=jobs) for seed in setup.few(range(20))]
        best = [_value(formulations.solve(one)) for one in drawn]
        cells = []
        for heuristic in heuristics:
            found = [gap(one.objective(heuristic(one)), most) for one, most in zip(drawn, best, strict=True)]
            cells.append(f"{statistics.median(found):.3f}, {max(found):.3f}")
        yield jobs, *cells


@benchmark("gavel.max_min_fairness.times", "n", "pairs", "exact", "epsilon 0.1", "0.05", "0.01")
def max_min_fairness_times(setup: Setup) -> Iterator[Row]:
    """Processor time of the whole exact solve, and of `multiplicative_weights` as a multiple of it."""
    for jobs in setup.few((8, 64, 512, 1024)):
        one = max_min_fairness.generate(0, num_jobs=jobs)
        exact = median_seconds(setup.repeats, formulations.solve, one)
        weights = [
            median_seconds(setup.repeats, multiplicative_weights, one, epsilon=epsilon) for epsilon in (0.1, 0.05, 0.01)
        ]
        yield f"{jobs:,}", f"{len(one.pairs):,}", seconds(exact), *(f"{took / exact:.1f} times" for took in weights)


@benchmark("gavel.finish_time_fairness.times", "`generate(0, num_jobs=1024, pair_fraction=0.0, ...)`", "whole", "how")
def finish_time_fairness_times(setup: Setup) -> Iterator[Row]:
    """Processor time of 1,024 jobs without pairs, and how many programs that took."""
    settings: tuple[tuple[str, dict[str, Any]], ...] = (
        ("default", {}),
        ("`unevenness=10`", {"unevenness": 10.0}),
        ("`workers_per_pool=32`", {"workers_per_pool": 32}),
        ("`multi_worker=False`", {"multi_worker": False}),
    )
    for what, options in setup.few(settings):
        one = finish_time_fairness.generate(0, num_jobs=setup.size(1024, 16), pair_fraction=0.0, **options)
        took = median_seconds(setup.repeats, formulations.solve, one)
        yield what, seconds(took), formulations.solve(one).message


@benchmark("gavel.hierarchical_fairness.times", "jobs", "entities", "workers per type", "levels", "programs", "time")
def hierarchical_fairness_times(setup: Setup) -> Iterator[Row]:
    """Levels, programs and processor time of water filling, jobs all different, without pairs unless stated."""
    for what, one in _hierarchies(setup):
        filled, took = timed(water_filling, one)
        again = min(3, setup.repeats)
        if took < 2:
            took = statistics.median([took, *(timed(water_filling, one)[1] for _ in range(again - 1))])
        workers = f"{int(one.num_workers[0]):,}"
        yield what, one.num_entities, workers, f"{filled.num_levels:,}", f"{filled.programs:,}", seconds(took)


def _hierarchies(setup: Setup) -> Iterator[tuple[str, hierarchical_fairness.HierarchicalFairness]]:
    generate = hierarchical_fairness.generate
    if setup.quick:
        yield "16", generate(0, num_jobs=16, pair_fraction=0.0)
        return
    for jobs, entities, workers in (
        (1024, 1, 256),
        (1024, 5, 256),
        (1024, 5, 512),
        (2048, 5, 512),
        (2048, 5, 1024),
        (16_384, 5, 4096),
        (65_536, 5, 16_384),
        (262_144, 5, 65_536),
    ):
        yield (
            f"{jobs:,}",
            generate(0, num_jobs=jobs, num_entities=entities, workers_per_pool=workers, pair_fraction=0.0),
        )
    one = generate(0, num_jobs=256, pair_fraction=1.0)
    yield f"256, all {len(one.pairs):,} pairs of equal width", one
    if setup.data:
        yield "1,024 real", hierarchical_fairness.from_trace(0, **_real(setup), num_jobs=1024, share_space=False)
    yield (
        "2,048, `generate(1, weight_spread=100.0)`",
        generate(1, num_jobs=2048, num_entities=5, weight_spread=100.0, workers_per_pool=1536, pair_fraction=0.0),
    )


PRICED = (*ONE_PROGRAM, "finish_time_fairness")
PEERS = ("CLARABEL", "ECOS")
LARGEST_PEER = 2048
"""With more jobs than this, whole programs are not solved for comparison."""


@benchmark("gavel.sharing.prices", "policy", "jobs", "whole", "gap", "simplex", "interior point", *PEERS)
def prices(setup: Setup) -> Iterator[Row]:
    """Processor time of the policies without pairs, all jobs different, and of solvers alone.

    Whole is :func:`formulations.solve`: with the certificate, the plan, and the instance's verdict on it.  A solver
    alone gets the arrays, which are made of the instance in the time told; HiGHS by its own interface, the others by
    cvxpy's, with its translation; nothing of what they return is checked.  On either side the instance has kept what it
    once computed, such as which job fits where.
    """
    sizes = (32, 128, 256, 512, 1024, 2048, 16_384, 65_536, 262_144, 1_048_576)
    for name in setup.few(PRICED):
        for jobs in setup.few(sizes):
            one = _generate(name)(0, num_jobs=jobs, pair_fraction=0.0)
            solution, took = timed(formulations.solve, one)
            if jobs <= LARGEST_PEER:
                took = median_seconds(setup.repeats, formulations.solve, one)
            others = ["", "", "", ""]
            if jobs <= LARGEST_PEER and name in ONE_PROGRAM:
                arrays = partial(_arrays, name, one)
                others = [seconds(median_seconds(setup.repeats, _by_highs, arrays, method)) for method in SOLVERS]
                others += [_by_cvxpy(arrays, peer, setup.repeats) for peer in PEERS]
            yield f"`{name}`", f"{jobs:,}", seconds(took), f"{gap(_value(solution), solution.bound):.0e}", *others


@benchmark("gavel.sharing.small", "policy", *(f"{jobs} jobs" for jobs in (32, 128, 256, 512)))
def small(setup: Setup) -> Iterator[Row]:
    """Processor time of a whole solve as a multiple of the faster of HiGHS's methods, which run in turn with it."""
    for name in setup.few(ONE_PROGRAM):
        cells = []
        for jobs in (32, 128, 256, 512):
            one = _generate(name)(0, num_jobs=jobs, pair_fraction=0.0)
            arrays = partial(_arrays, name, one)
            ratios = []
            for _ in range(3 * setup.repeats + 1):
                whole = timed(formulations.solve, one)[1]
                ratios.append(whole / min(timed(_by_highs, arrays, method)[1] for method in SOLVERS))
            cells.append(f"{statistics.median(ratios[1:]):.2f}")
        yield f"`{name}`", *cells


def _arrays(name: str, instance: Any) -> LinearProgram:
    """A policy's program, made of the instance."""
    program: LinearProgram = import_module(f"formulations.gavel.{name}").program(instance).arrays()
    return program


def _by_highs(arrays: Callable[[], LinearProgram], method: str) -> float:
    return highs_alone(arrays(), method)


def _by_cvxpy(arrays: Callable[[], LinearProgram], solver: str, repeats: int) -> str:
    """Processor time of a solver through cvxpy, which is told the arrays; "" where it is not installed."""
    try:
        import cvxpy
        from scipy.sparse import csr_matrix
    except ImportError:
        return ""
    if solver not in cvxpy.installed_solvers():
        return ""

    def call() -> None:
        program = arrays()
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

    try:
        return seconds(median_seconds(min(3, repeats), call))
    except cvxpy.SolverError:
        return "failed"


@benchmark(
    "gavel.sharing.compared",
    "policy",
    "programs",
    "solved by prices",
    "furthest apart",
    "in fractions",
    "furthest below",
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
            module = import_module(f"formulations.gavel.{name}")
            programs, proven, exact, apart, below = 0, 0, 0, 0.0, 0.0
            for seed in range(setup.size(500, 5)):
                instance = drawn.policy(catalogue.entry(f"gavel.{name}").instance, seed)
                if not drawn.needs_program(instance):
                    continue
                policy = module.program(instance)
                program = policy.arrays()
                result = prices_of_jobs.PricedJobs(policy, program, Options()).run()
                programs += 1
                if result is None or result.x is None or result.certificate is None:
                    continue
                proven += 1
                whole = _value_of(program, Session().run(program))
                apart = max(apart, gap(program.objective(result.x), whole), gap(result.bound, whole))
                if instance.num_jobs > 30 or exact >= setup.size(50, 1):
                    continue
                best, bound = exact_optimum(program), exact_bound(program, result.certificate.row_duals)
                # A basis that is not quite optimal, or a reduced cost that faces no bound, proves nothing unrounded.
                if best.proven and best.value is not None and bound is not None:
                    exact += 1
                    below = max(below, gap(float(bound), float(best.value)))
            yield f"`{name}`", programs, proven, f"{apart:.0e}", exact, f"{below:.0e}"
    finally:
        prices_of_jobs.SAMPLE = usual


def _value_of(program: LinearProgram, result: Result) -> float:
    if result.x is None:
        raise RuntimeError(f"the whole program has no optimum: {result.message}")
    return program.objective(result.x)


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


@benchmark("gavel.sharing.classes", "policy", "classes", "whole", "every job for itself")
def classes(setup: Setup) -> Iterator[Row]:
    """Processor time of 2,048 jobs of the published trace and table, six types, folded into classes."""
    if setup.data is None:
        return
    for name in setup.few(ONE_PROGRAM):
        draw = catalogue.entry(f"gavel.{name}").from_trace
        assert draw is not None
        one = draw(0, **_real(setup), num_jobs=setup.size(2048, 32), share_space=False, unconsolidated=True)
        program = translate(formulations.build(one))
        took = median_seconds(setup.repeats, formulations.solve, one)
        alone = min(median_seconds(1, highs_alone, program, method) for method in SOLVERS)
        yield f"`{name}`", formulations.solve(one).message, seconds(took), seconds(alone)


APPROXIMATIONS = ("pop_2", "pop_4", "pop_8", "approximate_waterfiller", "adaptive_waterfiller", "geometric_binner")
LARGEST_BINNED, LARGEST_HIERARCHY = 16_384, 16_384
"""With more jobs than these, the geometric binner's program takes minutes, and so do POP's heuristics of entities."""


@benchmark("gavel.peers", "policy", "jobs", "exact", *(f"`{name}`" for name in APPROXIMATIONS))
def peers(setup: Setup) -> Iterator[Row]:
    """Processor time of POP's and Soroush's approximations, with gaps; of entities, distances of all levels."""
    for policy in ("max_min_fairness", "makespan", "hierarchical_fairness"):
        known = catalogue.entry(f"gavel.{policy}").heuristics
        for jobs in setup.size((2048, 16_384, 65_536, 262_144), (16,)):
            if policy == "hierarchical_fairness" and jobs > LARGEST_HIERARCHY:
                continue
            one = _generate(policy)(0, num_jobs=jobs, pair_fraction=0.0)
            solution, took = timed(formulations.solve, one)
            cells = []
            for name in APPROXIMATIONS:
                if name not in known or (name == "geometric_binner" and jobs > LARGEST_BINNED):
                    cells.append("")
                    continue
                plan, its = timed(known[name].function, one)
                cells.append(f"{seconds(its)}, {_behind(one, plan, solution):.1%}")
            yield f"`{policy}`", f"{jobs:,}", seconds(took), *cells


def _behind(one: Any, plan: Any, solution: Solution) -> float:
    """How far a plan is from the optimum: its value, or, of entities, the sum of differences of levels over theirs."""
    if not isinstance(one, hierarchical_fairness.HierarchicalFairness):
        return gap(one.objective(plan), _value(solution))
    assert isinstance(solution.plan, hierarchical_fairness.HierarchicalAllocation)
    best = solution.plan.normalized_throughputs
    return float(np.abs(plan.normalized_throughputs - best).sum() / best.sum())


@benchmark("gavel.sharing.all_pairs", "policy", "jobs", "pairs", "columns", "drawn", "whole", "gap")
def all_pairs(setup: Setup) -> Iterator[Row]:
    """Processor time of all pairs of up to 2,048 jobs of one width, to draw and to solve."""
    for name in setup.few(("max_min_fairness", "makespan", "total_throughput")):
        for jobs in setup.size((256, 512, 1024, 2048), (24,)):
            one, drawn = timed(_generate(name), 0, num_jobs=jobs, pair_fraction=1.0, multi_worker=False)
            solution, took = timed(formulations.solve, one)
            off = f"{gap(_value(solution), solution.bound):.0e}"
            yield f"`{name}`", f"{jobs:,}", f"{one.num_pairs:,}", solution.message, seconds(drawn), seconds(took), off


@benchmark("gavel.sharing.pairs", "policy", "columns", "whole")
def pairs(setup: Setup) -> Iterator[Row]:
    """Processor time of all pairs of 512 jobs, of which columns are generated as their prices call for them."""
    jobs = setup.size(512, 24)
    settings: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in (*ONE_PROGRAM, "finish_time_fairness")]
    settings.insert(2, ("makespan", {"duration_spread": 0.3, "workers_per_pool": setup.size(64, 4)}))
    for name, options in setup.few(settings):
        one = _generate(name)(0, num_jobs=jobs, pair_fraction=1.0, multi_worker=False, **options)
        solution, took = timed(formulations.solve, one)
        said = ", ".join(f"`{key}={value}`" for key, value in options.items())
        yield f"`{name}`" + (f", {said}" if said else ""), solution.message, seconds(took)
    mixed = max_min_fairness.generate(1, num_jobs=jobs, pair_fraction=1.0)
    solution, took = timed(formulations.solve, mixed)
    yield f"`max_min_fairness`, {len(mixed.pairs):,} pairs of several widths", solution.message, seconds(took)


@benchmark("gavel.cost.conflicts", "jobs with SLOs", "status", "rows of the conflict", "`explain`")
def conflicts(setup: Setup) -> Iterator[Row]:
    """Processor time to explain why the SLOs of 1,024 jobs cannot be met together."""
    one = cost.generate(0, num_jobs=setup.size(1024, 16), pair_fraction=0.0, slo_fraction=0.5, slo_tightness=4.0)
    status = formulations.solve(one).status
    explained, took = timed(formulations.explain, one)
    count = int((one.slos < float("inf")).sum())
    yield count, status, len(explained.constraints) if explained else 0, seconds(took)


REPLAYS: tuple[tuple[str, float, dict[str, Any], tuple[str, str], tuple[str, str]], ...] = (
    (
        "LAS, one worker, 5.6 jobs/h: average completion time",
        3.5,
        {"per_hour": 5.6},
        ("max_min_fairness", "heterogeneity_agnostic"),
        ("max_min_fairness", "exact"),
    ),
    (
        "LAS, several workers, 2.6 jobs/h: average completion time",
        2.2,
        {"per_hour": 2.6, "multi_worker": True},
        ("max_min_fairness", "heterogeneity_agnostic"),
        ("max_min_fairness", "exact"),
    ),
    (
        "FIFO, one worker, 5.6 jobs/h: average completion time",
        2.7,
        {"per_hour": 5.6},
        ("fifo", "agnostic_fifo"),
        ("fifo", "exact"),
    ),
    (
        "all there at once, several workers: makespan, against FIFO",
        2.5,
        {"per_hour": 0.0, "multi_worker": True},
        ("fifo", "agnostic_fifo"),
        ("makespan", "exact"),
    ),
)
"""Results of section 7.3 that a replay can be held against: what of, the paper's factor, jobs, and who decides."""


@benchmark("replays.gavel", "what", "blind to types, h", "Gavel, h", "times", "paper", "processor time")
def replays(setup: Setup) -> Iterator[Row]:
    """Replays of Gavel's policies on 36 workers of each type, allocations realised exactly."""
    if setup.data is None:
        return
    for what, paper, options, *policies in setup.few(REPLAYS):
        found, took = [], 0.0
        for problem, who in policies:
            setting = replayed.generate(
                0,
                problem=f"gavel.{problem}",
                throughputs=setup.data / "gavel" / "simulation_throughputs.json",
                num_jobs=setup.size(2000 if options["per_hour"] else 1500, 20),
                **options,
            )
            done, seconds_of = timed(replay, setting, decider(setting.problem, who))
            took += seconds_of
            if options["per_hour"]:
                # Jobs that come and go while others do.
                jobs = done.jobs.iloc[len(done.jobs) * 3 // 5 : len(done.jobs) * 4 // 5]
                found.append(float((jobs["ended"] - jobs["arrival"]).mean()) / 3600)
            else:
                found.append(done.metrics()["makespan"] / 3600)
        yield what, *(f"{value:.1f}" for value in found), f"{found[0] / found[1]:.2f}", paper, seconds(took)
