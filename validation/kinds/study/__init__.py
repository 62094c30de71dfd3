"""Gap studies: heuristics against proven optima."""
