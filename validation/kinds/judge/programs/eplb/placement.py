"""A first program for eplb.placement."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Replicate the expert whose replicas are loaded most, again and again, and deal replicas out by their loads."""
    loads, num_gpus = instance["loads"], instance["num_gpus"]
    experts = range(len(loads))
    counts = [1 for _ in experts]
    most = num_gpus if instance["one_per_gpu"] else num_gpus * instance["slots"]
    for _ in range(num_gpus * instance["slots"] - len(loads)):
        counts[max((e for e in experts if counts[e] < most), key=lambda e: loads[e] / counts[e])] += 1
    replicas = [[0] * num_gpus for _ in experts]
    dealt = 0
    for expert in sorted(experts, key=lambda e: -loads[e] / counts[e]):
        for _ in range(counts[expert]):
            replicas[expert][dealt % num_gpus] += 1
            dealt += 1
    return {"replicas": replicas}
