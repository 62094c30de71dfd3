"""aryl.reclaim: its search by parts, and the heuristics against a naive Algorithm 1 in fractions."""

from fractions import Fraction
from itertools import combinations, permutations
from math import ceil, inf

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given
from hypothesis import strategies as st

import formulations
from formulations.engine.highs import Session
from formulations.methods import branching
from formulations.methods.branching import Relaxation, relaxation
from formulations.methods.spreading import spread
from heuristics.aryl import reclaim as heuristics
from instances import InstanceError, PlanError
from instances.aryl.reclaim import Reclaim, ReclaimPlan, figure_5, generate, six_servers, wide_job
from instances.files import text_of
from instances.reference import Malformed, Reference

from ..effort import rounds
from ..second_opinion import optimum

GREEDY = {
    "job_count": heuristics.smallest_count_updated,
    "gpu_fraction": heuristics.gpu_fraction,
    "server_fraction": heuristics.server_fraction,
}
ORDERED = [*GREEDY.values(), heuristics.smallest_count_first, heuristics.flexible_first]
HEURISTICS = [*ORDERED, heuristics.random, heuristics.local_search, heuristics.tabu_search]


def small(seed):
    """A tiny instance with repeated, empty and full servers, and jobs on none."""
    rng = np.random.default_rng(seed)
    n, s = int(rng.integers(1, 9)), int(rng.integers(1, 8))
    hosts = rng.random((n, s)) < rng.choice([0.1, 0.3, 0.6])
    if s > 2 and rng.random() < 0.3:
        hosts[:, 1] = hosts[:, 0]
    gpus = np.where(hosts, rng.integers(1, 5, (n, s)), rng.integers(0, 3, (n, s)) * (rng.random((n, s)) < 0.2))
    return Reclaim(hosts=hosts, gpus=gpus, demand=int(rng.integers(0, s + 1)))


@st.composite
def reclaims(draw):
    n, s = draw(st.integers(1, 7)), draw(st.integers(1, 6))
    base = draw(st.lists(st.lists(st.integers(0, 3), min_size=s, max_size=s), min_size=n, max_size=n))
    flexible = draw(st.lists(st.lists(st.integers(0, 1), min_size=s, max_size=s), min_size=n, max_size=n))
    return Reclaim(hosts=np.array(base) > 0, gpus=np.array(base) + np.array(flexible), demand=draw(st.integers(0, s)))


def naive_costs(instance, definition, gone=()):
    """Cost of every server in fractions, from scratch, without the jobs that are gone."""
    costs = [Fraction(0)] * instance.num_servers
    for job, row in enumerate(instance.hosts.tolist()):
        servers = [i for i, on in enumerate(row) if on]
        held = [int(instance.gpus[job, i]) for i in servers]
        for i, gpus in zip(servers, held, strict=True):
            if job not in gone:
                share = {"job_count": 1, "gpu_fraction": Fraction(gpus, sum(held))}
                costs[i] += share.get(definition, Fraction(1, len(servers)))
    return costs


def naive_greedy(instance, definition, order=None):
    """Cheapest server first, every cost recomputed after every choice."""
    order = list(range(instance.num_servers)) if order is None else order
    chosen, gone = [], set()
    for _ in range(instance.demand):
        costs = naive_costs(instance, definition, gone)
        server = min((i for i in order if i not in chosen), key=lambda i: (costs[i], order.index(i)))
        chosen.append(server)
        gone |= {job for job in range(instance.num_jobs) if instance.hosts[job, server]}
    return chosen


