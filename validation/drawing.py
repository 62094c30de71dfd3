"""An instance and plans for it side by side, as one SVG: for the pages of hunts and the reports of studies."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from instances.base import Instance, Plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["as_svg", "plans_side_by_side"]


def plans_side_by_side(instance: Instance[Any], plans: Mapping[str, Plan]) -> str:
    """The problem's own picture of the data, then of each plan under its name, as SVG."""
    # Matplotlib is loaded when something is looked at, not by the workers that look for it.
    from matplotlib.figure import Figure

    drawn: dict[str, Plan | None] = {"the data": None, **plans}
    figure = Figure(figsize=(5.6 * len(drawn), 4.2), layout="constrained")
    for axes, (name, plan) in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn.items(), strict=True):
        instance.plot(plan, ax=axes)
        # The page says what problem it is; here the question is whose plan this is.
        said = axes.get_title().removeprefix(instance.problem)
        axes.set_title(name + said, fontsize="medium")
    return as_svg(figure)


def as_svg(figure: Figure) -> str:
    """A figure as an SVG element, the same text for the same figure."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "plans"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()[buffer.getvalue().index("<svg") :]
