"""What a question to a heuristic in a process of its own costs, and what of that is the fork and the heuristic alone.

A program (:mod:`benchmarks.overhead` runs it), so that what is forked has imported what it has in a study, or no more
than the heuristic needs.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import generate

__all__ = ["Times"]

INSTANCE = generate(0, num_servers=8)
"""The paper's heuristic takes microseconds on it."""


@dataclass(frozen=True)
class Times:
    """Times of so many repetitions, s; processor time and page faults of one, with those of its children."""

    wall: list[float]
    processor: float
    faults: float


def measured(sides: Mapping[str, Callable[[], object]], number: int) -> dict[str, Times]:
    """Measure what each side takes, so many times in turn."""
    found = {name: Times([], 0.0, 0.0) for name in sides}
    for turn in range(number + 5):
        for name, side in sides.items():
            (spent, faults), began = _used(), time.perf_counter()
            side()
            if turn >= 5:  # The first ones warm up.
                now, (spent_now, faults_now) = time.perf_counter(), _used()
                before = found[name]
                found[name] = Times(
                    [*before.wall, now - began],
                    before.processor + (spent_now - spent) / number,
                    before.faults + (faults_now - faults) / number,
                )
    return found


def _used() -> tuple[float, int]:
    """Processor time and page faults of this process and its children so far."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both), sum(one.ru_minflt for one in both)


def fork() -> None:
    """Fork a process that ends at once."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)


def call() -> None:
    """Fork a process that writes the heuristic's plan into a pipe, and ends."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, server_fraction(INSTANCE).servers.tobytes())
        finally:
            os._exit(0)
    os.close(writing)
    answer = os.read(reading, 1 << 16)
    os.close(reading)
    os.waitpid(child, 0)
    if not answer:
        raise RuntimeError("the process has died")


def in_a_worker(number: int) -> dict[str, Times]:
    """As in a study: asked by a worker that keeps the process of a heuristic, which is forked for one question."""
    from validation.catalogue import Heuristic
    from validation.kernel.asking import ask
    from validation.kernel.isolation import Apart

    heuristic = Heuristic(server_fraction)

    def empty() -> None:
        with Apart(dict, memory=10**9) as apart:
            answer = apart.ask(seconds=60.0)
        if answer.content is None:
            raise RuntimeError(answer.reason)

    def question() -> None:
        asked = ask(INSTANCE, heuristic, 0, seconds=60.0, memory=10**9)
        if asked.plan is None:
            raise RuntimeError(asked.reason)

    sides = {"a fork": fork, "a fork and the heuristic": call, "a question that runs nothing": empty}
    return measured({**sides, "a question": question}, number)


def main(number: int) -> None:
    """Print the times of all sides as JSON."""
    small = measured({"a fork": fork, "a fork and the heuristic": call}, number)
    found = {f"{name}, of a small process": times for name, times in small.items()}

    # What the process that forks a study's workers has imported.
    import validation.kinds.study.run  # noqa: F401
    from validation.kernel.workers import Task, run_tasks

    (outcome,) = run_tasks(in_a_worker, [Task((number,), 600.0, asks=True)], jobs=1)
    if outcome.reason:
        raise RuntimeError(outcome.reason)
    print(json.dumps({name: asdict(times) for name, times in (found | outcome.result).items()}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
