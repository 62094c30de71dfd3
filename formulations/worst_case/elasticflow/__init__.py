"""Worst cases of ElasticFlow's heuristics."""
