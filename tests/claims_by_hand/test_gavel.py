"""Gavel: what little arithmetic shows, on one worker or two."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

from instances.reference import Reference

from .stored import judges

Data = dict[str, Any]


@judges("gavel/round_assignment/highest_priorities_across_types-2")
def test_the_highest_priorities_are_not_the_most(data: Data, reference: Reference) -> None:
    rows = data["priorities"]
    (high, job, kind), *_ = sorted(((rows[j][k], j, k) for j in (0, 1) for k in (0, 1)), reverse=True)
    assert high + rows[1 - job][1 - kind] == 3.1
    assert max(rows[0][first] + rows[1][second] for first, second in permutations((0, 1))) == reference.optimum() == 4


@judges(
    "gavel/shortest_job_first/one_linear_program_shortest_job_first-2",
    "gavel/shortest_job_first/sharing_incentive_per_job_shortest_job_first-2",
)
def test_the_shortest_job_takes_all(data: Data, reference: Reference) -> None:
    # Two jobs of a step at 1 step/s on one worker: the value is that of the one with more time.
    times = {first: reference.value({"time_fractions": [[first], [1 - first]]}) for first in (0, 0.5, 1)}
    assert times == {0: 1, 0.5: 2, 1: 1}
    assert reference.optimum() == 1
    # So an optimum leaves one of them none, and alone each has half of the time.
    for hundredths in range(1, 100):
        assert reference.value({"time_fractions": [[hundredths / 100], [1 - hundredths / 100]]}) > 1


@judges("gavel/total_throughput/sharing_incentive_per_job_total_throughput-2")
def test_the_faster_job_takes_all(data: Data, reference: Reference) -> None:
    assert reference.optimum() == 2
    for hundredths in range(1, 101):
        first = Fraction(hundredths, 100)
        assert reference.value({"time_fractions": [[float(first)], [float(1 - first)]]}) < 2


@judges("gavel/throughput_per_dollar/sharing_incentive_per_job_throughput_per_dollar-2")
def test_the_cheaper_throughput_takes_all(data: Data, reference: Reference) -> None:
    assert reference.optimum() == 2
    for hundredths in range(1, 101):
        for other in (0.0, (100 - hundredths) / 200, (100 - hundredths) / 100):
            assert reference.value({"time_fractions": [[hundredths / 100], [other]]}) < 2
