"""Synergy: what can be found by trying everything, and what holds of any placement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

from instances.reference import Reference

from .stored import judges

Data = dict[str, Any]


def fits(data: Data, jobs: tuple[int, ...], chosen: tuple[list[float], ...]) -> bool:
    """Whether jobs with these configurations are within the GPUs, CPUs and memory of a server."""
    gpus = sum(data["gpu_demands"][job] for job in jobs)
    cpus, memory = (sum(chosen[job][kind] for job in jobs) for kind in (0, 1))
    return bool(gpus <= data["server_gpus"] and cpus <= data["server_cpus"] and memory <= data["server_memory"])


def takes_less(one: list[float], other: list[float]) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1] and one[2] >= other[2]


@judges("synergy/tuning/figure_3_half_as_long-1")
def test_no_tuning_is_half_again_as_fast(data: Data, reference: Reference) -> None:
    best = Fraction(0)
    pairs = [(pair, tuple({0, 1, 2, 3} - set(pair))) for pair in combinations(range(4), 2) if 0 in pair]
    # What takes more for as much is not needed.
    needed = [[one for one in table if not any(takes_less(other, one) for other in table)] for table in data["configs"]]
    for chosen in product(*needed):
        speeds = [Fraction(config[2]) / 4 for config in chosen]
        if min(speeds) >= 1 and any(all(fits(data, pair, chosen) for pair in both) for both in pairs):
            best = max(best, 4 / sum(1 / speed for speed in speeds))
    # ResNet18 with 20 cores and Audio-M5 with 20, Transformer and GNMT with 4.
    assert abs(best - 4 / (1 / Fraction("1.53") + 1 / Fraction("1.4") + 2)) < Fraction(1, 10**9)
    assert round(float(best), 2) == 1.19


@judges("synergy/tuning/packing_memory_sensitive_pays-2")
def test_no_gb_more_helps(data: Data, reference: Reference) -> None:
    both = [sum(c[2] for c in chosen) for chosen in product(*data["configs"]) if fits(data, (0, 1), chosen)]
    assert max(both) == reference.optimum() == 2
    assert data["fair_throughputs"] == [1, 1]


@judges("synergy/tuning/tune_finds_gpus-2")
def test_no_server_is_left_for_the_third(data: Data, reference: Reference) -> None:
    # The first two are on one server each, or on the same, which two GPUs more do not fit: 2 and 2 of 3, twice.
    assert data["gpu_demands"] == [2, 2, 2]
    assert (data["num_servers"], data["server_gpus"]) == (2, 3)
    for servers in product(range(2), repeat=2):
        used = [2 * servers.count(server) for server in range(2)]
        assert max(used) > 3 or max(3 - gpus for gpus in used) < 2


@judges("synergy/tuning/tune_uses_all_gpus-2")
def test_two_whole_jobs_leave_gpus_idle(data: Data, reference: Reference) -> None:
    assert sum(data["gpu_demands"]) == data["num_servers"] * data["server_gpus"]
    assert not data["allow_split"]
    held = [
        sum(chosen)
        for chosen in product((0, 2), repeat=3)
        for servers in product(range(2), repeat=3)
        if all(sum(g for g, at in zip(chosen, servers, strict=True) if at == one) <= 3 for one in range(2))
    ]
    assert max(held) == 4


@judges("synergy/placement/second_program_fragments_few-3", "synergy/placement/second_program_fragments_few-4")
def test_seven_jobs_are_fragmented(data: Data, reference: Reference) -> None:
    servers = data["num_servers"]
    shares = [[1 / servers] * servers for _ in data["demands"]]
    assert reference.violations({"shares": shares}) == []
    assert sum(sum(share > 0 for share in row) > 1 for row in shares) == 7 > 3 * servers


@judges("synergy/placement/second_program_has_a_solution-2")
def test_counted_once_a_configuration_it_does_not_fit(data: Data, reference: Reference) -> None:
    # GPUs, cores and GB; the job's two configurations are added up as if it held both.
    (demand,) = data["demands"]
    assert reference.violations({"shares": [[1.0]]}) == []
    assert 2 * demand[2] > data["server_memory"]


@judges("synergy/allocation/first_program_has_a_solution-2")
def test_the_next_point_is_out_of_reach(data: Data, reference: Reference) -> None:
    share = data["server_cpus"] / data["server_gpus"]
    (table,) = data["configs"]
    fair = min((config for config in table if config[0] >= share), key=lambda config: config[0])[2]
    assert share not in {config[0] for config in table}
    assert max(config[2] for config in table if config[0] <= data["server_cpus"]) < fair == 2


@judges("synergy/heterogeneous_allocation/types_as_printed-2")
def test_the_printed_program_puts_two_gpus_on_one(data: Data, reference: Reference) -> None:
    # Within the cores and memory of the types, without a limit on their GPUs.
    found = {}
    for chosen in product(range(2), repeat=2):
        configs = [data["configs"][job][choice] for job, choice in enumerate(chosen)]
        types = [data["config_types"][job][choice] for job, choice in enumerate(chosen)]
        cpus = [sum(c[0] for c, at in zip(configs, types, strict=True) if at == one) for one in range(2)]
        if all(used <= limit for used, limit in zip(cpus, data["server_cpus"], strict=True)):
            found[chosen] = sum(c[2] for c in configs), [types.count(one) for one in range(2)]
    best = max(value for value, _ in found.values())
    assert best == 4
    assert all(gpus == [0, 2] for value, gpus in found.values() if value == best)
    assert max(value for value, gpus in found.values() if max(gpus) <= 1) == reference.optimum() == 3


def tuned_on_a_server(data: Data) -> list[list[float] | None]:
    """Tune (section 4.2) for jobs of one GPU on one server, more than the share being more of cores and of memory.

    Jobs in falling order of their best demands; one that does not fit is switched to its share if it wants more than
    that, and else those there that have more are, as long as it does not fit.
    """
    share = [data["server_cpus"] / data["server_gpus"], data["server_memory"] / data["server_gpus"]]
    jobs = range(len(data["configs"]))
    best = [max(table, key=lambda config: (config[2], -config[0], -config[1])) for table in data["configs"]]
    within = [[c for c in table if c[0] <= share[0] and c[1] <= share[1]] for table in data["configs"]]
    fair = [max(some, key=lambda config: config[2]) for some in within]
    given: list[list[float] | None] = [None] * len(best)

    def fits(config: list[float]) -> bool:
        held = [one for one in given if one]
        used = [sum(one[kind] for one in held) + config[kind] for kind in (0, 1)]
        return len(held) < data["server_gpus"] and used[0] <= data["server_cpus"] and used[1] <= data["server_memory"]

    def exceeds(config: list[float]) -> bool:
        return config[0] > share[0] and config[1] > share[1]

    for job in sorted(jobs, key=lambda job: (-best[job][0], -best[job][1])):
        wanted = best[job] if fits(best[job]) or not exceeds(best[job]) else fair[job]
        for other in jobs:
            there = given[other]
            if not fits(wanted) and there and exceeds(there):
                given[other] = fair[other]
        if fits(wanted):
            given[job] = wanted
    return given


@judges("synergy/tuning/tune_construction-4", "synergy/tuning/tune_not_below_shares-2")
def test_a_job_is_left_out_that_fits_with_its_share(data: Data, reference: Reference) -> None:
    given = tuned_on_a_server(data)
    assert sum(config is None for config in given) == 1
    # With their shares both fit.
    both = [[config for config in table if config[0] <= 2 and config[1] <= 2] for table in data["configs"]]
    assert any(fits(data, (0, 1), chosen) for chosen in product(*both))


Held = tuple[tuple[Fraction, ...], tuple[int, ...]]
"""GPUs, cores and GB of a job, and its GPUs on each server."""


def loads(held: Sequence[Held], servers: int) -> list[list[Fraction]]:
    """What each server hands out of each resource, of a job in proportion to its GPUs there."""
    return [
        [sum((each[kind] * at[server] / each[0] for each, at in held), Fraction(0)) for kind in range(3)]
        for server in range(servers)
    ]


def tuned_as_printed(data: Data) -> Iterator[list[Held]]:
    """Tune (section 4.2) in every way: wherever a job fits on the fewest servers, and whoever makes room for it there.

    Jobs come in falling order of GPUs, cores and GB, of which none are equal here.  Where nobody can make room, what is
    yielded ends before the job.
    """
    servers = data["num_servers"]
    limits = [Fraction(data[f"server_{kind}"]) for kind in ("gpus", "cpus", "memory")]
    best = [max(table, key=lambda config: config[2]) for table in data["configs"]]
    wants = [(Fraction(g), Fraction(c[0]), Fraction(c[1])) for g, c in zip(data["gpu_demands"], best, strict=True)]
    wants.sort(reverse=True)
    assert len(set(wants)) == len(wants)

    def fair(job: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        return tuple(job[0] * limit / limits[0] for limit in limits)

    def exceeds(job: tuple[Fraction, ...]) -> bool:
        return job[1] > fair(job)[1] or job[2] > fair(job)[2]

    def within(held: Sequence[Held], some: Iterable[int], kinds: int) -> bool:
        used = loads(held, servers)
        return all(used[server][kind] <= limits[kind] for server in some for kind in range(kinds))

    def places(held: list[Held], job: tuple[Fraction, ...], kinds: int = 3) -> list[tuple[int, ...]]:
        ways = [at for at in product(range(int(job[0]) + 1), repeat=servers) if sum(at) == job[0]]
        ways = [at for at in ways if within([*held, (job, at)], range(servers), kinds)]
        fewest = min((sum(map(bool, at)) for at in ways), default=0)
        return [at for at in ways if sum(map(bool, at)) == fewest]

    def go(held: list[Held]) -> Iterator[list[Held]]:
        if len(held) == len(wants):
            yield held
            return
        job = wants[len(held)]
        if not places(held, job) and exceeds(job):
            job = fair(job)
        for at in places(held, job):
            yield from go([*held, (job, at)])
        if places(held, job):
            return
        for at in places(held, job, 1):
            here = [server for server in range(servers) if at[server]]
            more = [i for i, (each, there) in enumerate(held) if exceeds(each) and any(there[one] for one in here)]
            ways = [set(some) for count in range(1, len(more) + 1) for some in combinations(more, count)]
            switched = [
                [(fair(each), there) if i in some else (each, there) for i, (each, there) in enumerate(held)]
                for some in ways
            ]
            fitting = [[*others, (job, at)] for others in switched if within([*others, (job, at)], here, 3)]
            for then in fitting:
                yield from go(then)
            if not fitting:
                yield held

    yield from go([])


@judges("synergy/tuning/tune_construction-2")
def test_room_made_on_a_server_overfills_the_other(data: Data, reference: Reference) -> None:
    ends = list(tuned_as_printed(data))
    assert ends
    assert all(len(held) == len(data["configs"]) for held in ends)
    # Whoever goes where: the job of 3 GPUs, 3 cores and 9 GB is split, and with its share it needs more cores.
    assert all(max(used[1] for used in loads(held, 2)) == 12 > data["server_cpus"] for held in ends)
