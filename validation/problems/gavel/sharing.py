"""Small clusters that all of Gavel's policies share."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from validation.testing.arrays import integers, quarters, subsets

__all__ = ["cluster"]


@st.composite
def cluster(draw: st.DrawFn, *, max_jobs: int = 4, max_types: int = 3, max_workers: int = 4) -> dict[str, Any]:
    """Fields that all policies share: zero throughputs, wide jobs, shared pools and pairs included."""
    n = draw(st.integers(1, max_jobs))
    k = draw(st.integers(1, max_types))
    p = draw(st.integers(1, k))
    num_workers = draw(integers(p, 0, max_workers))
    # The first type belongs to the first pool, which has a worker, and every job runs there alone.
    num_workers[0] = max(1, num_workers[0])
    pools = np.concatenate([[0], draw(integers(k - 1, 0, p - 1))]).astype(np.int64)
    throughputs = draw(quarters((n, k), 0, 4))
    throughputs[:, 0] = np.maximum(throughputs[:, 0], 1.0)
    scale_factors = draw(integers(n, 1, int(num_workers[0])))
    possible = [(a, b) for a in range(n) for b in range(a + 1, n) if scale_factors[a] == scale_factors[b]]
    pairs = np.array(draw(subsets(possible)), np.int64).reshape(-1, 2)
    return {
        "throughputs": throughputs,
        "num_workers": num_workers,
        "pools": pools,
        "scale_factors": scale_factors,
        "pairs": pairs,
        "pair_throughputs": draw(quarters((len(pairs), k, 2), 0, 4)),
    }
