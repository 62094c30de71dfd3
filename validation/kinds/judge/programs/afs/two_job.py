"""A first program for afs.two_job."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Give the GPU to the job that would then complete first."""
    lasts = [
        work / rates[1] if rates[1] else float("inf")
        for work, rates in zip(instance["work"], instance["throughputs"], strict=True)
    ]
    return {"receiver": 0 if lasts[0] <= lasts[1] else 1}
