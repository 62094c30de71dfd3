"""Jobs have come, gone and grown on four servers of 4 GPUs: who must move so that all find a block."""

from matplotlib import pyplot

import formulations
from heuristics.elasticflow.placement import buddy_repack
from instances.elasticflow.placement import generate
from validation.kernel.gaps import gap_to

instance = generate(31, num_servers=4, gpus_per_server=4, resized=0.3)
plan, optimum = buddy_repack(instance), formulations.solve(instance)
gap = gap_to(instance.objective(plan), optimum.objective)

figure, (above, below) = pyplot.subplots(2, 1, figsize=(6, 6.4), layout="constrained", sharex=True)
instance.plot(plan, ax=above)
above.set_title(f"buddy_repack: {instance.objective(plan):.4g}, a gap of {gap:.0%}")
instance.plot(optimum.plan, ax=below)
below.set_title(f"{optimum.status}: {optimum.objective:.4g}")
figure.suptitle(f"{instance.problem}\n{instance.measure}")
figure.savefig("placement.svg")
