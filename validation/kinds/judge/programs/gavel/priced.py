"""A first program for Gavel's policies with prices."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Let jobs with a time limit do their steps on the fastest workers left, then give others their best bargain."""
    rows, left = instance["throughputs"], [float(count) for count in instance["num_workers"]]
    pools, scales = instance["pools"], instance["scale_factors"]
    fractions = [[0.0 for _ in pools] for _ in range(len(rows) + len(instance["pairs"]))]
    time = [1.0 for _ in rows]

    def give(job: int, kind: int, most: float) -> None:
        part = min(most, time[job], left[pools[kind]] / scales[job])
        if part > 0 and instance["num_workers"][pools[kind]] >= scales[job]:
            fractions[job][kind] += part
            time[job] -= part
            left[pools[kind]] -= part * scales[job]

    needs = {
        job: steps / slo
        for job, (steps, slo) in enumerate(zip(instance["steps"], instance["slos"], strict=True))
        if slo is not None and steps > 0
    }
    for job in sorted(needs, key=lambda one: -needs[one] / max(rows[one])):
        for kind in sorted(range(len(pools)), key=lambda one: -rows[job][one]):
            made = sum(part * rate for part, rate in zip(fractions[job], rows[job], strict=True))
            if made < needs[job] and rows[job][kind] > 0:
                give(job, kind, (needs[job] - made) / rows[job][kind])
    bargains = [
        (rate / (instance["costs"][kind] * scales[job]), job, kind)
        for job, row in enumerate(rows)
        for kind, rate in enumerate(row)
    ]
    best = max(bargains, default=(0.0, 0, 0))[0]
    for bargain, job, kind in sorted(bargains, reverse=True):
        if bargain >= best / 2 and instance["steps"][job] > 0:
            give(job, kind, 1.0)
    return {"time_fractions": fractions}
