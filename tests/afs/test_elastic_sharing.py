"""afs.elastic_sharing: the model against enumeration in fractions, the schedulers, schedules, and real curves."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
import instances
from heuristics.afs import elastic_sharing as schedulers
from instances.afs.elastic_sharing import (
    ElasticSharing,
    Schedule,
    appendix_a,
    bounded_linear,
    generate,
    simulate,
    three_job_cycle,
)
from instances.afs.metrics import metrics, timeline
from instances.afs.traces import RepairWarning, curves, from_trace, read_jobs
from instances.base import OPTIMALITY_TOLERANCE, InstanceError, PlanError

ALL = {
    name: getattr(schedulers, name)
    for name in (
        "afs_l",
        "afs_p",
        "srtf",
        "srsf",
        "srtf_elastic",
        "srsf_elastic",
        "max_min",
        "optimus",
        "aryl_two_phase",
    )
}
HOUR = 3600.0


# --- brute force: exact fractions, no solver -----------------------------------------------------


def best_at_completions(num_gpus, tables, work):
    """Least average JCT when shares change at completions only: every share for every job, each time."""
    best = math.inf

    def go_on(left, total):
        nonlocal best
        active = [j for j, rest in enumerate(left) if rest > 0]
        if not active:
            best = min(best, total)
            return
        for shares in itertools.product(range(num_gpus + 1), repeat=len(active)):
            rates = [tables[j][s] for j, s in zip(active, shares, strict=True)]
            if sum(shares) > num_gpus or not any(rates):
                continue
            span = min(left[j] / rate for j, rate in zip(active, rates, strict=True) if rate)
            if total + span * len(active) >= best:
                continue
            rest = list(left)
            for j, rate in zip(active, rates, strict=True):
                rest[j] -= rate * span
            go_on(rest, total + span * len(active))

    go_on([Fraction(w) for w in work], Fraction(0))
    return best / len(work)


def best_any_time(num_gpus, tables, work):
    """Least average JCT over all schedules.

    For one order of completions it is a linear program over the time spent in each combination of
    shares, with one row per job, so that some optimum uses as many combinations as there are jobs.
    All of these are tried.
    """
    n = len(work)
    best = math.inf
    for order in itertools.permutations(range(n)):
        price = {}
        for done in range(n):
            for shares in itertools.product(range(num_gpus + 1), repeat=n - done):
                speeds = [Fraction(0)] * n
                for j, s in zip(order[done:], shares, strict=True):
                    speeds[j] = Fraction(tables[j][s])
                if sum(shares) <= num_gpus and any(speeds):
                    price[tuple(speeds)] = min(price.get(tuple(speeds), n), n - done)
        for basis in itertools.combinations(price, n):
            times = solved([[speeds[j] for speeds in basis] for j in range(n)], [Fraction(w) for w in work])
            if times is not None and min(times) >= 0:
                best = min(best, sum(price[speeds] * t for speeds, t in zip(basis, times, strict=True)))
    return best / n


def solved(matrix, right):
    """Gauss-Jordan in fractions; None for a singular matrix."""
    rows = [[*row, b] for row, b in zip(matrix, right, strict=True)]
    for c in range(len(rows)):
        pivot = next((r for r in range(c, len(rows)) if rows[r][c]), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [x / rows[c][c] for x in rows[c]]
        for r in range(len(rows)):
            if r != c and rows[r][c]:
                rows[r] = [x - rows[r][c] * y for x, y in zip(rows[r], rows[c], strict=True)]
    return [row[-1] for row in rows]


def small(rng, *, concave, sizes):
    """Tables and work in small whole numbers, with ties, flat pieces and useless first GPUs."""
    n, num_gpus = sizes[int(rng.integers(len(sizes)))]
    tables = []
    for _ in range(n):
        steps = rng.integers(0, 5, num_gpus)
        if concave:
            steps = np.sort(steps)[::-1]
        if not steps.any():
            steps[0] = 1
        tables.append([0, *np.cumsum(steps).tolist()])
    return num_gpus, tables, rng.integers(1, 13, n).tolist()


def instance_of(num_gpus, tables, work, reallocation):
    return ElasticSharing(
        num_gpus=num_gpus, work=np.array(work, float), throughputs=np.array(tables, float), reallocation=reallocation
    )


def test_brute_forces_agree_where_they_must():
    # Two jobs that scale linearly: one after the other, the shorter first.
    assert best_at_completions(2, [[0, 1, 2], [0, 1, 2]], [4, 6]) == Fraction(2 + 5, 2)
    assert best_any_time(2, [[0, 1, 2], [0, 1, 2]], [4, 6]) == Fraction(2 + 5, 2)
    # Rigid jobs that exclude each other.
    assert best_any_time(2, [[0, 0, 1], [0, 0, 1]], [3, 2]) == Fraction(2 + 5, 2)


@pytest.mark.parametrize("concave", [True, False])
def test_at_completions_equals_enumeration(concave):
    rng = np.random.default_rng(1 + concave)
    for _ in range(110):
        case = small(rng, concave=concave, sizes=[(1, 4), (2, 4), (2, 2), (3, 2), (3, 3)])
        solution = formulations.solve(instance_of(*case, "at_completions"))
        assert solution.status == "optimal", case
        exact = float(best_at_completions(*case))
        assert solution.objective == pytest.approx(exact, rel=1e-7), case
        assert solution.bound == pytest.approx(exact, rel=OPTIMALITY_TOLERANCE), case


def test_any_time_equals_enumeration_for_concave_curves():
    rng = np.random.default_rng(3)
    for _ in range(150):
        case = small(rng, concave=True, sizes=[(1, 4), (2, 5), (2, 4), (2, 3), (3, 2)])
        solution = formulations.solve(instance_of(*case, "any_time"))
        assert solution.status == "optimal", case
        assert solution.objective == pytest.approx(float(best_any_time(*case)), rel=1e-7), case


def test_any_time_is_a_bound_for_other_curves_and_says_so():
    rng = np.random.default_rng(4)
    loose = 0
    for _ in range(150):
        case = small(rng, concave=False, sizes=[(2, 5), (2, 4), (2, 3), (3, 2)])
        instance = instance_of(*case, "any_time")
        solution = formulations.solve(instance)
        exact = float(best_any_time(*case))
        assert solution.bound <= exact * (1 + 1e-7), case
        assert solution.objective >= exact * (1 - 1e-7), case
        assert ("not concave" in solution.message) == (not instance.concave.all())
        if solution.status == "optimal":
            assert solution.objective == pytest.approx(exact, rel=1e-6), case
        else:
            assert solution.status == "feasible"
            loose += 1
    assert loose > 10


def test_the_two_classes_can_differ():
    tables = [[0, 4, 5, 5], [0, 0, 1, 5], [0, 4, 5, 5]]
    assert best_at_completions(3, tables, [6, 5, 6]) == Fraction(127, 75)
    assert best_any_time(3, tables, [6, 5, 6]) == Fraction(5, 3)
    solution = formulations.solve(instance_of(3, tables, [6, 5, 6], "at_completions"))
    assert solution.objective == pytest.approx(127 / 75)
    relaxed = formulations.solve(instance_of(3, tables, [6, 5, 6], "any_time"))
    assert relaxed.bound == pytest.approx(5 / 3)
    assert relaxed.status == "feasible"


@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
def test_scip_agrees(reallocation):
    rng = np.random.default_rng(5)
    for _ in range(4):
        instance = instance_of(*small(rng, concave=True, sizes=[(2, 4), (3, 3)]), reallocation)
        first, second = formulations.solve(instance), formulations.solve(instance, solver="scip")
        assert second.status == "optimal"
        assert first.objective == pytest.approx(second.objective, rel=1e-6)


def test_equal_jobs_and_equal_curves_do_not_lose_the_optimum_to_symmetry_breaking():
    rng = np.random.default_rng(6)
    for _ in range(25):
        num_gpus, tables, work = small(rng, concave=True, sizes=[(2, 3), (3, 3)])
        tables = [tables[0]] * len(work)
        if rng.integers(2):
            work = [work[0]] * len(work)
        case = num_gpus, tables, work
        for reallocation, best in (("at_completions", best_at_completions), ("any_time", best_any_time)):
            solution = formulations.solve(instance_of(*case, reallocation))
            assert solution.objective == pytest.approx(float(best(*case)), rel=1e-7), (case, reallocation)


def test_seconds_beside_days():
    """Two jobs of very different length, against every first split of the GPUs."""
    rng = np.random.default_rng(9)
    for _ in range(80):
        gpus = np.arange(9)
        tables = np.array(
            [10 ** rng.uniform(-3, 3) * np.minimum(gpus, rng.integers(1, 9)) ** rng.uniform(0.2, 1) for _ in range(2)]
        )
        work = np.array([1.0, 10 ** rng.uniform(3, 6)]) * np.round(rng.uniform(1, 9, 2)) * tables[:, 1]
        totals = []
        for a in range(9):
            alone = [work[0] / tables[0][a] if a else math.inf, work[1] / tables[1][8 - a] if a < 8 else math.inf]
            last = int(alone[1] > alone[0])
            first = min(alone)
            rate = tables[last][(a, 8 - a)[last]]
            totals.append(2 * first + (work[last] - rate * first) / tables[last][8])
        instance = ElasticSharing(num_gpus=8, work=work, throughputs=tables)
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert solution.objective == pytest.approx(min(totals) / 2, rel=OPTIMALITY_TOLERANCE)


def test_linear_jobs_run_shortest_first():
    work = np.array([70.0, 20.0, 90.0, 20.0, 40.0])
    instance = ElasticSharing(
        num_gpus=8, work=work, throughputs=np.tile(np.arange(9.0), (5, 1)), reallocation="any_time"
    )
    optimum = np.sort(work / 8).cumsum().mean()
    assert formulations.solve(instance).objective == pytest.approx(optimum)
    for name in ("srtf", "srsf", "srtf_elastic", "srsf_elastic"):
        assert instance.objective(ALL[name](instance)) == pytest.approx(optimum)


def test_jobs_that_arrive_over_time_have_a_bound_but_no_exact_model():
    instance = generate(0, num_jobs=3, arrival_gap=2000.0)
    with pytest.raises(formulations.ModelError, match=r"job 1 arrives at .* needs all arrivals 0"):
        formulations.build(instance)
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan, solution.objective) == ("unknown", None, None)
    assert "no exact model" in solution.message
    alone = (instance.work / instance.throughputs[:, -1]).mean()
    best = min(instance.objective(scheduler(instance)) for scheduler in ALL.values())
    assert alone <= solution.bound <= best * (1 + 1e-6)


def test_the_bound_for_arrivals_can_be_the_optimum():
    # The second job arrives when the first is done; alone, each takes 5 s.
    apart = two_jobs(arrivals=[0.0, 5.0])
    assert formulations.solve(apart).bound == pytest.approx(5.0)
    # It arrives at once but for a moment: one after the other, 5 s and 10 s.
    together = two_jobs(arrivals=[0.0, 1e-3])
    assert formulations.solve(together).bound == pytest.approx(7.5 - 0.5e-3)


def test_users_can_extend_the_model():
    instance = generate(2, num_jobs=3)
    model = formulations.build(instance)
    free = formulations.solve(model).objective
    model.last_first = __import__("pyomo.environ").environ.Constraint(expr=model.position[0, 0] == 1)
    held = formulations.solve(model)
    assert held.status == "optimal"
    assert held.objective >= free - 1e-6
    assert np.argmin(instance.completions(held.plan)) == 0


# --- the paper's example, and the scan -----------------------------------------------------------


def test_appendix_a_is_1_75_hours_and_1_25_without_the_wait():
    instance = appendix_a()
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(1.75 * HOUR)
    a, b = instance.completions(solution.plan)
    assert (a / HOUR, b / HOUR) == (pytest.approx(1.0), pytest.approx(2.5))
    wait = timeline(instance, solution.plan).waiting_times
    assert wait.tolist() == pytest.approx([0.0, 1.0 * HOUR])
    assert (a + b - wait.sum()) / 2 == pytest.approx(1.25 * HOUR)
    assert instance.objective(schedulers.afs_l(instance)) == pytest.approx(1.75 * HOUR)


def reference_afs_l(num_gpus, tables, left, lengths):
    """Algorithm 1 as it reads, one GPU at a time, from scratch for each; ``lengths(j, s)``."""
    shares = dict.fromkeys(left, 0)
    for _ in range(num_gpus):
        able = [j for j in left if shares[j] < num_gpus and tables[j][shares[j] + 1] > tables[j][shares[j]]]
        if not able:
            break
        best = able[0]
        for j in able[1:]:
            if shares[best] == 0 and shares[j] == 0:
                if lengths(j, 1) < lengths(best, 1):
                    best = j
                continue
            a, b = best, j
            if lengths(b, shares[b]) < lengths(a, shares[a]):
                a, b = b, a
            p_a, p_a_more = tables[a][shares[a]], tables[a][shares[a] + 1]
            p_b, p_b_more = tables[b][shares[b]], tables[b][shares[b] + 1]
            best = b if (p_b_more - p_b) / p_b_more > (p_a_more - p_a) / p_a else a
        shares[best] += 1
    return shares


@pytest.mark.parametrize("linear", [False, True])
def test_afs_l_follows_algorithm_1_to_the_letter(linear):
    rng = np.random.default_rng(7)
    for seed in range(40):
        instance = generate(rng, num_jobs=int(rng.integers(1, 9)), num_gpus=8, loss=0.0 if linear else 0.9)
        tables = instance.throughputs.tolist()
        left = dict(enumerate(instance.work.tolist()))
        plan = schedulers.afs_l(instance)
        assert instance.violations(plan) == []

        def lengths(j, s, left=left, tables=tables):
            return left[j] / tables[j][s] if s else math.inf

        now, intervals = 0.0, []
        while left:
            shares = reference_afs_l(8, tables, left, lengths)
            span = min(lengths(j, s) for j, s in shares.items())
            now += span
            intervals.append((now, [shares.get(j, 0) for j in range(instance.num_jobs)]))
            for j, s in shares.items():
                left[j] -= tables[j][s] * span
            for j in [j for j, rest in left.items() if rest <= 1e-9 * instance.work[j]]:
                del left[j]
        merged = [row for at, row in enumerate(intervals) if at + 1 == len(intervals) or intervals[at + 1][1] != row[1]]
        assert plan.times[1:].tolist() == pytest.approx([end for end, _ in merged]), seed
        assert plan.shares.tolist() == [shares for _, shares in merged], seed


def test_the_comparison_of_afs_l_goes_round_in_a_circle():
    instance = three_job_cycle()
    now, then = instance.throughputs[:, 1], instance.throughputs[:, 2]
    if_shorter, if_longer = (then - now) / now, (then - now) / then

    def wins(i, j):
        a, b = sorted((i, j))  # lower jobs are shorter here
        return (b if if_longer[b] > if_shorter[a] else a) == i

    assert wins(0, 1)
    assert wins(1, 2)
    assert wins(2, 0)
    receivers = set()
    for order in itertools.permutations(range(3)):
        turned = replace(instance, work=instance.work[list(order)], throughputs=instance.throughputs[list(order)])
        first = schedulers.afs_l(turned).shares[0]
        receivers.add(order[int(first.argmax())])
    assert receivers == {0, 1, 2}
    assert int(schedulers.afs_l(instance).shares[0].argmax()) == 2


def test_afs_p_is_blind_to_lengths():
    instance = generate(3, num_jobs=5, num_gpus=8)
    longer = replace(instance, work=instance.work * np.array([1, 3, 5, 7, 9]))
    assert np.array_equal(schedulers.afs_p(instance).shares[0], schedulers.afs_p(longer).shares[0])


def test_afs_p_in_slices_serves_every_job_early():
    instance = ElasticSharing(
        num_gpus=1,
        work=np.array([1000.0, 1000.0, 10.0]),
        throughputs=np.tile([0.0, 1.0], (3, 1)),
        reallocation="any_time",
    )
    assert instance.objective(schedulers.afs_p(instance)) == pytest.approx((1000 + 2000 + 2010) / 3)
    plan = schedulers.afs_p(instance, quantum=5.0)
    assert instance.violations(plan) == []
    # Slices of 5 s in turn: the short job ends with its second, at 30 s.
    assert instance.completions(plan)[2] == pytest.approx(30.0)
    assert instance.completions(plan).max() == pytest.approx(2010.0)


def test_afs_p_refuses_slices_where_they_are_not_allowed():
    with pytest.raises(ValueError, match="quantum: slices need"):
        schedulers.afs_p(generate(0), quantum=10.0)
    with pytest.raises(ValueError, match=r"quantum: got 0\.0"):
        schedulers.afs_p(generate(0, reallocation="any_time"), quantum=0.0)


def test_schedulers_on_rigid_jobs_by_hand():
    # 4 GPUs; job 0 needs 3 for 30 s, job 1 needs 2 for 10 s, job 2 runs on 1 or 2, 40 or 20 s.
    tables = np.array([bounded_linear(3, 3, 1.0, 4), bounded_linear(2, 2, 1.0, 4), bounded_linear(1, 2, 1.0, 4)])
    instance = ElasticSharing(num_gpus=4, work=np.array([90.0, 20.0, 40.0]), throughputs=tables)
    assert instance.min_shares.tolist() == [3, 2, 1]
    assert instance.max_shares.tolist() == [3, 2, 2]
    assert instance.concave.tolist() == [False, False, True]
    expected = {
        # Jobs 1 and 2 first, then job 0.
        "srtf": ([[0, 2, 2], [0, 0, 2], [3, 0, 0]], [50.0, 10.0, 20.0]),
        # At 10 s job 0, the next in order of the others, waits for 3 GPUs.
        "srtf_elastic": ([[0, 2, 2], [0, 0, 2], [3, 0, 0]], [50.0, 10.0, 20.0]),
        # Phase one starts job 1 (10 s) and job 2 (40 s on one GPU); job 0 does not fit, and phase
        # two gives job 2 its second GPU, which it gives back to job 0 at 10 s.
        "aryl_two_phase": ([[0, 2, 2], [3, 0, 1], [3, 0, 0]], [40.0, 10.0, 30.0]),
    }
    for name, (shares, completions) in expected.items():
        plan = ALL[name](instance)
        assert plan.shares.tolist() == shares, name
        assert instance.completions(plan).tolist() == pytest.approx(completions), name


def test_max_min_and_optimus_by_hand():
    # Job 0 gains 9 iterations/s from the second GPU, job 1 gains 1; both have 100 to do.
    instance = ElasticSharing(
        num_gpus=3, work=np.array([100.0, 100.0]), throughputs=np.array([[0.0, 10, 19, 20], [0.0, 10, 11, 12]])
    )
    assert schedulers.optimus(instance).shares[0].tolist() == [2, 1]
    assert schedulers.max_min(instance).shares[0].tolist() == [2, 1]
    turned = replace(instance, throughputs=instance.throughputs[::-1])
    assert schedulers.optimus(turned).shares[0].tolist() == [1, 2]
    # The tie goes to the lower job.
    assert schedulers.max_min(turned).shares[0].tolist() == [2, 1]


# --- all schedulers, all instances ---------------------------------------------------------------

cases = st.builds(
    generate,
    st.integers(0, 10**6),
    num_jobs=st.integers(1, 6),
    num_gpus=st.integers(1, 9),
    loss=st.sampled_from([0.0, 0.5, 1.0]),
    rigid=st.sampled_from([0.0, 0.5, 1.0]),
    arrival_gap=st.sampled_from([0.0, 500.0]),
    reallocation=st.sampled_from(["at_completions", "any_time"]),
)


@given(cases)
@settings(max_examples=80)
def test_schedules_are_feasible_repeatable_and_leave_the_instance_alone(instance):
    before = instance.digest
    for name, scheduler in ALL.items():
        plan = scheduler(instance)
        assert instance.violations(plan) == [], name
        assert plan == scheduler(instance), name
        assert Schedule.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
        alone = instance.work / instance.throughputs[:, -1]
        assert (instance.completions(plan) - instance.arrivals >= alone * (1 - 1e-9)).all(), name
    assert ElasticSharing.from_dict(instance.to_dict()).digest == before


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.7]), st.sampled_from([0.0, 0.5]))
@settings(max_examples=25)
def test_no_scheduler_beats_the_bound(seed, num_jobs, loss, rigid):
    instance = generate(seed, num_jobs=num_jobs, num_gpus=4, loss=loss, rigid=rigid)
    solution = formulations.solve(instance)
    relaxed = formulations.solve(replace(instance, reallocation="any_time"))
    assert solution.status == "optimal"
    assert relaxed.bound <= solution.objective * (1 + 1e-6)
    for name, scheduler in ALL.items():
        assert instance.objective(scheduler(instance)) >= solution.bound * (1 - 1e-6), name


@given(cases)
def test_json_round_trip(instance):
    assert instances.read(json.loads(json.dumps(instance.to_dict()))) == instance


def test_schedules_are_checked_to_the_iteration():
    """Completion times from the plan alone, in fractions, against the simulator's."""
    rng = np.random.default_rng(8)
    for _ in range(30):
        num_gpus, tables, work = small(rng, concave=True, sizes=[(3, 4), (4, 3)])
        instance = instance_of(num_gpus, tables, work, "at_completions")
        for scheduler in ALL.values():
            plan = scheduler(instance)
            times = [Fraction(t) for t in plan.times.tolist()]
            for j in range(len(work)):
                done, completion = Fraction(0), None
                for k, shares in enumerate(plan.shares.tolist()):
                    rate, span = tables[j][shares[j]], times[k + 1] - times[k]
                    if completion is None and done + rate * span >= Fraction(work[j]) * (1 - Fraction(1, 10**12)):
                        completion = times[k] + (Fraction(work[j]) - done) / rate
                    done += rate * span
                assert abs(done - work[j]) < Fraction(work[j], 10**9)
                assert instance.completions(plan)[j] == pytest.approx(float(completion), rel=1e-12)


