"""The search for a worst case, whatever the heuristic: its bounds, what it refuses, and what it does not believe."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import instances
from formulations import ModelError, solve
from formulations.worst_case import InstanceClass, Measure, WorstCaseModel, prove, snapped, switched
from formulations.worst_case.gavel.round_assignment import WORST_CASES, greedy_priority
from heuristics.gavel import round_assignment as fast
from instances.arguments import Count, checked
from instances.aryl.reclaim import Reclaim
from instances.gavel.round_assignment import RoundAssignment, RoundAssignmentPlan
from validation import Heuristic, StudyError, worst_case
from validation.kinds.worst_case import WitnessRefutedError

ROUNDS = "gavel.round_assignment"


# --- the search -----------------------------------------------------------------------------------

MOST = 6


def forms(seed: int, parts: int) -> Any:
    """(parts, 2, 3) numbers of two linear forms of two numbers from 0 to ``MOST``, the second at least as great."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 5, (parts, 3))
    return np.stack([first, first + rng.integers(0, 4, (parts, 3))], axis=1)


def model_of(seed: int, parts: int, sense: str) -> WorstCaseModel:
    """Instances are two whole numbers with a sum of at most ``MOST``; the two values are linear forms of them."""

    @checked
    def of_numbers(*, num_jobs: Count) -> InstanceClass:
        return InstanceClass("two numbers", built())

    def built() -> Iterator[pyo.ConcreteModel]:
        for lesser, greater in forms(seed, parts).tolist():
            model = pyo.ConcreteModel()
            model.x = pyo.Var(range(2), domain=pyo.Integers, bounds=(0, MOST))
            model.sum = pyo.Constraint(expr=model.x[0] + model.x[1] <= MOST)
            values = [form[0] * model.x[0] + form[1] * model.x[1] + form[2] for form in (lesser, greater)]
            model.heuristic_value, model.witness_value = values[::-1] if sense == "min" else values
            yield model

    def read(model: pyo.ConcreteModel) -> Reclaim:
        return Reclaim(hosts=[[True]], gpus=[[1]], demand=round(model.x[0].value) % 2)

    return WorstCaseModel(of_numbers, read, least=1.0)


@pytest.mark.parametrize("measure", ["ratio", "difference"])
@pytest.mark.parametrize(("problem", "sense"), [("aryl.reclaim", "min"), (ROUNDS, "max")])
@pytest.mark.parametrize(("seed", "parts"), [(0, 1), (1, 3), (2, 3), (3, 5)])
def test_the_greatest_ratio_and_difference_of_linear_forms(
    seed: int, parts: int, problem: str, sense: str, measure: Measure
) -> None:
    tried = []
    for lesser, greater in forms(seed, parts):
        for x in itertools.product(range(MOST + 1), repeat=2):
            if sum(x) <= MOST:
                low, high = lesser @ (*x, 1), greater @ (*x, 1)
                if measure == "difference":
                    tried.append(float(high - low))
                elif low >= 1:
                    tried.append(float(high / low))
    found = prove(model_of(seed, parts, sense), problem, size=1, measure=measure)
    assert found.status == "optimal"
    assert found.value == pytest.approx(max(tried), rel=1e-9)
    assert found.bound == pytest.approx(max(tried), rel=1e-6)
    assert found.bound >= max(tried) * (1 - 1e-9)
    assert found.proof in ("one run", "two runs", "prices")


def test_a_product_is_exact() -> None:
    """Greatest and least of a product with a choice that is fixed, for numbers within the limit."""
    for choice, number, sense in itertools.product((0, 1), (0.0, 0.3, 2.0), (pyo.maximize, pyo.minimize)):
        model = pyo.ConcreteModel()
        model.ONE = pyo.Set(initialize=[0])
        model.choice = pyo.Var(bounds=(choice, choice), domain=pyo.Binary)
        model.number = pyo.Var(bounds=(number, number))
        pair = model.choice, model.number
        made = switched(model, "made", model.ONE, lambda _, pair=pair: pair, most=2.0)
        model.goal = pyo.Objective(expr=made[0], sense=sense)
        assert solve(model).objective == pytest.approx(choice * number, abs=1e-9)


