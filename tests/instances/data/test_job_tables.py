"""Job tables as people have them: their names, their times, and which papers' instances become of them."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from instances import InstanceError, gavel
from instances.data import gavel as gavels
from instances.data import helios, jobs, lines, microsoft, placements, synergy
from instances.data.jobs import DoubtfulData
from instances.gavel import cost, makespan, max_min_fairness, total_throughput
from instances.synergy import placement, tuning

FIRST = datetime(2017, 10, 3, 4, 55, 10, tzinfo=UTC).timestamp()


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        "2017-10-03 04:55:10",
        " 2017-10-03T04:55:10 ",
        "2017-10-03T04:55:10Z",
        "2017-10-03 06:55:10+02:00",
        "2017-10-02T20:55:10.000-0800",
        "2017-10-03 04:55:10 UTC",
        "2017/10/03 04:55:10",
        "2017/10/3 4:55:10",
        "20171003T045510",
        "2017-10-02 21:55:10 PDT",
        "2017-10-03 12:55:10 +0800 CST",
        "3 Oct 2017 04:55:10",
        "Oct 3 2017 4:55:10AM",
        "Tue Oct  3 04:55:10 2017",
        "Tue, 03 Oct 2017 06:55:10 +0200",
        "03.10.2017 04:55:10",
        str(FIRST),
    ],
)
def test_a_time_is_read_in_every_usual_form(cell: str) -> None:
    assert lines.moment(cell) == FIRST


@pytest.mark.parametrize(
    "cell",
    [
        "2017-13-03",
        "2017-13-03 PDT",
        "31.31.2017",
        "3/10/17 04:55",
        "Oct 2017",
        "2017-10-03 XYZ",
        "soon",
        "",
        "-5",
        "nan",
    ],
)
def test_what_is_no_time_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="must be a date and time such as 2020-06-09 18:41:01, or a number of at lea"):
        lines.moment(cell)
    with pytest.raises(ValueError, match="must be in 1970 or later"):
        lines.moment("1969-12-31 23:59")


@pytest.mark.parametrize("cell", ["03/10/2017 04:55", "10-03-2017"])
def test_a_date_of_which_nothing_tells_the_month_is_refused(cell: str) -> None:
    with pytest.raises(ValueError, match="must have the year first, since nothing tells which number is the month"):
        lines.moment(cell)


@pytest.mark.parametrize(("cells", "fine"), [
    (["03/10/2017 04:55:10", "13/10/2017"], [True, True]),
    (["10/03/2017 04:55:10", "10/13/2017"], [True, True]),
    (["03/10/2017 04:55:10", "13/10/2017", "10/13/2017"], [False, True, True]),
])  # fmt: skip
def test_a_column_tells_whether_the_day_or_the_month_comes_first(cells: list[str], fine: list[bool]) -> None:
    seconds, readable = lines.moment.column(cells)
    assert readable.tolist() == fine
    assert next(one for one, well in zip(seconds, fine, strict=True) if well) == (FIRST if fine[0] else 1507852800)


def _submitted(*times: object) -> str:
    return "job_id,submit_time,duration,num_gpu\n" + "".join(f"{row},{time},60,1\n" for row, time in enumerate(times))


@pytest.mark.parametrize(
    "times",
    [
        ("2017-10-03 04:55:15", "2017-10-03 04:55:10", "2017-10-03 04:55:12.5"),
        *[[round(unit * (FIRST + after)) for after in (5, 0, 2.5)] for unit in (1e3, 1e6, 1e9)],
    ],
)
def test_dates_and_times_since_1970_begin_with_the_first_job(times: Any) -> None:
    found = jobs.read_trace(io.StringIO(_submitted(*times)))
    assert found["submit_time"].tolist() == pytest.approx([5, 0, 2.5], abs=1e-6)
    assert found.attrs["reading"]["began"] == "2017-10-03 04:55:10"


def test_a_clock_of_its_own_stays_what_it_is() -> None:
    found = jobs.read_trace(io.StringIO(_submitted(5010, 5000)))
    assert found["submit_time"].tolist() == [5010, 5000]
    assert "began" not in found.attrs["reading"]
    assert jobs.read_trace(io.StringIO(_submitted(FIRST + 5, FIRST)))["submit_time"].tolist() == [5, 0]


def test_pandas_dates_are_dates_and_deadlines_are_on_the_same_clock() -> None:
    frame = pd.DataFrame(
        {
            "job_id": ["a", "b"],
            "submit_time": pd.to_datetime(["2017-10-03 04:55:10", "2017-10-03 04:56:10"], utc=True),
            "deadline": pd.to_datetime(["2017-10-03 05:55:10", "2017-10-03 04:57:10"], utc=True),
            "num_gpus": 1,
            "duration": 60.0,
        }
    )
    found = jobs.read_trace(frame)
    assert found[["submit_time", "deadline"]].to_dict("list") == {"submit_time": [0, 60], "deadline": [3600, 120]}


def test_logs_and_placements_take_the_same_times() -> None:
    log = "job_id,submit_time,gpu_num,duration\n1,1507006515000,1,60\n2,1507006510000,1,60\n"
    assert helios.read_trace(io.StringIO(log))["submit_time"].tolist() == [0, 5]
    held = "job_id,server,gpus,start,end\na,s,1,2017-10-03 04:55:10,2017-10-03T04:56:10Z\n"
    found = placements.read_placements(io.StringIO(held))
    assert found[["start", "end"]].values.tolist() == [[0, 60]]


def test_durations_may_be_told_by_starts_and_ends() -> None:
    log = (
        "jobid,submitted_time,start_time,finished_time,GPUs\n"
        "a,2017-10-03 04:55:10,2017-10-03 04:56:10,2017-10-03 05:56:10,2\n"
        "b,2017-10-03 04:55:20,2017-10-03 04:56:10,2017-10-03 04:50:10,1\n"
    )
    with pytest.raises(InstanceError, match="open file: job 1, counted from 0, ends before it starts"):
        jobs.read_trace(io.StringIO(log))
    found = jobs.read_trace(io.StringIO(log), skip_bad_rows=True)
    assert found.to_dict("records") == [{"job_id": "a", "submit_time": 0, "num_gpus": 2, "duration": 3600}]
    assert found.attrs["reading"]["skipped"] == 1
    named = log.replace("start_time", "from").replace("finished_time", "to").replace("04:50", "05:50")
    assert len(jobs.read_trace(io.StringIO(named), columns={"start": "from", "end": "to"})) == 2
    with pytest.raises(
        InstanceError, match="there is no column 'duration', only 'jobid', 'submitted_time', 'from', 't"
    ):
        jobs.read_trace(io.StringIO(named))


def test_times_that_look_like_milliseconds_are_pointed_out() -> None:
    days = 86400
    table = "job_id,submit_time,duration,num_gpu\n" + "".join(f"{row},0,{31 * days},1\n" for row in range(3))
    words = "half of the jobs take longer than 31 days: are their durations milliseconds?"
    with pytest.warns(DoubtfulData, match=f"open file: {words}"):
        found = jobs.read_trace(io.StringIO(table))
    assert found.attrs["reading"]["doubts"] == [words]
    # One long job is none of half of them.
    found = microsoft.read_trace(
        io.StringIO(table.replace(f"1,0,{31 * days}", "1,0,9").replace(f"2,0,{31 * days}", "2,0,9"))
    )
    assert "doubts" not in found.attrs["reading"]


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    ["job_id,submit_time,duration,num_gpu", "Job ID,Submission-Time,Duration,NumGPUs", "id,arrival,run_time,gpus"],
)
def test_case_blanks_and_marks_make_no_other_name(header: str) -> None:
    found = jobs.read_trace(io.StringIO(f"{header}\na,0,60,2\n"))
    assert found.to_dict("records") == [{"job_id": "a", "submit_time": 0, "num_gpus": 2, "duration": 60}]


def test_jobs_without_names_are_numbered() -> None:
    found = jobs.read_trace(io.StringIO("submit_time,duration,num_gpu\n0,60,2\n9,60,2\n"))
    assert found["job_id"].tolist() == ["0", "1"]
    assert found.attrs["reading"]["filled_in"] == {"job_id is the number of the row": 2}


@pytest.mark.parametrize(
    "read", [jobs.read_trace, gavels.read_trace, gavels.read_throughputs, synergy.read_trace, synergy.read_profiles]
)
def test_a_file_that_is_empty_is_called_so(read: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(InstanceError, match=r"mine\.csv is empty"):
        read(path)


# --- Gavel and Synergy ----------------------------------------------------------------------------

RATES = "worker_type,model,scale_factor,throughput\nfast,m,1,4\nslow,m,1,2\nfast,m,2,6\nfast,n,1,0.5\n"
OWN = (
    "Model,GPUs,Arrival,Duration\nm,1,2017-10-03 04:55:10,100\nn,1,2017-10-03 04:55:20,3\nm,2,2017-10-03 04:56:10,50\n"
)


def test_a_job_table_of_arrivals_and_durations_is_a_trace_of_gavel_s(tmp_path: Path) -> None:
    (tmp_path / "rates.csv").write_text(RATES, encoding="utf-8")
    (tmp_path / "own.csv").write_text(OWN, encoding="utf-8")
    sources = {"throughputs": tmp_path / "rates.csv", "trace": tmp_path / "own.csv"}
    drawn = total_throughput.from_trace(0, **sources, num_jobs=3)
    assert drawn.throughputs.tolist() == [[4, 2], [0.5, 0], [6, 0]]
    by_file = makespan.from_trace(0, **sources, num_jobs=3)
    assert by_file.steps.tolist() == [400, 2, 300]
    assert by_file.origin is not None
    assert by_file.origin["repairs"] == {"steps are what the job does in its duration on its fastest worker type": 3}
    frames = {name: pd.read_csv(path) for name, path in sources.items()}
    assert makespan.from_trace(0, **frames, num_jobs=3) == by_file
    renamed = frames["trace"].rename(columns={"GPUs": "width", "Model": "net"})
    assert (
        makespan.from_trace(
            0,
            throughputs=frames["throughputs"],
            trace=renamed,
            num_jobs=3,
            columns={"num_gpus": "width", "model": "net"},
        )
        == by_file
    )
    # Steps go before durations; snapshots count from the first arrival.
    told = frames["trace"].assign(steps=[7, 8, 9], priority=[1, 2, 3])
    assert makespan.from_trace(0, throughputs=frames["throughputs"], trace=told, num_jobs=3).steps.tolist() == [7, 8, 9]
    fair = max_min_fairness.from_trace(0, throughputs=frames["throughputs"], trace=told, num_jobs=3)
    assert fair.weights.tolist() == [1, 2, 3]
    active = gavel.from_trace("gavel.makespan", **frames, time=60.0)
    assert active.steps.tolist() == [400 - 240, 300]  # type: ignore[attr-defined]


def test_deadlines_of_a_job_table_are_slos() -> None:
    table = pd.DataFrame({"arrival": [5.0, 9.0], "gpus": 1, "steps": 3, "deadline": [25.0, 30.0], "model": "m"})
    assert gavels.read_trace(table)["slo"].tolist() == [20, 21]
    with pytest.raises(InstanceError, match="DataFrame: job 1: its deadline is not after its arrival"):
        gavels.read_trace(table.assign(deadline=[25.0, 9.0]))


def test_models_that_a_job_table_does_not_name_are_drawn_and_counted() -> None:
    rates, own = (pd.read_csv(io.StringIO(text)) for text in (RATES, OWN))
    drawn = cost.from_trace(
        1, throughputs=rates, trace=own.drop(columns="Model"), num_jobs=3, prices={"fast": 2, "slow": 1}
    )
    assert drawn.origin is not None
    assert drawn.origin["repairs"]["model is drawn"] == 3
    # As many workers as the table has of no model: nothing can be drawn.
    wide = own.drop(columns="Model").assign(GPUs=[1, 1, 3])
    drawn = cost.from_trace(1, throughputs=rates, trace=wide, num_jobs=2, prices={"fast": 2, "slow": 1})
    assert drawn.origin is not None
    assert drawn.origin["repairs"]["job of the trace left out, whose type the table lacks"] == 1
    with pytest.raises(InstanceError, match="a snapshot draws no models: name them in the trace"):
        gavel.from_trace("gavel.fifo", throughputs=rates, trace=own.drop(columns="Model"), time=0.0)


def test_a_job_table_without_work_says_what_to_name() -> None:
    with pytest.raises(InstanceError) as refused:
        gavels.read_trace(pd.DataFrame({"arrival": [0], "gpus": 1, "model": "m", "Seconds": 7}))
    assert str(refused.value) == (
        "DataFrame: there is no column 'iterations', nor one 'duration': name one, as in columns={'duration': ...}, "
        "in the shell --reader columns.duration=..."
    )


def _profiles(folder: Path) -> Path:
    path = folder / "profiles.json"
    entry = {"throughput": [[0.5, 1.0], [1.0, 1.5]]}
    content = {
        "cpus_per_gpu": [1, 3],
        "memory_gb_per_gpu": [20.0, 62.5],
        "profiles_by_cpu_gpu_ratio": {"3": {"m": entry, "n": entry}},
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize("problem", [placement, tuning])
def test_a_job_table_is_a_job_list_of_synergy_s(problem: Any, tmp_path: Path) -> None:
    own = tmp_path / "own.csv"
    own.write_text(OWN, encoding="utf-8")
    made = problem.from_trace(3, throughputs=_profiles(tmp_path), trace=own, num_servers=1)
    assert made.num_jobs >= 3
    assert "model is drawn" not in made.origin["repairs"]
    assert problem.from_trace(3, throughputs=_profiles(tmp_path), trace=pd.read_csv(own), num_servers=1) == made
    frame = pd.read_csv(own)[["GPUs"]].rename(columns={"GPUs": "width"})
    drawn = problem.from_trace(
        3, throughputs=_profiles(tmp_path), trace=frame, num_servers=1, columns={"num_gpus": "width"}
    )
    assert drawn.origin["repairs"]["model is drawn"] == drawn.num_jobs
    assert np.isin(drawn.origin["jobs"], ["0", "1", "2"]).all()


def test_profiles_may_be_a_table(tmp_path: Path) -> None:
    by_file = synergy.read_profiles(_profiles(tmp_path))
    entries = [
        {
            "model": model,
            "cpus_per_gpu": cpus,
            "memory_gb_per_gpu": memory,
            "throughput": by_file.of(model)[row, column],
        }
        for model in by_file.throughputs
        for row, cpus in enumerate(by_file.cpus.tolist())
        for column, memory in enumerate(by_file.memory.tolist())
    ]
    frame = pd.DataFrame(entries[::-1])
    csv = tmp_path / "profiles.csv"
    frame.to_csv(csv, index=False)
    for read in (synergy.read_profiles(frame), synergy.read_profiles(csv)):
        assert {model: read.of(model).tolist() for model in ("m", "n")} == {
            model: by_file.of(model).tolist() for model in ("m", "n")
        }
        assert (read.cpus.tolist(), read.memory.tolist()) == (by_file.cpus.tolist(), by_file.memory.tolist())
    with pytest.raises(InstanceError, match="DataFrame: profile of m: must be an array of positive numbers"):
        synergy.read_profiles(frame.iloc[:-1])
