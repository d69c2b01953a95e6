"""Hypergeometric functions, Bessel functions of all orders, spherical harmonics, combinations: accuracy, derivatives, transforms."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

import hologram as hg
from hologram import special
from hologram.errors import ArgumentError

pytestmark = pytest.mark.costly(3)

R = np.random.default_rng(12)


def errors(got: Any, function: Any, *args: Any) -> np.ndarray:
    with mpmath.workprec(400):
        wanted = [function(*[mpmath.mpf(v) for v in values]) for values in zip(*[a.tolist() for a in args], strict=True)]
        return np.array([float(abs(g - w) / abs(w)) for g, w in zip(np.asarray(got).tolist(), wanted, strict=True)])


@pytest.mark.parametrize(("low", "high", "reach", "bound"), [(0.1, 10, 30, 3e-11), (-5, 5, 10, 1e-11), (0.1, 5, 600, 1e-11)])
def test_hyp1f1(low: float, high: float, reach: float, bound: float, everything: bool) -> None:
    n = 200 if everything else 40
    a, b, x = R.uniform(low, high, n), R.uniform(0.2, high, n), R.uniform(-reach, reach, n)
    a[:3], a[3:6] = -np.arange(3), b[3:6] + np.arange(3)  # polynomials, and products of polynomials and exponentials
    assert errors(hg.jit(special.hyp1f1)(a, b, x), mpmath.hyp1f1, a, b, x).max() < bound


KINDS = {
    "inside": lambda n: R.uniform(-1, 1, n),
    "next to 1": lambda n: 1 - 10 ** R.uniform(-12, -1, n),
    "below": lambda n: -(10 ** R.uniform(-2, 6, n)),
}


@pytest.mark.crossed
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("low", "whole"), [(0.1, False), (-4, False), (0, True)])
def test_hyp2f1(kind: str, low: float, whole: bool, everything: bool) -> None:
    n = 200 if everything else 40
    a, b, c, x = R.uniform(low, 5, n), R.uniform(low, 5, n), R.uniform(0.3, 5, n), KINDS[kind](n)
    if whole:  # where what stands at the singularity has logarithms
        a, b, c = np.ceil(a), np.ceil(2 * b) / 2, np.ceil(2 * c) / 2
    assert errors(hg.jit(special.hyp2f1)(a, b, c, x), mpmath.hyp2f1, a, b, c, x).max() < 1e-11


def test_hypergeometric_edges() -> None:
    f = special.hyp2f1
    assert float(f(-2.0, 2.0, 3.0, 0.5)) == pytest.approx(1 - 2 / 3 + 1 / 8)
    assert float(f(-2.0, 2.0, -3.0, 0.5)) == pytest.approx(1 + 2 / 3 + 1 / 4)
    assert float(f(1.0, 1.0, 3.0, 1.0)) == pytest.approx(2.0)
    assert float(f(1.0, 1.0, 2.0, 1.0)) == math.inf
    assert float(f(1.0, 2.0, 3.0, 0.0)) == 1.0
    assert np.isnan(
        [float(v) for v in (f(1.0, 1.0, 2.0, 1.5), f(1.0, 1.0, -1.0, 0.5), f(math.nan, 1.0, 1.0, 0.5), f(1.0, 1.0, 2.0, -math.inf))]
    ).all()
    assert np.isnan([float(v) for v in (special.hyp1f1(1.0, -2.0, 0.5), special.hyp1f1(1.0, 1.0, math.nan))]).all()
    assert float(special.hyp1f1(2.0, 3.0, 0.0)) == 1.0
    assert special.hyp1f1(np.float32(1), np.float32(2), np.float32(1)).dtype == np.float32


@pytest.mark.parametrize("name", ["hyp1f1", "hyp2f1"])
def test_hypergeometric_derivatives(name: str) -> None:
    f, exact = getattr(special, name), getattr(mpmath, name)
    args = [np.array(v) for v in ([1.3, 2.2, 0.5, 1.0], [0.7, 0.4, 0.5, 1.0], [2.1, 3.3, 1.5, 2.0], [0.3, -3.0, 0.9, 0.99])][
        4 - (3 if name == "hyp1f1" else 4) :
    ]
    for i in range(len(args)):
        got = np.asarray(hg.jit(hg.vmap(hg.grad(f, argnums=i)))(*args))
        with mpmath.workprec(300):
            for g, *values in zip(got.tolist(), *[a.tolist() for a in args], strict=True):
                at = [mpmath.mpf(v) for v in values]
                wanted = mpmath.diff(lambda t, at=at: exact(*at[:i], t, *at[i + 1 :]), at[i])  # noqa: B023
                assert g == pytest.approx(float(wanted), rel=1e-10)


def test_bessel_functions_of_all_orders() -> None:
    x = np.concatenate([R.uniform(-60, 60, 40), 10 ** R.uniform(-3, 1, 20), [0.0, 1e-200]])
    got = np.asarray(hg.jit(lambda x: special.bessel_jn(x, v=20))(x))
    assert got.shape == (21, x.size)
    for n in (0, 1, 2, 7, 20):
        wanted = np.array([float(mpmath.besselj(n, v)) for v in x.tolist()])
        np.testing.assert_allclose(got[n], wanted, rtol=1e-11, atol=2e-14)
    slope = hg.vmap(hg.grad(lambda x: special.bessel_jn(x, v=3)[3]))(np.array([0.0, 0.5, 8.0]))
    np.testing.assert_allclose(slope, [0.5 * float(mpmath.besselj(2, v) - mpmath.besselj(4, v)) for v in (0, 0.5, 8)], rtol=1e-12)
    with pytest.raises(ArgumentError, match="order"):
        special.bessel_jn(1.0, v=-1)


def test_spherical_harmonics_of_angles_beyond_the_poles() -> None:
    """They depend on the cosine of the polar angle alone, as in SciPy."""
    n, m = np.array([1, 1, 2, 3, 3]), np.array([1, -1, 1, -3, 2])
    for theta in (-2.0, 4.0, 7.0):
        within = np.arccos(np.cos(theta))
        np.testing.assert_allclose(special.sph_harm_y(n, m, np.full(5, theta), 0.3), special.sph_harm_y(n, m, np.full(5, within), 0.3), rtol=1e-12)
    slope = hg.jvp(lambda t: special.sph_harm_y(1, 1, t, 0.0).real, (0.0,), (1.0,))[1]
    np.testing.assert_allclose(slope, -np.sqrt(3 / (8 * np.pi)), rtol=1e-6)


def test_spherical_harmonics() -> None:
    n = R.integers(0, 12, 60)
    m = np.array([R.integers(-k, k + 1) for k in n])
    theta, phi = R.uniform(0, np.pi, 60), R.uniform(0, 2 * np.pi, 60)
    wanted = [complex(mpmath.spherharm(*v)) for v in zip(n.tolist(), m.tolist(), theta.tolist(), phi.tolist(), strict=True)]
    np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), wanted, rtol=1e-11, atol=1e-13)
    traced = hg.jit(lambda *a: special.sph_harm_y(*a, n_max=11))(n, m, theta, phi)
    np.testing.assert_allclose(traced, wanted, rtol=1e-11, atol=1e-13)
    assert special.sph_harm_y(2, 1, np.float32(0.5), np.float32(0.5)).dtype == np.complex64
    with pytest.raises(ArgumentError, match="diff_n"):
        special.sph_harm_y(1, 0, 0.1, 0.1, diff_n=1)


def test_combinations_and_bernoulli() -> None:
    n, k = np.array([4, 5, -1, 0, 3, 50]), np.array([2, 2, 1, 0, 4, 12])
    assert np.asarray(special.comb(n.astype(float), k)).tolist() == [6.0, 10.0, 0.0, 1.0, 0.0, float(math.comb(50, 12))]
    assert np.asarray(special.comb([3.0, 0.0, 0.0], [2.0, 0.0, 1.0], repetition=True)).tolist() == [6.0, 1.0, 0.0]
    with hg.settings.override(default_float="float64"):
        assert np.asarray(special.bernoulli(12)).tolist() == pytest.approx([1.0, -0.5, *(float(mpmath.bernoulli(i)) for i in range(2, 13))])
    with pytest.raises(ArgumentError, match="bernoulli"):
        special.bernoulli(-1)
