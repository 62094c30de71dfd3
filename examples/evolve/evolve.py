"""Evolve a heuristic by hill climbing on the public set, and judge what it found on a hidden one.

    python examples/evolve/evolve.py --seed 3 --steps 150 --hidden FILE
    python examples/evolve/evolve.py --problem aryl.base_allocation --seed 3 --steps 150 --hidden FILE

A candidate is a row of weights: what a server costs (:mod:`greedy`), or the order of jobs (:mod:`orders`).  A step
changes one or two of them at random, and the change stays if the judge's number gets no worse.  Nothing but the seeds
decides what is found.
"""

import argparse
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import greedy
import numpy as np
import orders

import validation

EDITION = 1
"""Of the sets, so that what the page on the judge tells of these searches comes out again."""

RULES = {rule.PROBLEM: rule for rule in (greedy, orders)}
"""Modules of what weights make: features, where a search begins, and what is judged beside what it finds."""


def heuristic(rule: ModuleType, weights: np.ndarray) -> Callable[[Any], Any]:
    """The heuristic that some weights make."""

    def weighted(instance: Any) -> Any:
        return rule.by_weights(instance, weights)

    return weighted


def changed(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The weights after one or two random changes, small or large, to two digits."""
    weights = weights.copy()
    for _ in range(rng.integers(1, 3)):
        weights[rng.integers(len(weights))] += rng.normal() * rng.choice([0.1, 1.0])
    return np.round(weights, 2)


def climb(rule: ModuleType, seed: int, steps: int) -> Iterator[tuple[int, float, np.ndarray]]:
    """Step, score and weights whenever they got better; at step 0 where the search begins."""
    rng = np.random.default_rng(seed)
    weights = rule.START
    best = validation.judge(heuristic(rule, weights), rule.PROBLEM, edition=EDITION).score
    yield 0, best, weights
    for step in range(1, steps + 1):
        tried = changed(weights, rng)
        score = validation.judge(heuristic(rule, tried), rule.PROBLEM, edition=EDITION).score
        if score > best:
            yield step, score, tried
        if score >= best:
            best, weights = score, tried


def main() -> None:
    """The search, and a table of what it found."""
    parser = argparse.ArgumentParser(description="Evolve a heuristic.")
    parser.add_argument("--problem", choices=RULES, default=greedy.PROBLEM)
    parser.add_argument("--seed", type=int, required=True, help="of the search")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--hidden", required=True, metavar="FILE", help="file with the seed of a hidden set")
    asked = parser.parse_args()
    rule = RULES[asked.problem]
    weights = rule.START
    for step, score, better in climb(rule, asked.seed, asked.steps):
        print(f"step {step:<4} {score:.4f}", flush=True)
        weights = better
    print(f"\n{'':<24}public  hidden")
    mine = [(name, heuristic(rule, row)) for name, row in {**rule.NAMED, "evolved": weights}.items()]
    for name, one in [*zip(rule.BESIDE, rule.BESIDE, strict=True), *mine]:
        scores = [
            validation.judge(one, rule.PROBLEM, split=split, edition=EDITION).score
            for split in ("public", f"hidden:{asked.hidden}")
        ]
        print(f"{name:<24}{scores[0]:.4f}  {scores[1]:.4f}", flush=True)
    print()
    for feature, weight in zip(rule.FEATURES, weights, strict=True):
        if weight:
            print(f"{weight:>6.2f}  {feature}")


if __name__ == "__main__":
    main()
