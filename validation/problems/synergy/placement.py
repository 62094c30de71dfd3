"""synergy.placement: what is promised of its heuristics, and small instances to test them on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from heuristics.synergy import placement as fast
from instances.synergy.placement import SynergyPlacement, SynergyPlacementPlan, from_trace, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.testing.arrays import quarters, whole_floats
from validation.testing.promises import BreaksOnly, Holds, NeverWorseThan, optimum

__all__ = ["ENTRY", "strategy"]

MISSES_WHOLE_GPUS = "the demands can exceed the servers, and with whole GPUs it can miss a placement"

ROUNDS_TO_WHOLE_GPUS = "CPU cores and memory follow the GPUs that are rounded, and can exceed a server's"


@st.composite
def strategy(draw: st.DrawFn, *, max_servers: int = 3, max_jobs: int = 5, max_gpus: int = 4) -> SynergyPlacement:
    """Jobs of any demands, larger than a server too; not all need fit."""
    n = draw(st.integers(1, max_jobs))
    return SynergyPlacement(
        num_servers=draw(st.integers(1, max_servers)),
        server_gpus=draw(st.integers(1, max_gpus)),
        server_cpus=float(draw(st.integers(1, 8))),
        server_memory=float(draw(st.integers(1, 8))),
        demands=np.column_stack([draw(whole_floats(n, 0, max_gpus)), draw(quarters(n, 0, 6)), draw(quarters(n, 0, 6))]),
        integral_gpus=draw(st.booleans()),
    )


def _whole_or_alike(instance: SynergyPlacement, plan: SynergyPlacementPlan) -> bool:
    """Whether a job cut through a GPU, where that is forbidden, is one of those that nothing could be found for."""
    gpus = plan.shares * instance.demands[:, :1]
    cut = (np.abs(gpus - np.rint(gpus)) > 1e-6).any(axis=1)
    return not instance.integral_gpus or bool(np.allclose(plan.shares[cut], 1 / instance.num_servers))


WHOLE = Holds("a GPU is cut only where no placement was found", _whole_or_alike)
DIVISIBLE = BreaksOnly((), lambda instance: not instance.integral_gpus, "where GPUs can be divided")
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
        Heuristic(fast.balanced_fit, infeasible_because=MISSES_WHOLE_GPUS, promises=(DIVISIBLE, WHOLE, ONE_SERVER)),
        Heuristic(
            fast.swap_fit,
            infeasible_because=MISSES_WHOLE_GPUS,
            promises=(DIVISIBLE, WHOLE, ONE_SERVER, NeverWorseThan("balanced_fit")),
        ),
        Heuristic(fast.rounded_fit, infeasible_because=ROUNDS_TO_WHOLE_GPUS),
    ),
    from_trace=from_trace,
    symmetric=("n",),
    rescalings=(Rescaling(("server_cpus", "demands[1]"), 0), Rescaling(("server_memory", "demands[2]"), 0)),
    enlarge=lambda instance: replace(instance, num_servers=instance.num_servers + 1),
    strategy=strategy,
    wide={"max_servers": 6, "max_jobs": 10, "max_gpus": 16},
)
