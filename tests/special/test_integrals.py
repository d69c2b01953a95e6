"""Dawson's, Fresnel's, sine, cosine and elliptic integrals, Owen's T and Faddeeva's function: accuracy against mpmath, derivatives, transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import special
from hologram.errors import DTypeError

pytestmark = pytest.mark.costly(2)

R = np.random.default_rng(11)
EPS = float(np.finfo(float).eps)


def _dawson(x: Any) -> Any:
    return mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x)


# functions of one argument: what it is, mpmath's, a bound in ULP of the larger of the value and a size
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float, Callable[[float], float]]] = {
    "dawsn": (special.dawsn, _dawson, 3, lambda x: 0.0),
    "fresnel S": (lambda x: special.fresnel(x)[0], mpmath.fresnels, 4, lambda x: x * 0.3),  # the phase, x**2, is rounded
    "fresnel C": (lambda x: special.fresnel(x)[1], mpmath.fresnelc, 4, lambda x: x * 0.3),
    "Si": (lambda x: special.sici(x)[0], mpmath.si, 3, lambda x: 0.0),
    "Ci": (lambda x: special.sici(x)[1], mpmath.ci, 12, lambda x: min(1.0, 1 / x)),
    "ellipkm1": (special.ellipkm1, lambda p: mpmath.ellipk(1 - p), 4, lambda x: 0.0),
    "ellipk": (lambda p: special.ellipk(-p), lambda p: mpmath.ellipk(-p), 4, lambda x: 0.0),
    "ellipe": (lambda p: special.ellipe(-p), lambda p: mpmath.ellipe(-p), 4, lambda x: 0.0),
}


def arguments(count: int) -> np.ndarray:
    return np.concatenate([10 ** R.uniform(-5, 1.5, count), R.uniform(0.1, 16, count), [0.1, 1.5, 1.6, 4.0, 12.0, 12.5, 1.0]])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_accuracy(name: str, everything: bool) -> None:
    f, exact, bound, size = FUNCTIONS[name]
    x = arguments(100 if everything else 12)
    got = np.asarray(hg.jit(f)(x))
    with mpmath.workprec(200):
        for at, g in zip(x.tolist(), got.tolist(), strict=True):
            w = exact(mpmath.mpf(at))
            assert abs(g - w) <= bound * EPS * max(abs(w), size(at)), at
    short = x.astype(np.float32)
    np.testing.assert_array_equal(f(short), np.asarray(f(short.astype(float))).astype(np.float32))
    np.testing.assert_array_equal(hg.vmap(f)(x), got)
    if name in ("dawsn", "Si", "fresnel S", "fresnel C"):
        np.testing.assert_array_equal(f(-x), -got)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives(name: str) -> None:
    f, exact, _, _ = FUNCTIONS[name]
    x = np.array([0.3, 0.995, 1.3, 2.1, 5.5, 11.0, 14.0])
    first, second = hg.vmap(hg.grad(f)), hg.jit(hg.vmap(hg.grad(hg.grad(f))))
    with mpmath.workprec(300):
        wanted = [[float(mpmath.diff(exact, mpmath.mpf(v), n)) for v in x] for n in (1, 2)]
    np.testing.assert_allclose(first(x), wanted[0], rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(second(x), wanted[1], rtol=1e-10, atol=1e-11)


def test_edges() -> None:
    scipy_special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    x = np.array([-np.inf, -100.0, -3.0, -0.0, 0.0, 1e-300, 1e-10, 1.0, 3.0, 1e5, 1e160, np.inf, np.nan])
    with np.errstate(all="ignore"):
        for name in ("dawsn", "ellipk", "ellipe", "ellipkm1"):
            np.testing.assert_allclose(getattr(special, name)(x), getattr(scipy_special, name)(x), rtol=1e-13, err_msg=name)
        moderate = np.where(np.abs(x) == 1e160, 50.0, x)
        for ours, theirs in zip(special.sici(moderate), scipy_special.sici(moderate), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15)
        for ours, theirs in zip(special.fresnel(moderate), scipy_special.fresnel(moderate), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
        h, a = np.array([0.0, 1.0, -1.0, np.inf, 2.0, 2.0, 0.0, np.nan, 40.0]), np.array([1.0, -2.0, 0.5, 1.0, np.inf, -np.inf, np.inf, 1.0, 3.0])
        np.testing.assert_allclose(special.owens_t(h, a), scipy_special.owens_t(h, a), rtol=1e-12)
    for f in (special.dawsn, special.fresnel, special.sici, special.ellipk):
        with pytest.raises(DTypeError, match="complex"):
            f(1j)


def test_owens_t() -> None:
    h, a = np.abs(R.normal(0, 2, 40)), 10 ** R.uniform(-2, 1.5, 40)
    got = np.asarray(hg.jit(special.owens_t)(h, a))
    with mpmath.workprec(120):
        for p, q, g in zip(h.tolist(), a.tolist(), got.tolist(), strict=True):
            top = min(q, 15 / p)
            inside = mpmath.quad(lambda x, p=p: mpmath.exp(-p * p * (1 + x * x) / 2) / (1 + x * x), mpmath.linspace(0, top, 9))
            assert abs(g - inside / (2 * mpmath.pi)) <= 50 * EPS * g
    by_h, by_a = (hg.grad(special.owens_t, argnums=i)(np.float64(0.7), np.float64(1.8)) for i in (0, 1))
    step = 1e-5
    assert float(by_h) == pytest.approx(float(special.owens_t(0.7 + step, np.float64(1.8)) - special.owens_t(0.7 - step, np.float64(1.8))) / 2 / step)
    assert float(by_a) == pytest.approx(float(special.owens_t(np.float64(0.7), 1.8 + step) - special.owens_t(np.float64(0.7), 1.8 - step)) / 2 / step)


def test_faddeeva(everything: bool) -> None:
    scipy_special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    n = 2000 if everything else 200
    z = np.concatenate([
        R.normal(0, 3, n) + 1j * R.normal(0, 3, n), 10 ** R.uniform(-8, 12, n) * np.exp(1j * R.uniform(0, np.pi, n)), R.uniform(0, 10, n) + 0j,
        R.uniform(0, 7, n) + 1j * 10 ** R.uniform(-12, 0, n),
    ])  # fmt: skip
    wanted = scipy_special.wofz(z)
    z, wanted = z[np.isfinite(wanted)], wanted[np.isfinite(wanted)]
    assert (np.abs(np.asarray(hg.jit(special.wofz)(z)) - wanted) <= 5e-14 * np.abs(wanted)).all()
    assert special.wofz(1.0).dtype == np.complex64
    assert special.wofz(np.float64(1.0)).dtype == np.complex128
    x = np.linspace(-2, 4, 7)
    slope = hg.jit(hg.vmap(hg.grad(lambda x: hnp.real(special.wofz(x + 0.5j)))))(x)
    np.testing.assert_allclose(slope, np.real(-2 * (x + 0.5j) * scipy_special.wofz(x + 0.5j) + 2j / np.sqrt(np.pi)), rtol=1e-11, atol=1e-13)
