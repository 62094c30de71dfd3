"""What a fault is: a function that does harm so many times, and counts what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = ["FAULTS", "Fault", "Harm", "Tally", "fault"]


@dataclass
class Tally:
    """What came of a kind of fault.

    Attributes
    ----------
    tried : int
        How often the harm was done.
    outcomes : Counter
        How often each thing that may happen did: refused in one line, read as it stands, a failed row, ...
    lost, doubled, changed : int
        Rows that are not in the table at the end, that stand there twice, or that say something else
        than without the harm.
    tracebacks, hangs : int
        Where one clear line, or an end in time, is what must happen.
    wrong : list of str
        Each thing that must not have happened, in a line by which it is found again.
    watch : callable, optional
        Told of the tally before each try.
    """

    tried: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    tracebacks: int = 0
    hangs: int = 0
    wrong: list[str] = field(default_factory=list)
    watch: Callable[[Tally], Any] | None = None

    def begin(self) -> None:
        """Count one more try."""
        if self.watch is not None:
            self.watch(self)
        self.tried += 1

    def count(self, outcome: str) -> None:
        """Count one more of what may happen."""
        self.outcomes[outcome] += 1

    def tell(self, line: str, kind: str = "") -> None:
        """Tell of a thing that must not have happened, and count it as one more of a kind, such as "lost"."""
        self.wrong.append(line)
        if kind:
            setattr(self, kind, getattr(self, kind) + 1)

    @property
    def counts(self) -> tuple[int, ...]:
        """Rows lost, doubled and changed, tracebacks and hangs."""
        return self.lost, self.doubled, self.changed, self.tracebacks, self.hangs

    @property
    def fine(self) -> bool:
        """Whether nothing happened that must not."""
        return not any(self.counts) and not self.wrong


Harm: TypeAlias = Callable[[Tally, int, int], None]
"""Counts in a tally what comes of it, from a seed and how often."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault.

    Attributes
    ----------
    name : str
        Such as ``"files.instances"``.
    count : int
        How often ``make faults`` does it.
    function : callable
        What does it.
    what : str
        What is done, in a line; by default the function's docstring says it.
    """

    name: str
    count: int
    function: Harm
    what: str = ""

    @property
    def summary(self) -> str:
        """What is done, in a line."""
        return self.what or (self.function.__doc__ or "").strip().partition("\n")[0].rstrip(".")

    def harm(self, seed: int, count: int, watch: Callable[[Tally], Any] | None = None) -> Tally:
        """Do it so many times, and return what came of it."""
        tally = Tally(watch=watch)
        self.function(tally, seed, count)
        return tally


FAULTS: dict[str, Fault] = {}
"""All kinds by name."""


def fault(name: str, count: int, what: str = "") -> Callable[[Harm], Harm]:
    """Enter a function among the faults; the parameters are those of :class:`Fault`."""

    def enter(function: Harm) -> Harm:
        FAULTS[name] = Fault(name, count, function, what)
        return function

    return enter
