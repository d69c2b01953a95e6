"""Bessel functions and Spence's function: accuracy against mpmath, edges against SciPy, derivatives against each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import hologram as hg
from hologram import special
from hologram.errors import DTypeError

pytestmark = pytest.mark.costly(2)

R = np.random.default_rng(5)
RELATIVE: dict[str, Callable[[Any], Any]] = {
    "k0": lambda x: mpmath.besselk(0, x),
    "k1": lambda x: mpmath.besselk(1, x),
    "k0e": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
    "k1e": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
    "spence": lambda x: mpmath.re(mpmath.polylog(2, 1 - x)),
}
ABSOLUTE: dict[str, Callable[[Any], Any]] = {
    "j0": lambda x: mpmath.besselj(0, x),
    "j1": lambda x: mpmath.besselj(1, x),
    "y0": lambda x: mpmath.bessely(0, x),
    "y1": lambda x: mpmath.bessely(1, x),
}
SLOPES: dict[str, Callable[[Any], Any]] = {
    "k0": lambda x: -special.k1(x),
    "k1": lambda x: -special.k0(x) - special.k1(x) / x,
    "k0e": lambda x: special.k0e(x) - special.k1e(x),
    "k1e": lambda x: special.k1e(x) * (1 - 1 / x) - special.k0e(x),
    "j0": lambda x: -special.j1(x),
    "j1": lambda x: special.j0(x) - special.j1(x) / x,
    "y0": lambda x: -special.y1(x),
    "y1": lambda x: special.y0(x) - special.y1(x) / x,
    "spence": lambda x: np.log(x) / (1 - x),
}


def arguments(count: int) -> np.ndarray:
    return np.concatenate([10 ** R.uniform(-5, 2.5, count), R.uniform(0.1, 3, count), R.uniform(15, 40, count), [1.0, 2.0, 25.0]])


@pytest.mark.parametrize("name", [*RELATIVE, *ABSOLUTE])
def test_accuracy(name: str, everything: bool) -> None:
    """In ULP: of the value, of oscillating functions of the larger of it and of their amplitude; float32 to its last digit."""
    x = arguments(200 if everything else 12)
    got = np.asarray(hg.jit(getattr(special, name))(x))
    exact = (RELATIVE | ABSOLUTE)[name]
    with mpmath.workprec(160):
        for at, g in zip(x.tolist(), got.tolist(), strict=True):
            w = exact(mpmath.mpf(at))
            size = max(abs(w), min(1.0, (2 / np.pi / at) ** 0.5)) if name in ABSOLUTE else abs(w)
            assert abs(g - w) <= (24 if name in ABSOLUTE else 6) * np.finfo(float).eps * size, at
    short = x.astype(np.float32)
    wide = np.asarray(getattr(special, name)(short.astype(float)))
    np.testing.assert_array_equal(getattr(special, name)(short), wide.astype(np.float32))


@pytest.mark.parametrize("name", SLOPES)
def test_edges(name: str) -> None:
    scipy_special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    x = np.array([-np.inf, -3.0, -0.0, 0.0, 1e-300, 1e-10, 25.0, np.nextafter(25.0, 26.0), 1e5, np.nan])
    if name[0] == "j":
        x = x[1:]  # at infinity it is 0 here, NaN in SciPy
        assert float(getattr(special, name)(np.inf)) == float(getattr(special, name)(-np.inf)) == 0
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(getattr(special, name)(x), getattr(scipy_special, name)(x), rtol=1e-12, atol=2e-14)
    with pytest.raises(DTypeError, match="complex"):
        getattr(special, name)(1j)


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives(name: str) -> None:
    f, slope = getattr(special, name), SLOPES[name]
    x = np.array([0.4, 1.5, 3.0, 24.0, 31.0])
    np.testing.assert_allclose(hg.jit(hg.vmap(hg.grad(f)))(x), slope(x), rtol=1e-12, atol=1e-15)
    second = hg.jit(hg.vmap(hg.grad(hg.grad(f))))(x)
    np.testing.assert_allclose(second, (np.asarray(slope(x + 1e-5)) - np.asarray(slope(x - 1e-5))) / 2e-5, rtol=1e-8, atol=1e-8)
    forward = hg.jit(lambda x: hg.jvp(f, (x,), (np.ones_like(x),))[1])(x)
    np.testing.assert_allclose(forward, slope(x), rtol=1e-12, atol=1e-15)


def test_derivatives_where_formulas_divide_by_zero() -> None:
    assert (
        float(hg.grad(special.j0)(0.0)) == 0 and float(hg.grad(special.j1)(0.0)) == pytest.approx(0.5) and float(hg.grad(special.spence)(1.0)) == -1
    )
    assert float(hg.grad(hg.grad(special.spence))(np.float64(1.0))) == pytest.approx(0.5, rel=1e-14)
