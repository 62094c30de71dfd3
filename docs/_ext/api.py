"""The pages of the API reference, one for each public module, written from the docstrings.

A name is public if it is in the ``__all__`` of a module of the four packages whose path has no part with a leading
underscore.  It is described once, at its home: the shortest of the paths under which it is public, which is the one
that users import; the pages of other modules that have it link there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from pkgutil import walk_packages
from typing import Annotated, Any, get_origin

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config, NumpyDocstring
from sphinx.util.nodes import make_refnode

PACKAGES = ("formulations", "heuristics", "instances", "validation")
CONVENTIONS = {
    "FORMULATION": "What this module offers: :class:`formulations.Formulation`.",
    "ENTRY": "The problem's entry in the catalogue: :class:`validation.Entry`.",
    "CLAIMS": "What the paper states of this problem: a list of :class:`validation.Claim`.",
    "WORST_CASES": "Name of a heuristic to what makes the model of its worst case.",
    "PROBLEMS": "Names of the problems that this setting can decide by.",
}
"""What names mean that many modules have."""
MOST_SHOWN = 120
"""Characters up to which a value is shown."""


@cache
def public() -> dict[str, tuple[str, ...]]:
    """Each public module with its public names, in the order of the walk and of ``__all__``."""
    found = {}
    for package in PACKAGES:
        paths = importlib.import_module(package).__path__
        for name in (package, *(each.name for each in walk_packages(paths, f"{package}."))):
            if not any(part.startswith("_") for part in name.split(".")):
                module = importlib.import_module(name)
                names = vars(module).get("__all__", ())
                found[name] = tuple(each for each in names if not inspect.ismodule(getattr(module, each)))
    return found


def is_described(value: Any) -> bool:
    """Whether the object tells where it is from: a class or a function, and no alias of a type."""
    return get_origin(value) is None and (inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value)))


@cache
def homes() -> dict[str, str]:
    """Each public name with its module, and each module and name where one is defined, to where it is described."""
    shortest: dict[Any, str] = {}
    keys = {}
    for module, names in public().items():
        for name in names:
            path, value = f"{module}.{name}", getattr(importlib.import_module(module), name)
            keys[path] = key = identity(module, name, value)
            known = shortest.setdefault(key, path)
            defined = key == (module, name)
            if (path.count("."), not defined) < (known.count("."), key != split(known)):
                shortest[key] = path
    return {".".join(key): home for key, home in shortest.items()} | {path: shortest[key] for path, key in keys.items()}


def split(path: str) -> tuple[str, str]:
    """Module and name of a public name's path."""
    module, _, name = path.rpartition(".")
    return module, name


def identity(module: str, name: str, value: Any) -> tuple[str, str]:
    """Where something is defined: its module and its name there."""
    if inspect.ismethod(value):
        return module, name
    if is_described(value):
        return value.__module__, value.__qualname__
    return assigned_in(module, name), name


def assigned_in(module: str, name: str) -> str:
    """The module in which a name of ``module`` is assigned, as the statements that import it tell."""
    where, original = imported(module).get(name, (module, name))
    return assigned_in(where, original) if where != module and where.split(".")[0] in PACKAGES else where


@cache
def imported(module: str) -> dict[str, tuple[str, str]]:
    """Names that a module imports, also for types only, to the module and the name that they are imported from."""
    return {
        each.asname or each.name: (node.module, each.name)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.ImportFrom) and node.module
        for each in node.names
    }


@cache
def tree(module: str) -> ast.Module:
    """The module's source."""
    return ast.parse(inspect.getsource(importlib.import_module(module)))


@cache
def assignment(module: str, name: str) -> tuple[str, str]:
    """The expression that a name is assigned, and the string below it."""
    body = tree(module).body
    for statement, below in zip(body, [*body[1:], ast.Pass()], strict=True):
        for node in ast.walk(statement) if isinstance(statement, ast.If) else [statement]:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", ast.Pass())]
            if any(isinstance(each, ast.Name) and each.id == name for one in targets for each in ast.walk(one)):
                said = below.value if isinstance(below, ast.Expr) else None
                text = said.value if isinstance(said, ast.Constant) and isinstance(said.value, str) else ""
                return ast.unparse(node.value), inspect.cleandoc(text)
    raise LookupError(f"{module} assigns no {name}")


