"""ElasticFlow (ASPLOS'23): deadlines that are promised on arrival, GPUs in slots, best-effort jobs after them.

What is the paper's: a job that comes with a deadline is admitted if all deadlines promised so far can be kept with it
(section 4.1, Algorithm 1); in every slot the admitted jobs get the GPUs that their deadlines ask for, and the idle ones
go where they help most (section 4.2, Algorithm 2); with placement, jobs hold powers of two of GPUs, in blocks of the
tree of GPUs, and move when blocks must be joined (section 4.3); jobs without deadlines, and those that were turned away
with soft ones, come after the minimum satisfactory shares (section 4.4).  An admitted job meets its deadline, whoever
decides: what counts is the part of the deadlines that are met.

Every slot is planned to the last deadline, and its beginning is carried out.  What remains of a plan that keeps all
deadlines is such a plan again: it is kept, and carried out where a decision maker has none or one that breaks them.
That is what makes the promise hold.

Without ``admission_control`` no job is turned away and nothing is promised: in every slot the GPUs go to all jobs as
"elasticflow.minimum_satisfactory_share" says, whose ``edf`` is the paper's baseline (section 6.1).  The paper's other
baselines are not elastic: with ``baseline`` nobody is asked, and jobs get the GPUs of their ``requests`` or none
(:mod:`validation.replay.inelastic`).

As printed / as built
---------------------
- The paper schedules at arrivals and completions, on plans in slots.  Here decisions are made where slots begin, at
  multiples of their length from the first arrival: a job that comes within a slot is judged at its end, and GPUs of a
  job that ends within a slot are idle until then.  A deadline is rounded down to whole slots.
- A plan that breaks a deadline or hands out GPUs that are not there admits nobody, and is not carried out.
- ``best_effort`` jobs are served after minimum satisfactory shares, instead of what Algorithm 2 adds to these; slots in
  which none waits are Algorithm 2's.  The paper puts them into Algorithm 2's queue with infinite deadlines.
- Costs of restarts are not part of the promise, which they can break.  An admitted job that is late is a best-effort
  one.
- With placement a job runs, on a number of GPUs that is no power of two, as on the next lower one, and holds that.
- EDF is not said to drop late jobs: they keep their place in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from heuristics.elasticflow.filling import power_of_two_below
from instances.base import TOLERANCE
from instances.data.elasticflow import read_throughputs, throughput_curve
from instances.data.lines import Source
from instances.elasticflow.admission import Admission
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.best_effort import BestEffort
from instances.elasticflow.minimum_satisfactory_share import MinimumSatisfactoryShare
from instances.elasticflow.placement import ElasticFlowPlacement
from instances.elasticflow.sharing import SlotPlan
from instances.elasticflow.synthetic import JobOptions, draw_jobs
from instances.elasticflow.traces import DEADLINE_FACTORS
from instances.schema import BoolArray, FloatArray, IntArray
from validation.errors import ReplayError
from validation.replay.engine import Ask, Decide, Decision, Jobs, State
from validation.replay.inelastic import ORDERS, handed_out, leased
from validation.replay.plans import acceptable
from validation.replay.ways import Slots, Ways, corners_of
from validation.replay.workloads import HOUR, in_order, poisson

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PROBLEMS", "Deadlines", "ElasticFlow", "figure_3", "from_jobs", "generate"]

PROBLEMS = (
    "elasticflow.admission",
    "elasticflow.allocation",
    "elasticflow.minimum_satisfactory_share",
    "elasticflow.best_effort",
    "elasticflow.placement",
)

BASELINES = (*ORDERS, "chronus")
"""Schedulers of section 6.1 that are not elastic."""

SLOT = 300.0
"""Length of a slot, s; the paper gives none."""

CRUMB = 1e-6
"""Part of a slot that is rounding, where schedules are bounded; it is counted in their favour."""


class Deadlines(TypedDict, total=False):
    """Options of a workload: fields of :class:`ElasticFlow` beside its jobs and GPUs."""

    problem: str
    slot_seconds: float
    admission_control: bool
    turned_away: str
    server_gpus: int | None
    baseline: str


@dataclass(frozen=True, eq=False)
class ElasticFlow:
    """Elastic jobs with deadlines on identical GPUs.

    Attributes
    ----------
    jobs : Jobs
        Work in iterations; a job without a deadline is a best-effort one.
    num_gpus : int
    throughputs : (n, num_gpus+1) float
        Iterations/s of each job on 0 to num_gpus GPUs.
    problem : str
        Whose decision maker is compared.  With "elasticflow.minimum_satisfactory_share" jobs get these shares in every
        slot, and nobody gets the idle GPUs; "elasticflow.placement" needs ``server_gpus``.
    slot_seconds : float
        Length of a slot, s.
    admission_control : bool
        Whether jobs are admitted before they run; False with "elasticflow.minimum_satisfactory_share" only.
    turned_away : str
        What becomes of a job that is not admitted: "best_effort" (soft deadlines), or "leave" (hard ones).
    server_gpus : int, optional
        GPUs of a server, a power of two, where jobs are placed.
    baseline : str
        "gandiva", "tiresias", "themis" or "chronus", without ``admission_control``: who decides, and nobody is asked.
    requests : (n,) int, optional
        GPUs that each job asks a baseline for, of which it has a rate; by default one.

    Raises
    ------
    ReplayError
        When sizes differ or options do not go together.
    """

    jobs: Jobs
    num_gpus: int
    throughputs: FloatArray
    problem: str = PROBLEMS[0]
    slot_seconds: float = SLOT
    admission_control: bool = True
    turned_away: str = "best_effort"
    server_gpus: int | None = None
    baseline: str = ""
    requests: IntArray | None = None

    def __post_init__(self) -> None:
        wanted = (len(self.jobs), self.num_gpus + 1)
        if self.throughputs.shape != wanted:
            raise ReplayError(f"throughputs: got shape {self.throughputs.shape}, must be {wanted}")
        if self.problem not in PROBLEMS:
            raise ReplayError(f"problem: got {self.problem!r}, must be one of {', '.join(PROBLEMS)}")
        if not self.admission_control and self.problem != MinimumSatisfactoryShare.problem:
            raise ReplayError(f"admission_control: without it, {MinimumSatisfactoryShare.problem} decides all")
        if self.problem == ElasticFlowPlacement.problem and self.server_gpus is None:
            raise ReplayError("server_gpus: must be given where jobs are placed")
        if self.turned_away not in ("best_effort", "leave"):
            raise ReplayError(f"turned_away: got {self.turned_away!r}, must be best_effort or leave")
        if self.baseline not in ("", *BASELINES):
            raise ReplayError(f"baseline: got {self.baseline!r}, must be one of {', '.join(BASELINES)}")
        if self.baseline and (self.admission_control or self.server_gpus is not None):
            raise ReplayError("baseline: must be without admission_control and server_gpus")
        requests = np.ones(len(self.jobs), np.int64) if self.requests is None else np.array(self.requests, np.int64)
        if requests.shape != (len(self.jobs),) or not ((requests >= 1) & (requests <= self.num_gpus)).all():
            raise ReplayError(f"requests: must be 1 to {self.num_gpus} GPUs for each of {len(self.jobs)} jobs")
        object.__setattr__(self, "requests", requests)
        still = np.flatnonzero(self.throughputs[np.arange(len(requests)), requests] <= 0)
        if self.baseline and still.size:
            raise ReplayError(f"requests: job {self.jobs.names[still[0]]} makes no progress on what it asks for")

    @property
    def name(self) -> str:
        """Name of the setting in tables."""
        if self.baseline:
            return self.baseline
        return "elasticflow" if self.admission_control else "elasticflow without admission"

    @property
    def round_length(self) -> float:
        """Length of a slot, s."""
        return self.slot_seconds

    @property
    def capacity(self) -> FloatArray:
        """GPUs of the cluster, (1,) float."""
        return np.array([float(self.num_gpus)])

    @cached_property
    def curves(self) -> FloatArray:
        """Rates in iterations/s, (n, num_gpus+1) float; where jobs are placed, those of the next lower power of two."""
        if self.server_gpus is None:
            return self.throughputs
        return self.throughputs[:, power_of_two_below(np.arange(self.num_gpus + 1))]

    @property
    def all_run(self) -> bool:
        """True if every job is run to its end."""
        return not self.admission_control or self.turned_away == "best_effort"

    def begin(self) -> Decide:
        """Return the function that decides in one replay."""
        return _Slots(self)

    def ways(self) -> Ways:
        """Return each job on some GPUs."""
        corners = enumerate(map(corners_of, self.curves))
        return Ways.alone(
            self.capacity, ((job, float(self.curves[job, gpus]), (gpus,)) for job, some in corners for gpus in some)
        )

    def slots(self) -> Slots:
        """Return the slots of each job, from the first beginning at which it is there to its deadline.

        An admitted job gets no GPUs in a slot that its deadline cuts; any other may still be done in it.
        """
        jobs, start = self.jobs, float(self.jobs.arrivals[0])
        assert jobs.deadlines is not None
        counts = np.isfinite(jobs.deadlines)
        there = (jobs.arrivals - start) / self.slot_seconds
        due = (np.where(counts, jobs.deadlines, start) - start) / self.slot_seconds
        return Slots(
            num_gpus=self.num_gpus,
            curves=self.slot_seconds * self.curves,
            first=np.ceil(there - CRUMB).astype(np.int64),
            last=(np.ceil(due - CRUMB) if self.all_run else np.floor(due + CRUMB)).astype(np.int64),
            counts=counts,
            attained=not self.all_run and self.server_gpus is None,
        )

    def equal_rates(self, jobs: IntArray) -> FloatArray:
        """Return each job's rate on an m-th of the GPUs, linear between whole numbers, (m,) float, iterations/s."""
        share = self.num_gpus / len(jobs)
        low = int(share)
        best = np.maximum.accumulate(self.curves[jobs], axis=1)
        rates: FloatArray = best[:, low] + (share - low) * (best[:, min(low + 1, self.num_gpus)] - best[:, low])
        return rates


