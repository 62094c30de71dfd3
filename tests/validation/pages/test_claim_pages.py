"""Pages of claims: what they say, what is written beside them, and what is left alone."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import instances
from heuristics.aryl.reclaim import server_fraction
from instances.aryl.reclaim import Reclaim
from validation import StudyError
from validation.claims import reread
from validation.claims.plans import OPTIMAL, plans_of
from validation.kinds.claim_pages import MARK, folder_of_pages, write_pages
from validation.kinds.claims import Claim, Reading, Verdict, _readings, claims, examine

from ...claims import cluster


def clusters() -> Iterator[Reclaim]:
    return map(cluster, range(1, 5))


def few(most: float) -> Any:
    return lambda instance: f"{instance.num_jobs} jobs" if instance.num_jobs > most else None


def verdict(
    name: str = "few_jobs", most_jobs: float = 9, *, stream: Iterable[Reclaim] | None = None, **changes: Any
) -> Verdict:
    """What became of the claim that clusters have at most so many jobs."""
    told: dict[str, Any] = {
        "source": "Nobody, section 1",
        "statement": "Clusters | are small.",
        "reading": "small is few jobs.",
        "scope": "made up",
        "exhaustive": True,
        "problem": "aryl.reclaim",
        "assumptions": "jobs are whole.",
        "relaxed": "",
    }
    made = Claim(
        name=name,
        instances=lambda rng: clusters() if stream is None else stream,
        breaks=few(most_jobs),
        **{**told, **changes},
    )
    return examine(made, instances=7)


def files(folder: Path) -> dict[str, str]:
    """Content by name."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in found}


def test_a_claim_that_held(tmp_path: Path) -> None:
    write_pages([verdict()], tmp_path)
    found = files(tmp_path)
    assert list(found) == ["aryl/reclaim/few_jobs.md", "index.md", "readings.md"]
    assert (
        r"| [few_jobs](aryl/reclaim/few_jobs.md) | Clusters \| are small. | Nobody, section 1 | the paper | not stated "
        "| none | all 4 | holds |" in found["readings.md"]
    )
    assert (
        found["aryl/reclaim/few_jobs.md"]
        == f"""{MARK}

# Clusters | are small

**Holds.** Stated in Nobody, section 1; `few_jobs`, about `aryl.reclaim`; [all claims](../../index.md).

**The paper's assumptions are kept.** Kept are: jobs are whole.

## As it is read here

Read as: small is few jobs.

Tried: made up.

**Holds** on all 4.

## Run it again

```sh
optgap claims few_jobs
```
"""
    )


def test_a_claim_that_is_refuted_has_a_picture_and_data_beside_its_page(tmp_path: Path) -> None:
    plans = plans_of(("the first servers", lambda instance: server_fraction(instance)), OPTIMAL)
    write_pages([verdict(most_jobs=1, plans=plans, relaxed="any cluster.")], tmp_path, "--instances 7")
    found = files(tmp_path)
    page = found["aryl/reclaim/few_jobs.md"]
    assert "**Refuted** by instance 2, smallest first: 2 jobs." in page
    assert "**The paper's assumptions are relaxed.** Kept are: jobs are whole.\n\nRelaxed: any cluster.\n" in page
    assert "![The counterexample: the first servers beside optimal](few_jobs-1.svg)" in page
    assert "[few_jobs-1.json](few_jobs-1.json)" in page
    assert "\noptgap solve aryl/reclaim/few_jobs-1.json\n" in page
    assert "\noptgap claims few_jobs --instances 7\n" in page
    picture = found["aryl/reclaim/few_jobs-1.svg"]
    assert picture.startswith("<svg")
    assert ">the first servers<" in picture
    assert picture.count(">jobs preempted: 2<") == 2
    shown = instances.load(tmp_path / "aryl/reclaim/few_jobs-1.json")
    assert shown == cluster(2)
    assert shown.origin == {"claim": "few_jobs", "reading": 1}


def test_who_finds_no_plan_is_not_in_the_picture(tmp_path: Path) -> None:
    write_pages([verdict(most_jobs=1, plans=plans_of(("nobody", lambda instance: None)))], tmp_path)
    found = files(tmp_path)
    assert "![The counterexample: the data]" in found["aryl/reclaim/few_jobs.md"]
    assert ">aryl.reclaim<" in found["aryl/reclaim/few_jobs-1.svg"]


