"""Problems from outside: their bugs are found though ``_check`` refuses most data, and their fields are understood."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]

CHECKED = """
import json, sys
import numpy as np
import racks
from validation import check_heuristic
from validation.testing.strategies import derived
problem, heuristic, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3])
reports = [check_heuristic(problem, heuristic, seed=seed).to_dict() for seed in range(seeds)]
print(json.dumps(reports))
"""


def reports(problem: str, heuristic: str, seeds: int) -> list[dict[str, Any]]:
    """What checks report of a problem that an interpreter of its own registers."""
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHECKED, problem, heuristic, str(seeds)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def failed(report: dict[str, Any]) -> set[str]:
    return {one["name"] for one in report["results"] if one["status"] == "failed"}


BUGS = [("demo.racks", "one_gpu_over", "server_gpus"), ("demo.fleet", "memory_is_plenty", "server_memory")]


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "heuristic", "rule"), BUGS)
def test_a_bug_of_an_outside_problem_is_found_at_every_seed(problem: str, heuristic: str, rule: str) -> None:
    for report in reports(problem, heuristic, 10):
        assert failed(report) == {"feasible"}
        assert any(f"breaks {rule}" in one["reason"] for one in report["results"])


def test_a_source_that_starves_is_told_and_its_instances_are_made_otherwise() -> None:
    (report,) = reports("demo.racks", "right", 1)
    assert report["ok"]
    sources = {one["name"]: (one["instances"], one["refused"]) for one in report["sources"]}
    valid, refused = sources["its fields"]
    assert refused > 10 * valid
    assert sources["its generator, with other fields"][0] > sources["its generator"][0]
    assert sources["these, at an edge of its plans"][0]
    (warning,) = report["warnings"]
    assert warning.startswith(f"the problem's _check refuses {refused} of {refused + valid} instances from its fields")
