"""A first program for gavel.hierarchical_fairness."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Give all jobs one fraction of time, split over the pools that each can use by their size; no pairs."""
    rows, workers = instance["throughputs"], instance["num_workers"]
    pools, scales = instance["pools"], instance["scale_factors"]
    types = range(len(pools))
    shares = []
    for row, scale in zip(rows, scales, strict=True):
        usable = {pools[kind] for kind in types if row[kind] > 0 and workers[pools[kind]] >= scale}
        room = sum(workers[pool] for pool in usable)
        shares.append({pool: workers[pool] / room for pool in usable})
    fraction = 1.0
    for pool, there in enumerate(workers):
        load = sum(scale * share.get(pool, 0.0) for scale, share in zip(scales, shares, strict=True))
        if load:
            fraction = min(fraction, there / load)
    fractions = [[0.0 for _ in types] for _ in range(len(rows) + len(instance["pairs"]))]
    levels = []
    for job, share in enumerate(shares):
        made = equal = 0.0
        for pool, part in share.items():
            fastest = max((kind for kind in types if pools[kind] == pool), key=lambda kind: rows[job][kind])
            fractions[job][fastest] = fraction * part
            made += fraction * part * rows[job][fastest]
            equal += workers[pool] / sum(workers) * rows[job][fastest]
        levels.append(scales[job] * made / equal if equal else 0.0)
    return {"time_fractions": fractions, "normalized_throughputs": levels}
