"""Problems of Synergy (OSDI'22)."""

from pkgutil import iter_modules

from lazy_loader import attach

_modules = [module.name for module in iter_modules(__path__)]
_functions = {"profiles": ["binary_search_profile", "optimistic_profile", "profile"], "sensitivity": ["from_matrix"]}

__getattr__, __dir__, __all__ = attach(__name__, _modules, _functions)
