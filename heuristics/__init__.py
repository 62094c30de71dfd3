"""Fast methods: the papers' algorithms and better ones, as plain functions from instance to plan.

One module per problem, ``heuristics.<paper>.<problem>``.  No solver is used here, and Pyomo is never
imported.
"""

from pkgutil import iter_modules

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, [module.name for module in iter_modules(__path__)])
