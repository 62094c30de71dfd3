"""The setting of Sia, against a replay worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from instances.sia.goodput import Goodput
from validation.errors import ReplayError
from validation.replay import Costs, Jobs, decider, replay
from validation.replay.settings import afs, sia


def elastic(works: list[float], arrivals: list[float], *, num_gpus: int = 4) -> afs.Elastic:
    """Jobs that make as many iterations a second as they have GPUs."""
    n = len(works)
    return afs.Elastic(
        jobs=Jobs(
            names=[str(job) for job in range(n)],
            arrivals=np.array(arrivals),
            work=np.array(works),
            fastest=np.full(n, float(num_gpus)),
        ),
        num_gpus=num_gpus,
        throughputs=np.tile(np.arange(num_gpus + 1.0), (n, 1)),
        requests=np.ones(n, np.int64),
    )


def test_two_jobs_by_hand() -> None:
    # A has all four GPUs, and makes 240 in its first round.  Then B comes.  A change leaves A 60 / (60 + 30) of its
    # goodput: two GPUs each are worth (4/3)^-1/2 + 2^-1/2 = 1.573, and A as it is while B waits 4^-1/2 + 1.1.  A has
    # made 60 of its last 240 ... 180 by 180 s, when B ends; a change leaves it (180 - 30) / (180 + 30) then, and four
    # GPUs are worth (4 * 5/7)^-1/2 < 2^-1/2: it pauses once more, and needs 15 s for what is left.
    setting = sia.on_powers_of_two(elastic([480, 240], [0, 60]), server_gpus=4, restart_seconds=30.0)
    done = replay(setting, decider("sia.goodput", "exact"), costs=Costs(restart=30.0), keep="all")
    assert done.jobs["ended"].tolist() == pytest.approx([225, 180])
    assert done.jobs["restarts"].tolist() == [2, 0]
    asked = list(done.kept.values())
    assert [one.current.tolist() for one in asked] == [[-1], [2, -1], [1, 1], [1]]
    assert [one.restart_factors[0] for one in asked] == pytest.approx([sia.LEAST, 60 / 90, 90 / 150, 150 / 210])


def test_two_types_and_ties_by_a_seed() -> None:
    # A job is three times as fast on the second type, the other as fast on both: each has its own.
    setting = sia.Sia(
        jobs=Jobs(names=["a", "b"], arrivals=np.zeros(2), work=np.array([120.0, 120.0]), fastest=np.array([3.0, 1.0])),
        num_gpus=np.array([1, 1]),
        config_types=np.array([0, 1]),
        config_gpus=np.array([1, 1]),
        rates=np.array([[1.0, 3.0], [1.0, 1.0]]),
    )
    for ties in (None, 1, 2):
        done = replay(setting, decider("sia.goodput", "exact"), ties=ties)
        assert done.jobs.sort_values("job")["ended"].tolist() == [40, 120]


def test_an_equal_share_is_linear_between_configurations() -> None:
    setting = sia.on_powers_of_two(elastic([1, 1, 1], [0, 0, 0]), server_gpus=4)
    assert setting.config_gpus.tolist() == [1, 2, 4]
    assert setting.equal_rates(np.arange(3)) == pytest.approx(np.full(3, 4 / 3))
    flat = replace(setting, rates=np.tile([1.0, 2.0, 3.0], (3, 1)))
    assert flat.equal_rates(np.array([0])) == pytest.approx([3.0])


def test_a_setting_is_refused_by_the_name_of_what_is_wrong() -> None:
    setting = sia.on_powers_of_two(elastic([1], [0]))
    with pytest.raises(ReplayError, match=r"rates: got shape \(1, 2\), must be \(1, 3\)"):
        replace(setting, rates=setting.rates[:, :2])
    with pytest.raises(ReplayError, match="config_gpus: configuration 2 has more GPUs"):
        replace(setting, num_gpus=np.array([3]))
    with pytest.raises(ReplayError, match="restart_seconds: got -1"):
        replace(setting, restart_seconds=-1)


def test_instances_are_those_of_the_problem() -> None:
    setting = sia.on_powers_of_two(elastic([100, 100, 100], [0, 0, 30]))
    done = replay(setting, decider("sia.goodput", "greedy_marginal"), keep="all")
    assert all(isinstance(one, Goodput) and one.power == -0.5 for one in done.kept.values())
    assert done.metrics()["ended"] == 3
