"""Each benchmark runs at its smallest size, and every command in the documents exists; times are not asserted."""

import importlib.util
import math
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from benchmarks import growth
from benchmarks.__main__ import app
from benchmarks.tables import BENCHMARKS, Setup, between, described, gap, interval, markdown, seconds
from validation import CATALOGUE
from validation.cli.bench import bench_app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile", *ROOT.glob("docs/**/*.md")])
SOURCES = sorted(
    path for room in ("benchmarks", "formulations", "heuristics", "instances") for path in ROOT.glob(f"{room}/**/*.py")
)
NEEDS_DATA = {
    "elasticflow.minimum_satisfactory_share.stretches",
    "elasticflow.minimum_satisfactory_share.trace",
    "gavel.sharing.classes",
    "overhead.drawing",
    "replays.afs",
    "replays.aryl",
    "replays.changes.allox",
    "replays.changes.elasticflow",
    "replays.changes.ftf",
    "replays.changes.las",
    "replays.changes.synergy",
    "replays.elasticflow",
    "replays.gavel",
    "replays.gavel.realised",
    "replays.gavel.servers",
    "replays.headlines.afs",
    "replays.headlines.elasticflow",
    "replays.headlines.gavel",
    "replays.headlines.synergy",
    "replays.large",
    "replays.setup",
    "replays.synergy",
    "replays.systems",
    "synergy.allocation.growth",
    "synergy.placement.published",
    "synergy.tuning.large",
}


def named(pattern: str, paths: list[Path]) -> list[tuple[str, str]]:
    """Every command of that pattern in the files, with the file; line breaks within a command count as spaces."""
    return sorted(
        {
            (str(path.relative_to(ROOT)), " ".join(found.split()))
            for path in paths
            for found in re.findall(pattern, path.read_text(encoding="utf-8"))
        }
    )


TABLES = named(r"python -m benchmarks[ \n]+([a-z][^`\n]*)", [*PAGES, *SOURCES])
MODULES = named(r"python -m (benchmarks\.\w+)", [*PAGES, *SOURCES])
TIMINGS = named(r"optgap bench[ \n]+([a-z]\w*)", [*PAGES, *SOURCES])


def lines(name: str, data: Path | None) -> list[str]:
    return list(markdown(BENCHMARKS[name], Setup(quick=True, repeats=1, data=data)))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(BENCHMARKS) - NEEDS_DATA))
def test_runs_at_its_smallest_size(name: str) -> None:
    assert BENCHMARKS[name].summary.endswith((".", ")."))
    head, rule, *rows = lines(name, None)
    assert rows
    assert {line.count(" | ") for line in (head, rule)} == {len(BENCHMARKS[name].columns) - 1}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(NEEDS_DATA))
def test_runs_on_public_data(name: str, data: Path) -> None:
    assert len(lines(name, data)) > 2
    assert len(lines(name, None)) == 2  # The head, and no rows.


def test_the_entrance_lists_and_runs() -> None:
    run = CliRunner()
    said = run.invoke(app, [])
    assert said.exit_code == 0
    assert {line.split()[0] for line in said.output.splitlines()} == set(BENCHMARKS)
    said = run.invoke(app, ["aryl.two_job", "--quick", "--repeats", "1"])
    assert said.exit_code == 0, said.output
    for part in ("aryl.two_job.misses", "aryl.two_job.times", "| --- | --- |", "HiGHS 1.", "Pyomo 6."):
        assert part in said.output
    said = run.invoke(app, ["aryl.two"])
    assert said.exit_code == 2
    assert "got aryl.two, must be one of those that" in " ".join(re.sub("[│╭╮╰╯─]", " ", said.output).split())


@pytest.mark.slow
def test_the_entrance_is_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "aryl.reclaim.proofs" in done.stdout


def test_the_documents_name_commands() -> None:
    assert len(TABLES) > 30
    assert {command for _, command in TIMINGS} == {"overhead", "gavel"}


@pytest.mark.parametrize(("path", "command"), TABLES)
def test_a_command_of_the_documents_exists(path: str, command: str) -> None:
    context = typer.main.get_command(app).make_context("benchmarks", shlex.split(command.rstrip(".,;:)")))
    names = context.params["names"]
    assert names
    for asked in names:
        if asked != "NAME":
            assert any(f"{name}.".startswith(f"{asked}.") for name in BENCHMARKS), f"{path}: {asked}"


