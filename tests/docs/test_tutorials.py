"""Tutorials and how-to pages: every block runs, and what the pages show is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..files import module_of

ROOT = Path(__file__).parents[2]
RUNNER = ROOT / "docs" / "run.py"
FOLDERS = [ROOT / "docs" / "tutorials", ROOT / "docs" / "how-to"]
PAGES = [path for folder in FOLDERS for path in sorted(folder.glob("*.md")) if path.name != "index.md"]
# What cannot run in a test, and why.
SHOWN_ONLY = {
    ("first-study.md", "python3 -m venv"): "installs the library anew",
    ("harness.md", "openevolve-run"): "needs a language model",
    ("slurm.md", "sbatch"): "needs Slurm; the page runs the same script by bash",
}


RUN = module_of(RUNNER)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_pages_show_what_happens(page: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(page)], capture_output=True, text=True, timeout=RUN.LIMIT + 60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_nothing_in_a_page_that_is_not_run_saved_or_compared() -> None:
    shown_only = set()
    for page in PAGES:
        before = None
        for block in RUN.blocks(page.read_text(encoding="utf-8")):
            where = f"{page.name}: {block.code}"
            if block.file:
                pass
            elif block.language == "console":
                found = [one for one in SHOWN_ONLY if one[0] == page.name and block.code.startswith(one[1])]
                assert found, where
                shown_only.update(found)
            elif block.language == "text":
                assert before is not None, where
                assert before.language in RUN.RUN, where
                assert not before.file, where
                assert block.code.strip(), where
            else:
                assert block.language in (*RUN.RUN, *RUN.READ), where
            before = block
    assert shown_only == set(SHOWN_ONLY)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_the_index_names_every_page(folder: Path) -> None:
    index = (folder / "index.md").read_text(encoding="utf-8")
    (tree,) = re.findall(r"```\{toctree\}\n(?::.*\n)*\n((?:.*\n)*?)```", index)
    pages = [page.stem for page in PAGES if page.parent == folder]
    assert sorted(tree.split()) == pages
    assert sorted(re.findall(r"^- .*\]\((\S+)\.md\)", index, re.MULTILINE)) == pages


def test_the_first_tutorial_explains_every_column() -> None:
    page = (FOLDERS[0] / "first-study.md").read_text(encoding="utf-8")
    printed = next(block.code for block in RUN.blocks(page) if block.language == "text")
    explained = re.search(r"^\| column \|.*\n.*\n((?:\|.*\n)*)", page, re.MULTILINE)
    assert explained is not None
    names = [name for line in explained[1].splitlines() for name in re.findall(r"`(.*?)`", line.split("|")[1])]
    assert names == re.split(r"\s{2,}", printed.splitlines()[1].strip())


def page_of(folder: Path, text: str) -> list[str]:
    path = folder / "page.md"
    path.write_text(text, encoding="utf-8")
    found: list[str] = RUN.differences(path)
    return found


PAGE = """
Save this as `data/one.txt`:

```text
3
```

```python
x = 4
print(open("data/one.txt").read().strip(), "in 1.2 ms")
```

```text
3 in 25 µs
```

```python
print(x)
```

```text
4
```

```sh
ls -d examples; seq 3
```

```text
examples
...
3
```
"""


def test_a_page_that_is_true_has_no_differences(tmp_path: Path) -> None:
    assert page_of(tmp_path, PAGE) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (PAGE.replace("3 in 25 µs", "5 in 25 µs"), "- 5 in 25 µs"),
        (PAGE.replace("\n4\n", "\n4.0\n"), "- 4.0"),
        (PAGE.replace("seq 3", "seq 4"), "+ 4"),
        (PAGE + "\n![a picture](none.svg)\n", "no block makes none.svg"),
    ],
    ids=["output", "value", "more", "picture"],
)
def test_a_page_that_is_not_true_is_told(wrong: str, words: str, tmp_path: Path) -> None:
    assert wrong != PAGE
    assert words in "\n".join(page_of(tmp_path, wrong))


def test_a_block_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"this block failed:\nprint\(y\)\n(.|\n)*NameError"):
        page_of(tmp_path, PAGE.replace("print(x)", "print(y)"))
    with pytest.raises(RuntimeError, match=r"this block failed:\nfalse; true"):
        page_of(tmp_path, PAGE.replace("ls -d examples;", "false; true;"))
    with pytest.raises(RuntimeError, match=r"this block failed:\nimport os; os._exit"):
        page_of(tmp_path, PAGE.replace("print(x)", "import os; os._exit(0)"))
