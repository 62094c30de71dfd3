"""What ElasticFlow (ASPLOS'23) states of giving out idle GPUs (section 4.2), put to the test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from heuristics.elasticflow.allocation import greedy_marginal_return, greedy_marginal_return_repaired
from heuristics.elasticflow.filling import fill_jobs
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.sharing import SlotPlan
from validation.claims.elasticflow.sharing import least_gpu_time, sets
from validation.testing.claims import Claim
from validation.testing.transform import take

__all__ = ["CLAIMS"]


def _grown(instance: ElasticFlowAllocation, *, repaired: bool) -> list[tuple[ElasticFlowAllocation, SlotPlan]]:
    """Algorithm 2's plans, one for each way of breaking ties by the jobs' numbers; none where it finds none."""
    serve = greedy_marginal_return_repaired if repaired else greedy_marginal_return
    found = ((each, serve(each)) for each in _every_order(instance))
    return [(each, plan) for each, plan in found if plan is not None]


def _every_order(instance: ElasticFlowAllocation) -> Iterator[ElasticFlowAllocation]:
    # Marginal returns may tie although deadlines do not.
    for order in itertools.permutations(range(instance.num_jobs)):
        yield take(instance, "n", order)


def _idles(instance: ElasticFlowAllocation) -> str:
    """How Algorithm 2 leaves a GPU idle that (7) wants used, however ties are broken."""
    plans = _grown(instance, repaired=False)
    if not plans or not all(each.violations(plan) for each, plan in plans):
        return ""
    each, plan = min(plans, key=lambda found: found[0].num_gpus - int(found[1].gpus[:, 0].sum()))
    idle = each.num_gpus - int(plan.gpus[:, 0].sum())
    return f"it leaves {idle} of {each.num_gpus} GPUs idle in slot 0 that would speed up a job"


def _more_gpu_time(instance: ElasticFlowAllocation, *, repaired: bool) -> str:
    """How Algorithm 2's plans that keep (7) take more GPU time than is needed, however ties are broken."""
    plans = _grown(instance, repaired=repaired)
    takes = [int(each.objective(plan)) for each, plan in plans if not each.violations(plan)]
    least = least_gpu_time(instance, useful=True) if takes else None
    if least is None or min(takes) <= least:
        return ""
    return f"it takes {min(takes)} GPU-slots or more however ties are broken, {least} would do"


def _loses_the_optimum(instance: ElasticFlowAllocation) -> str:
    """How Algorithm 2, repaired, ends above the least GPU time although it starts from it."""
    shares = fill_jobs(instance, np.arange(instance.num_jobs))
    if shares is None or shares.sum() != least_gpu_time(instance):
        return ""
    return _more_gpu_time(instance, repaired=True)


def _allocations(most_jobs: int, most_gpus: int, most_slots: int = 2) -> Iterator[ElasticFlowAllocation]:
    return sets(ElasticFlowAllocation, most_jobs=most_jobs, most_gpus=most_gpus, most_slots=most_slots, most_gain=2)


_THEOREM_2 = "Algorithm 2 solves the resource allocation problem (4) to (7) optimally when scaling curves are concave."

CLAIMS: list[Claim] = [
    Claim(
        name="algorithm_2_uses_idle_gpus",
        source="ElasticFlow, section 4.2, Algorithm 2",
        statement="Algorithm 2 leaves no GPU idle that would speed up a job.",
        reading="as printed, each job enters the queue once; its plans keep (7), at least for some way of breaking "
        "ties.",
        instances=lambda rng: _allocations(2, 3),
        breaks=_idles,
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 3 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="algorithm_2_least_gpu_time",
        source="ElasticFlow, section 4.2, Theorem 2",
        statement=_THEOREM_2,
        reading="as printed; where its plan keeps (7), no other plan that keeps (5) to (7) takes fewer GPU-slots, at "
        "least for some way of breaking ties.",
        instances=lambda rng: _allocations(2, 3),
        breaks=lambda instance: _more_gpu_time(instance, repaired=False),
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 3 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="algorithm_2_repaired_least_gpu_time",
        source="ElasticFlow, section 4.2, Theorem 2",
        statement=_THEOREM_2,
        reading="jobs stay in the queue while another GPU makes them faster, which keeps (7); no other plan that keeps "
        "(5) to (7) takes fewer GPU-slots, at least for some way of breaking ties.",
        instances=lambda rng: _allocations(2, 3),
        breaks=lambda instance: _more_gpu_time(instance, repaired=True),
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 or "
        "2 slots, on up to 3 GPUs",
        exhaustive=True,
    ),
    Claim(
        name="algorithm_2_from_least_shares",
        source="ElasticFlow, section 4.2, Theorem 2",
        statement=_THEOREM_2,
        reading="a weaker one: repaired as before, and only where the shares of Algorithm 1, from which it starts, "
        "meet the deadlines at the least GPU time.",
        instances=lambda rng: _allocations(2, 2, 3),
        breaks=_loses_the_optimum,
        scope="up to 2 jobs of concave curves whose first GPU does 1 or 2 iterations per slot, with deadlines of 1 to "
        "3 slots, on up to 2 GPUs",
        exhaustive=True,
    ),
]
