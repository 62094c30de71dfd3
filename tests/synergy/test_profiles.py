"""The analytic profile, the search for CPU points to measure, and the readers of published data."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import instances.synergy
from instances import InstanceError
from instances.data.synergy import Profiles, read_profiles, read_trace
from instances.synergy.profiles import (
    TASKS,
    binary_search_profile,
    both_halves_profile,
    draw_gpu_demands,
    draw_matrix,
    draw_tasks,
    fetch_speed,
    naive_profile,
    optimistic_profile,
    profile,
)

JOB = {"gpu_speed": 1000.0, "cpu_speed": 100.0, "dataset_size": 100.0, "sample_size": 0.1, "storage_bandwidth": 50.0}


# --- the analytic model -------------------------------------------------------------------------


def test_profile_is_the_slowest_stage() -> None:
    # Storage delivers 500 samples/s uncached, 1000 with half of the data cached, any number with all of it.
    matrix = profile([1, 6, 24], [0, 50, 75, 100], **JOB)
    assert matrix.tolist() == [[100, 100, 100, 100], [500, 600, 600, 600], [500, 1000, 1000, 1000]]


def test_profile_is_found_where_the_design_names_it() -> None:
    assert instances.synergy.profile is profile
    assert instances.synergy.binary_search_profile is binary_search_profile


def test_fetch_speed_grows_without_bound_as_the_cache_fills() -> None:
    speed = fetch_speed([0, 90, 100, 200], dataset_size=100.0, sample_size=1.0, storage_bandwidth=10.0)
    assert speed[:2] == pytest.approx([10, 100])
    assert speed[2:].tolist() == [math.inf, math.inf]


def test_profile_takes_measured_speeds_of_cores() -> None:
    """Optimistic profiling: cores measured with everything cached, memory computed."""
    matrix = profile([1, 2, 4], [0, 100], **{**JOB, "cpu_speed": [100.0, 180.0, 700.0]})
    assert matrix.tolist() == [[100, 100], [180, 180], [500, 700]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gpu_speed", 0.0),
        ("cpu_speed", -1.0),
        ("cpu_speed", [1.0, 2.0, 3.0]),
        ("dataset_size", 0.0),
        ("sample_size", math.nan),
        ("storage_bandwidth", -5.0),
    ],
)
def test_profile_refuses(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=field):
        profile([1, 2], [10.0], **{**JOB, field: value})


def test_synthetic_jobs_are_worth_their_gpus_at_the_proportional_share() -> None:
    rng = np.random.default_rng(3)
    for task in TASKS:
        for gpus in (1, 4):
            share = gpus * np.array([3.0, 62.5])
            cpus, memory = gpus * np.array([1.0, 3.0, 12.0]), gpus * np.array([20.0, 62.5, 250.0])
            matrix = draw_matrix(rng, task, gpus, cpus=cpus, memory=memory, share=share)
            assert matrix[1, 1] == pytest.approx(gpus, abs=1e-4)
            assert (np.diff(matrix, axis=0) >= 0).all()
            assert (np.diff(matrix, axis=1) >= 0).all()


# --- which CPU counts to measure ----------------------------------------------------------------


def counted(curve: Callable[[int], float]) -> tuple[list[int], Callable[[int], float]]:
    calls: list[int] = []

    def measure(cores: int) -> float:
        calls.append(cores)
        return curve(cores)

    return calls, measure


RES18 = {1: 0.37, 2: 0.72, 3: 1.0, 4: 1.3, 5: 1.53, 6: 1.75, 9: 2.4, 12: 2.4, 24: 2.4}
"""ResNet18's published points, by cores of one GPU."""


def res18(cores: float) -> float:
    return float(np.interp(cores, list(RES18), list(RES18.values())))


def test_the_search_starts_at_the_maximum_and_goes_one_way() -> None:
    """The paper reports 8 points of 24 for ResNet18; as worded the search takes 6, with both halves 11."""
    calls, measure = counted(res18)
    cpus, throughputs = binary_search_profile(measure, 24)
    # 12 cores are as fast as 24; 6 are slower than 12; 9 are as fast; 7 and 8 are slower still.
    assert calls == [24, 12, 6, 9, 7, 8]
    assert cpus.tolist() == sorted(calls)
    assert throughputs.tolist() == [res18(cores) for cores in sorted(calls)]
    assert len(both_halves_profile(res18, 24)[0]) == 11