@pytest.mark.parametrize("first", rounds(12)[::12])
def test_plans_in_parts_equal_enumeration(first):
    """Wide jobs anywhere: many parts, and plans by swaps; stopped early, what is said holds as well."""
    parts = 0
    for seed in range(first, first + 12):
        instance = generate(seed, num_servers=13, spread=1.0, locality=seed % 3 / 2, demand=3 + seed % 5)
        best = optimum(instance)
        solution = formulations.solve(instance)
        assert (solution.status, solution.objective, solution.bound) == ("optimal", best, best)
        parts = max(parts, int(solution.message.split()[0]))
        early = formulations.solve(instance, mip_gap=0.3)
        assert early.bound <= best <= early.objective
        assert early.gap <= 0.3
    assert parts > 8


def divided(instance, rng, depth):
    """Random shares, of random parts of the plans, perhaps the same one twice."""
    if not depth:
        of = int(rng.integers(1, 8))
        widths = instance.hosts.sum(axis=1).tolist()
        shares = [
            rng.multinomial(int(rng.integers(of + 1)) if rng.random() < 0.2 else of, [1 / w] * w) for w in widths if w
        ]
        return {"of": of, "shares": [int(share) for some in shares for share in some]}
    sides = {side: divided(instance, rng, depth - 1 - int(rng.integers(depth))) for side in ("returned", "kept")}
    return {"server": int(rng.integers(instance.num_servers)), **sides}


def least_of(instance, tree, fixed):
    """What shares prove of a part of the plans, by all of them: the least of what servers cost; infinite of no plan."""
    if "server" in tree:
        sides = [(tree["returned"], True), (tree["kept"], False)]
        return min(least_of(instance, part, [*fixed, (tree["server"], side)]) for part, side in sides)
    cost = np.zeros(instance.num_servers, int)
    np.add.at(cost, np.argwhere(instance.hosts)[:, 1], tree["shares"])
    costs = [
        Fraction(int(cost[list(servers)].sum()), tree["of"])
        for servers in combinations(range(instance.num_servers), instance.demand)
        if all((server in servers) == side for server, side in fixed)
    ]
    return ceil(min(costs)) if costs else inf


@pytest.mark.parametrize("first", rounds(80)[::20])
def test_shares_of_parts_prove_what_all_plans_do(first):
    """Random ones exactly, and never more than the optimum; those that are found prove it."""
    halved = 0
    for seed in range(first, first + 20):
        instance, rng = small(seed), np.random.default_rng(seed)
        best, reference = optimum(instance), Reference(text_of(instance))
        for _ in range(6):
            tree = divided(instance, rng, int(rng.integers(4)))
            assert reference.bound(tree) == least_of(instance, tree, []) <= best
        found = branching.prices(instance, formulations.solve(instance).plan)
        assert reference.bound(found) == best
    for seed in range(first, first + 4):
        instance = generate(seed, num_servers=13, spread=1.0, demand=4)
        found = branching.prices(instance, formulations.solve(instance).plan)
        assert Reference(text_of(instance)).bound(found) == optimum(instance)
        halved += "server" in found
    assert halved


def test_shares_that_prove_nothing_are_refused():
    instance = figure_5()
    reference, value = Reference(text_of(instance)), 1
    good = branching.prices(instance, formulations.solve(instance).plan)
    assert reference.bound(good) == value
    shares = {"of": 1, "shares": [0] * int(instance.hosts.sum())}
    tree = {"server": 0, "returned": good, "kept": shares}
    assert reference.bound(tree) == 0
    deep = shares
    for _ in range(450):
        deep = tree | {"kept": deep}
    for wrong in (
        shares | {"shares": [1] * int(instance.hosts.sum())},
        shares | {"shares": shares["shares"][1:]},
        shares | {"shares": [0.5, *shares["shares"][1:]]},
        shares | {"shares": [-1, *shares["shares"][1:]]},
        shares | {"of": 0},
        {"shares": shares["shares"]},
        {"server": 0, "returned": good},
        tree | {"server": instance.num_servers},
        tree | {"server": -1},
        tree | shares,
        deep,
    ):
        with pytest.raises(Malformed, match="prices"):
            reference.bound(wrong)


