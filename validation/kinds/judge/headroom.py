"""What the best known heuristics leave to gain on the public sets.

The table is what ``python -m benchmarks judge.headroom`` measures; a test measures parts of it anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from validation.kinds.judge.sets import EDITION

__all__ = ["KNOWN", "SATURATED", "Headroom", "headroom"]

SATURATED = 0.95
"""Share of optimal plans above which a set tells good heuristics from better ones no more."""


@dataclass(frozen=True)
class Headroom:
    """The best known heuristic on a public set.

    Attributes
    ----------
    set : str
        Beginning of the set's digest.
    heuristic : str
        The one of the catalogue with the most optimal plans, of those that are given no solver; of several, the one
        with the best score, and the first.
    optimal, instances : int
        Instances that it solves to optimality, and all that have a plan.
    score : float
        Its score.
    theorem : bool
        Whether it is optimal on all instances, as its docstring guarantees: there is no headroom in any set then.
    """

    set: str
    heuristic: str
    optimal: int
    instances: int
    score: float
    theorem: bool = False

    @property
    def saturated(self) -> bool:
        """Whether more of the set than that share is solved."""
        return self.optimal > SATURATED * self.instances

    def __str__(self) -> str:
        told = f"{self.heuristic} solves {self.optimal} of {self.instances} of the public set"
        if self.theorem:
            return f"{told}, as it does all instances: there is none"
        return f"{told}: saturated" if self.saturated else told


def headroom(problem: str, edition: int) -> Headroom | None:
    """Return what is known of the public set of a problem, which may be that of a later edition; else None."""
    later = (KNOWN.get((problem, one)) for one in range(edition, EDITION + 1))
    return next((one for one in later if one is not None), None)


KNOWN: dict[tuple[str, int], Headroom] = {
    ("afs.elastic_sharing", 2): Headroom("440dc85d92a11683", "local_search", 36, 36, 1.0),
    ("afs.gpu_placement", 2): Headroom("b52e492e572ae2e1", "priced_first_fit", 30, 36, 0.9897),
    ("afs.network_packing", 2): Headroom("a16973aa0f64d6bc", "floor_and_grow_nearest", 19, 24, 0.9593),
    ("afs.network_packing", 1): Headroom("c1bf6cdb00733e5c", "floor_and_grow_nearest", 35, 36, 0.9957),
    ("afs.two_job", 2): Headroom("1710e8caee16dc6c", "exact_rule", 36, 36, 1.0, True),
    ("aryl.base_allocation", 2): Headroom("d7ea74c9741a0a24", "local_search", 15, 24, 0.9945),
    ("aryl.base_allocation", 1): Headroom("ab4446e56f60d599", "local_search", 24, 24, 1.0),
    ("aryl.elastic_allocation", 2): Headroom("b475cb6a563edbcc", "dynamic_program", 36, 36, 1.0, True),
    ("aryl.placement", 2): Headroom("4d804497ef9a7106", "local_search", 12, 24, 0.9995),
    ("aryl.placement", 1): Headroom("313c10540489d502", "local_search", 24, 24, 1.0),
    ("aryl.reclaim", 2): Headroom("8a0cd070e3dddfdb", "tabu_search", 16, 24, 0.9932),
    ("aryl.reclaim", 1): Headroom("5524eaa30a94f16a", "tabu_search", 35, 36, 0.9988),
    ("aryl.two_job", 2): Headroom("6987cc669c593f49", "best_breakpoint", 36, 36, 1.0, True),
    ("elasticflow.admission", 2): Headroom("8169798622156c87", "local_search", 20, 24, 0.9871),
    ("elasticflow.admission", 1): Headroom("59fc6a7b0ecb3473", "local_search", 24, 24, 1.0),
    ("elasticflow.allocation", 2): Headroom("4d00fcd358d8503e", "local_search", 18, 19, 0.9997),
    ("elasticflow.best_effort", 2): Headroom("9af66ab7f3f0a27b", "local_search", 20, 24, 0.9916),
    ("elasticflow.best_effort", 1): Headroom("d0dd74cf23f69a6e", "local_search", 24, 24, 1.0),
    ("elasticflow.minimum_satisfactory_share", 2): Headroom("5166040e72deab24", "local_search", 9, 10, 0.9987),
    ("elasticflow.minimum_satisfactory_share", 1): Headroom("150b6c8bfb5b42f6", "local_search", 23, 23, 1.0),
    ("elasticflow.placement", 2): Headroom("a227097571345b67", "priced_repack", 33, 36, 0.9805),
    ("eplb.placement", 2): Headroom("61f3cd43b9404301", "local_search", 12, 24, 0.9982),
    ("gavel.cost", 2): Headroom("a7a471785185c80c", "priced_types", 20, 36, 0.9985),
    ("gavel.fifo", 2): Headroom("1b87c493c2dd922c", "priced_types", 15, 36, 0.9997),
    ("gavel.finish_time_fairness", 2): Headroom("106702b225e1a4f0", "interior_point", 2, 36, 0.9997),
    ("gavel.hierarchical_fairness", 2): Headroom("917224835f3dfadb", "adaptive_waterfiller", 2, 36, 0.9773),
    ("gavel.makespan", 2): Headroom("e8e98d315430789f", "interior_point", 5, 36, 0.9999),
    ("gavel.max_min_fairness", 2): Headroom("607f791b6389c612", "interior_point", 0, 36, 0.9981),
    ("gavel.round_assignment", 2): Headroom("77e61ed8d1a16e32", "iterated_greedy", 20, 36, 0.9977),
    ("gavel.shortest_job_first", 2): Headroom("ed621c17c8d1b30f", "shortest_first_in_pairs", 36, 36, 1.0, True),
    ("gavel.throughput_per_dollar", 2): Headroom("5168cde343a60622", "priced_types", 8, 36, 0.9996),
    ("gavel.total_throughput", 2): Headroom("3aea357d1ff0ce1c", "priced_types", 8, 36, 0.9997),
    ("prism.placement", 2): Headroom("8871c285081688d3", "local_search", 32, 36, 0.9996),
    ("sia.goodput", 2): Headroom("00799c700fcced36", "priced_types", 21, 36, 0.9998),
    ("synergy.allocation", 2): Headroom("41b238cd7f8b5036", "greedy_marginal", 32, 36, 0.9997),
    ("synergy.heterogeneous_allocation", 2): Headroom("31469d2b126a34d3", "priced_types", 28, 36, 0.9991),
    ("synergy.placement", 2): Headroom("eea2a410b7c9f4fe", "swap_fit", 20, 24, 0.8889),
    ("synergy.placement", 1): Headroom("7b93c66b97cf4283", "swap_fit", 23, 24, 0.9861),
    ("synergy.tuning", 2): Headroom("ee2903845848329c", "local_search", 23, 24, 0.9987),
}
"""By problem and edition; an edition that is not here has the set of the next one."""
