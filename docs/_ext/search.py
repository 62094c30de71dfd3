"""What people search for, and the page that answers: found first, whatever other pages have the same words.

Each is an entry of the index for the page as a whole. The site's search puts an entry that is what was asked for before
titles and words.
"""

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)

ASKED = {
    "adding-a-problem": ("my own problem", "own problem"),
    "cite": ("bibtex", "citation", "cite", "citing"),
    "data": ("my own data", "own data"),
    "how-to/latex": ("figure for a paper", "latex table"),
    "installation": ("install", "installation", "name clash"),
    "replay": ("replays", "simulate a trace"),
    "solving": ("solver", "time limit"),
    "tutorials/first-study": ("first study",),
    "tutorials/own-heuristic": ("my own heuristic", "own heuristic"),
    "tutorials/trace": ("my own trace", "own trace"),
}
"""Each page with the words under which it is looked for."""


def enter(app: Sphinx, document: nodes.document) -> None:
    words = ASKED.get(app.env.docname)
    section = next(iter(document.findall(nodes.section)), None)
    if words and section is not None:
        entries = [("single", each, section["ids"][0], "main", None) for each in words]
        section.insert(0, addnodes.index(entries=entries, inline=False))


def known(app: Sphinx, env: Any) -> None:
    for page in ASKED.keys() - env.found_docs:
        LOGGER.warning("docs/_ext/search.py has words for %s, which is no page", page)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("doctree-read", enter)
    app.connect("env-check-consistency", known)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
