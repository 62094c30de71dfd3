"""A collection of instances with the best plans and bounds that are known, and what proves them.

``load`` gives the :class:`Collection` of the checkout: records, instances, plans, and the table of all.
``submit_plan``, ``submit_prices``, ``submit_certificate`` and ``submit_run`` take better ones.
"""

from validation.kinds.collection.store import Collection, load
from validation.kinds.collection.submission import (
    Submitted,
    submit_certificate,
    submit_plan,
    submit_prices,
    submit_run,
)

__all__ = ["Collection", "Submitted", "load", "submit_certificate", "submit_plan", "submit_prices", "submit_run"]
