"""Worst cases of heuristics of EPLB's problem."""
