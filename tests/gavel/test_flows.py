"""Policies without pairs as flows of least cost: an oracle in whole numbers that shares nothing with the programs.

In worker time, y = scale factor times x, a job has its scale factor to give and a pool takes as much as it has
workers: a transportation problem, whatever the scale factors, with a node for each type between jobs and pools where
two types draw on one pool.  Weights are whole, because the network simplex cycles on rounded ones.
"""

import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest

import formulations
from instances.gavel import fifo, total_throughput
from instances.gavel.fifo import Fifo
from instances.gavel.total_throughput import TotalThroughput

from ..effort import rounds

GENERATE = {TotalThroughput: total_throughput.generate, Fifo: fifo.generate}
POLICIES = list(GENERATE)


def fits(instance, job, kind):
    return int(instance.scale_factors[job]) <= int(instance.num_workers[instance.pools[kind]])


def worth(instance, job, kind):
    """What all of a job's time on a type adds to the objective, exactly."""
    speed = Fraction(float(instance.throughputs[job, kind]))
    if isinstance(instance, TotalThroughput):
        return speed
    fastest = max(float(s) for k, s in enumerate(instance.throughputs[job]) if fits(instance, job, k))
    return (instance.num_jobs - job) * speed / Fraction(fastest)


def least_cost(instance, unit):
    """The optimum by network simplex, with worths per worker counted in whole units."""
    network = nx.DiGraph()
    supply = int(instance.scale_factors.sum())
    network.add_node("source", demand=-supply)
    network.add_node("sink", demand=supply)
    for pool, workers in enumerate(instance.num_workers.tolist()):
        network.add_edge(("pool", pool), "sink", capacity=workers)
    for kind, pool in enumerate(instance.pools.tolist()):
        network.add_edge(("type", kind), ("pool", pool))
    for job, workers in enumerate(instance.scale_factors.tolist()):
        network.add_edge("source", ("job", job), capacity=workers)
        for kind in range(instance.num_types):
            if fits(instance, job, kind):
                units = worth(instance, job, kind) / (workers * unit)
                network.add_edge(("job", job), ("type", kind), weight=-round(units))
    # Jobs may wait.
    network.add_edge("source", "sink")
    cost, _ = nx.network_simplex(network)
    return -cost * unit


def common_unit(instance):
    """A unit in which all worths per worker are whole."""
    denominators = [
        (worth(instance, job, kind) / int(instance.scale_factors[job])).denominator
        for job in range(instance.num_jobs)
        for kind in range(instance.num_types)
        if fits(instance, job, kind)
    ]
    return Fraction(1, math.lcm(*denominators))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("first", rounds(50)[::50])
def test_small_clusters_exactly(brute, policy, first):
    """Ties, zeros, empty and shared pools, jobs as wide as the pool or wider."""
    for seed in range(first, first + 50):
        fields = brute.draw(seed, max_jobs=7)
        instance = policy(**{name: value for name, value in fields.items() if "pair" not in name})
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(float(least_cost(instance, common_unit(instance))), rel=1e-9)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("first", rounds(50)[::50])
def test_generated_clusters(policy, first):
    """Scale factors up to 8 and, every other time, two placements on each pool; units of 1e-12 of the most."""
    for seed in range(first, first + 50):
        instance = GENERATE[policy](
            seed, num_jobs=16, workers_per_pool=8, pair_fraction=0.0, unconsolidated=seed % 2 == 1
        )
        most = max(worth(instance, job, kind) for job in range(16) for kind in range(instance.num_types))
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(float(least_cost(instance, most / 10**12)), rel=1e-8)
        assert np.unique(instance.pools).size < instance.num_types or not seed % 2


def test_three_jobs():
    """Weights 3, 2, 1: job 0 on the V100 (3) and job 1 on the K80 (2 * 1/3)."""
    assert least_cost(fifo.three_jobs(), common_unit(fifo.three_jobs())) == Fraction(11, 3)
