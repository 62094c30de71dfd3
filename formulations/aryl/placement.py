"""Exact model of :class:`instances.aryl.placement.ArylPlacement`, a MILP.

Jobs whose workers need equally many GPUs, prefer the same group and are all flexible, or all not, are
one *kind* k; nothing tells their workers apart.

    min   sum of opened[i] where i is not in use
          + (1 / (1 + all workers)) * sum of workers[k, i] where i is off k's group
    s.t.  sum_i workers[k, i] == number of workers of kind k                      for each kind k
          sum_k gpus[k] * workers[k, i] <= server_gpus[i] * opened[i]             for each server i
          workers[k, i] <= room * set_apart[i]          for flexible kinds k, inference servers i
          workers[k, i] <= room * (1 - set_apart[i])    for the others
          opened[a] >= opened[b]        for identical servers a and b, b the next one after a
          workers[k, i] whole and at least 0,  opened[i], set_apart[i] in {0, 1};
          opened[i] = 1,  set_apart[i] = 0                                        for servers i in use,

room the workers of kind k that server i holds.  ``set_apart`` and its rows are there only where some
workers are flexible.

The rows of identical servers only remove copies of the same placement: servers of one size and group, not in
use, are interchangeable, so the first ones may be opened first.  Deactivate ``identical_servers`` before
adding constraints that tell such servers apart.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import accumulate, pairwise

import numpy as np
import pyomo.environ as pyo

from formulations.engine.protocol import Formulation
from formulations.engine.sets import RangeSet, Set
from instances.aryl.placement import ArylPlacement, ArylPlacementPlan
from instances.base import product, total
from instances.schema import BoolArray

__all__ = ["FORMULATION", "build", "packed", "read", "servers_to_open", "too_little_room", "write"]


def build(instance: ArylPlacement) -> pyo.ConcreteModel:
    """Pyomo model of a placement instance.

    Sets KINDS, SERVERS and IDENTICAL (pairs of servers that follow one another among the
    identical ones); variables ``workers[k, i]`` (whole) and ``opened[i]`` (binary); constraints
    ``all_placed[k]``, ``server_gpus[i]`` and ``identical_servers[a, b]``; objective
    ``servers_and_groups``.  With flexible workers also the set LOAN (inference servers), the variables
    ``set_apart[i]`` (binary) and the constraints ``separate_groups[k, i]``.
    """
    kinds = _kinds(instance)
    gpus = [int(instance.gpus_per_worker[jobs[0]]) for jobs in kinds]
    sizes = instance.server_gpus.tolist()
    model = pyo.ConcreteModel(name=instance.problem)
    model.KINDS = RangeSet(0, len(kinds) - 1)
    model.SERVERS = RangeSet(0, instance.num_servers - 1)
    identical = [pair for servers in _identical_servers(instance) for pair in pairwise(servers)]
    model.IDENTICAL = Set(initialize=identical, dimen=2)

    def room(model: pyo.ConcreteModel, kind: int, server: int) -> tuple[int, int]:
        return 0, sizes[server] // gpus[kind]

    model.workers = pyo.Var(model.KINDS * model.SERVERS, domain=pyo.NonNegativeIntegers, bounds=room)
    in_use = instance.in_use.tolist()
    model.opened = pyo.Var(model.SERVERS, domain=pyo.Binary, bounds=lambda m, i: (int(in_use[i]), 1))

    def all_placed(model: pyo.ConcreteModel, kind: int) -> object:
        workers = int(instance.num_workers[kinds[kind]].sum())
        return pyo.quicksum(model.workers[kind, i] for i in model.SERVERS) == workers

    model.all_placed = pyo.Constraint(model.KINDS, rule=all_placed)

    def server_gpus(model: pyo.ConcreteModel, server: int) -> object:
        used = pyo.quicksum(gpus[kind] * model.workers[kind, server] for kind in model.KINDS)
        return used <= sizes[server] * model.opened[server]

    model.server_gpus = pyo.Constraint(model.SERVERS, rule=server_gpus)

    flexible = [bool(instance.flexible[jobs[0]]) for jobs in kinds]
    if any(flexible):
        model.LOAN = Set(initialize=np.flatnonzero(instance.on_loan).tolist())
        model.set_apart = pyo.Var(model.LOAN, domain=pyo.Binary, bounds=lambda m, i: (0, int(not in_use[i])))

        def separate_groups(model: pyo.ConcreteModel, kind: int, server: int) -> object:
            most = sizes[server] // gpus[kind]
            apart = model.set_apart[server]
            return model.workers[kind, server] <= most * (apart if flexible[kind] else 1 - apart)

        model.separate_groups = pyo.Constraint(model.KINDS * model.LOAN, rule=separate_groups)

    def identical_servers(model: pyo.ConcreteModel, first: int, second: int) -> object:
        return model.opened[first] >= model.opened[second]

    model.identical_servers = pyo.Constraint(model.IDENTICAL, rule=identical_servers)
    off_group = instance.off_group
    off = [variable for (kind, server), variable in model.workers.items() if off_group[kinds[kind][0], server]]
    price = 1 / (1 + instance.total_workers)
    newly = [model.opened[i] for i in model.SERVERS if not in_use[i]]
    model.servers_and_groups = pyo.Objective(expr=pyo.quicksum(newly) + price * pyo.quicksum(off), sense=pyo.minimize)
    return model


def read(model: pyo.ConcreteModel) -> ArylPlacementPlan:
    """Return the plan in the values of ``workers``: each kind's places go to its jobs in order."""
    instance: ArylPlacement = model.instance
    workers = np.zeros((instance.num_jobs, instance.num_servers), np.int64)
    for kind, jobs in enumerate(_kinds(instance)):
        waiting = [job for job in jobs for _ in range(int(instance.num_workers[job]))]
        places = [i for i in model.SERVERS for _ in range(round(pyo.value(model.workers[kind, i])))]
        # With constraints of a user's own, a kind may end up with fewer places than workers.
        for job, server in zip(waiting, places, strict=False):
            workers[job, server] += 1
    return ArylPlacementPlan(workers=workers)


