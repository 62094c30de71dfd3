"""The instances at which all problems are measured: how they grow, and what a paper's cluster holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from instances.base import Instance
from validation.catalogue import CATALOGUE

__all__ = ["beside", "drawn", "on_cluster", "three"]

BESIDE: dict[str, Callable[[int], dict[str, Any]]] = {
    # With as many GPUs for any number of jobs there would soon be no plan.
    "elasticflow.allocation": lambda size: {"num_gpus": 4 * size, "tightness": 0.15},
    "elasticflow.best_effort": lambda size: {"num_gpus": 2 * size, "tightness": 0.15},
    "elasticflow.minimum_satisfactory_share": lambda size: {"num_gpus": 4 * size, "tightness": 0.15},
    # AlloX and matchings take jobs of one worker.
    "gavel.makespan": lambda size: {"multi_worker": False},
    "gavel.round_assignment": lambda size: {"wide": 0.0},
}
BETWEEN: dict[str, int] = {
    "afs.elastic_sharing": 12,
    "afs.gpu_placement": 32,
    "afs.network_packing": 100,
    "afs.two_job": 16,
    "aryl.base_allocation": 12,
    "aryl.elastic_allocation": 160,
    "aryl.placement": 100,
    "aryl.reclaim": 60,
    "aryl.two_job": 64,
    "elasticflow.admission": 20,
    "elasticflow.allocation": 12,
    "elasticflow.best_effort": 12,
    "elasticflow.minimum_satisfactory_share": 12,
    "elasticflow.placement": 16,
    "gavel.round_assignment": 128,
    "prism.placement": 20,
    "sia.goodput": 40,
    "shockwave.window": 30,
    "eplb.placement": 12,
    "synergy.allocation": 16,
    "synergy.heterogeneous_allocation": 8,
    "synergy.placement": 8,
    "synergy.tuning": 8,
}
"""Sizes between the smallest of the catalogue and the papers'; Gavel's policies have that of all of them."""
CLUSTER: dict[str, dict[str, Any]] = {
    "afs.elastic_sharing": {"num_jobs": 100, "num_gpus": 64},
    "afs.gpu_placement": {"num_jobs": 256},
    "afs.network_packing": {"num_jobs": 1000},
    "afs.two_job": {"max_share": 64},
    "aryl.base_allocation": {"num_jobs": 200, "capacity": 128},
    "aryl.elastic_allocation": {"num_jobs": 1000},
    "aryl.placement": {"total_workers": 5000},
    "aryl.reclaim": {"num_servers": 500, "demand": 150},
    "aryl.two_job": {"num_gpus": 512},
    "elasticflow.admission": {"num_jobs": 100},
    "elasticflow.allocation": {"num_jobs": 100, "num_gpus": 400, "tightness": 0.15},
    "elasticflow.best_effort": {"num_jobs": 50, "num_gpus": 128},
    "elasticflow.minimum_satisfactory_share": {"num_jobs": 100, "num_gpus": 400, "tightness": 0.15},
    "elasticflow.placement": {"num_servers": 256},
    "gavel.round_assignment": {"num_jobs": 2048},
    "prism.placement": {"num_jobs": 60},
    "sia.goodput": {"num_jobs": 500, "num_types": 4, "gpus_per_job": 4.096},
    "shockwave.window": {"num_jobs": 200},
    "eplb.placement": {"num_experts": 256, "experts_per_gpu": 8},
    "synergy.allocation": {"num_servers": 64},
    "synergy.heterogeneous_allocation": {"num_servers": 32},
    "synergy.placement": {"num_servers": 64},
    "synergy.tuning": {"num_servers": 64},
}
"""About what the papers' clusters hold: what is drawn otherwise than by default."""
POLICY = 128, {"num_jobs": 1024}


def beside(problem: str, size: int) -> dict[str, Any]:
    """Return what is drawn otherwise than by default, beside the size."""
    return BESIDE[problem](size) if problem in BESIDE else {}


def on_cluster(problem: str) -> dict[str, Any]:
    """Return what is drawn otherwise than by default, the size as well, for an instance of the papers' sizes."""
    return CLUSTER.get(problem, POLICY[1])


def three(problem: str) -> list[dict[str, Any]]:
    """Return what is drawn at the smallest size of the catalogue, one between, and that of the papers."""
    entry = CATALOGUE[problem]
    smaller = entry.sizes[0], BETWEEN.get(problem, POLICY[0])
    return [{entry.size: size, **beside(problem, size)} for size in smaller] + [on_cluster(problem)]


def drawn(problem: str, settings: dict[str, Any], seed: int) -> Instance[Any]:
    """Draw an instance."""
    return CATALOGUE[problem].generate(seed, **settings)
