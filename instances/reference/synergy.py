"""Synergy's four problems: configurations of jobs, on one type of machine or several, and where jobs run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from .common import (
    FEW_STEPS,
    TOLERANCE,
    Counter,
    Group,
    Malformed,
    Number,
    Problem,
    Record,
    Rules,
    good_prices,
    need,
    whole,
)
from .linear import Limit, least

SENSITIVE = {
    "num_servers": "int1",
    "server_gpus": "int1",
    "server_cpus": "num+",
    "server_memory": "num+",
    "gpu_demands": "int1 n",
    "configs": "num+* n a 3",
    "fair_throughputs": "num+ n",
    "server_cap": "bool",
}
ROOM = 1 + TOLERANCE
"""What a capacity may be filled to."""


def fair_enough(worth: Fraction, fair: Fraction) -> bool:
    """Tell whether a throughput is fair, within the tolerance."""
    return fair - worth <= TOLERANCE * fair


class Configured(Problem):
    """Problems in which each job takes a configuration (CPUs, memory, throughput)."""

    sense = "max"

    def kind(self, it: Record, job: int, choice: int) -> tuple[int, Fraction, Fraction]:
        """``(GPUs, CPUs, memory)`` of a server of the type that a configuration is for."""
        return it.server_gpus, it.server_cpus, it.server_memory

    def chosen(self, it: Record, plan: Record, job: int) -> Any:
        if not 0 <= plan.choices[job] < len(it.configs[job]):
            raise Malformed(f"plan: job {job} has no configuration {plan.choices[job]}")
        return it.configs[job][plan.choices[job]]

    def known(self, it: Record, plan: Record, rules: Rules) -> Iterator[tuple[int, int]]:
        """Yield the jobs with a configuration that there is, each with it, after the rules about it alone."""
        for job, choice in enumerate(plan.choices):
            if not 0 <= choice < len(it.configs[job]):
                rules.require("one_config", choice == -1 and self.may_wait)
                continue
            cpus, memory, worth = it.configs[job][choice]
            gpus, most_cpus, most_memory = self.kind(it, job, choice)
            if it.server_cap and it.gpu_demands[job] <= gpus:
                rules.at_most("job_cpus", cpus, most_cpus)
                rules.at_most("job_memory", memory, most_memory)
            rules.at_most("fair_throughput", it.fair_throughputs[job], worth, size=it.fair_throughputs[job])
            yield job, choice

    may_wait = False

    def usable(self, it: Record, job: int) -> list[int]:
        """List the configurations that the rules about a job alone allow, within the tolerance."""
        found = []
        for choice, (cpus, memory, worth) in enumerate(it.configs[job]):
            gpus, most_cpus, most_memory = self.kind(it, job, choice)
            capped = it.server_cap and it.gpu_demands[job] <= gpus
            inside = not capped or (cpus <= most_cpus * ROOM and memory <= most_memory * ROOM)
            if inside and fair_enough(worth, it.fair_throughputs[job]):
                found.append(choice)
        return found

    def value(self, it: Record, plan: Record) -> Number:
        return sum((self.chosen(it, plan, job)[2] for job in range(len(it.configs))), Fraction(0))

    def super_machine(self, it: Record) -> Number:
        """Return the greatest total throughput if all servers were one, which bounds any placement's, too."""
        groups = [[it.configs[job][choice] for choice in self.usable(it, job)] for job in range(len(it.configs))]
        room = [it.num_servers * capacity * ROOM for capacity in (it.server_cpus, it.server_memory)]
        worths, unit = whole(worth for options in groups for _, _, worth in options)
        cpus, _ = whole([room[0], *(c for options in groups for c, _, _ in options)])
        sizes, _ = whole([room[1], *(m for options in groups for _, m, _ in options)])
        at = 0
        whole_groups: list[Group] = []
        for options in groups:
            ends = at + len(options)
            whole_groups.append(
                [
                    (w, (c, m))
                    for w, c, m in zip(worths[at:ends], cpus[at + 1 : ends + 1], sizes[at + 1 : ends + 1], strict=True)
                ]
            )
            at = ends
        most = most_worth(whole_groups, (cpus[0], sizes[0]))
        return most if isinstance(most, float) else Fraction(most, unit)


