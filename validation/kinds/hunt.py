"""Hunting: search for the instance on which a heuristic does worst, judged by the exact optimum.

Four methods share one interface: random search, hill climbing, simulated annealing (both over
neighbours in one field or member), and Hypothesis, whose ``target`` steers its generator.  They
take turns on the worker processes; climbing and annealing start from the worst instance so far.
What is found is shrunk to the smallest instance that still shows most of the gap.

A hunt either goes on until its time is up, or makes so many restarts: searches that know nothing of each
other, each of so many instances, so that what is found depends on the seed alone, not on how many machines search.
"""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, Verbosity, given, settings, target
from hypothesis.strategies import SearchStrategy

import formulations
from formulations.worst_case import Measure
from instances.base import Instance
from validation import catalogue
from validation.catalogue import Heuristic
from validation.errors import HeuristicFailedError, OracleDisagreementError, StudyError
from validation.kernel.asking import Asking
from validation.kernel.gaps import beats, gap_to
from validation.kernel.judging import Status
from validation.kernel.node import memory_share
from validation.kernel.provenance import cores, memory_of_machine
from validation.kernel.walls import ruled
from validation.kernel.workers import Outcome, Task, describe, run_tasks
from validation.kinds.family import Family
from validation.kinds.options import HuntOptions
from validation.kinds.witness import Judged, Witness
from validation.testing.neighbours import neighbour, shrunk

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["CUT_SHORT", "INTERRUPTED", "METHODS", "OracleDisagreementError", "find_worst", "judge"]

AnyInstance = Instance[Any]

SOLVE_LIMIT = 5.0
"""Seconds at most for each side of one instance; those that the exact side cannot close are passed over."""
RESTART = 200
"""Instances that one restart judges."""
RESTARTS = 64
"""Restarts of a hunt on a cluster that is not told how many."""
MAX_MEMBERS = 12
"""Instances do not grow beyond this many jobs, servers, ..."""


GRACE = 1.0
"""Seconds that a worker gets after its time, before it is killed: each side of an instance ends in time by itself,
but for a solver that does not look at its clock."""

INTERRUPTED = "interrupted: the instance is as it was found"
"""What a witness says that was not searched for, or not shrunk, to the end."""

CUT_SHORT = "the time ended before all restarts had: another run may find another instance"
"""What a witness says whose restarts did not all end."""


class OutOfTimeError(Exception):
    """The time of the hunt ended before an instance was judged, which says nothing about it."""


def judge(
    instance: AnyInstance, asking: Asking, *, seconds: float = SOLVE_LIMIT, until: float = math.inf
) -> Judged | None:
    """Both sides of an instance; None where the optimum is not proven or there is no feasible plan.

    Parameters
    ----------
    instance : Instance
    asking : Asking
    seconds : float
        At most for each side.
    until : float
        Time of the monotonic clock at which both are stopped.

    Raises
    ------
    OracleDisagreementError
        When the heuristic's feasible plan beats the proven bound.
    HeuristicFailedError
    OutOfTimeError
    """
    solution = formulations.solve(instance, time_limit=_at_most(seconds, until))
    answer = asking.answer(instance, seconds=_at_most(seconds, until))
    if answer.status == Status.FAILED:
        if time.monotonic() >= until:
            raise OutOfTimeError
        raise HeuristicFailedError(answer.reason)
    value = answer.value if answer.status == Status.FEASIBLE else None
    if value is not None and (solution.status == "infeasible" or beats(instance.sense, value, solution.bound)):
        raise OracleDisagreementError(
            f"a plan worth {value:g} beats the bound {solution.bound:g}: {json.dumps(instance.to_dict())}"
        )
    if solution.status != "optimal" or solution.plan is None or solution.objective is None:
        return None
    gap = math.inf if value is None else gap_to(value, solution.objective)
    return Judged(instance, answer.plan, value, solution.plan, solution.objective, gap)


def _at_most(seconds: float, until: float) -> float:
    """So many seconds, or what is left."""
    left = until - time.monotonic()
    if left <= 0:
        raise OutOfTimeError
    return min(seconds, left)


