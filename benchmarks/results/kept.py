"""What has been measured: kept in a folder, with where it ran, until the library changes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from instances.files import write_whole
from validation.kernel.keys import code_of
from validation.kernel.provenance import cores, provenance

__all__ = ["Asked", "Kept", "at"]


@dataclass(frozen=True)
class Kept:
    """What was measured, and where.

    Attributes
    ----------
    content : Any
        What JSON can say.
    where : dict
        Versions, machine, commit and time; ``load``: the load averages of the last minute, before and after.
    """

    content: Any
    where: dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """What is to be measured.

    Attributes
    ----------
    folder : Path
        Where measurements are kept.
    data : Path, optional
        Folder of public data, laid out as in docs/data.md.
    jobs : int
        Processes at once, where no times are measured.
    problems : sequence of str, optional
        Only these, for the parts that go by problem.
    """

    folder: Path
    data: Path | None = None
    jobs: int = field(default_factory=cores)
    problems: Sequence[str] | None = None

    def once(self, name: str, measure: Callable[[], Any], **options: Any) -> Kept:
        """Return what is kept under a name, or measure it: where there is nothing, or it is of other code or options.

        Parameters
        ----------
        name : str
            Of a file, without its ending.
        measure : callable
            Returns what JSON can say.
        **options
            What it goes by, such as limits and seeds.
        """
        file, depends = self.folder / f"{name}.json", json.loads(json.dumps(self._code | options))
        if file.exists():
            told = json.loads(file.read_text(encoding="utf-8"))
            if told["depends"] == depends:
                return Kept(told["content"], told["where"])
        before, where = at(), provenance(self.jobs)
        content = measure()
        where["load"] = [before, at()]
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps({"depends": depends, "where": where, "content": content}, indent=1))
        print(f"{name}: measured", flush=True)
        return Kept(content, where)

    @cached_property
    def _code(self) -> dict[str, str]:
        return code_of()


def at() -> float:
    """Load of the machine over the last minute: processes that ran or waited for a core, to two digits."""
    return round(os.getloadavg()[0], 2)
