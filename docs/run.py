"""Run the blocks of tutorials and how-to pages, from the top, and compare what they print with what the pages show.

    python docs/run.py docs/tutorials/*.md            # differences; exit code 1 where there are any
    python docs/run.py --write docs/tutorials/*.md    # outputs and pictures in the pages as they are now

A page is run in a folder of its own that holds ``examples/``.  Its blocks:

- ``sh`` is run by bash;
- ``python`` is run in one interpreter for the whole page, as somebody types it;
- a block below a line that ends in a file's name and a colon (Save this as `mine.py`:) is saved under that name;
- ``text`` is what the block before it prints.  Times may differ, lines may be broken elsewhere, and a line ``...``
  stands for any number of lines;
- ``console`` is shown only, for what cannot run in a test; so are ``latex`` and ``toml``.

A picture beside the page that the blocks make must show the same words as theirs.
"""

import argparse
import contextlib
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUN = ("sh", "python")
"""Languages of blocks that are run."""
READ = ("latex", "toml")
"""Languages of blocks that are part of the prose."""
LIMIT = 600
"""Seconds for a page."""

BLOCK = re.compile(r"^```(?P<language>\S*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
SAVED_AS = re.compile(r"`([\w./-]+\.\w+)`:\n+\Z")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)/]+\.svg)\)")
TIME = re.compile(r"(?<![\w.])\d[\d.,]*\s?(µs|ms|s|min|h)(?![\w/])")

# Prints one line of JSON for each step, as far as they go: how it ended and what it said.
SESSION = """
import json, linecache, os, subprocess, sys, tempfile, traceback

def _step(number, language, code, file):
    if file:
        os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
        with open(file, "w", encoding="utf-8") as saved:
            saved.write(code)
        return 0
    if language == "sh":
        return subprocess.call(["bash", "-e", "-o", "pipefail", "-c", code], stdin=subprocess.DEVNULL)
    name = f"<block {number}>"
    linecache.cache[name] = len(code), None, code.splitlines(True), name
    try:
        exec(compile(code, name, "exec"), sys.modules["__main__"].__dict__)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
    return 0

_steps, _answers = json.load(sys.stdin), os.fdopen(os.dup(1), "w")
for _number, _given in enumerate(_steps):
    with tempfile.TemporaryFile() as _said:
        os.dup2(_said.fileno(), 1)
        _ended = _step(_number, *_given)
        _said.seek(0)
        print(json.dumps([_ended, _said.read().decode()]), file=_answers, flush=True)
    if _ended:
        break
"""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, the name that it is saved under, and where its code is in the page."""

    language: str
    code: str
    file: str
    start: int
    end: int


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for found in BLOCK.finditer(page):
        saved = SAVED_AS.search(page, 0, found.start())
        yield Block(found["language"], found["code"], saved[1] if saved else "", *found.span("code"))


def run(page: str, folder: Path) -> list[tuple[Block, str]]:
    """What each block that is run prints, in a folder."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    steps = [block for block in blocks(page) if block.file or block.language in RUN]
    given = [(block.language, block.code, block.file) for block in steps]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg", "NO_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", SESSION],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as child:
        try:
            answers, errors = child.communicate(json.dumps(given), timeout=LIMIT)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    said = [json.loads(line) for line in answers.splitlines()]
    # The first failure is the last answer; a block that ends the interpreter gives none.
    passed = sum(not failed for failed, _ in said)
    if passed < len(steps):
        raise RuntimeError(f"this block failed:\n{steps[passed].code}\n{errors[-3000:]}")
    return [(block, words) for block, (_, words) in zip(steps, said, strict=True)]


def same(shown: str, said: str) -> bool:
    """Whether a page shows what is said, up to times, and to how words are spaced and broken into lines."""

    def words(text: str) -> str:
        return "".join(f"{word} " for word in TIME.sub("TIME", text).split())

    parts = re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)
    return re.fullmatch(r"(?:\S+ )*".join(re.escape(words(part)) for part in parts), words(said)) is not None


def words_of(picture: Path) -> list[str]:
    """The words of a picture of Matplotlib's, which stand as comments beside their outlines."""
    return re.findall(r"<!-- (.*?) -->", picture.read_text(encoding="utf-8"))


def differences(path: Path, *, write: bool = False) -> list[str]:
    """Where a page differs from what its blocks do; nothing is left to tell of what is written anew."""
    page, told, changes = path.read_text(encoding="utf-8"), [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = {block.start: words for block, words in run(page, folder)}
        before: Block | None = None
        for block in blocks(page):
            if block.language == "text" and not block.file:
                words = said[before.start] if before and before.start in said else ""
                if not same(block.code, words):
                    changes.append((block, words))
            before = block
        for picture in PICTURE.findall(page):
            made, kept = folder / picture, path.parent / picture
            if not made.exists():
                told.append(f"no block makes {picture}")
            elif not kept.exists() or words_of(made) != words_of(kept):
                if write:
                    shutil.copyfile(made, kept)
                else:
                    told.append(f"{picture} is not what the blocks draw")
    for block, words in reversed(changes):
        if write:
            lines = [line.rstrip() for line in words.strip("\n").splitlines()]
            page = page[: block.start] + "".join(f"{line}\n" for line in lines) + page[block.end :]
        else:
            told.append("\n".join(difflib.ndiff(block.code.splitlines(), words.splitlines())))
    if write and changes:
        path.write_text(page, encoding="utf-8")
    return told


def main() -> int:
    """Run the pages that are named; the exit code tells whether they show what happens."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="write outputs and pictures anew")
    asked = parser.parse_args()
    wrong = 0
    for path in asked.pages:
        try:
            found = differences(path, write=asked.write)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            found = [str(error)]
        for one in found:
            print(f"{path}: {one}")
        wrong += bool(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
