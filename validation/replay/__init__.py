"""Replays: a trace run through a cluster, one decision after another, each an instance of the catalogue.

:func:`replay` runs a :class:`Setting` (the cluster, the jobs and what the paper does with them) under a decision maker
and returns a :class:`Replayed`: what became of the jobs, what was decided, and how the GPUs were used.
:func:`validation.replay_study` runs many, and says what the difference between the decision makers came to.
"""

from typing import TYPE_CHECKING, Any

from lazy_loader import attach

import validation

if TYPE_CHECKING:
    from validation.replay.deciders import Answer, Decider, decider
    from validation.replay.engine import Ask, Costs, Decide, Decision, Jobs, Setting, State, replay
    from validation.replay.replayed import Replayed

__all__ = [
    "Answer",
    "Ask",
    "Costs",
    "Decide",
    "Decider",
    "Decision",
    "Jobs",
    "Replayed",
    "Setting",
    "State",
    "decider",
    "replay",
]

# Imported when asked for.
_lazy, __dir__, _ = attach(
    __name__,
    submod_attrs={
        "deciders": ["Answer", "Decider", "decider"],
        "engine": ["Ask", "Costs", "Decide", "Decision", "Jobs", "Setting", "State", "replay"],
        "replayed": ["Replayed"],
    },
)


def __getattr__(name: str) -> Any:
    # Names that stood here before version 0.4, for one release.
    return getattr(validation, name) if name in ("ReplayOptions", "Replays", "replay_study") else _lazy(name)
