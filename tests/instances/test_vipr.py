"""The checker of certificates: what holds is accepted, and whatever is wrong in one is refused in a line."""

import io
import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest

from instances.reference.common import Malformed
from instances.reference.programs import Program
from instances.reference.vipr import LONGEST, Constraint, Proven, Refuted, check, completed, pieces, shortened

GOOD = """\
% the most of 3x + 2y
VER 1.0
VAR 2
x y
INT 2
0 1
OBJ max
2 0 3 1 2
CON 5 4
xl G 0 1 0 1
xu L 3 1 0 1
yl G 0 1 1 1
yu L 3 1 1 1
cap L 7 2 0 2 1 2
RTP range 9 9
SOL 1
best 1 0 3
DER 6
a L 2 1 0 1 { asm } 10
l L 9 OBJ { lin 2 4 1 5 1 } 10
b G 3 1 0 1 { asm } 10
c L 0 1 1 1 { rnd 2 4 1/2 7 -1 } 9
r L 9 OBJ { lin 2 1 3 8 2 } 10
u L 9 OBJ { uns 6 5 9 7 } -1
"""

EMPTY = """\
VER 1.0
VAR 1
x
INT 1
0
OBJ min
0
CON 2 0
low G 1/3 1 0 1
high L 2/3 1 0 1
RTP infeas
SOL 0
DER 3
up G 1 1 0 1 { rnd 1 0 1 } 4
down L 0 1 0 1 { rnd 1 1 1 } 4
no G 1 0 { lin 2 2 1 3 -1 } -1
"""

SHORT = GOOD.replace("VER 1.0", "VER 1.0/short").replace("lin 2 1 3 8 2", "weak 1 8 2")

CUT = """\
VER 1.0
VAR 2
x y
INT 1
0
OBJ min
2 0 1 1 1
CON 2 1
low G 0.5 1 0 1
sum E 2 2 0 1 1 1
RTP range 2 2
SOL 1
one 2 0 1 1 1
DER 2
cut L 2 OBJ { sol } 3
end G 2 OBJ { lin 1 1 1 } -1
"""


def read(text: str) -> Proven:
    return check(pieces(io.StringIO(text)))


def test_what_holds_is_accepted() -> None:
    good, empty, cut = map(read, (GOOD, EMPTY, CUT))
    assert (good.sense, good.bound, good.lower, good.derived) == ("max", 9, 9, 6)
    assert (good.names, good.integers) == (["x", "y"], {0, 1})
    assert (empty.infeasible, empty.bound) == (True, None)
    assert (cut.sense, cut.bound, cut.upper) == ("min", 2, 2)


def test_bounds_of_the_program_are_left_out_and_found_again() -> None:
    assert shortened(GOOD) == SHORT
    short, good = read(SHORT), read(GOOD)
    assert (short.bound, short.rows, short.derived) == (good.bound, good.rows, good.derived)
    assert completed(SHORT) == GOOD.replace("lin 2 1 3 8 2", "lin 2 8 2 1 3")
    assert completed(GOOD) == GOOD
    # A bound that is there already is taken once more.
    halved = SHORT.replace("weak 1 8 2", "weak 2 1 1 8 2")
    assert "lin 2 1 3 8 2" in completed(halved)
    assert shortened(SHORT) == SHORT
    assert read(completed(SHORT)).bound == 9


