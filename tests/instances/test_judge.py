"""What the judge accepts: nothing that is infeasible, and no plan that is better than the proven bound."""

import functools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from formulations import Solution, solve
from instances import Instance, Plan, PlanError, exceeding
from instances.afs.elastic_sharing import ElasticSharing, Schedule
from instances.afs.gpu_placement import GpuPlacement, GpuPlacementPlan
from instances.afs.network_packing import NetworkPackingPlan, one_machine
from instances.aryl.base_allocation import BaseAllocationPlan
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from instances.aryl.placement import ArylPlacement, ArylPlacementPlan
from instances.aryl.two_job import ArylTwoJobPlan, smaller_workload_first
from instances.base import product, total
from instances.elasticflow.admission import Admission, AdmissionPlan
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.placement import ElasticFlowPlacementPlan, fragmented_server
from instances.elasticflow.sharing import SlotPlan
from instances.files import text_of
from instances.gavel import cost, finish_time_fairness, hierarchical_fairness, makespan, throughput_per_dollar
from instances.gavel import max_min_fairness as max_min
from instances.gavel import total_throughput as most_steps
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan
from instances.gavel.sharing import Allocation
from instances.reference import Reference
from instances.schema import declarations
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan
from instances.synergy.heterogeneous_allocation import HeterogeneousAllocation
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan
from instances.synergy.tuning import TuningPlan, four_jobs
from validation import catalogue
from validation.kernel.gaps import beats
from validation.testing.transform import rescaled

PROBLEMS = tuple(catalogue.CATALOGUE)
EXTREMES = (-(2**63), 2**63 - 1, 2**62, -(2**62))
STEPS = (1e-12, 1e-9, 1e-7, 1e-6, 1e-3)
EPOCH = 1.7e9
"""Seconds since 1970."""


def rules(instance: Instance[Any], plan: Plan) -> set[str]:
    return {violation.rule for violation in instance.violations(plan)}


# --- comparing ---------------------------------------------------------------------------------


def test_whole_numbers_are_compared_exactly() -> None:
    assert [v.amount for v in exceeding("r", [1_500_001, 1_500_000], 1_500_000)] == [1.0]
    assert exceeding("r", 2**62 + 1, 2**62)
    assert [v.amount for v in exceeding("r", 0, np.array([-(2**63)]))] == [2.0**63]
    assert [v.amount for v in exceeding("r", np.array([2**63 - 1]), np.array([-(2**63)]))] == [2.0**64]
    assert exceeding("r", np.array([True]), 0)


def test_a_zero_is_a_zero() -> None:
    for smallest in (1e-12, 1e-300, 5e-324):
        assert exceeding("r", smallest, 0.0)
        assert exceeding("r", 0, -smallest)


def test_other_numbers_are_compared_relative_to_their_row() -> None:
    for unit in (1e-30, 1e-9, 1.0, 1e9, 1e30):
        assert not exceeding("r", unit * (1 + 0.9e-9), unit)
        assert exceeding("r", unit * (1 + 1.1e-9), unit)
        assert not exceeding("r", 0.9e-9 * unit, 0.0, size=unit)
        assert exceeding("r", 1.1e-9 * unit, 0.0, size=unit)
    assert exceeding("r", math.nan, 1.0)
    assert exceeding("r", math.inf, 1.0)
    assert not exceeding("r", math.inf, math.inf)


def test_sums_of_whole_numbers_do_not_overflow() -> None:
    assert total([2**62, 2**62, 2**62, 2**62]) == 2**64
    assert total(np.full((2, 3), -(2**63)), axis=0).tolist() == [-(2**64)] * 3
    assert total([True, True]) == 2
    assert product(np.array([2**40, 3]), np.array([2**40, 1])) == 2**80 + 3
    assert product(np.array([2, 3]), np.array([[True, False], [True, True]])).tolist() == [5, 3]


# --- plans that were accepted ------------------------------------------------------------------


