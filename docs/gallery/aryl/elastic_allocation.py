"""The knapsack of Aryl's Figure 6: which job the two spare GPUs go to."""

from matplotlib import pyplot

import formulations
from heuristics.aryl.elastic_allocation import afs
from instances.aryl.elastic_allocation import figure_6
from validation.kernel.gaps import gap_to

instance = figure_6()
plan, optimum = afs(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"afs: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("elastic_allocation.svg")
