"""aryl.placement: the heuristics against a naive best fit, and what the model leaves out."""

import math
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import formulations
from formulations.aryl.placement import servers_to_open
from heuristics.aryl.placement import best_fit_decreasing, local_search, naive_best_fit_decreasing
from instances import InstanceError
from instances.aryl.placement import (
    ArylPlacement,
    ArylPlacementPlan,
    base_and_flexible,
    four_servers,
    generate,
    two_full_servers,
)

from ..effort import rounds
from ..second_opinion import optimum

GROUPS = ("training", "inference")


def small(seed):
    """Up to five workers on up to four servers of mixed sizes; some do not fit."""
    rng = np.random.default_rng(seed)
    n, s = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    workers = rng.integers(0, 3, n)
    while workers.sum() > 5:
        workers = rng.integers(0, 3, n)
    sizes = rng.integers(2, 7, s) if rng.random() < 0.5 else np.full(s, 6)
    elastic = rng.random(n) < 0.5
    special = rng.random(2) < 0.5
    return ArylPlacement(
        gpus_per_worker=rng.integers(1, 5, n),
        num_workers=workers,
        elastic=elastic,
        server_gpus=sizes,
        server_groups=rng.choice(GROUPS, s),
        flexible=elastic & (rng.random(n) < 0.5) & special[0],
        heterogeneous=(rng.random(n) < 0.5) & special[1],
        used_gpus=rng.integers(0, 2, s) if seed % 2 else np.zeros(s, int),
    )


@st.composite
def placements(draw):
    n, s = draw(st.integers(1, 4)), draw(st.integers(1, 5))

    def each(count, values):
        return draw(st.lists(values, min_size=count, max_size=count))

    elastic = each(n, st.booleans())
    return ArylPlacement(
        gpus_per_worker=each(n, st.integers(1, 6)),
        num_workers=each(n, st.integers(0, 3)),
        elastic=elastic,
        server_gpus=each(s, st.integers(1, 8)),
        server_groups=each(s, st.sampled_from(GROUPS)),
        flexible=[a and b for a, b in zip(elastic, each(n, st.booleans()), strict=True)],
        heterogeneous=each(n, st.booleans()),
        used_gpus=each(s, st.integers(0, 1)),
    )


def wanted(instance, job):
    """The group that the workers of a job prefer."""
    if instance.flexible[job]:
        return "inference"
    return "inference" if instance.elastic[job] and not instance.heterogeneous[job] else "training"


def one_by_one(instance, *, naive=False):
    """Best fit, one worker after the other, over all servers each time."""
    free = instance.server_gpus.tolist()
    workers = [[0] * instance.num_servers for _ in range(instance.num_jobs)]
    last = np.zeros(instance.num_jobs, bool) if naive else instance.heterogeneous
    for job in sorted(range(instance.num_jobs), key=lambda j: (last[j], -instance.gpus_per_worker[j], j)):
        need = int(instance.gpus_per_worker[job])
        preferred = "training" if naive else wanted(instance, job)
        for _ in range(int(instance.num_workers[job])):
            fitting = []
            for i in range(instance.num_servers):
                there = {bool(instance.flexible[j]) for j in range(instance.num_jobs) if workers[j][i]}
                if instance.used_gpus[i]:
                    there.add(False)
                apart = (
                    not naive and instance.server_groups[i] == "inference" and there - {bool(instance.flexible[job])}
                )
                if free[i] >= need and not apart:
                    fitting.append((instance.server_groups[i] != preferred, not there, free[i], i))
            if fitting:
                server = min(fitting)[-1]
                free[server] -= need
                workers[job][server] += 1
    return workers


def test_no_plan_opens_fewer_servers_than_room_says():
    """Never above the optimum of all plans, its whole part as a rule, and more than what all GPUs together say."""
    known, met, above = 0, 0, 0
    for seed in rounds(200):
        instance = small(seed)
        best, least = optimum(instance), servers_to_open(instance)
        if best is None:
            continue
        known += 1
        assert least <= best
        met += least == math.floor(best)
        above += least > 0
    assert known > len(rounds(200)) / 2
    assert met > 0.9 * known
    assert above > known / 3


def test_room_that_flexible_and_large_workers_do_not_have():
    """A server in use that is on loan has none for flexible workers, and one of 3 GPUs has none for a worker of 4."""
    job = {"gpus_per_worker": [4], "num_workers": [2], "elastic": [True], "flexible": [True]}
    servers = {
        "server_gpus": [8, 3, 6, 6],
        "server_groups": ["inference", *["training"] * 3],
        "used_gpus": [1, 0, 0, 0],
    }
    instance = ArylPlacement(**job, **servers)
    assert servers_to_open(instance) == 2.0
    assert servers_to_open(replace(instance, flexible=[False])) == 0.0
    assert servers_to_open(replace(instance, flexible=[False], num_workers=[3])) == 1.0


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
    assert optimum(instance) == 2


