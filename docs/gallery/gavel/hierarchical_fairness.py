"""Gavel's Figure 6: two teams share two GPUs, one in order, one fairly."""

from matplotlib import pyplot

import formulations
from heuristics.gavel.hierarchical_fairness import isolated
from instances.gavel.hierarchical_fairness import product_and_research
from validation.kernel.gaps import gap_to

instance = product_and_research()
plan, optimum = isolated(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"isolated: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("hierarchical_fairness.svg")
