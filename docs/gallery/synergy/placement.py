"""Demands that nearly fill two servers: how many jobs are cut in two."""

from matplotlib import pyplot

import formulations
from heuristics.synergy.placement import best_fit
from instances.synergy.placement import generate
from validation.kernel.gaps import gap_to

instance = generate(1, num_servers=2, fill=1.0)
plan, optimum = best_fit(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained")
instance.plot(plan, ax=above)
above.set_title(f"best_fit: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("placement.svg")
