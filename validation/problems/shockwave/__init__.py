"""Entries of the problems of Shockwave (NSDI'23)."""