WRONG = {
    "a combination that cannot be completed": (SHORT, "xu L 3 1 0 1", "xu G -3 1 0 1"),
    "one that is completed to too little": (SHORT, "r L 9 OBJ", "r L 8 OBJ"),
    "one that a weaker bound completes": (SHORT, "xu L 3 1 0 1", "xu L 4 1 0 1"),
    "one that a bound of half as much completes": (SHORT, "xu L 3 1 0 1", "xu L 3 1 0 1/2"),
    "one of another factor": (SHORT, "weak 1 8 2", "weak 1 8 1"),
    "one of the other sense": (SHORT, "weak 1 8 2", "weak 1 8 -2"),
    "one that is completed to an equation": (SHORT, "r L 9 OBJ", "r E 9 OBJ"),
    "one that rests on an assumption": (SHORT, "c L 0 1 1 1 { rnd 2 4 1/2 7 -1 } 9", "c L 0 1 1 1 { asm } 9"),
    "a factor of another sign": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 5 -1"),
    "all factors of another sign": (GOOD, "lin 2 4 1 5 1", "lin 2 4 -1 5 -1"),
    "a factor that is too small": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 5 1/2"),
    "a factor that is too large": (GOOD, "lin 2 4 1 5 1", "lin 2 4 2 5 1"),
    "a factor that is rounded": (GOOD, "lin 2 4 1 5 1", "lin 2 4 0.999999999999 5 1"),
    "a factor that is missing": (GOOD, "lin 2 4 1 5 1", "lin 1 4 1"),
    "no factors": (GOOD, "lin 2 4 1 5 1", "lin 0"),
    "a factor of 0": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 5 0"),
    "another constraint": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 1 1"),
    "one of the other side": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 0 1"),
    "a rule without rounding": (GOOD, "{ rnd 2 4 1/2 7 -1 }", "{ lin 2 4 1/2 7 -1 }"),
    "a rounding too far": (GOOD, "c L 0 1 1 1", "c L -1 1 1 1"),
    "a rounding of half of it": (GOOD, "c L 0 1 1 1 { rnd 2 4 1/2 7 -1 }", "c L 0 1 1 1 { rnd 2 4 1/4 7 -1/2 }"),
    "a rounding of a continuous variable": (GOOD, "INT 2\n0 1", "INT 1\n0"),
    "a rounding the wrong way": (EMPTY, "up G 1 1 0 1", "up G 2 1 0 1"),
    "a rounding down the wrong way": (EMPTY, "down L 0 1 0 1", "down L -1 1 0 1"),
    "a stronger bound": (GOOD, "l L 9 OBJ", "l L 8 OBJ"),
    "a stronger bound by a little": (GOOD, "l L 9 OBJ", "l L 8.99999999999999999999 OBJ"),
    "a bound of the other sense": (GOOD, "l L 9 OBJ", "l G 9 OBJ"),
    "a bound that is an equation": (GOOD, "l L 9 OBJ", "l E 9 OBJ"),
    "another left side": (GOOD, "l L 9 OBJ", "l L 9 2 0 3 1 1"),
    "a left side with one more": (GOOD, "c L 0 1 1 1", "c L 0 2 0 1 1 1"),
    "a left side with one less": (GOOD, "l L 9 OBJ", "l L 9 1 0 3"),
    "an assumption that stays open": (GOOD, "u L 9 OBJ { uns 6 5 9 7 }", "u L 9 OBJ { lin 1 6 1 }"),
    "an assumption at the end": (GOOD, "u L 9 OBJ { uns 6 5 9 7 }", "u L 9 OBJ { asm }"),
    "a split with the other's sides": (GOOD, "uns 6 5 9 7", "uns 6 7 9 5"),
    "a split that is no split": (GOOD, "uns 6 5 9 7", "uns 6 5 9 5"),
    "a split with a bound of the program": (GOOD, "uns 6 5 9 7", "uns 6 5 9 1"),
    "a split with a gap": (GOOD, "b G 3 1 0 1 { asm }", "b G 4 1 0 1 { asm }"),
    "a split of another variable": (GOOD, "a L 2 1 0 1 { asm }", "a L 2 1 1 1 { asm }"),
    "a split between whole numbers": (GOOD, "a L 2 1 0 1 { asm }", "a L 2.5 1 0 1 { asm }"),
    "a split of a continuous variable": (GOOD, "INT 2\n0 1", "INT 1\n1"),
    "a split of halves": (GOOD, "a L 2 1 0 1 { asm }", "a L 1 1 0 1/2 { asm }"),
    "a side twice": (GOOD, "uns 6 5 9 7", "uns 6 5 6 7"),
    "a side that does not prove it": (GOOD, "uns 6 5 9 7", "uns 8 5 9 7"),
    "a last constraint that is weaker": (GOOD, "u L 9 OBJ", "u L 10 OBJ"),
    "a claim that is stronger": (GOOD, "RTP range 9 9", "RTP range 9 8"),
    "a claim that is stronger by a little": (GOOD, "RTP range 9 9", "RTP range 9 8.99999999999999"),
    "a solution that is too bad": (GOOD, "RTP range 9 9", "RTP range 10 10"),
    "a solution that is too bad by a little": (GOOD, "RTP range 9 9", "RTP range 9.000000000000000001 9"),
    "no solution": (GOOD, "SOL 1\nbest 1 0 3", "SOL 0"),
    "a solution outside": (GOOD, "best 1 0 3", "best 1 0 4"),
    "a solution below": (GOOD, "best 1 0 3", "best 2 0 3 1 -1"),
    "a solution that is not whole": (GOOD, "best 1 0 3", "best 2 0 3 1 1/2"),
    "a solution that misses a row": (GOOD, "best 1 0 3", "best 2 0 3 1 1"),
    "a solution that misses an equation": (CUT, "one 2 0 1 1 1", "one 2 0 1 1 2"),
    "a row that is weaker": (GOOD, "cap L 7", "cap L 8"),
    "a row that is changed": (GOOD, "cap L 7 2 0 2 1 2", "cap L 7 2 0 2 1 1"),
    "a row of the other sense": (GOOD, "cap L 7", "cap G 7"),
    "rows in another order": (
        GOOD,
        "xu L 3 1 0 1\nyl G 0 1 1 1\nyu L 3 1 1 1\ncap L 7 2 0 2 1 2",
        "cap L 7 2 0 2 1 2\nxu L 3 1 0 1\nyl G 0 1 1 1\nyu L 3 1 1 1",
    ),
    "an objective that is changed": (GOOD, "2 0 3 1 2\nCON", "2 0 3 1 3\nCON"),
    "an objective of the other sense": (GOOD, "OBJ max", "OBJ min"),
    "an objective without a term": (GOOD, "2 0 3 1 2\nCON", "1 0 3\nCON"),
    "a claim that there is no point": (GOOD, "RTP range 9 9\nSOL 1\nbest 1 0 3", "RTP infeas\nSOL 0"),
    "a solution of what has none": (EMPTY, "SOL 0", "SOL 1\none 0"),
    "a contradiction that is none": (EMPTY, "no G 1 0", "no G 0 0"),
    "no derivation": (EMPTY, EMPTY[EMPTY.index("DER") :], "DER 0\n"),
    "a cutoff without a solution": (CUT, "RTP range 2 2\nSOL 1\none 2 0 1 1 1", "RTP range 2 inf\nSOL 0"),
    "a cutoff that is too strong": (CUT, "cut L 2 OBJ", "cut L 1 OBJ"),
    "a cutoff of the other side": (CUT, "cut L 2 OBJ", "cut G 2 OBJ"),
    "an equation that is rounded": (CUT, "end G 2 OBJ { lin 1 1 1 }", "end G 2 OBJ { rnd 1 1 1 }"),
    "a constraint that was said to be needed no more": (GOOD, "{ lin 2 4 1 5 1 } 10", "{ lin 2 4 1 5 1 } 8"),
    "an assumption that was said to be needed no more": (GOOD, "a L 2 1 0 1 { asm } 10", "a L 2 1 0 1 { asm } 0"),
}

