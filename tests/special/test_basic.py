"""hologram.special: accuracy against mpmath and SciPy, special values, derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special as scipy_special
from scipy import optimize

import hologram as hg
import hologram.numpy as hnp
from hologram import special
from hologram.errors import ArgumentError
from hologram.primitives import TABLE
from tests.support.scalar_code import run
from tests.support.ulps import ulps, ulps_of_float64

R = np.random.default_rng(21)


def _ndtri(p: Any) -> Any:
    rest = min(p, 1 - p)
    start = scipy_special.ndtri(float(rest))
    z = mpmath.findroot(lambda z: mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2 / rest), start)
    return z if p < 0.5 else -z


MPMATH: dict[str, Callable[..., Any]] = {
    "lgamma": lambda x: mpmath.re(mpmath.loggamma(x)),
    "digamma": mpmath.digamma,
    "polygamma": lambda x, n: mpmath.polygamma(n, x),
    "i0e": lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x),
    "i1e": lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x),
    "ndtr": lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2,
    "ndtri": _ndtri,
    "normal_within": lambda x: mpmath.erf(x / mpmath.sqrt(2)),
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
}
RANGES: dict[str, list[tuple[float, float]]] = {
    "lgamma": [(0, 0.5), (0.5, 3), (0.999, 1.001), (1.999, 2.001), (3, 8), (8, 30), (30, 1e6)],
    "digamma": [(0, 1), (1, 3), (1.4616, 1.4617), (3, 8), (8, 1e3)],
    "polygamma": [(0, 1), (1, 10), (10, 100)],
    "i0e": [(-8, 8), (7.75, 9), (9, 300)],
    "i1e": [(-8, 8), (7.75, 9), (9, 300)],
    "ndtr": [(-38, -5), (-5, -0.6), (-0.7, 0.7), (0.6, 9)],
    "normal_within": [(-0.5, 0.5), (-6, 6), (0, 1e-30)],
    "ndtri": [(0, 0.01), (0.01, 0.99), (0.99, 1)],
    "erfcx": [(-5, 0.5), (0.4, 5), (5, 100)],
}
CASES = [(name, ends, attrs) for name in RANGES for ends in RANGES[name] for attrs in ([(1,), (2,), (5,)] if name == "polygamma" else [()])]


@pytest.mark.parametrize(("name", "ends", "attrs"), CASES)
def test_accuracy(name: str, ends: tuple[float, float], attrs: tuple[int, ...], everything: bool) -> None:
    """With and without FMA: float32 against the reference in float64, float64 against mpmath."""
    row = TABLE[name]
    x = R.uniform(*ends, 200_000 if everything else 5_000).astype(np.float32)
    y = R.uniform(*ends, 1_000 if everything else 25)
    if name == "ndtri" and ends[0] == 0:
        y[::2] = np.exp(R.uniform(-740, -5, y[::2].size))
    with mpmath.workprec(160):
        exact = [MPMATH[name](mpmath.mpf(v), *attrs) for v in y.tolist()]
    bound = row.tests["ulps"]
    for fused in (True, False):
        error = ulps(run(row, [x], fused, attrs), row.reference(x.astype(np.float64), *attrs))
        assert error.max() <= bound, (x[error.argmax()], error.max())
        for at, got, want in zip(y, run(row, [y], fused, attrs).tolist(), exact, strict=True):
            assert ulps_of_float64(got, want) <= bound, at


@pytest.mark.parametrize("name", ["lgamma", "digamma", "polygamma"])
def test_reflection(name: str) -> None:
    """Right to 4 ULP of the sum of the two terms; polygamma, whose second term is a polynomial, to 12."""
    x = -R.uniform(0.0, 30.0, 40)
    attrs = (2,) if name == "polygamma" else ()
    f = MPMATH[name]
    with mpmath.workprec(160):
        exact = [f(mpmath.mpf(v), *attrs) for v in x.tolist()]
        mirrored = [float(abs(f(1 - mpmath.mpf(v), *attrs))) for v in x.tolist()]
    got = run(TABLE[name], [x], True, attrs)
    bound = 12 if attrs else 4
    for at, g, w, m in zip(x, got.tolist(), exact, mirrored, strict=True):
        assert abs(g - float(w)) <= bound * np.spacing(max(abs(float(w)) + m, 1.0)), at


def _zeros_below_0(f: Callable[[Any], Any]) -> np.ndarray:
    """The zeros of a function of SciPy's between the negative integers, each with the float32 numbers about it."""
    grid = np.concatenate([np.linspace(-k - 1, -k, 2001)[1:-1] for k in (*range(12), 40)])
    signs = np.sign(f(grid))
    crossed = np.nonzero((signs[1:] != signs[:-1]) & (np.floor(grid[1:]) == np.floor(grid[:-1])))[0]
    zeros = np.array([optimize.brentq(f, grid[i], grid[i + 1], xtol=1e-15) for i in crossed]).astype(np.float32)
    steps = np.arange(-4, 5, dtype=np.int32)
    return (zeros.view(np.int32)[:, None] + steps).ravel().view(np.float32)