# --- schedules that are not right ----------------------------------------------------------------


def two_jobs(**changes):
    fields = {"num_gpus": 2, "work": [10.0, 10.0], "throughputs": [[0, 1, 2], [0, 1, 2]], **changes}
    return ElasticSharing(**fields)


@pytest.mark.parametrize(
    ("changes", "times", "shares", "broken"),
    [
        ({}, [0, 5, 10], [[2, 0], [0, 2]], []),
        ({}, [0, 5, 10], [[2, 1], [0, 1]], [("gpus", (0,), 1.0)]),
        ({}, [0, 5, 10], [[3, 0], [0, 2]], [("share_range", (0, 0), 1.0)]),
        ({}, [0, 5, 10], [[2, 0], [-1, 2]], [("share_range", (1, 0), 1.0)]),
        ({}, [0, 5, 9], [[2, 0], [0, 2]], [("work_done", (1,), 2.0), ("reallocation", (2,), 4.0)]),
        ({}, [0, 5, 11], [[2, 0], [0, 2]], [("work_done", (1,), 2.0), ("reallocation", (2,), 1.0)]),
        ({"arrivals": [0.0, 6.0]}, [0, 5, 10], [[2, 0], [0, 2]], [("arrival", (1, 1), 1.0)]),
        # At 2 s nothing happens; the nearest event is the jobs' arrival.
        ({}, [0, 2, 7, 10], [[2, 0], [0, 2], [2, 0]], [("reallocation", (1,), 2.0)]),
        ({"reallocation": "any_time"}, [0, 2, 7, 10], [[2, 0], [0, 2], [2, 0]], []),
        ({}, [1, 6, 11], [[2, 0], [0, 2]], [("reallocation", (0,), 1.0)]),
        ({"arrivals": [1.0, 0.0]}, [1, 6, 11], [[2, 0], [0, 2]], []),
    ],
)
def test_broken_rules_are_named(changes, times, shares, broken):
    found = two_jobs(**changes).violations(Schedule(times=times, shares=shares))
    assert [(v.rule, v.index, pytest.approx(v.amount)) for v in found] == broken


