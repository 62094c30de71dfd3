"""Entry of synergy.tuning: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heuristics.synergy import tuning as fast
from instances.synergy.tuning import Tuning, TuningPlan, from_trace, generate
from validation.catalogue import Heuristic, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, Relabelled
from validation.problems.synergy.sensitivity import fair_by_default, jobs, sensitive_entry, upgraded
from validation.testing import st
from validation.testing.arrays import quarters

__all__ = ["ENTRY", "strategy"]

NO_ROOM_UNSPLIT = (
    "a job that may not be split can find no server with enough free GPUs, and one whose fair throughput is above that "
    "of its share none with enough of the rest"
)
SKIPS_JOBS = "it skips the jobs whose best-case demand no longer fits"


def _stage_one_bound(instance: Tuning) -> float:
    """Return the value of Synergy's super-machine: the relaxation of stage one (Theorem 4.1)."""
    # Pyomo is imported only where a bound is asked for.
    import formulations
    from formulations.synergy.allocation import relaxation

    return formulations.solve(relaxation(instance.stage_one())).bound


@st.composite
def strategy(draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 4, max_configs: int = 4) -> Tuning:
    """Draw jobs to be tuned and placed; they may be split over servers or not, or some have to be."""
    if draw(st.booleans()):
        return draw(_to_split())
    return Tuning(**draw(jobs(max_servers, max_gpus, max_configs)), allow_split=draw(st.booleans()))


@st.composite
def _to_split(draw: st.DrawFn) -> Tuning:
    """Draw servers of 4 GPUs and jobs of 3, of which one has to be split, each faster with a little more."""
    share = draw(quarters(2, 1, 3))
    # Of many configurations, Hypothesis draws few that differ.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = []
    for _ in range(4):
        first = [rng.integers(0, int(3 * share[0]) + 1), rng.integers(0, int(3 * share[1]) + 1), rng.integers(0, 5)]
        tables.append(np.cumsum([first, *rng.integers(0, 3, (3, 3))], axis=0).astype(float))
    return Tuning(
        num_servers=3,
        server_gpus=4,
        server_cpus=float(4 * share[0]),
        server_memory=float(4 * share[1]),
        gpu_demands=np.full(4, 3),
        configs=tuple(tables),
        allow_split=True,
    )


def _owed_no_more(instance: Tuning) -> bool:
    """Return whether jobs may be split and none is owed more than its share gives it."""
    return instance.allow_split and fair_by_default(instance)


def _splits_cost_nothing(instance: Tuning) -> bool:
    """Return whether that is so, and a job that is split is as fast as a whole one."""
    return _owed_no_more(instance) and not instance.penalised.any()


