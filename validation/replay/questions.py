"""Questions to decision makers: the instances, a row for each answer, and a sample of the instances."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from instances.base import Instance, Plan
from instances.schema import IntArray
from validation.errors import ReplayError
from validation.kernel.gaps import beats, gap_interval
from validation.kernel.judging import Answer, Asked, Status, judge
from validation.replay.deciders import EXACT, Briefly, Decider, decider
from validation.replay.online import OnlineProgram
from validation.replay.replayed import DECISIONS

if TYPE_CHECKING:
    from validation.replay.engine import State

__all__ = ["Questions"]

AnyInstance = Instance[Any]


class Questions:
    """Record of instances handed to decision makers, and of the answers; see :class:`validation.replay.engine.Ask`."""

    def __init__(
        self,
        deciders: tuple[Decider, ...],
        stack: ExitStack,
        *,
        gaps: int | Literal["all"] = 0,
        keep: int | Literal["all"] = 0,
        sink: Callable[[int, AnyInstance], None] | None = None,
        seed: int = 0,
    ) -> None:
        self.named = {one.problem: stack.enter_context(one) for one in deciders}
        if len(self.named) < len(deciders):
            raise ReplayError(f"got two decision makers of {deciders[0].problem}, must be one for each problem")
        self.stack = stack
        self.defaults: dict[tuple[str, str], Decider] = {}
        self.rows: list[dict[str, Any]] = []
        self.now = 0.0
        self.state: State | None = None
        self.names: Any = ()
        self.sink = sink
        self.kept: dict[int, AnyInstance] = {}
        self.keeps, self.gaps = _Sample("keep", keep, seed), _Sample("gaps", gaps, seed)

    def __call__(
        self,
        instance: AnyInstance,
        *,
        default: str | None = None,
        asked: AnyInstance | None = None,
        otherwise: Plan | None = None,
        briefly: Briefly | None = None,
        jobs: IntArray | None = None,
        forgiven: Collection[str] = (),
    ) -> Plan:
        problem = instance.problem
        who = self.named.get(problem)
        if who is None and default is None:
            raise ReplayError(f"nobody decides {problem}: name a decision maker")
        if who is not None:
            answer = self._answer(who, instance, asked, briefly, jobs=jobs, forgiven=forgiven)
            if answer.plan is not None:
                return answer.plan
            if default is None and otherwise is not None:
                return otherwise
            if default is None:
                raise ReplayError(f"{problem} at {self.now:.10g} s: {who.name} has no plan: {answer.reason}")
        assert default is not None
        if (problem, default) not in self.defaults:
            self.defaults[problem, default] = self.stack.enter_context(decider(problem, default))
        answer = self._answer(self.defaults[problem, default], instance, asked, briefly, instead=who is not None)
        if answer.plan is None and otherwise is not None:
            return otherwise
        if answer.plan is None:
            raise ReplayError(f"{problem} at {self.now:.10g} s: {default} has no plan: {answer.reason}")
        return answer.plan

    def _answer(
        self,
        who: Decider,
        instance: AnyInstance,
        asked: AnyInstance | None,
        briefly: Briefly | None,
        *,
        instead: bool = False,
        jobs: IntArray | None = None,
        forgiven: Collection[str] = (),
    ) -> Answer:
        number = len(self.rows)
        named = who is self.named.get(instance.problem)
        # The optimum is known of what the exact model decides as it is.
        sampled = named and (who.name != EXACT or asked is not None) and self.gaps.takes(number, instance)
        kept = self.keeps.takes(number, instance)
        shown = instance if asked is None else asked
        if isinstance(who, OnlineProgram):
            answer = who.decide(shown, self._told(number, jobs), forgiven)
        else:
            answer = who.ask(shown, briefly=None if sampled else briefly)
        value, bound = answer.value, answer.bound
        if asked is not None and answer.plan is not None and answer.status != Status.BEGUN:
            # What is proven of other weights is not proven of these.
            value, bound = judge(instance, Asked(answer.plan)).value, np.nan
        proven = answer.status == Status.OPTIMAL and asked is None
        gap, most = (np.nan, np.nan) if np.isnan([value, bound]).any() else gap_interval(value, value, bound)
        self.rows.append(
            {
                "number": number,
                "time": self.now,
                "problem": instance.problem,
                "instance": "",
                "jobs": instance.dims.get("n", 0),
                "algorithm": who.name,
                "instead": instead,
                "jittered": asked is not None,
                "status": str(answer.status),
                "value": value,
                "bound": bound,
                "optimum": value if proven else np.nan,
                "gap": 0.0 if proven else gap,
                "gap_most": 0.0 if proven else most,
                "seconds": answer.seconds,
                "reason": answer.reason,
            }
        )
        if kept and self.keeps.all:
            self._keep(number, instance)
        return answer

    def _told(self, number: int, jobs: IntArray | None) -> dict[str, Any]:
        """Return what a program is told beside the instance: the past of the jobs that are there."""
        state = self.state
        assert state is not None
        each = zip(
            *(self.names[state.jobs], state.jobs.tolist(), state.arrivals.tolist(), state.started.tolist()),
            *(state.ran.tolist(), state.service.tolist(), state.gpus.tolist()),
            strict=True,
        )
        there = [
            {
                "name": name,
                "number": number,
                "arrived": arrived,
                "started": None if np.isnan(started) else started,
                "ran": ran,
                "service": service,
                "gpus": gpus,
            }
            for name, number, arrived, started, ran, service, gpus in each
        ]
        rows = None
        if jobs is not None:
            place = {job: row for row, job in enumerate(state.jobs.tolist())}
            rows = [place[job] for job in np.asarray(jobs).tolist()]
        return {"event": number, "time": state.now, "jobs": there, "rows": rows}

    def _keep(self, number: int, instance: AnyInstance) -> None:
        self.rows[number]["instance"] = instance.digest
        if self.sink is not None:
            self.sink(number, instance)
            # Who keeps all of a long replay has a place for them.
            self.keeps.taken.clear()
        else:
            self.kept[number] = instance

    def close(self, exact_limit: float) -> None:
        """Keep the sampled instances, and find the optima for the gaps."""
        if not self.keeps.all:
            for number, instance in sorted(self.keeps.taken.items()):
                self._keep(number, instance)
        for number, instance in sorted(self.gaps.taken.items()):
            self._beside(number, instance, exact_limit)

    def _beside(self, number: int, instance: AnyInstance, exact_limit: float) -> None:
        row = self.rows[number]
        if np.isnan(row["value"]):
            return
        with decider(instance.problem, EXACT, time_limit=exact_limit) as exact:
            answer = exact.ask(instance)
        row["instance"] = instance.digest
        row["bound"] = answer.bound
        if np.isinf(answer.bound):
            return
        values = [row["value"]] if np.isnan(answer.value) else [row["value"], answer.value]
        best = min(values) if instance.sense == "min" else max(values)
        if answer.status == Status.OPTIMAL:
            row["optimum"] = answer.value
        if beats(instance.sense, row["value"], answer.bound):
            row["reason"] = f"oracle disagreement: {row['value']:.12g} is better than the bound, {answer.bound:.12g}"
            return
        row["gap"], row["gap_most"] = gap_interval(row["value"], best, answer.bound)

    def table(self) -> pd.DataFrame:
        """Return a row for each answer."""
        return pd.DataFrame(
            {name: pd.Series([row[name] for row in self.rows], dtype=kind) for name, kind in DECISIONS.items()}
        )


class _Sample:
    """Sample of given size of a sequence of unknown length: all instances are equally likely, by a seed."""

    def __init__(self, name: str, size: int | Literal["all"], seed: int) -> None:
        if size != "all" and not (isinstance(size, int) and size >= 0):
            raise ReplayError(f'{name}: got {size!r}, must be a whole number, at least 0, or "all"')
        self.all = size == "all"
        self.size = 0 if size == "all" else size
        self.seen = 0
        self.rng = np.random.default_rng(seed)
        self.order: list[int] = []
        self.taken: dict[int, AnyInstance] = {}

    def takes(self, number: int, instance: AnyInstance) -> bool:
        """Return whether an instance is in the sample, for now."""
        self.seen += 1
        if self.all:
            self.taken[number] = instance
            return True
        if not self.size:
            return False
        if len(self.order) < self.size:
            place = len(self.order)
            self.order.append(number)
        else:
            # Each of those seen so far stays with the same chance.
            place = int(self.rng.integers(self.seen))
            if place >= self.size:
                return False
            del self.taken[self.order[place]]
            self.order[place] = number
        self.taken[number] = instance
        return True
