"""Sums, extremes, statistics, scans."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.ir.symbolic import prod as product
from hologram.numpy.arguments import array, as_tensor, axes_of, axis_of, cast_to, permuted, reshaped, weakly, wrap
from hologram.numpy.complexes import imag, real, squared_modulus
from hologram.numpy.creation import full, zeros
from hologram.numpy.elementwise.functions import FUNCTIONS, isclose
from hologram.numpy.elementwise.functions import where as select
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import broadcast_arrays, broadcast_to
from hologram.primitives import reductions as rows
from hologram.primitives.complex.parts import complex_
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.checks import number, truth
from hologram.trace.convert import tensor
from hologram.trace.lean_reductions import lean_reduction
from hologram.trace.operators import broadcast_shapes, extent_node, node_of, promoted, with_tensors
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.replayed import replayed
from hologram.trace.tensor import Tensor

__all__ = [
    "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "array_equal", "array_equiv", "average", "count_nonzero", "cummax", "cummin",
    "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "logsumexp", "max", "mean", "min", "prod", "ptp", "std", "sum", "var",
]  # fmt: skip


def _reduce(op: Op, node: Node, axis: Any, keepdims: bool, what: str) -> Node:
    axes = axes_of(axis, len(node.shape), what)
    result = record(op, (node,), (axes,)) if axes else node
    return _kept(result, node, axes) if truth(keepdims, what, "keepdims") else result


def _kept(result: Node, node: Node, axes: tuple[int, ...]) -> Node:
    return reshaped(result, tuple(1 if i in axes else n for i, n in enumerate(node.shape)))


def accumulator_type(d: DType) -> DType:
    """The default type of a sum: small integers and bool widen to 64 bits."""
    return dtypes.uint64 if d.kind == "u" else dtypes.int64 if d.kind in "bi" else d


def _accumulated(x: Any, dtype: Any, what: str) -> Node:
    node = array(x, what)
    return cast_node(node, accumulator_type(node.dtype)) if dtype is None else cast_to(node, dtype)


def included(node: Node, mask: Any, value: Any, what: str) -> Node:
    """``node`` with ``value`` where ``mask``, which broadcasts to it, does not hold. Raises ShapeError where the mask is larger."""
    if mask is None:
        return node
    included = wrap(cast_node(array(mask, what), dtypes.bool_))
    chosen = array(select(included, wrap(node), value), what)
    if chosen.shape != node.shape:
        raise located(ShapeError(f"{what}: a mask for shape {list(chosen.shape)} where the array has shape {list(node.shape)}"))
    return cast_node(chosen, node.dtype)


def _as_element(initial: Any, op: Op, dtype: DType, what: str) -> Any:
    """``initial`` as an element of type ``dtype``, so that no element is rounded to its type; integers of Python and None as they are.

    A known number without a place among integers is an ArgumentError; but an infinity that leaves every integer the extreme is the largest or least.
    """
    if initial is None or type(initial) is int:
        return initial
    if shape := array(initial, what).shape:
        raise located(ShapeError(f"{what}: initial is a scalar, not of shape {list(shape)}"))
    if not dtype.is_integer or not isinstance(initial, (float, np.floating)):
        return wrap(cast_to(node_of(weakly(initial, what)), dtype))
    if np.isfinite(initial):
        return int(initial)
    if initial == {rows.reduce_max: -np.inf, rows.reduce_min: np.inf}.get(op):
        return int(np.iinfo(dtype.np).min if initial < 0 else np.iinfo(dtype.np).max)
    raise located(ArgumentError(f"{what}: initial is {initial}, which {dtype} does not have"))


def _folded(op: Op, combine: str, node: Node, axis: Any, keepdims: bool, initial: Any, what: str) -> Tensor:
    """The reduction, and ``initial`` as one more element of it if it is not None."""
    if initial is None:
        return wrap(_reduce(op, node, axis, keepdims, what))
    axes, keepdims = axes_of(axis, len(node.shape), what), truth(keepdims, what, "keepdims")
    if 0 in [node.shape[a] for a in axes]:
        rest = tuple(1 if i in axes else n for i, n in enumerate(node.shape) if keepdims or i not in axes)
        return full(rest, initial, dtype=node.dtype)
    found = FUNCTIONS[combine](wrap(_reduce(op, node, axis, keepdims, what)), initial)
    return wrap(cast_to(array(found, what), node.dtype))


@lean_reduction(rows.reduce_sum)
def sum(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Sum over ``axis``: an integer, a tuple of them, or None for all.

    ``where`` (bool, broadcast with ``x``) says which elements count; ``initial`` is added; over no elements the sum is 0. bool and small integers
    are summed in int64 or uint64, floats in their own type (16-bit floats in float32, rounded once), unless ``dtype`` says otherwise.
    ``keepdims`` leaves summed axes in place with extent 1. ``initial`` is cast to the type of the sum. Raises ShapeError for one with axes,
    ArgumentError for one that is known not to be in that type, as NaN among integers.

    >>> hnp.sum([[1, 2], [3, 4]])
    Tensor(10, dtype=int64)
    >>> hnp.sum([[1.0, 2.0], [3.0, 4.0]], axis=0)
    Tensor([4., 6.], dtype=float32)
    """
    node = included(_accumulated(x, dtype, "sum"), where, 0, "sum")
    return _folded(rows.reduce_sum, "add", node, axis, keepdims, _as_element(initial, rows.reduce_sum, node.dtype, "sum"), "sum")


