"""Inverses of the incomplete beta functions and of distributions made of them: accuracy against mpmath, edges, derivatives, transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as scipy_special

import hologram as hg
from hologram import special

pytestmark = pytest.mark.costly(3)

R = np.random.default_rng(31)
EPSILON = np.finfo(float).eps
SHARES: dict[str, Callable[[int], np.ndarray]] = {
    "middle": lambda n: R.uniform(0, 1, n),
    "tail": lambda n: 10 ** R.uniform(-300, 0, n),
    "near one": lambda n: 1 - 10 ** R.uniform(-15, 0, n),
    "near one half": lambda n: 0.5 + 10 ** R.uniform(-16, -1, n) * R.choice([-1, 1], n),
}
SHAPES = {"small": (-2, 0), "medium": (0, 2), "large": (2, 4)}


def _power(a: Any, b: Any, x: Any) -> Any:
    """``x (1 - x)`` times the density of the beta distribution, from ``x`` of mpmath."""
    return mpmath.exp(a * mpmath.log(x) + b * mpmath.log1p(-x) - mpmath.log(mpmath.beta(a, b)))


def _side(a: Any, b: Any, x: Any, upper: bool) -> Any:
    """I_x(a, b) or its complement, by the power series (DLMF 8.17.7) of the side on which ``x`` is, whose terms are positive."""
    if x * (a + b) > a:
        a, b, x, upper = b, a, 1 - x, not upper
    term = total = mpmath.mpf(1)
    n = 0
    while term > total * mpmath.eps:
        term *= x * (a + b + n) / (a + 1 + n)
        total, n = total + term, n + 1
    found = total * _power(a, b, x) / a
    return 1 - found if upper else found


def _error_of_inverse(name: str, a: float, b: float, y: float, x: float) -> float:
    """Error of ``x``, in units of the rounding of ``y`` and of ``x`` itself."""
    with mpmath.workprec(240):
        m, n, z = (mpmath.mpf(v) for v in (a, b, x))
        found = _side(m, n, z, name == "betainccinv")
        rate = _power(m, n, z) / (1 - z)
        return float(abs(found - y) / (rate + y) / EPSILON)


@pytest.mark.crossed
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("name", ["betaincinv", "betainccinv"])
def test_accuracy(name: str, shares: str, shapes: str, everything: bool) -> None:
    n = 200 if everything else 4
    a, b, y = 10 ** R.uniform(*SHAPES[shapes], n), 10 ** R.uniform(*SHAPES[shapes], n), SHARES[shares](n)
    got = np.asarray(hg.jit(getattr(special, name))(a, b, y))
    assert not np.isnan(got).any()
    for at in zip(a.tolist(), b.tolist(), y.tolist(), got.tolist(), strict=True):
        if 1e-300 < at[-1] < 1:
            assert _error_of_inverse(name, *at) < 500, at
    short = [x.astype(np.float32) for x in (a, b, y)]
    wide = getattr(special, name)(*(x.astype(np.float64) for x in short))
    np.testing.assert_array_equal(getattr(special, name)(*short), np.asarray(wide).astype(np.float32))


def _student(df: Any, t: Any) -> Any:
    """The smaller tail at ``t`` of mpmath."""
    return _side(df / 2, mpmath.mpf(1) / 2, df / (df + t * t), False) / 2


def _student_density(df: Any, t: Any) -> Any:
    return (1 + t * t / df) ** (-(df + 1) / 2) / (mpmath.sqrt(df) * mpmath.beta(df / 2, mpmath.mpf(1) / 2))


@pytest.mark.parametrize("shares", SHARES)
def test_accuracy_of_quantiles_of_t(shares: str, everything: bool) -> None:
    n = 200 if everything else 8
    df, p = 10 ** R.uniform(-1, 4, n), SHARES[shares](n)
    for d, y, t in zip(df.tolist(), p.tolist(), np.asarray(hg.jit(special.stdtrit)(df, p)).tolist(), strict=True):
        assert np.sign(t) == np.sign(y - 0.5)
        if 0 < abs(t) < 1e150:
            with mpmath.workprec(400):
                m, z, y = mpmath.mpf(d), mpmath.mpf(t), mpmath.mpf(y)
                rate, tail = _student_density(m, z) * abs(z), min(y, 1 - y)
                assert abs(_student(m, z) - tail) / (rate + tail * (abs(y - 0.5) > 0.1)) < 500 * EPSILON, (d, float(y), t)


def test_all_magnitudes() -> None:
    """There and back, from parameters at which everything is at the ends to those at which nothing but the mean is left."""
    a, b, y = 10 ** R.uniform(-6, 9, 600), 10 ** R.uniform(-6, 9, 600), R.uniform(1e-6, 1, 600)
    for inverse, f in ((special.betaincinv, special.betainc), (special.betainccinv, special.betaincc)):
        x = np.asarray(inverse(a, b, y))
        mean, deviation = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
        assert (np.abs(x - mean) <= 6 * deviation + 1e-15)[np.minimum(a, b) > 100].all()
        inside = (x > 1e-290) & (x < 1 - 1e-9) & (np.maximum(a, b) < 1e6) & (np.minimum(a, b) > 1e-3)
        np.testing.assert_allclose(np.asarray(f(a, b, x))[inside], y[inside], rtol=1e-9)
    df, p = 10 ** R.uniform(-1, 12, 600), R.uniform(1e-6, 1, 600)
    np.testing.assert_allclose(special.stdtr(df, special.stdtrit(df, p)), p, rtol=1e-11)


def test_edges() -> None:
    """As the limits are; SciPy's, where it finds them."""
    a, b, y = (g.ravel() for g in np.meshgrid([-1.0, 0.0, 0.5, 3.0, np.nan], [-1.0, 0.5, 1e3, np.nan], [-0.1, 0.0, 0.3, 1.0, 1.1, np.nan]))
    for name in ("betaincinv", "betainccinv"):
        np.testing.assert_allclose(hg.jit(getattr(special, name))(a, b, y), getattr(scipy_special, name)(a, b, y), rtol=1e-12)
    ends = np.array([0.0, 0.3, 1.0])
    np.testing.assert_array_equal(special.betaincinv(np.inf, 2.0, ends), [0, 1, 1])
    np.testing.assert_array_equal(special.betaincinv(2.0, np.inf, ends), [0, 0, 1])
    np.testing.assert_array_equal(special.betaincinv(np.inf, np.inf, ends), [np.nan] * 3)
    np.testing.assert_array_equal(special.betaincinv(0.5, 2.0, 1e-300), 0.0)  # about 1e-600
    np.testing.assert_array_equal(
        special.stdtrit([2.0, np.inf, 2.0, np.inf, 0.0, -1.0], [0, 0, 1, 1, 0.3, 0.3]), [-np.inf] * 2 + [np.inf] * 2 + [np.nan] * 2
    )
    np.testing.assert_allclose(special.stdtrit(np.inf, np.array([0.1, 0.5])), scipy_special.ndtri([0.1, 0.5]), rtol=1e-14)
    m, n, p = (g.ravel() for g in np.meshgrid([-1.0, 0.0, 0.3, 2.0, 50.0], [0.5, 4.0, 300.0], [-0.1, 0.0, 1e-30, 0.3, 0.99, 1.0, 1.1]))
    np.testing.assert_allclose(special.fdtri(m, n, p), scipy_special.fdtri(m, n, p), rtol=1e-11)


