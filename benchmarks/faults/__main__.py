"""``python -m benchmarks.faults --seed 1``: do all harm, print what came of it; 1 where anything went wrong."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from benchmarks.faults import MODULES
from benchmarks.faults.tally import FAULTS, Tally
from benchmarks.tables import machine

__all__ = ["main"]

COLUMNS = (
    "fault",
    "what is done",
    "times",
    "what came of it",
    "rows lost",
    "doubled",
    "changed",
    "tracebacks",
    "hangs",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and on standard error each thing that must not have happened."""
    assert MODULES
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a fault, or all whose names begin so; all by default")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="of the times that each is done; 1 by default")
    given = parser.parse_args(arguments)
    wanted = [name for name in FAULTS if not given.names or any(f"{name}.".startswith(f"{n}.") for n in given.names)]
    if not wanted or not 0 < given.share <= 1:
        parser.error(f"got {' '.join(given.names)} and {given.share:g}, must be of {', '.join(FAULTS)}, and in (0, 1]")
    print(_line(COLUMNS), _line(["---"] * len(COLUMNS)), sep="\n", flush=True)
    fine, began = True, time.monotonic()
    for name in wanted:
        found = FAULTS[name]
        tally = found.harm(given.seed, max(1, round(given.share * found.count)))
        print(_line([name, found.summary.rstrip("."), *_cells(tally)]), flush=True)
        for wrong in tally.wrong:
            print(f"{name}: {wrong}", file=sys.stderr, flush=True)
        fine = fine and tally.fine
    print(f"\nSeed {given.seed}; {(time.monotonic() - began) / 60:.0f} minutes. {machine()}")
    return 0 if fine else 1


def _cells(tally: Tally) -> list[str]:
    came = ", ".join(f"{count:,} {outcome}" for outcome, count in tally.outcomes.items())
    counts = (tally.lost, tally.doubled, tally.changed, tally.tracebacks, tally.hangs)
    return [f"{tally.tried:,}", came, *map(str, counts)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
