"""gavel.finish_time_fairness: its bracket, and ratios of all sizes."""

import math
from dataclasses import replace

import numpy as np
import pytest

import formulations
from formulations.engine.highs import Result
from formulations.gavel import finish_time_fairness as formulation
from formulations.gavel.finish_time_fairness import impossible_alone
from formulations.methods import bracket
from heuristics.gavel import finish_time_fairness as heuristics
from instances.gavel.finish_time_fairness import FinishTimeFairness, generate, late_job, three_jobs
from instances.gavel.makespan import Makespan
from instances.gavel.sharing import Allocation


def test_an_irrational_optimum():
    solution = formulations.solve(late_job())
    golden = (3 + math.sqrt(5)) / 4
    assert solution.objective == pytest.approx(golden, rel=1e-9)
    assert solution.bound == pytest.approx(golden, rel=1e-9)
    assert solution.plan.time_fractions[0, 0] == pytest.approx((3 - math.sqrt(5)) / 2, rel=1e-6)


def test_three_jobs():
    assert formulations.solve(three_jobs()).objective == pytest.approx(11 / 12, rel=1e-9)
    assert three_jobs().objective(three_jobs().isolated_share()) == pytest.approx(1)


def test_value_by_hand():
    """Job 1 has waited 100 s and needs 200 s more on half the worker; isolated it would need 200 s from the start."""
    instance = late_job()
    plan = Allocation(time_fractions=[[0.5], [0.5]])
    assert instance.finish_time_ratios(plan).tolist() == [1.0, 1.5]
    assert instance.objective(plan) == 1.5
    assert instance.objective(Allocation(time_fractions=[[1.0], [0.0]])) == math.inf


@pytest.mark.parametrize("unevenness", [0.0, 0.1, 1.0, 10.0, 1000.0])
def test_the_bracket_is_proven_on_both_sides(unevenness):
    for seed in range(4):
        instance = generate(
            seed, num_jobs=25, unevenness=unevenness, pair_fraction=0.2 * (seed % 2), workers_per_pool=5
        )
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective - solution.bound <= 1e-7 * solution.objective
        assert instance.violations(solution.plan) == []
        job_time, workers = instance.loads(solution.plan)
        assert max(job_time.max(), (workers / instance.num_workers).max()) <= 1 + 1e-12
        above = formulations.solve(formulations.build(instance)).objective
        assert above >= -1e-9
        assert formulations.solve(formulation.build(instance, solution.objective * (1 + 1e-6))).objective >= -1e-9
        below = solution.bound * (1 - 1e-6)
        if (below * instance.isolated_times > instance.elapsed).all():
            assert formulations.solve(formulation.build(instance, below)).bound < 0


def test_new_jobs_are_one_linear_program():
    """Without a past, rho is the isolated throughput over the throughput: a makespan of that many steps."""
    for seed in range(5):
        instance = generate(seed, num_jobs=12, unevenness=0.0, pair_fraction=0.3)
        fields = {name: getattr(instance, name) for name in ("throughputs", "num_workers", "pools", "scale_factors")}
        pairs = {"pairs": instance.pairs, "pair_throughputs": instance.pair_throughputs}
        makespan = Makespan(**fields, **pairs, steps=instance.isolated_throughputs)
        assert formulations.solve(instance).objective == pytest.approx(formulations.solve(makespan).objective, rel=1e-8)


def test_few_programs_with_prices():
    """Newton's method on the prices, counted, not timed."""
    for seed in range(5):
        message = formulations.solve(generate(seed, num_jobs=60, workers_per_pool=8)).message
        count = int(message.split(" programs")[0].split()[-1])
        assert 1 <= count <= 6


def test_a_job_that_no_plan_helps():
    """One job has the cluster to itself already: no program is needed to know that nothing is better."""
    instance = FinishTimeFairness(throughputs=[[2.0]], num_workers=[3], steps=[10.0], elapsed=[7.0])
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == solution.bound == pytest.approx(12 / 5)
    assert "0 programs" in solution.message


def test_a_long_past_and_little_left():
    instance = FinishTimeFairness(
        throughputs=[[1.0], [1.0], [5.0]],
        num_workers=[1],
        steps=[1.0, 1e6, 3e5],
        elapsed=[1e7, 0.0, 10.0],
        isolated_elapsed=[1e6, 0.0, 20.0],
    )
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective - solution.bound <= 1e-7 * solution.objective
    assert solution.objective == pytest.approx(1e7 / 1e6, rel=1e-4)


