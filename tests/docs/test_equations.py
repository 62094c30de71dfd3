"""The equations of a problem's page, and the components of its Pyomo model that carry them."""

import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyomo.environ as pyo
import pytest

from formulations.gavel.sharing import SharingProgram
from instances.afs.elastic_sharing import ElasticSharing
from instances.afs.network_packing import NetworkPacking
from instances.afs.two_job import AfsTwoJob
from instances.aryl.placement import base_and_flexible
from instances.base import Instance
from instances.synergy.placement import SynergyPlacement
from validation import CATALOGUE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "problems"
PAGES = sorted(path for path in FOLDER.glob("*/*.md") if path.stem != "index")

NUMBER = r"\((\d+[a-z]?'?)\)"
KINDS = {
    "variable": pyo.Var,
    "bounds": pyo.Var,
    "objective": pyo.Objective,
    "constraint": pyo.Constraint,
    "parameter": pyo.Param,
}


@dataclass(frozen=True)
class Row:
    """One row of a table: equations, components with their indices, and what kind they are."""

    equation: str
    component: str
    kind: str

    @property
    def names(self) -> dict[str, int | None]:
        """Components, each with its number of indices; None where they are not written.

        Other code is a set, in capitals, or has a dot or a bracket: a function, a module.
        """
        found = {}
        for code in re.findall("`([^`]*)`", self.component):
            named = re.fullmatch(r"([A-Za-z]\w*)(?:\[([^\]]*)\])?", code)
            if named and not re.fullmatch("[A-Z]{2,}[A-Z_]*", code):
                found[named[1]] = named[2].count(",") + 1 if named[2] else None
        return found


def text(page: str) -> str:
    return (FOLDER / f"{page}.md").read_text(encoding="utf-8")


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def numbers(page: str) -> list[str]:
    return re.findall(r"\\tag\{(.*?)\}", text(page))


def equations(page: str) -> dict[str, str]:
    """Each equation by its number, without what is below sums and the like."""
    found = re.findall(r"\$\$((?:(?!\$\$).)*?)\\tag\{(.*?)\}\$\$", text(page), re.DOTALL)
    return {number: re.sub(r"[_^]\{[^{}]*\}", "", latex) for latex, number in found}


def tables(page: str) -> dict[str, list[Row]]:
    """The rows of each table of equations, by the function that builds the model."""
    header = r"^\| equation \| in the Pyomo model(?: of `(\w+)\([^`]*)?`? \| kind \|.*\n\|[ |-]+\n((?:\|.*\n)+)"
    return {
        builder or "build": [Row(*(cell.strip() for cell in line.split("|")[1:4])) for line in rows.splitlines()]
        for builder, rows in re.findall(header, text(page), re.MULTILINE)
    }


def rare(problem: str, generated: Instance[Any]) -> Iterator[Instance[Any]]:
    """Instances whose models have the components that generated ones may lack."""
    match problem:
        case "afs.elastic_sharing":
            arrivals = [0.0, 0.0, 1.0, 2.0]
            yield ElasticSharing(num_gpus=2, work=[1.0] * 4, throughputs=[[0, 1, 2]] * 4, arrivals=arrivals)
        case "afs.network_packing":
            yield NetworkPacking(shares=[8, 3], num_machines=1, gpus_per_machine=8)
        case "afs.two_job":
            yield AfsTwoJob(work=[1.0, 1.0], throughputs=[[0.0, 0.0], [1.0, 1.0]])
        case "aryl.placement":
            yield base_and_flexible()
        case "eplb.placement":
            yield CATALOGUE[problem].generate(0, num_experts=4, num_nodes=2, num_groups=2, move_limit=2.0)
        case "gavel.cost" | "gavel.throughput_per_dollar":
            yield CATALOGUE[problem].generate(0, num_jobs=4, slo_fraction=1.0)
        case "prism.placement":
            yield CATALOGUE[problem].generate(0, num_jobs=4, placed=1.0, movable=0.5)
        case "synergy.placement":
            demands = [[1.0, 30.0, 0.0], [3.0, 0.0, 0.0]]
            yield SynergyPlacement(num_servers=2, server_gpus=2, server_cpus=24.0, server_memory=1.0, demands=demands)
        case "synergy.tuning":
            yield replace(generated, split_penalty=0.5)  # type: ignore[call-arg]