def test_a_flat_curve_leads_down_to_one_core_and_a_steep_one_back_to_the_maximum() -> None:
    calls, measure = counted(lambda cores: 7.0)
    assert binary_search_profile(measure, 24)[0].tolist() == [1, 3, 6, 12, 24]
    assert calls == [24, 12, 6, 3, 1]
    assert binary_search_profile(lambda cores: 2.0**cores, 24)[0].tolist() == [12, 18, 21, 22, 23, 24]


@pytest.mark.parametrize(("max_cpus", "expected"), [(1, [1]), (2, [1, 2])])
def test_the_search_on_small_servers(max_cpus: int, expected: list[int]) -> None:
    assert binary_search_profile(float, max_cpus)[0].tolist() == expected


def test_profiling_counts() -> None:
    """24 cores and 10 sizes: 240 runs; 24 with all data cached; 5 with the search. All agree where all is measured."""
    job = {"gpu_speed": 1000.0, "dataset_size": 300.0, "sample_size": 0.1, "storage_bandwidth": 50.0}
    memory = 50.0 * np.arange(1, 11)
    full = profile(np.arange(1, 25), memory, cpu_speed=60.0, **job)
    runs: list[tuple[int, float]] = []

    def measure(cores: int, size: float) -> float:
        runs.append((cores, size))
        return float(full[cores - 1, round(size / 50) - 1])

    assert (naive_profile(measure, range(1, 25), memory) == full).all()
    assert len(runs) == 240
    storage = {name: job[name] for name in ("dataset_size", "sample_size", "storage_bandwidth")}
    calls, cached = counted(lambda cores: measure(cores, 500.0))
    assert optimistic_profile(cached, 24, memory, **storage) == pytest.approx(full)
    assert calls == list(range(1, 25))
    calls, cached = counted(lambda cores: measure(cores, 500.0))
    searched = optimistic_profile(cached, 24, memory, search=True, **storage)
    assert calls == [24, 12, 18, 15, 16]
    # The throughput is linear up to 16 cores and flat from 17 on, so that little is lost between the points.
    assert searched == pytest.approx(full, rel=0.1)
    with pytest.raises(ValueError, match="max_cpus"):
        optimistic_profile(cached, 0, memory, **storage)


def test_process_memory_comes_before_the_cache() -> None:
    """A language model needs 20 GB and no cache; with less it does not run (section 2.1)."""
    gnmt = {
        "gpu_speed": 100.0,
        "cpu_speed": 400.0,
        "dataset_size": 5.0,
        "sample_size": 0.001,
        "storage_bandwidth": 62.5,
    }
    assert profile([1, 3], [10, 20, 62], process_memory=20.0, **gnmt).tolist() == [[0, 100, 100]] * 2
    speed = fetch_speed(
        [19, 20, 70, 120], dataset_size=100.0, sample_size=1.0, storage_bandwidth=10.0, process_memory=20.0
    )
    assert speed.tolist() == [0, 10, 20, math.inf]
    with pytest.raises(ValueError, match="process_memory"):
        profile([1], [10], process_memory=-1.0, **gnmt)


def test_a_flat_curve_takes_two_measurements() -> None:
    calls, measure = counted(lambda cores: 7.0)
    cpus, throughputs = both_halves_profile(measure, 24)
    assert calls == [1, 24]
    assert (cpus.tolist(), throughputs.tolist()) == ([1, 24], [7.0, 7.0])


def test_a_curve_that_levels_off_is_measured_where_it_grows() -> None:
    calls, measure = counted(lambda cores: min(cores, 6))
    cpus, throughputs = both_halves_profile(measure, 24)
    # [1, 24] -> 12; [12, 24] is flat; [1, 12] -> 6; [6, 12] is flat; below 6 every point is looked at.
    assert cpus.tolist() == [1, 2, 3, 4, 5, 6, 12, 24]
    assert throughputs.tolist() == [1, 2, 3, 4, 5, 6, 6, 6]
    assert sorted(calls) == cpus.tolist()


