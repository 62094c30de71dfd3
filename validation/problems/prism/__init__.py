"""Entries of the problems of Prism (arXiv 2505.04021)."""
