"""Figure 3 of ElasticFlow: earliest deadline first misses a deadline, one GPU each meets both."""

from matplotlib import pyplot

import formulations
from heuristics.elasticflow.minimum_satisfactory_share import edf
from instances.elasticflow.minimum_satisfactory_share import two_jobs

instance = two_jobs()
plan, optimum = edf(instance), formulations.solve(instance)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"edf: infeasible, {instance.violations(plan)[0]}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("minimum_satisfactory_share.svg")