@pytest.mark.parametrize(("name", "attrs"), [("lgamma", ()), ("digamma", ()), ("polygamma", (1,)), ("polygamma", (2,)), ("polygamma", (5,))])
def test_float32_below_0(name: str, attrs: tuple[int, ...]) -> None:
    """Right to hardly more than half a unit next to the zeros, next to the poles, and between them."""
    function = {"lgamma": scipy_special.gammaln, "digamma": scipy_special.digamma, "polygamma": lambda x: scipy_special.polygamma(attrs[0], x)}[name]
    poles = -np.arange(1, 20, dtype=np.float32)
    random = -np.concatenate([R.uniform(0, 30, 100), R.uniform(30, 3000, 20), np.exp(R.uniform(-60, 0, 20))]).astype(np.float32)
    x = np.concatenate([_zeros_below_0(function), np.nextafter(poles, np.float32(0)), np.nextafter(poles, np.float32(-99)), random])
    x = x[x != np.round(x)]
    with mpmath.workprec(160):
        want = [MPMATH[name](mpmath.mpf(float(v)), *attrs) for v in x]
        for fused in (True, False):
            for at, got, exact in zip(x, run(TABLE[name], [x], fused, attrs).tolist(), want, strict=True):
                if abs(exact) < float(np.finfo(np.float32).max):
                    assert abs(mpmath.mpf(got) - exact) <= 0.51 * float(np.spacing(np.float32(abs(exact)))), at


def _log_ndtr(x: Any) -> Any:
    other = mpmath.erfc(abs(x) / mpmath.sqrt(2)) / 2
    return mpmath.log(other) if x < 0 else mpmath.log1p(-other)


SCIPY: dict[str, Callable[..., Any]] = {
    "erf": mpmath.erf,
    "erfc": mpmath.erfc,
    "erfcx": MPMATH["erfcx"],
    "erfinv": mpmath.erfinv,
    "expit": lambda x: 1 / (1 + mpmath.exp(-x)),
    "gammaln": MPMATH["lgamma"],
    "digamma": mpmath.digamma,
    "i0": lambda x: mpmath.besseli(0, x),
    "i0e": MPMATH["i0e"],
    "i1": lambda x: mpmath.besseli(1, x),
    "i1e": MPMATH["i1e"],
    "logit": lambda x: mpmath.log(x) - mpmath.log1p(-x),
    "log_ndtr": _log_ndtr,
    "ndtr": MPMATH["ndtr"],
    "ndtri": MPMATH["ndtri"],
    "entr": lambda x: -x * mpmath.log(x),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SCIPY)
