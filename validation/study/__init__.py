"""Optimality-gap studies: heuristics against proven optima, over many instances."""
