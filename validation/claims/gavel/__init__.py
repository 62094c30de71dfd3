"""Claims of Gavel (OSDI'20), each under the name of the problem that it is about."""