def test_the_threshold_decides() -> None:
    def curve(cores: int) -> float:
        return 100.0 + cores

    assert both_halves_profile(curve, 8, threshold=0.1)[0].tolist() == [1, 8]
    assert both_halves_profile(curve, 8, threshold=0.05)[0].tolist() == [1, 4, 8]
    assert both_halves_profile(curve, 8, threshold=0.0)[0].tolist() == list(range(1, 9))


@pytest.mark.parametrize(("max_cpus", "expected"), [(1, [1]), (2, [1, 2])])
def test_small_servers(max_cpus: int, expected: list[int]) -> None:
    assert both_halves_profile(float, max_cpus)[0].tolist() == expected


def test_no_speed_at_one_core_is_a_gain_beyond_any_threshold() -> None:
    assert both_halves_profile(lambda cores: float(cores > 1), 4)[0].tolist() == [1, 2, 4]


def test_search_refuses() -> None:
    with pytest.raises(ValueError, match="max_cpus"):
        binary_search_profile(float, 0)
    with pytest.raises(ValueError, match="threshold"):
        both_halves_profile(float, 4, threshold=-0.1)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=24), st.sampled_from([0.0, 0.1, 0.5]))
def test_what_is_left_out_is_within_the_threshold(steps: list[int], threshold: float) -> None:
    curve = np.cumsum(steps)
    cpus, throughputs = both_halves_profile(lambda cores: float(curve[cores - 1]), len(curve), threshold=threshold)
    assert {1, len(curve)} <= set(cpus.tolist())
    for low, high, slow, fast in zip(cpus[:-1], cpus[1:], throughputs[:-1], throughputs[1:], strict=True):
        assert high == low + 1 or fast <= slow * (1 + threshold)


# --- published data -----------------------------------------------------------------------------

GOOD: dict[str, Any] = {
    "cpus_per_gpu": [1, 3],
    "memory_gb_per_gpu": [20, 60],
    "profiles_by_cpu_gpu_ratio": {"3": {"res18": {"throughput": [[0.1, 0.4], [0.1, 1]]}}},
}


def profiles_file(folder: Path, **changed: Any) -> Path:
    path = folder / "profiles.json"
    path.write_text(json.dumps({**GOOD, **changed}), encoding="utf-8")
    return path


def test_profiles_are_read(tmp_path: Path) -> None:
    found = read_profiles(profiles_file(tmp_path))
    assert (found.cpus.tolist(), found.memory.tolist()) == ([1, 3], [20, 60])
    assert found.of("res18").tolist() == [[0.1, 0.4], [0.1, 1.0]]


def test_an_unknown_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=r"no profile of model 'res19'.*did you mean 'res18'"):
        read_profiles(profiles_file(tmp_path)).of("res19")


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"cpus_per_gpu": "one"}, "cpus_per_gpu: must be an array of positive numbers"),
        ({"memory_gb_per_gpu": [20, -60]}, "memory_gb_per_gpu: must be an array of positive"),
        ({"profiles_by_cpu_gpu_ratio": {"4": {}}}, "no profiles for 3 CPUs per GPU, only for 4"),
        ({"profiles_by_cpu_gpu_ratio": []}, "no profiles for 3 CPUs per GPU"),
        ({"profiles_by_cpu_gpu_ratio": {"3": {"res18": {}}}}, "'throughput' is missing"),
        ({"profiles_by_cpu_gpu_ratio": {"3": {"res18": {"throughput": [[1], [2]]}}}}, r"3.res18: got shape \(2, 1\)"),
        ({"profiles_by_cpu_gpu_ratio": {"3": {"res18": {"throughput": [[1], [2, 3]]}}}}, "3.res18: must be an array"),
        ({"profiles_by_cpu_gpu_ratio": {"3": {"res18": {"throughput": [[0, 1], [1, 1]]}}}}, "3.res18: must be"),
    ],
)
def test_malformed_profiles_are_refused(tmp_path: Path, changed: dict[str, Any], complaint: str) -> None:
    path = profiles_file(tmp_path, **changed)
    with pytest.raises(InstanceError, match=complaint) as error:
        read_profiles(path)
    assert str(path) in str(error.value)