def test_a_steep_ratio():
    """Job 0 has little left after a long past, so its rho hardly tells its speed; job 1 is new and yields to it.

    The plan at the root of the prices misses it by rounding errors, which job 1 pays for: one just above is needed.
    """
    instance = FinishTimeFairness(
        throughputs=[[1.0], [1.0]],
        num_workers=[1],
        steps=[115.0, 1175.0],
        elapsed=[1e7, 0.0],
        isolated_elapsed=[2e5, 0.0],
    )
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective - solution.bound <= 1e-7 * solution.objective
    low, high = 1e7 / (2e5 + 230), 50.0
    for _ in range(100):
        rho = (low + high) / 2
        enough = 115 / (rho * (2e5 + 230) - 1e7) + 1175 / (rho * 2350) <= 1
        low, high = (low, rho) if enough else (rho, high)
    assert solution.bound * (1 - 1e-12) <= high <= solution.objective * (1 + 1e-12)


def test_pasts_of_all_sizes():
    """Seconds beside months."""
    programs = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(2, 30)), int(rng.integers(1, 5))
        throughputs = 10 ** rng.uniform(-2, 2, (n, k)) * 10 ** rng.uniform(-2, 3, (n, 1))
        past = 10 ** rng.uniform(0, 7, n) * rng.integers(0, 2, n)
        instance = FinishTimeFairness(
            throughputs=throughputs,
            num_workers=rng.integers(1, 10, k),
            steps=10 ** rng.uniform(0, 6, n) * throughputs.max(axis=1),
            elapsed=past,
            isolated_elapsed=past * 10 ** rng.uniform(-2, 2, n),
        )
        solution = formulations.solve(instance)
        assert solution.status == "optimal", seed
        assert solution.objective - solution.bound <= 1e-7 * solution.objective
        programs += int(solution.message.split(" programs")[0].split()[-1])
    assert 150 <= programs <= 450


def test_a_rho_out_of_reach_is_refused():
    with pytest.raises(ValueError, match=r"rho: got 0\.5, job 1 is too late"):
        formulation.build(late_job(), 0.5)


def test_more_than_one_solve_takes_no_session():
    with pytest.raises(ValueError, match="leave session and start out"):
        formulations.solve(late_job(), session=formulations.Session())
    with pytest.raises(ValueError, match="leave session and start out"):
        formulations.solve(late_job(), start=late_job().isolated_share())


def test_no_time_leaves_a_true_bracket(monkeypatch):
    """Without a single program there are a plan at hand, and what each job could have alone."""
    instance = generate(0, num_jobs=20, workers_per_pool=4)
    full = formulations.solve(instance)
    late = formulations.Result("unknown", None, math.inf, None, 0.0, "Time limit reached")
    monkeypatch.setattr(formulations.Session, "run", lambda *_, **__: late)
    limited = formulations.solve(instance)
    assert limited.status == "feasible"
    assert instance.violations(limited.plan) == []
    assert limited.objective < instance.isolated_value
    assert 0 < limited.bound <= full.bound
    assert limited.gap > 0


def test_the_denominator_is_a_share_of_time_and_not_the_policy_itself():
    """As built: X_isolated gives each job 1/n of every pool. A max-min fair share is another denominator."""
    instance = three_jobs()
    assert instance.isolated_times == pytest.approx([240, 225, 200])
    slower = replace(instance, isolated_elapsed=[0, 0, 40])
    assert slower.isolated_times == pytest.approx([240, 225, 240])


def test_same_ratio_is_the_best_of_its_kind():
    """On one type there is only one mix, so the heuristic is optimal there."""
    assert late_job().objective(heuristics.same_ratio(late_job())) == pytest.approx((3 + math.sqrt(5)) / 4, rel=1e-12)
    for seed in range(10):
        instance = generate(seed, num_jobs=10, num_types=1, pair_fraction=0.0, workers_per_pool=3, multi_worker=False)
        value = instance.objective(heuristics.same_ratio(instance))
        assert value == pytest.approx(formulations.solve(instance).objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(200))
