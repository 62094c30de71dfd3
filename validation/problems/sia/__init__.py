"""Entries of the problems of Sia (SOSP'23)."""
