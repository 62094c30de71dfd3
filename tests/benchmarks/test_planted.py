"""Bugs written out as heuristics: default checks find nearly all of them, whatever the seed."""

import pytest

from benchmarks.planted import BUGS

RARE = {"flexible_among_others", "megabytes_in_32_bits", "nearly_fits"}
"""Not found at every seed: nearly all plans of theirs are right, or they decline most of what is drawn."""

HARD = ("gpus_in_16_bits", "nearly_done", "products_in_32_bits", "widest_first")
"""What draws of the problem's own alone do not show."""


def test_there_are_so_many_of_each_kind() -> None:
    assert len(BUGS) == 38
    assert sum(bool(bug.promises) for bug in BUGS.values()) == 5


@pytest.mark.parametrize("name", HARD)
def test_a_bug_that_hides_is_found(name: str) -> None:
    assert BUGS[name].found(0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_nearly_all_bugs_are_found(seed: int) -> None:
    missed = {name for name, bug in BUGS.items() if not bug.found(seed)}
    assert missed <= RARE