@lean_reduction(rows.reduce_prod)
def prod(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Product over ``axis``: an integer, a tuple of them, or None for all.

    Arguments, types and errors are those of :func:`sum`; over no elements the product is 1.

    >>> hnp.prod([[1, 2], [3, 4]], axis=1)
    Tensor([ 2, 12], dtype=int64)
    """
    node = included(_accumulated(x, dtype, "prod"), where, 1, "prod")
    return _folded(rows.reduce_prod, "multiply", node, axis, keepdims, _as_element(initial, rows.reduce_prod, node.dtype, "prod"), "prod")


def _extreme(op: Op, combine: str, x: Any, axis: Any, keepdims: bool, initial: Any, mask: Any, what: str) -> Tensor:
    if mask is not None and initial is None:
        raise located(ArgumentError(f"{what}: with where it takes initial, the result over no elements"))
    node = array(x, what)
    initial = _as_element(initial, op, node.dtype, what)
    node = included(node, mask, initial, what)
    if node.dtype.is_complex:
        return _complex_extreme(wrap(node), combine, axis, keepdims, initial, what)
    return _folded(op, combine, node, axis, keepdims, initial, what)


def _complex_extreme(x: Tensor, combine: str, axis: Any, keepdims: bool, initial: Any, what: str) -> Tensor:
    """The extreme of complex numbers in the order of their real parts, among equals of their imaginary parts; NaN where a part is NaN."""
    axes = axes_of(axis, x.ndim, what)
    if initial is not None:
        lines = permuted(array(x, what), [*[i for i in range(x.ndim) if i not in axes], *axes])
        kept = lines.shape[: x.ndim - len(axes)]
        flat = wrap(reshaped(lines, (*kept, product(lines.shape[len(kept) :]))))
        first = broadcast_to(wrap(cast_to(array(initial, what), flat.dtype)), (*kept, 1))
        found = _complex_extreme(concat([flat, first], axis=-1), combine, -1, False, None, what)
        return wrap(_kept(array(found, what), array(x, what), axes)) if keepdims else found
    re, im, _ = _complex_extremes(x, combine, axes)
    found = wrap(record(complex_, (array(re, what), array(im, what))))
    return found if keepdims else found.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def _complex_extremes(x: Tensor, combine: str, axes: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """The parts of the extremes of complex numbers, whose axes stay with extent 1, and which elements are these: those with a NaN where there are."""
    reduce, beyond = (max, -np.inf) if combine == "maximum" else (min, np.inf)
    re, im = real(x), imag(x)
    missing = FUNCTIONS["isnan"](re) | FUNCTIONS["isnan"](im)
    none = any(missing, axes, True)
    best = reduce(re, axes, keepdims=True)
    second = reduce(select(re == best, im, beyond), axes, keepdims=True)
    return select(none, np.nan, best), select(none, np.nan, second), select(none, missing, (re == best) & (im == second))


@lean_reduction(rows.reduce_max)
def max(x: Any, /, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Maximum over ``axis``: an integer, a tuple of them, or None for all. NaN where an element is NaN. Complex numbers go by their real parts, among
    equals by their imaginary parts.

    The result has the type of ``x``. ``where`` (bool, broadcast with ``x``) says which elements count, ``initial`` is one more element; ``where``
    needs it. Raises ShapeError over no elements without ``initial``, ArgumentError for ``where`` without it. Also called ``amax``.

    >>> hnp.max([[1, 5], [3, 4]], axis=0)
    Tensor([3, 5], dtype=int64)
    >>> hnp.max([-3, -1], initial=0)
    Tensor(0, dtype=int64)
    """
    return _extreme(rows.reduce_max, "maximum", x, axis, keepdims, initial, where, "max")


@lean_reduction(rows.reduce_min)
def min(x: Any, /, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = None) -> Tensor:
    """Minimum over ``axis``: an integer, a tuple of them, or None for all. NaN where an element is NaN.

    Arguments and errors are those of :func:`max`. Also called ``amin``.

    >>> hnp.min([[1, 5], [3, 4]], axis=1, keepdims=True)
    Tensor([[1],
            [3]], dtype=int64)
    """
    return _extreme(rows.reduce_min, "minimum", x, axis, keepdims, initial, where, "min")


amax, amin = max, min


def ptp(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Range of values over ``axis``: the maximum less the minimum, in the type of ``x``. Raises DTypeError for bool.

    >>> hnp.ptp([[1, 5], [3, 4]], axis=1)
    Tensor([4, 1], dtype=int64)
    """
    return max(x, axis, keepdims) - min(x, axis, keepdims)


@lean_reduction(rows.reduce_any)
def any(x: Any, /, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Whether any element over ``axis`` is not zero; bool. False over no elements.

    ``where`` (bool, broadcast with ``x``) says which elements count.

    >>> hnp.any([[0, 1], [0, 0]], axis=1)
    Tensor([ True, False], dtype=bool)
    """
    return wrap(_reduce(rows.reduce_any, included(cast_node(array(x, "any"), dtypes.bool_), where, False, "any"), axis, keepdims, "any"))


@lean_reduction(rows.reduce_all)
def all(x: Any, /, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Whether no element over ``axis`` is zero; bool. True over no elements.

    ``where`` (bool, broadcast with ``x``) says which elements count.

    >>> hnp.all([[0, 1], [2, 3]], axis=1)
    Tensor([False,  True], dtype=bool)
    """
    return wrap(_reduce(rows.reduce_all, included(cast_node(array(x, "all"), dtypes.bool_), where, True, "all"), axis, keepdims, "all"))


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all elements are close, as :func:`isclose` says: a bool scalar Tensor.

    >>> hnp.allclose([1.0, 2.0], [1.0, 2.000001])
    Tensor(True, dtype=bool)
    """
    return all(isclose(x1, x2, rtol, atol, equal_nan))


def array_equal(x1: Any, x2: Any, equal_nan: bool = False) -> Tensor:
    """Whether two arrays have one shape and equal elements: a bool scalar Tensor. NaN equals nothing, with ``equal_nan`` another NaN.

    >>> hnp.array_equal([1, 2], [1, 2])
    Tensor(True, dtype=bool)
    >>> hnp.array_equal([1, 2], [[1, 2]])
    Tensor(False, dtype=bool)
    """
    a, b = (array(x, "array_equal") for x in with_tensors((x1, x2), "array_equal"))
    if a.shape != b.shape:
        return full((), False)
    same = FUNCTIONS["equal"](wrap(a), wrap(b))
    if equal_nan and not {a.dtype.kind, b.dtype.kind} & set("biu"):
        same = same | (FUNCTIONS["isnan"](wrap(a)) & FUNCTIONS["isnan"](wrap(b)))
    return all(same)


def count_nonzero(x: Any, /, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Number of elements over ``axis`` that are not zero; int64.

    >>> hnp.count_nonzero([[0, 1], [2, 3]], axis=1)
    Tensor([1, 2], dtype=int64)
    """
    return sum(wrap(cast_node(array(x, "count_nonzero"), dtypes.bool_)), axis, keepdims=keepdims)


def _arg(op: Op, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    node = array(x, op.name)
    flat = node if axis is not None else reshaped(node, (product(node.shape),))
    a = 0 if axis is None else axis_of(axis, len(node.shape), op.name)
    if flat.dtype.is_complex:
        *_, extremes = _complex_extremes(wrap(flat), "maximum" if op is rows.argmax else "minimum", (a,))
        op, flat = rows.argmax, cast_node(array(extremes, op.name), dtypes.uint8)
    result = record(op, (flat,), (a,))
    kept = truth(keepdims, op.name, "keepdims")
    return wrap(_kept(result, node, tuple(range(len(node.shape))) if axis is None else (a,)) if kept else result)


@lean_reduction(rows.argmax)
def argmax(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the largest element along ``axis``, the first of equals; int64. In ``x`` flattened for None.

    NaN counts as the largest. Raises ShapeError over no elements.

    >>> hnp.argmax([[1, 5], [4, 3]], axis=1)
    Tensor([1, 0], dtype=int64)
    """
    return _arg(rows.argmax, x, axis, keepdims)


@lean_reduction(rows.argmin)
def argmin(x: Any, /, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Index of the smallest element along ``axis``, the first of equals; int64. In ``x`` flattened for None.

    NaN counts as the smallest. Raises ShapeError over no elements.

    >>> hnp.argmin([[1, 5], [4, 3]])
    Tensor(0, dtype=int64)
    """
    return _arg(rows.argmin, x, axis, keepdims)


# --- statistics ------------------------------------------------------------------------------------------------------


def inexact(x: Any, dtype: Any, what: str) -> tuple[Node, DType]:
    """``x`` in the type statistics are computed in, and the type of their result: narrow floats are averaged in float32."""
    node = array(x, what)
    node = cast_node(node, dtypes.to_inexact(node.dtype)) if dtype is None else cast_to(node, dtype)
    if node.dtype.kind not in "fc":
        raise located(DTypeError(f"{what} is computed in floats or complex numbers: dtype is such a type, not {node.dtype.name}"))
    return cast_node(node, dtypes.compute_type(node.dtype)), node.dtype


def _mean(node: Node, axis: Any, keepdims: bool, correction: float = 0.0) -> Node:
    axes = axes_of(axis, len(node.shape), "mean")
    total = _reduce(rows.reduce_sum, node, axis, keepdims, "mean")
    n = product(node.shape[a] for a in axes)
    if isinstance(n, int):
        return record(ew.div, (total, constant(float(n) - correction if n > correction else 0.0, node.dtype)))
    count = extent_node(n, node.dtype)
    if correction:
        count = record(ew.max_, (record(ew.sub, (count, constant(correction, node.dtype))), constant(0.0, node.dtype)))
    return record(ew.div, (total, count))


def _mean_of(node: Node, mask: Any, axis: Any, keepdims: bool, correction: float, what: str) -> Node:
    """The mean of the elements for which ``mask`` holds, all for None."""
    if mask is None:
        return _mean(node, axis, keepdims, correction)
    counted = broadcast_to(wrap(cast_node(array(mask, what), dtypes.bool_)), node.shape)
    less = FUNCTIONS["maximum"](sum(counted, axis, keepdims=keepdims) - correction, 0)
    total = _reduce(rows.reduce_sum, included(node, counted, 0, what), axis, keepdims, what)
    return record(ew.div, (total, cast_node(array(less, what), node.dtype)))


@replayed(1)
def mean(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, where: Any = None) -> Tensor:
    """Mean over ``axis``: an integer, a tuple of them, or None for all. NaN over no elements.

    ``where`` (bool, broadcast with ``x``) says which elements count. Floats keep their type, 16-bit ones are averaged in float32; integers give
    float32 (NumPy: float64), unless ``dtype`` says otherwise.

    >>> hnp.mean([[1, 2], [3, 4]], axis=0)
    Tensor([2., 3.], dtype=float32)
    >>> hnp.mean([1.0, 2.0, 9.0], where=[True, True, False])
    Tensor(1.5, dtype=float32)
    """
    node, result = inexact(x, dtype, "mean")
    return wrap(cast_node(_mean_of(node, where, axis, keepdims, 0.0, "mean"), result))


def type_of_spread(result: dtypes.DType, named: Any) -> dtypes.DType:
    """The type of a variance over elements of type ``result``: their real type, unless the caller has named one."""
    return dtypes.real_of(result) if named is None else result


def _measure_of_spread(what: str, finish: Callable[[Node], Node], doc: str) -> Callable[..., Tensor]:
    """The function called ``what``: ``finish`` of the variance."""

    def measure(
        x: Any,
        /,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
        *,
        correction: float | None = None,
        ddof: float | None = None,
        where: Any = None,
    ) -> Tensor:
        if correction is not None and ddof is not None:
            raise located(ArgumentError(f"{what}: correction and ddof are two names of one thing"))
        less = next((number(v, what, "a correction") for v in (correction, ddof) if v is not None), 0.0)
        node, result = inexact(x, dtype, what)
        squares = array(squared_modulus(wrap(node) - wrap(_mean_of(node, where, axis, True, 0.0, what))), what)
        return wrap(cast_node(finish(_mean_of(squares, where, axis, keepdims, less, what)), type_of_spread(result, dtype)))

    measure.__name__ = measure.__qualname__ = what
    measure.__doc__ = inspect.cleandoc(doc)
    return replayed(1)(measure)


var = _measure_of_spread(
    "var",
    lambda variance: variance,
    """Variance over ``axis``: the mean of squared distances from the mean; of complex numbers that of both parts together.

    The sum is divided by the count less ``correction``, which NumPy calls ``ddof``; by default less 0. ``where`` (bool, broadcast with ``x``) says
    which elements count. Types are those of :func:`mean`; of complex numbers, without ``dtype``, the type of their parts. Raises ArgumentError for
    both names at once.

    >>> hnp.var([1.0, 2.0, 3.0, 4.0])
    Tensor(1.25, dtype=float32)
    >>> hnp.var([[1.0, 3.0], [2.0, 6.0]], axis=1, correction=1)
    Tensor([2., 8.], dtype=float32)
    """,
)
std = _measure_of_spread(
    "std",
    lambda variance: record(ew.sqrt, (variance,)),
    """Standard deviation over ``axis``: the square root of :func:`var`, whose arguments it takes.

    >>> hnp.std([[1.0, 3.0], [2.0, 6.0]], axis=1)
    Tensor([1., 2.], dtype=float32)
    """,
)


def average(x: Any, /, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """Mean over ``axis``, weighted by ``weights``; :func:`mean` without them.

    ``weights`` have the shape of ``x``, or that of its extents along ``axis``, in the order of ``axis``. With ``returned`` there is a pair: the
    average, and the sums of weights, of the same shape. Raises ShapeError for weights of other shapes.

    >>> hnp.average([1.0, 2.0, 3.0], weights=[3, 1, 0])
    Tensor(1.25, dtype=float32)
    >>> hnp.average([[1.0, 2.0], [3.0, 4.0]], axis=0, weights=[3, 1])
    Tensor([1.5, 2.5], dtype=float32)
    """
    axis = tuple(axis) if type(axis) is list else axis
    values = as_tensor(x, "average")
    if weights is None:
        found = mean(values, axis, keepdims=keepdims)
        total = sum(full(values.shape, 1, dtype=np.int64), axis, keepdims=keepdims) if returned else found
    else:
        values, weights = (as_tensor(a, "average") for a in with_tensors((x, weights), "average"))
        shares = weights_along(values, weights, axis, "average")
        total = sum(shares, axis, keepdims=keepdims)
        found = sum(values * shares, axis, keepdims=keepdims) / total
    return (found, total.astype(found.dtype)) if returned else found


def weights_along(values: Tensor, weights: Tensor, axis: Any, what: str) -> Tensor:
    """Weights of the axes ``axis`` of ``values``, in its shape."""
    if weights.shape == values.shape:
        return weights
    named = [] if axis is None else [axis_of(a, values.ndim, what) for a in (axis if isinstance(axis, (tuple, list)) else [axis])]
    if axis is None or weights.shape != tuple(values.shape[a] for a in named):
        wanted = "" if axis is None else f" or {[values.shape[a] for a in named]}, that of axis {axis}"
        raise located(ShapeError(f"{what}: weights of shape {list(weights.shape)}, not {list(values.shape)}, that of the values{wanted}"))
    ordered = permuted(array(weights, what), sorted(range(len(named)), key=lambda i: named[i]))
    return broadcast_to(wrap(reshaped(ordered, tuple(n if a in named else 1 for a, n in enumerate(values.shape)))), values.shape)


def logsumexp(x: Any, /, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False, where: Any = None) -> Any:
    """``log(sum(b * exp(x)))`` over ``axis``, without overflow.

    ``b``, by default 1, are factors and ``where`` tells which elements count; both broadcast with ``x``. A negative sum is NaN, unless with
    ``return_sign``: then the result is a pair, the logarithm of its magnitude and its sign. The result has the float type of ``x`` and ``b``,
    float32 for integers; beside a sign the logarithm is real. Over no elements it is ``-inf``.

    >>> hnp.logsumexp([1000.0, 1000.0])
    Tensor(1000.6932, dtype=float32)
    >>> hnp.logsumexp([1000.0, 1000.0], b=[1.0, -3.0], return_sign=True)
    (Tensor(1000.6932, dtype=float32), Tensor(-1., dtype=float32))
    """
    if b is not None:
        x, b = broadcast_arrays(*(wrap(n) for n in promoted("logsumexp", [as_tensor(v, "logsumexp") for v in (x, b)], dtypes.to_inexact)[0]))
    node, result = inexact(x, None, "logsumexp")
    values = wrap(included(node, where, -np.inf, "logsumexp"))
    counted = values if b is None else select(b == 0, -np.inf, values)
    least = -np.inf if 0 in node.shape else None
    top = max(real(counted) if result.is_complex else counted, axis, keepdims=True, initial=least)
    top = select(FUNCTIONS["isfinite"](top), top, 0.0)
    terms = FUNCTIONS["exp"](values - top) if b is None else _times_exp(b.astype(values.dtype), values - top)
    total = sum(terms, axis, keepdims=True)
    logs = (FUNCTIONS["log"](FUNCTIONS["abs"](total) if return_sign else total) + top, FUNCTIONS["sign"](total))
    axes = () if keepdims else axes_of(axis, len(node.shape), "logsumexp")
    found = [_dropped(array(t, "logsumexp"), axes) for t in logs[: 1 + bool(return_sign)]]
    kinds = dtypes.real_of(result) if return_sign else result, result
    out = tuple(wrap(cast_node(n, d)) for n, d in zip(found, kinds, strict=False))
    return out if return_sign else out[0]


def _times_exp(b: Tensor, x: Tensor) -> Tensor:
    """``b * exp(x)``, where a ``b`` of 0 hides exponentials that are not finite."""
    return b * FUNCTIONS["exp"](select((b == 0) & ~FUNCTIONS["isfinite"](FUNCTIONS["exp"](x)), -np.inf, x))


def _dropped(node: Node, axes: tuple[int, ...]) -> Node:
    return reshaped(node, tuple(n for i, n in enumerate(node.shape) if i not in axes))


# --- scans -----------------------------------------------------------------------------------------------------------


def _scan(op: Op, node: Node, axis: int | None, what: str, reverse: bool = False) -> Node:
    if axis is None:
        node, axis = reshaped(node, (product(node.shape),)), 0
    return record(op, (node,), (axis_of(axis, len(node.shape), what), bool(reverse)))


def cumsum(x: Any, /, axis: int | None = None, dtype: Any = None, *, reverse: bool = False) -> Tensor:
    """Running sums along ``axis``; of ``x`` flattened for None.

    The shape is that of ``x``; bool and small integers are summed in int64 or uint64, unless ``dtype`` says otherwise. ``reverse``, which NumPy
    does not have, sums from the other end.

    >>> hnp.cumsum([1, 2, 3])
    Tensor([1, 3, 6], dtype=int64)
    >>> hnp.cumsum([1, 2, 3], reverse=True)
    Tensor([6, 5, 3], dtype=int64)
    """
    return wrap(_scan(rows.cumsum, _accumulated(x, dtype, "cumsum"), axis, "cumsum", reverse))


def cumprod(x: Any, /, axis: int | None = None, dtype: Any = None, *, reverse: bool = False) -> Tensor:
    """Running products along ``axis``; of ``x`` flattened for None. Types and ``reverse`` are as for :func:`cumsum`.

    >>> hnp.cumprod([1, 2, 3, 4])
    Tensor([ 1,  2,  6, 24], dtype=int64)
    """
    return wrap(_scan(rows.cumprod, _accumulated(x, dtype, "cumprod"), axis, "cumprod", reverse))


def cummax(x: Any, /, axis: int | None = None, *, reverse: bool = False) -> Tensor:
    """Running maxima along ``axis``, of ``x`` flattened for None; from the other end if ``reverse``. Shape and type are those of ``x``.

    >>> hnp.cummax([1, 3, 2, 5])
    Tensor([1, 3, 3, 5], dtype=int64)
    """
    return wrap(_scan(rows.cummax, array(x, "cummax"), axis, "cummax", reverse))


def cummin(x: Any, /, axis: int | None = None, *, reverse: bool = False) -> Tensor:
    """Running minima along ``axis``, of ``x`` flattened for None; from the other end if ``reverse``. Shape and type are those of ``x``.

    >>> hnp.cummin([4, 3, 5, 1])
    Tensor([4, 3, 3, 1], dtype=int64)
    """
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
    """Running sums along ``axis``, with a 0 in front if ``include_initial``, which makes it longer by one.

    ``axis`` may be left out for a vector. Raises ShapeError without it for other arrays.

    >>> hnp.cumulative_sum([1, 2, 3], include_initial=True)
    Tensor([0, 1, 3, 6], dtype=int64)
    """
    return _cumulative(cumsum, 0, x, axis, dtype, include_initial, "cumulative_sum")


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Running products along ``axis``, with a 1 in front if ``include_initial``, which makes it longer by one.

    ``axis`` may be left out for a vector. Raises ShapeError without it for other arrays.

    >>> hnp.cumulative_prod([1, 2, 3])
    Tensor([1, 2, 6], dtype=int64)
    """
    return _cumulative(cumprod, 1, x, axis, dtype, include_initial, "cumulative_prod")


def array_equiv(x1: Any, x2: Any) -> Tensor:
    """Whether all elements are equal once the shapes are broadcast: a bool scalar Tensor, False where they do not broadcast.

    >>> hnp.array_equiv([1, 1], [[1], [1]])
    Tensor(True, dtype=bool)
    """
    a, b = (as_tensor(x, "array_equiv") for x in with_tensors((x1, x2), "array_equiv"))
    try:
        shape = broadcast_shapes("array_equiv", [a.shape, b.shape])
    except ShapeError:
        return tensor(False)
    return array_equal(zeros(shape, dtype=a.dtype) + a, zeros(shape, dtype=b.dtype) + b)
