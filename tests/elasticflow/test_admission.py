"""elasticflow.admission: two models, Theorem 1, and one job at a time."""

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
import instances
from formulations.elasticflow import admission as models
from heuristics.elasticflow import admission as heuristics
from instances import InstanceError
from instances.elasticflow.admission import Admission, AdmissionPlan, generate, greedy_arrival
from instances.elasticflow.minimum_satisfactory_share import turned_away

from ..effort import rounds

ALWAYS_FEASIBLE = [
    heuristics.progressive_filling,
    heuristics.edf,
    heuristics.edf_with_admission,
    heuristics.edf_with_elastic_scaling,
    heuristics.local_search,
]
HEURISTICS = [*ALWAYS_FEASIBLE, heuristics.edf_condition]


def small(brute, seed, **options):
    fields = brute.draw(seed, **options)
    order = np.random.default_rng(seed).permutation(len(fields["iterations"]))
    return Admission(**fields, arrival_order=order)


def linear(brute, seed):
    fields, rng = brute.linear(seed)
    return Admission(**fields, arrival_order=rng.permutation(len(fields["deadlines"])))


def one_at_a_time(brute, instance):
    """Jobs admitted in order of arrival if they can really finish beside those before them."""
    admitted = []
    for job in instance.arrival_order.tolist():
        if brute.can_finish(instance, [*admitted, job]):
            admitted.append(job)
    return sorted(admitted)


def test_both_models_agree_on_concave_curves(brute):
    for seed in rounds(40):
        instance = small(brute, seed, concave=True, max_jobs=5, max_gpus=5, max_slots=5)
        values = []
        for build in (models.build_aggregated, models.build_time_indexed):
            model = build(instance)
            model.instance = instance
            solution = formulations.solve(model)
            assert solution.status == "optimal"
            assert instance.violations(solution.plan) == []
            values.append(solution.objective)
        assert values[0] == values[1]


@pytest.mark.slow
def test_shares_alone_change_no_optimum(brute):
    """With the rows and without, on curves that need the model slot by slot; they lift the relaxation."""
    lifted = 0
    for seed in range(120):
        instance = small(brute, seed, max_jobs=5, max_gpus=5, max_slots=5)
        model = models.build_time_indexed(instance)
        optimum = formulations.solve(model).objective
        relaxed = [relaxation(model)]
        model.alone.deactivate()
        assert formulations.solve(model).objective == optimum
        relaxed.append(relaxation(model))
        assert optimum - 1e-6 <= relaxed[0] <= relaxed[1] + 1e-6
        lifted += relaxed[0] < relaxed[1] - 1e-3
    assert lifted > 20


def relaxation(model):
    relaxed = pyo.TransformationFactory("core.relax_integer_vars").create_using(model)
    return formulations.solve(relaxed).bound


def test_a_start_holds_no_gpus_that_do_not_help():
    """On 3 GPUs the job is as fast as on 2, so the model has no choice of 3."""
    instance = Admission(num_gpus=3, iterations=[4], deadlines=[2], throughputs=[[0, 1, 2, 2]], arrival_order=[0])
    plan = AdmissionPlan(admitted=[True], gpus=[[3, 3]])
    assert instance.violations(plan) == []
    model = models.build_time_indexed(instance)
    models.write(model, plan)
    assert models.read(model).gpus.tolist() == [[2, 2]]
    assert formulations.solve(instance, start=plan).objective == 1


def test_twenty_jobs():
    instance = generate(0, num_jobs=20)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert instance.objective(heuristics.progressive_filling(instance)) <= solution.objective


def test_order_of_arrival_matters():
    instance = greedy_arrival()
    assert formulations.solve(instance).objective == 2
    admitted = heuristics.progressive_filling(instance)
    assert admitted.admitted.tolist() == [True, False, False]
    later = Admission.from_dict({**instance.to_dict(), "arrival_order": [1, 0, 2]})
    assert heuristics.progressive_filling(later).admitted.tolist() == [False, True, True]


def test_algorithm_1_turns_away_a_job_that_could_be_admitted(brute):
    """The jobs of ``turned_away``: all can be admitted, Algorithm 1 admits the first two only."""
    instance = Admission(**{**fields_of(turned_away()), "arrival_order": [0, 1, 2]})
    assert heuristics.progressive_filling(instance).admitted.tolist() == [True, True, False]
    assert one_at_a_time(brute, instance) == [0, 1, 2]
    assert formulations.solve(instance).objective == 3


def fields_of(instance):
    return {name: getattr(instance, name) for name in ("num_gpus", "iterations", "deadlines", "throughputs")}


