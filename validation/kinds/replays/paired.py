"""Replays compared by pairs: the same job, in the same window of the same trace, under two decision makers.

Jobs of one replay wait for each other, so that they are no independent evidence: what is drawn again in the bootstrap
are windows, and the seeds within each, never jobs.  Optima are degenerate, so that another order of the same jobs may
be decided otherwise: what two such *tie-breaks* of one decision maker differ by stands beside each effect, and an
effect that is no greater is luck.

The tables are those of :class:`validation.replay.replayed.Replayed`, with the columns ``trace``, ``window``,
``seed``, ``policy`` (the decision maker) and ``tie`` in front, which say what replay a row is of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from validation.kernel.gaps import percentile_95

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CELL",
    "LEVEL",
    "RESAMPLES",
    "Resamples",
    "averages",
    "comparisons",
    "corrected",
    "cost_of_gaps",
    "differences",
    "gap_points",
    "gaps",
    "proven",
    "samples_for",
    "too_few",
    "verdict",
]

CELL = ("trace", "window", "seed", "policy", "tie")
"""Columns that say what replay a row is of."""
_RUN = ["trace", "window", "seed"]
"""What two decision makers have in common that are compared."""

RESAMPLES = 2000
"""Samples of the bootstrap."""
LEVEL = 0.95
"""Of the intervals."""
BEYOND = 10
"""Samples of the bootstrap beyond either end of an interval, at least."""
BLOCK = 1_000_000
"""Numbers that are drawn at a time."""

_Sums: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
"""Numerators and denominators by run: every number here is a ratio of their sums."""


# --- the bootstrap ------------------------------------------------------------------------------


class Resamples:
    """Samples of the bootstrap: how often each run is in each.

    Windows are drawn with replacement, and for each that is drawn as many seeds as it has, with replacement.  With
    one window the intervals are those over its seeds; with one run there are none.

    Parameters
    ----------
    runs : DataFrame
        One row for each run, with the columns ``trace``, ``window`` and ``seed``.
    seed : int
        Of the draws: the same runs have the same intervals.
    number : int
        Of samples.

    Attributes
    ----------
    times : (number, runs) array
    """

    def __init__(self, runs: pd.DataFrame, *, seed: int = 0, number: int = RESAMPLES) -> None:
        rng = np.random.default_rng(seed)
        groups = [*runs.reset_index(drop=True).groupby(["trace", "window"], sort=False).groups.values()]
        self.times = np.zeros((number, len(runs)), np.uint16)
        if not groups:
            return
        drawn = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=number)
        for which, members in enumerate(groups):
            share = np.full(len(members), 1 / len(members))
            for some in self._blocks(len(members)):
                self.times[some, np.asarray(members, int)] = rng.multinomial(drawn[some, which] * len(members), share)

    def _blocks(self, width: int) -> Iterator[slice]:
        """Yield some samples at a time: eight bytes for each run in all of them would be much memory."""
        step = max(1, BLOCK // max(1, width))
        return (slice(start, start + step) for start in range(0, len(self.times), step))

    def interval(self, sums: _Sums, level: float = LEVEL) -> tuple[float, float]:
        """Return the ends of the percentile interval of the ratio of two sums; NaN where there are not two runs.

        Parameters
        ----------
        sums : pair of (runs,) arrays
            Numerators and denominators.
        level : float
        """
        parts = np.column_stack(sums)
        above, below = np.concatenate([self.times[some] @ parts for some in self._blocks(len(parts))]).T
        # A sample without a job that the measure is about says nothing.
        ratios = above[below != 0] / below[below != 0]
        if self.times.shape[1] < 2 or not len(ratios) or not np.isfinite(ratios).all():
            return np.nan, np.nan
        low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def corrected(number: int) -> float:
    """Return the level of each of so many intervals that all hold together at ``LEVEL`` (Bonferroni)."""
    return 1 - (1 - LEVEL) / max(1, number)


def samples_for(level: float) -> int:
    """Return how many samples intervals of a level take: the farther out the ends are, the more."""
    return max(RESAMPLES, math.ceil(2 * BEYOND / (1 - level)))


def too_few(number: int, level: float) -> bool:
    """Return whether so many all fall one way by chance alone more often than the level allows."""
    return bool(2.0 ** (1 - number) > 1 - level)


def _independent(runs: pd.DataFrame) -> int:
    """Count the windows, or of one window the seeds: what the bootstrap draws first."""
    windows = len(runs[["trace", "window"]].drop_duplicates())
    return windows if windows > 1 else len(runs)


def _ratio(sums: _Sums) -> float:
    above, below = (float(part.sum()) for part in sums)
    return above / below if below else np.nan


# --- each by itself ---


def averages(
    rows: pd.DataFrame,
    metrics: Sequence[str],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Means of metrics over runs, each the mean over its tie-breaks.

    Parameters
    ----------
    rows : DataFrame
        A row for each replay.
    metrics : sequence of str
        Columns of it.
    seed, resamples, level
        Of the bootstrap.

    Returns
    -------
    DataFrame
        For each trace, decision maker and metric that is known of some run: ``mean``, the ends ``low`` and ``high`` of
        its interval (NaN for a single run), ``spread`` (by how much the means of single tie-breaks differ; NaN where
        there are not two) and ``runs``.
    """
    import pandas as pd

    found = []
    for (trace, policy), group in rows.groupby(["trace", "policy"], sort=False):
        for metric in metrics:
            known = group[group[metric].notna()] if metric in group else group[:0]
            if known.empty:
                continue
            by_run = known.astype({metric: float}).groupby(_RUN, sort=False)[metric].mean()
            sums = (by_run.to_numpy(float), np.ones(len(by_run)))
            low, high = Resamples(by_run.index.to_frame(index=False), seed=seed, number=resamples).interval(sums, level)
            by_tie = known.astype({metric: float}).groupby("tie")[metric].mean()
            found.append(
                {
                    "trace": trace,
                    "policy": policy,
                    "metric": metric,
                    "mean": _ratio(sums),
                    "low": low,
                    "high": high,
                    "spread": float(by_tie.max() - by_tie.min()) if len(by_tie) > 1 else np.nan,
                    "runs": len(by_run),
                }
            )
    return pd.DataFrame(found, columns=["trace", "policy", "metric", "mean", "low", "high", "spread", "runs"])


