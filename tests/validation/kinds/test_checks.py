"""Checks fail what they must fail, pass the library's own heuristics, and count what they ran."""

import functools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
import instances
from benchmarks.faults.cheats import FORGERS
from heuristics.aryl.reclaim import server_fraction
from instances.afs.elastic_sharing import ElasticSharing
from instances.aryl.elastic_allocation import ElasticAllocationPlan
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from instances.elasticflow.allocation import ElasticFlowAllocation
from instances.elasticflow.sharing import SlotPlan
from instances.schema import Scalar, declarations
from validation import (
    CATALOGUE,
    BreaksOnly,
    CatalogueError,
    Heuristic,
    Holds,
    Monotone,
    NeverWorseThan,
    Ratio,
    Relabelled,
    check_heuristic,
    parametrize_with_checks,
)
from validation.kernel.walls import standing
from validation.kinds.checks import CheckReport, Source, draw_instances, run_checks
from validation.kinds.checks.shrinking import Shrinking
from validation.kinds.options import CheckOptions
from validation.testing.strategies import derived, strategy, varied

from ...effort import EFFORT


def nothing(instance: Reclaim) -> None:
    return None


def wrong_type(instance: Reclaim) -> int:
    return 3


def first_server_only(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.zeros(instance.demand, int))


def raises(instance: Reclaim) -> ReclaimPlan:
    if instance.num_jobs >= 2:
        raise ZeroDivisionError("two jobs")
    return server_fraction(instance)


def changes(instance: Reclaim) -> ReclaimPlan:
    object.__setattr__(instance, "demand", instance.num_servers)
    return server_fraction(instance)


def restless(instance: Reclaim, calls: list[int] = []) -> ReclaimPlan:  # noqa: B006, its memory is the point
    calls.append(1)
    return ReclaimPlan(servers=np.roll(np.arange(instance.num_servers), len(calls))[: instance.demand])


def first_servers(instance: Reclaim) -> ReclaimPlan:
    return ReclaimPlan(servers=np.arange(instance.demand))


@pytest.mark.parametrize(
    ("heuristic", "check", "reason"),
    [
        (nothing, "returns_a_plan", "returned None"),
        (wrong_type, "returns_a_plan", "int"),
        (first_server_only, "feasible", "server_once"),
        (raises, "returns_a_plan", "ZeroDivisionError"),
        (changes, "leaves_the_instance", ""),
        (restless, "repeatable", "two calls"),
    ],
)
def test_a_broken_heuristic_fails_its_check(heuristic: Any, check: str, reason: str, tmp_path: Path) -> None:
    report = check_heuristic("aryl.reclaim", heuristic, max_examples=40, output=tmp_path)
    failed = {result.name: result for result in report.failed}
    assert not report.ok
    assert check in failed
    assert reason in failed[check].reason
    path = failed[check].path
    assert path is not None
    assert instances.load(path) == failed[check].instance
    assert check in str(report)


def test_the_smallest_instance_is_small() -> None:
    report = check_heuristic("aryl.reclaim", raises, max_examples=40)
    (smallest,) = {result.instance for result in report.failed if result.name == "returns_a_plan"}
    assert smallest is not None
    assert smallest.dims == {"n": 2, "s": 1}


def test_without_time_left_an_instance_found_for_another_check_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.kinds.checks.shrinking.SHRINK_BUDGET", 0.0)
    shrinking = Shrinking()
    large, small = (CATALOGUE["aryl.reclaim"].generate(0, num_servers=size) for size in (8, 3))
    assert shrinking.smallest(small, lambda one: one in (large, small), [large, small]) == small
    assert shrinking.smallest(large, lambda one: one in (large, small), [large]) == small


