"""Small clusters of paid workers."""

from __future__ import annotations

from typing import Any

import numpy as np

from validation.problems.gavel.sharing import cluster
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["priced"]


@st.composite
def priced(draw: st.DrawFn, *, fields: st.SearchStrategy[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Draw a cluster with prices, steps and SLOs, some of which cannot be met."""
    drawn = draw(cluster() if fields is None else fields)
    n, k = drawn["throughputs"].shape
    slos = draw(whole_floats(n, 1, 240))
    without = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    return {
        **drawn,
        "costs": draw(whole_floats(k, 1, 4)),
        "steps": draw(whole_floats(n, 1, 60)),
        "slos": np.where(without, slos, np.inf),
    }
