"""Pictures of instances as graphs: which servers host which jobs, and who gains from sharing with whom.

networkx and Matplotlib are imported when something is drawn, never with this module, so that the
data of a problem needs NumPy alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from instances.pictures import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from instances.aryl.reclaim import Reclaim, ReclaimPlan
    from instances.gavel.sharing import Allocation, Sharing

__all__ = ["graph", "hosts", "pairs"]

PLAIN, FAINT = "#57606a", "#c8ccd1"
WIDEST = 6.0
"""Width of the edge of greatest gain, in points."""
MOST_NAMED = 40
"""Nodes up to which a graph shows their names."""


def graph(
    axes: Axes,
    places: Mapping[Hashable, tuple[float, float]],
    edges: Sequence[tuple[Hashable, Hashable]],
    *,
    names: Mapping[Hashable, str],
    colours: Mapping[Hashable, str],
    squares: Sequence[Hashable] = (),
    edge_colours: Sequence[str],
    widths: Sequence[float],
    styles: Sequence[str],
) -> None:
    """Draw nodes at their places and edges between them.

    Parameters
    ----------
    axes : matplotlib Axes
    places : mapping
        Node to its position.
    edges : sequence of pairs of nodes
    names, colours : mapping
        Node to what is written on it, where nodes are few, and to its colour.
    squares : sequence of nodes
        Nodes drawn as squares; the others are circles.
    edge_colours, widths, styles : sequence
        Of each edge: colour, width in points, and line style.
    """
    import networkx as nx

    drawn = nx.Graph()
    drawn.add_nodes_from(places)
    size = 320 if len(places) <= MOST_NAMED else 40
    nx.draw_networkx_edges(
        drawn,
        places,
        edgelist=list(edges),
        edge_color=list(edge_colours),
        width=list(widths),
        style=list(styles),
        ax=axes,
    )
    square = set(squares)
    for nodes, shape in (([n for n in places if n not in square], "o"), (list(squares), "s")):
        if nodes:
            face = [colours[node] for node in nodes]
            nx.draw_networkx_nodes(
                drawn,
                places,
                nodelist=nodes,
                node_color=face,
                node_shape=shape,
                node_size=size,
                edgecolors="white",
                ax=axes,
            )
    if len(places) <= MOST_NAMED:
        nx.draw_networkx_labels(drawn, places, labels=dict(names), font_size=8, font_color="white", ax=axes)
    axes.axis("off")


def hosts(instance: Reclaim, plan: ReclaimPlan | None = None, ax: Axes | None = None) -> Axes:
    """Draw jobs, the servers that host them, and what returning servers does to them.

    Jobs are circles on the left, near their servers, which are squares on the right.  A line is a
    job's base workers on a server, a dotted one flexible workers only.  Returned servers, the jobs
    that this preempts, and the lines of these jobs are marked.

    Parameters
    ----------
    instance : Reclaim
    plan : ReclaimPlan, optional
        Without one nothing is marked.
    ax : matplotlib Axes, optional
        A new figure by default.
    """
    returned = np.zeros(instance.num_servers, bool)
    preempted = np.zeros(instance.num_jobs, bool)
    if plan is not None:
        preempted = instance.preempted(plan)
        returned[plan.servers] = True
    held = instance.gpus > 0
    middles = (held @ np.arange(instance.num_servers)) / np.maximum(held.sum(axis=1), 1)
    order = np.argsort(middles, kind="stable").tolist()
    places: dict[Hashable, tuple[float, float]] = {}
    for side, kind, nodes in ((0.0, "job", order), (1.0, "server", list(range(instance.num_servers)))):
        for rank, node in enumerate(nodes):
            places[kind, node] = (side, 1 - (rank + 0.5) / len(nodes))
    marked, servers = [bool(p) for p in preempted], [("server", server) for server in range(instance.num_servers)]
    colours: dict[Hashable, str] = {
        ("job", j): COLOURS[5] if marked[j] else COLOURS[0] for j in range(instance.num_jobs)
    }
    colours |= {("server", i): COLOURS[1] if returned[i] else PLAIN for i in range(instance.num_servers)}
    edges = [(int(job), int(server)) for job, server in np.argwhere(held)]
    ax = _axes(ax)
    graph(
        ax,
        places,
        [(("job", job), ("server", server)) for job, server in edges],
        names={node: str(node[1]) for node in [("job", job) for job in order] + servers},
        colours=colours,
        squares=servers,
        edge_colours=[COLOURS[5] if marked[job] else FAINT if plan is not None else PLAIN for job, _ in edges],
        widths=[1.5 if marked[job] else 1.0 for job, _ in edges],
        styles=["solid" if instance.hosts[job, server] else "dotted" for job, server in edges],
    )
    title = f"{instance.num_jobs} jobs on {instance.num_servers} servers"
    if plan is not None:
        title += (
            f": {_number(int(returned.sum()), 'server')} returned, {_number(int(preempted.sum()), 'job')} preempted"
        )
    ax.set_title(title, fontsize="medium")
    kinds = [("job", "o", COLOURS[0]), ("server", "s", PLAIN)]
    if plan is not None:
        kinds += [("preempted", "o", COLOURS[5]), ("returned", "s", COLOURS[1])]
    _legend(ax, kinds)
    return ax


def pairs(instance: Sharing, gains: ArrayLike, plan: Allocation | None = None, ax: Axes | None = None) -> Axes:
    """Draw jobs on a circle, and a line between two that gain from sharing workers, the wider the more.

    Parameters
    ----------
    instance : Sharing
        Jobs of any of Gavel's policies.
    gains : (q,) float
        What packing gains each pair, such as ``heuristics.gavel.sharing.packing_worth``; pairs
        that gain nothing have no line.
    plan : Allocation, optional
        Pairs to which it gives time are marked, whatever they gain.
    ax : matplotlib Axes, optional
        A new figure by default.

    Raises
    ------
    ValueError
        When there are not as many gains as pairs.
    """
    gained = np.asarray(gains, float)
    if gained.shape != (instance.num_pairs,):
        raise ValueError(f"gains: got shape {gained.shape}, must be ({instance.num_pairs},), one for each pair")
    used = np.zeros(instance.num_pairs, bool)
    if plan is not None:
        used = plan.time_fractions[instance.num_jobs :].sum(axis=1) > 0
    shown = np.flatnonzero((gained > 0) | used)
    shown = shown[np.argsort(used[shown], kind="stable")]  # the marked ones on top
    angles = np.pi / 2 - 2 * np.pi * np.arange(instance.num_jobs) / instance.num_jobs
    places: dict[Hashable, tuple[float, float]] = {
        job: (float(np.cos(angle)), float(np.sin(angle))) for job, angle in enumerate(angles)
    }
    partnered = set(instance.pairs[used].ravel().tolist())
    most = float(gained.max(initial=0.0))
    ax = _axes(ax)
    graph(
        ax,
        places,
        [tuple(pair) for pair in instance.pairs[shown].tolist()],
        names={job: str(job) for job in range(instance.num_jobs)},
        colours={job: COLOURS[5] if job in partnered else COLOURS[0] for job in range(instance.num_jobs)},
        edge_colours=[COLOURS[5] if used[pair] else FAINT if plan is not None else PLAIN for pair in shown],
        widths=[max(0.5, WIDEST * float(gained[pair]) / most) if most > 0 else 0.5 for pair in shown],
        styles=["solid"] * len(shown),
    )
    ax.set_aspect("equal")
    title = f"{_number(int((gained > 0).sum()), 'pair')} of {instance.num_jobs} jobs gain from packing"
    ax.set_title(title + (f", {int(used.sum())} packed" if plan is not None else ""), fontsize="medium")
    if plan is not None:
        _legend(ax, [("alone", "o", COLOURS[0]), ("packed", "o", COLOURS[5])])
    return ax


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _legend(axes: Axes, kinds: Sequence[tuple[str, str, str]]) -> None:
    """Names of markers of a shape and a colour, beside the picture."""
    for name, shape, colour in kinds:
        axes.plot([], [], linestyle="none", marker=shape, color=colour, label=name)
    options: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": 8}
    axes.legend(**options)


def _number(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"
