"""Small studies, and heuristics of one line, shared by the tests of studies."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import gap_study
from validation.kernel.store import read_log
from validation.kinds.study.records import STUDY

FORKED = pytest.mark.skipif(sys.platform != "linux", reason="only there are workers forked, and functions local")


SMALL: dict[str, Any] = {"problems": "aryl.reclaim", "seed": 3, "sizes": [5], "count": 3, "jobs": 2}


HEURISTICS = [
    "server_fraction",
    "flexible_first",
    "gpu_fraction",
    "smallest_count_first",
    "smallest_count_updated",
    "random",
    "local_search",
    "tabu_search",
]
"""Those of ``aryl.reclaim``."""
CELLS = 3 * (1 + len(HEURISTICS))
"""Of the small study: the exact solve and all heuristics, on three instances."""


TIMES = ["seconds", "engine_seconds", "exact_seconds"]


def log_of(directory: Path) -> list[dict[str, Any]]:
    return read_log(directory, STUDY).rows


def without_times(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.drop(columns=TIMES)


def computed(output: Path, **arguments: Any) -> list[tuple[str, int]]:
    """What a call adds to the log: algorithm and size, sorted."""
    before = len(log_of(output))
    gap_study(**{**SMALL, "output": output, **arguments})
    return sorted((row["algorithm"], row["size"]) for row in log_of(output)[before:])


def first_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(instance.demand))


def servers_from(start: int) -> Callable[[Reclaim], ReclaimPlan]:
    def heuristic(instance: Reclaim) -> ReclaimPlan:
        return ReclaimPlan(servers=(start + np.arange(instance.demand)) % instance.num_servers)

    return heuristic


def shifted(instance: Reclaim, *, start: int = 0) -> ReclaimPlan:
    return servers_from(start)(instance)


def raises(instance: Reclaim) -> ReclaimPlan:
    raise KeyError("servers")


def returns_no_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.array([], int))


def returns_nothing(instance: Reclaim) -> None:
    return None


def stub_exact(monkeypatch: pytest.MonkeyPatch, **entries: Any) -> None:
    """An exact side that says for every instance what is given."""
    row = {
        "status": "unknown",
        "reason": "",
        "value": None,
        "bound": None,
        "seconds": 0.1,
        "solver": "stub 1",
    } | entries
    monkeypatch.setattr("validation.kinds.study.cells.solve_exactly", lambda *_, **__: row)


def constant(value: int) -> Callable[[Reclaim], ReclaimPlan]:
    """A heuristic for instances on which the returned servers are the plan's value."""
    return lambda instance: ReclaimPlan(servers=np.arange(instance.demand) + value)


def one_job_each(*counts: int) -> Reclaim:
    """As many servers as counts, with so many jobs of their own; one is to be returned."""
    hosts = np.zeros((sum(counts), len(counts)), bool)
    hosts[np.arange(sum(counts)), np.repeat(np.arange(len(counts)), counts)] = True
    return Reclaim(hosts=hosts, gpus=np.where(hosts, 1, 0), demand=1)
