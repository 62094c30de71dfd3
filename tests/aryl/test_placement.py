"""aryl.placement against enumeration of all placements, a naive best fit, and SCIP."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
from heuristics.aryl.placement import best_fit_decreasing
from instances.aryl.placement import ArylPlacement, ArylPlacementPlan, four_servers, generate, two_full_servers

GROUPS = ("training", "inference")


def small(seed):
    """Up to five workers on up to four servers of mixed sizes; some do not fit."""
    rng = np.random.default_rng(seed)
    n, s = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    workers = rng.integers(0, 3, n)
    while workers.sum() > 5:
        workers = rng.integers(0, 3, n)
    sizes = rng.integers(2, 7, s) if rng.random() < 0.5 else np.full(s, 6)
    return ArylPlacement(
        gpus_per_worker=rng.integers(1, 5, n),
        num_workers=workers,
        elastic=rng.random(n) < 0.5,
        server_gpus=sizes,
        server_groups=rng.choice(GROUPS, s),
    )


@st.composite
def placements(draw):
    n, s = draw(st.integers(1, 4)), draw(st.integers(1, 5))

    def each(count, values):
        return draw(st.lists(values, min_size=count, max_size=count))

    return ArylPlacement(
        gpus_per_worker=each(n, st.integers(1, 6)),
        num_workers=each(n, st.integers(0, 3)),
        elastic=each(n, st.booleans()),
        server_gpus=each(s, st.integers(1, 8)),
        server_groups=each(s, st.sampled_from(GROUPS)),
    )


def value(instance, workers):
    """Servers opened and workers off their group, counted one by one; None where a rule is broken."""
    opened, off = 0, 0
    for i in range(instance.num_servers):
        held = [row[i] for row in workers]
        if sum(w * int(g) for w, g in zip(held, instance.gpus_per_worker, strict=True)) > instance.server_gpus[i]:
            return None
        opened += any(held)
        for job, count in enumerate(held):
            wanted = "inference" if instance.elastic[job] else "training"
            off += count * (instance.server_groups[i] != wanted)
    return opened + Fraction(off, 1 + int(instance.num_workers.sum()))


def brute_force(instance):
    """The least value over every server for every worker; None when nothing fits."""
    owners = [job for job, count in enumerate(instance.num_workers.tolist()) for _ in range(count)]
    best = None
    for servers in product(range(instance.num_servers), repeat=len(owners)):
        workers = [[0] * instance.num_servers for _ in range(instance.num_jobs)]
        for job, server in zip(owners, servers, strict=True):
            workers[job][server] += 1
        found = value(instance, workers)
        if found is not None and (best is None or found < best):
            best = found
    return best


def naive_best_fit(instance):
    """One worker after the other, over all servers each time."""
    free, opened = instance.server_gpus.tolist(), set()
    workers = [[0] * instance.num_servers for _ in range(instance.num_jobs)]
    jobs = sorted(range(instance.num_jobs), key=lambda j: (-instance.gpus_per_worker[j], j))
    for job in jobs:
        need = int(instance.gpus_per_worker[job])
        preferred = "inference" if instance.elastic[job] else "training"
        for _ in range(int(instance.num_workers[job])):
            fitting = [
                (instance.server_groups[i] != preferred, i not in opened, free[i], i)
                for i in range(instance.num_servers)
                if free[i] >= need
            ]
            if fitting:
                server = min(fitting)[-1]
                free[server] -= need
                opened.add(server)
                workers[job][server] += 1
    return workers


def test_optimum_equals_enumeration():
    statuses = set()
    for seed in range(220):
        instance = small(seed)
        expected, solution = brute_force(instance), formulations.solve(instance)
        statuses.add(solution.status)
        if expected is None:
            assert solution.status == "infeasible"
        else:
            assert solution.status == "optimal"
            assert solution.objective == pytest.approx(float(expected), rel=1e-12)
            assert instance.violations(solution.plan) == []
            assert value(instance, solution.plan.workers.tolist()) == expected
    assert statuses == {"optimal", "infeasible"}


def test_without_symmetry_breaking_the_optimum_is_the_same():
    for seed in range(40):
        instance = small(seed)
        model = formulations.build(instance)
        broken = formulations.solve(model)
        model.identical_servers.deactivate()
        whole = formulations.solve(model)
        assert broken.status == whole.status
        if whole.objective is not None:
            assert broken.objective == pytest.approx(whole.objective, rel=1e-9)


def test_scip_agrees():
    for seed in range(4):
        instance = generate(seed, total_workers=10)
        assert formulations.solve(instance, solver="scip").objective == pytest.approx(
            formulations.solve(instance).objective, rel=1e-9
        )


def test_forty_workers_are_proven():
    solution = formulations.solve(generate(1), time_limit=60)
    assert (solution.status, solution.gap) == ("optimal", 0)


def test_four_servers():
    instance = four_servers()
    plan = best_fit_decreasing(instance)
    assert (instance.servers_opened(plan), instance.workers_off_group(plan)) == (3, 0)
    best = formulations.solve(instance)
    assert best.objective == pytest.approx(2 + 1 / 8)
    assert (instance.servers_opened(best.plan), instance.workers_off_group(best.plan)) == (2, 1)


def test_two_full_servers():
    instance = two_full_servers()
    assert instance.objective(best_fit_decreasing(instance)) == 3
    assert formulations.solve(instance).objective == pytest.approx(2)
    assert brute_force(instance) == 2


def test_groups_never_outweigh_a_server():
    """All workers off their group on one server cost less than a second server."""
    instance = ArylPlacement(
        gpus_per_worker=[1],
        num_workers=[5],
        elastic=[True],
        server_gpus=[4, 5, 1],
        server_groups=["inference", "training", "inference"],
    )
    solution = formulations.solve(instance)
    assert solution.objective == pytest.approx(1 + 5 / 6)
    assert solution.plan.workers.tolist() == [[0, 5, 0]]


def test_jobs_of_one_kind_get_their_own_workers():
    instance = ArylPlacement(
        gpus_per_worker=[2, 2, 2],
        num_workers=[1, 0, 3],
        elastic=[False] * 3,
        server_gpus=[4, 4],
        server_groups=["training"] * 2,
    )
    assert len(formulations.build(instance).KINDS) == 1
    assert formulations.solve(instance).plan.workers.tolist() == [[1, 0], [0, 0], [1, 2]]


@given(placements())
def test_best_fit_decreasing_follows_its_definition(instance):
    digest = instance.digest
    plan = best_fit_decreasing(instance)
    assert plan.workers.tolist() == naive_best_fit(instance)
    assert best_fit_decreasing(instance) == plan
    assert instance.digest == digest
    assert {violation.rule for violation in instance.violations(plan)} <= {"all_placed"}


@given(placements())
def test_best_fit_decreasing_is_no_better_than_the_optimum(instance):
    plan = best_fit_decreasing(instance)
    solution = formulations.solve(instance)
    if instance.violations(plan):
        return
    assert solution.status == "optimal"
    assert instance.objective(plan) >= solution.objective - 1e-9


@given(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=30))
def test_best_fit_decreasing_opens_the_fewest_for_divisible_sizes(sizes):
    instance = ArylPlacement(
        gpus_per_worker=sizes,
        num_workers=[1] * len(sizes),
        elastic=[False] * len(sizes),
        server_gpus=[8] * len(sizes),
        server_groups=["training"] * len(sizes),
    )
    assert instance.servers_opened(best_fit_decreasing(instance)) == math.ceil(sum(sizes) / 8)


def test_start_plan():
    """Whatever servers the start opens, it is brought into the order that the model asks for."""
    instance = generate(3, total_workers=30)
    start = best_fit_decreasing(instance)
    stopped = formulations.solve(instance, start=start, time_limit=1e-6)
    assert stopped.objective == pytest.approx(instance.objective(start), rel=1e-12)
    last = ArylPlacement(
        gpus_per_worker=[1], num_workers=[1], elastic=[False], server_gpus=[2] * 3, server_groups=["training"] * 3
    )
    model = formulations.build(last)
    formulations.formulation("aryl.placement").write(model, ArylPlacementPlan(workers=[[0, 0, 1]]))
    assert [pyo.value(model.opened[i]) for i in range(3)] == [1, 0, 0]
    assert formulations.read(model) == ArylPlacementPlan(workers=[[1, 0, 0]])


def test_users_add_constraints():
    """A closed first server would close its twin too, were the two still taken for identical."""
    instance = four_servers()
    model = formulations.build(instance)
    model.identical_servers.deactivate()
    model.opened[0].fix(0)
    solution = formulations.solve(model)
    assert solution.status == "optimal"
    assert solution.plan.workers[:, 0].sum() == 0
    assert instance.violations(solution.plan) == []


def test_broken_rules_are_named():
    instance = four_servers()
    plan = ArylPlacementPlan(workers=[[3, -1, 0, 0], [0, 4, 0, 0], [0, 0, 0, 0]])
    assert [str(v) for v in instance.violations(plan)] == [
        "workers_at_least_0[0, 1] by 1",
        "all_placed[2] by 1",
        "server_gpus[0] by 1",
    ]


def test_generated_instances():
    for seed in range(40):
        options = {"total_workers": 5 + seed, "awkward": (seed % 3) / 2, "elastic": (seed % 2) / 2}
        instance = generate(seed, **options)
        assert instance.total_workers == 5 + seed
        assert set(instance.server_groups.tolist()) == set(GROUPS)
        needed = int(instance.gpus_per_worker @ instance.num_workers)
        assert needed <= 0.8 * instance.server_gpus.sum() or instance.num_servers == 2
        if options["awkward"] == 0:
            assert set(instance.gpus_per_worker.tolist()) <= {1, 2, 4, 8}
