"""A first program for prism.placement."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Leave models where they are, and place the others, the largest first, on the GPU with the most memory left."""
    sizes, left = instance["sizes"], list(instance["memory"])
    gpus = list(instance["current"])
    for model, gpu in enumerate(gpus):
        if gpu >= 0:
            left[gpu] -= sizes[model]
    for model in sorted(range(len(sizes)), key=lambda one: -sizes[one]):
        if gpus[model] < 0:
            gpus[model] = max(range(len(left)), key=lambda gpu: left[gpu])
            left[gpus[model]] -= sizes[model]
    return {"gpus": gpus}
