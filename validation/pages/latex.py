"""Tables for papers: frames whose ``to_latex()`` gives what LaTeX can read, with the package booktabs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd

__all__ = ["Table", "escape", "figure"]

_WRITTEN = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "–": "--",
        "∞": r"$\infty$",
        "µ": r"$\mu$",
        "\n": " ",
        # At the beginning of a row they would be taken for options of the line break before.
        "[": "{[}",
        "*": "{*}",
        **{special: f"\\{special}" for special in "{}$&#%_"},
    }
)


class Table(pd.DataFrame):
    """A frame as pandas has it; only ``to_latex`` is another."""

    @property
    def _constructor(self) -> type[Table]:
        return Table

    def to_latex(  # type: ignore[override]
        self,
        buf: Any = None,
        *,
        columns: Sequence[str] | None = None,
        index: bool | None = None,
        float_format: str | Callable[[float], str] | None = None,
        na_rep: str = "--",
        column_format: str | None = None,
        **options: Any,
    ) -> str | None:
        r"""Write the table as a ``tabular``: names and text with their ``_``, ``%`` and ``<`` escaped, figures rounded.

        Parameters
        ----------
        buf : path or file, optional
            Where it is written; returned without.
        columns : sequence of str, optional
            Only these.
        index : bool, optional
            Whether the index is shown; by default where it has a name.
        float_format : str or callable, optional
            How numbers that are not whole are written, such as "%.2f"; three digits by default.
        na_rep : str
            LaTeX for what is not there.
        column_format : str, optional
            By default figures to the right and words to the left.
        **options
            As pandas has them: ``caption``, ``label``, ``position``, ``longtable``, whose text is LaTeX already.
        """
        shown = pd.DataFrame(self if columns is None else self[[*columns]])
        index = any(name is not None for name in shown.index.names) if index is None else index
        write = float_format.__mod__ if isinstance(float_format, str) else float_format or figure

        def cell(value: Any) -> str:
            if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
                return na_rep
            if isinstance(value, float) and math.isfinite(value):
                return write(value)
            if isinstance(value, int) and value < 0:
                return f"${value}$"
            return figure(value) if isinstance(value, float) else escape(str(value))

        if column_format is None:
            words = "l" * (shown.index.nlevels if index else 0)
            column_format = words + "".join(
                "r" if _is_figures(shown.iloc[:, n]) else "l" for n in range(shown.shape[1])
            )
        written = pd.DataFrame(
            {n: [cell(value) for value in shown.iloc[:, n].tolist()] for n in range(shown.shape[1])},
            index=_each(shown.index, cell),
            dtype=object,
        )
        written.columns = _each(shown.columns, cell)
        found: str | None = written.to_latex(buf, index=index, column_format=column_format, escape=False, **options)
        return found


def escape(text: str) -> str:
    """Text as LaTeX sets it, letter by letter."""
    return text.translate(_WRITTEN)


def figure(value: float) -> str:
    """Write a number to three digits, before the point to all, as LaTeX does."""
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    said = f"{value:.0f}" if 999.5 <= abs(value) < 1e6 else f"{value:.3g}"
    digits, exponent, power = said.partition("e")
    if exponent:
        return rf"${digits} \times 10^{{{int(power)}}}$"
    return f"${said}$" if said.startswith("-") else said


def _is_figures(column: pd.Series[Any]) -> bool:
    """Return whether a column holds numbers, or words that begin with one."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return True
    return all(re.match(r"[-<>]?\d|[–∞]|$", str(value)) for value in column)


def _each(names: pd.Index[Any], cell: Callable[[Any], str]) -> pd.Index[Any]:
    """Names of rows or columns, written."""
    called = [None if name is None else cell(name) for name in names.names]
    if isinstance(names, pd.MultiIndex):
        return pd.MultiIndex.from_tuples([tuple(map(cell, one)) for one in names], names=called)
    return pd.Index([cell(one) for one in names], name=called[0], dtype=object)
