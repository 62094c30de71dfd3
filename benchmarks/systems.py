"""The same elastic jobs under each system's decisions: seven settings made of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.replays import ToReplay
from instances.schema import FloatArray
from instances.synergy.tuning import Tuning
from validation.replay import Costs, Setting
from validation.replay.engine import Ask, Decide, Decision, Jobs, State
from validation.replay.settings import afs, aryl, elasticflow, gavel, shockwave, sia, synergy
from validation.replay.workloads import in_order, poisson, rate_at

__all__ = ["SYSTEMS", "drawn"]

SERVER_GPUS = 8
"""GPUs of a server, where a system has servers."""
ROUND = 120.0
"""Length of everybody's rounds, s."""
WIDTHS, HOW_OFTEN = (1, 2, 4, 8), (0.6, 0.3, 0.09, 0.01)
"""GPUs that jobs ask for, and how often, as in Shockwave's traces."""
HOURS = (0.2, 5.0)
"""Shortest and longest running time on these, as there; logarithms are even between them."""


def drawn(
    seed: int,
    *,
    system: str,
    throughputs: Path,
    num_jobs: int,
    num_gpus: int,
    load: float,
    seconds_lost: float,
    models: list[str],
) -> ToReplay:
    """Draw elastic jobs, the same for all systems, and return the setting in which a system decides about them."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    widths = rng.choice(WIDTHS, num_jobs, p=HOW_OFTEN)
    lasting = 3600.0 * HOURS[0] * (HOURS[1] / HOURS[0]) ** rng.random(num_jobs)
    table = pd.DataFrame(
        {
            "job_id": [str(job) for job in range(num_jobs)],
            "submit_time": poisson(rng, num_jobs, rate_at(load, lasting * widths, num_gpus)),
            "num_gpus": widths,
            "duration": lasting,
        }
    )
    elastic = afs.from_jobs(in_order(table), rng=rng, throughputs=throughputs, num_gpus=num_gpus, models=models)
    asks, setting = SYSTEMS[system](elastic)
    how: dict[str, Any] = {"costs": Costs(restart=seconds_lost, migration=seconds_lost)}
    if getattr(setting, "round_length", None) is None:
        how["round_length"] = ROUND
    return ToReplay(asks, setting, how, (0.0, 1.0))


def _rates(elastic: afs.Elastic) -> FloatArray:
    """Return each job's rate on the GPUs that it asks for, (n,) float."""
    rates: FloatArray = elastic.throughputs[np.arange(len(elastic.jobs)), elastic.requests]
    return rates


def _gavel(elastic: afs.Elastic) -> tuple[str, Setting]:
    rates = _rates(elastic)
    return "gavel.max_min_fairness", gavel.Policy(
        jobs=replace(elastic.jobs, fastest=rates),
        problem="gavel.max_min_fairness",
        throughputs=rates[:, None],
        num_workers=np.array([elastic.num_gpus]),
        pools=np.array([0]),
        scale_factors=elastic.requests,
        round_length=ROUND,
    )


def _synergy(elastic: afs.Elastic) -> tuple[str, Setting]:
    rates, widths = _rates(elastic), elastic.requests
    # Jobs that CPUs and memory beyond their share do not help.
    cpus, memory = 3.0, 62.5
    configs = tuple(np.array([[cpus * w, memory * w, r]]) for w, r in zip(widths.tolist(), rates.tolist(), strict=True))
    cluster = Tuning(
        num_servers=elastic.num_gpus // SERVER_GPUS,
        server_gpus=SERVER_GPUS,
        server_cpus=cpus * SERVER_GPUS,
        server_memory=memory * SERVER_GPUS,
        gpu_demands=widths,
        configs=configs,
    )
    return "synergy.tuning", synergy.Synergy(
        jobs=replace(elastic.jobs, fastest=rates), cluster=cluster, queue="srtf", round_length=ROUND
    )


def _aryl(elastic: afs.Elastic) -> tuple[str, Setting]:
    least = elastic.requests
    setting = aryl.Aryl(
        # In seconds of a worker, as if workers added up.
        jobs=Jobs(
            names=elastic.jobs.names,
            arrivals=elastic.jobs.arrivals,
            work=elastic.jobs.work / _rates(elastic) * least,
            fastest=2 * least.astype(float),
        ),
        min_workers=least,
        max_workers=2 * least,
        gpus_per_worker=np.ones(len(least), np.int64),
        num_servers=elastic.num_gpus // SERVER_GPUS,
        server_gpus=SERVER_GPUS,
        problem="aryl.elastic_allocation",
    )
    return "aryl.elastic_allocation", _OnCurves(elastic, setting)


def _elasticflow(elastic: afs.Elastic) -> tuple[str, Setting]:
    return "elasticflow.best_effort", elasticflow.ElasticFlow(
        jobs=elastic.jobs, num_gpus=elastic.num_gpus, throughputs=elastic.throughputs, slot_seconds=ROUND,
        problem="elasticflow.best_effort",
    )  # fmt: skip


def _sia(elastic: afs.Elastic) -> tuple[str, Setting]:
    return "sia.goodput", replace(sia.on_powers_of_two(elastic, server_gpus=SERVER_GPUS), round_length=ROUND)


def _shockwave(elastic: afs.Elastic) -> tuple[str, Setting]:
    return "shockwave.window", replace(shockwave.as_requested(elastic), round_length=ROUND)


SYSTEMS: dict[str, Callable[[afs.Elastic], tuple[str, Setting]]] = {
    "Gavel": _gavel,
    "Synergy": _synergy,
    "Aryl": _aryl,
    "AFS": lambda elastic: ("afs.elastic_sharing", elastic),
    "ElasticFlow": _elasticflow,
    "Sia": _sia,
    "Shockwave": _shockwave,
}
"""Of each system what makes its problem and setting of the jobs."""


@dataclass(frozen=True)
class _OnCurves:
    """A setting whose workers add up, with jobs that make what their curves say of the GPUs that they get."""

    elastic: afs.Elastic
    setting: aryl.Aryl

    @property
    def name(self) -> str:
        return f"{self.setting.name}, on measured curves"

    @property
    def capacity(self) -> FloatArray:
        return self.setting.capacity

    @property
    def jobs(self) -> Jobs:
        return self.elastic.jobs

    def begin(self) -> Decide:
        inner = self.setting.begin()
        each = self.setting.jobs.work / self.elastic.jobs.work

        def decide(state: State, ask: Ask) -> Decision:
            shown = replace(state, left=state.left * each[state.jobs], done=state.done * each[state.jobs])
            decision = inner(shown, ask)
            gpus = np.rint(decision.gpus.sum(axis=1)).astype(np.int64)
            return replace(decision, rates=self.elastic.throughputs[state.jobs, gpus])

        return decide
