"""What Synergy prints: its tables and examples, demands that nothing can meet, and what is left of a round."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import formulations
from heuristics.synergy import allocation as of_allocation
from heuristics.synergy import heterogeneous_allocation as of_types
from heuristics.synergy.placement import best_fit, rounded, rounded_fit
from heuristics.synergy.tuning import greedy, greedy_split, proportional, tune
from instances import InstanceError
from instances.data.synergy import read_profiles
from instances.synergy import allocation, heterogeneous_allocation, placement, tuning
from instances.synergy.placement import SynergyPlacement, generate, six_gpus
from instances.synergy.sensitivity import from_matrix
from instances.synergy.tuning import (
    Tuning,
    more_cores,
    more_memory,
    proportional_share,
    split_in_two,
    table_1,
    table_2,
    table_3,
)

from .small import cluster_of

# --- sections 2 and 2.1 ---------------------------------------------------------------------------


def test_table_2_is_the_proportional_plan() -> None:
    instance = table_1()
    assert instance.shares.tolist() == [[12, 250]] * 4
    assert instance.chosen(table_2().choices)[:, :2].tolist() == [[12, 250]] * 4
    assert proportional(instance).gpus.tolist() == table_2().gpus.tolist()
    assert instance.used(table_2().choices, table_2().gpus).tolist() == [[24, 500]] * 2
    assert instance.violations(table_2()) == []


def test_table_3_fills_both_servers_and_is_where_tune_puts_the_jobs() -> None:
    instance = table_1()
    assert instance.chosen(table_3().choices)[:, :2].tolist() == [[23, 400], [12, 450], [1, 100], [12, 50]]
    assert instance.used(table_3().choices, table_3().gpus).tolist() == [[24, 500]] * 2
    assert instance.violations(table_3()) == []
    assert instance.objective(table_2()) == 16
    found = tune(instance)
    assert found.gpus.tolist() == table_3().gpus.tolist()
    # Audio-M5's profile needs no more than its share of memory for what 12 cores give it.
    assert found.choices.tolist() == [1, 0, 1, 1]
    assert instance.objective(found) == instance.objective(table_3()) == formulations.solve(instance).objective


def test_one_and_a_half_times_does_not_follow_from_the_published_profiles(data: Path) -> None:
    """Of jobs of equal length, even with all the cores and memory that ResNet18 and Audio-M5 can use."""
    profiles = read_profiles(data / "synergy" / "sensitivity_profiles.json")
    best = [float(profiles.of(model).max()) for model in ("res18", "m5", "transformer", "gnmt")]
    assert best == [2.4, 2.5, 1, 1]
    assert 4 / sum(1 / speed for speed in best) == pytest.approx(1.42, abs=0.005)
    speeds = table_1().chosen(table_3().choices)[:, 2] / 4
    assert 4 / (1 / speeds).sum() == pytest.approx(1.095, abs=0.001)


def test_the_share_of_one_gpu() -> None:
    assert proportional_share().shares.tolist() == [[4, 50]]


def test_gains_from_cores_and_from_memory(data: Path) -> None:
    """Printed are 3.1 and 2.3 times as fast; the published profiles have 2.94 and 2.4."""
    assert more_cores().fair_throughputs.tolist() == [1, 1]
    assert formulations.solve(more_cores()).objective == pytest.approx(5.4)
    profiles = read_profiles(data / "synergy" / "sensitivity_profiles.json")
    rows = [profiles.cpus.tolist().index(cores) for cores in (3, 12, 9)]
    assert profiles.of("alexnet")[rows[1]].max() / profiles.of("alexnet")[rows[0]].max() == 2.94
    assert profiles.of("res18")[rows[2]].max() / profiles.of("res18")[rows[0]].max() == 2.4
    memory = more_memory()
    assert memory.chosen(memory.best_choices)[:, 1].tolist() == [500, 20]
    assert formulations.solve(memory).objective == 3


def test_split_jobs_have_their_resources_in_proportion() -> None:
    instance = split_in_two()
    plan = tune(instance)
    assert plan.gpus.tolist() == [[1, 1]]
    assert instance.used(plan.choices, plan.gpus).tolist() == [[6, 150], [6, 150]]
    assert instance.violations(plan) == []


# --- 3.1 to 4.1 -----------------------------------------------------------------------------------


def test_w_is_that_of_the_whole_job() -> None:
    """As printed, W_j[c, m] stands for totals of the job; a matrix per GPU is multiplied by the job's GPUs."""
    whole = from_matrix([[4.0], [7.0]], [12, 24], [250])
    assert whole.tolist() == [[12, 250, 4], [24, 250, 7]]
    assert from_matrix([[1.0], [1.75]], [3, 6], [62.5], gpus=4).tolist() == whole.tolist()


