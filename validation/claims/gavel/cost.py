"""Claims of Gavel (OSDI'20) about steps per dollar."""

from __future__ import annotations

import numpy as np

from instances.base import agree
from instances.gavel.cost import Cost
from validation.claims.claim import Claim
from validation.claims.gavel.clusters import DRAWN, DRAWN_ASSUMPTIONS, Family, are_drawn, drawn
from validation.claims.gavel.optima import attained
from validation.claims.gavel.properties import job_incentive, objective_incentive

__all__ = ["CLAIMS"]

_SMALL = Family(Cost, 3, (1, 2), jobs={"steps": (1.0,)}, types={"costs": (1.0, 2.0)})


def _not_one_program(instance: Cost) -> str | None:
    """Describe how the linear program's optimum is not the best ratio of a single row and type."""
    value, _ = attained(instance)
    together = np.concatenate([instance.throughputs, instance.pair_throughputs.sum(axis=2)])
    best = float(np.where(instance.fits, together / instance.prices, 0.0).max())
    return None if agree(value, best) else f"the program attains {value:.6g}, the best ratio is {best:.6g}"


CLAIMS: list[Claim] = [
    objective_incentive(Cost),
    objective_incentive(Cost, slos=True),
    job_incentive(_SMALL, jobs="without SLOs"),
    Claim(
        name="cost_as_linear_programs",
        source="Gavel, section 4.2",
        statement="The cost policies, whose objectives are ratios of linear functions, are solved by a series "
        "of linear programs.",
        reading="one such program is enough, after Charnes and Cooper; without SLOs its optimum is the best ratio of a "
        "single row and type.",
        instances=drawn(Cost),
        assumes=are_drawn,
        breaks=_not_one_program,
        scope=DRAWN,
        assumptions=DRAWN_ASSUMPTIONS,
        relaxed="",
    ),
]
