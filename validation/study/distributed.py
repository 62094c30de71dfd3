"""Cells of a study on the nodes of a cluster: what travels there, and what is made of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from instances import files
from validation.cluster import carried, modules_of, run_tasks
from validation.node import Modules, memory_share
from validation.study.cases import Algorithm
from validation.study.cells import Cell, run_cell
from validation.workers import Outcome, Task

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["run_cells"]

_NO_CASE: Any = None


def run_cells(
    client: Client,
    cells: Sequence[Cell],
    tasks: Iterable[Task],
    *,
    hidden: Path,
    pause: Callable[[], None],
    warn: Callable[[str], object],
) -> Generator[Outcome]:
    """Outcomes, from a cluster, of tasks whose arguments are the number of a cell and its instance's JSON."""
    # A study has few algorithms and many cells.
    algorithms = {id(cell.algorithm): cell.algorithm for cell in cells}
    problems = {cell.case.problem for cell in cells}
    modules = modules_of(problems)
    sent = {number: _carried(algorithm, modules) for number, algorithm in algorithms.items()}

    def travels(task: Task) -> tuple[Any, ...]:
        number, text = task.arguments
        cell = cells[number]
        # Nothing that a node would have to look for in a file, or to make; so it gets no case.
        text = text or files.text_of(cell.case.instance).encode()
        return text, replace(cell, case=_NO_CASE, algorithm=sent[id(cell.algorithm)])

    return run_tasks(
        client,
        _run_sent,
        tasks,
        total=len(cells),
        travels=travels,
        problems=problems,
        hidden=hidden,
        pause=pause,
        warn=warn,
    )


def _carried(algorithm: Algorithm, modules: Modules) -> Algorithm:
    if algorithm.heuristic is None:
        return algorithm
    return replace(algorithm, heuristic=carried(algorithm.heuristic, modules))


def _run_sent(text: bytes, cell: Cell) -> dict[str, Any]:
    """Row entries of a cell that was sent, without its case."""
    return run_cell(replace(cell, memory=cell.memory or memory_share()), files.read(json.loads(text)))
