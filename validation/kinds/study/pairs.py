"""Plans paired by their instance: two heuristics of one study, or one heuristic in two studies.

Both plans of a pair are judged against the same knowledge of the optimum.  Where that is no proof the gaps are
intervals, and so is their difference: over all optima that are possible, which is far less than what the two intervals
alone would leave.  Which plan is the better one is known in any case: values are exact.

A difference is what the second, B, has more than the first, A.  Intervals are of the bootstrap over the instances, each
of them drawn by itself; where several comparisons are made at once, each interval is so much wider that all of them
hold together (Bonferroni).
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from instances.base import agree
from instances.schema import nearest, quoted
from validation.errors import StudyError
from validation.formatting import difference_range, gap_range, number_range, ratio_range
from validation.kernel.gaps import beats, gap_interval, gap_to
from validation.kinds.replays.paired import RESAMPLES, Resamples, corrected, samples_for, too_few
from validation.kinds.study.cases import EXACT

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "OF_PAIR",
    "OF_PAIRS",
    "PAIR",
    "Intervals",
    "SideBySide",
    "compare_heuristics",
    "counted_pairs",
    "has_plans",
    "pair",
    "records",
    "shown_pairs",
]

PAIR = ["problem", "instance", "algorithm"]
"""Columns that say what a row of a study is a run of."""

OF_PAIR = [
    *("value_a", "value_b", "gap_a_low", "gap_a_high", "gap_b_low", "gap_b_high"),
    *("difference_low", "difference_high", "proven", "b_is"),
]
"""Columns of what is known of a pair."""

OF_PAIRS = [
    *("pairs", "only_a", "only_b", "unproven"),
    *(f"gap_{side}_{kind}_{end}" for side in "ab" for kind in ("mean", "worst") for end in ("low", "high")),
    *("difference_low", "difference_high", "low", "high", "better", "same", "worse"),
]
"""Columns of what is known of all pairs of a comparison."""

DRAWS = 20_000_000
"""Numbers drawn for a bootstrap, about a second's work: what would take more has ``RESAMPLES`` samples."""


# --- one pair -------------------------------------------------------------------------------------