def thinned(options: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return options, of ``(worth, amounts)``, without those that another one beats in everything."""
    kept: list[tuple[Any, Any]] = []
    for worth, amounts in sorted(
        {(worth, tuple(amounts)) for worth, amounts in options}, key=lambda one: (-one[0], one[1])
    ):
        if not any(all(a <= b for a, b in zip(other, amounts, strict=True)) for _, other in kept):
            kept.append((worth, amounts))
    return kept


def most_worth(groups: Sequence[Group], room: tuple[int, ...]) -> int | float:
    """Most that one option of each group is worth within ``room``: exact, by a search that bounds by prices.

    Parameters
    ----------
    groups : list of list of (worth, amounts)
        Whole numbers; ``amounts`` has an entry for each resource.
    room : tuple of int

    Notes
    -----
    For any prices of the resources, what the groups left can add is at most what the room left costs, plus for each
    group the most that an option is worth less its price.
    """
    if not all(groups):
        return -math.inf
    counter = Counter()
    thin = [thinned(options) for options in groups]
    thin.sort(key=lambda options: options[-1][0] - options[0][0])
    prices = good_prices(thin, room)
    # Prices as whole numbers over one scale.
    scale = 1 << 40
    priced = [max(0, int(price * scale)) for price in prices]
    rest = [0] * (len(thin) + 1)
    for at in reversed(range(len(thin))):
        rest[at] = rest[at + 1] + max(
            worth * scale - sum(p * a for p, a in zip(priced, amounts, strict=True)) for worth, amounts in thin[at]
        )
    least = [[0] * len(room) for _ in range(len(thin) + 1)]
    for at in reversed(range(len(thin))):
        least[at] = [
            least[at + 1][resource] + min(amounts[resource] for _, amounts in thin[at]) for resource in range(len(room))
        ]
    best = [-math.inf]

    def go(at: int, worth: int, left: tuple[int, ...]) -> None:
        counter.step()
        if any(have < must for have, must in zip(left, least[at], strict=True)):
            return
        if at == len(thin):
            best[0] = max(best[0], worth)
            return
        most = worth * scale + rest[at] + sum(p * a for p, a in zip(priced, left, strict=True))
        if best[0] != -math.inf and most // scale <= best[0]:
            return
        order = sorted(
            thin[at], key=lambda one: sum(p * a for p, a in zip(priced, one[1], strict=True)) - one[0] * scale
        )
        for gain, amounts in order:
            go(at + 1, worth + gain, tuple(have - a for have, a in zip(left, amounts, strict=True)))

    go(0, 0, tuple(room))
    return best[0]


class Allocation(Configured):
    """Search over configurations within the cluster's CPUs and memory."""

    data = SENSITIVE
    decisions = {"choices": "int n"}

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        jobs = [it.configs[job][choice] for job, choice in self.known(it, plan, rules)]
        rules.at_most("cpus", sum((config[0] for config in jobs), Fraction(0)), it.num_servers * it.server_cpus)
        rules.at_most("memory", sum((config[1] for config in jobs), Fraction(0)), it.num_servers * it.server_memory)

    def search(self, it: Record) -> Number:
        return self.super_machine(it)


class HeterogeneousAllocation(Configured):
    """Search over configurations within the CPUs, memory and GPUs of each type."""

    data = {
        "num_servers": "int1 k",
        "server_gpus": "int1 k",
        "server_cpus": "num+ k",
        "server_memory": "num+ k",
        "gpu_demands": "int1 n",
        "configs": "num+* n a 3",
        "config_types": "int+* n a",
        "fair_throughputs": "num+ n",
        "server_cap": "bool",
    }
    decisions = {"choices": "int n"}

    def check(self, it: Record) -> None:
        for table, types in zip(it.configs, it.config_types, strict=True):
            need(len(table) == len(types), "config_types must have a type for each configuration")
            need(max(types, default=0) < len(it.num_servers), "config_types names a type that there is not")

    def kind(self, it: Record, job: int, choice: int) -> tuple[int, Fraction, Fraction]:
        kind = it.config_types[job][choice]
        return it.server_gpus[kind], it.server_cpus[kind], it.server_memory[kind]

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        used: list[list[Any]] = [[Fraction(0), Fraction(0), 0] for _ in it.num_servers]
        for job, choice in self.known(it, plan, rules):
            mine = used[it.config_types[job][choice]]
            mine[0] += it.configs[job][choice][0]
            mine[1] += it.configs[job][choice][1]
            mine[2] += it.gpu_demands[job]
        for (cpus, memory, gpus), count, most_gpus, most_cpus, most_memory in zip(
            used, it.num_servers, it.server_gpus, it.server_cpus, it.server_memory, strict=True
        ):
            rules.at_most("cpus", cpus, count * most_cpus)
            rules.at_most("memory", memory, count * most_memory)
            rules.at_most("gpus", gpus, count * most_gpus)

    def search(self, it: Record) -> Number:
        kinds = range(len(it.num_servers))
        rows = [
            (job, it.config_types[job][choice], it.configs[job][choice])
            for job in range(len(it.configs))
            for choice in self.usable(it, job)
        ]
        worths, unit = whole(config[2] for _, _, config in rows)
        room: list[int] = []
        amounts = [[0] * (3 * len(kinds)) for _ in rows]
        for kind in kinds:
            for resource, capacity in enumerate((it.server_cpus[kind], it.server_memory[kind])):
                limit = it.num_servers[kind] * capacity * ROOM
                scaled, _ = whole([limit, *(config[resource] if here == kind else 0 for _, here, config in rows)])
                for row, amount in enumerate(scaled[1:]):
                    amounts[row][len(room)] = amount
                room.append(scaled[0])
            for row, (job, here, _) in enumerate(rows):
                amounts[row][len(room)] = it.gpu_demands[job] if here == kind else 0
            room.append(it.num_servers[kind] * it.server_gpus[kind])
        groups: list[Group] = [[] for _ in it.configs]
        for (job, _, _), worth, taken in zip(rows, worths, amounts, strict=True):
            groups[job].append((worth, tuple(taken)))
        most = most_worth(groups, tuple(room))
        return most if isinstance(most, float) else Fraction(most, unit)


class Placement(Problem):
    """The most jobs that can be whole, each on one server; all others are on more than one.

    What the others need of the servers together is not asked, so this is a bound, and not always the optimum.
    """

    data = {
        "num_servers": "int1",
        "server_gpus": "int1",
        "server_cpus": "num+",
        "server_memory": "num+",
        "demands": "num+ n 3",
        "integral_gpus": "bool",
    }
    decisions = {"shares": "num n s"}

    def check(self, it: Record) -> None:
        need(all(demand[0].denominator == 1 for demand in it.demands), "demands: GPUs must be whole")

    def lengths(self, it: Record) -> dict[str, int]:
        return {"s": it.num_servers}

    def value(self, it: Record, plan: Record) -> Number:
        return Fraction(sum(sum(share > 0 for share in row) > 1 for row in plan.shares))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for row, demand in zip(plan.shares, it.demands, strict=True):
            for share in row:
                rules.at_most("share_at_least_0", Fraction(0), share)
                if it.integral_gpus:
                    gpus = share * demand[0]
                    rules.at_most("whole_gpus", abs(gpus - round(gpus)), Fraction(0), abs(gpus))
            rules.at_most("placed", abs(sum(row, Fraction(0)) - 1), Fraction(0), 1)
        for server in range(it.num_servers):
            for resource, capacity in enumerate((it.server_gpus, it.server_cpus, it.server_memory)):
                used = sum(
                    (row[server] * demand[resource] for row, demand in zip(plan.shares, it.demands, strict=True)),
                    Fraction(0),
                )
                rules.at_most(("server_gpus", "server_cpus", "server_memory")[resource], used, Fraction(capacity))

    def search(self, it: Record) -> Number:
        n = len(it.demands)
        # A whole job may be up to the tolerance less than whole, on a server up to the tolerance more than full.
        slack = ROOM / (1 - TOLERANCE)
        columns = []
        for resource, capacity in enumerate((it.server_gpus, it.server_cpus, it.server_memory)):
            numbers, _ = whole([capacity * slack, *(demand[resource] for demand in it.demands)])
            if sum(demand[resource] for demand in it.demands) > it.num_servers * capacity * slack:
                return math.inf
            columns.append(numbers)
        room = tuple(column[0] for column in columns)
        jobs = sorted(
            (tuple(column[job + 1] for column in columns) for job in range(n)),
            key=lambda one: -sum(Fraction(a, r) for a, r in zip(one, room, strict=True) if r),
        )
        counter, dead = Counter(), set()

        def fit(at: int, loads: tuple[tuple[int, ...], ...], out: int) -> bool:
            """Return whether the jobs from ``at`` on fit the servers with no more than ``out`` left out."""
            counter.step()
            if at == n:
                return True
            key = at, loads, out
            if key in dead:
                return False
            for server in range(len(loads)):
                if server and loads[server] == loads[server - 1]:
                    continue
                after = tuple(load + a for load, a in zip(loads[server], jobs[at], strict=True))
                if all(a <= r for a, r in zip(after, room, strict=True)):
                    rest = tuple(sorted((*loads[:server], after, *loads[server + 1 :])))
                    if fit(at + 1, rest, out):
                        return True
            if out and fit(at + 1, loads, out - 1):
                return True
            dead.add(key)
            return False

        empty = tuple((0, 0, 0) for _ in range(it.num_servers))
        return Fraction(next(out for out in range(n + 1) if fit(0, empty, out)))

    def best(self, it: Record) -> Number:
        """Try whole jobs in all places; the others by a linear program, or with whole GPUs in all ways."""
        counter, n, servers = Counter(FEW_STEPS), len(it.demands), it.num_servers
        room = [capacity * ROOM for capacity in (it.server_gpus, it.server_cpus, it.server_memory)]
        best: list[Number] = [math.inf]

        def fit(parted: list[int], loads: list[list[Fraction]]) -> bool:
            """Tell whether jobs can be parted in any way between the servers."""
            size = len(parted) * servers
            limits: list[Limit] = []
            for at in range(len(parted)):
                mine = [int(place // servers == at) for place in range(size)]
                limits += [(mine, 1), ([-one for one in mine], -1)]
            for server, load in enumerate(loads):
                for resource in range(3):
                    taken = [
                        it.demands[parted[place // servers]][resource] * (place % servers == server)
                        for place in range(size)
                    ]
                    limits.append((taken, room[resource] - load[resource]))
            return least([0] * size, limits, counter) == 0

        def go(job: int, parted: list[int], cut: int, loads: list[list[Fraction]]) -> None:
            counter.step()
            if cut + len(parted) >= best[0]:
                return
            if job == n:
                if fit(parted, loads):
                    best[0] = cut + len(parted)
                return
            demand = it.demands[job]
            whole_gpus = it.integral_gpus and demand[0] > 0
            gpus = int(demand[0]) if whole_gpus else 1
            for way in splits(gpus, servers):
                counter.step(servers)
                after = [
                    [have + amount * part / gpus for have, amount in zip(load, demand, strict=True)]
                    for load, part in zip(loads, way, strict=True)
                ]
                if all(have <= most for load in after for have, most in zip(load, room, strict=True)):
                    go(job + 1, parted, cut + (max(way) < gpus), after)
            if not whole_gpus and servers > 1:
                go(job + 1, [*parted, job], cut, loads)

        go(0, [], 0, [[Fraction(0)] * 3 for _ in range(servers)])
        return best[0] if best[0] == math.inf else Fraction(best[0])


class Tuning(Configured):
    """The first stage, all servers as one: a bound, and not always the optimum."""

    data = SENSITIVE | {"allow_split": "bool", "split_penalty": "num+"}
    decisions = {"choices": "int n", "gpus": "int n s"}
    may_wait = True

    def check(self, it: Record) -> None:
        need(it.split_penalty <= 1, "split_penalty must be at most 1")

    def lengths(self, it: Record) -> dict[str, int]:
        return {"s": it.num_servers}

    def value(self, it: Record, plan: Record) -> Number:
        total = Fraction(0)
        for job, row in enumerate(plan.gpus):
            if plan.choices[job] == -1:
                continue
            worth = self.chosen(it, plan, job)[2]
            if sum(row) != it.gpu_demands[job]:
                continue
            split = sum(gpus > 0 for gpus in row) > 1
            total += worth * (1 - it.split_penalty) if split and it.gpu_demands[job] <= it.server_gpus else worth
        return total

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        used: list[list[Any]] = [[0, Fraction(0), Fraction(0)] for _ in range(it.num_servers)]
        for job, row in enumerate(plan.gpus):
            rules.require("placed", plan.choices[job] != -1 and sum(row) == it.gpu_demands[job])
            rules.require("gpus_at_least_0", min(row) >= 0)
            if not it.allow_split:
                rules.require("one_server", sum(gpus > 0 for gpus in row) <= 1)
            for server, gpus in enumerate(row):
                used[server][0] += gpus
        for job, choice in self.known(it, plan, rules):
            cpus, memory, _ = it.configs[job][choice]
            for server, gpus in enumerate(plan.gpus[job]):
                used[server][1] += gpus * cpus / it.gpu_demands[job]
                used[server][2] += gpus * memory / it.gpu_demands[job]
        for gpus, cpus, memory in used:
            rules.at_most("server_gpus", gpus, it.server_gpus)
            rules.at_most("server_cpus", cpus, it.server_cpus)
            rules.at_most("server_memory", memory, it.server_memory)

    def search(self, it: Record) -> Number:
        return self.super_machine(it)

    def best(self, it: Record) -> Number:
        """Try every configuration and place of each job: by what servers hold, job by job, the most that is worth."""
        counter, servers = Counter(FEW_STEPS), it.num_servers
        room = (Fraction(it.server_gpus), it.server_cpus * ROOM, it.server_memory * ROOM)
        worths: dict[Any, Fraction] = {((Fraction(0),) * 3,) * servers: Fraction(0)}
        for job, gpus in enumerate(it.gpu_demands):
            ways = [way for way in splits(gpus, servers) if it.allow_split or max(way) == gpus]
            options = thinned(
                (config[2], config[:2]) for config in (it.configs[job][at] for at in self.usable(it, job))
            )
            counter.step(len(worths) * len(ways) * len(options) * servers)
            after: dict[Any, Fraction] = {}
            for loads, so_far in worths.items():
                for way in ways:
                    lost = it.split_penalty if max(way) < gpus <= it.server_gpus else 0
                    for worth, (cpus, memory) in options:
                        taken = [[part * amount / gpus for amount in (gpus, cpus, memory)] for part in way]
                        pairs = zip(loads, taken, strict=True)
                        total = sorted(tuple(map(sum, zip(load, more, strict=True))) for load, more in pairs)
                        if all(have <= most for load in total for have, most in zip(load, room, strict=True)):
                            value = so_far + worth * (1 - lost)
                            after[tuple(total)] = max(after.get(tuple(total), value), value)
            worths = after
        return max(worths.values(), default=-math.inf)


def splits(gpus: int, servers: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to part GPUs between servers."""
    if servers == 1:
        yield (gpus,)
        return
    for here in range(gpus + 1):
        for rest in splits(gpus - here, servers - 1):
            yield here, *rest


PROBLEMS = {
    "synergy.allocation": Allocation(),
    "synergy.heterogeneous_allocation": HeterogeneousAllocation(),
    "synergy.placement": Placement(),
    "synergy.tuning": Tuning(),
}
