"""Two jobs, and one more GPU: the rule for pairs gives it to the wrong one."""

from matplotlib import pyplot

import formulations
from heuristics.afs.two_job import pairwise_rule
from instances.afs.two_job import overtaken
from validation.kernel.gaps import gap_to

instance = overtaken()
plan, optimum = pairwise_rule(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"pairwise_rule: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("two_job.svg")
