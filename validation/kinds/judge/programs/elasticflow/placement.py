"""A first program for elasticflow.placement."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Place the largest blocks first: those that can stay where they are, then others where there is room."""
    sizes, previous = instance["sizes"], instance["previous_offsets"]
    free = [True] * instance["num_gpus"]
    offsets = [0] * len(sizes)

    def fits(job: int, offset: int) -> bool:
        return offset % sizes[job] == 0 and offset + sizes[job] <= len(free) and all(free[offset : offset + sizes[job]])

    for size in sorted(set(sizes), reverse=True):
        waiting = []
        for job in [job for job, one in enumerate(sizes) if one == size]:
            if previous[job] is not None and fits(job, int(previous[job])):
                offsets[job] = int(previous[job])
                free[offsets[job] : offsets[job] + size] = [False] * size
            else:
                waiting.append(job)
        for job in waiting:
            offsets[job] = next((offset for offset in range(0, len(free), size) if fits(job, offset)), 0)
            free[offsets[job] : offsets[job] + size] = [False] * size
    return {"offsets": offsets}
