"""Jobs on identical machines, so that the last ends early, and how bad it is to take the longest job first.

Graham (1969): with m machines, no instance makes the longest processing time first end later than 4/3 - 1/(3m) times
the optimum.  The model of the worst case at the end finds these numbers without the proof.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pyomo.environ as pyo

from formulations import Formulation
from formulations.worst_case import InstanceClass, WorstCaseModel, snapped, switched
from instances import Array, FloatArray, Instance, IntArray, Plan, Scalar, Violation, exceeding
from instances.arguments import Count, checked
from validation import Entry, Heuristic, named, register

# --- the problem ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class IdenticalMachinesPlan(Plan):
    """The machine of each job: ``machines`` (n,) int."""

    machines: Annotated[IntArray, Array(int, "n", minimum=0)]


@dataclass(frozen=True, eq=False)
class IdenticalMachines(Instance[IdenticalMachinesPlan]):
    """``times`` (n,) float, s, of the jobs; ``num_machines``."""

    problem = "demo.identical_machines"
    sense = "min"
    measure = "makespan, s"
    plan_type = IdenticalMachinesPlan

    times: Annotated[FloatArray, Array(float, "n", minimum=0)]
    num_machines: Annotated[int, Scalar(int, minimum=1, maximum=1000)]

    @property
    def num_jobs(self) -> int:
        return self.dims["n"]

    def _value(self, plan: IdenticalMachinesPlan) -> float:
        return float(np.bincount(plan.machines, self.times, self.num_machines).max())

    def _broken_rules(self, plan: IdenticalMachinesPlan) -> Iterator[Violation]:
        yield from exceeding("machine", plan.machines, self.num_machines - 1)


def generate(rng: np.random.Generator | int, *, num_jobs: int = 8) -> IdenticalMachines:
    """Jobs of 1 to 9 s for three machines."""
    rng = np.random.default_rng(rng)
    return IdenticalMachines(times=rng.integers(1, 10, num_jobs).astype(float), num_machines=3)


def build(instance: IdenticalMachines) -> pyo.ConcreteModel:
    """Sets JOBS and MACHINES; variables ``runs[j, i]`` and ``end``; objective ``makespan``."""
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS = pyo.RangeSet(0, instance.num_jobs - 1)
    model.MACHINES = pyo.RangeSet(0, instance.num_machines - 1)
    model.runs = pyo.Var(model.JOBS, model.MACHINES, domain=pyo.Binary)
    model.end = pyo.Var(domain=pyo.NonNegativeReals)
    model.once = pyo.Constraint(model.JOBS, rule=lambda m, j: sum(m.runs[j, i] for i in m.MACHINES) == 1)
    times = [float(time) for time in instance.times]
    loads = {i: sum(times[j] * model.runs[j, i] for j in model.JOBS) for i in model.MACHINES}
    model.load_ends = pyo.Constraint(model.MACHINES, rule=lambda m, i: loads[i] <= m.end)
    model.makespan = pyo.Objective(expr=model.end)
    return model


def read(model: pyo.ConcreteModel) -> IdenticalMachinesPlan:
    """The plan in the values of ``runs``."""
    values = [[model.runs[j, i].value for i in model.MACHINES] for j in model.JOBS]
    return IdenticalMachinesPlan(machines=np.argmax(values, axis=1))


# --- the heuristic --------------------------------------------------------------------------------


def longest_first(instance: IdenticalMachines) -> IdenticalMachinesPlan:
    """The longest job first, each to the machine that has least to do; ties go to the lowest job and machine."""
    machines = np.zeros(instance.num_jobs, np.int64)
    load = np.zeros(instance.num_machines)
    for job in np.argsort(-instance.times, kind="stable"):
        machines[job] = load.argmin()
        load[machines[job]] += instance.times[job]
    return IdenticalMachinesPlan(machines=machines)


# --- its worst case -------------------------------------------------------------------------------


@checked
def up_to(*, num_jobs: Count, num_machines: Count = 2) -> InstanceClass:
    """So many jobs, or fewer, of any length.

    The job that ends last may be taken for the shortest: without those after it, the heuristic ends as late, and the
    optimum no later.  So there is a part for each number of jobs.
    """
    words = f"at most {num_jobs} jobs of real times on {num_machines} machines"
    return InstanceClass(words, (_worst_case(n, num_machines) for n in range(1, num_jobs + 1)))


def _worst_case(num_jobs: int, num_machines: int) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case of longest_first, {num_jobs} jobs")
    model.JOBS = pyo.RangeSet(0, num_jobs - 1)
    model.MACHINES = pyo.RangeSet(0, num_machines - 1)
    model.PLACES = model.JOBS * model.MACHINES
    model.machines = pyo.Param(initialize=num_machines)

    # The data: measured so that the witness ends at 1, and numbered in the order in which the heuristic takes the jobs.
    # Of the first m + 1 jobs two share a machine of the witness, so that the shorter takes 1/2 at most, and so on.
    model.times = pyo.Var(model.JOBS, bounds=lambda m, j: (0, 1 / (j // num_machines + 1)))
    model.falling = pyo.Constraint(range(num_jobs - 1), rule=lambda m, j: m.times[j] >= m.times[j + 1])

    # The witness: any plan that ends at 1.  Its machines are alike: job 0 is on the first, job 1 on it or the second.
    model.witness_value = pyo.Expression(expr=1.0)
    model.witness = pyo.Var(model.PLACES, domain=pyo.Binary, bounds=lambda m, j, i: (0, int(i <= j)))
    model.witness_once = pyo.Constraint(model.JOBS, rule=lambda m, j: sum(m.witness[j, i] for i in m.MACHINES) == 1)
    theirs = switched(model, "witness_times", model.PLACES, lambda j, i: (model.witness[j, i], model.times[j]), most=1)
    model.witness_ends = pyo.Constraint(model.MACHINES, rule=lambda m, i: sum(theirs[j, i] for j in m.JOBS) <= 1)

    # The trace: where a job goes, nobody had less to do.  So the first go to a machine each, and two machines never
    # differ by more than a job.  Which of two that have as little does not matter, because machines are alike.
    model.trace = pyo.Var(model.PLACES, domain=pyo.Binary, bounds=lambda m, j, i: (int(i == j), 1))
    model.trace_once = pyo.Constraint(model.JOBS, rule=lambda m, j: sum(m.trace[j, i] for i in m.MACHINES) == 1)
    ours = switched(model, "trace_times", model.PLACES, lambda j, i: (model.trace[j, i], model.times[j]), most=1)

    def before(job, machine):
        return sum(ours[j, machine] for j in range(job))

    def least_to_do(model, job, i, other):
        return before(job, i) <= before(job, other) + 1 - model.trace[job, i]

    model.least_to_do = pyo.Constraint(model.JOBS, model.MACHINES, model.MACHINES, rule=least_to_do)

    # The last job ends last, behind whatever the machine with the least to do had.
    model.heuristic_value = pyo.Var(bounds=(0, 2))
    last = num_jobs - 1
    model.ends = pyo.Constraint(
        model.MACHINES, rule=lambda m, i: m.heuristic_value <= before(last, i) + model.times[last]
    )
    return model


def read_instance(model: pyo.ConcreteModel) -> IdenticalMachines:
    """The jobs in the values of ``times``."""
    times = np.array([max(0.0, snapped(model.times[j].value)) for j in model.JOBS])
    return IdenticalMachines(times=times, num_machines=pyo.value(model.machines))


register(
    Entry(
        title="Jobs on identical machines, so that the last ends early",
        source="an example",
        instance=IdenticalMachines,
        generate=generate,
        size="num_jobs",
        sizes=(8, 16),
        heuristics=named(Heuristic(longest_first, worst_case=WorstCaseModel(up_to, read_instance))),
        formulation=Formulation(build=build, read=read),
    )
)
