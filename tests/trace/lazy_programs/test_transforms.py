"""Fourier transforms of small arrays run op by op, by the plans of compiled programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override
from hologram.trace import lazy

REAL = np.random.default_rng(5).standard_normal((6, 240)).astype(np.float32)
COMPLEX = REAL + 1j * REAL[::-1]

FORMS: dict[str, Callable[[Any, Any, int], Any]] = {
    "fft": lambda x, z, k: hnp.fft.fft(z[0, :k]),
    "fft of rows": lambda x, z, k: hnp.fft.fft(z[:, :k]) * 0.3,
    "fft of columns": lambda x, z, k: hnp.fft.fft(z[:, :k], axis=0),
    "ifft": lambda x, z, k: hnp.fft.ifft(z[0, :k], norm="ortho"),
    "rfft": lambda x, z, k: abs(hnp.fft.rfft(x[0, :k])) ** 2 + 1,
    "irfft": lambda x, z, k: hnp.fft.irfft(z[0, :k]),
    "irfft, n": lambda x, z, k: hnp.fft.irfft(z[:, :60], n=k),
    "there and back": lambda x, z, k: hnp.fft.irfft(hnp.fft.rfft(x[:, :k]) * 1.5, n=k) - x[:, :k],
    "fft2": lambda x, z, k: hnp.fft.fft2(z[:, :k]),
    "rfftn": lambda x, z, k: hnp.fft.rfftn(x[:, :k]),
    "filled up": lambda x, z, k: hnp.fft.fft(z[0], n=k),
}
SIZES = [30, 31, 32, 47, 64, 97, 120, 121, 210, 30]


def _results(form: Callable[[Any, Any, int], Any], dtype: str) -> list[bytes]:
    lazy.clear()
    x, z = hg.tensor(REAL.astype(dtype)), hg.tensor(COMPLEX.astype({"float32": "complex64", "float64": "complex128"}[dtype]))
    return [np.asarray(form(x, z, k)).tobytes() for k in SIZES]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMS)
def test_bits_do_not_depend_on_what_runs(name: str, dtype: str) -> None:
    """Op by op, by a program with operands, by value, and jitted."""
    at_once = _results(FORMS[name], dtype)
    with override(op_by_op=False):
        compiled = _results(FORMS[name], dtype)
    assert at_once == compiled
    x, z = REAL.astype(dtype), COMPLEX.astype({"float32": "complex64", "float64": "complex128"}[dtype])
    jitted = [np.asarray(hg.jit(lambda x, z, k=k: FORMS[name](x, z, k), dynamic=False)(x, z)).tobytes() for k in SIZES[:5]]
    assert jitted == at_once[:5]


def test_a_length_that_is_met_first_compiles_nothing(compilations: list[Any]) -> None:
    z = hg.tensor(COMPLEX.astype(np.complex64))
    for k in SIZES:
        np.testing.assert_allclose(hnp.fft.fft(z[1, :k]), np.fft.fft(COMPLEX[1, :k]), rtol=1e-3, atol=1e-4)
    assert not compilations


def test_empty_transforms_raise_as_ever() -> None:
    z = hg.tensor(COMPLEX.astype(np.complex64))
    with pytest.raises(hg.errors.HologramError):
        np.asarray(hnp.fft.fft(z[0, :0]))
