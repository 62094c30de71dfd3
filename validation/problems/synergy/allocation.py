"""Entry of synergy.allocation: promises of its heuristics, and small instances to test them on."""

from __future__ import annotations

from heuristics.synergy import allocation as fast
from instances.synergy.allocation import SynergyAllocation, SynergyAllocationPlan, from_trace, generate
from validation.catalogue import Heuristic, named
from validation.kinds.promises import BreaksOnly, Holds, NeverWorseThan, Relabelled
from validation.problems.synergy.sensitivity import fair_by_default, jobs, sensitive_entry
from validation.testing import st

__all__ = ["ENTRY", "strategy"]


@st.composite
def strategy(draw: st.DrawFn, *, max_servers: int = 3, max_gpus: int = 4, max_configs: int = 5) -> SynergyAllocation:
    """Draw jobs that fit the cluster's GPUs, with any configurations besides one within the proportional share."""
    return SynergyAllocation(**draw(jobs(max_servers, max_gpus, max_configs)))


OWED_MORE = "jobs can be owed more throughput than their share gives them"
FEASIBLE = BreaksOnly((), fair_by_default, "where no job is owed more than its share gives it")


def _fastest_within_share(instance: SynergyAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether no job has a faster configuration within its share, where none is owed more."""
    if not fair_by_default(instance):
        return True
    for table, share, choice in zip(instance.configs, instance.shares, plan.choices, strict=True):
        inside = (table[:, :2] <= share * (1 + 1e-9)).all(axis=1)
        if not inside[choice] or table[inside, 2].max() > table[choice, 2]:
            return False
    return True


def _share_or_cheapest(instance: SynergyAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether jobs have what their share gives or, where that is too slow, what needs least of the cluster."""
    needs = [amount or 1.0 for amount in instance.capacity]
    for job, (own, choice) in enumerate(
        zip(instance.proportional_choices.tolist(), plan.choices.tolist(), strict=True)
    ):
        table, fair = instance.configs[job], [one for one, enough in enumerate(instance.usable_configs[job]) if enough]
        if own in fair:
            if choice != own:
                return False
            continue
        inside = [one for one in fair if (table[one, :2] <= instance.shares[job] * (1 + 1e-9)).all()]
        cost = [
            sum(amount / all_of_it for amount, all_of_it in zip(row, needs, strict=False)) for row in table.tolist()
        ]
        allowed = inside or fair or list(range(len(table)))
        if choice not in allowed or cost[choice] > min(cost[one] for one in allowed) * (1 + 1e-9):
            return False
    return True


def _no_upgrade_fits(instance: SynergyAllocation, plan: SynergyAllocationPlan) -> bool:
    """Return whether there is nothing left for a faster configuration of any job."""
    left = instance.capacity - instance.chosen(plan.choices)[:, :2].sum(axis=0)
    if (left < 0).any():
        return True
    # Numbers of few binary digits add up exactly.
    most = left if all((table * 64 % 1 == 0).all() for table in instance.configs) else left * (1 - 1e-9)
    for table, allowed, choice in zip(instance.configs, instance.allowed_configs, plan.choices, strict=True):
        faster = table[(table[:, 2] > table[choice, 2]) & allowed]
        if (faster[:, :2] - table[choice, :2] <= most).all(axis=1).any():
            return False
    return True


ENTRY = sensitive_entry(
    title="How much CPU and memory each job gets, for the greatest total throughput",
    source="Synergy, section 4.1.1, program (1)-(5)",
    instance=SynergyAllocation,
    generate=generate,
    sizes=(4, 16, 64),
    heuristics=named(
        Heuristic(
            fast.proportional,
            infeasible_because=OWED_MORE,
            promises=(
                FEASIBLE,
                Relabelled(),
                Holds("each job is as fast as its share lets it", _fastest_within_share),
                Holds("a job that its share makes too slow has what needs least", _share_or_cheapest),
            ),
        ),
        Heuristic(
            fast.greedy_marginal,
            infeasible_because=OWED_MORE,
            promises=(
                FEASIBLE,
                NeverWorseThan("proportional", fair_by_default, "where no job is owed more than its share gives it"),
                Holds("no upgrade of a job fits any more", _no_upgrade_fits),
            ),
        ),
    ),
    from_trace=from_trace,
    strategy=strategy,
    wide={"max_servers": 6, "max_gpus": 16, "max_configs": 8},
)
