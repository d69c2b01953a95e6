"""Quantiles, statistics without NaNs, covariance, calculus: against NumPy."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError, TracedValueError

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


@pytest.mark.parametrize(
    ("axis", "shape"), [(None, (4, 4, 2)), (0, (4,)), (1, (4,)), (-1, (2,)), ((0, 1), (4, 4)), ((1, 0), (4, 4)), ((2, 0), (2, 4)), (0, (4, 4, 2))]
)
def test_averages(axis: Any, shape: tuple[int, ...]) -> None:
    """Weights of one axis are not those of another one of the same extent."""
    x, weights = RNG.normal(size=(4, 4, 2)), RNG.uniform(1, 2, shape)
    for keepdims in (False, True):
        same("average", x, axis=axis, weights=weights, keepdims=keepdims)
        same("average", x, axis, weights, True, keepdims=keepdims)
        same("average", x, axis, None, True, keepdims=keepdims)
    np.testing.assert_allclose(np.average(x, axis, hg.tensor(weights)), np.average(x, axis, weights), rtol=1e-12)


def test_weights_of_averages_keep_their_digits_and_have_a_shape() -> None:
    same("average", X[0], weights=[0.1, 0.2, 0.3, 0.1, 0.1, 0.1, 0.1])
    for axis, shape in ((None, (7,)), (0, (7,)), (1, (5, 1)), ((0, 1), (7, 5))):
        with pytest.raises(ShapeError, match="average: weights of shape"):
            hnp.average(X, axis, np.ones(shape))


METHODS = (
    "linear", "lower", "higher", "midpoint", "nearest", "hazen", "weibull", "median_unbiased", "normal_unbiased", "inverted_cdf",
    "averaged_inverted_cdf", "interpolated_inverted_cdf", "closest_observation",
)  # fmt: skip


@pytest.mark.crossed
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_quantiles(method: str, axis: Any) -> None:
    for q in (0.3, [0.1, 0.5, 1.0]):
        same("quantile", X, q, axis=axis, method=method)
        same("quantile", GAP, q, axis=axis, method=method)
        same("nanquantile", HOLES, q, axis=axis, method=method)
    same("percentile", X, [20, 50], axis=axis, keepdims=True)
    same("nanpercentile", GAP, 70, axis=axis)


EXTREMES = [-np.inf, np.inf, np.nan, 1.0, 2.0, float(np.finfo(np.float32).max), -float(np.finfo(np.float32).max)]


@pytest.mark.costly(2)
@pytest.mark.parametrize("method", METHODS)
def test_shares_that_name_an_element_give_it(method: str) -> None:
    """Percents of so many elements that many fall on one, or on a step of the distribution: no rounding goes past it."""
    shares = np.arange(101) / 100
    computed = hg.jit(lambda x, q: hnp.quantile(x, q, method=method))
    for n in (1, 2, 6, 11, 16, 21, 50):
        x = np.random.default_rng(n).permutation(np.arange(float(n)))
        want = np.quantile(x, shares, method=method)
        for got in (hnp.quantile(x, shares, method=method), computed(x, shares), hnp.nanquantile(np.append(x, np.nan), shares, method=method)):
            np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-13, err_msg=f"{n}")


@pytest.mark.parametrize("method", ["lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf"])
def test_percentages_of_one_call_name_the_elements_that_shares_name(method: str) -> None:
    computed = hg.jit(lambda x, q: hnp.percentile(x, q, method=method))
    for n in (11, 21, 51, 100, 101):
        x = np.random.default_rng(n).permutation(np.arange(float(n)))
        for percent in (np.arange(101), np.arange(101.0)):
            want = np.percentile(x, percent, method=method)
            without_nans = hnp.nanpercentile(np.append(x, np.nan), percent, method=method)
            for got in (hnp.percentile(x, percent, method=method), computed(x, percent), without_nans):
                np.testing.assert_array_equal(got, want, err_msg=f"{n}")


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_shares_of_weights_that_name_an_element_give_it(name: str) -> None:
    """All of the weights, half of them, and the weights up to an element, which are whole: any order of adding them gives the same sum."""
    for n in (6, 49, 98, 99):
        x = np.random.default_rng(n).permutation(np.arange(2.0 * n)).reshape(2, n)
        for weights in (np.ones((2, n)), np.random.default_rng(n).integers(1, 9, (2, n)).astype(float)):
            order = np.argsort(x[0])
            sums = np.cumsum(weights[0][order])
            shares = np.concatenate([sums / sums[-1], [0.5, 1.0]])
            if name == "nanquantile":
                x = np.where(np.arange(n) % 7 == 3, np.nan, x)
            same(name, x, shares, axis=1, weights=weights, method="inverted_cdf")


MASKS = (X > 0, X[0] > 0, X[:, :1] > -9, np.zeros((5, 7), bool))


@pytest.mark.costly(2)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_statistics_without_nans_of_masked_elements(axis: Any, mask: np.ndarray) -> None:
    for x in (X, HOLES, GAP):
        for keepdims in (False, True):
            for name in ("nanmean", "nanvar", "nanstd", "nansum", "nanprod"):
                same(name, x, axis=axis, where=mask, keepdims=keepdims)
            for name in ("nanmax", "nanmin", "nansum", "nanprod"):
                same(name, x, axis=axis, where=mask, initial=-0.5, keepdims=keepdims)
                same(name, x, axis=axis, initial=0.25, keepdims=keepdims)
    same("nanmean", np.arange(35.0).reshape(5, 7), axis=axis, where=mask)


def test_nothing_but_nans_has_no_index() -> None:
    for f in (hnp.nanargmax, hnp.nanargmin):
        assert f(np.full(3, np.nan)) == -1
        np.testing.assert_array_equal(f(np.array([[np.nan, np.nan], [np.nan, 2.0]]), axis=1), [-1, 1])
        np.testing.assert_array_equal(f(np.array([[np.nan, np.nan], [np.nan, 2.0]]), axis=0, keepdims=True), [[-1, 1]])


def _defined_quantile(x: np.ndarray, q: float, method: str, skip_nan: bool) -> float:
    """The definition, in a wider type; between an infinite end and another one that end, between the two infinities NaN."""
    values = np.sort(x[~np.isnan(x)]).astype(np.float64)
    if len(values) == 0 or (len(values) < len(x) and not skip_nan):
        return np.nan
    place = q * (len(values) - 1)
    place = np.rint(place) if method == "nearest" else place
    at = int(np.floor(place))
    low, high = float(values[at]), float(values[min(at + 1, len(values) - 1)])
    if place == at or low == high or method == "lower":
        return low
    if method == "higher":
        return high
    part = 0.5 if method == "midpoint" else place - at
    infinite = [end for end in (low, high) if np.isinf(end)]
    return float(sum(infinite) if infinite else low + (high - low) * part)


@pytest.mark.parametrize("skip_nan", [False, True])
def test_quantiles_of_infinities_and_of_the_largest_numbers(skip_nan: bool) -> None:
    """Every row of up to four extreme numbers, by every method; where NumPy gives a number it is this one."""
    methods, shares = ("linear", "lower", "higher", "midpoint", "nearest"), (0.0, 0.25, 0.5, 0.75, 1.0)
    function, median = (hnp.nanquantile, hnp.nanmedian) if skip_nan else (hnp.quantile, hnp.median)
    for n in (1, 2, 3, 4):
        rows = np.array(list(itertools.combinations_with_replacement(EXTREMES, n)), np.float32)
        for method in methods:
            got = np.asarray(hg.jit(lambda r, m=method: function(r, list(shares), axis=1, method=m))(rows))
            want = np.array([[_defined_quantile(r, q, method, skip_nan) for r in rows] for q in shares])
            np.testing.assert_allclose(got, want.astype(np.float32), rtol=3e-7, err_msg=method)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numpys = (np.nanmedian if skip_nan else np.median)(rows.astype(np.float64), axis=1)
        np.testing.assert_allclose(median(rows, axis=1), numpys.astype(np.float32), rtol=3e-7)


def test_derivatives_of_quantiles_beside_infinities() -> None:
    for q in (0.25, 0.5):
        slopes = hg.grad(lambda x, q: hnp.quantile(x, q), argnums=(0, 1))(np.array([np.inf, 1.0, 3.0, -np.inf, 2.0]), q)
        np.testing.assert_array_equal(slopes[0], [0, float(q == 0.25), 0, 0, float(q == 0.5)])
        assert np.isfinite(np.asarray(slopes[1]))


@pytest.mark.crossed
@pytest.mark.parametrize("name", ["median", "nanmedian", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nanstd"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_statistics(name: str, axis: Any) -> None:
    same(name, HOLES, axis=axis)
    same(name, GAP, axis=axis, keepdims=True)
    same(name, np.arange(6.0).reshape(2, 3), axis=axis)


@pytest.mark.parametrize("name", ["nanmean", "nanvar", "nanstd"])
def test_types_of_statistics_without_nans(name: str) -> None:
    same(name, HOLES, axis=1, dtype=np.float64)
    assert getattr(hnp, name)(hnp.asarray([1, 2]), dtype="float64").dtype == np.float64


def test_quantiles_by_keyword() -> None:
    for name in ("quantile", "nanquantile", "percentile", "nanpercentile"):
        same(name, np.arange(6.0).reshape(2, 3), q=[0.25, 0.5], axis=1)
    x = np.random.default_rng(0).normal(size=101)
    for q in (np.array([10, 90]), hg.tensor([10, 90])):  # integers are divided in float64
        np.testing.assert_allclose(hnp.percentile(x, q), np.percentile(x, [10, 90]), rtol=1e-12)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_short_floats_are_averaged_in_float32(name: str) -> None:
    """With and without NaNs: sums and squares beyond float16's range, results inside of it."""
    x = np.array([[300.0, -200.0, 310.0, 50.0], [60000.0, 60100.0, 60064.0, 60032.0]], np.float16)
    want = getattr(np, name)(x.astype(np.float32), axis=1).astype(np.float16)
    for found in (getattr(hnp, name)(x, axis=1), getattr(hnp, "nan" + name)(x, axis=1)):
        assert found.dtype == np.float16
        np.testing.assert_allclose(found, want, rtol=1e-3)


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
    z = X[2:4] + 1j * X[:2]
    complexes = ((z[0], z[1, :3]), (z[1, :3], z[0]), (X[0], z[1, :3]), (z[0], X[1]))
    for a, v in ((X[0], X[1, :3]), (X[1, :3], X[0]), (np.arange(5), np.arange(4)), *complexes):
        same("convolve", a, v, mode=mode)
        same("correlate", a, v, mode=mode)


