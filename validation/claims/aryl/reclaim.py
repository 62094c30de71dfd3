"""Claims of Aryl (EuroSys'23 as Lyra) about the servers to return (section 4)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from heuristics.aryl.reclaim import gpu_fraction, server_fraction, smallest_count_first
from instances.aryl.reclaim import Reclaim, ReclaimPlan, figure_5
from instances.schema import IntArray
from validation.claims.assumed import only
from validation.claims.claim import Claim, Reading
from validation.claims.plans import OPTIMAL, optimal_plan, plans_of
from validation.claims.words import listed
from validation.testing.second_opinion import optimum

__all__ = ["CLAIMS"]

Greedy = Callable[..., ReclaimPlan]


def _clusters(num_jobs: int, num_servers: int, most_gpus: int = 1) -> Iterator[IntArray]:
    """Yield the GPUs of jobs on servers, (n, s) int: every cluster once up to its numbering, no server or job empty."""
    columns = [c for c in itertools.product(range(most_gpus + 1), repeat=num_jobs) if any(c)]
    orders = list(itertools.permutations(range(num_jobs)))
    for servers in itertools.combinations_with_replacement(columns, num_servers):
        # Of all numberings of the jobs, the one whose servers come first in order.
        if all(map(any, zip(*servers, strict=True))) and all(
            list(servers) <= sorted(tuple(column[job] for job in order) for column in servers) for order in orders
        ):
            yield np.array(servers).T


def _reclaims(most_places: int, most_gpus: int = 1) -> Iterator[Reclaim]:
    """Yield clusters of at most ``most_places`` = jobs times servers, with every demand above 1."""
    sizes = itertools.product(range(1, most_places + 1), range(3, most_places + 1))
    for num_jobs, num_servers in sorted(sizes, key=lambda size: (size[0] * size[1], size)):
        if num_jobs * num_servers <= most_places:
            for gpus in _clusters(num_jobs, num_servers, most_gpus):
                for demand in range(2, num_servers):
                    yield Reclaim(hosts=gpus > 0, gpus=gpus, demand=demand)


def _separate_jobs() -> Iterator[Reclaim]:
    """Yield jobs on one server each, 0 to 4 on every server."""
    for num_servers in range(2, 5):
        for counts in itertools.product(range(5), repeat=num_servers):
            if any(counts):
                gpus = np.repeat(np.eye(num_servers, dtype=np.int64), counts, axis=0)
                for demand in range(1, num_servers):
                    yield Reclaim(hosts=gpus > 0, gpus=gpus, demand=demand)


def _orders(instance: Reclaim) -> Iterator[list[int]]:
    """Yield orders of the servers, by which ties are broken: one for each beginning as long as the demand.

    Whatever way a run breaks its ties, it is also the run on the order that begins with the servers it returns.
    """
    for first in itertools.permutations(range(instance.num_servers), instance.demand):
        yield [*first, *(server for server in range(instance.num_servers) if server not in first)]


def _algorithm_1(instance: Reclaim) -> int:
    """Return the number of jobs that Algorithm 1 preempts, ties broken as suits it best."""
    return int(min(instance.objective(server_fraction(instance, order=order)) for order in _orders(instance)))


def _worst(instance: Reclaim, other: Greedy) -> ReclaimPlan:
    """Return the plan of a greedy method whose ties are broken as suits it least."""
    return max((other(instance, order=order) for order in _orders(instance)), key=instance.objective)


def _jobs(instance: Reclaim, other: Greedy) -> float:
    """Return how many jobs another plan preempts at most; of an optimal one by the reference, which is quicker."""
    jobs = optimum(instance) if other is optimal_plan else instance.objective(_worst(instance, other))
    assert jobs is not None
    return float(jobs)


def _preempts_more(instance: Reclaim, other: Greedy = optimal_plan) -> str | None:
    """Describe how Algorithm 1 preempts more jobs than another plan, however ties of both are broken."""
    # As ties fall is enough in most cases, and quicker.
    as_they_fall = _jobs(instance, other) if other is optimal_plan else instance.objective(other(instance))
    if instance.objective(server_fraction(instance)) <= as_they_fall:
        return None
    if (preempted := _algorithm_1(instance)) <= (most := _jobs(instance, other)):
        return None
    plan = optimal_plan(instance) if other is optimal_plan else _worst(instance, other)
    at_most = "" if other is optimal_plan else " and no way to break ties preempts more"
    return (
        f"it preempts {preempted} jobs or more however ties are broken, servers {listed(np.sort(plan.servers))} "
        f"preempt {most:g}{at_most}"
    )


def _preempts_more_somehow(instance: Reclaim) -> str | None:
    """Describe how Algorithm 1 preempts more jobs than are necessary for some order of the servers."""
    fewest = _jobs(instance, optimal_plan)
    for order in _orders(instance):
        plan = server_fraction(instance, order=order)
        if instance.objective(plan) > fewest:
            return (
                f"where ties go to the servers in the order {listed(order)} it returns servers {listed(plan.servers)} "
                f"and preempts {instance.objective(plan):g}, servers "
                f"{listed(np.sort(optimal_plan(instance).servers))} preempt {fewest:g}"
            )
    return None


def _worst_of_ties(instance: Reclaim) -> ReclaimPlan:
    """Return the plan of Algorithm 1 with the first order of the servers that suits it least."""
    return _worst(instance, server_fraction)


def _never_fewer(instance: Reclaim, other: Greedy) -> str | None:
    """Describe how another cost does as well as Algorithm 1, each with the order of ties that suits the other least."""
    most = _jobs(instance, other)
    if most > _algorithm_1(instance):
        return None
    return f"it preempts {most:g} jobs at most, as Algorithm 1 does at least"


KEPT = "servers on loan that all host a job, and inelastic jobs, as section 4 has them."
"""Assumptions of the paper about clusters."""
NOT_MEASURED = "the clusters are any small ones, where the paper's figures are of its own trace."
NO_JOB = "a server may host no job"
NOT_THE_EXAMPLE = f"{NOT_MEASURED[:-1]}, and its comparison of this example."


def _all_in_use(instance: Reclaim) -> bool:
    """Return whether every server hosts a job, every job a server, and some but not all servers are returned."""
    hosts = instance.hosts
    in_use = bool(hosts.any(axis=0).all() and hosts.any(axis=1).all())
    return in_use and 0 < instance.demand < instance.num_servers


def _one_of_them(instance: Reclaim) -> bool:
    """Return whether every server hosts a job, every job a server, and one server of several is returned."""
    return _all_in_use(instance) and instance.demand == 1


def _on_one_server_each(instance: Reclaim) -> bool:
    """Return whether every job sits on one server, and some but not all servers are returned."""
    return bool((instance.hosts.sum(axis=1) == 1).all()) and 0 < instance.demand < instance.num_servers


_claim = partial(Claim, exhaustive=True, relaxed="", assumes=_all_in_use, ties="every way")


CLAIMS: list[Claim] = [
    _claim(
        name="reclaim_fewest_jobs",
        source="Aryl, section 7.3",
        statement="When fewer than 60 servers are reclaimed, Algorithm 1 preempts as few jobs as an exhaustive search.",
        reading="on every cluster, at least for some way of breaking ties.",
        by="the library: the paper measures it on its trace",
        instances=lambda rng: _reclaims(16),
        breaks=_preempts_more,
        scope="clusters with up to 16 places (jobs times servers) and no empty server, up to numbering, with every "
        "demand above 1",
        assumptions=KEPT,
        relaxed=NOT_MEASURED,
        plans=plans_of("server_fraction", OPTIMAL),
        others=(
            Reading(
                "as measured, on a trace that is not public; of what it may be like, clusters of 2 to 4 servers whose "
                "jobs have one server each, with every demand.",
                _preempts_more,
                lambda rng: _separate_jobs(),
                f"{NOT_MEASURED[:-1]}, and {NO_JOB}.",
                scope="2 to 4 servers with 0 to 4 jobs of their own each, with every demand",
                assumes=_on_one_server_each,
            ),
        ),
    ),
    _claim(
        name="reclaim_one_server",
        assumes=_one_of_them,
        source="Aryl, section 4 and Algorithm 1, lines 18 to 20",
        statement="When one server is to be returned, the one with the fewest jobs is the right one.",
        reading="it preempts the fewest jobs possible.",
        instances=lambda rng: (
            Reclaim(hosts=gpus > 0, gpus=gpus, demand=1)
            for num_servers in range(2, 6)
            for num_jobs in range(1, 5)
            for gpus in _clusters(num_jobs, num_servers)
        ),
        breaks=_preempts_more_somehow,
        scope="clusters of up to 5 servers, none empty, and 4 jobs, up to numbering, with a demand of 1",
        assumptions=KEPT + " Ties are broken in every way.",
    ),
    _claim(
        name="reclaim_separate_jobs",
        assumes=_on_one_server_each,
        source="Aryl, section 4",
        statement="What makes reclaiming hard is that servers share jobs, so that the cost of one depends on the "
        "others.",
        reading="where every job sits on one server, Algorithm 1 preempts the fewest jobs possible.",
        instances=lambda rng: _separate_jobs(),
        breaks=_preempts_more,
        scope="2 to 4 servers with 0 to 4 jobs of their own each, with every demand",
        assumptions="inelastic jobs, as section 4 has them.",
        relaxed=f"{NO_JOB}.",
    ),
    _claim(
        name="reclaim_figure_5",
        assumes=only(figure_5()),
        source="Aryl, section 4, Figure 5 and Table 1",
        statement="Where two servers of Figure 5 are to be returned, the sum of fractions of servers leads to the "
        "first two and one preempted job.",
        reading="it can: for some way of breaking the ties of Table 1, where four servers cost 0.5.",
        by="the library: the paper calls these two the optimal choice, and not the one that its cost leads to",
        instances=lambda rng: [figure_5()],
        breaks=_preempts_more,
        scope="the example",
        assumptions="the printed costs, to which the numbers of GPUs, which are not printed, are fitted.",
        others=(
            Reading(
                "it does, however ties are broken.",
                _preempts_more_somehow,
                plans=plans_of(("server_fraction with other ties", _worst_of_ties), OPTIMAL),
            ),
        ),
    ),
    _claim(
        name="reclaim_against_job_count",
        source="Aryl, section 4, Figure 5 and Table 1",
        statement="The fraction of its servers is a better cost of a job than 1, that is, than counting jobs.",
        reading="on the example: Algorithm 1 at its best preempts fewer jobs than smallest count first at its worst, "
        "as ties are broken.",
        instances=lambda rng: [figure_5()],
        breaks=partial(_never_fewer, other=smallest_count_first),
        scope="the example",
        assumes=only(figure_5()),
        assumptions=KEPT + " The paper compares this example, and averages over its trace (Figure 8).",
        others=(
            Reading(
                "on every cluster: Algorithm 1 preempts no more jobs than smallest count first, at least for some ways "
                "of breaking the ties of both.",
                partial(_preempts_more, other=smallest_count_first),
                lambda rng: _reclaims(20),
                NOT_THE_EXAMPLE,
                scope="clusters with up to 20 places (jobs times servers) and no empty server, up to numbering, with "
                "every demand above 1",
                assumes=_all_in_use,
                plans=plans_of("server_fraction", "smallest_count_first"),
            ),
        ),
    ),
    _claim(
        name="reclaim_against_gpu_fraction",
        source="Aryl, section 4, Figure 5 and Table 1",
        statement="The fraction of its servers is a better cost of a job than the fraction of its GPUs.",
        reading="on the example: Algorithm 1 at its best preempts fewer jobs than the greedy method by GPUs at its "
        "worst, as ties are broken.",
        instances=lambda rng: [figure_5()],
        breaks=partial(_never_fewer, other=gpu_fraction),
        scope="the example",
        assumes=only(figure_5()),
        assumptions=KEPT + " The paper compares this example.",
        others=(
            Reading(
                "on every cluster: Algorithm 1 preempts no more jobs than the greedy method by GPUs, at least for some "
                "ways of breaking the ties of both.",
                partial(_preempts_more, other=gpu_fraction),
                lambda rng: _reclaims(12, most_gpus=2),
                NOT_THE_EXAMPLE,
                scope="clusters with up to 12 places (jobs times servers) of 0 to 2 GPUs and no empty server, up to "
                "numbering, with every demand above 1",
                assumes=_all_in_use,
                plans=plans_of("server_fraction", "gpu_fraction"),
            ),
        ),
    ),
]