def test_numbers_of_a_point_are_taken_for_the_fractions_that_they_mean() -> None:
    assert [snapped(value) for value in (0.33333334, 5 / 9 - 1e-9, 2.0000001, 0.0)] == [1 / 3, 5 / 9, 2.0, 0.0]
    assert snapped(np.sqrt(2)) == np.sqrt(2)


def test_time_that_ends_leaves_a_bound_that_holds() -> None:
    whole = worst_case(ROUNDS, "greedy_priority", size=4, num_workers=2, num_types=2)
    cut = worst_case(ROUNDS, "greedy_priority", size=4, num_workers=2, num_types=2, time_limit=0.05)
    assert whole.status == "optimal"
    assert cut.status in ("feasible", "unknown")
    assert cut.bound >= whole.bound
    assert cut.value is None or 1 - 1e-9 <= cut.value <= whole.bound
    told = cut.to_dict()
    assert told["bound"] is None or told["bound"] >= told["value"]
    assert ("between" in str(cut)) == (cut.value is not None)


def test_parts_that_there_was_no_time_for_leave_no_bound() -> None:
    def endless() -> Iterator[pyo.ConcreteModel]:
        while True:
            yield from greedy_priority(num_jobs=2).parts

    model = WorstCaseModel(lambda num_jobs: InstanceClass("any", endless()), WORST_CASES["greedy_priority"].read)
    found = prove(model, ROUNDS, size=2, time_limit=1.0)
    assert (found.status, found.bound) == ("feasible", np.inf)
    assert found.value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": 0}, "size: got 0, must be a whole number, at least 1"),
        ({"size": 2.5}, "size: got 2.5, must be a whole number"),
        ({"size": 3, "measure": "gap"}, "measure: got 'gap', must be ratio or difference"),
        ({"size": 3, "time_limit": 0}, "time_limit: got 0.0, must be positive seconds"),
        ({"size": 3, "num_worker": 4}, "no 'num_worker'.*there are: num_workers, num_types, widest"),
        ({"size": 3, "num_jobs": 4}, "no 'num_jobs'"),
        ({"size": 3, "num_workers": 0}, "num_workers: got 0, must be at least 1"),
        ({"size": 3, "widest": 9}, "widest: got 9, must be at most num_workers, 4"),
    ],
)
def test_what_cannot_be_asked(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        worst_case(ROUNDS, "greedy_priority", **arguments)


@pytest.mark.parametrize("spread", [0.5, 0, "x"])
def test_a_spread_below_1_is_none(spread: Any) -> None:
    for problem, heuristic in (("gavel.total_throughput", "fastest_first"), ("gavel.max_min_fairness", "isolated")):
        with pytest.raises(StudyError, match="spread: got"):
            worst_case(problem, heuristic, size=2, spread=spread)


def single(change: Callable[[pyo.ConcreteModel], None]) -> WorstCaseModel:
    """The model of Algorithm 1 on a few jobs, changed."""

    def changed(*, num_jobs: int) -> InstanceClass:
        found = greedy_priority(num_jobs=num_jobs)
        (model,) = found.parts
        change(model)
        return InstanceClass(found.words, [model])

    return WorstCaseModel(changed, WORST_CASES["greedy_priority"].read)


def none_at_all(model: pyo.ConcreteModel) -> None:
    model.none = pyo.Constraint(expr=model.heuristic_value >= 2)


def test_a_class_without_instances_or_without_bound_is_named() -> None:
    with pytest.raises(ModelError, match="there is no such instance: 2 jobs"):
        prove(single(none_at_all), ROUNDS, size=2)
    read = WORST_CASES["greedy_priority"].read
    unlimited = WorstCaseModel(lambda num_jobs: InstanceClass("any", [without_limit()]), read)
    with pytest.raises(ModelError, match="have no bound"):
        prove(unlimited, ROUNDS, size=2)


def without_limit() -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name="numbers")
    model.witness_value = pyo.Var(domain=pyo.NonNegativeReals)
    model.heuristic_value = pyo.Expression(expr=1.0)
    return model


