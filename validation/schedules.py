"""Pictures of schedules: GPUs over time, job by job."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from instances.afs.elastic_sharing import ElasticSharing, Schedule

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D31", "#7F7F7F")


def draw_schedule(axes: Axes, instance: ElasticSharing, plan: Schedule) -> None:
    """Draw the GPUs that each job holds over time, stacked; a dotted line marks each completion.

    Parameters
    ----------
    axes : matplotlib Axes
    instance : ElasticSharing
    plan : Schedule
    """
    bottom = np.zeros(len(plan.shares))
    for job in range(instance.num_jobs):
        colour = COLOURS[job % len(COLOURS)]
        axes.bar(
            plan.times[:-1],
            plan.shares[:, job],
            width=np.diff(plan.times),
            bottom=bottom,
            align="edge",
            color=colour,
            edgecolor="white",
            linewidth=0.6,
            label=f"job {job}",
        )
        bottom += plan.shares[:, job]
    for job, completion in enumerate(instance.completions(plan)):
        if np.isfinite(completion):
            axes.axvline(completion, color=COLOURS[job % len(COLOURS)], linestyle=":", linewidth=1.5)
    axes.set_ylim(0, instance.num_gpus * 1.02)
    axes.set_xlim(left=0)
    axes.set_xlabel("time, s")
    axes.set_ylabel("GPUs")
