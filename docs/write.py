"""Write the computed parts of the documents anew: the options of a study, and the verdicts on the papers' claims."""

import re
import sys
from pathlib import Path

from validation import StudyOptions
from validation.cli import main

DOCS = Path(__file__).parent


def with_options(page: str) -> str:
    """``docs/studies.md`` with the table of options as the library has it."""
    return re.sub(r"\| option \|.*?\n\n", lambda _: f"{StudyOptions.table()}\n", page, count=1, flags=re.DOTALL)


if __name__ == "__main__":
    studies = DOCS / "studies.md"
    studies.write_text(with_options(studies.read_text(encoding="utf-8")), encoding="utf-8")
    sys.argv[1:] = ["claims", "-o", str(DOCS / "claims.md")]
    main()
