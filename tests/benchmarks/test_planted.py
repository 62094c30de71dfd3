"""Bugs written out as heuristics: default checks find them, whatever the seed."""

import pytest

from benchmarks.planted import BUGS

from ..effort import rounds

HARD = {
    "flexible_among_others": 1,
    "gpus_in_16_bits": 0,
    "megabytes_in_32_bits": 2,
    "nearly_done": 0,
    "nearly_fits": 2,
    "products_in_32_bits": 0,
    "widest_first": 0,
}
"""What draws of the problem's own alone do not show, at a seed where that is so."""
QUICK = ("gpus_in_16_bits", "nearly_fits", "widest_first")


def test_there_are_so_many_of_each_kind() -> None:
    assert len(BUGS) == 38
    assert sum(bool(bug.promises) for bug in BUGS.values()) == 5


@pytest.mark.parametrize(
    ("name", "seed"),
    [pytest.param(*one, marks=() if one[0] in QUICK else pytest.mark.slow) for one in HARD.items()],
)
def test_a_bug_that_hides_is_found(name: str, seed: int) -> None:
    assert BUGS[name].found(seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_all_bugs_are_found(name: str) -> None:
    assert all(BUGS[name].found(1 + seed) for seed in rounds(1))