@pytest.mark.parametrize("amount", [1e-6, 1e-9, 1e-12, 1e-300])
def test_a_negative_fraction_of_time_is_none(amount: float) -> None:
    instance = cost.three_jobs()
    fractions = np.zeros((3, 2))
    # Almost nothing is spent, so that a ratio of sums is worth anything.
    fractions[0, 0], fractions[1, 1] = amount, -1.9999 * amount
    plan = Allocation(time_fractions=fractions)
    assert "time_fraction_at_least_0" in rules(instance, plan)


@pytest.mark.parametrize("amount", [1e-6, 1e-9, 1e-12, 1e-300])
@pytest.mark.parametrize("module", [max_min, makespan, most_steps])
def test_a_job_has_no_time_on_a_pool_that_it_does_not_fit(module: Any, amount: float) -> None:
    instance = module.three_jobs()
    scale_factors = np.array([2, 1, 1])
    instance = replace(instance, scale_factors=scale_factors, num_workers=np.array([2, 1]))
    fractions = np.zeros((3, 2))
    fractions[0, 1] = amount
    assert "fits_pool" in rules(instance, Allocation(time_fractions=fractions))


def test_a_pool_without_workers_has_none() -> None:
    instance = replace(max_min.three_jobs(), num_workers=np.array([1, 0]))
    fractions = np.zeros((3, 2))
    fractions[0, 1] = 1e-12
    assert {"fits_pool", "pool_capacity"} <= rules(instance, Allocation(time_fractions=fractions))


def test_reported_throughputs_of_a_job_without_time_are_0() -> None:
    instance = hierarchical_fairness.two_entities()
    plan = instance.plan(Allocation(time_fractions=np.zeros((instance.num_jobs, instance.num_types))))
    assert not instance.violations(plan)
    plan = replace(plan, normalized_throughputs=np.full(instance.num_jobs, 1e-12))
    assert rules(instance, plan) == {"normalized_throughputs"}


@pytest.mark.parametrize("iterations", [1e-6, 1e-12, 1.0, 1e12])
def test_an_empty_plan_does_no_work(iterations: float) -> None:
    jobs = {"num_gpus": 1, "iterations": [iterations], "deadlines": [2], "throughputs": [[0.0, 1.0]]}
    instance = MinimumSatisfactoryShare(**jobs)
    assert rules(instance, SlotPlan(gpus=np.zeros((1, 2), np.int64))) == {"work"}
    asked = Admission(**jobs, arrival_order=[0])
    assert rules(asked, AdmissionPlan(admitted=[True], gpus=np.zeros((1, 2), np.int64))) == {"work"}


def test_the_exact_side_serves_little_work_too() -> None:
    jobs = {"num_gpus": 1, "iterations": [1e-6, 1e-9], "deadlines": [2, 2], "throughputs": [[0.0, 1.0]] * 2}
    solution = solve(Admission(**jobs, arrival_order=[0, 1]))
    assert (solution.status, solution.objective) == ("optimal", 2)
    solution = solve(MinimumSatisfactoryShare(**jobs))
    assert (solution.status, solution.objective) == ("optimal", 2)


def test_one_gpu_too_many_of_millions() -> None:
    config = [[[1.0, 1.0, 1.0]]]
    instance = HeterogeneousAllocation(
        num_servers=[1_500_000],
        server_gpus=[1],
        server_cpus=[1e9],
        server_memory=[1e9],
        gpu_demands=[1_500_001],
        configs=config,
        config_types=[[0]],
        fair_throughputs=[0.0],
    )
    assert rules(instance, SynergyAllocationPlan(choices=[0])) == {"gpus"}
    workers = {"min_workers": [1], "max_workers": [1_500_002], "gpus_per_worker": [1], "min_running_times": [1.0]}
    elastic = ElasticAllocation(capacity=1_500_000, **workers)
    assert rules(elastic, ElasticAllocationPlan(extra_workers=[1_500_001])) == {"capacity"}


def two_of_one_server(amount: float) -> SynergyAllocation:
    """Two jobs that each are faster with so much memory, GB, of a server's 500."""
    configs = [[[1.0, amount, 3.0], [1.0, 100.0, 1.0]]] * 2
    server = {"num_servers": 1, "server_gpus": 2, "server_cpus": 24.0, "server_memory": 500.0}
    return SynergyAllocation(**server, gpu_demands=[1, 1], configs=configs, fair_throughputs=[0.0, 0.0])