def test_every_reading_has_its_own_verdict(tmp_path: Path) -> None:
    others = (
        Reading("small is one job.", few(1)),
        Reading("small is two jobs.", few(2), lambda rng: [cluster(3)], relaxed="there is one cluster."),
    )
    write_pages([verdict(others=others)], tmp_path)
    found = files(tmp_path)
    page = found["aryl/reclaim/few_jobs.md"]
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == [
        "Reading 1: holds",
        "Reading 2: refuted",
        "Reading 3: refuted",
        "Run it again",
    ]
    assert "**Depends on the reading.**" in page
    assert "**The paper's assumptions are kept, but relaxed in reading 3.**" in page
    assert "Read as: small is two jobs.\n\nRelaxed: there is one cluster.\n\nTried: the instances that this" in page
    assert {name for name in found if name.endswith(".json")} == {
        "aryl/reclaim/few_jobs-2.json",
        "aryl/reclaim/few_jobs-3.json",
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"exhaustive": False, "stream": itertools.repeat(cluster(1))},
            "**Not refuted** in 7, in the order in which",
        ),
        ({"stream": itertools.repeat(cluster(1))}, "**Not refuted** in the first 7, smallest first."),
        (
            {"exhaustive": False, "most_jobs": 2, "assumes": lambda instance: True},
            "**Refuted** by instance 3, in the order in which they are drawn, and then",
        ),
        (
            {"exhaustive": False, "most_jobs": 2},
            "instance 3, in the order in which they are drawn: 3 jobs",
        ),
        (
            {"exhaustive": False, "most_jobs": 2, "shrink": False},
            "instance 3, in the order in which they are drawn: 3 jobs",
        ),
    ],
)
def test_how_far_the_search_went(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    write_pages([verdict(**changes)], tmp_path)
    assert said in (tmp_path / "aryl/reclaim/few_jobs.md").read_text(encoding="utf-8")


def test_the_index_counts_verdicts_by_paper(tmp_path: Path) -> None:
    others = (Reading("small is one job.", few(1), relaxed="any cluster."),)
    verdicts = [
        verdict("held"),
        verdict("refuted", 1, relaxed="any cluster."),
        verdict("depends", others=others),
        verdict("other", source="Somebody, section 2"),
    ]
    write_pages(verdicts, tmp_path)
    index = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "| paper | claims | holds | not refuted | refuted | depends on the reading |" in index
    assert "| [Nobody](#nobody) | 3 | 1 | 0 | 1 | 1 |" in index
    assert "| [Somebody](#somebody) | 1 | 1 | 0 | 0 | 0 |" in index
    nobody, somebody = index.index("\n## Nobody\n"), index.index("\n## Somebody\n")
    start = "\n| [Clusters \\| are small.](aryl/reclaim/{}.md) | "
    for name, end in (
        ("held", "holds | section 1 | kept | 4 |"),
        ("refuted", "**refuted** | section 1 | relaxed | 2 |"),
        ("depends", "depends on the reading | section 1 | kept, but relaxed in reading 2 | 6 |"),
    ):
        assert nobody < index.index(f"{start.format(name)}{end}\n") < somebody
    assert somebody < index.index(f"{start.format('other')}holds | section 2 | kept | 4 |\n")
    named = re.findall(r"^(\w+) <aryl/reclaim/(\w+)>$", index, re.MULTILINE)
    assert named == [(name, name) for name in ("held", "refuted", "depends", "other")]


def test_pages_link_the_problem_where_its_page_is(tmp_path: Path) -> None:
    (tmp_path / "problems" / "aryl").mkdir(parents=True)
    (tmp_path / "problems" / "aryl" / "reclaim.md").touch()
    write_pages([verdict()], tmp_path / "claims")
    page = tmp_path / "claims" / "aryl" / "reclaim" / "few_jobs.md"
    (link,) = re.findall(r"about \[aryl.reclaim\]\((.*?)\)", page.read_text(encoding="utf-8"))
    assert (page.parent / link).resolve() == tmp_path / "problems" / "aryl" / "reclaim.md"


def test_writing_anew_changes_nothing(tmp_path: Path) -> None:
    verdicts = [verdict("one", 1, plans=plans_of("server_fraction", OPTIMAL)), verdict("two")]
    write_pages(verdicts, tmp_path)
    before = files(tmp_path)
    write_pages(verdicts, tmp_path)
    assert files(tmp_path) == before


def test_what_was_written_of_other_claims_goes_and_what_others_wrote_stays(tmp_path: Path) -> None:
    write_pages([verdict("one", 1), verdict("two", problem="aryl.two_job")], tmp_path)
    (tmp_path / "notes.md").write_text("mine", encoding="utf-8")
    (tmp_path / "aryl" / "picture.svg").write_text("<svg></svg>", encoding="utf-8")
    instances.save(cluster(1), tmp_path / "aryl" / "mine.json")
    (tmp_path / "aryl" / "broken.json").write_text("{", encoding="utf-8")
    write_pages([verdict("three")], tmp_path)
    assert list(files(tmp_path)) == [
        "aryl/broken.json",
        "aryl/mine.json",
        "aryl/picture.svg",
        "aryl/reclaim/three.md",
        "index.md",
        "notes.md",
        "readings.md",
    ]
    assert not (tmp_path / "aryl" / "two_job").exists()


@pytest.mark.parametrize("name", ["index.md", "aryl/reclaim/few_jobs.md", "aryl/reclaim/few_jobs-1.json"])
def test_nothing_of_somebody_elses_is_overwritten(name: str, tmp_path: Path) -> None:
    (tmp_path / "aryl" / "reclaim").mkdir(parents=True)
    (tmp_path / name).write_text(json.dumps(cluster(1).to_dict()), encoding="utf-8")
    before = files(tmp_path)
    with pytest.raises(StudyError, match=f"{name} is in the way, and was not written by this command"):
        write_pages([verdict(most_jobs=1)], tmp_path)
    assert files(tmp_path) == before


def test_a_page_is_no_directory() -> None:
    with pytest.raises(StudyError, match=r"^--output: got 'docs/claims.md', must be a directory"):
        folder_of_pages(Path("docs/claims.md"))
    assert folder_of_pages(Path("docs/claims")) == Path("docs/claims")


@pytest.mark.slow
def test_the_pages_of_the_library_are_what_the_command_writes(tmp_path: Path) -> None:
    """Of one paper; pictures may differ by the version of Matplotlib."""
    docs = Path(__file__).parents[3] / "docs"
    (tmp_path / "problems").symlink_to(docs / "problems")
    write_pages([examine(each, seconds=300) for each in claims("aryl")], tmp_path / "claims")
    kept, made = files(docs / "claims" / "aryl"), files(tmp_path / "claims" / "aryl")
    assert kept.keys() == made.keys()
    assert {name for name in kept if kept[name] != made[name] and not name.endswith(".svg")} == set()


def test_what_a_second_reading_changed_is_said_of_claims_that_there_are(tmp_path: Path) -> None:
    by_name = {each.name: each for each in claims()}
    assert reread.CHANGED.keys() <= by_name.keys()
    assert all(what.endswith(".") for what in reread.CHANGED.values())
    write_pages([examine(by_name["heterogeneous_degradation"])], tmp_path)
    place = "[heterogeneous_degradation](aryl/elastic_allocation/heterogeneous_degradation.md)"
    said = f"- {place}: {reread.CHANGED['heterogeneous_degradation']}\n\nEvery counterexample"
    assert said in files(tmp_path)["readings.md"]
    write_pages([verdict()], tmp_path)
    assert "Read once more" not in files(tmp_path)["readings.md"]


def test_every_claim_has_its_page() -> None:
    pages = {path.stem for path in (Path(__file__).parents[3] / "docs" / "claims").rglob("*.md")}
    assert pages == {"index", "readings", *(each.name for each in claims())}


def test_the_pages_of_the_library_have_the_words_of_its_claims() -> None:
    """Of all papers; what comes of searches is not looked at."""
    folder = Path(__file__).parents[3] / "docs" / "claims"
    index = (folder / "index.md").read_text(encoding="utf-8")
    for claim in claims():
        place = f"{claim.problem.replace('.', '/')}/{claim.name}.md"
        page = (folder / place).read_text(encoding="utf-8")
        assert f"| [{claim.statement.replace('|', chr(92) + '|')}]({place}) | " in index
        said = [
            f"# {claim.statement.removesuffix('.')}",
            f"Tried: {claim.scope}.",
            *(f"Read as: {each.text}" for each in claim.others),
        ]
        said += [f"Relaxed: {each}" for each in (claim.relaxed, *(other.relaxed for other in claim.others)) if each]
        for line in said:
            assert f"\n{line}\n" in page
        assert f" Kept are: {claim.assumptions}\n" in page


def test_the_table_of_readings_has_a_row_for_each() -> None:
    folder = Path(__file__).parents[3] / "docs" / "claims"
    lines = (folder / "readings.md").read_text(encoding="utf-8").splitlines()
    expected = []
    for claim in claims():
        place, statement = f"{claim.problem.replace('.', '/')}/{claim.name}.md", claim.statement.replace("|", r"\|")
        for number, read in enumerate((claim, *_readings(claim)), start=1):
            name = f"[{claim.name}]({place})" + (f", {number}" if claim.others else "")
            keeps = read.assumes.__doc__.partition("\n")[0].removeprefix("Return whether ").rstrip(".")
            assert keeps
            by = read.by or "the paper"
            expected.append(f"| {name} | {statement} | {claim.source} | {by} | {keeps} | {read.ties or 'none'} | ")
    rows = [line for line in lines if line.startswith("| [")]
    for row, beginning in zip(rows, expected, strict=True):
        assert row.startswith(beginning)
