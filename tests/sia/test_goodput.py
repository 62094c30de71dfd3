"""sia.goodput: worked examples, all plans of small instances, the core, and what the heuristics keep."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from formulations.methods.types_core import CORE
from heuristics.sia.goodput import (
    gavel_rounded,
    genetic_search,
    greedy_goodput,
    greedy_marginal,
    optimus,
    priced_types,
)
from instances import InstanceError, PlanError
from instances.aryl.elastic_allocation import ElasticAllocation, ElasticAllocationPlan
from instances.data import gavel
from instances.sia.configurations import TrainingModel, batch_sizes, sizes_within
from instances.sia.goodput import (
    Goodput,
    GoodputPlan,
    from_elastic_allocation,
    from_trace,
    generate,
    one_must_wait,
    restart_not_worth_it,
    type_for_each,
)
from instances.sia.traces import read_goodputs, read_requests
from validation import CATALOGUE
from validation.kinds.collection.judging import Checked
from validation.kinds.collection.prices import prices
from validation.problems.sia.goodput import relaxation_rounded, strategy

from ..second_opinion import optimum


def all_plans(instance: Goodput) -> list[GoodputPlan]:
    choices = product(range(-1, instance.num_configs), repeat=instance.num_jobs)
    plans = (GoodputPlan(configs=np.array(configs)) for configs in choices)
    return [plan for plan in plans if not instance.violations(plan)]


@pytest.mark.parametrize(
    ("instance", "value", "configs"),
    [
        (one_must_wait(), 2.1, None),
        (type_for_each(), 8**-0.5 + 2**-0.5, [3, 1]),
        (restart_not_worth_it(), 1.0, [0]),
    ],
)
def test_worked_examples(instance: Goodput, value: float, configs: list[int] | None) -> None:
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(value, abs=1e-12)
    if configs is not None:
        assert solution.plan.configs.tolist() == configs


@settings(max_examples=40, deadline=None)
@given(strategy(max_jobs=3, max_configs=3))
def test_optima_are_those_of_all_plans(instance: Goodput) -> None:
    best = min(map(instance.objective, all_plans(instance)))
    for method in formulations.methods(instance):
        solution = formulations.solve(instance, method=method.name)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert solution.bound == pytest.approx(best, rel=1e-8, abs=1e-8)
    assert float(optimum(instance)) == pytest.approx(best, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_the_core_proves_what_the_model_proves(seed: int) -> None:
    instance = generate(seed, num_jobs=90, num_types=3)
    core = formulations.solve(instance)
    assert core.method == CORE.name
    assert core.status == "optimal"
    whole = formulations.solve(instance, method="model")
    assert core.objective == pytest.approx(whole.objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_heuristics_keep_what_they_promise(seed: int) -> None:
    instance = generate(seed, num_jobs=25)
    least = formulations.solve(instance).objective
    greedy, priced = greedy_marginal(instance), priced_types(instance)
    searched = genetic_search(instance, rng=seed, generations=20, population=20)
    for plan in (greedy, priced, searched):
        assert not instance.violations(plan)
    assert least <= instance.objective(priced) + 1e-9
    assert instance.objective(priced) <= instance.objective(greedy)
    held = GoodputPlan(configs=instance.current)
    assert instance.objective(searched) <= instance.objective(held) + 1e-9


def test_two_jobs_change_at_once_where_neither_could_alone() -> None:
    # The second has one of seven GPUs' worth of progress, and keeps the first from all seven.
    instance = Goodput(
        num_gpus=[7],
        config_types=[0, 0],
        config_gpus=[1, 7],
        goodputs=[[0.0, 6.0], [2.0, 0.0]],
        current=[1, -1],
        restart_factors=[1.0, 1.0],
        power=-0.5,
    )
    assert greedy_marginal(instance).configs.tolist() == [-1, 0]
    assert priced_types(instance).configs.tolist() == [1, -1]


@pytest.mark.parametrize("seed", range(20))
def test_no_exchange_of_two_jobs_gains(seed: int) -> None:
    instance = generate(seed, num_jobs=4)
    plan = priced_types(instance).configs
    value = instance.objective(GoodputPlan(configs=plan))
    choices = range(-1, instance.num_configs)
    for first, second in combinations(range(instance.num_jobs), 2):
        for one, two in product(choices, choices):
            changed = plan.copy()
            changed[[first, second]] = one, two
            other = GoodputPlan(configs=changed)
            assert instance.violations(other) or value <= instance.objective(other) + 1e-9


def test_a_search_is_the_same_for_the_same_seed() -> None:
    instance = generate(0, num_jobs=12)
    one, other = (genetic_search(instance, rng=3, generations=5, population=8) for _ in range(2))
    assert one.configs.tolist() == other.configs.tolist()


@pytest.mark.parametrize(("seed", "power"), [(0, -0.5), (1, -1.0), (2, 1.0)])
def test_the_reference_searches_what_prices_do_not_settle(seed: int, power: float) -> None:
    instance = generate(seed, num_jobs=24, num_types=2, gpus_per_job=2.0, power=power)
    solution = formulations.solve(instance)
    assert float(optimum(instance)) == pytest.approx(solution.objective, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(strategy(max_jobs=3, max_configs=3), st.lists(st.integers(0, 16), min_size=2, max_size=2))
def test_any_prices_prove_a_bound(instance: Goodput, sixteenths: list[int]) -> None:
    checked = Checked(instance)
    given = {"types": [price / 16 for price in sixteenths[: instance.num_types]]}
    best = min(map(instance.objective, all_plans(instance)))
    assert float(checked.bound(given)) <= best + 1e-9
    relaxed = prices(instance, checked.bound)
    assert relaxed is not None
    assert float(checked.bound(given)) <= float(checked.bound(relaxed)) + 1e-7
    assert float(checked.bound(relaxed)) <= best + 1e-9


@settings(max_examples=60, deadline=None)
@given(strategy(max_jobs=4))
def test_a_rounded_relaxation_leaves_no_more_jobs_waiting_than_there_are_types(instance: Goodput) -> None:
    plan = relaxation_rounded(instance)
    assert not instance.violations(plan)
    least = np.where(instance.fits, instance.costs, np.inf).min(axis=1, initial=instance.waiting_cost)
    dearest = np.sort(instance.waiting_cost - least)[::-1][: instance.num_types].sum()
    assert instance.objective(plan) <= formulations.solve(instance).objective + dearest + 1e-9


@settings(max_examples=40, deadline=None)
@given(strategy(max_jobs=3, max_configs=3))
def test_no_change_of_one_job_makes_the_sum_of_goodputs_of_greedy_goodput_greater(instance: Goodput) -> None:
    linear = replace(instance, power=1.0)
    plan = greedy_goodput(instance)
    assert not instance.violations(plan)
    for job, config in product(range(instance.num_jobs), range(-1, instance.num_configs)):
        changed = plan.configs.copy()
        changed[job] = config
        other = GoodputPlan(configs=changed)
        if not instance.violations(other):
            assert linear.objective(plan) <= linear.objective(other) + 1e-9


def test_optimus_gives_all_jobs_a_gpu_and_then_the_one_whose_work_it_shortens_most() -> None:
    instance = Goodput(
        num_gpus=np.array([5]),
        config_types=np.zeros(3, int),
        config_gpus=np.array([1, 2, 4]),
        # Two GPUs save the first job 1 - 1/1.8 and the second one 1 - 1/1.5 of its time; two more save the first one
        # less for each GPU, and the third job is slower on more.
        goodputs=np.array([[1.0, 1.8, 2.4], [1.0, 1.5, 1.6], [1.0, 0.9, 3.0]]),
    )
    assert optimus(instance).configs.tolist() == [1, 1, 0]
    assert optimus(replace(instance, num_gpus=np.array([4]))).configs.tolist() == [1, 0, 0]
    assert optimus(replace(instance, num_gpus=np.array([2]))).configs.tolist() == [0, 0, -1]


def test_gavel_rounded_gives_each_job_the_type_on_which_it_is_to_be_most_of_the_time() -> None:
    # The second job is worse off than the first, and half as fast on the first one's type.
    apart = replace(type_for_each(), goodputs=np.array([[1.0, 2.0, 4.0, 8.0], [2.0, 4.0, 1.0, 2.0]]))
    assert gavel_rounded(apart).configs.tolist() == [3, 1]
    # Two jobs on three GPUs: an equal share is one GPU, and nobody has more.
    alike = Goodput(
        num_gpus=np.array([3]),
        config_types=np.array([0, 0]),
        config_gpus=np.array([1, 2]),
        goodputs=np.array([[1.0, 2.0], [1.0, 2.0]]),
    )
    assert gavel_rounded(alike).configs.tolist() == [0, 0]


@settings(max_examples=60, deadline=None)
@given(strategy())
def test_jobs_of_gavel_have_the_goodputs_of_their_gpus(instance: Goodput) -> None:
    jobs, gpus = np.arange(instance.num_jobs), np.full(instance.num_jobs, 2)
    fair = instance.max_min_fairness(jobs, gpus)
    for job, kind in product(range(instance.num_jobs), range(instance.num_types)):
        at = (instance.config_types == kind) & (instance.config_gpus == 2) & (instance.num_gpus[kind] >= 2)
        assert fair.throughputs[job, kind] == instance.goodputs[job][at].max(initial=0.0)


@pytest.mark.parametrize("seed", range(3))
def test_all_numbers_of_gpus_are_of_the_same_jobs(seed: int) -> None:
    papers, every = generate(seed), generate(seed, configurations="all")
    number = {
        (kind, gpus): config
        for config, (kind, gpus) in enumerate(zip(every.config_types.tolist(), every.config_gpus.tolist(), strict=True))
    }
    among = [number[one] for one in zip(papers.config_types.tolist(), papers.config_gpus.tolist(), strict=True)]
    assert (every.goodputs[:, among] == papers.goodputs).all()
    held = papers.current >= 0
    assert (every.current[held] == np.array(among)[papers.current[held]]).all()
    assert (every.current[~held] == -1).all()
    assert (every.restart_factors == papers.restart_factors).all()
    assert formulations.solve(every).objective <= formulations.solve(papers).objective + 1e-9


def test_there_are_no_other_configurations() -> None:
    with pytest.raises(InstanceError, match="configurations: got 'some', must be one of 'powers of two', 'all'"):
        generate(0, configurations="some")


def test_with_a_positive_power_goodputs_are_to_be_great() -> None:
    instance = generate(1, num_jobs=3, power=1.0)
    solution = formulations.solve(instance)
    runs = np.flatnonzero(solution.plan.configs >= 0)
    kept = instance.current[runs] == solution.plan.configs[runs]
    factors = np.where(kept | (instance.current[runs] < 0), 1.0, instance.restart_factors[runs])
    assert -solution.objective == pytest.approx((factors * instance.goodputs[runs, solution.plan.configs[runs]]).sum())


def test_rules_name_what_is_broken() -> None:
    instance = Goodput(
        num_gpus=np.array([1]),
        config_types=np.array([0, 0]),
        config_gpus=np.array([1, 2]),
        goodputs=np.array([[1.0, 0.0], [1.0, 2.0]]),
    )
    broken = instance.violations(GoodputPlan(configs=np.array([1, 1])))
    assert {one.rule for one in broken} == {"gpus", "runs_there"}
    with pytest.raises(PlanError, match="must be -1 to 1"):
        instance.objective(GoodputPlan(configs=np.array([0, 2])))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [("power", 0.0, "power"), ("restart_factors", np.array([1.5, 1.0]), "restart_factors")],
)
def test_what_means_nothing_is_refused(field: str, value: object, said: str) -> None:
    fields = {
        "num_gpus": np.array([1]),
        "config_types": np.array([0]),
        "config_gpus": np.array([1]),
        "goodputs": np.ones((2, 1)),
    }
    with pytest.raises(InstanceError, match=said):
        Goodput(**fields | {field: value})


def test_configurations_are_powers_of_two_and_whole_servers() -> None:
    assert sizes_within(8, 3) == [1, 2, 4, 8, 16, 24]
    assert sizes_within(4, 30)[-1] == 64
    assert sizes_within(6, 2) == [1, 2, 4, 6, 12]


def test_goodput_is_the_best_over_batch_sizes() -> None:
    model = TrainingModel(0.1, 0.01, 0.2, 0.01, 0.5, 0.02, overlap=1.0)
    gpus, servers, batches, noise = np.array([1, 2, 16]), np.array([1, 1, 2]), (32.0, 1024.0), 200.0
    found = model.goodputs(gpus, servers, batches, 64.0, noise)
    for count, on, goodput in zip(gpus.tolist(), servers.tolist(), found.tolist(), strict=True):
        waits = 0.0 if count == 1 else (0.2 if on == 1 else 0.5) + (0.01 if on == 1 else 0.02) * (count - 2)
        able = [
            size / (0.1 + 0.01 * size / count + waits) * (noise + 32) / (noise + size)
            for size in batch_sizes(*batches).tolist()
            if size <= 64 * count
        ]
        assert goodput == pytest.approx(max(able))
    assert model.goodputs(np.array([1]), np.array([1]), batches, 16.0, noise).tolist() == [0.0]


@settings(max_examples=60, deadline=None)
@given(CATALOGUE["aryl.elastic_allocation"].strategy(), st.data())
def test_spare_gpus_of_aryl_are_a_round_with_one_type(elastic: ElasticAllocation, data: st.DataObject) -> None:
    instance = from_elastic_allocation(elastic)
    ours, theirs = formulations.solve(instance), formulations.solve(elastic)
    assert ours.objective == pytest.approx(-theirs.objective, rel=1e-9, abs=1e-9)
    able = [[-1, *np.flatnonzero(row > 0).tolist()] for row in instance.goodputs]
    configs = np.array([data.draw(st.sampled_from(of)) for of in able], np.int64)
    plan = GoodputPlan(configs=configs)
    gpus = np.where(configs >= 0, instance.config_gpus[configs], 0)
    assert not (gpus % elastic.gpus_per_worker).any()
    same = ElasticAllocationPlan(extra_workers=gpus // elastic.gpus_per_worker)
    assert instance.objective(plan) == pytest.approx(-elastic.objective(same), rel=1e-12, abs=1e-12)
    assert bool(instance.violations(plan)) == bool(elastic.violations(same))


# --- real data ---

PLACEMENTS = (
    "local_bsz,placement,step_time,sync_time\n8,1,0.4,0.1\n16,1,0.6,0.1\n8,2,0.5,0.1\n16,2,0.7,0.1\n8,11,0.9,0.1\n"
)
FASTER = "local_bsz,placement,step_time,sync_time\n8,1,0.1,0.0\n16,1,0.2,0.0\n"
SCALED = "local_bsz,step_time,sync_time,num_nodes,num_replicas\n8,9.0,0.0,1,1\n8,1.0,0.0,2,4\n"
RUN = "progress,iteration,metric,grad_sqr,grad_var\n1.0,1,0.5,2.0,6.0\n2.0,2,0.4,1.0,9.0\n"
WORKLOAD = (
    "name,time,application,num_replicas,batch_size\na,0,bert,2,16\nb,10,vgg,1,8\nc,20,bert,4,16\nd,120,bert,1,8\n"
)


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    """Return a folder of profiles of one model on two types, and of runs at 8 and 32 examples."""
    folder = tmp_path / "traces" / "bert"
    folder.mkdir(parents=True)
    for name, text in (
        ("placements-rtx.csv", PLACEMENTS),
        ("scalability-rtx.csv", SCALED),
        ("placements-dgx.csv", FASTER),
        ("validation-8.csv", RUN),
        ("validation-32.csv", RUN),
    ):
        (folder / name).write_text(text, encoding="utf-8")
    return folder.parent


@pytest.mark.parametrize(("epoch", "square", "variance"), [(1, 2.0, 6.0), (2, 1.0, 9.0), (9, 1.0, 9.0)])
def test_goodputs_of_profiles_are_the_best_over_batch_sizes(
    profiles: Path, epoch: int, square: float, variance: float
) -> None:
    table = read_goodputs(profiles, epoch=epoch)
    found = {
        (kind, gpus): goodput
        for kind, gpus, goodput in zip(table["gpu_type"], table["num_gpus"], table["goodput"], strict=True)
    }

    def best(gpus: int, seconds: Callable[[float], float], most: float) -> float:
        sizes = {round(8 * 4 ** (step / 49)) for step in range(50)}
        return max(
            size / seconds(size / gpus) * (variance + square) / (variance + square * size / 8)
            for size in sizes
            if 8 <= size / gpus <= most
        )

    expected = {
        ("rtx", 1): best(1, lambda local: 0.4 + 0.2 * (local - 8) / 8, 16),
        # On one server, which is faster than on two.
        ("rtx", 2): best(2, lambda local: 0.5 + 0.2 * (local - 8) / 8, 16),
        # What no placement tells.
        ("rtx", 4): best(4, lambda _: 1.0, 8),
        ("dgx", 1): best(1, lambda local: 0.1 + 0.1 * (local - 8) / 8, 16),
    }
    assert found == pytest.approx(expected)


def test_jobs_of_a_workload_have_what_the_profiles_tell(profiles: Path, tmp_path: Path) -> None:
    path = tmp_path / "workload.csv"
    path.write_text(WORKLOAD, encoding="utf-8")
    files = {"throughputs": profiles, "trace": path}
    instance = from_trace(0, **files, num_jobs=3, running=1.0, server_gpus=[2, 4])
    assert instance.num_gpus.tolist() == [2, 4]
    assert list(zip(instance.config_types.tolist(), instance.config_gpus.tolist(), strict=True)) == [
        (0, 1), (0, 2), (1, 1), (1, 2), (1, 4),
    ]  # fmt: skip
    told = read_goodputs(profiles)
    rtx = told[told["gpu_type"] == "rtx"]["goodput"].to_numpy()
    dgx = float(told[told["gpu_type"] == "dgx"]["goodput"].iloc[0])
    assert instance.goodputs[0].tolist() == pytest.approx([dgx / rtx.min(), 0, *(rtx / rtx.min())])
    assert (instance.goodputs == instance.goodputs[0]).all()
    # The round is that of the last arrival: the jobs are 120, 100 and 0 s old.
    assert instance.restart_factors.tolist() == pytest.approx([120 / 150, 100 / 130, 1.0])
    asked = np.array([2, 4, 1])
    held = instance.current >= 0
    assert held.any()
    assert (instance.config_gpus[instance.current[held]] <= asked[held]).all()
    assert not instance.violations(GoodputPlan(configs=instance.current))
    assert instance.origin is not None
    assert instance.origin["rows"] == [0, 2, 3]
    assert instance.origin["repairs"]["job of the trace left out, whose model the table lacks"] == 1
    young = from_trace(0, **files, num_jobs=3, restart_seconds=200.0)
    assert (young.restart_factors == 1).all()
    as_old = from_trace(0, **files, num_jobs=3, restart_seconds=100.0)
    assert as_old.restart_factors.tolist() == pytest.approx([120 / 220, 0.5, 1.0])
    assert (from_trace(0, **files, num_jobs=3, restart_seconds=0.0).restart_factors == 1).all()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"num_jobs": 4}, "num_jobs: got 4, must be 1 to 3, the number of jobs in .* of models"),
        ({"num_jobs": 2, "gpu_types": ["h100"]}, "gpu_types: got 'h100', must be of dgx, rtx"),
        ({"num_jobs": 2, "num_gpus": 6}, "num_gpus: got 6 of dgx, must be whole servers of 4 GPUs"),
        ({"num_jobs": 2, "server_gpus": [4]}, r"server_gpus: got \[4\], must be a number from 1, or one for each"),
        ({"num_jobs": 2, "running": 2.0}, "running 2"),
    ],
)
def test_what_cannot_be_read_is_refused(profiles: Path, tmp_path: Path, options: dict[str, Any], said: str) -> None:
    path = tmp_path / "workload.csv"
    path.write_text(WORKLOAD, encoding="utf-8")
    with pytest.raises(InstanceError, match=said):
        from_trace(0, throughputs=profiles, trace=path, **options)


def test_a_folder_without_profiles_or_runs_is_refused(profiles: Path, tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match="there are no profiles"):
        read_goodputs(tmp_path / "traces" / "bert")
    for run in profiles.glob("*/validation-*.csv"):
        run.unlink()
    with pytest.raises(InstanceError, match="there are no runs of bert"):
        read_goodputs(profiles)


@pytest.mark.parametrize("trace", ["gavel/msr_seed0_0e4a51.trace", "elasticflow/microsoft/raw/cluster02.csv"])
def test_jobs_of_gavel_s_table(data: Path, trace: str) -> None:
    table = data / "gavel/simulation_throughputs.json"
    instance = from_trace(1, throughputs=table, trace=data / trace, num_jobs=12, num_gpus=16)
    assert instance.num_gpus.tolist() == [16, 16, 16]
    assert instance.config_gpus.tolist() == [1, 2, 4, 8, 12, 16] * 3
    # The table has up to 8 workers.
    assert not instance.goodputs[:, instance.config_gpus > 8].any()
    assert (np.where(instance.goodputs > 0, instance.goodputs, np.inf).min(axis=1) == 1).all()
    rates = gavel.read_throughputs(table)
    alone = rates[(rates["partner_scale_factor"] == 0) & (rates["worker_type"] == "v100")]
    model = read_requests(data / trace)["model"][instance.origin["rows"][0]] if "gavel" in trace else None
    if model:
        of = alone[alone["model"] == model].set_index("scale_factor")["throughput"]
        ratio = of[8] / of[1]
        assert instance.goodputs[0, 15] / instance.goodputs[0, 12] == pytest.approx(ratio)
    assert not instance.violations(GoodputPlan(configs=instance.current))
