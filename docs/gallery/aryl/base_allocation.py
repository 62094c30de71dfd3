"""Three jobs wait for two GPUs: the shortest one first is not the best order."""

from matplotlib import pyplot

import formulations
from heuristics.aryl.base_allocation import shortest_job_first
from instances.aryl.base_allocation import short_but_large
from validation.kernel.gaps import gap_to

instance = short_but_large()
plan, optimum = shortest_job_first(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"shortest_job_first: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("base_allocation.svg")
