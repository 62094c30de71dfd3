"""Twelve models on six GPUs: the released program's placement, and an optimum."""

from matplotlib import pyplot

import formulations
from heuristics.prism.placement import least_pressure
from instances.prism.placement import generate
from validation.kernel.gaps import gap_to

instance = generate(2, num_jobs=12)
plan, optimum = least_pressure(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 7), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"least_pressure: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("placement.svg")
