"""The collection: its records are whole and true, and nothing gets in that is not checked."""

import gzip
import importlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import formulations
from benchmarks.collection import making
from benchmarks.faults.collection import killed_at
from instances.aryl import reclaim
from instances.reference.records import INDEX, PENDING, check, listed, pack
from instances.reference.vipr import shortened
from instances.schema import declarations
from validation import CATALOGUE, StudyError
from validation.cli import commands
from validation.cli.app import run
from validation.kernel.asking import ask
from validation.kernel.gaps import beats, gap_to
from validation.kernel.isolation import CONTEXT
from validation.kernel.walls import LINUX
from validation.kinds.collection import (
    Collection,
    load,
    store,
    submission,
    submit_certificate,
    submit_plan,
    submit_prices,
    submit_run,
)
from validation.kinds.collection.judging import Checked
from validation.kinds.collection.page import MARK, tables
from validation.kinds.collection.submission import closed, graded

from ....effort import rounds
from ....files import COLLECTED

ROOT = Path(__file__).parents[4]
if not (ROOT / "collection").is_dir():
    pytest.skip("the collection is part of a checkout, and this is none", allow_module_level=True)
WHOLE = load(ROOT / "collection")
RUN = {
    "solver": "a solver",
    "version": "1",
    "options": {},
    "machine": "a machine",
    "seconds": 1.0,
    "status": "feasible",
    "bound": 1.0,
}


def some(count: int, seed: int) -> list[str]:
    """Names of instances drawn from the whole collection."""
    names = list(WHOLE.records)
    drawn = np.random.default_rng(seed).permutation(len(names))
    return [names[index] for index in drawn[: len(rounds(count))]]


# --- what there is ---


def test_it_holds_what_it_is_said_to_hold(tmp_path: Path) -> None:
    frame = WHOLE.frame()
    assert len(frame) >= 1000
    assert frame.index.is_unique
    assert frame["digest"].is_unique
    # A problem that is added comes into the collection with its next version.
    assert set(CATALOGUE) >= set(frame["problem"]) == COLLECTED
    assert len(COLLECTED) >= 28
    assert (frame["class"] != "open").mean() >= 0.9
    assert frame["real"].mean() >= 1 / 3
    pack(WHOLE.folder, tmp_path / "collection.tar.gz")
    assert (tmp_path / "collection.tar.gz").stat().st_size <= 12_000_000


def test_every_record_is_whole_and_its_files_are_those_it_has_the_hashes_of() -> None:
    for name, record in WHOLE.records.items():
        assert list(record) == list(store.FIELDS)
        parts = ["instance", "plan", *({"prices", "certificate"} & {record["bound"]["proof"]["kind"]})]
        assert sorted(record["sha256"]) == sorted(parts)
        for part in parts:
            assert WHOLE.text(name, part)
        assert name.startswith(f"{record['problem']}-")
        assert set(record["heuristics"]) <= set(CATALOGUE[record["problem"]].heuristics)
        assert record["best"]["exact"] is not None
        assert (record["class"] == "open") == (not closed(record))
        assert graded(record) == record
        if record["class"] == "open":
            assert all(one["gap"] is None for one in record["heuristics"].values())
        best, bound = record["best"]["value"], record["bound"]["value"]
        assert bound is None or closed(record) or not beats(record["sense"], best, bound)
        text = json.dumps(record)
        assert "/tmp" not in text
        assert "/work" not in text


def test_values_are_the_instances_own_and_heuristics_gaps_are_to_them() -> None:
    for name in some(60, 1):
        record, instance = WHOLE.record(name), WHOLE.instance(name)
        plan = WHOLE.plan(name)
        assert (record["digest"], record["sense"]) == (instance.digest, instance.sense)
        assert instance.violations(plan) == []
        # Recorded where sums were rounded by that machine's kernel.
        assert instance.objective(plan) == pytest.approx(record["best"]["value"], rel=1e-9, abs=0)
        for told in record["heuristics"].values():
            if told["gap"] is not None:
                assert told["gap"] == gap_to(told["value"], record["best"]["value"])