def test_as_scipy(name: str, dtype: Any) -> None:
    """Compiled, on ordinary arguments and at the edges. Where the two differ by more than a few ULP, as next to poles and zeros, mpmath judges."""
    f, reference = getattr(special, name), getattr(scipy_special, name)
    x = np.concatenate([R.uniform(-6, 6, 2000), R.uniform(0, 1, 2000), [0.0, 1.0, np.inf, np.nan, 25.0]]).astype(dtype)
    with np.errstate(all="ignore"):
        want = reference(x.astype(np.float64)).astype(dtype)
    got = np.asarray(f(x))
    differ = ~np.isclose(got, want, rtol=16 * float(np.finfo(dtype).eps), atol=0.0, equal_nan=True)
    for at, value in zip(x[differ].tolist(), got[differ].tolist(), strict=True):
        with mpmath.workprec(160):
            exact = SCIPY[name](mpmath.mpf(at))
            mirrored = abs(SCIPY[name](1 - mpmath.mpf(at))) if name in ("gammaln", "digamma") and at < 0 else 0  # of the reflection formula
        assert abs(value - exact) <= 4 * np.spacing(dtype(float(abs(exact) + mirrored))), at
    np.testing.assert_array_equal(hg.jit(f)(x), got)


def test_pairs() -> None:
    a, b = np.meshgrid(np.array([0.0, 0.3, 1.0, 2.5]), np.array([0.0, 0.1, 1.0, 4.0, np.nan]))
    for name in ("xlogy", "xlog1py", "rel_entr", "kl_div"):
        np.testing.assert_allclose(getattr(special, name)(a, b), getattr(scipy_special, name)(a, b), rtol=1e-14, err_msg=name)
    x, y = R.uniform(0.1, 9, (2, 50))
    np.testing.assert_allclose(special.betaln(x, y), scipy_special.betaln(x, y), rtol=1e-12, atol=1e-14)
    for n in (0, 1, 2, 7):
        np.testing.assert_allclose(special.polygamma(n, x), scipy_special.polygamma(n, x), rtol=1e-13)
    assert special.logsumexp(x).shape == ()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_is_over_all_axes_as_in_scipy(name: str) -> None:
    x = R.uniform(-2, 2, (3, 4))
    function, wanted = getattr(special, name), getattr(scipy_special, name)
    np.testing.assert_allclose(function(x), wanted(x), rtol=1e-14)
    np.testing.assert_allclose(function(x, axis=-1), wanted(x, axis=-1), rtol=1e-14)
    np.testing.assert_allclose(hg.jit(hg.vmap(function))(x), wanted(x, axis=1), rtol=1e-14)
    np.testing.assert_allclose(function(2.5), wanted(2.5))
    np.testing.assert_allclose(getattr(hg.nn, name)(x), wanted(x, axis=-1), rtol=1e-14)  # JAX's and PyTorch's layers go along the last


def test_edges() -> None:
    inf, nan = np.inf, np.nan
    for name, at, want in (
        ("gammaln", [0.0, -0.0, -1.0, -7.0, inf, -inf, nan], [inf, inf, inf, inf, inf, inf, nan]),
        ("digamma", [0.0, -0.0, -1.0, inf, nan], [-inf, inf, nan, inf, nan]),
        ("i0e", [0.0, inf, -inf, nan], [1.0, 0.0, 0.0, nan]),
        ("i1e", [0.0, inf, -inf, nan], [0.0, 0.0, -0.0, nan]),
        ("ndtr", [-inf, inf, nan, -50.0, 50.0], [0.0, 1.0, nan, 0.0, 1.0]),
        ("ndtri", [0.0, 1.0, 0.5, -0.1, 1.1, nan], [-inf, inf, 0.0, nan, nan, nan]),
        ("erfcx", [inf, -inf, nan, -40.0], [0.0, inf, nan, inf]),
        ("log_ndtr", [-inf, inf, nan], [-inf, 0.0, nan]),
    ):
        for dtype in (np.float32, np.float64):
            np.testing.assert_array_equal(getattr(special, name)(np.array(at, dtype)), np.array(want, dtype), err_msg=name)
    assert float(special.log_ndtr(np.float64(-1e5))) == pytest.approx(float(scipy_special.log_ndtr(-1e5)), rel=1e-15)
    assert special.gammaln(3).dtype == np.float32 and special.ndtr(np.float16(1)).dtype == np.float16


