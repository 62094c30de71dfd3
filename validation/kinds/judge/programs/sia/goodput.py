"""A first program for sia.goodput."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Give each job in turn the fewest GPUs on which it runs, of the type where it does best."""
    left = list(instance["num_gpus"])
    kinds, counts = instance["config_types"], instance["config_gpus"]
    configs = []
    for row in instance["goodputs"]:
        able = [one for one, goodput in enumerate(row) if goodput > 0 and counts[one] <= left[kinds[one]]]
        best = min(able, key=lambda one: (counts[one], -row[one]), default=-1)
        configs.append(best)
        if best >= 0:
            left[kinds[best]] -= counts[best]
    return {"configs": configs}
