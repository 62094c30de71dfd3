"""Worst case of EPLB's released policy against enumeration."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from heuristics.eplb.placement import released_global
from instances.eplb.placement import EplbPlacement, hot_expert
from validation import worst_case
from validation.errors import StudyError


def parts_of_loads(num_experts, num_gpus, slots):
    """(plans, g, e) float: the part of each expert's load on each GPU, of all plans but for the order of the GPUs."""
    fillings = list(combinations_with_replacement(range(num_experts), slots))
    found = []
    for gpus in combinations_with_replacement(fillings, num_gpus):
        replicas = np.array([np.bincount(held, minlength=num_experts) for held in gpus])
        if replicas.any(axis=0).all():
            found.append(replicas / replicas.sum(axis=0))
    return np.array(found)


def ratio(loads, num_gpus, slots, parts):
    """Return the policy's value by the least of all plans; 1 where that is 0."""
    instance = EplbPlacement(loads=np.array(loads, float), num_gpus=num_gpus, slots=slots)
    best = (parts @ instance.loads).max(axis=1).min()
    return instance.objective(released_global(instance)) / best if best else 1.0


@pytest.mark.parametrize(
    ("num_experts", "num_gpus", "slots", "largest", "worst"),
    [(2, 2, 2, 12, 4 / 3), (3, 2, 2, 8, 6 / 5), (4, 2, 2, 5, 1.0), (4, 3, 2, 4, 4 / 3), (3, 2, 3, 8, 6 / 5)],
)
def test_no_loads_are_worse_than_the_worst_case(num_experts, num_gpus, slots, largest, worst):
    found = worst_case("eplb.placement", "released_global", size=num_experts, num_gpus=num_gpus, slots=slots)
    assert (found.status, found.value) == ("optimal", pytest.approx(worst, rel=1e-6))
    parts = parts_of_loads(num_experts, num_gpus, slots)
    assert ratio(found.witness.loads, num_gpus, slots, parts) == pytest.approx(worst, rel=1e-6)
    tried = (ratio(loads, num_gpus, slots, parts) for loads in product(range(largest + 1), repeat=num_experts))
    assert max(tried) == pytest.approx(worst, rel=1e-6)


@pytest.mark.slow
def test_three_gpus_are_no_worse_than_with_one_hot_expert():
    found = worst_case("eplb.placement", "released_global", size=3, num_gpus=3)
    assert (found.status, found.value) == ("optimal", pytest.approx(2 - 2 / 4, rel=1e-6))
    assert ratio(hot_expert(3).loads, 3, 2, parts_of_loads(3, 3, 2)) == pytest.approx(found.value, rel=1e-12)


@pytest.mark.parametrize(("size", "slots"), [(1, 1), (3, 1), (2, 3), (5, 2)])
def test_sizes_of_no_instances_are_refused(size, slots):
    with pytest.raises(StudyError, match=f"slots: got {slots}, must be from 2 to the experts"):
        worst_case("eplb.placement", "released_global", size=size, slots=slots)
