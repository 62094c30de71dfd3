"""Judgements of the programs that a search found from several seeds: a mean with an interval, not the best of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from validation.errors import StudyError
from validation.kinds.judge.board import judgements_in
from validation.kinds.replays.paired import LEVEL, Resamples
from validation.pages.render import table_lines

__all__ = ["Search", "compare", "table"]


@dataclass(frozen=True)
class Search:
    """What a search found.

    Attributes
    ----------
    name : str
        Of the folder with its judgements.
    scores : tuple of float
        One for each seed of the search.
    mean, low, high : float
        The scores' mean, and the ends of its interval, of the bootstrap over seeds; NaN where there is one seed.
    worst : float
        Least score of an instance, of any seed.
    """

    name: str
    scores: tuple[float, ...]
    mean: float
    low: float
    high: float
    worst: float

    def to_dict(self) -> dict[str, Any]:
        """Return the search as JSON."""
        return asdict(self)


def compare(folders: Sequence[Path]) -> list[Search]:
    """Return what each search found, of which a folder holds the judgements, one for each seed; the best mean first.

    Raises
    ------
    StudyError
        When a folder holds no judgement, or two were not judged on the same set in the same way.
    """
    found: list[Search] = []
    asked: dict[tuple[Any, ...], Path] = {}
    for folder in folders:
        judged = judgements_in(folder)
        if not judged:
            raise StudyError(f"{folder} holds no judgement: optgap judge HEURISTIC --json makes one")
        asked |= {(one["problem"], one["set"], one["budget"], one["no_solver"]): folder for one in judged.values()}
        found.append(_search(folder.name, list(judged.values())))
    if len(asked) > 1:
        told = "; ".join(f"{problem}, set {digest[:16]}" for problem, digest, *_ in asked)
        raise StudyError(f"judgements that are compared must be of one set, budget and no_solver, got {told}")
    return sorted(found, key=lambda one: -one.mean)


def _search(name: str, judged: Sequence[Any]) -> Search:
    import pandas as pd

    scores = [float(one["score"]) for one in judged]
    # Seeds are independent of each other, as windows of a trace are.
    runs = pd.DataFrame({"trace": "", "window": range(len(scores)), "seed": 0})
    low, high = Resamples(runs).interval((np.array(scores), np.ones(len(scores))))
    worst = min(float(instance["score"]) for one in judged for instance in one["instances"])
    return Search(name, tuple(scores), math.fsum(scores) / len(scores), low, high, worst)


def table(searches: Sequence[Search]) -> str:
    """Return a table of searches in Markdown."""
    columns = ("search", "seeds", "mean", f"{LEVEL:.0%} interval", "least", "greatest", "worst instance")
    rows = [
        (
            one.name,
            len(one.scores),
            f"{one.mean:.4f}",
            "none of one seed" if math.isnan(one.low) else f"{one.low:.4f} to {one.high:.4f}",
            f"{min(one.scores):.4f}",
            f"{max(one.scores):.4f}",
            f"{one.worst:.4f}",
        )
        for one in searches
    ]
    return "\n".join(table_lines(columns, rows))