@pytest.mark.parametrize(("amount", "fits"), [(250.0, True), (250.0002, False)])
def test_memory_of_two_jobs_on_one_server(amount: float, fits: bool) -> None:
    instance = two_of_one_server(amount)
    both = SynergyAllocationPlan(choices=[0, 0])
    assert (not instance.violations(both)) == fits
    solution = solve(instance)
    assert (solution.status, solution.objective) == ("optimal", 6.0 if fits else 4.0)


@pytest.mark.filterwarnings("default::formulations.engine.highs.SolverDisagreement")  # within the solver's tolerance
@pytest.mark.parametrize("amount", [250.00002, 250.000001])
def test_memory_between_the_tolerances_of_judge_and_solver(amount: float) -> None:
    # 500.000002 of 500 GB: the solver takes it; its point is cut off, and the plan is the best of those that fit.
    instance = two_of_one_server(amount)
    assert rules(instance, SynergyAllocationPlan(choices=[0, 0])) == {"memory"}
    solution = solve(instance)
    assert (solution.status, solution.objective, solution.bound) == ("optimal", 4.0, 4.0)


def test_fair_throughput_in_small_units() -> None:
    server = {"num_servers": 1, "server_gpus": 1, "server_cpus": 1.0, "server_memory": 1.0}
    instance = SynergyAllocation(**server, gpu_demands=[1], configs=[[[1.0, 1.0, 0.9e-8]]], fair_throughputs=[1e-8])
    assert rules(instance, SynergyAllocationPlan(choices=[0])) == {"fair_throughput"}


def test_a_small_share_is_a_fragment() -> None:
    instance = SynergyPlacement(
        num_servers=2, server_gpus=1, server_cpus=1.0, server_memory=1.0, demands=[[1.0, 1.0, 1.0]]
    )
    plan = SynergyPlacementPlan(shares=[[1 - 1e-7, 1e-7]])
    assert not instance.violations(plan)
    assert instance.objective(plan) == 1


@pytest.fixture
def late_jobs() -> ElasticSharing:
    """Two jobs of a minute that arrive an hour apart, in seconds since 1970."""
    return ElasticSharing(num_gpus=1, work=[60.0, 60.0], throughputs=[[0.0, 1.0]] * 2, arrivals=[EPOCH, EPOCH + 3600.0])


@pytest.mark.parametrize("early", [1600.0, 1.0, 1e-3])
def test_no_job_starts_before_it_arrives(late_jobs: ElasticSharing, early: float) -> None:
    start = EPOCH + 3600.0 - early
    plan = Schedule(times=[EPOCH, EPOCH + 60.0, start, start + 60.0], shares=[[1, 0], [0, 0], [0, 1]])
    assert "arrival" in rules(late_jobs, plan)
    plan = Schedule(times=plan.times + np.array([0, 0, early, early]), shares=plan.shares)
    assert not late_jobs.violations(plan)


@pytest.mark.parametrize("away", [1.0, 1e-2])
def test_shares_change_at_arrivals_and_completions(late_jobs: ElasticSharing, away: float) -> None:
    times = np.array([0.0, 60.0 - away, 60.0, 60.0 + away]) + EPOCH
    at_once = replace(late_jobs, arrivals=np.full(2, EPOCH), num_gpus=2, throughputs=[[0.0, 1.0, 2.0]] * 2)
    plan = Schedule(times=times, shares=[[1, 0], [1, 1], [0, 1]])
    assert "reallocation" in rules(at_once, plan)


def test_times_since_1970_are_sums_of_rounded_numbers(late_jobs: ElasticSharing) -> None:
    thirds = replace(late_jobs, throughputs=[[0.0, 1 / 3]] * 2, work=[0.1, 0.2])
    plan = Schedule(times=[EPOCH, EPOCH + 0.3, EPOCH + 3600.0, EPOCH + 3600.6], shares=[[1, 0], [0, 0], [0, 1]])
    assert not thirds.violations(plan)
    for job, rule in ((0, 1), (1, 3)):
        times = plan.times.copy()
        times[rule] -= 1e-3
        assert "work_done" in rules(thirds, Schedule(times=times, shares=plan.shares)), job


