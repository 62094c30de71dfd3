"""Deadlines as a maximum flow: against the MILPs, enumeration, and cuts counted from the data."""

from fractions import Fraction
from itertools import combinations, product
from math import ceil

import numpy as np
import pytest

import formulations
from formulations.elasticflow.flow import Cut, linear_up_to_a_cap, refusal, shares_by_flow
from formulations.elasticflow.sharing import shares_alone
from formulations.engine.options import Options
from formulations.methods import GaveUp, flow
from formulations.methods.flow import FLOW
from instances.elasticflow.admission import Admission, greedy_arrival
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.minimum_satisfactory_share import (
    MinimumSatisfactoryShare,
    generate,
    job_in_company,
)

from ..effort import rounds


def capped(seed, *, max_jobs=4, max_gpus=4, max_slots=3):
    """Fields of jobs that are linear up to a cap, which may be 0, at rates of eighths; the iterations seldom
    fill whole GPU-slots.  Beyond the cap some curves fall.
    """
    rng = np.random.default_rng(seed)
    n, num_gpus = int(rng.integers(1, max_jobs + 1)), int(rng.integers(1, max_gpus + 1))
    deadlines = rng.integers(1, max_slots + 1, n)
    rates, caps = rng.integers(1, 25, n) / 8, rng.integers(0, num_gpus + 1, n)
    caps = np.where(rng.random(n) < 0.8, np.maximum(caps, 1), caps)
    gpus = np.arange(num_gpus + 1)
    falls = rng.integers(0, 2, n)
    throughputs = np.array(
        [r * np.maximum(np.minimum(gpus, c) - f * (gpus > c), 0) for r, c, f in zip(rates, caps, falls, strict=True)]
    )
    part = rng.choice([0.0, 0.3, 0.6, 0.8, 1.0, 1.1], n, p=[0.05, 0.25, 0.3, 0.25, 0.1, 0.05])
    iterations = np.ceil(16 * part * deadlines * np.maximum(caps * rates, 0.1)) / 16
    return {"num_gpus": num_gpus, "iterations": iterations, "deadlines": deadlines, "throughputs": throughputs}


def count(instance, cut):
    """What a cut says, from the instance's fields alone and in fractions: needed and available GPU-slots."""
    curves = [[Fraction(rate) for rate in row] for row in instance.throughputs.tolist()]
    caps = [curve.index(max(curve)) for curve in curves]
    needed = sum(ceil(Fraction(instance.iterations[j]) / curves[j][1]) if caps[j] else 1 for j in cut.jobs)
    available = 0
    for slot in range(int(instance.deadlines.max())):
        usable = sum(caps[j] for j in cut.jobs if slot < instance.deadlines[j])
        assert (slot in cut.slots) == (usable >= instance.num_gpus)
        available += min(usable, instance.num_gpus)
    return needed, available


@pytest.mark.parametrize("first", rounds(100)[::100])
def test_the_flow_serves_jobs_if_and_only_if_enumeration_and_the_milp_do(brute, first):
    refused = 0
    for seed in range(first, first + 100):
        instance = MinimumSatisfactoryShare(**capped(seed))
        assert linear_up_to_a_cap(instance).linear.all()
        least = brute.least_gpu_time(instance)
        found = shares_by_flow(instance)
        assert isinstance(found, Cut) == (least is None) == (refusal(instance) is not None)
        assert formulations.solve(instance).status == ("infeasible" if least is None else "optimal")
        if least is None:
            refused += 1
        else:
            assert instance.violations(found) == []
            assert instance.objective(found) == least
    assert 25 < refused < 75


def test_the_flow_is_a_method_that_proves_by_what_the_jobs_need_alone():
    statuses = set()
    for seed in range(40):
        instance = MinimumSatisfactoryShare(**capped(seed))
        expected = formulations.solve(instance, method="model")
        solution = flow.solve(instance, Options())
        assert (solution.status, solution.objective) == (expected.status, expected.objective)
        assert (solution.method, solution.proof) == (FLOW.name, "argument")
        if solution.status == "infeasible":
            assert solution.message == f"{refusal(instance)}"
        else:
            assert solution.bound == shares_alone(instance).sum() == solution.objective
        statuses.add(solution.status)
    assert statuses == {"optimal", "infeasible"}