def test_heuristics_give_what_their_records_say() -> None:
    for number, name in enumerate(some(24, 2)):
        record, instance = WHOLE.record(name), WHOLE.instance(name)
        heuristic = list(record["heuristics"])[number % len(record["heuristics"])]
        told = record["heuristics"][heuristic]
        asked = ask(instance, CATALOGUE[record["problem"]].heuristics[heuristic], 0, seconds=60)
        assert asked.reason == ""
        if asked.plan is None:
            assert told["status"] == "declined"
        elif instance.violations(asked.plan):
            assert told["status"] == "infeasible"
        elif told["value"] is not None:
            assert told["status"] == "feasible"
            assert gap_to(instance.objective(asked.plan), told["value"]) == 0


def test_a_recorded_call_makes_the_instance_again() -> None:
    generated = [name for name, record in WHOLE.records.items() if record["origin"]["kind"] in ("generator", "example")]
    drawn = np.random.default_rng(3).permutation(len(generated))
    for index in drawn[: len(rounds(40))]:
        name = generated[index]
        made, recorded = made_by(WHOLE.record(name)["origin"]["call"]), WHOLE.instance(name)
        assert type(made) is type(recorded)
        # Powers were rounded by the instructions of the machine that it was recorded on.
        for field in declarations(type(made)) if made.digest != recorded.digest else ():
            one, other = (getattr(instance, field) for instance in (made, recorded))
            if isinstance(one, np.ndarray) and one.dtype.kind == "f":
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=0)
            else:
                assert np.array_equal(one, other)


def test_a_recorded_call_draws_the_instance_from_public_data_again(
    data: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    monkeypatch.chdir(data)
    drawn = [
        name
        for name, record in WHOLE.records.items()
        if record["origin"]["kind"] == "trace" and ".from_trace(" in record["origin"]["call"]
    ]
    for index in np.random.default_rng(4).permutation(len(drawn))[: len(rounds(10))]:
        record = WHOLE.record(drawn[index])
        assert made_by(record["origin"]["call"]).digest == record["digest"]


def made_by(call: str) -> Any:
    """What a call of the library makes."""
    found = re.match(r"(instances\.\w+\.\w+)\.", call)
    assert found is not None
    importlib.import_module(found.group(1))
    return eval(call, {"instances": importlib.import_module("instances")})


def test_the_page_says_what_the_collection_holds() -> None:
    page = (ROOT / "docs" / "collection.md").read_text(encoding="utf-8")
    assert page.partition(MARK)[2] == f"\n{tables(WHOLE)}"


# --- a small one, to be written into ---


@pytest.fixture
def small(tmp_path: Path) -> Collection:
    """One open instance whose best plan is not the best there is, and a closed one of another problem."""
    folder = tmp_path / "collection"
    folder.mkdir()
    (folder / "VERSION").write_text("0.1\n")
    made = Collection(folder)
    instance = reclaim.figure_5()
    like = WHOLE.record("aryl.reclaim-x00")
    open_one = {**like, "name": "aryl.reclaim-x99", "digest": instance.digest, "sha256": {}, "class": "open"}
    worst = worst_plan(instance)
    open_one["best"] = {**like["best"], "value": instance.objective(worst), "exact": "0"}
    open_one["bound"] = {"value": 0.0, "exact": None, "proof": {"kind": "runs", "runs": [{**RUN, "bound": 0.0}]}}
    made.write(graded(open_one), instance=instance, plan=worst)
    other = "gavel.max_min_fairness-x00"
    made.write(
        WHOLE.record(other),
        instance=WHOLE.instance(other),
        plan=WHOLE.plan(other),
        prices=WHOLE.read(other, "prices"),
    )
    return load(folder)


def plans_of(instance: reclaim.Reclaim) -> list[reclaim.ReclaimPlan]:
    """Every plan of an instance that asks for few servers, the best first."""
    from itertools import combinations

    servers = instance.hosts.shape[1]
    plans = [reclaim.ReclaimPlan(servers=list(one)) for one in combinations(range(servers), instance.demand)]
    return sorted(plans, key=instance.objective)


def worst_plan(instance: reclaim.Reclaim) -> reclaim.ReclaimPlan:
    return plans_of(instance)[-1]


def test_the_index_is_kept_with_the_records(small: Collection) -> None:
    index = json.loads((small.folder / INDEX).read_text())
    assert {problem: one["instances"] for problem, one in index.items()} == {
        "aryl.reclaim": 1,
        "gavel.max_min_fairness": 1,
    }
    submit_run(small, OPEN, {**RUN, "bound": 1.0})
    assert json.loads((small.folder / INDEX).read_text()) == index
    record = small.record(OPEN)
    small.write({**record, "bound": {**record["bound"], "proof": {"kind": "enumeration", "runs": []}}})
    after = json.loads((small.folder / INDEX).read_text())
    assert after != index
    assert after == {
        problem: listed(one for one in small.records.values() if one["problem"] == problem) for problem in index
    }


def snapshot(collection: Collection) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(collection.folder.rglob("*.*")) if path.is_file()}


