"""A checker of instances, plans and bounds that shares no code with the library, in exact fractions.

What a plan is worth and which rules it breaks is written from the problems' definitions (docs/problems), one module
for each paper.  Nothing but the standard library is imported.
"""

from . import afs, aryl, elasticflow, gavel, synergy

PROBLEMS = {**gavel.PROBLEMS, **synergy.PROBLEMS, **aryl.PROBLEMS, **afs.PROBLEMS, **elasticflow.PROBLEMS}
