"""A job without a deadline waits a slot longer than it must."""

from matplotlib import pyplot

import formulations
from heuristics.elasticflow.best_effort import minimum_shares_first
from instances.elasticflow.best_effort import share_in_the_way
from validation.kernel.gaps import gap_to

instance = share_in_the_way()
plan, optimum = minimum_shares_first(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"minimum_shares_first: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("best_effort.svg")
