"""What Aryl (EuroSys'23 as Lyra) states of the servers to return (section 4), put to the test.

Optima are found by trying everything: the instances are small, and what judges the heuristics
here shares nothing with the models of :mod:`formulations`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from heuristics.aryl.reclaim import gpu_fraction, server_fraction, smallest_count_first
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.schema import IntArray
from validation.claims.words import listed
from validation.testing.claims import Claim
from validation.testing.transform import take

__all__ = ["CLAIMS"]


def _clusters(num_jobs: int, num_servers: int, most_gpus: int = 1) -> Iterator[IntArray]:
    """(n, s) int: GPUs of jobs on servers; every cluster once up to its numbering, no server or job empty."""
    columns = [c for c in itertools.product(range(most_gpus + 1), repeat=num_jobs) if any(c)]
    orders = list(itertools.permutations(range(num_jobs)))
    for servers in itertools.combinations_with_replacement(columns, num_servers):
        # Of all numberings of the jobs, the one whose servers come first in order.
        if all(map(any, zip(*servers, strict=True))) and all(
            list(servers) <= sorted(tuple(column[job] for job in order) for column in servers) for order in orders
        ):
            yield np.array(servers).T


def _reclaims(most_places: int, most_gpus: int = 1) -> Iterator[Reclaim]:
    """Clusters of at most ``most_places`` = jobs times servers, with every demand above 1."""
    sizes = itertools.product(range(1, most_places + 1), range(3, most_places + 1))
    for num_jobs, num_servers in sorted(sizes, key=lambda size: (size[0] * size[1], size)):
        if num_jobs * num_servers <= most_places:
            for gpus in _clusters(num_jobs, num_servers, most_gpus):
                for demand in range(2, num_servers):
                    yield Reclaim(hosts=gpus > 0, gpus=gpus, demand=demand)


def _two_of(most_jobs: int, most_servers: int) -> Iterator[Reclaim]:
    for num_servers in range(3, most_servers + 1):
        for num_jobs in range(1, most_jobs + 1):
            for gpus in _clusters(num_jobs, num_servers):
                yield Reclaim(hosts=gpus > 0, gpus=gpus, demand=2)


def _separate_jobs() -> Iterator[Reclaim]:
    """Jobs on one server each, 0 to 4 on every server."""
    for num_servers in range(2, 6):
        for counts in itertools.product(range(5), repeat=num_servers):
            if any(counts):
                gpus = np.repeat(np.eye(num_servers, dtype=np.int64), counts, axis=0)
                for demand in range(1, num_servers):
                    yield Reclaim(hosts=gpus > 0, gpus=gpus, demand=demand)


def _algorithm_1(instance: Reclaim) -> int:
    """Jobs that Algorithm 1 preempts, ties broken as suits it best.

    Ties go to the lowest server, so that a run that breaks them in another way is the run on
    servers numbered in the order in which they are returned.
    """
    runs = []
    for first in itertools.permutations(range(instance.num_servers), instance.demand):
        rest = [server for server in range(instance.num_servers) if server not in first]
        renumbered = take(instance, "s", [*first, *rest])
        runs.append(renumbered.objective(server_fraction(renumbered)))
    return int(min(runs))


def _preempts_more(instance: Reclaim, other: ReclaimPlan, factor: int = 1) -> str:
    """How Algorithm 1 preempts more than ``factor`` times the jobs of another plan, however ties are broken."""
    limit = factor * instance.objective(other)
    # As its ties fall is enough in most cases, and quicker.
    if instance.objective(server_fraction(instance)) <= limit:
        return ""
    preempted = _algorithm_1(instance)
    if preempted <= limit:
        return ""
    return (
        f"it preempts {preempted} jobs or more however ties are broken, servers {listed(np.sort(other.servers))} "
        f"preempt {instance.objective(other):g}"
    )


def _fewest(instance: Reclaim) -> ReclaimPlan:
    choices = itertools.combinations(range(instance.num_servers), instance.demand)
    servers = min(choices, key=lambda chosen: int(instance.hosts[:, chosen].any(axis=1).sum()))
    return ReclaimPlan(servers=np.array(servers))


CLAIMS: list[Claim] = [
    Claim(
        name="reclaim_fewest_jobs",
        source="Aryl, section 4, Algorithm 1",
        statement="Returning the server of least preemption cost, again and again, keeps preemptions to a minimum.",
        reading="it preempts the fewest jobs possible, at least for some way of breaking ties.",
        instances=lambda rng: _reclaims(16),
        breaks=lambda instance: _preempts_more(instance, _fewest(instance)),
        scope="clusters with up to 16 places (jobs times servers) and no empty server, up to numbering, with every "
        "demand above 1",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_within_twice",
        source="Aryl, section 4, Algorithm 1",
        statement="Returning the server of least preemption cost, again and again, keeps preemptions to a minimum.",
        reading="a weaker one: it preempts at most twice the fewest jobs possible, at least for some way of breaking "
        "ties. The factor is this library's.",
        instances=lambda rng: _two_of(4, 8),
        breaks=lambda instance: _preempts_more(instance, _fewest(instance), factor=2),
        scope="clusters of up to 8 servers, none empty, and 4 jobs, up to numbering, with a demand of 2",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_one_server",
        source="Aryl, section 4, Algorithm 1",
        statement="When one server is to be returned, the one with the fewest jobs is the right one.",
        reading="it preempts the fewest jobs possible.",
        instances=lambda rng: (
            Reclaim(hosts=gpus > 0, gpus=gpus, demand=1)
            for num_servers in range(2, 6)
            for num_jobs in range(1, 5)
            for gpus in _clusters(num_jobs, num_servers)
        ),
        breaks=lambda instance: _preempts_more(instance, _fewest(instance)),
        scope="clusters of up to 5 servers, none empty, and 4 jobs, up to numbering, with a demand of 1",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_separate_jobs",
        source="Aryl, section 4",
        statement="What makes reclaiming hard is that servers share jobs, so that the cost of one depends on the "
        "others.",
        reading="where every job sits on one server, Algorithm 1 preempts the fewest jobs possible.",
        instances=lambda rng: _separate_jobs(),
        breaks=lambda instance: _preempts_more(instance, _fewest(instance)),
        scope="2 to 5 servers with 0 to 4 jobs of their own each, with every demand",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_against_job_count",
        source="Aryl, section 4, Table 1",
        statement="The fraction of its servers is a better cost of a job than 1, that is, than counting jobs.",
        reading="on no cluster does Algorithm 1 preempt more jobs than smallest count first, at least for some way of "
        "breaking its ties. The paper compares examples and averages.",
        instances=lambda rng: _reclaims(20),
        breaks=lambda instance: _preempts_more(instance, smallest_count_first(instance)),
        scope="clusters with up to 20 places (jobs times servers) and no empty server, up to numbering, with every "
        "demand above 1",
        exhaustive=True,
    ),
    Claim(
        name="reclaim_against_gpu_fraction",
        source="Aryl, section 4, Table 1",
        statement="The fraction of its servers is a better cost of a job than the fraction of its GPUs.",
        reading="on no cluster does Algorithm 1 preempt more jobs than the greedy method by GPUs, at least for some "
        "way of breaking its ties. The paper compares examples and averages.",
        instances=lambda rng: _reclaims(12, most_gpus=2),
        breaks=lambda instance: _preempts_more(instance, gpu_fraction(instance)),
        scope="clusters with up to 12 places (jobs times servers) of 0 to 2 GPUs and no empty server, up to numbering, "
        "with every demand above 1",
        exhaustive=True,
    ),
]
