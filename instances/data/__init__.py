"""Readers of public tables and traces: from a file to a table, one module for each source.

What is read is the same for every paper that uses it; which instances become of it is the papers'
own (``from_trace`` of each problem).
"""

from pkgutil import iter_modules

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, [module.name for module in iter_modules(__path__)])