def test_the_modules_of_the_documents_exist() -> None:
    for path, module in MODULES:
        assert importlib.util.find_spec(module), f"{path}: {module}"


@pytest.mark.parametrize(("path", "command"), TIMINGS)
def test_a_bench_command_of_the_documents_exists(path: str, command: str) -> None:
    assert command in {found.name or found.callback.__name__ for found in bench_app.registered_commands}, path


def test_every_table_is_named_by_a_document() -> None:
    """A table that no page points to is one that nobody asked for."""
    asked = [name for _, command in TABLES for name in command.rstrip(".,;:)").split() if not name.startswith("-")]
    asked += [command for _, command in TIMINGS]
    for name in BENCHMARKS:
        assert any(f"{name}.".startswith(f"{part}.") for part in asked), name


def test_numbers_are_written_with_their_units() -> None:
    assert [seconds(value) for value in (0.000123, 0.0042, 0.0123, 0.949, 0.951, 12.34)] == [
        "0.12 ms",
        "4.2 ms",
        "12 ms",
        "0.95 s",
        "1.0 s",
        "12.3 s",
    ]
    assert between([2.0, 1.0]) == "1.0 s to 2.0 s"
    assert between([1.0]) == "1.0 s"
    # The mean of 1, 2 and 3 has the standard error 1 / sqrt(3), and Student's t of two degrees is 4.303.
    assert interval([1.0, 2.0, 3.0], "{:.2f}".format) == "2.00 (-0.48 to 4.48)"
    assert interval([2.0, 2.0], "{:.0f}".format) == "2 (2 to 2)"
    assert interval([2.0], "{:.1f}".format) == "2.0"
    with pytest.raises(ValueError, match="got 11 numbers, must be at most 10"):
        interval(range(11), str)
    assert (gap(9.0, 10.0), gap(0.0, 0.0), gap(1.0, 0.0)) == (0.1, 0.0, 1.0)


def test_described_rows_are_all_combinations() -> None:
    combined = described.combined({"seed": 2, "size": [{"jobs": 1, "gpus": 2}, {"jobs": 3}]})
    assert combined == [
        {"seed": 0, "jobs": 1, "gpus": 2},
        {"seed": 0, "jobs": 3},
        {"seed": 1, "jobs": 1, "gpus": 2},
        {"seed": 1, "jobs": 3},
    ]
    assert described.combined({}) == [{}]


def test_templates_divide_add_and_leave_blank() -> None:
    names = {"one": described.Values([3.0, 1.0, None]), "other": described.Values([2.0, 0.0, 1.0]), "n": 5, "no": ""}
    for template, cell in (
        ("{one / other:each , .1f}", "1.5,–,–"),
        ("{one + one:sum .1f}", "8.0"),
        ("{one / other:count}", "1"),
        ("{n / n:.2f}, {n:,}", "1.00, 5"),
        ("{no:.2f}{no:s}{no / n:.2f}", ""),
        ("{one:max s}, {one:max .4h}", "3.0 s, 0.0008"),
    ):
        assert described.FORMATTER.vformat(template, (), names) == cell, template


def test_rows_have_samples_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(described, "TABLES", {})
    monkeypatch.setattr(described, "BENCHMARKS", {})
    (tmp_path / "a.toml").write_text(
        '''
["aryl.reclaim.a"]
summary = "A."
seeds = 2
unlike = true
rows = [{ num_servers = 3, because = "few" }, { num_servers = 4, samples.other = { num_servers = 5 } }]
samples.other = { num_servers = 2 }
each = { because = "some" }
shows = """
| own | other | why |
| {instance.num_servers:interval .0f} | {other.instance.num_servers:between} | {because} |"""
''',
        encoding="utf-8",
    )
    described.enter(tmp_path / "a.toml")
    assert [cells for cells, _ in described.rows("aryl.reclaim.a", Setup())] == [
        ["3 (3 to 3)", "2", "few"],
        ["4 (4 to 4)", "5", "some"],
    ]


