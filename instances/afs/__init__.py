"""Problems of AFS (NSDI'21)."""
