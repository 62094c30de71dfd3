"""A large job that comes first keeps out two small ones."""

from matplotlib import pyplot

import formulations
from heuristics.elasticflow.admission import progressive_filling
from instances.elasticflow.admission import greedy_arrival
from validation.kernel.gaps import gap_to

instance = greedy_arrival()
plan, optimum = progressive_filling(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"progressive_filling: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("admission.svg")
