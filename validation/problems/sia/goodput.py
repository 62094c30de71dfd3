"""Entry of sia.goodput: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heuristics.sia import goodput as fast
from instances.sia.goodput import Goodput, GoodputPlan, from_trace, generate
from validation.catalogue import Entry, Heuristic, named
from validation.kinds.promises import Holds, NeverWorseThan, optimum
from validation.problems.gavel.peers import SOLVER, maximize
from validation.testing import st
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "relaxation_rounded", "strategy"]

POWERS = (-1.0, -0.5, 0.5, 1.0)


@st.composite
def strategy(
    draw: st.DrawFn, *, max_jobs: int = 4, max_types: int = 2, max_configs: int = 4, max_gpus: int = 4
) -> Goodput:
    """Draw jobs with any goodputs on a few configurations, some of which they hold."""
    n, t = draw(st.integers(1, max_jobs)), draw(st.integers(1, max_types))
    k = draw(st.integers(1, max_configs))
    goodputs = draw(whole_floats(n * k, 0, 8)).reshape(n, k)
    return Goodput(
        num_gpus=draw(integers(t, 1, max_gpus)),
        config_types=draw(integers(k, 0, t - 1)),
        config_gpus=draw(integers(k, 1, max_gpus)),
        goodputs=goodputs,
        current=draw(integers(n, -1, k - 1)),
        restart_factors=draw(integers(n, 1, 8)) / 8,
        power=draw(st.sampled_from(POWERS)),
        queue_penalty=draw(st.sampled_from((0.0, 0.5, 1.1))),
    )


def _enough(instance: Goodput) -> bool:
    """Return whether every job can have its best configuration."""
    best = np.where(instance.fits, instance.costs, np.inf)
    chosen = np.where(best.min(axis=1) < instance.waiting_cost, best.argmin(axis=1), -1)
    return not instance.violations(GoodputPlan(configs=chosen))


def _none_alone(instance: Goodput, plan: GoodputPlan) -> bool:
    """Return whether no job alone has a better configuration that fits, the others as they are."""
    for job, held in enumerate(plan.configs.tolist()):
        now = instance.waiting_cost if held < 0 else float(instance.costs[job, held])
        for config in range(-1, instance.num_configs):
            changed = plan.configs.copy()
            changed[job] = config
            then = instance.waiting_cost if config < 0 else float(instance.costs[job, config])
            if then < now - 1e-9 and not instance.violations(GoodputPlan(configs=changed)):
                return False
    return True


LOCAL = Holds("no job alone has a better configuration that fits", _none_alone)


def relaxation_rounded(instance: Goodput) -> GoodputPlan:
    """Return the relaxation's rounded plan, the relaxation solved by HiGHS."""
    return fast.relaxation_rounded(instance, maximize)


ENTRY = Entry(
    title="Which GPU type and how many GPUs each job has in the next round",
    source="Sia, the program of its policy",
    instance=Goodput,
    generate=generate,
    size="num_jobs",
    sizes=(10, 40, 160),
    heuristics=named(
        Heuristic(fast.greedy_marginal, promises=(LOCAL,)),
        Heuristic(
            fast.priced_types,
            promises=(
                LOCAL,
                NeverWorseThan("greedy_marginal"),
                optimum(_enough, "where each job can have the configuration that is best for it"),
            ),
        ),
        Heuristic(relaxation_rounded, imports=SOLVER, promises=(LOCAL,)),
        fast.greedy_goodput,
        fast.optimus,
        fast.gavel_rounded,
        fast.genetic_search,
    ),
    from_trace=from_trace,
    symmetric=("n",),
    enlarge=lambda instance: replace(instance, num_gpus=instance.num_gpus + 1),
    strategy=strategy,
    wide={"max_jobs": 8, "max_types": 4, "max_configs": 12, "max_gpus": 64},
)
