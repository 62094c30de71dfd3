"""Worst case of the released policy of :class:`instances.eplb.placement.EplbPlacement`, on one node.

Experts are numbered as the packing takes them, by falling load s[i] for each of their c[i] replicas.  Each choice of c
is a part.  The replication ends there just where each further replica was given at a load for each that no other has
in the end,

    c[i] * s[i] / (c[i] - 1)  >=  s[j]    of all j, and i with c[i] > 1,

and a replica goes to a GPU that has no more load than any other with a free slot.  The witness is any plan: where it
has r of d replicas of expert i on GPU g, that carries r/d of its load.  Loads are measured so that it is worth 1.  No
counts make the greatest load for a replica less than the replication does, so that it is 1 at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.engine.linear import ModelError
from formulations.worst_case.pieces import snapped, switched
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.arguments import Count, checked
from instances.eplb.placement import EplbPlacement

__all__ = ["WORST_CASES", "read", "released_global"]

AHEAD = 1e-8
"""By which a witness raises loads, as a part of them, so that replicas are given and packed in the model's order."""


@checked
def released_global(*, num_experts: Count, num_gpus: Count = 2, slots: Count = 2) -> InstanceClass:
    """Experts of real loads that are replicated and packed as released.

    Parameters
    ----------
    num_experts, num_gpus : int
    slots : int
        Of each GPU, from 2 to the experts.
    """
    replicas = num_gpus * slots
    if not 2 <= slots <= num_experts <= replicas:
        raise ModelError(f"slots: got {slots}, must be from 2 to the experts, {num_experts}, and enough for them")
    words = f"{num_experts} experts of real loads on {num_gpus} GPUs of {slots} slots"
    parts = (_model(counts, num_gpus, slots) for counts in _compositions(replicas, num_experts))
    return InstanceClass(words, parts, scalable=True)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to make a number of so many, each at least 1, in order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(1, total - parts + 2):
        for others in _compositions(total - first, parts - 1):
            yield (first, *others)


