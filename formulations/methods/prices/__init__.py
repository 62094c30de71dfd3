"""Policies' programs without pairs, solved over a few prices whatever the number of jobs.

:mod:`~formulations.methods.prices.jobs` has a program as jobs, and the way back; in
:mod:`~formulations.methods.prices.mixes` each job is alone at prices; :mod:`~formulations.methods.prices.interior` has
prices of the program over a sample, :mod:`~formulations.methods.prices.some` the optimum of the last one; and
:mod:`~formulations.methods.prices.search` takes the steps.

Jobs that share no workers meet in few rows: the pools' capacities, a budget, and one variable g (a level, a
rate) that all of them look at.  At prices of these rows each job is alone, with time to spend and perhaps a
throughput to reach,

    min  sum_j cost[m, j] * x[j]   s.t.   sum_j x[j] <= time(g),   sum_j speed[m, j] * x[j] >= asked[m](g),   x >= 0,

where ``cost`` is what its workers cost at the prices less what its time there is worth.  With idleness as one
more type, of speed and cost 0, the points (speed, cost) have a lower convex hull, and the best mix is on it: one
type, or the two ends of an edge.  As g moves, the shares of a mix are linear in g.

Away from the optimum's prices by little, nearly all jobs have the mix that they have there.  So

1. a sample of some hundreds stands for all jobs: each is drawn with a chance in proportion to the load that it may
   shift and to how near it is to another mix, and stands for as many as its chance is small.  Once all jobs' mixes
   at some prices are known, the rows are corrected by what the sample's load there misses, so that only jobs that
   change their mix add to the error.  The program over the sample gives prices;
2. all jobs are asked for their mix at these prices, how near it is to another, and how far the pools are from full.
   Prices at which they are nearer to it are kept; else the sample grows;
3. when few jobs are near enough to matter, the program over them, with the other jobs' mixes as linear functions of g,
   has the prices and shares of the whole, if no other job can do better at its prices.  Those that can are added to
   it, until what is left to gain is rounding.

Until the last step costs are perturbed by about 1e-6 of the prices, so that among many jobs that are alike, or
types that cost nothing, there is one best mix.

Nothing rests on the samples: the result is a point and prices of all rows of the whole program, and their
certificate says what they prove.  Where it is not a proof, or the steps do not end, the method gives up
(:class:`formulations.methods.GaveUp`), and the linear program is solved as a whole.
"""

from __future__ import annotations

from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.methods.generation import refuse_numbers
from formulations.methods.policy import PolicyMethod, Task
from formulations.methods.prices.jobs import Jobs
from formulations.methods.prices.search import PricedJobs, first_sample
from instances.gavel.sharing import Sharing

__all__ = ["METHOD", "Jobs", "PricedJobs", "applies"]


def applies(instance: Sharing) -> bool:
    """Return whether there are no pairs, and more jobs than the last program would have anyway."""
    return not instance.num_pairs and first_sample(instance.num_jobs) is not None


def _run(task: Task, options: Options) -> Result:
    units = refuse_numbers(task.policy, task.program)
    return PricedJobs(task.policy, task.program, options, units).run()


METHOD = PolicyMethod(
    name="prices of what jobs share",
    short="prices",
    proves="prices of pools and budget, found over some of the jobs and checked on the whole program",
    where="more than a hundred jobs without pairs",
    run=_run,
)
