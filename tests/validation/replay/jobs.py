"""Jobs for replays, by the numbers that tests work out by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from validation.replay import Jobs, Replayed


def jobs_of(works: ArrayLike, fastest: ArrayLike, arrivals: Sequence[float] | None = None, **fields: Any) -> Jobs:
    """Jobs named by their numbers, all there at the start unless they arrive."""
    work = np.array(works, float)
    return Jobs(
        names=[f"job {number}" for number in range(len(work))],
        arrivals=np.zeros(len(work)) if arrivals is None else np.array(arrivals),
        work=work,
        fastest=np.array(fastest, float),
        **fields,
    )


def table(replayed: Replayed, *columns: str) -> list[list[object]]:
    return replayed.jobs[list(columns)].to_numpy().tolist()
