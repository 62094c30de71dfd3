"""Two elastic jobs on 8 GPUs: a minimum binds, and the closed form errs."""

from matplotlib import pyplot

import formulations
from heuristics.aryl.two_job import closed_form
from instances.aryl.two_job import binding_minimum
from validation.kernel.gaps import gap_to

instance = binding_minimum()
plan, optimum = closed_form(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"closed_form: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("two_job.svg")
