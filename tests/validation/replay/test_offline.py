"""What hindsight could do: against other programs, brute force, and everything that is replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations_with_replacement, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import EFFORT
from validation.catalogue import entry
from validation.replay import Costs, Jobs, decider, replay
from validation.replay.offline import offline
from validation.replay.settings import aryl, elasticflow, shockwave, sia, synergy
from validation.replay.settings.afs import Elastic
from validation.replay.settings.elasticflow import ElasticFlow
from validation.replay.settings.gavel import Policy
from validation.replay.ways import Ways

from .jobs import jobs_of

pyscipopt = pytest.importorskip("pyscipopt", reason="SCIP comes with the test extra")


def elastic(arrivals: Any, work: Any, curves: Any, **options: Any) -> Elastic:
    curves = np.array(curves, float)
    jobs = Jobs(range(len(work)), arrivals, work, curves.max(axis=1))
    requests = np.zeros(len(work), np.int64)
    return Elastic(jobs, curves.shape[1] - 1, curves, requests, **{"reallocation": "any_time"} | options)


def hetero(arrivals: Any, work: Any, throughputs: Any, workers: Any, **options: Any) -> Policy:
    throughputs, n = np.array(throughputs, float), len(work)
    fastest = throughputs.max(axis=1)
    if "together" in options:
        fastest = np.maximum(fastest, options["together"].max())
    return Policy(
        Jobs(range(n), arrivals, work, fastest),
        "gavel.max_min_fairness",
        throughputs=throughputs,
        num_workers=np.array(workers),
        pools=np.arange(len(workers)),
        scale_factors=np.ones(n, np.int64),
        **options,
    )


# --- against other programs ---


def enumerated(ways: Ways, releases: Any, work: Any) -> tuple[float, float]:
    """Least sum of the ends, and least last end: the best of all orders of releases and ends, a program each."""
    n, begins = len(work), sorted(set(releases))
    rates = np.zeros((len(ways.takes), n))
    rates[ways.way, ways.job] = ways.rate
    found = [
        _of_order(ways, rates, releases, work, begins, order, within)
        for order in permutations(range(n))
        for within in combinations_with_replacement(range(len(begins)), n)
        if all(begins[at] >= releases[job] for at, job in zip(within, order, strict=True))
    ]
    return min(one[0] for one in found), min(one[1] for one in found)


def _of_order(
    ways: Ways, rates: Any, releases: Any, work: Any, begins: list[float], order: Any, within: Any
) -> tuple[float, float]:
    model = pyscipopt.Model()
    model.hideOutput()
    ends = [model.addVar(lb=0, ub=None) for _ in order]
    points: list[tuple[Any, Any]] = []
    for at, begin in enumerate(begins):
        points.append((model.addVar(lb=begin, ub=begin), None))
        for job, end, where in zip(order, ends, within, strict=True):
            if where == at:
                points.append((end, job))
    there: set[int] = set()
    done: list[Any] = [0.0] * len(work)
    released = iter(begins)
    for (start, over), (stop, _) in pairwise(points):
        if over is None:
            begin = next(released)
            there |= {job for job in range(len(work)) if releases[job] == begin}
        there -= {over}
        model.addCons(stop - start >= 0)
        times = [model.addVar(lb=0, ub=None if set(np.flatnonzero(row)) <= there else 0) for row in rates]
        for job in range(len(work)):
            mine = [x for x, row in zip(times, rates[:, job], strict=True) if row]
            model.addCons(pyscipopt.quicksum(mine) <= stop - start)
            done[job] += pyscipopt.quicksum(x * row for x, row in zip(times, rates[:, job], strict=True) if row)
        for resource, capacity in enumerate(ways.capacity.tolist()):
            taken = pyscipopt.quicksum(x * row for x, row in zip(times, ways.takes[:, resource], strict=True) if row)
            model.addCons(taken <= capacity * (stop - start))
    for job, amount in enumerate(work):
        model.addCons(done[job] / amount == 1)
    values = []
    for goal in (pyscipopt.quicksum(ends), ends[-1]):
        model.setObjective(goal)
        model.optimize()
        values.append(model.getObjVal() if model.getStatus() == "optimal" else np.inf)
        model.freeTransform()
    return values[0], values[1]


@pytest.mark.parametrize("seed", range(4))
def test_times_are_those_of_the_best_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrivals, work = np.sort(rng.integers(0, 6, 3)).astype(float), rng.integers(1, 9, 3).astype(float)
    gains = -np.sort(-rng.uniform(0, 1, (3, 3)), axis=1)
    curves = np.concatenate([np.zeros((3, 1)), np.cumsum(gains, axis=1)], axis=1)
    types = rng.uniform(0.2, 2, (3, 2))
    pairs = {"kinds": np.arange(3), "together": rng.uniform(0.1, 1.2, (3, 3, 2, 2))}
    pairs["together"] = (pairs["together"] + pairs["together"].transpose(1, 0, 2, 3)[..., ::-1]) / 2
    for setting in (
        elastic(arrivals, work, curves),
        hetero(arrivals, work, types, [1, 1]),
        hetero(arrivals, work, types, [1, 1], **(pairs if seed % 2 else {})),
    ):
        total, last = enumerated(setting.ways(), arrivals.tolist(), work.tolist())
        found, argued = offline(setting), offline(setting, time_limit=0)
        assert found["average_jct"].value == pytest.approx((total - arrivals.sum()) / 3, rel=1e-6)
        assert found["makespan"].value == pytest.approx(last - arrivals[0], rel=1e-6)
        assert found["average_jct"].exact
        assert found["makespan"].exact
        for metric in found:
            assert argued[metric].value <= found[metric].value * (1 + 1e-6)
            assert argued[metric].proof == "argument"


def unit_by_unit(arrivals: tuple[int, ...], work: tuple[int, ...]) -> int:
    """Least sum of the ends on one machine, by all schedules that change at whole times."""

    @cache
    def rest(now: int, left: tuple[int, ...]) -> int:
        if not any(left):
            return 0
        here = [job for job in range(len(left)) if left[job] and arrivals[job] <= now]
        if not here:
            return rest(now + 1, left)
        best = []
        for job in here:
            after = (*left[:job], left[job] - 1, *left[job + 1 :])
            best.append(rest(now + 1, after) + (now + 1 if not after[job] else 0))
        return min(best)

    return rest(0, work)


@pytest.mark.parametrize("seed", range(6))
def test_one_machine_is_known_without_a_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrivals, work = np.sort(rng.integers(0, 8, 4)), rng.integers(1, 6, 4)
    arrivals -= arrivals[0]
    least = unit_by_unit(tuple(arrivals.tolist()), tuple(work.tolist()))
    found = offline(elastic(arrivals, work, np.tile([0.0, 1.0], (4, 1))), time_limit=0)["average_jct"]
    assert found.value == pytest.approx((least - arrivals.sum()) / 4)


def slot_by_slot(setting: ElasticFlow, first: list[int], last: list[int]) -> int:
    """Most deadlines, by all numbers of GPUs in each slot."""
    curves, n = setting.curves * setting.slot_seconds, len(setting.jobs)
    every = [gpus for gpus in product(range(setting.num_gpus + 1), repeat=n) if sum(gpus) <= setting.num_gpus]

    @cache
    def most(slot: int, left: tuple[float, ...]) -> int:
        met = sum(one <= 0 for one in left)
        if slot == max(last):
            return met
        able = [first[j] <= slot < last[j] and left[j] > 0 for j in range(n)]
        options = {tuple(g if able[j] else 0 for j, g in enumerate(gpus)) for gpus in every}
        after = (tuple(round(max(0.0, left[j] - curves[j, g]), 9) for j, g in enumerate(gpus)) for gpus in options)
        return max(most(slot + 1, one) for one in set(after))

    return most(0, tuple(setting.jobs.work.tolist()))


@pytest.mark.parametrize("seed", range(6))
def test_deadlines_are_those_of_the_best_plan(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, gpus = 3, 2
    first, length = np.sort(rng.integers(0, 3, n)), rng.integers(1, 4, n)
    first -= first[0]
    concave = seed % 2 == 0
    curves = np.array([[0, 2, rng.integers(2, 5)] if concave else [0, 1, rng.integers(2, 5)] for _ in range(n)], float)
    setting = ElasticFlow(
        jobs=Jobs(range(n), first.astype(float), rng.integers(2, 9, n), curves.max(axis=1), first + length + 0.0),
        num_gpus=gpus,
        throughputs=curves,
        slot_seconds=1.0,
        turned_away="leave",
    )
    best = slot_by_slot(setting, first.tolist(), (first + length).tolist())
    found = offline(setting)["deadlines_met"]
    assert found.value >= best / n - 1e-9
    if found.exact:
        assert found.value == pytest.approx(best / n)
    assert found.exact or not concave


def test_of_many_that_share_each_has_its_best_partner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is a bound on what the pairs that there are can do."""
    rng = np.random.default_rng(0)
    together = rng.uniform(0.3, 0.9, (3, 3, 2, 2))
    together = (together + together.transpose(1, 0, 2, 3)[..., ::-1]) / 2
    options = {"kinds": np.array([0, 1, 2, 1]), "together": together}
    setting = hetero([0, 1, 1, 2], rng.uniform(2, 9, 4), rng.uniform(0.5, 1, (4, 2)), [1, 1], **options)
    pairs = offline(setting)
    monkeypatch.setattr("validation.replay.settings.gavel.MOST_SHARING", 3)
    best = offline(setting)
    for metric in ("average_jct", "makespan"):
        assert pairs[metric].exact
        assert not best[metric].exact
        assert 0 < best[metric].value <= pairs[metric].value * (1 + 1e-6)


