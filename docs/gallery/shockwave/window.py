"""Eight jobs in a window of ten rounds: the latest first, measured by their limits, and an optimum."""

from matplotlib import pyplot

import formulations
from heuristics.shockwave.window import finish_time_fair
from instances.shockwave.window import generate
from validation.kernel.gaps import gap_to

instance = generate(1, num_jobs=8, num_rounds=10)
plan, optimum = finish_time_fair(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(7, 7), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"finish_time_fair: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
above.set_xlabel("")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("window.svg")