def test_what_the_row_before_asks_as_well_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(described, "TABLES", {})
    monkeypatch.setattr(described, "BENCHMARKS", {})
    (tmp_path / "a.toml").write_text(
        '''
["aryl.reclaim.a"]
summary = "A."
rows = [{ label = "a" }, { label = "b", num_servers = 4, samples.other = { num_servers = 3 } }]
samples.other = { num_servers = 2 }
each = { num_servers = 3 }
shows = """
| own | other |
| {solve.value:between} | {other.solve.value:between} |"""
''',
        encoding="utf-8",
    )
    described.enter(tmp_path / "a.toml")
    (_, one), (_, other) = described.rows("aryl.reclaim.a", Setup())
    assert other["other"].solve is one.own.solve
    assert one["other"].solve is not one.own.solve
    assert other.own.solve is not one.own.solve


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("quik = { seeds = 1 }\n", "got quik; a table has no such key"),
        ("asked.drawn = {}\n", "got drawn; a sample has these itself"),
        ("rows = [{ cells = { time = '' } }]\n", "got time; no head is called so"),
        ("shows = '''\n| a |\n| b | c |'''\n", "got b, c; these are templates of 1 heads"),
    ],
)
def test_a_wrong_description_is_named(text: str, culprit: str, tmp_path: Path) -> None:
    shows = "" if "shows" in text else "shows = '''\n| a |\n| b |'''\n"
    (tmp_path / "a.toml").write_text(f"['a.b.c']\nsummary = 'A.'\n{shows}{text}", encoding="utf-8")
    with pytest.raises(ValueError, match=f"^a.b.c: {culprit}$"):
        described.enter(tmp_path / "a.toml")
    assert "a.b.c" not in BENCHMARKS


def test_a_quick_setup_is_small() -> None:
    quick, whole = Setup(quick=True), Setup()
    assert (quick.size(100, 1), whole.size(100, 1)) == (1, 100)
    assert (list(quick.few(range(3))), list(whole.few(range(3)))) == ([0], [0, 1, 2])
    assert (quick.seconds(60), Setup(quick=True, limit=5).seconds(60), whole.seconds(60)) == (1.0, 5, 60)


def test_growth_is_the_slope_over_the_last_decade() -> None:
    points = [[size, 0.5 + 1e-6 * size**2] for size in (10, 100)] + [
        [size, 1e-6 * size**2] for size in (1000, 3162, 10000)
    ]
    assert growth.exponent(points) == pytest.approx(2.0, abs=1e-3)
    assert math.isnan(growth.exponent(points[:1]))
    assert math.isnan(growth.exponent([]))


def test_growth_goes_by_the_sizes_of_the_catalogue() -> None:
    entry = CATALOGUE["aryl.reclaim"]
    assert growth.sizes(entry, exact=False) == [10, 32, 100, 316, 1000, 3162, 10000]
    assert growth.sizes(entry, exact=True) == [10, 32, 100, 316, 1000]
    assert growth.stated(entry, "server_fraction") == "O((n + demand) * s)"
    assert growth.grown({"10": {"n": 5, "k": 3}, "100": {"n": 50, "k": 3}}) == "n to 50 (power 1.0), k = 3"


@pytest.mark.slow
def test_growth_writes_a_page_and_measures_nothing_twice(tmp_path: Path) -> None:
    asked = ["aryl.two_job", "--most", "2", "--folder", str(tmp_path / "kept"), "--docs", str(tmp_path)]
    said = CliRunner().invoke(growth.app, asked)
    assert said.exit_code == 0, said.output
    assert said.output.startswith("aryl.two_job: ")
    page = (tmp_path / "growth.md").read_text(encoding="utf-8")
    assert "| exact model | 8 to 25 |" in page
    assert "| `closed_form` | 8 to 25 |" in page
    assert "At the papers' size, `num_gpus=8`: proven in " in page
    assert (tmp_path / "growth" / "aryl.png").read_bytes().startswith(b"\x89PNG")
    again = CliRunner().invoke(growth.app, asked)
    assert (again.exit_code, again.output) == (0, "")
    assert (tmp_path / "growth.md").read_text(encoding="utf-8") == page
    assert CliRunner().invoke(growth.app, ["aryl.two"]).exit_code == 2
