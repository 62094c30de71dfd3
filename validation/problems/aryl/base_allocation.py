"""Entry of aryl.base_allocation: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from heuristics.aryl import base_allocation as fast
from instances.aryl.base_allocation import BaseAllocation, BaseAllocationPlan, generate
from validation.catalogue import Entry, Heuristic, Rescaling, named
from validation.kinds.promises import Holds, NeverWorseThan
from validation.testing import st
from validation.testing.arrays import integers, whole_floats

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_jobs: int = 4, max_gpus: int = 4, max_seconds: int = 9) -> BaseAllocation:
    """Draw jobs of any demands, finished ones among them; not all need fit."""
    n = draw(st.integers(1, max_jobs))
    return BaseAllocation(
        capacity=draw(st.integers(1, max_gpus)),
        gpu_demands=draw(integers(n, 1, max_gpus)),
        running_times=draw(whole_floats(n, 0, max_seconds)),
    )


def _in_order(key: Callable[[BaseAllocation, int], float], *, overtake: bool = True) -> Holds:
    """Return the promise that jobs start in the order of a key as they fit, without ``overtake`` in no other."""

    def test(instance: BaseAllocation, plan: BaseAllocationPlan) -> bool:
        times, needs = instance.running_times.tolist(), instance.gpu_demands.tolist()
        waiting = sorted((job for job, time in enumerate(times) if time > 0), key=lambda job: key(instance, job))
        starts, ends, now = [0.0] * len(times), dict[int, float](), 0.0
        while waiting:
            left = instance.capacity - sum(needs[job] for job, end in ends.items() if end > now)
            for job in tuple(waiting):
                if needs[job] <= left:
                    waiting.remove(job)
                    starts[job], ends[job], left = now, now + times[job], left - needs[job]
                elif not overtake:
                    break
            now = min((end for end in ends.values() if end > now), default=now)
        return bool(plan.starts.tolist() == starts)

    return Holds("jobs start in their order as soon as they fit", test)


SHORTEST = _in_order(lambda instance, job: float(instance.running_times[job]))
SMALLEST = _in_order(lambda instance, job: float(instance.running_times[job] * instance.gpu_demands[job]))
FIRST = _in_order(lambda instance, job: job, overtake=False)


def _as_early_as_the_others_allow(instance: BaseAllocation, plan: BaseAllocationPlan) -> bool:
    """Return whether no job could begin at 0, or when another ends, earlier than it does, the others as they are."""
    times, needs, starts = (one.tolist() for one in (instance.running_times, instance.gpu_demands, plan.starts))
    live = [job for job, time in enumerate(times) if time > 0]
    for job in live:
        others = [other for other in live if other != job]
        for begin in (0.0, *(starts[other] + times[other] for other in others)):
            moments = [begin, *(starts[other] for other in others if begin < starts[other] < begin + times[job])]
            held = [
                sum(needs[other] for other in others if starts[other] <= moment < starts[other] + times[other])
                for moment in moments
            ]
            if begin < starts[job] and max(held) + needs[job] <= instance.capacity:
                return False
    return True


EARLIEST = Holds("no job could begin earlier while the others stay", _as_early_as_the_others_allow)


ENTRY = Entry(
    title="When waiting jobs start on their base demands, completing soonest on average",
    source="Aryl, section 5.2 and Appendix D, Algorithm 2, lines 1 to 9 and 24",
    instance=BaseAllocation,
    generate=generate,
    size="num_jobs",
    sizes=(4, 5, 6),
    heuristics=named(
        Heuristic(fast.shortest_job_first, promises=(SHORTEST,)),
        Heuristic(fast.smallest_job_first, promises=(SMALLEST,)),
        Heuristic(fast.fifo, promises=(FIRST,)),
        Heuristic(
            fast.local_search,
            promises=(NeverWorseThan("shortest_job_first"), NeverWorseThan("smallest_job_first"), EARLIEST),
        ),
    ),
    symmetric=("n",),
    rescalings=(Rescaling(("running_times",), 1),),
    enlarge=lambda instance: replace(instance, capacity=instance.capacity + 1),
    strategy=strategy,
)
