"""The gallery: a picture for each problem, which is what the code beside it draws."""

from pathlib import Path

import pytest

from instances import problems

from ..files import COLLECTED, module_of

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
QUICK = ("aryl.reclaim", "gavel.max_min_fairness")


MAKE = module_of(GALLERY / "make.py")
# What is written in a picture; where it stands may differ between versions of Matplotlib.
words = module_of(GALLERY.parent / "run.py").words_of


def test_each_picture_has_its_code_and_its_page() -> None:
    assert set(problems()) >= set(MAKE.pictured()) >= COLLECTED
    expected = {f"{problem.replace('.', '/')}{kind}" for problem in MAKE.pictured() for kind in (".py", ".svg", ".md")}
    assert {file.relative_to(GALLERY).as_posix() for file in GALLERY.glob("[!_]*/*.*")} == expected
    for problem in MAKE.pictured():
        assert MAKE.script(problem).with_suffix(".md").read_text(encoding="utf-8") == MAKE.page(problem)
        assert f":link: {problem.replace('.', '/')}\n" in MAKE.index()
    assert (GALLERY / "index.md").read_text(encoding="utf-8") == MAKE.index()


@pytest.mark.parametrize(
    "problem", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MAKE.pictured()]
)
def test_a_picture_is_what_its_code_draws(problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    drawn = MAKE.draw(problem, tmp_path)
    kept = MAKE.script(problem).with_suffix(".svg")
    said = words(kept)
    assert words(tmp_path / kept.name) == said
    instance, plan, optimum = drawn["instance"], drawn["plan"], drawn["optimum"]
    assert instance.problem == problem
    assert f"optimal: {instance.objective(optimum.plan):.4g}" in said
    if instance.violations(plan):
        assert any("infeasible" in each for each in said)
    else:
        worse = abs(instance.objective(plan) - optimum.objective) / abs(optimum.objective)
        assert any(f"{instance.objective(plan):.4g}, a gap of {worse:.0%}" in each for each in said)
        assert worse > 0.04
