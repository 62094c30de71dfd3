"""The collection for those who have no use for the library.

Programs in the MPS format, and what is known of their optima in the format of MIPLIB's ``.solu`` files.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formulations.engine.linear import ModelError, translate
from formulations.engine.mps import mps_of
from formulations.engine.protocol import formulation
from formulations.engine.solving import build
from instances.base import Instance, InstanceError
from instances.text import as_json, read_text
from validation.errors import StudyError
from validation.kinds.collection.croissant import CROISSANT, LICENCE, NAME, about, described, record_set
from validation.kinds.collection.store import Collection
from validation.outputs import folder_to_write

__all__ = ["LARGEST", "Exported", "export", "solu_of"]

LARGEST = 1_000_000
"""Entries of a program up to which it is written."""

EXPORT = f"{NAME}-programs"
"""By this name an export knows itself."""

SOLU = "collection.solu"


@dataclass(frozen=True)
class Exported:
    """What an export has come to.

    Attributes
    ----------
    written : list of str
        Names of the instances that are in it.
    left_out : dict of str to str
        Names of the others, and why each is not.
    """

    written: list[str]
    left_out: dict[str, str]


def export(
    collection: Collection, folder: Path, *, problem: str | None = None, mps: bool = True, solu: bool = True
) -> Exported:
    """Write instances as programs that every solver reads, and what is known of their optima.

    The folder appears, or is replaced, at once, with all that is to be in it.

    Parameters
    ----------
    collection : Collection
    folder : Path
        To write; one that an export has written is replaced.
    problem : str, optional
        Only instances of this problem, or of this paper's.
    mps : bool
        Whether to write the programs, ``NAME.mps.gz``.
    solu : bool
        Whether to write ``collection.solu``, a line or two for each program.

    Raises
    ------
    StudyError
        When the folder holds something else, cannot be written, or there is nothing to write.
    """
    _refuse_others(folder)
    exported, lines = Exported([], {}), []
    with _replaced(folder) as made:
        files = []
        for name in collection.names(problem):
            record, instance = collection.record(name), collection.instance(name)
            try:
                content = _program(instance, record, collection.version) if mps else b""
                told = solu_of(instance, record)
            except _NoProgram as why:
                exported.left_out[name] = str(why)
                continue
            if mps:
                (made / f"{name}.mps.gz").write_bytes(content)
                files.append((f"{name}.mps.gz", content, record["licence"]))
            lines += told
            exported.written.append(name)
        if not exported.written:
            raise StudyError(f"nothing is to be exported: {'; '.join(sorted(set(exported.left_out.values())))}")
        if solu:
            content = "".join(f"{line}\n" for line in lines).encode()
            (made / SOLU).write_bytes(content)
            files.append((SOLU, content, LICENCE))
        records = [collection.records[name] for name in exported.written]
        (made / CROISSANT).write_text(_described(records, files, collection.version, mps), encoding="utf-8")
    return exported


class _NoProgram(Exception):  # noqa: N818
    """There is no program of an instance to be written, for the reason that it gives."""


def _in_program(instance: Instance[Any], value: float) -> float:
    """Return what a value of the instance is in the objective of its program."""
    offered = formulation(instance.problem)
    if offered.any_solver:
        raise _NoProgram("no one program states the problem, it takes a procedure of several")
    found = value if offered.in_model is None else offered.in_model(instance, value)
    if found is None:
        raise _NoProgram("its program has points that are no plans")
    return found


def _program(instance: Instance[Any], record: Mapping[str, Any], version: str) -> bytes:
    """Return the program of an instance as compressed MPS."""
    best = record["best"]["value"]
    inside = _in_program(instance, best)
    try:
        model = build(instance)
        program = translate(model)
        if len(program.value) > LARGEST:
            raise _NoProgram(f"its program has {len(program.value):,} entries, more than {LARGEST:,}")
        comments = [
            f"{record['name']} of the collection of GPU-cluster scheduling instances, version {version}",
            f"problem {record['problem']}, licence {record['licence']}, digest of the instance {record['digest']}",
        ]
        if inside != best:
            comments.append(f"the instance's value {best!r} is {inside!r} in this program's objective")
        lines = mps_of(model, program, name=record["name"], comments=comments)
        return gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
    except ModelError as error:
        raise _NoProgram(str(error)) from None


def solu_of(instance: Instance[Any], record: Mapping[str, Any]) -> list[str]:
    """Return what is known of an instance as lines of MIPLIB's ``.solu``, in its program's objective.

    ``=opt=`` has the optimum; of an open instance ``=best=`` has the value of the best plan, and ``=bestdual=`` the
    bound, where one is known.  There is a plan of every instance of a collection, so that none is ``=inf=`` or
    ``=unkn=``.

    Parameters
    ----------
    instance : Instance
    record : mapping
    """
    name, best, bound = record["name"], record["best"]["value"], record["bound"]["value"]
    known = {"best": best} if record["class"] == "open" else {"opt": best}
    if record["class"] == "open" and bound is not None:
        known["bestdual"] = bound
    return [f"={what}= {name} {_in_program(instance, value)!r}" for what, value in known.items()]


def _described(
    records: Iterable[Mapping[str, Any]], files: Iterable[tuple[str, bytes, str]], version: str, mps: bool
) -> str:
    records = list(records)
    told = "Programs of GPU-cluster scheduling in the MPS format, and their optima, as the collection has them."
    fields = ["name", "problem", "licence", "digest", *(["file"] if mps else [])]
    data = [
        {
            **{field: one[field] for field in fields if field != "file"},
            **({"file": f"{one['name']}.mps.gz"} if mps else {}),
        }
        for one in records
    ]
    kinds = [{"name": field, "dataType": "sc:Text"} for field in fields]
    return described(
        about(EXPORT, told, version, records),
        files,
        [record_set("Each program, and the instance that it is of.", kinds, data)],
    )


def _refuse_others(folder: Path) -> None:
    """Raise where there is something in a folder's place that no export has written."""
    if not os.path.lexists(folder):
        return
    refused = StudyError(f"{folder} is in the way, and holds something else than an export: choose another directory")
    if folder.is_symlink() or not folder.is_dir():
        raise refused
    there = {path.name for path in folder.iterdir()}
    if not there:
        return
    try:
        told = as_json(read_text(folder / CROISSANT), CROISSANT)
        files = {one["@id"] for one in told["distribution"]} | {CROISSANT}
    except (OSError, InstanceError, KeyError, TypeError):
        raise refused from None
    if told.get("name") != EXPORT or not there <= files:
        raise refused


@contextlib.contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Make a folder beside another, which takes its place when all is in it; nothing is left of one that fails."""
    mark = secrets.token_hex(8)
    made, before = (folder.parent / f".{what}-{mark}" for what in ("writing", "replaced"))
    with folder_to_write(folder.parent):
        try:
            made.mkdir()
            yield made
            if folder.exists():
                os.rename(folder, before)
            os.rename(made, folder)
        finally:
            if before.exists() and not folder.exists():
                os.rename(before, folder)
            for one in (made, before):
                shutil.rmtree(one, ignore_errors=True)
