"""Problems of Synergy (OSDI'22)."""

from instances.synergy.profiles import binary_search_profile, profile
from instances.synergy.sensitivity import from_matrix

__all__ = ["binary_search_profile", "from_matrix", "profile"]
