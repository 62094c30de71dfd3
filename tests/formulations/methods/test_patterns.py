"""Patterns of servers: the program against all placements in fractions, SCIP, and what it leaves to others."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest

import formulations
from formulations import Options
from formulations.aryl.placement import packed, servers_to_open
from formulations.engine.highs import Session
from formulations.engine.vipr import certificate_of
from formulations.methods import GaveUp, patterns
from formulations.methods.patterns import Patterns, fullest
from heuristics.aryl.placement import best_fit_decreasing, naive_best_fit_decreasing
from instances.aryl.placement import ArylPlacement, generate
from instances.files import text_of
from instances.reference import Malformed, Reference
from instances.reference.vipr import Refuted, check

from ...effort import rounds

PROOFS = {"prices", "two runs"}


def small(seed: int) -> ArylPlacement:
    """Return up to six workers for up to four servers, of all kinds; some do not fit."""
    rng = np.random.default_rng(seed)
    n, s, most = int(rng.integers(1, 6)), int(rng.integers(1, 5)), int(rng.integers(3, 10))
    workers = rng.integers(0, 4, n)
    while workers.sum() > 6:
        workers = rng.integers(0, 4, n)
    elastic = rng.random(n) < rng.choice([0.3, 0.5, 1.0])
    special = rng.random(2) < 0.5
    return ArylPlacement(
        gpus_per_worker=rng.integers(1, rng.integers(2, most + 1), n),
        num_workers=workers,
        elastic=elastic,
        server_gpus=rng.integers(1, most + 1, s) if rng.random() < 0.5 else np.full(s, most),
        server_groups=rng.choice(("training", "inference"), s),
        flexible=elastic & (rng.random(n) < 0.5) & special[0],
        heterogeneous=(rng.random(n) < 0.5) & special[1],
        used_gpus=rng.integers(0, 3, s) if seed % 2 else np.zeros(s, np.int64),
    )


def mixed(seed: int, workers: int, gpus: int = 8) -> ArylPlacement:
    """Return workers of all kinds on servers of which some hold others already."""
    rng = np.random.default_rng(seed)
    drawn = generate(seed, total_workers=workers, gpus_per_server=gpus, load=0.7)
    n, s = drawn.num_jobs, drawn.num_servers
    elastic = rng.random(n) < 0.6
    return ArylPlacement(
        gpus_per_worker=drawn.gpus_per_worker,
        num_workers=drawn.num_workers,
        elastic=elastic,
        server_gpus=np.where(rng.random(s) < 0.8, gpus, rng.integers(1, gpus + 1, s)),
        server_groups=drawn.server_groups,
        flexible=elastic & (rng.random(n) < 0.5),
        heterogeneous=rng.random(n) < 0.3,
        used_gpus=np.where(rng.random(s) < 0.3, 1, 0),
    )


def least(instance: ArylPlacement) -> Fraction | None:
    """Return the least value of all ways to give each worker a server; None where none is a placement."""
    jobs = [job for job, count in enumerate(instance.num_workers.tolist()) for _ in range(count)]
    gpus, free = instance.gpus_per_worker.tolist(), instance.server_gpus.tolist()
    loan = [group == "inference" for group in instance.server_groups.tolist()]
    flexible, elastic = instance.flexible.tolist(), instance.elastic.tolist()
    used = [count > 0 for count in instance.used_gpus.tolist()]
    wants_loan = [
        f or (e and not h) for f, e, h in zip(flexible, elastic, instance.heterogeneous.tolist(), strict=True)
    ]
    best = None
    for servers in product(range(len(free)), repeat=len(jobs)):
        on = [[job for job, at in zip(jobs, servers, strict=True) if at == server] for server in range(len(free))]
        if any(sum(gpus[job] for job in some) > free[server] for server, some in enumerate(on)):
            continue
        # What a server in use holds is not flexible.
        sides = [
            {flexible[job] for job in some} | ({False} if there else set())
            for some, there in zip(on, used, strict=True)
        ]
        if any(loan[server] and len(side) > 1 for server, side in enumerate(sides)):
            continue
        off = sum(wants_loan[job] != loan[at] for job, at in zip(jobs, servers, strict=True))
        opened = sum(bool(some) and not there for some, there in zip(on, used, strict=True))
        value = opened + Fraction(off, 1 + len(jobs))
        best = value if best is None else min(best, value)
    return best


@pytest.mark.parametrize("seed", rounds(150))
def test_the_optimum_is_that_of_all_placements(seed: int) -> None:
    instance = small(seed)
    best = least(instance)
    found = patterns.solve(instance, Options())
    if best is None:
        assert (found.status, found.plan) == ("infeasible", None)
        return
    assert found.status == "optimal"
    assert found.proof in PROOFS | {"argument"}
    assert found.objective == pytest.approx(float(best), rel=1e-12)
    assert found.bound == pytest.approx(float(best), rel=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2, 4])
def test_the_optimum_is_that_of_scip_on_the_model(seed: int) -> None:
    instance = mixed(seed, 14)
    found = formulations.solve(instance, method="patterns")
    other = formulations.solve(instance, solver="scip")
    assert (found.status, found.method) == (other.status, "patterns of servers")
    if other.status == "infeasible":
        return
    assert other.status == "optimal"
    assert found.objective == pytest.approx(other.objective, rel=1e-9)
    assert formulations.verify(instance, found).verdict == "confirmed"


@pytest.mark.parametrize("seed", range(60))
def test_patterns_are_all_that_leave_no_room(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = np.sort(rng.permutation(np.arange(1, 8))[: rng.integers(1, 5)])
    free, most = int(rng.integers(1, 11)), rng.integers(0, 4, len(sizes))
    expected = {
        counts
        for counts in product(*(range(count + 1) for count in most.tolist()))
        if any(counts)
        and sum(c * g for c, g in zip(counts, sizes.tolist(), strict=True)) <= free
        and not any(
            c < m and sum(c * g for c, g in zip(counts, sizes.tolist(), strict=True)) + size <= free
            for c, m, size in zip(counts, most.tolist(), sizes.tolist(), strict=True)
        )
    }
    found = list(map(tuple, fullest(free, sizes, most).tolist()))
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_eight_gpus_are_filled_in_22_ways() -> None:
    sizes = np.arange(1, 9)
    assert len(fullest(8, sizes, np.full(8, 100))) == 22
    assert len(fullest(8, np.array([1, 2, 4, 8]), np.full(4, 100))) == 10


@pytest.mark.parametrize(("workers", "seed"), [*((w, s) for w in (40, 500) for s in range(4)), (5000, 1)])
def test_large_ones_are_proven(workers: int, seed: int) -> None:
    instance = mixed(seed, workers) if seed % 2 else generate(seed, total_workers=workers)
    found = formulations.solve(instance, method="patterns")
    assert found.status == "optimal"
    # A plan at hand may meet the bound of room alone.
    assert found.method in ("patterns of servers", "at hand")
    assert found.proof in (*PROOFS, "argument")
    assert found.objective == found.bound
    # No fewer servers than all GPUs need.
    largest = np.sort(instance.server_gpus[~instance.in_use])[::-1].cumsum()
    needed = instance.gpus_per_worker @ instance.num_workers - instance.server_gpus[instance.in_use].sum()
    assert instance.servers_opened(found.plan) >= 1 + np.searchsorted(largest, needed)


def test_one_run_is_said_to_be_one() -> None:
    """Its relaxation is below the optimum of 9 workers off their group."""
    instance = generate(0, total_workers=40)
    assert formulations.solve(instance, verify=False).proof == "one run"
    assert formulations.solve(instance, verify=True).proof == "two runs"


def test_a_bound_is_rounded_up_no_further_than_it_is_known() -> None:
    assert [patterns._whole(bound) for bound in (3.0, 3.2, 3 + 1e-9, -1e-9, -np.inf, np.inf)] == [3, 4, 3, 0, 0, 0]
    assert patterns._whole(5000.001) == 5000
    assert patterns._whole(5000.1) == 5001


@pytest.mark.parametrize("most", [2, 20])
def test_too_many_patterns_are_left_to_the_model(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Of one server, or of all."""
    monkeypatch.setattr(patterns, "MOST", most)
    instance = mixed(1, 12)
    with pytest.raises(GaveUp, match="there are too many ways to fill a server"):
        patterns.solve(instance, Options())
    found = formulations.solve(instance)
    assert (found.status, found.method) == ("optimal", "one model")
    named = formulations.solve(instance, method="patterns")
    assert (named.status, named.objective) == ("feasible", instance.objective(packed(instance)))
    assert named.bound == servers_to_open(instance)
    assert "too many ways" in named.message


