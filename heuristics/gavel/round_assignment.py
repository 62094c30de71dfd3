"""Gavel's rounds: priorities, the greedy assignment of Algorithm 1, and what repeating it yields."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan
from instances.gavel.sharing import Allocation, Sharing
from instances.schema import FloatArray

__all__ = ["NEVER_SERVED", "Simulation", "greedy_priority", "priorities", "simulate"]

NEVER_SERVED = 1e6
"""Stand-in for the infinite priority of a row that has a target and was never served: above every
X / f of a mechanism of fewer rounds than this, and finite, so that priorities add up."""


def greedy_priority(instance: RoundAssignment) -> RoundAssignmentPlan:
    """Algorithm 1: the highest priority first, as long as workers are left.

    Repeatedly take the entry (row, type) of the highest priority whose pool has workers enough and
    whose jobs do not run yet; ties go to the lowest row, then type.  As printed the loop ends only
    when all workers are taken; it must also end when no entry of positive priority is left.

    Guarantee: none known (a wide job can block any number of narrow ones).
    Complexity: O(R log R) for R entries.

    References
    ----------
    Gavel (OSDI'20), section 5, Algorithm 1.
    """
    chosen = np.zeros(instance.priorities.shape, bool)
    left = instance.num_workers.copy()
    running = np.zeros(instance.num_jobs, bool)
    for flat in np.argsort(-instance.priorities.ravel(), kind="stable"):
        row, kind = divmod(int(flat), instance.num_types)
        jobs, pool = list(instance.members[row]), instance.pools[kind]
        if instance.priorities[row, kind] <= 0:
            break
        if running[jobs].any() or instance.row_scale_factors[row] > left[pool]:
            continue
        chosen[row, kind] = True
        running[jobs] = True
        left[pool] -= instance.row_scale_factors[row]
    return RoundAssignmentPlan(chosen=chosen)


def priorities(target: FloatArray, time_received: FloatArray) -> FloatArray:
    """Section 5's priorities X / f, with f the share of time that each entry has received.

    Parameters
    ----------
    target : (r, k) float
        The policy's allocation X.
    time_received : (r, k) float
        Rounds that each row has run on each type so far.

    Returns
    -------
    (r, k) float
        Never-served entries with X > 0 come before all others, by ``NEVER_SERVED * X``; entries
        with X = 0 have priority 0.
    """
    total = time_received.sum()
    share = time_received / total if total > 0 else time_received
    served = share > 0
    found = np.where(served, target / np.where(served, share, 1.0), NEVER_SERVED * target)
    return np.where(target > 0, found, 0.0)


@dataclass(frozen=True)
class Simulation:
    """What the repeated mechanism yields.

    Attributes
    ----------
    time_fractions : (n+q, k) float
        Fraction of the rounds that each row ran on each type.
    shortfall : float
        Largest amount by which an entry received less than its target.
    """

    time_fractions: FloatArray
    shortfall: float


def simulate(instance: Sharing, target: Allocation, rounds: int) -> Simulation:
    """Apply the mechanism for a number of rounds.

    The time received can fall short of a feasible target however many rounds there are: gangs of
    workers cannot always be packed into whole rounds.

    Parameters
    ----------
    instance : Sharing
        The cluster and the jobs of any policy.
    target : Allocation
        The policy's allocation X.
    rounds : int
        At least 1.
    """
    if rounds < 1:
        raise ValueError(f"rounds: got {rounds}, must be at least 1")
    x = target.time_fractions
    received = np.zeros_like(x)
    this_round = RoundAssignment(
        scale_factors=instance.scale_factors,
        num_workers=instance.num_workers,
        pairs=instance.pairs,
        priorities=np.zeros_like(x),
        pools=instance.pools,
    )
    for _ in range(rounds):
        urgent = np.where(instance.fits, priorities(np.maximum(x, 0.0), received), 0.0)
        received += greedy_priority(replace(this_round, priorities=urgent)).chosen
    fractions = received / rounds
    return Simulation(time_fractions=fractions, shortfall=float(np.maximum(x - fractions, 0.0).max()))