def test_promises() -> None:
    held = check_heuristic("aryl.reclaim", server_fraction, promises=[Ratio(100.0)], max_examples=30)
    assert {result.name: result.status for result in held.results}["ratio"] == "passed"
    broken = check_heuristic("aryl.reclaim", first_servers, promises=[Ratio(2), Relabelled()], max_examples=40)
    assert {result.name for result in broken.failed} == {"ratio", "relabelled"}
    smallest = next(result.instance for result in broken.failed if result.name == "ratio")
    assert smallest is not None
    assert smallest.dims["n"] == 1
    grows = check_heuristic("aryl.reclaim", first_servers, promises=Monotone(), max_examples=10)
    assert {result.name: result.status for result in grows.results}["monotone"] == "skipped"


def test_ratio_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Ratio(0.5)


def test_declining_is_allowed_where_declared() -> None:
    report = check_heuristic("aryl.reclaim", Heuristic(nothing, declines=True), max_examples=10)
    assert not report.failed
    assert {result.status for result in report.results if result.name == "feasible"} == {"skipped"}


def test_a_known_failure_is_expected() -> None:
    report = check_heuristic(
        "aryl.reclaim", Heuristic(first_server_only, infeasible_because="it is a joke"), max_examples=40
    )
    statuses = {result.name: result for result in report.results}
    assert statuses["feasible"].status == "expected failure"
    assert statuses["feasible"].reason == "it is a joke"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "name"), [(problem, name) for problem, entry in CATALOGUE.items() for name in entry.heuristics]
)
def test_the_library_passes_its_own_checks(problem: str, name: str) -> None:
    report = check_heuristic(problem, name, max_examples=round(6 * EFFORT) or 1)
    assert report.ok, str(report)


@parametrize_with_checks("aryl.reclaim", promises=Ratio(100), max_examples=10)
def test_parametrized(check: Any) -> None:
    check(server_fraction)


def test_parametrized_checks_fail() -> None:
    mark = parametrize_with_checks("aryl.reclaim", max_examples=40)
    checks = dict(zip(mark.kwargs["ids"], mark.args[1], strict=True))
    with pytest.raises(pytest.fail.Exception, match="server_once"):
        checks["feasible"](first_server_only)


@pytest.mark.parametrize("problem", sorted(CATALOGUE))
def test_strategies_make_small_instances(problem: str) -> None:
    from hypothesis import given

    seen = []

    @given(strategy(problem))
    def look(instance: Any) -> None:
        assert instance.problem == problem
        seen.append(instance)

    look()
    assert len({instance.digest for instance in seen}) >= 10


