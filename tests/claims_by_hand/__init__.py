"""Stored counterexamples judged by the reference, and by the papers' algorithms written once more from the text."""
