"""Modules under the names that they had in the version before."""

import importlib
import warnings

import pytest

import validation
from validation.renamed import RENAMED


@pytest.mark.parametrize("old", sorted(RENAMED))
def test_an_old_name_is_the_new_module_and_says_so(old: str) -> None:
    with warnings.catch_warnings():
        # The packages around it have old names, too.
        warnings.simplefilter("ignore", DeprecationWarning)
        found = importlib.import_module(old)
    # Anew, whatever imported it before.
    with pytest.warns(DeprecationWarning, match=RENAMED[old]):
        importlib.reload(found)
    new = importlib.import_module(RENAMED[old])
    assert found.__doc__ == new.__doc__
    for name in getattr(new, "__all__", []):
        assert getattr(found, name) is getattr(new, name)


@pytest.mark.parametrize("name", ["ReplayOptions", "Replays", "replay_study"])
def test_what_stood_in_replays_is_in_validation(name: str) -> None:
    replays = importlib.import_module("validation.replay")
    assert getattr(replays, name) is getattr(validation, name)


@pytest.mark.parametrize(
    ("old", "new"),
    [("afs.completions", "completions"), ("gavel.prices", "prices"), ("gavel.pricing", "generation")],
)
def test_methods_are_found_where_they_stood(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"formulations.methods.{new}"):
        found = importlib.reload(importlib.import_module(f"formulations.{old}"))
    home = importlib.import_module(f"formulations.methods.{new}")
    assert all(getattr(found, name) is getattr(home, name) for name in home.__all__)


def test_names_are_found_where_they_stood() -> None:
    module = importlib.import_module("instances.afs.elastic_sharing")
    with pytest.warns(DeprecationWarning, match="instances.afs.simulation.simulate"):
        assert module.simulate is importlib.import_module("instances.afs.simulation").simulate
    with pytest.raises(AttributeError, match="has no attribute 'simulated'"):
        module.simulated  # noqa: B018
    policy = importlib.import_module("formulations.gavel.fifo")
    with pytest.warns(DeprecationWarning, match="formulations.methods.policies.solve"):
        assert policy.solve is importlib.import_module("formulations.methods.policies").solve


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("validation.studies")
