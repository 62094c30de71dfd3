"""What a fault is: a function that does harm so many times, and counts what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

__all__ = ["FAULTS", "Fault", "Harm", "Tally", "fault"]


@dataclass
class Tally:
    """What came of a kind of fault.

    Attributes
    ----------
    tried : int
        How often the harm was done.
    outcomes : dict
        How often each thing that may happen did: refused in one line, read as it stands, a failed row, ...
    lost, doubled, changed : int
        Rows that are not in the table at the end, that stand there twice, or that say something else
        than without the harm.
    tracebacks, hangs : int
        Where one clear line, or an end in time, is what must happen.
    wrong : list of str
        Each thing that must not have happened, in a line by which it is found again.
    """

    tried: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    doubled: int = 0
    changed: int = 0
    tracebacks: int = 0
    hangs: int = 0
    wrong: list[str] = field(default_factory=list)

    def count(self, outcome: str) -> None:
        """One more of what may happen."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    @property
    def fine(self) -> bool:
        """Whether nothing happened that must not."""
        return not (self.lost or self.doubled or self.changed or self.tracebacks or self.hangs or self.wrong)


Harm: TypeAlias = Callable[[int, int], Tally]
"""From a seed and how often to what came of it."""


@dataclass(frozen=True)
class Fault:
    """A kind of fault: its name, how often ``make faults`` does it, and what does it."""

    name: str
    count: int
    harm: Harm

    @property
    def summary(self) -> str:
        """What is done, in a line."""
        return (self.harm.__doc__ or "").strip().partition("\n")[0]


FAULTS: dict[str, Fault] = {}
"""All kinds by name."""


def fault(name: str, count: int) -> Callable[[Harm], Harm]:
    """Enter a function among the faults.

    Parameters
    ----------
    name : str
        Such as ``"files.instances"``.
    count : int
        How often ``make faults`` does it.
    """

    def enter(harm: Harm) -> Harm:
        FAULTS[name] = Fault(name, count, harm)
        return harm

    return enter
