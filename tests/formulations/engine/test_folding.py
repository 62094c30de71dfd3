"""Linear programs over classes of columns and rows that are alike."""

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import formulations
from formulations.engine.folding import Folding, fold
from formulations.engine.highs import Result, Session
from formulations.engine.linear import LinearProgram, csr

from ...effort import rounds

POLICIES = ["max_min_fairness", "makespan", "total_throughput", "cost", "throughput_per_dollar"]


def program(matrix: Any, cost: Any, upper: Any, *, col_upper: Any = 1.0, sense: str = "max") -> LinearProgram:
    matrix = np.asarray(matrix, float)
    rows, columns = np.nonzero(matrix)
    indptr, index, value = csr(rows, columns, matrix[rows, columns], len(matrix))
    count = matrix.shape[1]
    return LinearProgram(
        sense=sense,
        offset=0.5,
        cost=np.array(cost, float),
        col_lower=np.zeros(count),
        col_upper=np.array(np.broadcast_to(col_upper, count), float),
        integer=np.zeros(count, bool),
        indptr=indptr,
        index=index,
        value=value,
        row_lower=np.full(len(matrix), -np.inf),
        row_upper=np.array(np.broadcast_to(upper, len(matrix)), float),
    )


def dense(of: LinearProgram) -> Any:
    matrix = np.zeros((of.num_rows, of.num_cols))
    matrix[np.repeat(np.arange(of.num_rows), np.diff(of.indptr)), of.index] = of.value
    return matrix


def repeated_jobs(seed: int) -> LinearProgram:
    """Kinds of jobs, each several times and shuffled, that share a few resources."""
    rng = np.random.default_rng(seed)
    kinds, resources = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    use = rng.integers(0, 4, (kinds, resources, 2))
    gain = rng.integers(0, 5, (kinds, 2))
    jobs = rng.permutation(np.repeat(np.arange(kinds), rng.integers(3, 6, kinds)))
    matrix = np.zeros((resources + len(jobs), 2 * len(jobs)))
    for j, kind in enumerate(jobs):
        matrix[:resources, 2 * j : 2 * j + 2] = use[kind]
        matrix[resources + j, 2 * j : 2 * j + 2] = 1
    limits = np.concatenate([rng.integers(1, 9, resources), np.ones(len(jobs))])
    return program(matrix, gain[jobs].ravel(), limits)


def folded(whole: LinearProgram) -> Folding:
    found = fold(whole)
    assert found is not None
    return found


@pytest.mark.parametrize("first", rounds(100)[::100])
def test_the_folded_program_has_the_same_optimum(first: int) -> None:
    smallest = 1.0
    for seed in range(first, first + 100):
        whole = repeated_jobs(seed)
        folding = folded(whole)
        result = folding.unfold(Session().run(folding.program))
        plain = Session().run(whole)
        assert result.status == plain.status == "optimal"
        assert result.bound == pytest.approx(plain.bound, rel=1e-9, abs=1e-9)
        assert result.x is not None
        assert result.certificate is not None
        assert whole.objective(result.x) == pytest.approx(plain.bound, rel=1e-9, abs=1e-9)
        assert whole.infeasibility(result.x) <= 1e-9
        assert result.certificate.holds
        smallest = min(smallest, folding.program.num_cols / whole.num_cols)
    assert smallest <= 0.25


def test_the_classes_are_equitable() -> None:
    """By loops: equal numbers within a class, and equal sums over every class of the other side."""
    for seed in rounds(20):
        whole = repeated_jobs(seed)
        folding = folded(whole)
        matrix = dense(whole)
        over_rows = [matrix[folding.rows == c].sum(axis=0) for c in np.unique(folding.rows)]
        over_columns = [matrix[:, folding.columns == c].sum(axis=1) for c in np.unique(folding.columns)]
        for classes, sums in ((folding.columns, over_rows), (folding.rows, over_columns)):
            for members in (np.flatnonzero(classes == c) for c in np.unique(classes)):
                assert all(np.ptp(total[members]) == 0 for total in sums)
        for members in (np.flatnonzero(folding.columns == c) for c in np.unique(folding.columns)):
            assert np.ptp(whole.cost[members]) == 0
        for members in (np.flatnonzero(folding.rows == c) for c in np.unique(folding.rows)):
            assert np.ptp(whole.row_upper[members]) == 0


def test_classes_split_until_nothing_splits() -> None:
    """A chain of alike links that ends in one that differs: each link is told apart by how far the end is."""
    size = 12
    chain = np.eye(size) + np.eye(size, k=1)
    limits = np.ones(size)
    assert fold(program(chain, np.ones(size), limits)) is None
    ring = np.eye(size) + np.roll(np.eye(size), 1, axis=1)
    folding = folded(program(ring, np.ones(size), limits))
    assert folding.program.num_cols == folding.program.num_rows == 1
    assert dense(folding.program).tolist() == [[2.0]]
    assert folding.program.cost.tolist() == [12.0]


def test_what_differs_is_not_folded() -> None:
    matrix = np.ones((1, 8))
    assert folded(program(matrix, np.ones(8), 1.0)).program.num_cols == 1
    assert fold(program(matrix, np.arange(8.0), 1.0)) is None
    assert fold(program(matrix, np.ones(8), 1.0, col_upper=np.arange(1.0, 9.0))) is None
    assert fold(program(np.arange(1.0, 9.0)[None, :], np.ones(8), 1.0)) is None
    assert fold(program(np.eye(8), np.ones(8), np.arange(1.0, 9.0))) is None
    half = folded(program(matrix, np.repeat([1.0, 2.0], 4), 1.0))
    assert half.program.num_cols == 2