@pytest.mark.parametrize("limit", [1e-9, 0.1])
@pytest.mark.parametrize("method", ["patterns", "model"])
def test_no_heuristic_is_better_at_any_limit(limit: float, method: str) -> None:
    for seed, workers in enumerate([5, 40, 300]):
        for instance in (generate(seed, total_workers=workers), mixed(seed, workers)):
            found = formulations.solve(instance, time_limit=limit, method=method)
            for heuristic in (best_fit_decreasing, naive_best_fit_decreasing):
                plan = heuristic(instance)
                if not instance.violations(plan):
                    assert found.objective is not None
                    assert found.objective <= instance.objective(plan)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_packed_first_is_no_worse_than_the_heuristics(seed: int) -> None:
    for instance in (small(seed), mixed(seed, 30)):
        plan = packed(instance)
        assert {violation.rule for violation in instance.violations(plan)} <= {"all_placed"}
        for heuristic in (best_fit_decreasing, naive_best_fit_decreasing):
            other = heuristic(instance)
            if not instance.violations(other):
                assert instance.violations(plan) == []
                assert instance.objective(plan) <= instance.objective(other)


def test_nothing_to_place() -> None:
    instance = ArylPlacement([2, 9], [0, 0], [True, False], [8, 4], ["training", "inference"])
    assert Patterns(instance).num_patterns == 0
    found = patterns.solve(instance, Options())
    assert (found.status, found.objective, found.bound) == ("optimal", 0, 0)


