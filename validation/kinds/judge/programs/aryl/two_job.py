"""A first program for aryl.two_job."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Give the job with less work as many GPUs as it can have."""
    least, most, work = instance["min_gpus"], instance["max_gpus"], instance["workloads"]
    used = min(instance["num_gpus"], sum(most))
    short = 0 if work[0] <= work[1] else 1
    gpus = [0, 0]
    gpus[short] = min(most[short], used - least[1 - short])
    gpus[1 - short] = used - gpus[short]
    return {"gpus": gpus}