OPEN = "aryl.reclaim-x99"


def test_a_better_plan_is_taken_and_the_one_before_is_remembered(small: Collection) -> None:
    instance = small.instance(OPEN)
    assert isinstance(instance, reclaim.Reclaim)
    best, before = plans_of(instance)[0], small.record(OPEN)["best"]
    done = submit_plan(small, OPEN, best, by="somebody")
    assert (done.verdict, done.taken) == ("better", True)
    again = load(small.folder)
    record = again.record(OPEN)
    assert again.plan(OPEN) == best
    assert record["best"]["value"] == instance.objective(best) == float(record["best"]["exact"])
    assert record["best"]["found_by"] == "somebody"
    assert [entry["best"] for entry in record["history"]] == [before]
    # The optimum of the figure is more than the bound of 0 that is known.
    assert record["class"] == "open"
    run_of_it = {**RUN, "status": "optimal", "bound": record["best"]["value"]}
    assert submit_run(again, OPEN, run_of_it).taken
    record = load(small.folder).record(OPEN)
    assert record["class"] == "hard"
    assert record["bound"]["proof"]["runs"] == [run_of_it]
    assert any(one["gap"] is not None for one in record["heuristics"].values())


@pytest.mark.parametrize("which", ["same", "worse"])
def test_a_plan_that_is_no_better_changes_nothing(small: Collection, which: str) -> None:
    instance = small.instance(OPEN)
    assert isinstance(instance, reclaim.Reclaim)
    best, *_, worst = plans_of(instance)
    submit_plan(small, OPEN, best, by="somebody")
    before = snapshot(small)
    done = submit_plan(small, OPEN, best if which == "same" else worst, by="somebody")
    assert done.verdict == {"same": "equal", "worse": "worse"}[which]
    assert snapshot(small) == before


def test_a_plan_that_breaks_a_rule_or_beats_the_bound_is_refused(small: Collection) -> None:
    before = snapshot(small)
    with pytest.raises(StudyError, match="breaks demand"):
        submit_plan(small, OPEN, reclaim.ReclaimPlan(servers=[0]), by="somebody")
    record = small.record(OPEN)
    small.write({**record, "bound": {**record["bound"], "value": record["best"]["value"]}})
    before = snapshot(small)
    instance = small.instance(OPEN)
    assert isinstance(instance, reclaim.Reclaim)
    with pytest.raises(StudyError, match="beyond the bound"):
        submit_plan(small, OPEN, plans_of(instance)[0], by="somebody")
    assert snapshot(small) == before


def test_a_judge_that_is_wrong_is_found_out(small: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reclaim.Reclaim, "_value", lambda self, plan: 1.0)
    with pytest.raises(StudyError, match=r"worth 1\.0 to the library and .* to the checker"):
        submit_plan(small, OPEN, reclaim.ReclaimPlan(servers=worst_servers()), by="somebody")
    monkeypatch.undo()
    monkeypatch.setattr(reclaim.Reclaim, "_broken_rules", lambda self, plan: [])
    with pytest.raises(StudyError, match="checker finds that the plan breaks demand"):
        submit_plan(small, OPEN, reclaim.ReclaimPlan(servers=[0]), by="somebody")


def worst_servers() -> list[int]:
    return list(plans_of(reclaim.figure_5())[-1].servers)


