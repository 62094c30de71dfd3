"""Two studies side by side, paired by instance and heuristic.

A pair is a run of the same heuristic on the same instance, by its digest, in both studies. Both plans are judged
against what the two studies together know of the optimum, so that no difference is one of time limits. Where that is
no proof the gaps are intervals, and so is their difference: over all optima that are possible, which is far less than
what the two intervals alone would leave. Which plan is the better one is known in any case: values are exact.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from instances.base import agree
from validation.errors import StudyError
from validation.formatting import number
from validation.kernel.gaps import beats, gap_interval, gap_to
from validation.kernel.store import Warn
from validation.kinds.replays.paired import LEVEL, Resamples
from validation.kinds.study.cases import EXACT
from validation.kinds.study.results import Study

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare_studies"]

_PAIR = ["problem", "instance", "algorithm"]
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
    rows = [study.rows.drop_duplicates(_PAIR) for study in (a, b)]
    both = rows[0].merge(rows[1], on=[*_PAIR, "sense"], suffixes=("_a", "_b"))
    if both.empty:
        raise StudyError(f"{a.directory} and {b.directory} have run nothing on the same instance")
    wrong = _contradictions(rows, both)
    sound = both[~both["instance"].isin(wrong["instance"])]
    exact, runs = sound[sound["algorithm"] == EXACT], sound[sound["algorithm"] != EXACT]
    pairs = pd.DataFrame([_pair(row) for row in _records(runs) if _has_plans(row)], columns=_OF_PAIR)
    return Comparison(a, b, _heuristics(runs, pairs, seed), _exact_sides(exact, seed), _alone(*rows), wrong, pairs)


def _records(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    yield from rows.to_dict("records")  # type: ignore[misc]


# --- pairs ----------------------------------------------------------------------------------------

_OF_PAIR = [
    *("problem", "instance", "heuristic", "value_a", "value_b", "gap_a_low", "gap_a_high", "gap_b_low", "gap_b_high"),
    *("difference_low", "difference_high", "proven", "b_is"),
]


_OF_HEURISTICS = [
    *("problem", "heuristic", "pairs", "only_a", "only_b", "unproven"),
    *(f"gap_{side}_{kind}_{end}" for side in "ab" for kind in ("mean", "worst") for end in ("low", "high")),
    *("difference_low", "difference_high", "low", "high", "better", "same", "worse"),
]
_OF_EXACT = ["problem", "instances", "both", "only_a", "only_b", "ratio", "low", "high"]


def _has_plans(row: Mapping[str, Any]) -> bool:
    return bool(row["status_a"] == row["status_b"] == "feasible")


def _ends(row: Mapping[str, Any]) -> tuple[float, float]:
    """Between what the optimum lies, by all that both studies know: the best plan, and the bound."""
    for side in "ab":
        if row[f"exact_status_{side}"] == "optimal":
            return row[f"exact_value_{side}"], row[f"exact_value_{side}"]
    smaller = row["sense"] == "min"
    best, tightest = (min, max) if smaller else (max, min)
    bounds = [row[f"exact_bound_{side}"] for side in "ab" if math.isfinite(row[f"exact_bound_{side}"])]
    nothing = -math.inf if smaller else math.inf
    return best(row["best_value_a"], row["best_value_b"]), tightest(bounds, default=nothing)


def _pair(row: Mapping[str, Any]) -> dict[str, Any]:
    value_a, value_b, ends = row["value_a"], row["value_b"], _ends(row)
    same = agree(value_a, value_b)
    better = beats(row["sense"], value_b, value_a)
    gaps = {side: gap_interval(row[f"value_{side}"], *ends) for side in "ab"}
    low, high = (0.0, 0.0) if same else _difference(value_a, value_b, *ends, toward=-math.inf if better else math.inf)
    return {
        "problem": row["problem"],
        "instance": row["instance"],
        "heuristic": row["algorithm"],
        "value_a": value_a,
        "value_b": value_b,
        **{f"gap_{side}_low": gaps[side][0] for side in "ab"},
        **{f"gap_{side}_high": gaps[side][1] for side in "ab"},
        "difference_low": low,
        "difference_high": high,
        "proven": ends[0] == ends[1],
        "b_is": "same" if same else "better" if better else "worse",
    }


def _difference(value_a: float, value_b: float, best: float, bound: float, *, toward: float) -> tuple[float, float]:
    """Least and greatest gap of B less that of A, over all optima between the ends.

    Both gaps are to one optimum v*, so that their difference is that of the values over abs(v*): it is monotone where
    v* has one sign, and has no end ``toward`` its own sign where v* may be 0.
    """

    def at(optimum: float) -> float:
        if math.isinf(optimum):
            return 0.0
        gap_a, gap_b = gap_to(value_a, optimum), gap_to(value_b, optimum)
        return toward if math.isinf(gap_a) or math.isinf(gap_b) else gap_b - gap_a

    found = [at(best), at(bound)] + [toward] * (min(best, bound) < 0 < max(best, bound))
    return min(found), max(found)


def _heuristics(runs: pd.DataFrame, pairs: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Make a row for each problem and heuristic that both studies have run on an instance."""
    import pandas as pd

    of_pair = dict(list(pairs.groupby(["problem", "heuristic"], sort=False)))
    found = []
    for (problem, heuristic), group in runs.groupby(["problem", "algorithm"], sort=False):
        mine = of_pair.get((problem, heuristic), pairs[:0])
        in_a, in_b = (group[f"status_{side}"].eq("feasible").to_numpy(bool) for side in "ab")
        entry = {
            "problem": problem,
            "heuristic": heuristic,
            "pairs": len(mine),
            "only_a": int((in_a & ~in_b).sum()),
            "only_b": int((in_b & ~in_a).sum()),
            "unproven": int((~mine["proven"].astype(bool)).sum()),
        }
        for side in "ab":
            for end in ("low", "high"):
                gaps = mine[f"gap_{side}_{end}"].to_numpy(float)
                entry[f"gap_{side}_mean_{end}"] = float(gaps.mean()) if len(gaps) else np.nan
                entry[f"gap_{side}_worst_{end}"] = float(gaps.max()) if len(gaps) else np.nan
        least, most = (mine[f"difference_{end}"].to_numpy(float) for end in ("low", "high"))
        entry["difference_low"], entry["difference_high"] = _mean(least), _mean(most)
        entry["low"], entry["high"] = _interval(least, seed)[0], _interval(most, seed)[1]
        entry |= {word: int((mine["b_is"] == word).sum()) for word in ("better", "same", "worse")}
        found.append(entry)
    return pd.DataFrame(found, columns=_OF_HEURISTICS)


