"""The site: `make docs` writes it to docs/_build/html, and a warning fails it."""

import os
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = ABOUT["name"]
version = release = ABOUT["version"]
author = copyright = ABOUT["authors"][0]["name"]

# Each file of _ext is an extension of this site.
sys.path.insert(0, str(DOCS / "_ext"))
extensions = ["myst_nb", "sphinx_design", *sorted(path.stem for path in (DOCS / "_ext").glob("*.py"))]
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath", "substitution"]
myst_substitutions = {"version": release}
myst_heading_anchors = 3

# The notebooks stay at the top of the repository. Their copies run here; one that raises fails the build.
for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
    copy = DOCS / "notebooks" / path.name
    if not copy.exists() or copy.read_bytes() != path.read_bytes():
        shutil.copy(path, copy)
for copy in (DOCS / "notebooks").glob("*.ipynb"):
    if not (ROOT / "notebooks" / copy.name).exists():
        copy.unlink()
os.environ.setdefault("SCHEDULING_DATA", str(ROOT.parent / "shared" / "data"))
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

html_theme = "pydata_sphinx_theme"
html_title = f"{project} {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["tables.js"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    # All but tutorials: what commands print is wide.
    "secondary_sidebar_items": {"[!t]**": ["page-toc"]},
    "footer_start": ["copyright"],
    "footer_end": [],
}
# Links to where the project is kept, as soon as pyproject.toml says where that is.
if source := ABOUT.get("urls", {}).get("Source"):
    html_theme_options["icon_links"] = [{"name": "Source", "url": source, "icon": "fa-solid fa-code-branch"}]


def setup(app: Any) -> None:
    """List the pages of problems without a card below the cards."""

    def listed(_: Any, name: str, source: list[str]) -> None:
        if name == "problems/index":
            folder = DOCS / "problems"
            pages = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.glob("*/*.md"))
            others = [page for page in pages if page not in source[0]]
            if others:
                source[0] += "\n".join(["", "## Others", "", "```{toctree}", *others, "```", ""])

    app.connect("source-read", listed)
