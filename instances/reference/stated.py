"""Programs in whole numbers that instances state by themselves, for certificates to be held against.

Each is written from the problem's definition.  Where it has fewer points than there are plans, the function says why
one of the best plans is still among them; where the judge forgives, limits are as wide as that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from .common import TOLERANCE, Number, Record
from .common import Counter as Steps
from .elasticflow import DeadlineJobs
from .programs import Program
from .synergy import ROOM, Tuning, fair_enough
from .vipr import Proven

ALONE, CONFIGURED = DeadlineJobs(), Tuning()
"""What jobs with deadlines, and jobs with configurations, may do by themselves."""


def reclaim(it: Record) -> Program:
    """Return servers to give back and jobs that this preempts; a job is preempted or is not."""
    program = Program("min")
    servers = range(it.dims["s"])
    for i in servers:
        program.variable(f"returned[{i}]", 0, 1)
    for j, row in enumerate(it.hosts):
        job = program.variable(f"preempted[{j}]", 0, 1, cost=1)
        for i in servers:
            if row[i]:
                program.row({job: 1, f"returned[{i}]": -1}, lower=0)
    program.row({f"returned[{i}]": 1 for i in servers}, it.demand, it.demand)
    return program


def placement(it: Record) -> Program:
    """Return workers of each kind on each server.

    Nothing tells the workers of a kind apart, nor servers of one size and group that are not in use: the first ones may
    be those opened.  Servers in use are open at no cost, and not set apart.
    """
    program = Program("min")
    jobs_of: dict[Any, list[int]] = {}
    for j, key in enumerate(zip(it.gpus_per_worker, it.likes, it.flexible, strict=True)):
        jobs_of.setdefault(key, []).append(j)
    price = Fraction(1, 1 + sum(it.num_workers))
    servers = range(len(it.server_gpus))
    some_flexible = any(flexible for _, _, flexible in jobs_of)
    for i in servers:
        used = int(it.used_gpus[i] > 0)
        program.variable(f"opened[{i}]", used, 1, cost=1 - used)
        if it.loan[i] and some_flexible:
            program.variable(f"set_apart[{i}]", 0, 1 - used)
    for k, ((gpus, likes, flexible), jobs) in enumerate(jobs_of.items()):
        for i in servers:
            room = it.server_gpus[i] // gpus
            here = program.variable(f"workers[{k},{i}]", 0, room, cost=price if likes != it.loan[i] else 0)
            if it.loan[i] and some_flexible:
                apart = f"set_apart[{i}]"
                if flexible:
                    program.row({here: 1, apart: -room}, upper=0)
                else:
                    program.row({here: 1, apart: room}, upper=room)
        workers = sum(it.num_workers[j] for j in jobs)
        program.row({f"workers[{k},{i}]": 1 for i in servers}, workers, workers)
    for i in servers:
        held: dict[str, Number] = {f"workers[{k},{i}]": gpus for k, (gpus, _, _) in enumerate(jobs_of)}
        program.row({**held, f"opened[{i}]": -it.server_gpus[i]}, upper=0)
    alike: dict[Any, list[int]] = {}
    for i, kind in enumerate(zip(it.server_gpus, it.loan, strict=True)):
        if not it.used_gpus[i]:
            alike.setdefault(kind, []).append(i)
    for same in alike.values():
        for first, second in pairwise(same):
            program.row({f"opened[{first}]": 1, f"opened[{second}]": -1}, lower=0)
    return program


def patterns_of_servers(it: Record) -> Program:
    """Return servers of each kind by what stands on them, and workers of each size that are off their group.

    Nothing tells apart servers of one size, group and use, nor workers of one size and preference.  A server is of a
    side: training, or on loan for workers that are not flexible, or for those that are, which no server in use is.
    What it holds is filled up to a pattern that leaves no room for another worker of that side, as far as there are
    any; so workers of a size need as many places as there are at least, less those that leave for another side.
    """
    program = Program("min")
    price = Fraction(1, 1 + sum(it.num_workers))
    wanted: list[Counter[int]] = [Counter(), Counter(), Counter()]
    for gpus, count, likes, flexible in zip(it.gpus_per_worker, it.num_workers, it.likes, it.flexible, strict=True):
        wanted[2 if flexible else int(likes)][gpus] += count
    sizes = sorted(size for size in set(it.gpus_per_worker) if any(side[size] for side in wanted))
    on_side = [[sum(side[size] for side in some) for size in sizes] for some in (wanted, wanted[:2], wanted[2:])]
    places: dict[tuple[int, int], dict[str, Number]] = {(side, size): {} for side in range(3) for size in sizes}
    counter = Steps()
    kinds = Counter(zip(it.server_gpus, map(int, it.loan), (int(used > 0) for used in it.used_gpus), strict=True))
    for (gpus, loan, used), count in kinds.items():
        held: dict[str, Number] = {}
        for side in (0,) if not loan else (1,) if used else (1, 2):
            for pattern in _full(gpus, sizes, on_side[side], counter):
                told = f"servers[{gpus},{loan},{used},{side},{'.'.join(map(str, pattern))}]"
                held[program.variable(told, 0, count, cost=1 - used)] = 1
                for size, number in zip(sizes, pattern, strict=True):
                    places[side, size][told] = number
        program.row(held, upper=count)
    for home, away in ((0, 1), (1, 0), (2, 0)):
        for size in sizes:
            off = program.variable(f"off[{home},{size}]", 0, wanted[home][size], cost=price)
            places[home, size][off] = 1
            places[away, size][off] = -1
    for (side, size), terms in places.items():
        program.row(terms, lower=wanted[side][size])
    return program


def _full(gpus: int, sizes: Sequence[int], most: Sequence[int], counter: Steps) -> Iterator[tuple[int, ...]]:
    """Yield the numbers of workers of each size that leave no room on a server for one more, but for none at all."""

    def filled(at: int, left: int) -> Iterator[tuple[int, ...]]:
        counter.step()
        if at < 0:
            yield ()
            return
        for number in range(min(most[at], left // sizes[at]) + 1):
            for smaller in filled(at - 1, left - number * sizes[at]):
                yield (*smaller, number)

    for pattern in filled(len(sizes) - 1, gpus):
        left = gpus - sum(size * number for size, number in zip(sizes, pattern, strict=True))
        room = (n < m and size <= left for n, m, size in zip(pattern, most, sizes, strict=True))
        if any(pattern) and not any(room):
            yield pattern


def gpu_placement(it: Record) -> Program:
    """Return machines of each job; one of share r has a block of min(r, 2^g) GPUs on each of its machines."""
    program = Program("max")
    size, machines = it.gpus_per_machine, range(it.num_machines)
    jobs = [j for j, share in enumerate(it.regulated) if share]
    block = {j: min(it.regulated[j], size) for j in jobs}
    for j in jobs:
        for m in machines:
            kept = Fraction(min(it.previous[j][m], block[j]), 1 + it.all)
            program.variable(f"hosts[{j},{m}]", 0, 1, cost=kept)
        keeps = program.variable(f"keeps[{j}]", 0, 1, cost=1)
        span = -(-it.regulated[j] // size)
        program.row({f"hosts[{j},{m}]": 1 for m in machines}, span, span)
        old: dict[str, Number] = {f"hosts[{j},{m}]": -1 for m in machines if it.previous[j][m]}
        program.row({keeps: 1, **old}, upper=0)
    for m in machines:
        program.row({f"hosts[{j},{m}]": block[j] for j in jobs}, upper=size)
    return program


def round_assignment(it: Record) -> Program:
    """Return rows on types, without those that may not run, add nothing or are wider than the pool."""
    program = Program("max")
    n = len(it.scale_factors)
    of_job: list[dict[str, Number]] = [{} for _ in range(n)]
    of_pool: list[dict[str, Number]] = [{} for _ in it.num_workers]
    for row, priorities in enumerate(it.priorities):
        members = [row] if row < n else it.pairs[row - n]
        width = it.scale_factors[members[0]]
        for kind, priority in enumerate(priorities):
            pool = it.pools[kind]
            if it.eligible[row][kind] and priority > 0 and width <= it.num_workers[pool]:
                chosen = program.variable(f"chosen[{row},{kind}]", 0, 1, cost=priority)
                of_pool[pool][chosen] = width
                for job in members:
                    of_job[job][chosen] = 1
    for terms in of_job:
        program.row(terms, upper=1)
    for terms, most in zip(of_pool, it.num_workers, strict=True):
        program.row(terms, upper=most)
    return program


def heterogeneous_allocation(it: Record) -> Program:
    """Return a configuration of each job, without those that one of the same type beats in everything."""
    program = Program("max")
    kinds = range(len(it.num_servers))
    used: list[list[dict[str, Fraction]]] = [[{}, {}, {}] for _ in kinds]
    for j, (table, types) in enumerate(zip(it.configs, it.config_types, strict=True)):
        allowed = [_inside(it, j, c) for c in range(len(table))]
        counted = [c for c in range(len(table)) if allowed[c] or not any(allowed)]
        kept = [c for c in counted if not any(_beats(table, types, other, c) for other in counted)]
        worth = {}
        for c in kept:
            chosen = program.variable(f"chosen[{j},{c}]", 0, 1 if allowed[c] else 0, cost=table[c][2])
            worth[chosen] = table[c][2]
            for amounts, amount in zip(used[types[c]], (*table[c][:2], Fraction(it.gpu_demands[j])), strict=True):
                amounts[chosen] = amount
        program.row(dict.fromkeys(worth, 1), 1, 1)
        fair = it.fair_throughputs[j]
        program.row(worth, lower=min([fair, *(w for _, _, w in table if fair_enough(w, fair))]))
    for kind in kinds:
        there = (it.server_cpus[kind], it.server_memory[kind], Fraction(it.server_gpus[kind]))
        for amounts, capacity in zip(used[kind], there, strict=True):
            program.row(amounts, upper=_forgiven(amounts, it.num_servers[kind] * capacity))
    return program


def jobs_on_servers(it: Record) -> Program:
    """Return whole and fragmented jobs of each kind, and what servers carry of the latter.

    Nothing tells jobs of equal demands apart, so their shares are added up, once each job's are divided by their sum.
    A server then holds up to ``most`` times what it has: it may exceed that by the tolerance, and the sums may lack as
    much; what is left covers the rounding of demands per GPU to the nearest double.

    Where GPUs that are counted in whole numbers cannot be off by one within that, and the jobs use all of them, each
    server is full but for what the others exceed theirs by.  So its pieces take a whole number of GPUs, as near.  With
    only one fragmented job, of one GPU, all of this but ``away`` is on one server, where that is too large.
    """
    program = Program("min")
    servers, size, others = range(it.num_servers), it.server_gpus, it.num_servers - 1
    most = ROOM / (1 - TOLERANCE) * (1 + Fraction(1, 2**50))
    away = size * (most - 1)
    exact = it.num_servers * away < 1
    has = (Fraction(size), it.server_cpus, it.server_memory)
    count = Counter(map(tuple, it.demands))
    kinds = list(count)
    fits = [all(amount <= most * there for amount, there in zip(kind, has, strict=True)) for kind in kinds]
    in_gpus = [it.integral_gpus and exact and kind[0] > 0 for kind in kinds]
    unit = [kind[0] if counted else Fraction(1) for kind, counted in zip(kinds, in_gpus, strict=True)]
    for t, kind in enumerate(kinds):
        fragmented = program.variable(f"fragmented[{t}]", 0, count[kind], cost=1)
        for i in servers:
            program.variable(f"whole[{t},{i}]", 0, count[kind] if fits[t] else 0)
            program.variable(f"pieces[{t},{i}]", 0, unit[t] * count[kind], whole=in_gpus[t])
        program.row({fragmented: 1, **{f"whole[{t},{i}]": 1 for i in servers}}, count[kind], count[kind])
        program.row({fragmented: -unit[t], **{f"pieces[{t},{i}]": 1 for i in servers}}, 0, 0)
    for i in servers:
        for r, there in enumerate(has):
            used = {f"whole[{t},{i}]": kind[r] for t, kind in enumerate(kinds)}
            used |= {f"pieces[{t},{i}]": Fraction(float(kind[r]) / float(unit[t])) for t, kind in enumerate(kinds)}
            gpus_only = it.integral_gpus and exact and r == 0
            program.row(used, upper=there if gpus_only else most * there)
    # Servers are alike, so that they may be in the order of any kind's whole jobs: here of the largest.
    room = [max(float(there), 1e-300) for there in has]
    sizes = [
        sum(float(amount) / there for amount, there in zip(kind, room, strict=True)) if whole else -1.0
        for kind, whole in zip(kinds, fits, strict=True)
    ]
    big = max(range(len(kinds)), key=sizes.__getitem__, default=0)
    for first, second in pairwise(servers):
        program.row({f"whole[{big},{first}]": 1, f"whole[{big},{second}]": -1}, lower=0)
    if exact and not it.integral_gpus and sum(kind[0] * n for kind, n in count.items()) == it.num_servers * size:
        for i in servers:
            gpus = program.variable(f"pieces_gpus[{i}]", 0, size)
            taken = {f"pieces[{t},{i}]": kind[0] for t, kind in enumerate(kinds)}
            program.row({**taken, gpus: -1}, -others * away, away)
        if any(
            kind[0] == 1 and any(a * (1 - others * away) > most * there for a, there in zip(kind, has, strict=True))
            for kind in kinds
        ):
            program.row({f"fragmented[{t}]": 1 for t in range(len(kinds))}, lower=2)
    return program


def configured(it: Record) -> Program:
    """Return configurations of alike jobs and what each server carries of them, without those that another one beats.

    Nothing tells apart jobs of equal GPUs, configurations and fair throughput, nor the GPUs of those that have one
    configuration.  Jobs that lose by a split are counted apart where one server has them alone.
    """
    program = Program("max")
    servers, size = range(it.num_servers), it.server_gpus
    alike: dict[Any, list[int]] = {}
    for j, (gpus, table) in enumerate(zip(it.gpu_demands, it.configs, strict=True)):
        alike.setdefault((gpus, tuple(map(tuple, table)), it.fair_throughputs[j]), []).append(j)
    held: list[list[dict[str, Fraction]]] = [[{}, {}, {}] for _ in servers]
    for t, ((gpus, table, _), jobs) in enumerate(alike.items()):
        usable = CONFIGURED.usable(it, jobs[0])
        inside = [not it.server_cap or gpus > size or _within(it, config) for config in table]
        kept = [
            c
            for c in range(len(table))
            if not any(_beats(table, [0] * len(table), other, c) for other in range(len(table)))
            and (inside[c] or not any(inside))
            and (c in usable or not usable)
        ]
        unit = gpus if it.allow_split else 1
        lost = it.split_penalty if it.allow_split and gpus <= size else Fraction(0)
        chosen: dict[str, Number] = {}
        for c in kept:
            most = len(jobs) if c in usable else 0
            cpus, memory, worth = table[c]
            name = program.variable(f"chosen[{t},{c}]", 0, most, cost=worth * (1 - lost))
            chosen[name] = 1
            placed: dict[str, Number] = {name: -unit}
            for i in servers:
                here = program.variable(f"placed[{t},{c},{i}]", 0, min(len(jobs) * unit, size * unit // gpus))
                placed[here] = 1
                parts = [(here, unit)]
                if lost:
                    room = min(most, size // gpus)
                    whole = program.variable(f"alone[{t},{c},{i}]", 0, room, cost=worth * lost)
                    placed[whole] = unit
                    parts.append((whole, 1))
                for part, share in parts:
                    for amounts, amount in zip(held[i], (Fraction(gpus), cpus, memory), strict=True):
                        amounts[part] = Fraction(amount) / share
            program.row(placed, 0, 0)
        program.row(chosen, len(jobs), len(jobs))
    for each in held:
        for amounts, there in zip(each, (Fraction(size), it.server_cpus, it.server_memory), strict=True):
            program.row(amounts, upper=_forgiven(amounts, Fraction(there)))
    return program


def admission(it: Record) -> Program:
    """Return jobs admitted, and GPUs by interval between deadlines, or slot by slot where a curve is not concave.

    What is not admitted holds nothing: a plan in which it does is worth as much without.
    """
    program = Program("max")
    for j in range(len(it.iterations)):
        program.variable(f"admitted[{j}]", 0, 1, cost=1)
    of_job = (_by_interval if _concave(it) else _slot_by_slot)(program, it, "admitted[{}]")
    _alone(program, it, of_job, "admitted[{}]")
    for j, held in enumerate(of_job):
        must = _required(it, j)
        work = {name: min(done, must) for name, (_, _, done) in held.items()}
        program.row({**work, f"admitted[{j}]": -must}, lower=0)
    return program


def best_effort(it: Record) -> Program:
    """Return GPUs slot by slot, and whether best-effort jobs with something to do have done it by the end of each."""
    program = Program("min")
    count = max(1, sum(it.best_effort))
    of_job = _slot_by_slot(program, it)
    _alone(program, it, of_job)
    for j, held in enumerate(of_job):
        must = _required(it, j)
        work = {name: min(done, must) for name, (_, _, done) in held.items()}
        program.row(work, lower=must)
        if it.best_effort[j] and it.iterations[j]:
            program.constant += Fraction(1 + it.deadlines[j], count)
            for t in range(it.deadlines[j]):
                last = t + 1 == it.deadlines[j]
                done = program.variable(f"done[{j},{t}]", int(last), 1, cost=Fraction(-1, count))
                before = {name: work[name] for name, (slot, _, _) in held.items() if slot <= t}
                program.row({**before, done: -must}, lower=0)
    return program


def blocks(it: Record) -> Program:
    """Return running jobs that stay, and blocks of each size that others take: nothing tells these apart."""
    program = Program("min", sum(it.running))
    smallest, gpus = min(it.sizes, default=1), it.num_gpus
    of_size: dict[int, dict[str, Number]] = {size: {} for size in it.sizes}
    of_unit: list[dict[str, Number]] = [{} for _ in range(gpus // smallest)]

    def block(name: str, size: int, offset: int) -> None:
        of_size[size][name] = 1
        for unit in range(offset // smallest, min(offset + size, gpus) // smallest):
            of_unit[unit][name] = 1

    for j, (running, offset, size) in enumerate(zip(it.running, it.previous_offsets, it.sizes, strict=True)):
        if running and offset % size == 0 and offset + size <= gpus:
            block(program.variable(f"stays[{j}]", 0, 1, cost=-1), size, int(offset))
    for size in sorted(of_size):
        for at in range(max(1, gpus // size)):
            block(program.variable(f"taken[{size},{at}]", 0, int(size * (at + 1) <= gpus)), size, size * at)
    for size, terms in of_size.items():
        program.row(terms, it.sizes.count(size), it.sizes.count(size))
    for terms in of_unit:
        if terms:
            program.row(terms, upper=1)
    return program


Held: TypeAlias = dict[str, tuple[int, int, Fraction]]
"""Slot, GPUs and iterations of each variable of a job."""


def _required(it: Record, job: int) -> Fraction:
    return Fraction(it.iterations[job] * (1 - TOLERANCE))


def _best_speeds(it: Record) -> list[list[Fraction]]:
    """Return the most iterations of each job in a slot on at most so many GPUs."""
    return [list(accumulate(row, max)) for row in it.throughputs]


def _concave(it: Record) -> bool:
    """Tell whether no job gains more from a GPU than from the one before, but for rounding."""
    return all(
        after - middle - (middle - before) <= TOLERANCE * row[-1]
        for row in _best_speeds(it)
        for before, middle, after in zip(row, row[1:], row[2:], strict=False)
    )


def _slot_by_slot(program: Program, it: Record, admitted: str = "") -> list[Held]:
    """Add GPUs of each job in each slot, without numbers of them on which it is no faster than on fewer."""
    of_job: list[Held] = []
    of_slot: list[dict[str, Number]] = [{} for _ in range(it.horizon)]
    for j, (deadline, best) in enumerate(zip(it.deadlines, _best_speeds(it), strict=True)):
        useful = [g for g in range(1, len(best)) if best[g] > best[g - 1]] or [1]
        held: Held = {}
        for t in range(deadline):
            names = [program.variable(f"chosen[{j},{t},{g}]", 0, 1) for g in useful]
            one: dict[str, Number] = dict.fromkeys(names, 1)
            if admitted:
                one[admitted.format(j)] = -1
            program.row(one, upper=0 if admitted else 1)
            held.update((name, (t, g, best[g])) for name, g in zip(names, useful, strict=True))
            of_slot[t].update(zip(names, useful, strict=True))
        of_job.append(held)
    for terms in of_slot:
        program.row(terms, upper=it.num_gpus)
    return of_job


def _alone(program: Program, it: Record, of_job: Sequence[Held], admitted: str = "") -> None:
    """State that a job takes as many GPU-slots as it would with the cluster to itself; one that cannot end, all."""
    for j, held in enumerate(of_job):
        least = ALONE.least(it, j, [Fraction(1)] * it.deadlines[j])
        if math.isinf(least):
            least = it.num_gpus * it.deadlines[j]
        gpus: dict[str, Number] = {name: count for name, (_, count, _) in held.items()}
        if admitted:
            program.row({**gpus, admitted.format(j): -least}, lower=0)
        else:
            program.row(gpus, lower=least)


def _by_interval(program: Program, it: Record, admitted: str) -> list[Held]:
    """Add GPU-slots of each job between deadlines, on each step of its curve, if it is admitted.

    GPUs that add as much, but for rounding, are one step, each of which adds their mean; but no GPUs less than they do.
    """
    ends = sorted(set(it.deadlines))
    lengths = [end - begin for begin, end in pairwise([0, *ends])]
    of_job: list[Held] = []
    of_interval: list[dict[str, Number]] = [{} for _ in lengths]
    for j, (deadline, best) in enumerate(zip(it.deadlines, _best_speeds(it), strict=True)):
        steps = _steps(best)
        held: Held = {}
        for k, length in enumerate(lengths[: ends.index(deadline) + 1]):
            for s, (width, gain) in enumerate(steps):
                name = program.variable(f"gpu_slots[{j},{k},{s}]", 0, length * width)
                program.row({name: 1, admitted.format(j): -length * width}, upper=0)
                held[name] = k, 1, gain
                of_interval[k][name] = 1
        of_job.append(held)
    for terms, length in zip(of_interval, lengths, strict=True):
        program.row(terms, upper=it.num_gpus * length)
    return of_job


def _steps(best: Sequence[Fraction]) -> list[tuple[int, Fraction]]:
    """Return ``(width, gain of a GPU)`` of each step of a curve, the last one without GPUs that add nothing."""
    least = TOLERANCE * best[-1]
    steps: list[list[Fraction]] = []
    for before, after in pairwise(best):
        gain = after - before
        if gain <= least:
            continue
        if steps and gain - steps[-1][-1] >= -least:
            steps[-1].append(gain)
        else:
            steps.append([gain])
    if not steps:
        return [(1, max(best))]
    means = [(len(step), sum(step, Fraction(0)) / len(step)) for step in steps]
    told = list(accumulate((gain for width, gain in means for _ in range(width)), initial=Fraction(0)))
    ratios: list[Fraction] = [speed / told[min(g, len(told) - 1)] for g, speed in enumerate(best) if speed]
    short = max(ratios, default=Fraction(1))
    return [(width, gain * max(short, Fraction(1))) for width, gain in means]


def _inside(it: Record, job: int, choice: int) -> bool:
    """Tell whether the cap of one server's CPUs and memory allows a configuration."""
    kind = it.config_types[job][choice]
    if not it.server_cap or it.gpu_demands[job] > it.server_gpus[kind]:
        return True
    cpus, memory, _ = it.configs[job][choice]
    return bool(cpus <= it.server_cpus[kind] * ROOM and memory <= it.server_memory[kind] * ROOM)


