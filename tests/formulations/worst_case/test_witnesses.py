"""The stored witnesses of worst cases: the reference looks at all their plans, in exact fractions."""

import json
from pathlib import Path

import formulations
from instances import files
from instances.base import agree
from instances.reference import PROBLEMS, Reference

PLACE = Path(__file__).parents[3] / "docs" / "worst-cases"


def test_the_reference_finds_the_optimum_of_each_witness_by_enumeration() -> None:
    found = 0
    for file in sorted(PLACE.glob("*.json")):
        told = json.loads(file.read_text(encoding="utf-8"))
        told = told.get("instance", told)
        if told["problem"] not in PROBLEMS:
            assert told["problem"] == "demo.identical_machines"
            continue
        instance = files.read(told)
        # It raises TooLarge where it does not come to an end.
        best = Reference(files.text_of(instance)).best_merits(30.0)
        solution = formulations.solve(instance)
        assert solution.objective is not None
        assert agree(float(best[0]), solution.objective)
        found += 1
    assert found >= 50