def write(model: pyo.ConcreteModel, plan: ArylPlacementPlan) -> None:
    """Set the variables to ``plan``, as a point to start the search from.

    Identical servers are exchanged so that the opened ones come first.
    """
    instance: ArylPlacement = model.instance
    holder = np.arange(instance.num_servers)
    opened = (plan.workers.sum(axis=0) > 0) | instance.in_use
    for servers in _identical_servers(instance):
        holder[servers] = sorted(servers, key=lambda i: not opened[i])
    for server in model.SERVERS:
        model.opened[server].set_value(int(opened[holder[server]]))
    for kind, jobs in enumerate(_kinds(instance)):
        placed = plan.workers[jobs].sum(axis=0)
        for server in model.SERVERS:
            model.workers[kind, server].set_value(int(placed[holder[server]]), skip_validation=True)
    if instance.flexible.any():
        apart = plan.workers[instance.flexible].sum(axis=0) > 0
        for server in model.LOAN:
            model.set_apart[server].set_value(int(apart[holder[server]]))


def _kinds(instance: ArylPlacement) -> list[list[int]]:
    """Jobs by kind: equal GPUs per worker, equal preference, and flexible or not."""
    kinds: dict[tuple[int, bool, bool], list[int]] = {}
    of_jobs = (instance.gpus_per_worker, instance.prefers_loan, instance.flexible)
    for job, key in enumerate(zip(*(values.tolist() for values in of_jobs), strict=True)):
        kinds.setdefault(key, []).append(job)
    return list(kinds.values())


def _identical_servers(instance: ArylPlacement) -> list[list[int]]:
    """Servers by size and group, of those not in use."""
    alike: dict[tuple[int, str], list[int]] = {}
    for server in np.flatnonzero(~instance.in_use).tolist():
        alike.setdefault((int(instance.server_gpus[server]), str(instance.server_groups[server])), []).append(server)
    return list(alike.values())


def too_little_room(instance: ArylPlacement) -> str | None:
    """Say that a worker is larger than every server, or all workers than all servers."""
    wanted = np.flatnonzero((instance.num_workers > 0) & (instance.gpus_per_worker > instance.server_gpus.max()))
    if wanted.size:
        job = wanted[0]
        return (
            f"a worker of job {job} needs {instance.gpus_per_worker[job]} GPUs, the largest server has "
            f"{instance.server_gpus.max()}"
        )
    needed = total(product(instance.gpus_per_worker, instance.num_workers))
    if needed > instance.num_gpus:
        return f"the workers need {needed} GPUs, there are {instance.num_gpus}"
    return None