def test_from_type_finds_the_strategy() -> None:
    script = (
        "from hypothesis import strategies as st, find\n"
        "from instances.aryl.reclaim import Reclaim\n"
        "print(type(find(st.from_type(Reclaim), lambda i: i.num_servers >= 2)).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "Reclaim", done.stderr


def never(instance: ElasticFlowAllocation) -> SlotPlan:
    """Gives every GPU to the first job: infeasible wherever another job has something to do."""
    gpus = np.zeros((instance.num_jobs, instance.horizon), np.int64)
    gpus[0] = instance.num_gpus
    return SlotPlan(gpus=gpus)


def impossible() -> ElasticFlowAllocation:
    """One GPU-slot, and two jobs that need one each."""
    return ElasticFlowAllocation(num_gpus=1, iterations=[1, 1], deadlines=[1, 1], throughputs=[[0, 1], [0, 1]])


def test_instances_without_a_feasible_plan_are_not_counted() -> None:
    assert formulations.solve(impossible()).status == "infeasible"
    report = check_heuristic("elasticflow.allocation", never, strategy=st.just(impossible()), max_examples=5)
    results = {result.name: result for result in report.results}
    assert not report.failed
    assert results["feasible"].status == "skipped"
    assert results["feasible"].reason == "no instance that was drawn has a feasible plan"
    assert results["feasible"].examples == 0
    assert results["feasible"].without_plan == 1
    assert "1 more instances have no feasible plan and are not counted" in str(report)
    # Among others, those that have one still count, and the heuristic is blamed for them.
    possible = replace(impossible(), deadlines=[1, 2])
    drawn = st.sampled_from([impossible(), possible])
    blamed = check_heuristic("elasticflow.allocation", never, strategy=drawn, max_examples=20)
    failed = {result.name: result for result in blamed.failed}
    assert failed["feasible"].instance is not None
    assert formulations.solve(failed["feasible"].instance).status == "optimal"


def test_a_heuristic_of_the_catalogue_is_taken_by_its_name_and_by_reference() -> None:
    for mine in ("server_fraction", "heuristics.aryl.reclaim:server_fraction", server_fraction):
        report = check_heuristic("aryl.reclaim", mine, max_examples=5)
        assert report.ok
        assert report.heuristic in ("server_fraction", "heuristics.aryl.reclaim:server_fraction")
    with pytest.raises(CatalogueError, match=r"there are server_fraction, .*, or module:function"):
        check_heuristic("aryl.reclaim", "sever_fraction")


def test_one_exception_is_printed_once_and_the_plan_beside_the_instance() -> None:
    def always_raises(instance: Reclaim) -> ReclaimPlan:
        raise ZeroDivisionError("always")

    told = str(check_heuristic("aryl.reclaim", always_raises, max_examples=5))
    assert told.count("ZeroDivisionError: always") == 1
    assert told.count("as in returns_a_plan") == 4
    report = check_heuristic("aryl.reclaim", first_server_only, max_examples=40)
    (failed,) = (result for result in report.failed if result.name == "feasible")
    assert failed.instance is not None
    assert failed.plan == first_server_only(failed.instance)  # type: ignore[arg-type]
    assert f"its plan there: {json.dumps(failed.plan.to_dict())}" in str(report)
    assert "breaks server_once" in report._repr_html_()


def test_instances_are_drawn_from_the_strategy_given() -> None:
    def looks(instance: Reclaim) -> ReclaimPlan:
        assert instance.num_servers in (1, 2)
        return first_servers(instance)

    drawn = strategy("aryl.reclaim", max_servers=2)
    report = check_heuristic("aryl.reclaim", looks, strategy=drawn, max_examples=30)
    assert "AssertionError" not in str(report)
    assert [source.name for source in report.sources] == ["the problem's strategy"]


@st.composite
def with_rates(draw: st.DrawFn) -> ElasticFlowAllocation:
    """Jobs with rates from 3 to 6, of which nothing but the strategy knows."""
    jobs = draw(st.integers(2, 5))
    rates = [[0, draw(st.integers(3, 6)), 7] for _ in range(jobs)]
    return ElasticFlowAllocation(
        num_gpus=2, iterations=[draw(st.integers(2, 30)) for _ in rates], deadlines=[4] * jobs, throughputs=rates
    )


@pytest.mark.parametrize("checked", [True, False])
def test_a_counterexample_of_a_strategy_is_one_of_its_own(checked: bool) -> None:
    def fails_at_four(instance: ElasticFlowAllocation) -> SlotPlan:
        rates = instance.throughputs[:, 1]
        assert (rates >= 3).all()
        assert instance.num_jobs >= 2
        assert instance.num_jobs < 3 or rates.max() < 4, "four"
        return instance.nothing()

    expected = {"num_jobs": 3, "rates": [3, 3, 4], "iterations": [2, 2, 2]}
    if checked:
        report = check_heuristic("elasticflow.allocation", fails_at_four, strategy=with_rates(), max_examples=30)
        failed = next(one for one in report.failed if one.name == "returns_a_plan")
        assert failed.instance is not None
        assert "four" in failed.reason
        small: Any = failed.instance
        found = {
            "num_jobs": small.num_jobs,
            "rates": sorted(small.throughputs[:, 1]),
            "iterations": [*small.iterations],
        }
        assert found == expected
        return
    mark = parametrize_with_checks("elasticflow.allocation", strategy=with_rates(), max_examples=30)
    checks = dict(zip(mark.kwargs["ids"], mark.args[1], strict=True))
    with pytest.raises(pytest.fail.Exception, match="four") as raised:
        checks["returns_a_plan"](fails_at_four)
    shown = json.loads(str(raised.value).partition("smallest instance: ")[2].partition("\n")[0])
    assert sorted(row[1] for row in shown["throughputs"]) == expected["rates"]


@pytest.mark.parametrize("problem", list(CATALOGUE))
def test_a_strategy_can_be_derived_for_every_problem(problem: str) -> None:
    """What an outsider's problem gets: valid instances, most of them from the declarations alone."""

    @settings(max_examples=10, database=None)
    @given(derived(problem))
    def look(instance: instances.Instance[Any]) -> None:
        assert instance.problem == problem
        assert type(instance).from_dict(instance.to_dict()) == instance

    look()


# --- what is drawn --------------------------------------------------------------------------------


@functools.cache
def drawn(problem: str) -> list[instances.Instance[Any]]:
    """What the checks of a problem's heuristics look at by default."""
    return draw_instances(varied(problem), 100, 0)


NOT_DRAWN = {("synergy.tuning", "split_penalty")}
"""What splitting costs is known to the exact model and the judge alone; the paper's Tune does not look at it."""

OPTIONAL = [
    (problem, field.name)
    for problem, entry in CATALOGUE.items()
    for field in fields(entry.instance)
    if field.default is not MISSING and (problem, field.name) not in NOT_DRAWN
]


def left_out(instance: instances.Instance[Any], name: str) -> Any:
    """What stands in a field when it is left out; None where it cannot be."""
    given = {field: getattr(instance, field) for field in declarations(type(instance)) if field != name}
    try:
        return getattr(type(instance)(**given), name)
    except instances.InstanceError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "name"), OPTIONAL)
