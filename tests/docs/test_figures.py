"""No measured figure in a page without the command that gives it, and no command in a page that does not exist.

A page is looked at section by section, from one heading to the next. What looks like something that was measured (a
time, memory, a percentage, a ratio, so many of so many) must have its command in the same section: one that measures,
or the test that computes it. Not looked at are

- what stands in code, and in a paragraph, point or row that names the paper's section, figure or table, or the paper:
  a printed figure;
- limits and other inequalities by definition: what follows "at most", "within", "by default" and the like;
- a paragraph that links to a page of evidence, which has the command;
- worked examples, which are data and what follows from them, and are computed below, by running their code;
- sections in ``BY_DEFINITION``.

Pages in ``OF_ONE_COMMAND`` name theirs above the first section; of those in ``RUN`` the output is compared elsewhere.
"""

import contextlib
import importlib
import io
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer.main

from validation.cli import commands as optgap_commands

OPTGAP = typer.main.get_command(optgap_commands())

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    if not path.relative_to(ROOT).as_posix().startswith(("docs/_build/", "docs/api/"))
)
OF_ONE_COMMAND = ("docs/growth.md", "docs/claims", "docs/results/", "docs/which-problem.md")
"""Pages whose figures are all of one command, which stands above their first section, begin so."""

RUN = ("docs/tutorials/", "docs/how-to/")
"""Pages whose code is run and whose output is compared by tests/docs/test_tutorials.py begin so."""

BY_DEFINITION = {
    ("docs/replay.md", "What is compared, and what an interval means"): "what a confidence interval and a slope are",
}
"""Sections whose figures measure nothing, and why."""

NUMBER = r"(?<![\w.,^/=+-])\d[\d,]*(?:\.\d+)?"
UNIT = r"(?:%|(?:µs|ms|s|min|h|kB|MB|seconds|minutes|hours)\b)"
FIGURE = re.compile(rf"{NUMBER} ?{UNIT}|{NUMBER} times\b|{NUMBER} of (?:the )?{NUMBER}\b|{NUMBER} passed\b")
LIMIT = re.compile(
    r"\b(?:at most|at least|up to|within|limit of|longer than|by default|default)\s+(?:\w+\s+)?$", re.IGNORECASE
)
PRINTED = re.compile(r"\b(?:the paper|sections? \d|Sections? |Figures? \d|Tables? \d|Appendix [A-Z])")
EVIDENCE = re.compile(r"\]\([^)]*(?:growth|claims|results|highs-report|worst-cases|collection|faults)[^)]*\)")
MEASURES = re.compile(
    r"python -m benchmarks\b|python collection/check\.py|\bmake (?:results|bench|mutants|faults|study|pages)\b"
    r"|\boptgap (?:--load \S+ )?(?:bench|study|replay|hunt|worst-case|claims|collection|judge|check|compare|report)\b"
    r"|\btests/[\w/]+\.py\b"
)
FENCE = re.compile(r"^(`{3,}|:{3,})([^\n]*)\n(.*?)^\1 *$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    (\S.*)$", re.MULTILINE)
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
EXAMPLE = re.compile(r"Worked examples?$")


def sections(text: str) -> list[tuple[str, str]]:
    """Title and text of each section, from one heading to the next."""
    fences = [(found.start(), found.end()) for found in FENCE.finditer(text)]
    heads = [
        found
        for found in re.finditer(r"^#+ +(.*)$", text, re.MULTILINE)
        if not any(begin <= found.start() < end for begin, end in fences)
    ]
    starts = [0, *(head.start() for head in heads), len(text)]
    titles = ["", *(head[1].strip() for head in heads)]
    return [(title, text[begin:end]) for title, begin, end in zip(titles, starts, starts[1:], strict=False)]


def commands(text: str) -> str:
    """What stands as code in a text, on one line each."""
    spans = CODE.findall(FENCE.sub("", text))
    blocks = [body for _, language, body in FENCE.findall(text) if "python" not in language]
    return "\n".join([*(" ".join(span.split()) for _, span in spans), *blocks, *INDENTED.findall(text)])