def _mean(differences: NDArray[Any]) -> float:
    """Their mean; NaN of none, and where some are infinite on either side."""
    if not len(differences) or {math.inf, -math.inf} <= set(differences.tolist()):
        return math.nan
    return float(differences.mean())


def _interval(values: NDArray[Any], seed: int) -> tuple[float, float]:
    """Return the ends of the interval of their mean, each of them drawn by itself; NaN where there are none."""
    import pandas as pd

    if not np.isfinite(values).all():
        return math.nan, math.nan
    each = pd.DataFrame({"trace": "", "window": 0, "seed": range(len(values))})
    return Resamples(each, seed=seed).interval((values, np.ones(len(values))), LEVEL)


# --- exact sides, and what cannot be --------------------------------------------------------------


def _exact_sides(exact: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Make a row for each problem: what was proven, and how long that took in B over A."""
    import pandas as pd

    found = []
    for problem, group in exact.groupby("problem", sort=False):
        in_a, in_b = (group[f"status_{side}"].isin(_PROVEN).to_numpy(bool) for side in "ab")
        timed = group[in_a & in_b & (group["seconds_a"] > 0) & (group["seconds_b"] > 0)]
        logs = np.log(timed["seconds_b"].to_numpy(float) / timed["seconds_a"].to_numpy(float))
        ends = _interval(logs, seed)
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
    for row in _records(both.drop_duplicates("instance")):
        why = _contradiction(row)
        if why:
            found[row["instance"]] = {"problem": row["problem"], "instance": row["instance"], "why": why}
    shared = set(both["instance"])
    for name, each in zip("AB", rows, strict=True):
        for row in _records(each[each["disagreement"]]):
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
