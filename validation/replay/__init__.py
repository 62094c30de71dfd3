"""Replays: a trace run through a cluster, one decision after another, each an instance of the catalogue.

:func:`replay` runs a :class:`Setting` (the cluster, the jobs and what the paper does with them) under a decision maker
and returns a :class:`Replayed`: what became of the jobs, what was decided, and how the GPUs were used.
:func:`replay_study` runs many, and says what the difference between the decision makers came to.
"""

from typing import TYPE_CHECKING

from lazy_loader import attach

if TYPE_CHECKING:
    from validation.replay.deciders import Answer, Decider, decider
    from validation.replay.engine import Ask, Costs, Decide, Decision, Jobs, Setting, State, replay
    from validation.replay.options import ReplayOptions
    from validation.replay.replayed import Replayed
    from validation.replay.results import Replays
    from validation.replay.study import replay_study

__all__ = [
    "Answer",
    "Ask",
    "Costs",
    "Decide",
    "Decider",
    "Decision",
    "Jobs",
    "ReplayOptions",
    "Replayed",
    "Replays",
    "Setting",
    "State",
    "decider",
    "replay",
    "replay_study",
]

# Imported when asked for: the command line reads the options and nothing else before it starts.
__getattr__, __dir__, _ = attach(
    __name__,
    submod_attrs={
        "deciders": ["Answer", "Decider", "decider"],
        "engine": ["Ask", "Costs", "Decide", "Decision", "Jobs", "Setting", "State", "replay"],
        "options": ["ReplayOptions"],
        "replayed": ["Replayed"],
        "results": ["Replays"],
        "study": ["replay_study"],
    },
)
