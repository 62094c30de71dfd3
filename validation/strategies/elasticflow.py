"""Instances of ElasticFlow's problems."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from instances.elasticflow.admission import Admission
from instances.elasticflow.allocation import Allocation
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.placement import Placement
from validation.strategies.arrays import integers


@st.composite
def deadline_jobs(draw: st.DrawFn, *, max_jobs: int = 3, max_gpus: int = 4, max_slots: int = 4) -> dict[str, Any]:
    """Fields of jobs with any curves, concave or not, and with nothing to do up to more than can be done."""
    n = draw(st.integers(1, max_jobs))
    num_gpus = draw(st.integers(1, max_gpus))
    if draw(st.booleans()):
        steps = np.sort(draw(integers((n, num_gpus), 0, 4)), axis=1)[:, ::-1]
        rates = np.cumsum(steps, axis=1)
    else:
        rates = draw(integers((n, num_gpus), 0, 8))
    deadlines = draw(integers(n, 1, max_slots))
    # Up to what half of the GPUs could do in time, and a little more.
    most = deadlines * rates[:, (num_gpus - 1) // 2] + 1
    return {
        "num_gpus": num_gpus,
        "iterations": np.array([draw(st.integers(0, int(m))) for m in most], float),
        "deadlines": deadlines,
        "throughputs": np.concatenate([np.zeros((n, 1)), rates], axis=1),
    }


def minimum_satisfactory_share(**sizes: int) -> st.SearchStrategy[MinimumSatisfactoryShare]:
    """Sets of jobs, of which not all need have a plan."""
    return deadline_jobs(**sizes).map(lambda fields: MinimumSatisfactoryShare(**fields))


def allocation(**sizes: int) -> st.SearchStrategy[Allocation]:
    """Sets of jobs, of which not all need have a plan."""
    return deadline_jobs(**sizes).map(lambda fields: Allocation(**fields))


@st.composite
def admission(draw: st.DrawFn, /, **sizes: int) -> Admission:
    """Jobs in any order of arrival."""
    fields = draw(deadline_jobs(**sizes))
    order = draw(st.permutations(range(len(fields["iterations"]))))
    return Admission(**fields, arrival_order=np.array(order))


@st.composite
def placement(draw: st.DrawFn, *, max_jobs: int = 5, max_servers: int = 3, max_exponent: int = 2) -> Placement:
    """New jobs, and running ones anywhere, as if their sizes had changed; not all need fit."""
    n = draw(st.integers(1, max_jobs))
    server = 2 ** draw(st.integers(0, max_exponent))
    num_gpus = server * draw(st.integers(1, max_servers))
    exponents = draw(integers(n, 0, min(max_exponent, num_gpus.bit_length() - 1)))
    previous = [draw(st.none() | st.integers(0, num_gpus - 1)) for _ in range(n)]
    return Placement(
        num_gpus=num_gpus,
        gpus_per_server=server,
        sizes=2**exponents,
        previous_offsets=np.array([np.inf if offset is None else offset for offset in previous]),
    )
