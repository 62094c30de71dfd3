"""A first program for synergy.heterogeneous_allocation."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Give the jobs of most GPUs first the fastest configuration within their part of a type that has GPUs left."""
    left = [servers * gpus for servers, gpus in zip(instance["num_servers"], instance["server_gpus"], strict=True)]
    demands = instance["gpu_demands"]
    choices = [0 for _ in demands]
    for job in sorted(range(len(demands)), key=lambda one: -demands[one]):
        table, kinds = instance["configs"][job], instance["config_types"][job]
        able = []
        for one, (cpus, memory, rate) in enumerate(table):
            kind = kinds[one]
            part = demands[job] / instance["server_gpus"][kind]
            within = cpus <= part * instance["server_cpus"][kind] and memory <= part * instance["server_memory"][kind]
            if within and left[kind] >= demands[job] and rate >= instance["fair_throughputs"][job]:
                able.append(one)
        choices[job] = max(able, key=lambda one: table[one][2], default=0)
        left[kinds[choices[job]]] -= demands[job]
    return {"choices": choices}
