"""Quantiles, statistics that leave NaNs out, and covariance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.symbolic import prod
from hologram.numpy.along_axes import reductions as plain
from hologram.numpy.along_axes.sorting import argsort, sort
from hologram.numpy.arguments import array, axes_of, permuted, reshaped, wrap
from hologram.numpy.arrangement.manipulation import diagonal_values
from hologram.numpy.complexes import conj, squared_modulus
from hologram.numpy.creation import broadcast_common, full_like
from hologram.numpy.elementwise.functions import FUNCTIONS, limits
from hologram.numpy.elementwise.functions import where as where_
from hologram.numpy.elementwise.rounded import rounded_product, rounded_quotient
from hologram.numpy.indexing.read import take_along_axis
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import moveaxis
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import choice, number, truth
from hologram.trace.recorder import cast_node
from hologram.trace.replayed import replayed
from hologram.trace.symbolic_extent import Extent
from hologram.trace.tensor import Tensor

__all__ = [
    "corrcoef", "cov", "median", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "percentile", "quantile",
]  # fmt: skip

_FROM_THE_FIRST = ("linear", "lower", "higher", "midpoint", "nearest")  # by the share of the way from the first element to the last
_PLOTTING = {  # by the share of a distribution: its parameters alpha and beta
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_STEPS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")  # by the steps of the distribution of the elements
_METHODS = (*_FROM_THE_FIRST, *_PLOTTING, *_STEPS)
_isnan = FUNCTIONS["isnan"]


# --- quantiles -------------------------------------------------------------------------------------------------------


def _lines(x: Any, axis: Any, what: str) -> tuple[Tensor, tuple[int, ...], tuple[Any, ...]]:
    """``x`` as floats with the axes that go brought together at the end, these axes, and the shape of ``x``."""
    node = array(x, what)
    node = cast_node(node, dtypes.to_inexact(node.dtype))
    axes = axes_of(axis, len(node.shape), what, lists=True)
    kept = [a for a in range(len(node.shape)) if a not in axes]
    moved = permuted(node, [*kept, *axes])
    return wrap(reshaped(moved, (*(node.shape[a] for a in kept), prod(node.shape[a] for a in axes)))), axes, node.shape


def _place(share: Tensor, count: Tensor, method: str) -> Tensor:
    """Where the quantile lies among ``count`` ordered elements, from 0; between two of them, and perhaps before the first or behind the last."""
    n = count.astype(share.dtype)
    if method in _FROM_THE_FIRST:
        place = share * (n - 1)
        return FUNCTIONS["rint"](place) if method == "nearest" else place
    scaled = wrap(rounded_product(*broadcast_common([array(share, method), array(n, method)], method)))
    if method in _STEPS:
        return scaled - (1.5 if method == "closest_observation" else 1.0)
    alpha, beta = _PLOTTING[method]
    return scaled + (alpha + share * (1 - alpha - beta)) - 1


def _part(place: Tensor, low: Tensor, method: str) -> Tensor:
    """The share of the way from the element at ``low`` to the next one."""
    part = place - low
    if method == "lower":
        return 0 * part
    if method == "closest_observation":
        return where_((part == 0) & (FUNCTIONS["remainder"](low, 2) == 1), 0.0, 1.0)
    if method in ("higher", "inverted_cdf"):
        return where_(part == 0, 0.0, 1.0)
    if method == "averaged_inverted_cdf":
        return where_(part == 0, 0.5, 1.0)
    return where_(part == 0, 0.0, 0.5) if method == "midpoint" else part


def _between(low: Tensor, high: Tensor, part: Tensor) -> Tensor:
    return where_(part == 1, high, _interpolated(low, high, part))


def _interpolated(low: Tensor, high: Tensor, part: Tensor) -> Tensor:
    """``low + (high - low) * part``, also where the difference overflows or an end is infinite: ``low`` where ``part`` is 0 or the ends are equal,
    NaN between the two infinities."""
    wide = FUNCTIONS["maximum"](FUNCTIONS["abs"](low), FUNCTIONS["abs"](high)) > limits(low._aval()[1])[1] / 2
    near = low + where_(wide, 0.0, high - low) * part
    apart = wide & (part > 0) & (low != high)
    far = where_(apart, low, 0.0) * (1 - part) + where_(apart, high, 0.0) * part
    return where_(apart, far, near)


def _share(q: Any, what: str, whole: float = 1.0) -> Tensor:
    """``q`` as a Tensor; numbers that are known, and integers, keep float64's precision.

    Raises ArgumentError for known ones below 0 or above ``whole``.
    """
    try:
        known = q if type(q) is Tensor else known_array(q, what, np.float64)
    except (TypeError, ValueError):
        raise located(ArgumentError(f"{what}: q holds numbers")) from None
    if isinstance(known, np.ndarray) and not ((known >= 0) & (known <= whole)).all():
        raise located(ArgumentError(f"{what}: q holds numbers from 0 to {whole:g}, not {known.tolist()}"))
    node = array(known, what)
    return wrap(cast_node(node, dtypes.float64) if node.dtype.is_integer else node)


def _quotient(x: Tensor, y: Any, what: str) -> Tensor:
    """Shares of a whole, which are compared with each other, and choose elements."""
    return wrap(rounded_quotient(*broadcast_common([array(x, what), array(y, what)], what)))


def _of_hundred(q: Any, what: str) -> Tensor:
    """Percentages as shares."""
    share = _share(q, what, 100.0)
    return _quotient(share, full_like(share, 100.0), what)


def _inside(place: Tensor, count: Tensor) -> Tensor:
    return FUNCTIONS["maximum"](FUNCTIONS["minimum"](place, count - 1), 0)


def _quantile(x: Any, q: Any, axis: Any, method: str, keepdims: bool, skip_nan: bool, what: str, weights: Any = None) -> Tensor:
    choice(method, what, "method", _METHODS)
    lines, axes, shape = _lines(x, axis, what)
    if lines.shape[-1] == 0:
        raise located(ShapeError(f"{what}: no elements along axes {list(axes)} of shape {list(shape)}"))
    share = _share(q, what).astype(dtypes.float64 if lines.dtype.itemsize == 8 else dtypes.float32)
    nans = plain.sum(_isnan(lines), -1, keepdims=True)
    count = lines.shape[-1] - nans if skip_nan else lines.shape[-1] + nans * 0
    along = share.reshape((1,) * (len(lines.shape) - 1) + (-1,))
    if weights is None:
        found = _of_equal_elements(lines, along, count, method)
    else:
        found = _of_weighted_elements(lines, along, _weights(x, axis, weights, method, what), skip_nan)
    nothing = count == 0 if skip_nan else nans > 0
    found = where_(nothing, float("nan"), found)
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape)) if truth(keepdims, what, "keepdims") else lines.shape[:-1]
    return moveaxis(found, -1, 0).reshape((*share.shape, *kept))


def _of_equal_elements(lines: Tensor, share: Tensor, count: Tensor, method: str) -> Tensor:
    """Quantiles of the first ``count`` of sorted lines."""
    ordered = sort(lines)
    place = _place(share, count, method)
    low = FUNCTIONS["floor"](place)
    at = low.astype(dtypes.int64)
    below, above = [take_along_axis(ordered, _inside(i, count), -1) for i in (at, at + 1)]
    return _between(below, above, _part(place, low, method).astype(lines.dtype))


def _weights(x: Any, axis: Any, weights: Any, method: str, what: str) -> Tensor:
    """The weights of the elements of :func:`_lines`, in float64. Raises ArgumentError for another method than the one that NumPy has weights for,
    and for known ones that are negative."""
    if method != "inverted_cdf":
        raise located(ArgumentError(f"{what}: with weights the method is 'inverted_cdf', not {method!r}"))
    if type(weights) is not Tensor and (known_array(weights, what) < 0).any():
        raise located(ArgumentError(f"{what}: a weight is negative"))
    values, of = (wrap(array(v, what)) for v in (x, weights))
    return _lines(plain.weights_along(values, of, axis, what).astype(dtypes.float64), axis, what)[0]


def _of_weighted_elements(lines: Tensor, share: Tensor, weights: Tensor, skip_nan: bool) -> Tensor:
    """The first elements up to which, in order, there is such a share of all weights; the first that has a weight where that is 0; NaN where
    the weights have no sum."""
    if skip_nan:
        weights = where_(_isnan(lines), 0.0, weights)
    order = argsort(lines)
    sums = plain.cumsum(take_along_axis(weights, order, -1), -1)
    total = sums[..., -1:]
    reached = where_(sums == 0, -1.0, _quotient(sums, total, "quantile")).astype(share.dtype)
    before = plain.sum(reached[..., None] < share[..., None, :], -2)
    found = take_along_axis(take_along_axis(lines, order, -1), FUNCTIONS["minimum"](before, lines.shape[-1] - 1), -1)
    return where_((total > 0) & FUNCTIONS["isfinite"](total), found, float("nan"))


@replayed(1)
def quantile(x: Any, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None) -> Tensor:
    """The values below which the shares ``q``, from 0 to 1, of the elements over ``axis`` are.

    The axes of ``q`` come first in the result. ``method`` is one of NumPy's: ``linear``, ``lower``, ``higher``, ``midpoint`` and ``nearest`` go by
    the share of the way from the first element to the last; ``hazen``, ``weibull``, ``median_unbiased``, ``normal_unbiased``, ``inverted_cdf``,
    ``averaged_inverted_cdf``, ``interpolated_inverted_cdf`` and ``closest_observation`` by that of a distribution. ``weights``, of the shape of ``x``
    or of its extents along ``axis``, say how much each element counts, for ``inverted_cdf`` alone. NaN where an element is NaN. Floats keep their
    type, integers give float32. Raises ShapeError over no elements, ArgumentError for another method, and for known shares out of range.

    >>> hnp.quantile([1.0, 2.0, 3.0, 4.0], 0.5)
    Tensor(2.5, dtype=float32)
    >>> hnp.quantile([1.0, 2.0, 3.0, 4.0], [0.25, 0.75], method="lower")
    Tensor([1., 3.], dtype=float32)
    """
    return _quantile(x, q, axis, method, keepdims, False, "quantile", weights)


def nanquantile(x: Any, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None) -> Tensor:
    """:func:`quantile` of the elements that are not NaN; NaN where all are.

    >>> hnp.nanquantile([1.0, hnp.nan, 3.0], 0.5)
    Tensor(2., dtype=float32)
    """
    return _quantile(x, q, axis, method, keepdims, True, "nanquantile", weights)


@replayed(1)
def percentile(x: Any, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None) -> Tensor:
    """:func:`quantile` with shares ``q`` in percent, from 0 to 100.

    >>> hnp.percentile([1.0, 2.0, 3.0, 4.0, 5.0], 25)
    Tensor(2., dtype=float32)
    """
    return _quantile(x, _of_hundred(q, "percentile"), axis, method, keepdims, False, "percentile", weights)


def nanpercentile(x: Any, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None) -> Tensor:
    """:func:`percentile` of the elements that are not NaN; NaN where all are.

    >>> hnp.nanpercentile([1.0, hnp.nan, 3.0], 50)
    Tensor(2., dtype=float32)
    """
    return _quantile(x, _of_hundred(q, "nanpercentile"), axis, method, keepdims, True, "nanpercentile", weights)


@replayed(1)
def median(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Median over ``axis``: the middle element, or the mean of the two in the middle. NaN where an element is NaN.

    Floats keep their type, integers give float32. Raises ShapeError over no elements.

    >>> hnp.median([[3, 1, 2], [4, 6, 5]], axis=1)
    Tensor([2., 5.], dtype=float32)
    """
    return _quantile(x, 0.5, axis, "linear", keepdims, False, "median")