def test_every_optional_field_is_drawn_and_left_out(problem: str, name: str) -> None:
    declared = declarations(CATALOGUE[problem].instance)[name]
    given = [
        not np.array_equal(getattr(instance, name), usual)
        for instance in drawn(problem)
        if (usual := left_out(instance, name)) is not None or getattr(instance, name) is not None
    ]
    assert any(given)
    usual = [instance for instance in drawn(problem) if repr(getattr(instance, name)) == repr(left_out(instance, name))]
    assert usual
    if isinstance(declared, Scalar) and declared.choices:
        assert {getattr(instance, name) for instance in drawn(problem)} == set(declared.choices)


def size_of_cluster(problem: str) -> str | None:
    """The first of these that a problem has."""
    kind = CATALOGUE[problem].instance
    return next(
        (name for name in ("num_gpus", "num_workers", "gpus") if hasattr(kind, name) or name in declarations(kind)),
        None,
    )


CLUSTERS = [problem for problem in sorted(CATALOGUE) if size_of_cluster(problem)]
FIRST = {problem.partition(".")[0]: problem for problem in reversed(CLUSTERS)}
"""One problem of each paper."""


@pytest.mark.parametrize(
    "problem", [one if one in FIRST.values() else pytest.param(one, marks=pytest.mark.slow) for one in CLUSTERS]
)
def test_clusters_beyond_a_server_are_drawn(problem: str) -> None:
    name = size_of_cluster(problem)
    assert name is not None
    counts = [int(np.sum(getattr(instance, name))) for instance in drawn(problem)]
    assert max(counts) >= 16
    assert any(count > 0 and count % 8 == 0 for count in counts)


@pytest.mark.parametrize("paper", ["afs", "aryl", "elasticflow", "gavel", "synergy"])
def test_numbers_beyond_32_bits_are_drawn(paper: str) -> None:
    assert any(greatest(instance) > 2**32 for instance in of_paper(paper))


def of_paper(paper: str) -> Iterator[instances.Instance[Any]]:
    """What is drawn of a paper's problems, first of the one that is drawn above."""
    for problem in sorted(CATALOGUE, key=lambda one: one not in FIRST.values()):
        if problem.startswith(f"{paper}."):
            yield from drawn(problem)


