"""Studies of replays: what is run, what is stored, what is resumed, and what is said of it."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import instances
import validation.kinds.replays.study
from benchmarks.faults.studies import without_pictures
from instances.aryl.elastic_allocation import ElasticAllocation
from instances.base import InstanceError
from instances.data.lines import read_table
from validation import ReplayOptions, Replays, StudyError, replay_study
from validation.catalogue import entry
from validation.errors import CatalogueError, ReplayError
from validation.kernel.gaps import gap_to
from validation.kernel.store import read_log
from validation.kinds.replays import report
from validation.kinds.replays.records import OFFLINE, REPLAYS
from validation.kinds.replays.report import finish
from validation.replay import decider, replay, settings
from validation.replay.offline import offline

FORKED = pytest.mark.skipif(sys.platform != "linux", reason="only there are workers forked, and functions local")
PROBLEM = "aryl.elastic_allocation"
SMALL: dict[str, Any] = {
    "traces": "poisson",
    "problem": PROBLEM,
    "policies": ["exact", "gandiva"],
    "length": 6,
    "jobs": 2,
    "gaps": "all",
    "offline": 2.0,
    "progress": False,
}


@pytest.fixture(autouse=True)
def _no_pictures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drawing takes most of a small study's time."""
    if "pictures" in request.fixturenames:
        yield
        return
    with without_pictures():
        yield


