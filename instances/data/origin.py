"""Where an instance that was drawn from real data comes from, as :attr:`instances.base.Instance.origin` keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["origin"]


def origin(
    reader: str,
    *,
    throughputs: Mapping[Any, Any],
    trace: Mapping[Any, Any] | None = None,
    rows: ArrayLike = (),
    jobs: Sequence[Any] | None = None,
    repairs: Mapping[str, int] | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a problem's ``from_trace`` tells of an instance.

    Parameters
    ----------
    reader : str
        The function that made the fields.
    throughputs, trace : mapping
        The ``attrs`` of what was read; their readings are told.
    rows : (n,) int
        Which rows of the trace became jobs, counted from 0 among those that were read.
    jobs : sequence, optional
        What these are called in the trace.
    repairs : mapping, optional
        What was changed, and for how many jobs; what was changed for none is left out.
    options : mapping, optional
        What the fields depend on besides; those that are None are left out.
    """
    told: dict[str, Any] = {"reader": reader, "throughputs": throughputs.get("reading")}
    if trace is not None:
        told |= {"trace": trace.get("reading"), "rows": np.asarray(rows, int).tolist()}
    if jobs is not None:
        told["jobs"] = [_plain(job) for job in jobs]
    told["repairs"] = {what: int(count) for what, count in (repairs or {}).items() if count}
    told["options"] = {name: _plain(value) for name, value in (options or {}).items() if value is not None}
    return told


def _plain(value: Any) -> Any:
    """A value in JSON's types."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value if isinstance(value, (str, int, float, list, tuple, dict)) else str(value)