def test_stopping_short_within_the_tolerance_wins_nothing():
    instance = two_jobs()
    exact = Schedule(times=[0, 5, 10], shares=[[2, 0], [0, 2]])
    short = Schedule(times=[0, 5 - 4e-6, 10 - 8e-6], shares=[[2, 0], [0, 2]])
    assert instance.violations(short) == []
    assert instance.objective(exact) == 7.5
    # Job 0's crumb is done at its last speed; job 1 started earlier by as much.
    assert instance.completions(short).tolist() == pytest.approx([5.0, 10 - 4e-6], rel=1e-12)
    unfinished = Schedule(times=[0, 5, 9.999], shares=[[2, 0], [0, 2]])
    assert instance.objective(unfinished) == math.inf
    with pytest.raises(PlanError, match="job 1 is never done"):
        metrics(instance, unfinished)


def test_completion_inside_an_interval_and_after_a_pause():
    instance = two_jobs(reallocation="any_time")
    plan = Schedule(times=[0, 4, 6, 12], shares=[[2, 0], [0, 2], [1, 1]])
    # Job 0 has 2 left after 4 s and does them from 6 s on; job 1 has 6 left at 6 s.
    assert instance.completions(plan).tolist() == [8.0, 12.0]
    assert [v.rule for v in instance.violations(plan)] == ["work_done"]