@pytest.mark.parametrize("seed", range(4))
def test_the_relaxation_of_parts_is_that_of_the_model(seed):
    instance = generate(seed, num_servers=30, spread=0.9, demand=9)
    model = formulations.build(instance)
    for variable in model.returned.values():
        variable.domain = pyo.UnitInterval
    value = Session().run(relaxation(instance)).bound
    assert formulations.solve(model, solver="scip").objective == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("first", rounds(30)[::30])
def test_any_prices_prove_a_bound_of_a_part(first):
    """Prices of any sign and size, in parts with servers fixed either way, against all plans of the part."""
    seen = 0
    for seed in range(first, first + 30):
        instance, rng = small(seed), np.random.default_rng(seed)
        returned = rng.random(instance.num_servers) < 0.2
        allowed = returned | (rng.random(instance.num_servers) < 0.8)
        values = [
            instance.objective(ReclaimPlan(servers=servers))
            for servers in combinations(np.flatnonzero(allowed).tolist(), instance.demand)
            if set(np.flatnonzero(returned).tolist()) <= set(servers)
        ]
        if values:
            seen += 1
            relaxed = Relaxation(instance)
            for prices in (relaxed.divided, rng.normal(size=len(relaxed.divided)) * rng.choice([0.1, 1.0, 10.0])):
                assert relaxed.bound(prices, returned, allowed) <= min(values) + 1e-9
            bound, share, basis = relaxed.solve(returned, allowed, None)
            assert bound <= min(values) + 1e-9
            assert relaxed.solve(returned, allowed, basis)[0] == pytest.approx(bound)
            assert share.sum() == pytest.approx(instance.demand)
    assert seen > 10


def plans(instance):
    """All choices of servers, (plans, s) bool, and the jobs that they preempt."""
    every = [
        np.isin(range(instance.num_servers), one) for one in combinations(range(instance.num_servers), instance.demand)
    ]
    return np.array(every), np.array([[bool((row & one).any()) for row in instance.hosts] for one in every])


def differing(instance, share, preempted, server, outward):
    """What a server's spreading constraint allows at a point at most: shortest ways one by one, in fractions."""
    everyone = range(instance.num_servers)
    hop = {(a, b): Fraction(3) for a in everyone for b in everyone}
    for job, row in enumerate(instance.hosts.tolist()):
        for a, b in permutations([i for i in everyone if row[i]], 2):
            hop[a, b] = min(hop[a, b], preempted[job] - share[b])
    for by in everyone:
        for a in everyone:
            for b in everyone:
                hop[a, b] = min(hop[a, b], hop[a, by] + hop[by, b])
    pairs = [(server, k) if outward else (k, server) for k in everyone if k != server]
    return sum((min(hop[a, b], share[a], 1 - share[b]) for a, b in pairs), Fraction(0))


@pytest.mark.parametrize("first", rounds(40)[::40])
def test_spreading_constraints_hold_for_every_plan(first):
    """At all plans in whole numbers, and at a point they are violated as shortest ways in fractions say."""
    violated = 0
    for seed in range(first, first + 40):
        instance, rng = small(seed), np.random.default_rng(seed)
        s, demand = instance.num_servers, instance.demand
        share = rng.integers(0, 9, s) * (rng.random(s) < 0.7) / 8
        touched = np.where(instance.hosts, share, 0.0).max(axis=1)
        preempted = np.minimum(touched + rng.integers(0, 3, instance.num_jobs) / 8, 1.0)
        exact = [Fraction(value) for value in share], [Fraction(value) for value in preempted]
        for outward in (True, False):
            rows, least, violation = spread(instance.hosts, demand, share, preempted, np.arange(s), outward=outward)
            assert (rows[:, s:] >= 0).all()
            assert (np.hstack(plans(instance)) @ rows.T >= least).all()
            for server in range(s):
                wanted = (s - demand) * exact[0][server] if outward else demand * (1 - exact[0][server])
                short = wanted - differing(instance, *exact, server, outward)
                assert violation[server] == pytest.approx(float(short), abs=1e-4)
                violated += short > 0
    assert violated > 20


