"""Entries of the problems of AFS (NSDI'21)."""
