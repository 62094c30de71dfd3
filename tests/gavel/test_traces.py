"""Readers of Gavel's published files, on small files of their forms and on the files themselves."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import formulations
from instances import InstanceError, gavel
from instances.data.gavel import read_throughputs, read_trace
from instances.gavel import max_min_fairness, traces
from instances.gavel.finish_time_fairness import FinishTimeFairness

from ..effort import rounds

LONG = "ResNet-18 (batch size 16)\tpython3 main.py\tcifar10\t--num_steps\t1\t{steps}\t{scale}\t2\t{slo}\t{arrival}\n"
SHORT = "{model}\tpython3 train.py\t-step\t1\t{steps}\t{arrival}\t{scale}\n"
JOB = "('ResNet-18 (batch size 16)', {})"
NARROW, WIDE, OTHER = JOB.format(1), JOB.format(2), "('LM (batch size 5)', 1)"

TABLE = {
    "k80": {NARROW: {"null": 2.0, NARROW: [1.5, 1.5], OTHER: [1, 3]}, OTHER: {"null": 4.0, NARROW: [3, 1]}},
    "v100": {
        NARROW: {"null": 6.0, NARROW: [0.0, 0.0]},
        WIDE: {"null": 10.0, WIDE: [5.0, 5.0]},
        OTHER: {"null": 0.0, OTHER: [0.0, 0.0]},
    },
    "v100_unconsolidated": {NARROW: {"null": 6.0}, WIDE: {"null": 7.0}},
    "k80_unconsolidated": {NARROW: {"null": 2.0}, OTHER: {"null": 4.0}},
}
TYPES = ("k80", "v100")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "throughputs.json"
    path.write_text(json.dumps(TABLE))
    return path


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "jobs.trace"
    path.write_text(
        LONG.format(steps=600, scale=1, slo="-1.000000", arrival=0)
        + LONG.format(steps=1000, scale=2, slo="500.5", arrival=50.5)
        + LONG.format(steps=600, scale=1, slo="-1", arrival=90)
    )
    return path


# --- throughputs -------------------------------------------------------------------------------


def test_throughputs(table):
    rows = read_throughputs(table)
    assert len(rows) == 15
    alone = rows[rows["partner_scale_factor"] == 0]
    assert len(alone) == 9
    assert (alone["partner"] == "").all()
    assert alone["partner_throughput"].isna().all()
    pair = rows[(rows["worker_type"] == "k80") & (rows["partner"] == "LM (batch size 5)")].iloc[0]
    assert (pair["model"], pair["scale_factor"]) == ("ResNet-18 (batch size 16)", 1)
    assert (pair["throughput"], pair["partner_throughput"]) == (1.0, 3.0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{\n  oops", "line 2: not valid JSON"),
        ("[]", "must be a JSON object"),
        (json.dumps({"k80": 3}), "k80: got 3, must be a JSON object"),
        (json.dumps({"k80": {"ResNet": {"null": 1}}}), "k80: got job type 'ResNet'"),
        (json.dumps({"k80": {"('ResNet', 0)": {"null": 1}}}), "got job type"),
        (json.dumps({"k80": {"('ResNet', '1')": {"null": 1}}}), "got job type"),
        (json.dumps({"k80": {"__import__('os')": {"null": 1}}}), "got job type"),
        (json.dumps({"k80": {NARROW: {"null": -1}}}), "null: got -1, must be a throughput"),
        (json.dumps({"k80": {NARROW: {"null": "fast"}}}), "null: got 'fast'"),
        (json.dumps({"k80": {NARROW: {"null": math.nan}}}), "null: got nan"),
        (json.dumps({"k80": {NARROW: {"null": True}}}), "null: got True"),
        (json.dumps({"k80": {NARROW: {WIDE: [1]}}}), r"2\): got \[1\], must be two throughputs"),
        (json.dumps({"k80": {NARROW: {WIDE: [1, None]}}}), "got None"),
    ],
)
def test_malformed_throughputs_are_named(tmp_path, content, message):
    path = tmp_path / "bad.json"
    path.write_text(content)
    with pytest.raises(InstanceError, match=rf"bad\.json.*{message}"):
        read_throughputs(path)


def test_bytes_are_refused(tmp_path):
    path = tmp_path / "bad"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InstanceError, match="not a text file"):
        read_throughputs(path)
    with pytest.raises(InstanceError, match="not a text file"):
        read_trace(path)


# --- traces --------------------------------------------------------------------------------------


def test_trace_of_10_columns(trace):
    jobs = read_trace(trace)
    assert jobs["model"].tolist() == ["ResNet-18 (batch size 16)"] * 3
    assert jobs["scale_factor"].tolist() == [1, 2, 1]
    assert jobs["steps"].tolist() == [600, 1000, 600]
    assert jobs["arrival"].tolist() == [0, 50.5, 90]
    assert jobs["priority"].tolist() == [2, 2, 2]
    assert jobs["slo"].tolist() == [math.inf, 500.5, math.inf]


def test_trace_of_7_columns(tmp_path):
    path = tmp_path / "old.trace"
    path.write_text(SHORT.format(model="CycleGAN", steps=7, arrival="6.000000", scale=4).rstrip("\n"))
    jobs = read_trace(path)
    assert jobs.drop(columns="command").to_dict("records") == [
        {"model": "CycleGAN", "scale_factor": 4, "steps": 7, "arrival": 6.0, "priority": 1.0, "slo": math.inf}
    ]


GOOD = LONG.format(steps=600, scale=1, slo="-1", arrival=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("A3C\t4\n", "line 1: got 2 tab-separated columns, must be 12, 10, 7"),
        (GOOD + "\nx\n" + GOOD, "line 3: got 1 cells, must be 10"),
        (GOOD + SHORT.format(model="A3C", steps=1, arrival=0, scale=1), "line 2: got 7 cells, must be 10"),
        (
            GOOD + LONG.format(steps=0, scale=1, slo="-1", arrival=0),
            "line 2: steps: got '0', must be a whole number",
        ),
        (GOOD + LONG.format(steps="1.5", scale=1, slo="-1", arrival=0), "line 2: steps: got '1.5'"),
        (LONG.format(steps=1, scale=0, slo="-1", arrival=0), "line 1: scale_factor: got '0'"),
        (LONG.format(steps=1, scale=1, slo="soon", arrival=0), "line 1: slo: got 'soon'"),
        (LONG.format(steps=1, scale=1, slo="nan", arrival=0), "line 1: slo: got 'nan'"),
        (
            LONG.format(steps=1, scale=1, slo="-1", arrival=-3),
            "line 1: arrival: got '-3', must be finite",
        ),
        (LONG.format(steps=1, scale=1, slo="-1", arrival="inf"), "line 1: arrival: got 'inf'"),
        (GOOD.replace("\t2\t", "\t0\t"), "line 1: priority: got '0', must be positive"),
    ],
)
def test_malformed_lines_are_named(tmp_path, content, message):
    path = tmp_path / "bad.trace"
    path.write_text(content)
    with pytest.raises(InstanceError, match=rf"bad\.trace, {message}"):
        read_trace(path)


# --- jobs as instances ------------------------------------------------------------------------------


def test_cluster_by_hand(table, trace):
    jobs, rates = read_trace(trace), read_throughputs(table)
    fields = traces.cluster(jobs, rates, worker_types=TYPES)
    assert fields["throughputs"].tolist() == [[2, 6], [0, 10], [2, 6]]
    assert fields["num_workers"].tolist() == [8, 8]
    assert fields["scale_factors"].tolist() == [1, 2, 1]
    assert fields["pairs"].tolist() == [[0, 2]]
    assert fields["pair_throughputs"].tolist() == [[[1.5, 1.5], [0, 0]]]
    placed = traces.cluster(jobs, rates, worker_types=TYPES, unconsolidated=True, num_workers=[3, 2], share_space=False)
    assert placed["throughputs"].tolist() == [[2, 6, 2, 6], [0, 10, 0, 7], [2, 6, 2, 6]]
    assert placed["pools"].tolist() == [0, 1, 0, 1]
    assert placed["num_workers"].tolist() == [3, 2]
    assert placed["pairs"].shape == (0, 2)
    assert placed["pair_throughputs"].shape == (0, 4, 2)


def test_own_and_partner_are_not_mixed_up(table, tmp_path):
    for first, second, expected in ((1, 2, [1, 3]), (2, 1, [3, 1])):
        models = {1: "ResNet-18 (batch size 16)", 2: "LM (batch size 5)"}
        path = tmp_path / "two.trace"
        path.write_text("".join(SHORT.format(model=models[m], steps=5, arrival=0, scale=1) for m in (first, second)))
        fields = traces.cluster(read_trace(path), read_throughputs(table), worker_types=TYPES)
        assert fields["pairs"].tolist() == [[0, 1]]
        assert fields["pair_throughputs"][0, 0].tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_rates_are_those_of_the_entries_one_by_one(seed):
    """Also where an entry and its mirror image differ: the last one of the table holds."""
    rng = np.random.default_rng(seed)
    kinds = [(f"model {number}", int(rng.integers(1, 3))) for number in range(5)]
    entries = []
    for _ in rounds(40):
        worker, own, other = rng.choice(["a", "b", "b_unconsolidated"]), rng.integers(5), rng.integers(-2, 6)
        partner = ("", 0) if other < 0 else (kinds[other] if other < 5 else ("only a partner", 1))
        entries.append((worker, *kinds[own], *partner, *rng.integers(0, 9, 2).astype(float)))
    columns = ["worker_type", "model", "scale_factor", "partner", "partner_scale_factor"]
    table = pd.DataFrame(entries, columns=[*columns, "throughput", "partner_throughput"])
    listed = {entry[1:3] for entry in entries if not entry[4] and entry[0] in ("a", "b")}
    jobs = pd.DataFrame([kind for kind in kinds for _ in range(2) if kind in listed], columns=["model", "scale_factor"])
    fields = traces.cluster(jobs, table, unconsolidated=False, num_workers=4)
    names = ["a", "b"]
    alone = np.zeros((len(jobs), 2))
    pairs = {}
    for worker, model, scale, partner, partner_scale, rate, partner_rate in entries:
        for job, kind in enumerate(zip(jobs["model"], jobs["scale_factor"], strict=True)):
            if kind != (model, scale) or worker not in names:
                continue
            if not partner_scale:
                alone[job, names.index(worker)] = rate
            for other, beside in enumerate(zip(jobs["model"], jobs["scale_factor"], strict=True)):
                if beside == (partner, partner_scale):
                    pairs[min(job, other), max(job, other), worker] = (
                        (rate, partner_rate) if job < other or kind == beside else (partner_rate, rate)
                    )
    assert fields["throughputs"].tolist() == alone.tolist()
    for (first, second), rates in zip(fields["pairs"].tolist(), fields["pair_throughputs"].tolist(), strict=True):
        for worker, got in zip(names, rates, strict=True):
            # Jobs of one type are interchangeable, and the table's entry says which is which no more.
            expected = pairs.get((first, second, worker), (0.0, 0.0))
            assert sorted(got) == sorted(expected)
            if jobs["model"][first] != jobs["model"][second]:
                assert tuple(got) == expected


def test_what_the_table_lacks_is_named(table, trace, tmp_path):
    rates = read_throughputs(table)
    with pytest.raises(InstanceError, match=r"worker type 'p100': the table has only k80, .*v100"):
        traces.cluster(read_trace(trace), rates, worker_types=["k80", "p100"])
    path = tmp_path / "other.trace"
    path.write_text(SHORT.format(model="A3C", steps=5, arrival=0, scale=4))
    jobs = read_trace(path)
    with pytest.raises(InstanceError, match="model 'A3C' with scale factor 4: the table has no such job type"):
        traces.cluster(jobs, rates, worker_types=TYPES)
    with pytest.raises(InstanceError, match="model 'A3C' with scale factor 4, as all others"):
        traces.draw_jobs(0, jobs, rates, 1)


def test_jobs_are_drawn_once_each_if_there_are_enough(table, trace):
    jobs, rates = read_trace(trace), read_throughputs(table)
    drawn = traces.draw_jobs(3, jobs, rates, 3)
    assert drawn["arrival"].tolist() == [0, 50.5, 90]
    assert sorted(set(traces.draw_jobs(3, jobs, rates, 2)["arrival"])) == sorted(
        traces.draw_jobs(np.random.default_rng(3), jobs, rates, 2)["arrival"]
    )
    assert len(traces.draw_jobs(3, jobs, rates, 20)) == 20
    with pytest.raises(InstanceError, match="num_jobs: got 0"):
        traces.draw_jobs(3, jobs, rates, 0)


def test_active_jobs_by_hand(table, trace):
    """Alone on the V100, job 0 makes 6 steps/s for 100 s, job 1 10 for 100 s from 50.5, job 2 6 from 90."""
    jobs, rates = read_trace(trace), read_throughputs(table)

    def at(time, slowdown=1.0):
        active = traces.active_jobs(jobs, rates, time, slowdown=slowdown, worker_types=TYPES)
        return active[["arrival", "steps", "steps_done", "elapsed"]].to_numpy().tolist()

    assert at(0) == [[0, 600, 0, 0]]
    assert at(60.5) == [[0, 237, 363, 60.5], [50.5, 900, 100, 10]]
    assert at(100) == [[50.5, 505, 495, 49.5], [90, 540, 60, 10]]
    assert at(100, slowdown=2) == [[0, 300, 300, 100], [50.5, 753, 247, 49.5], [90, 570, 30, 10]]
    with pytest.raises(InstanceError, match="time: got 1000"):
        at(1000)
    with pytest.raises(InstanceError, match="time: got -1"):
        at(-1)
    with pytest.raises(InstanceError, match="slowdown: got 0"):
        at(100, slowdown=0)


def test_a_snapshot_by_hand(table, trace):
    files = {"throughputs": table, "trace": trace, "worker_types": TYPES, "time": 60.5}
    instance = gavel.from_trace("gavel.finish_time_fairness", **files)
    assert isinstance(instance, FinishTimeFairness)
    assert instance.throughputs.tolist() == [[2, 6], [0, 10]]
    assert instance.steps.tolist() == [237, 900]
    assert instance.elapsed.tolist() == [60.5, 10]
    # Isolated, either job has half of its time on each pool, where job 1 makes nothing on one.
    assert instance.isolated_throughputs == pytest.approx([4, 5])
    assert instance.isolated_elapsed == pytest.approx([363 / 4, 20])
    weighted = gavel.from_trace("gavel.max_min_fairness", **files)
    assert weighted.weights.tolist() == [2, 2]
    priced = gavel.from_trace("gavel.cost", **files, costs=[1.0, 2.0])
    assert priced.costs.tolist() == [1, 2]
    assert priced.slos.tolist() == [math.inf, 490.5]
    late = gavel.from_trace("gavel.cost", **{**files, "time": 560.0}, slowdown=9.0, costs=[1.0, 2.0])
    assert late.slos.tolist() == [math.inf] * late.num_jobs
    assert late.origin["rows"] == list(range(3))[-late.num_jobs :]
    assert late.origin["repairs"] == {"SLO is missed already, and left out": 1}
    assert instance.origin["rows"] == [0, 1]
    assert instance.origin["repairs"] == {}
    assert instance.origin["options"]["time"] == 60.5
    given = gavel.from_trace("gavel.makespan", **files, steps=[5.0, 6.0])
    assert given.steps.tolist() == [5, 6]
    with pytest.raises(InstanceError, match=r"problem: got 'aryl\.reclaim'"):
        gavel.from_trace("aryl.reclaim", **files)


# --- the published files ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["simulation", "physical_cluster"])
def test_published_throughputs(data, name):
    rows = read_throughputs(data / "gavel" / f"{name}_throughputs.json")
    alone = rows[rows["partner_scale_factor"] == 0]
    counts = alone.groupby("worker_type").size()
    assert counts.to_dict() == {
        **dict.fromkeys(["k80", "p100", "v100", "p100_unconsolidated", "v100_unconsolidated"], 83),
        "k80_unconsolidated": 77,
    }
    pairs = rows[rows["partner_scale_factor"] > 0]
    assert (pairs["scale_factor"] == pairs["partner_scale_factor"]).all()
    zero = (pairs["throughput"] == 0) & (pairs["partner_throughput"] == 0)
    assert 0.6 < zero.mean() < 0.7
    # The table says each pair twice, once from either side, and the two agree.
    sides = pairs.set_index(["worker_type", "model", "scale_factor", "partner", "partner_scale_factor"])
    mirrored = sides.reorder_levels([0, 3, 4, 1, 2]).reindex(sides.index)
    assert (mirrored["throughput"].to_numpy() == sides["partner_throughput"].to_numpy()).all()


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("max_min_fairness", 96),
        ("minimize_makespan", 100),
        ("small_test", 20),
        ("medium_test", 20),
        ("msr_seed0_0e4a51", 1181),
    ],
)
def test_published_traces(data, name, count):
    jobs = read_trace(data / "gavel" / f"{name}.trace")
    assert len(jobs) == count
    assert (jobs["slo"] == math.inf).all()
    assert set(jobs["scale_factor"]) <= {1, 2, 4, 8}


@pytest.mark.parametrize("name", ["max_min_fairness", "msr_seed0_0e4a51"])
@pytest.mark.parametrize("unconsolidated", [False, True])
def test_real_jobs_are_solved(data, name, unconsolidated):
    files = {
        "throughputs": data / "gavel" / "simulation_throughputs.json",
        "trace": data / "gavel" / f"{name}.trace",
        "unconsolidated": unconsolidated,
    }
    instance = max_min_fairness.from_trace(5, num_jobs=24, **files)
    assert instance == max_min_fairness.from_trace(np.random.default_rng(5), num_jobs=24, **files)
    assert instance.num_jobs == 24
    assert instance.num_types == (6 if unconsolidated else 3)
    assert instance.num_pairs > 0
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.certificate.holds
    assert solution.objective >= instance.objective(instance.isolated_share()) * (1 - 1e-9)


def test_jobs_that_fit_no_k80(data):
    """ResNet-50 of batch size 128 on several workers runs out of a K80's memory: zero, or no entry at all."""
    jobs = read_trace(data / "gavel" / "msr_seed0_0e4a51.trace")
    wide = jobs[(jobs["model"] == "ResNet-50 (batch size 128)") & (jobs["scale_factor"] > 1)].head(3)
    assert len(wide) == 3
    rates = read_throughputs(data / "gavel" / "simulation_throughputs.json")
    fields = traces.cluster(wide, rates, unconsolidated=True)
    assert (fields["throughputs"][:, [0, 3]] == 0).all()
    instance = max_min_fairness.MaxMinFairness(**fields)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert instance.violations(solution.plan) == []


def test_models_that_the_table_lacks_in_the_older_trace(data):
    files = {
        "throughputs": data / "gavel" / "simulation_throughputs.json",
        "trace": data / "gavel" / "msr_seed0_0e4a51.trace",
        "time": 1e6,
    }
    with pytest.raises(InstanceError, match=r"model 'Recommendation .*' with scale factor 4: the table has no such"):
        gavel.from_trace("gavel.total_throughput", **files)
    instance = gavel.from_trace("gavel.total_throughput", **files, only_listed=True)
    assert instance.num_jobs > 50
    assert formulations.solve(instance).status == "optimal"


def test_table_2_lists_the_published_job_types(data):
    """26 types, the number in section 7.1."""
    table = read_throughputs(data / "gavel" / "simulation_throughputs.json")
    listed = {
        f"{model} (batch size {size})" if len(sizes) > 1 else model
        for model, sizes in traces.BATCH_SIZES.items()
        for size in sizes
    }
    assert len(listed) == 26
    assert set(table["model"]) == listed