def test_prices_are_checked(small: Collection) -> None:
    name = "gavel.max_min_fairness-x00"
    prices = small.read(name, "prices")
    before = snapshot(small)
    assert submit_prices(small, name, prices).verdict == "equal"
    for wrong in ({**prices, "pools": prices["pools"][1:]}, {"nothing": []}, {**prices, "pools": ["a"]}):
        with pytest.raises(StudyError, match="prices"):
            submit_prices(small, name, wrong)
    assert snapshot(small) == before
    record = small.record(name)
    runs = {"kind": "runs", "runs": [{**RUN, "bound": record["bound"]["value"]}]}
    small.write({**record, "bound": {**record["bound"], "exact": None, "proof": runs}})
    assert "prices" not in small.record(name)["sha256"]
    assert not small.file(name, "prices").exists()
    # The same bound, and no longer on somebody's word.
    assert submit_prices(small, name, prices).taken
    assert small.record(name)["bound"]["proof"]["kind"] == "prices"
    with pytest.raises(StudyError, match="prices has no field of"):
        submit_prices(small, OPEN, prices)
    placement = WHOLE.names("synergy.placement")[0]
    with pytest.raises(StudyError, match="none are known for this problem"):
        Checked(WHOLE.instance(placement)).bound(prices, WHOLE.plan(placement))


def certificate_of(instance: Any) -> str:
    return formulations.solve(instance, certificate=True).vipr


def test_certificates_are_checked(small: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    instance = reclaim.figure_5()
    text, optimum = certificate_of(instance), worth_of(plans_of(instance)[0])
    before = snapshot(small)
    for wrong in ("", text.replace("{ asm }", "{ sol }"), certificate_of(reclaim.generate(3, num_servers=8))):
        with pytest.raises(StudyError, match="certificate: "):
            submit_certificate(small, OPEN, wrong)
    with monkeypatch.context() as patched:
        patched.setattr(submission, "MOST_PACKED", 100)
        with pytest.raises(StudyError, match="bytes compressed, may have 100"):
            submit_certificate(small, OPEN, text)
        with pytest.raises(StudyError, match="certificate: constraint"):
            submit_certificate(small, OPEN, text.replace("{ asm }", "{ sol }"))
    with pytest.raises(StudyError, match="states no program of gavel"):
        submit_certificate(small, "gavel.max_min_fairness-x00", text)
    assert snapshot(small) == before
    # A better bound than runs claim, whose plan is still to be found.
    assert submit_certificate(small, OPEN, text).taken
    record = load(small.folder).record(OPEN)
    assert (record["bound"]["value"], record["bound"]["exact"], record["class"]) == (optimum, f"{optimum:g}", "open")
    assert record["bound"]["proof"]["kind"] == "certificate"
    assert record["bound"]["proof"]["file"] == small.file(OPEN, "certificate").name
    assert submit_certificate(small, OPEN, text).verdict == "equal"
    submit_plan(small, OPEN, plans_of(instance)[0], by="somebody")
    assert small.record(OPEN)["class"] == "hard"
    counts, told = check(small.folder)
    assert (counts["aryl.reclaim"]["certificate"], told) == (1, [])
    # What runs claim does not take its place, and where a record says that it does the file goes.
    assert not submit_run(small, OPEN, {**RUN, "bound": optimum}).taken
    runs = {"kind": "runs", "runs": [{**RUN, "bound": optimum}]}
    small.write({**small.record(OPEN), "bound": {"value": optimum, "exact": None, "proof": runs}})
    assert not small.file(OPEN, "certificate").exists()
    # The same bound, and no longer on somebody's word: of what is too large, the short form is kept.
    monkeypatch.setattr(submission, "_packed", lambda text: submission.MOST_PACKED + int("VER 1.0\n" in text))
    assert submit_certificate(small, OPEN, text).taken
    assert small.text(OPEN, "certificate") == shortened(text)
    assert check(small.folder)[1] == []


def test_a_bound_on_runs_is_certified_from_its_plan(small: Collection) -> None:
    instance = reclaim.figure_5()
    assert making.certify(small, OPEN, seconds=60) == ""
    submit_plan(small, OPEN, plans_of(instance)[0], by="somebody")
    submit_run(small, OPEN, {**RUN, "status": "optimal", "bound": small.record(OPEN)["best"]["value"]})
    assert making.certify(small, OPEN, seconds=1e-9).startswith("no certificate: ")
    assert "better proven now" in making.certify(small, OPEN, seconds=60)
    assert check(small.folder)[1] == []
    assert making.certify(small, OPEN, seconds=60) == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": None}, "solver"),
        ({"bound": "3"}, "bound"),
        ({"bound": float("inf")}, "bound"),
        ({"bound": 10**400}, "bound"),
        ({"seconds": 10**400}, "seconds"),
        ({"seconds": float("nan")}, "seconds"),
        ({"seconds": -1}, "seconds"),
        ({"bound": 1e9}, "beyond the best plan"),
        ({"colour": "red"}, "unknown field 'colour'"),
    ],
)
def test_a_run_must_tell_all_and_claim_nothing_impossible(
    small: Collection, change: dict[str, Any], message: str
) -> None:
    before = snapshot(small)
    with pytest.raises(StudyError, match=message):
        submit_run(small, OPEN, {**RUN, **change})
    del (lacking := dict(RUN))["machine"]
    with pytest.raises(StudyError, match="no machine"):
        submit_run(small, OPEN, lacking)
    assert snapshot(small) == before


