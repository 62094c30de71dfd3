"""Two problems from outside whose checks are hard put: one refuses most data, one's generator never lacks memory.

Each has a right heuristic and one with a mistake.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyomo.environ as pyo

from formulations import Formulation
from instances import Array, BoolArray, FloatArray, Instance, IntArray, Plan, Scalar, Violation, exceeding
from validation import Entry, named, register


@dataclass(frozen=True, eq=False)
class Placed(Plan):
    """``servers`` (n,) int: where each job runs, -1 for nowhere."""

    servers: Annotated[IntArray, Array(int, "n", minimum=-1)]


@dataclass(frozen=True, eq=False)
class Racks(Instance[Placed]):
    """Jobs with a ``home`` (n,), -1 for none, that run there or on a server with a link to it."""

    problem = "demo.racks"
    sense = "max"
    plan_type = Placed

    gpus: Annotated[IntArray, Array(int, "n", minimum=1)]
    values: Annotated[FloatArray, Array(float, "n", minimum=0)]
    home: Annotated[IntArray, Array(int, "n", index_of="s", minimum=-1)]
    server_gpus: Annotated[IntArray, Array(int, "s", minimum=1)]
    links: Annotated[BoolArray, Array(bool, "s s")]

    def _check(self) -> None:
        if (self.links != self.links.T).any() or not self.links.diagonal().all():
            raise self.refuse("links", "got another matrix, must be symmetric, and true on the diagonal")
        if (self.server_gpus % 4).any() or (np.diff(self.server_gpus) > 0).any():
            raise self.refuse("server_gpus", f"got {self.server_gpus.tolist()}, must be multiples of 4, falling")
        if (self.gpus > self.server_gpus.max(initial=0)).any():
            raise self.refuse("gpus", "got more than any server has")
        if len(np.unique(self.values)) < len(self.values):
            raise self.refuse("values", "got one twice, must be different")

    @property
    def allowed(self) -> BoolArray:
        """(n, s) bool: where each job may run."""
        return np.array([self.links[home] if home >= 0 else self.links[0] | True for home in self.home], bool).reshape(
            self.dims["n"], self.dims["s"]
        )

    def _value(self, plan: Placed) -> float:
        return float(self.values[plan.servers >= 0].sum())

    def _broken_rules(self, plan: Placed) -> Iterator[Violation]:
        yield from exceeding("server_exists", plan.servers, self.dims["s"] - 1)
        placed = np.flatnonzero((plan.servers >= 0) & (plan.servers < self.dims["s"]))
        where = plan.servers[placed]
        used = [int(self.gpus[placed[where == server]].sum()) for server in range(self.dims["s"])]
        yield from exceeding("server_gpus", used, self.server_gpus)
        yield from exceeding("linked", ~self.allowed[placed, where], False)


@dataclass(frozen=True, eq=False)
class Fleet(Instance[Placed]):
    """Jobs of some GPUs and memory each, on servers that are alike."""

    problem = "demo.fleet"
    sense = "max"
    plan_type = Placed

    gpus: Annotated[IntArray, Array(int, "n", minimum=1)]
    memory: Annotated[FloatArray, Array(float, "n", minimum=0)]
    num_servers: Annotated[int, Scalar(int, minimum=1, maximum=64)]
    server_gpus: Annotated[int, Scalar(int, minimum=1)]
    server_memory: Annotated[float, Scalar(float, minimum=0)]

    def _check(self) -> None:
        for name, limit in (("gpus", self.server_gpus), ("memory", self.server_memory)):
            if (getattr(self, name) > limit).any():
                raise self.refuse(name, f"got more than a server has, {limit}")

    def _value(self, plan: Placed) -> float:
        return float((plan.servers >= 0).sum())

    def _broken_rules(self, plan: Placed) -> Iterator[Violation]:
        yield from exceeding("server_exists", plan.servers, self.num_servers - 1)
        each = range(self.num_servers)
        for name, limit in (("gpus", self.server_gpus), ("memory", self.server_memory)):
            amounts = getattr(self, name)
            yield from exceeding(f"server_{name}", [amounts[plan.servers == server].sum() for server in each], limit)


def generate_racks(rng: Any, *, num_jobs: int = 6) -> Racks:
    """Jobs of 1 to 4 GPUs, and servers with room for all of them and more."""
    rng = np.random.default_rng(rng)
    servers = int(rng.integers(2, 4))
    links = rng.random((servers, servers)) < 0.5
    return Racks(
        gpus=rng.integers(1, 5, num_jobs),
        values=rng.uniform(1, 10, num_jobs),
        home=rng.integers(-1, servers, num_jobs),
        server_gpus=np.full(servers, 4 * (num_jobs + 1)),
        links=links | links.T | np.eye(servers, dtype=bool),
    )


def generate_fleet(rng: Any, *, num_jobs: int = 6) -> Fleet:
    """Jobs that lack GPUs, never memory."""
    rng = np.random.default_rng(rng)
    memory = rng.uniform(1, 10, num_jobs)
    gpus = rng.integers(1, 9, num_jobs)
    return Fleet(gpus=gpus, memory=memory, num_servers=2, server_gpus=8, server_memory=float(memory.sum()))


def _model(instance: Any, limits: dict[str, Any], servers: int, allowed: Any, values: Any) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=instance.problem)
    model.JOBS, model.SERVERS = pyo.RangeSet(0, instance.dims["n"] - 1), pyo.RangeSet(0, servers - 1)
    model.on = pyo.Var(model.JOBS, model.SERVERS, domain=pyo.Binary)
    model.once = pyo.Constraint(model.JOBS, rule=lambda m, j: pyo.quicksum(m.on[j, s] for s in m.SERVERS) <= 1)
    model.limits = pyo.ConstraintList()
    for name, limit in limits.items():
        for s in model.SERVERS:
            used = pyo.quicksum(getattr(instance, name)[j].item() * model.on[j, s] for j in model.JOBS)
            model.limits.add(used <= limit[s].item())
    for j in model.JOBS:
        for s in model.SERVERS:
            if not allowed[j, s]:
                model.on[j, s].fix(0)
    total = pyo.quicksum(float(values[j]) * model.on[j, s] for j in model.JOBS for s in model.SERVERS)
    model.total = pyo.Objective(expr=total, sense=pyo.maximize)
    return model


def _read(model: pyo.ConcreteModel) -> Placed:
    on = [[s for s in model.SERVERS if model.on[j, s].value > 0.5] for j in model.JOBS]
    return Placed(servers=[servers[0] if servers else -1 for servers in on])


def _build_racks(instance: Racks) -> pyo.ConcreteModel:
    limits = {"gpus": instance.server_gpus}
    return _model(instance, limits, instance.dims["s"], instance.allowed, instance.values)


def _build_fleet(instance: Fleet) -> pyo.ConcreteModel:
    servers, jobs = instance.num_servers, instance.dims["n"]
    limits = {name: np.full(servers, getattr(instance, f"server_{name}")) for name in ("gpus", "memory")}
    return _model(instance, limits, servers, np.ones((jobs, servers), bool), np.ones(jobs))


def _racked(instance: Racks, over: int) -> Placed:
    """Each job in order on the first server that it may run on and that has enough GPUs left."""
    left, servers = instance.server_gpus.copy(), np.full(instance.dims["n"], -1)
    for job, gpus in enumerate(instance.gpus):
        fits = np.flatnonzero(instance.allowed[job] & (gpus <= left + over))
        if fits.size:
            servers[job] = fits[0]
            left[fits[0]] -= gpus
    return Placed(servers=servers)


def right(instance: Racks) -> Placed:
    return _racked(instance, 0)


def one_gpu_over(instance: Racks) -> Placed:
    return _racked(instance, 1)


def _loaded(instance: Fleet, looks: bool) -> Placed:
    """Each job in order on the first server that has enough left."""
    gpus, memory = np.zeros(instance.num_servers, np.int64), np.zeros(instance.num_servers)
    servers = np.full(instance.dims["n"], -1)
    for job in range(instance.dims["n"]):
        fits = gpus + instance.gpus[job] <= instance.server_gpus
        if looks:
            fits &= memory + instance.memory[job] <= instance.server_memory
        if fits.any():
            servers[job] = fits.argmax()
            gpus[servers[job]] += instance.gpus[job]
            memory[servers[job]] += instance.memory[job]
    return Placed(servers=servers)


def fitting(instance: Fleet) -> Placed:
    return _loaded(instance, True)


def memory_is_plenty(instance: Fleet) -> Placed:
    return _loaded(instance, False)


for kind, generate, build, heuristics in (
    (Racks, generate_racks, _build_racks, (right, one_gpu_over)),
    (Fleet, generate_fleet, _build_fleet, (fitting, memory_is_plenty)),
):
    register(
        Entry(
            title="Where jobs run",
            source="an example",
            instance=kind,
            generate=generate,
            size="num_jobs",
            sizes=(6, 10),
            heuristics=named(*heuristics),
            formulation=Formulation(build=build, read=_read),
        )
    )
