"""Problems of EPLB, the expert-parallelism load balancer of DeepSeek."""

from pkgutil import iter_modules

from lazy_loader import attach

__getattr__, __dir__, __all__ = attach(__name__, [module.name for module in iter_modules(__path__)])