def test_one_ratio_at_all_sizes(seed):
    """Bisection ends whatever the decades; a job whose time in isolation is no float gets none."""
    rng = np.random.default_rng(seed)
    instance = generate(rng, num_jobs=4)
    fields = {
        name: np.clip(getattr(instance, name) * 10.0 ** rng.uniform(-300, 300, 4), 0.0, 1e308)
        for name in rng.permutation(["steps", "elapsed", "isolated_elapsed"])[: rng.integers(1, 4)]
    }
    with np.errstate(all="ignore"):
        harmed = replace(instance, **fields)
        plan = heuristics.same_ratio(harmed)
        compared = (harmed.isolated_times > 0) & np.isfinite(harmed.isolated_times)
        assert harmed.violations(plan) == []
        assert not plan.time_fractions[: harmed.num_jobs][~compared].any()
        assert harmed.objective(plan) >= 0


@pytest.mark.parametrize(
    "fields",
    [
        {"elapsed": [0.0], "isolated_elapsed": [1e308], "steps": [1e-15]},  # The ratio is 0 as a float.
        {"steps": [1e308], "throughputs": [[1e-10, 1e-10]]},  # The time in isolation is infinite.
        {"steps": [1e-300], "throughputs": [[1e300, 1e300]]},  # It is 0.
        {"elapsed": [1e308], "steps": [1e-15]},  # The ratio is infinite.
    ],
)
def test_ratios_beyond_floats(fields):
    single = {"throughputs": [[2.0, 1.0]], "num_workers": [1, 1], "steps": [100.0]}
    instance = FinishTimeFairness(**{name: np.array(value) for name, value in (single | fields).items()})
    with np.errstate(all="ignore"):
        plan = heuristics.same_ratio(instance)
        assert instance.violations(plan) == []
        value, isolated = (instance.objective(one) for one in (plan, instance.isolated_share()))
        assert value == isolated or abs(value - isolated) <= 1e-320  # There are few floats so small.


@pytest.mark.parametrize("seed", range(6))
def test_without_time_for_programs_all_jobs_have_the_same_ratio_in_their_isolated_mix(seed):
    instance = generate(seed, num_jobs=12)
    cut = formulations.solve(instance, time_limit=1e-9)
    assert cut.status == "feasible"
    assert instance.violations(cut.plan) == []
    # The isolated share has the mix of the pools, so that this is what the heuristic finds, to twenty halvings.
    simple = instance.objective(heuristics.same_ratio(instance))
    assert cut.objective <= instance.isolated_value
    assert cut.objective == pytest.approx(min(simple, instance.isolated_value), rel=1e-4)
    assert cut.bound <= formulations.solve(instance).objective <= cut.objective


def test_without_time_for_programs_many_jobs_have_what_the_heuristic_gives_them(monkeypatch):
    instance = generate(0, num_jobs=520)
    late = Result("unknown", None, -math.inf, None, 0.0, "no time is left")
    monkeypatch.setattr(bracket._Programs, "at", lambda *_: (late, None))
    cut = formulations.solve(instance)
    value = instance.objective(heuristics.interior_point(instance))
    assert cut.objective == value < instance.objective(heuristics.same_ratio(instance))
    # What no plan can have is known without a program.
    assert (cut.status, cut.proof, cut.bound) == ("feasible", "argument", impossible_alone(instance))


def test_what_closes_the_bracket_proves_the_optimum_whatever_became_of_the_last_program(monkeypatch):
    """Each of two jobs runs on a type of its own, where it needs half of its time in isolation: no plan has less."""
    # The pair makes no steps; without one no heuristic is asked.
    pair = {"pairs": [[0, 1]], "pair_throughputs": np.zeros((1, 2, 2))}
    instance = FinishTimeFairness(throughputs=np.eye(2), num_workers=[1, 1], steps=[100.0, 100.0], **pair)
    late = Result("unknown", None, -math.inf, None, 0.0, "no time is left")
    monkeypatch.setattr(bracket._Programs, "at", lambda *_: (late, None))
    cut = formulations.solve(instance)
    assert (cut.status, cut.objective, cut.proof, cut.bound) == ("feasible", 1.0, "argument", 0.5)
    monkeypatch.setattr(bracket, "plan_of_heuristic", lambda _: Allocation(time_fractions=np.eye(3, 2)))
    cut = formulations.solve(instance)
    assert (cut.status, cut.objective, cut.proof, cut.bound) == ("optimal", 0.5, "argument", 0.5)