@pytest.fixture
def pictures() -> None:
    """For tests that want the report drawn."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Replays:
    """A study that tests only read."""
    with without_pictures():
        return replay_study(**SMALL, seeds=2, ties=2, keep="all", output=tmp_path_factory.mktemp("small") / "study")


def replayed(output: Path, **options: Any) -> list[tuple[Any, ...]]:
    """Replays that a call adds to the log: window, seed, decision maker and tie-break."""
    before = len(read_log(output, REPLAYS).rows) if output.exists() else 0
    replay_study(**{**SMALL, "output": output, **options})
    rows = read_log(output, REPLAYS).rows[before:]
    return sorted((row["window"], row["seed"], row["policy"], row["tie"]) for row in rows if row["policy"] != OFFLINE)


# --- what is stored ---


def test_every_cell_has_a_row_and_its_tables(small: Replays) -> None:
    rows = small.rows
    assert len(rows) == 2 * 2 * 2
    assert set(rows["status"]) == {"ended"}
    cells = ["trace", "window", "seed", "policy", "tie"]
    for table in (small.jobs, small.decisions, small.usage):
        assert set(map(tuple, table[cells].to_numpy())) == set(map(tuple, rows[cells].to_numpy()))
    assert (small.jobs.groupby(cells).size() == 6).all()
    # The same jobs for all decision makers.
    arrivals = small.jobs.groupby(["seed", "job"])["arrival"].nunique()
    assert (arrivals == 1).all()


def test_metrics_are_those_of_the_tables(small: Replays) -> None:
    for row in small.rows.to_dict("records"):
        mine = (small.jobs["seed"] == row["seed"]) & (small.jobs["policy"] == row["policy"])
        jobs = small.jobs[mine & (small.jobs["tie"] == row["tie"])]
        assert row["average_jct"] == pytest.approx((jobs["ended"] - jobs["arrival"]).mean())
        assert row["makespan"] == pytest.approx(jobs["ended"].max() - jobs["arrival"].min())


def test_a_cell_is_a_replay_by_itself(small: Replays) -> None:
    module = settings.settings_of(PROBLEM)
    setting = module.generate(np.random.default_rng([1, 0]), problem=PROBLEM, num_jobs=6)
    alone = replay(setting, decider(PROBLEM, "gandiva", seed=1), ties=1, seed=1)
    where = (small.jobs["seed"] == 1) & (small.jobs["policy"] == "gandiva") & (small.jobs["tie"] == 1)
    stored = small.jobs[where].reset_index(drop=True)
    pd.testing.assert_frame_equal(stored[list(alone.jobs)], alone.jobs, check_dtype=False)


def test_kept_instances_are_what_was_decided(small: Replays) -> None:
    assert small.metadata["kept"] == len(small.decisions)
    for row in small.decisions[small.decisions["problem"] == PROBLEM].to_dict("records"):
        instance = instances.load(small.directory / "instances" / row["problem"] / f"{row['instance'][:16]}.json")
        assert isinstance(instance, ElasticAllocation)
        assert instance.digest == row["instance"]
        if row["policy"] == "gandiva" and not np.isnan(row["optimum"]):
            # Decided anew, and measured against the optimum by hand.
            value = instance.objective(entry(PROBLEM).heuristics["gandiva"].function(instance))
            assert row["gap"] == pytest.approx(gap_to(value, row["optimum"]))


def test_metadata_say_where_it_comes_from(small: Replays) -> None:
    stored = json.loads((small.directory / "metadata.json").read_text(encoding="utf-8"))
    assert (stored["cells"], stored["cells_ended"], stored["failed"], stored["finished"]) == (8, 8, 0, True)
    assert stored["asked"]["policies"] == ["exact", "gandiva"]
    assert {"numpy", "highspy", "python"} <= set(stored["versions"])
    pd.testing.assert_frame_equal(pd.read_parquet(small.directory / "results.parquet"), small.rows)


# --- what is resumed ---


def test_the_same_call_runs_nothing_again(tmp_path: Path) -> None:
    output = tmp_path / "study"
    assert len(replayed(output)) == 2
    report = (output / "report.html").read_bytes()
    assert replayed(output) == []
    assert (output / "report.html").read_bytes() == report


@pytest.mark.slow
def test_a_wider_study_runs_what_is_new(tmp_path: Path) -> None:
    output = tmp_path / "study"
    replayed(output)
    assert replayed(output, seeds=2) == [(0, 1, "exact", 0), (0, 1, "gandiva", 0)]
    for asked, new in (
        ({"policies": ["exact", "marginal_greedy"]}, [(0, 0, "marginal_greedy", 0)]),
        ({"restart": 30.0}, [(0, 0, "exact", 0), (0, 0, "gandiva", 0)]),
    ):
        with pytest.warns(UserWarning, match="another replay was here"):
            assert replayed(output, **asked) == new
    # The tables are those of the last call.
    assert set(pd.read_parquet(output / "jobs.parquet")["policy"]) == {"exact", "gandiva"}


def test_a_replay_whose_tables_are_damaged_is_run_again(tmp_path: Path) -> None:
    output = tmp_path / "study"
    replayed(output)
    first = pd.read_parquet(output / "jobs.parquet")
    victim = sorted((output / "replays").glob("*.jobs.parquet"))[0]
    victim.write_bytes(b"no table")
    with pytest.warns(UserWarning, match="tables of a replay are damaged"):
        assert finish(output).metadata["cells_ended"] == 1
    assert len(replayed(output)) == 1
    pd.testing.assert_frame_equal(pd.read_parquet(output / "jobs.parquet"), first)


def test_a_damaged_line_is_set_aside_and_run_again(tmp_path: Path) -> None:
    output = tmp_path / "study"
    replayed(output)
    log = output / "rows.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines()
    number = next(at for at, line in enumerate(lines) if json.loads(line)["policy"] == "gandiva")
    lines[number] = lines[number].replace("ended", "over")
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=f"line {number + 1}: field 'status'"):
        assert replayed(output) == [(0, 0, "gandiva", 0)]


def test_what_is_somebody_elses_stays(tmp_path: Path) -> None:
    (tmp_path / "jobs.parquet").write_bytes(b"mine")
    with pytest.raises(StudyError, match=r"is not a replay's, there is no replay\.json"):
        replay_study(**SMALL, output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.parquet"]


# --- traces ---

TRACE = "job_id,submit_time,num_gpu,duration\n" + "".join(f"j{i},{100 + 300 * i},1,{600 + 60 * i}\n" for i in range(10))


def test_windows_of_a_trace(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(TRACE, encoding="utf-8")
    asked = {**SMALL, "traces": str(tmp_path / "mine.csv"), "windows": 2, "length": 4}
    jobs = replay_study(**asked, output=tmp_path / "study").jobs
    for window, names in enumerate((["j0", "j1", "j2", "j3"], ["j4", "j5", "j6", "j7"])):
        of_window = jobs[(jobs["window"] == window) & (jobs["policy"] == "exact")]
        assert list(of_window["job"]) == names
        assert list(of_window["arrival"]) == [0, 300, 600, 900]
    with pytest.raises(StudyError, match=r"10 jobs, which are 2 windows of 4: there is no window 2"):
        replay_study(**{**asked, "windows": 3}, output=tmp_path / "other")


@pytest.mark.slow
def test_a_trace_elsewhere_is_the_same_trace(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.csv").write_text(TRACE, encoding="utf-8")
    output = tmp_path / "study"
    assert len(replayed(output, traces=tmp_path / "a" / "mine.csv")) == 2
    assert replayed(output, traces=tmp_path / "b" / "mine.csv") == []
    (tmp_path / "b" / "mine.csv").write_text(TRACE.replace("j3,1000", "j3,1001"), encoding="utf-8")
    assert len(replayed(output, traces=tmp_path / "b" / "mine.csv")) == 2


def test_what_is_read_does_not_lie_where_the_study_writes(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(TRACE, encoding="utf-8")
    with pytest.raises(StudyError, match=r"mine\.csv, which is to be read, is in"):
        replay_study(**{**SMALL, "traces": tmp_path / "mine.csv"}, output=tmp_path)


def test_frames_are_replayed_as_their_files_are(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"job_id": ["a", "b", "c"], "submit_time": [0, 60, 90], "num_gpus": [1, 2, 1], "duration": [600, 60, 90]}
    )
    frame.to_csv(tmp_path / "mine.csv", index=False)
    given = {**SMALL, "length": None, "offline": 0.0, "gaps": 0, "policies": ["gandiva"]}
    by_file = replay_study(**given | {"traces": tmp_path / "mine.csv"}, output=tmp_path / "file")
    by_frame = replay_study(**given | {"traces": frame}, output=tmp_path / "frame")
    assert by_frame.rows["trace"].unique().tolist() == ["DataFrame"]
    assert by_frame.rows["average_jct"].tolist() == by_file.rows["average_jct"].tolist()
    sha256 = read_table(frame).sha256
    assert by_frame.metadata["asked"]["traces"] == [f"DataFrame {sha256}"]
    named = {"traces": {"mine": frame, "slower": frame.assign(duration=[6000, 60, 90])}}
    of_two = replay_study(**given | named, output=tmp_path / "two")
    assert [*dict.fromkeys(of_two.averages()["trace"])] == ["mine", "slower"]
    with pytest.raises(
        StudyError, match=r"two are called 'DataFrame': rename one; DataFrames get names as in \{'mine'"
    ):
        replay_study(**given | {"traces": [*named["traces"].values()]}, output=tmp_path / "twins")
    with pytest.raises(StudyError, match="'mine' names a path, which has a name"):
        replay_study(**given | {"traces": {"mine": tmp_path / "mine.csv"}}, output=tmp_path / "path")


def test_a_reader_takes_its_options(tmp_path: Path) -> None:
    """Other names of columns, and rows that cannot be read; what is read so is another trace."""
    (tmp_path / "mine.csv").write_text(TRACE, encoding="utf-8")
    odd = TRACE.replace("job_id,submit_time", "JobNumber,HandedIn").replace("j3,1000,1,780", "j3,soon,1,780")
    (tmp_path / "odd.csv").write_text(odd, encoding="utf-8")
    asked = {**SMALL, "traces": tmp_path / "odd.csv", "length": 9, "offline": 0, "policies": ["gandiva"]}
    with pytest.raises(InstanceError, match="no column 'submit_time'"):
        replay_study(**asked, output=tmp_path / "none")
    columns = {"job_id": "JobNumber", "submit_time": "HandedIn"}
    reader = {"columns": columns, "skip_bad_rows": "true"}
    study = replay_study(**asked, reader=reader, output=tmp_path / "study")
    assert list(study.jobs["job"]) == [f"j{number}" for number in range(10) if number != 3]
    assert study.metadata["asked"]["reader"]["columns"] == columns
    assert study.metadata["asked"]["read"] == {"odd.csv": {"rows": 10, "skipped": 1, "jobs": 9}}
    page = study.report.read_text(encoding="utf-8")
    assert "the first 9 of the trace&#39;s 9 jobs (1 of its 10 rows were skipped)" in page
    # Of two traces, each takes what its reader knows.
    both = {**asked, "traces": [tmp_path / "odd.csv", tmp_path / "mine.csv"], "reader": {"skip_bad_rows": True}}
    with pytest.raises(InstanceError, match="no column 'submit_time'"):
        replay_study(**both, output=tmp_path / "none")
    with pytest.raises(
        StudyError, match=r"reader: .*odd\.csv has no option 'skip_rows' \(did you mean 'skip_bad_rows'"
    ):
        replay_study(**{**asked, "reader": {"skip_rows": True}}, output=tmp_path / "none")


# --- what hindsight could do ---


def test_what_hindsight_could_do_is_told_once_for_all_decision_makers(small: Replays) -> None:
    found = small.offline
    assert len(found) == 2 * len(["average_jct", "makespan"])
    for row in found.to_dict("records"):
        of_run = small.rows[small.rows["seed"] == row["seed"]].set_index("policy")[row["metric"]]
        assert row["best"] == of_run.min()
        assert row["best"] == of_run.loc[row["policy"]].min()
        assert row["bound"] <= row["best"] * (1 + 1e-6)
        setting = settings.settings_of(PROBLEM).generate(np.random.default_rng([row["seed"], 0]), num_jobs=6)
        assert row["bound"] >= offline(setting, time_limit=0)[row["metric"]].value * (1 - 1e-9)
        attained = row["best"] <= row["bound"] * (1 + 1e-6)
        assert row["kind"] == ("offline optimum" if attained else "offline bound")
    beside = small.beside_offline().set_index(["metric", "policy"])
    mean = small.rows[small.rows["policy"] == "gandiva"]["makespan"].mean()
    bound = found[found["metric"] == "makespan"]["bound"].mean()
    assert beside.loc[("makespan", "gandiva"), "excess"] == pytest.approx(mean / bound - 1)
    assert [*small.overview()["policy"]][:2] == ["exact", "gandiva"]
    assert [*small.overview()["policy"]][2].startswith("offline ")


def test_bounds_depend_on_what_they_are_of(tmp_path: Path) -> None:
    def bounded(**options: Any) -> int:
        before = len(read_log(tmp_path, REPLAYS).rows) if (tmp_path / "rows.jsonl").exists() else 0
        replay_study(**{**SMALL, "policies": ["gandiva"], "length": 3, "output": tmp_path, **options})
        return sum(row["policy"] == OFFLINE for row in read_log(tmp_path, REPLAYS).rows[before:])

    assert bounded() == 1
    assert bounded(policies=["gandiva", "marginal_greedy"], gaps=0, ties=2) == 0
    with pytest.warns(UserWarning, match=r"another replay was here: policies was .*; 3 of its 5 runs are no part of"):
        assert bounded(offline=0) == 1
    assert bounded(seeds=2) == 1


@FORKED
def test_a_replay_that_beats_a_bound_is_called_a_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"average_jct": {"value": 1e9, "exact": False, "proof": "argument"}}
    monkeypatch.setattr("validation.kinds.replays.study.bound_cell", lambda cell, setting: told)
    study = replay_study(**SMALL, output=tmp_path / "study")
    assert list(study.offline["kind"]) == ["contradicted"]
    assert "a replay is better than what is proven to be possible" in study.report.read_text(encoding="utf-8")


@FORKED
def test_where_nothing_ended_there_is_a_report_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: Any) -> Any:
        raise ReplayError("no job runs at 7 s")

    for name in ("run_cell", "bound_cell"):
        monkeypatch.setattr(f"validation.kinds.replays.study.{name}", breaks)
    study = replay_study(**SMALL, output=tmp_path / "study")
    assert (study.metadata["failed"], study.metadata["bounds_failed"], len(study.offline)) == (2, 1, 0)
    assert "Replays without a result" in study.report.read_text(encoding="utf-8")


def test_rounds_of_a_setting_are_its_own(tmp_path: Path) -> None:
    asked = {"problem": "synergy.tuning", "policies": ["proportional"], "length": 3, "round_length": 600.0}
    study = replay_study(**{**SMALL, **asked}, output=tmp_path)
    assert set(study.rows["status"]) == {"ended"}
    assert (study.decisions["time"] % 600 == 0).all()


# --- decision makers of the user's ---


def halves(instance: ElasticAllocation) -> Any:
    return entry(PROBLEM).heuristics["gandiva"].function(instance)


def raises(instance: ElasticAllocation) -> Any:
    raise KeyError("gpus")


@FORKED
def test_a_function_decides_as_the_heuristic_that_it_calls(tmp_path: Path) -> None:
    study = replay_study(**{**SMALL, "policies": {"theirs": "gandiva", "mine": halves}}, output=tmp_path / "study")
    columns = ["job", "started", "ended", "gpu_seconds"]
    of = {name: jobs[columns].reset_index(drop=True) for name, jobs in study.jobs.groupby("policy")}
    pd.testing.assert_frame_equal(of["mine"], of["theirs"])
    assert study.reference == "theirs"
    found = study.differences()
    assert (found["value"] == 0).all()
    assert set(found["verdict"]) == {"none"}


@FORKED
def test_decisions_that_another_made_are_counted(tmp_path: Path) -> None:
    study = replay_study(**{**SMALL, "policies": {"exact": "exact", "mine": raises}}, output=tmp_path / "study")
    asked = study.decisions[(study.decisions["policy"] == "mine") & (study.decisions["algorithm"] == "raises")]
    assert asked["reason"].str.contains("KeyError").all()
    assert study.rows.set_index("policy").loc["mine", "instead"] == len(asked) > 0
    assert f"{len(asked)} of its decisions were another" in study.report.read_text(encoding="utf-8")


@FORKED
def test_a_failure_is_a_row_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = validation.kinds.replays.study.run_cell

    def breaks(cell: Any, setting: Any, tell: Any) -> Any:
        if cell.policy.name == "gandiva":
            raise ReplayError("no job runs at 7 s")
        return whole(cell, setting, tell)

    output = tmp_path / "study"
    with monkeypatch.context() as patched:
        patched.setattr("validation.kinds.replays.study.run_cell", breaks)
        study = replay_study(**SMALL, output=output)
    row = study.rows.set_index("policy").loc["gandiva"]
    assert row["status"] == "failed"
    assert "ReplayError: no job runs at 7 s" in row["reason"]
    assert study.metadata["failed"] == 1
    assert "Replays without a result" in study.report.read_text(encoding="utf-8")
    assert study.differences().empty
    assert replayed(output) == [(0, 0, "gandiva", 0)]


# --- what is refused ---


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"policies": ["gandivaa"]}, CatalogueError, "did you mean 'gandiva'"),
        ({"policies": []}, StudyError, "missing --policy"),
        ({"problem": "aryl.two_job"}, ReplayError, "is in no replay"),
        ({"traces": "nowhere.csv"}, StudyError, "cannot read nowhere.csv"),
        ({"setting": {"colour": "red"}}, StudyError, "setting: aryl has no option 'colour'"),
        ({"windows": 0}, StudyError, "windows: got 0, must be at least 1"),
        ({"ties": 1.5}, StudyError, "ties: got 1.5, must be a whole number"),
        ({"restart": -1.0}, StudyError, "restart: got -1.0, must be seconds of at least 0"),
        ({"gaps": "most"}, StudyError, "gaps: got 'most', must be a whole number or all"),
        ({"time_limit": 0}, StudyError, "time_limit: got 0.0, must be positive seconds"),
        ({"throughputs": "x.json"}, StudyError, "throughputs: aryl reads none"),
        ({"offline": -1}, StudyError, "offline: got -1.0, must be seconds of at least 0"),
        ({"policies": {"offline": "gandiva"}}, StudyError, "offline is the name of what hindsight could do"),
        ({"reader": {"skip_bad_rows": "true"}}, StudyError, "reader: poisson has no option 'skip_bad_rows'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_written(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        replay_study(**{**SMALL, **options}, output=tmp_path / "study")
    assert not (tmp_path / "study").exists()


# --- what is said of it ---


@pytest.mark.usefixtures("pictures")
def test_the_report_is_one_page_that_says_what_was_found(small: Replays) -> None:
    page = finish(small.directory).report.read_text(encoding="utf-8")
    assert page.count("<figure>") == 4
    assert not re.search("https?://", page)
    for words in ("All 8 replays ran to their end", "What became of the jobs", "Beside exact, job by job"):
        assert words in page
    for words in ("Gaps of single decisions", "What the gap cost", "Where these numbers come from"):
        assert words in page


def test_the_report_begins_with_a_table_of_what_was_found(small: Replays) -> None:
    page = finish(small.directory).report.read_text(encoding="utf-8")
    first = page.index("<table")
    assert "Average completion time" not in page[:first].partition("<body")[2]
    ((title, lines),) = report.findings(small, small.differences(), small.averages(), small.beside_offline())
    assert title == "Jobs drawn at random: average completion time"
    assert [line["decision maker"] for line in lines][:2] == ["exact", "gandiva"]
    assert lines[0]["so"] == "the reference"
    assert lines[-1]["so"] == "no schedule is better"
    for line in lines:
        for word in line.values():
            assert f">{word}</td>" in page[first : page.index("</table>")]
    (row,) = small.differences().query("measure == 'average completion time'").to_dict("records")
    assert row["level"] == 1 - 0.05 / len(small.differences())
    # Nothing is left of the paragraphs that were there, and each finding is one line.
    assert "tie-breaks alone make" not in page[: page.index("How to read the numbers")]
    (said,) = report.sentences(small, small.differences(), small.gaps(), small.cost_of_gaps())
    assert said.startswith("Jobs drawn at random, gandiva: average completion time beside exact ")


DIFFERENCE: dict[str, Any] = {"measure": "average completion time", "spread": 0.0, "verdict": "open"}


@pytest.mark.parametrize(
    ("row", "beside", "so"),
    [
        ({"value": -0.0156, "low": -0.0549, "high": 6.51}, "−1.56%, very wide", "not told apart"),
        ({"value": 0.0227, "low": -0.007, "high": 0.046}, "+2.27% (−0.7% to +4.6%)", "not told apart"),
        ({"value": 0.4, "low": 0.2, "high": 3.0, "verdict": "effect"}, "+40% (+20% to +300%)", "longer"),
        ({"value": -0.4, "low": -0.5, "high": -0.2, "verdict": "effect"}, "−40% (−50% to −20%)", "shorter"),
        ({"value": 0.01, "low": 0.005, "high": 0.02, "verdict": "luck"}, "+1% (+0.5% to +2%)", "ties make as much"),
        ({"value": 0.3, "low": 0.1, "high": 0.4, "verdict": "few"}, "+30% (+10% to +40%)", "too few runs to tell"),
        ({"value": 0.3, "low": np.nan, "high": np.nan, "verdict": "one run"}, "+30%", "one run: nothing follows"),
    ],
)
def test_a_finding_in_words(row: dict[str, Any], beside: str, so: str) -> None:
    line = report._finding("greedy", "1 h", "average completion time", "exact", {**DIFFERENCE, **row})
    assert line["beside exact"] == beside
    assert line["so"].endswith(so)


def test_a_slope_that_says_nothing_is_not_printed_as_one() -> None:
    """-1.56% of completion time for 1% of gap, from -5.49% to +651%."""
    known = {"policy": "greedy", "gap": 0.01, "cost": -0.01, "runs": 9, "reason": ""}
    rows = [
        {**known, "slope": -1.56, "low": -5.49, "high": 651.0, "verdict": "open"},
        {**known, "slope": 1.2, "low": 0.8, "high": 1.6, "verdict": "effect"},
    ]
    open_, told = report._costs(pd.DataFrame(rows)).rows
    assert [cell.words for cell in open_][3:6] == ["–", "very wide", "not told apart from nothing"]
    assert [cell.words for cell in told][3:6] == ["+1.2%", "+0.8% to +1.6%", "a gap goes with time"]


def test_names_are_text_on_the_page(tmp_path: Path) -> None:
    study = replay_study(**{**SMALL, "policies": {"exact": "exact", "<b>$x$": "gandiva"}}, output=tmp_path / "study")
    page = study.report.read_text(encoding="utf-8")
    assert "<b>$x$" not in page
    assert "&lt;b&gt;$x$" in page


def test_gaps_and_their_cost_are_those_of_the_tables(small: Replays) -> None:
    decisions = small.decisions[(small.decisions["policy"] == "gandiva") & (small.decisions["problem"] == PROBLEM)]
    found = small.gaps().set_index("policy").loc["gandiva"]
    proven = decisions[decisions["optimum"].notna()]
    assert found["asked"] == len(decisions)
    assert found["mean"] == pytest.approx(proven["gap"].mean())
    times = (small.jobs["ended"] - small.jobs["arrival"]).groupby([small.jobs["seed"], small.jobs["policy"]]).mean()
    ratio = times.unstack()
    points = small.gap_points().set_index("seed")
    assert points["cost"].to_numpy() == pytest.approx((ratio["gandiva"] / ratio["exact"] - 1).to_numpy())


def test_progress_tells_the_simulated_clock(tmp_path: Path) -> None:
    told: list[Any] = []
    replay_study(**{**SMALL, "progress": told.append, "jobs": 1}, output=tmp_path / "study")
    # Two replays, and what hindsight could do.
    assert (told[0].done, told[0].total) == (0, 3)
    assert (told[-1].done, told[-1].failed, told[-1].seconds_left) == (3, 0, 0.0)


def test_options_are_told_once() -> None:
    assert {"traces", "problem", "policies", "output"} <= {one.name for one in ReplayOptions.fields()}
    for one in ReplayOptions.fields():
        assert one.metadata["help"] in (replay_study.__doc__ or "")
