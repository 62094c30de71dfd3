"""What Gavel (OSDI'20) states of its rounds (section 5), put to the test."""

from __future__ import annotations

from heuristics.gavel.round_assignment import simulate
from instances.gavel.sharing import Sharing
from validation.claims.gavel.clusters import ONE_WORKER, WIDE
from validation.claims.gavel.optima import optimum
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]

ROUNDS = 200
SHORT = 0.05
"""What an entry of the allocation may lack after so many rounds: ten rounds."""


def _falls_short(instance: Sharing) -> str:
    """How rounds by Algorithm 1 fall short of the policy's allocation."""
    found = optimum(instance)
    assert found is not None
    shortfall = simulate(instance, found[1], ROUNDS).shortfall
    return f"after {ROUNDS} rounds an entry lacks {shortfall:.3g} of its fraction of time" if shortfall > SHORT else ""


CLAIMS: list[Claim] = [
    Claim(
        name=f"rounds_realise_target{suffix}",
        source="Gavel, section 5",
        statement="Rounds by priority give each job the fractions of time that the policy computed.",
        reading=f"{jobs}, the max-min fair allocation that the exact model finds, priorities X / f and Algorithm 1: no "
        f"entry lacks more than {SHORT} after {ROUNDS} rounds.",
        instances=family.instances,
        breaks=_falls_short,
        scope=family.scope,
        exhaustive=True,
    )
    for suffix, jobs, family in (
        ("", "jobs of one worker", ONE_WORKER),
        ("_wide", "jobs of one or two workers", WIDE),
    )
]
