"""A first program for ElasticFlow's jobs with deadlines."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Serve jobs by their deadlines, as late as will do, then those without; each with as few GPUs as will do.

    A job that misses its deadline is served before all others, and all are served anew.  GPUs that are idle in the
    first slot go to whoever is faster with one more.
    """
    deadlines, throughputs = instance["deadlines"], instance["throughputs"]
    waits = instance.get("best_effort", [False] * len(deadlines))
    slots = max(deadlines, default=0)
    order = sorted(range(len(deadlines)), key=lambda one: (waits[one], deadlines[one]))
    free, gpus = [0] * slots, [[0] * slots for _ in deadlines]
    for _ in range(10 * len(deadlines)):
        free, late = [instance["num_gpus"]] * slots, None
        for job in order:
            left = 0.0
            for most in range(1, instance["num_gpus"] + 1):
                held, left = [0] * slots, instance["iterations"][job]
                for slot in sorted(range(deadlines[job]), reverse=not waits[job]):
                    if left > 0:
                        held[slot] = min(most, free[slot])
                        left -= throughputs[job][held[slot]]
                gpus[job] = held
                if left <= 0:
                    break
            free = [all_free - some for all_free, some in zip(free, gpus[job], strict=True)]
            if left > 0 and late is None:
                late = job
        if late is None:
            break
        order.remove(late)
        order.insert(0, late)
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
