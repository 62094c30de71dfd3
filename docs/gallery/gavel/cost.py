"""Three jobs on a V100 at $3/h (type 0) and a K80 at $1/h (type 1): the fastest worker's steps are not the cheapest."""

from matplotlib import pyplot

import formulations
from heuristics.gavel.cost import fastest_first
from instances.gavel.cost import three_jobs
from validation.kernel.gaps import gap_to

instance = three_jobs()
plan, optimum = fastest_first(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"fastest_first: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("cost.svg")