def test_a_flow_that_falls_short_by_rounding_only_proves_nothing(monkeypatch):
    """The cut asks for more than the judge does."""
    instance = job_in_company()
    cut = Cut(jobs=(0,), slots=(0,), needed=2, available=10**6)
    monkeypatch.setattr(flow, "shares_by_flow", lambda instance: cut)
    with pytest.raises(GaveUp, match="by rounding only"):
        flow.solve(instance, Options())


def test_a_curve_that_bends_is_not_for_the_flow():
    instance = generate(0, num_jobs=3)
    assert not linear_up_to_a_cap(instance).linear.all()
    with pytest.raises(ValueError, match="is for jobs whose curves are all linear up to a cap"):
        formulations.solve(instance, method="flow")


def test_cuts_count_and_are_irreducible(brute):
    cuts = []
    for seed in rounds(130):
        instance = MinimumSatisfactoryShare(**capped(seed))
        cut = refusal(instance)
        if cut is None:
            continue
        cuts.append(cut)
        assert (cut.needed, cut.available) == count(instance, cut)
        assert cut.needed > cut.available
        assert not brute.can_finish(instance, cut.jobs)
        for some in combinations(cut.jobs, len(cut.jobs) - 1):
            assert brute.can_finish(instance, some)
    assert {len(cut.jobs) for cut in cuts} >= {1, 2, 3}
    assert {(bool(cut.slots), bool(cut.elsewhere)) for cut in cuts} >= {(True, True), (True, False), (False, True)}


def test_larger_sets_against_the_milp():
    for seed in rounds(20):
        instance = generate(
            seed, num_jobs=12, num_gpus=8, horizon=30, tightness=0.85 + 0.015 * (seed % 20), curves="linear"
        )
        solution, found = formulations.solve(instance), shares_by_flow(instance)
        assert (solution.status == "infeasible") == isinstance(found, Cut)
        if solution.plan is not None:
            assert instance.objective(found) == solution.objective
            assert instance.violations(found) == []


def test_any_curve_may_be_refused_but_never_wrongly(brute):
    """On curves that are not linear a refusal still proves that there is no plan."""
    missed = 0
    for seed in rounds(400):
        instance = MinimumSatisfactoryShare(**brute.draw(seed))
        cut = refusal(instance)
        if cut is not None:
            assert cut.needed > cut.available
            assert not brute.can_finish(instance, cut.jobs)
        elif brute.least_gpu_time(instance) is None:
            assert not linear_up_to_a_cap(instance).linear.all()
            missed += 1
    assert missed > 0


def test_rounding_up_needs_a_linear_curve():
    """Both jobs do 2 iterations per slot on one GPU and 3 on both; 5 and 2 are to be done in two slots.  At the
    rate on both GPUs, 1.5, they would need 4 and 2 GPU-slots, and would be refused; they need 3 and 1.
    """
    instance = MinimumSatisfactoryShare(
        num_gpus=2, iterations=[5, 2], deadlines=[2, 2], throughputs=[[0, 2, 3], [0, 2, 3]]
    )
    demand = linear_up_to_a_cap(instance)
    assert demand.linear.tolist() == [False, False]
    assert demand.needs.tolist() == [3, 1]
    assert refusal(instance) is None
    with pytest.raises(ValueError, match="curve of job 0 is not linear"):
        shares_by_flow(instance)


def test_needs_are_whole_gpu_slots_in_any_shape():
    """1 iteration at 0.4 per GPU-slot takes 3 of them, wherever they lie: all ways to hold GPUs agree."""
    instance = MinimumSatisfactoryShare(num_gpus=3, iterations=[1.0], deadlines=[3], throughputs=[[0, 0.4, 0.8, 0.8]])
    demand = linear_up_to_a_cap(instance)
    assert (demand.linear.tolist(), demand.caps.tolist(), demand.needs.tolist()) == ([True], [2], [3])
    for held in product(range(3), repeat=3):
        done = float(instance.work(np.array([held]))[0])
        assert (done >= 1.0) == (sum(held) >= 3)


def test_rounding_of_floating_point_asks_for_no_gpu_slot_too_many():
    instance = MinimumSatisfactoryShare(num_gpus=1, iterations=[0.1 * 3], deadlines=[3], throughputs=[[0, 0.1]])
    assert 0.1 * 3 / 0.1 > 3
    assert linear_up_to_a_cap(instance).needs.tolist() == [3]
    assert shares_by_flow(instance).gpus.tolist() == [[1, 1, 1]]


