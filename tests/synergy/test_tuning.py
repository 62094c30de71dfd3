"""Configurations and places at once: few servers at a time; judging, generators and real input."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import formulations
from formulations.engine.options import Options
from formulations.engine.solving import solve_one_model
from formulations.methods import neighbourhoods
from formulations.synergy.allocation import relaxation
from heuristics.synergy.tuning import greedy, proportional, tune, tune_and_upgrade
from instances import InstanceError, PlanError
from instances.synergy.packing import first_stage, packings
from instances.synergy.tuning import Tuning, TuningPlan, four_jobs, from_trace, generate

from ..effort import rounds
from ..second_opinion import optimum
from .small import assert_dominated_change_nothing

Table = list[list[int]]


def tiny(rng: np.random.Generator, *, max_jobs: int = 3) -> dict[str, Any]:
    """Fields of a small instance: equal jobs, jobs larger than a server and full clusters are common."""
    num_servers, server_gpus = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    cpus, memory = (int(size) for size in rng.integers(0, 9, 2))
    gpu_demands: list[int] = []
    configs: list[Table] = []
    left = num_servers * server_gpus
    while left and len(gpu_demands) < max_jobs and (not gpu_demands or rng.random() < 0.8):
        gpus = int(rng.integers(1, min(left, 4) + 1))
        if gpu_demands and rng.random() < 0.3 and gpu_demands[-1] <= left:
            gpus, table = gpu_demands[-1], configs[-1]
        else:
            share = [gpus * size // server_gpus for size in (cpus, memory)]
            first = [int(rng.integers(0, share[0] + 1)), int(rng.integers(0, share[1] + 1)), int(rng.integers(0, 3))]
            table = [first, *rng.integers(0, 8, (int(rng.integers(0, 4)), 3)).tolist()]
        gpu_demands.append(gpus)
        configs.append(table)
        left -= gpus
    return {
        "num_servers": num_servers,
        "server_gpus": server_gpus,
        "server_cpus": float(cpus),
        "server_memory": float(memory),
        "gpu_demands": gpu_demands,
        "configs": configs,
        "allow_split": bool(rng.random() < 0.6),
        "server_cap": bool(rng.random() < 0.5),
        "split_penalty": float(rng.choice([0, 0, 0.25, 1])),
    }


def test_leaving_dominated_configurations_out_changes_no_optimum() -> None:
    rng = np.random.default_rng(3)
    assert_dominated_change_nothing(Tuning, (tiny(rng, max_jobs=5) for _ in rounds(30)), 16)


def test_stage_one_bounds_the_optimum() -> None:
    """Tune <= optimum <= the first stage's integer optimum <= its relaxation (Theorem 4.1)."""
    strict = 0
    for seed in range(12):
        instance = generate(seed, num_servers=2)
        best = formulations.solve(instance)
        first = formulations.solve(instance.stage_one())
        bound = formulations.solve(relaxation(instance.stage_one())).bound
        values = [instance.objective(tune(instance)), best.objective, first.objective, bound]
        assert all(low <= high * (1 + 1e-9) for low, high in itertools.pairwise(values))
        strict += best.objective < bound * (1 - 1e-6)
    assert strict, "the bound's own slack should show on some instance"


def test_the_packed_first_stage_is_the_optimum_by_search() -> None:
    """Its bound is never better than the best of all plans in fractions, also without configurations that none has."""
    rng, tighter, met = np.random.default_rng(11), 0, 0
    for _ in rounds(25):
        fields = tiny(rng)
        scale = [1.0, 1 / 3, 2.0] if rng.random() < 0.5 else [1.0, 1.0, 1.0]
        fields["server_memory"] *= scale[1]
        fields["configs"] = [np.array(table, float) * scale for table in fields["configs"]]
        instance = Tuning(**fields)
        best, found = optimum(instance), formulations.solve(instance, method="packing")
        if best is None:
            assert found.status == "infeasible"
            continue
        assert found.status == "optimal"
        assert found.objective == pytest.approx(float(best), rel=1e-5)
        stage, kept = first_stage(instance)
        bound = solve_one_model(stage, Options()).bound
        assert bound >= float(best) * (1 - 1e-6)
        tighter += sum(map(len, kept)) < sum(int(usable.sum()) for usable in instance.usable_configs)
        met += "packing of the first stage's plan" in found.message
    assert tighter > 1
    assert met > 5


