"""Worst cases of heuristics of Prism's problem."""
