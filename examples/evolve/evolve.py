"""Evolve a heuristic of ``aryl.reclaim`` by hill climbing on the public set, and judge what it found on a hidden one.

    python examples/evolve/evolve.py --seed 3 --steps 150 --hidden FILE

A candidate is a row of weights (:mod:`greedy`).  A step changes one or two of them at random, and the change stays if
the judge's number gets no worse.  Nothing but the seeds decides what is found.
"""

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from greedy import FEATURES, SERVER_FRACTION, by_weights

import validation
from instances.aryl.reclaim import Reclaim, ReclaimPlan

PROBLEM = "aryl.reclaim"
BESIDE = ("smallest_count_first", "server_fraction", "smallest_count_updated", "local_search")
"""Heuristics of the catalogue that are judged beside what was found."""

COUNT_AND_SHARE = np.array([1.0, 1, 0, 0, 0, 0, 0, 0])
"""What a person reads out of the weights that ``--seed 3`` finds."""


def heuristic(weights: np.ndarray) -> Callable[[Reclaim], ReclaimPlan]:
    """The heuristic that some weights make."""

    def weighted(instance: Reclaim) -> ReclaimPlan:
        return by_weights(instance, weights)

    return weighted


def changed(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The weights after one or two random changes, small or large, to two digits."""
    weights = weights.copy()
    for _ in range(rng.integers(1, 3)):
        weights[rng.integers(len(weights))] += rng.normal() * rng.choice([0.1, 1.0])
    return np.round(weights, 2)


def climb(seed: int, steps: int) -> Iterator[tuple[int, float, np.ndarray]]:
    """Step, score and weights whenever they got better; at step 0 where the search begins."""
    rng = np.random.default_rng(seed)
    weights = SERVER_FRACTION
    best = validation.judge(heuristic(weights), PROBLEM).score
    yield 0, best, weights
    for step in range(1, steps + 1):
        tried = changed(weights, rng)
        score = validation.judge(heuristic(tried), PROBLEM).score
        if score > best:
            yield step, score, tried
        if score >= best:
            best, weights = score, tried


def main() -> None:
    """The search, and a table of what it found."""
    parser = argparse.ArgumentParser(description="Evolve a heuristic of aryl.reclaim.")
    parser.add_argument("--seed", type=int, required=True, help="of the search")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--hidden", required=True, metavar="FILE", help="file with the seed of a hidden set")
    asked = parser.parse_args()
    weights = SERVER_FRACTION
    for step, score, better in climb(asked.seed, asked.steps):
        print(f"step {step:<4} {score:.4f}", flush=True)
        weights = better
    print(f"\n{'':<24}public  hidden")
    mine = [("count and share", heuristic(COUNT_AND_SHARE)), ("evolved", heuristic(weights))]
    for name, one in [*zip(BESIDE, BESIDE, strict=True), *mine]:
        scores = [validation.judge(one, PROBLEM, split=split).score for split in ("public", f"hidden:{asked.hidden}")]
        print(f"{name:<24}{scores[0]:.4f}  {scores[1]:.4f}", flush=True)
    print()
    for feature, weight in zip(FEATURES, weights, strict=True):
        if weight:
            print(f"{weight:>6.2f}  {feature}")


if __name__ == "__main__":
    main()
