"""Fast methods for the problems of AFS (NSDI'21)."""
