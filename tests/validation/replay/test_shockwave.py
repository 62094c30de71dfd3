"""The setting of Shockwave, against replays worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from instances.shockwave.window import Window
from validation.errors import ReplayError
from validation.replay import Jobs, Replayed, decider, replay
from validation.replay.settings import shockwave


def setting(
    works: list[float], *, arrivals: list[float] | None = None, widths: list[int] | None = None, num_gpus: int = 1
) -> shockwave.Shockwave:
    """Jobs that make one iteration a second, in epochs of a round, and a window of two rounds."""
    n = len(works)
    return shockwave.Shockwave(
        jobs=Jobs(
            names=[str(job) for job in range(n)],
            arrivals=np.array(arrivals or [0.0] * n),
            work=np.array(works),
            fastest=np.ones(n),
        ),
        num_gpus=num_gpus,
        scale_factors=np.array(widths or [1] * n),
        epochs=np.maximum(1, np.array(works) // 120).astype(np.int64),
        num_rounds=2,
    )


def asked(done: Replayed) -> list[Window]:
    return list(done.kept.values())


def test_two_jobs_take_turns_by_hand() -> None:
    # Both would finish at 480 s with half of the GPU, and keep that with one of two rounds each.  After the first round
    # the one that ran needs one more round, and the other both that the next window has: the limits are dropped, and
    # the one that is late weighs more.  After the second both have an epoch left, and a round each keeps 480 s.  The
    # last window ends at 600 s, before which nobody finishes as the program counts: the limit is not even asked for.
    done = replay(setting([240, 240]), decider("shockwave.window", "exact"), keep="all")
    assert sorted(done.jobs["ended"]) == pytest.approx([360, 480])
    # Who decides has no plan within the limits of the second window, and who stands in has none.
    first, *limited, second, third, last = asked(done)
    assert len(limited) == 2
    assert all(one.finish_limits.tolist() == [480, 480] for one in (first, *limited))
    assert all(one.epochs_done.tolist() == second.epochs_done.tolist() for one in limited)
    assert sorted(second.epochs_done) == [0, 1]
    assert second.finish_limits.tolist() == [np.inf, np.inf]
    late = second.epochs_done == 0
    assert second.weights[late] == pytest.approx([(600 / 480) ** 5])
    assert second.weights[~late] == [1]
    assert third.epochs_done.tolist() == [1, 1]
    assert third.finish_limits.tolist() == [480, 480]
    assert last.epochs_done.tolist() == [1]
    assert last.finish_limits.tolist() == [np.inf]


def test_finish_times_are_averaged_over_the_rounds_for_which_they_stood() -> None:
    # Alone the first job would finish at 1200 s; when the second comes, at 2400 s.
    jobs = replace(setting([1200, 1200], arrivals=[0, 120]), rho=10.0)
    done = replay(jobs, decider("shockwave.window", "greedy_marginal"), keep="all")
    limits = [(one.finish_limits / 10).tolist() for one in asked(done)[:3]]
    assert limits[0] == [1200]
    assert limits[1] == pytest.approx([0.9 * 1200 + 0.1 * 2400, 120 + 2400])
    assert limits[2] == pytest.approx([0.9 * 1800 + 0.1 * 2400, 120 + 2400])


def test_gpus_that_a_plan_leaves_idle_go_to_those_with_most_left() -> None:
    # Nobody is planned.  The widest job does not fit beside the longest, and the third does; after two rounds it has
    # most left, and goes first.
    def nobody(instance: Window) -> object:
        return instance.plan_type(runs=np.zeros((instance.num_jobs, instance.num_rounds), bool))

    jobs = replace(setting([600, 480, 120], widths=[1, 2, 1], num_gpus=2), rho=100.0)
    done = replay(jobs, decider("shockwave.window", nobody))
    assert done.jobs["started"].tolist() == [0, 240, 0]


def test_a_plan_can_stand_for_several_rounds() -> None:
    jobs = replace(setting([480, 480]), rho=100.0)
    each = replay(jobs, decider("shockwave.window", "greedy_marginal"))
    both = replay(replace(jobs, rounds_followed=2), decider("shockwave.window", "greedy_marginal"))
    # The end of one of them, within a window, asks for another.
    assert (len(each.decisions), len(both.decisions)) == (8, 5)
    assert both.jobs["ended"].tolist() == each.jobs["ended"].tolist() == [840, 960]
    assert both.jobs["ended"].max() == each.jobs["ended"].max() == 960


def test_a_setting_is_refused_by_the_name_of_what_is_wrong() -> None:
    with pytest.raises(ReplayError, match="job 0 holds 2 GPUs, there are 1"):
        setting([1], widths=[2])
    with pytest.raises(ReplayError, match="epochs: must be a whole number, at least 1"):
        replace(setting([1]), epochs=np.array([0]))
    with pytest.raises(ReplayError, match="rounds_followed: got 3, must be 1 to 2"):
        replace(setting([1]), rounds_followed=3)
