"""Entries of the problems of ElasticFlow (ASPLOS'23)."""
