"""Cores and memory on a plain and a faster server: shares by GPUs, or by what jobs make of them."""

from matplotlib import pyplot

import formulations
from heuristics.synergy.heterogeneous_allocation import proportional
from instances.synergy.heterogeneous_allocation import generate
from validation.kernel.gaps import gap_to

instance = generate(0, num_servers=1)
plan, optimum = proportional(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained")
instance.plot(plan, ax=above)
above.set_title(f"proportional: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("heterogeneous_allocation.svg")
