"""Two of six servers must go back: Aryl's Algorithm 1 preempts two jobs where one is enough."""

from matplotlib import pyplot

import formulations
from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import wide_job
from validation.kernel.gaps import gap_to

instance = wide_job()
plan, optimum = server_fraction(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"server_fraction: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("reclaim.svg")
