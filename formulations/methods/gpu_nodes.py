"""Divisions of groups among nodes: each node is a problem of EPLB of its own, and the fullest counts.

Nodes are alike, so that what one is worth depends on its set of groups alone; a division is a set for each node, with
every group in one of them.  With ``least[s]`` a bound of set s, its optimum once that is known, no division is worth
less than the greatest bound of its sets, and no plan less than the division of which that is least.  The set of the
greatest bound in that division is solved next, until no division can be worth less than the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from formulations.engine import clock
from formulations.engine.highs import WEAKEST_FIRST, Proof, Result, Status
from formulations.engine.options import Options
from formulations.engine.solution import Solution
from formulations.engine.solving import solve
from formulations.eplb.placement import least_load
from formulations.methods import GaveUp
from instances.base import agree
from instances.eplb.placement import EplbPlacement, EplbPlacementPlan
from instances.schema import FloatArray, IntArray

__all__ = ["divided", "divisions"]

MOST = 50_000
"""Divisions that are looked at."""


def divisions(num_groups: int, num_nodes: int, fewest: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to divide groups among nodes that are alike, each with the groups of a node as bits of a number.

    Parameters
    ----------
    num_groups, num_nodes : int
    fewest, most : int
        Groups of a node.
    """
    nodes = [0] * num_nodes

    def placed(group: int, begun: int) -> Iterator[tuple[int, ...]]:
        if group == num_groups:
            yield tuple(nodes)
            return
        short = sum(max(0, fewest - node.bit_count()) for node in nodes)
        for node in range(min(begun + 1, num_nodes)):
            count = nodes[node].bit_count()
            if count < most and short - (count < fewest) <= num_groups - group - 1:
                nodes[node] |= 1 << group
                yield from placed(group + 1, max(begun, node + 1))
                nodes[node] ^= 1 << group

    yield from placed(0, 0)


class _Node:
    """A node that holds some groups.

    Attributes
    ----------
    experts : (k,) int
        Experts of the groups.
    least : float
        What no plan of the node is worth less than.
    proof : str
        What that rests on.
    replicas : (k, g) int, optional
        A plan of the node.
    """

    def __init__(self, instance: EplbPlacement, groups: int) -> None:
        self.experts = np.flatnonzero([groups >> group & 1 for group in instance.groups.tolist()])
        self.proof: Proof = "argument"
        self.replicas: IntArray | None = None
        self.part: EplbPlacement | None = None
        held = instance.vectors[:, self.experts]
        if len(self.experts) <= instance.slots:
            # Every GPU can hold the same, so that each carries the mean.
            one = np.ones(len(self.experts), np.int64)
            one[0] += instance.slots - len(one)
            self.replicas = np.repeat(one[:, None], instance.gpus_per_node, axis=1)
            self.least = max(map(math.fsum, held.tolist())) / instance.gpus_per_node
            return
        self.part = EplbPlacement(
            loads=held[0],
            more_loads=held[1:],
            num_gpus=instance.gpus_per_node,
            slots=instance.slots,
            one_per_gpu=instance.one_per_gpu,
        )
        self.least = least_load(self.part)

    def solve(self, options: Options) -> Solution:
        """Look for the best plan of the node."""
        assert self.part is not None
        found = solve(
            self.part, mip_gap=options.mip_gap, threads=options.threads, seed=options.seed, verify=options.verify
        )
        if isinstance(found.plan, EplbPlacementPlan):
            self.replicas = found.plan.replicas
        if found.bound > self.least:
            self.least, self.proof = found.bound, found.proof
        return found


def divided(instance: EplbPlacement, plan: EplbPlacementPlan, options: Options) -> tuple[EplbPlacementPlan, Result]:
    """Return the best plan and bound of an instance with several nodes, of which the worst vector of loads counts.

    Raises
    ------
    GaveUp
        When there are too many divisions.
    """
    size = instance.num_experts // instance.num_groups
    fewest = -(-instance.slots // size) if instance.one_per_gpu else 1
    most = instance.gpus_per_node * instance.slots // size
    ways = []
    for division in clock.ticking(divisions(instance.num_groups, instance.num_nodes, fewest, most)):
        ways.append(division)
        if len(ways) > MOST:
            raise GaveUp(f"more than {MOST:,} divisions among nodes", plan)
    groups, number = np.unique(np.array(ways), return_inverse=True)
    number = number.reshape(len(ways), instance.num_nodes)
    nodes = []
    for some in groups.tolist():
        clock.check()
        nodes.append(_Node(instance, some))
    least: FloatArray = np.array([node.least for node in nodes])
    asked: set[int] = set()
    value, seconds, said = instance.objective(plan), 0.0, "the bounds of the nodes"
    while True:
        greatest = least[number].max(axis=1)
        way = int(greatest.argmin())
        bound = float(greatest[way])
        here = number[way].tolist()
        waiting = [one for one in here if nodes[one].part is not None and one not in asked]
        if waiting and clock.left() > 0 and bound < value and not agree(value, bound):
            one = max(waiting, key=lambda one: float(least[one]))
            asked.add(one)
            found = nodes[one].solve(options)
            least[one], seconds, said = nodes[one].least, seconds + found.solve_seconds, found.message
            continue
        better = _joined(instance, [nodes[one] for one in here])
        if better is not None and instance.objective(better) < value:
            plan, value = better, instance.objective(better)
            continue
        break
    proof: Proof = min((nodes[one].proof for one in asked), key=WEAKEST_FIRST.index, default="argument")
    said = f"{len(asked)} nodes of {len(nodes)} in {len(ways)} divisions; {said}"
    status: Status = "optimal" if agree(value, bound) else "feasible"
    return plan, Result(status, None, bound, None, seconds, said, proof)


def _joined(instance: EplbPlacement, nodes: list[_Node]) -> EplbPlacementPlan | None:
    """Return the plan of the nodes' plans, where all have one."""
    replicas = np.zeros((instance.num_experts, instance.num_gpus), np.int64)
    for node, held in enumerate(nodes):
        if held.replicas is None:
            return None
        first = node * instance.gpus_per_node
        replicas[held.experts, first : first + instance.gpus_per_node] = held.replicas
    return EplbPlacementPlan(replicas=replicas)