def test_the_least_demand_that_saturates() -> None:
    table = np.array([[3, 60, 1], [6, 60, 1.9], [9, 60, 2], [9, 30, 1.99], [4, 60, 1.7]])
    instance = Tuning(**cluster_of(1, 2, 10.0, 120.0), gpu_demands=[1], configs=[table])
    assert [int(instance.best_case(tolerance)[0]) for tolerance in (0, 0.01, 0.05, 0.15)] == [2, 3, 1, 4]
    assert tune(instance, saturation=0.05).choices.tolist() == [1]
    assert greedy(instance, saturation=0.15).choices.tolist() == [4]
    # Nor ever less than fair.
    assert replace(instance, fair_throughputs=[1.8]).best_case(0.9).tolist() == [1]
    for tolerance in (-0.1, 1.0):
        with pytest.raises(ValueError, match="saturation"):
            tune(instance, saturation=tolerance)


def test_greedy_puts_each_job_on_one_server() -> None:
    """Two servers of 2 GPUs: after jobs of 1 GPU on each, the job of 2 GPUs fits none, and one of 3 never does."""
    instance = Tuning(
        **cluster_of(2, 2, 3.0, 0.0),
        gpu_demands=[1, 1, 2],
        configs=[[[2, 0, 1]], [[2, 0, 1]], [[2, 0, 1]]],
        fair_throughputs=[1, 1, 1],
    )
    assert greedy(instance).choices.tolist() == [0, 0, -1]
    assert greedy_split(instance).gpus.tolist() == [[1, 0], [0, 1], [1, 1]]
    wide = replace(instance, gpu_demands=[3, 1, 1])
    assert greedy(wide).choices.tolist() == [-1, 0, 0]
    assert greedy_split(replace(wide, allow_split=False)) == greedy(wide)


def test_the_cap_of_a_machine_type_is_that_of_one_of_its_servers() -> None:
    """Two servers of 2 GPUs and 4 cores, or one of 3 GPUs and 9 cores: 6 cores are too many on the former only."""
    instance = heterogeneous_allocation.HeterogeneousAllocation(
        **cluster_of([2, 1], [2, 3], [4.0, 9.0], [4.0, 9.0]),
        gpu_demands=[2],
        configs=[[[6, 5, 9], [6, 5, 3], [2, 2, 1]]],
        config_types=[[0, 1, 0]],
        fair_throughputs=[0],
    )
    solution = formulations.solve(instance)
    above = type(solution.plan)(choices=[0])
    assert solution.objective == 3
    assert [str(v) for v in instance.violations(above)] == ["job_cpus[0] by 2", "job_memory[0] by 1"]
    assert formulations.solve(instance.uncapped()).plan == above
    # No server of the first type holds 3 GPUs: such a job has no cap there.
    wide = replace(instance, gpu_demands=[3])
    assert wide.violations(above) == []


# --- whole GPUs -----------------------------------------------------------------------------------


def test_six_gpus_are_rounded_to_three_and_three() -> None:
    instance, plan = six_gpus()
    assert (plan.shares * 6).tolist() == [pytest.approx([3.3, 2.7])]
    whole = rounded(instance, plan)
    assert (whole.shares * 6).tolist() == [[3, 3]]
    assert replace(instance, integral_gpus=True).violations(whole) == []


@pytest.mark.parametrize("multi_gpu", [True, False])
def test_rounding_keeps_to_the_servers_gpus(multi_gpu: bool) -> None:
    """Whatever was cut, GPUs are whole and no server has too many; cores and memory may not fit."""
    cut = 0
    for seed in range(12):
        instance = generate(seed, num_servers=4, fill=1.0, multi_gpu=multi_gpu)
        plan = best_fit(instance)
        whole = rounded_fit(instance)
        gpus = whole.shares * instance.demands[:, :1]
        assert gpus == pytest.approx(np.rint(gpus), abs=1e-9)
        assert (gpus.sum(axis=0) <= instance.server_gpus + 1e-9).all()
        assert whole.shares.sum(axis=1) == pytest.approx(1)
        assert rounded(instance, whole) == whole
        kept = ~instance.fragmented(plan)
        assert (whole.shares[kept] == plan.shares[kept]).all()
        cut += int(instance.objective(plan))
    assert cut > 20


# --- demands that nothing can meet ----------------------------------------------------------------

ONE = {"num_servers": 1, "server_gpus": 2, "server_cpus": 4.0, "server_memory": 8.0}


def infeasible(instance: object, why: str) -> None:
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof is not None
    assert why in solution.message