class _Slots:
    """Decisions at the beginning of each slot, with the promises that were made."""

    def __init__(self, setting: ElasticFlow) -> None:
        self.setting = setting
        self.judged, self.admitted = np.zeros((2, len(setting.jobs)), bool)
        # GPUs in each slot from now on with which the admitted jobs meet their deadlines.
        self.promised: dict[int, IntArray] = {}
        self.offsets: dict[int, int] = {}
        self.before = 0.0

    def __call__(self, state: State, ask: Ask) -> Decision:
        setting = self.setting
        passed = round((state.now - self.before) / setting.slot_seconds)
        self.before = state.now
        self.promised = {job: self.promised[job][passed:] for job in state.jobs.tolist() if job in self.promised}
        slots = self._slots_left(state)
        if setting.baseline:
            return self._decision(state, ask, self._as_requested(state, slots))
        if not setting.admission_control:
            return self._decision(state, ask, self._by_deadline(state, ask, slots))
        self._admit(state, ask, slots)
        promised = self.admitted[state.jobs] & (slots >= 1)
        away = ~promised & np.isfinite(self._deadlines(state)) & ~self.admitted[state.jobs]
        if setting.turned_away == "best_effort":
            away[:] = False
        gpus = self._share_out(state, ask, slots, promised, ~promised & ~away)
        return self._decision(state, ask, gpus, state.jobs[away])

    def _deadlines(self, state: State) -> FloatArray:
        deadlines = self.setting.jobs.deadlines
        assert deadlines is not None
        return deadlines[state.jobs]

    def _slots_left(self, state: State) -> IntArray:
        """Return the whole slots until each job's deadline, (m,) int; 0 without one."""
        deadlines = self._deadlines(state)
        seconds = np.where(np.isfinite(deadlines), deadlines - state.now, 0.0)
        slots: IntArray = np.floor(seconds / self.setting.slot_seconds + TOLERANCE).astype(np.int64)
        return slots

    def _fields(self, state: State, rows: IntArray | BoolArray) -> dict[str, object]:
        return {
            "num_gpus": self.setting.num_gpus,
            "iterations": state.left[rows],
            "throughputs": self.setting.slot_seconds * self.setting.curves[state.jobs[rows]],
        }

    # --- admission ---

    def _admit(self, state: State, ask: Ask, slots: IntArray) -> None:
        """Judge the jobs that have come since the last slot, one by one, in order of arrival."""
        new = ~self.judged[state.jobs]
        self.judged[state.jobs] = True
        for row in np.argsort(state.arrivals, kind="stable").tolist():
            if not new[row] or slots[row] < 1:
                continue
            rows = np.flatnonzero((self.admitted[state.jobs] & (slots >= 1)) | (np.arange(len(slots)) == row))
            instance = Admission(
                **self._fields(state, rows),  # type: ignore[arg-type]
                deadlines=slots[rows],
                arrival_order=np.argsort(state.arrivals[rows], kind="stable"),
            )
            plan = ask(instance, default="progressive_filling", jobs=state.jobs[rows])
            if plan.admitted.all() and acceptable(instance, plan):  # type: ignore[attr-defined]
                self.admitted[state.jobs[row]] = True
                self._promise(state.jobs[rows], plan.gpus)  # type: ignore[attr-defined]

    def _promise(self, jobs: IntArray, gpus: IntArray) -> None:
        self.promised.update(zip(jobs.tolist(), gpus, strict=True))

    # --- allocation ---

    def _share_out(
        self, state: State, ask: Ask, slots: IntArray, promised: BoolArray, best_effort: BoolArray
    ) -> IntArray:
        """Return the GPUs of each job in this slot, (m,) int."""
        instance: ElasticFlowAllocation | MinimumSatisfactoryShare | BestEffort
        if best_effort.any():
            rows = np.flatnonzero(promised | best_effort)
            planned = np.where(best_effort, self._planned(state, slots, promised, best_effort), slots)
            instance = BestEffort(
                **self._fields(state, rows),  # type: ignore[arg-type]
                deadlines=planned[rows],
                best_effort=best_effort[rows],
            )
            default = "minimum_shares_first"
        else:
            rows = np.flatnonzero(promised)
            shares_only = self.setting.problem == MinimumSatisfactoryShare.problem
            kind = MinimumSatisfactoryShare if shares_only else ElasticFlowAllocation
            instance = kind(**self._fields(state, rows), deadlines=slots[rows])  # type: ignore[arg-type]
            default = "progressive_filling" if shares_only else "greedy_marginal_return_repaired"
        gpus = np.zeros(len(slots), np.int64)
        if not len(rows):
            return gpus
        kept = np.zeros((len(rows), instance.horizon), np.int64)
        for place, job in enumerate(state.jobs[rows].tolist()):
            row = self.promised.get(job, kept[place, :0])[: instance.horizon]
            kept[place, : len(row)] = row
        but = ("no_useful_idle_gpu",)
        plan = ask(instance, default=default, otherwise=SlotPlan(gpus=kept), jobs=state.jobs[rows], forgiven=but)
        assert isinstance(plan, SlotPlan)
        if acceptable(instance, plan, but=but):
            self._promise(state.jobs[promised], plan.gpus[promised[rows]])
            kept = plan.gpus
        gpus[rows] = kept[:, 0]
        return gpus

    def _planned(self, state: State, slots: IntArray, promised: BoolArray, best_effort: BoolArray) -> int:
        """Return the slots in which all best-effort jobs are done by any rule that idles no GPU which a job could use.

        After the last deadline every one that does not run waits for others that hold all GPUs.
        """
        curves = self.setting.curves[state.jobs[best_effort]]
        least = np.argmax(curves > 0, axis=1)
        alone = np.ceil(
            state.left[best_effort] / (self.setting.slot_seconds * curves[np.arange(len(curves)), least])
        ).astype(np.int64)
        most = self.setting.num_gpus if (least == 1).all() else 1
        return int(slots[promised].max(initial=0) + alone.max() + -(-alone.sum() // most))

    def _by_deadline(self, state: State, ask: Ask, slots: IntArray) -> IntArray:
        """Return the GPUs of each job in this slot without promises, (m,) int; late jobs first, those without last."""
        deadlines = self._deadlines(state)
        order = np.argsort(deadlines, kind="stable")
        due = np.where(np.isfinite(deadlines), np.maximum(slots, 1), slots.max(initial=1) + 1)
        instance = MinimumSatisfactoryShare(**self._fields(state, order), deadlines=due[order])  # type: ignore[arg-type]
        plan = ask(instance, default="edf", jobs=state.jobs[order])
        assert isinstance(plan, SlotPlan)
        gpus = np.zeros(len(slots), np.int64)
        gpus[order] = plan.gpus[:, 0]
        return gpus

    def _as_requested(self, state: State, slots: IntArray) -> IntArray:
        """Return the GPUs of each job in this slot under a baseline, (m,) int."""
        setting = self.setting
        assert setting.requests is not None
        asked = setting.requests[state.jobs]
        remaining = state.left / setting.curves[state.jobs, asked]
        if setting.baseline != "chronus":
            order = np.lexsort((state.arrivals, ORDERS[setting.baseline](state, remaining)))
            return handed_out(asked, order.tolist(), setting.num_gpus)
        needed = np.ceil(remaining / setting.slot_seconds * (1 - TOLERANCE)).astype(np.int64)
        first = leased(asked, needed, slots, setting.num_gpus)
        order = np.lexsort((remaining, ~first))
        return handed_out(asked, order.tolist(), setting.num_gpus)

    # --- what follows ---

    def _decision(self, state: State, ask: Ask, gpus: IntArray, away: Sequence[int] | IntArray = ()) -> Decision:
        setting = self.setting
        full = setting.curves[state.jobs, gpus]
        # What rounding leaves of a job that is done with this slot is done in it too.
        last = (full > 0) & (state.left <= setting.slot_seconds * full * (1 + TOLERANCE / 2))
        rates = np.where(last, np.maximum(full, state.left / setting.slot_seconds), full)
        placements = None
        if setting.server_gpus is not None:
            gpus, placements = self._place(state, ask, power_of_two_below(gpus))
        return Decision(
            rates=rates,
            gpus=gpus.astype(float),
            placements=placements,
            turned_away=np.array(away, np.int64),
        )

    def _place(self, state: State, ask: Ask, sizes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the GPUs and blocks of the jobs that run."""
        setting = self.setting
        assert setting.server_gpus is not None
        runs = np.flatnonzero(sizes)
        jobs = state.jobs[runs].tolist()
        placements = np.zeros(len(sizes), np.int64)
        offsets: IntArray = np.zeros(0, np.int64)
        if len(runs):
            instance = ElasticFlowPlacement(
                num_gpus=setting.num_gpus,
                gpus_per_server=setting.server_gpus,
                sizes=sizes[runs],
                previous_offsets=np.array([self.offsets.get(job, np.inf) for job in jobs], float),
            )
            plan = ask(instance, default="buddy_repack", jobs=state.jobs[runs])
            if not acceptable(instance, plan):
                raise ReplayError(f"{instance.problem}: {instance.violations(plan)[0]}")  # type: ignore[arg-type]
            offsets = plan.offsets  # type: ignore[attr-defined]
            placements[runs] = 1 + offsets * (setting.num_gpus + 1) + sizes[runs]
        self.offsets = dict(zip(jobs, offsets.tolist(), strict=True))
        return sizes, placements


# --- workloads -----------------------------------------------------------------------------------


def figure_3(**options: Unpack[Deadlines]) -> ElasticFlow:
    """Return the jobs of Figure 3, in seconds: 3 iterations each, at 1 and 1.5 on 1 and 2 GPUs, due by 3 and 3.5 s.

    EDF runs the first on both GPUs, for 2 s, and then the second, which is done at 4 s, too late.  With a GPU each both
    are done after 3 s.
    """
    curves = np.tile([0.0, 1.0, 1.5], (2, 1))
    return ElasticFlow(
        jobs=Jobs(
            names=("A", "B"),
            arrivals=np.zeros(2),
            work=np.full(2, 3.0),
            fastest=np.full(2, 1.5),
            deadlines=np.array([3.0, 3.5]),
        ),
        num_gpus=2,
        throughputs=curves,
        **Deadlines(slot_seconds=0.5) | options,
    )


def generate(
    rng: np.random.Generator | int,
    *,
    num_jobs: int = 12,
    num_gpus: int = 8,
    between: float = 0.5,
    best_effort: float = 0.2,
    **options: Unpack[Deadlines],
) -> ElasticFlow:
    """Draw jobs by :func:`instances.elasticflow.synthetic.draw_jobs` that come one after the other.

    Parameters
    ----------
    rng : Generator or int
        Source of randomness, or its seed.
    num_jobs, num_gpus : int
    between : float
        Mean time between Poisson arrivals, slots.
    best_effort : float
        Part of the jobs that have no deadline.
    **options
        As in :class:`Deadlines`; ``slot_seconds`` is the unit of the jobs' deadlines.
    """
    rng = np.random.default_rng(rng)
    slot = options.get("slot_seconds", SLOT)
    fields = draw_jobs(rng, **JobOptions(num_jobs=num_jobs, num_gpus=num_gpus, horizon=12, tightness=1.0))
    arrivals = poisson(rng, num_jobs, HOUR / (slot * between))
    deadlines = arrivals + slot * (1 + fields["deadlines"])
    curves = fields["throughputs"] / slot
    return ElasticFlow(
        jobs=Jobs(
            names=np.arange(num_jobs),
            arrivals=arrivals,
            work=fields["iterations"],
            fastest=curves.max(axis=1),
            deadlines=np.where(rng.random(num_jobs) < best_effort, np.inf, deadlines),
        ),
        num_gpus=num_gpus,
        throughputs=curves,
        **options,
    )


def from_jobs(
    jobs: pd.DataFrame,
    *,
    problem: str = PROBLEMS[0],
    rng: np.random.Generator | int = 0,
    throughputs: Source,
    num_gpus: int = 128,
    draw_deadlines: bool = False,
    interpolate: bool = True,
    slot_seconds: float = SLOT,
    admission_control: bool = True,
    turned_away: str = "best_effort",
    server_gpus: int | None = None,
    baseline: str = "",
) -> ElasticFlow:
    """Make a setting of the jobs of a table, as section 6.1 makes them of a trace.

    A job has the iterations that its model does in the trace's duration on its GPUs (on the most that were measured, if
    those are fewer), or those that the table says.  Models and batch sizes that the table does not have are drawn from
    the throughputs, deadlines uniformly from 0.5 to 1.5 times the duration.

    Parameters
    ----------
    jobs : DataFrame
        A job table (:mod:`instances.data.jobs`).
    problem : str
        As in :class:`ElasticFlow`.
    rng : Generator or int
        Source of randomness, or its seed.
    throughputs : path, open file or DataFrame
        Tables for :func:`instances.data.elasticflow.read_throughputs`.
    num_gpus : int
        GPUs of the cluster.
    draw_deadlines : bool
        Draw deadlines although the table has some.
    interpolate : bool
        As in :func:`instances.data.elasticflow.throughput_curve`.
    slot_seconds, admission_control, turned_away, server_gpus, baseline
        As in :class:`ElasticFlow`; a job asks for the GPUs that it held in the table, at most all.

    Raises
    ------
    InstanceError
        When the throughputs are malformed.
    ReplayError
        When there are no throughputs of a job's model and batch size.
    """
    rng = np.random.default_rng(rng)
    jobs = in_order(jobs)
    tables = read_throughputs(throughputs)
    rows: dict[Any, dict[Any, float]] = tables.to_dict("index")
    kinds = _kinds(rng, jobs, list(rows))
    curves = np.array([throughput_curve(rows[kind], num_gpus, interpolate=interpolate) for kind in kinds])
    durations, held = jobs["duration"].to_numpy(float), jobs["num_gpus"].to_numpy(np.int64)
    arrivals = jobs["submit_time"].to_numpy(float)
    if "iterations" in jobs and "batch_size" in jobs:
        work = jobs["iterations"].to_numpy(float)
    else:
        measured = [max(rows[kind]) for kind in kinds]
        rates = [
            throughput_curve(rows[kind], most, interpolate=False)[min(most, gpus)]
            for kind, most, gpus in zip(kinds, measured, held.tolist(), strict=True)
        ]
        work = durations * np.array(rates)
    if "deadline" in jobs and not draw_deadlines:
        deadlines = jobs["deadline"].fillna(np.inf).to_numpy(float)
    else:
        deadlines = arrivals + durations * rng.uniform(*DEADLINE_FACTORS, len(jobs))
    return ElasticFlow(
        jobs=Jobs(
            names=jobs["job_id"].tolist(),
            arrivals=arrivals,
            work=work,
            fastest=curves.max(axis=1),
            deadlines=deadlines,
            columns={"model": np.array([model for model, _ in kinds], dtype=object), "num_gpus": held},
        ),
        num_gpus=num_gpus,
        throughputs=curves,
        problem=problem,
        slot_seconds=slot_seconds,
        admission_control=admission_control,
        turned_away=turned_away,
        server_gpus=server_gpus,
        baseline=baseline,
        requests=np.minimum(held, num_gpus),
    )


def _kinds(rng: np.random.Generator, jobs: pd.DataFrame, known: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the model and batch size of each job; all are drawn unless the table has both."""
    if "model" not in jobs or "batch_size" not in jobs:
        return [known[number] for number in rng.integers(0, len(known), len(jobs))]
    kinds = list(zip(jobs["model"].tolist(), jobs["batch_size"].tolist(), strict=True))
    for kind in kinds:
        if kind not in known:
            raise ReplayError(f"there is no throughput of {kind[0]} at batch size {kind[1]}")
    return kinds
