"""Claims of AFS (NSDI'21), each under the name of the problem that it is about."""
