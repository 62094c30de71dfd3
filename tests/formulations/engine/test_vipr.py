"""Certificates of optima: brute force says the same, and whoever holds one against a program sees what it is of."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations import LinearProgram, certify, solve, translate, verify
from formulations.engine.vipr import GivenUp, certificate_of, implied, stated
from instances.elasticflow.admission import Admission, AdmissionPlan
from instances.elasticflow.best_effort import BestEffort
from instances.elasticflow.sharing import SlotPlan
from instances.files import text_of
from instances.reference import Reference, TooLarge
from instances.reference.programs import Program
from instances.reference.stated import STATED
from instances.reference.vipr import Refuted, check
from instances.synergy import placement
from instances.synergy.tuning import Tuning
from validation import CATALOGUE
from validation.kinds.study.cases import generate

from .small_models import best_subset, knapsack, six_servers

WIDTH = 4
"""Values that a whole variable of a random program can have, from 0 on."""


def drawn(seed: int, *, whole: bool = True) -> LinearProgram:
    """A small program, some of whose limits are missing, and whose numbers are whole, decimals or halves."""
    rng = np.random.default_rng(seed)
    columns, rows = int(rng.integers(2, 6)), int(rng.integers(1, 5))
    unit = [1.0, 0.5, 0.1, 1 / 3][seed % 4]
    dense = rng.integers(-4, 6, (rows, columns)) * (unit if seed % 8 > 3 else 1.0)
    inside = rng.integers(0, WIDTH, columns)
    middle = dense @ inside
    lower = np.where(rng.random(rows) < 0.5, middle - rng.integers(0, 4, rows), -math.inf)
    upper = np.where(rng.random(rows) < 0.5, middle + rng.integers(0, 4, rows), math.inf)
    if seed % 5 == 4:
        # Mostly without a point.
        lower[0], upper[0] = (dense[0] / 2).sum() + 0.2, (dense[0] / 2).sum() + 0.3
    kept = dense != 0
    return LinearProgram(
        sense="min" if seed % 2 else "max",
        offset=[0.0, 2.5][seed % 3 == 0],
        cost=rng.integers(-5, 6, columns) * unit,
        col_lower=np.zeros(columns),
        col_upper=np.full(columns, WIDTH - 1.0) + 0.5 * (seed % 7 == 0),
        integer=np.ones(columns, bool) if whole else rng.random(columns) < 0.6,
        indptr=np.concatenate([[0], kept.sum(axis=1).cumsum()]).astype(np.int32),
        index=np.nonzero(kept)[1].astype(np.int32),
        value=dense[kept],
        row_lower=lower,
        row_upper=upper,
    )


def best_point(program: LinearProgram) -> np.ndarray | None:
    """A best whole point, in fractions, by looking at all of them."""
    rows = [
        {int(program.index[e]): Fraction(program.value[e]) for e in range(*program.indptr[i : i + 2])}
        for i in range(program.num_rows)
    ]
    limits = list(zip(program.row_lower.tolist(), program.row_upper.tolist(), strict=True))
    found = []
    for point in itertools.product(range(WIDTH), repeat=program.num_cols):
        sums = [sum((a * point[j] for j, a in row.items()), Fraction()) for row in rows]
        if all(low <= value <= high for value, (low, high) in zip(sums, limits, strict=True)):
            found.append((value_at(program, point), point))
    if not found:
        return None
    return np.array((min if program.sense == "min" else max)(found)[1], float)


def value_at(program: LinearProgram, point: Any) -> Fraction:
    terms = (Fraction(c) * Fraction(v) for c, v in zip(program.cost.tolist(), point, strict=True))
    return Fraction(program.offset) + sum(terms, Fraction())


@pytest.mark.parametrize("seed", range(80))
def test_whole_programs_have_certificates_of_what_brute_force_finds(seed: int) -> None:
    program = drawn(seed)
    point = best_point(program)
    proven = certificate_of(program, point)
    held = check(proven.text.splitlines())
    assert held.infeasible == (point is None)
    found = stated(program).bound(held)
    if point is None:
        assert math.isinf(found)
        return
    value = value_at(program, point.tolist())
    assert proven.bound == held.bound == found
    assert (found <= value) if program.sense == "min" else (found >= value)
    assert abs(found - value) <= Fraction(1, 10**7) * max(1, abs(value))
    assert (held.upper if program.sense == "min" else held.lower) == value


@pytest.mark.parametrize("seed", range(40))
def test_mixed_programs_have_certificates(seed: int) -> None:
    program = drawn(seed, whole=False)
    result = formulations.Session(verify=True).run(program)
    if result.status not in ("optimal", "infeasible"):
        pytest.skip(result.message)
    held = check(certificate_of(program, result.x).text.splitlines())
    found = float(stated(program).bound(held))
    assert held.infeasible == (result.status == "infeasible")
    if result.x is not None:
        assert found == pytest.approx(program.objective(result.x), rel=1e-6, abs=1e-6)


def test_nothing_is_certified_that_is_not_best() -> None:
    refused = 0
    for seed in range(60):
        program = drawn(seed)
        best = best_point(program)
        if best is None:
            continue
        for point in itertools.product(range(WIDTH), repeat=program.num_cols):
            x = np.array(point, float)
            if abs(value_at(program, point) - value_at(program, best.tolist())) < Fraction(1, 100):
                continue
            if program.infeasibility(x) > 0:
                continue
            with pytest.raises(GivenUp):
                certificate_of(program, x)
            refused += 1
            break
    assert refused > 20


def test_a_solve_brings_its_certificate() -> None:
    model = knapsack(12, 3)
    solution = solve(model, certificate=True)
    assert (solution.status, solution.proof) == ("optimal", "certificate")
    assert solution.bound == solution.objective == best_subset(12, 3)
    assert solution.to_dict()["proof"] == "certificate"
    second = verify(model, solution)
    assert (second.verdict, second.way) == ("confirmed", "certificate")


def test_rows_of_a_user_are_part_of_what_is_proven() -> None:
    instance = six_servers()
    model = formulations.build(instance)
    model.kept = pyo.Constraint(expr=model.returned[4] == 0)
    solution = solve(model, certificate=True)
    assert (solution.objective, solution.proof) == (2.0, "certificate")
    assert verify(model, solution).verdict == "confirmed"
    # Of the instance itself it is none.
    refuted = verify(instance, replace(solve(instance), proof="certificate", vipr=solution.vipr))
    assert (refuted.verdict, refuted.way) == ("contradicted", "certificate")
    program = Reference(text_of(instance)).program()
    assert program is not None
    with pytest.raises(Refuted, match="does not have the certificate's constraint"):
        program.bound(check(solution.vipr.splitlines()))


def test_a_linear_program_and_one_without_a_point_have_certificates() -> None:
    model = pyo.ConcreteModel()
    model.x = pyo.Var(bounds=(0, None))
    model.y = pyo.Var()
    model.c = pyo.Constraint(expr=2 * model.x + model.y <= 9.3)
    model.d = pyo.Constraint(expr=model.x - model.y <= 1)
    model.o = pyo.Objective(expr=3 * model.x + model.y + 2.5, sense=pyo.maximize)
    linear = solve(model, certificate=True)
    assert (linear.proof, verify(model, linear).verdict) == ("certificate", "confirmed")
    model.e = pyo.Constraint(expr=model.x >= 5)
    nothing = solve(model, certificate=True)
    assert (nothing.status, nothing.proof) == ("infeasible", "certificate")
    assert verify(model, nothing).verdict == "confirmed"


def test_what_is_changed_in_a_certificate_contradicts_the_solution() -> None:
    model = knapsack(12, 3)
    solution = solve(model, certificate=True)
    changes = {"{ asm }": "{ sol }", "RTP range ": "RTP range 1", "VER 1.0": "VER 2.0", "OBJ max": "OBJ min"}
    for old, new in changes.items():
        assert old in solution.vipr
        changed = replace(solution, vipr=solution.vipr.replace(old, new))
        assert verify(model, changed).verdict == "contradicted", old
    infeasible = replace(solution, status="infeasible", objective=None, plan=None)
    assert verify(knapsack(12, 3), infeasible).verdict == "open"


def test_what_is_not_certified_keeps_its_proof() -> None:
    model = knapsack(30, 5)
    solution = solve(model)
    stopped = certify(model, solution, nodes=2)
    assert (stopped.proof, stopped.vipr) == (solution.proof, "")
    assert "no certificate: no proof in 2 linear programs" in stopped.message
    late = certify(model, solution, time_limit=1e-9)
    assert (late.proof, late.vipr) == (solution.proof, "")
    assert "no certificate: " in late.message
    unsettled = certify(model, replace(solution, status="feasible"))
    assert "no certificate: nothing is proven" in unsettled.message
    shares = generate("gavel.finish_time_fairness", 1, 4)
    assert "no one model" in solve(shares, certificate=True).message


def test_a_proof_by_certificate_has_one() -> None:
    solution = solve(knapsack(12, 3))
    with pytest.raises(formulations.SolverError, match="no certificate"):
        replace(solution, proof="certificate")
    with pytest.raises(formulations.SolverError, match="a certificate"):
        replace(solution, vipr="VER 1.0")


def of_rows(change: Callable[[Any], Any]) -> Any:
    model = pyo.ConcreteModel()
    model.whole = pyo.Var(domain=pyo.Integers, bounds=(0, 5))
    model.free = pyo.Var(bounds=(0, 5))
    model.other = pyo.Var(bounds=(0, 5))
    model.c = pyo.Constraint(expr=model.free <= 2 * model.whole - 1)
    change(model)
    model.o = pyo.Objective(expr=model.free + model.other, sense=pyo.minimize)
    return translate(model)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda m: None, {"free", "other"}),
        (lambda m: m.add_component("d", pyo.Constraint(expr=m.free + m.other <= 3)), set()),
        (lambda m: m.add_component("d", pyo.Constraint(expr=2 * m.free <= 3)), {"other"}),
        (lambda m: m.add_component("d", pyo.Constraint(expr=m.free <= 2.5)), {"other"}),
        (lambda m: m.add_component("d", pyo.Constraint(expr=m.free >= 1.5 * m.whole)), {"other"}),
        (lambda m: m.free.setub(4.5), {"other"}),
        (lambda m: m.free.setlb(0.5), {"other"}),
        (lambda m: m.free.setub(None), {"free", "other"}),
    ],
)
def test_which_continuous_variables_may_be_whole(change: Callable[[Any], Any], found: set[str]) -> None:
    program = of_rows(change)
    assert {program.column_name(int(j)) for j in np.flatnonzero(implied(program))} == found


def best_and_bound(instance: Any) -> tuple[Any, Any]:
    """What is best by brute force, infinite where there is no plan, and what the certificate proves.

    That there is no plan may be known without a certificate.
    """
    reference = Reference(text_of(instance))
    (best,) = reference.best_merits()
    solution = solve(instance, certificate=True)
    program = reference.program()
    assert program is not None
    assert math.isinf(best) == (solution.status == "infeasible")
    if math.isinf(best) and not solution.vipr:
        return best, best
    return best, program.bound(check(solution.vipr.splitlines()))


@pytest.mark.parametrize("integral", [False, True])
def test_certificates_of_placements_prove_what_brute_force_finds(integral: bool) -> None:
    found = set()
    for seed in range(10):
        fill = [0.8, 1.0][seed % 2]
        instance = placement.generate(seed, num_servers=2, server_gpus=4, fill=fill, integral_gpus=integral)
        try:
            best, bound = best_and_bound(instance)
        except TooLarge:
            continue
        assert bound == best
        found.add(best)
    assert len(found) >= 3


@pytest.mark.parametrize(("larger_by", "fewest"), [(5e-9, 1), (1e-6, 2)])
def test_what_the_judge_forgives_a_placement_is_not_ruled_out(larger_by: float, fewest: int) -> None:
    """A job of one GPU may leave a server that is too small by less than what another may exceed its GPUs by."""
    demands = np.array([[1, 24 * (1 + larger_by), 0], [8, 0, 0], [7, 0, 0]])
    instance = placement.SynergyPlacement(
        num_servers=2, server_gpus=8, server_cpus=24.0, server_memory=500.0, demands=demands
    )
    plan = placement.SynergyPlacementPlan(shares=np.array([[1 - 7.9e-9, 7.9e-9], [0, 1], [1, 0]]))
    assert (instance.violations(plan) == []) == (fewest == 1)
    solution = solve(instance, certificate=True)
    assert (solution.status, solution.objective, solution.proof) == ("optimal", fewest, "certificate")
    program = Reference(text_of(instance)).program()
    assert program is not None
    assert program.bound(check(solution.vipr.splitlines())) == fewest
    assert verify(instance, solution).verdict == "confirmed"


@pytest.mark.parametrize("problem", sorted(STATED))
def test_certificates_prove_what_instances_state_by_themselves(problem: str) -> None:
    entry = CATALOGUE[problem]
    previous = None
    for seed in range(2):
        instance = generate(problem, seed, entry.sizes[0])
        solution = solve(instance, certificate=True)
        assert (solution.status, solution.proof) == ("optimal", "certificate")
        held = check(solution.vipr.splitlines())
        program = Reference(text_of(instance)).program()
        assert program is not None
        assert float(program.bound(held)) == pytest.approx(solution.objective, rel=1e-9)
        assert verify(instance, solution).verdict == "confirmed"
        if previous is not None:
            with pytest.raises(Refuted):
                program.bound(previous)
        previous = held


def test_columns_without_entries_at_the_end_cost_nothing() -> None:
    """The last entry of the last column that has one is counted."""
    certified = 0
    for seed in range(40):
        program = drawn(seed)
        best = best_point(program)
        if best is None:
            continue
        wider = replace(
            program,
            cost=np.append(program.cost, 0.0),
            col_lower=np.append(program.col_lower, 0.0),
            col_upper=np.append(program.col_upper, 1.0),
            integer=np.append(program.integer, True),
        )
        proven = certificate_of(wider, np.append(best, 0.0))
        assert stated(wider).bound(check(proven.text.splitlines())) == proven.bound
        certified += 1
    assert certified > 20


def test_coefficients_of_many_digits_are_rounded_in_a_row_that_follows() -> None:
    rng = np.random.default_rng(4)
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(6), domain=pyo.Binary)
    model.c = pyo.Constraint(expr=sum(float(a) * model.x[i] for i, a in enumerate(rng.random(6))) <= 1.5)
    model.o = pyo.Objective(expr=sum(model.x.values()), sense=pyo.maximize)
    solution = solve(model, certificate=True)
    assert solution.proof == "certificate"
    derived = solution.vipr[solution.vipr.index("DER ") :].splitlines()
    longest = max(len(word) for word in derived[1].split("{")[0].split())
    assert longest < 20 < max(map(len, solution.vipr[: solution.vipr.index("RTP")].split()))
    assert verify(model, solution).verdict == "confirmed"


def keeps(program: Program, point: dict[str, int]) -> bool:
    """Whether a point that has all variables of a program keeps to it."""
    assert point.keys() == program.objective.keys()
    sums = {key: sum((a * point[name] for name, a in key), Fraction()) for key in program._lower}
    return all(program._lower[key] <= value <= program._upper[key] for key, value in sums.items())


def slots_of(program: Program, gpus: list[list[int]]) -> dict[str, int]:
    """The variables ``chosen`` of a plan: of each job and slot the largest number of GPUs within those that it has."""
    point = dict.fromkeys(program.objective, 0)
    found: dict[tuple[int, int], int] = {}
    for name in point:
        if name.startswith("chosen["):
            job, slot, count = map(int, name[7:-1].split(","))
            if count <= gpus[job][slot]:
                found[job, slot] = max(count, found.get((job, slot), 0))
    return point | {f"chosen[{job},{slot},{count}]": 1 for (job, slot), count in found.items()}


def steps_of(program: Program, instance: Any, gpus: list[list[int]]) -> dict[str, int]:
    """The variables ``gpu_slots`` of a plan: GPUs of each slot go to the first steps of the curve."""
    point = dict.fromkeys(program.objective, 0)
    ends = sorted({*instance.deadlines.tolist()})
    for job, row in enumerate(gpus):
        widths: dict[int, int] = {}
        for name in point:
            if name.startswith(f"gpu_slots[{job},0,"):
                widths[int(name[:-1].split(",")[2])] = int(program._upper[(name, Fraction(1)),]) // ends[0]
        for slot, held in enumerate(row):
            left, interval = held, sum(end <= slot for end in ends)
            for step, width in sorted(widths.items()):
                if f"gpu_slots[{job},{interval},{step}]" in point:
                    point[f"gpu_slots[{job},{interval},{step}]"] += min(left, width)
                    left -= min(left, width)
    return point


def jobs_of(rng: np.random.Generator, concave: bool, tight: bool) -> dict[str, Any]:
    """Two jobs on three GPUs with three slots; if it is tight, one has a hair more to do than three slots are worth."""
    gains = np.sort(rng.integers(1, 5, (2, 3)), axis=1)[:, ::-1] if concave else rng.integers(-1, 5, (2, 3))
    throughputs = np.maximum(np.concatenate([np.zeros((2, 1)), gains.cumsum(axis=1)], axis=1), 0) / 3
    iterations = rng.integers(1, 9, 2) / 2
    if tight:
        iterations[0] = throughputs[0, rng.integers(1, 4, 3)].sum() * (1 + 0.9e-9)
    return {
        "num_gpus": 3,
        "iterations": iterations,
        "deadlines": np.append(3, rng.integers(1, 4)),
        "throughputs": throughputs,
    }


def test_every_plan_that_admits_jobs_is_a_point_of_what_is_stated() -> None:
    """Also plans of which the judge forgives what is missing."""
    rng = np.random.default_rng(7)
    met = 0
    for seed in range(30):
        instance = Admission(**jobs_of(rng, bool(seed % 2), bool(seed % 3)), arrival_order=[0, 1])
        program = Reference(text_of(instance)).program()
        assert program is not None
        for gpus in sampled(instance, rng, 0.02):
            some = (instance.work(np.array(gpus)) >= instance.iterations * (1 - 2e-9)).tolist()
            plan = AdmissionPlan(admitted=some, gpus=np.where(np.array(some)[:, None], gpus, 0))
            if instance.violations(plan):
                continue
            by_slot = any(name.startswith("chosen") for name in program.objective)
            held = plan.gpus.tolist()
            point = slots_of(program, held) if by_slot else steps_of(program, instance, held)
            point |= {f"admitted[{job}]": int(on) for job, on in enumerate(some)}
            assert keeps(program, point), (seed, plan)
            met += sum(some)
    assert met > 100


def test_every_plan_of_best_effort_jobs_is_a_point_of_what_is_stated() -> None:
    rng = np.random.default_rng(8)
    met = 0
    for seed in range(30):
        fields = jobs_of(rng, bool(seed % 2), bool(seed % 3))
        instance = BestEffort(**fields, best_effort=[True, bool(seed % 4)])
        program = Reference(text_of(instance)).program()
        assert program is not None
        for gpus in sampled(instance, rng, 0.02):
            plan = SlotPlan(gpus=np.array(gpus))
            if instance.violations(plan):
                continue
            point = slots_of(program, gpus)
            for name in point:
                if name.startswith("done["):
                    job, slot = map(int, name[5:-1].split(","))
                    so_far = instance.throughputs[job][gpus[job][: slot + 1]].sum()
                    point[name] = int(so_far >= instance.iterations[job] * (1 - 1e-9))
            assert keeps(program, point), (seed, plan)
            worth = program.constant + sum(cost * point[name] for name, cost in program.objective.items())
            assert float(worth) == pytest.approx(instance.objective(plan), rel=1e-12)
            met += 1
    assert met > 50


def sampled(instance: Any, rng: np.random.Generator, share: float) -> Iterator[list[list[int]]]:
    """Some of the ways to give two jobs GPUs in three slots."""
    for row in itertools.product(itertools.product(range(4), repeat=3), repeat=2):
        gpus = np.array(row) * (np.arange(3) < instance.deadlines[:, None])
        if rng.random() < share and (gpus.sum(axis=0) <= instance.num_gpus).all():
            yield gpus[:, : instance.horizon].tolist()


@pytest.mark.parametrize("problem", ["elasticflow.admission", "elasticflow.best_effort", "elasticflow.placement"])
def test_certificates_of_jobs_with_deadlines_prove_what_brute_force_finds(problem: str) -> None:
    rng = np.random.default_rng(9)
    found = set()
    for seed in range(12):
        fields = jobs_of(rng, bool(seed % 2), bool(seed % 3))
        if problem == "elasticflow.admission":
            instance: Any = Admission(**fields, arrival_order=[0, 1])
        elif problem == "elasticflow.best_effort":
            instance = BestEffort(**fields, best_effort=[True, bool(seed % 4)])
        else:
            instance = generate(problem, seed, CATALOGUE[problem].sizes[0])
        best, bound = best_and_bound(instance)
        assert bound == best
        found.add(best)
    assert len([best for best in found if math.isfinite(best)]) > 1


def tuned(seed: int) -> Tuning:
    """Three jobs on two servers of two GPUs, in tenths of cores; one may fill a server and a hair more."""
    rng = np.random.default_rng(seed)
    configs = rng.integers(1, 7, (3, 3, 3)) / [10, 3, 7]
    configs[0, 0, 0] = 0.6 * (1 + 0.9e-9 * (seed % 2))
    return Tuning(
        num_servers=2,
        server_gpus=2,
        server_cpus=0.6,
        server_memory=2.0,
        gpu_demands=rng.choice([1, 1, 2], 3),
        configs=list(configs),
        fair_throughputs=np.zeros(3),
        allow_split=bool(seed % 3),
        split_penalty=[0.0, 0.25][seed % 5 > 2],
    )


def test_certificates_of_configurations_on_servers_prove_what_brute_force_finds() -> None:
    found = set()
    for seed in range(24):
        best, bound = best_and_bound(tuned(seed))
        if math.isinf(best):
            assert bound == best
            continue
        # Where throughputs have no common step, it is proven but for the search's own slack.
        assert best <= bound <= best + Fraction(2, 10**7)
        found.add(best)
    assert len(found) > 5
