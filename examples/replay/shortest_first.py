"""Decides online which waiting jobs start, ``aryl.base_allocation``: the shortest first, none before one ahead of it.

One function, plain Python and nothing of the library's:

    optgap replay examples/replay/jobs.csv --problem aryl.base_allocation --policy shortest_first.py:decide -o online
"""


def decide(state):
    instance = state["instance"]
    times, demands = instance["running_times"], instance["gpu_demands"]
    starts, now, free, ends = [0.0] * len(times), 0.0, instance["capacity"], []
    for job in sorted(range(len(times)), key=lambda job: times[job]):
        while free < demands[job]:
            now, gpus = ends.pop(0)
            free += gpus
        starts[job], free = now, free - demands[job]
        ends = sorted([*ends, (now + times[job], demands[job])])
    return {"starts": starts}
