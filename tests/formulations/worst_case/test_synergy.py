"""Worst cases of Synergy-Tune on one server against enumeration, and the number behind them."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import formulations
from formulations.worst_case.synergy.tuning import LEAST_GAIN
from heuristics.synergy.allocation import greedy_marginal
from heuristics.synergy.tuning import tune
from instances.synergy.allocation import SynergyAllocation
from instances.synergy.tuning import Tuning
from validation import worst_case


def server(jobs, share, kind=Tuning):
    """One server that is full of jobs of one GPU, by (cores, throughput with them)."""
    n = len(jobs)
    configs = [
        np.array([[min(cores, share), 1, 1], *([[cores, 1, worth]] if cores > share else [])], float)
        for cores, worth in jobs
    ]
    return kind(
        num_servers=1,
        server_gpus=n,
        server_cpus=float(n * share),
        server_memory=float(n),
        gpu_demands=np.ones(n, int),
        configs=tuple(configs),
    )


def most(jobs, share):
    """The greatest throughput over who has what he wants."""
    best = 0.0
    for chosen in product((False, True), repeat=len(jobs)):
        cores = sum(c if all_of_it else min(c, share) for (c, _), all_of_it in zip(jobs, chosen, strict=True))
        if cores <= len(jobs) * share:
            best = max(best, sum(w if all_of_it else 1 for (_, w), all_of_it in zip(jobs, chosen, strict=True)))
    return best


@pytest.mark.parametrize(("num_jobs", "share"), [(2, 3), (3, 2), (3, 3)])
def test_tune_worst_case_is_that_of_all_demands(num_jobs, share):
    # For fixed demands the ratio is greatest where each gain is the least or the most.
    kinds = [(cores, 1.0) for cores in range(1, share + 1)]
    for cores in range(share + 1, num_jobs * share + 1):
        kinds += [(cores, 1 + LEAST_GAIN), (cores, cores / share)]
    worst = 1.0
    for jobs in combinations_with_replacement(kinds, num_jobs):
        instance = server(jobs, share)
        worst = max(worst, most(jobs, share) / instance.objective(tune(instance)))
    found = worst_case("synergy.tuning", "tune", size=num_jobs, cores_per_gpu=share)
    assert found.value == pytest.approx(worst, rel=1e-9)


def reverted(num_jobs, share):
    """A job that wants much for little is placed first, keeps the next one at its share, and is then reverted."""
    cores = share + (num_jobs - 2) * (share - 1)
    return [(num_jobs * share - num_jobs + 1, 1 + LEAST_GAIN), (cores, cores / share), *[(1, 1.0)] * (num_jobs - 2)]


@pytest.mark.parametrize(("num_jobs", "share"), [(3, 2), (3, 3), (4, 3), (8, 3), (8, 12)])
def test_tune_leaves_the_others_cores_unused(num_jobs, share):
    # Jobs that need one core of their share leave share - 1; there are at most num_jobs - 2 beside two sensitive ones.
    instance = server(reverted(num_jobs, share), share)
    worst = 1 + (num_jobs - 2) * (share - 1) / (num_jobs * share)
    best = formulations.solve(instance).objective
    assert best / instance.objective(tune(instance)) == pytest.approx(worst, rel=1e-9)
    if num_jobs <= 4:
        found = worst_case("synergy.tuning", "tune", size=num_jobs, cores_per_gpu=share)
        assert (found.status, found.value) == ("optimal", pytest.approx(worst, rel=1e-9))


# --- allocation -------------------------------------------------------------------------------------


NEARLY = 1 - 1e-6


def greedy_ratio(jobs, share):
    instance = server(jobs, share, SynergyAllocation)
    return most(jobs, share) / instance.objective(greedy_marginal(instance))


@pytest.mark.parametrize(("num_jobs", "share"), [(2, 3), (3, 2), (3, 3)])
def test_greedy_marginal_worst_case_is_that_of_all_demands(num_jobs, share):
    # Gains for each core that are hardly less than others let either of two jobs come first.
    kinds = [(cores, 1.0) for cores in range(1, share + 1)]
    kinds += [
        (c, 1 + (c - share) / share * part) for c in range(share + 1, num_jobs * share + 1) for part in (1, NEARLY)
    ]
    worst = max(greedy_ratio(jobs, share) for jobs in combinations_with_replacement(kinds, num_jobs))
    found = worst_case("synergy.allocation", "greedy_marginal", size=num_jobs, cores_per_gpu=share)
    assert found.value == pytest.approx(worst, rel=1e-5)
    rng = np.random.default_rng(num_jobs)
    for _ in range(200):
        cores = rng.integers(1, num_jobs * share + 1, num_jobs)
        jobs = [(int(c), 1 + rng.random() * max(0, c - share) / share) for c in cores]
        assert greedy_ratio(jobs, share) <= found.value * (1 + 1e-6)


@pytest.mark.parametrize(("num_jobs", "share"), [(3, 3), (4, 3), (5, 2), (40, 3)])
def test_a_job_that_wants_one_core_keeps_out_one_that_wants_all(num_jobs, share):
    left = (num_jobs - 2) * (share - 1)
    wants = [(share + 1, 1 + 1.000001 / share), (share + left, 1 + left / share)]
    value = (num_jobs + left / share) / (num_jobs + 1 / share)
    jobs = [*wants, *[(1, 1.0)] * (num_jobs - 2)]
    # Who has what is the same: either of the two has all that it wants.
    best = num_jobs - 2 + 1 + wants[1][1]
    instance = server(jobs, share, SynergyAllocation)
    assert best / instance.objective(greedy_marginal(instance)) == pytest.approx(value, rel=1e-5)
    if num_jobs < 6:
        found = worst_case("synergy.allocation", "greedy_marginal", size=num_jobs, cores_per_gpu=share)
        assert found.value == pytest.approx(value, rel=1e-6)
