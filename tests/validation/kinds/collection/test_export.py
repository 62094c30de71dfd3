"""The collection for who has no use for the library: programs, their optima, and descriptions of both."""

import gzip
import hashlib
import json
import re
import shutil
import subprocess
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

import highspy
import pytest

from formulations.engine.protocol import formulation
from instances.base import agree
from instances.reference.records import PARTS, listed
from validation import CATALOGUE, StudyError
from validation.cli import commands
from validation.cli.app import run
from validation.kinds.collection import Collection, export, load
from validation.kinds.collection.croissant import CROISSANT, described_collection
from validation.kinds.collection.export import SOLU, solu_of

from ....files import COLLECTED

ROOT = Path(__file__).parents[4]
if not (ROOT / "collection").is_dir():
    pytest.skip("the collection is part of a checkout, and this is none", allow_module_level=True)
WHOLE = load(ROOT / "collection")
PROCEDURES = [problem for problem in CATALOGUE if formulation(problem).any_solver]


@pytest.fixture(scope="module")
def some(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    """Of each problem the closed instance of the fewest bytes, and of ElasticFlow's an open one where there is one."""
    folder = tmp_path_factory.mktemp("some")
    shutil.copy(WHOLE.folder / "VERSION", folder)
    index: dict[str, Any] = {}
    for problem in sorted(COLLECTED):
        (folder / problem).mkdir()
        of_it = sorted(WHOLE.names(problem), key=lambda name: WHOLE.file(name, "instance").stat().st_size)
        of_kind = {WHOLE.record(name)["class"] == "open": name for name in reversed(of_it)}
        kept = [
            WHOLE.record(of_kind[is_open])
            for is_open in (False, True)[: 1 + problem.startswith("elasticflow")]
            if is_open in of_kind
        ]
        (folder / problem / "records.json").write_text(json.dumps(kept))
        for record in kept:
            for part in record["sha256"]:
                shutil.copy(WHOLE.file(record["name"], part), folder / problem)
        index[problem] = listed(kept)
    (folder / "index.json").write_text(json.dumps(index))
    return Collection(folder)


@pytest.fixture(scope="module")
def exported(some: Collection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("to") / "programs"
    done = export.export(some, folder)
    assert sorted({some.record(name)["problem"] for name in done.left_out}) == sorted(PROCEDURES)
    assert len(done.written) + len(done.left_out) == len(some.records)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [SOLU, CROISSANT, *(f"{name}.mps.gz" for name in done.written)]
    )
    return folder


def known(folder: Path) -> dict[str, dict[str, float]]:
    """What a ``.solu`` says, as the scripts that compare solvers read it: a mark, a name, a number."""
    found: dict[str, dict[str, float]] = {}
    for line in (folder / SOLU).read_text(encoding="ascii").splitlines():
        mark, name, value = line.split()
        found.setdefault(name, {})[mark] = float(value)
    return found


def test_a_solver_finds_the_optimum_that_is_known_of_each_program(exported: Path) -> None:
    compared, problems = 0, set()
    for name, values in known(exported).items():
        highs = highspy.Highs()
        highs.silent()
        assert highs.readModel(str(exported / f"{name}.mps.gz")) == highspy.HighsStatus.kOk
        sense = 1 if highs.getLp().sense_ == highspy.ObjSense.kMinimize else -1
        if "=opt=" in values:
            assert list(values) == ["=opt="]
            highs.setOptionValue("mip_rel_gap", 0.0)
            highs.run()
            assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
            assert agree(highs.getObjectiveValue(), values["=opt="]), name
            compared += 1
            problems.add(WHOLE.record(name)["problem"])
        else:
            assert "=best=" in values
            assert sense * (values.get("=bestdual=", values["=best="]) - values["=best="]) <= 0
    assert problems == COLLECTED - set(PROCEDURES)
    assert compared == len(problems)


def test_values_in_programs_are_those_of_instances() -> None:
    looked = set()
    for name, record in WHOLE.records.items():
        offered = formulation(record["problem"])
        if offered.in_model is not None:
            assert offered.bound is not None
            instance, value = WHOLE.instance(name), record["best"]["value"]
            inside = offered.in_model(instance, value)
            assert inside is not None
            assert agree(offered.bound(instance, inside), value), name
            looked.add(record["problem"])
    assert len(looked) == 7
    # Every other transform leaves the values of plans as they are.
    for problem in COLLECTED - looked:
        bound = formulation(problem).bound
        if bound is not None:
            name = WHOLE.names(problem)[0]
            value = WHOLE.record(name)["best"]["value"]
            assert bound(WHOLE.instance(name), value) == value


def test_a_program_whose_optimum_is_only_a_bound_is_left_out() -> None:
    at_any_time = replace(WHOLE.instance("afs.elastic_sharing-g02"), reallocation="any_time")
    with pytest.raises(export._NoProgram, match="points that are no plans"):
        solu_of(at_any_time, WHOLE.record("afs.elastic_sharing-g02"))
    concave = WHOLE.names("afs.elastic_sharing")[0]
    at_any_time = replace(WHOLE.instance(concave), reallocation="any_time")
    assert at_any_time.concave.all()
    assert len(solu_of(at_any_time, WHOLE.record(concave))) == 1


def test_open_instances_have_the_best_plan_and_the_bound() -> None:
    name = "aryl.reclaim-h04"
    record = {**WHOLE.record(name), "class": "open"}
    lines = solu_of(WHOLE.instance(name), {**record, "best": {"value": 65.0}, "bound": {"value": 55.0}})
    assert lines == [f"=best= {name} 65.0", f"=bestdual= {name} 55.0"]
    assert solu_of(WHOLE.instance(name), {**record, "best": {"value": 65.0}, "bound": {"value": None}}) == lines[:1]


def test_a_folder_is_described_as_it_is(some: Collection, exported: Path) -> None:
    own = (WHOLE.folder / CROISSANT).read_text(encoding="utf-8")
    assert own == described_collection(WHOLE.folder, WHOLE.version, WHOLE.records), "`make pages` writes it anew"
    for folder in (WHOLE.folder, exported):
        told = json.loads((folder / CROISSANT).read_text(encoding="utf-8"))
        assert told["conformsTo"] == "http://mlcommons.org/croissant/1.1"
        files = {one["@id"]: one for one in told["distribution"] if one["@type"] == "cr:FileObject"}
        shown = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
        there = {path.as_posix() for path in shown if path.parts[0][0] != "." and "__pycache__" not in path.parts}
        assert set(files) == there - {CROISSANT}
        licences = set()
        for path, one in files.items():
            data = (folder / path).read_bytes()
            assert one["contentUrl"] == path
            assert one["contentSize"] == f"{len(data)} B"
            assert one["sha256"] == hashlib.sha256(data).hexdigest()
            licences |= set(one["license"])
        assert licences == set(told["license"])
    told = json.loads(described_collection(some.folder, some.version, some.records))
    files = {one["@id"]: one for one in told["distribution"] if one["@type"] == "cr:FileObject"}
    for name, record in some.records.items():
        expected = [f"https://spdx.org/licenses/{one}.html" for one in record["licence"].split(" AND ")]
        for part in record["sha256"]:
            assert files[f"{record['problem']}/{name}{PARTS[part]}"]["license"] == expected


@pytest.mark.slow
def test_the_validator_of_the_format_has_nothing_against_it(exported: Path) -> None:
    validator = Path(sysconfig.get_path("scripts")) / "mlcroissant"
    if not validator.exists():
        pytest.skip("mlcroissant is not installed: pip install -e .[croissant]")
    for file in (WHOLE.folder / CROISSANT, exported / CROISSANT):
        done = subprocess.run([validator, "validate", "--jsonld", file], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.rstrip().endswith("Done.")
        assert "WARNING" not in done.stderr


def command(some: Collection, *words: object) -> int:
    return run(["collection", "export", *map(str, words), "--collection", str(some.folder)], commands)


def test_the_command_names_what_it_leaves_out(
    some: Collection, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(some, "--mps", "--solu", tmp_path / "out", "--problem", "gavel", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert {name.partition("-")[0] for name in told["left_out"]} == set(PROCEDURES)
    assert set(told["left_out"].values()) == {"no one program states the problem, it takes a procedure of several"}
    monkeypatch.setattr(export, "LARGEST", 100)
    assert command(some, "--mps", tmp_path / "out", "--problem", "elasticflow.admission") == 0
    said = capsys.readouterr().out
    assert re.search(
        r"^left out: elasticflow\.admission-h03: its program has [\d,]{3,} entries, more than 100$", said, re.MULTILINE
    )
    assert not (tmp_path / "out" / SOLU).exists()
    (program, *_) = sorted((tmp_path / "out").glob("*.mps.gz"))
    first = gzip.decompress(program.read_bytes()).decode().splitlines()[0]
    assert first.startswith(f"* {program.name.removesuffix('.mps.gz')} of the collection")
    assert command(some, "--solu", tmp_path / "out", "--problem", "aryl.two_job") == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [SOLU, CROISSANT]
    for words, why in (
        ([tmp_path / "new"], "give --mps, --solu, or both"),
        (["--mps", tmp_path / "new", "--problem", "gavel.finish_time_fairness"], "nothing is to be exported: no one"),
        (["--mps", tmp_path / "new", "--problem", "aryl.reclaims"], "did you mean 'aryl.reclaim'"),
        (["--mps", tmp_path / "out" / SOLU], "holds something else than an export"),
    ):
        capsys.readouterr()
        assert command(some, *words) == 2
        said = capsys.readouterr()
        assert (said.out, len(said.err.splitlines())) == ("", 1)
        assert why in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_nothing_of_others_is_replaced_and_nothing_half_written(
    some: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    export.export(some, folder, problem="aryl.two_job")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    export.export(some, folder, problem="aryl.two_job")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    def ends(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(export, "_described", ends)
        with pytest.raises(KeyboardInterrupt):
            export.export(some, folder, problem="aryl")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "mine.txt").write_text("mine")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / CROISSANT).write_text("{}")
    link = tmp_path / "link"
    link.symlink_to(folder)
    for other in (folder, foreign, link, folder / "mine.txt", WHOLE.folder):
        with pytest.raises(StudyError, match="holds something else than an export: choose another directory"):
            export.export(some, other, problem="aryl.two_job")
    assert (folder / "mine.txt").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["foreign", "link", "out"]


def test_an_export_that_cannot_take_its_place_leaves_the_one_before(
    some: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    export.export(some, folder, problem="aryl.two_job")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    rename = export.os.rename

    def fails(old: Path, new: Path) -> None:
        if Path(old).name.startswith(".writing"):
            raise KeyboardInterrupt
        rename(old, new)

    monkeypatch.setattr(export.os, "rename", fails)
    with pytest.raises(KeyboardInterrupt):
        export.export(some, folder, problem="aryl")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