def test_more_gpus_than_there_are() -> None:
    instance = Tuning(**ONE, gpu_demands=[2, 1], configs=[[[2, 2, 1]]] * 2)
    infeasible(instance, "the jobs want 3 GPUs, the cluster has 2")
    assert instance.skipped(tune(instance)).tolist() == [False, True]
    wide = Tuning(**{**ONE, "num_servers": 2}, gpu_demands=[3], configs=[[[2, 2, 1]]], allow_split=False)
    infeasible(wide, "job 0 wants 3 GPUs and may not be split, a server has 2")
    assert tune(wide).choices.tolist() == [-1]
    assert formulations.solve(replace(wide, allow_split=True)).status == "optimal"


@pytest.mark.parametrize("kind", [allocation.SynergyAllocation, Tuning])
def test_a_job_above_one_server_or_the_cluster(kind: type) -> None:
    above = kind(**ONE, gpu_demands=[1], configs=[[[5, 2, 1]]], fair_throughputs=[1])
    infeasible(above, "job 0 has no configuration within one server's CPU cores and memory that gives it its fair")
    unfair = kind(**ONE, gpu_demands=[1], configs=[[[2, 2, 1]]], fair_throughputs=[3])
    infeasible(unfair, "job 0 has no configuration that gives it its fair throughput of 3")
    many = kind(**ONE, gpu_demands=[1, 1], configs=[[[3, 2, 1]]] * 2, fair_throughputs=[1, 1])
    infeasible(many, "the jobs need at least 6 CPU cores, the cluster has 4")
    full = kind(**ONE, gpu_demands=[1, 1], configs=[[[2, 5, 1]]] * 2, fair_throughputs=[1, 1])
    infeasible(full, "the jobs need at least 10 GB, the cluster has 8")
    if kind is Tuning:
        assert tune(above).choices.tolist() == greedy(above).choices.tolist() == [-1]
        assert tune(many).choices.tolist() == [0, -1]
    else:
        assert above.violations(of_allocation.greedy_marginal(above)) != []


def test_more_than_any_machine_type_has() -> None:
    kinds = {"num_servers": [1, 1], "server_gpus": [2, 1], "server_cpus": [4.0, 4.0], "server_memory": [8.0, 8.0]}
    make = heterogeneous_allocation.HeterogeneousAllocation
    wide = make(**kinds, gpu_demands=[3], configs=[[[2, 2, 1]]], config_types=[[0]])
    infeasible(wide, "job 0 wants 3 GPUs of one type, those it can run on have at most 2")
    many = make(**kinds, gpu_demands=[2, 2], configs=[[[2, 2, 1]]] * 2, config_types=[[0]] * 2)
    infeasible(many, "the jobs want 4 GPUs, all types together have 3")
    above = make(**kinds, gpu_demands=[1], configs=[[[5, 2, 1]]], config_types=[[1]], fair_throughputs=[1])
    infeasible(above, "job 0 has no configuration within one server's CPU cores and memory")
    assert formulations.solve(replace(above, server_cap=False, num_servers=[1, 2])).status == "optimal"
    for instance in (wide, many, above):
        for method in (of_types.proportional, of_types.greedy_marginal):
            assert instance.violations(method(instance)) != []


def test_placements_of_too_much() -> None:
    infeasible(SynergyPlacement(**ONE, demands=[[3, 1, 1]]), "the jobs want 3 GPUs, the servers have 2")
    infeasible(SynergyPlacement(**ONE, demands=[[1, 3, 1], [1, 2, 1]]), "the jobs want 5 CPU cores, the servers have 4")
    whole = SynergyPlacement(**{**ONE, "num_servers": 2}, demands=[[1, 6, 1]], integral_gpus=True)
    infeasible(whole, "one GPU of job 0 comes with more CPU cores or memory than a server has")


# --- generators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [allocation, heterogeneous_allocation, placement, tuning])
@pytest.mark.parametrize("num_servers", [-1, 0])
def test_generators_refuse_a_cluster_without_servers(module: object, num_servers: int) -> None:
    with pytest.raises(InstanceError, match=rf"num_servers: got {num_servers}"):
        module.generate(0, num_servers=num_servers)  # type: ignore[attr-defined]


def test_generators_follow_the_server_cap(data: Path) -> None:
    assert tuning.generate(0, server_cap=False).server_cap is False
    assert heterogeneous_allocation.generate(0, server_cap=False).server_cap is False
    path = data / "synergy" / "sensitivity_profiles.json"
    free = allocation.from_mix(0, throughputs=path, num_servers=16, mix=(0, 0, 1), server_cap=False)
    capped = replace(free, server_cap=True)
    wanted = [instance.chosen(instance.best_choices) for instance in (free, capped)]
    assert wanted[0][:, 1].max() > 500 >= wanted[1][:, 1].max()
    assert (free.fair_throughputs == capped.fair_throughputs).all()
    assert formulations.solve(capped).objective <= formulations.solve(free).objective
