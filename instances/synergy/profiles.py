"""Profiles of jobs, their speed with given CPU cores and memory: Synergy (OSDI'22), section 3.1.

A training job is a pipeline: storage delivers samples, CPU cores prepare them, GPUs consume them,
and the slowest stage sets the pace.  A cache in memory that keeps a fixed set of samples saves
their reads, so the share of reads that still goes to storage is known from the sizes alone.  This
makes *optimistic profiling* possible: measure the job at a few CPU counts with all its memory, and
compute the rest.

Published profiles are read by :func:`instances.data.synergy.read_profiles`; :func:`draw_matrix` makes
synthetic ones from the model above.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from instances.schema import FloatArray, IntArray

__all__ = [
    "CPUS_PER_GPU",
    "MEMORY_SHARES",
    "TASKS",
    "binary_search_profile",
    "both_halves_profile",
    "draw_gpu_demands",
    "draw_matrix",
    "draw_tasks",
    "fetch_speed",
    "naive_profile",
    "optimistic_profile",
    "profile",
]

TASKS: Mapping[str, tuple[str, ...]] = {
    "image": ("alexnet", "res18", "res50", "mobilenet", "shufflenet"),
    "language": ("gnmt", "transformer", "lstm"),
    "speech": ("m5", "deepspeech"),
}
"""Models of each task, in the order in which a mix such as (20, 70, 10) counts the tasks."""

CPUS_PER_GPU = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0, 12.0, 24.0)
"""CPU cores per GPU of the published profiles, and of the synthetic ones."""

MEMORY_SHARES = (1 / 3, 1.0, 2.0, 3.0, 4.0)
"""Memory of the synthetic profiles, in GPU-proportional shares, as the published ones have it."""


# --- the analytic model (3.1) ------------------------------------------------------------------


def fetch_speed(
    memory: ArrayLike,
    *,
    dataset_size: float,
    sample_size: float,
    storage_bandwidth: float,
    process_memory: float = 0.0,
) -> FloatArray:
    """Samples/s that storage and cache deliver together.

    Of ``dataset_size`` GB, those are cached for which there is memory beside the process; every epoch
    reads each sample once, so the rest, a fixed fraction, comes from storage, whatever their order.

    Parameters
    ----------
    memory : array_like
        Memory of the job, GB.
    dataset_size : float
        Size of the data set, GB.
    sample_size : float
        Size of one sample, MB.
    storage_bandwidth : float
        What storage delivers to this job, MB/s.
    process_memory : float
        Memory that training takes beside the cache, GB; with less, the job cannot run.

    Returns
    -------
    FloatArray
        Infinite where the whole data set is cached, 0 where the process has too little memory.
    """
    cache = np.asarray(memory, float) - process_memory
    missing = np.maximum(0.0, 1 - cache / dataset_size)
    with np.errstate(divide="ignore"):
        speed: FloatArray = np.where(cache < 0, 0.0, storage_bandwidth / (sample_size * missing))
    return speed


def profile(
    cpus: ArrayLike,
    memory: ArrayLike,
    *,
    gpu_speed: float,
    cpu_speed: float | ArrayLike,
    dataset_size: float,
    sample_size: float,
    storage_bandwidth: float,
    process_memory: float = 0.0,
) -> FloatArray:
    """Return the sensitivity matrix W[c, m] of a job: the slowest of GPU, CPU and storage.

    Parameters
    ----------
    cpus : (c,) array_like
        CPU cores of the job.
    memory : (m,) array_like
        Memory of the job, GB.
    gpu_speed : float
        Samples/s that the job's GPUs consume.
    cpu_speed : float or (c,) array_like
        Samples/s that one core prepares; or, as measured with all data cached, samples/s at each
        entry of ``cpus`` (cores do not always scale linearly).
    dataset_size, sample_size, storage_bandwidth, process_memory : float
        As in :func:`fetch_speed`: GB, MB, MB/s, GB.

    Returns
    -------
    (c, m) FloatArray
        Samples/s.

    Raises
    ------
    ValueError
        When a speed or size is not positive, or the process memory negative.

    References
    ----------
    Synergy (OSDI'22), section 3.1.
    """
    for name, value in (
        ("gpu_speed", gpu_speed),
        ("dataset_size", dataset_size),
        ("sample_size", sample_size),
        ("storage_bandwidth", storage_bandwidth),
    ):
        if not value > 0:
            raise ValueError(f"{name}: got {value!r}, must be positive")
    if not process_memory >= 0:
        raise ValueError(f"process_memory: got {process_memory!r}, must be at least 0")
    cores = np.asarray(cpus, float)
    speed = np.asarray(cpu_speed, float)
    if not (speed > 0).all() or speed.shape not in ((), cores.shape):
        raise ValueError(f"cpu_speed: got {cpu_speed!r}, must be positive, one for all or one for each of cpus")
    prepared = speed * cores if speed.ndim == 0 else speed
    fetched = fetch_speed(
        memory,
        dataset_size=dataset_size,
        sample_size=sample_size,
        storage_bandwidth=storage_bandwidth,
        process_memory=process_memory,
    )
    matrix: FloatArray = np.minimum(np.minimum(gpu_speed, prepared)[:, None], fetched[None, :])
    return matrix


def naive_profile(
    measure: Callable[[int, float], float], cpus: Sequence[int] | IntArray, memory: Sequence[float] | FloatArray
) -> FloatArray:
    """Measure the sensitivity matrix in every combination, which optimistic profiling is compared with.

    Parameters
    ----------
    measure : callable
        Throughput at a number of cores and so much memory (GB).
    cpus, memory : (c,) and (m,) sequence

    Returns
    -------
    (c, m) FloatArray
        After c m measurements: 240 for 1 to 24 cores and 10 steps of 50 GB.

    References
    ----------
    Synergy (OSDI'22), section 3.1.
    """
    matrix: FloatArray = np.array([[float(measure(cores, size)) for size in memory] for cores in cpus])
    return matrix


def optimistic_profile(
    measure: Callable[[int], float],
    max_cpus: int,
    memory: ArrayLike,
    *,
    dataset_size: float,
    sample_size: float,
    storage_bandwidth: float,
    process_memory: float = 0.0,
    search: bool = False,
) -> FloatArray:
    """Find the sensitivity matrix by optimistic profiling: cores are measured with all data cached, memory is computed.

    Parameters
    ----------
    measure : callable
        Throughput (samples/s) at a number of cores, with all the memory there is.
    max_cpus : int
        Cores of a server; 1 to as many are the rows of the matrix.
    memory : (m,) array_like
        Memory of the job, GB.
    dataset_size, sample_size, storage_bandwidth, process_memory : float
        As in :func:`fetch_speed`: GB, MB, MB/s, GB.
    search : bool
        Whether only the points of :func:`binary_search_profile` are measured; throughput is then linear
        between two of them, and below the first one in proportion to the cores (not printed).

    Returns
    -------
    (max_cpus, m) FloatArray
        After one measurement for each number of cores, or fewer with ``search``: 24 or about 8 instead of 240.

    Raises
    ------
    ValueError
        When ``max_cpus`` is below 1.

    References
    ----------
    Synergy (OSDI'22), section 3.1.
    """
    cpus = np.arange(1, max_cpus + 1)
    if search:
        points, speeds = binary_search_profile(measure, max_cpus)
        measured = np.interp(cpus, [0, *points], [0.0, *speeds])
    elif max_cpus < 1:
        raise ValueError(f"max_cpus: got {max_cpus!r}, must be at least 1")
    else:
        measured = np.array([float(measure(int(cores))) for cores in cpus])
    fetched = fetch_speed(
        memory,
        dataset_size=dataset_size,
        sample_size=sample_size,
        storage_bandwidth=storage_bandwidth,
        process_memory=process_memory,
    )
    matrix: FloatArray = np.minimum(measured[:, None], fetched[None, :])
    return matrix


def binary_search_profile(
    measure: Callable[[int], float], max_cpus: int, *, threshold: float = 0.1
) -> tuple[IntArray, FloatArray]:
    """Choose the CPU counts to measure: one binary search from the maximum, towards where the throughput still grows.

    ``max_cpus`` is measured first, then the middle of 1 to ``max_cpus`` cores.  Where the upper end of the
    interval is faster than its middle by less than ``threshold``, the search goes on in the lower half, else
    in the upper one, until no number of cores is left between.

    Parameters
    ----------
    measure : callable
        Throughput at a number of cores, with all the memory there is.
    max_cpus : int
        Cores of a server, at least 1.
    threshold : float
        Smallest relative gain that is looked into.

    Returns
    -------
    cpus : (k,) int
        Cores measured, ascending; about the logarithm of ``max_cpus``.
    throughputs : (k,) float
        What ``measure`` returned for them.

    Raises
    ------
    ValueError
        When ``max_cpus`` is below 1 or ``threshold`` negative.

    References
    ----------
    Synergy (OSDI'22), section 3.1.  The paper counts 8 points of 24 for ResNet18; this search takes 6 of the
    published profile.  :func:`both_halves_profile` is another reading.
    """
    _check_search(max_cpus, threshold)
    measured = {max_cpus: float(measure(max_cpus))}
    low, high = 0, max_cpus
    while high - low > 1:
        middle = (low + high) // 2
        measured[middle] = float(measure(middle))
        if measured[high] < measured[middle] * (1 + threshold):
            high = middle
        else:
            low = middle
    return _in_order(measured)


def both_halves_profile(
    measure: Callable[[int], float], max_cpus: int, *, threshold: float = 0.1
) -> tuple[IntArray, FloatArray]:
    """Choose the CPU counts to measure: bisect every interval in which the throughput still grows.

    Another reading of section 3.1 than :func:`binary_search_profile`, with more points where the curve is
    steep.  Both ends, 1 core and ``max_cpus``, are measured.  An interval is halved, and its middle
    measured, only where its upper end is faster than its lower end by more than ``threshold``;
    elsewhere more cores make no difference worth a measurement.

    Parameters, results and errors are those of :func:`binary_search_profile`.
    """
    _check_search(max_cpus, threshold)
    measured = {cores: float(measure(cores)) for cores in sorted({1, max_cpus})}
    intervals = [(1, max_cpus)]
    while intervals:
        low, high = intervals.pop()
        if high - low < 2 or measured[high] <= measured[low] * (1 + threshold):
            continue
        middle = (low + high) // 2
        measured[middle] = float(measure(middle))
        intervals += [(low, middle), (middle, high)]
    return _in_order(measured)


def _check_search(max_cpus: int, threshold: float) -> None:
    if max_cpus < 1:
        raise ValueError(f"max_cpus: got {max_cpus!r}, must be at least 1")
    if not threshold >= 0:
        raise ValueError(f"threshold: got {threshold!r}, must be at least 0")


def _in_order(measured: Mapping[int, float]) -> tuple[IntArray, FloatArray]:
    cpus = sorted(measured)
    return np.array(cpus, np.int64), np.array([measured[cores] for cores in cpus])


# --- drawing jobs ------------------------------------------------------------------------------


def draw_gpu_demands(rng: np.random.Generator, num_gpus: int, *, multi_gpu: bool, widest: int = 8) -> IntArray:
    """GPU demands that sum to ``num_gpus``: all 1, or 1 (70%), 2 or 4 (25%) and 8 (5%) as in Gavel's traces.

    With a ``widest`` of 16 or more, the last are any power of two from 8 to that.  None where there are no GPUs.
    """
    if not multi_gpu:
        return np.ones(max(num_gpus, 0), np.int64)
    demands = []
    left = num_gpus
    while left > 0:
        demand = int(rng.choice([1, 2, 4, 8], p=[0.7, 0.125, 0.125, 0.05]))
        if demand == 8 and widest >= 16:
            demand <<= int(rng.integers(int(widest).bit_length() - 3))
        while demand > left:
            demand //= 2
        demands.append(demand)
        left -= demand
    return np.array(demands, np.int64)


def draw_tasks(rng: np.random.Generator, count: int, mix: Sequence[float]) -> list[str]:
    """``count`` tasks in the proportions of ``mix`` (image, language, speech).

    Raises
    ------
    ValueError
        When ``mix`` is not three numbers of at least 0, one of them positive.
    """
    weights = np.asarray(mix, float)
    if weights.shape != (len(TASKS),) or not (weights >= 0).all() or not weights.sum() > 0:
        raise ValueError(f"mix: got {mix!r}, must be {len(TASKS)} weights of at least 0: {', '.join(TASKS)}")
    names = list(TASKS)
    return [names[i] for i in rng.choice(len(names), count, p=weights / weights.sum())]


@dataclass(frozen=True)
class _Ranges:
    """The ranges that synthetic jobs of a task are drawn from, uniformly."""

    gpu_speed: tuple[float, float]
    """Samples/s of one GPU."""
    cores: tuple[float, float]
    """CPU cores that keep one GPU busy."""
    sample_size: tuple[float, float]
    """MB."""
    dataset_size: tuple[float, float]
    """GB."""


_SYNTHETIC = {
    "image": _Ranges((400, 1600), (3, 14), (0.08, 0.15), (80, 300)),
    "language": _Ranges((100, 400), (0.3, 1), (0.001, 0.01), (2, 15)),
    "speech": _Ranges((60, 250), (1.5, 7), (0.4, 1.2), (50, 400)),
}


def draw_matrix(
    rng: np.random.Generator, task: str, gpus: int, *, cpus: FloatArray, memory: FloatArray, share: FloatArray
) -> FloatArray:
    """W[c, m] of a synthetic job, in multiples of one GPU at the GPU-proportional share.

    Parameters
    ----------
    rng : Generator
    task : str
        "image" (needs cores), "language" (needs neither) or "speech" (needs memory).
    gpus : int
        GPUs of the job.
    cpus, memory : (c,) and (m,) float
        CPU cores and memory (GB) of the job.
    share : (2,) float
        The job's GPU-proportional share of both.
    """
    ranges = _SYNTHETIC[task]
    speed, cores, sample, dataset = (
        float(rng.uniform(*limits))
        for limits in (ranges.gpu_speed, ranges.cores, ranges.sample_size, ranges.dataset_size)
    )
    job = {
        "gpu_speed": gpus * speed,
        "cpu_speed": speed / cores,
        "sample_size": sample,
        "dataset_size": dataset,
        # 500 MB/s for 8 GPUs; the paper prints no bandwidth.
        "storage_bandwidth": 62.5 * gpus,
    }
    fair = profile(share[:1], share[1:], **job)[0, 0]
    matrix: FloatArray = np.round(gpus * profile(cpus, memory, **job) / fair, 4)
    return matrix