class _Servers:
    """What is free on servers, in GPUs, CPU cores and memory, and what jobs have of them."""

    def __init__(self, instance: Tuning, *, balanced: bool = False) -> None:
        self.instance, self.balanced = instance, balanced
        self.size = np.array([instance.server_gpus, instance.server_cpus, instance.server_memory], float)
        self.tiny = 1e-12 * self.size
        self.free = np.tile(self.size, (instance.num_servers, 1))
        self.choices = [-1] * instance.num_jobs
        self.gpus = np.zeros((instance.num_jobs, instance.num_servers), np.int64)

    def same(self, plan: TuningPlan) -> bool:
        return plan.choices.tolist() == self.choices and bool((plan.gpus == self.gpus).all())

    def per_gpu(self, job: int, choice: int) -> Any:
        gpus = int(self.instance.gpu_demands[job])
        return np.array([gpus, *self.instance.configs[job][choice, :2]]) / gpus

    def room(self, per_gpu: Any) -> list[int]:
        """Return for how many GPUs each server has everything."""
        needed = per_gpu > 0
        each: Any = (self.free[:, needed] + self.tiny[needed]) / per_gpu[needed]
        return [int(most) for most in np.floor(each.min(axis=1) + 1e-11)]

    def put(self, job: int, choice: int, held: dict[int, int]) -> bool:
        for server, count in held.items():
            self.free[server] -= count * self.per_gpu(job, choice)
            self.gpus[job, server] = count
        self.choices[job] = choice if held else -1
        return bool(held)

    def tightness(self, server: int) -> tuple[float, ...]:
        return (*self.free[server].tolist(), server)

    def first(self, job: int, choice: int, *, split: bool) -> bool:
        """Put a job on the first server with room for all of it, else on one after another."""
        gpus, room = int(self.instance.gpu_demands[job]), self.room(self.per_gpu(job, choice))
        whole = [server for server, most in enumerate(room) if most >= gpus]
        held = {whole[0]: gpus} if whole else {}
        if split and not whole and sum(room) >= gpus:
            for server, most in enumerate(room):
                if count := min(most, gpus - sum(held.values())):
                    held[server] = count
        return self.put(job, choice, held)

    def fewest(self, gpus: int, room: list[int]) -> dict[int, int]:
        """Return GPUs on the fewest servers, those with most room first, the last one the tightest that will do."""
        held: dict[int, int] = {}
        for server in sorted(range(len(room)), key=lambda server: -room[server]):
            lacking = gpus - sum(held.values())
            if room[server] >= lacking:
                others = (other for other in range(len(room)) if other not in held and room[other] >= lacking)
                return held | {min(others, key=self.tightness): lacking}
            held[server] = room[server]
        return {}

    def place(self, job: int, choice: int) -> bool:
        """Put a job on the tightest server that holds it, or the most balanced after it, else on the fewest."""
        gpus, per_gpu = int(self.instance.gpu_demands[job]), self.per_gpu(job, choice)
        need = np.array([gpus, *self.instance.configs[job][choice, :2]])
        fitting = np.flatnonzero((self.free >= need - self.tiny * [0, 1, 1]).all(axis=1)).tolist()
        if fitting and self.balanced:
            has = self.size > 0
            left = ((self.free - need)[:, has] / self.size[has]).min(axis=1)
            return self.put(job, choice, {max(fitting, key=lambda server: left[server]): gpus})
        if fitting:
            return self.put(job, choice, {min(fitting, key=self.tightness): gpus})
        if not self.instance.allow_split or gpus == 1:
            return False
        return self.put(job, choice, self.fewest(gpus, self.room(per_gpu)))

    def reverting(self, job: int, choice: int, shares: list[int], able: Any) -> None:
        """Put a job where there are GPUs enough, with other jobs cut back to their shares until it fits."""
        gpus = int(self.instance.gpu_demands[job])
        whole = sorted(np.flatnonzero(self.free[:, 0] >= gpus).tolist(), key=self.tightness)
        places = [{server: gpus} for server in whole]
        if not whole and self.instance.allow_split:
            places = [self.fewest(gpus, self.free[:, 0].astype(int).tolist())]
        for held in filter(None, places):
            left, cut = self.free.copy(), []
            for server, count in held.items():
                left[server] -= count * self.per_gpu(job, choice)
            while (over := np.asarray((left < -2 * self.tiny).any(axis=1))).any():
                server = next((one for one in held if over[one]), int(over.argmax()))
                others = [
                    other
                    for other in np.flatnonzero(self.gpus[:, server]).tolist()
                    if able[other] and self.choices[other] != shares[other] and other not in cut
                ]
                if not others:
                    break
                cut.append(min(others, key=self._first_to_revert))
                saved = self.per_gpu(cut[-1], self.choices[cut[-1]]) - self.per_gpu(cut[-1], shares[cut[-1]])
                left += self.gpus[cut[-1]][:, None] * saved
            else:
                for other in cut:
                    self.free += self.gpus[other][:, None] * self.per_gpu(other, self.choices[other])
                    self.free -= self.gpus[other][:, None] * self.per_gpu(other, shares[other])
                    self.choices[other] = shares[other]
                self.put(job, choice, held)
                return

    def _first_to_revert(self, job: int) -> tuple[float, ...]:
        _, cpus, memory = self.per_gpu(job, self.choices[job]).tolist()
        return int((self.gpus[job] > 0).sum()), -cpus, -memory, job


def _shares(instance: Tuning) -> list[int]:
    """Return the fastest configurations within jobs' shares that are fair; -1 for a job that has none."""
    own = enumerate(instance.proportional_choices.tolist())
    return [choice if choice >= 0 and instance.fair_configs[job][choice] else -1 for job, choice in own]


def _at_shares(instance: Tuning, plan: TuningPlan) -> bool:
    servers, shares = _Servers(instance), _shares(instance)
    for job in sorted(range(instance.num_jobs), key=lambda job: -int(instance.gpu_demands[job])):
        if shares[job] >= 0:
            servers.place(job, shares[job])
    return servers.same(plan)


def _queued(key: Callable[[Any], float], *, split: bool = True) -> Callable[[Tuning, TuningPlan], bool]:
    """Return the test that jobs, by a key of their fractions of the cluster, are at their best on the first servers."""

    def test(instance: Tuning, plan: TuningPlan) -> bool:
        servers, best = _Servers(instance), instance.best_choices
        demands = np.column_stack([instance.gpu_demands, instance.chosen(best)[:, :2]])
        sizes = instance.num_servers * servers.size
        fractions = demands / np.where(sizes > 0, sizes, 1)
        for job in sorted(range(instance.num_jobs), key=lambda job: key(fractions[job])):
            if best[job] >= 0:
                servers.first(job, int(best[job]), split=split and instance.allow_split)
        return servers.same(plan)

    return test