# --- differences --------------------------------------------------------------------------------


class _Pairing:
    """Two decision makers on the runs of which all replays of both have ended.

    Attributes
    ----------
    runs : DataFrame
    times : DataFrame
        Completion times of the jobs that both complete in all tie-breaks: a row for each job, and a column for each
        decision maker and tie-break.
    makespans, met : DataFrame
        The same for each run; ``met`` counts deadlines.
    deadlines : Series
        How many there are in each run.
    """

    def __init__(self, jobs: pd.DataFrame, policy: str, reference: str) -> None:
        self.sides = (policy, reference)
        both = jobs[jobs["policy"].isin(self.sides)]
        replays = both.groupby(list(CELL), sort=False)
        self.makespans = _wide(replays["ended"].max() - replays["arrival"].min())
        self.runs = self.makespans.index.to_frame(index=False)
        at = both.set_index([*_RUN, "job", "policy", "tie"])
        self.times = _wide(at["ended"] - at["arrival"])
        due = both["deadline"].notna()
        # A job that never ends has missed its deadline.
        met = both["met"].astype("boolean").fillna(False) & due
        self.met = _wide(met.astype(float).groupby([both[name] for name in CELL], sort=False).sum())
        count = due.astype(float).groupby([both[name] for name in CELL], sort=False).sum()
        self.deadlines = _wide(count).iloc[:, 0]
        self.jobs = len(both[[*_RUN, "job"]].drop_duplicates())

    def ties(self, name: str) -> list[int]:
        """Tie-breaks of a decision maker."""
        return [*self.makespans[name].columns]

    def of(self, table: pd.DataFrame, only: Mapping[str, int]) -> tuple[pd.Series[Any], pd.Series[Any]]:
        """Both sides' means over their tie-breaks, or over the one that ``only`` names."""
        import pandas as pd

        def side(name: str) -> pd.Series[Any]:
            of_ties = pd.DataFrame(table[name])
            return of_ties[only[name]] if name in only else of_ties.mean(axis=1)

        return side(self.sides[0]), side(self.sides[1])

    def sums(self, measure: str, only: Mapping[str, int] | None = None) -> _Sums:
        """Numerators and denominators of a measure, by run."""
        above, below = MEASURES[measure](self, only or {})
        return _by_run(above, self.runs), _by_run(below, self.runs)