def models(problem: str, builder: str) -> list[pyo.ConcreteModel]:
    entry = CATALOGUE[problem]
    build = getattr(importlib.import_module(f"formulations.{problem}"), builder)
    generated = entry.generate(0, **{entry.size: entry.sizes[0]})
    return [build(instance) for instance in (generated, *rare(problem, generated))]


def components(built: list[pyo.ConcreteModel]) -> dict[str, tuple[type, int | None]]:
    """Type and number of indices of what the models have; None where no model has a member."""
    found: dict[str, tuple[type, int | None]] = {}
    for model in built:
        for one in model.component_objects(tuple(set(KINDS.values()))):
            dim = one.dim() if isinstance(one.dim(), int) else None
            found[one.local_name] = (one.ctype, found.get(one.local_name, (None, None))[1] if dim is None else dim)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_number_of_a_page_is_one_equation_and_in_its_tables(page: Path) -> None:
    tagged, found = numbers(name(page)), tables(name(page))
    assert found
    assert len(set(tagged)) == len(tagged)
    told = set()
    for row in (row for rows in found.values() for row in rows):
        here = re.findall(NUMBER, row.equation)
        elsewhere = re.search(r"of \[\w+\]\((\w+)\.md\)$", row.equation)
        if elsewhere:
            assert set(here) <= set(numbers(f"{page.parent.name}/{elsewhere[1]}")), row.equation
        else:
            told |= set(here)
    assert told == set(tagged)


def said_in(row: Row, problem: str) -> str:
    """The equations of a row, of the problem's page or of the one that it names."""
    paper, short = problem.split(".")
    elsewhere = re.search(r"of \[\w+\]\((\w+)\.md\)$", row.equation)
    there = equations(f"{paper}/{elsewhere[1] if elsewhere else short}")
    return " ".join(there[number] for number in re.findall(NUMBER, row.equation))


@pytest.mark.parametrize("problem", CATALOGUE)
def test_sense_and_relation_of_a_component_are_those_of_its_equation(problem: str) -> None:
    looked = set()
    for builder, rows in tables(problem.replace(".", "/")).items():
        built = models(problem, builder)
        for row in rows:
            said = said_in(row, problem)
            there = [model.component(name) for name in row.names for model in built]
            for member in (member for component in there if component is not None for member in component.values()):
                looked |= {row.kind} if said else set()
                if said and row.kind == "objective":
                    assert ("\\min" if member.is_minimizing() else "\\max") in said, member.name
                if said and row.kind == "constraint":
                    assert re.search("=" if member.equality else r"\\[lg]e\b", said), member.name
    assert looked >= {"objective", "constraint"}


@pytest.mark.parametrize("problem", CATALOGUE)
def test_the_tables_of_a_page_name_what_its_models_have(problem: str) -> None:
    found = tables(problem.replace(".", "/"))
    module = importlib.import_module(f"formulations.{problem}")
    offered = [one for one in getattr(module, "__all__", vars(module)) if one.startswith("build_")]
    assert set(offered or ["build"]) <= set(found)
    for builder, rows in found.items():
        there = components(models(problem, builder))
        for row in rows:
            for component, indices in row.names.items():
                assert component in there, f"{builder}: {component} is in the page only"
                kind, dim = there[component]
                assert kind is KINDS[row.kind], f"{builder}: {component} is no {row.kind}"
                assert row.kind == "bounds" or (indices or 0) == dim, f"{builder}: indices of {component}"
        named = {component for row in rows if row.kind != "bounds" for component in row.names}
        assert named >= {component for component, (kind, _) in there.items() if kind is not pyo.Param}


