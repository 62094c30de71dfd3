"""Shares that jobs want, and shares that pack into 16 machines of 4 GPUs (AFS, section 4.4)."""

from matplotlib import pyplot

import formulations
from heuristics.afs.network_packing import floor_and_grow
from instances.afs.network_packing import section_4_4
from validation.kernel.gaps import gap_to

instance = section_4_4()
plan, optimum = floor_and_grow(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"floor_and_grow: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("network_packing.svg")
