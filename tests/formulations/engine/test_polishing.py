"""Plans near the points of solvers that the judge refuses."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import formulations
from formulations import SolverDisagreement
from formulations.engine.covers import without_refused
from formulations.engine.linear import LinearProgram, csr
from instances.afs.network_packing import NetworkPacking
from instances.aryl.placement import ArylPlacement
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.synergy.allocation import SynergyAllocation
from instances.synergy.tuning import Tuning
from validation.testing.second_opinion import optimum


def tuning(cpus, memory, *tables, gpus, servers=2, **options):
    return Tuning(
        num_servers=servers,
        server_gpus=6,
        server_cpus=cpus,
        server_memory=memory,
        gpu_demands=gpus,
        configs=tables,
        fair_throughputs=[0.0] * len(tables),
        server_cap=False,
        **options,
    )


def allocation(cpus, memory, *tables, fair=None):
    return SynergyAllocation(
        num_servers=1,
        server_gpus=6,
        server_cpus=cpus,
        server_memory=memory,
        gpu_demands=[1] * len(tables),
        configs=tables,
        fair_throughputs=fair or [0.0] * len(tables),
        server_cap=False,
    )


def share(gpus, iterations, deadlines, *curves):
    return MinimumSatisfactoryShare(num_gpus=gpus, iterations=iterations, deadlines=deadlines, throughputs=curves)


ODD = {
    "tuning, a plan below": tuning(
        209040999.77,
        47840.0,
        [
            [511700.0, 3554.0, 1.097],
            [4429000.0, 6876.0, 1.745],
            [9041000.0, 9840.0, 2.685],
            [11470000.0, 11620.0, 3.985],
        ],
        [[200000000.0, 38000.0, 43.0]],
        gpus=[1, 4],
        servers=1,
        allow_split=False,
    ),
    "tuning, nothing below": tuning(
        0.015104250319377904,
        2309244.990156672,
        [[0.072824, 1863900.0, 254360.0], [0.014245, 1411200.0, 312960.0]],
        [[0.141176, 1360310.0, 12380.7], [0.0159635, 3207290.0, 3988.39]],
        gpus=[4, 2],
    ),
    "tuning, within the widened limit": tuning(
        206199999504.2134, 30.520000004364938, [[206199999999.99997, 30.52, 0.585]], gpus=[5], allow_split=False
    ),
    "allocation, a plan below": allocation(
        72177.1685,
        16635289743355.58,
        [[71300.0, 252000000000.0, 7.84]],
        [
            [73.73429, 14987900000000.0, 110184.2],
            [108.1685, 12936290000000.0, 316760.9],
            [551.4574, 11068890000000.0, 351565.0],
        ],
        [[9.6, 20000000000.0, 8.5], [16.0, 360000000000.0, 10.0], [76.0, 3000000000000.0, 29.0]],
        [[693.0, 447000000000.0, 2.38], [905.0, 604000000000.0, 14.4], [1440.0, 1010000000000.0, 17.8]],
    ),
    "allocation, nothing below": allocation(
        0.04075650002555435, 276138993.6068171, [[0.04075650000000001, 276139000.0, 898.705]]
    ),
    "placement": ArylPlacement(
        gpus_per_worker=[25769803776, 25769803776],
        num_workers=[1, 1],
        elastic=[True, False],
        server_gpus=[51539607551, 85899345919, 103079215103, 42949672959],
        server_groups=["training", "inference", "inference", "training"],
        flexible=[True, False],
    ),
    "packing": NetworkPacking(shares=[1, 2097151], num_machines=1, gpus_per_machine=2097152),
    "shares, two slots for one": share(1, [707e9, 24500000031.49925], [2, 4], [0.0, 707e9], [0.0, 24.5e9]),
    "shares, a deadline just missed": share(3, [610920.0010387164], [1], [0.0, 411840.0, 420120.0, 610920.0]),
}


@pytest.mark.filterwarnings("ignore::formulations.SolverDisagreement")
@pytest.mark.parametrize("name", ODD)
def test_what_only_the_tolerance_lets_pass_is_cut_off(name):
    instance = ODD[name]
    best = optimum(instance)
    solution = formulations.solve(instance)
    if best is None:
        assert solution.status == "infeasible"
    else:
        assert (solution.status, solution.objective) == ("optimal", pytest.approx(float(best), rel=1e-12))


def drawn(rng):
    """A program of few whole variables, and a point that may keep to its rows or not."""
    columns, rows = 4, 3
    lower = rng.integers(-2, 1, columns)
    upper = lower + rng.integers(1, 4, columns)
    matrix = rng.choice([0.0, 1.0, -1.0, 2.0, 0.3, 1.7], (rows, columns))
    point = rng.integers(lower, upper + 1).astype(float)
    limits = matrix @ point + rng.choice([0.0, -1e-7, 1e-7, 1e-9, -1.0], rows)
    at, column = np.nonzero(matrix)
    indptr, index, value = csr(at, column, matrix[at, column], rows)
    below = rng.random(rows) < 0.5
    return point, LinearProgram(
        "max", 0.0, np.ones(columns), lower.astype(float), upper.astype(float),
        np.ones(columns, bool), indptr, index, value,
        np.where(below, -np.inf, limits), np.where(below, limits, np.inf),
    )  # fmt: skip


def test_a_cut_leaves_all_points_that_keep_to_the_rows():
    cut = kept = 0
    for seed in range(20):
        point, program = drawn(np.random.default_rng(seed))
        less = without_refused(program, point)
        missed = program.infeasibility(point) > 1e-8
        assert less is not None or not missed
        if less is None:
            continue
        cut += 1
        for whole in product(*map(range, program.col_lower.astype(int), program.col_upper.astype(int) + 1)):
            x = np.array(whole, float)
            # Within 3e-9 of the limits the judge may have refused the point for any of the rows.
            if (program.infeasibility(x) > 0 or not missed) and (x != point).any():
                continue
            fixed = replace(
                less,
                col_lower=np.concatenate([x, less.col_lower[len(x) :]]),
                col_upper=np.concatenate([x, less.col_upper[len(x) :]]),
            )
            with warnings.catch_warnings():
                warnings.simplefilter("error", SolverDisagreement)
                found = formulations.Session().run(fixed)
            kept += found.x is not None
            assert (found.x is None) == bool((x == point).all())
    assert cut >= 8
    assert kept >= 30
