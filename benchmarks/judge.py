"""What the judge finds: the sets of all problems, and the heuristics of one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import formulations
from benchmarks.tables import Row, Setup, benchmark
from instances.files import read
from validation.catalogue import CATALOGUE
from validation.kinds.judge.judging import judge_on
from validation.kinds.judge.sets import drawn, sizes_of

__all__ = ["reclaim", "sets"]


def _texts(problem: str, setup: Setup) -> list[str]:
    return drawn(problem, None)[: setup.size(None, 1)]


@benchmark("judge.sets", "problem", "sizes", "instances", "set", "mean proof, s", "longest proof, s")
def sets(setup: Setup) -> Iterator[Row]:
    """Public sets: sizes, instances that have a plan, the beginning of the digest, processor time of the proofs."""
    for problem in setup.few(list(CATALOGUE)):
        texts, spent = _texts(problem, setup), []
        for text in texts:
            instance, began = read(json.loads(text)), time.process_time()
            formulations.solve(instance)
            spent.append(time.process_time() - began)
        heuristic = next(iter(CATALOGUE[problem].heuristics))
        found = judge_on(texts, heuristic, problem)
        yield (
            f"`{problem}`",
            ", ".join(map(str, sizes_of(problem))),
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