@cache
def problem_of(module: str) -> str | None:
    """The problem, <paper>.<problem>, whose name ends the module's; None for other modules."""
    from instances import problems

    name = ".".join(module.split(".")[-2:])
    return name if name in problems() else None


def page(module: str) -> str:
    """The text of a module's page: what it is, its names in a table, then those that have their home in it."""
    lines = [module, "=" * len(module), "", *beside(module), f".. automodule:: {module}", ""]
    if public()[module]:
        lines += [".. list-table::", "   :widths: 30 70", ""]
    for name in public()[module]:
        lines += [f"   * - :py:obj:`~{homes()[f'{module}.{name}']}`", f"     - {summary(module, name)}"]
    lines.append("")
    for name in public()[module]:
        if homes()[f"{module}.{name}"] == f"{module}.{name}":
            lines += entry(module, name)
    parts = [name for name in public() if name.rpartition(".")[0] == module]
    if parts:
        named = (f"   {part.rpartition('.')[2]} <{part}>" for part in parts)
        lines += [".. toctree::", "   :maxdepth: 1", "   :caption: Modules", "", *named, ""]
    return "\n".join(lines)


def text_of(module: str, name: str) -> str:
    """The docstring of a public name."""
    value = getattr(importlib.import_module(module), name)
    if is_described(value):
        return inspect.getdoc(value) or ""
    text = assignment(assigned_in(module, name), name)[1] or CONVENTIONS.get(name, "")
    kind = homes().get(f"{type(value).__module__}.{type(value).__qualname__}")
    return text or (f"A :class:`~{kind}`." if kind else "")


def summary(module: str, name: str) -> str:
    """The first sentence of what is said of a public name."""
    return re.split(r"(?<=\.)\s", " ".join(text_of(module, name).split("\n\n")[0].split()), maxsplit=1)[0]


def beside(module: str) -> list[str]:
    """Links to the problem's page and picture, and to the same problem in the other packages."""
    problem = problem_of(module)
    if problem is None:
        return []
    others = [name for name in public() if problem_of(name) == problem and name != module]
    path = problem.replace(".", "/")
    pages = f":doc:`{problem} </problems/{path}>`, :doc:`a picture </gallery/{path}>`"
    modules = ", ".join(f":doc:`{name}`" for name in others)
    return [f"The problem: {pages}. Its other modules: {modules}.", ""]


def entry(module: str, name: str) -> list[str]:
    """The directive that describes a name at its home."""
    value = getattr(importlib.import_module(module), name)
    if inspect.isclass(value) and is_described(value):
        return [f".. autoclass:: {module}.{name}", "   :members:", "   :show-inheritance:", ""]
    if is_described(value):
        # A package may be called as one of its functions is; links then lead to the package's page.
        options = ["   :no-index:"] if f"{module}.{name}" in sys.modules else []
        return [f".. autofunction:: {module}.{name}", *options, ""]
    return data(module, name)


def data(module: str, name: str) -> list[str]:
    """An entry for a constant or an alias of a type, with its value where that is short."""
    where = assigned_in(module, name)
    value = assignment(where, name)[0]
    kind = "type" if is_alias(getattr(importlib.import_module(module), name)) else "data"
    lines = [f".. py:{kind}:: {name}", f"   :module: {module}"]
    if kind == "data" and where != module:
        lines.append(f"   :canonical: {where}.{name}")
    lines += ["", *(f"   {line}".rstrip() for line in text_of(module, name).splitlines()), ""]
    return [*lines, f"   ``{value}``", ""] if len(value) <= MOST_SHOWN else lines


def is_alias(value: Any) -> bool:
    """Whether a value stands for a type in annotations, and is no class."""
    return not is_described(value) and (get_origin(value) is not None or type(value).__module__ in ("types", "typing"))


def home_of(module: str, name: str) -> tuple[str, ...]:
    """Where a name that stands in a module's text, such as "solve" or "Instance.origin", may be described.

    Fields have no place of their own; they are described with their class.
    """
    first, *rest = name.split(".")
    same = {each for each in homes().values() if each.endswith(f".{first}")}
    known = homes() | ({first: min(same)} if len(same) == 1 else {})
    key = f"{assigned_in(module, first)}.{first}"
    known |= {first: homes()[key]} if key in homes() else {}
    for cut in range(len(rest) + 1, 0, -1):
        prefix = ".".join([first, *rest][:cut])
        if prefix in known:
            return ".".join([known[prefix], *rest[cut - 1 :]]), known[prefix]
    return ()