def test_what_the_policies_of_gavel_share_is_in_their_models() -> None:
    (rows,) = tables("gavel/sharing").values()
    program = SharingProgram(CATALOGUE["gavel.fifo"].generate(0, num_jobs=4))
    there = {one.local_name: one.ctype for one in program.model().component_objects(tuple(set(KINDS.values())))}
    assert {component: KINDS[row.kind] for row in rows for component in row.names} == there


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_numbers_that_are_said_to_be_of_another_page_are_there(page: Path) -> None:
    for first, last, other in re.findall(
        rf"{NUMBER}(?:[^()\[]{{1,5}}{NUMBER})? of\s\[[^\]]*\]\((\w+)\.md\)", text(name(page))
    ):
        assert {first, last or first} <= set(numbers(f"{page.parent.name}/{other}"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The problems' pages as the site shows them, without the rest of it."""
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(FOLDER, source / "problems")
    builders = [f"formulations.{problem}.build" for problem in CATALOGUE] + [
        "formulations.synergy.placement.second_stage"
    ]
    (source / "api.rst").write_text("".join(f".. autofunction:: {one}\n" for one in builders), encoding="utf-8")
    (source / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(FOLDER.parent / '_ext')!r})\n"
        "extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon', 'repository', 'equations']\n"
        "root_doc = 'problems/gavel/sharing'\n"
        "myst_enable_extensions = ['amsmath', 'colon_fence', 'dollarmath']\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", str(source), str(source / "html")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "declared nowhere" not in done.stderr
    assert "equation-" not in done.stderr
    return source / "html"


def anchored(page: Path) -> set[str]:
    return set(re.findall(r'id="(equation-[^"]+)"', page.read_text(encoding="utf-8")))


def led_to(page: Path, fragment: str) -> list[tuple[Path, str]]:
    found = re.findall(rf'href="([^"#]*)#({fragment}[^"]*)"', page.read_text(encoding="utf-8"))
    return [((page.parent / file).resolve() if file else page, target) for file, target in found]


@pytest.mark.slow
def test_equations_lead_to_lines_that_declare_their_components_and_these_lead_back(site: Path) -> None:
    pages = [site / "problems" / f"{name(path)}.html" for path in PAGES]
    for page, path in zip(pages, PAGES, strict=True):
        assert len(anchored(page)) == len(numbers(name(path)))
        for file, target in led_to(page, "equation-"):
            assert target in anchored(file)
        shown = page.read_text(encoding="utf-8")
        components = re.findall(r'href="([^"#]*)#line-(\d+)"><code class="[^"]*"><span class="pre">([^<\[]*)', shown)
        assert {one for _, _, one in components} >= {
            component for rows in tables(name(path)).values() for row in rows for component in row.names
        }
        for file, line, component in components:
            module = ROOT / file.partition("repository/")[2].removesuffix(".html")
            declared = " ".join(module.read_text(encoding="utf-8").splitlines()[int(line) - 1 : int(line) + 1])
            assert re.match(rf" +(model\.{component} = |.*\"{component}\")", declared), (page, component)
    back = [one for module in site.glob("repository/**/*.html") for one in led_to(module, "equation-")]
    assert all(target in anchored(file) for file, target in back)
    assert {file for file, _ in back} == set(pages)


@pytest.mark.slow
def test_components_in_the_description_of_a_builder_lead_to_their_equations(site: Path) -> None:
    described = (site / "api.html").read_text(encoding="utf-8")
    for page, number, code in (
        ("gavel/max_min_fairness", "2", "fairness[m]"),
        ("aryl/reclaim", "1", "preempted_jobs"),
        ("synergy/placement", "5", "capacity[i, r]"),
        ("synergy/placement", "1", "capacity[i, r]"),
    ):
        shown = '</span> <span class="pre">'.join(code.split())
        link = f'<a class="reference internal" href="problems/{page}.html#equation-{number}">'
        assert re.search(rf'{link}<code[^>]*><span class="pre">{re.escape(shown)}<', described), (page, number)
