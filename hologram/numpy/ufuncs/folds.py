"""Folds of a function of two operands along an axis: results alone, and running ones.

Functions that are ops which reduce or scan use these. Others are a loop over the elements in order; those that are associative and commutative
first fold several interleaved parts at once, in vector lanes, and then the partial results by halves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hologram import dtypes
from hologram.control.loops import scan
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.symbolic import is_static, prod
from hologram.numpy.along_axes import reductions
from hologram.numpy.arguments import array, axes_of, axis_of, cast, cast_to, element_type, wrap
from hologram.numpy.creation import zeros
from hologram.numpy.elementwise.functions import where as chosen
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import broadcast_to, expand_dims, moveaxis
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor

MIN_LANES = 256  # elements that a step of a loop combines at once, where the order is free

_REDUCTIONS: dict[str, Callable[..., Tensor]] = {
    "add": reductions.sum,
    "multiply": reductions.prod,
    "maximum": reductions.max,
    "minimum": reductions.min,
}
_SCANS: dict[str, Callable[..., Tensor]] = {
    "add": reductions.cumsum,
    "multiply": reductions.cumprod,
    "maximum": reductions.cummax,
    "minimum": reductions.cummin,
}
_WIDENING = ("add", "multiply")  # bool and small integers fold in 64 bits, as in NumPy
# on bool, logical functions are extremes and sums: these have reductions, scans and scatters
_ON_BOOL = {"logical_and": "minimum", "logical_or": "maximum", "bitwise_and": "minimum", "bitwise_or": "maximum"}


class Fold(NamedTuple):
    """A function of two operands, and what is known of folds of it."""

    function: Callable[[Any, Any], Tensor]
    name: str
    identity: Any
    reorderable: bool

    @property
    def is_logical(self) -> bool:
        return self.name.startswith("logical_")


def operand(fold: Fold, x: Any, dtype: Any, method: str) -> tuple[Tensor, str]:
    """``x`` in the type in which it is folded, and the name of the function that does so in this type.

    Raises DTypeError where the function has a result of another type than its operands, and no result for which it has not.
    """
    what = f"{fold.name}.{method}"
    node = array(x, what)
    given = cast_to(node, dtype)
    if fold.is_logical:
        if dtype is not None and given.dtype is not dtypes.bool_:
            raise located(DTypeError(f"{what}: the result is bool, not {given.dtype}"))
        given = array(cast(wrap(node), dtypes.bool_), what)
    if fold.name in _WIDENING:
        kind = given.dtype if dtype is not None else reductions.accumulator_type(given.dtype)
    else:
        kind = _result_type(fold, given.dtype)
        if kind.rank < given.dtype.rank or _result_type(fold, kind) is not kind:
            raise located(DTypeError(f"{what}: {fold.name} of {given.dtype} is {kind}, with which it cannot go on"))
    return cast(wrap(given), kind), _ON_BOOL.get(fold.name, fold.name) if kind is dtypes.bool_ else fold.name


def _result_type(fold: Fold, dtype: DType) -> DType:
    probe = zeros((), dtype=dtype)
    return element_type(fold.function(probe, probe).dtype)


# --- one result ------------------------------------------------------------------------------------------------------


def reduce(fold: Fold, x: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Tensor:
    """See :meth:`~hologram.numpy.ufuncs.ufunc.ufunc.reduce`."""
    what = f"{fold.name}.reduce"
    t, name = operand(fold, x, dtype, "reduce")
    mask = None if where is True else where
    axes = () if t.ndim == 0 and axis in (0, -1) else axes_of(axis, t.ndim, what)
    if mask is not None and fold.identity is None and initial is None:
        raise located(ArgumentError(f"{what}: {fold.name} has no identity, so with where it takes initial"))
    if len(axes) > 1 and not fold.reorderable:
        raise located(ShapeError(f"{what}: the result depends on the order of the elements, so it takes one axis, not {len(axes)}"))
    direct = None if t._aval()[1].is_complex and name not in _WIDENING else _REDUCTIONS.get(name)
    if direct is not None:
        options = {"dtype": t.dtype} if name in _WIDENING else {}
        start = fold.identity if initial is None and name not in _WIDENING else initial
        return direct(t, axes, keepdims=keepdims, where=mask, initial=None if start is None else _scalar(start, t, what), **options)
    start = None if initial is None else _scalar(initial, t, what)
    if mask is not None:
        mask = _mask(mask, t, what)
    result = _folded(fold, _flattened(t, axes), None if mask is None else _flattened(mask, axes), start)
    return expand_dims(result, axes) if keepdims and axes else result


def _scalar(x: Any, of: Tensor, what: str) -> Tensor:
    t = cast(wrap(array(x, what)), of._aval()[1])
    if t.ndim:
        raise located(ShapeError(f"{what}: initial is a scalar, not of shape {list(t.shape)}"))
    return t


def _mask(where: Any, t: Tensor, what: str) -> Tensor:
    mask = cast(wrap(array(where, what)), dtypes.bool_)
    try:
        return broadcast_to(mask, t.shape)
    except ShapeError:
        raise located(ShapeError(f"{what}: a mask of shape {list(mask.shape)} where the array has shape {list(t.shape)}")) from None


def _flattened(t: Tensor, axes: tuple[int, ...]) -> Tensor:
    """``t`` with ``axes`` brought together as its first axis."""
    rows = moveaxis(t, axes, tuple(range(len(axes))))
    rest = rows.shape[len(axes) :]
    return rows.reshape((prod(rows.shape[: len(axes)]), *rest))


def _folded(fold: Fold, rows: Tensor, mask: Tensor | None, start: Tensor | None) -> Tensor:
    """``rows`` folded along their first axis, after ``start``; those alone for which ``mask`` holds."""
    identity = None if fold.identity is None else _scalar(fold.identity, rows, fold.name)
    if mask is not None and identity is not None:
        rows, mask = chosen(mask, rows, identity), None
    start = identity if start is None else start  # as in NumPy also where there are elements: gcd of -1 alone is 1
    if fold.reorderable and mask is None and rows.shape[0] != 0:
        result = in_any_order(fold, rows)
        return result if start is None else fold.function(start, result)
    return _last(fold, rows) if start is None else _steps(fold, broadcast_to(start, rows.shape[1:]), rows, mask)


def in_any_order(fold: Fold, rows: Tensor) -> Tensor:
    """The fold along the first axis, of at least one element, of a function that is associative and commutative: in lanes, then by halves."""
    require_static(fold, rows)
    n, inner = rows.shape[0], prod(rows.shape[1:])
    lanes = MIN_LANES // max(1, inner) if isinstance(inner, int) else 1
    if lanes <= 1:
        return _last(fold, rows)
    steps = n // lanes
    if steps > 2:
        several = rows[: steps * lanes].reshape((steps, lanes, *rows.shape[1:]))
        rows = concat([_last(fold, several), rows[steps * lanes :]])
    while (n := rows.shape[0]) > 1:
        half = n // 2
        pairs = fold.function(rows[:half], rows[half : 2 * half])
        rows = concat([pairs, rows[2 * half :]]) if n % 2 else pairs
    return rows[0]


def _last(fold: Fold, rows: Tensor) -> Tensor:
    """The fold along the first axis from its first element to its last. Raises ShapeError where there is none."""
    require_static(fold, rows)
    if rows.shape[0] == 0:
        raise located(ShapeError(f"{fold.name}.reduce: no elements, and {fold.name} has no identity"))
    return rows[0] if rows.shape[0] == 1 else _steps(fold, rows[0], rows[1:], None)


def _steps(fold: Fold, start: Tensor, rows: Tensor, mask: Tensor | None) -> Tensor:
    require_static(fold, rows)
    if rows.shape[0] == 0:
        return start

    def step(carry: Tensor, x: Any) -> tuple[Tensor, None]:
        row, there = x
        new = fold.function(carry, row)
        return (new if there is None else chosen(there, new, carry)), None

    result: Tensor = scan(step, start, (rows, mask))[0]
    return result


def require_static(fold: Fold, rows: Tensor) -> None:
    """Raises ShapeError where the number of steps is not known."""
    if not is_static(rows.shape[0]):
        raise located(ShapeError(f"{fold.name}: a fold along an axis of symbolic extent {rows.shape[0]}: leave the axis out of jit's dynamic"))


# --- running results -------------------------------------------------------------------------------------------------


def accumulate(fold: Fold, x: Any, axis: Any, dtype: Any) -> Tensor:
    """See :meth:`~hologram.numpy.ufuncs.ufunc.ufunc.accumulate`."""
    what = f"{fold.name}.accumulate"
    t, name = operand(fold, x, dtype, "accumulate")
    if t.ndim == 0:
        raise located(ShapeError(f"{what} takes at least one axis"))
    a = axis_of(axis, t.ndim, what)
    d = t._aval()[1]
    direct = None if d.is_complex and name not in _WIDENING else _SCANS.get(name)
    if direct is not None:
        options = {"dtype": t.dtype} if name in _WIDENING else {}
        return direct(t, a, **options)
    rows = moveaxis(t, a, 0)
    require_static(fold, rows)
    return t if rows.shape[0] < 2 else moveaxis(_running(fold, rows), 0, a)


def _running(fold: Fold, rows: Tensor) -> Tensor:
    def step(carry: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        new = fold.function(carry, row)
        return new, new

    return concat([rows[:1], scan(step, rows[0], rows[1:])[1]])