@pytest.mark.parametrize("first", rounds(20)[::20])
def test_any_weights_of_spreading_constraints_prove_a_bound(first):
    raised = 0
    for seed in range(first, first + 20):
        instance, rng = (
            generate(seed, num_servers=9, spread=1.0, locality=0.5, demand=3 + seed % 3),
            np.random.default_rng(seed),
        )
        best, relaxed, bounds = optimum(instance), Relaxation(instance), []
        for _, (bound, _) in zip(range(5), relaxed.tightened(rng), strict=False):
            bounds.append(bound)
        assert max(bounds) <= best + 1e-9
        raised += max(bounds) > bounds[0] + 1e-6
        returned, preempted = plans(instance)
        fixed = rng.random(9) < 0.2
        inside = preempted.sum(axis=1)[returned[:, fixed].all(axis=1)]
        for size in (0.01, 0.1, 1.0, 10.0):
            weights = rng.normal(size=len(relaxed.least)) * size
            prices = rng.normal(size=len(relaxed.divided)) * size
            least = relaxed.bound(prices, fixed, np.ones(9, bool), weights)
            assert len(inside) == 0 or least <= inside.min() + 1e-9
    assert raised > 10


def test_plans_with_spreading_constraints_equal_enumeration(monkeypatch):
    """From the second part on, so that they settle small instances, alone or beside the parts."""
    monkeypatch.setattr(branching, "FIRST_SPREAD", 1)
    settled = set()
    for seed in range(12):
        instance = generate(seed, num_servers=13, spread=1.0, locality=seed % 3 / 2, demand=3 + seed % 5)
        solution = formulations.solve(instance)
        best = optimum(instance)
        assert (solution.status, solution.objective, solution.bound) == ("optimal", best, best)
        settled.add(int(solution.message.split()[0]))
    assert len(settled) > 1


@pytest.mark.parametrize("seed", range(6))
def test_no_plan_is_behind_the_greedy_methods(seed):
    """Nor where the search is stopped before it has bounded anything."""
    instance = generate(seed, num_servers=60, demand=18, locality=seed / 5)
    solution = formulations.solve(instance, mip_gap=10.0)
    assert solution.objective <= min(instance.objective(heuristic(instance)) for heuristic in ORDERED)


def test_a_bound_within_the_time():
    """The start is never lost, and the bound of a short search is below the plan of a longer one."""
    instance = generate(1, num_servers=60, demand=18, locality=0.0)
    start = heuristics.local_search(instance)
    early = formulations.solve(instance, start=start, time_limit=0.1)
    later = formulations.solve(instance, start=start, mip_gap=0.05)
    assert early.objective <= instance.objective(start)
    assert early.bound <= later.objective
    assert later.gap <= 0.05


@given(reclaims())
def test_model_value_equals_instance_value(instance):
    """The disaggregated rows make ``preempted`` whole without being declared so."""
    model = formulations.build(instance)
    solution = formulations.solve(model)
    assert solution.status == "optimal"
    assert solution.objective == instance.objective(solution.plan)


def test_one_row_per_job_would_be_weaker():
    """Relaxed, 2 of 4 servers of one job: half a job either way by (1), nothing more by a sum over servers."""
    hosts = np.zeros((2, 5), bool)
    hosts[0, :4], hosts[1, 4] = True, True
    instance = Reclaim(hosts=hosts, gpus=hosts.astype(int), demand=1)
    model = formulations.build(instance)
    for variable in model.returned.values():
        variable.domain = pyo.UnitInterval
    model.returned[0].fix(1)
    assert formulations.solve(model).objective == pytest.approx(1)
    model.preemption.deactivate()
    model.summed = pyo.Constraint(expr=4 * model.preempted[0] >= sum(model.returned[i] for i in range(4)))
    assert formulations.solve(model).objective == pytest.approx(0.25)


