"""Which job can be done first: job 1 runs twice as fast next to job 0 as alone."""

from matplotlib import pyplot

import formulations
from heuristics.gavel.shortest_job_first import shortest_first
from instances.gavel.shortest_job_first import faster_together
from validation.kernel.gaps import gap_to

instance = faster_together()
plan, optimum = shortest_first(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"shortest_first: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("shortest_job_first.svg")