def test_base_and_flexible_workers_are_kept_apart():
    instance = base_and_flexible()
    apart = ArylPlacementPlan(workers=[[0, 1, 0], [0, 0, 1]])
    together = ArylPlacementPlan(workers=[[0, 1, 0], [0, 1, 0]])
    assert instance.violations(apart) == []
    assert [str(violation) for violation in instance.violations(together)] == ["separate_groups[1] by 1"]
    assert best_fit_decreasing(instance) == apart
    assert naive_best_fit_decreasing(instance) == together
    solution = formulations.solve(instance, start=apart)
    assert (solution.status, solution.objective) == ("optimal", 2)
    # Without the mark on the flexible workers, the same data leave a server closed.
    plain = ArylPlacement.from_dict({**instance.to_dict(), "flexible": [False] * 2})
    assert formulations.solve(plain).objective == 1


def test_only_elastic_jobs_have_flexible_workers():
    with pytest.raises(InstanceError, match=r"ArylPlacement\.flexible: got True at index \[1\], must be False where"):
        ArylPlacement(
            gpus_per_worker=[1, 1],
            num_workers=[1, 1],
            elastic=[True, False],
            server_gpus=[2],
            server_groups=["training"],
            flexible=[True, True],
        )


def test_heterogeneous_jobs_are_placed_last():
    """Base workers on training servers, after all others; flexible ones on inference servers."""
    data = {
        "gpus_per_worker": [4, 4, 2],
        "num_workers": [1, 1, 2],
        "elastic": [True, True, False],
        "server_gpus": [4, 4, 4],
        "server_groups": ["training", "inference", "inference"],
        "flexible": [False, True, False],
    }
    usual = best_fit_decreasing(ArylPlacement(**data))
    assert usual.workers.tolist() == [[0, 1, 0], [0, 0, 1], [2, 0, 0]]
    mixed = ArylPlacement(**data, heterogeneous=[True, True, False])
    assert mixed.prefers_loan.tolist() == [False, True, False]
    # Its base worker would have the training server, were it not placed last.
    assert best_fit_decreasing(mixed).workers.tolist() == [[0, 1, 0], [0, 0, 1], [2, 0, 0]]
    alone = ArylPlacement(**data | {"num_workers": [1, 1, 0]}, heterogeneous=[True, True, False])
    assert best_fit_decreasing(alone).workers.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("gpus", "workers", "message"),
    [
        (9, 1, "a worker of job 1 needs 9 GPUs, the largest server has 8"),
        (4, 5, "the workers need 21 GPUs, there are 16"),
    ],
)
def test_too_little_room(gpus, workers, message):
    """No plan, which is no error of the data; the heuristics place what fits."""
    instance = ArylPlacement(
        gpus_per_worker=[1, gpus],
        num_workers=[1, workers],
        elastic=[False, True],
        server_gpus=[8, 8],
        server_groups=["training", "inference"],
    )
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof != "none"
    assert solution.message.endswith(message)
    for heuristic in (best_fit_decreasing, naive_best_fit_decreasing):
        assert {violation.rule for violation in instance.violations(heuristic(instance))} == {"all_placed"}


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
    assert plan.workers.tolist() == one_by_one(instance)
    assert best_fit_decreasing(instance) == plan
    naive = naive_best_fit_decreasing(instance)
    assert naive.workers.tolist() == one_by_one(instance, naive=True)
    assert instance.digest == digest
    assert {violation.rule for violation in instance.violations(plan)} <= {"all_placed"}
    assert {violation.rule for violation in instance.violations(naive)} <= {"all_placed", "separate_groups"}


@given(placements())
def test_best_fit_decreasing_is_no_better_than_the_optimum(instance):
    plan = best_fit_decreasing(instance)
    solution = formulations.solve(instance)
    assume(not instance.violations(plan))
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


def test_servers_in_use_are_open():
    """Section 5.3: a worker goes to the non-empty server that fits it best before a new one is opened."""
    data = {
        "gpus_per_worker": [2],
        "num_workers": [2],
        "elastic": [False],
        "server_gpus": [4, 5, 3],
        "server_groups": ["training"] * 3,
    }
    empty, used = ArylPlacement(**data), ArylPlacement(**data, used_gpus=[0, 3, 0])
    # Best fit opens the smallest, and then another; in use, the second server holds both for nothing.
    assert best_fit_decreasing(empty).workers.tolist() == [[1, 0, 1]]
    for plan in (best_fit_decreasing(used), formulations.solve(used).plan):
        assert (plan.workers.tolist(), used.objective(plan), used.servers_opened(plan)) == ([[0, 2, 0]], 0, 0)
    assert formulations.solve(empty).objective == optimum(empty) == 1
    assert used.to_dict()["used_gpus"] == [0, 3, 0]
    assert ArylPlacement.from_dict(used.to_dict()) == used


