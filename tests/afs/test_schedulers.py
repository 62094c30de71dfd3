"""The schedulers of afs.elastic_sharing: the paper's example, Algorithm 1 to the letter, and all of them by hand."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from heuristics.afs import elastic_sharing as schedulers
from instances.afs.elastic_sharing import (
    HOUR,
    MAX_GPUS,
    ElasticSharing,
    Schedule,
    appendix_a,
    appendix_a_sequel,
    bounded_linear,
    generate,
    table_4,
    three_job_cycle,
)
from instances.afs.metrics import metrics, timeline

from ..effort import EFFORT
from .elastic_jobs import ALL, cases, instance_of, small

# --- the paper's example, and the scan -----------------------------------------------------------


def test_appendix_a() -> None:
    """Printed: 2 h each on one GPU, 1 h and 1.5 h on two; 1.25 h, which is without B's wait; equal shares 2 h."""
    instance = appendix_a()
    times = instance.work[:, None] / instance.throughputs[:, 1:] / HOUR
    assert times.tolist() == [pytest.approx([2, 1]), pytest.approx([2, 1.5])]
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(1.75 * HOUR)
    assert instance.objective(schedulers.srtf(instance)) == pytest.approx(1.75 * HOUR)
    assert instance.objective(schedulers.max_min(instance)) == pytest.approx(2 * HOUR)
    assert instance.objective(schedulers.afs_l(instance)) == pytest.approx(2 * HOUR)
    a, b = instance.completions(solution.plan)
    assert (a / HOUR, b / HOUR) == (pytest.approx(1.0), pytest.approx(2.5))
    wait = timeline(instance, solution.plan).waiting_times
    assert wait.tolist() == pytest.approx([0.0, 1.0 * HOUR])
    assert (a + b - wait.sum()) / 2 == pytest.approx(1.25 * HOUR)


@pytest.mark.parametrize(
    ("x", "num_future", "short", "equal"),
    [(1.75, 4, 2.750, 2.055), (1.25, 4, 2.250, 2.075), (1.25, 2, 2.125, 2.175)],
)
def test_appendix_a_sequel(x: float, num_future: int, short: float, equal: float) -> None:
    instance = appendix_a_sequel(x, num_future=num_future)
    assert instance.arrivals[2:] / HOUR == pytest.approx([1 + k * x for k in range(num_future)])
    assert instance.objective(schedulers.srtf(instance)) / HOUR == pytest.approx(short, abs=5e-4)
    assert instance.objective(schedulers.max_min(instance)) / HOUR == pytest.approx(equal, abs=5e-4)
    with pytest.raises(ValueError, match=r"x: got 2, must be more than 1"):
        appendix_a_sequel(2)


def test_table_4() -> None:
    instance = table_4()
    assert instance.requests.tolist() == [8, 20, 52, 28, 20, 28, 4, 20, 44] == list(MAX_GPUS.values())
    assert instance.max_shares.tolist() == instance.requests.tolist()
    assert instance.num_gpus == 64


def reference_afs_l(num_gpus, tables, left, ties="later"):
    """Algorithm 1 as it reads, one GPU at a time, from scratch for each, in fractions.

    GPUs that speed up nobody stay idle.
    """
    count = dict.fromkeys(left, 0)

    def length(j, s):
        return Fraction(left[j]) / Fraction(tables[j][s]) if s else math.inf

    def top(jobs):
        best = jobs[0]
        for j in jobs:
            if j == best:
                continue
            a, b = best, j
            if count[a] == 0 and count[b] == 0:
                shorter = length(a, 1) < length(b, 1) or (ties == "earlier" and length(a, 1) == length(b, 1))
                best = a if shorter else b
                continue
            swap = length(a, count[a]) >= length(b, count[b])
            if ties == "earlier":
                swap = length(a, count[a]) > length(b, count[b])
            if swap:
                a, b = b, a
            p_a, p_a_more = (Fraction(tables[a][count[a] + more]) for more in (0, 1))
            p_b, p_b_more = (Fraction(tables[b][count[b] + more]) for more in (0, 1))
            best = b if (p_b_more - p_b) / p_b_more > (p_a_more - p_a) / p_a else a
        return best

    for _ in range(num_gpus):
        able = [j for j in left if count[j] < num_gpus and tables[j][count[j] + 1] > tables[j][count[j]]]
        if able:
            count[top(able)] += 1
    return count