# --- by hand ---


def test_what_changes_cost_or_wait_for_is_no_optimum() -> None:
    one = elastic([0, 0], [1, 2], [[0, 1], [0, 1]])
    found = offline(one)["average_jct"]
    assert (found.value, found.exact) == (pytest.approx(2.0), True)
    assert not offline(one, costs=Costs(restart=1))["average_jct"].exact
    # The second comes at 1 and waits for the round that begins at 10, in which it is done at 12.
    late = elastic([0, 1], [1, 2], [[0, 1], [0, 1]])
    found = offline(late, round_length=10.0)["average_jct"]
    assert (found.value, found.exact) == (pytest.approx((1 + 11) / 2), False)


def test_jobs_without_work_count_and_take_no_time() -> None:
    found = offline(elastic([0, 2, 9], [0, 3, 0], [[0, 1]] * 3))
    assert found["average_jct"].value == pytest.approx(1)
    assert found["makespan"].value == pytest.approx(9)
    assert offline(elastic([], [], np.zeros((0, 2)))) == {}


def test_who_may_be_turned_away_has_no_time() -> None:
    setting = elasticflow.generate(0, num_jobs=3, turned_away="leave")
    assert set(offline(setting)) == {"deadlines_met"}
    assert set(offline(elasticflow.generate(0, num_jobs=3))) == {"average_jct", "makespan", "deadlines_met"}