def test_what_comes_later_excuses_no_work() -> None:
    """The last digit of a far time is seconds: it says nothing of times before."""
    instance = ElasticSharing(num_gpus=1, work=[100.0, 100.0], throughputs=[[0.0, 1.0]] * 2, reallocation="any_time")
    plan = Schedule(times=[0.0, 60.0, 120.0, 1e17], shares=[[1, 0], [0, 1], [0, 0]])
    assert rules(instance, plan) == {"work_done"}
    reference = Reference(text_of(instance))
    assert reference.violations(plan.to_dict()) == ["work_done"]
    # Nor does a job that runs for another moment then.
    plan = Schedule(
        times=[0.0, 60.0, 120.0, 1e17, 1e17 + 32, 1e17 + 64], shares=[*plan.shares.tolist(), [1, 0], [0, 1]]
    )
    assert instance.completions(plan)[0] > 1e16
    assert float(reference.value(plan.to_dict())) == pytest.approx(instance.objective(plan), rel=1e-12)


def overflows() -> Iterator[Any]:
    yield (
        ElasticSharing(num_gpus=1, work=[1.0] * 2, throughputs=[[0.0, 1.0]] * 2),
        lambda e: Schedule(times=[0.0, 1.0], shares=[[e, 1]]),
    )
    yield fragmented_server(), lambda e: ElasticFlowPlacementPlan(offsets=[0, 4, e])
    yield smaller_workload_first(), lambda e: ArylTwoJobPlan(gpus=[2, e])
    yield one_machine(), lambda e: NetworkPackingPlan(regulated=[4, 2, e])
    jobs = {"num_gpus": 1, "iterations": [1.0, 1.0], "deadlines": [1, 1], "throughputs": [[0.0, 1.0]] * 2}
    yield MinimumSatisfactoryShare(**jobs), lambda e: SlotPlan(gpus=[[1], [e]])
    yield (
        GpuPlacement(regulated=[1, 1], num_machines=1, gpus_per_machine=2, previous=[[0], [0]]),
        lambda e: GpuPlacementPlan(gpus=[[1], [e]]),
    )
    yield (
        ArylPlacement(
            gpus_per_worker=[2, 4],
            num_workers=[1, 1],
            elastic=[False, False],
            server_gpus=[2],
            server_groups=["training"],
        ),
        lambda e: ArylPlacementPlan(workers=[[1], [e]]),
    )
    yield (
        ElasticAllocation(
            capacity=1, min_workers=[1, 1], max_workers=[2, 2], gpus_per_worker=[2, 4], min_running_times=[1.0, 1.0]
        ),
        lambda e: ElasticAllocationPlan(extra_workers=[1, e]),
    )
    yield four_jobs(), lambda e: TuningPlan(choices=[0, 0, 0, 0], gpus=[[4, e], [4, 0], [0, 4], [0, 4]])


@pytest.mark.parametrize("case", range(9))
@pytest.mark.parametrize("extreme", EXTREMES)
def test_no_number_is_so_large_that_it_frees_capacity(case: int, extreme: int) -> None:
    instance, plan = list(overflows())[case]
    found = instance.violations(plan(extreme))
    assert found
    assert all(violation.amount > 0 for violation in found)


def test_workers_of_a_round_are_summed_exactly() -> None:
    instance = RoundAssignment(scale_factors=[2**53, 1], num_workers=[2**53], priorities=[[1.0], [1.0]])
    plan = RoundAssignmentPlan(chosen=[[True], [True]])
    assert [str(violation) for violation in instance.violations(plan)] == ["pool_workers[0] by 1"]


# --- nothing that is accepted is better than the bound -------------------------------------------


