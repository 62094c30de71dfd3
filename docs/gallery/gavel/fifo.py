"""The first job barely minds the slower type 1, the second one does."""

from matplotlib import pyplot

import formulations
from heuristics.gavel.fifo import fastest_free_type
from instances.gavel.fifo import near_tie
from validation.kernel.gaps import gap_to

instance = near_tie()
plan, optimum = fastest_free_type(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"fastest_free_type: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("fifo.svg")
