"""Studies that find every optimum once more."""

from pathlib import Path

import pytest

import formulations
from formulations import Verification
from heuristics.aryl.reclaim import server_fraction
from validation import Study, gap_study
from validation.cli.studies import _contradiction
from validation.kernel.store import read_log
from validation.kinds.study.records import STUDY

from .studies import FORKED

pytestmark = FORKED


def study(output: Path, *, verify: bool) -> Study:
    return gap_study(
        "aryl.reclaim", heuristics=[server_fraction], sizes=[6], count=3, seed=1, output=output, verify=verify
    )


def test_every_optimum_is_found_once_more(tmp_path: Path) -> None:
    found = study(tmp_path, verify=True)
    exact = found.rows["algorithm"] == "exact"
    assert found.rows.loc[exact, "verification"].tolist() == ["confirmed"] * 3
    assert found.rows.loc[~exact, "verification"].tolist() == [""] * 3
    assert found.metadata["verification"] == {"confirmed": 3}
    assert not len(found.disagreements)
    seconds = [row["second"] for row in read_log(tmp_path, STUDY).rows if row["algorithm"] == "exact"]
    assert [one["way"] for one in seconds] == ["reference"] * 3
    assert {row["value"] for row in read_log(tmp_path, STUDY).rows if row["algorithm"] == "exact"} == {
        one["objective"] for one in seconds
    }
    assert "found once more by a second way: 3 confirmed" in found.report.read_text(encoding="utf-8")


def test_rows_with_and_without_it_are_different_rows(tmp_path: Path) -> None:
    without = study(tmp_path, verify=False)
    assert without.metadata["verification"] == {}
    found = study(tmp_path, verify=True)
    keys = [set(one.rows["key"]) for one in (without, found)]
    heuristics = set(found.rows.loc[found.rows["algorithm"] != "exact", "key"])
    assert keys[0] & keys[1] == heuristics
    assert found.rows["value"].tolist() == without.rows["value"].tolist()


def test_two_that_contradict_each_other_are_an_oracle_disagreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Verification("contradicted", "second search", "optimal", 1.0, 1.0, 0.0, "second <optimal>, objective 1.0")
    monkeypatch.setattr(formulations, "verify", lambda *_, **__: wrong)
    found = study(tmp_path, verify=True)
    assert found.disagreements["algorithm"].tolist() == ["exact"] * 3
    assert found.metadata["disagreements"] == 3
    assert found.metadata["verification"] == {"contradicted": 3}
    page = found.report.read_text(encoding="utf-8")
    assert "second search: second &lt;optimal&gt;, objective 1.0" in page
    said = _contradiction(found.disagreements.iloc[0].to_dict())
    assert said.startswith("the exact side's optimal ")
    assert "contradicted by a second way" in said