def concave_case(rng):
    """Whole work and concave curves on which the first GPU helps, with ties."""
    n, num_gpus = int(rng.integers(1, 6)), int(rng.integers(1, 7))
    steps = np.sort(rng.integers(0, 4, (n, num_gpus)), axis=1)[:, ::-1].copy()
    steps[:, 0] = np.maximum(steps[:, 0], 1)
    tables = np.pad(steps.cumsum(axis=1), ((0, 0), (1, 0)))
    return num_gpus, tables.tolist(), rng.integers(1, 5, n).tolist()


@pytest.mark.parametrize("ties", ["later", "earlier"])
def test_afs_l_follows_algorithm_1_to_the_letter(ties) -> None:
    rng = np.random.default_rng(7)
    differ = 0
    for _ in range(300):
        num_gpus, tables, work = concave_case(rng)
        instance = instance_of(num_gpus, tables, work, "at_completions")
        plan = schedulers.afs_l(instance, ties=ties)
        assert instance.violations(plan) == []
        expected = reference_afs_l(num_gpus, tables, dict(enumerate(work)), ties)
        assert plan.shares[0].tolist() == list(expected.values()), (num_gpus, tables, work)
        other = "earlier" if ties == "later" else "later"
        differ += reference_afs_l(num_gpus, tables, dict(enumerate(work)), other) != expected
    assert differ > 50


@pytest.mark.parametrize("linear", [False, True])
def test_afs_l_is_algorithm_1_at_every_event(linear) -> None:
    rng = np.random.default_rng(7)
    for seed in range(40):
        instance = generate(rng, num_jobs=int(rng.integers(1, 9)), num_gpus=8, loss=0.0 if linear else 0.9)
        tables = instance.throughputs.tolist()
        left = dict(enumerate(instance.work.tolist()))
        plan = schedulers.afs_l(instance)
        now, intervals = 0.0, []
        while left:
            shares = reference_afs_l(8, tables, left)
            span = min(left[j] / tables[j][s] for j, s in shares.items() if s)
            now += span
            intervals.append((now, [shares.get(j, 0) for j in range(instance.num_jobs)]))
            for j, s in shares.items():
                left[j] -= tables[j][s] * span
            for j in [j for j, rest in left.items() if rest <= 1e-9 * instance.work[j]]:
                del left[j]
        merged = [row for at, row in enumerate(intervals) if at + 1 == len(intervals) or intervals[at + 1][1] != row[1]]
        assert plan.times[1:].tolist() == pytest.approx([end for end, _ in merged]), seed
        assert plan.shares.tolist() == [shares for _, shares in merged], seed


def test_the_order_of_the_scan_is_the_numbering() -> None:
    rng = np.random.default_rng(3)
    differ = 0
    for _ in range(100):
        instance = instance_of(*concave_case(rng), "at_completions")
        order = rng.permutation(instance.num_jobs).tolist()
        turned = replace(instance, work=instance.work[order], throughputs=instance.throughputs[order])
        plan, other = schedulers.afs_l(instance, order=order), schedulers.afs_l(turned)
        assert plan.shares[:, order].tolist() == other.shares.tolist()
        differ += plan != schedulers.afs_l(instance)
    assert differ > 20
    with pytest.raises(ValueError, match=r"order: got \[0, 0\], must name each of 2 jobs once"):
        schedulers.afs_l(appendix_a(), order=[0, 0])


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


