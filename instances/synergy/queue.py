"""Jobs that run in a round: the queue of a scheduling policy, and the first of it whose GPUs fit.

Every round begins with the *runnable* jobs (Synergy, OSDI'22, section 4.2).  The policy orders the queue,
by arrival, remaining time, attained service or fairness; the first jobs whose GPU demands the cluster can
satisfy are runnable, whatever CPUs and memory they want.  With them, any of Synergy's problems is
``instance.restricted_to(runnable(...))``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from instances.schema import FloatArray, IntArray

__all__ = ["fifo", "ftf", "las", "runnable", "srtf"]


def fifo(arrivals: ArrayLike) -> IntArray:
    """First in, first out.

    Parameters
    ----------
    arrivals : (n,) array_like
        When each job arrived, s.

    Returns
    -------
    (n,) int
        The jobs in the order of the queue; ties go to the lowest index.
    """
    return _ascending("arrivals", arrivals)


def srtf(remaining: ArrayLike) -> IntArray:
    """Shortest remaining time first; as :func:`fifo`, of the time that each job has left, s."""
    return _ascending("remaining", remaining)


def las(attained: ArrayLike) -> IntArray:
    """Least attained service first; as :func:`fifo`, of the GPU time that each job has had, s."""
    return _ascending("attained", attained)


def ftf(ratios: ArrayLike) -> IntArray:
    """Finish-time fairness: the job that fares worst first.

    Parameters
    ----------
    ratios : (n,) array_like
        Each job's completion time in the shared cluster, as expected, over that in a cluster of its own.

    Returns
    -------
    (n,) int
        The jobs by falling ratio; ties go to the lowest index.

    References
    ----------
    Mahajan et al., "Themis" (NSDI'20), of which Synergy takes the policy.
    """
    return _ascending("ratios", -_numbers("ratios", ratios))


def runnable(gpu_demands: ArrayLike, num_gpus: int, order: Iterable[int], *, skip: bool = True) -> IntArray:
    """Return the runnable jobs of a round: the first of the queue whose GPU demands can be satisfied.

    Each job of the queue in turn takes its GPUs, if there are as many left.  CPUs and memory play no part.

    Parameters
    ----------
    gpu_demands : (n,) array_like of int
        GPUs that each job wants.
    num_gpus : int
        GPUs of the cluster.
    order : iterable of int
        The queue.
    skip : bool
        What happens where a job's GPUs are not there.  True: it is passed over, the only reason for which
        section 4.2 skips a job.  False: the round ends there, so that the runnable jobs are the top of the
        queue and no others.

    Returns
    -------
    (k,) int
        The runnable jobs in the order of the queue.

    Raises
    ------
    ValueError
        When a demand is below 1.

    References
    ----------
    Synergy (OSDI'22), section 4.2; also 3 and appendix A.1 (notation, J_t).
    """
    demands = np.asarray(gpu_demands, np.int64)
    if (demands < 1).any():
        job = int(np.flatnonzero(demands < 1)[0])
        raise ValueError(f"gpu_demands: got {demands[job]} at index [{job}], must be at least 1")
    found: list[int] = []
    left = num_gpus
    for job in order:
        if demands[job] <= left:
            found.append(int(job))
            left -= int(demands[job])
        elif not skip:
            break
    return np.array(found, np.int64)


def _ascending(name: str, keys: ArrayLike) -> IntArray:
    return np.argsort(_numbers(name, keys), kind="stable")


def _numbers(name: str, keys: ArrayLike) -> FloatArray:
    values = np.asarray(keys, float)
    if values.ndim != 1 or np.isnan(values).any():
        raise ValueError(f"{name}: must be one number for each job")
    return values
