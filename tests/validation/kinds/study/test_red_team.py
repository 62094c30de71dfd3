"""Heuristics that cheat, or break what they can reach: none gains, no other row changes, and nothing is left.

They stand in ``benchmarks/faults/cheats.py``.  Those that end run in one study beside the honest ones and the exact
solves, under a limit that no machine is too slow for; those that last run in another, under a short one.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from benchmarks.faults.cheats import CHEATS, HONEST, bad, honest
from benchmarks.faults.heuristics import Left, gained, known
from benchmarks.faults.studies import without_pictures
from instances.aryl.reclaim import Reclaim, ReclaimPlan
from validation import Study, gap_study
from validation.kernel.walls import standing

from .studies import FORKED

pytestmark = [FORKED, pytest.mark.slow]

STANDING = all(standing().values())
RUN = {name: one for name, one in CHEATS.items() if STANDING or not one.walled}
"""What this kernel can keep from what it tries."""
ASKED: dict[str, Any] = {"problems": "aryl.reclaim", "sizes": [8], "count": 1, "seed": 5, "jobs": 2}


class Studied:
    """The studies of all cheats, and what is left of them."""

    def __init__(self, folder: Path) -> None:
        self.left = Left()
        short = {name: one.function for name, one in RUN.items() if not one.lasting}
        lasting = {name: one.function for name, one in RUN.items() if one.lasting}
        self.short = self.beside(folder / "short", short, time_limit=60.0)
        self.lasting = self.beside(folder / "lasting", lasting, time_limit=0.5)

    def beside(self, folder: Path, cheats: dict[str, Any], time_limit: float) -> Study:
        """A study of cheats that goes on from one of what is honest, whose log they could read."""
        plain = {**HONEST, "bad": bad}
        with known(folder) as left:
            output = folder / "study"
            self.undisturbed = gap_study(**ASKED, heuristics=plain, output=output)
            found = gap_study(
                **ASKED, heuristics={**plain, **cheats}, time_limit=time_limit, memory_limit=2 * 10**8, output=output
            )
        self.left.files += left.files
        self.left.processes += left.processes
        return found

    def rows(self, name: str) -> pd.DataFrame:
        rows = self.lasting.rows if name in CHEATS and CHEATS[name].lasting else self.short.rows
        return rows[rows["algorithm"] == name]


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Studied:
    with without_pictures():
        return Studied(tmp_path_factory.mktemp("red-team"))


def value_of(study: Study, name: str) -> float:
    return float(study.rows.set_index("algorithm").loc[name, "value"])


def test_there_are_many() -> None:
    assert len(CHEATS) >= 65
    assert all(one.function.__doc__ for one in CHEATS.values())


@pytest.mark.parametrize("name", ["exact", "bad", *HONEST])
def test_what_is_honest_is_as_it_was(studied: Studied, name: str) -> None:
    row = studied.rows(name).iloc[0]
    assert row["status"] == ("optimal" if name == "exact" else "feasible"), row["reason"]
    assert row["value"] == value_of(studied.undisturbed, "honest" if name in HONEST else name)


def test_a_cheat_would_have_something_to_gain(studied: Studied) -> None:
    assert value_of(studied.undisturbed, "bad") > value_of(studied.undisturbed, "honest")


@pytest.mark.parametrize("name", RUN)
def test_no_cheat_gains(studied: Studied, name: str) -> None:
    rows = studied.rows(name)
    assert len(rows) == 1
    assert gained(CHEATS[name], rows.iloc[0], value_of(studied.undisturbed, "bad")) == ""


def test_a_clock_of_its_own_saves_no_time(studied: Studied) -> None:
    assert (studied.rows("another_clock")["seconds"] >= 0.2).all()


def test_what_it_says_is_plain(studied: Studied) -> None:
    """A reason stands in tables and on terminals: it is short, and moves no cursor."""
    for reason in pd.concat([studied.short.rows, studied.lasting.rows])["reason"].dropna():
        assert reason.isprintable()
        assert len(reason) < 2500


def test_nothing_is_left_behind(studied: Studied) -> None:
    assert studied.left.files == []
    assert studied.left.processes == []


def test_the_study_is_whole(studied: Studied) -> None:
    with pytest.warns(UserWarning, match="another study was here"):
        again = gap_study(**ASKED, heuristics=["server_fraction"], output=studied.short.directory)
    assert again.metadata["finished"]
    rows = again.rows.set_index("algorithm")
    assert rows.loc["server_fraction", "value"] == rows.loc["exact", "value"] or re.match(
        "feas", rows.iloc[1]["status"]
    )


def test_answering_what_is_easy_only_is_told(tmp_path: Path) -> None:
    """Gaps are those of the plans that there are; how many there are stands beside them."""

    def easy(instance: Reclaim) -> ReclaimPlan:
        if instance.num_servers > 5:
            raise RuntimeError("too hard")
        return honest(instance)

    asked: dict[str, Any] = {**ASKED, "sizes": [5, 8], "count": 2, "heuristics": {"easy": easy, "honest": honest}}
    summary = gap_study(**asked, output=tmp_path).summary().set_index(["heuristic", "size"])
    counts = summary[["instances", "feasible", "failed"]]
    assert counts.loc[("easy", 5)].tolist() == [2, 2, 0]
    assert counts.loc[("easy", 8)].tolist() == [2, 0, 2]
    gaps = ["gap_mean_low", "gap_worst_low", "gap_mean_high", "gap_worst_high"]
    assert summary.loc[("easy", 8), gaps].isna().all()
    assert summary.loc[("easy", 5), gaps].tolist() == summary.loc[("honest", 5), gaps].tolist()
