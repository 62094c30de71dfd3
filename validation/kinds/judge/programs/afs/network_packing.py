"""A first program for afs.network_packing."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Round every share down, then let jobs grow, the first that can, while GPUs are left."""
    size = instance["gpus_per_machine"]

    def floor(share: int) -> int:
        return share // size * size if share >= size else 1 << share.bit_length() - 1 if share else 0

    regulated = [floor(share) for share in instance["shares"]]
    left = sum(instance["shares"]) - sum(regulated)
    while left:
        steps = [min(share, size) for share in regulated]
        growing = next(job for job, step in enumerate(steps) if 0 < step <= left)
        regulated[growing] += steps[growing]
        left -= steps[growing]
    return {"regulated": regulated}
