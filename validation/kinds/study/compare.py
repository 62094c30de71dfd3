"""Two studies side by side, paired by instance and heuristic.

A pair is a run of the same heuristic on the same instance, by its digest, in both studies.  Both plans are judged
against what the two studies together know of the optimum (:mod:`validation.kinds.study.pairs`), so that no difference
is one of time limits.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from instances.base import agree
from validation.errors import StudyError
from validation.formatting import number
from validation.kernel.gaps import beats
from validation.kernel.store import Warn
from validation.kinds.study.cases import EXACT
from validation.kinds.study.pairs import OF_PAIR, OF_PAIRS, PAIR, Intervals, counted_pairs, has_plans, pair, records
from validation.kinds.study.results import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare_studies"]

_PROVEN = ("optimal", "infeasible")
"""States of the exact side that are proofs."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Two studies side by side; a difference is what the second, B, has more than the first, A.

    Attributes
    ----------
    a, b : Study
    heuristics : DataFrame
        For each problem and heuristic of both, over all sizes and swept values:
        ``pairs``, with a feasible plan in both studies; ``only_a`` and
        ``only_b``, with one in one only; ``unproven``, pairs whose optimum is not proven; mean and worst gap in both
        studies, each as the least and the greatest that the bounds allow (``gap_a_mean_low``, ...); the mean of the
        differences of the gaps (``difference_low``, ``difference_high``) and the ends of its interval of 95 %
        (``low``, ``high``; NaN where there are not two pairs, or where a difference is infinite); and on how many
        pairs B is ``better``, the ``same`` or ``worse``.
    exact : DataFrame
        For each problem: ``instances`` that both have, how many are proven in ``both``, ``only_a``, ``only_b``; of
        those in both the geometric mean of the exact side's times in B over those in A, ``ratio``, and its interval
        ``low`` to ``high``.
    alone : DataFrame
        ``problem``, ``what`` ("instance" or "heuristic") and ``name`` of what only one ``study`` ("A" or "B") has.
    disagreements : DataFrame
        Instances on which the studies cannot both be right, or on which one contradicts itself, and ``why``. They are
        in none of the numbers.
    pairs : DataFrame
        A row for each pair: values, gaps, the interval of the difference, and which is better.
    """

    a: Study
    b: Study
    heuristics: pd.DataFrame
    exact: pd.DataFrame
    alone: pd.DataFrame
    disagreements: pd.DataFrame
    pairs: pd.DataFrame

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON, without the single pairs; infinite numbers and NaN are as Python has them."""
        tables = ("heuristics", "exact", "alone", "disagreements")
        return {
            "a": _told(self.a),
            "b": _told(self.b),
            **{name: getattr(self, name).to_dict("records") for name in tables},
        }

    def __repr__(self) -> str:
        head = f"B, {self.b.directory}, beside A, {self.a.directory}: {len(self.pairs)} pairs"
        wrong = f", {len(self.disagreements)} oracle disagreements" if len(self.disagreements) else ""
        return f"{head}{wrong}\n{self.heuristics.to_string(index=False)}"


def _told(study: Study) -> dict[str, Any]:
    """Say where a study's numbers come from."""
    names = ("command", "commit", "versions", "machine", "asked", "finished")
    return {"directory": str(study.directory), **{name: study.metadata[name] for name in names}}


def compare_studies(
    a: Study | str | os.PathLike[str], b: Study | str | os.PathLike[str], *, seed: int = 0, warn: Warn = warnings.warn
) -> Comparison:
    """Compare two studies on the instances and heuristics that both have.

    Parameters
    ----------
    a, b : Study or path
        The one that is compared with, and the one that is compared; finished or not.
    seed : int
        Of the bootstrap: the same studies have the same intervals.
    warn : callable, optional
        Told of each line of a study's log that is damaged, and passed over.

    Raises
    ------
    StudyError
        When a directory holds no study, or nothing was run on the same instance in both.
    """
    import pandas as pd

    a, b = (one if isinstance(one, Study) else Study.load(Path(one), warn) for one in (a, b))
    rows = [study.rows.drop_duplicates(PAIR) for study in (a, b)]
    both = rows[0].merge(rows[1], on=[*PAIR, "sense"], suffixes=("_a", "_b"))
    if both.empty:
        raise StudyError(f"{a.directory} and {b.directory} have run nothing on the same instance")
    wrong = _contradictions(rows, both)
    sound = both[~both["instance"].isin(wrong["instance"])]
    exact, runs = sound[sound["algorithm"] == EXACT], sound[sound["algorithm"] != EXACT]
    found = [
        {"problem": row["problem"], "instance": row["instance"], "heuristic": row["algorithm"], **pair(row)}
        for row in records(runs)
        if has_plans(row)
    ]
    pairs = pd.DataFrame(found, columns=["problem", "instance", "heuristic", *OF_PAIR])
    interval = Intervals(seed)
    return Comparison(
        a, b, _heuristics(runs, pairs, interval), _exact_sides(exact, interval), _alone(*rows), wrong, pairs
    )


