"""Pages whose tables can be filtered: they load `_static/filter.js`, which makes the box."""

from typing import Any

from sphinx.application import Sphinx

FILTERED = {"claims/index"}


def load(app: Sphinx, pagename: str, *others: Any) -> None:
    if pagename in FILTERED:
        app.add_js_file("filter.js")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", load)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