def test_six_servers():
    instance = six_servers()
    costs = heuristics.preemption_costs(instance)
    third, eighth = Fraction(1, 3), Fraction(1, 8)
    assert costs["job_count"].tolist() == [2] * 6
    assert costs["gpu_fraction"] == pytest.approx([float(k * eighth) for k in (15, 15, 2, 5, 5, 6)])
    assert costs["server_fraction"] == pytest.approx([1.5, 1.5, 1.0, *[float(2 * third)] * 3])
    preempted = {name: instance.objective(greedy(instance)) for name, greedy in GREEDY.items()}
    assert preempted == {"job_count": 4, "gpu_fraction": 4, "server_fraction": 2}
    assert heuristics.server_fraction(instance).servers.tolist() == [3, 4, 5]
    assert optimum(instance) == 2
    # Servers 2, 3 and 4 leave jobs 0 to 3 preempted: 7 + 7 GPUs on servers 0 and 1, 3 + 3 on server 5.
    plan = heuristics.gpu_fraction(instance)
    assert instance.excess_gpus(plan) == 20
    # What runs on the three returned servers: 2, 5 and 5 GPUs.
    assert instance.collateral_damage(plan) == pytest.approx(20 / 32)
    assert instance.collateral_damage(plan, relative_to="returned") == pytest.approx(20 / 12)
    assert instance.collateral_damage(heuristics.server_fraction(instance)) == 0
    assert instance.objective(heuristics.smallest_count_first(instance)) == 4


def test_table_1():
    """The costs of all three definitions, as printed."""
    costs = heuristics.preemption_costs(figure_5())
    assert costs["job_count"].tolist() == [1, 1, 1, 1, 2, 1]
    assert costs["gpu_fraction"] == pytest.approx([0.5, 0.5, 1, 0.8, 0.4, 0.8])
    assert costs["server_fraction"] == pytest.approx([0.5, 0.5, 1, 0.5, 1, 0.5])
    assert (figure_5().gpus.sum(axis=0) <= 8).all()


def test_figure_5():
    """Two servers: the first two preempt one job, any others two or more; and the optimum of every demand."""
    instance = figure_5()
    preempted = {pair: instance.objective(ReclaimPlan(servers=pair)) for pair in combinations(range(6), 2)}
    assert preempted.pop((0, 1)) == 1
    assert min(preempted.values()) == 2
    assert [formulations.solve(figure_5(demand)).objective for demand in range(1, 7)] == [1, 1, 2, 3, 3, 4]


def test_ties_of_figure_5():
    """Four servers tie at 1/2 in Algorithm 1; in half of all orders the wrong two come first."""
    outcomes = {}
    for heuristic in ORDERED:
        found = [figure_5().objective(heuristic(figure_5(), order=order)) for order in permutations(range(6))]
        outcomes[heuristic.__name__] = {value: found.count(value) for value in set(found)}
    assert outcomes["server_fraction"] == outcomes["flexible_first"] == {1: 360, 2: 360}
    assert outcomes["gpu_fraction"] == {2: 720}
    # Servers 3 and 4, as in the text, are one of the choices of counting.
    assert outcomes["smallest_count_first"] == {1: 72, 2: 648}
    assert outcomes["smallest_count_updated"] == {1: 288, 2: 432}
    assert figure_5().objective(heuristics.smallest_count_first(figure_5(), order=[2, 3, 0, 1, 4, 5])) == 2