def test_without_servers_in_use_a_file_is_what_it_was():
    """The digest is that of the stored collection, and the field is not written."""
    instance = generate(0, total_workers=4)
    assert instance.digest == "96979dbc72075b599879387b3fcabbdc5ffc40856db88434295eb3ca9a612474"
    assert "used_gpus" not in instance.to_dict()
    assert replace(instance, used_gpus=np.zeros(instance.num_servers, int)).digest == instance.digest
    assert replace(instance, used_gpus=np.ones(instance.num_servers, int)).digest != instance.digest


def test_flexible_workers_do_not_join_servers_in_use_on_loan():
    """What such a server holds cannot be scaled in, so that it could not go back without a preemption."""
    instance = replace(base_and_flexible(), used_gpus=[0, 0, 4])
    assert [str(v) for v in instance.violations(ArylPlacementPlan(workers=[[0, 1, 0], [0, 0, 1]]))] == [
        "separate_groups[2] by 1"
    ]
    swapped = ArylPlacementPlan(workers=[[0, 0, 1], [0, 1, 0]])
    assert best_fit_decreasing(instance) == formulations.solve(instance).plan == swapped
    assert instance.objective(swapped) == 1
    full = replace(base_and_flexible(), used_gpus=[0, 4, 4])
    assert formulations.solve(full).status == "infeasible"
    assert optimum(full) is None


def test_generated_servers_in_use():
    plain, some = generate(5, total_workers=30), generate(5, total_workers=30, in_use=0.5)
    servers = plain.num_servers
    assert some.num_servers == servers + round(servers / 2)
    assert not some.in_use[:servers].any()
    assert some.in_use[servers:].all()
    assert (some.server_gpus + some.used_gpus == 8).all()
    assert (some.num_workers == plain.num_workers).all()
    assert generate(5, gpus_per_server=1, in_use=0.5) == generate(5, gpus_per_server=1)


def test_generated_heterogeneous_jobs():
    plain, some = generate(5, total_workers=300), generate(5, total_workers=300, elastic=0.3, heterogeneous=0.5)
    assert not plain.heterogeneous.any()
    assert 0.3 < some.heterogeneous.mean() < 0.7
    assert replace(some, heterogeneous=plain.heterogeneous) == plain
    assert generate(5, heterogeneous=1).heterogeneous.all()


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


@given(placements(), st.integers(0, 3))
def test_local_search_is_never_behind_and_optimal_on_two_servers(instance, seed):
    digest = instance.digest
    start, plan = best_fit_decreasing(instance), local_search(instance, rng=seed)
    assert instance.digest == digest
    assert local_search(instance, rng=seed) == plan
    broken = {violation.rule for violation in instance.violations(plan)}
    assert broken <= {"all_placed"}
    if not instance.violations(start):
        assert not broken
        assert instance.objective(plan) <= instance.objective(start)
    if instance.num_servers <= 2 and not broken:
        assert instance.objective(plan) == pytest.approx(optimum(instance), rel=1e-12)


def test_local_search_needs_no_third_server_and_brings_workers_home():
    """Best fit keeps to the groups on three servers, and puts four and three GPUs together; two servers are enough."""
    for instance in (four_servers(), two_full_servers()):
        best = formulations.solve(instance).objective
        assert instance.objective(best_fit_decreasing(instance)) > best
        assert instance.objective(local_search(instance)) == best
    # Eight workers of a GPU go home for one of eight, which leaves instead.
    away = ArylPlacement(
        gpus_per_worker=[8, 1],
        num_workers=[1, 8],
        elastic=[False, False],
        server_gpus=[8, 8],
        server_groups=["training", "inference"],
    )
    assert away.workers_off_group(best_fit_decreasing(away)) == 8
    assert away.workers_off_group(local_search(away)) == 1


def test_local_search_is_optimal_on_most_small_placements():
    instances = [instance for instance in map(small, range(60)) if optimum(instance) is not None]
    placed = [instance for instance in instances if not instance.violations(local_search(instance))]
    assert len(placed) >= len(instances) - 1
    found = [instance.objective(local_search(instance)) == pytest.approx(optimum(instance)) for instance in placed]
    assert sum(found) == len(placed)
    without = [instance.objective(local_search(instance, budget=0)) for instance in placed]
    assert sum(without) > sum(instance.objective(local_search(instance)) for instance in placed)


def test_local_search_looks_at_no_more_ways_than_it_may():
    """A thousand workers of each of three sizes can be divided in too many ways between two servers."""
    many = ArylPlacement(
        gpus_per_worker=[1, 2, 3],
        num_workers=[1000] * 3,
        elastic=[True, False, True],
        server_gpus=[4000, 4000],
        server_groups=["training", "inference"],
    )
    plan = local_search(many)
    assert many.violations(plan) == []
    assert many.objective(plan) == many.objective(best_fit_decreasing(many))