def _within(it: Record, config: Sequence[Fraction]) -> bool:
    """Tell whether one server has the CPUs and the memory of a configuration."""
    return bool(config[0] <= it.server_cpus * ROOM and config[1] <= it.server_memory * ROOM)


def _beats(table: Sequence[Sequence[Fraction]], types: Sequence[int], one: int, other: int) -> bool:
    """Tell whether a configuration is as good as another in everything, and the first of those that are equal."""
    (cpus, memory, worth), (more_cpus, more_memory, less) = table[one], table[other]
    if types[one] != types[other] or cpus > more_cpus or memory > more_memory or worth < less:
        return False
    return one < other or (cpus, memory, worth) != (more_cpus, more_memory, less)


def _forgiven(amounts: Mapping[str, Fraction], limit: Fraction) -> Fraction:
    """Return a limit as plans must keep it: whole amounts exactly, others within the tolerance."""
    if limit.denominator == 1 and all(amount.denominator == 1 for amount in amounts.values()):
        return limit
    return limit * ROOM


STATED: Mapping[str, Callable[[Record], Program]] = {
    "afs.gpu_placement": gpu_placement,
    "aryl.placement": placement,
    "aryl.reclaim": reclaim,
    "elasticflow.admission": admission,
    "elasticflow.best_effort": best_effort,
    "elasticflow.placement": blocks,
    "gavel.round_assignment": round_assignment,
    "synergy.heterogeneous_allocation": heterogeneous_allocation,
    "synergy.placement": jobs_on_servers,
    "synergy.tuning": configured,
}
"""The problems whose programs the reference states by itself."""

AS_WELL: Mapping[str, Callable[[Record], Program]] = {"aryl.placement": patterns_of_servers}
"""Those of which it states a second one, over other variables."""


def certified(problem: str, it: Record, proven: Proven) -> Number:
    """Return what a certificate proves of an instance of which the reference states a program, or two.

    Raises
    ------
    Refuted
        When it is of none of them, or proves nothing.
    """
    program = STATED[problem](it)
    if problem in AS_WELL and program.objective.keys().isdisjoint(proven.names):
        program = AS_WELL[problem](it)
    return program.bound(proven)
