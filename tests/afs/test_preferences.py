"""Cycles of AFS's preferences: by hand, by trying all cycles, and on the way that AFS-L takes."""

import itertools

import numpy as np
import pytest

from heuristics.afs.elastic_sharing import afs_l
from heuristics.afs.preferences import hand_out, preference_cycles, preferred
from instances.afs.elastic_sharing import ElasticSharing, generate, three_job_cycle
from validation.kinds.claims import claims, examine

from ..effort import rounds


def three_works() -> ElasticSharing:
    """One, one and two units of work, three GPUs; 2 and 3, 1 and 2, 1 and 1 iterations/s on one and two of them."""
    return ElasticSharing(num_gpus=3, work=[1, 1, 2], throughputs=[[0, 2, 3, 3], [0, 1, 2, 2], [0, 1, 1, 1]])


def test_a_cycle_by_hand() -> None:
    """With a GPU for jobs 0 and 1 and none for job 2, lengths are 1/2, 1 and infinite.

    Job 0 and job 1: the longer gains (2 - 1) / 2 = 1/2, the shorter (3 - 2) / 2 = 1/2: equal, so the shorter, 0.
    Job 1 and job 2: the longer gains (1 - 0) / 1 = 1, the shorter (2 - 1) / 1 = 1: equal, so the shorter, 1.
    Job 2 and job 0: the longer gains 1, the shorter 1/2: the longer, 2.
    """
    instance, shares = three_works(), np.array([1, 1, 0])
    assert preferred(instance, shares, 0, 1) == 0
    assert preferred(instance, shares, 1, 2) == 1
    assert preferred(instance, shares, 0, 2) == 2
    assert preference_cycles(instance, shares) == [[0, 1, 2]]
    assert [step.tolist() for step in hand_out(instance)] == [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    for before in ([0, 0, 0], [1, 0, 0]):
        assert preference_cycles(instance, np.array(before)) == []


def test_of_equally_long_jobs_the_one_scanned_later_is_the_shorter() -> None:
    """Lines 6, 7, 9 and 10 of Algorithm 1."""
    waiting = ElasticSharing(num_gpus=1, work=[1, 1], throughputs=[[0, 1], [0, 1]])
    assert preferred(waiting, np.array([0, 0]), 0, 1) == 1
    # As the shorter of the two, job 0 gains half as much again, and as the longer, a third; job 1 all, or half.
    equal = ElasticSharing(num_gpus=3, work=[2, 1], throughputs=[[0, 2, 3, 3], [0, 1, 2, 2]])
    assert preferred(equal, np.array([1, 1]), 0, 1) == 1
    assert preferred(equal, np.array([1, 1]), 1, 0) == 0
    alike = ElasticSharing(num_gpus=3, work=[1, 1], throughputs=[[0, 1, 2, 2], [0, 1, 2, 2]])
    assert preferred(alike, np.array([1, 1]), 0, 1) == 1
    assert preferred(alike, np.array([1, 1]), 1, 0) == 0


def test_the_claim_finds_it() -> None:
    verdict = examine(next(claim for claim in claims("afs") if claim.name == "priority_comparison_transitive"))
    assert verdict.outcome == "refuted"
    assert isinstance(verdict.counterexample, ElasticSharing)
    assert (np.diff(verdict.counterexample.throughputs, axis=1) > 0).all()
    assert verdict.why.startswith("on 1, 0 and 1 GPUs, job 0 is preferred to job 2, job 2 to job 1")
    # The same where the third GPU helps nobody.
    assert verdict.claim.breaks(three_works()).startswith(  # type: ignore[operator, union-attr]
        "on 1, 1 and 0 GPUs, job 0 is preferred to job 1, job 1 to job 2"
    )


@pytest.mark.slow
def test_one_way_round_formula_3_is_transitive() -> None:
    verdict = examine(next(claim for claim in claims("afs") if claim.name == "formula_3_transitive"), seconds=300)
    assert verdict.held
    assert verdict.exhausted


def test_the_example_of_the_library() -> None:
    instance = three_job_cycle()
    assert preference_cycles(instance) == [[0, 1, 2]]
    assert preference_cycles(instance, np.array([1, 1, 1])) == [[0, 1, 2]]
    assert preference_cycles(instance, longest=2) == []
    assert preference_cycles(instance, np.array([2, 1, 0])) == []


def steep(seed: int) -> ElasticSharing:
    """Five jobs of small whole work on 8 GPUs; a second GPU adds half of the first or more, a third nothing."""
    rng = np.random.default_rng(seed)
    one = rng.integers(2, 11, 5)
    two = one + np.ceil(one * rng.uniform(0.3, 0.9, 5)).astype(int)
    return ElasticSharing(
        num_gpus=8, work=rng.integers(1, 6, 5), throughputs=np.stack([0 * one, one, *[two] * 7], axis=1)
    )


@pytest.mark.parametrize("first", rounds(60)[::60])
def test_all_cycles_are_found(first: int) -> None:
    """Every cyclic order of every set of jobs is tried."""
    found = 0
    for seed in range(first, first + 60):
        instance = steep(seed)
        shares = (np.random.default_rng(seed).random(5) < 0.9).astype(int)
        left = 8 - int(shares.sum())
        table = instance.throughputs
        competing = [
            j for j in range(5) if (table[j, shares[j] + 1 : shares[j] + left + 1] > table[j, shares[j]]).any()
        ]
        expected = []
        for size in range(2, 6):
            for first_job, *others in itertools.permutations(competing, size):
                cycle = [first_job, *others]
                steps = zip(cycle, [*others, first_job], strict=True)
                if first_job == min(cycle) and all(preferred(instance, shares, min(e), max(e)) == e[0] for e in steps):
                    expected.append(cycle)
        assert preference_cycles(instance, shares) == sorted(expected, key=lambda cycle: (len(cycle), cycle))
        # Of any two jobs one wins, so that a longer cycle always has one of three jobs beside it.
        assert bool(expected) == any(len(cycle) == 3 for cycle in expected)
        found += bool(expected)
    assert found > 5


def test_the_way_is_that_of_afs_l() -> None:
    for seed in rounds(20):
        instance = generate(seed, num_jobs=2 + seed % 6, num_gpus=1 + seed % 9)
        instance = ElasticSharing(num_gpus=instance.num_gpus, work=instance.work, throughputs=instance.throughputs)
        *_, last = hand_out(instance)
        final = afs_l(instance).shares[0]
        assert (final >= last).all()
        assert (final > last).sum() == 1


def test_jobs_that_gain_nothing_take_no_part() -> None:
    instance = three_job_cycle()
    flat = ElasticSharing(
        num_gpus=4, work=instance.work, throughputs=np.minimum(instance.throughputs, [[10.0], [16.0], [18.0]])
    )
    assert preference_cycles(flat) == []


def test_shares_must_leave_a_gpu() -> None:
    with pytest.raises(ValueError, match=r"shares: got \[2, 1, 1\], must leave a GPU of 4"):
        preference_cycles(three_job_cycle(), np.array([2, 1, 1]))
