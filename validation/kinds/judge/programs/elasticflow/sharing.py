"""A first program for ElasticFlow's jobs with deadlines."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Serve jobs with a deadline by it, then the others; each with as few GPUs at once as will do.

    GPUs that are idle in the first slot then go to whoever is faster with one more.
    """
    deadlines, throughputs = instance["deadlines"], instance["throughputs"]
    waits = instance.get("best_effort", [False] * len(deadlines))
    slots = max(deadlines, default=0)
    free = [instance["num_gpus"]] * slots
    gpus = [[0] * slots for _ in deadlines]
    for job in sorted(range(len(deadlines)), key=lambda one: (waits[one], deadlines[one])):
        for most in range(1, instance["num_gpus"] + 1):
            held, left = [0] * slots, instance["iterations"][job]
            for slot in range(deadlines[job]):
                if left > 0:
                    held[slot] = min(most, free[slot])
                    left -= throughputs[job][held[slot]]
            gpus[job] = held
            if left <= 0:
                break
        free = [all_free - some for all_free, some in zip(free, gpus[job], strict=True)]
    while slots and free[0]:
        faster = [
            job
            for job, row in enumerate(throughputs)
            if gpus[job][0] + 1 < len(row) and row[gpus[job][0] + 1] > row[gpus[job][0]]
        ]
        if not faster:
            break
        gpus[faster[0]][0] += 1
        free[0] -= 1
    return {"gpus": gpus}
