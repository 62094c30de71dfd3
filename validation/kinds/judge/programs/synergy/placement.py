"""A first program for synergy.placement."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Place jobs whole, each where it fits, and spread the fewest, the largest, over all servers evenly."""
    count, demands = instance["num_servers"], instance["demands"]
    room = (instance["server_gpus"], instance["server_cpus"], instance["server_memory"])
    jobs = sorted(range(len(demands)), key=lambda job: [-amount for amount in demands[job]])
    shares: list[list[float]] = []
    for spread in range(len(jobs) + 1):
        shares = [[1 / count] * count for _ in jobs]
        used = [sum(amounts) / count for amounts in zip(*(demands[job] for job in jobs[:spread]), strict=True)]
        left = [[b - a for a, b in zip(used or (0, 0, 0), room, strict=True)] for _ in range(count)]
        for job in jobs[spread:]:
            able = [one for one in range(count) if all(a <= b for a, b in zip(demands[job], left[one], strict=True))]
            if not able:
                break
            server = min(able, key=lambda one: left[one])
            shares[job] = [float(one == server) for one in range(count)]
            left[server] = [b - a for a, b in zip(demands[job], left[server], strict=True)]
        else:
            break
    return {"shares": shares}
