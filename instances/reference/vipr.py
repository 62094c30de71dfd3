"""Certificates of mixed-integer optima (VIPR, format 1.0), checked in whole numbers.

A certificate states a program, what it proves of it, and a list of constraints, each of which follows from earlier
ones by one rule: ``lin``, a linear combination; ``rnd``, one with whole coefficients on whole variables, whose right
side is rounded; ``asm``, an assumption; ``uns``, what holds on either side of a split of the whole points; ``sol``,
that nothing worse than a given point is looked for.  Each constraint carries the assumptions that it rests on, and the
last one, which rests on none, is what was to be proven.

A *short* certificate (version ``1.0/short``, which no other checker reads) leaves out what can be told: by ``weak``, a
linear combination is completed by bounds of variables that the program itself has, each as many times as the stated
left side lacks its variable.  ``shortened`` and ``completed`` lead from one form to the other.

A file is read once, from its beginning to its end, and of the derived constraints only those are kept that a later one
may refer to.  How much is read has a limit, and so has how much is kept at a time, so that memory does.

References
----------
Cheung, Gleixner and Steffy, "Verifying integer programming results" (2017).
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn, TextIO, TypeAlias

from .common import Malformed

LONGEST = 4000
"""Characters that a number or a name may have: more are no certificate that anyone wants to read."""

MOST = 50_000_000
"""Characters that a certificate may have, where nobody says how many."""

WORD = 2
"""Characters of a word, and the space after it, at least."""

HEADS = 4
"""Words of a constraint beside its terms: name, sense, right side, number of terms."""

PIECE = 1 << 16
"""Characters that are read of a line at a time."""

SHORT = "1.0/short"
"""The version of certificates that leave out bounds of the program."""

Terms: TypeAlias = dict[int, int]
"""Whole coefficients by variable."""

Pairs: TypeAlias = Sequence[tuple[str, str]]
"""Constraints by their index, and the factor of each, as a file has them."""

_NUMBER = re.compile(r"([+-]?)(?:([0-9]+)(?:/([0-9]+))?|([0-9]*)\.([0-9]*))\Z", re.ASCII)
_INDEX = re.compile(r"-?[0-9]+\Z", re.ASCII)
_SENSES = {"G": 1, "E": 0, "L": -1}
_NOTHING: frozenset[int] = frozenset()


class Refuted(Exception):  # noqa: N818
    """A derivation that does not follow, or a claim that is not proven."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint ``terms . x  >=, ==, <=  right``, all of it over one denominator.

    Attributes
    ----------
    sense : int
        1 for at least, 0 for equal, -1 for at most.
    terms : dict
        Numerators of the coefficients by variable, none of them 0.
    right : int
        Numerator of the right side.
    over : int
        The denominator, positive.
    assumptions : frozenset of int
        Indices of the assumptions that it rests on.
    """

    sense: int
    terms: Terms
    right: int
    over: int
    assumptions: frozenset[int] = _NOTHING

    @property
    def absurd(self) -> bool:
        """Tell whether no point at all satisfies it."""
        return not self.terms and (
            self.right > 0 if self.sense > 0 else self.right < 0 if self.sense else self.right != 0
        )

    def dominates(self, other: Constraint) -> bool:
        """Tell whether whatever satisfies it satisfies the other, as far as one looks at equal coefficients."""
        if self.absurd:
            return True
        if self.sense not in (0, other.sense) or len(self.terms) != len(other.terms):
            return False
        mine, others = other.over, self.over
        if mine == others == 1:
            if self.terms != other.terms:
                return False
        elif any(others * a != mine * self.terms.get(j, 0) for j, a in other.terms.items()):
            return False
        left, right = self.right * mine, other.right * others
        return left >= right if other.sense > 0 else left <= right if other.sense else left == right

    def whole(self, integers: frozenset[int]) -> bool:
        """Tell whether its left side is whole at every whole point."""
        return integers.issuperset(self.terms) and (
            self.over == 1 or all(not a % self.over for a in self.terms.values())
        )


@dataclass(frozen=True)
class Proven:
    """A certificate that holds: the program that it states, and what it proves of it.

    Attributes
    ----------
    names : list of str
        The variables.
    integers : frozenset of int
        Which of them are whole.
    sense : str
        "min" or "max".
    objective : Constraint
        Its terms are the objective's.
    rows : list of Constraint
        All constraints of the program, bounds of variables among them.
    infeasible : bool
        Whether it proves that there is no point at all.
    lower, upper : Fraction, optional
        Between which the optimum lies; None where nothing is proven.
    derived : int
        How many constraints it derives.
    """

    names: list[str]
    integers: frozenset[int]
    sense: str
    objective: Constraint
    rows: list[Constraint]
    infeasible: bool
    lower: Fraction | None
    upper: Fraction | None
    derived: int

    @property
    def bound(self) -> Fraction | None:
        """The bound that no point is better than; None for no bound."""
        return self.lower if self.sense == "min" else self.upper


def check(lines: Iterable[str], most: int = MOST) -> Proven:
    """Check a certificate.

    Parameters
    ----------
    lines : iterable of str
        The file's lines, or other pieces that end where words do.
    most : int
        Characters that they may have together.  No more is kept at a time than these can have words: names of
        variables, and terms and assumptions of constraints that a later one may refer to.

    Raises
    ------
    Malformed
        When it is no certificate of this format, or a larger one.
    Refuted
        When something in it does not follow; the message names the constraint.
    """
    return _Reader(lines, most).read()


def shortened(text: str, most: int = MOST) -> str:
    """Return a certificate without the bounds that ``weak`` completes; it has a constraint a line, as the library's do.

    Raises
    ------
    Malformed, Refuted
        When it is none, or does not hold.
    """
    reader = _Reader(text.splitlines(), most)
    reader.read()
    bounds = {str(at) for places in reader.bounds.values() for at, _ in places}

    def without(pairs: Pairs) -> Pairs | None:
        left = [(at, factor) for at, factor in pairs if at not in bounds]
        return left if len(left) < len(pairs) else None

    return _rewritten(text, ("1.0", "lin"), (SHORT, "weak"), without)


def completed(text: str, most: int = MOST) -> str:
    """Return a short certificate as one of version 1.0, in which nothing is left out.

    Raises
    ------
    Malformed, Refuted
        When it is none, or does not hold.
    """
    reader = _Reader(text.splitlines(), most)
    reader.read()
    found = iter(reader.completions)

    def whole(pairs: Pairs) -> Pairs:
        told: dict[str, Fraction] = {}
        for at, factor in [*pairs, *((str(at), str(factor)) for at, factor in next(found))]:
            told[at] = told.get(at, Fraction()) + Fraction(factor)
        return [(at, str(factor)) for at, factor in told.items()]

    return _rewritten(text, (SHORT, "weak"), ("1.0", "lin"), whole)


def _rewritten(text: str, old: tuple[str, str], new: tuple[str, str], change: Callable[[Pairs], Pairs | None]) -> str:
    """Return a certificate in another version, its combinations by a rule as ``change`` has them, by another."""

    def line_of(line: str) -> str:
        before, rule, after = line.partition(f" {{ {old[1]} ")
        if not rule:
            return line
        reason, close, until = after.partition(" }")
        _, *words = reason.split()
        told = change(list(zip(words[::2], words[1::2], strict=True)))
        if told is None:
            return line
        listed = " ".join([str(len(told)), *(word for pair in told for word in pair)])
        return f"{before} {{ {new[1]} {listed}{close}{until}"

    return "\n".join(map(line_of, text.replace(f"VER {old[0]}\n", f"VER {new[0]}\n", 1).splitlines())) + "\n"


def pieces(file: TextIO) -> Iterator[str]:
    """Yield the lines of a file; one that is very long in pieces, so that memory does not grow with what is in it.

    Raises
    ------
    Malformed
        When it is no text.
    """
    rest = ""
    try:
        while line := file.readline(PIECE):
            line, rest = rest + line, ""
            if not line.endswith("\n"):
                # The last word may go on; one that is too long is refused as it is.
                cut = max(line.rfind(" "), line.rfind("\t"))
                if len(line) - cut <= 2 * LONGEST:
                    line, rest = line[: cut + 1], line[cut + 1 :]
            yield line
    except (UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
        raise Malformed(f"certificate: {type(error).__name__}: {error}") from None
    yield rest


class _Words:
    """The words of a file, one after the other, with the line that each stands in."""

    def __init__(self, lines: Iterable[str], most: int) -> None:
        self.line = 0
        self._left = self._most = most
        self._words = self._all(iter(lines))

    def _all(self, lines: Iterator[str]) -> Iterator[str]:
        comments = True
        for text in lines:
            self.line += 1
            self._left -= len(text)
            if self._left < 0:
                self.refuse(f"it has more than {self._most:,} characters, which are the most that are read")
            if comments and text.startswith("%"):
                continue
            words = text.split()
            comments = comments and not words
            yield from words

    def refuse(self, why: str) -> NoReturn:
        raise Malformed(f"certificate, line {self.line}: {why}")

    def word(self, what: str) -> str:
        word = next(self._words, None)
        if word is None:
            self.refuse(f"the file ends where {what} should stand")
        if len(word) > LONGEST:
            self.refuse(f"{what} has {len(word):,} characters, of {LONGEST:,} at most")
        return word

    def keyword(self, *known: str) -> str:
        word = self.word(" or ".join(known))
        if word not in known:
            self.refuse(f"{shown(word)} stands where {' or '.join(known)} should")
        return word

    def integer(self, what: str, least: int = 0, below: int | None = None) -> int:
        word = self.word(what)
        if not _INDEX.match(word):
            self.refuse(f"{what}: {shown(word)} is no whole number")
        number = int(word)
        if number < least or (below is not None and number >= below):
            self.refuse(f"{what}: {shown(word)} is out of range")
        return number

    def number(self, what: str) -> tuple[int, int]:
        return self.value(self.word(what), what)

    def value(self, word: str, what: str) -> tuple[int, int]:
        """Return numerator and denominator of a number."""
        found = _NUMBER.match(word)
        if found is None:
            self.refuse(f"{what}: {shown(word)} is no rational number")
        sign, top, bottom, before, after = found.groups()
        if top is None:
            if not before and not after:
                self.refuse(f"{what}: {shown(word)} is no rational number")
            top, under = before + after, 10 ** len(after)
        else:
            under = 1 if bottom is None else int(bottom)
        if not under:
            self.refuse(f"{what}: {shown(word)} divides by 0")
        over = int(top) if sign != "-" else -int(top)
        if under == 1:
            return over, 1
        common = math.gcd(over, under)
        return over // common, under // common

    def end(self) -> None:
        word = next(self._words, None)
        if word is not None:
            self.refuse(f"{shown(word)} stands after the end")


def shown(word: str) -> str:
    """Return a word of a file as it may stand in a message: short, and without codes that a terminal obeys."""
    return ascii(word if len(word) <= 40 else f"{word[:30]}...{word[-7:]}")


class _Reader:
    def __init__(self, lines: Iterable[str], most: int) -> None:
        self.words = _Words(lines, most)
        self.most = self.room = most // WORD
        self.kept: dict[int, Constraint] = {}
        self.leaving: dict[int, list[int]] = {}
        self.cutoff: Constraint | None = None
        # Of each variable the program's lower and upper bound: the constraint that is it, -1 for none, and the number.
        self.bounds: dict[int, list[tuple[int, Fraction]]] = {}
        # What completes each weak combination: bounds, and factors of them.
        self.completions: list[list[tuple[int, Fraction]]] = []

    def read(self) -> Proven:
        words = self.words
        words.keyword("VER")
        short = words.keyword("1.0", SHORT) == SHORT
        self.rules = ("lin", "rnd", "asm", "uns", "sol", *(("weak",) if short else ()))
        words.keyword("VAR")
        self.count = words.integer("number of variables")
        self._keep(self.count)
        self.names = [words.word("a variable") for _ in range(self.count)]
        if len(set(self.names)) < self.count:
            words.refuse("two variables have one name")
        words.keyword("INT")
        whole = [
            words.integer("a whole variable", 0, self.count)
            for _ in range(words.integer("number of integers", 0, self.count + 1))
        ]
        self.integers = frozenset(whole)
        words.keyword("OBJ")
        sense = words.keyword("min", "max")
        self.sense = 1 if sense == "min" else -1
        self.objective = self._scaled(self.sense, 0, 1, self._terms(words.integer("number of terms")))
        words.keyword("CON")
        rows = words.integer("number of constraints")
        words.integer("number of bounds", 0, rows + 1)
        for index in range(rows):
            self.kept[index] = self._constraint()[1]
            self._note_bound(index)
            self._keep(_size(self.kept[index]))
        stated = list(self.kept.values())
        words.keyword("RTP")
        infeasible = words.keyword("infeas", "range") == "infeas"
        lower = upper = None
        if not infeasible:
            lower, upper = self._end("-inf"), self._end("inf")
        words.keyword("SOL")
        best = self._solutions(stated)
        words.keyword("DER")
        derived = words.integer("number of derivations")
        last = None
        for index in range(rows, rows + derived):
            last = self._derived(index)
        words.end()
        self._proven(infeasible, lower, upper, best, last)
        return Proven(self.names, self.integers, sense, self.objective, stated, infeasible, lower, upper, derived)

    def _end(self, open_end: str) -> Fraction | None:
        word = self.words.word("an end of the range")
        return None if word == open_end else Fraction(*self.words.value(word, "an end of the range"))

    def _proven(
        self,
        infeasible: bool,
        lower: Fraction | None,
        upper: Fraction | None,
        best: Fraction | None,
        last: Constraint | None,
    ) -> None:
        """Refuse a claim that solutions and the last constraint do not bear out."""
        bound, reached = (lower, upper) if self.sense > 0 else (upper, lower)
        if reached is not None and (best is None or self.sense * best > self.sense * reached):
            raise Refuted(f"no solution is as good as {short(reached)}")
        if not infeasible and bound is None:
            return
        if last is None:
            raise Refuted("nothing is derived, and something is to be proven")
        if last.assumptions:
            raise Refuted(f"the last constraint rests on {len(last.assumptions)} assumptions")
        if infeasible:
            if not last.absurd:
                raise Refuted("the last constraint is no contradiction")
            return
        assert bound is not None
        goal = self.objective
        claim = self._bounded(goal, self.sense, bound)
        if not last.dominates(claim):
            raise Refuted(f"the last constraint does not prove the bound {short(bound)}")

    @staticmethod
    def _bounded(goal: Constraint, sense: int, bound: Fraction) -> Constraint:
        """Return the constraint that the objective is at least, or at most, a number."""
        over = math.lcm(goal.over, bound.denominator)
        terms = {j: a * (over // goal.over) for j, a in goal.terms.items()}
        return Constraint(sense, terms, int(bound * over), over)

    # --- parts of the file --------------------------------------------------------------------

    def _terms(self, count: int) -> dict[int, tuple[int, int]]:
        words, found = self.words, {}
        for _ in range(count):
            j = words.integer("a variable", 0, self.count)
            if j in found:
                words.refuse(f"variable {j} stands twice in one constraint")
            found[j] = words.number("a coefficient")
        return found

    @staticmethod
    def _scaled(sense: int, right: int, under: int, terms: Mapping[int, tuple[int, int]]) -> Constraint:
        over = under
        for _, bottom in terms.values():
            if bottom != 1:
                over = math.lcm(over, bottom)
        if over == 1:
            return Constraint(sense, {j: a for j, (a, _) in terms.items() if a}, right, 1)
        return Constraint(
            sense,
            {j: a * (over // bottom) for j, (a, bottom) in terms.items() if a},
            right * (over // under),
            over,
        )

    def _constraint(self) -> tuple[str, Constraint]:
        words = self.words
        name = words.word("a constraint's name")
        sense = _SENSES[words.keyword("G", "E", "L")]
        right, under = words.number("a right side")
        word = words.word("number of terms")
        if word == "OBJ":
            return name, self._bounded(self.objective, sense, Fraction(right, under))
        if not _INDEX.match(word) or int(word) < 0:
            words.refuse(f"number of terms: {shown(word)} is no whole number from 0 on")
        return name, self._scaled(sense, right, under, self._terms(int(word)))

    def _solutions(self, rows: list[Constraint]) -> Fraction | None:
        """Return the best objective of the solutions, which satisfy all constraints; None where there is none."""
        words = self.words
        best: Fraction | None = None
        for _ in range(words.integer("number of solutions")):
            name = words.word("a solution's name")
            point = {j: Fraction(*value) for j, value in self._terms(words.integer("number of values")).items()}
            for j in self.integers:
                if point.get(j, Fraction()).denominator != 1:
                    raise Refuted(f"solution {shown(name)}: variable {shown(self.names[j])} is not whole")
            for index, row in enumerate(rows):
                off = row.sense * (_at(row, point) - row.right) if row.sense else -abs(_at(row, point) - row.right)
                if off < 0:
                    raise Refuted(f"solution {shown(name)} breaks constraint {index}")
            value = _at(self.objective, point) / self.objective.over
            if best is None or self.sense * value < self.sense * best:
                best = value
        if best is not None:
            self.cutoff = self._bounded(self.objective, -self.sense, best)
        return best

    def _derived(self, index: int) -> Constraint:
        words = self.words
        name, stated = self._constraint()
        words.keyword("{")
        rule = words.keyword(*self.rules)
        assumptions = _NOTHING
        if rule == "asm":
            assumptions = frozenset((index,))
        elif rule == "sol":
            if self.cutoff is None or not self.cutoff.dominates(stated):
                self._refute(name, index, "no solution is as good")
        elif rule == "uns":
            assumptions = self._united(name, index, stated)
        else:
            combined = self._combined(name, index)
            if rule == "rnd":
                combined = self._rounded(name, index, combined)
            elif rule == "weak":
                combined = self._completed(name, index, combined, stated)
            if not combined.dominates(stated):
                self._refute(name, index, f"it does not follow by {rule!r}")
            assumptions = combined.assumptions
        words.keyword("}")
        until = words.integer("last index that refers to it", -1)
        made = Constraint(stated.sense, stated.terms, stated.right, stated.over, assumptions)
        if until == -1 or until > index:
            self.kept[index] = made
            self._keep(_size(made))
            self.leaving.setdefault(until, []).append(index)
        for left in self.leaving.pop(index, ()):
            self.room += _size(self.kept.pop(left))
        return made

    def _keep(self, words: int) -> None:
        self.room -= words
        if self.room < 0:
            self.words.refuse(f"more than {self.most:,} words are to be kept, which are the most at a time")

    @staticmethod
    def _refute(name: str, index: int, why: str) -> NoReturn:
        raise Refuted(f"constraint {shown(name)}, of index {index}: {why}")

    def _earlier(self, name: str, index: int, at: int) -> Constraint:
        found = self.kept.get(at)
        if found is None:
            self._refute(name, index, f"constraint {at} was said to be needed no more")
        return found

    def _combined(self, name: str, index: int) -> Constraint:
        """Return a linear combination, which all senses must allow."""
        words = self.words
        parts: list[tuple[Constraint, int, int]] = []
        met = set()
        over = 1
        for _ in range(words.integer("number of factors")):
            at = words.integer("an earlier constraint", 0, index)
            if at in met:
                words.refuse(f"constraint {at} stands twice in one combination")
            met.add(at)
            top, bottom = words.number("a factor")
            if top:
                part = self._earlier(name, index, at)
                parts.append((part, top, bottom * part.over))
                if bottom * part.over != 1:
                    over = math.lcm(over, bottom * part.over)
        sense, right = 0, 0
        terms: Terms = {}
        assumptions: set[int] = set()
        for part, top, bottom in parts:
            factor = top if over == 1 else top * (over // bottom)
            if part.sense:
                own = part.sense if factor > 0 else -part.sense
                if sense == -own:
                    self._refute(name, index, "it combines constraints that point in opposite ways")
                sense = own
            right += factor * part.right
            for j, a in part.terms.items():
                terms[j] = terms.get(j, 0) + factor * a
            assumptions.update(part.assumptions)
        terms = {j: a for j, a in terms.items() if a}
        return Constraint(sense, terms, right, over, frozenset(assumptions))

    def _note_bound(self, index: int) -> None:
        """Keep what a constraint of the program says of one variable, if it is the best that there is."""
        row = self.kept[index]
        if len(row.terms) != 1:
            return
        ((j, a),) = row.terms.items()
        limit, held = Fraction(row.right, a), self.bounds.setdefault(j, [(-1, Fraction()), (-1, Fraction())])
        for place, side in enumerate((1, -1)):
            if row.sense * a * side >= 0 and (held[place][0] < 0 or side * (limit - held[place][1]) > 0):
                held[place] = index, limit

    def _completed(self, name: str, index: int, combined: Constraint, stated: Constraint) -> Constraint:
        """Return a combination whose left side bounds of the program make the stated one."""
        if not stated.sense:
            self._refute(name, index, "an equation cannot be completed by bounds")
        right, added = Fraction(combined.right, combined.over), []
        for j in sorted(combined.terms.keys() | stated.terms.keys()):
            lacking = Fraction(stated.terms.get(j, 0), stated.over) - Fraction(combined.terms.get(j, 0), combined.over)
            if not lacking:
                continue
            at, limit = self.bounds.get(j, [(-1, Fraction())] * 2)[int(lacking * stated.sense < 0)]
            if at < 0:
                self._refute(name, index, f"variable {shown(self.names[j])} has no bound that completes it")
            right += lacking * limit
            ((_, a),) = self.kept[at].terms.items()
            added.append((at, lacking * self.kept[at].over / a))
        if combined.sense == -stated.sense:
            self._refute(name, index, "it combines constraints that point in opposite ways")
        self.completions.append(added)
        over = math.lcm(right.denominator, stated.over)
        terms = {j: a * (over // stated.over) for j, a in stated.terms.items()}
        return Constraint(stated.sense, terms, int(right * over), over, combined.assumptions)

    def _rounded(self, name: str, index: int, combined: Constraint) -> Constraint:
        if not combined.sense:
            self._refute(name, index, "an equation cannot be rounded")
        if not combined.whole(self.integers):
            self._refute(name, index, "what is rounded is not whole at whole points")
        over = combined.over
        right = -(-combined.right // over) if combined.sense > 0 else combined.right // over
        terms = {j: a // over for j, a in combined.terms.items()}
        return Constraint(combined.sense, terms, right, 1, combined.assumptions)

    def _united(self, name: str, index: int, stated: Constraint) -> frozenset[int]:
        """Return the assumptions of what holds on both sides of a split."""
        words = self.words
        one, split_one, other, split_other = (words.integer("an earlier constraint", 0, index) for _ in range(4))
        sides = [self._earlier(name, index, at) for at in (one, other)]
        if not all(side.dominates(stated) for side in sides):
            self._refute(name, index, "it does not follow on both sides of the split")
        low, high = (self._earlier(name, index, at) for at in (split_one, split_other))
        if low.sense > 0:
            low, high = high, low
        if low.sense != -1 or high.sense != 1 or not self._splits(low, high):
            self._refute(name, index, f"constraints {split_one} and {split_other} do not split the whole points")
        return (sides[0].assumptions - {split_one}) | (sides[1].assumptions - {split_other})

    def _splits(self, low: Constraint, high: Constraint) -> bool:
        """Tell whether every whole point satisfies one of the two, ``a x <= b`` and ``a x >= b + 1`` with b whole."""
        if not low.whole(self.integers) or low.right % low.over or len(low.terms) != len(high.terms):
            return False
        if any(a * high.over != high.terms.get(j, 0) * low.over for j, a in low.terms.items()):
            return False
        return high.right * low.over == (low.right + low.over) * high.over


def _size(row: Constraint) -> int:
    return HEADS + len(row.terms) + len(row.assumptions)


def _at(row: Constraint, point: Mapping[int, Fraction]) -> Fraction:
    return sum((a * point[j] for j, a in row.terms.items() if j in point), Fraction())


def short(number: Fraction) -> str:
    """Return a fraction as text: itself, or the nearest double where it is long."""
    text = str(number)
    if len(text) <= 40:
        return text
    try:
        return repr(float(number))
    except OverflowError:
        return "a number beyond those of a computer"
