"""Worst cases of the rules for two jobs of :class:`instances.afs.two_job.AfsTwoJob`.

Job 0 is the shorter one, a, and job 1 the longer one, b; of equal lengths job 0 counts as shorter, as it does to the
rules.  Throughputs are whole numbers, and each choice of them is a part, in which everything else is linear in the
work: whom a rule gives the GPU is settled by them, and so are the times of completion,

    a receives           a: w_a / p'_a,   b: w_a / p'_a + (w_b - p_b w_a / p'_a) / p'_b2
    b receives, (b1)     a: w_a / p_a,    b: w_b / p'_b                                     if  w_a / p_a <= w_b / p'_b
    b receives, (b2)     b: w_b / p'_b,   a: w_b / p'_b + (w_a - p_a w_b / p'_b) / p'_a2    if  w_a / p_a >= w_b / p'_b.

What is known of b's case is a part of its own, and so is, of the rule that looks at the work, the sign of the formula
that it asks: (1) and (2) as they are printed, not the difference of the times above, which is what they are to be.
Work may be counted in any unit, so that only p' / p matters of a job,
and a pair of throughputs that have a common factor is none of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Annotated

import numpy as np
import pyomo.environ as pyo

from formulations.worst_case.pieces import whole_multiples
from formulations.worst_case.proving import InstanceClass, WorstCaseModel
from instances.afs.two_job import AfsTwoJob
from instances.arguments import Count, checked
from instances.schema import Scalar

__all__ = ["WORST_CASES", "exact_rule", "pairwise_rule", "read", "shorter_first"]

Throughput = Annotated[int, Scalar(int, minimum=1, maximum=16)]
"""There are two parts for each two pairs of throughputs up to it."""
Pace = tuple[int, int]
"""A job's throughput on its present share, and with one more GPU."""
Rule = Callable[[Pace, Pace], tuple[bool, ...]]
"""From the paces of a and b to the ways in which the GPU can go: whether b receives it; two where the work decides."""


@checked
def pairwise_rule(
    *, max_throughput: Throughput, max_speedup: Count | None = None, apathetic: bool = False
) -> InstanceClass:
    """Two jobs, of which formula (3) names the one that receives the GPU.

    Parameters
    ----------
    max_throughput : int
        Throughputs are whole, from 1 to this many iterations/s.
    max_speedup : int, optional
        By how much one more GPU multiplies a throughput, at most: 2 on concave curves.
    apathetic : bool
        Whether the AFS assumption holds (:meth:`AfsTwoJob.apathetic`); else a job that is left has the GPU.
    """

    def longer_receives(a: Pace, b: Pace) -> tuple[bool, ...]:
        # (p'_b - p_b) / p'_b > (p'_a - p_a) / p_a
        return ((b[1] - b[0]) * a[0] > (a[1] - a[0]) * b[1],)

    return _instances(max_throughput, max_speedup, apathetic, longer_receives)


@checked
def shorter_first(
    *, max_throughput: Throughput, max_speedup: Count | None = None, apathetic: bool = False
) -> InstanceClass:
    """Two jobs, of which the shorter one receives the GPU; the parameters are those of :func:`pairwise_rule`."""
    return _instances(max_throughput, max_speedup, apathetic, lambda a, b: (False,))


@checked
def exact_rule(
    *, max_throughput: Throughput, max_speedup: Count | None = None, apathetic: bool = False
) -> InstanceClass:
    """Two jobs, of which formulas (1) and (2) name the receiver; the parameters are those of :func:`pairwise_rule`."""
    return _instances(max_throughput, max_speedup, apathetic, lambda a, b: (False, True))


def _instances(most: int, max_speedup: int | None, apathetic: bool, longer_receives: Rule) -> InstanceClass:
    limit = "" if max_speedup is None else f", at most {max_speedup} times as fast with it"
    words = (
        f"two jobs of any work, whole throughputs from 1 to {most} iterations/s without the GPU and with it{limit}; "
        f"{'the AFS assumption holds' if apathetic else 'the job that is left has the GPU'}"
    )
    pairs = [
        (now, then)
        for now, then in product(range(1, most + 1), repeat=2)
        if now <= then <= (max_speedup or most) * now and math.gcd(now, then) == 1
    ]
    return InstanceClass(words, _parts(pairs, apathetic, longer_receives), scalable=True)