def figures(page: str, text: str) -> Iterator[str]:
    """The measured figures of a page that have no command, each with what stands before it."""
    parts = sections(text)
    if page.startswith(OF_ONE_COMMAND) and any(MEASURES.search(commands(part)) for _, part in parts[:2]):
        return
    for title, part in parts:
        if MEASURES.search(commands(part)) or (page, title) in BY_DEFINITION:
            continue
        if page.startswith("docs/problems/") and EXAMPLE.search(title):
            continue
        plain = re.sub(r"<!--.*?-->|\$\$.*?\$\$|\$[^$\n]+\$", "", part, flags=re.DOTALL)
        # Of fences, what is no program: the output of one.
        programs = ("python", "toml", "json", *(["text"] if page.startswith(RUN) else []))
        plain = FENCE.sub(lambda found: "" if found[2].strip() in programs else found[3], plain)  # noqa: B023
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*|] ?)", plain):
            if PRINTED.search(paragraph) or EVIDENCE.search(paragraph):
                continue
            line = " ".join(CODE.sub("code", paragraph).split())
            for found in FIGURE.finditer(line):
                if not LIMIT.search(line[: found.start()]):
                    yield f"{title or 'beginning'}: {line[max(0, found.start() - 60) : found.end() + 20]}"


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_figure_has_its_command() -> None:
    assert len(PAGES) > 40
    assert [
        f"{named(page)}, {found}" for page in PAGES for found in figures(named(page), page.read_text(encoding="utf-8"))
    ] == []


PLANTED = "\n\n## Planted\n\nThe model is solved in 3.2 s, which is 4 times as fast.\n"


def test_a_planted_figure_is_found_in_every_page() -> None:
    for page in PAGES:
        name = "docs/another.md" if named(page).startswith(OF_ONE_COMMAND) else named(page)
        found = list(figures(name, page.read_text(encoding="utf-8") + PLANTED))[-2:]
        assert [one.partition(":")[0] for one in found] == ["Planted", "Planted"], page