def _others(jobs: pd.DataFrame, reference: str) -> list[str]:
    """Decision makers that can be compared with the reference, which is none of them where it has no replay."""
    names = [*dict.fromkeys(jobs["policy"])]
    return [name for name in names if name != reference] if reference in names else []


def _wide(values: pd.Series[Any]) -> pd.DataFrame:
    """Make a column for each decision maker and tie-break; rows that lack one are left out."""
    return values.unstack(["policy", "tie"]).dropna()


def _by_run(values: pd.Series[Any], runs: pd.DataFrame) -> NDArray[Any]:
    """Sum over the rows of each run, in the order of the runs; nothing counts as 0."""
    import pandas as pd

    return values.groupby(_RUN).sum().reindex(pd.MultiIndex.from_frame(runs[_RUN]), fill_value=0.0).to_numpy(float)


def _average(pairing: _Pairing, only: Mapping[str, int]) -> tuple[pd.Series[Any], pd.Series[Any]]:
    mine, theirs = pairing.of(pairing.times, only)
    return mine - theirs, theirs


def _seconds(pairing: _Pairing, only: Mapping[str, int]) -> tuple[pd.Series[Any], pd.Series[Any]]:
    mine, theirs = pairing.of(pairing.times, only)
    return mine - theirs, _ones(theirs)


def _each_job(pairing: _Pairing, only: Mapping[str, int]) -> tuple[pd.Series[Any], pd.Series[Any]]:
    mine, theirs = pairing.of(pairing.times, only)
    some = theirs > 0
    return mine[some] / theirs[some] - 1, _ones(theirs[some])


def _makespan(pairing: _Pairing, only: Mapping[str, int]) -> tuple[pd.Series[Any], pd.Series[Any]]:
    mine, theirs = pairing.of(pairing.makespans, only)
    return mine - theirs, theirs


def _deadlines(pairing: _Pairing, only: Mapping[str, int]) -> tuple[pd.Series[Any], pd.Series[Any]]:
    mine, theirs = pairing.of(pairing.met, only)
    return mine - theirs, pairing.deadlines


def _ones(values: pd.Series[Any]) -> pd.Series[Any]:
    import pandas as pd

    return pd.Series(1.0, values.index)


MEASURES: Mapping[str, Callable[[_Pairing, Mapping[str, int]], tuple[pd.Series[Any], pd.Series[Any]]]] = {
    "average completion time": _average,
    "completion time, s": _seconds,
    "completion time, each job": _each_job,
    "makespan": _makespan,
    "deadlines met": _deadlines,
}
"""What is compared.  The average completion time and the makespan, relative to the other's; the mean over jobs of the
difference in seconds, and of each job's relative difference, in which short jobs count as much as long ones; and the
difference of the shares of deadlines that are met."""


def comparisons(jobs: pd.DataFrame, reference: str) -> int:
    """Count the rows of :func:`differences`, of which some may have nothing to compare."""
    due = bool(jobs["deadline"].notna().any())
    return len(_others(jobs, reference)) * (len(MEASURES) - (not due))