def _model(counts: Sequence[int], num_gpus: int, slots: int) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case of {counts} replicas on {num_gpus} GPUs")
    model.counts, model.num_gpus, model.num_slots = tuple(counts), num_gpus, slots
    most = sum(counts) - len(counts) + 1
    model.EXPERTS = pyo.RangeSet(0, len(counts) - 1)
    model.GPUS = pyo.RangeSet(0, num_gpus - 1)
    # No GPU of the witness carries more than 1, so that no expert has more than its replicas there, or than the GPUs.
    heaviest = min(most, num_gpus)
    model.shares = pyo.Var(model.EXPERTS, bounds=lambda m, i: (0, min(1, heaviest / counts[i])))

    def load(i: int) -> Any:
        return counts[i] * model.shares[i]

    model.falling = pyo.Constraint(range(len(counts) - 1), rule=lambda m, i: m.shares[i] >= m.shares[i + 1])
    several = [i for i, count in enumerate(counts) if count > 1]
    model.replication = pyo.Constraint(several, rule=lambda m, i: load(i) >= (counts[i] - 1) * m.shares[0])
    model.all_loads = pyo.Constraint(expr=pyo.quicksum(load(i) for i in model.EXPERTS) <= num_gpus)

    # The witness: of each expert and GPU, how many replicas of how many.
    model.witness_value = pyo.Expression(expr=1.0)
    model.COUNTS = pyo.RangeSet(1, most)
    model.has = pyo.Var(model.EXPERTS * model.COUNTS, domain=pyo.Binary)
    model.one_count = pyo.Constraint(model.EXPERTS, rule=lambda m, i: pyo.quicksum(m.has[i, :]) == 1)
    ways = [(d, r) for d in range(1, most + 1) for r in range(1, min(d, slots) + 1)]
    model.WAYS = pyo.Set(initialize=ways)
    model.witness = pyo.Var(model.EXPERTS * model.GPUS * model.WAYS, domain=pyo.Binary)
    model.carried = pyo.Var(model.EXPERTS * model.GPUS, bounds=(0, 1))

    def one_way(m: pyo.ConcreteModel, i: int, d: int, g: int) -> Any:
        return pyo.quicksum(m.witness[i, g, d, r] for r in range(1, min(d, slots) + 1)) <= m.has[i, d]

    def all_placed(m: pyo.ConcreteModel, i: int, d: int) -> Any:
        placed = (r * m.witness[i, g, d, r] for g in m.GPUS for r in range(1, min(d, slots) + 1))
        return pyo.quicksum(placed) == d * m.has[i, d]

    def part_carried(m: pyo.ConcreteModel, i: int, g: int, d: int, r: int) -> Any:
        return m.carried[i, g] >= r / d * (load(i) - heaviest * (1 - m.witness[i, g, d, r]))

    def held(m: pyo.ConcreteModel, g: int) -> Any:
        return pyo.quicksum(r * m.witness[i, g, d, r] for i in m.EXPERTS for d, r in ways) == slots

    def no_heavier(m: pyo.ConcreteModel, i: int) -> Any:
        return load(i) <= pyo.quicksum(min(d, num_gpus) * m.has[i, d] for d in m.COUNTS)

    def of_first(m: pyo.ConcreteModel, g: int) -> Any:
        return pyo.quicksum(r * m.witness[0, g, d, r] for d, r in ways)

    model.one_way = pyo.Constraint(model.EXPERTS * model.COUNTS * model.GPUS, rule=one_way)
    model.all_placed = pyo.Constraint(model.EXPERTS * model.COUNTS, rule=all_placed)
    model.witness_slots = pyo.Constraint(model.GPUS, rule=held)
    model.no_heavier = pyo.Constraint(model.EXPERTS, rule=no_heavier)
    # GPUs are alike, so that of the first expert none has fewer replicas than the next.
    model.witness_order = pyo.Constraint(range(num_gpus - 1), rule=lambda m, g: of_first(m, g) >= of_first(m, g + 1))
    model.part_carried = pyo.Constraint(model.EXPERTS * model.GPUS * model.WAYS, rule=part_carried)
    model.all_carried = pyo.Constraint(model.EXPERTS, rule=lambda m, i: pyo.quicksum(m.carried[i, :]) >= load(i))
    model.witness_load = pyo.Constraint(model.GPUS, rule=lambda m, g: pyo.quicksum(m.carried[:, g]) <= 1)

    # The trace.  The first replicas go to a GPU each, and the next to the GPU of the last, which is the lightest; with
    # two slots it goes on so.  Where GPUs carry the same, which of them it is does not matter.
    pieces = [i for i, count in enumerate(counts) for _ in range(count)]
    model.PIECES = pyo.RangeSet(0, len(pieces) - 1)
    model.PLACES = model.PIECES * model.GPUS
    settled = 2 * num_gpus if slots == 2 else num_gpus + 1
    known = {p: min(p, 2 * num_gpus - 1 - p) for p in range(settled)}

    def may(m: pyo.ConcreteModel, p: int, g: int) -> tuple[int, int]:
        return int(known.get(p) == g), int(known.get(p, g) == g)

    model.trace = pyo.Var(model.PLACES, domain=pyo.Binary, bounds=may)
    model.trace_once = pyo.Constraint(model.PIECES, rule=lambda m, p: pyo.quicksum(m.trace[p, :]) == 1)
    model.trace_slots = pyo.Constraint(model.GPUS, rule=lambda m, g: pyo.quicksum(m.trace[:, g]) == slots)
    ours = switched(
        model, "trace_loads", model.PLACES, lambda p, g: (model.trace[p, g], model.shares[pieces[p]]), most=1
    )
    later = range(settled, len(pieces))
    model.full = pyo.Var(later, model.GPUS, domain=pyo.Binary)

    def before(p: int, g: int) -> Any:
        return pyo.quicksum(ours[q, g] for q in range(p))

    def is_full(m: pyo.ConcreteModel, p: int, g: int) -> Any:
        return slots * m.full[p, g] <= pyo.quicksum(m.trace[q, g] for q in range(p))

    def least_load(m: pyo.ConcreteModel, p: int, g: int, other: int) -> Any:
        return before(p, g) <= before(p, other) + slots * (1 - m.trace[p, g] + m.full[p, other])

    model.is_full = pyo.Constraint(later, model.GPUS, rule=is_full)
    model.least_load = pyo.Constraint(later, model.GPUS, model.GPUS, rule=least_load)

    model.heuristic_value = pyo.Var(bounds=(0, slots))
    model.fullest = pyo.Var(model.GPUS, domain=pyo.Binary)
    model.one_fullest = pyo.Constraint(expr=pyo.quicksum(model.fullest[:]) == 1)
    model.is_heuristic = pyo.Constraint(
        model.GPUS,
        rule=lambda m, g: m.heuristic_value <= before(len(pieces), g) + slots * (1 - m.fullest[g]),
    )
    return model


def read(model: pyo.ConcreteModel) -> EplbPlacement:
    """Return the experts in the values of ``shares``.

    Where these tie, the policy would take the expert that came first: those of the greatest are raised the least.
    """
    shares = np.array([max(0.0, snapped(model.shares[i].value)) for i in model.EXPERTS])
    ahead = np.where(shares < shares[0], len(shares), 0) + np.arange(len(shares), 0, -1)
    loads = np.array(model.counts) * shares * (1 + AHEAD * ahead)
    return EplbPlacement(loads=loads, num_gpus=model.num_gpus, slots=model.num_slots)


WORST_CASES = {"released_global": WorstCaseModel(released_global, read, size="num_experts", ties="either way")}
