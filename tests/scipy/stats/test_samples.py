"""Modes, ranks, standard errors and kernel densities beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
import hologram.scipy.stats as hs
from hologram.errors import ArgumentError, HologramError, ShapeError

ss = pytest.importorskip("scipy.stats", reason="SciPy, with which results are compared, is not installed")
Y = np.random.default_rng(1).integers(0, 4, (5, 6)).astype(float)
GAPS = Y + np.arange(6) * 0.1


@pytest.mark.parametrize("axis", [0, 1, None])
def test_modes_ranks_and_errors(axis: int | None) -> None:
    for keepdims in (False, True):
        for got, want in zip(hs.mode(Y, axis, keepdims=keepdims), ss.mode(Y, axis, keepdims=keepdims), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
    for method in ("average", "min", "max", "dense", "ordinal"):
        np.testing.assert_allclose(hs.rankdata(Y, method, axis=axis).numpy(), ss.rankdata(Y, method, axis=axis))
    for options in ({}, {"keepdims": True}, {"keepdims": True, "nan_policy": "omit"}):
        got, want = hs.sem(Y, axis, **options), ss.sem(Y, axis, **options)
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got, want)


def test_nans() -> None:
    x = np.where(Y == 2, np.nan, Y)
    np.testing.assert_allclose(hs.sem(x, 1, nan_policy="omit").numpy(), ss.sem(x, 1, nan_policy="omit"))
    for method in ("average", "min", "max", "dense", "ordinal"):
        np.testing.assert_allclose(hs.rankdata(x, method, axis=1).numpy(), ss.rankdata(x, method, axis=1))


@pytest.mark.parametrize("bandwidth", [None, "silverman", 0.3])
def test_kernel_densities(bandwidth: Any) -> None:
    for data, weights in ((GAPS[0], None), (GAPS[:2], None), (GAPS[:2], np.arange(1.0, 7))):
        got, want = hs.gaussian_kde(data, bandwidth, weights), ss.gaussian_kde(data, bandwidth, weights)
        points = np.atleast_2d(data)[:, :3] + 0.05
        np.testing.assert_allclose(got(points).numpy(), want(points))
        np.testing.assert_allclose(got.logpdf(points).numpy(), want.logpdf(points))


def test_kernel_densities_are_traced_and_sampled() -> None:
    slope = hg.jit(hg.grad(lambda x: hs.gaussian_kde(GAPS[0]).logpdf(x)[0]))(np.float64(1.5))
    kde = ss.gaussian_kde(GAPS[0])
    np.testing.assert_allclose(float(slope), (kde.logpdf(1.5 + 1e-6) - kde.logpdf(1.5 - 1e-6))[0] / 2e-6, rtol=1e-6)
    drawn = hs.gaussian_kde(GAPS[0]).resample(hg.random.key(0), (2000,)).numpy()[0]
    assert abs(drawn.mean() - GAPS[0].mean()) < 0.15 and hnp.ndim(drawn) == 1


WRONG: list[Any] = [
    (lambda: hs.mode(np.zeros((0, 3))), ShapeError, "no elements"),
    (lambda: hs.rankdata(Y, "first"), ArgumentError, "method"),
    (lambda: hs.sem(Y, nan_policy="raise"), ArgumentError, "nan_policy"),
    (lambda: hs.gaussian_kde([1.0]), ShapeError, "two points"),
    (lambda: hs.gaussian_kde(GAPS[0], "wide"), ArgumentError, "bw_method"),
    (lambda: hs.gaussian_kde(GAPS[0], weights=[1.0]), ShapeError, "weights"),
    (lambda: hs.gaussian_kde(GAPS[:2])(np.ones((3, 4))), ShapeError, "dimensions"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors_are_kind_and_located(call: Any, kind: type[HologramError], text: str) -> None:
    with pytest.raises(kind, match=text) as found:
        call()
    assert "test_samples.py" in str(found.value)
