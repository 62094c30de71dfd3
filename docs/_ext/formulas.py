"""Formulas that need no network: MathJax in the site's own files, as it was published.

`sphinx-mathjax-offline` carries the files of MathJax 3.2.2. One of them is all that a page asks for: it draws formulas
as paths, and so takes no fonts. It is told by its hash, so that no other release of either slips in.
"""

import shutil
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

CARRIER = "sphinx-mathjax-offline"
SCRIPT = "tex-svg-full.js"
SHA256 = "a4354ff94fd868aea0cc6eaaa79a57fda0588646fc46ee3700a349ee0a11cbe6"
"""Of that file in MathJax 3.2.2, as its own npm package has it."""


def script() -> Path:
    """Return the path of MathJax's file in its package."""
    found = [Path(str(each.locate())) for each in distribution(CARRIER).files or () if each.name == SCRIPT]
    if not found or sha256(found[0].read_bytes()).hexdigest() != SHA256:
        raise ExtensionError(f"{CARRIER} has no {SCRIPT} of MathJax 3.2.2: install what the extra `docs` asks for")
    return found[0]


def copy(app: Sphinx) -> None:
    """Put the file where pages ask for it, before any page tells what hash the file has."""
    if app.builder.format == "html":
        folder = Path(app.outdir) / "_static" / "mathjax"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(script(), folder / SCRIPT)


def setup(app: Sphinx) -> dict[str, Any]:
    app.config.mathjax_path = f"mathjax/{SCRIPT}"
    app.connect("builder-inited", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