def greatest(instance: instances.Instance[Any]) -> float:
    """The greatest finite number of an instance that need not be whole."""
    found = 0.0
    for name, declared in declarations(type(instance)).items():
        value = getattr(instance, name)
        if declared.kind is float and value is not None:
            for part in map(np.asarray, value if isinstance(value, tuple) else (value,)):
                found = max(found, float(np.max(part[np.isfinite(part)], initial=0.0)))
    return found


# --- promises -------------------------------------------------------------------------------------


def statuses(heuristic: Any, **options: Any) -> dict[str, str]:
    report = check_heuristic("aryl.reclaim", heuristic, max_examples=20, **options)
    return {result.name: result.status for result in report.results}


def test_promises_of_the_catalogue_are_checked_without_being_named() -> None:
    assert statuses(Heuristic(first_servers, optimal=True))["optimal"] == "failed"
    assert statuses(Heuristic(first_servers, promises=(Ratio(2),)))["ratio"] == "failed"
    assert "ratio" not in statuses(first_servers)
    told = statuses("local_search")
    assert (told["never_worse"], told["holds"]) == ("passed", "passed")


def test_a_promise_can_be_made_where_a_condition_holds() -> None:
    def none(instance: Reclaim) -> bool:
        return instance.demand in (0, instance.num_servers)

    assert statuses(first_servers, promises=Ratio(1, none, "where there is no choice"))["optimal"] == "passed"
    assert statuses(first_servers, promises=Ratio(1))["optimal"] == "failed"
    assert statuses(first_servers, promises=Ratio(1, lambda instance: False, "never"))["optimal"] == "skipped"


def test_never_worse_than_another() -> None:
    assert statuses(first_servers, promises=NeverWorseThan("server_fraction"))["never_worse"] == "failed"
    assert statuses(first_servers, promises=NeverWorseThan(first_servers))["never_worse"] == "passed"
    # One without a plan is worse than one with a plan.
    assert statuses(first_server_only, promises=NeverWorseThan(first_servers))["never_worse"] == "failed"


def test_breaking_only_some_rules() -> None:
    known = Heuristic(first_server_only, infeasible_because="it is a joke")
    # Without servers there is not even the first one.
    assert statuses(known, promises=BreaksOnly(("server_once", "server_exists")))["breaks_only"] == "passed"
    assert statuses(known, promises=BreaksOnly(("demand",)))["breaks_only"] == "failed"
    assert statuses(known, promises=BreaksOnly())["breaks_only"] == "failed"
    assert statuses(Heuristic(nothing, declines=True), promises=BreaksOnly())["breaks_only"] == "failed"


def test_a_statement_of_plans() -> None:
    ascending = Holds("servers ascend", lambda instance, plan: bool((np.diff(plan.servers) > 0).all()))
    assert statuses(first_servers, promises=ascending)["holds"] == "passed"
    report = check_heuristic("aryl.reclaim", server_fraction, promises=ascending)
    (failed,) = report.failed
    assert (failed.name, failed.reason) == ("holds", "it is not so that servers ascend")


def test_relabelling_without_ties() -> None:
    def shortest_to_first(instance: Any) -> Any:
        """Gives everything to the job of least work, and to job 0 where two are alike."""
        return CATALOGUE["afs.elastic_sharing"].heuristics["srtf"].function(instance)

    told = check_heuristic("afs.elastic_sharing", shortest_to_first, promises=Relabelled(ties=False), max_examples=20)
    assert {result.name: result.status for result in told.results}["relabelled"] == "passed"


# --- the heuristic runs apart from what judges it ----------------------------------------------------


