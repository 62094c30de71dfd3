"""The same seed is the same instance on every machine, and a plan is worth the same there."""

import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heuristics.gavel.levels import EPSILON

NEEDS = {"Prescott": (), "Haswell": ("AVX2", "FMA3"), "SkylakeX": ("AVX512F", "AVX512_SKX")}
"""Kernels of OpenBLAS, and what a processor must be able to do for them."""


def able(features: tuple[str, ...]) -> bool:
    known = np._core._multiarray_umath.__cpu_features__
    return all(known.get(feature, False) for feature in features)


def asked(**environment: str) -> dict[str, Any]:
    """What a new process finds, in this environment."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", Path(__file__).with_name("machine.py")],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, (environment, run.stderr)
    return dict(json.loads(run.stdout))


def test_instances_and_values_are_the_same_under_every_kernel(record_property: Any) -> None:
    """Prescott, Haswell and SkylakeX, as far as the processor has their instructions, and NumPy's plain loops."""
    own = asked()
    if not own["kernel"] or platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip(f"NumPy has no other kernels here: {own['kernel'] or 'no OpenBLAS'} on {platform.machine()}")
    others = {name: asked(OPENBLAS_CORETYPE=name) for name, needs in NEEDS.items() if able(needs)}
    looked_at = sorted({own["kernel"], *(other["kernel"] for other in others.values())})
    record_property("kernels", looked_at)
    assert len(looked_at) >= 2, looked_at
    # Without the instructions that this processor has and others have not, powers are rounded by other code.
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    others["plain loops"] = asked(NPY_DISABLE_CPU_FEATURES=" ".join(found))
    for name, other in others.items():
        assert other["digests"] == own["digests"], name
        assert list(other["plans"]) == list(own["plans"])
        for key, answer in own["plans"].items():
            if answer is None:
                assert other["plans"][key] is None, (name, key)
                continue
            _, value, broken = other["plans"][key]
            # A search that stops once it is close enough may stop elsewhere.
            close = EPSILON if key.endswith(" interior_point") else 1e-9
            assert value == answer[1] or math.isclose(value, answer[1], rel_tol=close), (name, key)
            assert broken == answer[2], (name, key)
