"""``optgap judge seal``, ``reveal``, ``board``: sets that are committed to, and judgements that anyone makes again."""

import hashlib
import json
import re
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from validation.cli import app, commands
from validation.kinds.judge import sets
from validation.kinds.judge.board import OTHER_VERSIONS, RECOMPUTED, SEALED, UNTRIED, Board, read_board
from validation.kinds.study.cases import generate

from ..study.studies import FORKED
from .sets import WALLED
from .test_judge_command import told

pytestmark = FORKED

FIRST = """
import numpy as np
from instances.aryl.reclaim import ReclaimPlan

def heuristic(instance):
    return ReclaimPlan(servers=np.arange(instance.demand))
"""
LAST = FIRST.replace("np.arange(instance.demand)", "np.arange(instance.num_servers)[-instance.demand :]")


@pytest.fixture(autouse=True)
def _small_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sets, "COUNT", 2)
    monkeypatch.setattr(sets, "_SIZES", {"aryl.reclaim": (8, 12)})
    monkeypatch.setattr(sets, "_FIRST", {})


@pytest.fixture
def sealed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, Path]:
    """A secret and what commits to it."""
    secret, commitment = tmp_path / "secret.json", tmp_path / "commitment.json"
    code, out, _ = told(capsys, "seal", secret, "--problem", "aryl.reclaim", "--json")
    assert code == 0
    commitment.write_text(out)
    return secret, commitment


# --- commit and reveal --------------------------------------------------------------------------


def test_a_commitment_is_the_hash_of_the_file_and_tells_nothing_of_it(sealed: tuple[Path, Path]) -> None:
    secret, published = json.loads(sealed[0].read_text()), json.loads(sealed[1].read_text())
    assert published["commitment"] == hashlib.sha256(sealed[0].read_bytes()).hexdigest()
    assert stat.S_IMODE(sealed[0].stat().st_mode) == 0o600
    assert set(published) == {"problem", "edition", "version", "commitment", "set"}
    assert not {secret["seed"], secret["salt"]} & set(map(str, published.values()))
    assert int(secret["seed"]) >= 2**64, "2 ** -64 is no chance"


def test_two_secrets_differ(sealed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "seal", tmp_path / "other.json", "--problem", "aryl.reclaim")
    one, other = (json.loads(file.read_text()) for file in (sealed[0], tmp_path / "other.json"))
    assert one["seed"] != other["seed"]
    assert one["salt"] != other["salt"]


def test_a_secret_is_sealed_again_and_not_overwritten(
    sealed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sealed[0].read_bytes()
    code, out, _ = told(capsys, "seal", sealed[0], "--problem", "aryl.reclaim", "--json")
    assert (code, json.loads(out)) == (0, json.loads(sealed[1].read_text()))
    assert sealed[0].read_bytes() == before
    code, _, err = told(capsys, "seal", sealed[0], "--problem", "aryl.two_job")
    assert code == app.BAD_INPUT
    assert "secret of aryl.reclaim" in err


@WALLED
def test_the_sealed_set_is_that_of_its_seed(sealed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    seed, published = int(json.loads(sealed[0].read_text())["seed"]), json.loads(sealed[1].read_text())
    digests = sorted(generate("aryl.reclaim", seed, size, index).digest for size in (8, 12) for index in (0, 1))
    assert published["set"] == hashlib.sha256("\n".join(digests).encode()).hexdigest()
    code, out, _ = told(capsys, "random", "--problem", "aryl.reclaim", "--split", f"hidden:{sealed[0]}", "--json")
    found = json.loads(out)
    assert code == 0
    assert [one["digest"] for one in found["instances"]] == digests
    assert (found["set"], found["commitment"]) == (published["set"], published["commitment"])
    assert found["seeds"]["instances"] is None
    assert str(seed) not in out


def test_reveal_tells_what_fits(sealed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "reveal", *sealed)[0] == 0
    told(capsys, "seal", tmp_path / "other.json", "--problem", "aryl.reclaim")
    code, out, err = told(capsys, "reveal", tmp_path / "other.json", sealed[1], "--json")
    assert code == app.DISAGREEMENT
    assert not json.loads(out)["fits"]
    assert "commitment is " in err
    assert "set is " in err


@pytest.mark.parametrize("change", ["salt", "version", "seed"])
def test_reveal_refuses_a_secret_of_the_same_set(
    sealed: tuple[Path, Path], change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is changed in it, the commitment is another one."""
    data = json.loads(sealed[0].read_text())
    data[change] = data[change][:-1] + ("1" if data[change][-1] != "1" else "2")
    (tmp_path / "other.json").write_text(json.dumps(data, sort_keys=True) + "\n")
    code, _, err = told(capsys, "reveal", tmp_path / "other.json", sealed[1])
    assert code == app.DISAGREEMENT
    assert ("set is " in err) == (change == "seed")


@WALLED
@pytest.mark.parametrize("content", ['{"seed": 1}', '{"seed"', "{}", "-5", "5.0", ""])
def test_what_is_no_secret_is_told_without_its_content(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text(content)
    for asked in (["random", "--split", f"hidden:{tmp_path / 'file'}"], ["seal", tmp_path / "file"]):
        code, _, err = told(capsys, *asked, "--problem", "aryl.reclaim")
        assert code == app.BAD_INPUT
        assert len(err.splitlines()) == 1
        assert str(tmp_path / "file") in err
        assert "seed" not in err.replace(str(tmp_path), "")


def test_a_secret_that_is_written_otherwise_is_refused(
    sealed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.json").write_text(json.dumps(json.loads(sealed[0].read_text()), indent=1))
    code, _, err = told(capsys, "reveal", tmp_path / "other.json", sealed[1])
    assert code == app.BAD_INPUT
    assert "has been changed since" in err


# --- boards -------------------------------------------------------------------------------------


class Made:
    """A board of two programs, judged on the public set."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        (folder / "programs").mkdir(parents=True)
        for name, text in {"first": FIRST, "last": LAST}.items():
            (folder / "programs" / f"{name}.py").write_text(text)
            self.judged(name)

    def judged(self, name: str, *options: object, to: str = "") -> dict[str, Any]:
        asked = (f"{self.folder}/programs/{name}.py:heuristic", "--problem", "aryl.reclaim", *options, "--json")
        code, out, err = told(self.capsys, *asked)
        assert code == 0, err
        (self.folder / f"{to or name}.json").write_text(out)
        return dict(json.loads(out))

    def changed(self, name: str, **entries: Any) -> None:
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **entries}))

    def read(self, **options: Any) -> Board:
        return read_board(self.folder, **options)

    def checked(self, **options: Any) -> dict[str, str]:
        return {one.file.removesuffix(".json"): one.checked for one in self.read(**options).entries}


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    return Made(tmp_path / "board", capsys)


