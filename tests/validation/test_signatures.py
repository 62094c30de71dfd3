"""Functions of public tasks, and plain ones: what they answer counts, and nothing else that they do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from instances.eplb import placement as eplb
from instances.files import text_of
from instances.prism import placement as prism
from instances.schema import declarations
from validation import CATALOGUE, check_heuristic, find_worst, gap_study, judge
from validation.catalogue import heuristic, import_object
from validation.kernel.judging import Status
from validation.kinds.judge.judging import judge_on
from validation.kinds.study.cases import generate
from validation.signatures import plain, rebalance_experts

LEAST_PRESSURE = """
def compute_model_placement(gpu_num, models):
    placement = {gpu: [] for gpu in range(gpu_num)}
    free, weight = [80] * gpu_num, [0.0] * gpu_num
    for model in sorted(models, key=lambda one: one.req_rate / one.slo, reverse=True):
        gpu = min((g for g in range(gpu_num) if model.model_size <= free[g]), key=lambda g: weight[g] / free[g])
        placement[gpu].append(model)
        free[gpu] -= model.model_size
        weight[gpu] += model.req_rate / model.slo
    return placement
"""

LONGEST_FIRST = """
import numpy as np

def rebalance_experts(weight, num_replicas, num_groups, num_nodes, num_gpus):
    loads = np.array(weight.tolist()[0])
    counts = np.ones(len(loads), int)
    for _ in range(num_replicas - len(loads)):
        counts[int((loads / counts).argmax())] += 1
    pieces = np.repeat(np.arange(len(loads)), counts)
    pieces = pieces[np.argsort(-(loads / counts)[pieces], kind="stable")]
    held, carried = [[] for _ in range(num_gpus)], [0.0] * num_gpus
    for expert in pieces.tolist():
        gpu = min((g for g in range(num_gpus) if len(held[g]) < num_replicas // num_gpus), key=carried.__getitem__)
        held[gpu].append(expert)
        carried[gpu] += loads[expert] / counts[expert]
    return np.array([sum(held, [])]), None, None
"""


def written(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    return str(tmp_path / f"{name}.py")


def test_a_program_of_the_prism_task_is_judged_as_it_is(tmp_path: Path) -> None:
    program = written(tmp_path, "least_pressure_program", LEAST_PRESSURE)
    found = import_object(f"{program}:compute_model_placement")
    for instance in prism.public_instances()[:10]:
        assert instance.objective(found(instance)) == instance.objective(
            heuristic("prism.placement", "least_pressure")[1].function(instance)
        )
    judged = judge(f"{program}:compute_model_placement", "prism.placement")
    assert judged.score == judge("least_pressure", "prism.placement").score
    assert 0 < judged.score < 1


def test_a_program_of_eplb_is_asked_as_it_is(tmp_path: Path) -> None:
    program = written(tmp_path, "longest_first_program", LONGEST_FIRST)
    found = import_object(f"{program}:rebalance_experts")
    for instance in (eplb.eight_experts(), *eplb.released_layers()):
        assert instance.objective(found(instance)) == instance.objective(
            heuristic("eplb.placement", "released_global")[1].function(instance)
        )


CHEATS = {
    "GPUs that are not there": ("return {100 + at: [one] for at, one in enumerate(models)}", Status.INFEASIBLE),
    "no requests, by changing them": (
        "for one in models:\n        one.req_rate = 0\n    return {0: models[::2], 1: models[1:2]}",
        Status.FEASIBLE,
    ),
    "smaller models, by changing them": (
        "for one in models:\n        one.model_size = 0\n    return {0: models}",
        Status.INFEASIBLE,
    ),
    "models left out": ("return {0: models[:1]}", Status.FAILED),
    "one model twice": ("return {0: models, 1: models[:1]}", Status.FAILED),
    "models of its own": ("return {0: [type(models[0])(model_name='other')]}", Status.FAILED),
    "half a GPU": ("return {0.5: models}", Status.FAILED),
    "nothing": ("return None", Status.FAILED),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_the_public_evaluator_misses_gains_nothing(tmp_path: Path, cheat: str) -> None:
    body, expected = CHEATS[cheat]
    name = f"cheat_{list(CHEATS).index(cheat)}"
    program = written(tmp_path, name, f"def compute_model_placement(gpu_num, models):\n    {body}\n")
    text = text_of(prism.full_to_the_brim())
    judged = judge_on([text], f"{program}:compute_model_placement", "prism.placement")
    (one,) = judged.instances
    assert one.status == expected, one.reason
    # The two that would fill a GPU are apart, and the third joins one: an optimum, with rates as they were.
    assert one.score == (1 if expected == Status.FEASIBLE else 0)


def test_replicas_that_are_nowhere_or_of_nobody_are_refused() -> None:
    instance = eplb.hot_expert(2)
    for answer in ([[0, 1, 0]], [[0, 1, 0, 7]], [[0.0, 1.0, 0.0, 1.0]], [0, 1, 0, 1]):
        with pytest.raises(ValueError, match=r"got experts of shape|expert 7 is none of"):
            rebalance_experts(lambda *_, told=answer: (np.array(told), None, None), instance)


def test_a_function_of_one_task_answers_no_other(tmp_path: Path) -> None:
    program = written(tmp_path, "wrong_task_program", LEAST_PRESSURE)
    found = import_object(f"{program}:compute_model_placement")
    with pytest.raises(ValueError, match=r"got eplb\.placement, must be prism\.placement"):
        found(eplb.eight_experts())


FEWEST_JOBS = """
def solve(instance):
    counts = [sum(column) for column in zip(*instance["hosts"])]
    return {"servers": sorted(range(len(counts)), key=lambda server: counts[server])[: instance["demand"]]}
"""


@pytest.mark.parametrize("problem", CATALOGUE)
def test_an_instance_is_plain_data_with_all_its_fields(problem: str) -> None:
    entry = CATALOGUE[problem]
    instance = generate(problem, 3, entry.sizes[0], 0)
    given = plain(instance)
    assert json.loads(json.dumps(given, allow_nan=False)) == given
    assert type(instance).from_dict(given) == instance
    assert set(given) == {"problem", *declarations(type(instance))}


def test_a_plain_program_is_judged_studied_and_checked(tmp_path: Path) -> None:
    program = written(tmp_path, "fewest_jobs_program", FEWEST_JOBS) + ":solve"
    judged = judge(program, "aryl.reclaim")
    assert judged.score == judge("smallest_count_first", "aryl.reclaim").score
    assert judge(program, "aryl.reclaim", no_solver=True).score == judged.score
    study = gap_study(
        "aryl.reclaim",
        heuristics=[program, "smallest_count_first"],
        seed=1,
        count=2,
        sizes=[10],
        output=tmp_path / "gaps",
    )
    rows = study.rows.set_index("algorithm")["value"]
    assert rows[program].tolist() == rows["smallest_count_first"].tolist()
    assert check_heuristic("aryl.reclaim", program, max_examples=5).ok


@pytest.mark.slow
def test_a_plain_program_is_hunted(tmp_path: Path) -> None:
    program = written(tmp_path, "hunted_program", FEWEST_JOBS) + ":solve"
    assert find_worst("aryl.reclaim", program, seed=1, restarts=1).worst_gap > 0


PLAIN_FAULTS = {
    "not a dictionary": ("return [0]", r"got list, must be a dictionary with gpus"),
    "a field that is none": ("return {'gpu': [0]}", r"unknown field 'gpu' \(did you mean 'gpus'\?\)"),
    "a field too few": ("return {}", r"field 'gpus' is missing"),
    "half a GPU": ("return {'gpus': [0.5]}", r"must be a whole number"),
    "nothing": ("return None", "returned None in place of a plan"),
}


@pytest.mark.parametrize("fault", PLAIN_FAULTS)
def test_what_is_no_plan_fails_with_the_reason(tmp_path: Path, fault: str) -> None:
    body, reason = PLAIN_FAULTS[fault]
    program = written(tmp_path, f"fault_{list(PLAIN_FAULTS).index(fault)}", f"def solve(instance):\n    {body}\n")
    (one,) = judge_on([text_of(prism.full_to_the_brim())], f"{program}:solve", "prism.placement").instances
    assert one.status == Status.FAILED
    assert re.search(reason, one.reason), one.reason


def test_what_a_plain_program_changes_changes_no_instance() -> None:
    instance = prism.full_to_the_brim()
    digest = instance.digest
    given = plain(instance)
    given["sizes"][0] = given["memory"][0] = 0.0
    assert prism.full_to_the_brim().digest == digest == type(instance).from_dict(plain(instance)).digest
