"""A V100 at $3/h (type 0) and a K80 at $1/h (type 1): which job gets the most out of which price."""

from matplotlib import pyplot

import formulations
from heuristics.gavel.throughput_per_dollar import heterogeneity_agnostic
from instances.gavel.throughput_per_dollar import three_jobs
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
figure.savefig("throughput_per_dollar.svg")