@pytest.mark.parametrize("name", sorted(FORGERS))
def test_a_verdict_cannot_be_forged(name: str, tmp_path: Path) -> None:
    report = check_heuristic("aryl.reclaim", FORGERS[name], max_examples=5, output=tmp_path)
    (failed,) = (one for one in report.results if one.name == "feasible")
    assert not report.ok
    assert failed.status == "failed"
    assert failed.reason.startswith("breaks server_")
    assert failed.instance is not None
    assert failed.instance.violations(failed.plan)
    assert failed.path is not None
    assert instances.load(failed.path) == failed.instance


def test_there_are_many_forgers() -> None:
    assert len(FORGERS) >= 8


@pytest.mark.skipif(not standing()["files"], reason="no wall around files here")
def test_nothing_is_written_where_failing_instances_are_saved(tmp_path: Path) -> None:
    def writes(instance: Reclaim) -> ReclaimPlan:
        (tmp_path / "aryl.reclaim-feasible.json").write_text("{}")
        return server_fraction(instance)

    report = check_heuristic("aryl.reclaim", writes, max_examples=3, output=tmp_path)
    assert {one.reason.partition(":")[0] for one in report.failed} == {"PermissionError"}
    for one in report.failed:
        assert one.path is not None
        assert instances.load(one.path) == one.instance


def ends(instance: Reclaim) -> ReclaimPlan:
    os.kill(os.getpid(), signal.SIGKILL)
    return server_fraction(instance)


def prints(instance: Reclaim) -> ReclaimPlan:
    print("x" * 10**6)
    return server_fraction(instance)


@pytest.mark.parametrize(("heuristic", "reason"), [(ends, "the process died: killed by SIGKILL"), (prints, "")])
def test_what_its_process_does_is_told(heuristic: Any, reason: str) -> None:
    report = check_heuristic("aryl.reclaim", heuristic, max_examples=3)
    assert {one.reason for one in report.failed} == ({reason} if reason else set())


def test_none_of_its_code_runs_here() -> None:
    seen: list[int] = []

    def remembers(instance: Reclaim) -> ReclaimPlan:
        seen.append(os.getpid())
        return server_fraction(instance)

    other = Heuristic(remembers)
    report = check_heuristic("aryl.reclaim", other, promises=NeverWorseThan(remembers), max_examples=5)
    assert report.ok
    assert not seen


# --- where instances come from, and what is remembered ----------------------------------------------


def test_a_report_tells_where_its_instances_come_from() -> None:
    report = check_heuristic("aryl.elastic_allocation", "gandiva")
    told = {source.name: source for source in report.sources}
    assert {"the problem's strategy", "the same, wide", "its fields", "these, altered"} <= set(told)
    assert told["its fields"].refused
    assert sum(source.instances for source in report.sources) == report.results[0].examples
    line = next(line for line in str(report).splitlines() if line.startswith("  instances: "))
    assert f"{told['the same, wide'].instances} from the same, wide" in line
    assert "from the same, wide" in report._repr_html_()
    (one,) = (one for one in report.to_dict()["sources"] if one["name"] == "its fields")
    assert one == {
        "name": "its fields",
        "instances": told["its fields"].instances,
        "refused": told["its fields"].refused,
    }


def test_a_source_starves_where_hardly_any_instance_is_taken() -> None:
    assert Source("its fields", 1, 30).starves
    assert not Source("its fields", 5, 30).starves
    assert not Source("its fields", 0, 5).starves
    report = CheckReport("aryl.reclaim", "mine", (), (Source("its fields", 1, 30),))
    (warning,) = report.warnings
    assert "refuses 30 of 31 instances from its fields" in warning
    assert f"  warning: {warning}" in str(report)
    assert "refuses 30 of 31" in report._repr_html_()


def test_a_plan_that_is_kept_for_another_instance_is_found() -> None:
    kept: dict[tuple[int, int], ReclaimPlan] = {}

    def remembers(instance: Reclaim) -> ReclaimPlan:
        """Its plan breaks no rule, whichever instance of the size it was made for."""
        return kept.setdefault((instance.num_servers, instance.demand), server_fraction(instance))

    (failed,) = check_heuristic("aryl.reclaim", remembers).failed
    assert failed.name == "repeatable"
    assert "after other instances it gave" in failed.reason
    assert "after others than these" in failed.reason