def differences(
    jobs: pd.DataFrame, reference: str, *, seed: int = 0, resamples: int | None = None, level: float = LEVEL
) -> pd.DataFrame:
    """Compare each decision maker's replays with those of a reference, paired by job.

    Completion times are those of the jobs that both complete, in all of their tie-breaks, each the mean over the
    tie-breaks; deadlines are those of all jobs that have one, and a job that never ends has missed its own.  A run
    counts when all replays of both have ended.

    Parameters
    ----------
    jobs : DataFrame
        The table of jobs of all replays.
    reference : str
        Name of the decision maker that the others are compared with.
    seed, resamples, level
        Of the bootstrap; as many samples as the level takes by default.

    Returns
    -------
    DataFrame
        For each decision maker but the reference and each of ``MEASURES`` (deadlines where there are some):
        ``value``, the ends ``low`` and ``high`` of its interval (NaN for a single run), ``spread`` (the most that the
        values with one tie-break in place of all of a decision maker's lie apart; NaN where there are not two),
        ``level`` of the interval, ``verdict`` (:func:`verdict`), ``jobs`` and ``runs`` that it is made of, and
        ``left_out``, jobs that one of the two did not complete.
    """
    import pandas as pd

    found = []
    for policy in _others(jobs, reference):
        pairing = _Pairing(jobs, policy, reference)
        samples = Resamples(pairing.runs, seed=seed, number=resamples or samples_for(level))
        few = too_few(_independent(pairing.runs), level)
        for measure in MEASURES:
            sums = pairing.sums(measure)
            if measure == "deadlines met" and not sums[1].any():
                continue
            value, (low, high) = _ratio(sums), samples.interval(sums, level)
            spread = np.nan
            for name in pairing.sides:
                each = [_ratio(pairing.sums(measure, {name: tie})) for tie in pairing.ties(name)]
                if len(each) > 1:
                    spread = float(np.fmax(spread, max(each) - min(each)))
            found.append(
                {
                    "policy": policy,
                    "reference": reference,
                    "measure": measure,
                    "value": value,
                    "low": low,
                    "high": high,
                    "spread": spread,
                    "level": level,
                    "verdict": verdict(value, low, high, spread, few=few),
                    "jobs": len(pairing.times),
                    "runs": len(pairing.runs),
                    "left_out": pairing.jobs - len(pairing.times),
                }
            )
    columns = ["policy", "reference", "measure", "value", "low", "high", "spread", "level", "verdict"]
    return pd.DataFrame(found, columns=[*columns, "jobs", "runs", "left_out"])


def verdict(value: float, low: float, high: float, spread: float, *, few: bool = False) -> str:
    """Classify a difference.

    Returns
    -------
    str
        "none" where it is 0; "luck" where tie-breaks alone make as much; "one run" where there is no interval; "open"
        where its interval holds 0; "few" where the runs are too few to tell (:func:`too_few`); else "effect".
    """
    if value == 0:
        return "none"
    if abs(value) <= spread:
        return "luck"
    if np.isnan(low):
        return "one run"
    if low <= 0 <= high:
        return "open"
    return "few" if few else "effect"


# --- gaps, and what they cost -------------------------------------------------------------------


def proven(decisions: pd.DataFrame) -> pd.DataFrame:
    """Decisions of which the optimum is proven, so that the gap is a number and no interval, and is finite."""
    found: pd.DataFrame = decisions.loc[decisions["optimum"].notna() & np.isfinite(decisions["gap"].to_numpy(float))]
    return found


def gaps(decisions: pd.DataFrame, *, seed: int = 0, resamples: int = RESAMPLES, level: float = LEVEL) -> pd.DataFrame:
    """Describe the distribution of the gaps of single decisions.

    Parameters
    ----------
    decisions : DataFrame
        The table of decisions of all replays.
    seed, resamples, level
        Of the bootstrap.

    Returns
    -------
    DataFrame
        For each decision maker and problem: how many ``decisions`` there are, of how many the exact side was ``asked``,
        and of how many of these the optimum is ``proven`` and not 0.  Of the proven ones ``mean`` with its interval
        ``low`` to ``high``, ``median``, ``p95``, ``worst``, and the share ``optimal`` without a gap; of all that were
        asked the mean of the least and of the greatest gap that the bounds allow, ``least`` and ``most``.
        Percentiles are observed gaps: the smallest that so many do not exceed; ``p95`` as from
        :func:`validation.kernel.gaps.percentile_95`.
    """
    import pandas as pd

    found = []
    for (policy, problem), rows in decisions.groupby(["policy", "problem"], sort=False):
        asked, known = rows[rows["gap"].notna()], proven(rows)
        runs = known[_RUN].drop_duplicates()
        at = known.set_index(_RUN)["gap"]
        sums = (_by_run(at, runs), _by_run(_ones(at), runs))
        low, high = Resamples(runs, seed=seed, number=resamples).interval(sums, level)
        values = at.to_numpy(float)
        median, greatest = np.quantile(values, [0.5, 1], method="inverted_cdf") if len(values) else [np.nan] * 2
        found.append(
            {
                "policy": policy,
                "problem": problem,
                "decisions": len(rows),
                "asked": len(asked),
                "proven": len(known),
                "mean": _ratio(sums),
                "low": low,
                "high": high,
                "median": float(median),
                "p95": percentile_95(values),
                "worst": float(greatest),
                "optimal": float((values == 0).mean()) if len(values) else np.nan,
                "least": float(asked["gap"].mean()),
                "most": float(asked["gap_most"].mean()),
            }
        )
    columns = ["policy", "problem", "decisions", "asked", "proven", "mean", "low", "high", "median", "p95", "worst"]
    return pd.DataFrame(found, columns=[*columns, "optimal", "least", "most"])


