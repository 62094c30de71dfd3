"""aryl.elastic_allocation: its core, its own relaxation, and the heuristics against their definitions in fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
from formulations.methods.core import CORE
from heuristics.aryl import elastic_allocation as heuristics
from instances import InstanceError, PlanError
from instances.aryl.elastic_allocation import (
    ElasticAllocation,
    ElasticAllocationPlan,
    figure_6,
    from_trace,
    generate,
    heterogeneous_training,
    imperfect_scaling,
    indivisible_workers,
    mispredicted,
    normalised_capacity,
    table_10,
    two_elastic_jobs,
)

from ..second_opinion import optimum

HEURISTICS = [
    heuristics.dynamic_program,
    heuristics.base_charged_again,
    heuristics.marginal_greedy,
    heuristics.afs,
    heuristics.gandiva,
]


def small(seed, tables=False):
    """A few jobs with whole running times, some of them rigid, some alike."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    least, extra = rng.integers(1, 4, n), rng.integers(0, 4, n)
    times = rng.integers(1, 30, n).astype(float)
    if n > 1 and rng.random() < 0.3:
        least[1], extra[1], times[1] = least[0], extra[0], times[0]
    gpus = rng.integers(1, 5, n)
    curves = None
    if tables:
        curves = [[*rng.integers(1, 60, extra[j]).astype(float), times[j]] for j in range(n)]
    return ElasticAllocation(
        capacity=int(rng.integers(0, 1 + (extra @ gpus))),
        min_workers=least,
        max_workers=least + extra,
        gpus_per_worker=gpus,
        min_running_times=times,
        running_times=curves,
    )


@st.composite
def allocations(draw):
    n = draw(st.integers(1, 4))
    least = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    extra = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    times = st.integers(1, 40).map(float)
    finished = st.sampled_from([False, False, False, True])
    tables = None
    if draw(st.booleans()):
        tables = [
            [0.0] * (e + 1) if draw(finished) else draw(st.lists(times, min_size=e + 1, max_size=e + 1)) for e in extra
        ]
    return ElasticAllocation(
        capacity=draw(st.integers(0, 20)),
        min_workers=least,
        max_workers=[m + e for m, e in zip(least, extra, strict=True)],
        gpus_per_worker=draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)),
        min_running_times=[t[-1] for t in tables]
        if tables
        else draw(st.lists(times | st.just(0.0), min_size=n, max_size=n)),
        running_times=tables,
    )


def exact_reductions(instance):
    """Each job's reductions in fractions, from the running times with every number of workers."""
    found = []
    for job in range(instance.num_jobs):
        least, most = int(instance.min_workers[job]), int(instance.max_workers[job])
        if instance.running_times is None:
            work = Fraction(instance.min_running_times[job]) * most
            times = [work / workers for workers in range(least, most + 1)]
        else:
            times = [Fraction(time) for time in instance.running_times[job]]
        found.append([times[0] - time for time in times])
    return found


def best_by_line_17(instance):
    """Greatest total reduction where the base workers of scaled jobs are charged too, as printed; no other has this."""
    reductions = exact_reductions(instance)
    best = Fraction(0)
    for extra in product(*(range(len(row)) for row in reductions)):
        gpus = 0
        for job, workers in enumerate(extra):
            if workers:
                gpus += (workers + int(instance.min_workers[job])) * int(instance.gpus_per_worker[job])
        if gpus <= instance.capacity:
            best = max(best, sum(row[w] for row, w in zip(reductions, extra, strict=True)))
    return best


def naive_greedy(instance):
    """Repeatedly the steepest average gain that any job offers from where it is, in fractions."""
    reductions = exact_reductions(instance)
    extra, left, ended = [0] * instance.num_jobs, instance.capacity, set()
    while True:
        steps = []
        for job, row in enumerate(reductions):
            if job not in ended:
                gpus = int(instance.gpus_per_worker[job])
                for end in range(extra[job] + 1, len(row)):
                    gain = row[end] - row[extra[job]]
                    if gain > 0:
                        steps.append((-gain / ((end - extra[job]) * gpus), job, -end))
        if not steps:
            return extra
        _, job, end = min(steps)
        cost = (-end - extra[job]) * int(instance.gpus_per_worker[job])
        if cost > left:
            ended.add(job)
        else:
            extra[job], left = -end, left - cost