def test_no_plan_has_what_the_tighter_first_stage_leaves_out() -> None:
    """One GPU of a full server with 18 of 24 cores leaves less than a core for each of the seven others."""
    greedy_job, others = [[1.0, 0.0, 1.0], [17.0, 0.0, 5.0], [18.0, 0.0, 9.0]], [[1.0, 0.0, 1.0]]
    instance = Tuning(
        num_servers=2,
        server_gpus=8,
        server_cpus=24.0,
        server_memory=1.0,
        gpu_demands=np.ones(16, np.int64),
        configs=(np.array(greedy_job), *(np.array(others) for _ in range(15))),
    )
    assert first_stage(instance)[1][0].tolist() == [0, 1]
    assert solve_one_model(instance.stage_one(), Options()).bound == pytest.approx(24.0)
    found = formulations.solve(instance)
    assert found.objective == found.bound == 20.0
    # With a GPU free the seven others need not be beside it.
    assert first_stage(instance.restricted_to(range(15)))[1][0].tolist() == [0, 1, 2]


def test_jobs_that_lose_by_it_are_not_split() -> None:
    """A plan comes from whole jobs, then; it is feasible, and its bound holds."""
    instance = replace(generate(1, num_servers=8), split_penalty=0.5)
    choices = instance.proportional_choices
    table = next(packings(instance, choices, np.random.default_rng(0)))
    assert ((table > 0).sum(axis=1)[instance.penalised] == 1).all()
    assert instance.violations(TuningPlan(choices=choices, gpus=table)) == []


def test_a_search_starts_from_a_plan() -> None:
    instance = generate(1, num_servers=2)
    solution = formulations.solve(instance, start=tune(instance))
    assert solution.objective == pytest.approx(formulations.solve(instance).objective)


def test_few_servers_at_a_time_share_no_job_with_the_others() -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        gpus = tune(generate(seed, num_servers=9)).gpus
        seen: list[int] = []
        for servers in neighbourhoods._groups(gpus, rng):
            assert 1 < len(servers) <= neighbourhoods.FEW
            jobs = gpus[:, servers].any(axis=1)
            assert not np.delete(gpus[jobs], servers, axis=1).any()
            seen += servers.tolist()
        assert len(seen) == len(set(seen))