def test_a_policy_that_runs_nobody_is_an_error():
    with pytest.raises(ValueError, match="lets no job run"):
        simulate(two_jobs(), lambda state: np.zeros(2, np.int64))


def test_idle_cluster_between_jobs():
    instance = two_jobs(arrivals=[3.0, 20.0])
    plan = schedulers.max_min(instance)
    assert plan.times.tolist() == [3.0, 8.0, 20.0, 25.0]
    assert plan.shares.tolist() == [[2, 0], [0, 0], [0, 2]]
    assert instance.objective(plan) == 5.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_gpus": 0}, r"num_gpus: got 0, must be at least 1"),
        ({"num_gpus": 3}, r"throughputs: got 3 columns, must be num_gpus \+ 1, 4"),
        ({"work": [1.0, 0.0]}, r"work: got 0\.0 at index \[1\]"),
        ({"work": [1.0]}, r"throughputs: got shape \(2, 3\), must be \(n, m\) with n = 1"),
        ({"throughputs": [[0, 1, 2], [1, 1, 2]]}, r"throughputs: got 1 at index \[1, 0\], must be 0 on no GPUs"),
        ({"throughputs": [[0, 0, 0], [0, 1, 2]]}, r"throughputs: got 0 at index \[0, 2\], must be positive"),
        ({"throughputs": [[0, 2, 1], [0, 1, 2]]}, r"throughputs: got 1 after 2 at index \[0, 2\], must not fall"),
        ({"throughputs": [[0, 1, math.nan], [0, 1, 2]]}, r"throughputs: got nan at index \[0, 2\]"),
        ({"arrivals": [0.0, -1.0]}, r"arrivals: got -1\.0 at index \[1\]"),
        ({"reallocation": "never"}, r"reallocation: got 'never', must be one of at_completions, any_time"),
    ],
)
def test_bad_instances_name_the_field(changes, message):
    with pytest.raises(InstanceError, match=message):
        two_jobs(**changes)