def find_worst(
    problem: str,
    heuristic: str | Callable[..., Any] | Heuristic,
    *,
    seed: int,
    budget: float | str = 60.0,
    keep: float = 0.9,
    jobs: int | None = None,
    restarts: int | None = None,
    strategy: SearchStrategy[Any] | None = None,
    measure: Measure = "ratio",
    fix: Mapping[str, Any] | None = None,
    where: Callable[[Any], bool] | None = None,
    progress: Callable[[float, float, int], None] | None = None,
    client: Client | None = None,
    allow_network: bool = False,
) -> Witness:
    """Search for the instance with the greatest gap, then shrink it.

    Parameters
    ----------
    problem : str
    heuristic : str, callable or Heuristic
        A name of the catalogue, "module:function", or the function itself.
    seed : int
    budget : float or str
        Seconds in all, or a time such as "5m"; a quarter is kept for shrinking.  What does not end in time is stopped a
        second later.
    keep : float
        Fraction of the worst gap that the shrunk instance must still show.
    jobs : int, optional
        Worker processes; one for each core by default.
    restarts : int, optional
        Make so many searches of 200 instances each, which know nothing of each other, instead of searching until
        the time is up: what they find depends on the seed alone, unless ``budget`` ends before them.
    strategy : SearchStrategy, optional
        What Hypothesis, one of the methods, draws from; the problem's own by default.
    measure : "ratio" or "difference"
        What is greatest on the worst instance: the gap, which is a ratio, or the difference of the two values.  An
        optimum of 0 has no ratio: such an instance is the worst only where no other has a gap.
    fix : mapping, optional
        Dials by their names that are to have one value: of the generator, the strategy or the instances, such as
        ``num_jobs``.  What instances do not tell is kept by drawing alone, without neighbours and without shrinking.
    where : callable, optional
        ``where(instance) -> bool``: only such instances are judged.
    progress : callable, optional
        Called with seconds so far, worst gap (or difference) so far and instances judged.
    client : distributed.Client, optional
        Of a Dask cluster whose workers make the restarts, 64 by default, in place of ``jobs``.
    allow_network : bool
        Let the heuristic have sockets: of the network, and of services of this machine.

    Returns
    -------
    Witness
        Where the hunt is interrupted (Ctrl-C) after something was found, that, as it was found.

    Raises
    ------
    StudyError
        When nothing could be judged within the budget; a HeuristicFailedError where that is the heuristic's fault.
    OracleDisagreementError
        When a plan beats a proven bound.
    """
    name, subject = catalogue.heuristic(problem, heuristic)
    given = {"seed": seed, "budget": budget, "keep": keep, "jobs": jobs, "restarts": restarts, "measure": measure}
    given["allow_network"] = allow_network
    in_all: float = HuntOptions.checked(**given)["budget"]
    family = Family(problem, fix or {}, where, strategy)
    if client is not None:
        if jobs is not None:
            raise StudyError("jobs: the threads of the Dask workers say how many run at once")
        from validation.kernel.cluster import by_value, carried, modules_of

        modules = modules_of([problem])
        subject, restarts = carried(subject, modules), restarts or RESTARTS
        family = Family(
            problem,
            family.fixed,
            None if where is None else by_value(where, "the predicate", modules.names),
            None if strategy is None else by_value(strategy, "the strategy", modules.names),
        )
    began = time.monotonic()
    end = began + 0.75 * in_all
    slice_seconds = max(0.5, min(5.0, in_all / 12))
    limit = min(SOLVE_LIMIT, in_all / 4)
    jobs = jobs or cores()
    memory = None if client is not None else memory_of_machine() // (2 * jobs)
    worst: Judged | None = None
    found_by, found_in, evaluated = "", 0, 0
    failures: list[tuple[int, str]] = []

    methods = METHODS if family.told else tuple(one for one in METHODS if one not in NEIGHBOURLY)

    def tasks() -> Iterator[Task]:
        turn = 0
        while time.monotonic() < end and (restarts is None or turn < restarts):
            method, left = methods[turn % len(methods)], max(0.1, end - time.monotonic())
            if restarts is None:
                seconds = min(slice_seconds, left)
                start = worst.instance if worst is not None else None
                yield Task((method, start, turn, seconds, left), min(seconds + 3 * limit, left) + GRACE, asks=True)
            else:
                yield Task((method, None, turn, left, left, RESTART), left + GRACE, asks=True)
            turn += 1

    # The heuristic reaches the workers with the function, so that it need not be picklable.
    search = functools.partial(_search, family, measure, subject, seed, memory, limit)
    interrupted = False
    with ruled(network=allow_network):
        try:
            for outcome in _outcomes(client, problem, search, tasks(), jobs, restarts, end + GRACE):
                turn = outcome.task.arguments[2]
                method = outcome.task.arguments[0].__name__.removeprefix("_")
                if outcome.reason:
                    if "OracleDisagreementError" in outcome.reason:
                        raise OracleDisagreementError(outcome.reason)
                    failures.append((turn, f"{method}: {outcome.reason}"))
                    continue
                found, number, reason = outcome.result
                if reason:
                    failures.append((turn, f"{method}: {reason}"))
                evaluated += number
                # Of two that are as bad the one of the earlier turn, whichever has come first.
                if found is not None and (
                    worst is None
                    or _worse(found, worst, measure)
                    or (turn < found_in and not _worse(worst, found, measure))
                ):
                    worst, found_by, found_in = found, method, turn
                if progress is not None:
                    progress(time.monotonic() - began, 0.0 if worst is None else badness(worst, measure), evaluated)
        except KeyboardInterrupt:
            if worst is None:
                raise
            interrupted = True
        whys = [why for _, why in sorted(failures)]
        if worst is None:
            nothing = f"no instance could be judged within {in_all:.3g} s: "
            if whys:
                raise HeuristicFailedError(nothing + whys[0])
            raise StudyError(f"{nothing}of {evaluated} tried, none was solved to a proven optimum")
        if restarts is not None and time.monotonic() >= end and not interrupted:
            whys.append(CUT_SHORT)
        left = max(1.0, began + in_all - time.monotonic())
        small = worst
        shrink = functools.partial(_shrink, family, measure, subject, seed, memory, limit)
        try:
            last = [] if interrupted or not family.told else [Task((worst, keep, left), left + GRACE, asks=True)]
            for outcome in _outcomes(client, problem, shrink, last, 1, 1, math.inf):
                if outcome.reason:
                    whys.append(f"shrinking: {outcome.reason}")
                else:
                    small = outcome.result
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        whys.append(INTERRUPTED)
    # A heuristic that raises ends every search alike.
    ended_early = tuple(dict.fromkeys(whys))
    return Witness(problem, name, small, worst.gap, found_by, evaluated, seed, ended_early, measure, worst.difference)


