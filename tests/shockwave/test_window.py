"""shockwave.window: worked examples, all plans of small instances, numbers of rounds, and what heuristics keep."""

import math
from dataclasses import replace
from decimal import localcontext
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

import formulations
from formulations.methods.counts import COUNTS, Counts
from heuristics.shockwave.window import (
    finish_time_fair,
    greedy_marginal,
    least_finished_first,
    priced_rounds,
    work_conserving,
)
from instances import InstanceError
from instances.data import gavel
from instances.files import text_of
from instances.gavel.round_assignment import RoundAssignmentPlan
from instances.gavel.round_assignment import generate as gavel_round
from instances.reference import PROBLEMS, parse
from instances.reference.common import Counter
from instances.shockwave.packing import packed
from instances.shockwave.window import (
    Window,
    WindowPlan,
    from_round,
    from_trace,
    generate,
    limit_before_progress,
    longest_first,
    rounds_left_over,
    turns,
    without_limits,
)
from validation.problems.shockwave.window import strategy

from ..second_opinion import optimum


def by_hand(instance: Window, runs: list[tuple[bool, ...]]) -> float | None:
    """The value of a plan, written from the statement alone; None where it breaks a rule."""
    n, window = instance.num_jobs, instance.num_rounds
    for at in range(window):
        if sum(int(instance.scale_factors[j]) for j in range(n) if runs[j][at]) > instance.num_gpus:
            return None
    value, longest = 0.0, 0.0
    for j in range(n):
        epoch = float(instance.epoch_durations[j])
        progress = min(
            sum(runs[j]) * instance.round_duration / epoch, float(instance.epochs[j] - instance.epochs_done[j])
        )
        left = max(0.0, float(instance.times_left[j]) - progress * epoch)
        finish = instance.round_duration * (instance.rounds_past + window) + left / min(1.0, instance.num_gpus / n)
        if finish > instance.finish_limits[j] * (1 + 1e-9):
            return None
        part = (float(instance.epochs_done[j]) + progress) / float(instance.epochs[j])
        value += float(instance.weights[j]) * float(np.interp(part, instance.points, instance.logs)) / (n * window)
        longest = max(longest, left)
    return value - instance.remaining_penalty * longest


@pytest.mark.parametrize(
    ("instance", "value", "rounds"),
    [
        (turns(), (math.log(0.4) + math.log(0.6)) / 4 - 0.3, [1, 1]),
        (longest_first(), (math.log(0.4) + math.log(0.6) + 2 * math.log(1e-6)) / 8 - 600, [2, 0]),
        (limit_before_progress(), (math.log(1e-6) + 0.0) / 4 - 0.6, [2, 0]),
        (rounds_left_over(), (math.log(0.4) + math.log(0.6)) / 6 - 0.3, [1, 1, 2]),
    ],
)
def test_worked_examples(instance: Window, value: float, rounds: list[int]) -> None:
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(value, abs=1e-12)
    assert instance.rounds_of(solution.plan).tolist() == rounds


