"""Small clusters of paid workers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from validation.catalogue import Entry, Rescaling
from validation.kinds.promises import BreaksOnly
from validation.problems.gavel.sharing import BLIND, WIDE, alone, cluster
from validation.testing import st
from validation.testing.arrays import whole_floats

__all__ = ["BLIND_TO_SLOS", "IN_TIME", "MISSED", "priced", "priced_entry"]

BLIND_TO_SLOS = "it does not look at SLOs"
"""Why a heuristic's plan can be infeasible."""

MISSED = "SLOs are missed where what it chooses from does not meet them together"
"""Why one can that looks at them."""

IN_TIME = BLIND, BreaksOnly((), alone, "without pairs")
"""What is promised of such plans."""

priced_entry = partial(
    Entry,
    size="num_jobs",
    sizes=(8, 32, 128),
    symmetric=("n", "k", "p", "q"),
    rescalings=(
        Rescaling(("throughputs", "pair_throughputs", "steps"), 1),
        Rescaling(("costs",), -1),
        Rescaling(("steps", "slos"), 0),
    ),
    enlarge=lambda instance: replace(instance, num_workers=instance.num_workers + 1),
    wide=WIDE,
)
"""An entry of a policy of paid workers, by what is its own."""


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
        "steps": draw(whole_floats(n, 0, 60)),
        "slos": np.where(without, slos, np.inf),
    }
