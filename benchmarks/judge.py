"""What the judge finds: the sets of all problems, and the heuristics of one."""

from __future__ import annotations

import inspect
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import formulations
from benchmarks import chosen
from benchmarks.tables import Row, Setup, benchmark
from instances.files import read
from validation.catalogue import CATALOGUE
from validation.kinds.judge.headroom import Headroom
from validation.kinds.judge.judging import Judgement, judge_on
from validation.kinds.judge.sets import EDITION, DrawnSet, draw, drawn, family_of, sizes_of

__all__ = ["best_known", "cells", "headroom", "reclaim", "sets"]


def _texts(problem: str, setup: Setup) -> list[str]:
    return drawn(problem, None)[: setup.size(None, 1)]


def best_known(problem: str, found: DrawnSet, heuristics: Sequence[str] = ()) -> Headroom:
    """Measure which heuristic of the catalogue, without a solver, solves the most instances of a set."""
    entry = CATALOGUE[problem]
    own = [name for name, one in entry.heuristics.items() if "formulations" not in one.imports]
    judged = [judge_on(found, name, problem) for name in heuristics or own]

    def key(one: Judgement) -> tuple[bool, int, float]:
        return _is_optimal(entry.heuristics[one.heuristic]), one.optimal, one.score

    best = max(judged, key=key)
    return Headroom(
        best.set[:16], best.heuristic, best.optimal, len(best.instances), round(best.score, 4), key(best)[0]
    )


def _is_optimal(heuristic: Any) -> bool:
    """Whether the docstring guarantees the optimum of every instance."""
    return re.search(r"Guarantee: optimal[.:]", inspect.getdoc(heuristic.function) or "") is not None


def cells(problem: str, edition: int, known: Headroom) -> Row:
    """Return the row of a set in the table of headroom."""
    verdict = "none, by theorem" if known.theorem else "saturated" if known.saturated else ""
    return (
        f"`{problem}`",
        edition,
        ", ".join(map(str, sizes_of(problem, edition))) + _told(family_of(problem, edition)),
        f"`{known.set}`",
        f"`{known.heuristic}`",
        f"{known.optimal} of {known.instances}",
        f"{known.score:.4f}",
        verdict,
    )


def _told(family: Mapping[str, Any]) -> str:
    return "".join(f"; {name}={value}" for name, value in family.items())


@benchmark("judge.headroom", "problem", "edition", "instances", "set", "best known", "optimal", "score", "headroom")
def headroom(setup: Setup) -> Iterator[Row]:
    """Public sets: how many instances the best known heuristic solves to optimality, of every edition that differs."""
    for problem in setup.few(chosen(CATALOGUE, setup.problems)):
        before = ""
        for edition in range(EDITION, 0, -1):
            found = draw(problem, None, edition)
            if setup.quick:
                found = replace(found, texts=found.texts[:1])
            if found.digest != before:
                yield cells(problem, edition, best_known(problem, found))
            before = found.digest


@benchmark("judge.sets", "problem", "sizes", "instances", "set", "mean proof, s", "longest proof, s")
def sets(setup: Setup) -> Iterator[Row]:
    """Public sets: sizes, instances that have a plan, the beginning of the digest, processor time of the proofs."""
    for problem in setup.few(chosen(CATALOGUE, setup.problems)):
        texts, spent = _texts(problem, setup), []
        for text in texts:
            instance, began = read(json.loads(text)), time.process_time()
            formulations.solve(instance)
            spent.append(time.process_time() - began)
        heuristic = next(iter(CATALOGUE[problem].heuristics))
        found = judge_on(texts, heuristic, problem)
        yield (
            f"`{problem}`",
            ", ".join(map(str, sizes_of(problem))) + _told(family_of(problem)),
            f"{len(found.instances)} of {len(texts)}",
            f"`{found.set[:16]}`",
            f"{sum(spent) / len(spent):.2f}",
            f"{max(spent):.2f}",
        )


@benchmark("judge.reclaim", "heuristic", "score", "optimal", "worst")
def reclaim(setup: Setup) -> Iterator[Row]:
    """Every heuristic of `aryl.reclaim` on the public set."""
    texts = _texts("aryl.reclaim", setup)
    for name in setup.few(list(CATALOGUE["aryl.reclaim"].heuristics)):
        found = judge_on(texts, name, "aryl.reclaim")
        scores = [one.score for one in found.instances]
        yield f"`{name}`", f"{found.score:.4f}", f"{scores.count(1.0)} of {len(scores)}", f"{min(scores):.4f}"