@settings(max_examples=60, deadline=None)
@given(strategy(max_jobs=3))
def test_optima_are_those_of_all_plans(instance: Window) -> None:
    rows = list(product((False, True), repeat=instance.num_rounds))
    values = [by_hand(instance, list(runs)) for runs in product(rows, repeat=instance.num_jobs)]
    able = [value for value in values if value is not None]
    for method in formulations.methods(instance):
        solution = formulations.solve(instance, method=method.name)
        assert solution.status == ("optimal" if able else "infeasible")
        if able:
            assert solution.objective == pytest.approx(max(able), rel=1e-9, abs=1e-9)
            assert solution.bound == pytest.approx(max(able), rel=1e-8, abs=1e-8)
    exact = optimum(instance)
    assert float(exact) == pytest.approx(max(able, default=-math.inf), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("penalty", [0.0, 1e-5, 1e-3])
def test_numbers_of_rounds_are_worth_what_the_model_proves(seed: int, penalty: float) -> None:
    instance = generate(seed, num_jobs=8, num_rounds=5, slack=None, remaining_penalty=penalty)
    counts = formulations.solve(instance)
    assert counts.method == COUNTS.name
    assert counts.status == "optimal"
    scip = formulations.solve(instance, solver="scip", method="model")
    assert scip.status == "optimal"
    assert counts.objective == pytest.approx(scip.objective, rel=1e-6)


def test_many_jobs_need_no_solver() -> None:
    solution = formulations.solve(generate(0, num_jobs=300))
    assert (solution.status, solution.method, solution.proof) == ("optimal", COUNTS.name, "argument")


def test_a_table_alone_proves_no_more_than_its_bound() -> None:
    # Two GPU-rounds for each job, as many as there are; but two that hold two GPUs of three take turns.
    instance = replace(rounds_left_over(), scale_factors=np.array([2, 2, 2]))
    solution = formulations.solve(instance)
    assert solution.method == COUNTS.name
    assert solution.status == "optimal"
    assert instance.rounds_of(solution.plan).sum() == 2


@pytest.mark.parametrize(
    ("rounds", "widths", "gpus"),
    [([2, 2, 1], [1, 1, 2], 2), ([2, 1, 1], [4, 2, 2], 6), ([3, 3, 3, 3], [1, 1, 2, 2], 6)],
)
def test_packing_keeps_numbers_and_gpus(rounds: list[int], widths: list[int], gpus: int) -> None:
    runs = packed(np.array(rounds), np.array(widths), gpus, 3)
    assert runs is not None
    assert runs.sum(axis=1).tolist() == rounds
    assert (np.array(widths) @ runs <= gpus).all()


def test_what_a_table_cannot_hold_is_left_to_the_model() -> None:
    instance = replace(turns(), num_gpus=20_000_000, scale_factors=np.array([20_000_000, 10_000_001]))
    solution = formulations.solve(instance)
    assert (solution.status, solution.method) == ("optimal", "one model")
    assert solution.objective == pytest.approx(formulations.solve(turns()).objective)
    assert "too many GPU-rounds" in formulations.solve(instance, method="counts").message


def test_packing_may_fail() -> None:
    assert packed(np.array([1, 2]), np.array([2, 1]), 2, 2) is None


@pytest.mark.parametrize("seed", range(4))
def test_heuristics_keep_what_they_promise(seed: int) -> None:
    instance = generate(seed, num_jobs=25, slack=None)
    best = formulations.solve(instance).objective
    makers = (work_conserving, least_finished_first, finish_time_fair, greedy_marginal, priced_rounds)
    plans = [make(instance) for make in makers]
    for plan in plans:
        assert not instance.violations(plan)
        assert instance.objective(plan) <= best + 1e-9
    assert max(map(instance.objective, plans)) == instance.objective(plans[-1])


@pytest.mark.parametrize("penalty", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("width", [1, 3])
def test_a_price_of_gpu_rounds_is_all_there_is_to_jobs_alike(penalty: float, width: int) -> None:
    drawn = generate(3, num_jobs=25, slack=None, remaining_penalty=penalty)
    instance = replace(drawn, num_gpus=20, scale_factors=np.full(25, width))
    assert instance.objective(priced_rounds(instance)) == pytest.approx(formulations.solve(instance).objective)


def test_a_wide_job_has_rounds_that_many_narrow_ones_want() -> None:
    # A job of eight GPUs on eight, and ten of one or two: to make room for it, all others leave a round at once.
    instance = generate(219792, num_jobs=11, num_rounds=14, remaining_penalty=0.0)
    wide = int(instance.scale_factors.argmax())
    best = formulations.solve(instance).objective
    greedy, priced = (make(instance) for make in (greedy_marginal, priced_rounds))
    assert instance.rounds_of(greedy)[wide] == 0
    assert instance.rounds_of(priced)[wide] > 0
    assert instance.objective(greedy) < 3 * best
    assert best >= instance.objective(priced) > best - 0.01 * abs(best)


def test_an_idle_round_is_for_the_job_of_the_longest_time_left() -> None:
    """Whose progress counts for nothing: of its 24 s a round takes 4, at 1/16 each."""
    instance = Window(
        num_gpus=3,
        num_rounds=3,
        round_duration=4.0,
        rounds_past=1,
        scale_factors=[3, 1, 4, 4],
        epochs=[3, 5, 2, 6],
        epochs_done=[0, 1, 1, 3],
        epoch_durations=[3.5, 1.75, 2.0, 2.0],
        times_left=[24.0, 24.0, 7.0, 5.0],
        finish_limits=[math.inf] * 4,
        weights=[0.0, 3.0, 2.0, 0.0],
        points=[0.0, 1.0],
        least_progress=0.015625,
        remaining_penalty=0.0625,
    )
    plan = priced_rounds(instance)
    assert plan is not None
    assert instance.rounds_of(plan).tolist() == [1, 2, 0, 0]
    assert instance.objective(plan) == pytest.approx(formulations.solve(instance).objective)


def test_where_a_table_would_be_too_large_the_price_decides() -> None:
    # GPU-rounds of a table of the core are as many as its jobs' GPUs.
    drawn = generate(3, num_jobs=12, slack=None)
    many = replace(drawn, num_gpus=drawn.num_gpus * 50_000, scale_factors=drawn.scale_factors * 50_000 - 1)
    plan = priced_rounds(many)
    assert not many.violations(plan)
    assert many.objective(plan) >= many.objective(greedy_marginal(many))


def test_without_limits_late_jobs_weigh_more() -> None:
    instance = replace(
        turns(), rounds_past=2, times_left=np.array([100.0, 900.0]), finish_limits=np.array([400.0, 1200.0])
    )
    relaxed = without_limits(instance, exponent=2.0)
    # On half of the GPU each: 600 + 200 s is twice the limit, 600 + 1,800 s too; the first needs less than a round.
    assert relaxed.weights.tolist() == pytest.approx([2.0**100, 4.0])
    assert np.isinf(relaxed.finish_limits).all()
    early = replace(instance, finish_limits=np.array([900.0, np.inf]))
    assert without_limits(early).weights.tolist() == [1.0, 1.0]
    assert without_limits(early, rho=0.5).weights.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("seed", range(4))
def test_a_round_of_gavels_is_a_window_of_one(seed: int) -> None:
    assignment = gavel_round(seed, num_jobs=12, num_types=1, pair_fraction=0.0)
    window, offset = from_round(assignment), float(assignment.priorities.sum())
    solution = formulations.solve(window)
    assert solution.objective + offset == pytest.approx(formulations.solve(assignment).objective)
    again = RoundAssignmentPlan(chosen=solution.plan.runs)
    assert assignment.violations(again) == []
    assert assignment.objective(again) == pytest.approx(solution.objective + offset)
    with pytest.raises(InstanceError, match="must be jobs alone"):
        from_round(gavel_round(seed, num_jobs=12))


def test_a_solver_with_the_released_binaries_finds_no_more() -> None:
    instance = generate(1, num_jobs=6, num_rounds=4, slack=None)
    model = formulations.build(instance)
    # As released: weights of the points, above 0 for two neighbours alone.
    points = range(len(instance.points))
    model.weight = pyo.Var(model.JOBS, points, bounds=(0, 1))
    model.near = pyo.Var(model.JOBS, points, domain=pyo.Binary)
    model.released = pyo.ConstraintList()
    for j in model.JOBS:
        weights = [model.weight[j, b] for b in points]
        progress = instance.epochs_done[j] + model.planned[j] / float(instance.epoch_durations[j])
        model.released.add(sum(weights) == 1)
        model.released.add(sum(model.near[j, b] for b in points) <= 2)
        at = sum(float(p) * weight for p, weight in zip(instance.points, weights, strict=True))
        model.released.add(at * float(instance.epochs[j]) == progress)
        log = sum(float(value) * weight for value, weight in zip(instance.logs, weights, strict=True))
        model.released.add(model.utility[j] == log)
        for b in points:
            model.released.add(model.weight[j, b] <= model.near[j, b])
            for far in range(b + 2, len(points)):
                model.released.add(model.near[j, b] + model.near[j, far] <= 1)
    model.logarithm.deactivate()
    released = formulations.solve(model)
    assert released.status == "optimal"
    assert released.objective == pytest.approx(formulations.solve(instance).objective, rel=1e-6)


@pytest.mark.parametrize("gap", [1e-3, 1e-2])
def test_a_solver_stopped_at_a_gap_loses_no_more(gap: float) -> None:
    instance = generate(2, num_jobs=8, num_rounds=6, slack=None)
    best = formulations.solve(instance).objective
    stopped = formulations.solve(instance, method="model", mip_gap=gap)
    assert best - gap * abs(stopped.objective) - 1e-9 <= stopped.objective <= best + 1e-9


def test_rules_name_what_is_broken() -> None:
    instance = limit_before_progress()
    broken = instance.violations(WindowPlan(runs=np.array([[True, False], [True, True]])))
    assert {(one.rule, one.index) for one in broken} == {("gpus", (0,)), ("finish_limit", (0,))}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs_done", np.array([11, 0])),
        ("points", np.array([0.0, 0.2, 0.2, 0.6, 0.8, 1.0])),
        ("points", np.array([0.1, 0.2, 0.4, 0.6, 0.8, 1.0])),
        ("least_progress", 0.15),
        ("least_progress", 2.0),
    ],
)
def test_what_means_nothing_is_refused(field: str, value: object) -> None:
    with pytest.raises(InstanceError, match=field):
        replace(turns(), **{field: value})