@pytest.mark.parametrize(
    ("times", "shares", "message"),
    [
        ([0, 1], [[1, 0], [0, 1]], r"times: got shape \(2,\), must be \(t\+1,\) with t\+1 = 3"),
        ([0, 2, 2], [[1, 0], [0, 1]], r"times: got 2 after 2 at index \[2\], must increase"),
        ([-1, 2], [[1, 0]], r"times: got -1\.0 at index \[0\]"),
        ([0, 2], [[0.5, 0]], "shares: got 0.5"),
    ],
)
def test_bad_schedules_name_the_field(times, shares, message):
    with pytest.raises(PlanError, match=message):
        Schedule(times=times, shares=shares)


def test_a_schedule_for_other_jobs_is_refused():
    with pytest.raises(PlanError, match="this instance has n = 2"):
        two_jobs().objective(Schedule(times=[0, 1], shares=[[1, 0, 0]]))


# --- metrics -------------------------------------------------------------------------------------


def test_metrics_by_hand():
    # Job 0 has both GPUs for 5 s, then job 1, whose second GPU adds half, for 10 / 1.5 s.
    instance = two_jobs(throughputs=[[0, 1, 2], [0, 1, 1.5]])
    plan = schedulers.srtf(instance)
    end = 5 + 10 / 1.5
    found = metrics(instance, plan)
    assert found.average_jct == pytest.approx((5 + end) / 2)
    assert found.makespan == pytest.approx(end)
    assert found.queue_length == pytest.approx(5 / end)
    assert found.cluster_efficiency == pytest.approx((5 * 1 + (end - 5) * 0.75) / end)
    assert found.blocking_index == pytest.approx((0 + 5 / end) / 2)
    over_time = timeline(instance, plan)
    assert over_time.times.tolist() == pytest.approx([0, 5, end])
    assert over_time.queue_lengths.tolist() == [1, 0]
    assert over_time.efficiencies.tolist() == pytest.approx([1, 0.75])