def gap_points(jobs: pd.DataFrame, decisions: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return, for each run and decision maker but the reference, its mean gap and what it costs beside the reference.

    Returns
    -------
    DataFrame
        ``trace``, ``window``, ``seed``, ``policy``; ``gap``, the mean of the gaps that are proven (:func:`proven`) over
        all tie-breaks; ``cost``, the average completion time relative to the reference's, less 1, over the jobs that
        both complete.  Runs in which either is not known are left out.
    """
    import pandas as pd

    gap = proven(decisions).groupby([*_RUN, "policy"])["gap"].mean()
    found = []
    for policy in _others(jobs, reference):
        above, below = _average(_Pairing(jobs, policy, reference), {})
        cost = above.groupby(_RUN).sum() / below.groupby(_RUN).sum()
        found.append(cost.rename("cost").reset_index().assign(policy=policy))
    columns = [*_RUN, "policy", "gap", "cost"]
    if not found:
        return pd.DataFrame(columns=columns)
    return pd.concat(found).merge(gap.reset_index(), on=[*_RUN, "policy"])[columns].reset_index(drop=True)


def cost_of_gaps(
    points: pd.DataFrame,
    policies: Sequence[str],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Estimate by how many per cent 1 % of gap changes the average completion time.

    The cost of a run is regressed on its mean gap, by least squares, through the origin: who decides as the exact side
    does has its completion times.  It is an association over runs and, where several are taken together, over decision
    makers; the gap is measured on the instances that a decision maker has come to itself.  It may be negative: the
    optimum of a decision is not the optimum of the trace.

    Parameters
    ----------
    points : DataFrame
        Of :func:`gap_points`, with the exact decision maker as the reference.
    policies : sequence of str
        Decision makers, each of which has a line of its own; all together come first where there are several.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        ``policy`` ("all" for all together), ``slope`` and its interval ``low`` to ``high`` (all of them hold together),
        ``verdict`` (:func:`verdict`), ``runs``, ``gap`` and
        ``cost`` (means over the runs).  The slope is NaN, and ``reason`` says why, where no run has both, or where no
        decision has a gap; the interval is where there are not two runs.
    """
    import pandas as pd

    groups = {name: points[points["policy"] == name] for name in policies}
    if len(groups) > 1:
        groups = {"all": points[points["policy"].isin(policies)], **groups}
    found, level = [], corrected(len(groups))
    for name, rows in groups.items():
        runs = rows[_RUN].drop_duplicates()
        at = rows.set_index(_RUN)
        sums = (_by_run(at["gap"] * at["cost"], runs), _by_run(at["gap"] ** 2, runs))
        low, high = Resamples(runs, seed=seed, number=samples_for(level)).interval(sums, level)
        reason = ""
        if rows.empty:
            reason = "no run has both gaps and the exact side's completion times"
        elif not sums[1].any():
            reason = "no decision has a gap"
        elif len(runs) < 2:
            reason = "one run has no interval"
        found.append(
            {
                "policy": name,
                "slope": _ratio(sums),
                "low": low,
                "high": high,
                "verdict": verdict(_ratio(sums), low, high, np.nan, few=too_few(_independent(runs), level)),
                "runs": len(runs),
                "gap": float(rows["gap"].mean()) if len(rows) else np.nan,
                "cost": float(rows["cost"].mean()) if len(rows) else np.nan,
                "reason": reason,
            }
        )
    return pd.DataFrame(found, columns=["policy", "slope", "low", "high", "verdict", "runs", "gap", "cost", "reason"])