@pytest.mark.slow
def test_whole_numbers_beyond_32_bits_are_made_where_there_is_a_plan() -> None:
    def in_32_bits(instance: Any) -> Any:
        wanted = (instance.max_extra * instance.gpus_per_worker).astype(np.int32).sum(dtype=np.int32)
        return instance.nothing() if wanted > instance.capacity else ElasticAllocationPlan(instance.max_extra)

    report = check_heuristic("aryl.elastic_allocation", in_32_bits)
    (source,) = (one for one in report.sources if one.name == "these, with large numbers")
    assert source.instances
    (failed,) = (one for one in report.failed if one.name == "feasible")
    small: Any = failed.instance
    assert failed.reason.startswith("breaks capacity")
    assert (small.max_extra * small.gpus_per_worker).sum() >= 2**31
    # A table of so many GPUs is too large for it, so that it is not asked.
    report = check_heuristic("aryl.elastic_allocation", tabulates, max_examples=40)
    assert not any("MemoryError" in one.reason for one in report.results)


def tabulates(instance: Any) -> Any:
    """Makes a table with an entry for each GPU, and gives nothing."""
    if instance.capacity > 10**6 or instance.gpus_per_worker.max(initial=0) > 10**6:
        raise MemoryError
    return instance.nothing()


@pytest.mark.parametrize("name", ["afs_l", "afs_p"])
def test_a_job_that_never_runs_is_not_held_against_a_heuristic(name: str) -> None:
    stuck = ElasticSharing(num_gpus=1, work=[2e-19], throughputs=[[0, 0]], requests=[0])
    # The plan in which nothing is decided has no intervals, but a beginning.
    assert (stuck.nothing().times.tolist(), stuck.nothing().shares.tolist()) == ([0.0], [])
    assert [one.rule for one in stuck.violations(stuck.nothing())] == ["work_done"]
    report = check_heuristic(stuck.problem, name, strategy=st.just(stuck))
    assert report.failed == ()
    assert report.results[0].without_plan == 1


def test_another_heuristic_that_fails_is_not_held_against_it() -> None:
    assert statuses(first_servers, promises=NeverWorseThan(raises_always))["never_worse"] == "skipped"


def raises_always(instance: Reclaim) -> ReclaimPlan:
    raise ZeroDivisionError


def test_there_may_be_no_jobs() -> None:
    def widest(instance: Reclaim) -> ReclaimPlan:
        assert instance.gpus.max() >= 0
        return server_fraction(instance)

    report = check_heuristic("aryl.reclaim", widest)
    (smallest,) = {result.instance for result in report.failed}
    assert smallest is not None
    assert smallest.dims["n"] == 0


def test_a_check_that_takes_long_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validation.kinds.checks.searching.TELLING", -1.0)
    asked = CheckOptions(names=("aryl.reclaim", raises), max_examples=10, output=None)
    *before, last = run_checks(asked)
    first = [report.results[0] for report in before if len(report.results) == 1]
    assert [result.status for result in first] == ["unfinished"] * (len(first) - 2) + ["failed", "failed"]
    assert [result.examples for result in first] == sorted(result.examples for result in first)
    assert not before[0].ok
    # The failing instance is told before it is made small, which takes the longest.
    found, small = first[-2:]
    assert found.instance is not None
    assert small.instance is not None
    assert len(json.dumps(small.instance.to_dict())) <= len(json.dumps(found.instance.to_dict()))
    assert {result.status for result in last.results} <= {"passed", "failed", "skipped"}


def test_no_more_is_drawn_than_is_wanted() -> None:
    seen = []
    drawn = strategy("aryl.reclaim").map(lambda instance: seen.append(instance) or instance)
    assert len(draw_instances(drawn, 10, 0)) == 10
    assert len(seen) < 20