def ends_of_afs_p(num_gpus, tables, jobs):
    """All shares to which section 3.3's comparison by formula (3) in both roles can lead, from one GPU each."""
    found = {tuple(1 for _ in jobs)}
    for _ in range(num_gpus - len(jobs)):
        following = set()
        for shares in found:
            able = [j for j in jobs if shares[j] < num_gpus and tables[j][shares[j] + 1] > tables[j][shares[j]]]
            if not able:
                following.add(shares)
                continue

            def true(a, b, shares=shares):
                p, q = (Fraction(tables[j][shares[j]]) for j in (a, b))
                p_more, q_more = (Fraction(tables[j][shares[j] + 1]) for j in (a, b))
                return (q_more - q) / q_more > (p_more - p) / p

            bests = {able[0]}
            for j in able[1:]:
                bests = {
                    winner
                    for best in bests
                    for winner in ((j,) if true(best, j) else (best,) if true(j, best) else (best, j))
                }
            following |= {tuple(shares[j] + (j == best) for j in jobs) for best in bests}
        found = following
    return found


def test_afs_p_ends_where_formula_3_both_ways_can_lead() -> None:
    rng = np.random.default_rng(4)
    several = 0
    for _ in range(60):
        num_gpus, tables, work = concave_case(rng)
        if len(work) > num_gpus:
            continue
        instance = instance_of(num_gpus, tables, work, "at_completions")
        ends = ends_of_afs_p(num_gpus, tables, range(len(work)))
        reached = {tuple(schedulers.afs_p(instance, rng=seed).shares[0].tolist()) for seed in range(30)}
        assert reached <= ends
        several += len(reached) > 1
    assert several > 5


def test_afs_p_of_more_jobs_than_gpus() -> None:
    """One GPU, turns of 5 s: jobs 0 and 1 have 12 s to do, and job 2, which arrives at 7 s, 3 s."""
    instance = ElasticSharing(
        num_gpus=1,
        work=[12.0, 12.0, 3.0],
        throughputs=[[0.0, 1.0]] * 3,
        arrivals=[0.0, 0.0, 7.0],
        reallocation="any_time",
        quantum=5.0,
    )
    for scheduler in (schedulers.afs_p, schedulers.afs_s, schedulers.afs_p_measuring):
        plan = scheduler(instance)
        assert instance.violations(plan) == []
        # Job 2 waits until job 1's turn is over, at 10 s, and is first then.
        assert plan.times.tolist() == [0, 5, 10, 13, 18, 23, 25, 27]
        assert plan.shares.argmax(axis=1).tolist() == [0, 1, 2, 0, 1, 0, 1]
    # Where shares change at arrivals and completions only, no turn ends before the job.
    waiting = replace(instance, reallocation="at_completions")
    plan = schedulers.afs_p(waiting)
    assert waiting.violations(plan) == []
    assert plan.shares.argmax(axis=1).tolist() == [0, 1, 2]


def test_afs_p_evicts_only_if_there_are_more_jobs_than_gpus() -> None:
    instance = ElasticSharing(
        num_gpus=2, work=[12.0, 12.0], throughputs=[[0, 1, 1]] * 2, reallocation="any_time", quantum=5.0
    )
    assert schedulers.afs_p(instance).shares.tolist() == [[1, 1]]


def test_afs_s_is_max_min_while_there_is_a_gpu_for_each_job() -> None:
    rng = np.random.default_rng(5)
    cases = [(num_gpus, tables, work) for num_gpus, tables, work in (concave_case(rng) for _ in range(60))]
    enough = [case for case in cases if len(case[2]) <= case[0]]
    assert len(enough) > 20
    for case in enough:
        instance = instance_of(*case, "any_time")
        assert schedulers.afs_s(instance) == schedulers.max_min(instance)