def write(app: Sphinx) -> None:
    """Write the pages that have changed, and remove those of modules that are gone."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("*.rst"):
        if stale.stem not in public():
            stale.unlink()
    for module in public():
        file, text = folder / f"{module}.rst", page(module)
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def sections(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Turn formulas into literal blocks and NumPy sections into fields.

    Types in them are words, such as "(n, s) float, optional", and so is what a property's first line says before a
    colon; neither is a reference.
    """
    fields = Config(
        napoleon_use_param=False, napoleon_use_rtype=False, napoleon_custom_sections=[("Attributes", "params_style")]
    )
    kind = "class" if what == "class" else "function"
    lines[:] = NumpyDocstring(with_formulas(lines), fields, app, kind, name, value, options).lines()


def with_formulas(lines: list[str]) -> list[str]:
    """A docstring whose indented paragraphs, up to its first section, are shown as they are written."""
    found: list[str] = []
    before = ""
    for number, line in enumerate(lines):
        if set(lines[number + 1 : number + 2]) & {"-" * len(line)} - {""}:
            return found + lines[number:]
        if line.startswith("    ") and number and not lines[number - 1] and not before.startswith(("-", "    ")):
            if not before.endswith("::"):
                found += ["::", ""]
            before = line
        elif line:
            before = line
        found.append(re.sub(r":\w+:`~?(.*?)`", r"\1", line) if line.startswith("    ") else line)
    return found


def signature(
    app: Sphinx, what: str, name: str, value: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    """The signature in the words of the source, in which the library's names are links.

    Types of fields stand with their shapes among the class's attributes.
    """
    if signature is None or (what == "class" and "__init__" not in vars(value)):
        return None
    given = inspect.signature(value.__init__ if what == "class" else value)
    fields = what == "class" and is_dataclass(value)

    def words(annotation: Any) -> Any:
        if annotation is inspect.Parameter.empty or fields:
            return inspect.Parameter.empty
        if get_origin(annotation) is Annotated:
            annotation = annotation.__origin__
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        return Words(ast.unparse(Linked(value.__module__).visit(ast.parse(text, mode="eval"))))

    parameters = [
        each.replace(
            annotation=words(each.annotation),
            default=Words("...") if fields and each.default is not each.empty else each.default,
        )
        for each in given.parameters.values()
        if each.name != "self"
    ]
    result = given.return_annotation
    shown = None if what == "class" or result is given.empty else str(words(result))
    return str(given.replace(parameters=parameters, return_annotation=given.empty)), shown


class Words(str):
    """Text that is shown without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


class Linked(ast.NodeTransformer):
    """Puts paths under which they are described in place of the library's names, and types for annotated ones."""

    def __init__(self, module: str) -> None:
        self.module = module

    def visit_Name(self, node: ast.Name) -> ast.AST:
        where = assigned_in(self.module, node.id)
        path = f"{where}.{node.id}"
        ours = where.split(".")[0] in PACKAGES and hasattr(importlib.import_module(where), node.id)
        return ast.parse(homes().get(path, path), mode="eval").body if ours else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self.visit(node.slice.elts[0])
        return self.generic_visit(node)


def missing(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement) -> nodes.Node | None:
    """Where a name that a docstring or a signature uses is described.

    Names of other packages, private ones and type variables are no links.
    """
    module, target = node.get("py:module"), node["reftarget"]
    if node.get("refdomain") != "py" or not target:
        return None
    objects = env.get_domain("py").data["objects"]
    for home in home_of(module, target) if module in public() else ():
        if home in objects:
            return make_refnode(app.builder, node["refdoc"], objects[home].docname, objects[home].node_id, text, home)
    first, last = target.split(".")[0], target.split(".")[-1]
    private = last.startswith("_") or len(last) == 1
    foreign = first in sys.modules and first not in PACKAGES
    return text if private or foreign or not isinstance(text, nodes.literal) else None


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.config.python_use_unqualified_type_names = True
    app.connect("builder-inited", write)
    app.connect("autodoc-process-docstring", sections)
    app.connect("autodoc-process-signature", signature)
    app.connect("missing-reference", missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
