"""A first program for synergy.allocation."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Give every job the fastest configuration within its part of CPUs and memory, by its GPUs."""
    choices = []
    for job, (gpus, table) in enumerate(zip(instance["gpu_demands"], instance["configs"], strict=True)):
        part = gpus / instance["server_gpus"]
        cpus, memory = part * instance["server_cpus"], part * instance["server_memory"]
        within = [
            one
            for one, (some_cpus, some_memory, rate) in enumerate(table)
            if some_cpus <= cpus and some_memory <= memory and rate >= instance["fair_throughputs"][job]
        ]
        choices.append(max(within, key=lambda one: table[one][2], default=0))
    return {"choices": choices}
