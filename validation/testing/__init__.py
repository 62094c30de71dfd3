"""Searches for what is wrong: checks of heuristics, hunts for their worst cases, the papers' claims."""
