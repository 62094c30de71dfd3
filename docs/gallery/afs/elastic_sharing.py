"""Appendix A of AFS: two jobs on two GPUs; one GPU each looks fair, one after the other is sooner on average."""

from matplotlib import pyplot

import formulations
from heuristics.afs.elastic_sharing import afs_l
from instances.afs.elastic_sharing import appendix_a
from validation.kernel.gaps import gap_to

instance = appendix_a()
plan, optimum = afs_l(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"afs_l: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("elastic_sharing.svg")
