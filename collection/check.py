"""Check a collection: its files, what its plans are worth and break, and what proves its bounds.

    python collection/check.py [DIR] [--problem P] [--name N]
    python collection/check.py [DIR] --pack FILE

Needs Python 3.11 or later and nothing else.  What checks is the library's reference, ``instances/reference/`` of the
checkout, which imports nothing but the standard library; an archive that ``--pack`` makes has it beside this file.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# As a package of its own: the one around it needs what the library needs.  Also where Python looks nowhere else (-I).
sys.path.insert(0, str(HERE if (HERE / "reference").is_dir() else HERE.parent / "instances"))

from reference.records import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(folder=HERE))
