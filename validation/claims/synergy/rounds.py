"""Small rounds, and rounds of the paper's size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from instances.schema import FloatArray
from instances.synergy.profiles import TASKS
from instances.synergy.sensitivity import THROUGHPUT
from instances.synergy.synthetic import SERVER_CPUS, SERVER_GPUS, SERVER_MEMORY, draw_demands
from instances.synergy.tuning import Tuning

__all__ = [
    "AT_SHARE",
    "EXCHANGING",
    "FULL_ROUND",
    "INSENSITIVE",
    "KEPT",
    "SENSITIVE",
    "WANTS",
    "Demand",
    "are_capped",
    "are_full",
    "are_within",
    "published",
    "rounds",
]

SHARE = 2.0
"""CPU cores, and GB, of a server per GPU."""


class Demand(NamedTuple):
    """CPU cores, GB and throughput of a job's best case, per GPU; and what it needs within its share."""

    cpus: int
    memory: int
    throughput: int
    whole_share: bool = False
    """True if within its share it needs all of that, and not only as much as in its best case."""


Kind = tuple[int, Demand]
"""GPUs of a job and its best case."""

INSENSITIVE = Demand(1, 1, 1)
"""A job that needs less than its share."""
AT_SHARE = Demand(2, 2, 1)
"""A job that needs its share."""
SENSITIVE = (Demand(3, 1, 2), Demand(1, 3, 2), Demand(3, 3, 2))
"""Jobs that need more than their share of a resource."""
EXCHANGING = (Demand(3, 1, 2, whole_share=True), Demand(1, 3, 2, whole_share=True))
"""Jobs to which cores can stand in for memory: at their share they need more of one of the two than at their best."""


def _job(gpus: int, best: Demand) -> FloatArray:
    """Return a job's configurations within its share, at 1 per GPU, and at its best case, (1 or 2, 3) float."""
    wanted = best[:THROUGHPUT]
    within = np.full(THROUGHPUT, SHARE) if best.whole_share else np.minimum(wanted, SHARE)
    return gpus * np.unique(np.array([(*within, 1.0), (*wanted, best.throughput)], float), axis=0)


def _cluster(num_servers: int, server_gpus: int, jobs: Sequence[Kind], *, allow_split: bool) -> Tuning:
    return Tuning(
        num_servers=num_servers,
        server_gpus=server_gpus,
        server_cpus=SHARE * server_gpus,
        server_memory=SHARE * server_gpus,
        gpu_demands=np.array([gpus for gpus, _ in jobs]),
        configs=tuple(_job(gpus, best) for gpus, best in jobs),
        allow_split=allow_split,
    )


def are_within(instance: Tuning) -> bool:
    """Return whether the jobs hold no more than all GPUs of equal servers."""
    return int(instance.gpu_demands.sum()) <= instance.num_servers * instance.server_gpus


def are_full(instance: Tuning) -> bool:
    """Return whether the jobs hold all GPUs of equal servers."""
    return int(instance.gpu_demands.sum()) == instance.num_servers * instance.server_gpus


def are_capped(instance: Tuning) -> bool:
    """Return whether the jobs hold all GPUs of equal servers, under the server cap of section 6."""
    return instance.server_cap and are_full(instance)


def rounds(
    most_gpus: int,
    demands: Sequence[Demand] = (INSENSITIVE, *SENSITIVE),
    *,
    num_servers: Sequence[int] = (1, 2, 3),
    allow_split: bool = True,
    single_gpu: bool = False,
) -> Iterator[Tuning]:
    """Yield all rounds whose jobs hold all GPUs, at most ``most_gpus`` of them, the fewest GPUs and jobs first."""
    for total, servers in itertools.product(range(1, most_gpus + 1), num_servers):
        if total % servers == 0:
            largest = 1 if single_gpu else total if allow_split else total // servers
            kinds = list(itertools.product(range(1, largest + 1), demands))
            for num_jobs in range(1, total + 1):
                for jobs in _teams(kinds, num_jobs, total):
                    yield _cluster(servers, total // servers, jobs, allow_split=allow_split)


def _teams(kinds: Sequence[Kind], num_jobs: int, gpus: int) -> Iterator[tuple[Kind, ...]]:
    """Yield every multiset of ``num_jobs`` of the kinds, ascending in GPUs, that hold ``gpus`` in all."""
    if not num_jobs:
        if not gpus:
            yield ()
        return
    for position, kind in enumerate(kinds):
        if kind[0] * num_jobs > gpus:
            return
        for rest in _teams(kinds[position:], num_jobs - 1, gpus - kind[0]):
            yield (kind, *rest)


# --- rounds of the paper's size --------------------------------------------------------------------

PUBLISHED: dict[str, tuple[tuple[float, float, float], ...]] = {
    "alexnet": ((3, 62.5, 1), (4, 62.5, 1.25), (5, 62.5, 1.53), (6, 62.5, 1.75), (9, 62.5, 2), (12, 125, 2.94)),
    "res18": ((3, 62.5, 1), (4, 62.5, 1.3), (5, 62.5, 1.53), (6, 62.5, 1.75), (9, 62.5, 2.4)),
    "res50": ((3, 62.5, 1), (4, 62.5, 1.15)),
    "mobilenet": ((3, 62.5, 1), (4, 62.5, 1.3), (5, 62.5, 1.49), (6, 62.5, 1.55)),
    "shufflenet": ((3, 62.5, 1), (4, 62.5, 1.25), (5, 62.5, 1.53), (6, 62.5, 1.75), (9, 62.5, 2), (12, 125, 2.89)),
    "gnmt": ((1, 20.83, 1),),
    "transformer": ((1, 20.83, 1),),
    "lstm": ((1, 20.83, 1),),
    "m5": ((3, 62.5, 1), (4, 62.5, 1.2), (5, 62.5, 1.4), (6, 62.5, 1.5), (6, 125, 2), (6, 187.5, 2.5)),
    "deepspeech": ((3, 62.5, 1),),
}
"""CPU cores, GB and throughput per GPU of the models in the authors' published profiles for 3 cores per GPU.

Without the points that are slower than the GPU-proportional share, and those that others dominate.
"""

FULL_ROUND = "128 GPUs in use on 16 servers of 8 GPUs, 24 cores and 500 GB, by published models in the mix (20, 70, 10)"
"""Description of the random full rounds."""


def published(rng: np.random.Generator, *, multi_gpu: bool = False) -> Iterator[Tuning]:
    """Yield rounds of the paper's cluster of 128 GPUs, in its mix of tasks, without end."""
    while True:
        tasks, gpu_demands = draw_demands(rng, 16 * SERVER_GPUS, multi_gpu=multi_gpu)
        models = [str(rng.choice(TASKS[task])) for task in tasks]
        yield Tuning(
            num_servers=16,
            server_gpus=SERVER_GPUS,
            server_cpus=SERVER_CPUS,
            server_memory=SERVER_MEMORY,
            gpu_demands=gpu_demands,
            configs=tuple(
                gpus * np.array(PUBLISHED[model]) for model, gpus in zip(models, gpu_demands.tolist(), strict=True)
            ),
        )


WANTS = "want 1 or 3 cores and 1 or 3 GB per GPU where the share is 2 and 2"
"""Description of the demands of the families' jobs."""

KEPT = (
    "homogeneous servers, fixed GPU demands, runnable jobs that hold all GPUs, the server cap of section 6. Profiles "
    "are given, as the paper has them; here they are small whole numbers."
)
"""Assumptions of the paper that they keep."""