def servers_to_open(instance: ArylPlacement) -> float:
    """Return a number of servers that every plan opens, by what room servers have for workers of a size or more.

    A server has no more GPUs for them than it has, and none if it has fewer than that size; and it holds no more of
    them than of workers of just that size.  Servers in use are counted with all their room, and those that are opened
    the roomiest first.  Flexible workers are counted apart as well, since servers in use that are on loan hold none.
    """
    in_use, gpus = instance.in_use, instance.server_gpus
    found = 0
    workers = instance.num_workers > 0
    for some, there in ((workers, in_use), (workers & instance.flexible, in_use & ~instance.on_loan)):
        for size in np.unique(instance.gpus_per_worker[some]).tolist():
            larger = some & (instance.gpus_per_worker >= size)
            count = instance.num_workers[larger]
            for room, wanted in (
                (np.where(gpus >= size, gpus, 0), product(instance.gpus_per_worker[larger], count)),
                (gpus // size, total(count)),
            ):
                roomiest: list[int] = sorted(room[~in_use].tolist(), reverse=True)
                rooms = [*accumulate(roomiest, initial=int(total(room[there])))]
                found = max(found, bisect_left(rooms, int(wanted)))
    # Where not even all servers have the room, there is no plan.
    return float(min(found, int(np.count_nonzero(~in_use))))


def packed(instance: ArylPlacement) -> ArylPlacementPlan:
    """Return the best plan of three ways to put the largest workers first where they fit best.

    The first two keep to the groups, the one as long as there is a server, the other as long as none is opened for it;
    the third opens training servers first for all.  Workers that find no server are left out, by the first way, too.
    """
    nobody = np.zeros(instance.num_jobs, bool)
    plans = [
        _packed(instance, instance.prefers_loan, last=instance.heterogeneous, opened_first=False),
        _packed(instance, instance.prefers_loan, last=nobody, opened_first=True),
        _packed(instance, nobody, last=nobody, opened_first=False),
    ]
    whole = [plan for plan in plans if plan.workers.sum() == instance.total_workers]
    return min(whole, key=instance.objective, default=plans[0])


def _packed(
    instance: ArylPlacement, prefers_loan: BoolArray, *, last: BoolArray, opened_first: bool
) -> ArylPlacementPlan:
    """Put each worker on the opened server with the fewest free GPUs that holds it, or on the smallest closed one."""
    servers = sorted(zip(instance.server_gpus.tolist(), range(instance.num_servers), strict=True))
    on_loan, in_use = instance.on_loan.tolist(), instance.in_use.tolist()
    closed: dict[bool, list[tuple[int, int]]] = {}
    # Those on loan by whether they are set apart for flexible workers.
    opened: dict[tuple[bool, bool], list[tuple[int, int]]] = {}
    for group in (False, True):
        mine = [one for one in servers if on_loan[one[1]] == group]
        closed[group] = [one for one in mine if not in_use[one[1]]]
        opened[group, False], opened[group, True] = [one for one in mine if in_use[one[1]]], []
    workers = np.full((instance.num_jobs, instance.num_servers), 0)
    for job in np.lexsort((-instance.gpus_per_worker, last)).tolist():
        need, left = int(instance.gpus_per_worker[job]), int(instance.num_workers[job])
        first, flexible = bool(prefers_loan[job]), bool(instance.flexible[job])
        joins = [opened[group, group and flexible] for group in (first, not first)]
        opens = [closed[first], closed[not first]]
        pools = [*zip(joins, joins, strict=True), *zip(opens, joins, strict=True)]
        if not opened_first:
            pools = pools[::2] + pools[1::2]
        while left:
            fitting = ((some, mine, bisect_left(some, (need, 0))) for some, mine in pools)
            found = next((one for one in fitting if one[2] < len(one[0])), None)
            if found is None:
                break
            some, mine, position = found
            free, server = some.pop(position)
            placed = min(left, free // need)
            insort(mine, (free - placed * need, server))
            workers[job, server] += placed
            left -= placed
    return ArylPlacementPlan(workers=workers)


FORMULATION = Formulation(
    build=build, read=read, write=write, explain=too_little_room, trivial=packed, trivial_bound=servers_to_open
)
