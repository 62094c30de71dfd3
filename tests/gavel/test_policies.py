"""What holds for all of Gavel's one-program policies: two faces of a program, columns by price, heuristics."""

import importlib
import math
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
import instances
from formulations.engine.linear import ModelError, translate
from formulations.engine.options import Options
from formulations.gavel.sharing import SharingProgram
from formulations.methods import generation
from heuristics.gavel import sharing as shared_heuristics
from instances import InstanceError
from instances.gavel.sharing import Allocation
from validation.testing.strategies import strategy

ONE_PROGRAM = ["max_min_fairness", "makespan", "fifo", "total_throughput", "cost", "throughput_per_dollar"]
POLICIES = [*ONE_PROGRAM, "finish_time_fairness", "shortest_job_first"]
OWN_HEURISTICS = {
    "makespan": ["same_finish", "agnostic_fifo"],
    "finish_time_fairness": ["same_ratio"],
    "fifo": ["fastest_free_type", "backfilling", "agnostic_fifo"],
    "shortest_job_first": ["shortest_first"],
    "total_throughput": ["fastest_first"],
    "cost": ["best_bargain", "fastest_first"],
    "throughput_per_dollar": ["best_bargain_first"],
}
SHARED_HEURISTICS = ["isolated", "equal_share", "heterogeneity_agnostic", "random_packing", "matched_packing"]
ANY_POLICY = st.sampled_from(POLICIES).flatmap(lambda policy: strategy(f"gavel.{policy}"))


def generate(policy, seed, **options):
    return importlib.import_module(f"instances.gavel.{policy}").generate(seed, **options)


def module(instance):
    return importlib.import_module(f"formulations.{instance.problem}")


def heuristics_of(policy):
    own = importlib.import_module(f"heuristics.gavel.{policy}") if policy in OWN_HEURISTICS else None
    return [getattr(own, name) for name in OWN_HEURISTICS.get(policy, [])] + [
        getattr(shared_heuristics, name) for name in SHARED_HEURISTICS
    ]


def same(a, b):
    return a == pytest.approx(b, rel=1e-7, abs=1e-12)


# --- the program -------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ONE_PROGRAM)
@pytest.mark.parametrize("seed", range(4))
def test_arrays_and_model_are_one_program(policy, seed):
    """HiGHS is handed exactly what the Pyomo model says, row by row and column by column."""
    instance = generate(policy, seed, num_jobs=9, pair_fraction=0.5, unconsolidated=True, workers_per_pool=4)
    arrays = module(instance).program(instance).arrays()
    translated = translate(formulations.build(instance))
    for name in ("cost", "col_lower", "col_upper", "integer", "indptr", "index", "value", "row_lower", "row_upper"):
        assert np.array_equal(getattr(arrays, name), getattr(translated, name)), name
    assert (arrays.sense, arrays.offset) == (translated.sense, translated.offset)
    assert arrays.row_names() == translated.row_names()


@pytest.mark.parametrize("policy", ONE_PROGRAM)
def test_the_rows_of_a_constraint_are_found(policy):
    program = module(generate(policy, 0, num_jobs=5)).program(generate(policy, 0, num_jobs=5))
    names = program.arrays().row_names()
    assert names[program.rows("job_time")] == [f"job_time[{m}]" for m in range(5)]
    assert names[program.rows("pool_capacity")] == [f"pool_capacity[{p}]" for p in range(3)]
    with pytest.raises(KeyError):
        program.rows("no_such_rows")


@pytest.mark.parametrize("policy", ONE_PROGRAM)
def test_a_model_solved_as_it_is_gives_the_same_value(policy):
    instance = generate(policy, 3, num_jobs=10, pair_fraction=0.3)
    solution = formulations.solve(instance)
    of_model = formulations.solve(formulations.build(instance))
    assert same(instance.objective(of_model.plan), solution.objective)
    assert set(of_model.duals) == set(solution.duals)
    for name, prices in solution.duals.items():
        assert len(prices) == len(of_model.duals[name])


@pytest.mark.parametrize("policy", ONE_PROGRAM)
def test_every_optimum_has_its_certificate(policy):
    for seed in range(10):
        solution = formulations.solve(generate(policy, seed, num_jobs=12, pair_fraction=0.2, unconsolidated=True))
        assert solution.status == "optimal"
        assert solution.certificate.holds
        assert solution.certificate.primal_infeasibility <= 1e-6


@pytest.mark.parametrize("policy", ONE_PROGRAM)
def test_a_session_is_warm_and_right(policy):
    session = formulations.Session()
    for seed in range(3):
        instance = generate(policy, seed, num_jobs=8)
        assert same(formulations.solve(instance, session=session).objective, formulations.solve(instance).objective)


@pytest.mark.parametrize("policy", ["makespan", "total_throughput", "cost"])
def test_numbers_that_no_solver_takes_are_named(policy):
    instance = generate(policy, 0, num_jobs=2)
    throughputs = instance.throughputs.copy()
    throughputs[1, 2] = 1e-25 * throughputs[1].max()
    with pytest.raises(ModelError, match=r"variable '[XY]\[1,2\]'"):
        formulations.solve(replace(instance, throughputs=throughputs))


