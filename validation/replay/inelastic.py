"""Schedulers that ElasticFlow is compared with (section 6.1): each job gets the GPUs that it asks for, or none.

Each is its published rule in a line or a few, decided anew at every slot; a job that does not fit is passed over.

References
----------
Gandiva: Xiao et al., OSDI 2018, section 4: GPUs for which jobs wait are time-sliced, so that jobs take turns.
Packing and trial migration are left out.  Tiresias: Gu et al., NSDI 2019, section 3: the least attained service
first, GPUs times time, here without queues, whose limits are set by hand.  Themis: Mahajan et al., NSDI 2020, section
3: the worst finish-time fairness first, without the auction.  Chronus: Gao et al., SoCC 2021: jobs whose deadlines can
be met are given leases, the others run on what is left, the shortest first; the former are a program's choice there,
a greedy one here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from instances.schema import BoolArray, FloatArray, IntArray
from validation.replay.engine import State

__all__ = ["ORDERS", "handed_out", "leased"]

ORDERS: dict[str, Callable[[State, FloatArray], FloatArray]] = {
    "gandiva": lambda state, remaining: state.ran,
    "tiresias": lambda state, remaining: state.service,
    "themis": lambda state, remaining: -_finish_time_ratios(state, remaining),
}
"""What each orders jobs by, the smallest first, of the state and the time left on the GPUs asked for, s."""


def _finish_time_ratios(state: State, remaining: FloatArray) -> FloatArray:
    """Return the time that each job takes if it runs from now on, over what it takes alone, (m,) float."""
    # The part of the work that is left takes as much of the whole time.
    alone = remaining * (state.left + state.done) / state.left
    ratios: FloatArray = (state.now - state.arrivals + remaining) / alone
    return ratios


def handed_out(asked: IntArray, order: Iterable[int], free: int) -> IntArray:
    """Return the GPUs of each job: in order, those it asks for, if they are left, (m,) int."""
    gpus = np.zeros(len(asked), np.int64)
    for job in order:
        if asked[job] <= free:
            gpus[job] = asked[job]
            free -= asked[job]
    return gpus


def leased(asked: IntArray, needed: IntArray, slots: IntArray, num_gpus: int) -> BoolArray:
    """Return which jobs hold the first slot, of those that keep their deadlines, (m,) bool.

    By deadline, each takes the first slots in which the GPUs that it asks for are left, and is kept if they are enough.

    Parameters
    ----------
    asked, needed, slots : (m,) int
        GPUs that each asks for, slots that it needs on them, and slots until its deadline, 0 for a late one and for one
        without.
    num_gpus : int
    """
    free = np.full(int(slots.max(initial=0)), num_gpus)
    first = np.zeros(len(asked), bool)
    for job in np.argsort(slots, kind="stable").tolist():
        fits = np.flatnonzero(free[: slots[job]] >= asked[job])[: needed[job]]
        if 0 < needed[job] == len(fits):
            free[fits] -= asked[job]
            first[job] = fits[0] == 0
    return first
