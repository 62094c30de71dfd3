"""The one path from a model to a solver, and back to a solution that can be trusted."""