def test_a_board_is_judged_again(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = told(capsys, "board", made.folder, "-o", made.folder / "board.md")
    assert (code, err) == (0, "")
    assert out.count(RECOMPUTED) == 2
    assert (made.folder / "board.md").read_text() == out.removesuffix("\n")
    found = made.read(recompute=False)
    assert [one.checked for one in found.entries] == [UNTRIED] * 2
    assert [one.score for one in found.entries] == sorted((one.score for one in found.entries), reverse=True)
    digests = {
        one.program: hashlib.sha256((made.folder / one.program).read_bytes()).hexdigest() for one in found.entries
    }
    assert digests == {one.program: one.digest for one in found.entries}
    assert sorted(digests) == ["programs/first.py", "programs/last.py"]


def test_a_program_that_was_changed_is_told(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    (made.folder / "programs" / "first.py").write_text(FIRST + "\n")
    code, out, err = told(capsys, "board", made.folder, "--json")
    assert code == app.DISAGREEMENT
    assert "first.json: no file here has the program's digest" in err
    assert {one["file"]: one["wrong"] for one in json.loads(out)["entries"]} == {"first.json": True, "last.json": False}


def test_a_score_of_another_program_is_told(made: Made) -> None:
    """One that is consistent in itself: all that the better one has, with the digest of the worse."""
    scores = {name: json.loads((made.folder / f"{name}.json").read_text()) for name in ("first", "last")}
    worse, better = sorted(scores, key=lambda name: scores[name]["score"])
    assert scores[worse]["score"] < scores[better]["score"]
    made.changed(worse, score=scores[better]["score"], instances=scores[better]["instances"])
    assert made.checked(recompute=False)[worse] == UNTRIED
    assert made.checked() == {
        worse: f"judged again, its score is {scores[worse]['score']:.4f}",
        better: RECOMPUTED,
    }


def test_a_score_that_is_no_mean_is_told(made: Made) -> None:
    made.changed("first", score=1.0)
    assert made.checked(recompute=False)["first"] == "the score is not the mean of its instances"


def test_a_set_that_nobody_has_is_told(made: Made) -> None:
    made.changed("first", set="0" * 64)
    assert made.checked(recompute=False)["first"] == "its set is neither public nor revealed"
    made.changed("first", versions={"numpy": "0.1"})
    assert made.checked(recompute=False)["first"] == OTHER_VERSIONS


@WALLED
def test_a_sealed_set_is_judged_again_once_it_is_revealed(
    made: Made, sealed: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    secret, commitment = sealed
    made.judged("first", "--split", f"hidden:{secret}", to="hidden")
    assert made.checked(recompute=False)["hidden"] == "no commitment here is that of its set"
    (made.folder / "commitment.json").write_bytes(commitment.read_bytes())
    assert made.checked(recompute=False)["hidden"] == SEALED
    (made.folder / "secret.json").write_bytes(secret.read_bytes())
    assert made.checked()["hidden"] == RECOMPUTED
    made.changed("hidden", set=json.loads((made.folder / "first.json").read_text())["set"])
    assert made.checked(recompute=False)["hidden"] == "the set is not the one that was committed to"


def test_a_program_is_judged_alone(made: Made) -> None:
    """What it imports beside it is in no digest, so that it is not there when it is judged again."""
    (made.folder / "programs" / "beside.py").write_text(LAST)
    (made.folder / "programs" / "borrows.py").write_text("from beside import heuristic\n")
    assert made.judged("borrows")["counts"]["failed"] == 0
    assert made.checked()["borrows"] == "judged again, its score is 0.0000"


# --- the example --------------------------------------------------------------------------------

EXAMPLE = Path(__file__).parents[4] / "examples" / "leaderboard"


@pytest.fixture
def _whole_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are, and not the small ones of this file."""
    monkeypatch.undo()


@pytest.mark.usefixtures("_whole_sets")
def test_the_example_holds(capsys: pytest.CaptureFixture[str]) -> None:
    """Digests of programs and sets, commitment and secret, and the table that stands beside them."""
    found = read_board(EXAMPLE, recompute=False)
    assert [one.checked for one in found.entries] == [UNTRIED] * 4
    assert str(found) == (EXAMPLE / "board.md").read_text().replace(RECOMPUTED, UNTRIED)
    assert told(capsys, "reveal", EXAMPLE / "sets/first.secret.json", EXAMPLE / "sets/first.commitment.json")[0] == 0


@pytest.mark.slow
@pytest.mark.usefixtures("_whole_sets")
def test_the_example_is_judged_again() -> None:
    assert str(read_board(EXAMPLE)) == (EXAMPLE / "board.md").read_text()


def test_the_workflow_judges_as_the_board_was_judged() -> None:
    """Each of its commands is one of the command line, with options that there are."""
    workflow = (EXAMPLE / "judge.yml").read_text()
    lines = re.findall(r"^ *(?:- run: )?(optgap .+?)(?: >.*)?$", workflow, re.MULTILINE)
    asked = [shlex.split(line)[1:] for line in lines]
    assert [words[:2] for words in asked] == [["doctor"], ["judge", "programs/$NAME.py:heuristic"], ["judge", "board"]]
    group: Any = get_command(commands()).commands["judge"]  # type: ignore[attr-defined]
    for words, name in zip(asked[1:], ("judge", "board"), strict=True):
        options = {option for one in group.commands[name].params for option in one.opts}
        assert {word for word in words if word.startswith("-")} <= options
    assert "persist-credentials: false" in workflow
    assert "permissions:\n  contents: read\n" in workflow


# --- searches -----------------------------------------------------------------------------------


def judgement(score: float, **entries: Any) -> str:
    """As ``optgap judge --json`` has it, of two instances."""
    instances = [{"score": 1.0}, {"score": 2 * score - 1}]
    common: dict[str, Any] = {"problem": "aryl.reclaim", "heuristic": "h", "set": "0" * 64, "edition": 1}
    common |= {"split": "public", "budget": 10.0, "no_solver": True, "versions": {}}
    return json.dumps({**common, "score": score, "instances": instances, **entries})


def test_searches_are_compared_by_means_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"hill": [0.9, 0.94, 0.98], "random": [0.8, 0.82], "once": [0.7]}
    for name, found in scores.items():
        (tmp_path / name).mkdir()
        for seed, score in enumerate(found):
            (tmp_path / name / f"{seed}.json").write_text(judgement(score))
    code, out, _ = told(capsys, "compare", *(tmp_path / name for name in reversed(scores)), "--json")
    assert code == 0
    read = {one["name"]: one for one in json.loads(out)}
    assert list(read) == list(scores)
    for name, found in scores.items():
        assert read[name]["mean"] == pytest.approx(sum(found) / len(found), rel=1e-12)
        assert read[name]["worst"] == pytest.approx(2 * min(found) - 1)
    # A sample of the bootstrap is each of the three alone once in 27 times, which is more often than 2.5 %.
    assert (read["hill"]["low"], read["hill"]["high"]) == pytest.approx((0.9, 0.98))
    assert read["once"]["low"] is None
    _, out, _ = told(capsys, "compare", *(tmp_path / name for name in scores))
    assert "| hill | 3 | 0.9400 | 0.9000 to 0.9800 |" in out
    assert "none of one seed" in out


def test_searches_on_other_sets_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, entries in {"one": {}, "other": {"no_solver": False}}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.json").write_text(judgement(0.9, **entries))
    code, _, err = told(capsys, "compare", tmp_path / "one", tmp_path / "other")
    assert code == app.BAD_INPUT
    assert "must be of one set" in err


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.json": judgement(0.9)}, "program: got None, must be the digest of a file"),
        ({"a.json": judgement(0.9, instances=[{}])}, "instances: must be as optgap judge --json has them"),
        ({}, "holds no judgement"),
        ({"a.json": '{"salt": 1}'}, "no secret of optgap judge seal"),
        ({"a.json": "{"}, "a.json"),
        ({"a.json": '{"instances": [], "heuristic": "a.py:f", "problem": 5}'}, "problem: got 5"),
    ],
)
def test_bad_boards_are_one_line(
    files: dict[str, str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    code, out, err = told(capsys, "board", tmp_path)
    assert (code, out) == (app.BAD_INPUT, "")
    assert said in err
    assert len(err.splitlines()) == 1