def test_measuring_starts_with_the_fair_share() -> None:
    """Section 4.5, seen from what AFS-P is told: at first linear curves, and no more than 1/n of the GPUs."""
    seen = []
    original = schedulers._by_gain

    def spy(shares, jobs, num_gpus, gains, rng, most=None):
        original(shares, jobs, num_gpus, gains, rng, most)
        seen.append((most[jobs].tolist(), shares[jobs].tolist()))

    instance = ElasticSharing(
        num_gpus=8, work=[10.0, 10.0], throughputs=[[0, 2, 3, 3, 3, 3, 3, 3, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8]]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedulers, "_by_gain", spy)
        plan = schedulers.afs_p_measuring(instance)
    assert seen[0] == ([4, 4], [4, 4])
    assert seen[1][0] == [8, 8]
    # In the end both curves are known as far as it matters, and shares are those of AFS-P.
    assert plan.shares[0].tolist() == [2, 6] == schedulers.afs_p(instance).shares[0].tolist()


def test_the_two_job_rule_can_err() -> None:
    instance = ElasticSharing(num_gpus=3, work=[1.0, 1.0], throughputs=[[0, 2, 4, 5], [0, 2, 4, 4]])
    plan = schedulers.two_job_rule(instance)
    assert plan.shares[0].tolist() == [2, 1]
    assert instance.objective(plan) == pytest.approx(5 / 16)
    assert formulations.solve(instance).objective == pytest.approx(3 / 10)
    # Curves that rise all the way, by less and less.
    rising = ElasticSharing(num_gpus=2, work=[2.0, 3.0], throughputs=[[0, 3, 4], [0, 4, 7]])
    assert rising.objective(schedulers.two_job_rule(rising)) == pytest.approx(29 / 42)
    assert formulations.solve(rising).objective == pytest.approx(19 / 28)
    assert schedulers.two_job_rule(generate(0, num_jobs=3)) is None
    assert schedulers.two_job_rule(generate(0, num_jobs=2, arrival_gap=5.0)) is None


def test_tiresias_l_by_hand() -> None:
    """One GPU, 10 s each; a job that has had 4 s of service is in the second queue, first come first served."""
    instance = ElasticSharing(
        num_gpus=1, work=[10.0, 10.0], throughputs=[[0, 1]] * 2, reallocation="any_time", quantum=4.0
    )
    plan = schedulers.tiresias_l(instance)
    assert instance.violations(plan) == []
    assert plan.times.tolist() == [0, 4, 8, 14, 20]
    assert plan.shares.argmax(axis=1).tolist() == [0, 1, 0, 1]
    three = schedulers.tiresias_l(instance, limits=(1.0, 1.5))
    assert three.times.tolist() == [0, 4, 8, 10, 12, 16, 20]
    # Service is time by GPUs: on two GPUs 2 s are as much.
    wide = replace(instance, num_gpus=2, throughputs=[[0, 1, 1]] * 2, requests=[2, 2])
    assert schedulers.tiresias_l(wide).times.tolist() == [0, 2, 4, 12, 20]
    # Side by side on a GPU each they take 10 s; as fast as they can be, they take turns on both.
    curved = replace(instance, num_gpus=2, throughputs=[[0, 1, 1.25]] * 2, requests=[1, 1])
    assert schedulers.tiresias_l(curved).times.tolist() == [0, 10]
    assert schedulers.tiresias_l_maximum(curved).times.tolist() == [0, 2, 4, 10, 16]


def test_requests_by_hand() -> None:
    """4 GPUs: job 0 asks for 3, job 1 for 2, job 2 for 1; each is as fast as the GPUs that it has, up to 4."""
    instance = ElasticSharing(num_gpus=4, work=[30.0, 4.0, 10.0], throughputs=[[0, 1, 2, 3, 4]] * 3, requests=[3, 2, 1])
    # In order of 10, 2 and 10 s: job 1, then job 0 does not fit, then job 2.
    assert schedulers.srtf(instance).shares[0].tolist() == [0, 2, 1]
    # The GPU that is left goes to the lower of the jobs that run, as both gain one.
    assert schedulers.srtf_elastic(instance).shares[0].tolist() == [0, 3, 1]
    # Services of 30, 4 and 10.
    assert schedulers.srsf(instance).shares[0].tolist() == [0, 2, 1]
    assert schedulers.srsf_elastic(instance).shares[0].tolist() == [0, 3, 1]
    # As fast as they can be, each takes all: 7.5, 1 and 2.5 s.
    assert schedulers.srtf_maximum(instance).shares[0].tolist() == [0, 4, 0]
    assert schedulers.srtf_filling(instance).shares[0].tolist() == [0, 4, 0]


