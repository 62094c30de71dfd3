"""What is timed and counted: ``python -m benchmarks`` lists the tables, the documents name the command of each.

``tables`` says what a benchmark is and describes most of them, by paper, as data; the modules named like papers have
what these ask beside the library's own functions, ``overhead`` is about the library itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

__all__ = ["PAPERS", "by_paper", "chosen"]

T = TypeVar("T")

PAPERS = {
    "afs": "AFS",
    "aryl": "Aryl",
    "elasticflow": "ElasticFlow",
    "gavel": "Gavel",
    "prism": "Prism",
    "sia": "Sia",
    "shockwave": "Shockwave",
    "eplb": "EPLB",
    "synergy": "Synergy",
}
"""The papers as headings name them."""


def chosen(names: Iterable[str], asked: Sequence[str] | None) -> list[str]:
    """Return the names that are asked for, or begin so as "gavel" does "gavel.makespan"; all where none are."""
    return [name for name in names if not asked or any(f"{name}.".startswith(f"{one}.") for one in asked)]


def by_paper(found: Mapping[str, T]) -> dict[str, dict[str, T]]:
    """Return what stands under names of problems, paper after paper."""
    papers: dict[str, dict[str, T]] = {}
    for problem, one in found.items():
        papers.setdefault(problem.partition(".")[0], {})[problem] = one
    return papers