def _outcomes(
    client: Client | None,
    problem: str,
    function: Callable[..., Any],
    tasks: Iterable[Task],
    jobs: int,
    total: int | None,
    until: float,
) -> Iterator[Outcome]:
    """Outcomes of tasks, from here or from a cluster."""
    if client is None:
        return run_tasks(function, tasks, jobs=jobs)
    from validation.kernel import cluster

    return cluster.run_tasks(client, function, tasks, total=total, problems=[problem], until=until)


def badness(judged: Judged, measure: Measure) -> float:
    """Return what a search maximizes: the difference, or the gap, which is 0 where the optimum is 0 and has no ratio.

    Without a feasible plan it is infinite.
    """
    if judged.value is None:
        return math.inf
    if measure == "difference":
        return judged.difference
    return judged.gap if math.isfinite(judged.gap) else 0.0


def _worse(one: Judged, other: Judged, measure: Measure) -> bool:
    """Compare by gap or difference; of two that are as bad, the smaller instance is the worse."""
    bad, than = (badness(one, measure), one.gap), (badness(other, measure), other.gap)
    if bad == than:
        return _weight(one.instance) < _weight(other.instance)
    return bad > than


def _weight(instance: AnyInstance) -> int:
    return sum(instance.dims.values())


# --- methods: each judges instances until its time is up --------------------------------------------

Found = tuple[Judged | None, int, str]
"""The worst, how many were judged, and why the search ended early, if it did."""


class _Search:
    """A search by one method: the worst instance that it has seen, and how many it has judged."""

    def __init__(
        self,
        family: Family,
        asking: Asking,
        seed: int,
        measure: Measure,
        turn: int,
        seconds: float,
        limit: float = SOLVE_LIMIT,
        until: float = math.inf,
        most: int | None = None,
    ) -> None:
        self.family, self.measure = family, measure
        self.asking = asking
        self.limit = limit
        self.until = until
        self.rng = np.random.default_rng([seed, turn])
        self.began, self.seconds, self.most = time.monotonic(), seconds, most
        self.worst: Judged | None = None
        self.evaluated = 0
        self.error: Exception | None = None

    @property
    def over(self) -> bool:
        return self.used >= 1

    @property
    def used(self) -> float:
        """The part of its instances, where they are counted, else of its time, that is behind it; 1 at the end."""
        time_used = (time.monotonic() - self.began) / self.seconds
        if self.most is None or time_used >= 1:
            return time_used
        return self.evaluated / self.most

    def judge(self, instance: AnyInstance) -> Judged | None:
        self.evaluated += 1
        try:
            found = judge(instance, self.asking, seconds=self.limit, until=self.until)
        except Exception as error:
            self.error = error
            raise
        if found is not None and (self.worst is None or _worse(found, self.worst, self.measure)):
            self.worst = found
        return found

    def fresh(self) -> AnyInstance:
        """Generate an instance of a small size, one that the generator takes."""
        return self.family.generated(self.rng, MAX_MEMBERS)

    def beside(self, here: Judged) -> Judged | None:
        """Judge a neighbour of the family; None where there is none, or nothing is proven of it."""
        changed = neighbour(here.instance, self.rng, max_members=MAX_MEMBERS)
        return self.judge(changed) if changed is not None and self.family.has(changed) else None


