"""Gaps, times, counts and names as people read them, the same in the terminal and in the report."""

from __future__ import annotations

import math

__all__ = [
    "difference_range",
    "duration",
    "gap_range",
    "number",
    "number_range",
    "percent",
    "printable",
    "ratio_range",
    "span",
]


def percent(gap: float) -> str:
    """Return a gap or a share in per cent, to three digits; 0 only where exactly 0, and 100 where it is not less."""
    if math.isnan(gap):
        return "–"
    if math.isinf(gap):
        return "∞"
    if gap == 0:
        return "0%"
    value = 100 * gap
    if value < 0.01:
        return "<0.01%"
    if 99.95 <= value < 100:
        return ">99.9%"
    return f"{value:.3g}%" if value < 999.5 else f"{value:,.0f}%"


def number_range(low: float, high: float) -> str:
    """Return a number, or the interval that it lies in."""
    if not low <= high:
        return "–"
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def gap_range(low: float, high: float) -> str:
    """Return a gap, or the interval that it lies in where optimality was not proven."""
    if low == high or (math.isnan(low) and math.isnan(high)):
        return percent(high)
    return f"{percent(low)} to {percent(high)}"


def difference_range(low: float, high: float) -> str:
    """Return a difference of gaps with its sign, or the interval that it lies in."""

    def signed(difference: float) -> str:
        said = percent(abs(difference))
        return said if difference == 0 or math.isnan(difference) else f"{'−' if difference < 0 else '+'}{said}"

    if math.isnan(low) or math.isnan(high):
        return "–"
    return signed(low) if low == high else f"{signed(low)} to {signed(high)}"


def ratio_range(low: float, high: float) -> str:
    """Return a ratio as so many times, or the interval that it lies in."""

    def times(ratio: float) -> str:
        return f"{ratio:.3g} ×"

    if math.isnan(low) or math.isnan(high):
        return "–"
    return times(low) if low == high else f"{times(low)} to {times(high)}"


def duration(seconds: float) -> str:
    """Return a time with its unit, to two digits."""
    if math.isnan(seconds):
        return "–"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2g} µs" if seconds < 99.5e-6 else f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.2g} ms" if seconds < 99.5e-3 else f"{seconds * 1e3:.0f} ms"
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def span(seconds: float) -> str:
    """Return a time of the simulated clock, to three digits."""
    if seconds != seconds:
        return "–"
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if abs(seconds) >= 2 * size or abs(seconds) == size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def number(value: float) -> str:
    """Return a value of an objective."""
    return "–" if math.isnan(value) else f"{value:.6g}"


def printable(text: str) -> str:
    """Return text to be shown and not obeyed: characters that are not visible are written as their escapes.

    Names and reasons are anybody's, and a terminal takes orders.  Lines stay lines.
    """
    return "".join(one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode() for one in text)
