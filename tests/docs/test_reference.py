"""The API reference: all that is public is in it, and says what it is and what it takes."""

import ast
import importlib.util
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from ..files import module_of

ROOT = Path(__file__).parents[2]


pytest.importorskip("sphinx", reason="Sphinx comes with the test extra")
API = module_of(ROOT / "docs" / "_ext" / "api.py")


def listed_in_sources() -> set[str]:
    """What the files' own lists say, read without importing anything."""
    found = set()
    for package in ("formulations", "heuristics", "instances", "validation"):
        for file in (ROOT / package).rglob("*.py"):
            path = file.relative_to(ROOT).with_suffix("")
            module = ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                    found |= {f"{module}.{name}" for name in ast.literal_eval(node.value)}
                if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_functions":
                    lists = ast.literal_eval(node.value).values()
                    found |= {f"{module}.{name}" for names in lists for name in names}
    return found


def described() -> Iterator[tuple[str, Any]]:
    """Each class and function of the reference, and the public methods and properties that a class has of its own."""
    for path in sorted(set(API.homes().values())):
        module, name = API.split(path)
        value = getattr(importlib.import_module(module), name)
        if API.is_described(value):
            yield path, value
            for member, one in vars(value).items() if inspect.isclass(value) else ():
                plain = one.__func__ if isinstance(one, (classmethod, staticmethod)) else one
                says = inspect.isfunction(plain) or isinstance(one, (property, cached_property))
                if says and not member.startswith("_"):
                    yield f"{path}.{member}", getattr(value, member)


def section(text: str, title: str) -> list[str]:
    """Names that a NumPy section of a docstring describes."""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", text, re.MULTILINE | re.DOTALL)
    lines = [line for line in found.group(1).splitlines() if line[:1].strip()] if found else []
    return [name.strip(" *\\") for line in lines for name in line.split(" : ")[0].split(",")]


def test_every_public_name_is_in_the_reference() -> None:
    assert {f"{module}.{name}" for module, names in API.public().items() for name in names} == listed_in_sources()
    pages = {module: API.page(module).splitlines() for module in API.public()}
    for module, names in API.public().items():
        for name in names:
            home = API.homes()[f"{module}.{name}"]
            assert f"   * - :py:obj:`~{home}`" in pages[module]
            where, _ = API.split(home)
            described = {f".. {kind}:: {home}" for kind in ("autoclass", "autofunction")}
            described |= {f".. py:{kind}:: {name}" for kind in ("data", "type")}
            assert described & set(pages[where]), home


def test_what_users_import_is_described_under_that_name() -> None:
    for path in ("formulations.solve", "formulations.Status", "validation.gap_study", "validation.CATALOGUE"):
        assert API.homes()[path] == path
    assert API.homes()["formulations.engine.solving.solve"] == "formulations.solve"
    assert API.homes()["heuristics.gavel.cost.equal_share"] == "heuristics.gavel.sharing.equal_share"


def test_every_public_name_has_a_docstring() -> None:
    missing = [path for path in API.homes().values() if not API.text_of(*API.split(path))]
    assert not missing
    # A dataclass without a docstring gets one that repeats its signature.
    missing = [path for path, one in described() if not (text := inspect.getdoc(one)) or text.startswith(f"{path}(")]
    assert not missing


def test_parameters_that_are_described_are_those_that_there_are() -> None:
    wrong = []
    for path, value in described():
        text = inspect.getdoc(value) or ""
        told = section(text, "Parameters")
        if told:
            taken = [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]
            elsewhere = re.search(r"are\s+those\s+of\s+:\w+:`", text)
            if not (set(told) <= set(taken) if elsewhere else sorted(told) == sorted(taken)):
                wrong.append((path, told, taken))
    assert not wrong


def test_attributes_that_are_described_are_those_that_there_are() -> None:
    wrong = []
    for path, value in described():
        told = section(inspect.getdoc(value) or "", "Attributes") if inspect.isclass(value) else []
        if told:
            own = [
                name
                for name, kind in vars(value).get("__annotations__", {}).items()
                if not name.startswith("_") and "ClassVar" not in str(kind)
            ]
            there = set(dir(value)) | {name for each in value.__mro__ for name in vars(each).get("__annotations__", ())}
            if not set(told) <= there:
                there |= set(re.findall(r"self\.(\w+)", inspect.getsource(value)))
            if not set(own) <= set(told) <= there:
                wrong.append((path, set(own) - set(told), set(told) - there))
    assert not wrong