def nanmedian(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """:func:`median` of the elements that are not NaN; NaN where all are.

    >>> hnp.nanmedian([3.0, hnp.nan, 1.0])
    Tensor(2., dtype=float32)
    """
    return _quantile(x, 0.5, axis, "linear", keepdims, True, "nanmedian")


# --- without NaNs ----------------------------------------------------------------------------------------------------


def _filled(x: Any, value: float, what: str) -> tuple[Tensor, Tensor | None]:
    """``x`` with ``value`` for NaNs, and where these are; None for types that have none. A type without infinity has its ends instead."""
    t = wrap(array(x, what))
    dtype = t._aval()[1]
    if dtype.kind not in "fc":
        return t, None
    if dtype.is_float and not dtype.format.has_infinity:
        value = max(-dtype.format.largest, min(dtype.format.largest, value))
    gaps = _isnan(t)
    return where_(gaps, value, t), gaps


def _without(x: Any, where: Any, what: str) -> Any:
    """``x``, as floats with NaN where the mask ``where`` does not hold; itself without a mask."""
    if where is None:
        return x
    node = array(x, what)
    node = cast_node(node, dtypes.to_inexact(node.dtype))
    return wrap(plain.included(node, where, float("nan"), what))


def nansum(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Sum over ``axis`` of the elements that are not NaN; 0 where all are. Types, ``where`` and ``initial`` are those of :func:`sum`.

    >>> hnp.nansum([1.0, hnp.nan, 3.0])
    Tensor(4., dtype=float32)
    """
    return plain.sum(_filled(x, 0.0, "nansum")[0], axis, dtype, keepdims, initial=initial, where=where)


def nanprod(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Product over ``axis`` of the elements that are not NaN; 1 where all are. Types, ``where`` and ``initial`` are those of :func:`prod`.

    >>> hnp.nanprod([2.0, hnp.nan, 3.0])
    Tensor(6., dtype=float32)
    """
    return plain.prod(_filled(x, 1.0, "nanprod")[0], axis, dtype, keepdims, initial=initial, where=where)


def nancumsum(x: Any, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running sums along ``axis``, of ``x`` flattened for None; NaN counts as 0.

    >>> hnp.nancumsum([1.0, hnp.nan, 3.0])
    Tensor([1., 1., 4.], dtype=float32)
    """
    return plain.cumsum(_filled(x, 0.0, "nancumsum")[0], axis, dtype)


def nancumprod(x: Any, /, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running products along ``axis``, of ``x`` flattened for None; NaN counts as 1.

    >>> hnp.nancumprod([2.0, hnp.nan, 3.0])
    Tensor([2., 2., 6.], dtype=float32)
    """
    return plain.cumprod(_filled(x, 1.0, "nancumprod")[0], axis, dtype)


def _extreme(reduce: Callable[..., Tensor], x: Any, least: float, axis: Any, keepdims: bool, initial: Any, where: Any, what: str) -> Tensor:
    """NaN where there is nothing else, unless ``initial`` is there."""
    values, gaps = _filled(x, least, what)
    found = reduce(values, axis, keepdims=keepdims, initial=initial, where=where)
    return found if gaps is None or initial is not None else where_(plain.all(gaps, axis, keepdims), float("nan"), found)


def nanmax(x: Any, /, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Maximum over ``axis`` of the elements that are not NaN; NaN, without a warning, where all are. ``where`` and ``initial`` are those of
    :func:`max`: with ``initial`` there is always an element.

    >>> hnp.nanmax([1.0, hnp.nan, 3.0])
    Tensor(3., dtype=float32)
    """
    return _extreme(plain.max, x, float("-inf"), axis, keepdims, initial, where, "nanmax")


def nanmin(x: Any, /, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Minimum over ``axis`` of the elements that are not NaN; NaN, without a warning, where all are. ``where`` and ``initial`` are those of
    :func:`min`: with ``initial`` there is always an element.

    >>> hnp.nanmin([1.0, hnp.nan, 3.0])
    Tensor(1., dtype=float32)
    """
    return _extreme(plain.min, x, float("inf"), axis, keepdims, initial, where, "nanmin")


def _index_of_extreme(find: Callable[..., Tensor], x: Any, least: float, axis: int | None, keepdims: bool, what: str) -> Tensor:
    """-1 where there is nothing but NaN."""
    values, gaps = _filled(x, least, what)
    found = find(values, axis, keepdims)
    return found if gaps is None else where_(plain.all(gaps, axis, keepdims), -1, found)


def nanargmax(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the largest element along ``axis`` that is not NaN; int64. Where all are NaN -1, as in JAX, and no error as in NumPy.

    >>> hnp.nanargmax([1.0, hnp.nan, 3.0])
    Tensor(2, dtype=int64)
    """
    return _index_of_extreme(plain.argmax, x, float("-inf"), axis, keepdims, "nanargmax")


def nanargmin(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the smallest element along ``axis`` that is not NaN; int64. Where all are NaN -1, as in JAX, and no error as in NumPy.

    >>> hnp.nanargmin([hnp.nan, 2.0, 1.0])
    Tensor(2, dtype=int64)
    """
    return _index_of_extreme(plain.argmin, x, float("inf"), axis, keepdims, "nanargmin")


def _wide(x: Any, dtype: Any, what: str) -> tuple[Tensor, Any]:
    """``x`` in the type that statistics are computed in, and the type of their result: as ``mean`` has it, narrow floats in float32."""
    node, result = plain.inexact(x, dtype, what)
    return wrap(node), result


def _mean_without_nans(t: Tensor, axis: Any, keepdims: bool) -> Tensor:
    values, gaps = _filled(t, 0.0, "nanmean")
    return plain.sum(values, axis, keepdims=keepdims) / plain.sum(~gaps, axis, keepdims=keepdims).astype(values.dtype)  # type: ignore[operator]


def nanmean(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Mean over ``axis`` of the elements that are not NaN; NaN where all are. Types, ``dtype`` and ``where`` are those of :func:`mean`.

    >>> hnp.nanmean([1.0, hnp.nan, 3.0])
    Tensor(2., dtype=float32)
    """
    t, result = _wide(_without(x, where, "nanmean"), dtype, "nanmean")
    return _mean_without_nans(t, axis, keepdims).astype(result)


def _variance_without_nans(t: Tensor, axis: Any, keepdims: bool, ddof: float) -> Tensor:
    gaps = _isnan(t)
    squares = squared_modulus(where_(gaps, 0.0, t - _mean_without_nans(t, axis, True)))
    count = plain.sum(~gaps, axis, keepdims=keepdims).astype(squares.dtype) - ddof
    return where_(count > 0, plain.sum(squares, axis, keepdims=keepdims) / count, float("nan"))


def nanvar(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, ddof: float = 0, where: Any = None) -> Tensor:
    """Variance over ``axis`` of the elements that are not NaN, divided by their count less ``ddof``; NaN where that is not positive. It is computed,
    and given, in ``dtype`` where that is named; ``where`` says which elements count.

    >>> hnp.nanvar([1.0, hnp.nan, 3.0])
    Tensor(1., dtype=float32)
    """
    t, result = _wide(_without(x, where, "nanvar"), dtype, "nanvar")
    return _variance_without_nans(t, axis, keepdims, ddof).astype(plain.type_of_spread(result, dtype))


def nanstd(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, ddof: float = 0, where: Any = None) -> Tensor:
    """Standard deviation over ``axis`` of the elements that are not NaN: the square root of :func:`nanvar`.

    >>> hnp.nanstd([1.0, hnp.nan, 3.0])
    Tensor(1., dtype=float32)
    """
    t, result = _wide(_without(x, where, "nanstd"), dtype, "nanstd")
    return FUNCTIONS["sqrt"](_variance_without_nans(t, axis, keepdims, ddof)).astype(plain.type_of_spread(result, dtype))


# --- covariance ------------------------------------------------------------------------------------------------------


def cov(
    x: Any, y: Any = None, /, rowvar: bool = True, bias: bool = False, ddof: int | None = None, fweights: Any = None, aweights: Any = None
) -> Tensor:
    """Covariance matrix (n, n) of n variables.

    Variables are the rows of ``x``, the columns unless ``rowvar``; those of ``y`` follow. Sums are divided by the count less 1, less 0 for
    ``bias``, or less ``ddof``, but by no less than 0. ``fweights`` say how often each observation counts, ``aweights`` how much. One variable gives a
    scalar. Raises ShapeError for more than two axes.

    >>> hnp.cov([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])
    Tensor([[ 1., -2.],
            [-2.,  4.]], dtype=float32)
    """
    parts = [_variables(v, rowvar) for v in (x, y) if v is not None]
    rows = concat(parts, axis=0)
    less = (0 if bias else 1) if ddof is None else ddof if isinstance(ddof, int) else number(ddof, "cov", "ddof")
    if fweights is not None or aweights is not None:
        matrix = _weighted_products(rows, less, fweights, aweights)
    else:
        centred = rows - plain.mean(rows, 1, keepdims=True)
        free: Any = rows.shape[1] - less
        free = FUNCTIONS["maximum"](free, 0) if isinstance(free, Extent) else free if free > 0 else 0
        matrix = centred @ conj(centred.mT) / free
    return matrix.reshape(()) if matrix.shape == (1, 1) else matrix


def _weighted_products(rows: Tensor, less: Any, fweights: Any, aweights: Any) -> Tensor:
    """The covariance matrix of variables (n, m) whose observations have weights (m,)."""
    counts = 1.0 if fweights is None else wrap(array(fweights, "cov")).astype(rows.real.dtype)
    shares = 1.0 if aweights is None else wrap(array(aweights, "cov")).astype(rows.real.dtype)
    weights = counts * shares
    total = plain.sum(weights)
    centred = rows - plain.sum(rows * weights, 1, keepdims=True) / total
    free = total - less * plain.sum(weights * shares) / total
    return (centred * weights) @ conj(centred.mT) / FUNCTIONS["maximum"](free, 0.0)


def _variables(x: Any, rowvar: bool) -> Tensor:
    node = array(x, "cov")
    if len(node.shape) > 2:
        raise located(ShapeError(f"cov takes at most two axes, not shape {list(node.shape)}"))
    t = wrap(cast_node(node, dtypes.to_inexact(node.dtype)))
    return t.reshape((1, -1)) if t.ndim < 2 else t if rowvar else t.mT


def corrcoef(x: Any, y: Any = None, /, rowvar: bool = True) -> Tensor:
    """Correlation matrix (n, n) of n variables, given as to :func:`cov`; elements lie between -1 and 1.

    >>> hnp.corrcoef([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]])
    Tensor([[ 1., -1.],
            [-1.,  1.]], dtype=float32)
    """
    matrix = cov(x, y, rowvar)
    if matrix.ndim == 0:
        return matrix / matrix
    deviation = FUNCTIONS["sqrt"](diagonal_values(matrix))
    scaled = matrix / deviation[:, None] / deviation[None, :]
    return FUNCTIONS["maximum"](FUNCTIONS["minimum"](scaled, 1.0), -1.0)
