"""Worst cases of AFS's rules."""