def test_why_no_plan_keeps_all_limits() -> None:
    late = replace(turns(), finish_limits=np.array([599.0, np.inf]))
    assert "job 0 finishes after its limit" in formulations.solve(late).message
    both = replace(turns(), finish_limits=np.array([600.0, 600.0]))
    assert "need 4 GPU-rounds, and there are 2" in formulations.solve(both).message


def test_values_do_not_depend_on_the_caller_s_decimals() -> None:
    whole = turns()
    with localcontext(prec=3):
        rounded = turns()
        reference = optimum(rounded)
        assert rounded.logs.tolist() == whole.logs.tolist()
    assert reference == optimum(whole)


def test_logarithms_are_those_of_the_points() -> None:
    assert turns().logs.tolist() == pytest.approx([math.log(1e-6), *map(math.log, (0.2, 0.4, 0.6, 0.8)), 0.0])


BY_REFERENCE = PROBLEMS["shockwave.window"]


def bound_by_gpu_rounds(instance: Window) -> float:
    return float(BY_REFERENCE.by_gpu_rounds(BY_REFERENCE.instance(parse(text_of(instance))), Counter()))


@settings(max_examples=150, deadline=None)
@given(strategy())
def test_no_plan_is_beyond_the_reference_s_bound(instance: Window) -> None:
    solution = formulations.solve(instance)
    bound = bound_by_gpu_rounds(instance)
    if solution.objective is not None:
        assert solution.objective <= bound + 1e-9 * max(1.0, abs(bound))
    if (instance.scale_factors == 1).all():
        # Then GPU-rounds are all that there is to it.
        assert bound == pytest.approx(-math.inf if solution.objective is None else solution.objective, abs=1e-9)


