"""A first program for gavel.round_assignment."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Run rows by priority, the highest first, as long as their jobs are free and there are workers."""
    scales, pairs, left = instance["scale_factors"], instance["pairs"], list(instance["num_workers"])
    members = [[job] for job in range(len(scales))] + pairs
    chosen = [[False] * len(instance["pools"]) for _ in members]
    busy: set[int] = set()
    cells = [
        (priority, row, kind)
        for row, some in enumerate(instance["priorities"])
        for kind, priority in enumerate(some)
        if priority > 0 and instance["eligible"][row][kind]
    ]
    for _, row, kind in sorted(cells, reverse=True):
        pool, scale = instance["pools"][kind], scales[members[row][0]]
        if left[pool] >= scale and busy.isdisjoint(members[row]):
            chosen[row][kind] = True
            left[pool] -= scale
            busy.update(members[row])
    return {"chosen": chosen}
