"""Quantiles, statistics without NaNs, covariance, calculus: against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((5, 7))
HOLES = np.where(RNG.random((5, 7)) < 0.2, np.nan, X)
GAP = X.copy()
GAP[1, 2], GAP[3] = np.nan, np.nan
KNOTS = np.sort(RNG.standard_normal(8))


def same(name: str, *args: Any, **options: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = getattr(np, name)(*args, **options)
    got = getattr(hnp, name)(*args, **options)
    traced = hg.jit(lambda first: getattr(hnp, name)(first, *args[1:], **options))(args[0])
    for found in (got, traced):
        for g, w in zip(*[(v if isinstance(v, (list, tuple)) else [v]) for v in (found, want)], strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-14, err_msg=f"{name} {args[1:]} {options}")
            assert np.shape(g) == np.shape(w)


@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_quantiles(method: str, axis: Any) -> None:
    for q in (0.3, [0.1, 0.5, 1.0]):
        same("quantile", X, q, axis=axis, method=method)
        same("quantile", GAP, q, axis=axis, method=method)
        same("nanquantile", HOLES, q, axis=axis, method=method)
    same("percentile", X, [20, 50], axis=axis, keepdims=True)
    same("nanpercentile", GAP, 70, axis=axis)


@pytest.mark.parametrize("name", ["median", "nanmedian", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_statistics(name: str, axis: Any) -> None:
    same(name, HOLES, axis=axis)
    same(name, GAP, axis=axis, keepdims=True)
    same(name, np.arange(6.0).reshape(2, 3), axis=axis)


def test_places_and_scans_without_nans() -> None:
    for name in ("nanargmax", "nanargmin", "nancumsum", "nancumprod"):
        same(name, HOLES, axis=0)


def test_covariance() -> None:
    same("cov", X)
    same("cov", X, rowvar=False, ddof=0)
    for name in ("cov", "corrcoef"):
        same(name, X[0])
        same(name, X[0], X[1])
    same("corrcoef", X)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution(mode: str) -> None:
    for a, v in ((X[0], X[1, :3]), (X[1, :3], X[0]), (np.arange(5), np.arange(4))):
        same("convolve", a, v, mode=mode)
        same("correlate", a, v, mode=mode)


def test_interpolation() -> None:
    same("interp", X, KNOTS, KNOTS**2)
    same("interp", X, KNOTS, KNOTS**2, left=-9.0, right=9.0)
    same("interp", KNOTS, KNOTS, KNOTS**2)
    same("interp", X, KNOTS[:1], KNOTS[:1])


def test_differences_and_integrals() -> None:
    same("gradient", X)
    same("gradient", X, 0.5, axis=1)
    same("gradient", X, 2.0, 3.0)
    same("gradient", X, np.sort(RNG.random(7)), axis=1)
    same("trapezoid", X)
    same("trapezoid", X, axis=0, dx=0.5)
    same("trapezoid", X, np.arange(7.0) ** 2)
    same("ediff1d", X)
    same("ediff1d", X, to_begin=1.0, to_end=[2.0, 3.0])
    same("unwrap", X * 9, axis=0)
    same("unwrap", np.array([0, 1, 3, 6.5, 13, 2, -4]))


def test_polynomials() -> None:
    assert np.allclose(hnp.polyval([1.0, 2.0, 3.0], X), np.polyval([1.0, 2.0, 3.0], X))
    same("vander", X[0])
    same("vander", np.arange(4), 3, increasing=True)


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (ArgumentError, lambda: hnp.quantile(X, 0.5, method="hazen")),
        (ArgumentError, lambda: hnp.convolve(X[0], X[1], mode="circular")),
        (ShapeError, lambda: hnp.median(X[:0])),
        (ShapeError, lambda: hnp.convolve(X, X)),
        (ShapeError, lambda: hnp.interp(X, KNOTS, KNOTS[:3])),
        (ShapeError, lambda: hnp.gradient(X[:1])),
    ],
)
def test_errors(error: Any, work: Any) -> None:
    with pytest.raises(error):
        work()