def test_runs_of_one_bound_stand_side_by_side(small: Collection) -> None:
    first = small.record(OPEN)["bound"]["proof"]["runs"][0]
    assert submit_run(small, OPEN, first).verdict == "equal"
    assert submit_run(small, OPEN, {**first, "solver": "another"}).taken
    assert [run["solver"] for run in small.record(OPEN)["bound"]["proof"]["runs"]] == ["a solver", "another"]
    assert submit_run(small, OPEN, {**RUN, "bound": -5.0}).verdict == "worse"


def test_nothing_is_half_written(small: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    before, written = snapshot(small), []
    instance = small.instance(OPEN)
    assert isinstance(instance, reclaim.Reclaim)
    whole = store.write_whole

    def full(path: Path, *arguments: Any, **options: Any) -> None:
        written.append(path)
        if len(written) == 2:
            raise OSError(28, "No space left on device", str(path))
        whole(path, *arguments, **options)

    monkeypatch.setattr(store, "write_whole", full)
    with pytest.raises(OSError, match="No space left"):
        submit_plan(small, OPEN, plans_of(instance)[0], by="somebody")
    assert len(written) >= 2
    assert snapshot(small) == before


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda file: file.write_bytes(b""), "not"),
        (lambda file: file.write_bytes(file.read_bytes()[:-20]), "gzip"),
        (lambda file: file.write_bytes((file.parent / f"{OPEN}.plan.json.gz").read_bytes()), "hash"),
        (lambda file: file.unlink(), "No such file"),
    ],
)
def test_a_damaged_instance_is_one_error_that_names_it(
    small: Collection, harm: Callable[[Path], object], message: str
) -> None:
    file = small.file(OPEN, "instance")
    harm(file)
    with pytest.raises(StudyError, match=f"{re.escape(file.name)}.*{message}"):
        small.instance(OPEN)


@pytest.mark.parametrize("text", ["", "{}", '[{"name": "a"}]', "[1]"])
def test_damaged_records_are_one_error_that_names_the_file(small: Collection, text: str) -> None:
    (small.folder / "aryl.reclaim" / "records.json").write_text(text)
    with pytest.raises(StudyError, match=r"records\.json"):
        load(small.folder).record(OPEN)


# --- several at once, and kills ---

forked = pytest.mark.skipif(not LINUX, reason="processes are forked here")