def test_metrics_count_from_arrival_to_completion():
    instance = two_jobs(arrivals=[0.0, 2.0])
    plan = Schedule(times=[0, 5, 10], shares=[[2, 0], [0, 2]])
    assert timeline(instance, plan).waiting_times.tolist() == [0.0, 3.0]
    assert metrics(instance, plan).blocking_index == pytest.approx((3 / 8) / 2)


@given(cases)
@settings(max_examples=25)
def test_metrics_are_in_range_and_obey_littles_law(instance):
    for scheduler in (schedulers.afs_l, schedulers.srtf):
        plan = scheduler(instance)
        found = metrics(instance, plan)
        waiting = timeline(instance, plan).waiting_times
        assert found.average_jct == pytest.approx(instance.objective(plan))
        assert found.queue_length * found.makespan == pytest.approx(waiting.sum(), abs=1e-6)
        assert 0 <= found.blocking_index < 1
        assert found.cluster_efficiency <= 1 + 1e-9  # these curves lose, they never gain, by sharing


# --- generator and curves ------------------------------------------------------------------------


def test_generator_is_stable():
    assert generate(7).digest == generate(np.random.default_rng(7)).digest
    assert generate(7).concave.all()
    assert not generate(7, rigid=1.0, num_gpus=8).concave.all()
    assert generate(7, num_jobs=5, arrival_gap=10.0).arrivals.min() == 0.0


