"""Inverses of the incomplete gamma functions: accuracy against mpmath, edges as in SciPy, derivatives, transforms."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as scipy_special

import hologram as hg
from hologram import special

pytestmark = pytest.mark.costly(3)

R = np.random.default_rng(12)
EPSILON = np.finfo(float).eps
SHARES = {
    "middle": lambda n: R.uniform(0, 1, n),
    "tail": lambda n: 10 ** R.uniform(-300, 0, n),
    "near one": lambda n: 1 - 10 ** R.uniform(-15, 0, n),
}
SHAPES = {"small": (-2, 0), "medium": (0, 2), "large": (2, 4)}


def _wrong_by(name: str, a: float, y: float, x: float) -> float:
    """Error of ``x``, in units of the rounding of ``y`` and of ``x`` itself."""
    with mpmath.workprec(160):
        ends = (0, x) if name == "gammaincinv" else (x, mpmath.inf)
        found = mpmath.gammainc(mpmath.mpf(a), *ends, regularized=True)
        rate = mpmath.mpf(x) ** a * mpmath.exp(-x) / mpmath.gamma(a)
        return float(abs(found - y) / rate / (1 + y / rate) / EPSILON)


@pytest.mark.crossed
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("name", ["gammaincinv", "gammainccinv"])
def test_accuracy(name: str, shares: str, shapes: str, everything: bool) -> None:
    n = 400 if everything else 5
    a, y = 10 ** R.uniform(*SHAPES[shapes], n), SHARES[shares](n)
    got = np.asarray(hg.jit(getattr(special, name))(a, y))
    assert not np.isnan(got).any()
    for at in zip(a.tolist(), y.tolist(), got.tolist(), strict=True):
        if 1e-300 < at[-1]:
            assert _wrong_by(name, *at) < 100, at
    short = a.astype(np.float32), y.astype(np.float32)
    wide = getattr(special, name)(*(x.astype(np.float64) for x in short))
    np.testing.assert_array_equal(getattr(special, name)(*short), np.asarray(wide).astype(np.float32))


def test_all_magnitudes() -> None:
    """There and back, from shapes of nearly 0 to those where only ``a`` is left of the result."""
    a, y = 10 ** R.uniform(-12, 14, 2000), R.uniform(1e-6, 1, 2000)
    for inverse, f in ((special.gammaincinv, special.gammainc), (special.gammainccinv, special.gammaincc)):
        x = np.asarray(inverse(a, y))
        inside = (x > 1e-300) & (a < 1e6)  # beyond, neighbours of x have other shares
        np.testing.assert_allclose(np.asarray(f(a, x))[inside], y[inside], rtol=1e-11)
        assert (np.abs(x - a) <= 6 * np.sqrt(a))[a > 100].all()
        assert not np.isnan(inverse(10 ** R.uniform(2, 4, 5000), 10 ** R.uniform(-307, -290, 5000))).any()  # their neighbours underflow


def test_edges_as_scipy() -> None:
    a, y = (g.ravel() for g in np.meshgrid([-1.0, 1e-5, 0.5, 1.0, 2.0, 1e300, np.nan], [-0.1, 0.0, 1e-300, 1 - 1e-16, 1.0, 1.1, np.inf, np.nan]))
    for name in ("gammaincinv", "gammainccinv"):
        np.testing.assert_allclose(hg.jit(getattr(special, name))(a, y), getattr(scipy_special, name)(a, y), rtol=1e-13)
    for at in (0.0, np.inf):
        np.testing.assert_array_equal(special.gammaincinv(at, [0.0, 0.5, 1.0]), [0.0, np.nan, np.inf])
    v, p = (g.ravel() for g in np.meshgrid([0.5, 1.0, 4.0, 1e3], [0.0, 1e-30, 0.3, 1.0]))
    np.testing.assert_allclose(special.chdtri(v, p), scipy_special.chdtri(v, p), rtol=1e-13)


def test_derivatives_by_both_arguments() -> None:
    def lower(a: Any, y: Any) -> Any:
        return mpmath.findroot(lambda x: mpmath.gammainc(a, 0, x, regularized=True) - y, float(scipy_special.gammaincinv(float(a), float(y))))

    a, y = np.array([[2.3, 0.4], [0.3, 0.01], [60.0, 0.999], [0.05, 0.9], [1e4, 0.3]]).T
    by_a, by_y = (np.asarray(g) for g in hg.jit(hg.vmap(hg.grad(special.gammaincinv, (0, 1))))(a, y))
    with mpmath.workprec(100):
        for b, z, *got in zip(a.tolist(), y.tolist(), by_a.tolist(), by_y.tolist(), strict=True):
            assert got[0] == pytest.approx(float(mpmath.diff(lambda b, z=z: lower(b, mpmath.mpf(z)), b, h=1e-6)), rel=1e-9)
            assert got[1] == pytest.approx(float(mpmath.diff(lambda z, b=b: lower(mpmath.mpf(b), z), z, h=1e-8)), rel=1e-9)
    of_rest = hg.jit(hg.vmap(hg.grad(special.gammainccinv, (0, 1))))(a, 1 - y)
    np.testing.assert_allclose(of_rest[0], by_a, rtol=1e-12)
    np.testing.assert_allclose(of_rest[1], -by_y, rtol=1e-12)


def test_second_derivatives() -> None:
    at, step = (np.float64(0.6), np.float64(0.3)), 1e-5
    by_y = hg.jit(lambda a, y: hg.jvp(lambda y: special.gammaincinv(a, y), (y,), (y * 0 + 1,))[1])
    got = hg.jit(hg.grad(by_y, (0, 1)))(*at)
    for i, g in enumerate(got):
        near = [by_y(*(x + sign * step * (i == j) for j, x in enumerate(at))) for sign in (1, -1)]
        assert float(g) == pytest.approx(float(near[0] - near[1]) / (2 * step), rel=1e-6)


def test_under_transforms() -> None:
    a, y = np.array([0.5, 2.0, 30.0]), np.array([[0.1], [0.9]])
    whole = scipy_special.gammaincinv(a, y)
    np.testing.assert_allclose(special.gammaincinv(a, y), whole, rtol=1e-13)
    np.testing.assert_allclose(hg.vmap(special.gammaincinv, (0, None), 1)(a, y[:, 0]), whole, rtol=1e-13)
    np.testing.assert_allclose(hg.jit(special.gammaincinv, dynamic=True)(a, y[:, 0].repeat(2)[:3]), whole[[0, 0, 1], [0, 1, 2]], rtol=1e-13)
    np.testing.assert_array_equal(scipy_special.gammaincinv(hg.tensor(a), 0.5), special.gammaincinv(a, 0.5))
    assert special.gammaincinv(1, 0.5).dtype == np.float32 and special.gammaincinv(np.zeros((0, 2)), 0.5).shape == (0, 2)


def test_quantiles_of_distributions_far_out() -> None:
    """The distributions that are made of them, to the last digits, in tails that no bisection of 1 - q reaches."""
    stats, q = hg.scipy.stats, np.array([1e-200, 1e-12, 0.3, 0.8])
    np.testing.assert_allclose(stats.gamma.isf(q, 2.5), scipy_special.gammainccinv(2.5, q), rtol=1e-14)
    np.testing.assert_allclose(stats.gamma.ppf(q, 2.5, scale=3.0), 3 * scipy_special.gammaincinv(2.5, q), rtol=1e-13)
    np.testing.assert_allclose(stats.chi2.isf(q, 5.0), scipy_special.chdtri(5.0, q), rtol=1e-14)
    np.testing.assert_allclose(stats.invgamma.ppf(q, 2.5), 1 / scipy_special.gammainccinv(2.5, q), rtol=1e-14)
