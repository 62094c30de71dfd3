"""The whole program of a policy at once, by HiGHS on its arrays, without Pyomo's objects."""

from __future__ import annotations

from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.methods.policy import PolicyMethod, Task

__all__ = ["METHOD"]


def _run(task: Task, options: Options) -> Result:
    return task.generation(options, generates=False).run()


METHOD = PolicyMethod(
    name="one program of arrays",
    short="arrays",
    proves="prices of the linear program",
    where="every instance",
    run=_run,
)
