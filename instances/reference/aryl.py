"""Aryl's five problems: servers to give back, base demands, elastic workers, placement, and two jobs."""

from __future__ import annotations

import heapq
import math
from fractions import Fraction
from typing import TypeAlias

from .common import TOLERANCE, Counter, Malformed, Number, Problem, Record, Rules, TooLarge, need, whole

Running: TypeAlias = tuple[tuple[int, int], ...]
"""When running jobs end and the GPUs that they hold, the first to end first."""

Workers: TypeAlias = tuple[int, ...]
"""Workers of each kind."""


class Reclaim(Problem):
    """Search over sets of servers.

    With r more servers to choose, a job is preempted by at most min(r, its servers left) of them.  Give each server one
    over that for each of its jobs that still runs: r servers preempt at least what their numbers add up to, so at
    least the sum of the r smallest.

    Prices prove the same of larger instances.  Let each job be divided among its servers, in whole shares, ``of`` of
    them all of it: it is preempted if any of its servers is returned, so at least to their shares.  Each server then
    costs what it has of all jobs, and the demand costs at least those servers that must be returned and the cheapest of
    the others, rounded up.  The plans may be divided, as often as one likes, by whether a server is returned or kept.
    """

    data = {"hosts": "bool n s", "gpus": "int+ n s", "demand": "int+"}
    decisions = {"servers": "int d"}
    priced = {"of": "int1", "shares": "int+ p"}
    divided = {"server": "int+"}
    halves = ("returned", "kept")

    def check(self, it: Record) -> None:
        need(
            all(
                g for hosts, gpus in zip(it.hosts, it.gpus, strict=True) for h, g in zip(hosts, gpus, strict=True) if h
            ),
            "gpus must be positive where hosts is true",
        )

    def value(self, it: Record, plan: Record) -> Number:
        if any(not 0 <= server < it.dims["s"] for server in plan.servers):
            raise Malformed("plan: there is no such server")
        return Fraction(sum(any(row[server] for server in plan.servers) for row in it.hosts))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        rules.require("server_exists", all(0 <= server < it.dims.get("s", math.inf) for server in plan.servers))
        rules.require("server_once", len(set(plan.servers)) == len(plan.servers))
        rules.require("demand", len(plan.servers) == it.demand)

    def lengths(self, it: Record) -> dict[str, int]:
        return {"p": sum(map(sum, it.hosts))}

    def proven(self, it: Record, prices: Record) -> Number:
        return self._proven_of(it, prices, {})

    def _proven_of(self, it: Record, prices: Record, fixed: dict[int, bool]) -> Number:
        """Return what prices prove of the plans that return some servers and keep others."""
        if "halves" in vars(prices):
            if prices.server >= it.dims["s"]:
                raise Malformed(f"prices: there is no server {prices.server}")
            # What a part above has settled leaves the other part of this one without plans.
            return min(
                self._proven_of(it, half, fixed | {prices.server: returned})
                for half, returned in zip(prices.halves, (True, False), strict=True)
                if fixed.get(prices.server, returned) == returned
            )
        cost, shares = [0] * it.dims["s"], iter(prices.shares)
        for job, hosts in enumerate(it.hosts):
            divided = {server: next(shares) for server, host in enumerate(hosts) if host}
            if sum(divided.values()) > prices.of:
                raise Malformed(f"prices: the shares of job {job} are more than one")
            for server, share in divided.items():
                cost[server] += share
        others = sorted(cost[server] for server in range(len(cost)) if server not in fixed)
        more = it.demand - sum(fixed.values())
        if not 0 <= more <= len(others):
            return math.inf
        total = sum(cost[server] for server, returned in fixed.items() if returned) + sum(others[:more])
        return Fraction(-(-total // prices.of))

    def is_free(self, it: Record) -> bool:
        if not it.hosts and it.demand:
            raise TooLarge("without jobs nothing says how many servers there are")
        return super().is_free(it)

    def search(self, it: Record) -> Number:
        n, counter = len(it.hosts), Counter()
        s = it.dims["s"]
        if it.demand > s:
            return math.inf
        on = [sum(1 << job for job in range(n) if it.hosts[job][server]) for server in range(s)]
        best = [n + 1]

        def greedy() -> int:
            preempted, left = 0, list(range(s))
            for _ in range(it.demand):
                server = min(left, key=lambda one: (on[one] & ~preempted).bit_count())
                left.remove(server)
                preempted |= on[server]
            return preempted.bit_count()

        best[0] = greedy()

        def go(preempted: int, left: list[int], more: int) -> None:
            """Choose ``more`` of the servers ``left`` to add to those that preempt ``preempted``."""
            counter.step(1 + len(left) // 4)
            count = preempted.bit_count()
            if not more:
                best[0] = min(best[0], count)
                return
            if len(left) < more or count >= best[0]:
                return
            degree: dict[int, int] = {}
            for server in left:
                fresh = on[server] & ~preempted
                while fresh:
                    job = fresh & -fresh
                    degree[job] = degree.get(job, 0) + 1
                    fresh ^= job
            unit = math.lcm(*range(1, min(more, max(degree.values(), default=1)) + 1))
            weight = {}
            for server in left:
                fresh, total = on[server] & ~preempted, 0
                while fresh:
                    job = fresh & -fresh
                    total += unit // min(more, degree[job])
                    fresh ^= job
                weight[server] = total
            order = sorted(left, key=weight.__getitem__)
            if count + -(-sum(weight[server] for server in order[:more]) // unit) >= best[0]:
                return
            # A server that preempts nobody more is chosen without asking.
            if not on[order[0]] & ~preempted:
                go(preempted, order[1:], more - 1)
                return
            for at, server in enumerate(order):
                # Those before it are left out: what is chosen from here weighs at least this much each.
                if count + -(-weight[server] * more // unit) >= best[0]:
                    return
                go(preempted | on[server], order[at + 1 :], more - 1)

        go(0, list(range(s)), it.demand)
        return Fraction(best[0])


class BaseAllocation(Problem):
    """Search over orders of starts.

    In the order of their starts in a best plan, jobs can each begin as early as the one before has begun and GPUs are
    free, and none begins later than it did.  So some order, followed so, is best.  What jobs are not yet begun wait at
    least until now; and GPU-seconds that go one after the other, the smallest job first, complete sooner than jobs can.
    """

    data = {"capacity": "int+", "gpu_demands": "int1 n", "running_times": "num+ n"}
    decisions = {"starts": "num n"}

    def value(self, it: Record, plan: Record) -> Number:
        return sum((start + run for start, run in zip(plan.starts, it.running_times, strict=True)), Fraction(0)) / len(
            plan.starts
        )

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for start in plan.starts:
            rules.at_most("starts_at_least_0", Fraction(0), start)
        ends = [start + run for start, run in zip(plan.starts, it.running_times, strict=True)]
        overlaps = False
        for now in plan.starts:
            held = sure = 0
            for start, end, run, gpus in zip(plan.starts, ends, it.running_times, it.gpu_demands, strict=True):
                if start <= now < end:
                    held += gpus
                    # Overlaps that rounding of times explains are none.
                    if end - now > max(TOLERANCE * run, 2 * Fraction(math.ulp(now))):
                        sure += gpus
            rules.require("capacity", sure <= it.capacity)
            overlaps = overlaps or held > it.capacity >= sure
        if overlaps:
            rules.missed.append("capacity")

    def search(self, it: Record) -> Number:
        times, unit = whole(it.running_times)
        jobs = [job for job, run in enumerate(times) if run]
        if any(it.gpu_demands[job] > it.capacity for job in jobs):
            return math.inf
        counter = Counter()
        best: list[int | float] = [math.inf]

        def go(now: int, running: Running, left: frozenset[int], spent: int) -> None:
            """Jobs ``left`` begin at ``now`` or later; ``running`` is a sorted tuple of (end, GPUs)."""
            counter.step(1 + len(left))
            if not left:
                best[0] = min(best[0], spent)
                return
            if spent + self._least(now, running, left, times, it) >= best[0]:
                return
            tried = set()
            for job in sorted(left, key=lambda one: times[one] * it.gpu_demands[one]):
                kind = times[job], it.gpu_demands[job]
                if kind in tried:
                    continue
                tried.add(kind)
                start, still = now, [one for one in running if one[0] > now]
                free = it.capacity - sum(gpus for _, gpus in still)
                while free < kind[1]:
                    start, gpus = still.pop(0)
                    free += gpus
                still = [one for one in still if one[0] > start]
                go(start, tuple(sorted([*still, (start + kind[0], kind[1])])), left - {job}, spent + start)

        go(0, (), frozenset(jobs), 0)
        return Fraction(int(best[0]) + sum(times), unit * len(times))

    @staticmethod
    def _least(now: int, running: Running, left: frozenset[int], times: list[int], it: Record) -> Number:
        """Bound below what the starts of the jobs left add up to."""
        # What those that run leave free does the smallest areas one after the other.
        clock: Number = now
        ends: Number = 0
        free = it.capacity - sum(gpus for end, gpus in running if end > now)
        coming = [one for one in running if one[0] > now]
        at = 0
        for area in sorted(times[job] * it.gpu_demands[job] for job in left):
            while at < len(coming) and (coming[at][0] - clock) * free < area:
                area -= (coming[at][0] - clock) * free
                clock, free = coming[at][0], free + coming[at][1]
                at += 1
            clock += Fraction(area, free)
            ends += clock
        # A completion is no sooner than its start plus its own time.
        return max(len(left) * now, ends - sum(times[job] for job in left))


class ElasticAllocation(Problem):
    """Extra workers, by the GPUs that they take: of each number the most that can be reduced on it."""

    sense = "max"
    data = {
        "capacity": "int+",
        "min_workers": "int1 n",
        "max_workers": "int1 n",
        "gpus_per_worker": "int1 n",
        "min_running_times": "num+ n",
        "running_times": "num+*! n w",
    }
    decisions = {"extra_workers": "int n"}

    def check(self, it: Record) -> None:
        it.most = [most - least for least, most in zip(it.min_workers, it.max_workers, strict=True)]
        need(min(it.most, default=0) >= 0, "max_workers must be at least min_workers")
        if it.running_times is not None:
            for table, most in zip(it.running_times, it.most, strict=True):
                need(len(table) == most + 1, "running_times must have an entry for each number of workers")

    def reduction(self, it: Record, job: int, extra: int) -> Fraction:
        if it.running_times is not None:
            return Fraction(it.running_times[job][0] - it.running_times[job][extra])
        slowest = it.min_running_times[job] * it.max_workers[job] / it.min_workers[job]
        return Fraction(slowest - it.min_running_times[job] * it.max_workers[job] / (it.min_workers[job] + extra))

    def value(self, it: Record, plan: Record) -> Number:
        for extra, most in zip(plan.extra_workers, it.most, strict=True):
            if not 0 <= extra <= most:
                raise Malformed(f"plan: {extra} extra workers of at most {most}")
        return sum((self.reduction(it, job, extra) for job, extra in enumerate(plan.extra_workers)), Fraction(0))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for extra, most in zip(plan.extra_workers, it.most, strict=True):
            rules.at_most("min_extra", 0, extra)
            rules.at_most("max_extra", extra, most)
        used = sum(extra * gpus for extra, gpus in zip(plan.extra_workers, it.gpus_per_worker, strict=True))
        rules.at_most("capacity", used, it.capacity)

    def search(self, it: Record) -> Number:
        counter = Counter(4_000_000)
        gains, unit = whole(
            self.reduction(it, job, extra) for job, most in enumerate(it.most) for extra in range(most + 1)
        )
        front = [(0, 0)]
        at = 0
        for job, most in enumerate(it.most):
            table = gains[at : at + most + 1]
            at += most + 1
            # Options that take more GPUs and gain nothing more are never needed.
            options, reached = [], -1
            for extra, gain in enumerate(table):
                if gain > reached:
                    options.append((extra * it.gpus_per_worker[job], gain))
                    reached = gain
            counter.step(len(front) * len(options))
            lists = [
                [(used + gpus, gained + gain) for used, gained in front if used + gpus <= it.capacity]
                for gpus, gain in options
            ]
            front, reached = [], -1
            for used, gained in heapq.merge(*lists, key=lambda one: (one[0], -one[1])):
                if gained > reached:
                    front.append((used, gained))
                    reached = gained
        return Fraction(front[-1][1], unit)


class Placement(Problem):
    """Search over what each server holds, one server after the other.

    Servers that are alike are opened in an order of what they hold.  Servers in use come first and cost nothing.  The
    workers that are left need at least so many others that the largest of those left have their GPUs.
    """

    data = {
        "gpus_per_worker": "int1 n",
        "num_workers": "int+ n",
        "elastic": "bool n",
        "server_gpus": "int1 s",
        "server_groups": "word9 s",
        "flexible": "bool n",
        "heterogeneous": "bool n",
        "used_gpus": "int+~ s",
    }
    decisions = {"workers": "int n s"}

    def check(self, it: Record) -> None:
        need(set(it.server_groups) <= {"training", "inference"}, "server_groups: training or inference")
        need(all(e or not f for e, f in zip(it.elastic, it.flexible, strict=True)), "flexible must be elastic")
        it.loan = [group == "inference" for group in it.server_groups]
        it.likes = [f or (e and not h) for e, f, h in zip(it.elastic, it.flexible, it.heterogeneous, strict=True)]

    def value(self, it: Record, plan: Record) -> Number:
        opened = sum(
            not used and any(row[server] > 0 for row in plan.workers) for server, used in enumerate(it.used_gpus)
        )
        off = sum(
            count
            for likes, row in zip(it.likes, plan.workers, strict=True)
            for loan, count in zip(it.loan, row, strict=True)
            if likes != loan
        )
        return opened + Fraction(off, 1 + sum(it.num_workers))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for row, count in zip(plan.workers, it.num_workers, strict=True):
            rules.require("workers_at_least_0", min(row) >= 0)
            rules.require("all_placed", sum(row) == count)
        for server, (most, loan, used) in enumerate(zip(it.server_gpus, it.loan, it.used_gpus, strict=True)):
            held = [row[server] for row in plan.workers]
            rules.require("server_gpus", sum(c * g for c, g in zip(held, it.gpus_per_worker, strict=True)) <= most)
            kinds = {flexible for flexible, count in zip(it.flexible, held, strict=True) if count > 0}
            # What a server in use holds is not flexible.
            kinds |= {False} if used else set()
            rules.require("separate_groups", not loan or len(kinds) < 2)

    def search(self, it: Record) -> Number:
        total = sum(it.num_workers)
        counter = Counter()
        # Workers of jobs that are alike in all that matters are one kind.
        kinds: dict[tuple[int, bool, bool], int] = {}
        for gpus, count, likes, flexible in zip(it.gpus_per_worker, it.num_workers, it.likes, it.flexible, strict=True):
            if count:
                kinds[gpus, likes, flexible] = kinds.get((gpus, likes, flexible), 0) + count
        sorts = sorted(kinds, reverse=True)
        servers = sorted(
            ((used > 0, size, loan) for size, loan, used in zip(it.server_gpus, it.loan, it.used_gpus, strict=True)),
            reverse=True,
        )
        unit = 1 + total
        memo: dict[tuple[int, Workers, Workers | None], int | float] = {}

        def fewest(gpus: int, at: int) -> int | float:
            """Bound below how many servers that are not in use, from ``at`` on, hold so many GPUs."""
            count = 0
            while gpus > 0:
                if at == len(servers):
                    return math.inf
                used, size, _ = servers[at]
                gpus -= size
                at += 1
                count += not used
            return count

        def fillings(capacity: int, loan: bool, used: bool, left: Workers, most: Workers | None) -> list[Workers]:
            """List what a server can hold, with nothing more fitting beside it or not; at most ``most``, in order."""
            found = []

            def add(sort: int, room: int, held: Workers, flexible: bool | None) -> None:
                counter.step()
                if sort == len(sorts):
                    found.append(held)
                    return
                gpus, _, flex = sorts[sort]
                top = min(left[sort], room // gpus)
                if loan and flexible is not None and flex != flexible:
                    top = 0
                for count in range(top, -1, -1):
                    add(sort + 1, room - count * gpus, (*held, count), flex if count and loan else flexible)

            add(0, capacity, (), False if used else None)
            return [held for held in found if any(held) and (most is None or held <= most)]

        def go(at: int, left: Workers, most: Workers | None) -> int | float:
            """Least cost of the workers ``left`` on the servers from ``at`` on; costs in units of 1 / (1 + total)."""
            if not any(left):
                return 0
            if at == len(servers) or fewest(sum(c * s[0] for c, s in zip(left, sorts, strict=True)), at) == math.inf:
                return math.inf
            key = at, left, most
            if key in memo:
                return memo[key]
            counter.step()
            used, capacity, loan = servers[at]
            price = 0 if used else unit
            same = at + 1 < len(servers) and servers[at + 1] == servers[at]
            least_rest = unit * fewest(sum(c * s[0] for c, s in zip(left, sorts, strict=True)), at)
            best: int | float = math.inf
            for held in sorted(fillings(capacity, loan, used, left, most), reverse=True):
                off = sum(count for count, (_, likes, _) in zip(held, sorts, strict=True) if likes != loan)
                after = tuple(count - here for count, here in zip(left, held, strict=True))
                fewest_after = fewest(sum(c * s[0] for c, s in zip(after, sorts, strict=True)), at + 1)
                if price + off + unit * fewest_after >= best:
                    continue
                best = min(best, price + off + go(at + 1, after, held if same else None))
                if best == least_rest:
                    break
            # Left closed: then those like it are, too.
            if best > least_rest:
                skip = at + 1
                while skip < len(servers) and servers[skip] == servers[at]:
                    skip += 1
                best = min(best, go(skip, left, None))
            memo[key] = best
            return best

        cost = go(0, tuple(kinds[sort] for sort in sorts), None)
        return cost if isinstance(cost, float) else Fraction(cost, unit)


class TwoJob(Problem):
    """The split of GPUs between two jobs: search over all splits."""

    data = {"num_gpus": "int1", "workloads": "num+ 2", "min_gpus": "int1 2", "max_gpus": "int1 2"}
    decisions = {"gpus": "int 2"}

    def check(self, it: Record) -> None:
        need(all(a <= b for a, b in zip(it.min_gpus, it.max_gpus, strict=True)), "max_gpus must be at least min_gpus")
        it.used = min(it.num_gpus, sum(it.max_gpus))

    def value(self, it: Record, plan: Record) -> Number:
        if min(plan.gpus) < 1:
            raise Malformed("plan: a job without GPUs")
        times = [Fraction(work, gpus) for work, gpus in zip(it.workloads, plan.gpus, strict=True)]
        soon, late = (0, 1) if times[0] <= times[1] else (1, 0)
        left = Fraction(it.workloads[late] - plan.gpus[late] * times[soon])
        return times[soon] + Fraction(left, 2 * min(it.max_gpus[late], it.num_gpus))

    def broken(self, it: Record, plan: Record, rules: Rules) -> None:
        for gpus, least, most in zip(plan.gpus, it.min_gpus, it.max_gpus, strict=True):
            rules.at_most("min_gpus", least, gpus)
            rules.at_most("max_gpus", gpus, most)
        rules.require("used_gpus", sum(plan.gpus) == it.used)

    def search(self, it: Record) -> Number:
        counter = Counter()
        best: Number = math.inf
        for gpus in range(it.min_gpus[0], it.max_gpus[0] + 1):
            counter.step()
            if it.min_gpus[1] <= it.used - gpus <= it.max_gpus[1]:
                best = min(best, self.value(it, self.plan(it, {"gpus": [gpus, it.used - gpus]})))
        return best


PROBLEMS = {
    "aryl.base_allocation": BaseAllocation(),
    "aryl.elastic_allocation": ElasticAllocation(),
    "aryl.placement": Placement(),
    "aryl.reclaim": Reclaim(),
    "aryl.two_job": TwoJob(),
}
