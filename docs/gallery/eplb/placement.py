"""Eight experts on eight GPUs of two slots: the released global policy, and an optimum."""

from matplotlib import pyplot

import formulations
from heuristics.eplb.placement import released_global
from instances.eplb.placement import eight_experts
from validation.kernel.gaps import gap_to

instance = eight_experts()
plan, optimum = released_global(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 7), layout="constrained", sharex=True, sharey=True)
instance.plot(plan, ax=above)
above.set_title(f"released_global: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("placement.svg")
