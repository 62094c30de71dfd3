"""What Gavel (OSDI'20) states of hierarchical fairness, put to the test."""

from __future__ import annotations

from instances.gavel.hierarchical_fairness import HierarchicalFairness
from validation.claims.gavel.clusters import Family
from validation.claims.gavel.properties import wasteful
from validation.testing.claims import Claim

__all__ = ["CLAIMS"]

CLAIMS: list[Claim] = [
    Claim(
        name="pareto_water_filling",
        source="Gavel, section 4.4",
        statement="Max-min fair allocations are Pareto efficient, if water filling follows: no job can have more "
        "without another having less.",
        reading="with water filling: hierarchical fairness of one entity.",
        instances=Family(HierarchicalFairness, 3, (1, 2, 3)).instances,
        breaks=wasteful,
        scope=Family(HierarchicalFairness, 3, (1, 2, 3)).scope,
        exhaustive=True,
    ),
]
