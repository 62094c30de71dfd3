"""Give back the cheapest server, look again, repeat: a job costs a server 1, and 1 over the servers that it is on."""

import numpy as np

from instances.aryl.reclaim import ReclaimPlan


def heuristic(instance):
    """The plan."""
    running, left, chosen = np.ones(instance.num_jobs, bool), np.ones(instance.num_servers, bool), []
    for _ in range(instance.demand):
        hosts = instance.hosts & running[:, None] & left
        costs = (hosts * (1 + 1 / np.maximum(hosts.sum(axis=1), 1))[:, None]).sum(axis=0)
        server = int(np.argmin(np.where(left, np.round(costs, 9), np.inf)))
        chosen.append(server)
        left[server] = False
        running &= ~instance.hosts[:, server]
    return ReclaimPlan(servers=chosen)
