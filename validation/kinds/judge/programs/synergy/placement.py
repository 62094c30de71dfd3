"""A first program for synergy.placement."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Place jobs whole, each where it fits, and divide the fewest, the largest: evenly, or GPU by GPU."""
    count, demands = instance["num_servers"], instance["demands"]
    room = [instance["server_gpus"], instance["server_cpus"], instance["server_memory"]]
    jobs = sorted(range(len(demands)), key=lambda job: [-amount for amount in demands[job]])
    shares: list[list[float]] = []
    for divided in range(len(jobs) + 1):
        shares = [[0.0] * count for _ in jobs]
        left = [list(room) for _ in range(count)]
        pieces = []
        for place, job in enumerate(jobs):
            parts = (max(1, round(demands[job][0])) if instance["integral_gpus"] else count) if place < divided else 1
            pieces += [(job, parts)] * parts
        if instance["integral_gpus"]:
            pieces.sort(key=lambda one: one[1] > 1)
        for number, (job, parts) in enumerate(pieces):
            part = [amount / parts for amount in demands[job]]
            able = [one for one in range(count) if all(a <= b + 1e-9 for a, b in zip(part, left[one], strict=True))]
            if parts == count and not instance["integral_gpus"]:
                able = [number % count]
            if not able:
                break
            server = min(able, key=lambda one: left[one])
            shares[job][server] += 1 / parts
            left[server] = [b - a for a, b in zip(part, left[server], strict=True)]
        else:
            break
    return {"shares": shares}