# --- against everything that is replayed ---


def drawn_elastic(rng: np.random.Generator) -> Elastic:
    n = int(rng.integers(1, 5))
    curves = np.concatenate([np.zeros((n, 1)), np.sort(rng.uniform(0.1, 3, (n, 3)), axis=1)], axis=1)
    options = {"reallocation": rng.choice(["any_time", "at_completions"]), "preemption": bool(rng.integers(2))}
    return elastic(np.sort(rng.uniform(0, 20, n)), rng.uniform(1, 20, n), curves, **options)


def drawn_hetero(rng: np.random.Generator) -> Policy:
    n = int(rng.integers(1, 5))
    options = {"round_length": 2.0} if rng.integers(2) else {}
    types = rng.uniform(0.1, 2, (n, 2))
    return hetero(np.sort(rng.uniform(0, 20, n)), rng.uniform(1, 20, n), types, rng.integers(1, 3, 2), **options)


def drawn_elasticflow(rng: np.random.Generator) -> ElasticFlow:
    options = {"turned_away": str(rng.choice(["leave", "best_effort"])), "best_effort": float(rng.choice([0, 0.4]))}
    return elasticflow.generate(rng, num_jobs=int(rng.integers(1, 6)), num_gpus=4, **options)


def drawn_sia(rng: np.random.Generator) -> sia.Sia:
    n, sizes = int(rng.integers(1, 5)), np.array([1, 2, 1])
    rates = rng.uniform(0.1, 2, (n, 3))
    return sia.Sia(
        jobs=jobs_of(rng.uniform(1, 20, n), rates.max(axis=1), np.sort(rng.uniform(0, 20, n))),
        num_gpus=np.array([2, 1]),
        config_types=np.array([0, 0, 1]),
        config_gpus=sizes,
        rates=rates,
        restart_seconds=float(rng.choice([0, 1])),
        round_length=2.0,
    )