@pytest.mark.parametrize(
    "text",
    [
        "It takes 5 ms.",
        "It takes 1,200 s of processor time.",
        "Gaps are 12% on average.",
        "| `greedy` | 0.3 % |",
        "9 of 255 stayed open.",
        "- so 17 passed",
        "It is 2.5 times as fast (`optgap list` has both).",
        "298 MB are taken.",
        "It is make believe: 3 s.",
        "```text\nended after 3 s\n```",
        "It takes 5 ms, at most 9 s.",
    ],
)
def test_what_is_a_figure(text: str) -> None:
    assert len(list(figures("docs/page.md", f"# Page\n\n{text}\n"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "The limit is at most 5 s, 10 s by default: within 3 s it ends, up to 5 minutes.".replace("10 s", "it is"),
        "The paper has 12% (Figure 9).",
        "It takes 5 ms (`python -m benchmarks aryl.reclaim`).",
        "It takes 5 ms.\n\n```sh\noptgap study aryl.reclaim --seed 1\n```",
        "As [measured](../results/times.md), it takes 5 ms.",
        "`3 s` and `12%` are texts.",
        "Jobs 3 and 4 of type K80, in 2 pools, version 1.15.1, and 4/3 - 1/(3m).",
        "```python\nrate = 10 % 3\n```",
    ],
)
def test_what_is_none(text: str) -> None:
    assert list(figures("docs/page.md", f"# Page\n\n{text}\n")) == []


def test_a_command_counts_in_its_own_section_only() -> None:
    text = "# Page\n\n`python -m benchmarks a`\n\n## One\n\n5 ms.\n\n### Two\n\n6 ms, by `make bench`.\n"
    assert list(figures("docs/page.md", text)) == ["One: 5 ms."]
    assert list(figures("docs/results/page.md", text)) == []
    output = "# Page\n\n```text\n12% worse\n```\n\nIt takes 3 s.\n"
    assert list(figures("docs/tutorials/page.md", output)) == ["Page: It takes 3 s."]
    assert len(list(figures("docs/results/page.md", text.replace("`python -m benchmarks a`", "")))) == 1


def test_exceptions_are_needed() -> None:
    """One whose section is gone, or has no figures any more, goes as well."""
    for (page, title), reason in BY_DEFINITION.items():
        assert reason
        text = (ROOT / page).read_text(encoding="utf-8")
        assert title in dict(sections(text))
        assert list(figures("docs/another.md", text))


# --- the commands exist --------------------------------------------------------------------------


def shell_lines(page: Path) -> list[str]:
    """What a page has as commands, without the comments, each on a line."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = [body for _, language, body in FENCE.findall(text) if language.strip() in ("sh", "bash", "console")]
    blocks += INDENTED.findall(text)
    spans = [" ".join(span.split()) for _, span in CODE.findall(FENCE.sub("", text))]
    lines = [line for block in blocks for line in block.splitlines()] + spans
    stripped = [
        re.sub(r"^\$ ", "", re.split(r"\s+#(?: |$)|\s{3,}| (?:\|\|?|&&|;|>) ", line.strip())[0]) for line in lines
    ]
    return [line for line in stripped if line.startswith(("optgap ", "make ", "python -m benchmarks."))]


def own_of(command: Any) -> Any:
    """The command that a group is where none of its others is named; None where there is none."""
    return getattr(command, "commands", {}).get(command.name)


def options_of(command: Any) -> set[str]:
    params = [*command.params, *getattr(own_of(command), "params", ())]
    return {name for one in params for name in (*one.opts, *one.secondary_opts)}


def unknown(command: Any, words: Sequence[str]) -> str:
    """What a command does not know of words that follow it; values are not looked at."""
    # Those of optgap itself, such as --quiet, may stand anywhere.
    anywhere = {*options_of(command), "--help"}
    for word in words:
        if re.match(r"--?[a-z]", word):
            if word.partition("=")[0] not in anywhere | options_of(command):
                return f"{command.name} has no option {word}"
        elif word in getattr(command, "commands", {}):
            command = command if word == command.name else command.commands[word]
    # "optgap studdy" is at its group still; COMMAND stands for any.
    lost = hasattr(command, "commands") and own_of(command) is None and words and "--" not in words[0]
    lost = lost and words[0] != "COMMAND"
    return f"{command.name} has no command {words[0]}" if lost else ""


def wrong(line: str) -> str:
    """Why a command cannot be run; empty where it can."""
    try:
        first, *words = [
            word.strip("[]") for word in shlex.split(line.partition(" || ")[0]) if word not in ("...", "|")
        ]
    except ValueError as error:
        return str(error)
    if first == "optgap":
        return unknown(OPTGAP, words)
    if first == "make":
        targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return ", ".join(f"no target {word}" for word in words if "=" not in word and word not in targets)
    if words[:1] == ["-m"] and words[1].startswith("benchmarks."):
        spec = find_spec(words[1])
        if spec is None:
            return f"no module {words[1]}"
        # A package is run by the module of that name in it.
        entered = importlib.import_module(f"{words[1]}.__main__" if spec.submodule_search_locations else words[1])
        if hasattr(entered, "app"):
            return unknown(typer.main.get_command(entered.app), words[2:])
        source = Path(str(entered.__file__)).read_text(encoding="utf-8")
        return ", ".join(f"no option {word}" for word in words if word.startswith("--") and f'"{word}"' not in source)
    return ""


def test_every_command_exists() -> None:
    lines = {(line, named(page)) for page in PAGES for line in shell_lines(page)}
    assert len(lines) > 100
    assert [f"{page}: {line}: {why}" for line, page in sorted(lines) if (why := wrong(line))] == []


@pytest.mark.parametrize(
    "line",
    [
        "optgap studdy aryl.reclaim",
        "optgap study aryl.reclaim --seeed 1",
        "optgap collection lost",
        "make everything",
        "python -m benchmarks.growth --mast 2",
        "python -m benchmarks.faults --seeed 2",
        "python -m benchmarks.results --onnly times",
    ],
)
def test_a_command_that_does_not_exist_is_found(line: str) -> None:
    assert wrong(line)


def test_named_tests_exist() -> None:
    for page in PAGES:
        for name in re.findall(r"\btests/[\w/]+\.py\b", page.read_text(encoding="utf-8")):
            # Of a problem that the reader adds there are none.
            assert "/demo/" in name or (ROOT / name).exists(), f"{named(page)}: {name}"


# --- worked examples -----------------------------------------------------------------------------

EXAMPLES = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8") and "problems/" in named(page)]


def first_number(text: str) -> tuple[float, int] | None:
    """The first number of a text, a fraction worked out, and the digits after its point."""
    found = re.search(r"-?\d+/\d+|-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", text)
    if found is None:
        return None
    over, slash, under = found[0].replace(",", "").partition("/")
    return float(over) / float(under or 1), 9 if slash else len(found[0].partition(".")[2])


@pytest.mark.slow
@pytest.mark.parametrize("page", EXAMPLES, ids=named)
def test_examples_print_what_the_page_says(page: Path) -> None:
    """The code of a problem's page runs, and a number right behind a ``print`` is the first that is printed."""
    space: dict[str, Any] = {"__name__": "example"}
    compared = 0
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        printed: dict[int, str] = {}

        def record(*values: object, printed: dict[int, str] = printed, **options: Any) -> None:
            out = io.StringIO()
            print(*values, file=out, **options)
            printed.setdefault(sys._getframe(1).f_lineno, out.getvalue())

        space["print"] = record
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, named(page), "exec"), space)
        for number, line in enumerate(block.splitlines(), start=1):
            said = line.partition("  # ")[2]
            # "(7)" is the name of a row.
            expected = first_number(said) if re.match(r"[\[(]*-?\d", said) and not re.match(r"\(\d+\)", said) else None
            if number in printed and expected is not None:
                found = first_number(printed[number])
                assert found is not None, line
                value, digits = expected
                compared += 1
                # Digits that "..." stands for are cut off, others rounded.
                assert abs(found[0] - value) < 10.0**-digits * (1 if "..." in line else 0.51) + 1e-9, line
    assert compared
