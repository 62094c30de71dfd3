"""Mutants by syntax tree: a module with one operator, comparison, constant, call, branch or statement exchanged.

Nothing of a source is quoted: what can be exchanged is found in the tree, whatever its variables are called.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutation", "mutated", "mutations"]

OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
PAIRS = ("min max", "argmin argmax", "minimum maximum", "floor ceil", "any all", "zeros ones", "less greater")
CALLS = {one: other for pair in map(str.split, PAIRS) for one, other in (pair, pair[::-1])}
ORDERED = ("argsort", "sorted", "sort")
KEPT = (ast.Raise, ast.Assert, ast.JoinedStr, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.arguments)
"""Messages, annotations and signatures: nothing is exchanged in them but the value of a declared variable."""


@dataclass(frozen=True)
class Mutation:
    """One exchange in a module.

    Attributes
    ----------
    node : int
        The node's number in :func:`ast.walk` order of the tree.
    variant : int
        Which of the exchanges that the node allows.
    line : int
        Where the statement begins that it stands in.
    change : str
        Source before and after, of the node alone.
    """

    node: int
    variant: int
    line: int
    change: str


def mutations(source: str) -> list[Mutation]:
    """Return every exchange that a module allows."""
    tree = ast.parse(source)
    numbers = {node: number for number, node in enumerate(ast.walk(tree))}
    return [
        Mutation(numbers[node], variant, line, f"{_text(node)} -> {_text(new)}")
        for node, line in _places(tree, 0)
        for variant, new in enumerate(_variants(node))
    ]


def mutated(source: str, mutation: Mutation) -> ast.Module:
    """Return a module's tree with one exchange made."""
    tree = ast.parse(source)
    old = list(ast.walk(tree))[mutation.node]
    new = list(_variants(old))[mutation.variant]

    class Exchange(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return new if node is old else self.generic_visit(node)

    Exchange().visit(tree)
    return ast.fix_missing_locations(tree)


def _places(node: ast.AST, line: int) -> Iterator[tuple[ast.AST, int]]:
    """Yield the nodes within functions in which something can be exchanged, each with its statement's line."""
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "returns", "annotation", "keywords") and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AnnAssign) and child.value is not None and line:
                yield from _places(ast.Expr(child.value), child.lineno)
            if not isinstance(child, ast.AST) or isinstance(child, KEPT):
                continue
            within = (
                child.lineno if isinstance(child, ast.stmt) and (line or isinstance(node, ast.FunctionDef)) else line
            )
            if within:
                yield child, within
            yield from _places(child, within)


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that a node can be exchanged for."""
    match node:
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) | ast.Compare(ops=[op]):
            for other in OPERATORS.get(type(op), ()):
                yield _with(node, **({"ops": [other()]} if isinstance(node, ast.Compare) else {"op": other()}))
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
            yield ast.BinOp(node, ast.Sub(), ast.Constant(1))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name) as called) if name in CALLS:
            yield _with(node, func=_with(called, **{"id" if isinstance(called, ast.Name) else "attr": CALLS[name]}))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in ORDERED:
            yield ast.Subscript(node, ast.Slice(step=ast.UnaryOp(ast.USub(), ast.Constant(1))), ast.Load())
        case ast.IfExp(body=body, orelse=orelse):
            yield _with(node, body=orelse, orelse=body)
        case ast.If(test=test) | ast.While(test=test):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Subscript(slice=ast.Name() as index, ctx=ast.Load()):
            yield _with(node, slice=ast.BinOp(index, ast.Sub(), ast.Constant(1)))
        case ast.Subscript(slice=ast.Slice(lower=None, upper=ast.expr() as upper), ctx=ast.Load()):
            yield _with(node, slice=ast.Slice(upper=ast.BinOp(upper, ast.Sub(), ast.Constant(1))))
    match node:
        case ast.AugAssign() | ast.Continue() | ast.Break() | ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.Pass()


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _text(node: ast.AST) -> str:
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).partition("\n")[0]
