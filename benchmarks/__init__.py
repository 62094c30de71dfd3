"""What is timed and counted: ``python -m benchmarks`` lists the tables, the documents name the command of each.

``tables`` says what a benchmark is, ``overhead`` and ``engine`` are about the library itself, and there is a
module for each paper with the tables of its pages.
"""

__all__ = ["PAPERS"]

PAPERS = {"afs": "AFS", "aryl": "Aryl", "elasticflow": "ElasticFlow", "gavel": "Gavel", "synergy": "Synergy"}
"""The papers as headings name them."""