# --- pairs ----------------------------------------------------------------------------------------

_OF_EXACT = ["problem", "instances", "both", "only_a", "only_b", "ratio", "low", "high"]


def _heuristics(runs: pd.DataFrame, pairs: pd.DataFrame, interval: Intervals) -> pd.DataFrame:
    """Make a row for each problem and heuristic that both studies have run on an instance."""
    import pandas as pd

    of_pair = dict(list(pairs.groupby(["problem", "heuristic"], sort=False)))
    found = []
    for (problem, heuristic), group in runs.groupby(["problem", "algorithm"], sort=False):
        mine = of_pair.get((problem, heuristic), pairs[:0])
        found.append({"problem": problem, "heuristic": heuristic, **counted_pairs(group, mine, interval)})
    return pd.DataFrame(found, columns=["problem", "heuristic", *OF_PAIRS])


# --- exact sides, and what cannot be --------------------------------------------------------------


def _exact_sides(exact: pd.DataFrame, interval: Intervals) -> pd.DataFrame:
    """Make a row for each problem: what was proven, and how long that took in B over A."""
    import pandas as pd

    found = []
    for problem, group in exact.groupby("problem", sort=False):
        in_a, in_b = (group[f"status_{side}"].isin(_PROVEN).to_numpy(bool) for side in "ab")
        timed = group[in_a & in_b & (group["seconds_a"] > 0) & (group["seconds_b"] > 0)]
        logs = np.log(timed["seconds_b"].to_numpy(float) / timed["seconds_a"].to_numpy(float))
        ends = interval(logs)
        found.append(
            {
                "problem": problem,
                "instances": len(group),
                "both": int((in_a & in_b).sum()),
                "only_a": int((in_a & ~in_b).sum()),
                "only_b": int((in_b & ~in_a).sum()),
                "ratio": float(np.exp(logs.mean())) if len(logs) else np.nan,
                "low": float(np.exp(ends[0])),
                "high": float(np.exp(ends[1])),
            }
        )
    return pd.DataFrame(found, columns=_OF_EXACT)


def _contradictions(rows: list[pd.DataFrame], both: pd.DataFrame) -> pd.DataFrame:
    """Instances of which the studies together say what cannot be, and instances on which one contradicts itself."""
    import pandas as pd

    found: dict[str, dict[str, str]] = {}
    for row in records(both.drop_duplicates("instance")):
        why = _contradiction(row)
        if why:
            found[row["instance"]] = {"problem": row["problem"], "instance": row["instance"], "why": why}
    shared = set(both["instance"])
    for name, each in zip("AB", rows, strict=True):
        for row in records(each[each["disagreement"]]):
            if row["instance"] in shared:
                why = f"an oracle disagreement of {name} itself, see its report"
                found.setdefault(row["instance"], {"problem": row["problem"], "instance": row["instance"], "why": why})
    return pd.DataFrame(found.values(), columns=["problem", "instance", "why"])


def _contradiction(row: Mapping[str, Any]) -> str:
    """Say how what one study proved of an instance contradicts what the other found; empty when both may be right."""
    states = {side: row[f"exact_status_{side}"] for side in "ab"}
    values = {side: row[f"exact_value_{side}"] for side in "ab"}
    if states["a"] == states["b"] == "optimal" and not agree(values["a"], values["b"]):
        return f"the optimum is {number(values['a'])} in A and {number(values['b'])} in B"
    for one, other in ("ab", "ba"):
        best, bound = row[f"best_value_{other}"], row[f"exact_bound_{one}"]
        if states[one] == "infeasible" and math.isfinite(best):
            return f"{one.upper()} proved that there is no plan, {other.upper()} found one of {number(best)}"
        if math.isfinite(bound) and math.isfinite(best) and beats(row["sense"], best, bound):
            return f"{other.upper()} found a plan of {number(best)}, better than {one.upper()}'s bound {number(bound)}"
    return ""


def _alone(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Instances and heuristics that only one study has."""
    import pandas as pd

    found = []
    for what, column in (("instance", "instance"), ("heuristic", "algorithm")):
        mine = [dict.fromkeys(zip(each["problem"], each[column], strict=True)) for each in (a, b)]
        for study, one, other in (("A", *mine), ("B", *reversed(mine))):
            found += [
                {"problem": problem, "what": what, "name": name, "study": study}
                for problem, name in one
                if (problem, name) not in other and name != EXACT
            ]
    return pd.DataFrame(found, columns=["problem", "what", "name", "study"])
