"""Better plans and better bounds: what is taken into the collection, and what is not.

A plan counts if the instance's own judge and the collection's checker find it feasible and agree on its value.  Prices
and certificates count for what the checker proves with them; a solver run is taken at its word, and is told from what
is proven.
"""

from __future__ import annotations

import functools
import gzip
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeVar, cast

from instances.base import Plan, agree
from instances.reference import Malformed, vipr
from instances.reference.records import MOST_PACKED
from instances.schema import quoted
from validation.errors import StudyError
from validation.formatting import printable
from validation.kernel.gaps import beats, gap_to
from validation.kernel.provenance import today, version
from validation.kinds.collection.judging import Checked
from validation.kinds.collection.store import Collection

__all__ = ["Submitted", "closed", "graded", "submit_certificate", "submit_plan", "submit_prices", "submit_run"]

RUN = {
    "solver": str,
    "version": str,
    "options": dict,
    "machine": str,
    "seconds": (int, float),
    "status": str,
    "bound": (int, float),
}
"""What a claimed run must tell."""


@dataclass(frozen=True)
class Submitted:
    """The outcome of a submission.

    Attributes
    ----------
    verdict : "better", "equal" or "worse"
        Than what is known; better ones are written into the collection, others are not.
    message : str
        In words.
    """

    verdict: Literal["better", "equal", "worse"]
    message: str

    @property
    def taken(self) -> bool:
        """Whether the collection has it now."""
        return self.verdict == "better"


def closed(record: Mapping[str, Any]) -> bool:
    """Return whether the best value is at the bound."""
    value, bound = record["best"]["value"], record["bound"]["value"]
    return bound is not None and agree(value, bound)