@pytest.mark.parametrize("penalty", [0.0, 1e-5, 1e-3])
@pytest.mark.parametrize("slack", [1.0, None])
def test_the_reference_s_bound_is_the_table_s(penalty: float, slack: float | None) -> None:
    instance = generate(5, num_jobs=25, num_rounds=12, slack=slack, remaining_penalty=penalty)
    assert bound_by_gpu_rounds(instance) == pytest.approx(Counts(instance).search()[0], rel=1e-12)


# --- real data ---

RATES = (
    "worker_type,model,scale_factor,throughput\n"
    "v100,bert,1,2.0\nv100,bert,2,4.0\nv100,vgg,1,0.5\nk80,bert,1,4.0\nk80,bert,2,4.0\nk80,vgg,1,0\n"
)
JOBS = "job_id,submit_time,num_gpus,steps,model\n0,0,1,2400,bert\n1,5,2,9600,bert\n2,7,1,50,vgg\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return a table of two types, on one of which a model does not run, and a trace of three jobs."""
    told = {"throughputs": tmp_path / "rates.csv", "trace": tmp_path / "jobs.csv"}
    told["throughputs"].write_text(RATES, encoding="utf-8")
    told["trace"].write_text(JOBS, encoding="utf-8")
    return told


def test_running_times_are_steps_over_throughputs(files: dict[str, Path]) -> None:
    instance = from_trace(0, **files, num_jobs=3, contention=1.0)
    # On the v100 s, as the other type does not run all jobs: 1200, 2400 and 100 s.
    assert (instance.epochs * instance.epoch_durations).tolist() == pytest.approx([1200, 2400, 100])
    assert instance.epochs.tolist() == [2, 4, 1]
    assert instance.scale_factors.tolist() == [1, 2, 1]
    assert instance.num_gpus == 4
    assert instance.origin is not None
    assert instance.origin["options"]["worker_type"] == "v100"
    assert from_trace(0, **files, num_jobs=3, num_gpus=7, epoch_seconds=100).epochs.tolist() == [12, 24, 1]


