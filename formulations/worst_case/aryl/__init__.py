"""Worst cases of Aryl's heuristics."""
