"""Every problem draws its data and any plan for it, and what it draws is what the plan says."""

import functools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import formulations
from heuristics.aryl.reclaim import server_fraction
from instances import pictures
from instances.afs.elastic_sharing import ElasticSharing, Schedule, appendix_a
from instances.afs.gpu_placement import GpuPlacementPlan, two_machines
from instances.aryl.elastic_allocation import ElasticAllocationPlan, two_elastic_jobs
from instances.aryl.placement import ArylPlacementPlan, four_servers
from instances.aryl.reclaim import Reclaim, ReclaimPlan, six_servers
from instances.aryl.two_job import ArylTwoJobPlan, smaller_workload_first
from instances.base import Instance, Plan, PlanError
from instances.elasticflow.admission import AdmissionPlan, greedy_arrival
from instances.elasticflow.placement import ElasticFlowPlacementPlan, fragmented_server
from instances.gavel.max_min_fairness import MaxMinFairness, three_jobs
from instances.gavel.round_assignment import RoundAssignmentPlan, blocked_round
from instances.gavel.sharing import Allocation
from instances.schema import Scalar, declarations
from instances.synergy.allocation import SynergyAllocationPlan
from instances.synergy.allocation import generate as generate_synergy
from validation import CATALOGUE
from validation.kinds.witness import Judged, Witness
from validation.pages.drawing import own_style, plans_side_by_side

from ..files import COLLECTED


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}):
        yield
    pyplot.close("all")


def blank() -> Axes:
    return Figure(layout="constrained").add_subplot()


@functools.cache
def example(problem: str) -> tuple[Instance[Any], Plan, Plan]:
    """A generated instance that has a plan, its optimal plan, and one of a heuristic."""
    entry = CATALOGUE[problem]
    for seed in range(20):
        instance = entry.generate(seed, **{entry.size: entry.sizes[0]})
        plans = [
            heuristic.function(instance)
            for name, heuristic in entry.heuristics.items()
            if name not in ("random", "random_packing")
        ]
        found = [plan for plan in plans if plan is not None]
        exact = formulations.solve(instance, time_limit=20).plan
        if found and exact is not None:
            return instance, exact, found[0]
    raise AssertionError(f"{problem}: no instance with a plan among 20")


def changed(plan: Plan, change: Any) -> Plan:
    """A plan of the same shape with other numbers; a schedule keeps its times, which must increase."""
    fields = {name: declared for name, declared in declarations(type(plan)).items() if name != "times"}
    return replace(
        plan,
        **{
            name: 7 if isinstance(declared, Scalar) else change(getattr(plan, name))
            for name, declared in fields.items()
        },
    )


def perturbed(values: np.ndarray) -> np.ndarray:
    return ~values if values.dtype == bool else 2 * values[::-1] - 1