def test_ablations_of_figure_9():
    """A hopeless job, one that needs elastic shares, and one for the rest."""
    instance = Admission(
        num_gpus=2,
        iterations=[9, 4, 4],
        deadlines=[2, 4, 4],
        throughputs=[[0, 1, 2], [0, 1, 1.5], [0, 1, 1.5]],
        arrival_order=[0, 1, 2],
    )
    # The hopeless job holds both GPUs until its deadline; two slots are then too few for either.
    assert heuristics.edf(instance).admitted.tolist() == [False, False, False]
    assert heuristics.edf_with_elastic_scaling(instance).admitted.tolist() == [False, False, False]
    # Without it, EDF gives job 1 both GPUs for three slots, and elastic shares give both jobs one.
    assert heuristics.edf_with_admission(instance).admitted.tolist() == [False, True, False]
    assert heuristics.progressive_filling(instance).admitted.tolist() == [False, True, True]
    served = Admission.from_dict({**instance.to_dict(), "iterations": [0, 4, 4]})
    assert heuristics.edf(served).admitted.tolist() == [True, True, False]
    assert heuristics.edf_with_elastic_scaling(served).admitted.tolist() == [True, True, True]


def test_finished_and_hopeless_jobs():
    """A finished job is admitted by all, without a GPU; one with too much to do by none."""
    instance = Admission(
        num_gpus=2,
        iterations=[0, 100, 0],
        deadlines=[1, 2, 3],
        throughputs=[[0, 1, 2], [0, 1, 2], [0, 0, 0]],
        arrival_order=[1, 0, 2],
    )
    solution = formulations.solve(instance)
    assert (solution.status, solution.objective) == ("optimal", 2)
    for plan in (solution.plan, *(heuristic(instance) for heuristic in HEURISTICS)):
        assert plan.admitted.tolist() == [True, False, True]
        assert not plan.gpus.any()


def test_cluster_efficiency():
    """(8): three GPUs of four are held, by a linear job on two and a job on one; a third job waits."""
    instance = Admission(
        num_gpus=4,
        iterations=[1, 1, 1],
        deadlines=[1, 1, 1],
        throughputs=[[0, 2, 4, 6, 8], [0, 3, 4, 4, 4], [0, 0, 1, 1, 1]],
        arrival_order=[0, 1, 2],
    )
    assert instance.cluster_efficiency(np.array([2, 1, 0])) == 3 / 4
    assert instance.cluster_efficiency(np.array([0, 3, 0])) == (4 / 3) / 4
    # To the letter every GPU counts with its job's whole throughput.
    assert instance.cluster_efficiency(np.array([4, 0, 0])) == 1
    assert instance.cluster_efficiency(np.array([4, 0, 0]), whole_job=True) == 4
    assert instance.cluster_efficiency(np.array([0, 0, 2])) == 0


def test_theorem_1_on_linear_curves(brute):
    """The condition in whole GPU-slots holds exactly when the jobs can finish."""
    both = set()
    for seed in rounds(100):
        instance = linear(brute, seed)
        whole = np.ceil(heuristics.gpu_times(instance))
        fits = heuristics.meets_edf_condition(whole, instance.deadlines, instance.num_gpus)
        assert fits == brute.can_finish(instance, range(instance.num_jobs))
        both.add(fits)
    assert both == {True, False}


def test_as_printed_theorem_1_in_parts_of_gpu_slots(brute):
    """Three jobs of 2/3 GPU-slot fit into two GPUs for a slot as printed, but each needs a GPU for itself."""
    instance = Admission(
        num_gpus=2,
        iterations=[2, 2, 2],
        deadlines=[1, 1, 1],
        throughputs=[[0, 3, 6]] * 3,
        arrival_order=[0, 1, 2],
    )
    times = heuristics.gpu_times(instance)
    assert heuristics.meets_edf_condition(times, instance.deadlines, instance.num_gpus)
    assert not heuristics.meets_edf_condition(np.ceil(times), instance.deadlines, instance.num_gpus)
    assert not brute.can_finish(instance, [0, 1, 2])
    assert heuristics.edf_condition(instance).admitted.tolist() == [True, True, False]


def test_edf_condition_admits_whom_it_should_on_linear_curves(brute):
    for seed in rounds(100):
        instance = linear(brute, seed)
        plan = heuristics.edf_condition(instance)
        assert instance.violations(plan) == []
        assert np.flatnonzero(plan.admitted).tolist() == one_at_a_time(brute, instance)


def test_edf_condition_promises_too_much_on_other_curves():
    instance = Admission(num_gpus=2, iterations=[4], deadlines=[2], throughputs=[[0, 1, 1]], arrival_order=[0])
    plan = heuristics.edf_condition(instance)
    assert plan.admitted.tolist() == [True]
    assert [(v.rule, v.index, v.amount) for v in instance.violations(plan)] == [("work", (0,), 2.0)]


