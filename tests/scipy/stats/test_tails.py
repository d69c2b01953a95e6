"""Logarithms of distribution functions far out, where the functions themselves are 0 or 1 in their type: against mpmath and SciPy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.scipy import special, stats

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
