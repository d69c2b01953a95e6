"""Sums, extremes, statistics, scans."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import array, axes_of, axis_of, cast_to, extent_node, reshaped, wrap
from hologram.numpy.complexes import squared_modulus
from hologram.numpy.creation import full
from hologram.numpy.elementwise import FUNCTIONS, isclose, where
from hologram.numpy.manipulation import broadcast_arrays, concat
from hologram.primitives import elementwise as ew
from hologram.primitives import reductions as rows
from hologram.primitives.op import Op
from hologram.symbolic import prod as product
from hologram.trace.checks import number
from hologram.trace.node import Node
from hologram.trace.recorder import cast_node, constant, located, record
from hologram.trace.tensor import Tensor

__all__ = [
    "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "array_equal", "average", "count_nonzero", "cummax", "cummin", "cumprod", "cumsum",
    "cumulative_prod", "cumulative_sum", "logsumexp", "max", "mean", "min", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip


def _reduce(op: Op, node: Node, axis: Any, keepdims: bool, what: str) -> Node:
    axes = axes_of(axis, len(node.shape), what)
    result = record(op, (node,), (axes,)) if axes else node
    return _kept(result, node, axes) if keepdims else result


def _kept(result: Node, node: Node, axes: tuple[int, ...]) -> Node:
    return reshaped(result, tuple(1 if i in axes else n for i, n in enumerate(node.shape)))


def accumulator_type(d: DType) -> DType:
    """The default type of a sum: small integers and bool widen to 64 bits."""
    return dtypes.uint64 if d.kind == "u" else dtypes.int64 if d.kind in "bi" else d


def _accumulated(x: Any, dtype: Any, what: str) -> Node:
    node = array(x, what)
    return cast_node(node, accumulator_type(node.dtype)) if dtype is None else cast_to(node, dtype)


def sum(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over ``axis``; 0 over no elements. bool and small integers are summed in 64 bits."""
    return wrap(_reduce(rows.reduce_sum, _accumulated(x, dtype, "sum"), axis, keepdims, "sum"))


