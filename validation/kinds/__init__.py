"""Kinds of questions: which cells each asks, and what it makes of their rows."""
