"""Claims of Synergy (OSDI'22), each under the name of the problem that it is about."""
