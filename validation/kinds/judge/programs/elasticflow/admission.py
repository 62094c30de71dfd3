"""A first program for elasticflow.admission."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Admit jobs by their deadlines, each if it meets its own on what is left, with as few GPUs at once as will do."""
    deadlines, throughputs = instance["deadlines"], instance["throughputs"]
    slots = max(deadlines, default=0)
    free = [instance["num_gpus"]] * slots
    admitted = [False] * len(deadlines)
    gpus = [[0] * slots for _ in deadlines]
    for job in sorted(range(len(deadlines)), key=lambda one: deadlines[one]):
        for most in range(1, instance["num_gpus"] + 1):
            held, left = [0] * slots, instance["iterations"][job]
            for slot in range(deadlines[job]):
                if left > 0:
                    held[slot] = min(most, free[slot])
                    left -= throughputs[job][held[slot]]
            if left <= 0:
                admitted[job], gpus[job] = True, held
                free = [all_free - some for all_free, some in zip(free, held, strict=True)]
                break
    return {"admitted": admitted, "gpus": gpus}
