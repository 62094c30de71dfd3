"""Three jobs on a V100 (type 0) and a K80 (type 1): the most steps for all together."""

from matplotlib import pyplot

import formulations
from heuristics.gavel.total_throughput import heterogeneity_agnostic
from instances.gavel.total_throughput import three_jobs
from validation.kernel.gaps import gap_to

instance = three_jobs()
plan, optimum = heterogeneity_agnostic(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"heterogeneity_agnostic: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("total_throughput.svg")