def test_a_plan_improved_by_few_servers_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps all rules, gains on the start, and the whole way ends with an interval that holds."""
    instance = generate(1, num_servers=8, multi_gpu=False)
    start = proportional(instance)
    most = formulations.solve(relaxation(instance.stage_one())).bound
    plan = neighbourhoods._improved(instance, start, most, Options(verify=False, mip_gap=1e-2), seconds=1.0)
    assert instance.violations(plan) == []
    assert instance.objective(start) < instance.objective(plan) <= most * (1 + 1e-9)

    monkeypatch.setattr(neighbourhoods, "FIRST_SECONDS", 1e-3)
    solution = formulations.solve(instance, start=plan, time_limit=2.0, method="servers")
    assert solution.method == neighbourhoods.NEIGHBOURHOODS.name
    assert instance.violations(solution.plan) == []
    assert solution.objective is not None
    assert instance.objective(plan) <= solution.objective <= solution.bound * (1 + 1e-6)


def assert_read_back(instance: Tuning, *plans: TuningPlan) -> None:
    for plan in plans:
        model = formulations.build(instance)
        formulations.formulation(instance.problem).write(model, plan)
        again = formulations.read(model)
        assert instance.violations(again) == []
        assert instance.objective(again) == pytest.approx(instance.objective(plan))


@pytest.mark.parametrize("allow_split", [True, False])
def test_writing_a_plan_and_reading_it_back(allow_split: bool) -> None:
    instance = replace(four_jobs(), allow_split=allow_split)
    assert_read_back(instance, formulations.solve(instance).plan)


def test_equal_jobs_share_a_class() -> None:
    instance = four_jobs()
    model = formulations.build(instance)
    assert model.jobs == [[0], [1], [2, 3]]
    apart = replace(instance, fair_throughputs=[4.0, 4.0, 4.0, 3.5])
    assert formulations.build(apart).jobs == [[0], [1], [2], [3]]


def test_constraints_can_be_added_to_the_model() -> None:
    """Server 1 is to be drained: with half of the GPUs, the four jobs have no room."""
    instance = four_jobs()
    model = formulations.build(instance)
    for variable in model.placed.values():
        if variable.index()[2] == 1:
            variable.setub(0)
    assert formulations.solve(model).status == "infeasible"


# --- the worked example -------------------------------------------------------------------------


def test_four_jobs() -> None:
    """With the server cap no job is worth splitting for its cores to Tune, which ends where proportional shares do."""
    instance = four_jobs()
    for method in (proportional, tune):
        assert instance.objective(method(instance)) == pytest.approx(16)
    assert instance.objective(greedy(instance)) == pytest.approx(15)
    assert instance.skipped(greedy(instance)).tolist() == [False, False, True, True]
    assert instance.objective(tune_and_upgrade(instance)) == pytest.approx(19.72)
    assert formulations.solve(instance).objective == pytest.approx(21.2)
    assert formulations.solve(relaxation(instance.stage_one())).bound == pytest.approx(21.2)


def test_four_jobs_without_the_server_cap() -> None:
    """Proportional shares 16; Greedy leaves Audio-M5 out; Tune 19; the optimum 21.2; the bound 22.12."""
    instance = four_jobs().uncapped()
    assert instance.objective(proportional(instance)) == pytest.approx(16)
    assert instance.objective(greedy(instance)) == pytest.approx(15)
    assert instance.skipped(greedy(instance)).tolist() == [False, True, False, False]
    assert instance.objective(tune(instance)) == pytest.approx(19)
    assert instance.objective(tune_and_upgrade(instance)) == pytest.approx(19.8)
    best = formulations.solve(instance)
    assert best.objective == pytest.approx(21.2)
    # Both sensitive jobs are spread, so that each takes the cores that one language job spares.
    assert best.plan.gpus[:2].tolist() == [[2, 2], [2, 2]]
    assert formulations.solve(instance.stage_one()).objective == pytest.approx(21.2)
    assert formulations.solve(replace(instance, allow_split=False)).objective == pytest.approx(19.72)


# --- judging ------------------------------------------------------------------------------------

TWO: dict[str, Any] = {
    "server_cap": False,
    "num_servers": 2,
    "server_gpus": 2,
    "server_cpus": 4.0,
    "server_memory": 6.0,
    "gpu_demands": [2, 1],
    "configs": [[[4, 2, 2], [6, 8, 5]], [[2, 1, 1], [1, 9, 1]]],
}


@pytest.mark.parametrize(
    ("choices", "gpus", "broken"),
    [
        ([0, 0], [[2, 0], [0, 1]], []),
        ([1, 0], [[1, 1], [1, 0]], ["server_cpus[0] by 1"]),
        ([0, 0], [[2, 0], [1, 0]], ["server_gpus[0] by 1", "server_cpus[0] by 2"]),
        ([1, 0], [[2, 0], [0, 1]], ["server_cpus[0] by 2", "server_memory[0] by 2"]),
        ([0, 0], [[1, 0], [0, 1]], ["placed[0] by 1"]),
        ([-1, 0], [[0, 0], [0, 1]], ["placed[0] by 2"]),
        ([0, 0], [[3, -1], [0, 1]], ["gpus_at_least_0[0, 1] by 1", "server_gpus[0] by 1", "server_cpus[0] by 2"]),
        ([0, 1], [[2, 0], [0, 1]], ["server_memory[1] by 3"]),
        ([2, 0], [[2, 0], [0, 1]], ["one_config[0] by 1"]),
    ],
)
def test_broken_rules(choices: list[int], gpus: list[list[int]], broken: list[str]) -> None:
    assert [str(v) for v in Tuning(**TWO).violations(TuningPlan(choices=choices, gpus=gpus))] == broken


def test_splits_and_unfair_choices_are_named() -> None:
    instance = Tuning(**TWO, allow_split=False, fair_throughputs=[2.0, 1.5])
    plan = TuningPlan(choices=[0, 0], gpus=[[1, 1], [1, 0]])
    assert [str(v) for v in instance.violations(plan)] == ["one_server[0] by 1", "fair_throughput[1] by 0.5"]


def test_a_job_above_one_server_is_named() -> None:
    """Each server has 2 GPUs, 4 cores and 6 GB; a job of 3 GPUs fits no server, and is not capped."""
    capped = Tuning(**{**TWO, "server_cap": True})
    plan = TuningPlan(choices=[1, 0], gpus=[[1, 1], [1, 0]])
    broken = ["server_cpus[0] by 1", "job_cpus[0] by 2", "job_memory[0] by 2"]
    assert [str(v) for v in capped.violations(plan)] == broken
    wide = Tuning(**{**TWO, "server_cap": True, "gpu_demands": [3, 1]})
    rules = {v.rule for v in wide.violations(TuningPlan(choices=[1, 0], gpus=[[2, 1], [0, 1]]))}
    assert "job_cpus" not in rules
    assert formulations.solve(capped).plan.choices.tolist() == [0, 0]
    assert capped.uncapped() == Tuning(**TWO)


def test_a_job_that_does_not_run_is_worth_nothing() -> None:
    instance = Tuning(**TWO)
    assert instance.objective(TuningPlan(choices=[0, 0], gpus=[[2, 0], [0, 1]])) == 3
    assert instance.objective(TuningPlan(choices=[0, -1], gpus=[[2, 0], [0, 0]])) == 2
    assert instance.objective(TuningPlan(choices=[0, 0], gpus=[[1, 0], [0, 1]])) == 1
    with pytest.raises(PlanError, match=r"choices is 2 at index \[1\], must be -1 \(left out\) to 1"):
        instance.objective(TuningPlan(choices=[0, 2], gpus=[[2, 0], [0, 1]]))
    with pytest.raises(PlanError, match="s = 2"):
        instance.objective(TuningPlan(choices=[0, 0], gpus=[[2, 0, 0], [0, 1, 0]]))


# --- generators and real input ------------------------------------------------------------------


def test_the_generator_can_forbid_splits() -> None:
    assert generate(7, allow_split=False).allow_split is False


def test_load_sets_the_gpus_in_use() -> None:
    assert generate(0, num_servers=4, load=0.5).gpu_demands.sum() == 16


def test_published_jobs_are_solved(data: Path) -> None:
    folder = data / "synergy"
    instance = from_trace(
        0, throughputs=folder / "sensitivity_profiles.json", trace=folder / "static_100job.csv", num_servers=4
    )
    assert instance.num_jobs == 32
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert instance.objective(tune(instance)) <= solution.objective
    # More jobs than the trace has: they come a second time.
    assert (
        from_trace(
            0, throughputs=folder / "sensitivity_profiles.json", trace=folder / "static_100job.csv", num_servers=16
        ).num_jobs
        == 128
    )


# --- consolidation against allocation -----------------------------------------------------------


def test_a_split_pays_until_it_costs_too_much() -> None:
    """Without the cap two jobs give up consolidation for cores: 21.2 in all, 19.72 on one server each."""
    instance = four_jobs().uncapped()
    whole = formulations.solve(replace(instance, allow_split=False)).objective
    values = []
    for penalty in (0.0, 0.01, 0.05, 0.2, 1.0):
        priced = replace(instance, split_penalty=penalty)
        solution = formulations.solve(priced)
        assert solution.status == "optimal"
        assert priced.violations(solution.plan) == []
        values.append(solution.objective)
        splits = (solution.plan.gpus > 0).sum(axis=1) > 1
        # The two sensitive jobs train at 13.2 of the 21.2.
        assert splits.tolist() == [penalty < 0.1] * 2 + [False] * 2
    assert values == pytest.approx([21.2, 21.2 - 0.132, 21.2 - 0.66, whole, whole])


def test_a_job_that_no_server_holds_pays_no_penalty() -> None:
    wide = Tuning(**{**TWO, "gpu_demands": [3, 1]}, split_penalty=0.5)
    plan = TuningPlan(choices=[0, 0], gpus=[[2, 1], [0, 1]])
    assert wide.objective(plan) == 3
    narrow = Tuning(**TWO, split_penalty=0.5)
    assert narrow.objective(TuningPlan(choices=[0, 0], gpus=[[1, 1], [0, 1]])) == 2
    with pytest.raises(InstanceError, match=r"split_penalty: got 1.5, must be at most 1"):
        Tuning(**TWO, split_penalty=1.5)


def test_writing_a_plan_with_a_penalty_and_reading_it_back() -> None:
    instance = replace(four_jobs().uncapped(), split_penalty=0.01)
    assert_read_back(instance, formulations.solve(instance).plan, tune(instance), proportional(instance))


def test_jobs_of_two_servers() -> None:
    """Jobs of 16 GPUs, as in section 5.3: on servers of 8 they are split, and the cap is not about them."""
    drawn = [generate(seed, num_servers=8, widest=16) for seed in range(12)]
    assert {16} < {int(gpus) for instance in drawn for gpus in instance.gpu_demands} <= {1, 2, 4, 8, 16}
    assert all(instance.gpu_demands.sum() == 64 for instance in drawn)
    instance = next(one for one in drawn if one.gpu_demands.max() == 16)
    wide = int(instance.gpu_demands.argmax())
    plan = tune(instance)
    assert (plan.gpus[wide] > 0).sum() >= 2
    assert plan.gpus[wide].sum() == 16
    assert instance.allowed_configs[wide].all()
    # What is drawn without them is what it was.
    assert generate(3, widest=8) == generate(3)