def prod(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over ``axis``; 1 over no elements. bool and small integers are multiplied in 64 bits."""
    return wrap(_reduce(rows.reduce_prod, _accumulated(x, dtype, "prod"), axis, keepdims, "prod"))


def max(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element; NaN wins. Raises ShapeError over no elements."""
    return wrap(_reduce(rows.reduce_max, array(x, "max"), axis, keepdims, "max"))


def min(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN wins. Raises ShapeError over no elements."""
    return wrap(_reduce(rows.reduce_min, array(x, "min"), axis, keepdims, "min"))


amax, amin = max, min


def ptp(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def any(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether any element is not zero."""
    return wrap(_reduce(rows.reduce_any, cast_node(array(x, "any"), dtypes.bool_), axis, keepdims, "any"))


def all(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether no element is zero."""
    return wrap(_reduce(rows.reduce_all, cast_node(array(x, "all"), dtypes.bool_), axis, keepdims, "all"))


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close; see :func:`~hologram.numpy.elementwise.isclose`."""
    return all(isclose(x1, x2, rtol, atol, equal_nan))


def array_equal(x1: Any, x2: Any) -> Tensor:
    """Whether shapes and all elements are equal."""
    a, b = array(x1, "array_equal"), array(x2, "array_equal")
    return all(FUNCTIONS["equal"](wrap(a), wrap(b))) if a.shape == b.shape else full((), False)


def count_nonzero(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    return sum(wrap(cast_node(array(x, "count_nonzero"), dtypes.bool_)), axis, keepdims=keepdims)


def _arg(op: Op, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    node = array(x, op.name)
    flat = node if axis is not None else reshaped(node, (product(node.shape),))
    a = 0 if axis is None else axis_of(axis, len(node.shape), op.name)
    result = record(op, (flat,), (a,))
    return wrap(_kept(result, node, tuple(range(len(node.shape))) if axis is None else (a,)) if keepdims else result)


def argmax(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element is, the first of equals; in ``x`` flattened for ``axis`` None."""
    return _arg(rows.argmax, x, axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element is, the first of equals; in ``x`` flattened for ``axis`` None."""
    return _arg(rows.argmin, x, axis, keepdims)


# --- statistics ------------------------------------------------------------------------------------------------------


def _inexact(x: Any, dtype: Any, what: str) -> tuple[Node, DType]:
    """``x`` in the type statistics are computed in, and the type of their result: 16-bit floats are averaged in float32."""
    node = array(x, what)
    node = cast_node(node, dtypes.to_inexact(node.dtype)) if dtype is None else cast_to(node, dtype)
    return cast_node(node, dtypes.compute_type(node.dtype)), node.dtype


def _mean(node: Node, axis: Any, keepdims: bool, correction: float = 0.0) -> Node:
    axes = axes_of(axis, len(node.shape), "mean")
    total = _reduce(rows.reduce_sum, node, axis, keepdims, "mean")
    n = product(node.shape[a] for a in axes)
    if isinstance(n, int):
        return record(ew.div, (total, constant(float(n) - correction if n > correction else 0.0, node.dtype)))
    count = extent_node(n, node.dtype)
    if correction:
        count = record(ew.sub, (count, constant(correction, node.dtype)))
    return record(ew.div, (total, count))


def mean(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over ``axis``; NaN over no elements."""
    node, result = _inexact(x, dtype, "mean")
    return wrap(cast_node(_mean(node, axis, keepdims), result))


def _variance(x: Any, axis: Any, correction: float | None, keepdims: bool, ddof: float | None, dtype: Any, what: str) -> tuple[Node, DType]:
    if correction is not None and ddof is not None:
        raise located(ArgumentError(f"{what}: correction and ddof are two names of one thing"))
    node, result = _inexact(x, dtype, what)
    squares = array(squared_modulus(wrap(node) - wrap(_mean(node, axis, True))), what)
    less = next((number(v, what, "a correction") for v in (correction, ddof) if v is not None), 0.0)
    return _mean(squares, axis, keepdims, less), dtypes.real_of(result)


def var(
    x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, correction: float | None = None, ddof: float | None = None
) -> Tensor:
    """The variance over ``axis``, of complex numbers that of both parts together, divided by the count less ``correction`` (NumPy's ``ddof``)."""
    node, result = _variance(x, axis, correction, keepdims, ddof, dtype, "var")
    return wrap(cast_node(node, result))


def std(
    x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, correction: float | None = None, ddof: float | None = None
) -> Tensor:
    """The square root of :func:`var`."""
    node, result = _variance(x, axis, correction, keepdims, ddof, dtype, "std")
    return wrap(cast_node(record(ew.sqrt, (node,)), result))


def average(x: Any, /, axis: Any = None, weights: Any = None, keepdims: bool = False) -> Tensor:
    """The mean weighted by ``weights``, which broadcast with ``x``."""
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    values, shares = broadcast_arrays(x, weights)
    return sum(values * shares, axis, keepdims=keepdims) / sum(shares, axis, keepdims=keepdims)


def logsumexp(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """``log(sum(exp(x)))`` without overflow."""
    node, result = _inexact(x, None, "logsumexp")
    values = wrap(node)
    top = max(values, axis, keepdims=True)
    top = where(FUNCTIONS["isfinite"](top), top, 0.0)
    total = FUNCTIONS["log"](sum(FUNCTIONS["exp"](values - top), axis, keepdims=True)) + top
    axes = axes_of(axis, len(node.shape), "logsumexp")
    out = array(total, "logsumexp")
    if not keepdims:
        out = reshaped(out, tuple(n for i, n in enumerate(node.shape) if i not in axes))
    return wrap(cast_node(out, result))


# --- scans -----------------------------------------------------------------------------------------------------------


def _scan(op: Op, node: Node, axis: int | None, what: str, reverse: bool = False) -> Node:
    if axis is None:
        node, axis = reshaped(node, (product(node.shape),)), 0
    return record(op, (node,), (axis_of(axis, len(node.shape), what), bool(reverse)))


def cumsum(x: Any, /, axis: int | None = None, dtype: Any = None, *, reverse: bool = False) -> Tensor:
    """Running sums along ``axis`` (of ``x`` flattened for None), from the other end if ``reverse``."""
    return wrap(_scan(rows.cumsum, _accumulated(x, dtype, "cumsum"), axis, "cumsum", reverse))


def cumprod(x: Any, /, axis: int | None = None, dtype: Any = None, *, reverse: bool = False) -> Tensor:
    """Running products along ``axis`` (of ``x`` flattened for None), from the other end if ``reverse``."""
    return wrap(_scan(rows.cumprod, _accumulated(x, dtype, "cumprod"), axis, "cumprod", reverse))


def cummax(x: Any, /, axis: int | None = None, *, reverse: bool = False) -> Tensor:
    """Running maxima along ``axis``."""
    return wrap(_scan(rows.cummax, array(x, "cummax"), axis, "cummax", reverse))


def cummin(x: Any, /, axis: int | None = None, *, reverse: bool = False) -> Tensor:
    """Running minima along ``axis``."""
    return wrap(_scan(rows.cummin, array(x, "cummin"), axis, "cummin", reverse))


def _cumulative(scan: Any, start: int, x: Any, axis: int | None, dtype: Any, include_initial: bool, what: str) -> Tensor:
    node = array(x, what)
    if axis is None and len(node.shape) != 1:
        raise located(ShapeError(f"{what}: name the axis of an array of shape {list(node.shape)}"))
    a = 0 if axis is None else axis_of(axis, len(node.shape), what)
    result = scan(x, a, dtype)
    if not include_initial:
        return result
    shape, d = result._aval()
    return concat([full((*shape[:a], 1, *shape[a + 1 :]), start, dtype=d), result], axis=a)


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Running sums, with a 0 in front if ``include_initial``."""
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial, "cumulative_sum")


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Running products, with a 1 in front if ``include_initial``."""
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial, "cumulative_prod")
