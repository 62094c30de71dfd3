"""A first program for aryl.reclaim."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Return the servers with the fewest jobs."""
    counts = [sum(column) for column in zip(*instance["hosts"], strict=True)]
    fewest = sorted(range(len(counts)), key=lambda server: counts[server])
    return {"servers": fewest[: instance["demand"]]}
