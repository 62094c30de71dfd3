"""Gaps on instances that are drawn from public traces and measured throughputs: a study for each trace."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.results.kept import Asked
from benchmarks.results.page import Page, gaps_drawn, made, summarized
from validation import gap_study
from validation.catalogue import CATALOGUE
from validation.kinds.study.cases import EXACT

__all__ = ["SOURCES", "Source", "answers", "make"]

SECONDS = 10.0
"""For each run."""
COUNT = 4
"""Instances of each trace and size."""
SEED = 1
A100, MICROSOFT = "elasticflow/throughputs_A100", "elasticflow/microsoft/raw/cluster02.csv"
SIMULATED = "gavel/simulation_throughputs.json"


@dataclass(frozen=True)
class Source:
    """What the problems of a paper are drawn from, below the folder of public data, and how large.

    Attributes
    ----------
    paper : str
    throughputs, trace : str
    sizes : tuple of int
    options : dict
        How the files are read.
    """

    paper: str
    throughputs: str
    trace: str
    sizes: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the trace."""
        return Path(self.trace).stem

    @property
    def problems(self) -> list[str]:
        """The paper's problems that such files are read for."""
        return [one for one, entry in CATALOGUE.items() if one.startswith(f"{self.paper}.") and entry.from_trace]


SOURCES = (
    Source("afs", A100, MICROSOFT, (3, 12), {"repair": True}),
    Source("afs", A100, "tiresias/60_job.csv", (3, 12), {"repair": True}),
    Source("aryl", A100, MICROSOFT, (10, 40)),
    Source("aryl", A100, "tiresias/60_job.csv", (10, 40)),
    Source("elasticflow", A100, MICROSOFT, (6, 20)),
    Source("elasticflow", A100, "elasticflow/traces/philly_103959.csv", (6, 20)),
    Source("gavel", SIMULATED, "gavel/msr_seed0_0e4a51.trace", (16, 64)),
    Source("gavel", SIMULATED, "gavel/max_min_fairness.trace", (16, 64)),
    Source("sia", SIMULATED, "gavel/msr_seed0_0e4a51.trace", (16, 64)),
    Source("sia", SIMULATED, "gavel/max_min_fairness.trace", (16, 64)),
    Source("shockwave", SIMULATED, "gavel/msr_seed0_0e4a51.trace", (16, 64)),
    Source("shockwave", SIMULATED, "gavel/max_min_fairness.trace", (16, 64)),
    Source("synergy", "synergy/sensitivity_profiles.json", "synergy/static_100job.csv", (2, 16)),
)
"""One study each."""


def make(asked: Asked) -> Page | None:
    """Measure the heuristics on real data, and make the page; None where there are no data."""
    data = asked.data
    if data is None or not all((data / file).exists() for one in SOURCES for file in (one.throughputs, one.trace)):
        return None
    options = {"count": COUNT, "seconds": SECONDS, "seed": SEED}
    measured = [
        asked.once(f"real/{one.paper}-{one.name}", partial(answers, asked, data, one), **options, source=asdict(one))
        for one in SOURCES
    ]
    found = [one for kept in measured for one in kept.content]
    # Both traces of a problem side by side.
    order = list(CATALOGUE)
    rows = sorted(
        summarized(found, ("problem", "trace", "size", "heuristic")), key=lambda row: order.index(row["problem"])
    )
    drawn = {problem for source in SOURCES for problem in source.problems}
    return made(
        "real",
        measured,
        rows,
        partial(gaps_drawn, found),
        names=["trace", "size", "heuristic"],
        **options,
        sources=SOURCES,
        without=[one for one in CATALOGUE if one not in drawn],
    )


def answers(asked: Asked, data: Path, source: Source) -> list[dict[str, Any]]:
    """Return the rows of the heuristics in the study of a source, where there is a plan."""
    study = gap_study(
        source.problems,
        throughputs=str(data / source.throughputs),
        trace=str(data / source.trace),
        sizes=source.sizes,
        count=COUNT,
        seed=SEED,
        real_only=True,
        time_limit=SECONDS,
        jobs=asked.jobs,
        output=asked.folder / "real" / f"{source.paper}-{source.name}",
        progress=False,
        **source.options,
    )
    if len(study.disagreements):
        raise AssertionError(f"{study.directory}: oracle disagreements, see {study.report}")
    found = []
    for row in study.rows.to_dict("records"):
        if row["algorithm"] == EXACT or row["exact_status"] == "infeasible":
            continue
        found.append(
            {name: row[name] for name in ("problem", "size", "status")}
            | {"trace": source.name}
            | {"heuristic": row["algorithm"], "instance": row["instance"], "proven": row["exact_status"] == "optimal"}
            | {name: row[name] if math.isfinite(row[name]) else None for name in ("gap_low", "gap_high")}
        )
    return found
