"""Small clusters, and what is tested of all problems that choose configurations."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import formulations
from instances.base import Instance


def cluster_of(number: Any, gpus: Any, cpus: Any, memory: Any) -> dict[str, Any]:
    """Fields of so many servers, all alike, or of each machine type."""
    return {"num_servers": number, "server_gpus": gpus, "server_cpus": cpus, "server_memory": memory}


def assert_fair_by_definition(
    cls: type[Instance[Any]],
    tiny: Callable[[np.random.Generator], dict[str, Any]],
    fair_by_definition: Callable[[dict[str, Any]], list[float | None]],
    draws: Iterable[int],
) -> None:
    """The fair share of drawn instances is the best within the proportional one."""
    rng, looked = np.random.default_rng(1), 0
    for _ in draws:
        fields = tiny(rng)
        fair = fair_by_definition(fields)
        if None not in fair:
            assert cls(**fields).fair_throughputs.tolist() == fair  # type: ignore[attr-defined]
            looked += 1
    assert looked > 30


def assert_dominated_change_nothing(
    cls: type[Instance[Any]],
    drawn: Iterable[dict[str, Any]],
    least: int,
    models: Sequence[Callable[..., Any]] = (lambda instance: instance,),
) -> None:
    """With the same data and every configuration kept no optimum is another; at least so many are left out."""
    left_out = 0
    for fields in drawn:
        instance, whole = cls(**fields), cls(**fields)
        vars(whole)["undominated"] = tuple(np.arange(len(table)) for table in whole.configs)
        left_out += sum(map(len, whole.undominated)) - sum(map(len, instance.undominated))
        for model_of in models:
            ours, full = (formulations.solve(model_of(one)) for one in (instance, whole))
            assert ours.status == full.status
            if full.status == "optimal":
                assert ours.bound == pytest.approx(full.bound, abs=1e-9)
                assert ours.objective == pytest.approx(full.objective)
    assert left_out >= least