def test_what_the_spare_gpu_is_to_add_to_is_an_option() -> None:
    """Job 0 gains 9 of 10 iterations/s by its second GPU, job 1 all of its 1."""
    instance = ElasticSharing(
        num_gpus=3, work=[100.0, 10.0], throughputs=[[0, 10, 19, 19], [0, 1, 2, 2]], requests=[1, 1]
    )
    for scheduler in (schedulers.srtf_elastic, schedulers.srsf_elastic):
        assert scheduler(instance).shares[0].tolist() == [1, 2]
        assert scheduler(instance, gain="throughput").shares[0].tolist() == [2, 1]


def test_a_request_that_cannot_be_met() -> None:
    more = ElasticSharing(num_gpus=2, work=[1.0, 1.0], throughputs=[[0, 1, 2]] * 2, requests=[3, 1])
    less = ElasticSharing(num_gpus=2, work=[1.0, 1.0], throughputs=[[0, 0, 2], [0, 1, 2]], requests=[1, 1])
    for instance in (more, less):
        assert formulations.solve(instance).status == "optimal"
        for name in ("srtf", "srsf", "srtf_elastic", "srsf_elastic", "tiresias_l"):
            assert ALL[name](instance) is None
            # A job that is done asks for nothing.
            assert ALL[name](replace(instance, work=[0.0, 1.0])) is not None
        assert instance.violations(schedulers.srtf_maximum(instance)) == []


# --- jobs that are done, and jobs that never run ---------------------------------------------------


@pytest.mark.parametrize("reallocation", ["at_completions", "any_time"])
def test_jobs_that_are_done_need_nothing(reallocation) -> None:
    whole = generate(1, num_jobs=4, num_gpus=4, reallocation=reallocation)
    done = replace(whole, work=whole.work * [1, 0, 1, 0], throughputs=whole.throughputs * [[1], [1], [1], [0]])
    nothing = {name: [0, 0] for name in ("arrivals", "requests", "attained", "held")}
    kept = replace(whole, work=whole.work[::2], throughputs=whole.throughputs[::2], **nothing)
    solution, less = formulations.solve(done), formulations.solve(kept)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(less.objective / 2)
    assert solution.bound == pytest.approx(less.bound / 2)
    assert done.completions(solution.plan)[[1, 3]].tolist() == [0, 0]
    for name, scheduler in ALL.items():
        plan = scheduler(done)
        assert done.violations(plan) == [], name
        assert not plan.shares[:, [1, 3]].any(), name
        assert done.objective(plan) == pytest.approx(kept.objective(scheduler(kept)) / 2), name
    later = replace(done, arrivals=[0, 5, 7, 9])
    assert later.completions(schedulers.afs_l(later))[[1, 3]].tolist() == [5, 9]
    best = min(later.objective(scheduler(later)) for scheduler in ALL.values())
    assert 0 < formulations.solve(later).bound <= best


@pytest.mark.parametrize("arrivals", [[0.0, 0.0], [1.0, 3.0]])
def test_all_jobs_are_done(arrivals) -> None:
    instance = ElasticSharing(num_gpus=2, work=[0, 0], throughputs=[[0, 0, 0], [0, 1, 2]], arrivals=arrivals)
    solution = formulations.solve(instance)
    assert (solution.status, solution.objective, solution.proof) == ("optimal", 0, "argument")
    assert instance.violations(solution.plan) == []
    assert Schedule.from_dict(solution.plan.to_dict()) != Schedule(times=[0, 1], shares=[[0, 0]])
    for name, scheduler in ALL.items():
        plan = scheduler(instance)
        again = Schedule.from_dict(plan.to_dict())
        assert instance.violations(again) == [], name
        assert instance.objective(again) == 0, name
        assert metrics(instance, again).makespan == arrivals[1] - arrivals[0]