def test_a_million_workers_on_a_server() -> None:
    many = 10**6
    instance = ArylPlacement([1, 1], [many, many], [True, False], [many, many], ["training", "inference"])
    found = patterns.solve(instance, Options())
    assert (found.status, found.objective, found.plan.workers.tolist()) == ("optimal", 2, [[0, many], [many, 0]])


def certified(instance: ArylPlacement) -> tuple[str, float | Fraction]:
    """Return a certificate of the program over patterns, and what it proves of the instance, as the reference finds."""
    program = Patterns(instance).both
    text = certificate_of(program, Session().run(program).x).text
    return text, Reference(text_of(instance)).certified(check(text.splitlines()))


@pytest.mark.parametrize("first", range(0, 48, 12))
def test_certificates_over_patterns_prove_the_optimum_of_all_placements(first: int) -> None:
    proven = set()
    for seed in range(first, first + 12):
        instance = small(seed)
        if not instance.total_workers:
            continue
        best = least(instance)
        found = certified(instance)[1]
        proven.add(best is None)
        assert found == (inf if best is None else pytest.approx(float(best), rel=1e-12))
        assert best is None or Fraction(found) <= best
    assert proven == {False, True}


def test_a_certificate_over_patterns_of_another_instance_is_refused() -> None:
    instance = mixed(3, 14)
    text, bound = certified(instance)
    assert bound == pytest.approx(formulations.solve(instance).objective)
    fewer = replace(instance, num_workers=instance.num_workers - (np.arange(instance.num_jobs) == 0))
    more = replace(instance, server_gpus=np.append(instance.server_gpus, 8), **{
        name: np.append(getattr(instance, name), getattr(instance, name)[:1]) for name in ("server_groups", "used_gpus")
    })  # fmt: skip
    wider = replace(instance, server_gpus=np.full(instance.num_servers, 9))
    for other in (fewer, more, wider):
        with pytest.raises(Refuted):
            Reference(text_of(other)).certified(check(text.splitlines()))
    for old, new in (("servers[8,1,0,1,", "servers[8,1,1,1,"), ("off[0,", "off[2,")):
        assert old in text
        with pytest.raises((Refuted, Malformed)):
            Reference(text_of(instance)).certified(check(text.replace(old, new).splitlines()))
