"""A first program for aryl.base_allocation."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Begin the shortest job first, each as soon as GPUs are free for it."""
    demands, times = instance["gpu_demands"], instance["running_times"]
    starts = [0.0] * len(demands)
    running: list[tuple[float, int]] = []
    now, free = 0.0, instance["capacity"]
    for job in sorted(range(len(demands)), key=lambda one: times[one]):
        while free < demands[job] and running:
            running.sort()
            now, given = running.pop(0)
            free += given
        starts[job] = now
        if times[job] > 0:
            running.append((now + times[job], demands[job]))
            free -= demands[job]
    return {"starts": starts}
