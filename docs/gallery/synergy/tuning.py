"""Four jobs of four GPUs on two servers: who gives up cores and memory."""

from matplotlib import pyplot

import formulations
from heuristics.synergy.tuning import tune
from instances.synergy.tuning import four_jobs
from validation.kernel.gaps import gap_to

instance = four_jobs()
plan, optimum = tune(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained")
instance.plot(plan, ax=above)
above.set_title(f"tune: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("tuning.svg")