def test_minus_zero_is_zero() -> None:
    assert folded(program(np.ones((1, 4)), [0.0, -0.0, 0.0, -0.0], 1.0)).program.num_cols == 1


def test_whole_numbers_are_not_folded() -> None:
    """The average of whole points need not be whole."""
    whole = program(np.ones((1, 4)), np.ones(4), 1.0)
    assert fold(replace(whole, integer=np.ones(4, bool))) is None
    assert fold(program(np.zeros((1, 0)), np.zeros(0), 1.0)) is None


def test_there_must_be_an_optimum_to_unfold() -> None:
    folding = folded(program(np.ones((1, 4)), np.ones(4), 1.0))
    with pytest.raises(ValueError, match="Time limit"):
        folding.unfold(Result("unknown", None, np.inf, None, 0.0, "Time limit reached"))


def test_a_wrong_folding_proves_nothing() -> None:
    """Classes that are not alike give a point or prices that fail on the whole program."""
    whole = program([[1.0, 2.0], [1.0, 0.0]], [1.0, 5.0], [1.0, 0.5])
    small = program([[3.0], [1.0]], [6.0], [1.0, 0.5])
    wrong = Folding(whole, small, np.array([0, 0]), np.array([0, 1]))
    assert wrong.unfold(Session().run(small)).status == "feasible"


# --- Gavel's policies, where jobs of few types are many -------------------------------------------


def crowd(policy: str, seed: int) -> Any:
    """12 to 24 jobs of three kinds, with pairs between all jobs of certain kinds."""
    rng = np.random.default_rng(seed)
    module = importlib.import_module(f"instances.gavel.{policy}")
    kinds = module.generate(seed, num_jobs=3, pair_fraction=0.0, multi_worker=False)
    jobs = rng.permutation(np.repeat(np.arange(3), rng.integers(4, 9, 3)))
    speed = rng.uniform(0.2, 1.0, (3, 3))
    pairs = np.array([(a, b) for a in range(len(jobs)) for b in range(a) if (jobs[a] + jobs[b]) % 2 == 0])
    kept = np.stack([speed[jobs[pairs[:, 0]], jobs[pairs[:, 1]]], speed[jobs[pairs[:, 1]], jobs[pairs[:, 0]]]], axis=1)
    changed: dict[str, Any] = {
        "throughputs": kinds.throughputs[jobs],
        "num_workers": rng.integers(1, 5, 3),
        "scale_factors": np.ones(len(jobs), int),
        "pairs": pairs,
        "pair_throughputs": kept[:, None, :] * np.moveaxis(kinds.throughputs[jobs][pairs], 1, 2),
    }
    for field in ("weights", "steps", "slos"):
        if hasattr(kinds, field):
            changed[field] = getattr(kinds, field)[jobs]
    return replace(kinds, **changed), jobs


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_over_classes_have_the_same_optimum(policy: str) -> None:
    told = 0
    for seed in range(12):
        instance, jobs = crowd(policy, seed)
        over_classes = formulations.solve(instance)
        one_by_one = formulations.solve(instance, method="arrays")
        assert over_classes.status == one_by_one.status
        told += "classes" in over_classes.message
        assert "classes" not in one_by_one.message
        if over_classes.status != "optimal":
            continue
        assert over_classes.objective == pytest.approx(one_by_one.objective, rel=1e-7)
        assert over_classes.bound == pytest.approx(one_by_one.bound, rel=1e-7)
        assert over_classes.plan is not None
        assert instance.violations(over_classes.plan) == []
        received = instance.throughput(over_classes.plan)
        for kind in range(3):
            assert received[jobs == kind] == pytest.approx(received[jobs == kind][0], rel=1e-9)
        assert {name: len(prices) for name, prices in over_classes.duals.items()} == {
            name: len(prices) for name, prices in one_by_one.duals.items()
        }
    assert told >= 8


def test_jobs_in_a_queue_are_not_alike() -> None:
    """FIFO counts each position differently, so jobs of one type are no class."""
    from instances.gavel.fifo import Fifo

    instance = Fifo(throughputs=np.tile([1.0, 0.5], (20, 1)), num_workers=[3, 3])
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert "classes" not in solution.message
    assert solution.objective == pytest.approx(20 + 19 + 18 + (17 + 16 + 15) / 2)


@pytest.mark.parametrize("policy", POLICIES)
def test_real_job_types_over_classes(policy: str, data: Path) -> None:
    module = importlib.import_module(f"instances.gavel.{policy}")
    instance = module.from_trace(
        0,
        throughputs=data / "gavel" / "simulation_throughputs.json",
        trace=data / "gavel" / "max_min_fairness.trace",
        num_jobs=400,
        share_space=False,
        unconsolidated=True,
    )
    over_classes = formulations.solve(instance)
    one_by_one = formulations.solve(instance, method="arrays")
    assert over_classes.status == one_by_one.status == "optimal"
    assert "classes" in over_classes.message
    assert over_classes.objective == pytest.approx(one_by_one.objective, rel=1e-7)
