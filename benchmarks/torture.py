"""Numerically hard programs, solved and judged by exact fractions: python -m benchmarks.torture --count 1000 --seed 0.

Small linear and mixed-integer programs of which nothing is easy but the size: numbers over many decades, rows that
are almost parallel, vertices where many rows meet, large numbers that switch rows off.  The truth is computed in
fractions, by trying all whole numbers and, for what is left, by the reference's simplex method, which shares no code
with what it judges.  A claim is wrong when the truth refutes it: a bound that a point beats, "infeasible" of a program
that has a point, "optimal" of a value that no point has.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyomo.environ as pyo

import formulations
from instances.reference.linear import least
from validation.pages.render import table_lines

__all__ = ["FAMILIES", "Program", "draw", "judge", "main", "model", "optimum"]


@dataclass(frozen=True)
class Program:
    """``min cost @ x`` subject to ``lower <= rows @ x <= upper`` and ``0 <= x <= most``, some of x whole."""

    cost: list[float]
    rows: list[list[float]]
    lower: list[float]
    upper: list[float]
    most: list[float]
    whole: list[bool]

    def relaxed(self, by: float) -> Program:
        """Return it with each limit wider by a part of the largest term of its row."""

        def wider(limits: list[float], sign: int) -> list[float]:
            sizes = (max(abs(a) * most for a, most in zip(row, self.most, strict=True)) for row in self.rows)
            pairs = zip(limits, sizes, strict=True)
            return [one + sign * by * max(size, abs(one) if math.isfinite(one) else 0) for one, size in pairs]

        return replace(self, lower=wider(self.lower, -1), upper=wider(self.upper, 1))


# --- programs -----------------------------------------------------------------------------------

Family = Callable[[np.random.Generator, int, int], Program]


def _at(rows: Any, x: Any) -> Any:
    """``rows @ x``, rounded once and so the same on every machine: of rows almost parallel the last digit matters."""
    point = [Fraction(entry) for entry in x.tolist()]
    return np.array([float(sum(Fraction(a) * b for a, b in zip(row, point, strict=True))) for row in rows.tolist()])


def _with_limits(rng: np.random.Generator, cost: Any, rows: Any, *, whole: Sequence[bool], most: Any) -> Program:
    """Set limits near the rows at some point, on one side, the other or both."""
    most = np.asarray(most, float)
    x = np.where(whole, np.rint(rng.uniform(0, 1, len(most)) * most), np.round(rng.uniform(0, 1, len(most)) * most, 3))
    at = _at(rows, x)
    if rng.random() < 0.5:
        at = at * (1 + np.round(rng.uniform(-0.2, 0.2, len(at)), 3))
    kinds = rng.integers(0, 3, len(at))
    lower = np.where(kinds == 0, -np.inf, at)
    upper = np.where(kinds == 1, np.inf, at + np.where(kinds == 2, 1e-3 * np.abs(at), 0.0))
    limits = (np.asarray(cost).tolist(), rows.tolist(), lower.tolist(), upper.tolist(), most.tolist())
    return Program(*limits, [bool(one) for one in whole])


def _spread(rng: np.random.Generator, shape: Any, decades: int) -> Any:
    digits = np.round(rng.uniform(1, 10, shape), 2) * rng.choice([-1, 1], shape)
    return digits * 10.0 ** rng.integers(-(decades // 2), decades - decades // 2, shape)


def spread(decades: int, rng: np.random.Generator, columns: int, whole: int) -> Program:
    """Make numbers over so many decades."""
    rows = _spread(rng, (int(rng.integers(1, 5)), columns), decades)
    rows *= rng.random(rows.shape) < 0.8
    kinds = [j < whole for j in range(columns)]
    return _with_limits(rng, _spread(rng, columns, decades), rows, whole=kinds, most=rng.integers(1, 4, columns))


def parallel(rng: np.random.Generator, columns: int, whole: int) -> Program:
    """Make rows that are almost parallel."""
    row = np.round(rng.uniform(-5, 5, columns), 1)
    tilt = np.round(rng.uniform(-1, 1, (int(rng.integers(1, 4)), columns)), 2) * 10.0 ** -rng.integers(3, 9)
    kinds = [j < whole for j in range(columns)]
    cost = np.round(rng.uniform(-5, 5, columns), 1)
    return _with_limits(rng, cost, np.vstack([row, row + tilt]), whole=kinds, most=rng.integers(1, 5, columns))


def degenerate(rng: np.random.Generator, columns: int, whole: int) -> Program:
    """Make many rows through one vertex."""
    most = rng.integers(1, 4, columns)
    x = np.array([int(rng.integers(0, top + 1)) for top in most])
    rows = rng.integers(-3, 4, (int(rng.integers(columns + 1, columns + 5)), columns)).astype(float)
    kinds = [j < whole for j in range(columns)]
    at = _at(rows, x)
    cost = rng.integers(-3, 4, columns).astype(float)
    return Program(cost.tolist(), rows.tolist(), [-math.inf] * len(at), at.tolist(), most.astype(float).tolist(), kinds)


def big_m(rng: np.random.Generator, columns: int, whole: int) -> Program:
    """Give each amount a switch: amount <= large * switch, and amounts have to meet a demand."""
    pairs = max(1, columns // 2)
    large = 10.0 ** rng.integers(4, 10)
    switched = np.hstack([np.eye(pairs), np.diag(np.full(pairs, -large))])
    rows = [*switched.tolist(), [1.0] * pairs + [0.0] * pairs]
    lower = [-math.inf] * pairs + [float(np.round(rng.uniform(0.1, 5), 2))]
    upper = [0.0] * pairs + [math.inf]
    cost = np.concatenate([np.round(rng.uniform(0, 2, pairs), 2), np.round(rng.uniform(1, 100, pairs), 1)])
    return Program(cost.tolist(), rows, lower, upper, [10.0] * pairs + [1.0] * pairs, [False] * pairs + [True] * pairs)


FAMILIES: dict[str, Family] = {
    "six decades": partial(spread, 6),
    "twelve decades": partial(spread, 12),
    "almost parallel rows": parallel,
    "many rows through one vertex": degenerate,
    "switched by large numbers": big_m,
}


def draw(family: str, seed: int, number: int) -> Program:
    """Draw a program of a family: linear, mixed or whole."""
    rng = np.random.default_rng([seed, number, sorted(FAMILIES).index(family)])
    columns = int(rng.integers(2, 6))
    return FAMILIES[family](rng, columns, int(rng.choice([0, columns // 2, columns])))


def model(program: Program) -> pyo.ConcreteModel:
    """Build the model for :func:`formulations.solve`."""
    made = pyo.ConcreteModel()
    made.x = pyo.Var(range(len(program.cost)), bounds=lambda _, j: (0, program.most[j]))
    for j, whole in enumerate(program.whole):
        made.x[j].domain = pyo.Integers if whole else pyo.Reals
    made.rows = pyo.ConstraintList()
    for row, low, high in zip(program.rows, program.lower, program.upper, strict=True):
        if any(row):
            body = sum(a * made.x[j] for j, a in enumerate(row) if a)
            made.rows.add((None if math.isinf(low) else low, body, None if math.isinf(high) else high))
    made.cost = pyo.Objective(expr=sum(c * made.x[j] for j, c in enumerate(program.cost)))
    return made


# --- the truth ----------------------------------------------------------------------------------


def optimum(program: Program) -> Fraction | None:
    """Return the least cost in exact fractions; None without a point."""
    wholes = [j for j, whole in enumerate(program.whole) if whole]
    rest = [j for j, whole in enumerate(program.whole) if not whole]
    cost = [Fraction(c) for c in program.cost]
    rows = [[Fraction(a) for a in row] for row in program.rows]
    best: Fraction | None = None
    for chosen in itertools.product(*(range(int(program.most[j]) + 1) for j in wholes)):
        fixed = dict(zip(wholes, chosen, strict=True))
        limits = []
        for row, low, high in zip(rows, program.lower, program.upper, strict=True):
            used = sum((row[j] * value for j, value in fixed.items()), Fraction())
            limits += [([row[j] for j in rest], Fraction(high) - used)] if math.isfinite(high) else []
            limits += [([-row[j] for j in rest], used - Fraction(low))] if math.isfinite(low) else []
        for at in range(len(rest)):
            limits.append(([Fraction(int(k == at)) for k in range(len(rest))], Fraction(program.most[rest[at]])))
        value = least([cost[j] for j in rest], limits)
        if value != math.inf:
            whole = Fraction(value) + sum((cost[j] * v for j, v in fixed.items()), Fraction())
            best = whole if best is None else min(best, whole)
    return best


# --- the verdict --------------------------------------------------------------------------------

ROUNDING = 1e-12
"""Limits are floats, and so are sums: what depends on this part of a row's largest term is no claim's fault."""
CLOSE = 1e-6


@dataclass
class Tally:
    """What became of the programs of a family."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def judge(program: Program, solution: formulations.Solution) -> str:
    """Return what is wrong with a solution; empty where nothing is."""
    inner, outer = optimum(program.relaxed(-ROUNDING)), optimum(program.relaxed(ROUNDING))
    size = sum(abs(c) * most for c, most in zip(program.cost, program.most, strict=True))
    if solution.status == "infeasible":
        return "" if inner is None else f"infeasible, but {float(inner):.9g} is possible"
    if inner is not None and solution.bound > float(inner) + CLOSE * abs(float(inner)) + 1e-9 * size:
        return f"bound {solution.bound:.9g}, but {float(inner):.9g} is possible"
    if solution.status in ("optimal", "feasible") and solution.objective is not None:
        if outer is None:
            return f"a point worth {solution.objective:.9g}, but there is none"
        if solution.objective < float(outer) - CLOSE * abs(float(outer)) - 1e-9 * size:
            return f"a point worth {solution.objective:.9g}, but none is below {float(outer):.9g}"
    return ""


