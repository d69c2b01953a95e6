"""SciPy under its Array API dispatch, on Tensors: results are those of arrays. SciPy reads the switch at its import, so in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import FallbackWarning

pytestmark = pytest.mark.costly(2)

ROOT = Path(__file__).parents[2]
PROGRAM = "tests.support.clients.scipy_calls"
SAMPLE = 12  # calls in a run without --all
KNOWN = dict.fromkeys(
    ("signal.sosfilt", "signal.sosfiltfilt"), "raised ValueError: buffer source array is read-only"
)  # compiled to write into sections


def test_calls(everything: bool) -> None:
    pytest.importorskip("scipy", minversion="1.17", reason="SciPy 1.17 is not installed")
    count = [] if everything else [str(SAMPLE)]
    done = subprocess.run([sys.executable, "-m", PROGRAM, *count], cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert not {name: text for name, text in found.items() if not text.startswith(("Tensor", "array", KNOWN.get(name, "Tensor")))}
    assert not {name for name, text in KNOWN.items() if name in found and not found[name].startswith(text)}, "right by now"
    if everything:
        assert len(found) >= 500 and sum(text == "Tensor" for text in found.values()) >= 400


def test_ufuncs_of_scipy_are_those_of_hologram() -> None:
    """Called by name or through the protocol: Tensors, also while tracing. A user's ufunc is its own, whatever its name is."""
    ufuncs = pytest.importorskip("scipy.special._ufuncs", reason="SciPy is not installed")
    at = np.array([0.3, 2.0, 5.0])
    chosen = [getattr(ufuncs, name) for name in ("psi", "beta", "gammainc", "betainc", "spence", "k0", "y1")]

    def all_of_them(*args: Any) -> list[Any]:
        return [f(*args[: f.nin]) for f in chosen]

    args = at, at[::-1].copy(), at / 10
    want = all_of_them(*args)
    for got in (all_of_them(*map(hg.tensor, args)), hg.jit(all_of_them)(*args)):
        for a, b in zip(got, want, strict=True):
            assert type(a) is hg.Tensor
            np.testing.assert_allclose(a, b, rtol=1e-12)
    with pytest.warns(FallbackWarning, match="wrightomega"):  # Hologram lacks it: NumPy on the values
        np.testing.assert_allclose(ufuncs.wrightomega(hg.tensor(at / 9)), ufuncs.wrightomega(at / 9))
    theirs = np.vectorize(lambda a: a + 1, otypes=[float])
    np.testing.assert_array_equal(theirs(hnp.asarray(at)), at + 1)
