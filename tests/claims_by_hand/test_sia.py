"""Sia: where jobs are that have to stay, and what is free there."""

from __future__ import annotations

from typing import Any

from instances.reference import Reference

from .stored import judges

Data = dict[str, Any]


@judges("sia/goodput/configurations_can_be_placed-2")
def test_a_gpu_is_free_on_each_node_and_two_are_wanted_on_one(data: Data, reference: Reference) -> None:
    nodes, gpus = range(data["num_machines"]), data["gpus_per_machine"]
    free = [gpus - sum(row[node] for row in data["previous"]) for node in nodes]
    pairs = zip(data["regulated"], data["previous"], strict=True)
    new = [wanted for wanted, row in pairs if not any(row)]
    assert (free, new, gpus) == ([1, 1], [2], 2)
    # One of the two jobs that run goes to the other, and the new job has the whole node.
    best = reference.optimum()
    assert int(best) == 1