@pytest.mark.parametrize("seed", range(8))
def test_jobs_that_have_had_their_share_can_keep_their_limits(files: dict[str, Path], seed: int) -> None:
    instance = from_trace(seed, **files, num_jobs=3, slack=0.5, epoch_seconds=10)
    assert (instance.least_rounds <= instance.num_rounds).all()
    left = (instance.epochs - instance.epochs_done) * instance.epoch_durations
    assert (np.abs(instance.times_left - left) <= 0.2 * left + 0.1).all()
    assert np.isinf(from_trace(seed, **files, num_jobs=3, slack=None).finish_limits).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"worker_type": "k80"}, "worker_type: model 'vgg' with scale factor 1 does not run on k80"),
        ({"worker_type": "h100"}, "worker type 'h100': the table has only k80, v100"),
        ({"num_jobs": 0}, "num_jobs"),
        ({"epoch_seconds": 0}, "epoch_seconds"),
    ],
)
def test_what_cannot_be_read_is_refused(files: dict[str, Path], options: dict[str, Any], said: str) -> None:
    with pytest.raises(InstanceError, match=said):
        from_trace(0, **files, **{"num_jobs": 3, **options})


@pytest.mark.parametrize("trace", ["gavel/msr_seed0_0e4a51.trace", "gavel/max_min_fairness.trace"])
def test_jobs_of_gavel_s_traces(data: Path, trace: str) -> None:
    table = data / "gavel/simulation_throughputs.json"
    instance = from_trace(1, throughputs=table, trace=data / trace, num_jobs=12)
    assert instance.origin is not None
    rows = gavel.read_trace(data / trace).iloc[instance.origin["rows"]]
    assert instance.scale_factors.tolist() == rows["scale_factor"].tolist()
    rates = gavel.read_throughputs(table)
    alone = rates[(rates["partner_scale_factor"] == 0) & (rates["worker_type"] == "v100")]
    speed = alone.set_index(["model", "scale_factor"])["throughput"]
    expected = [
        steps / speed[kind]
        for steps, kind in zip(rows["steps"], zip(rows["model"], rows["scale_factor"], strict=True), strict=True)
    ]
    assert (instance.epochs * instance.epoch_durations).tolist() == pytest.approx(expected)
    assert formulations.solve(instance).status == "optimal"
