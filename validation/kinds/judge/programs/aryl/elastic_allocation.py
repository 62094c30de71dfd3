"""A first program for aryl.elastic_allocation."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Add the worker that saves the most running time for each of its GPUs, as long as one fits."""
    least, most, gpus = instance["min_workers"], instance["max_workers"], instance["gpus_per_worker"]
    jobs = range(len(least))
    times = instance["running_times"] or [
        [instance["min_running_times"][job] * most[job] / workers for workers in range(least[job], most[job] + 1)]
        for job in jobs
    ]
    extra, left = [0] * len(least), instance["capacity"]
    while True:
        saved = {
            job: (times[job][extra[job]] - times[job][extra[job] + 1]) / gpus[job]
            for job in jobs
            if least[job] + extra[job] < most[job] and gpus[job] <= left
        }
        best = max(saved, key=lambda job: saved[job], default=None)
        if best is None or saved[best] <= 0:
            return {"extra_workers": extra}
        extra[best] += 1
        left -= gpus[best]