@forked
@pytest.mark.parametrize("first_is_best", [True, False])
def test_of_two_submissions_at_once_the_second_knows_the_first(
    small: Collection, monkeypatch: pytest.MonkeyPatch, first_is_best: bool
) -> None:
    best, middle, *_ = plans = sorted({reclaim.figure_5().objective(plan) for plan in plans_of(reclaim.figure_5())})
    assert len(plans) >= 3, "the last of which is known"
    better = {worth: next(p for p in plans_of(reclaim.figure_5()) if worth_of(p) == worth) for worth in plans}
    order = [better[best], better[middle]] if first_is_best else [better[middle], better[best]]
    looks, waits, go = CONTEXT.Event(), CONTEXT.Event(), CONTEXT.Event()
    value = Checked.value

    def held_up(self: Checked, plan: Any) -> Any:
        looks.set()
        assert go.wait(60)
        return value(self, plan)

    def submit(number: int, told: Any) -> None:
        mine = load(small.folder)
        assert mine.records
        if number:
            with mine.changing(lambda _: waits.set()):
                told.send(submit_plan(mine, OPEN, order[1], by="second").verdict)
        else:
            monkeypatch.setattr(Checked, "value", held_up)
            told.send(submit_plan(mine, OPEN, order[0], by="first").verdict)

    monkeypatch.setattr(store, "LOCK_PATIENCE", 0.01)
    pipes = [CONTEXT.Pipe(duplex=False) for _ in order]
    processes = [CONTEXT.Process(target=submit, args=(number, pipes[number][1])) for number in range(2)]
    processes[0].start()
    assert looks.wait(60)
    processes[1].start()
    assert waits.wait(60), "the second says that it waits"
    go.set()
    verdicts = []
    for process, (reading, _) in zip(processes, pipes, strict=True):
        assert reading.poll(60)
        verdicts.append(reading.recv())
        process.join()
    assert verdicts == (["better", "worse"] if first_is_best else ["better", "better"])
    record = load(small.folder).record(OPEN)
    assert record["best"]["value"] == best
    assert len(record["history"]) == (1 if first_is_best else 2)
    assert load(small.folder).plan(OPEN) == better[best]
    assert check(small.folder, problem="aryl.reclaim")[1] == []


def worth_of(plan: reclaim.ReclaimPlan) -> float:
    return reclaim.figure_5().objective(plan)


@forked
@pytest.mark.parametrize("what", ["plan", "prices", "certificate"])
def test_a_kill_at_any_step_leaves_the_old_or_the_new(small: Collection, tmp_path: Path, what: str) -> None:
    if what == "plan":
        name, plan = OPEN, plans_of(reclaim.figure_5())[0]

        def submit(collection: Collection) -> Any:
            return submit_plan(collection, OPEN, plan, by="somebody")
    elif what == "certificate":
        name, text = OPEN, certificate_of(reclaim.figure_5())

        def submit(collection: Collection) -> Any:
            return submit_certificate(collection, OPEN, text)
    else:
        # In the place of prices comes a run, and their file goes.
        name, record = "gavel.max_min_fairness-x00", small.record("gavel.max_min_fairness-x00")
        runs = {"kind": "runs", "runs": [{**RUN, "bound": record["bound"]["value"]}]}

        def submit(collection: Collection) -> Any:
            return collection.write({**record, "bound": {**record["bound"], "exact": None, "proof": runs}})

    before = small.record(name)
    whole = Collection(shutil.copytree(small.folder, tmp_path / "whole"))
    submit(whole)
    torn = 0
    for step in itertools.count():
        one = Collection(shutil.copytree(small.folder, tmp_path / str(step)))
        if not killed_at(step, lambda one=one: submit(one)):  # type: ignore[misc]
            break
        torn += one.is_torn
        assert any(PENDING in line for line in check(one.folder)[1]) == one.is_torn
        with one.changing():
            pass
        names = sorted(str(path.relative_to(one.folder)) for path in one.folder.rglob("*"))
        assert not [left for left in names if ".writing" in left or PENDING in left]
        assert one.record(name) in (before, whole.record(name))
        assert one.plan(name) == (whole if one.record(name) == whole.record(name) else small).plan(name)
        submit(one)
        assert snapshot_of(one) == snapshot_of(whole)
    # Before anything, before each of some files is whole, while they are moved, and at the end.
    assert step > 12
    assert torn >= 4


def snapshot_of(collection: Collection) -> dict[str, bytes]:
    return {path.removeprefix(str(collection.folder)): data for path, data in snapshot(collection).items()}