@functools.cache
def solved(problem: str) -> tuple[tuple[Instance[Any], Solution], ...]:
    """Small instances of a problem with their optima; those of finish times and SLOs among them."""
    entry = catalogue.entry(problem)
    sizes = {"synergy.placement": 2, "synergy.heterogeneous_allocation": 1, "synergy.allocation": 1}
    size = sizes.get(problem, min(entry.sizes) if entry.size != "num_jobs" else 4)
    found: list[Instance[Any]] = [entry.generate(seed, **{entry.size: size}) for seed in (1, 2)]
    if problem == "afs.elastic_sharing":
        found = [entry.generate(seed, num_jobs=3, num_gpus=4) for seed in (1, 2)]
        found.append(replace(found[0], reallocation="any_time"))
    if problem.startswith("elasticflow.") and problem != "elasticflow.placement":
        found = [entry.generate(seed, num_jobs=3) for seed in (1, 2)]
    if problem in ("gavel.cost", "gavel.throughput_per_dollar"):
        found = [entry.generate(seed, num_jobs=4, slo_fraction=1.0) for seed in range(4)]
    solutions = [(instance, solve(instance)) for instance in found]
    return tuple((instance, solution) for instance, solution in solutions if solution.plan is not None)


def arrays_of(plan: Plan) -> Iterator[tuple[str, Any]]:
    """Fields of a plan with their arrays."""
    for name in declarations(type(plan)):
        value = np.asarray(getattr(plan, name))
        if value.size:
            yield name, value


def with_entry(plan: Plan, name: str, at: tuple[int, ...], value: Any) -> Plan | None:
    array = np.asarray(getattr(plan, name)).copy()
    try:
        array[at] = value
        return replace(plan, **{name: array if array.ndim else array.item()})
    except (PlanError, OverflowError):
        return None


def moved(plan: Plan, rng: np.random.Generator, most: int, steps: tuple[float, ...] = STEPS) -> Iterator[Plan]:
    """The plan with one entry moved."""
    for name, array in arrays_of(plan):
        indices = list(np.ndindex(array.shape))
        for at in [indices[i] for i in rng.permutation(len(indices))[:most]]:
            value = array[at].item()
            if array.dtype.kind == "f":
                others = [value + sign * step * scale for step in steps for sign in (1, -1) for scale in (1.0, value)]
            elif array.dtype.kind == "b":
                others = [not value]
            else:
                others = [value + 1, value - 1, *EXTREMES]
            for other in others:
                changed = with_entry(plan, name, at, other)
                if changed is not None:
                    yield changed


def check(instance: Instance[Any], solution: Solution, plan: Plan) -> float | None:
    """Value of a plan that the judge accepts, which is no better than the bound."""
    if instance.violations(plan):
        return None
    value = instance.objective(plan)
    assert not math.isnan(value)
    assert not beats(instance.sense, value, solution.bound), (value, solution.bound, plan)
    return value


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_plan_near_the_optimum_beats_the_bound(problem: str) -> None:
    rng = np.random.default_rng(0)
    for instance, solution in solved(problem):
        assert solution.plan is not None
        assert check(instance, solution, solution.plan) is not None
        for plan in moved(solution.plan, rng, most=12):
            check(instance, solution, plan)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_search_among_accepted_plans_beats_the_bound(problem: str) -> None:
    for seed, (instance, solution) in enumerate(solved(problem)):
        rng = np.random.default_rng(seed)
        best = solution.plan
        assert best is not None
        value = instance.objective(best)
        for _ in range(150):
            plan = neighbour(best, rng)
            found = None if plan is None else check(instance, solution, plan)
            if found is not None and (found < value if instance.sense == "min" else found > value):
                assert plan is not None
                best, value = plan, found


def neighbour(plan: Plan, rng: np.random.Generator) -> Plan | None:
    """A plan with an entry, two, or a whole field moved by a step of any size."""
    choices = list(arrays_of(plan))
    name, array = choices[rng.integers(len(choices))]
    changed = array.copy()
    step = rng.choice((-1, 1)) * 10 ** rng.uniform(-12, -2)
    for _ in range(rng.integers(1, 3)):
        at = tuple(int(rng.integers(length)) for length in array.shape)
        if array.dtype.kind == "f":
            changed[at] += step * rng.choice((1.0, changed[at]))
            step = -step
        elif array.dtype.kind == "b":
            changed[at] = not changed[at]
        else:
            changed[at] += rng.choice((-1, 1))
    if array.dtype.kind == "f" and rng.random() < 0.3:
        changed = array * (1 + step)
    try:
        return replace(plan, **{name: changed if changed.ndim else changed.item()})
    except PlanError:
        return None