MALFORMED = {
    "a combination to be completed in version 1.0": (GOOD, "lin 2 1 3 8 2", "weak 1 8 2"),
    "one of ten billion factors": (SHORT, "weak 1 8 2", "weak 10000000000 8 2"),
    "another version": (GOOD, "VER 1.0", "VER 1.1"),
    "no version": (GOOD, "VER 1.0\n", ""),
    "no variables": (GOOD, "VAR 2\nx y\n", ""),
    "fewer variables than are said": (GOOD, "VAR 2", "VAR 3"),
    "more variables than are said": (GOOD, "VAR 2", "VAR 1"),
    "ten billion variables": (GOOD, "VAR 2", "VAR 10000000000"),
    "ten billion constraints": (GOOD, "CON 5 4", "CON 10000000000 4"),
    "ten billion derivations": (GOOD, "DER 6", "DER 10000000000"),
    "ten billion terms": (GOOD, "cap L 7 2 0 2", "cap L 7 10000000000 0 2"),
    "ten billion factors": (GOOD, "lin 2 4 1 5 1", "lin 10000000000 4 1 5 1"),
    "fewer than no variables": (GOOD, "VAR 2", "VAR -1"),
    "two variables of one name": (GOOD, "x y", "x x"),
    "whole variables that there are not": (GOOD, "INT 2\n0 1", "INT 2\n0 2"),
    "a variable that there is not": (GOOD, "cap L 7 2 0 2 1 2", "cap L 7 2 0 2 2 2"),
    "a variable below the first": (GOOD, "cap L 7 2 0 2 1 2", "cap L 7 2 0 2 -1 2"),
    "a variable twice": (GOOD, "cap L 7 2 0 2 1 2", "cap L 7 2 0 2 0 2"),
    "a constraint that comes later": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 6 1"),
    "a constraint that refers to itself": (GOOD, "lin 2 1 3 8 2", "lin 2 1 3 9 2"),
    "a constraint that there is not": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 500 1"),
    "a constraint below the first": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 -5 1"),
    "a constraint twice": (GOOD, "lin 2 4 1 5 1", "lin 2 4 1 4 1"),
    "a derivation that is left out": (
        GOOD,
        "DER 6\na L 2 1 0 1 { asm } 10\nl L 9 OBJ { lin 2 4 1 5 1 } 10",
        "DER 5\na L 2 1 0 1 { asm } 10",
    ),
    "a row that is missing": (GOOD, "CON 5 4\nxl G 0 1 0 1", "CON 4 3"),
    "a split by itself": (GOOD, "uns 6 5 9 7", "uns 10 5 9 7"),
    "a sense that there is not": (GOOD, "cap L 7", "cap < 7"),
    "a rule that there is not": (GOOD, "{ lin 2 4", "{ add 2 4"),
    "no braces": (GOOD, "{ asm } 10\nl", "asm 10\nl"),
    "a brace too few": (GOOD, "5 1 } 10", "5 1 10"),
    "an objective that is neither": (GOOD, "OBJ max", "OBJ most"),
    "sections in another order": (GOOD, "SOL 1\nbest 1 0 3\n", ""),
    "the claim before the program": (GOOD, "CON 5 4", "RTP range 9 9\nCON 5 4"),
    "a section twice": (GOOD, "SOL 1", "SOL 1\nSOL 1"),
    "something after the end": (GOOD, "9 7 } -1\n", "9 7 } -1\nDER 0\n"),
    "a comment in between": (GOOD, "RTP", "% so far\nRTP"),
    "a number that is none": (GOOD, "cap L 7", "cap L seven"),
    "no number at all": (GOOD, "cap L 7", "cap L nan"),
    "an infinite number": (GOOD, "cap L 7", "cap L inf"),
    "a power of ten": (GOOD, "cap L 7", "cap L 7e0"),
    "a huge power of ten": (GOOD, "cap L 7", "cap L 7e999999999"),
    "a division by 0": (GOOD, "cap L 7", "cap L 7/0"),
    "a division by a division": (GOOD, "cap L 7", "cap L 7/1/1"),
    "a division by less than 0": (GOOD, "cap L 7", "cap L -7/-1"),
    "digits of another script": (GOOD, "cap L 7", "cap L \N{ARABIC-INDIC DIGIT SEVEN}"),
    "digits with underscores": (GOOD, "cap L 7", "cap L 0_7"),
    "a point alone": (GOOD, "cap L 7", "cap L ."),
    "two points": (GOOD, "cap L 7", "cap L 7.0.0"),
    "an index that is a fraction": (GOOD, "cap L 7 2 0 2", "cap L 7 2 0/1 2"),
    "an index with a sign": (GOOD, "cap L 7 2 0 2", "cap L 7 2 +0 2"),
    "more terms than none": (GOOD, "cap L 7 2 0 2 1 2", "cap L 7 -2 0 2 1 2"),
    "a huge number": (GOOD, "cap L 7", f"cap L {'7' * (LONGEST + 1)}"),
    "a word without an end": (GOOD, "cap L 7", f"cap L {'7' * 300_000}"),
    "a name without an end": (GOOD, "x y", f"x {'y' * 300_000}"),
    "a claim without an end": (GOOD, "RTP range 9 9", "RTP range 9"),
    "a claim of another kind": (GOOD, "RTP range 9 9", "RTP best 9"),
    "a last use before the first": (GOOD, "{ asm } 10\nl", "{ asm } -2\nl"),
    "nothing": (GOOD, GOOD, ""),
    "blanks": (GOOD, GOOD, " \n\t\n" * 10),
    "JSON": (GOOD, GOOD, '{"problem": "aryl.reclaim"}'),
    "zero bytes": (GOOD, "cap L 7", "cap L 7\0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_follow_is_refuted(name: str) -> None:
    _refused(*WRONG[name], Refuted)


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_no_certificate_is_refused(name: str) -> None:
    _refused(*MALFORMED[name], Malformed)


def _refused(text: str, old: str, new: str, kind: type[Exception]) -> None:
    assert text.count(old) == 1
    with pytest.raises(kind) as refused:
        read(text.replace(old, new))
    said = str(refused.value)
    assert len(said.splitlines()) == 1
    assert said.isprintable()
    assert len(said) < 300


STEPS = {
    "a multiple": (["L 3 2 0 1 1 1/3"], ["L 6 2 0 2 1 2/3 { lin 1 0 2 }"], True),
    "a term too many": (["L 3 2 0 1/2 1 1/3"], ["L 3 1 0 1/2 { lin 1 0 1 }"], False),
    "a term too few": (["L 3 1 0 1/2"], ["L 3 2 0 1/2 1 1/3 { lin 1 0 1 }"], False),
    "an equation": (["E 2 1 0 1"], ["E 2 1 0 1 { lin 1 0 1 }"], True),
    "an equation as a limit": (["E 2 1 0 1"], ["G 2 1 0 1 { lin 1 0 1 }"], True),
    "a greater equation": (["E 2 1 0 1"], ["E 3 1 0 1 { lin 1 0 1 }"], False),
    "a smaller equation": (["E 2 1 0 1"], ["E 1 1 0 1 { lin 1 0 1 }"], False),
    "a limit as an equation": (["G 2 1 0 1"], ["E 2 1 0 1 { lin 1 0 1 }"], False),
    "both senses": (["G 0 1 0 1", "L 3 1 0 1"], ["L 3 1 0 2 { lin 2 0 1 1 1 }"], False),
    "both senses, the other way round": (["L 3 1 0 1", "G 0 1 0 1"], ["G 3 1 0 2 { lin 2 0 1 1 1 }"], False),
    "a rounding of halves": (["L 3 1 0 1"], ["G -4 1 0 -2 { rnd 1 0 -3/2 }"], False),
    "a rounding up": (["G 1/2 1 0 1"], ["G 1 1 0 1 { rnd 1 0 1 }"], True),
    "a rounding up of what is whole": (["G 1 1 0 1"], ["G 2 1 0 1 { rnd 1 0 1 }"], False),
    "a rounding down of what is whole": (["L 1 1 0 1"], ["L 0 1 0 1 { rnd 1 0 1 }"], False),
    "a rounding of an equation": (["E 1/2 1 0 1"], ["E 0 1 0 1 { rnd 1 0 1 }"], False),
    "a contradiction": (["G 1 1 0 1", "L 0 1 0 1"], ["G 5 1 1 1 { lin 2 0 1 1 -1 }"], True),
    "a contradiction of an equation": (["E 1 1 0 1", "E 0 1 0 1"], ["G 5 1 1 1 { lin 2 0 1 1 -1 }"], True),
    "no contradiction": (["G 0 1 0 1", "L 0 1 0 1"], ["G 5 1 1 1 { lin 2 0 1 1 -1 }"], False),
    "no contradiction at most": (["L 0 1 0 1", "G 0 1 0 1"], ["L -5 1 1 1 { lin 2 0 1 1 -1 }"], False),
    "no contradiction of an equation": (["E 1 1 0 1", "E 1 1 0 1"], ["G 5 1 1 1 { lin 2 0 1 1 -1 }"], False),
    "a split": (["G 0 1 0 1"], ["L 2 1 0 1 { asm }", "G 3 1 0 1 { asm }", "G 0 1 0 1 { uns 0 1 0 2 }"], True),
    "a split, scaled": (["G 0 1 0 1"], ["L 4 1 0 2 { asm }", "G 5 1 0 2 { asm }", "G 0 1 0 1 { uns 0 2 0 1 }"], True),
    "a split at halves": (
        ["G 0 1 0 1"],
        ["L 2.5 1 0 1 { asm }", "G 3.5 1 0 1 { asm }", "G 0 1 0 1 { uns 0 1 0 2 }"],
        False,
    ),
    "a split of which one side proves it": (
        ["G 0 1 0 1", "G 0 1 1 1"],
        ["L 2 1 0 1 { asm }", "G 3 1 0 1 { asm }", "G 0 1 0 1 { uns 0 2 1 3 }"],
        False,
    ),
    "a split of which the other side proves it": (
        ["G 0 1 0 1", "G 0 1 1 1"],
        ["L 2 1 0 1 { asm }", "G 3 1 0 1 { asm }", "G 0 1 0 1 { uns 1 2 0 3 }"],
        False,
    ),
}


def of_steps(rows: list[str], derived: list[str]) -> str:
    """A certificate that claims nothing, so that each derivation stands for itself."""
    named = [f"r{at} {row}" for at, row in enumerate(rows)]
    lines = [f"d{at} {line} -1" for at, line in enumerate(derived)]
    head = ["VER 1.0", "VAR 2", "x y", "INT 2", "0 1", "OBJ min", "1 0 1", f"CON {len(rows)} 0", *named]
    return "\n".join([*head, "RTP range -inf inf", "SOL 0", f"DER {len(derived)}", *lines])


@pytest.mark.parametrize("name", STEPS)
def test_a_derivation_is_right_or_refuted(name: str) -> None:
    rows, derived, right = STEPS[name]
    if right:
        assert read(of_steps(rows, derived)).derived == len(derived)
        return
    with pytest.raises(Refuted, match=f"of index {len(rows) + len(derived) - 1}"):
        read(of_steps(rows, derived))


@pytest.mark.parametrize(
    ("row", "there"),
    [
        ("L 7 2 0 2 1 2", True),
        ("L 8 2 0 2 1 2", True),
        ("L 6 2 0 2 1 2", False),
        ("G -7 2 0 -2 1 -2", True),
        ("G -8 2 0 -2 1 -2", True),
        ("G -6 2 0 -2 1 -2", False),
        ("L -7 2 0 -2 1 -2", False),
        ("G 7 2 0 2 1 2", False),
        ("L 7/2 2 0 1 1 1", True),
        ("E 7 2 0 2 1 2", False),
        ("L 4 1 0 1", True),
        ("L 2 1 0 1", False),
        ("G -1 1 0 1", True),
        ("G 1 1 0 1", False),
        ("L 0 0", True),
        ("L -1 0", False),
    ],
)
def test_a_row_is_one_of_the_program_or_weaker(row: str, there: bool) -> None:
    proven = read(of_steps([row], []).replace("OBJ min\n1 0 1", "OBJ max\n2 0 3 1 2"))
    with pytest.raises(Refuted, match="proves no bound" if there else "does not have the certificate's constraint 0"):
        program().bound(proven)


def test_a_file_that_ends_too_early_is_refused_wherever_it_does() -> None:
    words = GOOD.split()
    for end in range(len(words)):
        with pytest.raises(Malformed):
            read(" ".join(words[5:end]))


def test_what_is_accepted_is_true() -> None:
    """Whatever words of a certificate are changed: where it is accepted, no point is better than it claims."""
    drawn = random.Random(3)
    accepted = refused = 0
    for text in (GOOD, EMPTY, CUT):
        lines = [line.split() for line in text.splitlines() if not line.startswith("%")]
        places = [(i, j) for i, line in enumerate(lines) for j in range(len(line))]
        for change in range(400):
            changed = [list(line) for line in lines]
            for i, j in drawn.sample(places, 1 + change % 2):
                changed[i][j] = _other(changed[i][j], drawn)
            try:
                proven = read("\n".join(map(" ".join, changed)))
            except (Malformed, Refuted):
                refused += 1
                continue
            accepted += 1
            _no_better_point(proven)
    assert refused > 800
    assert accepted > 60


def _other(word: str, drawn: random.Random) -> str:
    try:
        number = Fraction(word)
    except ValueError:
        return drawn.choice(["L", "G", "E", "OBJ", "lin", "rnd", "min", "max", word])
    others = [-number, number + 1, number - 1, number / 2, number * 2, number + Fraction(1, 3), Fraction(0)]
    return str(drawn.choice(others))


def _no_better_point(proven: Proven) -> None:
    """Look at all points of a grid, of whole numbers where they must be."""
    grids = [[Fraction(k, 1 if j in proven.integers else 3) for k in range(-6, 13)] for j in range(len(proven.names))]
    for point in itertools.product(*grids):
        sides = [(row.sense, sum(a * point[j] for j, a in row.terms.items()) - row.right) for row in proven.rows]
        if not all(off * sense >= 0 if sense else off == 0 for sense, off in sides):
            continue
        assert not proven.infeasible
        value = sum((a * point[j] for j, a in proven.objective.terms.items()), Fraction()) / proven.objective.over
        if proven.bound is not None:
            assert value >= proven.bound if proven.sense == "min" else value <= proven.bound


def program() -> Program:
    """The program of GOOD, as an instance might state it."""
    stated = Program("max")
    stated.variable("x", 0, 3, cost=3)
    stated.variable("y", 0, 3, cost=2)
    stated.row({"x": 2, "y": 2}, upper=7)
    return stated


def test_a_certificate_is_held_against_a_program() -> None:
    assert program().bound(read(GOOD)) == 9
    tighter = Program("max")
    tighter.variable("x", 0, 3, cost=3)
    tighter.variable("y", 0, 1, cost=2)
    tighter.row({"y": -4, "x": -4}, lower=-12)
    assert tighter.bound(read(GOOD)) == 9
    shifted = program()
    shifted.constant = Fraction(5, 2)
    assert shifted.bound(read(GOOD)) == Fraction(23, 2)


def test_costs_that_are_rounded_widen_the_bound() -> None:
    rounded = program()
    rounded.objective["x"] = 3 + Fraction(1, 10**12)
    assert rounded.bound(read(GOOD)) == 9 + Fraction(3, 10**12)
    rounded.objective["x"] = 3 - Fraction(1, 10**12)
    assert rounded.bound(read(GOOD)) == 9


def _changed(change: str) -> Program:
    stated = program()
    if change == "a cost":
        stated.objective["x"] = 4
    elif change == "a cost by a little":
        stated.objective["x"] = 3 + Fraction(1, 10**6)
    elif change == "one cost more":
        stated.variable("z", 0, 1, cost=1)
    elif change == "not whole":
        stated.whole.discard("y")
    elif change == "the sense":
        stated.sense = "min"
    elif change == "the name":
        stated = Program("max")
        stated.variable("x", 0, 3, cost=3)
        stated.variable("z", 0, 3, cost=2)
        stated.row({"x": 2, "z": 2}, upper=7)
    elif change == "a wider bound":
        stated = Program("max")
        stated.variable("x", 0, 4, cost=3)
        stated.variable("y", 0, 3, cost=2)
        stated.row({"x": 2, "y": 2}, upper=7)
    elif change == "a wider row":
        stated = Program("max")
        stated.variable("x", 0, 3, cost=3)
        stated.variable("y", 0, 3, cost=2)
        stated.row({"x": 2, "y": 2}, upper=Fraction(71, 10))
    elif change == "a wider row, upside down":
        stated = Program("max")
        stated.variable("x", 0, 3, cost=3)
        stated.variable("y", 0, 3, cost=2)
        stated.row({"x": -2, "y": -2}, lower=-8)
    elif change == "another row":
        stated = Program("max")
        stated.variable("x", 0, 3, cost=3)
        stated.variable("y", 0, 3, cost=2)
        stated.row({"x": 2, "y": 1}, upper=7)
    elif change == "the row's other side":
        stated = Program("max")
        stated.variable("x", 0, 3, cost=3)
        stated.variable("y", 0, 3, cost=2)
        stated.row({"x": 2, "y": 2}, lower=7)
    return stated


@pytest.mark.parametrize(
    "change",
    [
        "a cost",
        "a cost by a little",
        "one cost more",
        "not whole",
        "the sense",
        "the name",
        "a wider bound",
        "a wider row",
        "a wider row, upside down",
        "another row",
        "the row's other side",
    ],
)
def test_a_certificate_of_another_program_is_refuted(change: str) -> None:
    with pytest.raises(Refuted):
        _changed(change).bound(read(GOOD))


def test_an_infeasible_program_has_no_bound() -> None:
    stated = Program("min")
    stated.variable("x", Fraction(1, 3), Fraction(2, 3))
    assert stated.bound(read(EMPTY)) == float("inf")
    with pytest.raises(Refuted):
        program().bound(read(EMPTY))


def test_a_row_that_is_taken_for_weaker_is() -> None:
    """No point within the bounds keeps to the program's row and breaks one that is said to follow from it."""
    draw = random.Random(3)
    taken = refused = 0
    for _ in range(600):
        stated = Program("min")
        for name in "xyz":
            stated.variable(name, 0, 3)
        terms = {name: Fraction(draw.choice([-2, -1, 1, 2, 3])) for name in "xyz"}
        low = Fraction(draw.randint(-2, 4))
        stated.row(terms, lower=low)
        # Coefficients are moved, and the limit as far as that may need, or less.
        moved = {name: a + Fraction(draw.choice([-1, 0, 0, 1]), 20) for name, a in terms.items()}
        limit = low - Fraction(draw.randint(0, 9), 20)
        scale = draw.choice([1, 2, -1])
        sense = 1 if scale > 0 else -1
        row = Constraint(sense, {j: int(20 * scale * moved[name]) for j, name in enumerate("xyz")}, 0, 20)
        row = Constraint(sense, row.terms, int(20 * scale * limit), 20)
        if not stated._implies(row, list("xyz")):
            refused += 1
            continue
        taken += 1
        for point in itertools.product((Fraction(0), Fraction(1), Fraction(3, 2), Fraction(3)), repeat=3):
            at = dict(zip("xyz", point, strict=True))
            if sum(a * at[name] for name, a in terms.items()) >= low:
                assert sum(a * at[name] for name, a in moved.items()) >= limit
    assert taken > 60
    assert refused > 60


def test_a_rounded_row_is_taken_if_the_row_leaves_room() -> None:
    stated = program()
    stated.row({"x": Fraction(1, 3), "y": 1}, lower=1)
    near, room = 3333333333, Fraction(1, 10**8)
    for right, there in ((1 - room, True), (1, False)):
        over = 10**18
        row = Constraint(1, {0: near * 10**8, 1: over}, int(right * over), over)
        assert stated._implies(row, ["x", "y"]) == there


def least(terms: dict[int, Fraction], bounds: list[tuple[int | None, int | None]]) -> Fraction | None:
    """The least of a sum over a box, by all its corners; None where it has none."""
    if any(a and bounds[j][0 if a > 0 else 1] is None for j, a in terms.items()):
        return None
    ends = [[end for end in pair if end is not None] or [0] for pair in bounds]
    return min(sum((a * corner[j] for j, a in terms.items()), Fraction()) for corner in itertools.product(*ends))


@pytest.mark.parametrize("seed", range(4))
def test_combinations_are_completed_by_the_best_bounds(seed: int) -> None:
    """What they prove is the least over all corners, and no more; without a bound, nothing."""
    rng, proven = random.Random(seed), 0
    for _ in range(250):
        bounds = [
            tuple(rng.choice([None, end, end + 1]) for end in (rng.randint(-3, 0), rng.randint(1, 3))) for _ in "xy"
        ]
        rows = [[Fraction(rng.choice((-3, -1, 1, 2)), rng.randint(1, 2)) for _ in "xyb"] for _ in range(2)]
        factors = [Fraction(rng.randint(0, 3), rng.randint(1, 3)) for _ in rows]
        stated, sign = [Fraction(rng.choice((-2, -1, 1))), Fraction(rng.randint(-2, 2))], rng.choice((1, -1))
        told = [f"G {rows[i][2]} 2 0 {rows[i][0]} 1 {rows[i][1]}" for i in range(2)]
        for j, pair in enumerate(bounds):
            # Some of them twice, the weaker one second, and as multiples, which turn the sense.
            sides = [(sense, end) for sense, end in zip("GL", pair, strict=True) if end is not None]
            told += [f"{sense} {end} 1 {j} 1" for sense, end in sides]
            told += [
                f"{'LG'[sense == 'L']} {-2 * (end + (1 if sense == 'L' else -1))} 1 {j} -2" for sense, end in sides
            ]
        sums = [sum((f * row[k] for f, row in zip(factors, rows, strict=True)), Fraction()) for k in range(3)]
        rest = least({j: stated[j] - sums[j] for j in range(2)}, bounds)
        pairs = " ".join(f"{i} {sign * f}" for i, f in enumerate(factors))
        for off in (Fraction(0), Fraction(1, 7)):
            right = sums[2] + (0 if rest is None else rest) + off
            line = f"{'GL'[sign < 0]} {sign * right} 2 0 {sign * stated[0]} 1 {sign * stated[1]} {{ weak 2 {pairs} }}"
            text = of_steps(told, [line]).replace("VER 1.0", "VER 1.0/short")
            if rest is None or off:
                with pytest.raises(Refuted):
                    read(text)
            else:
                proven += 1
                assert read(text).derived == 1
                assert read(completed(text)).derived == 1
    assert proven > 50


def _endless(head: str, filling: str) -> Iterator[str]:
    """A file whose end nobody may look for, because there is none."""
    yield from head.splitlines(keepends=True)
    while True:
        yield filling


@pytest.mark.parametrize(
    ("head", "filling", "why"),
    [
        ("VER 1.0\nVAR 60000\n", "", "more than 50,000 words"),
        ("VER 1.0\nVAR 50000\n", "long-name\n", "more than 100,000 characters"),
        (GOOD.partition("CON")[0] + "CON 1000000000 0\n", "row G 0 1 0 1\n", "more than 100,000 characters"),
        (GOOD.partition("DER")[0] + "DER 1000000000\n", "a L 2 1 0 1 { asm } -1\n", "more than 100,000 characters"),
        ("", "% a comment\n", "more than 100,000 characters"),
    ],
    ids=["declared names", "names", "rows", "derivations", "comments"],
)
def test_no_more_is_read_than_may_be(head, filling, why):
    with pytest.raises(Malformed, match=why):
        check(_endless(head, filling), 100_000)


def test_no_more_is_kept_than_may_be():
    """Constraints of a few words each may rest on hundreds of assumptions, which are kept with them."""
    head = GOOD.partition("DER")[0].replace("RTP range 9 9", "RTP range -inf inf")
    head += "DER 501\n" + "a L 2 1 0 1 { asm } 205\n" * 200
    head += f"all L 400 1 0 200 {{ lin 200 {' '.join(f'{5 + at} 1' for at in range(200))} }} -1\n"
    one = "one L 400 1 0 200 {{ lin 1 205 1 }} {}\n"
    kept, left = (head + "".join(one.format(until(206 + at)) for at in range(300)) for until in (lambda at: -1, int))
    assert check(left.splitlines(), 20_000).derived == 501
    with pytest.raises(Malformed, match="more than 10,000 words"):
        check(kept.splitlines(), 20_000)
