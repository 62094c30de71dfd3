"""Heuristics of ``aryl.reclaim`` that one row of weights makes: take the cheapest server, look again, repeat.

The cost of a server is a weighted sum over the jobs on it that still run, of what :data:`FEATURES` tells of each.
"""

import numpy as np

from instances.aryl.reclaim import Reclaim, ReclaimPlan

PROBLEM = "aryl.reclaim"
BESIDE = ("smallest_count_first", "server_fraction", "smallest_count_updated", "local_search")

FEATURES = (
    "1",
    "1 / servers it runs on",
    "1 / servers it runs on, squared",
    "1 if on one server alone",
    "1 if on more servers than are to be returned",
    "fraction of its GPUs here",
    "fraction of the jobs on its servers that it is",
    "jobs beside it on its other servers / 10",
)
"""What is told of a job on a server."""

SERVER_FRACTION = np.array([0.0, 1, 0, 0, 0, 0, 0, 0])
"""The cost of the paper's Algorithm 1."""
START = SERVER_FRACTION
"""Where the search begins."""

NAMED = {"count and share": np.array([1.0, 1, 0, 0, 0, 0, 0, 0])}
"""What a person reads out of the weights that ``--seed 3`` finds."""


def features(instance: Reclaim, running: np.ndarray, left: np.ndarray) -> np.ndarray:
    """(features, n, s): what is told of every job on every server; 0 where it has no base workers or is preempted."""
    hosts = instance.hosts & running[:, None] & left
    width = np.maximum(hosts.sum(axis=1), 1)[:, None]
    counts = hosts.sum(axis=0)
    total = (hosts * counts).sum(axis=1)[:, None]
    gpus = np.where(hosts, instance.gpus, 0)
    told = (
        np.ones((1, 1)),
        1 / width,
        1 / width**2,
        width == 1,
        width > instance.demand - (~left).sum(),
        gpus / np.maximum(gpus.sum(axis=1), 1)[:, None],
        width / np.maximum(total, 1),
        (total - counts - width + 1) / 10,
    )
    return np.stack([hosts * one for one in told])


def by_weights(instance: Reclaim, weights: np.ndarray) -> ReclaimPlan:
    """The greedy method with these weights, one for each feature."""
    running, left = np.ones(instance.num_jobs, bool), np.ones(instance.num_servers, bool)
    chosen = []
    for _ in range(min(instance.demand, instance.num_servers)):
        costs = np.tensordot(weights, features(instance, running, left), 1).sum(axis=0)
        server = int(np.argmin(np.where(left, np.round(costs, 9), np.inf)))
        chosen.append(server)
        left[server] = False
        running &= ~instance.hosts[:, server]
    return ReclaimPlan(servers=np.array(chosen, int))
