"""Harmed files, some hundreds of each kind, and the corpus of those that once broke what read them."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import formulations
import instances
from benchmarks.faults.mutations import altered_bytes, altered_table, altered_text, altered_tree, as_json
from benchmarks.faults.originals import CURVES, FLOWING, LISTED, PROFILES, RAW, TRACE
from benchmarks.faults.tally import FAULTS
from heuristics.afs.elastic_sharing import max_min
from heuristics.aryl.elastic_allocation import dynamic_program
from heuristics.aryl.placement import best_fit_decreasing
from heuristics.elasticflow.placement import buddy_repack
from heuristics.gavel.makespan import agnostic_fifo
from instances import InstanceError
from instances.afs.network_packing import NetworkPackingPlan
from instances.aryl import elastic_allocation
from instances.data import elasticflow, gavel, lines, microsoft, synergy
from validation.errors import StudyError
from validation.kinds.study.cases import generate
from validation.kinds.study.options import StudyOptions


@pytest.mark.parametrize(
    ("name", "count", "outcomes"),
    [
        ("files.instances", 150, {"refused", "read"}),
        ("files.plans", 300, {"refused", "feasible", "infeasible"}),
        ("files.tables", 300, {"refused", "read", "unharmed"}),
        ("files.toml", 100, {"refused", "read"}),
    ],
)
def test_harmed_files_are_read_or_refused(name: str, count: int, outcomes: set[str]) -> None:
    tally = FAULTS[name].harm(1, count)
    assert tally.wrong == []
    assert tally.fine
    assert tally.tried == count
    assert outcomes <= tally.outcomes.keys()


def test_harm_is_the_same_for_the_same_seed() -> None:
    tree = generate("aryl.reclaim", 1, 4).to_dict()

    def harmed(seed: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        text = as_json(rng, altered_tree(rng, tree))
        return [text, altered_text(rng, text[:200]), altered_bytes(rng, b"some bytes"), altered_table(rng, RAW)]

    assert harmed(1) == harmed(1)
    assert harmed(1) != harmed(2)
    assert tree == generate("aryl.reclaim", 1, 4).to_dict()


# --- the corpus -----------------------------------------------------------------------------------

DEEP = "[" * 900 + "1" + "]" * 900


def text_of(problem: str, **changes: Any) -> str:
    """An instance of a problem with other entries; what is given as text stands in the file as it is."""
    tree = generate(problem, 1, 6 if problem == "aryl.reclaim" else 2).to_dict()
    text = json.dumps({**tree, **{name: f"@{name}@" for name in changes}})
    for name, value in changes.items():
        text = text.replace(f'"@{name}@"', value if isinstance(value, str) else json.dumps(value))
    return text


INSTANCES = {
    # What broke, the file, what is said of it.
    "lists in lists, where a number stands": (
        text_of("aryl.reclaim", demand=DEEP),
        "Reclaim.demand: got lists nested more than 8 deep",
    ),
    "lists in lists, where infinity may stand": (
        text_of("gavel.cost", slos=DEEP),
        "Cost.slos: got lists nested more than 8 deep",
    ),
    "lists in lists, where a word stands": (
        text_of("afs.elastic_sharing", reallocation=DEEP),
        "ElasticSharing.reallocation: got [[[[[[[...]]]]]]], must be one of",
    ),
    "lists in lists, where words stand": (
        text_of("aryl.placement", server_groups=DEEP),
        "ArylPlacement.server_groups: got lists nested more than 8 deep",
    ),
    "objects in objects, where a name stands": (
        '{"problem": ' + '{"a":' * 900 + "1" + "}" * 901,
        "field 'problem': got {'a': {'a': {",
    ),
    "a name longer than a file's may be": (
        json.dumps({"problem": "aryl." + "a" * 300}),
        "unknown problem 'aryl.aaa",
    ),
    "a name of megabytes": (
        json.dumps({"problem": "aryl.reclaim", "x" * 10**6: 1}),
        "Reclaim: unknown field 'xxx",
    ),
    "a plan of 10^12 slots": (
        text_of("elasticflow.admission", deadlines=[10**12, 1]),
        "Admission.deadlines: got 1,000,000,000,000 slots, must be at most 25,000,000 for 2 jobs",
    ),
    "a cluster of 10^12 GPUs": (
        text_of("elasticflow.placement", num_gpus=10**12),
        "ElasticFlowPlacement.num_gpus: got 1000000000000, must be at most 10,000,000",
    ),
    "tables of 10^12 workers": (
        text_of("aryl.elastic_allocation", max_workers=[10**12, 10**12]),
        "ElasticAllocation.max_workers: got 1,999,999,999,9",
    ),
    "10^12 machines of no jobs": (
        text_of("afs.gpu_placement", regulated=[], previous=[], num_machines=10**12),
        "GpuPlacement.num_machines: got 1000000000000, must be at most 10,000,000",
    ),
    "10^12 regulated shares": (
        text_of("afs.network_packing", shares=[2**62], num_machines=10**12),
        "NetworkPacking.num_machines: got 1000000000000, must be at most 10,000,000",
    ),
    "10^12 GPUs of no jobs": (
        text_of("afs.elastic_sharing", work=[], throughputs=[], arrivals=[], requests=[], num_gpus=10**12),
        "ElasticSharing.num_gpus: got 1000000000000, must be at most 10,000,000",
    ),
    "10^12 servers": (
        text_of("synergy.placement", num_servers=10**12),
        "SynergyPlacement.num_servers: got 1,000,000,000,000 servers, must be at most",
    ),
    "10^12 servers of configurations": (
        text_of("synergy.tuning", num_servers=10**12),
        "Tuning.num_servers: got 1,000,000,000,000 servers, must be at most",
    ),
}


def refusal(read: Callable[..., Any], content: str, path: Path) -> str:
    """The one short line, after the file's name, in which a file is refused."""
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InstanceError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert len(message) < 500
    assert "\n" not in message
    return message.removeprefix(str(path))