def tried(family: str, count: int, seed: int, **options: Any) -> Tally:
    """Solve and judge so many programs of a family."""
    tally = Tally()
    for number in range(count):
        program = draw(family, seed, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", formulations.SolverDisagreement)
            try:
                solution = formulations.solve(model(program), time_limit=20, **options)
            except formulations.ModelError:
                tally.outcomes["refused"] += 1
                continue
        wrong = judge(program, solution)
        if not wrong:
            tally.outcomes[f"{solution.status}, in doubt" if doubted(solution) else solution.status] += 1
        elif doubted(solution):
            tally.outcomes["wrong, and in doubt"] += 1
        else:
            tally.wrong.append(f"{number}: {wrong}; {solution.status}, {solution.proof}, {solution.message}")
    return tally


def doubted(solution: formulations.Solution) -> bool:
    """Whether the message says that a result cannot be trusted."""
    return "cannot be trusted" in solution.message


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 where a claim was wrong without a word."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torture", description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="programs in all")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    wrong: list[str] = []

    def rows() -> Iterator[tuple[object, ...]]:
        for number, name in enumerate(FAMILIES):
            count = asked.count // len(FAMILIES) + (number < asked.count % len(FAMILIES))
            tally = tried(name, count, asked.seed)
            outcomes = ", ".join(f"{times} {what}" for what, times in tally.outcomes.most_common())
            yield name, count, outcomes, len(tally.wrong)
            wrong.extend(tally.wrong)
            for line in tally.wrong:
                print(f"{name}, {line}", file=sys.stderr)

    for line in table_lines(("family", "programs", "outcomes", "wrong without a word"), rows()):
        print(line, flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
