"""Twelve jobs on three GPU types: greedy choices by gain per GPU, and an optimum."""

from matplotlib import pyplot

import formulations
from heuristics.sia.goodput import greedy_marginal
from instances.sia.goodput import generate
from validation.kernel.gaps import gap_to

instance = generate(0, num_jobs=12)
plan, optimum = greedy_marginal(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 7), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"greedy_marginal: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("goodput.svg")
