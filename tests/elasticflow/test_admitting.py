"""elasticflow.admission by its own search: the optimum of a brute force, whichever of its steps find it."""

import importlib
from collections import Counter
from typing import Any

import numpy as np
import pytest

from formulations.engine.options import Options
from instances.elasticflow.admission import Admission

from ..effort import rounds
from ..second_opinion import optimum

admitting = importlib.import_module("formulations.methods.admitting")


def small(brute: Any, seed: int) -> Admission:
    """Up to five jobs on concave curves, of which not all can be served most often."""
    fields = brute.draw(seed, concave=True, max_jobs=5, max_gpus=3, max_slots=3)
    most = fields["deadlines"] * fields["throughputs"].max(axis=1)
    # Parts of a GPU-slot, which rounding makes whole ones.
    part = np.random.default_rng(seed).choice([0.3, 0.55, 0.8, 1.0], len(most))
    order = np.random.default_rng(seed).permutation(len(most))
    return Admission(**{**fields, "iterations": np.round(part * most, 1)}, arrival_order=order)


def by_search(instance: Admission) -> Any:
    """Search from nothing, so that no plan at hand does its work."""
    return admitting.search(instance, Options(verify=False))


def none(_: Any) -> None:
    """Find no plan."""


@pytest.mark.parametrize("one_by_one", [True, False])
def test_against_all_plans(brute: Any, monkeypatch: pytest.MonkeyPatch, one_by_one: bool) -> None:
    """With the plans that are found job by job, and without, so that parts are divided and sets searched."""
    if not one_by_one:
        monkeypatch.setattr(admitting._Served, "one_by_one", none)
    proofs: Counter[str] = Counter()
    for seed in rounds(100):
        instance = small(brute, seed)
        solution = by_search(instance)
        assert solution.status == "optimal"
        assert solution.objective == solution.bound == optimum(instance), seed
        assert instance.violations(solution.plan) == []
        proofs[solution.proof] += 1
    assert proofs["prices"] > 50
