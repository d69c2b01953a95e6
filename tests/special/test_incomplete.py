"""Incomplete functions, gamma and zeta functions: accuracy against mpmath and SciPy, edges, derivatives of every argument, transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as scipy_special

import hologram as hg
import hologram.numpy as hnp
from hologram import special
from hologram.errors import ArgumentError, DTypeError

pytestmark = pytest.mark.costly(3)

R = np.random.default_rng(77)
SPECIAL = np.array([-np.inf, -3.0, -2.5, -1.0, -0.0, 0.0, 1e-300, 1e-5, 0.3, 1.0, 2.0, 40.0, 1e3, 1e10, 1e300, np.inf, np.nan])
FEW = np.array([-1.0, 0.0, 1e-5, 0.3, 1.0, 1.5, 7.0, 1e3, np.nan])


def _betainc(a: Any, b: Any, x: Any) -> Any:
    return mpmath.betainc(a, b, 0, x, regularized=True)


def _spread(low: float, high: float) -> Callable[[int], np.ndarray]:
    return lambda n: 10 ** R.uniform(low, high, n)


def _even(low: float, high: float) -> Callable[[int], np.ndarray]:
    return lambda n: R.uniform(low, high, n)


CASES: list[tuple[str, list[Callable[[int], np.ndarray]], Callable[..., Any], float]] = [
    ("gamma", [_even(-30, 171)], mpmath.gamma, 10),
    ("rgamma", [_even(-30, 60)], mpmath.rgamma, 10),
    ("beta", [_spread(-2, 2), _spread(-2, 2)], mpmath.beta, 500),
    ("beta", [_even(1, 1e4), _spread(-2, 1)], mpmath.beta, 5000),
    ("binom", [_even(20, 100), _even(0, 20)], mpmath.binomial, 500),
    ("binom", [_even(200, 1e4), _even(0, 20)], mpmath.binomial, 5000),
    ("poch", [_even(0.1, 50), _even(0, 50)], mpmath.rf, 500),
    ("poch", [_even(200, 1e4), _even(0, 3)], mpmath.rf, 5000),
    ("zeta", [_even(1.01, 20), _spread(-2, 2)], mpmath.zeta, 500),
    ("zeta", [_even(-30, 60)], mpmath.zeta, 500),
    ("zetac", [_even(2, 60)], lambda s: mpmath.zeta(s) - 1, 500),
    ("expi", [_even(0.5, 100)], mpmath.ei, 20),
    ("expi", [_even(-50, 0)], mpmath.ei, 20),
    ("exp1", [_spread(-5, 2.5)], mpmath.e1, 20),
    ("exprel", [_even(-3, 3)], lambda x: mpmath.expm1(x) / x, 10),
    ("gammainc", [_spread(-3, 2), _spread(-3, 2)], lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), 500),
    ("gammaincc", [_spread(-3, 2), _spread(-3, 2)], lambda a, x: mpmath.gammainc(a, x, regularized=True), 500),
    ("gammainc", [_even(20, 400), _even(20, 400)], lambda a, x: mpmath.gammainc(a, 0, x, regularized=True), 5000),
    ("betainc", [_spread(-1, 2), _spread(-1, 2), _even(0, 0.9)], _betainc, 2000),
    ("betaincc", [_spread(-1, 2), _spread(-1, 2), _even(0.1, 1)], lambda a, b, x: _betainc(b, a, 1 - x), 2000),
]


@pytest.mark.costly(2)
@pytest.mark.parametrize(("name", "draws", "exact", "ulps"), CASES)
def test_accuracy(name: str, draws: list[Callable[[int], np.ndarray]], exact: Callable[..., Any], ulps: float, everything: bool) -> None:
    """float64 against mpmath, float32 to its last digit, and both the same in a jitted function and beside others."""
    args = [draw(600 if everything else 15) for draw in draws]
    f = getattr(special, name)
    with mpmath.workprec(160):
        want = [exact(*map(mpmath.mpf, at)) for at in zip(*[x.tolist() for x in args], strict=True)]
    got = np.asarray(hg.jit(f)(*args))
    for *at, g, w in zip(*args, got.tolist(), want, strict=True):
        if 1e-300 < abs(w) < 1e308:
            assert abs(g - w) <= ulps * np.finfo(float).eps * abs(w), at
    short = [x.astype(np.float32) for x in args]
    wide = np.asarray(f(*[x.astype(np.float64) for x in short]))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(f(*short), wide.astype(np.float32))


def _lower_gamma(a: Any, x: Any) -> Any:
    """By the power series, which mpmath gives up for such parameters."""
    term = total = mpmath.mpf(1)
    k = 1
    while term > total * mpmath.mpf(2) ** -70:
        term *= x / (a + k)
        total += term
        k += 1
    return mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a + 1)) * total


def test_large_parameters() -> None:
    a = 10 ** R.uniform(2, 6, 12)
    x = a * (1 + R.normal(size=12) / np.sqrt(a) * 3)
    with mpmath.workprec(120):
        exact = [_lower_gamma(*map(mpmath.mpf, at)) for at in zip(a.tolist(), x.tolist(), strict=True)]
    np.testing.assert_allclose(special.gammainc(a, x), [float(v) for v in exact], rtol=1e-13)
    np.testing.assert_allclose(special.gammaincc(a, x), [float(1 - v) for v in exact], rtol=1e-13)
    a, b = 10 ** R.uniform(2, 6, (2, 100))
    mean = a / (a + b)
    p = np.clip(mean + R.normal(size=100) * np.sqrt(mean * (1 - mean) / (a + b)) * 3, mean / 2, (1 + mean) / 2)
    np.testing.assert_allclose(special.betainc(a, b, p), scipy_special.betainc(a, b, p), rtol=1e-11)
    np.testing.assert_allclose(special.betaincc(a, b, p), scipy_special.betaincc(a, b, p), rtol=1e-11)


ALIKE: list[tuple[str, tuple[np.ndarray, ...]]] = [
    *[
        (name, (SPECIAL,))
        for name in "gamma gammasgn loggamma rgamma factorial expi exp1 exprel zeta psi cbrt exp2 exp10 expm1 log1p cosm1 sinc".split()
    ],
    *[(name, (SPECIAL, SPECIAL)) for name in ("gammainc", "gammaincc", "chdtr", "chdtrc", "huber")],
    *[(name, (FEW, FEW)) for name in ("stdtr", "inv_boxcox", "inv_boxcox1p")],
    *[(name, (FEW[1:], FEW[1:])) for name in ("pdtr", "pdtrc", "boxcox1p")],
    *[(name, (FEW, FEW, FEW)) for name in ("betainc", "betaincc", "fdtr", "fdtrc")],
    *[(name, (FEW[1:], FEW[1:], FEW[1:])) for name in ("gdtr", "gdtrc")],
]


@pytest.mark.costly(3)
@pytest.mark.parametrize(("name", "axes"), ALIKE)
def test_edges_as_scipy(name: str, axes: tuple[np.ndarray, ...]) -> None:
    args = [g.ravel() for g in np.meshgrid(*axes)]
    if name.startswith("pdtr"):
        args = [a[~np.isnan(args[0])] for a in args]  # SciPy's has a probability for a count of NaN
    with np.errstate(all="ignore"):
        want = getattr(scipy_special, name)(*args)
    got = hg.jit(getattr(special, name))(*args)
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-300)


def test_whole_numbers_are_exact() -> None:
    n = np.arange(1, 23)
    np.testing.assert_array_equal(special.gamma(n.astype(float)), scipy_special.factorial(n - 1, exact=True).astype(float))
    n, k = (g.ravel().astype(float) for g in np.meshgrid(np.arange(41), np.arange(-2, 15)))
    exact = [float(math.comb(int(a), int(b))) if b >= 0 else 0.0 for a, b in zip(n, k, strict=True)]
    np.testing.assert_array_equal(special.binom(n, k), exact)
    np.testing.assert_array_equal(special.expn(1, [0.5, 2.0]), special.exp1([0.5, 2.0]))


@pytest.mark.parametrize("n", [0, 1, 2, 5, 30])
def test_exponential_integrals_of_an_order(n: int) -> None:
    x = np.concatenate([10 ** R.uniform(-5, 2, 50), [0.0, np.inf, np.nan, 1.0]])
    np.testing.assert_allclose(special.expn(n, x), scipy_special.expn(n, x), rtol=1e-13)
    if n:
        np.testing.assert_allclose(hg.vmap(hg.grad(lambda x: special.expn(n, x)))(x[:50]), -scipy_special.expn(n - 1, x[:50]), rtol=1e-13)


# --- derivatives -----------------------------------------------------------------------------------------------------

SMOOTH: list[tuple[str, tuple[float, ...]]] = [
    ("gammainc", (2.3, 1.7)), ("gammainc", (0.3, 4.0)), ("gammainc", (60.0, 55.0)), ("gammaincc", (3.0, 8.0)), ("gammaincc", (0.2, 0.1)),
    ("betainc", (2.0, 3.5, 0.3)), ("betaincc", (0.7, 12.0, 0.2)), ("betainc", (8.0, 2.0, 0.95)), ("stdtr", (5.0, -1.3)), ("stdtr", (4.0, 6.0)),
    ("fdtr", (3.0, 7.0, 1.4)), ("zeta", (2.7, 1.3)), ("beta", (1.3, 2.4)), ("boxcox", (1.7, 0.3)), ("inv_boxcox", (0.7, 0.4)), ("binom", (7.3, 2.2)),
    ("poch", (2.5, 1.5)), ("gdtr", (1.5, 2.5, 0.8)), ("chdtr", (3.0, 2.0)), ("pseudo_huber", (1.5, 0.7)),
    ("gamma", (2.7,)), ("gamma", (-2.7,)), ("rgamma", (-1.6,)), ("expi", (0.8,)), ("exp1", (3.0,)), ("exprel", (0.1,)), ("zeta", (3.2,)),
]  # fmt: skip


@pytest.mark.costly(3)
@pytest.mark.parametrize(("name", "at"), SMOOTH)
def test_derivatives(name: str, at: tuple[float, ...], everything: bool) -> None:
    """By every argument, against differences."""
    if not everything and SMOOTH.index((name, at)) % 3:
        pytest.skip("in --all: compositions of the same functions, and other regions of these")
    f = getattr(special, name)
    args = tuple(np.float64(x) for x in at)
    value, got = hg.jit(hg.value_and_grad(f, tuple(range(len(at)))))(*args)
    step = 1e-5
    points = np.array([[x + s * (j == i) for j, x in enumerate(at)] for i in range(len(at)) for s in (step, 0, -step)]).T
    values = np.asarray(f(*points)).reshape(-1, 3)
    np.testing.assert_allclose(values[:, 1], float(value), rtol=1e-13)
    np.testing.assert_allclose([float(g) for g in got], (values[:, 0] - values[:, 2]) / (2 * step), rtol=3e-7, atol=1e-9)


def test_second_derivatives() -> None:
    """Mixed ones of an incomplete function, and forward mode, which agree with differences of the first."""
    at, step = np.array([0.6, 1.4]), 1e-5
    slope = hg.jit(lambda p: hnp.stack(hg.grad(special.gammainc, (0, 1))(p[0], p[1])))
    want = np.stack([(np.asarray(slope(at + e)) - np.asarray(slope(at - e))) / (2 * step) for e in step * np.eye(2)], 1)
    np.testing.assert_allclose(hg.jit(hg.jacfwd(slope))(at), want, rtol=1e-6, atol=1e-8)


def test_derivatives_by_parameters_are_accurate() -> None:
    a = 10 ** R.uniform(-1, 1.5, 8)
    x = a * R.uniform(0.3, 2, 8)
    got = hg.vmap(hg.grad(special.gammainc))(a, x)
    for at, y, g in zip(a.tolist(), x.tolist(), np.asarray(got).tolist(), strict=True):
        want = mpmath.diff(lambda b, y=y: mpmath.gammainc(b, 0, y, regularized=True), at)
        assert g == pytest.approx(float(want), rel=1e-11)


def test_under_transforms() -> None:
    """vmap over one argument, jit within a loop, integers, narrow floats, broadcasting, weak numbers."""
    a, x = np.array([0.5, 2.0, 30.0]), np.array([[1.0], [20.0]])
    whole = scipy_special.gammainc(a, x)
    np.testing.assert_allclose(special.gammainc(a, x), whole, rtol=1e-13)
    np.testing.assert_allclose(hg.vmap(special.gammainc, (0, None), 1)(a, x[:, 0]), whole, rtol=1e-13)
    np.testing.assert_allclose(hg.jit(lambda x: hg.fori_loop(0, 3, lambda i, t: t + special.gammainc(a, x), a * 0))(x[0]), 3 * whole[0], rtol=1e-13)
    np.testing.assert_allclose(hg.jit(special.gammainc, dynamic=True)(a, a), scipy_special.gammainc(a, a), rtol=1e-13)
    assert special.gammainc(1, 2).dtype == np.float32 and special.gamma(np.float16(3)).dtype == np.float16
    assert special.betainc(hnp.ones((2, 1)), 2, np.full(3, 0.5, np.float32)).shape == (2, 3)
    assert special.gammainc(np.zeros((0, 2)), 1.0).shape == (0, 2)


def test_errors() -> None:
    for act, kind, message in (
        (lambda: special.multigammaln(1.0, 0), ArgumentError, "a positive dimension"),
        (lambda: special.expn(-1, 1.0), ArgumentError, "an order from 0 up"),
        (lambda: special.gammainc(1j, 1.0), DTypeError, "complex"),
    ):
        with pytest.raises(kind, match=message) as caught:
            act()
        assert "test_incomplete.py" in str(caught.value)
    np.testing.assert_allclose(special.multigammaln([2.0, 3.0, 0.4], 2), [*scipy_special.multigammaln([2.0, 3.0], 2), np.nan], rtol=1e-6)


def test_names() -> None:
    assert hnp.special is hg.special and set(special.__all__) <= set(dir(special))
    for name in special.__all__:
        if name not in ("logsumexp", "softmax", "log_softmax", "bessel_jn"):
            assert hasattr(scipy_special, name), name
