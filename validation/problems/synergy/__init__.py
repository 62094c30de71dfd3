"""Entries of the problems of Synergy (OSDI'22)."""
