"""Draw the pictures of the gallery, and write its pages, anew.

``python docs/gallery/make.py`` takes all, ``python docs/gallery/make.py aryl.reclaim`` those that are named.
"""

import ast
import os
import runpy
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any

from benchmarks import PAPERS
from instances import problems
from validation.pages.drawing import own_style

GALLERY = Path(__file__).parent


def script(problem: str) -> Path:
    """Return the path of the code that draws a problem's picture."""
    return GALLERY / f"{problem.replace('.', '/')}.py"


def pictured() -> list[str]:
    """Return the problems that have a picture."""
    return [problem for problem in problems() if script(problem).exists()]


def says(problem: str) -> str:
    """Return what the picture shows, in a sentence."""
    return ast.get_docstring(ast.parse(script(problem).read_text(encoding="utf-8"))) or ""


def draw(problem: str, folder: Path) -> dict[str, Any]:
    """Draw a problem's picture into a folder, always with the same bytes; return the variables of its code."""
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    with own_style({}, salt=problem), chdir(folder):
        from matplotlib import pyplot

        pyplot.switch_backend("svg")
        variables = runpy.run_path(str(script(problem)))
        pyplot.close("all")
    return variables


def page(problem: str) -> str:
    """Return the page of a picture: the picture, and the code that draws it."""
    path = problem.replace(".", "/")
    name = script(problem).stem
    return f"""# {problem}

{says(problem)}

![{says(problem)}]({name}.svg)

The problem, its model and its heuristics: [{problem}](../../problems/{path}.md). The code that draws the picture:

```{{literalinclude}} {name}.py
:language: python
```
"""


def index() -> str:
    """Return the page of all pictures, by paper."""
    lines = [
        "# Gallery",
        "",
        "One picture per problem: a heuristic's plan above, a proven optimum below. The code is on the page of each.",
        "",
    ]
    for paper, title in PAPERS.items():
        lines += [f"## {title}", "", "::::{grid} 1 1 1 1", ":gutter: 3", ""]
        for problem in pictured():
            path = problem.replace(".", "/")
            if path.startswith(f"{paper}/"):
                lines += [f":::{{grid-item-card}} {problem}", f":link: {path}", ":link-type: doc"]
                lines += [f":img-bottom: {path}.svg", f":img-alt: {says(problem)}", "", says(problem), ":::", ""]
        lines += ["::::", ""]
    lines += ["```{toctree}", ":hidden:", "", *(problem.replace(".", "/") for problem in pictured()), "```", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    for name in sys.argv[1:] or pictured():
        draw(name, script(name).parent)
        script(name).with_suffix(".md").write_text(page(name), encoding="utf-8")
    (GALLERY / "index.md").write_text(index(), encoding="utf-8")
