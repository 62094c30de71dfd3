"""Files of text, and the JSON in them, whatever else they may hold."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import zlib
from typing import IO, Any, NamedTuple

from instances.base import InstanceError

__all__ = ["OpenFile", "PathLike", "Text", "as_json", "read_bytes", "read_source", "read_text"]

PathLike = str | os.PathLike[str]
"""The path of a file."""

OpenFile = IO[str] | IO[bytes]
"""A file that is open for reading."""

LARGEST = 2**31
"""Bytes of a file beyond which it is refused: devices such as ``/dev/zero`` have no end."""
UNPACKED = 200_000_000
"""Bytes that a file may unpack to: three megabytes of a gzip may be three gigabytes of nothing.  The checker of the
collection has the same limit."""
MOST_THINGS = 20_000_000
"""Numbers, words, lists and objects in a JSON text: an empty list is three letters, and takes thirty times as much."""
LONGEST_WHOLE = 308
"""Digits of the longest whole number that is still a float."""
PIECE = 2**20
"""Bytes that are read at once."""

_DIGITS = re.compile(f"[0-9]{{{LONGEST_WHOLE + 1}}}")

_GZIP = b"\x1f\x8b"
"""The beginning of files of gzip."""


class Text(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    name : str
        Path or name of the file, which messages about it begin with.
    content : str
    sha256 : str
        Of the bytes as they stand in the file; of an open file of text, of its text in UTF-8.
    """

    name: str
    content: str
    sha256: str


def read_text(path: PathLike) -> str:
    """Read a text file, its ends of line as they are; see :func:`read_source`."""
    return read_source(path).content


def read_source(source: PathLike | OpenFile | Text) -> Text:
    """Read a text file with its name and hash, its ends of line as they are.

    Parameters
    ----------
    source : path, open file or Text
        In UTF-8, of which a mark at the beginning is passed over, or a gzip of it, which is known by its
        first bytes.  A file that is open as text may have any encoding; it is read from where it stands.

    Raises
    ------
    InstanceError
        When the file is not such text, or nothing can have such a name.
    OSError
        When the file cannot be read.
    """
    if isinstance(source, Text):
        return source
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        data: str | bytes = read_bytes(name)
    elif hasattr(source, "read"):
        name = str(getattr(source, "name", "open file"))
        try:
            data = source.read()
        except UnicodeDecodeError as error:
            raise InstanceError(f"{name}: not a text file in {error.encoding.upper()}") from None
        except ValueError as error:
            # Closed, or open for writing.
            raise InstanceError(f"{name}: {error}") from None
    else:
        raise InstanceError(f"got {type(source).__name__}, must be a path or an open file")
    if isinstance(data, str):
        return Text(name, data.removeprefix("\ufeff"), hashlib.sha256(data.encode(errors="replace")).hexdigest())
    digest = hashlib.sha256(data).hexdigest()
    if data.startswith(_GZIP):
        try:
            # A piece at a time, because its end may be out of sight.
            with gzip.open(io.BytesIO(data)) as packed:
                data = packed.read(UNPACKED + 1)
        except (OSError, EOFError, zlib.error):
            raise InstanceError(f"{name}: begins as a gzip file does, and is none, or not a whole one") from None
        except MemoryError:
            raise InstanceError(f"{name}: too large for the memory that there is") from None
        if len(data) > UNPACKED:
            raise InstanceError(f"{name}: unpacks to more than {UNPACKED / 1e6:g} MB")
    try:
        return Text(name, data.decode("utf-8-sig"), digest)
    except UnicodeDecodeError as error:
        raise InstanceError(
            f"{name}: not a text file in UTF-8 (byte {data[error.start]:#04x} at {error.start}); one in another "
            'encoding can be given open, as in open(path, encoding="latin-1")'
        ) from None


def read_bytes(path: PathLike) -> bytes:
    """Read a file.

    Raises
    ------
    InstanceError
        When nothing can have such a name, or the file has no end, or none in sight.
    OSError
        When it cannot be read.
    """
    name, pieces, size = os.fspath(path), [], 0
    try:
        with open(name, "rb") as file:
            while size <= LARGEST and (piece := file.read(PIECE)):
                pieces.append(piece)
                size += len(piece)
        content = b"".join(pieces)
    except ValueError:
        # With a zero byte in it, or half of a character.
        raise InstanceError(f"{name!r}: no file can have this name") from None
    except MemoryError:
        raise InstanceError(f"{name}: too large for the memory that there is") from None
    if size > LARGEST:
        raise InstanceError(f"{name}: larger than {LARGEST / 2**30:g} GiB")
    return content


def as_json(content: str, where: str, *, line: bool = False) -> Any:
    """Parse a JSON text.

    Parameters
    ----------
    content : str
    where : str
        What the message of an error begins with.
    line : bool
        Whether the line of the error stands beside the place, as in messages about tables.

    Raises
    ------
    InstanceError
        When the text is not JSON; the message says in which line.  When it holds more than fits in memory, or a whole
        number that is beyond any float.
    """
    if sum(map(content.count, ",[{:")) > MOST_THINGS:
        raise InstanceError(f"{where}: more than {MOST_THINGS:,} numbers, words, lists and objects")
    try:
        # Most texts have no such number, and are read without a look at each.
        return json.loads(content, parse_int=_whole if _DIGITS.search(content) else None)
    except json.JSONDecodeError as error:
        at = (f", line {error.lineno}", "") if line else ("", f" at line {error.lineno}")
        raise InstanceError(f"{where}{at[0]}: not valid JSON{at[1]}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        # A number of hundreds of digits, or lists nested as deeply.
        raise InstanceError(f"{where}: not valid JSON: {error}") from None
    except MemoryError:
        raise InstanceError(f"{where}: too large for the memory that there is") from None


def _whole(digits: str) -> int:
    if len(digits.lstrip("-")) > LONGEST_WHOLE:
        raise ValueError(f"a whole number of {len(digits.lstrip('-'))} digits, beyond any float")
    return int(digits)
