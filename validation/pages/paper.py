"""A figure for papers and notebooks, of which pyplot knows nothing: it shows itself, and its letters stay letters."""

from __future__ import annotations

import io
import textwrap
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["PaperAxes", "PaperFigure", "fit_labels", "new_axes"]

TRUETYPE = {"pdf.fonttype": 42, "ps.fonttype": 42}
"""Letters as TrueType, which publishers ask for: Matplotlib's own choice, Type 3, is refused by some."""
NARROW = 5.0
"""Inches below which a figure has the small letters of a column."""


class PaperFigure(Figure):
    """A figure that a notebook shows, saved with TrueType letters whatever Matplotlib's settings say."""

    def savefig(self, *where: Any, **options: Any) -> None:
        """Save the figure as Matplotlib does, its letters as TrueType."""
        with rc_context(TRUETYPE):  # type: ignore[arg-type]
            super().savefig(*where, **options)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=144)
        return file.getvalue()


class PaperAxes(Axes):
    """Axes that a notebook shows as the figure that they are in."""

    def _repr_png_(self) -> bytes:
        figure = self.get_figure(root=True)
        assert isinstance(figure, PaperFigure)
        return figure._repr_png_()


def new_axes(width: float | None = None) -> PaperAxes:
    """Make axes in a figure of their own.

    Parameters
    ----------
    width : float, optional
        Of the figure, in inches; Matplotlib's own by default.
    """
    size = None if width is None else (width, 0.75 * width)
    figure = PaperFigure(figsize=size, layout="constrained")
    axes = figure.add_subplot(axes_class=PaperAxes)
    assert isinstance(axes, PaperAxes)
    return axes


def fit_labels(axes: Axes) -> None:
    """Break the labels of both axes where they are longer than their axis, so that none is cut."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    for label, room, upright in (
        (axes.xaxis.label, axes.bbox.width, False),
        (axes.yaxis.label, axes.bbox.height, True),
    ):
        box = label.get_window_extent()
        length = box.height if upright else box.width
        if length > room > 0:
            # The longest line is as long as the label.
            letters = max(map(len, label.get_text().splitlines()), default=0)
            lines = label.get_text().splitlines()
            most = max(int(letters * room / length), 8)
            label.set_text("\n".join(part for line in lines for part in textwrap.wrap(line, most)))