def drawn_shockwave(rng: np.random.Generator) -> shockwave.Shockwave:
    n = int(rng.integers(1, 5))
    return shockwave.Shockwave(
        jobs=jobs_of(rng.uniform(1, 20, n), rng.uniform(0.1, 2, n), np.sort(rng.uniform(0, 20, n))),
        num_gpus=2,
        scale_factors=rng.integers(1, 3, n),
        epochs=rng.integers(1, 6, n),
        num_rounds=3,
        round_length=2.0,
    )


DRAWN: dict[str, tuple[str, Callable[[np.random.Generator], Any]]] = {
    "afs": ("afs.elastic_sharing", drawn_elastic),
    "gavel": ("gavel.max_min_fairness", drawn_hetero),
    "synergy": ("synergy.tuning", lambda rng: synergy.generate(rng, num_jobs=int(rng.integers(1, 5)), num_servers=1)),
    "aryl": (
        "aryl.elastic_allocation",
        lambda rng: aryl.generate(rng, num_jobs=int(rng.integers(1, 5)), num_servers=2),
    ),
    "elasticflow": ("elasticflow.admission", drawn_elasticflow),
    "sia": ("sia.goodput", drawn_sia),
    "shockwave": ("shockwave.window", drawn_shockwave),
}


def deciders(problem: str) -> Iterable[str]:
    return ["exact", *(name for name, one in entry(problem).heuristics.items() if not one.random)]


@pytest.mark.parametrize("paper", DRAWN)
@settings(max_examples=round(4 * EFFORT), deadline=None)
@given(data=st.data())
def test_no_replay_is_beyond_what_hindsight_could_do(paper: str, data: st.DataObject) -> None:
    problem, draw = DRAWN[paper]
    setting = draw(np.random.default_rng(data.draw(st.integers(0, 2**32))))
    problem = getattr(setting, "problem", problem)
    who = data.draw(st.sampled_from([*deciders(problem)]))
    costs = Costs(*data.draw(st.sampled_from([(0, 0), (0.5, 0.3)])))
    found = replay(setting, decider(problem, who, time_limit=10), costs=costs).metrics()
    for limit in (0, 1):
        for metric, bound in offline(setting, costs=costs, time_limit=limit).items():
            if metric == "deadlines_met":
                assert found[metric] <= bound.value + 1e-9, (who, metric)
            else:
                assert found[metric] >= bound.value * (1 - 1e-6), (who, metric)
