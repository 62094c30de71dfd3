"""The page's list of cheats is complete, and every test that it names is there."""

import re
from pathlib import Path

from benchmarks.faults.cheats import CHEATS

ROOT = Path(__file__).parents[4]
SECTION = (ROOT / "docs" / "judge.md").read_text(encoding="utf-8").partition("\n## Cheats\n")[2].partition("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")] for line in re.findall(r"^\| .*$", SECTION, re.MULTILINE)
]


def test_every_cheat_is_in_one_class() -> None:
    named = [name for _, cheats, *_ in ROWS[2:] for name in re.findall(r"`(\w+)`", cheats)]
    assert sorted(named) == sorted(CHEATS)


def test_every_class_has_a_cheat_or_a_test_of_its_own() -> None:
    assert len(ROWS[2:]) > 10
    assert [name for name, cheats, _, test in ROWS[2:] if not cheats and not test] == []


def test_the_tests_that_are_named_are_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", SECTION)
    assert len(named) > 5
    for file, test in named:
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), f"{file}::{test}"