def rendered(axes: Axes) -> Axes:
    """Warnings of Matplotlib's come only when it draws."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    return axes


def labelled(axes: Axes) -> bool:
    return bool(axes.get_xlabel() and axes.get_ylabel())


@pytest.mark.parametrize("problem", CATALOGUE)
def test_the_data_alone(problem: str) -> None:
    instance, _, _ = example(problem)
    axes = rendered(instance.plot())
    assert axes.get_title() == problem
    assert labelled(axes)


@pytest.mark.parametrize("problem", CATALOGUE)
@pytest.mark.parametrize("which", [1, 2], ids=["optimal", "heuristic"])
def test_a_plan(problem: str, which: int) -> None:
    found = example(problem)
    instance, plan = found[0], found[which]
    axes = blank()
    assert instance.plot(plan, ax=axes) is axes  # type: ignore[arg-type]
    if which == 1:
        rendered(axes)
    name, said = axes.get_title().split("\n")
    assert name == problem
    broken = instance.violations(plan)
    if broken:
        assert said.startswith(f"infeasible: {broken[0]}")
    else:
        assert said == f"{instance.measure}: {instance.objective(plan):.6g}"
    assert labelled(axes)


@pytest.mark.parametrize("problem", CATALOGUE)
@pytest.mark.parametrize("change", [np.zeros_like, perturbed], ids=["zeros", "perturbed"])
def test_a_broken_plan(problem: str, change: Any) -> None:
    instance, exact, _ = example(problem)
    plan = changed(exact, change)
    axes = instance.plot(plan)
    if change is perturbed:
        rendered(axes)
    broken = instance.violations(plan)
    assert ("infeasible" in axes.get_title()) == bool(broken)
    if broken:
        assert str(broken[0]) in axes.get_title()
    if change is perturbed and problem in COLLECTED:
        assert broken
    assert labelled(axes)


@pytest.mark.slow
@pytest.mark.parametrize("problem", CATALOGUE)
def test_a_large_instance(problem: str) -> None:
    """What is too many to name is not named, and nothing warns."""
    entry = CATALOGUE[problem]
    instance = entry.generate(0, **{entry.size: entry.sizes[-1]})
    axes = rendered(instance.plot())
    box = axes.get_legend()
    assert box is None or len(box.get_texts()) <= pictures.MOST_IN_LEGEND + 3
    name = next(iter(entry.heuristics))
    plan = entry.heuristics[name].function(instance)
    if plan is not None:
        rendered(instance.plot(plan))


@pytest.mark.parametrize("problem", CATALOGUE)
def test_a_plan_of_another_problem(problem: str) -> None:
    instance, _, _ = example(problem)
    stranger = ReclaimPlan(servers=[0]) if problem != "aryl.reclaim" else ElasticAllocationPlan(extra_workers=[0])
    with pytest.raises(PlanError, match=problem):
        instance.plot(stranger)
    assert not pyplot.get_fignums()


# --- what stands there is what the plan says -------------------------------------------------------


def boxes(axes: Axes, colour: str) -> list[tuple[float, float, float, float]]:
    """Left, bottom, width and height of the filled bars of a colour, in order."""
    rgb = mpl.colors.to_rgb(colour)
    found = [bar for bar in axes.patches if bar.get_fill() and bar.get_facecolor()[:3] == rgb]
    return sorted(tuple(round(v, 9) for v in (*bar.get_xy(), bar.get_width(), bar.get_height())) for bar in found)


def hatched(axes: Axes) -> int:
    return sum(bar.get_hatch() is not None for bar in axes.patches)


def test_shares_over_time_are_the_schedule() -> None:
    instance = appendix_a()
    plan = Schedule(times=[0, 1800, 3600, 9000], shares=[[1, 1], [1, 1], [0, 2]])
    axes = instance.plot(plan, ax=blank())
    # The two spans without a change are one.
    assert boxes(axes, pictures.colour(0)) == [(0, 0, 3600, 1)]
    assert boxes(axes, pictures.colour(1)) == [(0, 1, 3600, 1), (3600, 0, 5400, 2)]


def test_a_dotted_line_at_each_completion() -> None:
    instance = ElasticSharing(num_gpus=1, work=[10, 20], throughputs=[[0, 1], [0, 1]])
    axes = instance.plot(Schedule(times=[0, 10, 30], shares=[[1, 0], [0, 1]]), ax=blank())
    dotted = [line.get_xdata()[0] for line in axes.lines if line.get_linestyle() == ":"]
    assert dotted == [10, 30]


def test_axes_that_are_shared_show_all_of_both_schedules() -> None:
    instance = ElasticSharing(num_gpus=2, work=[10], throughputs=[[0, 1, 2]])
    first, second = Figure().subplots(2, 1, sharex=True, sharey=True)
    rendered(instance.plot(Schedule(times=[0, 5], shares=[[2]]), ax=first))
    rendered(instance.plot(Schedule(times=[0, 10], shares=[[1]]), ax=second))
    assert first.get_xlim()[0] == first.get_ylim()[0] == 0
    assert first.get_xlim()[1] > 10


def test_servers_are_filled_with_the_gpus_on_them() -> None:
    instance = six_servers()
    axes = instance.plot(server_fraction(instance), ax=blank())
    for job, held in enumerate(instance.gpus):
        drawn = {round(left + width / 2): height for left, _, width, height in boxes(axes, pictures.colour(job))}
        assert drawn == {server: gpus for server, gpus in enumerate(held.tolist()) if gpus}
    assert hatched(axes) == 6  # jobs 0 and 1, on three servers each
    assert [bar.get_x() + 0.5 for bar in axes.patches if bar.get_width() == 1] == [3, 4, 5]


def test_no_server_returned() -> None:
    instance = Reclaim(hosts=[[True, True]], gpus=[[1, 1]], demand=0)
    axes = instance.plot(ReclaimPlan(servers=[]), ax=blank())
    assert hatched(axes) == 0
    assert "jobs preempted: 0" in axes.get_title()


def test_time_fractions_stand_by_type() -> None:
    instance = three_jobs()
    x = [[0.5, 0.0], [0.25, 0.5], [0.0, 0.5]]
    axes = instance.plot(Allocation(time_fractions=x), ax=blank())
    for job, row in enumerate(x):
        drawn = {round(left + width / 2): height for left, _, width, height in boxes(axes, pictures.colour(job))}
        assert drawn == {kind: time for kind, time in enumerate(row) if time}
    assert {text.get_text() for text in axes.texts} == {"0: 50%", "1: 25%", "1: 50%", "2: 50%"}


def test_types_of_one_pool_stand_one_above_the_other() -> None:
    instance = MaxMinFairness(
        throughputs=[[2, 1], [2, 1], [2, 1]],
        num_workers=[2],
        pools=[0, 0],
        scale_factors=[2, 1, 1],
        pairs=[[1, 2]],
        pair_throughputs=np.ones((1, 2, 2)),
    )
    plan = Allocation(time_fractions=[[0.5, 0.0], [0.25, 0.0], [0.0, 0.0], [0.0, 0.5]])
    axes = instance.plot(plan, ax=blank())
    assert boxes(axes, pictures.colour(0)) == [(-0.4, 0, 0.8, 1.0)]  # half the time on two workers
    assert boxes(axes, pictures.colour(1)) == [(-0.4, 1.0, 0.8, 0.25), (0.6, 1.25, 0.8, 0.5)]
    assert hatched(axes) == 1


def test_a_round_shows_the_workers_of_each_job() -> None:
    instance = blocked_round()
    axes = instance.plot(RoundAssignmentPlan(chosen=[[False], [True], [True], [True]]), ax=blank())
    assert [boxes(axes, pictures.colour(job)) for job in range(4)] == [
        [],
        [(-0.4, 0, 0.8, 1)],
        [(-0.4, 1, 0.8, 1)],
        [(-0.4, 2, 0.8, 1)],
    ]


def test_slots_and_refused_jobs() -> None:
    instance = greedy_arrival()
    plan = AdmissionPlan(admitted=[False, True, True], gpus=[[0, 0], [1, 0], [0, 1]])
    axes = instance.plot(plan, ax=blank())
    assert boxes(axes, pictures.colour(1)) == [(0, 0, 1, 1)]
    assert boxes(axes, pictures.colour(2)) == [(1, 0, 1, 1)]
    assert "job 0 refused" in axes.get_xlabel()


def test_blocks_and_moved_jobs() -> None:
    instance = fragmented_server()
    axes = instance.plot(ElasticFlowPlacementPlan(offsets=[0, 2, 4]), ax=blank())
    drawn = [boxes(axes, pictures.colour(job))[0] for job in range(3)]
    assert [(left, width) for left, _, width, _ in drawn] == [(0, 2), (2, 2), (4, 4)]
    assert hatched(axes) == 1


def test_a_block_across_servers_goes_on_in_the_next() -> None:
    instance = replace(fragmented_server(), num_gpus=16)
    axes = instance.plot(ElasticFlowPlacementPlan(offsets=[0, 4, 6]), ax=blank())
    assert [(left, width) for left, _, width, _ in boxes(axes, pictures.colour(2))] == [(0, 2), (6, 2)]


def test_extra_workers_stand_on_the_minimum() -> None:
    instance = two_elastic_jobs()
    axes = instance.plot(ElasticAllocationPlan(extra_workers=[2, 0]), ax=blank())
    assert [(bottom, height) for _, bottom, _, height in boxes(axes, pictures.colour(0))] == [(1, 2), (2, 0)]
    assert "2 of 2 GPUs" in axes.get_xlabel()


def test_workers_off_their_group_are_marked() -> None:
    instance = four_servers()
    axes = instance.plot(ArylPlacementPlan(workers=[[2, 0, 0, 0], [1, 3, 0, 0], [0, 1, 0, 0]]), ax=blank())
    assert [box[3] for box in boxes(axes, pictures.colour(1))] == [2, 6]
    assert hatched(axes) == 1


def test_two_jobs_until_both_end() -> None:
    axes = smaller_workload_first().plot(ArylTwoJobPlan(gpus=[2, 6]), ax=blank())
    assert boxes(axes, pictures.colour(1)) == [(0, 2, 20, 6)]
    assert [box[3] for box in boxes(axes, pictures.colour(0))] == [2, 6]


def test_kept_gpus_are_solid_and_new_ones_pale() -> None:
    axes = two_machines().plot(GpuPlacementPlan(gpus=[[0, 2], [4, 0], [0, 2]]), ax=blank())
    pale = {
        pictures.colour(job): sum(
            bar.get_height()
            for bar in axes.patches
            if bar.get_fill() and bar.get_alpha() and bar.get_facecolor()[:3] == mpl.colors.to_rgb(pictures.colour(job))
        )
        for job in range(3)
    }
    assert list(pale.values()) == [2, 2, 0]


def test_shares_of_cpu_and_memory() -> None:
    instance = generate_synergy(0, num_servers=1)
    plan = SynergyAllocationPlan(choices=instance.best_choices)
    axes = instance.plot(plan, ax=blank())
    given = instance.chosen(plan.choices)
    expected = given / np.column_stack([instance.shares, instance.fair_throughputs])
    for column in range(3):
        heights = [box[3] for box in boxes(axes, pictures.colour(column))]
        np.testing.assert_allclose(heights, expected[:, column], atol=1e-8)


# --- pieces -----------------------------------------------------------------------------------------


def test_24_jobs_have_colours_of_their_own() -> None:
    assert len({pictures.colour(job) for job in range(24)}) == 24
    assert pictures.colour(24) == pictures.colour(0)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [([3], "job 3"), ([0, 2], "jobs 0 and 2"), ([0, 2, 5], "jobs 0, 2 and 5"), (range(9), "9 jobs")],
)
def test_jobs_in_words(numbers: list[int], words: str) -> None:
    assert pictures.jobs(numbers) == words


def test_negative_amounts_hang_below() -> None:
    axes = blank()
    pictures.stacked(axes, [[2.0], [-1.0], [3.0], [-2.0]])
    assert [(bar.get_y(), bar.get_height()) for bar in axes.patches] == [(0, 2), (0, -1), (2, 3), (-1, -2)]


def test_legends_name_few_jobs_only() -> None:
    few, many = blank(), blank()
    pictures.legend(few, ["a"] * 12, {"mark": pictures.HATCHED})
    pictures.legend(many, ["a"] * 13, {"mark": pictures.HATCHED})
    box, marks = few.get_legend(), many.get_legend()
    assert box is not None
    assert marks is not None
    assert len(box.get_texts()) == 13
    assert [text.get_text() for text in marks.get_texts()] == ["mark"]


def test_a_problem_without_a_picture_has_a_table() -> None:
    class Plain(Reclaim):
        problem = "plain.reclaim"
        _draw = Instance._draw

    instance = Plain(hosts=[[True, False]], gpus=[[1, 0]], demand=1)
    axes = rendered(instance.plot(ax=blank()))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["hosts 0", "hosts 1", "gpus 0", "gpus 1"]
    assert labelled(axes)
    empty = rendered(Plain(hosts=np.zeros((0, 2), bool), gpus=np.zeros((0, 2), int), demand=0).plot(ax=blank()))
    assert empty.get_title() == "plain.reclaim"


# --- a hunt's witness ---------------------------------------------------------------------------------


@pytest.fixture
def witness() -> Witness:
    instance = six_servers()
    plan, exact = ReclaimPlan(servers=[0, 1, 2]), server_fraction(instance)
    judged = Judged(instance, plan, 4.0, exact, 2.0, 1.0)
    return Witness("aryl.reclaim", "first", judged, 1.5, "random search", 12, 3, ())


def test_a_witness_in_a_few_lines(witness: Witness) -> None:
    lines = str(witness).splitlines()
    assert lines == [
        "aryl.reclaim, first: gap 100%, difference 2",
        "4 where the optimum is 2 (jobs preempted)",
        "instance: n = 6, s = 6, demand = 3",
        "found by random search, seed 3, 12 instances judged; worst before shrinking 150%",
    ]


def test_a_witness_shows_both_plans(witness: Witness) -> None:
    page = witness._repr_html_()
    assert page.count("<svg") == 1
    for said in (">the data<", ">first<", ">jobs preempted: 4<", ">jobs preempted: 2<"):
        assert said in page


def test_a_witness_without_a_plan(witness: Witness) -> None:
    alone = replace(witness, judged=replace(witness.judged, plan=None, value=None, gap=np.inf))
    assert "no feasible plan where the optimum is 2" in str(alone)
    assert ">first<" not in alone._repr_html_()


@pytest.mark.slow
def test_the_page_of_a_large_witness_leaves_out_the_numbers(witness: Witness, tmp_path: Any) -> None:
    small = witness.save(tmp_path).with_suffix(".html").read_text(encoding="utf-8")
    assert small.count("<svg") == 2
    hosts = np.ones((30, 20), bool)
    instance = Reclaim(hosts=hosts, gpus=hosts.astype(int), demand=1)
    judged = replace(witness.judged, instance=instance, plan=ReclaimPlan(servers=[0]), exact_plan=ReclaimPlan([1]))
    large = replace(witness, judged=judged).save(tmp_path).with_suffix(".html").read_text(encoding="utf-8")
    assert large.count("<svg") == 1


def test_a_style_of_our_own_leaves_the_windows_of_a_notebook_alone() -> None:
    """Matplotlib's defaults have a backend and no interactive mode, which are the caller's to choose."""
    with mpl.rc_context({"backend": "svg", "interactive": True, "font.size": 31.0}):
        before = dict(mpl.rcParams)
        with own_style({"font.size": 9.5}, salt="mine"):
            assert (mpl.get_backend(), mpl.is_interactive()) == ("svg", True)
            assert mpl.rcParams["font.size"] == 9.5
            assert plans_side_by_side(six_servers(), {}).startswith("<svg")
        assert dict(mpl.rcParams) == before


def test_the_data_can_be_left_out() -> None:
    instance = six_servers()
    plan = server_fraction(instance)
    both, alone = (plans_side_by_side(instance, {"mine": plan}, data=data) for data in (True, False))
    assert (both.count(">the data<"), alone.count(">the data<")) == (1, 0)
    assert both.count(">mine<") == alone.count(">mine<") == 1
