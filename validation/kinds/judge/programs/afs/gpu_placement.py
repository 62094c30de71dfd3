"""A first program for afs.gpu_placement."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Place the largest job first: where it was if there is room, else on the first machines that have it."""
    machines, size = range(instance["num_machines"]), instance["gpus_per_machine"]
    regulated = instance["regulated"]
    free = [size for _ in machines]
    gpus = [[0 for _ in machines] for _ in regulated]
    for job in sorted(range(len(regulated)), key=lambda one: -regulated[one]):
        block = min(regulated[job], size)
        kept = sorted(machines, key=lambda one: -min(instance["previous"][job][one], block))
        fitting = [machine for machine in kept if free[machine] >= block]
        for machine in fitting[: -(-regulated[job] // size)]:
            gpus[job][machine] = block
            free[machine] -= block
    return {"gpus": gpus}
