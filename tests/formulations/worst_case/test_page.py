"""What docs/worst-cases.md says: each witness of its table is judged again, and the walk-through is the example."""

import json
import os
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import formulations
import instances
from formulations.worst_case import worst_case_model
from validation import catalogue

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "worst-cases.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "worst_case" / "identical_machines.py"
ROWS = re.findall(
    r"^\| `([a-z_.]+)` `(\w+)` \| (\d+) \| ([^|]+) \| ([\d./]+)[^|]*\| \[[^]]+\]\((worst-cases/[^)]+)\)",
    PAGE,
    re.MULTILINE,
)
OWN = [row for row in ROWS if instances.files.is_own(row[0])]


def test_the_table_is_read() -> None:
    assert len(ROWS) == sum(line.startswith("| `") for line in PAGE.splitlines())
    assert len(OWN) < len(ROWS)


def test_every_witness_stands_in_the_table() -> None:
    assert {f"worst-cases/{path.name}" for path in (ROOT / "docs" / "worst-cases").iterdir()} == {
        row[-1] for row in ROWS
    }


@pytest.mark.parametrize(
    ("problem", "heuristic", "size", "words", "ratio", "witness"), OWN, ids=[row[-1] for row in OWN]
)
def test_a_witness_has_the_ratio_that_is_stated(
    problem: str, heuristic: str, size: str, words: str, ratio: str, witness: str
) -> None:
    told = json.loads((ROOT / "docs" / witness).read_text(encoding="utf-8"))
    instance = instances.load(ROOT / "docs" / witness)
    assert (told["problem"], told["heuristic"], told["size"]) == (problem, heuristic, int(size))
    model = worst_case_model(problem, heuristic)
    assert model is not None
    assert told["instances"] == words
    assert words.startswith(model.instances(**model.arguments(int(size), told["dials"])).words)
    plan = catalogue.entry(problem).heuristics[heuristic].function(instance)
    assert not instance.violations(plan)
    best = formulations.solve(instance)
    assert best.status == "optimal"
    assert best.objective is not None
    lesser, greater = sorted((instance.objective(plan), best.objective))
    assert greater / lesser == pytest.approx(float(Fraction(ratio)), rel=1e-5)
    assert told["bound"] == pytest.approx(float(Fraction(ratio)), rel=1e-5)


def test_the_walk_through_is_the_example() -> None:
    source = EXAMPLE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert blocks
    assert all(block in source for block in blocks)


SCRIPT = """
import itertools, json, sys
import numpy as np
import instances
from validation import catalogue, worst_case
catalogue.load(sys.argv[1])
import identical_machines as example
from formulations import solve

def graham(jobs, machines):
    return worst_case("demo.identical_machines", "longest_first", size=jobs, num_machines=machines)

proven = [graham(*one) for one in ((4, 2), (5, 2), (7, 3))]
# Whole numbers, and every plan: five jobs of up to 3 s on two machines, where the worst is 3, 3, 2, 2, 2.
tried = 0.0
for times in itertools.combinations_with_replacement(range(4), 5):
    instance = example.IdenticalMachines(times=np.array(times, float), num_machines=2)
    best = min(
        max(sum(t for t, i in zip(times, on) if i == machine) for machine in range(2))
        for on in itertools.product(range(2), repeat=5)
    )
    if best:
        tried = max(tried, instance.objective(example.longest_first(instance)) / best)
witnesses = []
for path, heuristic in json.loads(sys.argv[2]):
    witness = instances.load(path)
    value = witness.objective(catalogue.entry(witness.problem).heuristics[heuristic].function(witness))
    witnesses.append([value, solve(witness).objective])
told = [[one.status, one.value, one.bound] for one in proven]
print(json.dumps({"proven": told, "tried": tried, "witnesses": witnesses}))
"""


@pytest.mark.slow
def test_longest_processing_time_first_is_as_bad_as_graham_says() -> None:
    """In a process of its own, because the example registers a problem; with it its witnesses of the table."""
    rows = [row for row in ROWS if row not in OWN]
    asked = json.dumps([[str(ROOT / "docs" / witness), heuristic] for _, heuristic, *_, witness in rows])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(EXAMPLE), asked],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLE.parent), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout)
    graham = {2: 4 / 3 - 1 / 6, 3: 4 / 3 - 1 / 9}
    # Four jobs on two machines do not suffice for it.
    assert [status for status, _, _ in told["proven"]] == ["optimal"] * 3
    values = [value for _, value, _ in told["proven"]]
    assert values[0] < graham[2] - 1e-3
    assert values[1:] == pytest.approx([graham[2], graham[3]], rel=1e-6)
    assert [bound for _, _, bound in told["proven"]] == pytest.approx(values, rel=1e-6)
    assert told["tried"] == pytest.approx(graham[2])
    assert [value / best for value, best in told["witnesses"]] == pytest.approx(
        [float(Fraction(ratio)) for *_, ratio, _ in rows], rel=1e-5
    )
