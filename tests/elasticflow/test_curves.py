"""Curves of any shape, which the strategies and the generators do not draw: all models of jobs in slots."""

import numpy as np
import pytest

import formulations
from instances.base import agree
from instances.files import instance_type

from ..effort import rounds
from ..second_opinion import optimum


@pytest.mark.parametrize("problem", ["admission", "allocation", "best_effort", "minimum_satisfactory_share"])
def test_the_optimum_is_the_references(brute, problem):
    statuses, bent = {"optimal": 0, "infeasible": 0}, 0
    for seed in rounds(60):
        fields = brute.draw(seed, max_jobs=3, max_gpus=3)
        n, rng = len(fields["iterations"]), np.random.default_rng(seed)
        more = {"admission": {"arrival_order": rng.permutation(n)}, "best_effort": {"best_effort": rng.random(n) < 0.6}}
        instance = instance_type(f"elasticflow.{problem}")(**fields, **more.get(problem, {}))
        best, solution = optimum(instance), formulations.solve(instance)
        statuses[solution.status] += 1
        bent += not instance.concave
        assert (solution.status == "infeasible") == (best is None)
        if best is not None:
            assert agree(solution.objective, float(best)), instance.to_dict()
            assert instance.violations(solution.plan) == []
    assert bent > 8
    assert statuses["optimal"] > 20
    assert (statuses["infeasible"] > 5) == (problem != "admission")
