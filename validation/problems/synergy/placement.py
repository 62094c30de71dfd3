"""Entry of synergy.placement: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heuristics.synergy import placement as fast
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, optimum
from validation.testing import st
from validation.testing.arrays import quarters, whole_floats

__all__ = ["ENTRY", "strategy"]

MISSES_WHOLE_GPUS = "the demands can exceed the servers, and with whole GPUs it can miss a placement"

ROUNDS_TO_WHOLE_GPUS = "CPU cores and memory follow the GPUs that are rounded, and can exceed a server's"


@st.composite
def strategy(draw: st.DrawFn, *, max_servers: int = 3, max_jobs: int = 5, max_gpus: int = 4) -> SynergyPlacement:
    """Draw jobs of any demands, larger than a server too; not all need fit."""
    servers: dict[str, Any] = {
        "num_servers": draw(st.integers(1, max_servers)),
        "server_gpus": draw(st.integers(1, max_gpus)),
        "server_cpus": float(draw(st.integers(1, 8))),
        "server_memory": float(draw(st.integers(1, 8))),
        "integral_gpus": draw(st.booleans()),
    }
    if draw(st.booleans()):
        return SynergyPlacement(**servers, demands=draw(_cut_from(max_jobs, **servers)))
    n = draw(st.integers(1, max_jobs))
    demands = [draw(whole_floats(n, 0, max_gpus)), draw(quarters(n, 0, 6)), draw(quarters(n, 0, 6))]
    return SynergyPlacement(**servers, demands=np.column_stack(demands))


@st.composite
def _cut_from(draw: st.DrawFn, /, max_jobs: int, **servers: Any) -> NDArray[np.float64]:
    """Draw demands that fit whole and leave little or nothing free: servers, cut into jobs at quarters."""
    capacity = [servers["server_gpus"], servers["server_cpus"], servers["server_memory"]]
    jobs = []
    for _ in range(servers["num_servers"]):
        parts = draw(st.integers(1, max(1, max_jobs // servers["num_servers"])))
        cuts = [
            np.sort([0.0, total, *draw((whole_floats if whole else quarters)(parts - 1, 0, int(total)))])
            for total, whole in zip(capacity, (True, False, False), strict=True)
        ]
        jobs.extend(np.diff(cuts).T.tolist())
    return np.array(draw(st.permutations(jobs)))


def _whole_or_alike(instance: SynergyPlacement, plan: SynergyPlacementPlan) -> bool:
    """Return whether no job is cut through a GPU where forbidden, but those that nothing could be found for."""
    gpus = plan.shares * instance.demands[:, :1]
    cut = (np.abs(gpus - np.rint(gpus)) > 1e-6).any(axis=1)
    return not instance.integral_gpus or bool(np.allclose(plan.shares[cut], 1 / instance.num_servers))


def _balanced_or_better(instance: SynergyPlacement, plan: SynergyPlacementPlan) -> bool:
    balanced = fast.balanced_fit(instance)
    if plan == balanced or instance.violations(balanced):
        return True
    larger = (instance.demands > instance.capacity).any(axis=1)
    return instance.objective(plan) < instance.objective(balanced) or not instance.fragmented(plan)[~larger].any()


WHOLE = Holds("a GPU is cut only where no placement was found", _whole_or_alike)
DIVISIBLE = BreaksOnly((), lambda instance: not instance.integral_gpus, "where GPUs can be divided")


def _whole_jobs_fit(instance: SynergyPlacement) -> bool:
    """Return whether jobs hold whole GPUs, and the servers have as many."""
    gpus = instance.demands[:, 0]
    return bool((gpus % 1 == 0).all() and gpus.sum() <= instance.num_servers * instance.server_gpus)


def _most_balanced(instance: SynergyPlacement, plan: SynergyPlacementPlan) -> bool:
    """Return whether jobs, the largest fraction of a server first, are where the scarcest resource is least scarce.

    Where one finds no server with room, jobs are cut and taken back, and nothing is said.
    """
    has = instance.capacity > 0
    if not has.all():
        return True
    fractions = instance.demands / instance.capacity
    free = np.ones((instance.num_servers, len(has)))
    balanced = True
    for _, job in sorted((-float(row.max()), job) for job, row in enumerate(fractions)):
        left = (free - fractions[job]).min(axis=1)
        server = int(plan.shares[job].argmax())
        # Whether a job just fits, or just does not, is for the judge to say.
        if left.max() < 1e-9 or plan.shares[job, server] < 1:
            return True
        balanced = balanced and bool(left[server] >= left.max() - 1e-9)
        free[server] -= fractions[job]
    return balanced


AS_GOOD_AS_BALANCED = Holds(
    "it is the plan of balanced_fit, unless it is better or cuts no job that a server holds",
    _balanced_or_better,
)
ONE_SERVER = optimum(
    lambda instance: bool((instance.demands.sum(axis=0) <= instance.capacity).all()), "where all jobs fit one server"
)


ENTRY = Entry(
    title="Which server each job runs on, with the fewest jobs on more than one",
    source="Synergy, section 4.1.2 and appendix A.1.3",
    instance=SynergyPlacement,
    generate=generate,
    size="num_servers",
    sizes=(2, 4, 8),
    heuristics=named(
        Heuristic(fast.best_fit, infeasible_because=MISSES_WHOLE_GPUS, promises=(DIVISIBLE, WHOLE, ONE_SERVER)),
        Heuristic(
            fast.balanced_fit,
            infeasible_because=MISSES_WHOLE_GPUS,
            promises=(
                DIVISIBLE,
                WHOLE,
                ONE_SERVER,
                Holds("where all jobs fit whole, each is on the server that it leaves most balanced", _most_balanced),
            ),
        ),
        Heuristic(
            fast.swap_fit,
            infeasible_because=MISSES_WHOLE_GPUS,
            promises=(DIVISIBLE, WHOLE, ONE_SERVER, NeverWorseThan("balanced_fit"), AS_GOOD_AS_BALANCED),
        ),
        Heuristic(
            fast.rounded_fit,
            infeasible_because=ROUNDS_TO_WHOLE_GPUS,
            promises=(BreaksOnly(("server_cpus", "server_memory"), _whole_jobs_fit, "where the jobs' whole GPUs fit"),),
        ),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("server_cpus", "demands[1]"), 0), Rescaling(("server_memory", "demands[2]"), 0)),
    enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
    strategy=strategy,
    wide={"max_servers": 6, "max_jobs": 10, "max_gpus": 16},
)
