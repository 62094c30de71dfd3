"""Studies: whose files a directory holds, what is said of odd ones, and what becomes of a full disk."""

import base64
import hashlib
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.studies import KINDS, snapshot, without_pictures
from validation import StudyError, gap_study
from validation.cli.app import FAILED
from validation.kernel.store import read_log
from validation.kinds.study.records import STUDY
from validation.kinds.study.report import finish

from .studies import FORKED, SMALL, log_of, without_times

pytestmark = FORKED

TINY: dict[str, Any] = {**SMALL, "count": 2, "heuristics": ["random"]}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a small study, to be copied."""
    directory = tmp_path_factory.mktemp("finished") / "study"
    with without_pictures():
        gap_study(**TINY, output=directory)
    return directory


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "study"))


@pytest.fixture
def nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def computed(*_: object, **__: object) -> None:
        raise AssertionError("something was computed")

    monkeypatch.setattr("validation.kernel.run.run_tasks", computed)


# --- files of somebody else's ---------------------------------------------------------------------

NAMES = ["study.json", "rows.jsonl", "rows.damaged.jsonl", "results.parquet", "metadata.json", "report.html", ".lock"]


@pytest.mark.usefixtures("nothing_is_computed")
@pytest.mark.parametrize("kind", KINDS)
def test_files_of_somebody_else_are_left_alone(kind: str, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("", encoding="utf-8")
    for name in [*NAMES, "instances"]:
        directory = tmp_path / f"for-{name}"
        directory.mkdir()
        KINDS[kind](directory / name)
        before = snapshot(tmp_path)
        with pytest.raises(StudyError) as caught:
            gap_study(**TINY, output=directory)
        assert str(directory / name) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert snapshot(tmp_path) == before
        with pytest.raises(StudyError):
            finish(directory)
        assert snapshot(tmp_path) == before


@pytest.mark.usefixtures("nothing_is_computed")
@pytest.mark.parametrize("kind", ["link", "directory", "pipe"])
def test_a_study_with_odd_files_among_its_own(kind: str, study: Path) -> None:
    (study.parent / "mine").write_text("{}", encoding="utf-8")
    for name in NAMES:
        kept = (study / name).read_bytes() if (study / name).exists() else None
        (study / name).unlink(missing_ok=True)
        KINDS[kind](study / name)
        before = snapshot(study.parent)
        for call in (lambda: gap_study(**TINY, output=study), lambda: finish(study)):
            with pytest.raises(StudyError) as caught:
                call()
            assert str(study / name) in str(caught.value)
        assert snapshot(study.parent) == before
        os.rmdir(study / name) if kind == "directory" else os.unlink(study / name)
        if kept is not None:
            (study / name).write_bytes(kept)


def test_a_log_alone_is_a_study(study: Path) -> None:
    whole = finish(study).rows
    rows = log_of(study)
    (study / "study.json").unlink()
    again = gap_study(**TINY, output=study)
    assert log_of(study) == rows
    assert without_times(again.rows).equals(without_times(whole))


def test_instances_where_the_study_keeps_its_own(tmp_path: Path, study: Path) -> None:
    with pytest.raises(StudyError, match="would keep its own files"):
        gap_study(**{**TINY, "count": None}, instances=study / "instances", output=study)


# --- odd content ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("pictures")
def test_what_cannot_be_drawn_is_said(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.kinds.study.report.problem_pictures", lambda *_: [])
    rows = log_of(study)
    for row in rows:
        # Every heuristic is worse than the optimum, so that there is something to draw.
        row["value"] = row["bound"] = 1.0 if row["algorithm"] == "exact" else 2.0

    def page(**plan: Any) -> str:
        written = [row | {"plan": plan} if plan and row["algorithm"] != "exact" else row for row in rows]
        (study / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in written), encoding="utf-8")
        return finish(study).report.read_text(encoding="utf-8")

    assert "Not drawn" not in page()
    assert "unknown field &#39;splendid&#39;" in page(splendid=[1])
    assert "Not drawn" in page(servers=["a"])
    (one, other) = (study / "instances" / "aryl.reclaim").iterdir()
    kept = one.read_bytes()
    shutil.copy(other, one)
    one_is_another = page()
    one.write_bytes(kept)
    shutil.copy(one, other)
    assert "another instance than the study" in one_is_another + page()
    one.unlink()
    other.unlink()
    assert "No such file" in page()


# --- hostile words --------------------------------------------------------------------------------

HOSTILE = '"><script id=mine>alert(1)</script><b onload=mine>\x1b]0;mine\x07\x1b[2J$\\frac$ [red]\u202e'


class Tags(html.parser.HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))


KNOWN = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "ul", "li", "a", "details", "summary", "b",
    "i", "section", "div", "table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "dl", "dt", "dd",
    "main", "code", "nav", "script", "svg", "g", "defs", "clippath", "pattern", "path", "rect", "use", "text", "tspan",
    "circle",
}  # fmt: skip


@pytest.mark.usefixtures("pictures")
def test_words_are_words_in_the_report(study: Path) -> None:
    record = json.loads((study / "study.json").read_bytes())
    record["run"] |= {"started": HOSTILE, "command": HOSTILE, "commit": HOSTILE}
    record["run"]["versions"][HOSTILE] = HOSTILE
    record["run"]["machine"] |= {"processor": HOSTILE, "system": HOSTILE}
    record["asked"][HOSTILE] = [HOSTILE]
    rows = log_of(study)
    for cell in [*record["cells"], *rows]:
        if cell["algorithm"] != "exact":
            cell["algorithm"] = HOSTILE
    for row, more in zip(rows, ({}, {}, {"status": "failed", "value": None}, {}), strict=True):
        row |= {"reason": HOSTILE, "solver": HOSTILE, **more}
        if row["algorithm"] == HOSTILE and row["value"] is not None:
            row["value"] += 1
    (study / "study.json").write_text(json.dumps(record), encoding="utf-8")
    (study / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    page = finish(study).report.read_text(encoding="utf-8")
    assert page.count("&lt;script") > 5
    assert all(character.isprintable() or character == "\n" for character in page)
    tags = Tags(page).found
    for tag, attributes in tags:
        assert tag in KNOWN
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert "mine" not in attributes.get("id", "")
        href = attributes.get("href")
        assert href is None or href.startswith("#") or (study / href).is_file()
    # One script, the page's own, and no other would run.
    assert [tag for tag, _ in tags].count("script") == 1
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'\"" in page


MAIN = "from validation.cli import main; main()"


def optgap(*arguments: object, cwd: Path, before: str = "") -> subprocess.CompletedProcess[bytes]:
    """A command as the installed one runs: without the current directory among the places to import from."""
    given = [argument if isinstance(argument, bytes) else str(argument).encode() for argument in arguments]
    without_pictures = (
        "from validation.kinds.study import report\n"
        "report.problem_pictures = lambda *_: []\nreport.plans_side_by_side = lambda *_, **__: '<svg></svg>'\n"
    )
    return subprocess.run(
        [sys.executable, "-P", "-c", f"{before}\n{without_pictures}{MAIN}", *given],
        cwd=cwd,
        capture_output=True,
        check=False,
        timeout=300,
    )


def test_words_are_words_on_a_terminal(study: Path) -> None:
    record = json.loads((study / "study.json").read_bytes())
    rows = log_of(study)
    for cell in [*record["cells"], *rows]:
        if cell["algorithm"] != "exact":
            cell["algorithm"] = HOSTILE
    rows[-1] |= {"status": "failed", "value": None, "reason": HOSTILE}
    rows[-1].pop("plan", None)
    (study / "study.json").write_text(json.dumps(record), encoding="utf-8")
    damaged = json.dumps(rows[0] | {"status": HOSTILE})
    lines = [damaged, *(json.dumps(row) for row in rows)]
    (study / "rows.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = optgap("report", "study", cwd=study.parent, before="import os; os.environ['FORCE_COLOR'] = '1'")
    assert said.returncode == FAILED, said.stderr
    # Colours of the library's own are all that a terminal is told.
    for text in (said.stdout, said.stderr):
        plain = re.sub(r"\x1b\[\d+m", "", text.decode())
        assert all(character.isprintable() or character == "\n" for character in plain)
    assert b"[red]" in said.stdout
    assert b"line 1: field 'status'" in said.stderr


# --- odd places -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_of_the_current_directory_change_nothing(study: Path, tmp_path: Path) -> None:
    for name in ("html.py", "json.py", "numpy.py", "random.py", "filelock.py", "validation.py"):
        (tmp_path / name).write_text("raise SystemExit('taken for another')\n", encoding="utf-8")
    (tmp_path / "instances").mkdir()
    (tmp_path / "instances" / "__init__.py").write_text("raise SystemExit('taken for another')\n", encoding="utf-8")
    here = optgap("report", "study", cwd=tmp_path)
    assert (here.returncode, here.stderr) == (0, b"")
    # A reference brings the current directory in, and still takes nothing's place.
    (tmp_path / "mine.py").write_text(
        "import html, json, numpy\nfrom instances.aryl.reclaim import ReclaimPlan\n\n"
        "def first(instance):\n    return ReclaimPlan(servers=numpy.arange(instance.demand))\n",
        encoding="utf-8",
    )
    for reference in ("mine:first", "mine.py:first", "./mine.py:first"):
        solved = optgap("solve", next((study / "instances").rglob("*.json")), "--heuristic", reference, cwd=tmp_path)
        assert solved.returncode == 0, solved.stderr
    refused = optgap("solve", next((study / "instances").rglob("*.json")), "--heuristic", "json.py:loads", cwd=tmp_path)
    assert refused.returncode == 2
    assert b"there is a module 'json' already" in refused.stderr


def test_settings_of_matplotlib_change_nothing(tmp_path: Path) -> None:
    script = (
        "from validation.pages.drawing import plans_side_by_side\n"
        "from instances.aryl.reclaim import six_servers\n"
        "print(plans_side_by_side(six_servers(), {}))\n"
    )
    pictures = []
    for number, settings in enumerate([None, b"font.size: 40\nbackend: pdf\n", b"\xff\xfe\n", b"no such: thing\n"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        if settings is not None:
            (folder / "matplotlibrc").write_bytes(settings)
        done = subprocess.run([sys.executable, "-P", "-c", script], cwd=folder, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        pictures.append(done.stdout)
    assert pictures == [pictures[0]] * 4
    assert b"<svg" in pictures[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", [b"[bold] {x} %41 'a\" &", b"caf\xe9", b"javascript:alert(1)", "文\u202e".encode()])
def test_odd_names_of_directories(name: bytes, study: Path, tmp_path: Path) -> None:
    target = os.fsencode(tmp_path) + b"/" + name
    os.rename(study, target)
    said = optgap("report", name, cwd=tmp_path)
    assert (said.returncode, said.stderr) == (0, b"")
    shown = b"".join(said.stdout.split())
    assert b"report:" in shown
    link = finish(os.fsdecode(target))._repr_html_().partition('href="')[2].partition('"')[0]
    assert set(link) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/%.-_~")


def test_a_path_with_a_nul(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"output: .*: no file can have this name"):
        gap_study(**TINY, output=f"{tmp_path}/a\0b")


# --- a full disk ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_full_disk_ends_a_study_in_one_line(study: Path, tmp_path: Path) -> None:
    whole = finish(study).rows
    command = ["study", "aryl.reclaim", "--seed", 3, "--sizes", 5, "--count", 2, "--heuristic", "random", "-o", "full"]
    target = tmp_path / "full"
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))"
    said = optgap(*command, cwd=tmp_path, before=full)
    assert said.returncode == 2
    assert said.stderr == b"optgap: cannot write to full: File too large\n"
    # The log is the one file that grows; there is room for its first row and for half of the second.
    row = len((study / "rows.jsonl").read_bytes().splitlines()[0])
    growing = (
        "import os\nfrom validation.kernel import store\nwrite, left = os.write, 1.5 * {row}\n"
        "def limited(handle, data):\n"
        "    global left\n"
        "    if not os.readlink(f'/proc/self/fd/{{handle}}').endswith('rows.jsonl'): return write(handle, data)\n"
        "    if left < 1: raise OSError(28, 'No space left on device')\n"
        "    done = write(handle, data[:int(left)])\n"
        "    left -= done\n"
        "    return done\n"
        "store.os.write = limited\n"
    )
    said = optgap(*command, "--jobs", 1, cwd=tmp_path, before=growing.format(row=row))
    assert said.returncode == 2
    assert said.stderr.splitlines()[-1] == b"optgap: cannot write to full/rows.jsonl: No space left on device"
    log = (target / "rows.jsonl").read_bytes()
    assert log.endswith(b"\n")
    rows = read_log(target, STUDY)
    assert (len(rows.rows), rows.damaged) == (1, [])
    # With room again the study goes on, from the row that there is.
    assert optgap(*command, cwd=tmp_path).returncode == 0
    assert (target / "rows.jsonl").read_bytes().startswith(log)
    assert without_times(finish(target).rows).equals(without_times(whole))