def test_what_a_kill_left_is_told_and_mended_where_asked(
    small: Collection, said: Callable[..., tuple[int, str, str]]
) -> None:
    submit_plan(small, OPEN, plans_of(reclaim.figure_5())[0], by="somebody")
    name = "gavel.max_min_fairness-x00"
    assert said("check", "--name", OPEN)[::2] == (0, "")
    pending = small.folder / PENDING
    pending.mkdir()
    os.replace(small.file(name, "plan"), pending / f"gavel.max_min_fairness~{name}.plan.json.gz")
    code, _, err = said("check")
    assert code == 1
    assert "--mend" in err
    assert said("show", name)[0] == 2
    assert said("check", "--mend", "--problem", "gavel.max_min_fairness")[::2] == (0, "")
    assert not pending.exists()
    assert said("show", name)[0] == 0


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "", ".hidden", "a\nb", 3, None])
def test_names_that_lead_elsewhere_are_refused(small: Collection, name: Any) -> None:
    file = small.folder / "aryl.reclaim" / "records.json"
    (record,) = json.loads(file.read_text())
    with pytest.raises(StudyError, match="name"):
        small.write({**record, "name": name}, plan=plans_of(reclaim.figure_5())[0])
    file.write_text(json.dumps([{**record, "name": name}]))
    with pytest.raises(StudyError, match=r"records\.json: record 0 has the name"):
        load(small.folder).record("anything")


def test_a_collection_of_others_leads_nowhere_else(small: Collection, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "somebody's.txt").write_text("kept")
    (small.folder / PENDING).symlink_to(elsewhere)
    plan = plans_of(reclaim.figure_5())[0]
    with pytest.raises((OSError, StudyError)):
        submit_plan(small, OPEN, plan, by="somebody")
    (small.folder / PENDING).unlink()
    for harm in ("../x", "aryl.reclaim~..~x", "a b"):
        (small.folder / PENDING).mkdir()
        odd = small.folder / PENDING / harm.replace("/", "~")
        odd.write_text("x")
        with pytest.raises(StudyError, match="no file of a collection"):
            submit_plan(small, OPEN, plan, by="somebody")
        shutil.rmtree(small.folder / PENDING)
    (small.folder / store.LOCK).unlink()
    (small.folder / store.LOCK).symlink_to(elsewhere / "somebody's.txt")
    with pytest.raises(StudyError, match="lock"):
        submit_plan(small, OPEN, plan, by="somebody")
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == {"somebody's.txt": "kept"}


def test_nothing_of_a_collection_is_run(small: Collection, said: Callable[..., tuple[int, str, str]]) -> None:
    mark = small.folder / "ran"
    for place in ("check.py", "reference/__init__.py", "reference/records.py", "instances/__init__.py"):
        (small.folder / place).parent.mkdir(exist_ok=True)
        (small.folder / place).write_text(f"open({str(mark)!r}, 'w')")
    plan = small.folder.parent / "plan.json"
    plan.write_text(json.dumps(plans_of(reclaim.figure_5())[0].to_dict()))
    assert said("submit", OPEN, plan)[0] == 0
    assert said("check", "--problem", "aryl.reclaim")[0] == 0
    assert not mark.exists()


# --- the commands ---


