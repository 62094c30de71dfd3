"""Walks of swaps: things on servers that are overloaded, moved and swapped until none is.

One overloaded server after another, drawn at random, gives away or swaps what lowers the overload most, or raises it
least; what was moved stays for some steps (Glover's tabu search), so that the walk leaves places that nothing improves.

References
----------
Glover, "Tabu search, part I" (1989).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from instances.schema import FloatArray, IntArray

__all__ = ["ROUNDING", "STEPS", "overload", "placed", "walk"]

STEPS = (3000, 30)
"""Moves and swaps of a walk: at most the first, and the second for each thing."""
PATIENCE = 300
"""Steps without less overload after which the least is counted anew."""
STAYS = (5, 15)
"""Steps that what was moved stays, drawn from the first to below the second."""
ROUNDING = 1e-9
"""Excess, relative to a server, that is no overload; the judge has the last word."""


def overload(used: FloatArray, limit: FloatArray) -> FloatArray:
    """(...) float: how far what is used, (..., r), is above a server's limits, all resources together."""
    beyond: FloatArray = np.maximum(used - limit - ROUNDING, 0.0).sum(axis=-1)
    return beyond


def placed(size: FloatArray, num_servers: int, limit: FloatArray) -> IntArray:
    """Place things, the largest first, each where overload rises least and then the fullest resource is least full.

    Parameters
    ----------
    size : (m, r) float
        What each thing takes of each resource, as fractions of a server.
    num_servers : int
    limit : (r,) float
        What a server has: 1, or 0 where it has nothing.

    Returns
    -------
    (m,) int
    """
    home, used = np.full(len(size), -1), np.zeros((num_servers, len(limit)))
    for thing in np.argsort(-size.max(axis=1), kind="stable").tolist():
        then = used + size[thing]
        rise = overload(then, limit) - overload(used, limit)
        home[thing] = np.lexsort((then.max(axis=1), rise))[0]
        used[home[thing]] += size[thing]
    return home


def walk(
    size: FloatArray,
    home: IntArray,
    num_servers: int,
    limit: FloatArray,
    rng: np.random.Generator,
    *,
    steps: int = STEPS[0],
    late: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[IntArray, float]]:
    """Yield homes and their overload wherever that is less than before, or than since it was counted anew.

    Parameters
    ----------
    size : (m, r) float
    home : (m,) int
    num_servers : int
    limit : (r,) float
    rng : Generator
    steps : int
        Moves and swaps at most.
    late : callable
        Whether time is up, asked every now and then.

    Notes
    -----
    The walk ends when it has come to no overload and is asked for more, after so many steps, and when time is up.
    """
    things, servers = len(size), np.arange(num_servers)
    # After the things nothing, once for each server: swapped for that, a thing just goes there.
    size = np.concatenate([size, np.zeros((num_servers, len(limit)))])
    home, used = np.append(home, servers), np.zeros((num_servers, len(limit)))
    np.add.at(used, home, size)
    over = overload(used, limit)
    stays = np.zeros(len(size), np.int64)
    best, low, since = np.inf, np.inf, 0
    for step in range(min(steps, STEPS[1] * things)):
        if step % 20 == 0 and late():
            return
        now = float(over.sum())
        best, since = min(best, now), since + 1
        if now < low - ROUNDING:
            low, since = now, 0
            yield home[:things].copy(), now
        elif since > PATIENCE:
            low, since = now, 0
        crowded = np.flatnonzero(over > 0)
        here = int(rng.choice(crowded if len(crowded) else servers))
        mine, others = np.flatnonzero(home[:things] == here), np.flatnonzero(home != here)
        if not (len(mine) and len(others)):
            return
        there = home[others]
        change = size[others] - size[mine][:, None]
        rise = overload(used[here] + change, limit) - over[here]
        rise += overload(used[there] - change, limit) - over[there]
        waits = (stays[mine] > step)[:, None] | (stays[others] > step)
        # What stays is moved all the same where that leads to less overload than ever.
        rise = np.where(waits & (now + rise >= best - ROUNDING), np.inf, rise + 1e-4 * rng.random(rise.shape))
        first, second = np.unravel_index(int(rise.argmin()), rise.shape)
        out, into, to = int(mine[first]), int(others[second]), int(there[second])
        home[out] = to
        stays[out] = step + rng.integers(*STAYS)
        if into < things:
            home[into] = here
            stays[into] = step + rng.integers(*STAYS)
        used[here] += change[first, second]
        used[to] -= change[first, second]
        over[[here, to]] = overload(used[[here, to]], limit)
