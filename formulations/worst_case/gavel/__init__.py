"""Worst cases of Gavel's heuristics."""
