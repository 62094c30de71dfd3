"""The files of a collection, and where it is.

A collection is a folder: for each problem a folder of its name, in it ``records.json``, and for each instance the
instance, the best plan known, and where prices prove the bound the prices, each as compressed JSON.  ``collection/`` of
a checkout is one; its README.md has the format field by field.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from instances.base import Instance, InstanceError, Plan
from instances.files import instance_type, read, text_of, write_whole
from instances.reference.records import INDEX, listed
from instances.schema import nearest, quoted
from instances.text import as_json, read_text
from validation.errors import StudyError

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

PARTS = {"instance": ".json.gz", "plan": ".plan.json.gz", "prices": ".prices.json.gz"}
"""What an instance's files hold, and how their names end."""


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
        for file in sorted(self.folder.glob("*/records.json")):
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
        """Path of a part, "instance", "plan" or "prices", of what is kept of an instance."""
        return self.folder / str(self.record(name)["problem"]) / f"{name}{PARTS[part]}"

    def read(self, name: str, part: str) -> Any:
        """Read the JSON of a part.

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
            raise StudyError(f"{file}: not the {part} of which the record has the hash")
        return as_json(text, f"{file}")

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

    def write(
        self,
        record: Mapping[str, Any],
        *,
        instance: Instance[Any] | None = None,
        plan: Plan | None = None,
        prices: Mapping[str, Any] | None = None,
    ) -> None:
        """Write a record, new or in the place of the one of its name, with the parts that are given.

        What is left out stays as it is.  The record's hashes are made here.  Either all is written, or nothing.

        Parameters
        ----------
        record : mapping
        instance : Instance, optional
        plan : Plan, optional
        prices : mapping, optional
        """
        texts = {
            "instance": None if instance is None else text_of(instance),
            "plan": None if plan is None else text_of_plan(plan),
            "prices": None if prices is None else json.dumps(prices, allow_nan=False) + "\n",
        }
        given = {part: text.encode() for part, text in texts.items() if text is not None}
        made = {part: hashlib.sha256(data).hexdigest() for part, data in given.items()}
        full = {**record, "sha256": {**record.get("sha256", {}), **made}}
        priced = record["bound"]["proof"]["kind"] == "prices"
        if not priced:
            full["sha256"].pop("prices", None)
        whole = {field: full[field] for field in FIELDS}
        folder = self.folder / whole["problem"]
        folder.mkdir(exist_ok=True)
        records = {**self.records, whole["name"]: whole}
        mine = [records[name] for name in sorted(records) if records[name]["problem"] == whole["problem"]]
        contents: dict[Path, bytes | None] = {
            folder / f"{whole['name']}{PARTS[part]}": gzip.compress(data, mtime=0) for part, data in given.items()
        }
        if not priced:
            # Those of a bound that has been replaced.
            contents[folder / f"{whole['name']}{PARTS['prices']}"] = None
        contents[folder / "records.json"] = (json.dumps(mine, indent=1, allow_nan=False) + "\n").encode()
        contents[self.folder / INDEX] = (json.dumps(self._indexed(whole["problem"], mine), indent=1) + "\n").encode()
        _write_all(contents)
        self.records[whole["name"]] = whole

    def _indexed(self, problem: str, records: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the index, with these records of a problem."""
        file = self.folder / INDEX
        before = as_json(read_text(file), f"{file}") if file.exists() else {}
        return dict(sorted({**before, problem: listed(records)}.items()))


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
        yield record


def _write_all(contents: Mapping[Path, bytes | None]) -> None:
    """Write several files, or none: what was there is put back where one of them cannot be written.

    None stands for no file.
    """
    before = {path: path.read_bytes() if path.exists() else None for path in contents}
    try:
        for path, data in contents.items():
            if data != before[path]:
                _write(path, data)
    except BaseException:
        for path, old in before.items():
            with contextlib.suppress(OSError):
                _write(path, old)
        raise


def _write(path: Path, data: bytes | None) -> None:
    if data is None:
        path.unlink(missing_ok=True)
    else:
        write_whole(path, data, durable=False)


def _or_infinite(bound: float | None) -> float:
    return float("inf") if bound is None else bound