def middling(seed):
    """Tens of jobs, some alike, some without gain, with GPUs that do not divide what is left."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 90))
    least, extra = rng.integers(1, 4, n), rng.integers(0, 5, n)
    gpus = rng.choice([[1, 2, 4, 8], [3, 6, 9, 12], [7, 7, 7, 7], [5, 3, 2, 11]][seed % 4], n)
    if seed % 5 == 0:
        least[:], extra[:], gpus[:] = least[0], extra[0], gpus[0]
    curves = [rng.integers(1, 60, most + 1).astype(float) for most in extra] if seed % 2 else None
    return ElasticAllocation(
        capacity=int(rng.integers(0, 2 + (extra @ gpus))),
        min_workers=least,
        max_workers=least + extra,
        gpus_per_worker=gpus,
        min_running_times=[curve[-1] for curve in curves] if curves else rng.integers(0, 3 + 20 * (seed % 3), n),
        running_times=curves,
    )


def test_the_core_holds_the_optimum():
    """The dynamic program knows nothing of prices."""
    methods = set()
    for seed in range(60):
        instance = middling(seed)
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        best = instance.objective(heuristics.dynamic_program(instance))
        assert solution.objective == pytest.approx(best, rel=1e-12)
        assert best * (1 - 1e-12) <= solution.bound <= best * (1 + 1e-6)
        methods.add(solution.method)
    assert CORE.name in methods


def test_a_start_is_not_lost_in_the_core():
    instance = generate(0, num_jobs=200)
    best = formulations.solve(instance)
    assert best.method == CORE.name
    again = formulations.solve(instance, start=best.plan)
    assert again.objective == best.objective
    late = formulations.solve(instance, start=best.plan, time_limit=1e-9)
    assert late.status in ("feasible", "optimal")
    assert late.objective == pytest.approx(best.objective, rel=1e-12)


@pytest.mark.slow
def test_more_jobs_than_a_model_takes():
    """Hundreds of thousands of choices; what the price of the relaxation proves is not asked of the solver."""
    instance = generate(0, num_jobs=6_000, max_extra=100)
    solution = formulations.solve(instance)
    assert (solution.status, solution.proof, solution.method) == ("optimal", "prices", CORE.name)
    assert instance.violations(solution.plan) == []
    assert solution.objective <= heuristics.lp_bound(instance) * (1 + 1e-12)
    assert solution.objective >= instance.objective(heuristics.marginal_greedy(instance))


@pytest.mark.parametrize("solver", ["highs", "scip"])
def test_only_rigid_jobs(solver):
    instance = ElasticAllocation(
        capacity=3, min_workers=[2, 1], max_workers=[2, 1], gpus_per_worker=[1, 1], min_running_times=[5.0, 3.0]
    )
    solution = formulations.solve(instance, solver=solver)
    assert (solution.status, solution.objective) == ("optimal", 0)
    assert solution.plan.extra_workers.tolist() == [0, 0]


def test_two_elastic_jobs():
    instance = two_elastic_jobs()
    assert [row.tolist() for row in instance.reductions] == [
        pytest.approx([0, 80, 320 / 3, 120]),
        pytest.approx([0, 80 / 3, 40]),
    ]
    for extra in ([2, 0], [1, 1]):
        assert instance.objective(ElasticAllocationPlan(extra_workers=extra)) == pytest.approx(320 / 3)
    assert optimum(instance) == Fraction(320, 3)
    assert formulations.solve(instance).objective == pytest.approx(320 / 3)


def test_base_workers_are_not_charged_again():
    """As printed, line 17 leaves the two jobs one worker to share; as built, both GPUs are given."""
    assert best_by_line_17(two_elastic_jobs()) == 80
    assert two_elastic_jobs().objective(heuristics.base_charged_again(two_elastic_jobs())) == 80
    assert formulations.solve(two_elastic_jobs()).objective == pytest.approx(320 / 3)


def test_indivisible_workers_mislead_the_greedy():
    instance = indivisible_workers()
    assert instance.objective(heuristics.marginal_greedy(instance)) == pytest.approx(90)
    assert instance.objective(heuristics.dynamic_program(instance)) == pytest.approx(100)
    assert formulations.solve(instance).plan == ElasticAllocationPlan(extra_workers=[0, 1])


def test_running_times_that_rise_again():
    """More workers may slow a job down: it then stops where it is fastest, or takes none."""
    instance = ElasticAllocation(
        capacity=9,
        min_workers=[1, 2],
        max_workers=[4, 3],
        gpus_per_worker=[1, 1],
        min_running_times=[45.0, 60.0],
        running_times=[[50.0, 60.0, 20.0, 45.0], [40.0, 60.0]],
    )
    assert [row.tolist() for row in instance.reductions] == [[0, -10, 30, 5], [0, -20]]
    for plan in (formulations.solve(instance).plan, *(heuristic(instance) for heuristic in HEURISTICS[:3])):
        assert plan.extra_workers.tolist() == [2, 0]


def test_tables_of_linear_jobs_change_nothing():
    for seed in range(40):
        linear = small(seed)
        longest = linear.min_running_times * linear.max_workers / linear.min_workers
        tables = [(longest[job] - row).tolist() for job, row in enumerate(linear.reductions)]
        told = ElasticAllocation.from_dict({**linear.to_dict(), "running_times": tables})
        assert formulations.solve(told).objective == pytest.approx(formulations.solve(linear).objective, rel=1e-9)


@given(allocations())
def test_dynamic_program_is_optimal(instance):
    plan = heuristics.dynamic_program(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) == pytest.approx(float(optimum(instance)), rel=1e-9, abs=1e-9)


@given(allocations())
def test_base_charged_again_is_optimal_for_line_17(instance):
    plan = heuristics.base_charged_again(instance)
    assert instance.violations(plan) == []
    value = float(best_by_line_17(instance))
    assert instance.objective(plan) == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_figure_6():
    """Weights and values of the items, and what fits in the best way, for 0 to 6 GPUs."""
    instance = figure_6()
    assert [row.tolist() for row in instance.reductions] == [
        pytest.approx([0, 50]),
        pytest.approx([0, 20, 30, 36, 40]),
    ]
    optima = [0, 20, 50, 70, 80, 86, 90]
    for capacity, best in enumerate(optima):
        assert optimum(figure_6(capacity)) == best
        assert formulations.solve(figure_6(capacity)).objective == pytest.approx(best)
    # By line 17 A's item weighs 6 and B's 3 to 6.
    printed = [figure_6(c).objective(heuristics.base_charged_again(figure_6(c))) for c in range(13)]
    assert printed == pytest.approx([0, 0, 0, 20, 30, 36, 50, 50, 50, 70, 80, 86, 90])


def test_table_10():
    """A T4 is a quarter of a V100, the loss of throughput 13.8% in the mean and 27.7% at most."""
    runs = table_10()
    alone = {run.model: run for run in runs if not run.t4}
    assert list(alone) == ["ResNet-50", "GNMT", "BERT"]
    for run in runs:
        assert run.v100 + run.t4 == alone[run.model].v100
        share = normalised_capacity(run.v100, run.t4) / alone[run.model].v100
        assert run.theoretical == pytest.approx(share * alone[run.model].measured, abs=1)
    both = [run for run in runs if run.t4]
    assert len(both) == 9
    assert round(100 * sum(run.degradation for run in both) / 9, 1) == 13.8
    assert round(100 * max(run.degradation for run in both), 1) == 27.7
    # Running times are longer by up to 34%.
    assert round(100 * max(run.running_time / alone[run.model].running_time - 1 for run in both)) == 34


def test_capacity_is_in_training_gpus():
    assert normalised_capacity(5, 8) == 7
    assert normalised_capacity(5, 7) == 6
    # Three servers on loan for one training server, as in the testbed.
    assert normalised_capacity(0, 24, speed=1 / 3) == 8
    assert normalised_capacity(0, 24) == 6


def test_imperfect_scaling_by_hand():
    """Beyond 4 of 2 to 6 workers, 10% of the ideal throughput are lost with each."""
    instance = imperfect_scaling(figure_6())
    assert instance.running_times[0].tolist() == pytest.approx([150, 100 / 0.9])
    assert instance.running_times[1].tolist() == pytest.approx([60, 40, 30, 24 / 0.9, 20 / 0.8])
    assert imperfect_scaling(figure_6(), compounded=True).running_times[1][-1] == pytest.approx(20 / 0.81)
    assert imperfect_scaling(figure_6(), loss=0).running_times[1].tolist() == pytest.approx([60, 40, 30, 24, 20])
    with pytest.raises(ValueError, match=r"loss: 2 losses of 0\.5 leave job 1 no throughput, compound them"):
        imperfect_scaling(figure_6(), loss=0.5)
    with pytest.raises(ValueError, match="loss: got 1, must be at least 0 and below 1"):
        imperfect_scaling(figure_6(), loss=1)


@given(allocations())
def test_imperfect_scaling_loses_beyond_the_midpoint_only(instance):
    lossy = imperfect_scaling(instance, compounded=True)
    for job, most in enumerate(instance.max_extra.tolist()):
        before, after = instance.times(job), lossy.times(job)
        middle = instance.min_workers[job] + Fraction(most, 2)
        for extra in range(most + 1):
            beyond = instance.min_workers[job] + extra > middle
            assert (after[extra] > before[extra]) == (beyond and before[0] > 0)


def test_training_on_both_kinds_of_gpus():
    """A tenth of the jobs are slower with an extra worker or more, at 70% of what so many would do."""
    instance = generate(3, num_jobs=30)
    both = heterogeneous_training(instance, 5)
    slower = [job for job in range(30) if both.times(job).tolist() != instance.times(job).tolist()]
    assert len(slower) == 3
    for job in slower:
        assert both.times(job)[0] == instance.times(job)[0]
        assert both.times(job)[1:] == pytest.approx(instance.times(job)[1:] / 0.7)
    assert both.capacity == instance.capacity
    # From 4 workers a fifth gives 5/4 of the throughput, 7/8 of it on both kinds.
    one = ElasticAllocation(
        capacity=9, min_workers=[4], max_workers=[6], gpus_per_worker=[1], min_running_times=[100.0]
    )
    assert heterogeneous_training(one, 0, fraction=1).reductions[0] == pytest.approx(
        [0, 150 - 120 / 0.7, 150 - 100 / 0.7]
    )
    assert formulations.solve(heterogeneous_training(one, 0, fraction=1)).plan.extra_workers.tolist() == [2]
    ideal = heterogeneous_training(instance, 5, fraction=1, performance=1)
    assert [table.tolist() for table in ideal.running_times] == [instance.times(job).tolist() for job in range(30)]
    for options, message in (
        ({"fraction": 2}, "fraction: got 2, must be 0 to 1"),
        ({"performance": 0}, "performance: got 0, must be above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            heterogeneous_training(instance, 5, **options)


def test_mispredicted():
    """So many jobs are wrong, by at most the margin and by one factor; plans are for the instance itself."""
    for linear in (True, False):
        instance = generate(3, num_jobs=30, linear=linear)
        for wrong in (0.0, 0.2, 0.4, 0.6, 1.0):
            seen = mispredicted(instance, 5, wrong=wrong)
            factors = seen.min_running_times / instance.min_running_times
            assert np.sum(factors != 1) == round(30 * wrong)
            assert (np.abs(factors - 1) <= 0.25).all()
            for job in range(30):
                assert seen.times(job) == pytest.approx(factors[job] * instance.times(job))
            best = instance.objective(heuristics.dynamic_program(instance))
            assert instance.objective(heuristics.dynamic_program(seen)) <= best * (1 + 1e-12)
    assert mispredicted(instance, 5, wrong=0) == instance
    for options, message in (({"wrong": 2}, "wrong: got 2, must be 0 to 1"), ({"margin": 1}, "margin: got 1, must be")):
        with pytest.raises(ValueError, match=message):
            mispredicted(instance, 5, **options)


def naive_afs(instance):
    """One worker after the other to the job of the greatest relative throughput for each GPU, in fractions."""
    extra, left = [0] * instance.num_jobs, instance.capacity
    while True:
        gains = []
        for job in range(instance.num_jobs):
            gpus = int(instance.gpus_per_worker[job])
            if extra[job] < instance.max_extra[job] and gpus <= left:
                times = [Fraction(float(time)) for time in instance.times(job)]
                if instance.running_times is None:
                    least = int(instance.min_workers[job])
                    times = [Fraction(times[0] > 0, least + w) for w in range(len(times))]
                if times[0]:
                    gains.append((times[0] / times[extra[job] + 1] - times[0] / times[extra[job]], gpus, job))
        best = max((gain / gpus for gain, gpus, _ in gains), default=0)
        if best <= 0:
            return extra
        job = min(job for gain, gpus, job in gains if gain / gpus == best)
        extra[job] += 1
        left -= int(instance.gpus_per_worker[job])


@given(allocations())
def test_baselines_follow_their_definition(instance):
    assert heuristics.afs(instance).extra_workers.tolist() == naive_afs(instance)
    left = instance.capacity
    for job, extra in enumerate(heuristics.gandiva(instance).extra_workers.tolist()):
        gpus = int(instance.gpus_per_worker[job])
        assert extra == instance.max_extra[job] or (extra + 1) * gpus > left
        left -= extra * gpus
        assert left >= 0


def test_finished_jobs_gain_nothing():
    one = ElasticAllocation(
        capacity=2, min_workers=[1, 1], max_workers=[3, 3], gpus_per_worker=[1, 1], min_running_times=[0.0, 6.0]
    )
    assert one.reductions[0].tolist() == [0, 0, 0]
    table = ElasticAllocation.from_dict({**one.to_dict(), "running_times": [[0.0] * 3, [18.0, 9.0, 6.0]]})
    for instance in (one, table):
        for plan in (formulations.solve(instance).plan, *(heuristic(instance) for heuristic in HEURISTICS[2:4])):
            assert plan.extra_workers.tolist() == [0, 2]


@given(allocations())
def test_marginal_greedy(instance):
    """It follows its definition, keeps its guarantee, and never beats the optimum."""
    plan = heuristics.marginal_greedy(instance)
    assert plan.extra_workers.tolist() == naive_greedy(instance)
    assert instance.violations(plan) == []
    value, best, bound = instance.objective(plan), float(optimum(instance)), heuristics.lp_bound(instance)
    assert value <= best + 1e-9
    assert best <= bound + 1e-9
    largest_step = max(max(row) for row in exact_reductions(instance))
    assert value >= bound - float(largest_step) - 1e-9


@given(allocations())
def test_lp_bound_is_the_relaxation(instance):
    model = formulations.build(instance)
    for variable in model.chosen.values():
        variable.domain = pyo.UnitInterval
    relaxed = formulations.solve(model)
    assert relaxed.status == "optimal"
    assert relaxed.objective == pytest.approx(heuristics.lp_bound(instance), rel=1e-7, abs=1e-7)


def test_ties():
    """The greedy gives to the lowest job, the dynamic program to fewer workers."""
    alike = ElasticAllocation(
        capacity=1, min_workers=[1] * 3, max_workers=[2] * 3, gpus_per_worker=[1] * 3, min_running_times=[7.0] * 3
    )
    assert heuristics.marginal_greedy(alike).extra_workers.tolist() == [1, 0, 0]
    flat = ElasticAllocation(
        capacity=5,
        min_workers=[1],
        max_workers=[4],
        gpus_per_worker=[1],
        min_running_times=[3.0],
        running_times=[[9.0, 3.0, 3.0, 3.0]],
    )
    assert heuristics.dynamic_program(flat).extra_workers.tolist() == [1]
    assert heuristics.marginal_greedy(flat).extra_workers.tolist() == [1]


def test_a_search_that_is_cut_keeps_its_start():
    large = generate(0, num_jobs=400)
    start = heuristics.dynamic_program(large)
    stopped = formulations.solve(large, start=start, time_limit=1e-6)
    assert stopped.objective == pytest.approx(large.objective(start), rel=1e-12)


def test_users_add_constraints():
    model = formulations.build(two_elastic_jobs())
    model.fair = pyo.Constraint(expr=sum(model.chosen[1, w] for w in (1, 2)) == 1)
    assert formulations.solve(model).plan.extra_workers.tolist() == [1, 1]


def test_read_without_values_is_refused():
    with pytest.raises(ValueError, match="has no value"):
        formulations.read(formulations.build(two_elastic_jobs()))


def test_broken_rules_are_named():
    instance = two_elastic_jobs()
    plan = ElasticAllocationPlan(extra_workers=[-1, 4])
    assert [str(v) for v in instance.violations(plan)] == ["min_extra[0] by 1", "max_extra[1] by 2", "capacity by 1"]
    with pytest.raises(PlanError, match=r"extra_workers is -1 at index \[0\], must be 0 to 3"):
        instance.objective(plan)
    with pytest.raises(PlanError, match="n = 2"):
        instance.objective(ElasticAllocationPlan(extra_workers=[0, 0, 0]))


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("max_workers", {"max_workers": [2, 1]}),
        ("running_times", {"running_times": [[4.0, 2.0], [9.0, 5.0, 3.0]]}),
        ("running_times", {"running_times": [[4.0, 2.0], [5.0, 4.0]]}),
        ("running_times", {"running_times": [[0.0, 2.0], [5.0, 3.0]]}),
    ],
)
def test_bad_fields_are_named(field, fields):
    good = {
        "capacity": 1,
        "min_workers": [1, 2],
        "max_workers": [2, 3],
        "gpus_per_worker": [1, 1],
        "min_running_times": [2.0, 3.0],
    }
    assert ElasticAllocation(**good).num_jobs == 2
    with pytest.raises(InstanceError, match=rf"\.{field}: "):
        ElasticAllocation(**{**good, **fields})


@pytest.mark.parametrize("linear", [True, False])
def test_generated_instances(linear):
    for seed in range(20):
        instance = generate(seed, num_jobs=15, linear=linear)
        wanted = int(instance.max_extra @ instance.gpus_per_worker)
        assert instance.capacity == wanted // 2
        everything = generate(seed, num_jobs=15, linear=linear, tightness=0.0)
        assert formulations.solve(everything).objective == pytest.approx(
            sum(row.max() for row in everything.reductions)
        )
        assert generate(seed, num_jobs=15, linear=linear, tightness=1.0).capacity == 0
    assert generate(0).running_times is None
    rising = [np.diff(table).max(initial=0) > 0 for table in generate(0, num_jobs=60, linear=False).running_times]
    assert any(rising)
    assert not all(rising)


@pytest.mark.parametrize("trace", ["elasticflow/microsoft/raw/cluster02.csv", "tiresias/60_job.csv"])
def test_real_jobs(data, trace):
    """Measured curves, some of which fall: the model and the dynamic program agree."""
    falling = 0
    for seed in range(5):
        instance = from_trace(
            seed, throughputs=data / "elasticflow" / "throughputs_A100", trace=data / trace, num_jobs=12
        )
        assert (instance.max_workers == 2 * instance.min_workers).all()
        assert instance.capacity == instance.min_workers.sum() // 2
        falling += any((np.diff(table) > 0).any() for table in instance.running_times)
        best = formulations.solve(instance)
        assert best.status == "optimal"
        assert best.objective == pytest.approx(instance.objective(heuristics.dynamic_program(instance)), rel=1e-9)
        assert instance.objective(heuristics.marginal_greedy(instance)) <= best.objective * (1 + 1e-9)
    assert falling
    again = from_trace(4, throughputs=data / "elasticflow" / "throughputs_A100", trace=data / trace, num_jobs=12)
    assert again == instance


def test_from_trace_by_hand(tmp_path):
    """A job of 2 GPUs and 100 s on a curve of 1, 3 and 4 iterations/s at 1, 2 and 4 GPUs."""
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "model.csv").write_text("global_batch_size,1,2,4\n8,1,3,4\n")
    trace = tmp_path / "trace.csv"
    trace.write_text("job_id,submission_time,duration,num_gpu\na,0,100,2\nb,5,40,8\n")
    instance = from_trace(0, throughputs=tables, trace=trace, num_jobs=2)
    assert [table.tolist() for table in instance.running_times] == [
        pytest.approx([100, 300 / 3.5, 75]),
        [40.0] * 9,
    ]
    assert instance.capacity == 5
    with pytest.raises(InstanceError, match="num_jobs: got 3, must be 1 to 2"):
        from_trace(0, throughputs=tables, trace=trace, num_jobs=3)
    (tables / "model.csv").write_text("global_batch_size,4,8\n8,1,3\n")
    with pytest.raises(InstanceError, match="no model was measured on 2 GPUs or fewer"):
        from_trace(0, throughputs=tables, trace=trace, num_jobs=2)
