"""The command line: certificates that are made, and checked."""

import gzip
import json
import re
from pathlib import Path

import pytest

from instances.reference.vipr import completed, shortened

from .commands import Optgap


@pytest.fixture
def made(optgap: Optgap, tmp_path: Path) -> Path:
    """A folder with an instance and its certificate."""
    (tmp_path / "one.json").write_text(optgap("generate", "aryl.reclaim", "--seed", 3).out)
    said = optgap("solve", tmp_path / "one.json", "--certificate", tmp_path / "one.vipr")
    assert (said.code, said.err) == (0, "")
    assert "proof      certificate" in said.out
    return tmp_path


def test_a_certificate_is_checked(optgap: Optgap, made: Path) -> None:
    solved = json.loads(optgap("solve", made / "one.json", "--json").out)
    of_file = json.loads(optgap("verify", made / "one.vipr", "--json").out)
    assert of_file["verdict"] == "proven"
    assert of_file["of"] == "the program that the file states, whatever it is of"
    of_instance = json.loads(optgap("verify", made / "one.vipr", "--instance", made / "one.json", "--json").out)
    assert of_instance["of"] == f"aryl.reclaim, {solved['instance']}"
    assert float(of_file["bound"]) == float(of_instance["bound"]) == solved["objective"]
    (made / "one.vipr.gz").write_bytes(gzip.compress((made / "one.vipr").read_bytes()))
    said = optgap("verify", made / "one.vipr.gz")
    assert (said.code, said.err) == (0, "")
    assert f"proven     nothing is less than {of_file['bound']}" in said.out


def test_a_short_certificate_is_written_out_in_full(optgap: Optgap, made: Path) -> None:
    full = (made / "one.vipr").read_text()
    short, again = made / "short.vipr", made / "full.vipr"
    short.write_text(shortened(full))
    assert len(short.read_text()) < len(full)
    said = optgap("verify", short, "--instance", made / "one.json", "--complete", again)
    assert (said.code, said.err) == (0, "")
    assert "weak" in short.read_text()
    assert again.read_text() == completed(short.read_text())
    assert sorted(again.read_text().split()) == sorted(full.split())
    assert optgap("verify", again, "--instance", made / "one.json").out == said.out
    # Nothing is written of what does not hold.
    again.unlink()
    short.write_text(short.read_text().replace("{ asm }", "{ sol }"))
    assert optgap("verify", short, "--complete", again).code == 1
    assert not again.exists()


def test_what_is_wrong_ends_with_1_and_what_is_no_certificate_with_2(optgap: Optgap, made: Path) -> None:
    text = (made / "one.vipr").read_text()
    other = made / "other.json"
    other.write_text(optgap("generate", "aryl.reclaim", "--seed", 4).out)
    changed = {
        "wrong": (text.replace("{ asm }", "{ lin 0 }"), 1),
        "short": (text[: len(text) // 2], 2),
        "empty": ("", 2),
        "long": (text.replace("VAR ", "VAR 10000000000"), 2),
        "late": (text + "DER 0\n", 2),
    }
    for name, (content, code) in changed.items():
        (made / name).write_text(content)
        said = optgap("verify", made / name)
        assert (said.code, said.out, len(said.err.splitlines())) == (code, "", 1), name
        assert str(made / name) in said.err
    (made / "bytes").write_bytes(b"VER 1.0\n\xff\xfe")
    (made / "broken.gz").write_bytes(gzip.compress(text.encode())[:-20])
    for name in ("bytes", "broken.gz", "missing", "."):
        said = optgap("verify", made / name)
        assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1), name
    said = optgap("verify", made / "one.vipr", "--instance", other)
    assert (said.code, said.out, len(said.err.splitlines())) == (1, "", 1)
    refuted = optgap("verify", made / "one.vipr", "--instance", other, "--json")
    assert json.loads(refuted.out)["verdict"] == "refuted"


@pytest.mark.parametrize("number", ["1/0", "nan", "inf", "1e3", "0x10", "1/2/3", "-", "½", "9" * 4001])
def test_what_is_no_fraction_is_refused(optgap: Optgap, made: Path, number: str) -> None:
    lines = (made / "one.vipr").read_text().splitlines()
    place = next(at for at, line in enumerate(lines) if re.match(r"C\d+ [LGE] ", line))
    words = lines[place].split()
    lines[place] = " ".join([*words[:2], number, *words[3:]])
    (made / "changed.vipr").write_text("\n".join(lines))
    said = optgap("verify", made / "changed.vipr")
    assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert str(made / "changed.vipr") in said.err


@pytest.mark.parametrize(
    ("head", "filling"),
    [
        ("VER 1.0\nVAR 1\n", "x"),
        ("VER 1.0\nVAR 1\nx\nINT 0\nOBJ min\n0\nCON 1 0\nC0 G ", "9"),
        ("VER 1.0\nVAR 3000000000\n", "ab "),
        ("VER 1.0\nVAR 1\nx\nINT 3000000000\n", "0\n"),
    ],
    ids=["a name", "a number", "names", "whole variables"],
)
def test_ten_gigabytes_are_refused_where_they_go_wrong(
    optgap: Optgap, made: Path, head: str, filling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ten thousand parts of a megabyte each, which unpack to one text.
    part = gzip.compress(filling.encode() * (2**20 // len(filling)))
    (made / "huge.vipr.gz").write_bytes(gzip.compress(head.encode()) + part * 10_000)
    unpacked = 0
    whole = gzip.GzipFile.read1

    def read1(file: gzip.GzipFile, size: int = -1) -> bytes:
        nonlocal unpacked
        data = whole(file, size)
        unpacked += len(data)
        return data

    monkeypatch.setattr(gzip.GzipFile, "read1", read1)
    said = optgap("verify", made / "huge.vipr.gz")
    assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert str(made / "huge.vipr.gz") in said.err
    assert 0 < unpacked < 2**24
    assert sorted(path.name for path in made.iterdir()) == ["huge.vipr.gz", "one.json", "one.vipr"]


def test_a_certificate_may_have_so_many_characters_and_no_more(optgap: Optgap, made: Path) -> None:
    size = len((made / "one.vipr").read_text())
    for most, code in ((size - 1, 2), (size, 0)):
        said = optgap("verify", made / "one.vipr", "--most", most)
        assert (said.code, len(said.err.splitlines())) == (code, int(code > 0))
        assert (f"more than {most:,} characters" in said.err) == (code > 0)
    assert optgap("verify", made / "one.vipr", "--most", 0).code == 2


def test_an_instance_whose_program_nobody_states_is_refused(optgap: Optgap, made: Path) -> None:
    (made / "two.json").write_text(optgap("generate", "aryl.two_job", "--seed", 1).out)
    said = optgap("verify", made / "one.vipr", "--instance", made / "two.json")
    assert (said.code, said.out) == (2, "")
    assert "states no program of aryl.two_job" in said.err


def test_no_certificate_is_left_where_there_is_none(optgap: Optgap, made: Path) -> None:
    said = optgap("solve", made / "one.json", "--heuristic", "server_fraction", "--certificate", made / "new.vipr")
    assert (said.code, said.out) == (2, "")
    said = optgap("solve", made / "one.json", "--certificate", made / "no" / "new.vipr")
    assert (said.code, said.out) == (2, "")
    assert not (made / "new.vipr").exists()
