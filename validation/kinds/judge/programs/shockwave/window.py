"""A first program for shockwave.window."""

from typing import Any


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Fill the rounds: first jobs that need the most of them for their limits, then those with the most time left."""
    scales, lasts, rounds = instance["scale_factors"], instance["round_duration"], instance["num_rounds"]
    jobs = range(len(scales))
    slower = max(1.0, len(scales) / instance["num_gpus"])
    end = lasts * (instance["rounds_past"] + rounds)
    needs = []
    for limit, left in zip(instance["finish_limits"], instance["times_left"], strict=True):
        late = [limit is not None and end + max(left - lasts * ran, 0.0) * slower > limit for ran in range(rounds + 1)]
        needs.append(sum(late))
    runs = [[False] * rounds for _ in jobs]
    for now in range(rounds):
        free = instance["num_gpus"]
        wanted = {
            job: (needs[job] - sum(runs[job]), instance["times_left"][job] - lasts * sum(runs[job])) for job in jobs
        }
        for job in sorted(jobs, key=lambda one: wanted[one], reverse=True):
            if scales[job] <= free and max(wanted[job]) > 0:
                runs[job][now] = True
                free -= scales[job]
    return {"runs": runs}