@pytest.mark.parametrize("arrivals", [[0.0, 0.0], [1.0, 3.0]])
def test_a_job_that_never_runs(arrivals) -> None:
    instance = ElasticSharing(num_gpus=2, work=[1, 1], throughputs=[[0, 1, 2], [0, 0, 0]], arrivals=arrivals)
    solution = formulations.solve(instance)
    assert (solution.status, solution.plan) == ("infeasible", None)
    assert solution.proof
    assert "job 1 runs on no number of GPUs" in solution.message
    for name, scheduler in ALL.items():
        assert scheduler(instance) is None, name


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
        "srtf_maximum": ([[0, 2, 2], [0, 0, 2], [3, 0, 0]], [50.0, 10.0, 20.0]),
        "srtf_elastic": ([[0, 2, 2], [0, 0, 2], [3, 0, 0]], [50.0, 10.0, 20.0]),
        # At 10 s job 0, the next in order of the others, waits for 3 GPUs.
        "srtf_filling": ([[0, 2, 2], [0, 0, 2], [3, 0, 0]], [50.0, 10.0, 20.0]),
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


def test_optimus_and_aryl_share_alike_where_curves_are_concave_and_gpus_suffice():
    """Both make the sum of the remaining times least, which all ways to share the GPUs are tried for."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, num_gpus = int(rng.integers(1, 5)), int(rng.integers(4, 8))
        # Concave from one GPU on, flat at the end for some; drawn so that no two ways are worth the same.
        gains = -np.sort(-rng.uniform(0, 1, (n, num_gpus)) * (rng.random((n, num_gpus)) < 0.8), axis=1)
        gains[:, 0] += 1.0
        tables = np.concatenate([np.zeros((n, 1)), gains.cumsum(axis=1)], axis=1)
        instance = ElasticSharing(num_gpus=num_gpus, work=rng.uniform(1, 100, n), throughputs=tables)
        ways = [w for w in itertools.product(range(1, num_gpus + 1), repeat=n) if sum(w) <= num_gpus]
        least = min((instance.work / tables[np.arange(n), list(way)]).sum() for way in ways)
        for scheduler in (schedulers.optimus, schedulers.aryl_two_phase):
            first = scheduler(instance).shares[0]
            assert (instance.work / tables[np.arange(n), first]).sum() == pytest.approx(least)
        one, other = schedulers.optimus(instance), schedulers.aryl_two_phase(instance)
        assert instance.completions(one) == pytest.approx(instance.completions(other))


def test_optimus_and_aryl_are_two():
    crowded = ElasticSharing(num_gpus=1, work=[100.0, 1.0], throughputs=[[0.0, 1.0]] * 2)
    assert crowded.objective(schedulers.optimus(crowded)) == 100.5
    assert crowded.objective(schedulers.aryl_two_phase(crowded)) == 51
    bent = ElasticSharing(num_gpus=4, work=[1.0, 1.0], throughputs=[[0.0, 1, 1, 4, 4], [0.0, 1, 2, 2, 2]])
    assert schedulers.optimus(bent).shares[0].tolist() == [1, 2]
    assert schedulers.aryl_two_phase(bent).shares[0].tolist() == [3, 1]


def test_a_job_that_holds_fewer_gpus_than_it_runs_on_does_not_run():
    tables = [[0, 0, 0, 0, 4], [0, 4, 4, 5, 9], [0, 1, 3, 5, 7]]
    instance = ElasticSharing(
        num_gpus=4, work=[2, 2, 2], throughputs=tables, held=[1, 3, 0], requests=[4, 2, 1], arrivals=[0, 0, 0]
    )
    for name, scheduler in ALL.items():
        assert instance.violations(scheduler(instance)) == [], name
    assert schedulers.aryl_two_phase(instance).shares[0].tolist() == [0, 1, 3]


# --- all schedulers, all instances ----------------------------------------------------------------


@pytest.mark.slow
@given(cases)
@settings(max_examples=80)
def test_schedules_are_feasible_repeatable_and_leave_the_instance_alone(instance):
    before = instance.digest
    for name, scheduler in ALL.items():
        plan = scheduler(instance)
        assert instance.violations(plan) == [], name
        assert plan == scheduler(instance), name
        alone = instance.work / instance.throughputs[:, -1]
        assert (instance.completions(plan) - instance.arrivals >= alone * (1 - 1e-9)).all(), name
    assert ElasticSharing.from_dict(instance.to_dict()).digest == before


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.7]), st.sampled_from([0.0, 0.5]))
@settings(max_examples=round(10 * EFFORT))
def test_no_scheduler_beats_the_bound(seed, num_jobs, loss, rigid):
    instance = generate(seed, num_jobs=num_jobs, num_gpus=4, loss=loss, rigid=rigid)
    solution = formulations.solve(instance)
    relaxed = formulations.solve(replace(instance, reallocation="any_time"))
    assert solution.status == "optimal"
    assert relaxed.bound <= solution.objective * (1 + 1e-6)
    for name, scheduler in ALL.items():
        assert instance.objective(scheduler(instance)) >= solution.bound * (1 - 1e-6), name


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


# --- orders of completions -----------------------------------------------------------------------


def test_local_search_leaves_little() -> None:
    """Of schedules on concave curves, all but a few are optimal, and no budget makes one worse."""
    optimal = 0
    for seed in range(8):
        instance = generate(seed, num_jobs=2 + seed % 3, num_gpus=4, loss=seed % 3 / 2)
        values = [instance.objective(schedulers.local_search(instance, budget=budget)) for budget in (0, 20, 1200)]
        solution = formulations.solve(instance)
        assert solution.status == "optimal"
        assert values[0] * (1 + 1e-9) >= values[1] * (1 - 1e-9) >= values[2] * (1 - 2e-9)
        assert solution.objective * (1 - 1e-9) <= values[2] <= solution.objective * 1.01
        optimal += values[2] == pytest.approx(solution.objective, rel=1e-9)
    assert optimal >= 7


def test_local_search_moves_jobs() -> None:
    """The orders that come of the first prices are not the best one here; a few jobs moved make it."""
    instance = generate(10, num_jobs=10, num_gpus=8)
    first, then = (instance.objective(schedulers.local_search(instance, budget=budget)) for budget in (120, 1200))
    best = formulations.solve(instance).objective
    assert first > best * 1.01
    assert best * (1 - 1e-9) <= then < best * 1.001


def test_local_search_turns_rigid_jobs_over_to_rules() -> None:
    """Prices give GPUs back to a job that was passed over; where rules do better, theirs is the plan."""
    better = 0
    for seed in range(8):
        instance = generate(seed, num_jobs=8, num_gpus=8, rigid=0.7, arrival_gap=1500.0)
        rules = [schedulers.afs_l, schedulers.srtf_filling, schedulers.srsf_filling]
        least = min(instance.objective(rule(instance)) for rule in rules)
        found = instance.objective(schedulers.local_search(instance))
        assert found <= least
        better += found < least * (1 - 1e-6)
    assert better


@pytest.mark.parametrize("rule", ["afs_l", "srtf_filling", "max_min", "local_search"])
def test_a_job_that_takes_less_than_times_can_tell_is_done(rule: str) -> None:
    curve = [0.0, 1.0, 1.5]
    instance = ElasticSharing(
        num_gpus=2,
        work=[2.0**-62, 2.0],
        throughputs=[curve, curve],
        arrivals=[1.5, 7.25],
        reallocation="at_completions",
    )
    plan = getattr(schedulers, rule)(instance)
    assert not instance.violations(plan)
    assert instance.objective(plan) == pytest.approx(1 / 1.5)
    solution = formulations.solve(instance)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(1 / 1.5)
