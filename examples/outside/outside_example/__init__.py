"""A package of somebody's own that adds to the library without touching it."""
