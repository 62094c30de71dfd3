"""Fast methods for the problems of Synergy (OSDI'22)."""
