"""Pictures as SVG, the same for everybody; an instance and plans for it side by side, for pages and reports."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from instances.base import Instance, Plan
from validation.formatting import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["as_svg", "label", "own_style", "plans_side_by_side"]


@contextmanager
def own_style(style: Mapping[str, Any], *, salt: str) -> Iterator[None]:
    """Draw with Matplotlib's own defaults and ``style``, whatever files of settings there are.

    Parameters
    ----------
    style : mapping
        Settings of Matplotlib's.
    salt : str
        Makes the same picture the same text.
    """
    _load_matplotlib()
    from matplotlib import style as styles

    with styles.context({**style, "svg.hashsalt": salt}, after_reset=True), warnings.catch_warnings():
        # Names may be in scripts that the font does not have.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def _load_matplotlib() -> None:
    """Load Matplotlib from elsewhere: it takes a ``matplotlibrc`` of the current directory, even a broken one."""
    if "matplotlib" in sys.modules:
        return
    here = os.open(".", os.O_RDONLY)
    try:
        os.chdir(Path(__file__).parent)
        import matplotlib.style  # noqa: F401, it stays loaded
    finally:
        os.fchdir(here)
        os.close(here)


def label(name: str) -> str:
    """Write a name in a picture, where dollar signs would begin a formula."""
    return printable(name).replace("$", r"\$")


def plans_side_by_side(instance: Instance[Any], plans: Mapping[str, Plan], *, data: bool = True) -> str:
    """Draw the problem's own picture of the data, then of each plan under its name, as SVG.

    Parameters
    ----------
    instance : Instance
    plans : mapping
        Plan by name.
    data : bool, optional
        Whether the data without a plan are drawn, too.
    """
    drawn: dict[str, Plan | None] = {**({"the data": None} if data else {}), **plans}
    # Words that stay words are searched, and take less room than their outlines.
    with own_style({"svg.fonttype": "none"}, salt="plans"):
        # Matplotlib is loaded when something is looked at, not by the workers that look for it.
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.6 * len(drawn), 4.2), layout="constrained")
        for axes, (name, plan) in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn.items(), strict=True):
            instance.plot(plan, ax=axes)
            # The page says what problem it is; here the question is whose plan this is.
            said = axes.get_title().removeprefix(instance.problem)
            axes.set_title(label(name) + said, fontsize="medium")
        return as_svg(figure)


def as_svg(figure: Figure) -> str:
    """Return a figure as an SVG element; to be called where it was drawn, in :func:`own_style`."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    # What ``savefig`` calls, without drawing the figure once more to find its layout.
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]
