"""Write the computed parts of the documents anew: options, the collection, verdicts on claims."""

import re
import sys
from pathlib import Path

from validation import ReplayOptions, StudyOptions
from validation.cli import main
from validation.collection import load
from validation.collection.page import MARK, tables

DOCS = Path(__file__).parent


def with_options(page: str, table: str) -> str:
    """A page with the table of options as the library has it."""
    return re.sub(r"\| option \|.*?\n\n", lambda _: f"{table}\n", page, count=1, flags=re.DOTALL)


if __name__ == "__main__":
    for name, options in (("studies.md", StudyOptions), ("replay.md", ReplayOptions)):
        page = DOCS / name
        page.write_text(with_options(page.read_text(encoding="utf-8"), options.table()), encoding="utf-8")
    page = DOCS / "collection.md"
    kept = page.read_text(encoding="utf-8").partition(MARK)[0]
    page.write_text(f"{kept}{MARK}\n{tables(load())}", encoding="utf-8")
    sys.argv[1:] = ["claims", "-o", str(DOCS / "claims.md")]
    main()