def test_edf_without_admission_serves_late_jobs():
    """Job 0 is hopeless, holds the GPU until its deadline, and makes job 1 late."""
    instance = Admission(
        num_gpus=1, iterations=[3, 1], deadlines=[2, 2], throughputs=[[0, 1], [0, 1]], arrival_order=[0, 1]
    )
    assert heuristics.edf(instance).admitted.tolist() == [False, False]
    assert heuristics.edf_with_admission(instance).admitted.tolist() == [False, True]


@given(st.integers(0, 10_000))
def test_progressive_filling_turns_away_only_what_algorithm_1_cannot_place(brute, seed):
    """Every job turned away would have made Algorithm 1 fail with those admitted before it."""
    from heuristics.elasticflow.minimum_satisfactory_share import progressive_filling
    from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare

    instance = small(brute, seed)
    plan = heuristics.progressive_filling(instance)
    before = []
    for job in instance.arrival_order.tolist():
        some = sorted([*before, job])
        fields = {name: getattr(instance, name)[some] for name in ("iterations", "deadlines", "throughputs")}
        filled = progressive_filling(MinimumSatisfactoryShare(num_gpus=instance.num_gpus, **fields))
        assert plan.admitted[job] == (filled is not None)
        if filled is not None:
            before = some
            gpus = filled.gpus
    if before:
        assert np.array_equal(plan.gpus[before, : gpus.shape[1]], gpus)


def test_value_and_rules_by_hand():
    instance = greedy_arrival()
    plan = AdmissionPlan(admitted=[True, False, True], gpus=[[1, 0], [0, 1], [0, 1]])
    assert instance.objective(plan) == 2
    broken = {(v.rule, v.index): v.amount for v in instance.violations(plan)}
    assert broken == {("work", (0,)): 1, ("capacity", (1,)): 1, ("not_admitted", (1,)): 1}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("arrival_order", [0, 1], r"Admission.arrival_order: got \[0, 1\], must be each job from 0 to 2 once"),
        ("arrival_order", [0, 1, 1], "must be each job from 0 to 2 once"),
    ],
)
def test_bad_fields_are_named(field, value, message):
    with pytest.raises(InstanceError, match=message):
        instances.read({**greedy_arrival().to_dict(), field: value})


@pytest.mark.slow
def test_the_generator_obeys_its_dial():
    most = [
        sum(formulations.solve(generate(seed, tightness=tightness)).objective for seed in range(10))
        for tightness in (0.2, 1.0, 3.0)
    ]
    assert most[0] == 100 > most[1] > most[2]


@pytest.mark.parametrize("how", ["aggregated", "slot by slot"])
@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_work_of_a_millionth_of_a_slot_takes_a_slot(brute, solver, how):
    """Three jobs for one GPU and two slots: next to nothing to do, but more than nothing."""
    if solver == "scip":
        pytest.importorskip("pyscipopt")
    for part in (1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-3):
        for scale in (1e3, 1e6, 1e9):
            curve = [0, 1, 1] if how == "aggregated" else [0, 0, 1]
            instance = Admission(
                num_gpus=2 if how == "slot by slot" else 1,
                iterations=np.full(3, part * scale),
                deadlines=np.full(3, 2),
                throughputs=np.tile(np.array(curve[: 2 if how == "aggregated" else 3]) * scale, (3, 1)),
                arrival_order=np.arange(3),
            )
            assert instance.concave == (how == "aggregated")
            solution = formulations.solve(instance, solver=solver)
            assert (solution.status, solution.objective, solution.bound) == ("optimal", 2, pytest.approx(2))
            assert (instance.work(solution.plan.gpus)[solution.plan.admitted] >= part * scale).all()


def test_local_search_looks_at_all_jobs(brute):
    assert heuristics.local_search(greedy_arrival()).admitted.tolist() == [False, True, True]
    # Algorithm 1 finds no level for the last job, which a new order does.
    instance = Admission(**{**fields_of(turned_away()), "arrival_order": [0, 1, 2]})
    assert heuristics.local_search(instance).admitted.all()
    more, optimal = 0, 0
    for seed in range(20):
        instance = small(brute, seed, concave=True, max_jobs=5, max_gpus=5, max_slots=5)
        admitted = heuristics.local_search(instance).admitted.sum()
        assert heuristics.local_search(instance, budget=0).admitted.sum() <= admitted
        more += admitted - heuristics.progressive_filling(instance).admitted.sum()
        optimal += admitted == formulations.solve(instance).objective
    assert more > 0
    assert optimal >= 18


def test_one_job_goes_out_for_two():
    """The smallest job takes the slot before which both others are due; without it they share two GPUs."""
    instance = Admission(
        num_gpus=2,
        iterations=[2, 3, 3],
        deadlines=[1, 2, 2],
        throughputs=[[0, 1, 2], [0, 1.5, 2], [0, 1.5, 2]],
        arrival_order=[0, 1, 2],
    )
    assert heuristics.local_search(instance, budget=0).admitted.tolist() == [True, False, False]
    assert heuristics.local_search(instance).admitted.tolist() == [False, True, True]
