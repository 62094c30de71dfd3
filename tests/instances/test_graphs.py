"""Pictures of instances as graphs: every node and edge that the data has, and no other, is drawn."""

from collections.abc import Iterator

import numpy as np
import pytest
from matplotlib import colors, pyplot
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection

from heuristics.aryl.reclaim import server_fraction
from heuristics.gavel.sharing import matched_packing, packing_worth
from instances import graphs
from instances.aryl.reclaim import Reclaim, ReclaimPlan, generate, six_servers
from instances.gavel.max_min_fairness import MaxMinFairness
from instances.gavel.max_min_fairness import generate as generate_jobs
from instances.gavel.sharing import Allocation
from instances.pictures import COLOURS


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def nodes(axes: Axes) -> list[int]:
    """How many nodes each of the shapes has."""
    return [len(shape.get_offsets()) for shape in axes.collections if isinstance(shape, PathCollection)]


def lines(axes: Axes) -> LineCollection:
    (found,) = [lines for lines in axes.collections if isinstance(lines, LineCollection)]
    return found


def number_of(colour: str, shades: np.ndarray) -> int:
    return int(np.isclose(shades, colors.to_rgba(colour)).all(axis=1).sum())


def coloured(axes: Axes, colour: str) -> int:
    """Nodes of a colour."""
    shapes = [shape for shape in axes.collections if isinstance(shape, PathCollection)]
    return sum(number_of(colour, np.broadcast_to(s.get_facecolor(), (len(s.get_offsets()), 4))) for s in shapes)


@pytest.mark.parametrize("instance", [six_servers(), generate(0), generate(3, num_servers=7, elastic=0.6)])
def test_every_job_server_and_host_is_drawn(instance: Reclaim) -> None:
    axes = graphs.hosts(instance)
    assert nodes(axes) == [instance.num_jobs, instance.num_servers]
    assert len(lines(axes).get_segments()) == (instance.gpus > 0).sum()
    assert coloured(axes, COLOURS[5]) == coloured(axes, COLOURS[1]) == 0
    dotted = [dashes is not None for _, dashes in lines(axes).get_linestyle()]
    assert sum(dotted) == ((instance.gpus > 0) & ~instance.hosts).sum()


@pytest.mark.parametrize("instance", [six_servers(), generate(0)])
def test_returned_servers_and_preempted_jobs_are_marked(instance: Reclaim) -> None:
    plan = server_fraction(instance)
    axes = graphs.hosts(instance, plan)
    preempted = instance.preempted(plan)
    assert coloured(axes, COLOURS[1]) == instance.demand
    assert coloured(axes, COLOURS[5]) == preempted.sum()
    assert number_of(COLOURS[5], lines(axes).get_color()) == (instance.gpus[preempted] > 0).sum()
    assert f"{instance.demand} servers returned, {preempted.sum()} jobs preempted" in axes.get_title()


def test_lines_lead_from_the_job_to_the_server() -> None:
    instance = Reclaim(hosts=np.array([[True, False], [False, True]]), gpus=np.array([[1, 0], [0, 1]]), demand=1)
    axes = graphs.hosts(instance, ReclaimPlan(servers=[1]))
    assert np.array(lines(axes).get_segments()) == pytest.approx(
        np.array([[[0, 0.75], [1, 0.75]], [[0, 0.25], [1, 0.25]]])
    )
    assert "1 server returned, 1 job preempted" in axes.get_title()
    assert [text.get_text() for text in axes.texts] == ["0", "1", "0", "1"]


def test_names_are_left_out_where_nodes_are_many() -> None:
    assert len(graphs.hosts(generate(0)).texts) == 0


def test_pairs_that_gain_are_drawn_and_the_widest_gains_most() -> None:
    instance = generate_jobs(0, num_jobs=12, workers_per_pool=2, pair_fraction=0.6)
    gains = packing_worth(instance)
    axes = graphs.pairs(instance, gains)
    assert nodes(axes) == [12]
    assert len(lines(axes).get_segments()) == (gains > 0).sum()
    expected = np.maximum(0.5, graphs.WIDEST * gains[gains > 0] / gains.max())
    assert np.array(lines(axes).get_linewidth()) == pytest.approx(expected)
    assert coloured(axes, COLOURS[5]) == 0


def test_packed_pairs_are_marked() -> None:
    instance = generate_jobs(0, num_jobs=12, workers_per_pool=2, pair_fraction=0.6)
    plan = matched_packing(instance)
    used = (plan.time_fractions[12:].sum(axis=1) > 0).sum()
    _, given = pyplot.subplots()
    axes = graphs.pairs(instance, packing_worth(instance), plan, given)
    assert axes is given
    assert number_of(COLOURS[5], lines(axes).get_color()) == used
    assert coloured(axes, COLOURS[5]) == 2 * used
    assert axes.get_title().endswith(f"{used} packed")


def test_a_packed_pair_is_drawn_whatever_it_gains() -> None:
    instance = MaxMinFairness(throughputs=[[1.0]] * 3, num_workers=[1], pairs=[[0, 1], [1, 2]])
    plan = Allocation(time_fractions=[[0.0], [0.0], [0.5], [0.5], [0.0]])
    axes = graphs.pairs(instance, [0.0, 0.0], plan)
    assert len(lines(axes).get_segments()) == 1


def test_without_pairs_there_are_no_lines() -> None:
    axes = graphs.pairs(MaxMinFairness(throughputs=[[1.0]] * 3, num_workers=[1]), [])
    assert nodes(axes) == [3]
    drawn = [found.get_segments() for found in axes.collections if isinstance(found, LineCollection)]
    assert sum(map(len, drawn)) == 0


def test_one_gain_for_each_pair() -> None:
    instance = MaxMinFairness(throughputs=[[1.0]] * 2, num_workers=[1], pairs=[[0, 1]])
    with pytest.raises(ValueError, match=r"gains: got shape \(2,\), must be \(1,\)"):
        graphs.pairs(instance, [1.0, 2.0])
