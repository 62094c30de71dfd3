"""The files of a collection, and where it is.

A collection is a folder: for each problem a folder of its name, in it ``records.json``, and for each instance the
instance, the best plan known, and where prices prove the bound the prices, each as compressed JSON; where a certificate
does, this as compressed text.  ``collection/`` of a checkout is one; its README.md has the format field by field.

Whoever changes it holds its lock from the look at what is known to the last file that is written.  What is to be
written is first put whole into a folder beside the problems', which appears under its name at once; then each file is
moved to its place.  A process that is killed before that has changed nothing, and what is left of it by one that is
killed later is moved by whoever holds the lock next.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import filelock

from instances.base import Instance, InstanceError, Plan
from instances.files import instance_type, read, text_of, write_whole
from instances.reference.records import INDEX, NAME, PARTS, PENDING, listed
from instances.schema import nearest, quoted
from instances.text import as_json, read_text
from validation.errors import StudyError
from validation.kinds.collection.croissant import CROISSANT, described_collection

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CLASSES", "VARIABLE", "Collection", "load", "place", "text_of_plan"]

VARIABLE = "SCHEDULING_COLLECTION"
"""Environment variable that says where the collection is."""

CLASSES = ("easy", "hard", "open")
"""Closed within seconds; closed, but not so soon; not closed."""

FIELDS = (
    "name",
    "problem",
    "sense",
    "digest",
    "sha256",
    "class",
    "origin",
    "licence",
    "size",
    "features",
    "best",
    "bound",
    "heuristics",
    "history",
)
"""Of a record, in the order in which they are written."""

RECORDS = "records.json"
SEPARATOR = "~"
"""Between problem and file, in names of files that are to be moved to their place: in no name of either."""
LOCK = ".lock"
LOCK_PATIENCE = 1.0
"""Seconds after which whoever waits for the lock is told so."""
WRITING = ".writing-"
"""How names of files and folders begin that are being written."""


def place(folder: str | os.PathLike[str] | None = None) -> Path:
    """Return the collection's folder: ``folder``, else what the environment says, else ``collection/`` of the checkout.

    Raises
    ------
    StudyError
        When there is no collection.
    """
    given = folder or os.environ.get(VARIABLE)
    found = Path(given) if given else Path(__file__).parents[3] / "collection"
    if not (found / "VERSION").is_file():
        where = f"{found} is no collection: it has no file VERSION"
        raise StudyError(f"{where}; give --collection DIR, or {VARIABLE}, the collection/ of a checkout of the library")
    return found


def load(folder: str | os.PathLike[str] | None = None) -> Collection:
    """Load the collection in a folder.

    Parameters
    ----------
    folder : path, optional
        By default what the environment variable ``SCHEDULING_COLLECTION`` says, else ``collection/`` of the checkout.

    Raises
    ------
    StudyError
        When there is no collection, or its records cannot be read.
    """
    return Collection(place(folder))


class Collection:
    """Instances with the best plans and bounds that are known.

    Parameters
    ----------
    folder : path
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._holds = False

    @property
    def version(self) -> str:
        """Version of the collection, such as "1.0"."""
        return read_text(self.folder / "VERSION").strip()

    @cached_property
    def records(self) -> dict[str, dict[str, Any]]:
        """Name to record, problem after problem.

        Raises
        ------
        StudyError
            When a file of records is damaged; the message names it.
        """
        found: dict[str, dict[str, Any]] = {}
        for file in sorted(self.folder.glob(f"*/{RECORDS}")):
            for record in _records_in(file):
                found[record["name"]] = record
        return found

    def record(self, name: str) -> dict[str, Any]:
        """Return the record of an instance.

        Raises
        ------
        StudyError
            When there is none of that name; the nearest is suggested.
        """
        if name not in self.records:
            raise StudyError(f"no instance {quoted(name)} in {self.folder}{nearest(name, self.records)}")
        return self.records[name]

    def names(self, problem: str | None = None) -> list[str]:
        """Return the names of all instances, or of those of a problem, or of a paper's.

        Raises
        ------
        StudyError
            When no instance is of it; the nearest name is suggested.
        """
        found = [name for name, one in self.records.items() if problem is None or _within(one["problem"], problem)]
        if not found and problem is not None:
            known = {record["problem"] for record in self.records.values()}
            raise StudyError(f"--problem: no instance is of {problem!r}{nearest(problem, sorted(known))}")
        return found

    def instance(self, name: str) -> Instance[Any]:
        """Return the instance of that name, as its record has it.

        Raises
        ------
        StudyError
            When its file is missing, damaged, or another than the record says.
        """
        instance = read(self.read(name, "instance"))
        if instance.digest != self.record(name)["digest"]:
            raise StudyError(f"{self.file(name, 'instance')}: another instance than its record says")
        return instance

    def plan(self, name: str) -> Plan:
        """Return the best plan known of the instance of that name.

        Raises
        ------
        StudyError
            When its file is missing, damaged, or another than the record says.
        """
        return instance_type(self.record(name)["problem"]).plan_type.from_dict(self.read(name, "plan"))

    def file(self, name: str, part: str) -> Path:
        """Path of a part, "instance", "plan", "prices" or "certificate", of what is kept of an instance."""
        return self.folder / str(self.record(name)["problem"]) / f"{name}{PARTS[part]}"

    def read(self, name: str, part: str) -> Any:
        """Read the JSON of a part, which is no certificate; see :meth:`text`."""
        return as_json(self.text(name, part), f"{self.file(name, part)}")

    def text(self, name: str, part: str) -> str:
        """Read the text of a part.

        Raises
        ------
        StudyError
            When its file is missing, damaged, or another than the record says.
        """
        file = self.file(name, part)
        try:
            text = read_text(file)
        except (OSError, InstanceError) as error:
            raise StudyError(f"{file}: {error.strerror}" if isinstance(error, OSError) else f"{error}") from None
        if hashlib.sha256(text.encode()).hexdigest() != self.record(name)["sha256"].get(part):
            why = "; somebody was killed while writing, see optgap collection check" if self.is_torn else ""
            raise StudyError(f"{file}: not the {part} of which the record has the hash{why}")
        return text

    def frame(self) -> pd.DataFrame:
        """Return the records as a table, a row for each instance.

        Returns
        -------
        DataFrame
            ``name`` (the index), ``problem``, ``sense``, ``class``, ``origin``, ``real`` (whether it is from public
            data), ``licence``, ``jobs``, ``value``, ``bound``, ``gap`` (between these, relative to the value),
            ``proof``, ``solvers`` (how many, of a bound that rests on runs) and ``digest``.
        """
        import pandas as pd

        from formulations.engine.solution import relative_gap

        rows = []
        for record in self.records.values():
            value, bound = record["best"]["value"], record["bound"]["value"]
            proof = record["bound"]["proof"]
            closing = {run["solver"] for run in proof.get("runs", []) if run["status"] == "optimal"}
            rows.append(
                {
                    "name": record["name"],
                    "problem": record["problem"],
                    "sense": record["sense"],
                    "class": record["class"],
                    "origin": record["origin"]["kind"],
                    "real": bool(record["origin"].get("files")),
                    "licence": record["licence"],
                    "jobs": record["size"].get("n", float("nan")),
                    "value": value,
                    "bound": float("nan") if bound is None else bound,
                    "gap": 0.0 if record["class"] != "open" else relative_gap(value, _or_infinite(bound)),
                    "proof": proof["kind"],
                    "solvers": len(closing),
                    "digest": record["digest"],
                }
            )
        return pd.DataFrame(rows).set_index("name")

    # --- writing ---

    @property
    def is_torn(self) -> bool:
        """Whether a process was killed while it wrote, or one writes just now."""
        return (self.folder / PENDING).is_dir() and not (self.folder / PENDING).is_symlink()

    @contextlib.contextmanager
    def changing(self, tell: Callable[[str], object] = lambda _: None) -> Iterator[None]:
        """Keep others from changing the collection; what they have written is known, and what they left is mended.

        Parameters
        ----------
        tell : callable, optional
            Is told in a line when others hold it for long.

        Raises
        ------
        StudyError
            When it cannot be written to.
        """
        if self._holds:
            yield
            return
        place = self.folder / LOCK
        if place.is_symlink() or (place.exists() and (not place.is_file() or place.stat().st_size)):
            raise StudyError(f"{place} is not a collection's, whose lock is an empty file")
        # A new one each time, because a forked process must not have that of another.
        lock = filelock.FileLock(place)
        try:
            try:
                lock.acquire(timeout=LOCK_PATIENCE)
            except filelock.Timeout:
                tell(f"waiting for somebody else who writes to {self.folder}")
                lock.acquire()
        except OSError as error:
            raise StudyError(f"cannot write to {self.folder}: {error.strerror}") from None
        try:
            self._mend()
            # What was read before may have been replaced since.
            self.__dict__.pop("records", None)
            self._holds = True
            yield
        finally:
            self._holds = False
            lock.release()

    def _mend(self) -> None:
        """Finish what a process that was killed had begun to move, and remove what it had not."""
        for left in self.folder.glob(f"{WRITING}*"):
            _remove(left)
        if self.is_torn:
            self._move()

    def _move(self) -> None:
        """Move what is to be written to its place, the records last."""
        pending = self.folder / PENDING
        last = (RECORDS, INDEX, CROISSANT)
        names = sorted((file.name for file in pending.iterdir()), key=lambda one: one.rpartition(SEPARATOR)[2] in last)
        for file in (pending / name for name in names):
            problem, _, name = file.name.rpartition(SEPARATOR)
            if not re.fullmatch(NAME, name) or (problem and not re.fullmatch(NAME, problem)):
                raise StudyError(f"{file}: no file of a collection has this name")
            target = self.folder / problem / name
            if target.parent.is_symlink():
                raise StudyError(f"{target.parent} is a symbolic link, which nothing is written through")
            target.parent.mkdir(exist_ok=True)
            # None of a collection's files is empty: this one is to go.
            if file.lstat().st_size:
                os.replace(file, target)
            else:
                target.unlink(missing_ok=True)
                file.unlink()
        pending.rmdir()

    def write(
        self,
        record: Mapping[str, Any],
        *,
        instance: Instance[Any] | None = None,
        plan: Plan | None = None,
        prices: Mapping[str, Any] | None = None,
        certificate: str | None = None,
    ) -> None:
        """Write a record, new or in the place of the one of its name, with the parts that are given.

        What is left out stays as it is, but for prices and certificates of a bound that rests on something else now.
        The record's hashes are made here.  Either all is written, or nothing.

        Parameters
        ----------
        record : mapping
        instance : Instance, optional
        plan : Plan, optional
        prices : mapping, optional
        certificate : str, optional
        """
        self._check_names(record)
        texts = {
            "instance": None if instance is None else text_of(instance),
            "plan": None if plan is None else text_of_plan(plan),
            "prices": None if prices is None else json.dumps(prices, allow_nan=False) + "\n",
            "certificate": certificate,
        }
        given = {part: text.encode() for part, text in texts.items() if text is not None}
        made = {part: hashlib.sha256(data).hexdigest() for part, data in given.items()}
        full = {**record, "sha256": {**record.get("sha256", {}), **made}}
        gone = {"prices", "certificate"} - {record["bound"]["proof"]["kind"]}
        for part in gone:
            full["sha256"].pop(part, None)
        whole = {field: full[field] for field in FIELDS}
        problem, name = whole["problem"], whole["name"]
        contents = {f"{name}{PARTS[part]}": gzip.compress(data, mtime=0) for part, data in given.items()}
        for part in gone:
            # Those of a bound that has been replaced.
            contents[f"{name}{PARTS[part]}"] = b""
        with self.changing():
            records = {**self.records, name: whole}
            mine = [records[one] for one in sorted(records) if records[one]["problem"] == problem]
            contents[RECORDS] = (json.dumps(mine, indent=1, allow_nan=False) + "\n").encode()
            indexed = (json.dumps(self._indexed(problem, mine), indent=1) + "\n").encode()
            changed = {f"{problem}/{one}": data for one, data in contents.items()} | {INDEX: indexed}
            changed[CROISSANT] = described_collection(self.folder, self.version, records, changed).encode()
            self._write({path.replace("/", SEPARATOR): data for path, data in changed.items()})
            self.records[name] = whole

    def _check_names(self, record: Mapping[str, Any]) -> None:
        """Raise where a record's names are none: files are called after them."""
        for field in ("name", "problem"):
            if not isinstance(record[field], str) or not re.fullmatch(NAME, record[field]):
                raise StudyError(f"a record's {field}: got {quoted(record[field])}, must be letters, digits, . _ and -")

    def _write(self, contents: Mapping[str, bytes]) -> None:
        """Put contents where they are known to be whole, and then to their places; an empty one is to be no file."""
        made = self.folder / f"{WRITING}{secrets.token_hex(8)}"
        try:
            made.mkdir()
            for name, data in contents.items():
                write_whole(made / name, data)
            os.rename(made, self.folder / PENDING)
        except BaseException:
            _remove(made)
            raise
        self._move()

    def _indexed(self, problem: str, records: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the index, with these records of a problem."""
        file = self.folder / INDEX
        before = as_json(read_text(file), f"{file}") if file.exists() else {}
        return dict(sorted({**before, problem: listed(records)}.items()))


def _within(problem: str, asked: str) -> bool:
    return f"{problem}.".startswith(f"{asked}.")


def text_of_plan(plan: Plan) -> str:
    """Write a plan as text, as it is in a file."""
    return json.dumps(plan.to_dict(), allow_nan=False) + "\n"


def _records_in(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a file, each a whole one of the problem whose folder it is in."""
    try:
        found = as_json(read_text(file), f"{file}")
    except (OSError, InstanceError) as error:
        raise StudyError(f"{file}: {error.strerror}" if isinstance(error, OSError) else f"{error}") from None
    if not isinstance(found, list):
        raise StudyError(f"{file}: must be a list of records")
    for number, record in enumerate(found):
        lacking = [field for field in FIELDS if not isinstance(record, dict) or field not in record]
        if lacking:
            raise StudyError(f"{file}: record {number} has no {lacking[0]}")
        if record["problem"] != file.parent.name:
            raise StudyError(f"{file}: record {number} is of {quoted(record['problem'])}")
        if not isinstance(record["name"], str) or not re.fullmatch(NAME, record["name"]):
            raise StudyError(f"{file}: record {number} has the name {quoted(record['name'])}, which no file may have")
        _check_form(record, f"{file}: {record['name']}")
        yield record


FORM: dict[str, Any] = {
    "sense": str,
    "digest": str,
    "sha256": {},
    "class": str,
    "origin": {"kind": str, "call": str},
    "licence": str,
    "size": {},
    "features": {},
    "best": {"value": float, "found_by": str, "date": str},
    "bound": {"value": (float, type(None)), "proof": {"kind": str}},
    "heuristics": {},
    "history": [],
}
"""What stands in a record, as far as anything here relies on it: kinds of entries, of those within them too."""


def _check_form(found: Any, where: str, form: Any = None) -> None:
    """Raise where an entry of a record is of another kind than it must be."""
    for field, kind in (FORM if form is None else form).items():
        if field not in found:
            raise StudyError(f"{where}: has no {field}")
        value, plain = found[field], kind if isinstance(kind, (type, tuple)) else type(kind)
        if plain in (float, (float, type(None))):
            plain = (int, *plain) if isinstance(plain, tuple) else (int, plain)
        if not isinstance(value, plain) or isinstance(value, bool):
            raise StudyError(f"{where}: {field} is {quoted(value)}")
        if isinstance(kind, dict):
            _check_form(value, f"{where}: {field}", kind)


def _remove(path: Path) -> None:
    """Remove a file, a link or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _or_infinite(bound: float | None) -> float:
    return float("inf") if bound is None else bound