def test_interpolation() -> None:
    same("interp", X, KNOTS, KNOTS**2)
    same("interp", X, KNOTS, KNOTS**2, left=-9.0, right=9.0)
    same("interp", KNOTS, KNOTS, KNOTS**2)
    same("interp", X, KNOTS[:1], KNOTS[:1])
    knots, heights = np.arange(5.0), np.array([1.0, np.nan, 2.0, 3.0, np.inf])
    same("interp", np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 9.0, -1.0, np.nan]), knots, heights)
    slope = hg.grad(lambda x: hnp.interp(x, knots, knots**2))(2.0)  # at a knot, that of the segment after it
    assert float(slope) == 5.0


def test_differences_and_integrals() -> None:
    same("gradient", X)
    same("gradient", X, 0.5, axis=1)
    same("gradient", X, 2.0, 3.0)
    same("gradient", X, np.sort(RNG.random(7)), axis=1)
    same("trapezoid", X)
    same("trapezoid", X, axis=0, dx=0.5)
    same("trapezoid", X, np.arange(7.0) ** 2)
    y = np.arange(27.0).reshape(3, 3, 3) ** 2
    for shape, axis in (((3,), 0), ((3,), 1), ((3, 1), -1), ((2, 3, 3), 0), ((3, 2, 1), 1), ((1,), 0), ((), 1)):
        same("trapezoid", y, dx=1 + np.arange(int(np.prod(shape))).reshape(shape) / 4, axis=axis)
    same("trapezoid", y, y[:, :1] / 9, axis=0)
    same("trapezoid", y[0, 0], y[1] / 9)
    same("trapezoid", y, y[0, 0], axis=1)
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
        (ArgumentError, lambda: hnp.quantile(X, 0.5, method="median")),
        (ArgumentError, lambda: hnp.convolve(X[0], X[1], mode="circular")),
        (ShapeError, lambda: hnp.median(X[:0])),
        (ShapeError, lambda: hnp.convolve(X, X)),
        (ShapeError, lambda: hnp.interp(X, KNOTS, KNOTS[:3])),
        (ShapeError, lambda: hnp.gradient(X[:1])),
        (ShapeError, lambda: hnp.ix_([0], X > 0)),
    ],
)
def test_errors(error: Any, work: Any) -> None:
    with pytest.raises(error):
        work()


