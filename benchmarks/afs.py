"""Replays of AFS's schedulers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from benchmarks.tables import Row, Setup, benchmark
from instances.afs.curves import RepairWarning
from validation.replay import decider, replay
from validation.replay.settings import afs
from validation.replay.workloads import read_jobs

__all__ = ["replays"]

REAL_MODELS = ("bert", "gpt2", "resnet50", "vgg16", "deepspeech2")
MODERATE = {"srtf": 31.1, "srsf": 32.8, "max_min": 18.3, "afs_l": 15.2}
"""Average completion times of Figure 2a's trace, h (section 2.2)."""


@benchmark("replays.afs", "scheduler", "paper, h", "times", "cluster10, h", "times", "cluster02, h", "times")
def replays(setup: Setup) -> Iterator[Row]:
    """Replays of elastic jobs on 64 GPUs: a whole trace, and the first 1,000 jobs of another; times as fast as SRTF."""
    if setup.data is None:
        return
    folder = setup.data / "elasticflow"
    first: list[float] = []
    for name, paper in MODERATE.items():
        found = [paper]
        for trace, count in (("cluster10.csv", 259), ("cluster02.csv", 1000)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RepairWarning)
                setting = afs.from_jobs(
                    read_jobs(folder / "microsoft" / "raw" / trace).head(setup.size(count, 20)),
                    throughputs=folder / "throughputs_A100",
                    models=REAL_MODELS,
                )
            done = replay(setting, decider("afs.elastic_sharing", name))
            found.append(done.metrics()["average_jct"] / 3600)
        first = first or found
        yield (
            f"`{name}`",
            *(cell for one, srtf in zip(found, first, strict=True) for cell in (f"{one:.2f}", f"{srtf / one:.2f}")),
        )