def test_files_that_are_no_profiles(tmp_path: Path) -> None:
    path = tmp_path / "profiles.json"
    path.write_text('{"cpus_per_gpu": [1],\n "memory', encoding="utf-8")
    with pytest.raises(InstanceError, match=r"profiles\.json, line 2: not valid JSON"):
        read_profiles(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InstanceError, match="not a text file"):
        read_profiles(path)
    path.write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(InstanceError, match="'profiles_by_cpu_gpu_ratio' is missing"):
        read_profiles(path)


def test_jobs_are_read(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("0,alexnet,0.0,3349,1\n\n1,gnmt,0.001,26435,4\n", encoding="utf-8")
    jobs = read_trace(path)
    assert list(jobs.columns) == ["id", "model", "arrival", "iterations", "gpus"]
    assert jobs.to_dict("list") == {
        "id": [0, 1],
        "model": ["alexnet", "gnmt"],
        "arrival": [0.0, 0.001],
        "iterations": [3349, 26435],
        "gpus": [1, 4],
    }


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("1,gnmt,0.001,26435", "got 4 cells"),
        ("1,gnmt,0.001,26435,1,9", "got 6 cells"),
        ("x,gnmt,0.001,26435,1", "'x'"),
        ("1,gnmt,soon,26435,1", "'soon'"),
        ("1,gnmt,nan,26435,1", "arrival: got 'nan', must be finite"),
        ("1,gnmt,-1,26435,1", "arrival: got '-1', must be finite and at least 0"),
        ("1,gnmt,0.001,0,1", "iterations: got '0'"),
        ("1,gnmt,0.001,26435,0", "gpus: got '0', must be a whole number, at least 1"),
        ("1,gnmt,0.001,26435,1.5", "'1.5'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(f"0,alexnet,0.0,3349,1\n{line}\n", encoding="utf-8")
    with pytest.raises(InstanceError, match=rf"jobs\.csv, line 2: .*{complaint}"):
        read_trace(path)


def test_a_file_without_jobs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(InstanceError, match="is empty"):
        read_trace(path)


def test_published_profiles(data: Path) -> None:
    path = data / "synergy" / "sensitivity_profiles.json"
    for ratio in (3, 4, 5, 6):
        found = read_profiles(path, cpus_per_gpu=ratio)
        assert len(found.throughputs) == 12
        assert set().union(*TASKS.values()) <= set(found.throughputs)
        assert all(matrix.shape == (9, 5) for matrix in found.throughputs.values())
    # At 3 cores per GPU the unit is the throughput of the GPU-proportional share, 3 cores and 62.5 GB.
    found = read_profiles(path)
    row, column = found.cpus.tolist().index(3), found.memory.tolist().index(62.5)
    assert {matrix[row, column] for matrix in found.throughputs.values()} == {1.0}


def test_published_jobs(data: Path) -> None:
    jobs = read_trace(data / "synergy" / "static_100job.csv")
    assert len(jobs) == 100
    assert set(jobs["gpus"]) == {1}
    assert set(jobs["model"]) <= set().union(*TASKS.values())


# --- drawing ------------------------------------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(1, 200), st.booleans())
def test_gpu_demands_fill_the_gpus(seed: int, num_gpus: int, multi_gpu: bool) -> None:
    demands = draw_gpu_demands(np.random.default_rng(seed), num_gpus, multi_gpu=multi_gpu)
    assert demands.sum() == num_gpus
    assert set(demands.tolist()) <= ({1, 2, 4, 8} if multi_gpu else {1})


def test_tasks_follow_the_mix() -> None:
    tasks = draw_tasks(np.random.default_rng(0), 10_000, (20, 70, 10))
    assert [round(tasks.count(task) / 10_000, 1) for task in TASKS] == [0.2, 0.7, 0.1]
    assert set(draw_tasks(np.random.default_rng(0), 100, (50, 0, 50))) == {"image", "speech"}


@pytest.mark.parametrize("mix", [(1, 2), (0, 0, 0), (-1, 1, 1), (math.nan, 1, 1)])
def test_a_mix_is_three_weights(mix: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="mix"):
        draw_tasks(np.random.default_rng(0), 3, mix)


def test_profiles_are_read_only(tmp_path: Path) -> None:
    found: Profiles = read_profiles(profiles_file(tmp_path))
    with pytest.raises(ValueError, match="read-only"):
        found.cpus[0] = 5
