"""Problems of Gavel (OSDI'20)."""

from instances.gavel.traces import from_trace

__all__ = ["from_trace"]
