"""Instances to and from files, and problems by name."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import instances
from instances import InstanceError
from instances.aryl.reclaim import Reclaim, six_servers
from instances.files import write_whole
from instances.gavel.max_min_fairness import generate


def test_problems_are_the_modules_that_define_one() -> None:
    problems = instances.problems()
    assert problems == tuple(sorted(problems))
    assert {"aryl.reclaim", "gavel.max_min_fairness"} <= set(problems)
    assert "gavel.sharing" not in problems
    for problem in problems:
        instance_type = instances.instance_type(problem)
        assert instance_type.problem == problem
        assert instance_type.__module__ == f"instances.{problem}"
        assert instance_type.sense in ("min", "max")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("mine.own", r"unknown problem 'mine\.own'; import the module that registers it \(optgap --load MODULE\)"),
        ("aryl.reclam", r"unknown problem 'aryl\.reclam' \(did you mean 'aryl\.reclaim'\?\)"),
        ("zzz", r"unknown problem 'zzz'$"),
        ("", r"unknown problem ''$"),
        ("gavel.sharing", "unknown problem 'gavel.sharing'"),
    ],
)
def test_unknown_problems(name: str, complaint: str) -> None:
    with pytest.raises(InstanceError, match=complaint):
        instances.instance_type(name)
    with pytest.raises(InstanceError, match=complaint):
        instances.read({"problem": name})


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], "an instance must be a JSON object, got list"),
        ("aryl.reclaim", "an instance must be a JSON object, got str"),
        (None, "an instance must be a JSON object, got NoneType"),
        ({"demand": 1}, "field 'problem' is missing"),
        ({"problem": ["aryl.reclaim"]}, "field 'problem': got .*, must be a name"),
        ({"problem": None}, "field 'problem': got None, must be a name"),
        ({"problem": "aryl.reclaim"}, "Reclaim: field 'hosts' is missing"),
    ],
)
def test_read_refuses_what_is_no_instance(data: Any, complaint: str) -> None:
    with pytest.raises(InstanceError, match=complaint):
        instances.read(data)


@pytest.mark.parametrize("instance", [six_servers(), generate(0, num_jobs=5, pair_fraction=0.5, weighted=True)])
def test_round_trip(tmp_path: Path, instance: Any) -> None:
    path = tmp_path / "instance.json"
    instances.save(instance, path)
    again = instances.load(str(path))
    assert type(again) is type(instance)
    assert again == instance
    assert again.digest == instance.digest
    assert json.loads(path.read_text())["problem"] == instance.problem
    assert path.read_bytes().endswith(b"}\n")
    assert os.listdir(tmp_path) == ["instance.json"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "not valid JSON at line 1"),
        (b"\xff\xfe\x00", "not a text file"),
        (b"[1, 2]", "an instance must be a JSON object, got list"),
        (b"3", "an instance must be a JSON object, got int"),
        (b'{"problem": "aryl.reclaim"}', "Reclaim: field 'hosts' is missing"),
        (b'{"problem": "aryl.reclam"}', r"did you mean 'aryl\.reclaim'"),
        (
            b'{"problem": "aryl.reclaim", "demand": ' + b"9" * 5000 + b"}",
            "not valid JSON: a whole number of 5000 digits",
        ),
        (b"[" * 100_000, "not valid JSON: maximum recursion depth"),
        (
            b'{"problem": "aryl.reclaim", "hosts": [[true]], "gpus": [[NaN]], "demand": 1}',
            r"Reclaim\.gpus: got nan at index \[0, 0\], must be a whole number",
        ),
        (
            b'{"problem": "aryl.reclaim", "hosts": [[true]], "gpus": [[8]], "demands": 1}',
            r"Reclaim: unknown field 'demands' \(did you mean 'demand'\?\)",
        ),
    ],
)
def test_bad_files_are_refused_with_their_name(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InstanceError, match=rf"bad\.json: .*{complaint}"):
        instances.load(path)


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    instances.save(six_servers(), path)
    whole = path.read_bytes().rstrip()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(InstanceError, match=r"cut\.json: not valid JSON at line 1"):
            instances.load(path)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        instances.load(tmp_path / "none.json")


# --- whole-file writes ----------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        instances.save(six_servers(), tmp_path / "none" / "instance.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        instances.save(six_servers(), tmp_path / "file" / "instance.json")
    assert sorted(os.listdir(tmp_path)) == ["file"]


@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "instance.json"
    instances.save(six_servers(), path)
    before = path.read_bytes()

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="no space left"):
        instances.save(generate(0), path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["instance.json"]


def test_a_folder_in_the_files_place(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_whole(tmp_path / "taken", "x")
    assert os.listdir(tmp_path) == ["taken"]


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    """As ``/dev/stdout`` and ``/dev/null`` are: a file in their place would take them from everybody."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        write_whole(pipe, "written")
        assert reader.read() == b"written"
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_is_replaced(tmp_path: Path) -> None:
    """Where it leads to may be somebody else's."""
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs", encoding="utf-8")
    (tmp_path / "link").symlink_to(theirs)
    write_whole(tmp_path / "link", "new")
    assert not (tmp_path / "link").is_symlink()
    assert (theirs.read_text(encoding="utf-8"), (tmp_path / "link").read_text(encoding="utf-8")) == ("theirs", "new")


def test_an_instance_that_json_cannot_hold_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reclaim, "to_dict", lambda self: {"demand": float("nan")})
    with pytest.raises(ValueError, match="Out of range float"):
        instances.save(six_servers(), tmp_path / "instance.json")
    assert os.listdir(tmp_path) == []


def test_written_files_have_the_usual_permissions(tmp_path: Path) -> None:
    write_whole(tmp_path / "whole", b"\x00\xff")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "whole").read_bytes() == b"\x00\xff"
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("whole", "plain")}
    assert len(modes) == 1