# --- columns by price --------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [*ONE_PROGRAM, "finish_time_fairness"])
def test_generated_columns_give_the_whole_optimum(policy, monkeypatch):
    options = [{}, {"unconsolidated": True}, {"multi_worker": False, "workers_per_pool": 3}]
    few = 0
    for seed in range(18):
        instance = generate(policy, seed, num_jobs=10, pair_fraction=0.8, **options[seed % 3])
        whole = formulations.solve(instance)
        monkeypatch.setattr(generation, "PRICING_COLUMNS", 0)
        generated = formulations.solve(instance)
        monkeypatch.undo()
        assert generated.status == whole.status == "optimal"
        assert same(generated.objective, whole.objective)
        assert same(generated.bound, whole.bound)
        assert instance.violations(generated.plan) == []
        few += "columns generated" in generated.message
    assert few >= 12


@pytest.mark.parametrize("policy", ["max_min_fairness", "makespan", "total_throughput"])
def test_columns_generated_from_nothing_each_time_prove_the_whole_program(policy, monkeypatch):
    """All pairs of few jobs: more columns come at once than there are rows, so each program is solved anew."""
    sessions = []
    open_session = Options.session

    def counted(*arguments, **others):
        sessions.append(1)
        return open_session(*arguments, **others)

    monkeypatch.setattr(generation, "PRICING_COLUMNS", 0)
    monkeypatch.setattr(Options, "session", counted)
    for seed in range(100):
        workers = 1 + seed % 6
        instance = generate(policy, seed, num_jobs=16, pair_fraction=1.0, multi_worker=False, workers_per_pool=workers)
        program = module(instance).program(instance)
        whole = program.arrays()
        generating = generation.ColumnGeneration(program, whole, Options(), interior_rows=0)
        result = generating.run()
        assert result.status == "optimal"
        best = formulations.Session().run(whole).bound
        assert best * (1 - 1e-9) <= result.bound <= best * (1 + 2e-6)
        assert whole.infeasibility(result.x) <= 1e-6
        assert whole.objective(result.x) == pytest.approx(best, rel=2e-6)
    assert len(sessions) > 100


def test_a_pair_that_meets_an_slo_no_job_meets_alone(monkeypatch):
    """The jobs alone are infeasible, so there are no prices to generate by, and yet there is a plan."""
    monkeypatch.setattr(generation, "PRICING_COLUMNS", 0)
    for policy in ("cost", "throughput_per_dollar"):
        kind = instances.instance_type(f"gavel.{policy}")
        instance = kind(
            throughputs=[[1.0], [1.0]],
            num_workers=[1],
            pairs=[[0, 1]],
            pair_throughputs=[[[0.9, 0.9]]],
            costs=[1.0],
            steps=[100.0, 100.0],
            slos=[125.0, 125.0],
        )
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert instance.times_left(solution.plan).max() <= 125 * (1 + 1e-6)
        assert solution.objective == pytest.approx(1.8)


def test_no_more_time_ends_the_generation_with_a_true_bound(monkeypatch):
    """The deadline passes while the jobs alone are solved: the bound counts all columns that are missing."""
    monkeypatch.setattr(generation, "PRICING_COLUMNS", 0)
    instance = generate("total_throughput", 0, num_jobs=20, pair_fraction=1.0, multi_worker=False, workers_per_pool=3)
    best = formulations.solve(instance).objective
    alone = formulations.solve(replace(instance, pairs=np.zeros((0, 2), int), pair_throughputs=np.zeros((0, 3, 2))))
    run, results = formulations.Session.run, []

    def run_once(session, program, **_):
        results.append(run(session, program))
        return results[-1]

    monkeypatch.setattr(formulations.Session, "run", run_once)
    monkeypatch.setattr(generation.clock, "left", lambda: -1.0 if results else 1.0)
    solution = formulations.solve(instance, time_limit=1.0)
    assert solution.status == "feasible"
    assert solution.objective == pytest.approx(alone.objective)
    assert solution.bound >= best > alone.objective


def test_the_potential_of_columns_outside_bounds_what_they_add(monkeypatch):
    """From the prices of the jobs alone: the optimum with pairs is at most their value and the potential."""
    monkeypatch.setattr(generation, "PRICING_COLUMNS", 0)
    for seed in range(20):
        for policy, covering in (("total_throughput", "job_time"), ("cost", "budget")):
            instance = generate(policy, seed, num_jobs=8, pair_fraction=1.0, workers_per_pool=3)
            program = module(instance).program(instance)
            options = Options()
            generating = generation.ColumnGeneration(program, program.arrays(), options, covering=covering)
            alone = formulations.Session().run(generating.program)
            gain = generating._gain(alone.certificate.row_duals)
            best = formulations.solve(instance).objective
            assert best <= (alone.bound + generating._potential(gain)) * (1 + 1e-9)


