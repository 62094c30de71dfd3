"""The origin of an instance that was drawn from real data, as :attr:`instances.base.Instance.origin` keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["origin"]


def origin(
    reader: str,
    *,
    throughputs: Mapping[Any, Any] | None = None,
    trace: Mapping[Any, Any] | None = None,
    placements: Mapping[Any, Any] | None = None,
    rows: ArrayLike = (),
    jobs: Sequence[Any] | None = None,
    servers: Sequence[str] | None = None,
    repairs: Mapping[str, int] | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Describe the origin of an instance of a ``from_trace`` or ``from_placements``.

    Parameters
    ----------
    reader : str
        The function that made the fields.
    throughputs, trace, placements : mapping, optional
        The ``attrs`` of what was read; their readings are told.
    rows : (n,) int
        Which rows of the trace became jobs, counted from 0 among those that were read.
    jobs, servers : sequence, optional
        What these are called in the file.
    repairs : mapping, optional
        What was changed, and for how many jobs; what was changed for none is left out.
    options : mapping, optional
        What the fields depend on besides; those that are None are left out.
    """
    files = {"throughputs": throughputs, "trace": trace, "placements": placements}
    told: dict[str, Any] = {"reader": reader}
    told |= {name: attrs.get("reading") for name, attrs in files.items() if attrs is not None}
    if trace is not None:
        told["rows"] = np.asarray(rows, int).tolist()
    told |= {
        name: [_plain(one) for one in some] for name, some in (("jobs", jobs), ("servers", servers)) if some is not None
    }
    told["repairs"] = {what: int(count) for what, count in (repairs or {}).items() if count}
    told["options"] = {name: _plain(value) for name, value in (options or {}).items() if value is not None}
    return told


def _plain(value: Any) -> Any:
    """Return a value in JSON's types."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return value if isinstance(value, (str, int, float, list, tuple, dict)) else str(value)