def test_bounded_linear_curves():
    assert bounded_linear(2, 3, 1.5, 4).tolist() == [0.0, 0.0, 3.0, 4.5, 4.5]
    with pytest.raises(ValueError, match="min_share: got 5"):
        bounded_linear(5, 6, 1.0, 4)


def write_tables(folder, **tables):
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("global_batch_size,1,2,4\n" + "\n".join(lines) + "\n")
    return folder


def test_curves_that_fall_or_bend_upwards_are_refused_by_name_or_repaired(tmp_path):
    write_tables(tmp_path, good=["32,2,3,4"], falls=["64,4,3,6"], bends=["8,1,3,4"], gap=["16,5,,6"])
    assert curves(tmp_path, num_gpus=3, models=["good"]).tables["good", 32].tolist() == [0, 2, 3, 3.5]
    for model, message in {
        "falls": "falls at batch size 64: 3 iterations/s on 2 GPUs after 4 on 1",
        "bends": "bends at batch size 8: more gain per GPU from 1 to 2 GPUs",
        "gap": "gap at batch size 16: no throughput on 2 GPUs",
    }.items():
        with pytest.raises(InstanceError, match=message):
            curves(tmp_path, num_gpus=4, models=[model])
    repaired = curves(tmp_path, num_gpus=5, repair=True)
    # Running maximum (4, 4, 6), then the hull above it.
    assert repaired.tables["falls", 64].tolist() == pytest.approx([0, 4, 14 / 3, 16 / 3, 6, 6])
    assert repaired.tables["bends", 8].tolist() == [0, 1.5, 3, 3.5, 4, 4]
    assert repaired.tables["gap", 16].tolist() == pytest.approx([0, 5, 16 / 3, 17 / 3, 6, 6])
    assert len(repaired.repairs) == 3
    assert not any("good" in repair for repair in repaired.repairs)
    # What lies beyond the cluster does not count.
    assert curves(tmp_path, num_gpus=1, models=["falls"]).tables["falls", 64].tolist() == [0, 4]
    with pytest.raises(InstanceError, match="no throughput table of other"):
        curves(tmp_path, num_gpus=4, models=["other"])