def _tuned(*, balanced: bool = False, upgrades: bool = True) -> Callable[[Tuning, TuningPlan], bool]:
    """Return the test that jobs are at their best, at their shares, or make room, in turn, and are upgraded then."""

    def test(instance: Tuning, plan: TuningPlan) -> bool:
        servers, best, shares = _Servers(instance, balanced=balanced), instance.best_choices, _shares(instance)
        demands = instance.chosen(best)[:, :2]
        greater = (demands > instance.shares * (1 + 1e-12)).any(axis=1) & (np.array(shares, int) >= 0)
        for *_, job in sorted(
            (-int(gpus), *(-demands[job]).tolist(), job) for job, gpus in enumerate(instance.gpu_demands)
        ):
            choice = int(best[job])
            if choice < 0 or not instance.fair_configs[job][choice] or servers.place(job, choice):
                continue
            if greater[job]:
                choice = shares[job]
                if servers.place(job, choice):
                    continue
            servers.reverting(job, choice, shares, greater)
        if upgrades:
            choices, allowed = np.array(servers.choices, np.int64), [*map(np.flatnonzero, instance.allowed_configs)]
            room = servers.size[1:] * (1 + 1e-12) - instance.used(choices, servers.gpus)
            parts = servers.gpus / instance.gpu_demands[:, None]
            sizes = np.tile(np.where(servers.size > 0, servers.size, 1)[1:], (len(choices), 1))
            servers.choices = upgraded(servers.choices, instance, allowed, parts, sizes, room)
        return servers.same(plan)

    return test


LEFT_OUT = BreaksOnly(("placed",))
SKIPPED = BreaksOnly(("placed", "fair_throughput"))
SPLIT = BreaksOnly((), _owed_no_more, "where jobs may be split and none is owed more than its share gives it")
NOT_BELOW_SHARES = NeverWorseThan(
    "proportional",
    _splits_cost_nothing,
    "where jobs may be split at no loss and none is owed more than its share gives it",
)


ENTRY = sensitive_entry(
    title="How much CPU and memory each job gets, and on which servers, for the greatest total throughput",
    source="Synergy, section 4.2",
    instance=Tuning,
    generate=generate,
    sizes=(1, 2, 4),
    heuristics=named(
        Heuristic(
            fast.proportional,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(
                LEFT_OUT,
                SPLIT,
                Relabelled(ties=False),
                Holds("jobs, those of most GPUs first, are at their shares on the tightest servers", _at_shares),
            ),
        ),
        # All that run are at their best, so that a plan in which all run is optimal.
        Heuristic(
            fast.greedy,
            optimal=True,
            infeasible_because=SKIPS_JOBS,
            promises=(
                SKIPPED,
                Holds(
                    "jobs in order are at their best on the first server with room",
                    _queued(lambda row: 0.0, split=False),
                ),
            ),
        ),
        Heuristic(
            fast.greedy_split,
            optimal=True,
            infeasible_because=SKIPS_JOBS,
            promises=(
                SKIPPED,
                Holds("jobs in order are at their best on the first servers with room", _queued(lambda row: 0.0)),
            ),
        ),
        Heuristic(
            fast.drf,
            optimal=True,
            infeasible_because=SKIPS_JOBS,
            promises=(
                SKIPPED,
                Holds("those of the least dominant share are first at their best", _queued(max)),
                Relabelled(ties=False),
            ),
        ),
        Heuristic(
            fast.tetris,
            optimal=True,
            infeasible_because=SKIPS_JOBS,
            promises=(
                SKIPPED,
                Holds("those that need least in all are first at their best", _queued(sum)),
                Relabelled(ties=False),
            ),
        ),
        Heuristic(
            fast.tune,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(
                LEFT_OUT,
                SPLIT,
                NOT_BELOW_SHARES,
                Relabelled(ties=False),
                Holds("jobs are placed, reduced and reverted as the steps say", _tuned(upgrades=False)),
            ),
        ),
        Heuristic(
            fast.tune_and_upgrade,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(
                LEFT_OUT,
                SPLIT,
                NOT_BELOW_SHARES,
                NeverWorseThan("tune"),
                Holds("tune's plan is upgraded where that adds most for its resources", _tuned()),
            ),
        ),
        Heuristic(
            fast.balanced_tune,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(
                LEFT_OUT,
                SPLIT,
                NOT_BELOW_SHARES,
                Holds("each job is on the server that it leaves most balanced, and upgraded", _tuned(balanced=True)),
            ),
        ),
        Heuristic(
            fast.local_search,
            infeasible_because=NO_ROOM_UNSPLIT,
            promises=(LEFT_OUT, SPLIT, NOT_BELOW_SHARES, NeverWorseThan("balanced_tune")),
        ),
    ),
    from_trace=from_trace,
    relaxation=_stage_one_bound,
    strategy=strategy,
    wide={"max_servers": 5, "max_gpus": 16, "max_configs": 6},
)
