"""Descriptions of folders of data in the Croissant format 1.1, which search engines and loaders of data read.

Each file stands there with its size, its hash and its licence; record sets say what is in them.  What is written is
checked by the format's own validator, ``mlcroissant``, in the tests.

References
----------
MLCommons, "Croissant Format Specification", version 1.1 (2026).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from instances.reference.records import PARTS

__all__ = ["CROISSANT", "LICENCE", "NAME", "about", "described", "described_collection", "record_set"]

CROISSANT = "croissant.json"
"""Name of the file."""

NAME = "gpu-cluster-scheduling"
"""Of the data set that a collection is, and how those begin that are made of it."""

LICENCE = "MIT"
"""Of what no instance has: the checker, pages, indices."""

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    **{
        term: f"cr:{term}"
        for term in (
            *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field"),
            *("fileObject", "fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath"),
            *("key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated", "replace"),
            *("samplingRate", "separator", "source", "subField", "transform"),
        )
    },
}
"""The context that the specification prescribes."""

_NO_DATA = ("reference", "__pycache__", CROISSANT)

_FORMATS = {
    ".gz": "application/gzip",
    ".json": "application/json",
    ".md": "text/markdown",
    ".py": "text/x-python",
}

_FIELDS = {
    "name": ("sc:Text", "$[*].name"),
    "problem": ("sc:Text", "$[*].problem"),
    "sense": ("sc:Text", "$[*].sense"),
    "digest": ("sc:Text", "$[*].digest"),
    "class": ("sc:Text", "$[*].class"),
    "licence": ("sc:Text", "$[*].licence"),
    "best": ("sc:Float", "$[*].best.value"),
    "bound": ("sc:Float", "$[*].bound.value"),
    "proof": ("sc:Text", "$[*].bound.proof.kind"),
}
"""Of a record, what a loader gets: its type, and where it is."""


def described_collection(
    folder: Path, version: str, records: Mapping[str, Mapping[str, Any]], changed: Mapping[str, bytes] | None = None
) -> str:
    """Describe a collection.

    Parameters
    ----------
    folder : Path
    version : str
        Of the collection.
    records : mapping
        All records by name.
    changed : mapping of str to bytes, optional
        Content of files that are to be written by their paths within the folder; an empty one is to be no file.
    """
    paths = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    # What is hidden is being written; an archive has the checker's modules, which are no data.
    shown = [path for path in paths if not path.parts[0].startswith(".") and path.parts[0] not in _NO_DATA]
    files = {path.as_posix(): b"" for path in shown} | dict(changed or {})
    contents = (
        (name, (changed or {}).get(name) if name in (changed or {}) else (folder / name).read_bytes())
        for name in sorted(files)
    )
    licences = {f"{record['problem']}/{name}": record["licence"] for name, record in records.items()}
    sets = [
        {"@type": "cr:FileSet", "@id": "records", "encodingFormat": "application/json", "includes": "*/records.json"}
    ]
    fields = [
        {"dataType": kind, "name": name, "source": {"fileSet": {"@id": "records"}, "extract": {"jsonPath": place}}}
        for name, (kind, place) in _FIELDS.items()
    ]
    told = "Instances of problems of GPU-cluster scheduling, each with the best plan and the best bound known."
    return described(
        about(NAME, told, version, records.values()),
        ((name, data, licences.get(_instance_of(name), LICENCE)) for name, data in contents if data),
        [record_set("One record for each instance.", fields)],
        sets,
    )


def _instance_of(path: str) -> str:
    """Return problem and name of the instance that a file is of, if it is of one."""
    folder, _, file = path.partition("/")
    for ending in sorted(PARTS.values(), key=len, reverse=True):
        if file.endswith(ending):
            return f"{folder}/{file.removesuffix(ending)}"
    return ""


def about(name: str, told: str, version: str, records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is said of a data set as a whole, which is of these records."""
    records = list(records)
    licences = {one for record in records for one in record["licence"].split(" AND ")} | {LICENCE}
    date = max((record["best"]["date"] for record in records), default="")
    creator = "The scheduling-formulations developers"
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": name,
        "description": told,
        "version": f"{version}.0",
        "datePublished": date,
        "license": [_address(licence) for licence in sorted(licences)],
        "creator": {"@type": "sc:Organization", "name": creator},
        "keywords": ["scheduling", "GPU clusters", "optimization", "mixed-integer programming"],
        "citeAs": f"{creator}: {name}, version {version}, {date[:4]}",
    }


def record_set(
    told: str, fields: Iterable[Mapping[str, Any]], data: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the record set "instances", whose key is the field ``name``, with its data where no file has them."""
    named = [{"@type": "cr:Field", "@id": f"instances/{one['name']}", **one} for one in fields]
    found: dict[str, Any] = {"@type": "cr:RecordSet", "@id": "instances", "name": "instances", "description": told}
    found |= {"key": {"@id": "instances/name"}, "field": named}
    if data is not None:
        found["data"] = [{f"instances/{name}": value for name, value in one.items()} for one in data]
    return found


def described(
    head: Mapping[str, Any],
    files: Iterable[tuple[str, bytes, str]],
    record_sets: list[dict[str, Any]],
    file_sets: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Return the description of a folder as JSON, a line for each file.

    Parameters
    ----------
    head : mapping
        What :func:`about` returns.
    files : iterable of (str, bytes, str)
        Paths within the folder, contents, and licences as SPDX expressions.
    record_sets : list of dict
    file_sets : iterable of mapping
        Of these files.
    """
    lines = [
        json.dumps(
            {
                "@type": "cr:FileObject",
                "@id": path,
                "name": path,
                "contentUrl": path,
                "contentSize": f"{len(data)} B",
                "encodingFormat": _FORMATS.get(Path(path).suffix, "text/plain"),
                "license": [_address(one) for one in licence.split(" AND ")],
                "sha256": hashlib.sha256(data).hexdigest(),
            }
        )
        for path, data, licence in files
    ]
    lines += [json.dumps(one) for one in file_sets]
    rest = json.dumps({**head, "recordSet": record_sets}, indent=1).removesuffix("\n}")
    return f'{rest},\n "distribution": [\n  ' + ",\n  ".join(lines) + "\n ]\n}\n"


def _address(licence: str) -> str:
    return f"https://spdx.org/licenses/{licence}.html"
