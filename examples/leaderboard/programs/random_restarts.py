"""The best of 50 random choices of servers, each made better by exchanges of one server for another."""

import numpy as np

from instances.aryl.reclaim import ReclaimPlan


def heuristic(instance, *, rng):
    """The plan."""
    hosts = instance.hosts
    best, least = np.arange(instance.demand), np.inf
    for _ in range(50):
        order = rng.permutation(instance.num_servers)
        chosen, others = order[: instance.demand], order[instance.demand :]
        value, better = hosts[:, chosen].any(axis=1).sum(), True
        while better:
            better = False
            for i in range(len(chosen)):
                rest = hosts[:, np.delete(chosen, i)].any(axis=1)
                values = (rest[:, None] | hosts[:, others]).sum(axis=0)
                j = int(values.argmin()) if len(others) else 0
                if len(others) and values[j] < value:
                    chosen[i], others[j] = others[j], chosen[i]
                    value, better = values[j], True
        if value < least:
            best, least = chosen.copy(), value
    return ReclaimPlan(servers=best)