def _search(
    family: Family,
    measure: Measure,
    subject: Heuristic,
    seed: int,
    memory: int | None,
    limit: float,
    method: Callable[[_Search, AnyInstance | None], None],
    start: AnyInstance | None,
    turn: int,
    seconds: float,
    left: float,
    most: int | None = None,
) -> Found:
    until = time.monotonic() + left
    with Asking(subject, seed, memory=memory or memory_share()) as asking:
        search = _Search(family, asking, seed, measure, turn, seconds, limit, until, most)
        try:
            method(search, start)
        except OracleDisagreementError:
            raise
        except OutOfTimeError:
            pass
        except Exception as error:
            # What was found before counts.
            failed = isinstance(error, HeuristicFailedError)
            return search.worst, search.evaluated, str(error) if failed else describe(error)
        return search.worst, search.evaluated, ""


def _random_search(search: _Search, start: AnyInstance | None) -> None:
    while not search.over:
        search.judge(search.fresh())


def _hill_climbing(search: _Search, start: AnyInstance | None) -> None:
    here = search.judge(start if start is not None else search.fresh())
    idle = 0
    while not search.over:
        if here is None or idle > 200:
            here, idle = search.judge(search.fresh()), 0
            continue
        found = search.beside(here)
        idle += 1
        if found is None:
            continue
        bad, than = badness(found, search.measure), badness(here, search.measure)
        if bad >= than:
            idle = idle if bad == than else 0
            here = found


def _simulated_annealing(search: _Search, start: AnyInstance | None) -> None:
    here = search.judge(start if start is not None else search.fresh())
    while not search.over:
        if here is None:
            here = search.judge(search.fresh())
            continue
        found = search.beside(here)
        if found is None:
            continue
        bad, than = badness(found, search.measure), badness(here, search.measure)
        temperature = max(1e-9, 0.2 * (1 - search.used))
        if bad >= than or search.rng.random() < math.exp(max(-700.0, (bad - than) / temperature)):
            here = found


def _hypothesis_search(search: _Search, start: AnyInstance | None) -> None:
    @hypothesis.seed(int(search.rng.integers(2**32)))
    @settings(
        max_examples=10**9,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.target],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(search.family.drawn())
    def look(instance: AnyInstance) -> None:
        if search.over:
            raise TimeoutError
        found = search.judge(instance)
        if found is not None:
            target(min(badness(found, search.measure), 1e6), label=search.measure)

    try:
        look()
    except Exception:
        if search.error is not None:
            raise search.error from None
        # Time that ran out in the middle of a test case looks to Hypothesis like a flaky test.
        if not search.over:
            raise


METHODS = (_random_search, _hill_climbing, _hypothesis_search, _simulated_annealing, _hill_climbing)
"""Ways to search for the worst case, which take turns."""
NEIGHBOURLY = (_hill_climbing, _simulated_annealing)
"""Methods that go from an instance to its neighbours."""


def _shrink(
    family: Family,
    measure: Measure,
    subject: Heuristic,
    seed: int,
    memory: int | None,
    limit: float,
    worst: Judged,
    keep: float,
    seconds: float,
) -> Judged:
    """Find the smallest instance that keeps the given fraction of the gap or the difference."""
    best, until = worst, time.monotonic() + seconds
    # Of an optimum of 0 the gap is infinite, and is kept as that.
    threshold = (keep * badness(worst, measure), keep * worst.gap if measure == "ratio" else 0.0)

    with Asking(subject, seed, memory=memory or memory_share()) as asking:

        def keeps(instance: AnyInstance) -> bool:
            nonlocal best
            if not family.has(instance):
                return False
            try:
                found = judge(instance, asking, seconds=limit, until=until)
            except (HeuristicFailedError, OutOfTimeError):
                return False
            if found is None or badness(found, measure) < threshold[0] or found.gap < threshold[1]:
                return False
            best = found
            return True

        shrunk(worst.instance, keeps, stop=lambda: time.monotonic() >= until)
    return best
