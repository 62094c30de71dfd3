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
]


def percent(gap: float) -> str:
    """A gap or a share in per cent, to three digits; 0 only where it is exactly 0, and 100 where it is not less."""
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
    """A number, or the interval that it lies in."""
    if not low <= high:
        return "–"
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def gap_range(low: float, high: float) -> str:
    """A gap, or the interval that it lies in where optimality was not proven."""
    if low == high or (math.isnan(low) and math.isnan(high)):
        return percent(high)
    return f"{percent(low)} to {percent(high)}"


def difference_range(low: float, high: float) -> str:
    """A difference of gaps with its sign, or the interval that it lies in."""

    def signed(difference: float) -> str:
        said = percent(abs(difference))
        return said if difference == 0 or math.isnan(difference) else f"{'−' if difference < 0 else '+'}{said}"

    if math.isnan(low) or math.isnan(high):
        return "–"
    return signed(low) if low == high else f"{signed(low)} to {signed(high)}"


def ratio_range(low: float, high: float) -> str:
    """How many times as much, or the interval that it lies in."""

    def times(ratio: float) -> str:
        return f"{ratio:.3g} ×"

    if math.isnan(low) or math.isnan(high):
        return "–"
    return times(low) if low == high else f"{times(low)} to {times(high)}"


def duration(seconds: float) -> str:
    """A time with its unit, to two digits."""
    if math.isnan(seconds):
        return "–"
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2g} µs" if seconds < 99.5e-6 else f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.2g} ms" if seconds < 99.5e-3 else f"{seconds * 1e3:.0f} ms"
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def number(value: float) -> str:
    """A value of an objective."""
    return "–" if math.isnan(value) else f"{value:.6g}"


def printable(text: str) -> str:
    """Text that is shown and not obeyed: what is no visible character is written as its escape.

    Names and reasons are anybody's, and a terminal takes orders.  Lines stay lines.
    """
    return "".join(one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode() for one in text)