def test_functions_along_an_axis_may_read_values() -> None:
    def positives(v: Any) -> Any:
        return v[v > 0].sum()

    x = np.array([[1.0, -2.0, 3.0], [-1.0, -2.0, 5.0]])
    for axis in (0, 1):
        np.testing.assert_array_equal(hnp.apply_along_axis(positives, axis, x), np.apply_along_axis(positives, axis, x))
    with pytest.raises(TracedValueError):
        hg.jit(lambda v: hnp.apply_along_axis(positives, 0, v))(x)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_edges_as_in_numpy() -> None:
    """No degrees of freedom, no residuals, tuples of slopes."""
    for x, ddof in ((np.zeros(0), None), (np.ones(1), None), (np.arange(3.0), 3), (np.arange(3.0), 7)):
        np.testing.assert_array_equal(hnp.cov(x, ddof=ddof), np.cov(x, ddof=ddof))
    assert [type(hnp.gradient(np.ones(shape))) for shape in ((3,), (3, 4))] == [hg.Tensor, tuple]
    for a in (np.ones((3, 4)), np.ones((4, 3)), np.eye(4, 3), np.eye(3), np.eye(4, 3) * [1, 1, 0]):
        b = np.arange(1.0, 2 * len(a) + 1).reshape(-1, 2)
        for right in (b, b[:, 0]):
            np.testing.assert_allclose(hg.linalg.lstsq(a, right).residuals, np.linalg.lstsq(a, right)[1], rtol=1e-12)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_spread_in_a_complex_type(name: str) -> None:
    """A complex type that is named is the type of the result; complex numbers alone give the type of their parts."""
    for x in (X, X + 1j * X[::-1]):
        for dtype in (None, np.complex64, np.complex128):
            got, want = np.asarray(getattr(hnp, name)(x, 1, dtype)), getattr(np, name.removeprefix("nan"))(x, 1, dtype)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-5)
