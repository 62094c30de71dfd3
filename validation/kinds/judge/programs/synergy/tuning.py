"""A first program for synergy.tuning."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Give every job the fastest configuration within its part of CPUs and memory, and place the largest jobs first."""
    demands = instance["gpu_demands"]
    servers = range(instance["num_servers"])
    free = [instance["server_gpus"] for _ in servers]
    choices = [0 for _ in demands]
    gpus = [[0 for _ in servers] for _ in demands]
    for job in sorted(range(len(demands)), key=lambda one: -demands[one]):
        table = instance["configs"][job]
        part = demands[job] / instance["server_gpus"]
        cpus, memory = part * instance["server_cpus"], part * instance["server_memory"]
        within = [
            one
            for one, (some_cpus, some_memory, rate) in enumerate(table)
            if some_cpus <= cpus and some_memory <= memory and rate >= instance["fair_throughputs"][job]
        ]
        choices[job] = max(within, key=lambda one: table[one][2], default=0)
        whole = [server for server in servers if free[server] >= demands[job]]
        left = demands[job]
        for server in sorted(whole or servers, key=lambda one: free[one], reverse=not whole):
            gpus[job][server] = min(left, free[server])
            free[server] -= gpus[job][server]
            left -= gpus[job][server]
    return {"choices": choices, "gpus": gpus}
