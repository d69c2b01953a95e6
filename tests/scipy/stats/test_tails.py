"""Logarithms of distribution functions far out, where the functions themselves are 0 or 1 in their type: against mpmath and SciPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.scipy import special, stats

pytestmark = pytest.mark.costly(2)

theirs: Any = pytest.importorskip("scipy.stats")
X = np.r_[-np.logspace(-3, 15, 25)[::-1], np.logspace(-3, 2, 20)].astype(np.float32)

# by distribution and method: how many units in the last place of float32 it may be off
BOUNDS = {
    ("norm", "logcdf"): 2, ("norm", "logsf"): 2, ("logistic", "logcdf"): 2, ("logistic", "logsf"): 2, ("laplace", "logcdf"): 2,
    ("cauchy", "logcdf"): 3, ("gumbel_l", "logcdf"): 40, ("gumbel_r", "logsf"): 4, ("halfnorm", "logsf"): 4, ("rayleigh", "logcdf"): 10,
    ("gamma", "logsf", 2.5): 4, ("chi2", "logsf", 4.0): 4, ("invgamma", "logcdf", 2.5): 8, ("gennorm", "logcdf", 1.5): 40,
    ("gennorm", "logsf", 1.5): 40,
}  # fmt: skip


def units(got: Any, want: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        near = want.astype(np.float32)
    there = np.isfinite(near) & (np.abs(want) > 1.2e-38)
    off = np.abs(np.where(there, got, 1.0) - np.where(there, want, 1.0)) / np.where(there, np.abs(want), 1.0) * 2.0**23
    np.testing.assert_array_equal(np.asarray(got)[~np.isfinite(near)], near[~np.isfinite(near)])
    return np.where(there, off, 0.0)


@pytest.mark.parametrize("case", BOUNDS, ids=lambda c: f"{c[0]}.{c[1]}")
def test_logarithms_far_out(case: Any) -> None:
    name, method, *shapes = case
    with np.errstate(all="ignore"):
        want = getattr(getattr(theirs, name), method)(X.astype(np.float64), *shapes)
    got = np.asarray(hg.jit(lambda x: getattr(getattr(stats, name), method)(x, *map(np.float32, shapes)))(X))
    known = np.isfinite(want) | ~np.isfinite(got)  # SciPy's own functions underflow, too
    assert got.dtype == np.float32 and known.mean() > 0.5
    assert units(got[known], want[known]).max() <= BOUNDS[case]


def test_log_ndtr() -> None:
    special_of = pytest.importorskip("scipy.special")
    assert units(special.log_ndtr(X), special_of.log_ndtr(X.astype(np.float64))).max() <= 2


@pytest.mark.crossed
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("a", [0.1, 1.0, 30.0, 300.0])
def test_upper_tails_of_gamma_distributions(a: float, dtype: Any) -> None:
    mp = pytest.importorskip("mpmath")
    mp.mp.dps = 40
    xs = np.array([a + k * np.sqrt(a) + m for k, m in ((12, 70), (20, 100), (40, 700), (100, 3000))], dtype)
    log_tail = lambda x: mp.log(mp.gammainc(float(dtype(a)), x, mp.inf, regularized=True))  # noqa: E731
    rtol = 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(stats.gamma.logsf(xs, dtype(a)), [float(log_tail(float(x))) for x in xs], rtol=rtol)
    slopes = hg.grad(lambda x: hnp.sum(stats.gamma.logsf(x, dtype(a))))(xs)
    np.testing.assert_allclose(slopes, [float(mp.diff(log_tail, float(x))) for x in xs], rtol=rtol)


SHAPES = {"t": (2.5,), "beta": (300.0, 200.0), "f": (5.0, 8.0), "gamma": (500.0,), "chi2": (1000.0,)}
FAR = {
    "t": np.array([-1e150, -1e30, -300.0, -3.0, -0.1, 0.3, 2.0, 50.0]), "f": np.array([1e-250, 1e-30, 1e-4, 0.5, 3.0, 1e4, 1e30, 1e250]),
    "beta": np.array([1e-300, 1e-30, 1e-3, 0.3, 0.6, 0.7, 0.99, 1 - 1e-12]), "gamma": np.array([1e-300, 1e-3, 1.0, 50.0, 480.0, 530.0, 900.0, 5e4]),
    "chi2": np.array([1e-300, 1e-3, 1.0, 50.0, 960.0, 1060.0, 2000.0, 5e4]),
}  # fmt: skip


def tails(name: str, x: float, shapes: tuple[float, ...]) -> tuple[Any, Any]:
    """The probabilities below and above, of hypergeometric series whose terms have one sign."""
    mp = pytest.importorskip("mpmath")
    mp.mp.dps = 40
    x, *s = (mp.mpf(float(v)) for v in (x, *shapes))

    def lower_beta(a: Any, b: Any, x: Any, y: Any) -> Any:
        return x**a * y**b / a / mp.beta(a, b) * mp.hyp2f1(a + b, 1, a + 1, x)

    def shares(a: Any, b: Any, x: Any, y: Any) -> tuple[Any, Any]:
        if x < (a + 1) / (a + b + 2):
            return (p := lower_beta(a, b, x, y)), 1 - p
        return 1 - (q := lower_beta(b, a, y, x)), q

    if name == "t":
        below = shares(s[0] / 2, mp.mpf(0.5), s[0] / (s[0] + x * x), x * x / (s[0] + x * x))[0] / 2
        return (below, 1 - below) if x < 0 else (1 - below, below)
    if name == "f":
        return shares(s[0] / 2, s[1] / 2, s[0] * x / (s[0] * x + s[1]), s[1] / (s[0] * x + s[1]))
    if name == "beta":
        return shares(*s, x, 1 - x)
    a, x = (s[0], x) if name == "gamma" else (s[0] / 2, x / 2)
    return mp.gammainc(a, 0, x, regularized=True), mp.gammainc(a, x, mp.inf, regularized=True)


@pytest.mark.parametrize("name", SHAPES)
def test_both_tails_are_finite_wherever_their_logarithms_are(name: str) -> None:
    mp = pytest.importorskip("mpmath")
    xs, shapes, family = FAR[name], SHAPES[name], getattr(stats, name)
    density = np.asarray(family.logpdf(xs, *shapes))
    for method, sign in (("logcdf", 1.0), ("logsf", -1.0)):
        log = hg.jit(lambda x, method=method: getattr(family, method)(x, *shapes))
        exact = [tails(name, x, shapes)[method == "logsf"] for x in xs]
        want = [float(mp.log(p)) if p < 1 - mp.mpf(10) ** -25 else 0.0 for p in exact]
        got = log(xs).numpy()
        np.testing.assert_allclose(got, want, rtol=2e-11, atol=1e-25)
        known = np.abs(density - got) < 700
        slopes = hg.grad(lambda x, log=log: hnp.sum(log(x)))(xs).numpy()
        np.testing.assert_allclose(slopes[known], sign * np.exp(density - got)[known], rtol=1e-9)


def test_discrete_tails_are_those_of_the_functions_they_are_made_of() -> None:
    for got, want in (
        (stats.poisson.logsf(2000.0, 3.0), theirs.poisson.logpmf(range(2001, 2020), 3.0)),
        (stats.poisson.logcdf(3.0, 2000.0), theirs.poisson.logpmf([0, 1, 2, 3], 2000.0)),
        (stats.binom.logsf(998.0, 1000.0, 1e-3), theirs.binom.logpmf([999, 1000], 1000, 1e-3)),
        (stats.nbinom.logcdf(1.0, 500.0, 1e-3), theirs.nbinom.logpmf([0, 1], 500, 1e-3)),
    ):
        np.testing.assert_allclose(float(got), np.logaddexp.reduce(want), rtol=1e-5)