def test_derivatives_by_all_arguments() -> None:
    points = np.array([[2.3, 0.7, 0.4], [0.3, 4.0, 0.01], [60.0, 20.0, 0.999], [0.6, 0.9, 0.9], [1e3, 3e2, 0.3]]).T

    found = [np.asarray(g) for g in hg.jit(hg.vmap(hg.grad(special.betaincinv, (0, 1, 2))))(*points)]
    with mpmath.workprec(120):
        for (a, b, y), got in zip(points.T.tolist(), np.stack(found, 1).tolist(), strict=True):
            x = mpmath.mpf(float(special.betaincinv(a, b, np.float64(y))))
            density = _power(a, b, x) / (x * (1 - x))
            by_a = mpmath.diff(lambda v, b=b, x=x: _side(v, b, x, False), mpmath.mpf(a), h=1e-12)
            by_b = mpmath.diff(lambda v, a=a, x=x: _side(a, v, x, False), mpmath.mpf(b), h=1e-12)
            assert got == pytest.approx([float(-by_a / density), float(-by_b / density), float(1 / density)], rel=1e-9), (a, b, y)
    a, b, y = points
    rest = hg.jit(hg.vmap(hg.grad(special.betainccinv, (0, 1, 2))))(a, b, 1 - y)
    for got, want in zip(rest, (found[0], found[1], -found[2]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize(
    ("f", "points"),
    [(special.stdtrit, [[3.0, 0.2], [0.7, 0.999], [40.0, 0.5001], [40.0, 0.5]]), (special.fdtri, [[3.0, 8.0, 0.7], [0.5, 300.0, 1e-4]])],
)
def test_derivatives_of_quantiles(f: Any, points: Any) -> None:
    """Beside central differences."""
    at = np.array(points)
    found = hg.jit(hg.vmap(hg.grad(f, tuple(range(at.shape[1])))))(*at.T)
    for i, got in enumerate(found):
        step = np.zeros_like(at)
        step[:, i] = 1e-5 * np.minimum(at[:, i], np.abs(1 - at[:, i]))
        np.testing.assert_allclose(got, (f(*(at + step).T) - f(*(at - step).T)) / (2 * step[:, i]), rtol=1e-5, atol=1e-9)


def test_second_derivatives() -> None:
    at, step = (np.float64(0.6), np.float64(1.7), np.float64(0.3)), 1e-5
    by_y = hg.jit(lambda a, b, y: hg.jvp(lambda y: special.betaincinv(a, b, y), (y,), (y * 0 + 1,))[1])
    for i, got in enumerate(hg.jit(hg.grad(by_y, (0, 1, 2)))(*at)):
        near = [by_y(*(x + sign * step * (i == j) for j, x in enumerate(at))) for sign in (1, -1)]
        assert float(got) == pytest.approx(float(near[0] - near[1]) / (2 * step), rel=1e-6)


def test_under_transforms() -> None:
    a, y = np.array([0.5, 2.0, 30.0]), np.array([[0.1], [0.9]])
    whole = scipy_special.betaincinv(a, 1.5, y)
    np.testing.assert_allclose(special.betaincinv(a, 1.5, y), whole, rtol=1e-12)
    np.testing.assert_allclose(hg.vmap(special.betaincinv, (0, None, None), 1)(a, 1.5, y[:, 0]), whole, rtol=1e-12)
    np.testing.assert_array_equal(scipy_special.betaincinv(hg.tensor(a), 1.5, 0.5), special.betaincinv(a, 1.5, 0.5))
    np.testing.assert_array_equal(scipy_special.stdtrit(hg.tensor(a), 0.3), special.stdtrit(a, 0.3))
    assert special.stdtrit(1, 0.75).dtype == np.float32 and special.betaincinv(np.zeros((0, 2)), 1.0, 0.5).shape == (0, 2)


def test_quantiles_of_distributions_far_out() -> None:
    """The distributions that are made of them, to the last digits, in tails that no bisection of 1 - q reaches."""
    stats, q = hg.scipy.stats, np.array([1e-200, 1e-12, 0.3, 0.8])
    np.testing.assert_allclose(stats.beta.ppf(q, 2.5, 4.0), special.betaincinv(2.5, 4.0, q), rtol=1e-14)
    np.testing.assert_allclose(stats.beta.isf(q, 2.5, 4.0, scale=3.0), 3 * special.betainccinv(2.5, 4.0, q), rtol=1e-14)
    for distribution, args in ((stats.f, (3.0, 8.0)), (stats.t, (3.0,)), (stats.beta, (4.0, 2.0))):
        upper = q if distribution is not stats.beta else q[1:]  # the first is at 1
        np.testing.assert_allclose(distribution.logsf(distribution.isf(upper, *args), *args), np.log(upper), rtol=1e-4 if len(upper) < 4 else 1e-11)
        np.testing.assert_allclose(distribution.logcdf(distribution.ppf(q, *args), *args), np.log(q), rtol=1e-11, atol=1e-13)
