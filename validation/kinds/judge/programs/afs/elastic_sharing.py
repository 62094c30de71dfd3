"""A first program for afs.elastic_sharing."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Run one job after the other, of those that are there the shortest, on the fewest GPUs on which it is fastest."""
    jobs = [job for job, work in enumerate(instance["work"]) if work > 0]
    gpus = {job: instance["throughputs"][job].index(max(instance["throughputs"][job])) for job in jobs}
    lasts = {job: instance["work"][job] / max(instance["throughputs"][job]) for job in jobs}
    now = min(instance["arrivals"], default=0.0)
    times, shares = [now], []
    while jobs:
        here = [job for job in jobs if instance["arrivals"][job] <= now]
        held = [0] * len(instance["work"])
        if here:
            job = min(here, key=lambda one: lasts[one])
            jobs.remove(job)
            held[job] = gpus[job]
            now += lasts[job]
        else:
            now = min(instance["arrivals"][job] for job in jobs)
        times.append(now)
        shares.append(held)
    return {"times": times, "shares": shares}