@given(reclaims(), st.randoms(use_true_random=False))
def test_ties_go_to_the_first_in_order(instance, random):
    order = random.sample(range(instance.num_servers), instance.num_servers)
    for definition, greedy in GREEDY.items():
        alone = definition == "server_fraction" and instance.demand == 1
        expected = naive_greedy(instance, "job_count" if alone else definition, order)
        assert greedy(instance, order=order).servers.tolist() == expected
    counts = instance.hosts.sum(axis=0).tolist()
    fewest = sorted(order, key=lambda server: counts[server])[: instance.demand]
    assert heuristics.smallest_count_first(instance, order=order).servers.tolist() == fewest


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 4], [1, 2, 3, 4, 5, 6]])
def test_an_order_names_every_server_once(order):
    for heuristic in ORDERED:
        with pytest.raises(ValueError, match=r"^order: got \[.*\], must be the servers 0 to 5 in some order$"):
            heuristic(figure_5(), order=order)


def test_counts_are_static_as_printed():
    """Once job 0 is preempted server 1 hosts one job too, and comes before server 3 by the count that is updated."""
    hosts = [[1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    instance = Reclaim(hosts=hosts, gpus=hosts, demand=2)
    order = [0, 3, 2, 1]
    assert heuristics.smallest_count_first(instance, order=order).servers.tolist() == [0, 3]
    assert heuristics.smallest_count_updated(instance, order=order).servers.tolist() == [0, 1]


@given(reclaims())
def test_flexible_servers_are_released_first(instance):
    """Servers without base workers go first, and alone where they are enough."""
    flexible = [i for i in range(instance.num_servers) if not instance.hosts[:, i].any()]
    assert instance.flexible_servers.tolist() == flexible
    servers = heuristics.flexible_first(instance).servers.tolist()
    released = min(len(flexible), instance.demand)
    assert servers[:released] == flexible[:released]
    assert instance.objective(ReclaimPlan(servers=servers[:released])) == 0
    rest = instance.demand - released
    if rest == 1:
        others = [i for i in range(instance.num_servers) if i not in flexible]
        assert servers[-1] == min(others, key=lambda i: (instance.hosts[:, i].sum(), i))
    elif rest:
        assert servers == heuristics.server_fraction(instance).servers.tolist()


@pytest.mark.parametrize("demand", [4, 7])
def test_more_servers_than_there_are(demand):
    """No plan, which is no error of the data; heuristics return all that there are."""
    instance = Reclaim(hosts=[[1, 0, 1]], gpus=[[2, 1, 2]], demand=demand)
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof != "none"
    assert solution.message.endswith(f"demand is {demand} servers, there are 3")
    for heuristic in HEURISTICS:
        plan = heuristic(instance)
        assert sorted(plan.servers.tolist()) == [0, 1, 2]
        assert [violation.rule for violation in instance.violations(plan)] == ["demand"]


def test_no_constant_factor_is_seen():
    """Three jobs preempted where one would do, however ties are broken."""
    hosts = [[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0, 0]]
    instance = Reclaim(hosts=hosts, gpus=hosts, demand=2)
    assert optimum(instance) == 1
    orders = ([a, b, *(i for i in range(7) if i not in (a, b))] for a, b in permutations(range(7), 2))
    found = {instance.objective(heuristics.server_fraction(instance, order=order)) for order in orders}
    assert min(found) == 3


def test_wide_job_misleads_algorithm_1():
    instance = wide_job()
    assert instance.objective(heuristics.server_fraction(instance)) == 2
    assert instance.objective(heuristics.local_search(instance)) == 1
    assert formulations.solve(instance).objective == optimum(instance) == 1


def test_flexible_workers_are_scaled_in():
    # Job 0 has base workers on server 0 and flexible ones on server 1; job 1 sits on server 2.
    instance = Reclaim(hosts=[[1, 0, 0], [0, 0, 1]], gpus=[[4, 4, 0], [0, 0, 8]], demand=1)
    assert [instance.objective(ReclaimPlan(servers=[i])) for i in range(3)] == [1, 0, 1]
    # A preempted job vacates its flexible GPUs too; one that is scaled in vacates nothing else.
    assert [instance.excess_gpus(ReclaimPlan(servers=[i])) for i in range(3)] == [4, 0, 0]
    assert [instance.collateral_damage(ReclaimPlan(servers=[i])) for i in range(3)] == [0.5, 0, 0]
    assert formulations.solve(instance).plan == ReclaimPlan(servers=[1])
    assert heuristics.server_fraction(instance) == ReclaimPlan(servers=[1])


@given(reclaims(), st.randoms(use_true_random=False))
def test_collateral_damage_by_hand(instance, random):
    servers = random.sample(range(instance.num_servers), instance.demand)
    damage = 0
    for job in range(instance.num_jobs):
        if any(instance.hosts[job, i] for i in servers):
            damage += sum(int(instance.gpus[job, i]) for i in range(instance.num_servers) if i not in servers)
    plan = ReclaimPlan(servers=servers)
    assert instance.excess_gpus(plan) == damage
    returned = sum(int(instance.gpus[job, i]) for job in range(instance.num_jobs) for i in servers)
    for relative_to, vacated in (("vacated", returned + damage), ("returned", returned)):
        fraction = instance.collateral_damage(plan, relative_to=relative_to)
        assert fraction == (damage / vacated if damage else 0)


@given(reclaims())
def test_greedy_methods_follow_their_definition(instance):
    for definition, greedy in GREEDY.items():
        alone = definition == "server_fraction" and instance.demand == 1
        expected = naive_greedy(instance, "job_count" if alone else definition)
        assert greedy(instance).servers.tolist() == expected
        costs = [float(cost) for cost in naive_costs(instance, definition)]
        assert heuristics.preemption_costs(instance)[definition] == pytest.approx(costs)


@pytest.mark.parametrize("seed", range(10))
def test_greedy_methods_follow_their_definition_on_generated_instances(seed):
    instance = generate(seed, num_servers=25, spread=0.8, demand=9)
    for definition, greedy in GREEDY.items():
        assert greedy(instance).servers.tolist() == naive_greedy(instance, definition)


def test_demand_of_one_takes_the_fewest_jobs():
    """Server 0 costs two quarters of a job but preempts two; server 1 costs one job and preempts one."""
    hosts = np.zeros((6, 5), bool)
    hosts[:2, [0, 2, 3, 4]] = True
    hosts[[2, 3, 4, 5], [1, 2, 3, 4]] = True
    one = Reclaim(hosts=hosts, gpus=hosts.astype(int), demand=1)
    assert naive_greedy(one, "server_fraction") == [0]
    assert heuristics.server_fraction(one).servers.tolist() == [1]
    assert one.objective(heuristics.server_fraction(one)) == optimum(one) == 1


@given(reclaims())
def test_local_search(instance):
    """Never worse than where it starts, and no swap of two servers improves it."""
    plan = heuristics.local_search(instance)
    value = instance.objective(plan)
    assert all(value <= instance.objective(greedy(instance)) for greedy in GREEDY.values())
    chosen = set(plan.servers.tolist())
    for inside in chosen:
        for outside in set(range(instance.num_servers)) - chosen:
            swapped = ReclaimPlan(servers=sorted(chosen - {inside} | {outside}))
            assert instance.objective(swapped) >= value


@given(reclaims())
def test_tabu_search(instance):
    """Never worse than where it starts, which it is without steps; optimal where one server decides."""
    start, plan = heuristics.local_search(instance), heuristics.tabu_search(instance)
    assert instance.violations(plan) == []
    assert instance.objective(plan) <= instance.objective(start)
    assert heuristics.tabu_search(instance, steps=0) == start
    if min(instance.demand, instance.num_servers - instance.demand) <= 1:
        assert instance.objective(plan) == optimum(instance)


def test_worse_swaps_lead_to_better_servers():
    """Of twelve reclaims of wide jobs that are scattered, swaps end at the fewest jobs in most, worse ones in all."""
    found = [generate(seed, num_servers=20, demand=8, spread=0.8, locality=0.0) for seed in range(12)]
    fewest = [formulations.solve(instance).objective for instance in found]
    swaps, steps = (
        [instance.objective(search(instance)) for instance in found]
        for search in (heuristics.local_search, heuristics.tabu_search)
    )
    assert sum(a == b for a, b in zip(swaps, fewest, strict=True)) <= 9
    assert steps == fewest


def test_random_depends_on_its_rng_only():
    instance = generate(0, num_servers=30, demand=10)
    assert heuristics.random(instance, rng=5) == heuristics.random(instance, rng=np.random.default_rng(5))
    assert heuristics.random(instance, rng=5) != heuristics.random(instance, rng=6)


def test_start_plan_is_never_lost():
    """Stopped at once, the solver still has the plan that it was given."""
    instance = generate(0, num_servers=80, demand=24, spread=1.0, locality=0.0)
    start = heuristics.local_search(instance)
    for limit in (1e-6, 0.3):
        solution = formulations.solve(instance, start=start, time_limit=limit)
        assert solution.status == "feasible"
        assert solution.objective <= instance.objective(start)
        assert solution.bound <= solution.objective


def test_start_plan_must_fit():
    with pytest.raises(PlanError, match="no server 9"):
        formulations.solve(six_servers(), start=ReclaimPlan(servers=[0, 1, 9]))


def test_users_add_constraints():
    model = formulations.build(six_servers())
    model.returned[4].fix(0)
    solution = formulations.solve(model)
    assert solution.objective == 4
    assert 4 not in solution.plan.servers


def test_read_without_values_is_refused():
    with pytest.raises(ValueError, match="has no value"):
        formulations.read(formulations.build(six_servers()))


def test_broken_rules_are_named():
    instance = six_servers()
    rules = {str(v) for v in instance.violations(ReclaimPlan(servers=[1, 1, 7, -1]))}
    assert rules == {"server_exists[7] by 1", "server_exists[-1] by 1", "server_once[1] by 1", "demand by 1"}
    assert [v.rule for v in instance.violations(ReclaimPlan(servers=[]))] == ["demand"]
    for judge in (instance.objective, instance.collateral_damage):
        with pytest.raises(PlanError, match="no server -1"):
            judge(ReclaimPlan(servers=[-1]))


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("demand", {"demand": -1}),
        ("gpus", {"gpus": [[1, 0], [0, 0]]}),
    ],
)
def test_bad_fields_are_named(field, fields):
    good = {"hosts": [[1, 0], [0, 1]], "gpus": [[1, 0], [0, 1]], "demand": 1}
    assert Reclaim(**good).num_servers == 2
    with pytest.raises(InstanceError, match=field):
        Reclaim(**{**good, **fields})


@pytest.mark.parametrize("seed", range(20))
def test_generated_clusters(seed):
    settings = [{}, {"spread": 1.0}, {"locality": 0.0}, {"locality": 1.0, "elastic": 1.0}, {"jobs_per_server": 0.01}]
    for options in settings:
        instance = generate(seed, num_servers=15, **options)
        assert instance.hosts.any(axis=1).all()
        assert (instance.gpus.sum(axis=0) <= 8).all()
        assert instance.demand == 3
    assert generate(seed, num_servers=1).demand == 1


@pytest.mark.slow
def test_spread_is_a_hardness_dial():
    """Without spread Algorithm 1 is optimal; with it, it errs on most instances."""
    misses = {0.0: 0, 1.0: 0}
    for wide in misses:
        for seed in range(20):
            instance = generate(seed, num_servers=20, demand=6, spread=wide, locality=1.0)
            optimum = formulations.solve(instance).objective
            misses[wide] += instance.objective(heuristics.server_fraction(instance)) > optimum
    assert misses[0.0] == 0
    assert misses[1.0] >= 10