def records(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Return the rows as dictionaries."""
    yield from rows.to_dict("records")  # type: ignore[misc]


def has_plans(row: Mapping[str, Any]) -> bool:
    """Return whether both sides of a row have a feasible plan."""
    return bool(row["status_a"] == row["status_b"] == "feasible")


def _ends(row: Mapping[str, Any]) -> tuple[float, float]:
    """Between what the optimum lies, by all that both sides know: the best plan, and the bound."""
    for side in "ab":
        if row[f"exact_status_{side}"] == "optimal":
            return row[f"exact_value_{side}"], row[f"exact_value_{side}"]
    smaller = row["sense"] == "min"
    best, tightest = (min, max) if smaller else (max, min)
    bounds = [row[f"exact_bound_{side}"] for side in "ab" if math.isfinite(row[f"exact_bound_{side}"])]
    nothing = -math.inf if smaller else math.inf
    return best(row["best_value_a"], row["best_value_b"]), tightest(bounds, default=nothing)


def pair(row: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the plans of both sides of a row: ``OF_PAIR``."""
    value_a, value_b, ends = row["value_a"], row["value_b"], _ends(row)
    same = agree(value_a, value_b)
    better = beats(row["sense"], value_b, value_a)
    gaps = {side: gap_interval(row[f"value_{side}"], *ends) for side in "ab"}
    low, high = (0.0, 0.0) if same else _difference(value_a, value_b, *ends, toward=-math.inf if better else math.inf)
    return {
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


# --- all pairs of a comparison --------------------------------------------------------------------


class Intervals:
    """Percentile intervals of means over pairs, so many comparisons at once that all of them hold together.

    Parameters
    ----------
    seed : int
        Of the bootstrap: the same pairs have the same intervals.
    comparisons : int

    Attributes
    ----------
    level : float
        Of each interval.
    """

    def __init__(self, seed: int, comparisons: int = 1) -> None:
        self.seed, self.comparisons = seed, comparisons
        self.level = corrected(comparisons)
        self._of_last: tuple[int, Resamples] | None = None

    def __call__(self, values: NDArray[Any]) -> tuple[float, float]:
        """Return the ends for the mean of the values; NaN where there are not two, or one is not finite."""
        if len(values) < 2 or not np.isfinite(values).all():
            return math.nan, math.nan
        return self._of(len(values)).interval((values, np.ones(len(values))), self.level)

    def _of(self, number: int) -> Resamples:
        """Return the samples of so many pairs; most comparisons of a study have the same number."""
        import pandas as pd

        if self._of_last is None or self._of_last[0] != number:
            each = pd.DataFrame({"trace": "", "window": 0, "seed": range(number)})
            wanted = min(samples_for(self.level), max(RESAMPLES, DRAWS // number))
            self._of_last = number, Resamples(each, seed=self.seed, number=wanted)
        return self._of_last[1]


def counted_pairs(runs: pd.DataFrame, pairs: pd.DataFrame, interval: Intervals) -> dict[str, Any]:
    """Sum up a comparison: ``OF_PAIRS``.

    Parameters
    ----------
    runs : DataFrame
        Both sides' runs on the same instances, with ``status_a`` and ``status_b``.
    pairs : DataFrame
        Of those runs, where both have a plan.
    interval : Intervals
    """
    in_a, in_b = (runs[f"status_{side}"].eq("feasible").to_numpy(bool) for side in "ab")
    entry: dict[str, Any] = {
        "pairs": len(pairs),
        "only_a": int((in_a & ~in_b).sum()),
        "only_b": int((in_b & ~in_a).sum()),
        "unproven": int((~pairs["proven"].astype(bool)).sum()),
    }
    for side in "ab":
        for end in ("low", "high"):
            gaps = pairs[f"gap_{side}_{end}"].to_numpy(float)
            entry[f"gap_{side}_mean_{end}"] = float(gaps.mean()) if len(gaps) else np.nan
            entry[f"gap_{side}_worst_{end}"] = float(gaps.max()) if len(gaps) else np.nan
    least, most = (pairs[f"difference_{end}"].to_numpy(float) for end in ("low", "high"))
    entry["difference_low"], entry["difference_high"] = _mean(least), _mean(most)
    entry["low"], entry["high"] = interval(least)
    if entry["unproven"]:
        entry["high"] = interval(most)[1]
    return entry | {word: int((pairs["b_is"] == word).sum()) for word in ("better", "same", "worse")}


def _mean(differences: NDArray[Any]) -> float:
    """Their mean; NaN of none, and where some are infinite on either side."""
    if not len(differences) or {math.inf, -math.inf} <= set(differences.tolist()):
        return math.nan
    return float(differences.mean())


# --- the heuristics of one study ------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class SideBySide:
    """Heuristics of one study, two by two; a difference is what the second, B, has more than the first, A.

    Attributes
    ----------
    directory : Path
        Of the study.
    table : DataFrame
        For each problem and two heuristics ``a`` and ``b``, over all sizes and swept values: ``instances`` that both
        were run on; ``pairs``, with a feasible plan of both; ``only_a``, ``only_b`` and ``neither``, where one or both
        have none; ``unproven``, pairs whose optimum is not proven; mean and worst gap of both, each as the least and
        the greatest that the bounds allow (``gap_a_mean_low``, ...); the mean of the differences of the gaps
        (``difference_low``, ``difference_high``), 0.01 for a percentage point, and its interval ``low`` to ``high``;
        the geometric mean ``ratio`` of the values of B over those of A, with ``ratio_low`` to ``ratio_high`` (NaN where
        a value is not above 0); the mean difference of the values, ``value``, with ``value_low`` to ``value_high``; on
        how many pairs B is ``better``, the ``same`` or ``worse``; ``comparisons`` of the problem, for which all
        intervals are corrected, and the ``level`` of each; and the ``verdict``: "a" or "b", which is better, "open"
        where the interval holds 0, "few" where the pairs that differ are so few that chance alone makes all of them
        fall one way, "same" where none differs.
    pairs : DataFrame
        A row for each pair: values, gaps, the interval of the difference, and what ``b_is``.
    wrong : int
        Instances with an oracle disagreement; they are in none of the numbers.
    """

    directory: Path
    table: pd.DataFrame
    pairs: pd.DataFrame
    wrong: int

    def overview(self) -> pd.DataFrame:
        """Return the rows as people read them; columns that say nothing are left out."""
        import pandas as pd

        shown = pd.DataFrame([{"problem": row["problem"], **shown_pairs(row)} for row in records(self.table)])
        return shown[[name for name in shown if name not in _APART or shown[name].any()]]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparisons as JSON, without the single pairs; infinite numbers and NaN are as Python has them."""
        told = {"directory": str(self.directory), "disagreements": self.wrong}
        return {**told, "comparisons": self.table.to_dict("records")}

    def __repr__(self) -> str:
        wrong = (
            f", {self.wrong} instance{'s' * (self.wrong > 1)} with an oracle disagreement left out"
            if self.wrong
            else ""
        )
        head = f"Heuristics of {self.directory}, B beside A: {len(self.pairs)} pairs{wrong}"
        return f"{head}\n{self.overview().to_string(index=False)}"

    def _repr_html_(self) -> str:
        head = html.escape(repr(self).splitlines()[0])
        return f"<p>{head}</p>{self.overview().to_html(index=False)}"


_APART = {"A only": "only_a", "B only": "only_b", "neither": "neither", "not proven": "unproven"}
"""Counts that are shown where there are some."""

VERDICTS = {
    "a": "A is better",
    "b": "B is better",
    "open": "not told apart",
    "few": "too few to tell",
    "same": "no difference",
}


def shown_pairs(row: Mapping[str, Any]) -> dict[str, Any]:
    """Write a row of :attr:`SideBySide.table` for people, by the names of columns."""
    difference = difference_range(row["difference_low"], row["difference_high"])
    ends = _between(difference_range, row["low"], row["high"])
    if math.isnan(row["low"]) and not math.isnan(row["value_low"]):
        # To an optimum of 0 gaps are infinite, and the values' own measure says more.
        difference = f"{difference}, in values {_signed(row['value'], row['value'])}"
        ends = _between(_signed, row["value_low"], row["value_high"])
    return {
        "A": row["a"],
        "B": row["b"],
        "so": VERDICTS[row["verdict"]],
        "pairs": row["pairs"],
        **{name: row[of] for name, of in _APART.items()},
        "better": row["better"],
        "same": row["same"],
        "worse": row["worse"],
        "B less A": difference + ends,
        "B over A": _ratio(row["ratio"], row["ratio"]) + _between(_ratio, row["ratio_low"], row["ratio_high"]),
        "gap A": gap_range(row["gap_a_mean_low"], row["gap_a_mean_high"]),
        "gap B": gap_range(row["gap_b_mean_low"], row["gap_b_mean_high"]),
    }


def _between(shown: Callable[[float, float], str], low: float, high: float) -> str:
    """Write an interval in brackets; nothing where there is none, or it has no width."""
    return f" ({shown(low, high)})" if low < high else ""


def _ratio(low: float, high: float) -> str:
    # Its column says what it is.
    return ratio_range(low, high).replace(" ×", "")


def _signed(low: float, high: float) -> str:
    return number_range(low, high).replace("-", "−")


def compare_heuristics(directory: Path, rows: pd.DataFrame, heuristics: Sequence[str], *, seed: int) -> SideBySide:
    """Compare heuristics of one study, two by two: see :meth:`validation.Study.compare`.

    Parameters
    ----------
    directory : Path
    rows : DataFrame
        Of the study, or of one of its problems.
    heuristics : sequence of str
        In the order in which they are compared; none for all.
    seed : int
        Of the bootstrap.

    Raises
    ------
    StudyError
        When a heuristic is unknown or alone, or no two of them were run on the same instance.
    """
    import pandas as pd

    names = [name for name in dict.fromkeys(rows["algorithm"]) if name != EXACT]
    for name in heuristics:
        if name not in names:
            raise StudyError(f"heuristics: got {quoted(name)}{nearest(name, names)}, there are {', '.join(names)}")
    if len(heuristics) == 1 or len(set(heuristics)) < len(heuristics):
        raise StudyError(f"heuristics: got {', '.join(heuristics)}, must be at least two, each once")
    wrong = set(rows.loc[rows["disagreement"], "instance"])
    sound = rows[~rows["instance"].isin(wrong) & rows["algorithm"].isin(heuristics or names)].drop_duplicates(PAIR)
    told, pairs = list[dict[str, Any]](), list[dict[str, Any]]()
    for problem, mine in sound.groupby("problem", sort=False):
        runs = {name: of[_OF_RUN] for name, of in mine.groupby("algorithm", sort=False)}
        both = {
            two: runs[two[0]].merge(runs[two[1]], on=["instance", "sense"], suffixes=("_a", "_b"))
            for two in itertools.combinations([name for name in heuristics or names if name in runs], 2)
        }
        both = {two: on for two, on in both.items() if len(on)}
        interval = Intervals(seed, max(1, len(both)))
        for (a, b), on in both.items():
            of = {"problem": str(problem), "a": a, "b": b}
            found = [{**of, "instance": row["instance"], **pair(row)} for row in records(on) if has_plans(row)]
            told.append({**of, **_compared(on, pd.DataFrame(found, columns=OF_PAIR), interval)})
            pairs += found
    if not told:
        raise StudyError(f"{directory}: no two heuristics were run on the same instance")
    table = pd.DataFrame(told)
    return SideBySide(directory, table, pd.DataFrame(pairs, columns=[*_OF_TWO, "instance", *OF_PAIR]), len(wrong))


_OF_TWO = ["problem", "a", "b"]
_OF_RUN = [
    *("instance", "sense", "status", "value", "best_value"),
    *("exact_status", "exact_value", "exact_bound"),
]


def _compared(runs: pd.DataFrame, pairs: pd.DataFrame, interval: Intervals) -> dict[str, Any]:
    """Sum up the comparison of two heuristics, with what the values themselves say."""
    entry = counted_pairs(runs, pairs, interval)
    a, b = (pairs[f"value_{side}"].to_numpy(float) for side in "ab")
    same = pairs["b_is"].eq("same").to_numpy(bool)
    with np.errstate(all="ignore"):
        off = np.where(same, 0.0, b - a)
        logs = np.where(same, 0.0, np.log(b / a))
        logs[~same & ~((a > 0) & (b > 0))] = np.nan
    ends, of_ratio = interval(off), interval(logs)
    entry |= {
        "instances": len(runs),
        "neither": len(runs) - len(pairs) - entry["only_a"] - entry["only_b"],
        "ratio": float(np.exp(logs.mean())) if len(logs) else np.nan,
        "ratio_low": float(np.exp(of_ratio[0])),
        "ratio_high": float(np.exp(of_ratio[1])),
        "value": float(off.mean()) if len(off) else np.nan,
        "value_low": ends[0],
        "value_high": ends[1],
        "comparisons": interval.comparisons,
        "level": interval.level,
    }
    return entry | {"verdict": _verdict(entry, runs["sense"].iloc[0])}


def _verdict(entry: Mapping[str, Any], sense: str) -> str:
    """Say which of two heuristics is better: "a", "b", or why none can be called so."""
    differ = entry["better"] + entry["worse"]
    if entry["pairs"] and not differ:
        return "same"
    if too_few(differ, entry["level"]):
        return "few"
    low, high = entry["low"], entry["high"]
    if math.isnan(low) or math.isnan(high):
        # To an optimum of 0 gaps are infinite; values are not.
        ends = (entry["value_low"], entry["value_high"])
        low, high = ends if sense == "min" else (-ends[1], -ends[0])
    return "a" if low > 0 else "b" if high < 0 else "open"
