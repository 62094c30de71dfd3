"""Worst cases of Synergy's heuristics."""
