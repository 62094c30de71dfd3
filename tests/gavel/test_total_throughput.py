"""gavel.total_throughput as a flow of least cost."""

import networkx as nx
import numpy as np
import pytest

import formulations
from heuristics.gavel.total_throughput import fastest_first
from instances.gavel.sharing import Allocation
from instances.gavel.total_throughput import TotalThroughput, generate, three_jobs


@pytest.mark.parametrize("seed", range(5))
def test_jobs_of_one_worker_are_a_flow_of_least_cost(seed):
    """Without pairs every time fraction is worth its throughput: a transportation problem, solved in integers."""
    rng = np.random.default_rng(seed)
    throughputs = rng.integers(1, 10_000, (200, 4))
    throughputs[:, 1:] *= rng.random((200, 3)) < 0.6
    workers = rng.integers(1, 60, 4)
    network = nx.DiGraph()
    for job, worker_type in np.argwhere(throughputs).tolist():
        network.add_edge("source", ("job", job), capacity=1)
        network.add_edge(("job", job), ("type", worker_type), weight=-int(throughputs[job, worker_type]))
        network.add_edge(("type", worker_type), "sink", capacity=int(workers[worker_type]))
    # A worker may idle.
    network.add_edge("source", "sink")
    network.nodes["source"]["demand"], network.nodes["sink"]["demand"] = -200, 200
    solution = formulations.solve(TotalThroughput(throughputs=throughputs.astype(float), num_workers=workers))
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(-nx.min_cost_flow_cost(network), rel=1e-9)


def test_three_jobs():
    assert formulations.solve(three_jobs()).objective == pytest.approx(110)


def test_maximised_although_the_paper_prints_minimize():
    """As printed, giving nobody anything would be optimal."""
    nothing = Allocation(time_fractions=np.zeros((3, 2)))
    assert three_jobs().violations(nothing) == []
    assert three_jobs().objective(nothing) == 0
    assert three_jobs().sense == "max"


def test_pairs_add_both_partners():
    instance = TotalThroughput(
        throughputs=[[2.0], [3.0]], num_workers=[1], pairs=[[0, 1]], pair_throughputs=[[[1.75, 1.5]]]
    )
    assert formulations.solve(instance).objective == pytest.approx(3.25)


def test_fastest_first_has_half_of_the_optimum_of_a_matching():
    for seed in range(40):
        instance = generate(seed, num_jobs=8, multi_worker=False, pair_fraction=0.0, workers_per_pool=1 + seed % 3)
        assert instance.objective(fastest_first(instance)) >= formulations.solve(instance).objective / 2


def test_fastest_first_can_lose_nearly_half():
    """Taking the greatest first, 1.01, leaves the other job nothing, where the two 1's are worth 2."""
    instance = TotalThroughput(throughputs=[[1.01, 1.0], [1.0, 0.0]], num_workers=[1, 1])
    assert instance.objective(fastest_first(instance)) == pytest.approx(1.01)
    assert formulations.solve(instance).objective == pytest.approx(2)
