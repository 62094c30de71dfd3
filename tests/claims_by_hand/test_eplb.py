"""EPLB: objects in packs of equally many."""

from __future__ import annotations

from typing import Any

from instances.reference import Reference

from .stored import judges

Data = dict[str, Any]


@judges("eplb/placement/packing_as_balanced_as_possible-1")
def test_two_of_three_and_three_of_two_are_even_apart_from_each_other(data: Data, reference: Reference) -> None:
    weights, packs, each = data["loads"], data["num_gpus"], data["slots"]
    assert (weights, packs, each) == ([3, 3, 2, 2, 2, 0], 2, 3)
    # As released: the heaviest first, onto the lighter pack that has room; the first of two that are equal.
    held: list[list[float]] = [[] for _ in range(packs)]
    for weight in weights:
        min((pack for pack in held if len(pack) < each), key=sum).append(weight)
    assert max(map(sum, held)) == 7
    # Three and three with nothing, and the three of two.
    assert sum(weights[:2] + weights[5:]) == sum(weights[2:5]) == 6 == sum(weights) / packs
    assert reference.optimum() == 6
