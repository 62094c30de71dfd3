"""Studies: the plots, and what they say stands where."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from validation.pages.plots import COLOURS, INK, KINDS, drawn, plot_gaps, plot_sizes


def rows(gaps: dict[str, list[float]], **columns: Any) -> pd.DataFrame:
    """Rows of each heuristic on the same instances, and of the exact side."""
    count = len(next(iter(gaps.values())))
    found = [{"algorithm": "exact", "status": "optimal", "gap_high": float("nan")} | {"index": i} for i in range(count)]
    for name, some in gaps.items():
        found += [{"algorithm": name, "status": "feasible", "gap_high": gap, "index": i} for i, gap in enumerate(some)]
    return pd.DataFrame(found).assign(problem="aryl.reclaim", size=4, seconds=0.5, **columns)


def blank() -> Axes:
    return Figure().add_subplot()


def test_what_a_distribution_says() -> None:
    told = plot_gaps(blank(), rows({"mine": [0.0, 0.0, 0.5, float("inf")]}))
    assert [tuple(one) for one in told] == [
        (0.0, 50.0, "mine: a gap of at most 0% on 50% of the instances"),
        (50.0, 75.0, "mine: a gap of at most 50% on 75% of the instances"),
    ]


@pytest.mark.parametrize(
    ("worst", "linear"),
    [
        # Worst gaps of all heuristics, in per cent, and where the axis ceases to be linear.
        ([30.0], None),
        ([10.0, 20.0, 45.0], None),
        ([10.0, 20.0, 400.0], 20.0),
        ([7.0, 900.0], 10.0),
        ([0.0, 0.0, 30.0], None),  # what is always optimal is not squashed
        ([0.0, 2.0, 30.0], 2.0),
        ([0.0, 0.0], None),
    ],
)
def test_one_bad_heuristic_squashes_no_other(worst: list[float], linear: float | None) -> None:
    given = rows({f"h{number}": [gap / 100] for number, gap in enumerate(worst)})
    distribution, sizes = blank(), blank()
    plot_gaps(distribution, given)
    plot_sizes(sizes, given)
    for axis, scale in ((distribution.xaxis, distribution.get_xscale()), (sizes.yaxis, sizes.get_yscale())):
        said = axis.get_label().get_text()
        assert scale == ("linear" if linear is None else "symlog")
        assert ("logarithmic" in said) == (linear is not None)
        if linear is not None:
            assert f"linear up to {linear:g}" in said
            assert axis.get_transform().linthresh == linear  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_may_begin_with_an_underscore(kind: str) -> None:
    axes = blank()
    KINDS[kind](axes, rows({"_mine": [0.1, 0.3], "yours": [0.0, 0.2]}))
    legend = axes.get_legend()
    assert legend is not None
    assert {"_mine", "yours"} <= {text.get_text() for text in legend.get_texts()}


@pytest.mark.parametrize("kind", KINDS)
def test_many_heuristics_are_drawn_apart(kind: str) -> None:
    axes = blank()
    names = [f"h{number}" for number in range(17)]
    KINDS[kind](axes, rows({name: [0.1, 0.3] for name in names}))
    lines = {one.get_label(): one for one in axes.get_lines()}
    lines |= {one.get_label(): one.lines[0] for one in axes.containers if isinstance(one, ErrorbarContainer)}
    drawn_as = {(lines[name].get_color(), lines[name].get_marker(), lines[name].get_linestyle()) for name in names}
    assert len(drawn_as) == len(names)


@pytest.mark.parametrize("kind", KINDS)
def test_the_exact_side_alone_can_be_drawn(kind: str) -> None:
    """As in a study that was interrupted before any heuristic ended."""
    axes = blank()
    told = KINDS[kind](axes, rows({"mine": [0.1, 0.3]}).query("algorithm == 'exact'"))
    assert [one.words.split(",")[0].split(":")[0] for one in told] == ["exact"] * (kind in ("times", "profile"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_has_a_line_style_for_each_value(kind: str) -> None:
    of_value = [
        rows({"mine": [0.1, gap], "yours": [0.0, 0.2]}, spread=spread) for spread, gap in ((0.1, 0.3), (0.9, 0.5))
    ]
    axes = blank()
    told = KINDS[kind](axes, pd.concat(of_value), by=["spread"])
    legend = axes.get_legend()
    assert legend is not None
    exact = ["exact"] * (kind in ("times", "profile"))
    assert [text.get_text() for text in legend.get_texts()] == [*exact, "mine", "yours", "spread=0.1", "spread=0.9"]
    assert any(one.words.startswith("mine, spread=0.9") for one in told)
    curves = {line.get_label(): line for line in axes.get_lines()} if kind != "sizes" else {}
    if curves:
        one, other = curves["mine, spread=0.1"], curves["mine, spread=0.9"]
        assert one.get_color() == other.get_color()
        assert one.get_linestyle() != other.get_linestyle()


def test_a_swept_parameter_is_an_axis() -> None:
    axes = blank()
    given = pd.concat([rows({"mine": [gap, 0.0]}, spread=spread) for spread, gap in ((0.1, 0.2), (0.9, 0.6))])
    told = plot_sizes(axes, given, by=["spread"], along="spread")
    assert axes.get_xlabel() == "spread"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0.1", "0.9"]
    assert [one.words for one in told] == [
        "mine, spread 0.1: mean gap 10%, worst 20%",
        "mine, spread 0.9: mean gap 30%, worst 60%",
    ]


def test_a_place_to_point_at_is_where_the_value_is_drawn() -> None:
    """The markers of the curve itself, which Matplotlib places, are the circles' centres."""

    def draw(axes: Axes) -> Any:
        axes.plot([1.0, 3.0], [2.0, 5.0], marker="o", label="mine")
        return [(1.0, 2.0, "low <b>"), (3.0, 5.0, "high")]

    svg = drawn(draw)
    circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="6"><title>([^<]*)</title>', svg)
    markers = re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="fill: #1f77b4', svg)
    assert [words for *_, words in circles] == ["low &lt;b&gt;", "high"]
    for (x, y, _), at in zip(circles, markers, strict=True):
        assert (float(x), float(y)) == pytest.approx(tuple(map(float, at)), abs=0.1)


SEEN = {
    "all cones": np.eye(3),
    "without red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "without green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "without blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""What becomes of linear red, green and blue (Machado, Oliveira and Fernandes 2009)."""


def in_lab(colour: str, seen: Any) -> Any:
    """Return a colour as CIELAB has it, in which distances are those that are seen."""
    encoded = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(np.array(seen) @ linear, 0, 1) / [0.9505, 1, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("seen", SEEN)
def test_colours_are_told_apart_by_the_colour_blind(seen: str) -> None:
    found = [in_lab(colour, SEEN[seen]) for colour in (*COLOURS, INK)]
    apart = [float(np.linalg.norm(one - other)) for at, one in enumerate(found) for other in found[:at]]
    # A difference of 2 is just seen where colours touch.
    assert min(apart) > 14