@pytest.fixture
def said(small: Collection, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command on the small collection: exit code, output, errors."""

    def command(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(["collection", *map(str, words), "--collection", str(small.folder)], commands)
        return code, *capsys.readouterr()

    return command


def test_list(said: Callable[..., tuple[int, str, str]]) -> None:
    code, out, err = said("list")
    assert (code, err) == (0, "")
    assert OPEN in out
    assert "2 instances of collection 0.1" in out
    code, out, _ = said("list", "--class", "open", "--json")
    (row,) = json.loads(out)
    assert (code, row["name"], row["proof"], row["bound"]) == (0, OPEN, "runs", 0.0)
    code, out, _ = said("list", "--problem", "gavel", "--json")
    assert [row["problem"] for row in json.loads(out)] == ["gavel.max_min_fairness"]
    assert said("list", "--class", "opne")[2].count("'open'") == 1
    assert said("list", "--problem", "aryl.reclaims")[0] == 2


def test_show(said: Callable[..., tuple[int, str, str]], small: Collection, tmp_path: Path) -> None:
    code, out, err = said("show", OPEN, "--plot", tmp_path / "plan.svg")
    assert (code, err) == (0, "")
    assert "server_fraction" in out
    assert "on the word of a solver 1" in out
    assert "<svg" in (tmp_path / "plan.svg").read_text()
    assert json.loads(said("show", OPEN, "--json")[1]) == small.record(OPEN)
    code, _, err = said("show", "aryl.reclaim-x98")
    assert (code, err.count("\n")) == (2, 1)
    assert OPEN in err


def test_what_is_not_taken_is_told_where_no_words_are_wanted(
    said: Callable[..., tuple[int, str, str]], small: Collection, tmp_path: Path
) -> None:
    instance = small.instance(OPEN)
    assert isinstance(instance, reclaim.Reclaim)
    best, *_, worst = plans_of(instance)
    submit_plan(small, OPEN, best, by="somebody")
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(worst.to_dict()), encoding="utf-8")
    code, out, err = said("submit", OPEN, file)
    assert (code, err) == (1, "")
    assert said("submit", OPEN, file, "--quiet") == (1, "", f"optgap: {out}")


def test_solve_and_submit(said: Callable[..., tuple[int, str, str]], small: Collection, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    code, out, _ = said("solve", OPEN, "--time-limit", 20, "-o", file)
    assert code == 0
    assert "better than the" in out
    code, out, _ = said("submit", OPEN, file, "--by", "a solver\nof mine")
    assert code == 0
    assert out.startswith("better: ")
    code, out, _ = said("submit", OPEN, file)
    assert code == 1
    assert out.startswith("equal: ")
    assert "as good as the" in said("solve", OPEN, "--time-limit", 20)[1]
    assert "until" in said("show", OPEN)[1]
    assert len(load(small.folder).record(OPEN)["history"]) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "must be a JSON object"),
        ('{"servers": [0]}', "breaks demand"),
        ('{"servers": "all"}', "servers"),
        ('{"time_fractions": [[1.0]]}', "time_fractions"),
    ],
)
def test_what_is_submitted_in_vain_is_one_error(
    said: Callable[..., tuple[int, str, str]], small: Collection, tmp_path: Path, content: str, message: str
) -> None:
    file, before = tmp_path / "plan.json", snapshot(small)
    file.write_text(content)
    code, out, err = said("submit", OPEN, file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert snapshot(small) == before


@pytest.mark.parametrize("packed", [False, True])
def test_a_certificate_is_submitted(
    said: Callable[..., tuple[int, str, str]], small: Collection, tmp_path: Path, packed: bool
) -> None:
    text = certificate_of(reclaim.figure_5())
    file = tmp_path / "one.vipr"
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    code, out, _ = said("submit", OPEN, "--certificate", file)
    assert (code, out.startswith("better: ")) == (0, True)
    assert "proven by certificate" in said("show", OPEN)[1]
    assert said("submit", OPEN, "--certificate", file)[0] == 1
    file.write_text(text[: len(text) // 2])
    code, _, err = said("submit", OPEN, "--certificate", file)
    assert (code, err.count("\n")) == (2, 1)
    assert "certificate: " in err


def test_a_bound_by_argument_is_shown(said: Callable[..., tuple[int, str, str]], small: Collection) -> None:
    record = small.record(OPEN)
    small.write({**record, "bound": {**record["bound"], "proof": {"kind": "argument", "runs": []}}})
    code, out, _ = said("show", OPEN)
    assert (code, "proven by argument" in out) == (0, True)


def test_a_submission_is_one_thing(said: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    assert said("submit", OPEN)[0] == 2
    assert "give one of" in said("submit", OPEN, "a.json", "--run", "b.json")[2]
    assert "No such file" in said("submit", OPEN, tmp_path / "none.json")[2]


def test_a_collection_is_looked_for_where_it_is_said_to_be(
    small: Collection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert load().folder == WHOLE.folder
    monkeypatch.setenv(store.VARIABLE, str(small.folder))
    assert list(load().records) == [OPEN, "gavel.max_min_fairness-x00"]
    monkeypatch.setenv(store.VARIABLE, str(tmp_path))
    with pytest.raises(StudyError, match="no collection"):
        load()


def test_an_instance_of_another_s_is_found_out(small: Collection) -> None:
    instance = small.instance(OPEN)
    assert isinstance(instance, reclaim.Reclaim)
    small.write(small.record(OPEN), instance=replace(instance, demand=1))
    with pytest.raises(StudyError, match="another instance"):
        small.instance(OPEN)
