"""Small valid files of every kind that is read: tables, traces and profiles in the form of the published ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from instances.afs import elastic_sharing
from instances.aryl import elastic_allocation
from instances.data import elasticflow, gavel, microsoft, synergy, tiresias
from instances.elasticflow import admission
from instances.gavel import max_min_fairness
from instances.synergy import allocation, placement

__all__ = ["TABLES", "TOML", "Original"]


@dataclass(frozen=True)
class Original:
    """Files that are read together.

    Attributes
    ----------
    files : mapping
        Path in a folder to text.
    read : callable
        What a user does with the folder.
    count : int
        Rows of the table, jobs of the instance, or models of the profiles that come of it.
    """

    files: Mapping[str, str]
    read: Callable[[Path], Any]
    count: int


CURVES = "global_batch_size,1,2,4,8\n32,10,18,30,40\n64,12,22,38,\n"
FLOWING = """\
job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration
a,0,1000,bert,7200,32,2,3600
b,10,5000.5,bert,9000,64,4,1800
"c,d",60,70,bert,90000,32,1,600
"""
RAW = "job_id,submission_time,duration,num_gpu\nx,0,100,1\ny,5.5,3600,4\nz,9,10,2\n"
MODELS = "job_id,submit_time,duration,num_gpu,model_name\nx,0,100,1,bert\ny,5.5,3600,4,vgg19\nz,9,10,2,\n"
STEPS = "ResNet-18 (batch size 16)\tpython3 main.py\tcifar10\t--num_steps\t1\t600\t{scale}\t2\t{slo}\t{arrival}\n"
TRACE = "".join(
    STEPS.format(scale=scale, slo=slo, arrival=arrival)
    for scale, slo, arrival in ((1, -1, 0), (2, 500.5, 3), (1, 9, 9))
)
SHORT = "ResNet-18 (batch size 16)\tpython3 train.py\t-step\t1\t100\t0\t1\n" * 2
NARROW, WIDE = "('ResNet-18 (batch size 16)', 1)", "('ResNet-18 (batch size 16)', 2)"
RATES = json.dumps(
    {
        kind: {NARROW: {"null": 2.0 + number, NARROW: [1.5, 1]}, WIDE: {"null": 3.5, WIDE: [0.0, 0]}}
        for number, kind in enumerate(("k80", "p100", "v100"))
    }
)
PROFILES = json.dumps(
    {
        "cpus_per_gpu": [1, 3],
        "memory_gb_per_gpu": [20, 62.5],
        "profiles_by_cpu_gpu_ratio": {
            "3": {"res18": {"throughput": [[0.1, 0.4], [0.1, 1]]}, "lstm": {"throughput": [[1, 1], [1, 1]]}}
        },
    }
)  # fmt: skip
LISTED = "0,res18,0,100,1\n1,lstm,10.5,2000,2\n2,res18,20,50,1\n"


def _profiles(folder: Path) -> Any:
    return synergy.read_profiles(folder / "profiles.json").throughputs


def _drawn(problem: Any, throughputs: str, trace: str, **options: Any) -> Callable[[Path], Any]:
    return lambda folder: problem.from_trace(1, throughputs=folder / throughputs, trace=folder / trace, **options)


_OF_ELASTICFLOW = {"tables/bert.csv": CURVES, "trace.csv": FLOWING}
_OF_MICROSOFT = {"tables/bert.csv": CURVES, "trace.csv": RAW}
_OF_GAVEL = {"rates.json": RATES, "jobs.trace": TRACE}
_OF_SYNERGY = {"profiles.json": PROFILES, "jobs.csv": LISTED}
_FOUND = {
    "elasticflow.throughputs": (
        {"tables/bert.csv": CURVES},
        lambda folder: elasticflow.read_throughputs(folder / "tables"),
        2,
    ),
    "elasticflow.trace": ({"trace.csv": FLOWING}, lambda folder: elasticflow.read_trace(folder / "trace.csv"), 3),
    "microsoft.trace": ({"trace.csv": RAW}, lambda folder: microsoft.read_trace(folder / "trace.csv"), 3),
    "tiresias.trace": ({"trace.csv": MODELS}, lambda folder: tiresias.read_trace(folder / "trace.csv"), 3),
    "gavel.throughputs": ({"rates.json": RATES}, lambda folder: gavel.read_throughputs(folder / "rates.json"), 12),
    "gavel.trace": ({"jobs.trace": TRACE}, lambda folder: gavel.read_trace(folder / "jobs.trace"), 3),
    "gavel.short_trace": ({"jobs.trace": SHORT}, lambda folder: gavel.read_trace(folder / "jobs.trace"), 2),
    "synergy.profiles": ({"profiles.json": PROFILES}, _profiles, 2),
    "synergy.trace": ({"jobs.csv": LISTED}, lambda folder: synergy.read_trace(folder / "jobs.csv"), 3),
    "elasticflow.admission": (_OF_ELASTICFLOW, _drawn(admission, "tables", "trace.csv", num_jobs=2), 2),
    "elasticflow.admission of Microsoft's": (_OF_MICROSOFT, _drawn(admission, "tables", "trace.csv", num_jobs=2), 2),
    "afs.elastic_sharing": (_OF_MICROSOFT, _drawn(elastic_sharing, "tables", "trace.csv", num_jobs=2, repair=True), 2),
    "aryl.elastic_allocation": (_OF_MICROSOFT, _drawn(elastic_allocation, "tables", "trace.csv", num_jobs=2), 2),
    "gavel.max_min_fairness": (_OF_GAVEL, _drawn(max_min_fairness, "rates.json", "jobs.trace", num_jobs=3), 3),
    "synergy.allocation": (_OF_SYNERGY, _drawn(allocation, "profiles.json", "jobs.csv", num_servers=1), 6),
    "synergy.placement": (_OF_SYNERGY, _drawn(placement, "profiles.json", "jobs.csv", num_servers=1), 6),
}  # fmt: skip
TABLES = {name: Original(files, read, count) for name, (files, read, count) in _FOUND.items()}
"""What a user reads, by name: every reader of ``instances.data``, and instances drawn from what is read."""

TOML = """\
problems = ["aryl.reclaim"]
heuristics = ["server_fraction"]
sizes = {"aryl.reclaim" = [4]}
count = 2
time_limit = 5.5
memory_limit = 2e9
real_only = false
jobs = 1
solver = "highs"
"""