# --- units ---------------------------------------------------------------------------------------

UNITS = [
    (problem, rescaling.fields, unit)
    for problem in PROBLEMS
    for rescaling in catalogue.entry(problem).rescalings
    for unit in (1e-9, 1e9)
]


@pytest.mark.parametrize(("problem", "names", "unit"), UNITS)
def test_units_change_no_verdict(problem: str, names: tuple[str, ...], unit: float) -> None:
    rng = np.random.default_rng(0)
    for instance, solution in solved(problem)[:1]:
        assert solution.plan is not None
        other = rescaled(instance, names, unit)
        times = problem == "afs.elastic_sharing" and "arrivals" in names
        for plan in (solution.plan, *moved(solution.plan, rng, most=4, steps=(1e-12, 1e-7, 1e-3))):
            try:
                same = replace(plan, times=plan.times * unit) if isinstance(plan, Schedule) and times else plan
                if isinstance(plan, BaseAllocationPlan):
                    same = replace(plan, starts=plan.starts * unit)
            except PlanError:
                continue
            found, again = rules(instance, plan), rules(other, same)
            assert found == again, plan


def test_a_schedule_in_nanoseconds_and_gigaseconds() -> None:
    instance = ElasticSharing(num_gpus=1, work=[60.0], throughputs=[[0.0, 1.0]], arrivals=[10.0])
    for start, end, broken in ((10.0, 70.0, set()), (9.999, 69.999, {"arrival"}), (10.0, 70.001, {"work_done"})):
        for unit in (1e-9, 1.0, 1e9):
            other = replace(instance, work=unit * instance.work, arrivals=unit * instance.arrivals)
            plan = Schedule(times=np.array([start, end]) * unit, shares=[[1]])
            assert broken <= rules(other, plan), unit
            assert bool(broken) == bool(rules(other, plan)), unit


# --- gains from the tolerance are part of the bound -----------------------------------------------


@pytest.mark.parametrize("module", [cost, throughput_per_dollar])
def test_a_tolerance_that_a_ratio_blows_up_is_part_of_the_bound(module: Any) -> None:
    # Almost no difference in speed and all the difference in price: a hair of the SLO is worth a lot.
    kind = cost.Cost if module is cost else throughput_per_dollar.ThroughputPerDollar
    instance = kind(
        throughputs=[[1.0, 1 - 1e-6]],
        num_workers=[1, 1],
        costs=[1000.0, 1.0],
        steps=[3600.0],
        slos=[3600.0 / (1 - 0.5e-6)],
    )
    solution = solve(instance)
    assert solution.plan is not None
    assert not instance.violations(solution.plan)
    # All the slack that there is: a little more time, a little late.
    for late in (0.0, 0.4e-9, 0.9e-9):
        for more in (0.0, 0.4e-9, 0.9e-9):
            whole = 1 + more
            needed = (1 - 0.5e-6) * (1 - late)
            fast = (needed - whole * (1 - 1e-6)) / 1e-6
            plan = Allocation(time_fractions=[[fast, whole - fast]])
            if not instance.violations(plan):
                assert not beats(instance.sense, instance.objective(plan), solution.bound)


def test_finish_times_are_no_better_than_proven_with_all_the_slack() -> None:
    instance = finish_time_fairness.late_job()
    solution = solve(instance)
    assert solution.plan is not None
    plan = Allocation(time_fractions=solution.plan.time_fractions * (1 + 0.9e-9))  # type: ignore[attr-defined]
    assert not instance.violations(plan)
    assert not beats("min", instance.objective(plan), solution.bound)


def test_a_plan_of_almost_nothing_is_worth_its_ratio() -> None:
    instance = cost.three_jobs()
    for size in (5e-324, 1e-320, 1e-300, 1e-9):
        plan = Allocation(time_fractions=[[size, 0.0], [0.0, 0.0], [0.0, 0.0]])
        assert not instance.violations(plan)
        assert instance.objective(plan) == pytest.approx(40 / 3, rel=1e-12)
