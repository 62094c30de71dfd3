"""Prism's released task: its program and its evaluator, followed by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from instances.reference import Reference

from .stored import judges

Data = dict[str, Any]

INSTANCES = 50
MEAN_OF_OPTIMA = 0.0395946
"""Of all released instances, to seven digits (docs/problems/prism/placement.md)."""


def weights(data: Data) -> list[Fraction]:
    return [Fraction(rate) / Fraction(slo) for rate, slo in zip(data["rates"], data["slos"], strict=True)]


def placed(data: Data) -> list[list[int]] | None:
    """GPUs' models: each, by weight, where the pressure is least before it comes; None where no GPU has room."""
    (memory,) = set(data["memory"])
    gpus: list[list[int]] = [[] for _ in data["memory"]]
    for job in sorted(range(len(data["sizes"])), key=lambda job: -weights(data)[job]):
        able = [held for held in gpus if left(data, held) >= data["sizes"][job]]
        if not able:
            return None
        assert all(left(data, held) <= memory for held in able)
        min(able, key=lambda held: pressure(data, held)).append(job)
    return gpus


def left(data: Data, held: list[int]) -> Fraction:
    return Fraction(data["memory"][0]) - sum(Fraction(data["sizes"][job]) for job in held)


def pressure(data: Data, held: list[int]) -> Fraction:
    return sum((weights(data)[job] for job in held), Fraction(0)) / left(data, held)


def of_the_program(data: Data) -> Fraction:
    gpus = placed(data)
    assert gpus is not None
    return max(pressure(data, held) for held in gpus)


@judges("prism/placement/prism_program_places_best-1", "prism/placement/prism_program_places_best-2")
def test_the_program_s_placement_is_not_the_best(data: Data, reference: Reference) -> None:
    assert of_the_program(data) > reference.optimum() * Fraction(101, 100)


@judges("prism/placement/prism_program_places_best-3")
def test_it_is_half_as_much_again(data: Data, reference: Reference) -> None:
    assert of_the_program(data) > reference.optimum() * Fraction(3, 2)


@judges("prism/placement/prism_failure_means_no_placement-2")
def test_the_largest_comes_last_and_two_small_ones_are_apart(data: Data, reference: Reference) -> None:
    assert placed(data) is None
    # The first two together take 4 of 5 GB, and so does the last.
    assert (data["memory"], data["sizes"]) == ([5, 5], [2, 2, 4])
    together = max(pressure(data, [0, 1]), pressure(data, [2]))
    assert reference.optimum() == together == 6


@judges("prism/placement/prism_evaluator_counts_gpus-1")
def test_more_gpus_than_there_are_count_for_less(data: Data, reference: Reference) -> None:
    alone = max(pressure(data, [job]) for job in range(len(data["sizes"])))
    assert len(data["sizes"]) > len(data["memory"])
    assert alone < reference.optimum() * Fraction(3, 5)


@judges("prism/placement/prism_answers_raise_the_score-1")
def test_the_score_rises_where_one_is_left_out(data: Data, reference: Reference) -> None:
    rest = (INSTANCES * MEAN_OF_OPTIMA - float(reference.optimum())) / (INSTANCES - 1)
    assert 1 / rest + (INSTANCES - 1) / INSTANCES > 1 / MEAN_OF_OPTIMA + 1.05
