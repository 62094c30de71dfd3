"""Tools that look for errors: checks of heuristics, hunts for their worst cases, the papers' claims."""
