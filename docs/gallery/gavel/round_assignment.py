"""The most urgent job needs all three workers, and keeps out three others that count for more together."""

from matplotlib import pyplot

import formulations
from heuristics.gavel.round_assignment import greedy_priority
from instances.gavel.round_assignment import blocked_round
from validation.kernel.gaps import gap_to

instance = blocked_round()
plan, optimum = greedy_priority(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"greedy_priority: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("round_assignment.svg")
