"""The program of a policy over classes of columns and rows that are alike (:mod:`formulations.engine.folding`)."""

from __future__ import annotations

from formulations.engine.highs import Result
from formulations.engine.options import Options
from formulations.methods import GaveUp
from formulations.methods.policy import PolicyMethod, Task

__all__ = ["METHOD"]


def _run(task: Task, options: Options) -> Result:
    folding = task.folding
    if folding is None:
        raise GaveUp("too few columns are alike")
    result = options.session().run(folding.program, interior_rows=task.known.interior_rows)
    if result.status == "optimal":
        result = folding.unfold(result)
    if result.status != "optimal":
        raise GaveUp(f"the program over classes proves nothing of the whole: {result.message}")
    return result


METHOD = PolicyMethod(
    name="classes of columns that are alike",
    short="classes",
    proves="prices of the program over classes, split among their members and checked on the whole program",
    where="instances of which half of the columns, or more, have a twin",
    run=_run,
)