# --- what is not believed -------------------------------------------------------------------------


def lowest_first(instance: RoundAssignment) -> RoundAssignmentPlan:
    """Algorithm 1 with the order the other way round, whose trace is another."""
    turned = instance.priorities.max() - instance.priorities + 1
    return fast.greedy_priority(RoundAssignment(**{**fields(instance), "priorities": turned}))


def fields(instance: RoundAssignment) -> dict[str, Any]:
    return {name: value for name, value in instance.to_dict().items() if name != "problem"}


def test_a_trace_that_is_not_the_heuristics_is_refuted() -> None:

    def apart(model: pyo.ConcreteModel) -> None:
        """Two jobs that do not fit together, of different priorities."""
        model.widths = pyo.Constraint(range(2), rule=lambda m, j: m.scale_factors[j] == 4)
        model.apart = pyo.Constraint(expr=model.worths[0, 0] - model.worths[1, 0] >= 0.1)

    with pytest.raises(WitnessRefutedError, match=r"lowest_first makes .* of the witness, its trace in the model"):
        worst_case(ROUNDS, Heuristic(lowest_first, worst_case=single(apart)), size=2)
    assert worst_case(ROUNDS, Heuristic(fast.greedy_priority, worst_case=single(apart)), size=2).status == "optimal"


def test_a_witness_that_is_no_optimum_is_refuted() -> None:
    """A model whose other plan is worth more than any plan is."""

    def overrated(model: pyo.ConcreteModel) -> None:
        model.witness_within.deactivate()

    mine = Heuristic(fast.greedy_priority, worst_case=single(overrated))
    with pytest.raises(WitnessRefutedError, match=r"the optimum of the witness is .*, the model has a plan worth"):
        worst_case(ROUNDS, mine, size=4)


def test_an_optimum_that_the_bound_does_not_allow_is_refuted() -> None:
    """A model that overlooks plans: the exact model finds one that makes the ratio greater than was proven."""

    def idle(model: pyo.ConcreteModel) -> None:
        model.idle = pyo.Constraint(expr=sum(model.witness.values()) <= 1)
        model.narrow = pyo.Constraint(range(1, 4), rule=lambda m, j: m.scale_factors[j] == 1)
        model.wide = pyo.Constraint(expr=model.scale_factors[0] == 4)
        model.alike = pyo.Constraint(expr=model.worths[3, 0] == 1)

    mine = Heuristic(fast.greedy_priority, worst_case=single(idle))
    with pytest.raises(WitnessRefutedError, match=r"ratio 3\.0.* on an instance of a class for which 1"):
        worst_case(ROUNDS, mine, size=4)


def test_a_function_of_the_same_name_has_no_model_of_the_librarys() -> None:
    def greedy_priority(instance: RoundAssignment) -> RoundAssignmentPlan:
        return lowest_first(instance)

    with pytest.raises(StudyError, match=r"no model of its worst case; those of gavel\.round_assignment with one are"):
        worst_case(ROUNDS, greedy_priority, size=2)
    assert worst_case(ROUNDS, fast.greedy_priority, size=2).status == "optimal"
    with pytest.raises(StudyError, match=r"no heuristic of gavel\.fifo has one"):
        worst_case("gavel.fifo", "isolated", size=2)


# --- what is kept, and the command ----------------------------------------------------------------


def test_a_worst_case_is_saved_as_an_instance_with_its_page(tmp_path: Path) -> None:
    found = worst_case(ROUNDS, "greedy_priority", size=3, num_workers=2)
    path = found.save(tmp_path)
    assert path.name == "gavel.round_assignment-greedy_priority-3-num_workers-2.json"
    assert instances.load(path) == found.witness
    told = json.loads(path.read_text(encoding="utf-8"))
    assert (told["value"], told["status"], told["dials"]) == (found.value, "optimal", {"num_workers": 2})
    page = path.with_suffix(".html").read_text(encoding="utf-8")
    assert page.count("<svg") >= 1
    assert "ratio 2, exactly" in page
    assert found.instances in page
