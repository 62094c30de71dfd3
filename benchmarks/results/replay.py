"""A small replay: the example's trace under the exact model and under the heuristics."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.results.kept import Asked
from benchmarks.results.page import Page, made
from validation import replay_study
from validation.kinds.replays.report import findings, remarks

__all__ = ["make", "measured"]

ROOT = Path(__file__).parents[2]
TRACE = Path("examples", "replay", "jobs.csv")
ASKED: dict[str, Any] = {
    "problem": "aryl.elastic_allocation",
    "policies": ["exact", "afs", "gandiva", "marginal_greedy"],
    "windows": 4,
    "length": 20,
    "seeds": 2,
    "ties": 3,
    "setting": {"num_servers": 3, "loaned": 0, "elastic": 0.6, "scaling": 4},
}
"""What is replayed; the command of the front page."""


def make(asked: Asked) -> Page:
    """Replay, and make the page."""
    kept = asked.once("replay", partial(measured, asked), **ASKED)
    rows = kept.content["rows"]
    setting = " ".join(f"--setting {name}={value}" for name, value in ASKED["setting"].items())
    policies = " ".join(f"--policy {name}" for name in ASKED["policies"])
    numbers = " ".join(f"--{name} {ASKED[name]}" for name in ("windows", "length", "seeds", "ties"))
    command = f"optgap replay {TRACE.as_posix()} --problem {ASKED['problem']} {policies} {numbers} {setting} -o replays"
    cells = [list(row.values()) for row in rows]
    found = [
        (title, list(lines[0]), [list(line.values()) for line in lines]) for title, lines in kept.content["findings"]
    ]
    averages = kept.content["averages"]
    return made(
        "replay",
        [kept],
        averages,
        command=command,
        columns=list(rows[0]),
        cells=cells,
        findings=found,
        remarks=kept.content["remarks"],
    )


def measured(asked: Asked) -> dict[str, Any]:
    """Return what the replays come to and their overview, as the terminal shows them."""
    study = replay_study(ROOT / TRACE, **ASKED, jobs=asked.jobs, output=asked.folder / "replay", progress=False)
    if study.metadata["failed"]:
        raise RuntimeError(f"{study.directory}: {study.metadata['failed']} replays failed, see {study.report}")
    found = findings(study, study.differences(), study.averages(), study.beside_offline())
    return {
        "averages": json.loads(study.averages().to_json(orient="records")),
        "findings": found,
        "remarks": remarks(study),
        "rows": study.overview().to_dict("records"),
    }
