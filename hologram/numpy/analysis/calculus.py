"""Differences, sums under curves, interpolation, convolution, polynomials."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.along_axes.reductions import cumsum, sum
from hologram.numpy.along_axes.searching import searchsorted
from hologram.numpy.along_axes.sorting import argsort
from hologram.numpy.arguments import array, array_as, as_tensor, axis_of, wrap
from hologram.numpy.arrangement.manipulation import diff, flip
from hologram.numpy.arrangement.padding import pad
from hologram.numpy.complexes import conj, imag, real
from hologram.numpy.creation import arange, zeros
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.numpy.indexing.read import take
from hologram.numpy.indexing.slices import sliced
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import moveaxis
from hologram.primitives.complex.parts import complex_
from hologram.support.user_lines import located
from hologram.trace.operators import promoted
from hologram.trace.recorder import cast_node, record
from hologram.trace.tensor import Tensor

__all__ = ["convolve", "correlate", "ediff1d", "gradient", "interp", "polyval", "trapezoid", "unwrap", "vander"]


def _vectors(what: str, *args: Any) -> list[Tensor]:
    nodes, _, _ = promoted(what, args)
    if any(len(n.shape) > 1 for n in nodes):
        raise located(ShapeError(f"{what} takes arrays of one axis, not of shapes {' and '.join(str(list(n.shape)) for n in nodes)}"))
    return [wrap(n).reshape(-1) for n in nodes]


def convolve(x: Any, v: Any, /, mode: str = "full") -> Tensor:
    """Convolution of two vectors: ``result[k] = sum of x[i] * v[k - i]``.

    ``mode``: at all places where the two overlap (``full``, n + m - 1 elements), so many as the longer one has (``same``), or where the shorter one
    is inside (``valid``). Raises ShapeError for what are no vectors with elements, ArgumentError for another mode.

    >>> hnp.convolve([1, 2, 3], [1, 1])
    Tensor([1, 3, 5, 3], dtype=int64)
    >>> hnp.convolve([1, 2, 3], [1, 1], mode="valid")
    Tensor([3, 5], dtype=int64)
    """
    a, b = _vectors("convolve", x, v)
    n, m = (operator.index(t.shape[0]) for t in (a, b))
    if n == 0 or m == 0:
        raise located(ShapeError("convolve: an array without elements"))
    if n < m:
        a, b, n, m = b, a, m, n
    padded = pad(a, (m - 1, m - 1))
    windows = arange(n + m - 1)[:, None] + arange(m)[None, :]
    overlaps = (windows >= m - 1) & (windows < n + m - 1)
    factors = where(overlaps, flip(b)[None, :], zeros((), dtype=b.dtype))  # what is infinite meets no zero of the padding
    full = sum(take(padded, windows, axis=0) * factors, -1, dtype=a.dtype)
    if mode == "full":
        return full
    if mode == "same":
        return full[(m - 1) // 2 : (m - 1) // 2 + n]
    if mode == "valid":
        return full[m - 1 : n]
    raise located(ArgumentError(f"convolve: mode is full, same or valid, not {mode!r}"))


def correlate(x: Any, v: Any, /, mode: str = "valid") -> Tensor:
    """Cross-correlation of two vectors: ``result[k] = sum of x[i + k] * conj(v[i])``.

    ``mode`` and errors are those of :func:`convolve`.

    >>> hnp.correlate([1, 2, 3], [0, 1], mode="valid")
    Tensor([2, 3], dtype=int64)
    """
    a, b = _vectors("correlate", x, v)
    b = conj(b)
    if a.shape[0] >= b.shape[0]:
        return convolve(a, flip(b), mode)
    return flip(convolve(b, flip(a), mode))


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
    """Piecewise linear interpolation at ``x`` through the points ``(xp, fp)``, ``xp`` ascending.

    The result has the shape of ``x``; values ``fp`` may be complex. Beyond the points it is ``left`` and ``right``, by default the first and the last
    value; at a knot its value, whatever lies beside it. With ``period`` the points, in any order, repeat at that distance, and nothing lies beyond.
    Raises ShapeError for points of more than one axis, ArgumentError for a period of 0.

    >>> hnp.interp([0.5, 2.5, 9.0], [0.0, 1.0, 3.0], [0.0, 10.0, 20.0])
    Tensor([ 5. , 17.5, 20. ], dtype=float32)
    """
    if array(fp, "interp").dtype.is_complex:
        return _interp_of_parts(x, xp, fp, left, right, period)
    (at, xs, ys), _, _ = promoted("interp", (x, xp, fp), dtypes.to_inexact)
    points, knots, heights = wrap(at), wrap(xs), wrap(ys)
    if len(xs.shape) != 1 or xs.shape != ys.shape or xs.shape[0] == 0:
        raise located(ShapeError(f"interp takes points of one axis, not shapes {list(xs.shape)} and {list(ys.shape)}"))
    if period is not None:
        if type(period) in (int, float) and period == 0:
            raise located(ArgumentError("interp: the period is not 0"))
        period, left, right = FUNCTIONS["abs"](wrap(array(period, "interp")).astype(points.dtype)), None, None
        points, knots = points % period, knots % period
        order = argsort(knots)
        knots, heights = take(knots, order), take(heights, order)
        knots = concat([knots[-1:] - period, knots, knots[:1] + period])
        heights = concat([heights[-1:], heights, heights[:1]])
    n = knots.shape[0]
    after = FUNCTIONS["maximum"](FUNCTIONS["minimum"](searchsorted(knots, points, side="right"), n - 1), 1 if n != 1 else 0)
    before = FUNCTIONS["maximum"](after - 1, 0)
    x0, x1, y0, y1 = (take(a, i, axis=0) for a in (knots, heights) for i in (before, after))
    run = x1 - x0
    slope = (y1 - y0) / where(run == 0, 1.0, run)
    at_knot = (points == x0) & ~FUNCTIONS["isfinite"](slope)  # beside NaN or infinity; else the sum is the knot's value, and has a derivative
    rising, falling = y0 + (points - x0) * slope, y1 + (points - x1) * slope
    level = FUNCTIONS["isnan"](falling) & (y0 == y1) & (points == points)
    inside = where(FUNCTIONS["isnan"](rising), where(level, y0, falling), rising)  # from the other end where this one, or its knot, is infinite
    inside = where((run == 0) | at_knot, y0, inside)
    inside = where(points == x1, where(FUNCTIONS["isfinite"](slope), falling, y1), inside)  # the last knot, whose derivative is that of its left
    inside = where(points < knots[0], heights[0] if left is None else left, inside)
    return where(points > knots[-1], heights[-1] if right is None else right, inside)


def _interp_of_parts(x: Any, xp: Any, fp: Any, left: Any, right: Any, period: Any) -> Tensor:
    """:func:`interp` of complex values: of their real parts, and of their imaginary ones."""
    found = []
    for part in (real, imag):
        heights, low, high = (None if v is None else part(as_tensor(v, "interp")) for v in (fp, left, right))
        found.append(array(interp(x, xp, heights, low, high, period), "interp"))
    return wrap(record(complex_, tuple(found)))


def gradient(x: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Slopes by central differences along every axis, or along ``axis``; at the ends one-sided, of the first order or the second.

    ``spacing`` is one distance, one for each axis, or coordinates along each. One axis gives an array, several a tuple. Raises ShapeError for an
    axis of no more elements than ``edge_order``, ArgumentError for spacings of another number.

    >>> hnp.gradient([1.0, 4.0, 9.0, 16.0])
    Tensor([3., 4., 6., 7.], dtype=float32)
    >>> hnp.gradient([0.0, 2.0, 8.0], [0.0, 1.0, 2.0])
    Tensor([2., 4., 6.], dtype=float32)
    """
    node = array(x, "gradient")
    t = wrap(cast_node(node, dtypes.to_inexact(node.dtype)))
    if edge_order not in (1, 2):
        raise located(ArgumentError(f"gradient: edge_order is 1 or 2, not {edge_order!r}"))
    named = range(t.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [axis_of(a, t.ndim, "gradient") for a in named]
    steps = list(spacing) * (len(axes) if len(spacing) == 1 else 1) or [1.0] * len(axes)
    if len(steps) != len(axes):
        raise located(ArgumentError(f"gradient: {len(steps)} spacings for {len(axes)} axes"))
    found = tuple([_slope(t, a, s, edge_order) for a, s in zip(axes, steps, strict=True)])
    return found[0] if len(found) == 1 else found


def _slope(t: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    rows = array(moveaxis(t, axis, -1), "gradient")
    last = len(rows.shape) - 1
    n = rows.shape[last]
    if isinstance(n, int) and n <= edge_order:
        raise located(ShapeError(f"gradient takes at least {edge_order + 1} elements along an axis, not shape {list(t.shape)}"))
    ends = wrap(sliced(rows, last, 1, n)) - wrap(sliced(rows, last, 0, n - 1))
    step = spacing if type(spacing) in (int, float) else wrap(array(spacing, "gradient")).astype(t.dtype)
    if type(step) is Tensor and step.ndim == 1:
        h = diff(step)
        slopes = ends / h
        h0, h1 = h[:-1], h[1:]
        middle = (slopes[..., :-1] * h1 + slopes[..., 1:] * h0) / (h0 + h1)
    else:
        slopes = ends / step
        middle = (wrap(sliced(rows, last, 2, n)) - wrap(sliced(rows, last, 0, n - 2))) / (step * 2)
    first, last_one = slopes[..., :1], slopes[..., -1:]
    if edge_order == 2:  # the parabola through three points: its slope changes linearly
        first, last_one = 2 * first - middle[..., :1], 2 * last_one - middle[..., -1:]
    return moveaxis(concat([first, middle, last_one], axis=-1), -1, axis)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Integral along ``axis`` by the trapezoidal rule, at the coordinates ``x`` or at distances ``dx``.

    Coordinates of one axis are those along ``axis``; others, and an array of distances, broadcast with ``y``.

    >>> hnp.trapezoid([1.0, 2.0, 3.0])
    Tensor(4., dtype=float32)
    >>> hnp.trapezoid([1.0, 2.0, 3.0], [0.0, 1.0, 3.0])
    Tensor(6.5, dtype=float32)
    """
    t = wrap(array(y, "trapezoid"))
    place = axis_of(axis, t.ndim, "trapezoid")
    width: Any = dx
    if x is not None:
        coordinates = wrap(array(x, "trapezoid"))
        width = diff(coordinates, axis=0 if coordinates.ndim == 1 else axis)
        if coordinates.ndim == 1:
            width = width.reshape([-1 if a == place else 1 for a in range(t.ndim)])
    before = (slice(None),) * place
    return sum((t[(*before, slice(1, None))] + t[(*before, slice(None, -1))]) * width, axis) / 2


def ediff1d(x: Any, /, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Differences of neighbours of ``x`` flattened, after ``to_begin`` and before ``to_end``.

    >>> hnp.ediff1d([1, 4, 9], to_begin=0)
    Tensor([0, 3, 5], dtype=int64)
    """
    values = wrap(array(x, "ediff1d")).reshape(-1)
    parts = [to_begin, diff(values), to_end]
    return concat([wrap(array_as(p, values._aval()[1], "ediff1d")).reshape(-1) for p in parts if p is not None])


def unwrap(x: Any, /, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Tensor:
    """Makes angles continuous along ``axis``: jumps of more than ``discont``, at least half a period, are taken back by whole periods.

    Angles are in radians unless ``period`` says otherwise. Shape and float type are those of ``x``.

    >>> hnp.unwrap([0.0, 170.0, -170.0], period=360.0)
    Tensor([  0., 170., 190.], dtype=float32)
    """
    node = array(x, "unwrap")
    t = wrap(cast_node(node, dtypes.to_inexact(node.dtype)))
    rows = moveaxis(t, axis_of(axis, t.ndim, "unwrap"), -1)
    half = period / 2
    jumps = diff(rows)
    wrapped = FUNCTIONS["remainder"](jumps + half, period) - half
    wrapped = where((wrapped == -half) & (jumps > 0), half, wrapped)
    correction = where(FUNCTIONS["abs"](jumps) < (half if discont is None else discont), 0.0, wrapped - jumps)
    start = zeros((*rows.shape[:-1], 1), dtype=rows.dtype)
    return moveaxis(rows + concat([start, cumsum(correction, -1)], axis=-1), -1, axis)


def polyval(p: Any, x: Any, /) -> Tensor:
    """Value at ``x`` of the polynomial with coefficients ``p``, the highest power first, by Horner's rule.

    The result has the shape of ``x``. Raises ShapeError for coefficients of more than one axis.

    >>> hnp.polyval([1, 0, -2], [0, 1, 3])
    Tensor([-2, -1,  7], dtype=int64)
    """
    coefficients, at = wrap(array(p, "polyval")), wrap(array(x, "polyval"))
    if coefficients.ndim != 1:
        raise located(ShapeError(f"polyval takes coefficients of one axis, not shape {list(coefficients.shape)}"))
    result: Any = zeros(at.shape, dtype=at.dtype)
    for i in range(operator.index(coefficients.shape[0])):
        result = result * at + coefficients[i]
    return result


def vander(x: Any, /, N: int | None = None, increasing: bool = False) -> Tensor:
    """Vandermonde matrix (n, N): the powers of each element of ``x``, from the highest down, or up if ``increasing``.

    ``N`` is by default n. Raises ShapeError for what is no vector.

    >>> hnp.vander([1, 2, 3], 3)
    Tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]], dtype=int64)
    """
    (values,) = _vectors("vander", x)
    n = values.shape[0] if N is None else N
    powers = arange(n) if increasing else arange(n - 1, -1, -1)
    return values[:, None] ** powers[None, :]
