"""Tables of the pages on ElasticFlow's problems."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import pyomo.environ as pyo

import formulations
from benchmarks.tables import Row, Setup, benchmark, between, gap, median_seconds, seconds, timed
from formulations.elasticflow import admission as admission_models
from formulations.elasticflow import flow
from formulations.elasticflow import minimum_satisfactory_share as share_models
from formulations.engine.solution import Solution
from formulations.worst_case.elasticflow import minimum_satisfactory_share as worst_shares
from heuristics.elasticflow.admission import edf as edf_admission
from heuristics.elasticflow.admission import edf_condition, edf_with_admission, edf_with_elastic_scaling
from heuristics.elasticflow.admission import progressive_filling as filling_admission
from heuristics.elasticflow.allocation import greedy_marginal_return, greedy_marginal_return_repaired
from heuristics.elasticflow.best_effort import minimum_shares_first, shortest_first
from heuristics.elasticflow.minimum_satisfactory_share import edf, progressive_filling, progressive_filling_cleared
from heuristics.elasticflow.placement import buddy_best_fit, buddy_repack
from instances.elasticflow import admission, allocation, best_effort, minimum_satisfactory_share, placement
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare

__all__ = [
    "admission_heuristics",
    "admission_measured",
    "admission_proofs",
    "allocation_gaps",
    "allocation_times",
    "best_effort_gaps",
    "placement_moves",
    "placement_times",
    "share_flows",
    "share_gaps",
    "share_heuristic",
    "share_milp",
    "share_proofs",
    "share_stretches",
    "share_time_indexed",
    "share_trace",
    "share_turned_away",
]


@benchmark("elasticflow.admission.proofs", "`tightness`", "proven", "exact model")
def admission_proofs(setup: Setup) -> Iterator[Row]:
    """Processor time for 20 jobs on 16 GPUs over 20 slots, seeds 0 to 3, least and greatest."""
    for tightness in setup.few((0.7, 1.0, 1.5)):
        drawn = [
            admission.generate(seed, num_jobs=setup.size(20, 4), tightness=tightness) for seed in setup.few(range(4))
        ]
        yield tightness, *_summary([timed(formulations.solve, one, time_limit=setup.seconds(60)) for one in drawn])


@benchmark("elasticflow.admission.measured", "rows (2')", "proven", "less than 5 s", "median", "longest", "open: seeds")
def admission_measured(setup: Setup) -> Iterator[Row]:
    """Time-indexed model with `curves="measured"`, 20 jobs, seeds 0 to 47, with and without the rows (2')."""
    for rows in (True, False):
        found = []
        for seed in setup.size(range(48), range(1)):
            model = admission_models.build_time_indexed(
                admission.generate(seed, num_jobs=setup.size(20, 4), curves="measured")
            )
            if not rows:
                model.alone.deactivate()
            found.append(timed(formulations.solve, model, time_limit=setup.seconds(60)))
        times = [took for _, took in found]
        left = [str(seed) for seed, (solution, _) in enumerate(found) if solution.status != "optimal"]
        yield (
            "with" if rows else "without",
            f"{len(found) - len(left)} of {len(found)}",
            sum(took < 5 for took in times),
            seconds(statistics.median(times)),
            seconds(max(times)),
            ", ".join(left),
        )


@benchmark(
    "elasticflow.admission.heuristics",
    "`tightness`",
    "optimum",
    "`progressive_filling`",
    "`edf_with_admission`",
    "`edf_with_elastic_scaling`",
    "`edf`",
    "feasible plans of `edf_condition`",
)
def admission_heuristics(setup: Setup) -> Iterator[Row]:
    """Jobs admitted in all on 100 generated instances of 10 jobs each."""
    for tightness in setup.few((0.5, 1.0, 1.5)):
        drawn = [admission.generate(seed, tightness=tightness) for seed in setup.few(range(100))]
        totals = [sum(_value(formulations.solve(one)) for one in drawn)]
        heuristics = (filling_admission, edf_with_admission, edf_with_elastic_scaling, edf_admission)
        totals += [sum(one.objective(heuristic(one)) for one in drawn) for heuristic in heuristics]
        feasible = sum(not one.violations(edf_condition(one)) for one in drawn)
        yield tightness, *(f"{total:.0f}" for total in totals), f"{feasible} of {len(drawn)}"


@benchmark("elasticflow.allocation.times", "jobs, GPUs, slots", "what", "time")
def allocation_times(setup: Setup) -> Iterator[Row]:
    """Processor time of the exact solution, whole, and of the heuristics."""
    jobs, gpus, slots = setup.size((100, 128, 10_000), (4, 8, 20))
    drawn = [allocation.generate(seed, num_jobs=jobs, num_gpus=gpus, horizon=slots) for seed in setup.few(range(3))]
    yield f"{jobs}, {gpus}, {slots:,}", *_proofs(drawn)
    jobs, gpus, slots = setup.size((200, 1024, 2000), (4, 8, 20))
    one = allocation.generate(0, num_jobs=jobs, num_gpus=gpus, horizon=slots, tightness=0.1)
    for heuristic in (greedy_marginal_return, greedy_marginal_return_repaired):
        took = median_seconds(setup.repeats, heuristic, one)
        yield f"{jobs}, {gpus:,}, {slots:,}", f"`{heuristic.__name__}`", seconds(took)


def _proofs(drawn: Sequence[allocation.ElasticFlowAllocation]) -> tuple[str, str]:
    proven, times = _summary([timed(formulations.solve, one) for one in drawn])
    return f"exact: {proven} proven", times


@benchmark(
    "elasticflow.allocation.gaps",
    "`tightness`",
    "with a plan",
    "shares found",
    "as printed: breaks (7)",
    '`finish="moment"`: breaks (7)',
    '`finish="rate"`: breaks (7)',
    "repaired: breaks a rule",
    "repaired: mean and greatest excess",
)
def allocation_gaps(setup: Setup) -> Iterator[Row]:
    """Readings of Algorithm 2, and excess over the optimum, on 200 instances of 8 jobs, 16 GPUs and up to 20 slots."""
    for tightness in setup.few((0.2, 0.3, 0.4)):
        drawn = [allocation.generate(seed, tightness=tightness) for seed in setup.size(range(200), range(3))]
        solved = [(one, formulations.solve(one)) for one in drawn]
        solved = [(one, solution) for one, solution in solved if solution.status == "optimal"]
        readings: tuple[dict[str, Any], ...] = ({}, {"finish": "moment"}, {"finish": "rate"})
        cells = [str(sum(_idles(one, **options) for one, _ in solved)) for options in readings]
        plans = [(one, best, greedy_marginal_return_repaired(one)) for one, best in solved]
        kept = [(one, best, plan) for one, best, plan in plans if plan is not None]
        gaps = [gap(one.objective(plan), _value(best)) for one, best, plan in kept]
        broken = sum(bool(one.violations(plan)) for one, _, plan in kept)
        excess = f"{statistics.mean(gaps):.2%}, {max(gaps):.1%}" if gaps else ""
        yield tightness, len(solved), len(kept), *cells, broken, excess


def _idles(one: allocation.ElasticFlowAllocation, **options: Any) -> bool:
    plan = greedy_marginal_return(one, **options)
    return plan is not None and any(broken.rule == "no_useful_idle_gpu" for broken in one.violations(plan))


@benchmark(
    "elasticflow.best_effort.gaps",
    "jobs",
    "with a plan",
    "`minimum_shares_first`: plans",
    "mean and greatest excess",
    "`shortest_first`: plans",
    "mean and greatest excess",
    "exact: median time",
)
def best_effort_gaps(setup: Setup) -> Iterator[Row]:
    """Excess of the average completion time on 30 instances of 8 GPUs and deadlines of up to 8 slots."""
    for jobs in setup.few((4, 6)):
        drawn = [best_effort.generate(seed, num_jobs=jobs) for seed in setup.size(range(30), range(2))]
        solved = [(one, *timed(formulations.solve, one, time_limit=setup.seconds(20))) for one in drawn]
        with_plan = [(one, best) for one, best, _ in solved if best.status == "optimal"]
        cells: list[str] = []
        for heuristic in (minimum_shares_first, shortest_first):
            plans = [(one, best, heuristic(one)) for one, best in with_plan]
            gaps = [gap(one.objective(plan), _value(best)) for one, best, plan in plans if plan is not None]
            cells += [str(len(gaps)), f"{statistics.mean(gaps):.1%}, {max(gaps):.0%}" if gaps else ""]
        yield (
            jobs,
            f"{len(with_plan)} of {len(drawn)}",
            *cells,
            seconds(statistics.median(took for _, _, took in solved)),
        )


@benchmark("elasticflow.minimum_satisfactory_share.proofs", "`tightness`", "seed 0", "seed 1", "seed 2")
def share_proofs(setup: Setup) -> Iterator[Row]:
    """100 jobs on 128 GPUs over 10,000 slots: gap and time with `mip_gap=1e-3`, and where open with a limit of 10 s."""
    for tightness in setup.few((0.3, 0.4, 0.45, 0.5)):
        cells = []
        for seed in range(3):
            one = _wide(setup, seed, tightness)
            first, took = timed(formulations.solve, one, mip_gap=1e-3)
            cell = f"{_verdict(first)}, {seconds(took)}"
            if _open(first):
                second, took = timed(formulations.solve, one, time_limit=setup.seconds(10))
                cell += f"; {_verdict(second)}, {seconds(took)}"
            cells.append(cell)
        yield tightness, *cells


@benchmark("elasticflow.minimum_satisfactory_share.milp", "`tightness`", "seed", "by rounding", "the whole MILP")
def share_milp(setup: Setup) -> Iterator[Row]:
    """The same MILPs by HiGHS alone, with a limit of 20 s, which it can overrun by minutes."""
    for tightness, seed in setup.few(((0.3, 1), (0.3, 2), (0.3, 0), (0.45, 0), (0.45, 1))):
        one = _wide(setup, seed, tightness)
        limit = setup.seconds(20)
        cells = []
        for what in (one, formulations.build(one)):
            solution, took = timed(formulations.solve, what, time_limit=limit)
            cells.append(f"{_verdict(solution)}, {seconds(took)}")
        yield tightness, seed, *cells


def _wide(setup: Setup, seed: int, tightness: float) -> MinimumSatisfactoryShare:
    jobs, gpus, slots = setup.size((100, 128, 10_000), (4, 8, 20))
    return minimum_satisfactory_share.generate(seed, num_jobs=jobs, num_gpus=gpus, horizon=slots, tightness=tightness)


def _verdict(solution: Solution) -> str:
    return f"gap {solution.gap:.1e}" if _open(solution) else solution.status


def _open(solution: Solution) -> bool:
    """Whether there is a plan, and a gap."""
    return solution.objective is not None and solution.gap is not None and solution.gap > 0


@benchmark(
    "elasticflow.minimum_satisfactory_share.time_indexed",
    "`curves`",
    "`tightness`",
    "proven",
    "time-indexed",
    "without (4a'): proven in 15 s",
    "aggregated: proven",
    "time",
)
def share_time_indexed(setup: Setup) -> Iterator[Row]:
    """Processor time of the models of 10 jobs on 16 GPUs over 20 slots, seeds 0 to 9, least and greatest."""
    for curves in ("concave", "measured"):
        for tightness in setup.few((0.3, 0.4, 0.5)):
            drawn = [
                minimum_satisfactory_share.generate(
                    seed, num_jobs=setup.size(10, 4), tightness=tightness, curves=curves
                )
                for seed in setup.few(range(10))
            ]
            indexed = [_solved(share_models.build_time_indexed(one), setup.seconds(60)) for one in drawn]
            without = [_solved(_without_alone(one), setup.seconds(15)) for one in drawn]
            cells = (*_summary(indexed), _summary(without)[0])
            if curves == "concave":
                one_by_one = [_solved(share_models.build_aggregated(one), setup.seconds(60)) for one in drawn]
                yield f"`{curves}`", tightness, *cells, *_summary(one_by_one)
            else:
                yield f"`{curves}`", tightness, *cells, "", ""


def _without_alone(one: MinimumSatisfactoryShare) -> pyo.ConcreteModel:
    model = share_models.build_time_indexed(one)
    model.alone.deactivate()
    return model


def _solved(model: pyo.ConcreteModel, limit: float) -> tuple[Solution, float]:
    return timed(formulations.solve, model, time_limit=limit)


@benchmark("elasticflow.minimum_satisfactory_share.trace", "seed", "slots", "time-indexed", "without (4a')")
def share_trace(setup: Setup) -> Iterator[Row]:
    """Stretches of 6 jobs of a real trace on T4 curves, which are not concave: 16 GPUs, slots of two hours."""
    if setup.data is None:
        return
    for seed in setup.few(range(6)):
        one = minimum_satisfactory_share.from_trace(
            seed,
            throughputs=setup.data / "elasticflow" / "throughputs_T4",
            trace=setup.data / "elasticflow" / "traces" / "elasticVpollux_e.csv",
            num_jobs=setup.size(6, 2),
            slot_seconds=7200,
        )
        cells = []
        for model in (share_models.build_time_indexed(one), _without_alone(one)):
            solution, took = _solved(model, setup.seconds(10))
            cells.append(f"{solution.status}, {seconds(took)}")
        yield seed, int(one.deadlines.max()), *cells


@benchmark("elasticflow.minimum_satisfactory_share.stretches", "jobs", "with a plan")
def share_stretches(setup: Setup) -> Iterator[Row]:
    """Of 20 stretches of the A100 trace on 16 GPUs, those whose jobs can all meet their deadlines."""
    if setup.data is None:
        return
    for jobs in setup.few((4, 8, 12)):
        drawn = [
            minimum_satisfactory_share.from_trace(
                seed,
                throughputs=setup.data / "elasticflow" / "throughputs_A100",
                trace=setup.data / "elasticflow" / "traces" / "philly_103959.csv",
                num_jobs=jobs,
            )
            for seed in setup.few(range(20))
        ]
        statuses = [formulations.solve(one, mip_gap=1.0, time_limit=setup.seconds(30)).status for one in drawn]
        left = statuses.count("unknown")
        have = statuses.count("optimal") + statuses.count("feasible")
        yield jobs, f"{have} of {len(drawn)}" + (f", {left} open" if left else "")


@benchmark("elasticflow.minimum_satisfactory_share.heuristic", "jobs, GPUs, slots", "`progressive_filling`")
def share_heuristic(setup: Setup) -> Iterator[Row]:
    """Processor time of Algorithm 1 on a large cluster."""
    jobs, gpus, slots = setup.size((200, 1024, 2000), (4, 8, 20))
    one = minimum_satisfactory_share.generate(0, num_jobs=jobs, num_gpus=gpus, horizon=slots, tightness=0.1)
    took = median_seconds(setup.repeats, progressive_filling, one)
    yield f"{jobs}, {gpus:,}, {slots:,}", seconds(took)


@benchmark("elasticflow.minimum_satisfactory_share.flows", "jobs, GPUs, slots", "a plan", "a refusal", "jobs in it")
def share_flows(setup: Setup) -> Iterator[Row]:
    """Processor time of `shares_by_flow` where there is a plan and of `refusal` where there is none; linear curves."""
    for jobs, gpus, slots, few, many in setup.few(((8, 16, 20, 0.3, 1.5), (100, 128, 10_000, 0.3, 1.5))):
        size: dict[str, Any] = {"num_jobs": jobs, "num_gpus": gpus, "horizon": slots, "curves": "linear"}
        possible, impossible = (
            minimum_satisfactory_share.generate(0, tightness=tightness, **size) for tightness in (few, many)
        )
        assert not isinstance(flow.shares_by_flow(possible), flow.Cut)
        took = median_seconds(setup.repeats, flow.shares_by_flow, possible)
        cut, refused = timed(flow.refusal, impossible)
        assert cut is not None
        yield f"{jobs}, {gpus}, {slots:,}", seconds(took), seconds(refused), len(cut.jobs)


@benchmark(
    "elasticflow.minimum_satisfactory_share.gaps",
    "`tightness`",
    "with a plan",
    "Algorithm 1 finds one",
    "mean and greatest excess over the optimum",
    "cleared: finds one",
    "mean and greatest excess",
    "EDF meets all deadlines",
)
def share_gaps(setup: Setup) -> Iterator[Row]:
    """Excess of Algorithm 1 over the optimum on 200 instances of 8 jobs, 16 GPUs and up to 20 slots."""
    for tightness in setup.few((0.2, 0.3, 0.4, 0.5)):
        drawn = [
            minimum_satisfactory_share.generate(seed, tightness=tightness) for seed in setup.size(range(200), range(3))
        ]
        solved = [(one, formulations.solve(one)) for one in drawn]
        cells: list[object] = []
        for heuristic in (progressive_filling, progressive_filling_cleared):
            plans = [(one, best, heuristic(one)) for one, best in solved]
            gaps = [gap(one.objective(plan), _value(best)) for one, best, plan in plans if plan is not None]
            cells += [len(gaps), f"{statistics.mean(gaps):.2%}, {max(gaps):.0%}" if gaps else ""]
        with_plan = sum(best.status == "optimal" for _, best in solved)
        yield tightness, with_plan, *cells, sum(not one.violations(edf(one)) for one in drawn)


@benchmark(
    "elasticflow.minimum_satisfactory_share.turned_away",
    "jobs",
    "slots",
    "GPUs",
    "last deadline",
    "work that is missing",
    "proof",
    "time",
)
def share_turned_away(setup: Setup) -> Iterator[Row]:
    """The most work, in GPU-slots, that the last job of a feasible set lacks when Algorithm 1 comes to it."""
    none_is = [(2, 3, 3), (2, 4, 4), (3, 1, 4), (3, 1, 8), (3, 4, 1), (4, 6, 1)]
    any_deadlines = [(*sizes, False) for sizes in (*none_is, (3, 2, 2), (3, 2, 3), (3, 3, 3))]
    last_is_later = [(*sizes, True) for sizes in ((3, 2, 2), (3, 2, 3), (3, 3, 2), (3, 3, 3))]
    for jobs, slots, gpus, later in setup.size([*any_deadlines, *last_is_later], [(3, 2, 2, False)]):
        model = worst_shares.turned_away(num_jobs=jobs, num_slots=slots, num_gpus=gpus, later=later)
        solution, time = timed(formulations.solve, model, time_limit=setup.seconds(600), verify=True)
        if solution.objective is not None and solution.objective > 0.5:
            solution.load()
            instance = worst_shares.read(model)
            assert progressive_filling(instance) is None
            assert formulations.solve(instance).status == "optimal"
        # GPU-slots are whole.
        missing = f"{round(solution.bound)}" if solution.status == "optimal" else f"at most {solution.bound:.4g}"
        yield jobs, slots, gpus, "later" if later else "any", missing, solution.proof, seconds(time)


@benchmark("elasticflow.placement.times", "GPUs", "jobs", "what", "time", "jobs moved")
def placement_times(setup: Setup) -> Iterator[Row]:
    """Processor time of the exact model, whole, and of the heuristics on large clusters."""
    one = placement.generate(0, num_servers=setup.size(1000, 4))
    best, took = timed(formulations.solve, one)
    yield f"{one.num_gpus:,}", f"{one.num_jobs:,}", "exact", seconds(took), f"{_value(best):.0f}"
    one = placement.generate(0, num_servers=setup.size(5000, 4), churn=1.0)
    took = median_seconds(setup.repeats, buddy_best_fit, one)
    yield f"{one.num_gpus:,}", f"{one.num_jobs:,}, all new", "`buddy_best_fit`", seconds(took), 0
    one = placement.generate(0, num_servers=setup.size(5000, 4))
    plan = buddy_repack(one)
    moved = "" if plan is None else f"{one.objective(plan):.0f}"
    took = median_seconds(setup.repeats, buddy_repack, one)
    yield f"{one.num_gpus:,}", f"{one.num_jobs:,}", "`buddy_repack`", seconds(took), moved


@benchmark(
    "elasticflow.placement.moves",
    "servers",
    "placed without moves",
    "moves in all, optimum",
    "moves in all, `buddy_repack`",
)
def placement_moves(setup: Setup) -> Iterator[Row]:
    """Moves of `buddy_repack` and of the optimum on 100 instances each."""
    for servers in setup.few((4, 16, 64)):
        still, moves, repacked = 0, 0.0, 0.0
        for seed in setup.few(range(100)):
            one = placement.generate(seed, num_servers=servers)
            still += buddy_best_fit(one) is not None
            moves += _value(formulations.solve(one))
            plan = buddy_repack(one)
            assert plan is not None
            repacked += one.objective(plan)
        yield servers, still, f"{moves:.0f}", f"{repacked:.0f}"


def _value(solution: Solution) -> float:
    if solution.status != "optimal" or solution.objective is None:
        raise RuntimeError(f"no proven optimum: {solution}")
    return float(solution.objective)


def _summary(found: Sequence[tuple[Solution | Any, float]]) -> tuple[str, str]:
    """How many are proven, optimal or infeasible, and the least and greatest time."""
    proven = sum(solution.status in ("optimal", "infeasible") for solution, _ in found)
    return f"{proven} of {len(found)}", between(took for _, took in found)
