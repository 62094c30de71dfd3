"""Entries of the problems of Gavel (OSDI'20)."""
