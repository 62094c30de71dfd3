"""Two equal jobs: idle GPUs shared, or all given to one."""

from matplotlib import pyplot

import formulations
from heuristics.elasticflow.allocation import greedy_marginal_return_repaired
from instances.elasticflow.allocation import equal_jobs
from validation.kernel.gaps import gap_to

instance = equal_jobs()
plan, optimum = greedy_marginal_return_repaired(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"greedy_marginal_return_repaired: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("allocation.svg")
