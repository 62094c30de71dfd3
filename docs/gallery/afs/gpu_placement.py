"""Shares that change on three machines of 4 GPUs: who stays where it is."""

from matplotlib import pyplot

import formulations
from heuristics.afs.gpu_placement import first_fit_decreasing
from instances.afs.gpu_placement import generate
from validation.kernel.gaps import gap_to

instance = generate(0, num_jobs=6, num_machines=3, gpus_per_machine=4)
plan, optimum = first_fit_decreasing(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"first_fit_decreasing: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("gpu_placement.svg")