def jobs(num_gpus, *some):
    """Jobs of (iterations, deadline, cap), one iteration per GPU-slot."""
    gpus = np.arange(num_gpus + 1)
    return {
        "num_gpus": num_gpus,
        "iterations": np.array([float(work) for work, _, _ in some]),
        "deadlines": np.array([deadline for _, deadline, _ in some]),
        "throughputs": np.array([np.minimum(gpus, cap) for _, _, cap in some], float),
    }


def test_cuts_are_told_in_words():
    told = {
        "job 0 needs 5 GPU-slots before slot 2, there are 4": jobs(2, (5, 2, 2), (1, 3, 1)),
        "jobs 0 and 2 need 5 GPU-slots before slot 2, there are 4": jobs(2, (2, 2, 2), (0, 1, 1), (3, 2, 2)),
        "jobs 0, 1 and 2 need 3 GPU-slots before slot 1, there are 2": jobs(2, (1, 1, 1), (1, 1, 1), (1, 1, 1)),
        "job 0 needs 3 GPU-slots before its deadline, on the GPUs that it can use there are 2": jobs(2, (3, 2, 1)),
        "job 0 needs 1 GPU-slot before its deadline, on the GPUs that it can use there are 0": jobs(2, (1, 2, 0)),
        "jobs 0 and 1 need 5 GPU-slots, there are 2 before slot 1, and they can use 2 later": jobs(
            2, (3, 3, 1), (2, 1, 2)
        ),
    }
    for words, fields in told.items():
        assert str(refusal(MinimumSatisfactoryShare(**fields))) == words


@pytest.mark.parametrize("problem", [MinimumSatisfactoryShare, ElasticFlowAllocation])
def test_explanations_say_why_in_words(problem):
    instance = problem(**jobs(2, (2, 2, 2), (0, 1, 1), (3, 2, 2)))
    explanation = formulations.explain(instance)
    assert explanation.reason == "jobs 0 and 2 need 5 GPU-slots before slot 2, there are 4"
    assert explanation.constraints
    first, second = str(explanation).splitlines()[:2]
    assert first == f"infeasible: {explanation.reason}"
    assert second == "infeasible: these constraints cannot hold together"
    assert formulations.explain(formulations.build(instance)).reason == ""
    assert formulations.explain(problem(**jobs(2, (2, 2, 2)))) == formulations.Explanation(True)


def test_explanations_without_a_reason():
    """Three jobs that each need two GPUs at once, of three, in two slots: 6 GPU-slots are there, and do not help."""
    curve = [[0.0, 0.0, 1.0, 1.0]] * 3
    instance = MinimumSatisfactoryShare(num_gpus=3, iterations=[1, 1, 1], deadlines=[2, 2, 2], throughputs=curve)
    explanation = formulations.explain(instance)
    assert (explanation.feasible, explanation.reason) == (False, "")
    assert str(explanation).startswith("infeasible: these constraints")


def test_filling_slot_0_never_breaks_a_plan():
    """(7) asks for more GPUs and takes none away, so the same flow answers for the allocation."""
    for seed in rounds(50):
        instance = ElasticFlowAllocation(**capped(seed))
        assert (formulations.solve(instance).status == "infeasible") == (refusal(instance) is not None)


def test_why_a_job_cannot_join():
    instance = greedy_arrival()
    assert refusal(instance, [0]) is None
    assert refusal(instance, [1, 2]) is None
    assert str(refusal(instance, [0, 1])) == "jobs 0 and 1 need 3 GPU-slots before slot 2, there are 2"
    for seed in rounds(30):
        instance = Admission(**capped(seed), arrival_order=np.arange(len(capped(seed)["deadlines"])))
        admitted = formulations.solve(instance).plan.admitted
        assert refusal(instance, np.flatnonzero(admitted)) is None
        for job in np.flatnonzero(~admitted).tolist():
            cut = refusal(instance, [*np.flatnonzero(admitted).tolist(), job])
            assert job in cut.jobs
            assert (cut.needed, cut.available) == count(instance, cut)


def test_job_c_in_company_is_served():
    """Figure 4: concave curves, one plan, no refusal; with one iteration more for job C there is none."""
    instance = job_in_company()
    assert refusal(instance) is None
    more = MinimumSatisfactoryShare(
        num_gpus=4, iterations=[1.0, 1.5, 5.0], deadlines=[1, 1, 2], throughputs=instance.throughputs
    )
    assert str(refusal(more)) == "job 2 needs 9 GPU-slots before slot 2, there are 8"