@pytest.mark.parametrize("name", ["gammaln", "digamma", "i0", "i0e", "i1e", "log_ndtr", "ndtr", "ndtri", "erfcx", "logit", "entr"])
def test_derivatives(name: str) -> None:
    f = getattr(special, name)
    x = R.uniform(0.05, 0.95, 20)
    step = 1e-6
    slope = np.asarray(hg.vmap(hg.grad(f))(x))
    np.testing.assert_allclose(slope, (np.asarray(f(x + step)) - np.asarray(f(x - step))) / (2 * step), rtol=1e-7)
    second = np.asarray(hg.vmap(hg.grad(hg.grad(f)))(x))
    g = hg.vmap(hg.grad(f))
    np.testing.assert_allclose(second, (np.asarray(g(x + step)) - np.asarray(g(x - step))) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("f", "log", "shift"), [(special.xlogy, np.log, 0.0), (special.xlog1py, np.log1p, 1.0)])
def test_derivatives_of_products_with_logarithms(f: Any, log: Any, shift: float, dtype: Any) -> None:
    """By x the logarithm and by y the quotient, everywhere; the quotient is 0 where x is. Second derivatives too."""
    x, y = (g.ravel() for g in np.meshgrid(np.array([0.0, 0.3, 2.5, -1.5], dtype), np.array([0.0, 1e-30, 0.25, 1.0, 7.0, np.inf], dtype)))
    y = y - dtype(shift)
    with np.errstate(all="ignore"):
        wants = log(y), np.where(x == 0, 0, x / (y + dtype(shift)))
    slopes = hg.jit(hg.vmap(hg.grad(f, (0, 1))))(x, y)
    for got, want in zip(slopes, wants, strict=True):
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(dtype).eps)
    for (of_one, at), want in zip([(lambda a: f(a, y), x), (lambda b: f(x, b), y)], wants, strict=True):
        np.testing.assert_allclose(hg.jvp(of_one, (at,), (np.ones_like(x),))[1], want, rtol=4 * np.finfo(dtype).eps)
    inside = np.isfinite(y) & (y + shift > 1e-3)
    x, y = x[inside], y[inside]
    second = hg.vmap(hg.hessian(lambda p: f(p[0], p[1])))(np.stack([x, y], 1))
    mixed = 1 / (y + dtype(shift))
    want = np.stack([np.zeros_like(x), mixed, mixed, -x * mixed**2], 1).reshape(-1, 2, 2)
    np.testing.assert_allclose(second, want, rtol=8 * np.finfo(dtype).eps)


def test_derivatives_at_edges() -> None:
    assert float(hg.grad(special.entr)(np.float64(0.0))) == np.inf
    assert [float(g) for g in hg.grad(special.rel_entr, (0, 1))(np.float64(0.0), np.float64(2.0))] == [-np.inf, 0.0]
    assert float(hg.grad(special.i1e)(np.float64(0.0))) == 0.5
    for x in (-30.0, -1.0, 0.0, 30.0):
        want = np.exp(-x * x / 2 - scipy_special.log_ndtr(x)) / np.sqrt(2 * np.pi)
        np.testing.assert_allclose(float(hg.grad(special.log_ndtr)(np.float64(x))), want, rtol=1e-12)


@pytest.mark.parametrize("name", ["erf", "erfc", "erfcx", "erfinv", "expit", "i0", "i1", "log_ndtr", "ndtr"])
def test_derivatives_at_zero(name: str) -> None:
    """Of functions that are smooth there: compositions of what is not have the sum of one-sided slopes."""
    f, step = getattr(special, name), 1e-5
    x = np.float64(0.0)
    slope = (float(f(x + step)) - float(f(x - step))) / (2 * step)
    assert float(hg.grad(f)(x)) == pytest.approx(slope, abs=1e-9)
    second = (float(f(x + step)) + float(f(x - step)) - 2 * float(f(x))) / step**2
    assert float(hg.grad(hg.grad(f))(x)) == pytest.approx(second, abs=1e-5)