def test_work_is_duration_times_throughput_on_the_trace_s_gpus(tmp_path):
    write_tables(tmp_path, vgg16=["32,2,3,4"])
    trace = tmp_path / "jobs.trace"
    trace.write_text("job_id,submission_time,duration,num_gpu\na,100,10,1\nb,160,20,2\nc,170,30,64\n")
    instance = from_trace(0, throughputs=tmp_path, trace=trace, num_jobs=3, num_gpus=4, arrivals=True)
    assert instance.work.tolist() == [20.0, 60.0, 120.0]
    assert instance.arrivals.tolist() == [0.0, 60.0, 70.0]
    at_once = from_trace(0, throughputs=tmp_path, trace=trace, num_jobs=3, num_gpus=4)
    assert not at_once.arrivals.any()
    with pytest.raises(InstanceError, match="num_jobs: got 4, must be 1 to 3"):
        from_trace(0, throughputs=tmp_path, trace=trace, num_jobs=4)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,100,10", "line 2: got 3 cells"),
        ("a,100,ten,1", "line 2: duration: got 'ten'"),
        ("a,100,10,0", "line 2: num_gpu: got '0'"),
        ("a,-1,10,1", "line 2: submission_time: got '-1'"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, message):
    trace = tmp_path / "jobs.csv"
    trace.write_text(f"job_id,submission_time,duration,num_gpu\n{line}\n")
    with pytest.raises(InstanceError, match=message):
        read_jobs(trace)


def test_real_traces_and_curves(data):
    tables = data / "elasticflow" / "throughputs_A100"
    with pytest.raises(InstanceError, match="resnet50_cifar10 at batch size 64"):
        curves(tables, num_gpus=8)
    in_order = ["bert", "gpt2", "resnet50", "vgg16", "deepspeech2"]
    assert curves(tables, num_gpus=8, models=in_order).repairs == ()
    for trace, model in (("elasticflow/microsoft/raw/cluster02.csv", ""), ("tiresias/60_job.csv", "vgg19")):
        jobs = read_jobs(data / trace)
        assert jobs["model"].iloc[0] == model
        instance = from_trace(1, throughputs=tables, trace=data / trace, num_jobs=3, num_gpus=4, models=in_order)
        assert instance.concave.all()
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert instance.objective(schedulers.afs_l(instance)) >= solution.bound * (1 - 1e-6)
    with pytest.warns(RepairWarning, match="resnet50_cifar10 at batch size 64"):
        repaired = from_trace(1, throughputs=tables, trace=data / trace, num_jobs=20, num_gpus=16, repair=True)
    assert repaired.concave.all()
