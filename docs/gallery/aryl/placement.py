"""Six workers fill two servers of 8 GPUs; best fit opens a third."""

from matplotlib import pyplot

import formulations
from heuristics.aryl.placement import best_fit_decreasing
from instances.aryl.placement import two_full_servers
from validation.kernel.gaps import gap_to

instance = two_full_servers()
plan, optimum = best_fit_decreasing(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"best_fit_decreasing: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("placement.svg")
