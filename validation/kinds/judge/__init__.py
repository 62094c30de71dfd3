"""One number for a heuristic, from a judge that it cannot reach: ``judge``, ``optgap judge``."""
