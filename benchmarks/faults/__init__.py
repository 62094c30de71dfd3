"""What files, studies and commands are put through, and what comes of it.

Each module enters kinds of faults (:func:`benchmarks.faults.tally.fault`); ``python -m benchmarks.faults
--seed 1`` does them all and prints one table.
"""

from importlib import import_module

__all__ = ["MODULES"]

MODULES = tuple(
    import_module(f"benchmarks.faults.{name}")
    for name in ("signals", "studies", "cluster", "heuristics", "files", "collection")
)
"""What enters the faults, the longest first."""
