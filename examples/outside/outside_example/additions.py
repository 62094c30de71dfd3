"""What can be added besides a problem: a heuristic for a problem of the library, and a claim."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from instances.aryl.reclaim import Reclaim, ReclaimPlan
from outside_example.one_server import OneServer, densest_first
from validation import Claim, register


def emptiest_first(instance: Reclaim) -> ReclaimPlan:
    """Return the servers with the fewest GPUs in use. Guarantee: none. O(n s)."""
    return ReclaimPlan(servers=np.argsort(instance.gpus.sum(axis=0), kind="stable")[: instance.demand])


def _two_jobs(rng: np.random.Generator) -> Iterator[OneServer]:
    for gpus in product(range(1, 4), repeat=2):
        for values in product(range(1, 4), repeat=2):
            for capacity in range(1, 5):
                yield OneServer(gpus=gpus, values=np.array(values, float), capacity=capacity)


def _less_than_half(instance: OneServer) -> str | None:
    """How the greedy plan is worth less than half of the best, found by trying everything."""
    best = max(
        sum((Fraction(value) for value, taken in zip(instance.values, chosen, strict=True) if taken), Fraction(0))
        for chosen in product((False, True), repeat=instance.num_jobs)
        if sum(int(g) for g, taken in zip(instance.gpus, chosen, strict=True) if taken) <= instance.capacity
    )
    value = instance.objective(densest_first(instance))
    return f"it is worth {value:g}, the best plan {float(best):g}" if 2 * value < best else None


register(emptiest_first, problem="aryl.reclaim")
register(
    Claim(
        name="densest_first_is_half",
        source="Demo, section 1",
        statement="Taking jobs by value per GPU is worth at least half of the optimum.",
        reading="whatever the values.",
        instances=_two_jobs,
        breaks=_less_than_half,
        scope="two jobs of 1 to 3 GPUs worth 1 to 3, on up to 4 GPUs",
        exhaustive=True,
        problem="demo.one_server",
        assumptions="values and GPUs are whole numbers.",
        relaxed="",
    )
)
