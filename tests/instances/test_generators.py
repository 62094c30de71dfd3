"""Arguments of generators: what is out of range is one error that names it, and what is in range is an instance."""

import inspect
import math
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from instances.arguments import declared
from instances.base import Instance, InstanceError
from instances.schema import Scalar
from validation import CATALOGUE
from validation.reader_options import parameters

from ..effort import rounds

PROBLEMS = [problem for problem in CATALOGUE if problem.split(".")[0] in ("aryl", "afs", "elasticflow")]
ARGUMENTS = [(problem, name) for problem in PROBLEMS for name in declared(inspect.unwrap(CATALOGUE[problem].generate))]


def scalar_of(problem: str, name: str) -> tuple[Scalar, bool]:
    return declared(inspect.unwrap(CATALOGUE[problem].generate))[name]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_number_is_declared(problem: str) -> None:
    taken = parameters(CATALOGUE[problem].generate)
    known = {name for of, name in ARGUMENTS if of == problem}
    # Whether and which, of which the instance says what there is.
    assert set(taken) - known <= {"linear", "reallocation", "requests", "floor_guarantee"}
    assert known


@pytest.mark.parametrize(("problem", "name"), ARGUMENTS)
def test_what_is_out_of_range_is_named(problem: str, name: str) -> None:
    scalar, optional = scalar_of(problem, name)
    wrong: list[Any] = ["many", [1, 2]]
    if scalar.kind is not str:
        wrong += [math.nan, math.inf, -math.inf]
        wrong += [] if scalar.minimum is None else [scalar.minimum - 1]
        wrong += [] if scalar.above is None else [scalar.above]
        wrong += [] if scalar.maximum is None else [scalar.maximum + 1]
        wrong += [1.5] if scalar.kind is int else []
    wrong += [] if optional else [None]
    for value in wrong:
        with pytest.raises(InstanceError, match=rf"^{name}: got "):
            CATALOGUE[problem].generate(0, **{name: value})


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_is_in_range_is_an_instance_or_an_error_of_its_own(problem: str) -> None:
    made = 0
    for seed in rounds(20):
        rng = np.random.default_rng(seed)
        given = {}
        for name in [name for of, name in ARGUMENTS if of == problem]:
            scalar, optional = scalar_of(problem, name)
            if optional and rng.random() < 0.5:
                given[name] = None
            elif scalar.kind is str:
                given[name] = rng.choice(scalar.choices).item()
            elif scalar.kind is int:
                given[name] = int(scalar.minimum or 0) + int(rng.integers(0, 4))
            else:
                least = (scalar.above or 0) + 0.01 if scalar.minimum is None else scalar.minimum
                given[name] = float(rng.choice([least, (least + 1) / 2, 1.0]))
        # Such as machines of a number of GPUs that is no power of two.
        with suppress(InstanceError):
            made += isinstance(CATALOGUE[problem].generate(seed, **given), Instance)
    assert made
