"""Files of text, and the JSON in them, whatever else they may hold."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from instances.base import InstanceError

__all__ = ["PathLike", "as_json", "read_text"]

PathLike = str | os.PathLike[str]


def read_text(path: PathLike) -> str:
    """The content of a text file, its ends of line as they are.

    Raises
    ------
    InstanceError
        When the file is not text in UTF-8 (a mark at its beginning is passed over), or nothing can have
        such a name.
    OSError
        When the file cannot be read.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InstanceError(f"{path}: not a text file") from None
    except ValueError:
        # With a zero byte in it, or half of a character.
        raise InstanceError(f"{str(path)!r}: no file can have this name") from None


def as_json(content: str, where: str, *, line: bool = False) -> Any:
    """What a JSON text holds.

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
        When the text is not JSON; the message says in which line.
    """
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        at = (f", line {error.lineno}", "") if line else ("", f" at line {error.lineno}")
        raise InstanceError(f"{where}{at[0]}: not valid JSON{at[1]}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or lists nested as deeply.
        raise InstanceError(f"{where}: not valid JSON: {error}") from None