@pytest.mark.parametrize("case", INSTANCES)
def test_instances_that_broke_what_read_them(case: str, tmp_path: Path) -> None:
    content, words = INSTANCES[case]
    assert refusal(instances.load, content, tmp_path / "odd.json").startswith(f": {words}")


def test_no_file_can_have_such_a_name() -> None:
    for name in ("a\0b", "\ud800"):
        with pytest.raises(InstanceError, match=re.escape(f"{name!r}: no file can have this name")):
            instances.load(name)


def test_a_mark_at_the_beginning_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "marked.json"
    path.write_text("\ufeff" + text_of("aryl.reclaim"), encoding="utf-8")
    assert instances.load(path) == generate("aryl.reclaim", 1, 6)


def of_rates(key: str, entry: Any = 2.0) -> str:
    return json.dumps({"k80": {key: {"null": "@"}}}).replace('"@"', entry if isinstance(entry, str) else str(entry))


TABLES = {
    "a trace of lists in lists": (gavel.read_throughputs, "[" * 100_000, "not valid JSON: maximum recursion"),
    "a rate of 400 digits": (
        gavel.read_throughputs,
        of_rates("('a', 1)", "9" * 400),
        "a whole number of 400 digits, beyond any float",
    ),
    "a rate of 5000 digits": (
        gavel.read_throughputs,
        of_rates("('a', 1)", "9" * 5000),
        "a whole number of 5000 digits, beyond any",
    ),
    "a job type of brackets": (gavel.read_throughputs, of_rates("(" * 300), "got job type '((("),
    "a job type of signs": (gavel.read_throughputs, of_rates("-" * 5000 + "1"), "got job type '---"),
    "a scale factor of 300 digits": (gavel.read_throughputs, of_rates(f"('a', {'9' * 300})"), "got job type"),
    "profiles that are a number": (
        synergy.read_profiles,
        PROFILES.replace('{"res18"', '5, "2": {"res18"'),
        "profiles_by_cpu_gpu_ratio.3: got 5, must be a JSON object",
    ),
    "a profile of 400 digits": (
        synergy.read_profiles,
        PROFILES.replace("62.5", "9" * 400),
        "number of 400 digits, beyond",
    ),
    "a number of GPUs that makes arrays": (
        microsoft.read_trace,
        RAW.replace("3600,4", "3600,1e12"),
        "line 3: num_gpu: got '1e12', must be at most 10,000,000",
    ),
    "a whole number beyond 64 bits": (
        synergy.read_trace,
        LISTED.replace("2000", "1e300"),
        "line 2: iterations: got '1e300', must be at most 9,007,199,254,740,992",
    ),
    "a cell of 100,000 characters": (
        gavel.read_trace,
        TRACE.replace("600", "6" * 100_000),
        "line 1: steps: got '666",
    ),
    "a cell of more": (elasticflow.read_trace, FLOWING.replace("bert", "b" * 200_000), "field larger than field limit"),
    "a column that is there twice": (
        microsoft.read_trace,
        RAW.replace("job_id,", "job_id,duration,").replace("\nx", "\nx,1"),
        "line 1: column 'duration' is there twice",
    ),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables_that_broke_what_read_them(case: str, tmp_path: Path) -> None:
    read, content, words = TABLES[case]
    assert words in refusal(read, content, tmp_path / "odd.txt")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (CURVES.splitlines()[0], "there are no throughputs in the tables"),
        (CURVES.replace("1,2,4", "1,2,1.0"), "line 1: a number of GPUs is there twice"),
        (CURVES.replace("1,2,4", "1,2,2"), "line 1: column '2' is there twice"),
        (CURVES.replace(",8", ",1e12"), "line 1: number of GPUs: got '1e12', must be at most 10,000,000"),
    ],
)
def test_throughputs_that_broke_what_read_them(content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bert.csv").write_text(content, encoding="utf-8")
    with pytest.raises(InstanceError, match=re.escape(words)):
        elasticflow.read_throughputs(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a = " + "[" * 100_000, "not valid TOML: "),
        (b"\xff\xfe", "not valid TOML: "),
        ("time_limit = " + "9" * 400, "time_limit: got 999"),
        ("memory_limit = inf", "memory_limit: got inf, must be a number of bytes"),
        ("jobs = 1000000000", "jobs: got 1000000000, must be at most 1,000"),
        ("throughputs = {gavel = 3}", "throughputs: got 3, must be str"),
        ('instances = "a\\u0000b"', "instances: 'a\\x00b': no file can have this name"),
        (f"{'x' * 100_000} = 1", "unknown option 'xxx"),
    ],
)
def test_options_that_broke_what_read_them(content: str | bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(StudyError) as caught:
        StudyOptions.given(path, problems=["aryl.reclaim"], seed=1, output=tmp_path / "study")
    assert words in str(caught.value)
    assert len(str(caught.value)) < 500


# --- numbers that are large, where nothing of that size is made -----------------------------------


def test_large_numbers_of_workers_are_no_loops() -> None:
    # One server takes what fits of 10^12 workers at once; the rest fits nowhere.
    placed = instances.read(
        {
            "problem": "aryl.placement",
            "gpus_per_worker": [2, 1],
            "num_workers": [10**12, 3],
            "elastic": [False, False],
            "server_gpus": [2 * 10**11 + 1, 2],
            "server_groups": ["training", "training"],
        }
    )
    assert best_fit_decreasing(placed).workers.tolist() == [[10**11, 1], [1, 0]]
    pool = instances.read(
        {"problem": "gavel.makespan", "throughputs": [[2.0]], "num_workers": [10**12], "steps": [8.0]}
    )
    assert pool.violations(agnostic_fifo(pool)) == []
    # Of no jobs, and of blocks whose sizes add up to more than 64 bits hold.
    nobody = {"work": [], "throughputs": [], "arrivals": [], "requests": [], "num_gpus": 10**7}
    assert max_min(instances.read({"problem": "afs.elastic_sharing", **nobody})) is not None
    huge = {"num_gpus": 8, "gpus_per_server": 8, "sizes": [2**62] * 4, "previous_offsets": [None] * 4}
    assert buddy_repack(instances.read({"problem": "elasticflow.placement", **huge})) is None


def test_the_judge_finds_the_nearest_of_many_shares() -> None:
    cluster = {"problem": "afs.network_packing", "num_machines": 10**7, "gpus_per_machine": 8}
    instance = instances.read({**cluster, "shares": [8 * 10**7]})
    found = instance.violations(NetworkPackingPlan(regulated=np.array([8 * 10**7 + 3])))
    assert {(one.rule, one.amount) for one in found} >= {("regulated", 3.0), ("gpus", 3.0)}
    assert instance.violations(NetworkPackingPlan(regulated=np.array([8 * 10**7]))) == []


def test_a_dynamic_program_says_what_it_cannot_hold() -> None:
    instance = elastic_allocation.ElasticAllocation(
        capacity=10**12,
        min_workers=np.array([1]),
        max_workers=np.array([3]),
        gpus_per_worker=np.array([10**12]),
        min_running_times=np.array([60.0]),
    )
    with pytest.raises(InstanceError, match=r"capacity: got 1,000,000,000,000 useful GPUs, .* at most 50,000,000"):
        dynamic_program(instance)


@pytest.mark.parametrize(
    ("problem", "changes", "words"),
    [
        ("elasticflow.best_effort", {"deadlines": [10**6, 10**6]}, "choices, deadlines times the numbers of GPUs"),
        ("elasticflow.placement", {"num_gpus": 2**23, "sizes": [1], "previous_offsets": [None]}, "blocks and units"),
        ("aryl.elastic_allocation", {"max_workers": [6 * 10**6, 10]}, "choices, max_workers - min_workers"),
        ("synergy.placement", {"num_servers": 10**6}, "variables, num_servers for each kind of job"),
        ("synergy.tuning", {"num_servers": 10**6}, "variables, num_servers for each kind of job and configuration"),
    ],
)
def test_models_that_are_too_large_are_not_built(problem: str, changes: dict[str, Any], words: str) -> None:
    instance = instances.read(json.loads(text_of(problem, **changes)))
    with pytest.raises(formulations.ModelError) as caught:
        formulations.build(instance)
    assert str(caught.value).startswith(f"{problem}: the exact model would have ")
    assert words in str(caught.value)
    assert str(caught.value).endswith("must be at most 5,000,000")
    if problem != "elasticflow.placement":
        # Of that one the plan at hand is the optimum.
        with pytest.raises(formulations.ModelError):
            formulations.solve(instance, method="model")
    if problem != "synergy.placement":
        # Other ways need no such model; a million servers take that one half a minute.
        assert formulations.solve(instance).status == "optimal"


def test_cells_are_cut_in_messages() -> None:
    with pytest.raises(InstanceError) as caught:
        lines.read_cell(lines.number, "x" * 10**6, "here")
    assert len(str(caught.value)) < 200
    assert math.isfinite(lines.number("1e308"))
