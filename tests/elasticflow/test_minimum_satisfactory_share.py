"""elasticflow.minimum_satisfactory_share: two models against each other, Figures 3 and 4."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
import instances
from formulations.elasticflow import minimum_satisfactory_share as models
from formulations.elasticflow import sharing
from formulations.methods import rounding
from heuristics.elasticflow.filling import fill_fewest, fill_job
from heuristics.elasticflow.minimum_satisfactory_share import (
    edf,
    local_search,
    progressive_filling,
    progressive_filling_cleared,
)
from instances import InstanceError
from instances.elasticflow.minimum_satisfactory_share import (
    MinimumSatisfactoryShare,
    diminishing_returns,
    generate,
    job_alone,
    job_in_company,
    turned_away,
    two_jobs,
)
from instances.elasticflow.sharing import SlotPlan

from ..effort import rounds


def solve_model(instance, build, **options):
    model = build(instance)
    model.instance = instance
    return formulations.solve(model, **options)


def outcome(solution):
    return solution.status, solution.objective


# --- the optimum ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("first", rounds(100)[::100])
def test_both_models_agree_on_concave_curves(brute, first):
    for seed in range(first, first + 100):
        instance = MinimumSatisfactoryShare(**brute.draw(seed, concave=True, max_jobs=5, max_gpus=6, max_slots=7))
        assert instance.concave
        aggregated = solve_model(instance, models.build_aggregated)
        assert outcome(aggregated) == outcome(solve_model(instance, models.build_time_indexed))
        assert outcome(aggregated) == outcome(formulations.solve(instance))
        if aggregated.plan is not None:
            assert instance.violations(aggregated.plan) == []


@pytest.mark.parametrize("curves", ["concave", "linear"])
def test_both_models_agree_on_generated_instances(curves):
    for seed in range(12):
        instance = generate(seed, num_jobs=5, num_gpus=8, horizon=8, tightness=0.5, curves=curves)
        aggregated = solve_model(instance, models.build_aggregated)
        assert outcome(aggregated) == outcome(solve_model(instance, models.build_time_indexed))


def test_size_of_the_aggregated_model_does_not_depend_on_the_horizon():
    near = generate(0, num_jobs=6, num_gpus=16, horizon=20)
    far = MinimumSatisfactoryShare(
        num_gpus=16, iterations=near.iterations, deadlines=20 * near.deadlines, throughputs=near.throughputs / 20
    )
    sizes = [len(models.build_aggregated(instance).gpu_slots) for instance in (near, far)]
    assert sizes[0] == sizes[1]
    assert len(models.build_time_indexed(far).chosen) > 10 * sizes[1]
    assert formulations.solve(far).status == "optimal"


def test_aggregated_model_refuses_curves_that_are_not_concave():
    """An even spread of two GPU-slots over two slots does nothing; both in one slot do the job."""
    instance = MinimumSatisfactoryShare(num_gpus=2, iterations=[1], deadlines=[2], throughputs=[[0, 0, 1]])
    assert not instance.concave
    with pytest.raises(ValueError, match="not concave"):
        models.build_aggregated(instance)
    assert formulations.solve(instance).objective == 2


def test_curves_may_fall_beyond_a_concave_peak():
    """On 3 and 4 GPUs the job is slower than on 2, so it is never given more."""
    instance = MinimumSatisfactoryShare(num_gpus=4, iterations=[7], deadlines=[3], throughputs=[[0, 2, 3, 1, 2]])
    assert instance.concave
    solution = formulations.solve(instance)
    assert solution.objective == 4
    assert solution.plan.gpus.max() == 2


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 8))
def test_spread_is_even_and_fits(gpu_slots, length):
    """The proof of the aggregated model: floor or ceiling for each job, and for all of them together."""
    spread = sharing.spread_evenly(np.array(gpu_slots), length)
    assert spread.sum(axis=1).tolist() == gpu_slots
    for row, total in zip(spread.tolist(), gpu_slots, strict=True):
        assert set(row) <= {total // length, -(-total // length)}
    assert spread.sum(axis=0).max() == -(-sum(gpu_slots) // length)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(1, 4), st.data())
def test_even_spread_does_most_for_a_concave_curve(steps, length, data):
    curve = np.concatenate([[0], np.cumsum(sorted(steps, reverse=True))])
    gpus = data.draw(st.lists(st.integers(0, len(steps)), min_size=length, max_size=length))
    even = sharing.spread_evenly(np.array([sum(gpus)]), length)[0]
    assert curve[even].sum() >= curve[gpus].sum()


# --- solving by rounding --------------------------------------------------------------------------


@pytest.mark.parametrize("concave", [True, False])
def test_shares_alone_are_optima_of_single_jobs(brute, concave):
    for seed in rounds(30):
        instance = MinimumSatisfactoryShare(**brute.draw(seed, concave=concave))
        for job, share in enumerate(sharing.shares_alone(instance).tolist()):
            alone = MinimumSatisfactoryShare(
                num_gpus=instance.num_gpus,
                iterations=instance.iterations[[job]],
                deadlines=instance.deadlines[[job]],
                throughputs=instance.throughputs[[job]],
            )
            least = brute.least_gpu_time(alone)
            fastest = int(instance.throughputs[job].argmax())
            assert share == (fastest * instance.deadlines[job] if least is None else least)


def test_shares_alone_close_instances_slot_by_slot():
    """The rows lift the relaxation: they are what rounding to whole GPUs costs each job."""
    instance = generate(0, num_jobs=10, num_gpus=16, horizon=20, tightness=0.4, curves="measured")
    model = models.build_time_indexed(instance)
    for variable in model.chosen.values():
        variable.domain = pyo.UnitInterval
    lifted = formulations.solve(model).bound
    assert lifted == pytest.approx(sharing.shares_alone(instance).sum())
    model.alone.deactivate()
    assert formulations.solve(model).bound < lifted - 1
    assert lifted - 1e-6 <= formulations.solve(instance).objective


def test_rounding_gives_a_valid_bound_at_every_stage(monkeypatch, brute):
    """Without neighbourhoods, and without any search at all, bounds stay below the optimum and plans above."""
    for seed in range(20):
        instance = generate(seed, num_jobs=6, num_gpus=8, horizon=12, tightness=0.45)
        exact = formulations.solve(instance)
        loose = formulations.solve(instance, mip_gap=1.0)
        monkeypatch.setattr(rounding, "NEIGHBOURHOODS", ())
        searched = formulations.solve(instance)
        monkeypatch.undo()
        assert outcome(searched) == outcome(exact)
        if exact.status == "optimal":
            assert loose.bound <= exact.objective <= loose.objective
            assert loose.status in ("optimal", "feasible")
        else:
            assert loose.status == exact.status == "infeasible"


def test_time_limit_never_shows_an_unproven_optimum():
    """An instance whose last GPU-slot takes more than ten seconds to prove."""
    instance = generate(0, num_jobs=20, num_gpus=32, horizon=1000, tightness=0.5)
    best = formulations.solve(instance, mip_gap=1e-3)
    assert best.gap <= 1e-3
    for limit in (1e-3, 0.2):
        stopped = formulations.solve(instance, time_limit=limit)
        assert stopped.status in ("unknown", "feasible")
        assert stopped.bound <= best.objective
        if stopped.plan is not None:
            assert instance.violations(stopped.plan) == []
            assert best.bound <= stopped.objective


def test_rounding_on_many_slots():
    """Far beyond enumeration, the bound meets the plan, and the plan is one slot by slot."""
    for seed in range(3):
        instance = generate(seed, num_jobs=20, num_gpus=32, horizon=1000, tightness=0.3)
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.plan.gpus.shape == (20, instance.horizon)
        assert instance.violations(solution.plan) == []
        filled = progressive_filling(instance)
        assert filled is not None
        assert solution.objective <= instance.objective(filled)


def test_users_add_constraints():
    instance = job_alone()
    model = formulations.build(instance)
    model.at_most_three = pyo.Constraint(expr=sum(model.gpu_slots[i, k, s] for i, k, s in model.gpu_slots) <= 3)
    assert formulations.solve(model).status == "infeasible"


def test_infeasible_sets_are_explained():
    explanation = formulations.explain(
        MinimumSatisfactoryShare(num_gpus=1, iterations=[1, 1], deadlines=[1, 1], throughputs=[[0, 1], [0, 1]])
    )
    assert not explanation.feasible
    assert set(explanation.constraints) == {"work[0]", "work[1]", "capacity[0]"}


# --- the paper's examples -------------------------------------------------------------------------


def test_figure_3():
    instance = two_jobs()
    late = edf(instance)
    # Job 0 is done after two units of time (4 slots), job 1 half a unit after its deadline.
    assert late.gpus.tolist() == [[2, 2, 2, 2, 0, 0, 0], [0, 0, 0, 0, 2, 2, 2]]
    assert [(v.rule, v.index) for v in instance.violations(late)] == [("work", (1,))]
    filled = progressive_filling(instance)
    assert filled is not None
    assert instance.violations(filled) == []
    assert filled.gpus.max() == 1
    assert formulations.solve(instance).objective == instance.objective(filled) == 12


def test_figure_4():
    """Job C takes 4 GPU-slots alone and 5 in company."""
    alone, company = job_alone(), job_in_company()
    for instance, rows in ((alone, [[2, 2]]), (company, [[1, 0], [2, 0], [1, 4]])):
        filled = progressive_filling(instance)
        assert filled is not None
        assert filled.gpus.tolist() == rows
        assert progressive_filling(instance, powers_of_two=True) == filled
        assert instance.violations(filled) == []
        for solution in (
            formulations.solve(instance),
            solve_model(instance, models.build_time_indexed),
            solve_model(instance, models.build_aggregated),
        ):
            assert solution.status == "optimal"
            assert solution.plan.gpus[-1].sum() == sum(rows[-1])
            assert solution.objective == sum(map(sum, rows))


def test_as_printed_slots_up_to_the_deadline():
    """Summed up to slot D, as printed, job C would need only 3 GPU-slots: one GPU for three slots."""
    built = job_alone()
    printed = MinimumSatisfactoryShare(
        num_gpus=4, iterations=built.iterations, deadlines=built.deadlines + 1, throughputs=built.throughputs
    )
    assert formulations.solve(built).objective == 4
    assert formulations.solve(printed).objective == 3


def test_algorithm_1_turns_a_feasible_set_away(brute):
    instance = turned_away()
    assert instance.concave
    assert instance.faster.all()
    assert progressive_filling(instance) is None
    assert brute.least_gpu_time(instance) == 6
    assert formulations.solve(instance).objective == 6


@pytest.mark.parametrize(("deadline", "gpus", "gpu_slots"), [(6, 1, 6), (4, 2, 8), (3, 4, 12)])
def test_gpu_time_of_section_4_1(deadline, gpus, gpu_slots):
    """1, 4/3 and 2 units of GPU time on 1, 2 and 4 GPUs, in 1, 2/3 and 1/2 of a unit of time."""
    instance = diminishing_returns(deadline)
    time = instance.iterations[0] / instance.throughputs[0, gpus]
    assert time == deadline
    assert (gpus * time, time / 6) == (gpu_slots, {1: 1, 2: 2 / 3, 4: 1 / 2}[gpus])
    assert formulations.solve(instance).objective == gpu_slots
    assert progressive_filling(instance).gpus.tolist() == [[gpus] * deadline]
    # One GPU fewer is too slow.
    assert gpus == 1 or instance.throughputs[0, gpus - 1] * deadline < instance.iterations[0]


def test_levels_of_figure_4():
    """Level 2 does T(1) + T(2) = 2.5 of the 3 iterations, level 4 does T(1) + T(4) = 3; in between, 2.75."""
    curve = job_in_company().throughputs[2]
    free = np.array([1, 4])
    sums = {level: curve[np.minimum(level, free)].sum() for level in (1, 2, 3, 4)}
    assert sums == {1: 2, 2: 2.5, 3: 2.75, 4: 3}
    assert fill_job(curve, 3.0, free).tolist() == [1, 4]
    assert fill_job(curve, 2.5, free).tolist() == [1, 2]


# --- heuristics -----------------------------------------------------------------------------------


def naive_progressive_filling(instance, powers_of_two=False):
    """Algorithm 1 in fractions, line by line; only a job without iterations holds nothing, not even one GPU."""
    gpus = [[0] * instance.horizon for _ in range(instance.num_jobs)]
    for job in sorted(range(instance.num_jobs), key=lambda i: (instance.deadlines[i], i)):
        curve = [Fraction(t) for t in instance.throughputs[job].tolist()]
        need = Fraction(float(instance.iterations[job]))
        satisfied = need == 0
        for level in range(1, instance.num_gpus + 1):
            if satisfied:
                break
            if powers_of_two and level & (level - 1):
                continue
            for slot in reversed(range(int(instance.deadlines[job]))):
                taken = min(level, instance.num_gpus - sum(row[slot] for row in gpus) + gpus[job][slot])
                while powers_of_two and taken & (taken - 1):
                    taken -= 1
                gpus[job][slot] = taken
                if sum(curve[x] for x in gpus[job]) >= need:
                    satisfied = True
                    break
        if not satisfied:
            return None
    return gpus


def naive_cleared_filling(instance):
    """The same, but every level begins with empty slots."""
    gpus = [[0] * instance.horizon for _ in range(instance.num_jobs)]
    for job in sorted(range(instance.num_jobs), key=lambda i: (instance.deadlines[i], i)):
        curve = [Fraction(t) for t in instance.throughputs[job].tolist()]
        need = Fraction(float(instance.iterations[job]))
        for level in range(instance.num_gpus + 1):
            taken, done = [0] * instance.horizon, Fraction(0)
            for slot in reversed(range(int(instance.deadlines[job]))):
                if done >= need:
                    break
                taken[slot] = min(level, instance.num_gpus - sum(row[slot] for row in gpus))
                done += curve[taken[slot]]
            if done >= need:
                gpus[job] = taken
                break
        else:
            return None
    return gpus


def naive_edf(instance):
    """Slot by slot: every unfinished job, by deadline, takes one GPU after another while it gets no slower."""
    gpus = [[0] * instance.horizon for _ in range(instance.num_jobs)]
    left = [float(m) for m in instance.iterations]
    for slot in range(instance.horizon):
        free = instance.num_gpus
        for job in sorted(range(instance.num_jobs), key=lambda i: (instance.deadlines[i], i)):
            if left[job] > 0 and slot < instance.deadlines[job]:
                curve = instance.throughputs[job].tolist()
                taken = 0
                while taken < free and curve[taken + 1] >= curve[taken]:
                    taken += 1
                gpus[job][slot] = taken
                free -= taken
                left[job] -= curve[taken]
    return gpus


@pytest.mark.parametrize("powers_of_two", [False, True])
def test_progressive_filling_follows_algorithm_1(brute, powers_of_two):
    for seed in rounds(130):
        instance = MinimumSatisfactoryShare(**brute.draw(seed, max_gpus=7, max_slots=6))
        filled = progressive_filling(instance, powers_of_two=powers_of_two)
        expected = naive_progressive_filling(instance, powers_of_two)
        assert (None if filled is None else filled.gpus.tolist()) == expected
        if filled is not None:
            assert instance.violations(filled) == []
            assert not powers_of_two or not (filled.gpus & (filled.gpus - 1)).any()


def test_cleared_filling_follows_its_definition(brute):
    for seed in rounds(100):
        instance = MinimumSatisfactoryShare(**brute.draw(seed, max_gpus=7, max_slots=6))
        filled = progressive_filling_cleared(instance)
        assert (None if filled is None else filled.gpus.tolist()) == naive_cleared_filling(instance)


def test_levels_are_not_cleared():
    """5 iterations at 2 and 3 per slot: the slot nearer the deadline holds the last level, the other the one before."""
    instance = MinimumSatisfactoryShare(num_gpus=2, iterations=[5], deadlines=[2], throughputs=[[0, 2, 3]])
    assert progressive_filling(instance).gpus.tolist() == [[1, 2]]
    assert progressive_filling_cleared(instance).gpus.tolist() == [[2, 2]]


def test_a_job_alone_holds_the_least_gpu_time(brute):
    """Algorithm 1 takes the steepest steps of a concave curve first, whatever the jobs before have left."""
    for seed in rounds(100):
        fields = brute.draw(seed, concave=True, max_jobs=1, max_gpus=4, max_slots=4)
        curve, need = fields["throughputs"][0], float(fields["iterations"][0])
        free = np.random.default_rng(seed).integers(0, fields["num_gpus"] + 1, int(fields["deadlines"][0]))
        runs = product(*(range(g + 1) for g in free.tolist()))
        least = min((sum(run) for run in runs if sum(curve[g] for g in run) >= need), default=None)
        filled = fill_job(curve, need, free)
        assert (None if filled is None else filled.sum()) == least
        assert filled is None or (filled <= free).all()


def test_linear_curves_get_a_plan_of_the_least_gpu_time(brute):
    """Each job holds as few GPU-slots as it can, and which of its slots they are in matters to no later job."""
    both = set()
    for seed in rounds(100):
        instance = MinimumSatisfactoryShare(**brute.linear(seed)[0])
        filled = progressive_filling(instance)
        assert (None if filled is None else filled.gpus.sum()) == brute.least_gpu_time(instance)
        both.add(filled is None)
    assert both == {True, False}


def test_powers_of_two_round_min_down():
    """Three GPUs are free; a job that runs on powers of two can take only two of them."""
    instance = MinimumSatisfactoryShare(
        num_gpus=4, iterations=[1, 3], deadlines=[1, 1], throughputs=[[0, 1, 1, 1, 1], [0, 1, 2, 3, 4]]
    )
    whole = progressive_filling(instance)
    assert whole is not None
    assert whole.gpus.tolist() == [[1], [3]]
    assert progressive_filling(instance, powers_of_two=True) is None


def test_edf_follows_its_definition(brute):
    for seed in rounds(100):
        instance = MinimumSatisfactoryShare(**brute.draw(seed, max_gpus=5, max_slots=5))
        assert edf(instance).gpus.tolist() == naive_edf(instance)


def test_edf_breaks_no_rule_but_deadlines(brute):
    for seed in rounds(70):
        instance = MinimumSatisfactoryShare(**brute.draw(seed))
        assert {violation.rule for violation in instance.violations(edf(instance))} <= {"work"}


def test_theorem_1_is_exact_for_linear_curves_in_algorithm_1(brute):
    """With linear curves of one unit per GPU, Algorithm 1 finds a plan whenever the jobs fit by deadline."""
    for seed in rounds(70):
        rng = np.random.default_rng(seed)
        n, num_gpus = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        deadlines = rng.integers(1, 4, n)
        iterations = rng.integers(0, num_gpus * deadlines + 1)
        instance = MinimumSatisfactoryShare(
            num_gpus=num_gpus,
            iterations=iterations,
            deadlines=deadlines,
            throughputs=np.tile(np.arange(num_gpus + 1.0), (n, 1)),
        )
        fits = all(iterations[deadlines <= d].sum() <= num_gpus * d for d in deadlines)
        assert (brute.least_gpu_time(instance) is not None) == fits


def test_edf_scales_out_until_throughput_falls():
    """A third GPU makes the job no faster and no slower, a fourth makes it slower."""
    instance = MinimumSatisfactoryShare(num_gpus=4, iterations=[2], deadlines=[1], throughputs=[[0, 1, 2, 2, 1]])
    assert edf(instance).gpus.tolist() == [[3]]


# --- nothing to do, and too much -------------------------------------------------------------------


def test_a_finished_job_needs_nothing():
    instance = MinimumSatisfactoryShare(
        num_gpus=1, iterations=[0, 2, 0], deadlines=[1, 2, 2], throughputs=[[0, 1], [0, 1], [0, 0]]
    )
    solution = formulations.solve(instance)
    assert (solution.status, solution.objective) == ("optimal", 2)
    for plan in (solution.plan, progressive_filling(instance), progressive_filling_cleared(instance), edf(instance)):
        assert plan.gpus.tolist() == [[0, 0], [1, 1], [0, 0]]
        assert instance.violations(plan) == []


@pytest.mark.parametrize(
    ("iterations", "curve", "why"),
    [
        (5.0, [0, 1, 2], "job 0 needs 5 GPU-slots before slot 2, there are 4"),
        (1.0, [0, 0, 0], "job 0 needs 1 GPU-slot"),
    ],
)
def test_too_much_work_has_no_plan(iterations, curve, why):
    """More than the cluster does by the deadline, and a job that can never run."""
    instance = MinimumSatisfactoryShare(num_gpus=2, iterations=[iterations], deadlines=[2], throughputs=[curve])
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert why in solution.message
    assert solution.proof
    assert progressive_filling(instance) is None
    assert progressive_filling_cleared(instance) is None
    assert [violation.rule for violation in instance.violations(edf(instance))] == ["work"]


# --- instances ------------------------------------------------------------------------------------


def test_value_and_rules_by_hand():
    instance = job_in_company()
    plan = SlotPlan(gpus=[[1, 1], [2, 0], [2, 2]])
    assert instance.objective(plan) == 8
    broken = {(v.rule, v.index): v.amount for v in instance.violations(plan)}
    assert broken == {("capacity", (0,)): 1, ("after_deadline", (0, 1)): 1}
    short = SlotPlan(gpus=[[0, 0], [2, 0], [-1, 4]])
    broken = {(v.rule, v.index): v.amount for v in instance.violations(short)}
    assert broken == {("gpus_nonnegative", (2, 0)): 1, ("work", (0,)): 1, ("work", (2,)): 1}


def test_work_after_the_deadline_does_not_count():
    instance = MinimumSatisfactoryShare(num_gpus=1, iterations=[2, 1], deadlines=[1, 2], throughputs=[[0, 1], [0, 1]])
    assert instance.work(np.array([[1, 1], [0, 0]])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_gpus", 3, r"throughputs: got 5 columns, must be num_gpus \+ 1, 4"),
        ("throughputs", [[1.0, 1, 1, 1, 1]], r"got 1 at index \[0, 0\], must be 0"),
    ],
)
def test_bad_fields_are_named(field, value, message):
    data = {**job_alone().to_dict(), field: value}
    with pytest.raises(InstanceError, match=message) as error:
        instances.read(data)
    assert "MinimumSatisfactoryShare." in str(error.value)


@pytest.mark.slow
def test_the_generator_obeys_its_dial():
    statuses = [
        [formulations.solve(generate(seed, tightness=tightness)).status for seed in range(20)]
        for tightness in (0.2, 0.45, 1.05)
    ]
    counts = [row.count("optimal") for row in statuses]
    assert counts[0] > counts[1] > counts[2] == 0


@pytest.mark.parametrize("curves", ["concave", "linear", "measured"])
def test_generated_curves(curves):
    instances_ = [generate(seed, curves=curves, num_gpus=12) for seed in range(10)]
    assert [instance.concave for instance in instances_] == [curves != "measured"] * 10
    for instance in instances_:
        assert (instance.deadlines <= 20).all()
        assert all(a <= b for a, b in pairwise(instance.best_throughputs[0].tolist()))


# --- other orders ---------------------------------------------------------------------------------


def test_a_job_takes_the_fewest_gpu_slots_on_any_curve():
    """Against all numbers of GPUs in all slots."""
    rng = np.random.default_rng(4)
    for _ in rounds(60):
        num_gpus, slots = int(rng.integers(1, 5)), int(rng.integers(1, 4))
        curve = np.append(0, rng.integers(0, 9, num_gpus)).astype(float)
        free = rng.integers(0, num_gpus + 1, slots)
        instance = MinimumSatisfactoryShare(
            num_gpus=num_gpus, iterations=[float(rng.integers(0, 20))], deadlines=[slots], throughputs=[curve]
        )
        counts = list(product(*(range(left + 1) for left in free)))
        enough = [sum(held) for held in counts if sum(curve[list(held)]) >= instance.iterations[0]]
        held = fill_fewest(instance, 0, free)
        assert (held is None) == (not enough)
        if held is not None:
            assert (held <= free).all()
            assert curve[held].sum() >= instance.iterations[0]
            assert held.sum() == min(enough)


def test_local_search_finds_what_algorithm_1_does_not():
    assert progressive_filling(turned_away()) is None
    assert turned_away().objective(local_search(turned_away())) == 6
    found = better = 0
    for seed in range(12):
        instance = generate(seed, num_jobs=6, num_gpus=8, horizon=8, curves="measured", tightness=0.5)
        solution, first, plan = formulations.solve(instance), progressive_filling(instance), local_search(instance)
        if plan is None:
            assert first is None
            continue
        found += 1
        assert not instance.violations(plan)
        assert solution.objective <= instance.objective(plan) <= 1.05 * solution.objective
        if first is not None:
            assert instance.objective(plan) <= instance.objective(first)
            better += instance.objective(plan) < instance.objective(first)
    assert found >= 8
    assert better >= 3


def test_local_search_fills_jobs_together():
    """No order of the jobs comes near where each needs what the others leave it in a few slots."""
    gaps = []
    for seed in range(30):
        instance = generate(seed, tightness=0.5)
        solution, plan = formulations.solve(instance), local_search(instance)
        if solution.plan is not None:
            assert plan is not None
            gaps.append(instance.objective(plan) / solution.objective - 1)
    assert len(gaps) >= 8
    assert max(gaps) <= 0.03
    assert sum(gaps) <= 0.005 * len(gaps)


def test_local_search_exchanges_in_pairs():
    """The orders that are tried within the budget leave something; two jobs filled anew take fewer GPU-slots."""
    instance = generate(0, num_jobs=12, num_gpus=16, curves="measured", tightness=0.5)
    first, then = (instance.objective(local_search(instance, budget=budget)) for budget in (0, 60))
    assert then < first
    assert instance.objective(local_search(instance)) == formulations.solve(instance).objective
