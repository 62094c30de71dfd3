"""Small clusters, and the corners of their sets of allocations, without any solver.

They serve water filling, of which the reference knows the first level alone.
"""

from itertools import combinations

import numpy as np
import pytest

from instances.gavel.sharing import Sharing


def _draw(seed, max_jobs=3):
    """Fields of a cluster of up to 3 jobs, 2 types and 1 pair, at most 6 shares in all: with ties, zeros,
    empty and shared pools, jobs as wide as the pool or wider, and pairs that cannot run somewhere.
    """
    rng = np.random.default_rng(seed)
    while True:
        n, k = int(rng.integers(1, max_jobs + 1)), int(rng.integers(1, 3))
        p = int(rng.integers(1, k + 1))
        scale_factors = rng.choice([1, 1, 2, 3], n)
        fields = {
            "throughputs": rng.integers(0, 5, (n, k)).astype(float),
            "num_workers": rng.integers(0, 4, p),
            "pools": np.sort(rng.permutation(np.arange(k) % p)),
            "scale_factors": scale_factors,
        }
        partners = [(a, b) for a, b in combinations(range(n), 2) if scale_factors[a] == scale_factors[b]]
        if partners and n * k < 6 and rng.random() < 0.6:
            fields["pairs"] = np.array([partners[rng.integers(len(partners))]])
            fields["pair_throughputs"] = rng.integers(0, 4, (1, k, 2)).astype(float)
        # Jobs that run nowhere alone have their own tests.
        if (Sharing(**fields).fastest_throughputs > 0).all():
            return fields


def _rows(instance):
    """Rows that contain each job: ``(row, which partner)``."""
    n = len(instance.throughputs)
    rows = [[(m, None)] for m in range(n)]
    for i, pair in enumerate(instance.pairs.tolist()):
        for which, m in enumerate(pair):
            rows[m].append((n + i, which))
    return rows


def _received(instance):
    """(n, (n+q)*k): steps/s of each job per unit of each share, from the fields alone; 0 where a row is too wide."""
    n, k = instance.throughputs.shape
    widths = [*instance.scale_factors.tolist(), *(int(instance.scale_factors[a]) for a, _ in instance.pairs.tolist())]
    total = np.zeros((n, len(widths) * k))
    for m, rows in enumerate(_rows(instance)):
        for row, which in rows:
            for j in range(k):
                if widths[row] <= instance.num_workers[instance.pools[j]]:
                    alone = which is None
                    speed = instance.throughputs[m, j] if alone else instance.pair_throughputs[row - n, j, which]
                    total[m, row * k + j] = speed
    return total


def _limits(instance):
    """A and b of ``A x <= b``: shares at least 0 (and 0 where too wide), time of jobs, workers of pools."""
    k = instance.throughputs.shape[1]
    widths = [*instance.scale_factors.tolist(), *(int(instance.scale_factors[a]) for a, _ in instance.pairs.tolist())]
    size = len(widths) * k
    a, b = [], []
    for c in range(size):
        a.append([-float(c == d) for d in range(size)])
        b.append(0.0)
    for rows in _rows(instance):
        mine = {row for row, _ in rows}
        a.append([float(c // k in mine) for c in range(size)])
        b.append(1.0)
    for pool, workers in enumerate(instance.num_workers.tolist()):
        a.append([float(widths[c // k]) if instance.pools[c % k] == pool else 0.0 for c in range(size)])
        b.append(float(workers))
    for c in range(size):
        if widths[c // k] > instance.num_workers[instance.pools[c % k]]:
            a.append([float(c == d) for d in range(size)])
            b.append(0.0)
    return np.array(a), np.array(b)


def _corners(a, b):
    """(count, d): all corners of ``a x <= b``: every choice of d tight rows that meet in a point."""
    scale = np.maximum(np.linalg.norm(a, axis=1), 1e-300)
    a, b = a / scale[:, None], b / scale
    choices = np.array(list(combinations(range(len(a)), a.shape[1])))
    matrices = a[choices]
    regular = np.abs(np.linalg.det(matrices)) > 1e-9
    points = np.linalg.solve(matrices[regular], b[choices[regular]][..., None])[..., 0]
    return points[(points @ a.T <= b + 1e-9).all(axis=1)]


class Brute:
    """Brute force; everything is computed from the instance's fields by loops and by solving small systems."""

    draw = staticmethod(_draw)
    received = staticmethod(_received)
    limits = staticmethod(_limits)
    corners = staticmethod(_corners)


@pytest.fixture(scope="session")
def brute():
    return Brute