def _parts(pairs: list[Pace], apathetic: bool, longer_receives: Rule) -> Iterator[pyo.ConcreteModel]:
    for (a, b), b_is_first in product(product(pairs, repeat=2), (False, True)):
        ways = longer_receives(a, b)
        for b_receives in ways:
            model = _model(a, b, apathetic, b_receives, b_is_first=b_is_first)
            fall = _fall(a, b, apathetic, b_is_first=b_is_first)
            if len(ways) > 1 and any(fall):
                told = sum(times * model.work[job] for job, times in enumerate(fall))
                model.by_formula = pyo.Constraint(expr=told >= 0 if b_receives else told <= 0)
            yield model


def _fall(a: Pace, b: Pace, apathetic: bool, *, b_is_first: bool) -> list[int]:
    """Return formula (1), or (2) where b is first: a multiple of it, as whole multiples of the work of a and b."""
    (p_a, p_a_more), (p_b, p_b_more) = ((Fraction(now), Fraction(then)) for now, then in (a, b))
    p_a_2, p_b_2 = p_a if apathetic else p_a_more, p_b_more

    def formula(w_a: int, w_b: int) -> Fraction:
        if not b_is_first:
            return w_a / p_a_more - w_a / p_a + w_a / (2 * p_b_2) * (p_b_more / p_a - p_b / p_a_more)
        in_a = p_b / (2 * p_b_2) * (w_b / p_b - w_a / p_a_more)
        return w_a / p_a_more - w_b / p_b_more + in_a - p_a / (2 * p_a_2) * (w_a / p_a - w_b / p_b_more)

    found = formula(1, 0), formula(0, 1)
    times = math.lcm(*(one.denominator for one in found))
    return [int(one * times) for one in found]


def _model(a: Pace, b: Pace, apathetic: bool, b_receives: bool, *, b_is_first: bool) -> pyo.ConcreteModel:
    model = pyo.ConcreteModel(name=f"worst case at throughputs {a} and {b}")
    model.throughputs, model.apathetic = (a, b), apathetic
    model.work = pyo.Var([0, 1], domain=pyo.NonNegativeReals)
    # a runs for so long now, b too, and with the GPU.
    a_now, b_now = model.work[0] / a[0], model.work[1] / b[0]
    a_then, b_then = model.work[0] / a[1], model.work[1] / b[1]
    model.a_is_shorter = pyo.Constraint(expr=a_now <= b_now)
    if_a = 2 * a_then + b_then - b[0] / b[1] * a_then
    if b_is_first:
        model.case_b = pyo.Constraint(expr=a_now >= b_then)
        pace = a[0] if apathetic else a[1]
        if_b = 2 * b_then + model.work[0] / pace - a[0] / pace * b_then
    else:
        model.case_b = pyo.Constraint(expr=a_now <= b_then)
        if_b = a_now + b_then
    own, other = (if_b, if_a) if b_receives else (if_a, if_b)
    # Variables, so that the difference of two that are alike leaves no coefficients that are nothing but rounding.
    model.heuristic_value = pyo.Var()
    model.witness_value = pyo.Var()
    model.is_heuristic = pyo.Constraint(expr=2 * model.heuristic_value == own)
    model.is_witness = pyo.Constraint(expr=2 * model.witness_value == other)
    model.unit = pyo.Constraint(expr=model.witness_value == 1)
    return model


def read(model: pyo.ConcreteModel) -> AfsTwoJob:
    """Return the jobs in the values of ``work``, in a unit of time that makes their iterations whole."""
    jobs = AfsTwoJob(
        work=np.array(whole_multiples([model.work[0].value, model.work[1].value]), float),
        throughputs=np.array(model.throughputs, float),
    )
    return jobs.apathetic() if model.apathetic else jobs


WORST_CASES = {
    "exact_rule": WorstCaseModel(exact_rule, read, size="max_throughput", least=1),
    "pairwise_rule": WorstCaseModel(pairwise_rule, read, size="max_throughput", least=1),
    "shorter_first": WorstCaseModel(shorter_first, read, size="max_throughput", least=1),
}
