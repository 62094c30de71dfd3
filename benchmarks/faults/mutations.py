"""Harm to files: seeded changes of trees, of text and of bytes, as accidents and bad programs make them.

``tests/validation/test_fuzz.py`` does the same harm, in a few seconds.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np

__all__ = ["altered_bytes", "altered_table", "altered_text", "altered_tree", "as_json"]

NUMBERS = (
    0, 1, -1, 2, 7, 8, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), 10**6, 10**9, 10**12, 10**18, 10**30,
    0.0, -0.0, 0.5, 1.5, 1e-9, 1e-320, 1e9, 1e16, 1e300, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
NESTED, LONG, LONGEST = "@nested@", "@long@", "@longest@"
"""Words that :func:`as_json` replaces by what ``json.dumps`` cannot write, or should not have to."""
WORDS = ("", "x", "1", "nan", "null", "ünïcödé", "\0", "\ud800", "../x", "a\nb", "a" * 300, NESTED, LONG, LONGEST)
OTHERS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [[], [1]], {"problem": "aryl.reclaim"}, [None], ["x"], [{}])
WRITTEN = {
    NESTED: ("[" * 90 + "]" * 90, "[" * 900 + "1" + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, "[" * 100_000),
    LONG: ("9" * 400, "1e400", "9" * 4300, "0." + "3" * 3000),
    LONGEST: ("9" * 5000, "-" + "9" * 10_000, '"' + "x" * 200_000 + '"'),
}
CELLS = (
    "", " ", "nan", "inf", "-inf", "-1", "0", "1.5", "1e400", "1e-400", "9" * 400, "9" * 5000, "10" * 9, "1_000", "٣",
    "x", '"', '"a', "a,b", "a\tb", "a\nb", "\0", "\x1a", "x" * 140_000, "[" * 3000, "('a', 1)", "(" * 300, "null",
    "1" + "0" * 40, "2**99", "-" * 5000 + "1", "1e12", "100000000", "\ufeff", "\ud800",
)  # fmt: skip
FLIPPED = ("utf-16", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7")
"""Encodings in which a table may arrive."""


def odd(rng: np.random.Generator) -> Any:
    """Draw a value that hardly any field takes."""
    found = (NUMBERS, WORDS, OTHERS)[rng.choice(3, p=(0.6, 0.2, 0.2))]
    return copy.deepcopy(found[int(rng.integers(len(found)))])


def altered_tree(rng: np.random.Generator, tree: Any, *, times: int | None = None) -> Any:
    """Return a copy of a JSON tree of which one to three places are changed."""
    tree = copy.deepcopy(tree)
    for _ in range(int(rng.integers(1, 4)) if times is None else times):
        tree = _altered_once(rng, tree)
    return tree


def _altered_once(rng: np.random.Generator, tree: Any) -> Any:
    parent: Any = None
    key: Any = None
    value = tree
    # Down to a place at random; every depth has its chance.
    while isinstance(value, (dict, list)) and value and (parent is None or rng.random() < 0.7):
        parent, key = value, _key(rng, value)
        value = parent[key]
    if parent is None:
        return odd(rng)
    kind = int(rng.choice(7, p=(0.06, 0.08, 0.08, 0.1, 0.4, 0.08, 0.2)))
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(value))
    elif kind == 1:
        parent[f"{key}s"] = parent.pop(key)
    elif kind == 2:
        parent[key] = [value]
    elif kind == 3 and isinstance(value, list) and value:
        parent[key] = value[0] if rng.random() < 0.5 else value * int(rng.choice([2, 3, 50]))
    elif kind == 4 and isinstance(value, int | float):
        # Numbers that many fields take, so that there is something to solve.
        parent[key] = [value + 1, value // 2, value * 1000, 0 * value, -value, str(value), value + 0.5][
            int(rng.integers(7))
        ]
    elif kind == 5 and isinstance(value, list):
        parent[key] = _everywhere(value, odd(rng))
    else:
        parent[key] = odd(rng)
    return tree


def _key(rng: np.random.Generator, value: Any) -> Any:
    return list(value)[int(rng.integers(len(value)))] if isinstance(value, dict) else int(rng.integers(len(value)))


def _everywhere(value: Any, put: Any) -> Any:
    return [_everywhere(one, put) for one in value] if isinstance(value, list) else put


def as_json(rng: np.random.Generator, tree: Any) -> str:
    """Write a tree, with what only a text can hold: nesting without end, numbers of thousands of digits."""
    text = json.dumps(tree)
    for word, written in WRITTEN.items():
        while f'"{word}"' in text:
            text = text.replace(f'"{word}"', written[int(rng.integers(len(written)))], 1)
    return text


def altered_text(rng: np.random.Generator, text: str) -> str:
    """Return a text with a stretch cut out, doubled, moved or replaced, or cut off."""
    start, end = np.sort(rng.integers(0, len(text) + 1, 2)).tolist()
    if rng.random() < 0.7:
        end = min(end, start + int(rng.integers(1, 12)))
    piece = text[start:end]
    other = (*WORDS[:-3], "{", "}", "[", "]", ",", ":", '"', "-", "e", "9" * 5000, "[" * 100_000)
    put = [
        "",
        piece * 2,
        piece[::-1],
        str(odd(rng)),
        other[int(rng.integers(len(other)))],
        text[: int(rng.integers(1, 40))],
    ][int(rng.integers(6))]
    return text[:start] if rng.random() < 0.1 else text[:start] + put + text[end:]


def altered_bytes(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes of which a few are others, or which are cut off, or written in another encoding."""
    kind = int(rng.integers(4))
    if kind == 0:
        return data[: int(rng.integers(0, len(data) + 1))]
    if kind == 1:
        encoding = FLIPPED[int(rng.integers(len(FLIPPED)))]
        return data.decode("utf-8", "replace").encode(encoding, "replace")
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9))):
        at = int(rng.integers(0, len(changed) + 1))
        if kind == 2 and at < len(changed):
            changed[at] ^= 1 << int(rng.integers(8))
        else:
            changed[at:at] = rng.integers(0, 256, int(rng.integers(1, 5)), dtype=np.uint8).tobytes()
    return bytes(changed)


def altered_table(rng: np.random.Generator, text: str, separator: str = ",") -> str:
    """Lines of cells with some of them replaced, or with lines or columns left out, doubled or swapped."""
    rows = [line.split(separator) for line in text.splitlines()]
    for _ in range(int(rng.integers(1, 4))):
        line = int(rng.integers(len(rows)))
        cell = int(rng.integers(len(rows[line]))) if rows[line] else 0
        kind = int(rng.integers(8))
        if kind == 0 and len(rows) > 1:
            del rows[line]
        elif kind == 1:
            rows.insert(line, list(rows[line]))
        elif kind == 2:
            rows = [[one for at, one in enumerate(row) if at != cell] for row in rows]
        elif kind == 3:
            rows = [[*row, *row[cell : cell + 1]] for row in rows]
        elif kind == 4:
            rows[line] = rows[line][::-1]
        elif rows[line]:
            rows[line][cell] = CELLS[int(rng.integers(len(CELLS)))]
    end = ("\n", "\r\n", "\r")[rng.choice(3, p=(0.8, 0.1, 0.1))]
    return end.join(separator.join(row) for row in rows) + (end if rng.random() < 0.8 else "")
