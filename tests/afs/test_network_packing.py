"""afs.network_packing: Proposition 2, and the shares that the model leaves out."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
import instances
from heuristics.afs.network_packing import floor_and_grow, floor_and_grow_nearest
from instances.afs.network_packing import NetworkPacking, NetworkPackingPlan, generate, one_machine, section_4_4
from instances.base import InstanceError

from ..effort import rounds
from ..second_opinion import optimum


def allowed(num_machines, machine):
    """Regulated shares, from their definition."""
    total = num_machines * machine
    powers = [2**e for e in range(20) if 2**e < machine]
    return [r for r in range(total + 1) if r == 0 or r in powers or r % machine == 0]


def random_case(rng, jobs, machines):
    machine = int(2 ** rng.integers(0, 4))
    num_machines = int(rng.integers(1, machines + 1))
    n = int(rng.integers(1, jobs + 1))
    weights = rng.dirichlet(np.full(n, rng.choice([0.2, 1.0, 5.0])))
    return NetworkPacking(
        shares=rng.multinomial(num_machines * machine, weights),
        num_machines=num_machines,
        gpus_per_machine=machine,
        floor_guarantee=bool(rng.integers(2)),
    )


def test_the_shares_that_the_model_leaves_out_are_not_missed_by_more_jobs():
    """The reference's program over sums leaves out none."""
    rng = np.random.default_rng(1)
    for _ in rounds(20):
        instance = random_case(rng, jobs=14, machines=8)
        assert formulations.solve(instance).objective == optimum(instance), instance.to_dict()


def test_floors_can_cost():
    shares = {"shares": [7, 1], "num_machines": 1, "gpus_per_machine": 8}
    assert formulations.solve(NetworkPacking(**shares)).plan.regulated.tolist() == [4, 4]
    free = formulations.solve(NetworkPacking(**shares, floor_guarantee=False))
    assert free.objective == 2
    assert free.plan.regulated.tolist() == [8, 0]


def test_one_machine():
    instance = one_machine()
    assert instance.floors.tolist() == [4, 2, 1]
    assert formulations.solve(instance).objective == 2
    assert floor_and_grow(instance).regulated.tolist() == [4, 2, 2]


def test_shares_that_are_regulated_stay():
    instance = NetworkPacking(shares=[16, 4, 2, 1, 1, 0], num_machines=3, gpus_per_machine=8)
    assert formulations.solve(instance).objective == 0
    assert floor_and_grow(instance).regulated.tolist() == instance.shares.tolist()


def test_who_grows_is_an_option():
    # Floors 2, 2, 1, 1 leave 2 GPUs.
    instance = NetworkPacking(shares=[3, 3, 1, 1], num_machines=1, gpus_per_machine=8)
    assert floor_and_grow(instance).regulated.tolist() == [4, 2, 1, 1]
    assert floor_and_grow(instance, pick="last").regulated.tolist() == [2, 2, 2, 2]
    assert floor_and_grow(instance, pick="smallest").regulated.tolist() == [2, 2, 2, 2]
    # Floors 8, 8 leave 8: the smallest increments are equal, and job 1 lacks 5.
    instance = NetworkPacking(shares=[11, 13], num_machines=3, gpus_per_machine=8)
    assert floor_and_grow(instance).regulated.tolist() == [16, 8]
    assert floor_and_grow(instance, pick="smallest").regulated.tolist() == [8, 16]


def test_growing_where_it_costs_least_is_optimal_on_these():
    rng = np.random.default_rng(2)
    for _ in rounds(50):
        instance = random_case(rng, jobs=14, machines=8)
        plan = floor_and_grow_nearest(instance)
        assert instance.violations(plan) == []
        if instance.floor_guarantee:
            assert instance.objective(plan) == optimum(instance), instance.to_dict()


def test_four_gpus_per_machine():
    """Section 4.4: with 4 GPUs a machine, shares are 1, 2 and multiples of 4."""
    instance = section_4_4()
    assert instance.candidates.tolist() == [0, 1, 2, *range(4, 65, 4)]
    assert (instance.num_gpus, instance.shares.sum()) == (64, 64)
    solution = formulations.solve(instance)
    assert set(solution.plan.regulated.tolist()) <= {1, 2, *range(4, 65, 4)}
    assert solution.objective == instance.objective(floor_and_grow_nearest(instance)) == optimum(instance)


def test_more_gpus_than_there_are():
    for floor_guarantee in (True, False):
        instance = NetworkPacking(shares=[8, 1], num_machines=1, gpus_per_machine=8, floor_guarantee=floor_guarantee)
        solution = formulations.solve(instance)
        assert (solution.status, solution.plan) == ("infeasible", None)
        assert solution.proof
        assert "9 GPUs are wanted of 8" in solution.message
        assert floor_and_grow(instance) is None
        assert floor_and_grow_nearest(instance) is None
        assert [v.rule for v in instance.violations(NetworkPackingPlan(regulated=[8, 1]))] == ["gpus"]


def test_jobs_that_want_nothing_get_nothing_by_growing():
    instance = NetworkPacking(shares=[3, 5, 0], num_machines=2, gpus_per_machine=4)
    for heuristic in (floor_and_grow, floor_and_grow_nearest):
        assert heuristic(instance).regulated[2] == 0


@given(st.integers(0, 10**6), st.integers(1, 30), st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([0.0, 0.5, 1.0]))
def test_proposition_2(seed, num_jobs, machine, skew):
    """There are always regulated shares of the same sum at or above all floors, and growing finds some."""
    instance = generate(seed, num_jobs=num_jobs, gpus_per_machine=machine, skew=skew)
    before = instance.digest
    plan = floor_and_grow(instance)
    values = allowed(instance.num_machines, machine)
    floors = [max(v for v in values if v <= s) for s in instance.shares.tolist()]
    assert instance.floors.tolist() == floors
    assert instance.violations(plan) == []
    assert plan.regulated.sum() == instance.num_gpus
    assert all(r in values and r >= x for r, x in zip(plan.regulated.tolist(), floors, strict=True))
    assert instance.objective(plan) >= formulations.solve(instance).bound - 1e-6
    assert plan == floor_and_grow(instance)
    assert instance.digest == before
    assert NetworkPackingPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert instances.read(json.loads(json.dumps(instance.to_dict()))) == instance


def test_broken_rules_are_named():
    instance = NetworkPacking(shares=[5, 2, 1], num_machines=1, gpus_per_machine=8)

    def rules(regulated):
        return [(v.rule, v.index, v.amount) for v in instance.violations(NetworkPackingPlan(regulated=regulated))]

    assert rules([4, 2, 2]) == []
    assert rules([5, 2, 1]) == [("regulated", (0,), 1.0)]
    assert rules([4, 2, 1]) == [("total", (), 1.0)]
    assert rules([8, 0, 0]) == [("floor", (1,), 2.0), ("floor", (2,), 1.0)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gpus_per_machine": 6}, "gpus_per_machine: got 6, must be a power of two"),
        ({"num_machines": 2}, "shares: got a sum of 8, must be all GPUs, 16"),
    ],
)
def test_bad_instances_name_the_field(changes, message):
    with pytest.raises(InstanceError, match=message):
        NetworkPacking(**{"shares": [5, 3], "num_machines": 1, "gpus_per_machine": 8, **changes})