# --- what is the same in all policies ------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=150)
@given(ANY_POLICY)
def test_heuristics_never_beat_a_proven_optimum(instance):
    solution = formulations.solve(instance)
    assert solution.status in ("optimal", "infeasible")
    for heuristic in heuristics_of(instance.problem.split(".")[1]):
        plan = heuristic(instance)
        broken = instance.violations(plan)
        assert {violation.rule for violation in broken} <= {"slo"}
        if broken:
            continue
        assert solution.status == "optimal"
        value = instance.objective(plan)
        if instance.sense == "min":
            assert value >= solution.bound * (1 - 1e-9)
        else:
            assert value <= solution.bound * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("policy", POLICIES)
def test_sharing_incentive(policy):
    """Every policy's value is at least as good as the isolated share's, which meets SLOs of tightness below 1."""
    for seed in range(8):
        instance = generate(policy, seed, num_jobs=12, pair_fraction=0.2 * (seed % 2), workers_per_pool=4)
        solution = formulations.solve(instance)
        isolated = instance.objective(instance.isolated_share())
        assert instance.violations(instance.isolated_share()) == []
        better = solution.objective <= isolated if instance.sense == "min" else solution.objective >= isolated
        assert better or same(solution.objective, isolated)


def test_generators_draw_the_same_cluster():
    """A policy's own fields are drawn after the cluster, so all policies can be compared on one."""
    options = {"num_jobs": 6, "pair_fraction": 0.4}
    first = generate("max_min_fairness", 5, **options)
    for policy in POLICIES:
        other = generate(policy, 5, **options)
        for field in ("throughputs", "num_workers", "scale_factors", "pairs", "pair_throughputs"):
            assert np.array_equal(getattr(other, field), getattr(first, field)), (policy, field)


@pytest.mark.parametrize("policy", POLICIES)
def test_bad_clusters_are_named(policy):
    good = generate(policy, 0, num_jobs=3, pair_fraction=0.0).to_dict()
    for field, value in (
        ("throughputs", [[1, 1, 1], [0, -1, 0], [1, 1, 1]]),
        ("pairs", [[0, 0]]),
    ):
        with pytest.raises(InstanceError, match=rf"\.({field}|pools|pair_throughputs)"):
            instances.read({**good, field: value})


def test_wide_jobs_get_no_time_where_no_round_can_give_it():
    """As built: the printed (3) lets a job of 4 workers have half of a pool of 2."""
    for policy in POLICIES:
        instance = generate(policy, 1, num_jobs=6, workers_per_pool=4, pair_fraction=0.0)
        wide = replace(instance, scale_factors=[4, 1, 1, 1, 1, 1], num_workers=[4, 2, 2])
        solution = formulations.solve(wide)
        if solution.plan is not None:
            assert (solution.plan.time_fractions[0, 1:] == 0).all()
    plan = np.zeros((6, 3))
    plan[0, 1] = 0.5
    assert [v.rule for v in wide.violations(Allocation(time_fractions=plan)) if v.rule != "slo"] == ["fits_pool"]


@pytest.mark.parametrize("policy", POLICIES)
def test_pairs_for_some_jobs_only(policy):
    """As built: the released code crashes or hands out too much where pairs exist for only some jobs."""
    instance = generate(policy, 2, num_jobs=6, multi_worker=False, workers_per_pool=1, pair_fraction=0.0)
    some = replace(instance, pairs=[[4, 1]], pair_throughputs=0.9 * instance.throughputs[[[4, 1]]].swapaxes(1, 2))
    solution = formulations.solve(some)
    without = formulations.solve(instance)
    assert solution.status == without.status == "optimal"
    assert some.violations(solution.plan) == []
    better = solution.objective <= without.objective if some.sense == "min" else solution.objective >= without.objective
    assert better or same(solution.objective, without.objective)


@pytest.mark.parametrize("policy", POLICIES)
def test_one_job_alone(policy):
    solution = formulations.solve(generate(policy, 4, num_jobs=1))
    assert solution.status == "optimal"


def test_empty_pools_are_left_out():
    for policy in POLICIES:
        instance = replace(generate(policy, 4, num_jobs=4, multi_worker=False), num_workers=[8, 0, 8])
        solution = formulations.solve(instance)
        if solution.status == "optimal":
            assert (solution.plan.time_fractions[:, 1] == 0).all()
            assert instance.violations(solution.plan) == []
        else:
            assert solution.status == "infeasible"
            assert policy in ("cost", "throughput_per_dollar")


def test_a_program_with_a_variable_of_ones_own():
    instance = generate("makespan", 0, num_jobs=3)
    program = SharingProgram(instance)
    least = program.variable("least", lower=0, upper=0.25)
    program.constraint("served", 1 / instance.fastest_throughputs * program.throughput >= least)
    program.maximize("greatest_least", least)
    model = program.model()
    assert model.least.bounds == (0, 0.25)
    assert isinstance(model.served, pyo.Constraint)
    assert formulations.solve(model).objective == pytest.approx(0.25)
    assert math.isclose(formulations.Session().run(program.arrays()).bound, 0.25)