def test_orders() -> None:
    for n in (-1, 31, 1.5):
        with pytest.raises(ArgumentError):
            special.polygamma(n, hnp.ones(2))


def test_fusion() -> None:
    x = hnp.ones((100, 30))
    assert "-> 1 kernel" in str(hg.jit(lambda x: special.gammaln(x * 2) - special.ndtr(x)).lower(x).compile().reduction())


INF = math.inf
POLES = {  # beta and the logarithm of its magnitude, where gamma functions have poles, and of infinite arguments
    (0.0, 0.0): INF, (0.0, 2.0): INF, (-1.0, 0.5): INF, (-2.0, -1.0): INF, (-2.0, 3.0): INF, (-0.5, 0.0): INF, (-1.0, -0.5): INF,
    (-1.0, 1.0): -1.0, (-2.0, 1.0): -1 / 2, (-2.0, 2.0): 1 / 2, (-3.0, 1.0): -1 / 3, (-3.0, 2.0): 1 / 6, (-200.0, 1.0): -1 / 200,
    (INF, 0.5): 0.0, (INF, 2.0): 0.0, (INF, INF): 0.0, (INF, -0.5): -INF, (INF, -1.5): INF, (INF, 0.0): INF, (INF, -1.0): INF,
    (-0.5, -0.5): 0.0, (0.5, -200.5): 0.0, (math.nan, 2.0): math.nan, (INF, math.nan): math.nan,
}  # fmt: skip


def test_beta_at_poles_and_infinities() -> None:
    a, b = np.array(list(POLES)).T
    want = np.array(list(POLES.values()))
    with np.errstate(divide="ignore"):
        logarithms = np.log(np.abs(want))
    for x, y in ((a, b), (b, a)):
        np.testing.assert_allclose(special.beta(x, y), want, rtol=1e-13, atol=1e-300)
        np.testing.assert_allclose(special.betaln(x, y), logarithms, rtol=1e-13, atol=1e-13)


RISING = {
    (-1.0, 1.0): -1.0, (-2.0, 2.0): 2.0, (-3.0, 2.0): 6.0, (-3.0, 3.0): -6.0, (-2.0, 3.0): 0.0, (-2.0, 0.5): 0.0, (-2.0, 0.0): 1.0,
    (0.0, -2.0): 0.5, (-1.0, -1.0): -0.5, (-3.0, -3.0): -1 / 120, (0.0, 1e5): 0.0, (0.5, -1.5): INF, (1.0, -2.0): INF, (-1.5, 0.5): INF,
    (INF, 2.0): INF, (INF, -2.0): 0.0, (INF, 0.0): 1.0, (2.0, INF): INF, (-0.5, INF): -INF, (-1.0, INF): 0.0, (math.nan, 1.0): math.nan,
    (3.0, 2.0): 12.0, (3.0, -2.0): 0.5, (200.0, 2.0): 40200.0,
}  # fmt: skip


def test_rising_factorials_at_poles_and_infinities() -> None:
    z, m = np.array(list(RISING)).T
    np.testing.assert_allclose(special.poch(z, m), list(RISING.values()), rtol=1e-12)


def test_zeta_and_faddeeva_at_their_ends() -> None:
    x = np.array([-1e-300, -1e-17, -1e-10, 0.0, 1e-300])
    np.testing.assert_allclose(special.zetac(x), scipy_special.zetac(x), rtol=1e-14)
    z = np.array([INF, -INF, complex(0, INF), complex(INF, 1)])
    np.testing.assert_array_equal(np.asarray(special.wofz(z)) == 0, True)
