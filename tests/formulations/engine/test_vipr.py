"""Certificates of optima: brute force says the same, and whoever holds one against a program sees what it is of."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest

import formulations
from formulations import LinearProgram, certify, solve, translate, verify
from formulations.engine.vipr import GivenUp, certificate_of, implied, stated
from instances.files import text_of
from instances.reference import Reference, TooLarge
from instances.reference.stated import STATED
from instances.reference.vipr import Refuted, check
from instances.synergy import placement
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


@pytest.mark.parametrize("integral", [False, True])
def test_certificates_of_placements_prove_what_brute_force_finds(integral: bool) -> None:
    found = set()
    for seed in range(10):
        fill = [0.8, 1.0][seed % 2]
        instance = placement.generate(seed, num_servers=2, server_gpus=4, fill=fill, integral_gpus=integral)
        reference = Reference(text_of(instance))
        try:
            (best,) = reference.best_merits()
        except TooLarge:
            continue
        solution = solve(instance, certificate=True)
        program = reference.program()
        assert program is not None
        assert program.bound(check(solution.vipr.splitlines())) == best
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
    for seed in range(4):
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
