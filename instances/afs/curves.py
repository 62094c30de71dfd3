"""Throughput curves from measurements: how fast a model runs on 1, 2, 3, ... GPUs.

Measured curves need not rise, nor be concave, and have gaps.  They are refused, by the model's name,
unless :func:`curves` is asked to repair them, and then it says what it did.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from instances.base import InstanceError
from instances.data.elasticflow import read_throughputs
from instances.data.lines import Source
from instances.hulls import upper_hull
from instances.schema import FloatArray

__all__ = ["Curves", "RepairWarning", "curves"]


class RepairWarning(UserWarning):
    """Measured throughputs were changed so that curves rise and are concave."""


@dataclass(frozen=True)
class Curves:
    """Throughput curves of models.

    Attributes
    ----------
    tables : dict of (str, int) to (num_gpus+1,) float
        For each model and global batch size, iterations/s at 0 to num_gpus GPUs.
    repairs : tuple of str
        What was changed, one line for each curve; empty where nothing was.
    attrs : dict
        How the tables were read, under "reading".
    """

    tables: Mapping[tuple[str, int], FloatArray]
    repairs: tuple[str, ...]
    attrs: Mapping[Any, Any] = field(default_factory=dict, compare=False)


def curves(folder: Source, *, num_gpus: int, models: Sequence[str] | None = None, repair: bool = False) -> Curves:
    """Throughput curves up to ``num_gpus`` from a folder of tables, concave and never falling.

    Between measured numbers of GPUs a curve is linear, and beyond the last it is flat.  A curve is
    in order if every number of GPUs of the table that it takes to reach ``num_gpus`` was measured (no
    empty or zero cell), and no step falls or is steeper, per GPU, than the one before.

    Parameters
    ----------
    folder : path, open file or DataFrame
        Tables for :func:`instances.data.elasticflow.read_throughputs`, mostly a folder such as
        ``throughputs_A100``.
    num_gpus : int
        Last point of the curves.
    models : sequence of str, optional
        Use the tables of these models only.
    repair : bool
        Bring curves in order instead of refusing them: leave out what was not measured, then take
        the running maximum (a job can leave GPUs idle), then the upper concave hull (a job can
        alternate between two shares).

    Raises
    ------
    InstanceError
        When a file is malformed, there is no table for a model, or a curve is not in order and
        ``repair`` is false; the message names the model and its batch size.
    """
    measured = read_throughputs(folder)
    attrs = measured.attrs
    name = attrs["reading"]["source"]
    if models is not None:
        present = measured.index.get_level_values("model")
        missing = sorted(set(models) - set(present))
        if missing:
            raise InstanceError(f"{name}: there is no throughput table of {missing[0]}")
        measured = measured[present.isin(list(models))]
    counts = sorted(int(gpus) for gpus in measured.columns)
    last = min((count for count in counts if count >= num_gpus), default=num_gpus)
    kinds: list[tuple[str, int]] = list(measured.index)
    tables: dict[tuple[str, int], FloatArray] = {}
    repairs = []
    for (model, batch_size), rates in zip(kinds, measured[counts].to_numpy(float).tolist(), strict=True):
        points = {gpus: rate for gpus, rate in zip(counts, rates, strict=True) if gpus <= last}
        kind = f"{model} at batch size {batch_size}"
        faults = _faults(points)
        if faults and not repair:
            raise InstanceError(f"{name}: {kind}: {faults[0]}; have it repaired (repair=True), or leave the model out")
        known = _measured(points)
        if len(known) == 1:
            raise InstanceError(f"{name}: {kind}: nothing was measured on up to {last} GPUs")
        if faults:
            counted = [count for count, _ in known]
            rising = [*accumulate((rate for _, rate in known), max)]
            known = [(counted[corner], rising[corner]) for corner in upper_hull(counted, rising)]
            repairs.append(f"{kind}: {'; '.join(faults)}")
        corners = np.array(known, float)
        tables[model, batch_size] = np.interp(np.arange(num_gpus + 1), corners[:, 0], corners[:, 1])
    return Curves(tables, tuple(repairs), attrs)


def _measured(points: Mapping[int, float]) -> list[tuple[int, float]]:
    """Points of a curve that were measured, after (0, 0)."""
    return [(0, 0.0), *((gpus, rate) for gpus, rate in points.items() if not math.isnan(rate))]


def _faults(points: Mapping[int, float]) -> list[str]:
    """List the faults that keep a curve from being concave and never falling."""
    faults = [f"no throughput on {gpus} GPUs" for gpus, rate in points.items() if math.isnan(rate)]
    known = _measured(points)
    steepest = math.inf
    for (few, slow), (many, fast) in pairwise(known):
        slope = (fast - slow) / (many - few)
        if slope < 0:
            faults.append(f"{fast:g} iterations/s on {many} GPUs after {slow:g} on {few}")
        elif slope > steepest:
            faults.append(f"more gain per GPU from {few} to {many} GPUs than before")
        steepest = min(steepest, max(slope, 0.0))
    return faults