def graded(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with the class and the heuristics' gaps that follow from its best value and bound."""
    best, is_closed = record["best"]["value"], closed(record)
    known = record["class"] if record["class"] != "open" else "hard"
    heuristics = {
        name: {**one, "gap": _gap(one["value"], best) if is_closed else None}
        for name, one in record["heuristics"].items()
    }
    return {**record, "class": known if is_closed else "open", "heuristics": heuristics}


Submit = TypeVar("Submit", bound=Callable[..., Submitted])


def _alone(submit: Submit) -> Submit:
    """Let nobody else change the collection from the look at what is known to what is written."""

    @functools.wraps(submit)
    def submitted(collection: Collection, *arguments: Any, **options: Any) -> Submitted:
        with collection.changing():
            return submit(collection, *arguments, **options)

    return cast(Submit, submitted)


@_alone
def submit_plan(collection: Collection, name: str, plan: Plan, *, by: str) -> Submitted:
    """Take a plan into the collection if it is better than the best that is known.

    Parameters
    ----------
    collection : Collection
    name : str
        Of the instance.
    plan : Plan
    by : str
        Who or what found it.

    Raises
    ------
    PlanError
        When it does not fit the instance.
    StudyError
        When it breaks a rule, is worth no number, or is better than a bound, of which one must be wrong.
    """
    record, instance = collection.record(name), collection.instance(name)
    broken = instance.violations(plan)
    if broken:
        raise StudyError(f"{name}: the plan breaks {', '.join(map(str, broken[:3]))}")
    value, best, bound = instance.objective(plan), record["best"]["value"], record["bound"]["value"]
    if not math.isfinite(value):
        raise StudyError(f"{name}: the plan is worth {value}")
    exact = Checked(instance).value(plan)
    if bound is not None and beats(instance.sense, value, bound) and not agree(value, bound, size=1.0):
        raise StudyError(
            f"{name}: the plan, worth {value!r}, is beyond the bound {bound!r}, which is said to be proven: one of the "
            "two is wrong. Please report it with the plan"
        )
    if not beats(instance.sense, value, best):
        equal = agree(value, best)
        message = f"worth {value!r}, " + (f"as good as the best known, {best!r}" if equal else f"the best is {best!r}")
        return Submitted("equal" if equal else "worse", message)
    found = {
        "value": value,
        "exact": str(exact),
        "found_by": printable(by),
        "date": today(),
        "version": version("scheduling-formulations"),
    }
    history = [*record["history"], {"date": today(), "best": record["best"]}]
    collection.write(graded({**record, "best": found, "history": history}), plan=plan)
    return Submitted("better", f"worth {value!r}, better than {best!r}: it is the best now")


@_alone
def submit_prices(collection: Collection, name: str, prices: Mapping[str, Any]) -> Submitted:
    """Take prices into the collection if they prove a better bound, or one that only runs stand for.

    Parameters
    ----------
    collection : Collection
    name : str
        Of the instance.
    prices : mapping
        As the checker reads them.

    Raises
    ------
    StudyError
        When they prove nothing, or a bound beyond the best plan, of which one must be wrong.
    """
    exact = Checked(collection.instance(name)).bound(prices, collection.plan(name))
    return _take_proven(collection, name, exact, "prices", prices)


@_alone
def submit_certificate(collection: Collection, name: str, certificate: str) -> Submitted:
    """Take a certificate into the collection if it proves a better bound, or one that only runs stand for.

    Parameters
    ----------
    collection : Collection
    name : str
        Of the instance.
    certificate : str
        In format 1.0 of VIPR, of the program that the checker states of the instance; a large one is kept short.

    Raises
    ------
    StudyError
        When it is too large to be kept, or proves nothing of the instance, or a bound beyond the best plan, of which
        one must be wrong.
    """
    if _packed(certificate) > MOST_PACKED:
        try:
            certificate = vipr.shortened(certificate)
        except (Malformed, vipr.Refuted) as error:
            raise StudyError(f"certificate: {error}") from None
    if (packed := _packed(certificate)) > MOST_PACKED:
        raise StudyError(f"certificate: has {packed:,} bytes compressed, may have {MOST_PACKED:,}")
    exact = Checked(collection.instance(name)).certified(certificate)
    return _take_proven(collection, name, exact, "certificate", certificate)


@_alone
def submit_run(collection: Collection, name: str, run: Mapping[str, Any]) -> Submitted:
    """Take a solver run into the collection if its bound is better, or it stands beside runs of the same bound.

    Parameters
    ----------
    collection : Collection
    name : str
        Of the instance.
    run : mapping
        ``solver``, ``version``, ``options``, ``machine``, ``seconds``, ``status`` and ``bound``.

    Raises
    ------
    StudyError
        When it does not tell all of these, or its bound is beyond the best plan.
    """
    record = collection.record(name)
    for field, kinds in RUN.items():
        if field not in run:
            raise StudyError(f"the run has no {field}; it must tell {', '.join(RUN)}")
        if not isinstance(run[field], kinds) or isinstance(run[field], bool):  # type: ignore[arg-type]
            raise StudyError(f"the run's {field}: got {quoted(run[field])}")
    for field in ("seconds", "bound"):
        if not _is_finite(run[field]) or (field == "seconds" and run[field] < 0):
            raise StudyError(f"the run's {field}: got {quoted(run[field])}, must be a number")
    unknown = [field for field in run if field not in (*RUN, "method", "proof")]
    if unknown:
        raise StudyError(f"the run has an unknown field {quoted(unknown[0])}")
    known = record["bound"]
    beside = known["proof"]["kind"] == "runs" and known["value"] is not None and agree(run["bound"], known["value"])
    others = known["proof"]["runs"] if beside else []
    if dict(run) in others:
        return Submitted("equal", "the record has this run")
    value = known["value"] if beside else float(run["bound"])
    bound = {"value": value, "exact": None, "proof": {"kind": "runs", "runs": [*others, dict(run)]}}
    return _take(collection, record, bound, newly=beside)


def _take_proven(collection: Collection, name: str, exact: Fraction, kind: str, proof: Any) -> Submitted:
    """Write a bound that prices or a certificate prove, if it is better, or known from runs only."""
    record = collection.record(name)
    known = record["bound"]
    told = {"kind": kind, "file": collection.file(name, kind).name, "runs": known["proof"].get("runs", [])}
    bound = {"value": float(exact), "exact": str(exact), "proof": told}
    newly = known["proof"]["kind"] == "runs" and known["value"] is not None and agree(float(exact), known["value"])
    return _take(collection, record, bound, newly=newly, **{kind: proof})


def _take(
    collection: Collection, record: Mapping[str, Any], bound: Mapping[str, Any], *, newly: bool, **proof: Any
) -> Submitted:
    """Write a bound that is better than the one that is known, or as good and better proven."""
    name, sense, best, known = record["name"], record["sense"], record["best"]["value"], record["bound"]["value"]
    value = bound["value"]
    other = "max" if sense == "min" else "min"
    if beats(other, value, best) and not agree(value, best, size=1.0):
        raise StudyError(f"{name}: the bound {value!r} is beyond the best plan, which is worth {best!r}")
    better = known is None or beats(other, value, known)
    if not better and not newly:
        equal = agree(value, known)
        return Submitted("equal" if equal else "worse", f"the bound {value!r}, where {known!r} is known")
    history = [*record["history"], {"date": today(), "bound": record["bound"]}]
    collection.write(graded({**record, "bound": bound, "history": history}), **proof)
    told = f"better than {known!r}" if better else "known before, and better proven now"
    return Submitted("better", f"the bound {value!r}, {told}")


def _packed(certificate: str) -> int:
    """Return the bytes of a certificate as it is kept."""
    return len(gzip.compress(certificate.encode(), mtime=0))


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # A whole number beyond any float.
        return False


def _gap(worth: float | None, best: float) -> float | None:
    """Return the gap of a value to an optimum; None where there is no value, or the optimum is 0."""
    gap = math.inf if worth is None else gap_to(worth, best)
    return gap if math.isfinite(gap) else None
