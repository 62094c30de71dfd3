"""Fast methods for the problems of Gavel (OSDI'20)."""
