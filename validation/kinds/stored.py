"""Directories of tables, whatever their kind is."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from validation.kernel.kind import Kind, Result, Warn
from validation.kernel.merge import merge
from validation.kinds.replays.records import REPLAYS
from validation.kinds.study.records import STUDY

if TYPE_CHECKING:
    from validation.kinds.replays.results import Replays
    from validation.kinds.study.results import Study

__all__ = ["KINDS", "finish_replays", "finish_study", "kind_of", "merge_studies"]


def finish_study(directory: str | os.PathLike[str], warn: Warn = warnings.warn) -> Study:
    """Write table and report of a study, finished or not, from its log."""
    # It brings Matplotlib, which neither the workers nor what else uses this module should load.
    from validation.kinds.study.report import finish

    return finish(directory, warn)


def finish_replays(directory: str | os.PathLike[str], warn: Warn = warnings.warn) -> Replays:
    """Write tables and report of a study of replays, finished or not, from its log."""
    from validation.kinds.replays.report import finish

    return finish(directory, warn)


KINDS: tuple[tuple[Kind, Result], ...] = ((STUDY, finish_study), (REPLAYS, finish_replays))
"""Kinds of tables that a directory may hold, and what makes their results."""


def kind_of(directory: str | os.PathLike[str]) -> tuple[Kind, Result]:
    """Return the kind of what a directory holds, told by the name of its record; a study where it holds nothing."""
    return next((one for one in KINDS if os.path.lexists(Path(directory) / one[0].record)), KINDS[0])


def merge_studies(
    directories: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str], *, warn: Warn = warnings.warn
) -> Any:
    """Join directories of shards, or of interrupted copies of one study, into one study; so with replays.

    A cell that several of them have ended appears once, as the first has it.  Where cells are missing, the
    study is unfinished; the study's command, without its shard and with this output, finishes it.  What is there
    is whole at any moment: a merge that was killed can be run again.

    Parameters
    ----------
    directories : sequence of path
    output : path
        A new directory, or one that holds the same study, whose rows stay.
    warn : callable, optional
        Told of damaged lines and instances, which are passed over, and of rows of one cell that contradict each
        other.

    Returns
    -------
    Study or Replays

    Raises
    ------
    StudyError
        When the directories do not belong to one study, or the output is one of them or holds something else.
    """
    return merge(*(kind_of(directories[0]) if directories else KINDS[0]), directories, output, warn=warn)
