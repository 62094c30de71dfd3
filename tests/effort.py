"""How much the tests draw: what suits every change, and ``make test EFFORT=10`` ten times as much."""

import os

EFFORT = float(os.environ.get("EFFORT", "1"))


def rounds(count: int) -> range:
    """``range(count)``, or as many times that as is asked for."""
    return range(max(1, round(count * EFFORT)))
