"""Problems of Gavel (OSDI'20)."""

from pkgutil import iter_modules

from lazy_loader import attach

_modules = [module.name for module in iter_modules(__path__)]
_functions = {"traces": ["from_trace"]}

__getattr__, __dir__, __all__ = attach(__name__, _modules, _functions)
