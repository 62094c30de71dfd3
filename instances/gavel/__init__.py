"""Problems of Gavel (OSDI'20)."""
