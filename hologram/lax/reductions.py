"""Reductions and scans under the names and arguments of ``jax.lax``; reductions by any associative function, over axes and over sliding windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes, tree
from hologram import numpy as hnp
from hologram.control import associative_scan
from hologram.errors import ArgumentError, DTypeError
from hologram.ir.op import Op
from hologram.lax.shapes import integers
from hologram.numpy.arguments import array, axes_of, axis_of, element_type, wrap
from hologram.primitives.reductions import REDUCED_BY
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.recorder import cast_node, record
from hologram.trace.tensor import Tensor
from hologram.transform.arguments import array_node, result_nodes
from hologram.transform.levels import Level, example_of

__all__ = [
    "argmax", "argmin", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or",
    "reduce_prod", "reduce_sum", "reduce_xor",
]  # fmt: skip

Axes = Sequence[int]


def _axes(axes: Axes, t: Tensor, what: str) -> tuple[int, ...]:
    return axes_of(tuple(integers(axes, what, "an axis")), t.ndim, what)


def reduce_sum(operand: Any, axes: Axes) -> Tensor:
    """Sum over ``axes``, in the type of ``operand``: unlike ``hologram.numpy.sum``, small integers stay small, and wrap.

    >>> hg.lax.reduce_sum(np.int8([[1, 2], [3, 4]]), (0,))
    Tensor([4, 6], dtype=int8)
    """
    t = hnp.asarray(operand)
    return hnp.sum(t, axis=_axes(axes, t, "reduce_sum"), dtype=t.dtype)


def reduce_prod(operand: Any, axes: Axes) -> Tensor:
    """Product over ``axes``, in the type of ``operand``.

    >>> hg.lax.reduce_prod([[1, 2], [3, 4]], (1,))
    Tensor([ 2, 12], dtype=int64)
    """
    t = hnp.asarray(operand)
    return hnp.prod(t, axis=_axes(axes, t, "reduce_prod"), dtype=t.dtype)


def reduce_max(operand: Any, axes: Axes) -> Tensor:
    """Largest element over ``axes``; NaN where there is one. Of no elements -inf, or the least value of the type.

    Complex numbers are ordered by real parts, among equals by imaginary ones.

    >>> hg.lax.reduce_max([[1, 2], [3, 4]], (0, 1))
    Tensor(4, dtype=int64)
    """
    return _extreme("reduce_max", MAX, operand, axes)


def reduce_min(operand: Any, axes: Axes) -> Tensor:
    """Smallest element over ``axes``; NaN where there is one. Of no elements inf, or the largest value of the type. Complex as :func:`reduce_max`.

    >>> hg.lax.reduce_min([[1, 2], [3, 4]], (0,))
    Tensor([1, 2], dtype=int64)
    """
    return _extreme("reduce_min", MIN, operand, axes)


def _extreme(what: str, monoid: Op, operand: Any, axes: Axes) -> Tensor:
    t = hnp.asarray(operand)
    along, d = _axes(axes, t, what), t._aval()[1]
    if d.kind == "c" or any(t.shape[a] == 0 for a in along):
        return reduce(t, identity_of(monoid, d), hnp.maximum if monoid is MAX else hnp.minimum, along)
    return (hnp.max if monoid is MAX else hnp.min)(t, axis=along)


def identity_of(monoid: Op, d: dtypes.DType) -> Any:
    """What ``monoid`` combines with any element of a type to that element."""
    return REDUCED_BY[monoid].identity(dtypes.real_of(d))


def reduce_and(operand: Any, axes: Axes) -> Tensor:
    """Bitwise "and" over ``axes``, of bools or integers.

    >>> hg.lax.reduce_and([[True, False], [True, True]], (0,))
    Tensor([ True, False], dtype=bool)
    """
    return _by_bits("reduce_and", operand, axes, hnp.bitwise_and)


def reduce_or(operand: Any, axes: Axes) -> Tensor:
    """Bitwise "or" over ``axes``, of bools or integers.

    >>> hg.lax.reduce_or([4, 1, 5], (0,))
    Tensor(5, dtype=int64)
    """
    return _by_bits("reduce_or", operand, axes, hnp.bitwise_or)


def reduce_xor(operand: Any, axes: Axes) -> Tensor:
    """Bitwise "exclusive or" over ``axes``, of bools or integers.

    >>> hg.lax.reduce_xor([4, 1, 7], (0,))
    Tensor(2, dtype=int64)
    """
    return _by_bits("reduce_xor", operand, axes, hnp.bitwise_xor)


def _by_bits(what: str, operand: Any, axes: Axes, function: Callable[..., Tensor]) -> Tensor:
    t = hnp.asarray(operand)
    if t._aval()[1].kind not in "biu":
        raise located(DTypeError(f"{what} takes bools and integers, not {t.dtype}"))
    empty = {"reduce_and": True if t.dtype == bool else -1}.get(what, 0)
    return reduce(t, hnp.asarray(empty).astype(t.dtype), function, axes)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Tensor:
    """Where the largest element along ``axis`` is first; the first NaN, if there is one.

    >>> hg.lax.argmax([3, 9, 9], 0, np.int32)
    Tensor(1, dtype=int32)
    """
    return hnp.argmax(operand, axis).astype(element_type(index_dtype).np)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Tensor:
    """Where the smallest element along ``axis`` is first; the first NaN, if there is one.

    >>> hg.lax.argmin([3, 1, 1], 0, np.int32)
    Tensor(1, dtype=int32)
    """
    return hnp.argmin(operand, axis).astype(element_type(index_dtype).np)


# --- scans -----------------------------------------------------------------------------------------------------------


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """Running sums along ``axis``, in the type of ``operand``; from its end with ``reverse``.

    >>> hg.lax.cumsum([1, 2, 3]), hg.lax.cumsum([1, 2, 3], reverse=True)
    (Tensor([1, 3, 6], dtype=int64), Tensor([6, 5, 3], dtype=int64))
    """
    t = hnp.asarray(operand)
    return hnp.cumsum(t, axis_of(axis, t.ndim, "cumsum"), t.dtype, reverse=reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """Running products along ``axis``, in the type of ``operand``; from its end with ``reverse``.

    >>> hg.lax.cumprod([1, 2, 3])
    Tensor([1, 2, 6], dtype=int64)
    """
    t = hnp.asarray(operand)
    return hnp.cumprod(t, axis_of(axis, t.ndim, "cumprod"), t.dtype, reverse=reverse)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """Running maxima along ``axis``; from its end with ``reverse``. Complex numbers are ordered by real parts, among equals by imaginary ones.

    >>> hg.lax.cummax([1, 3, 2])
    Tensor([1, 3, 3], dtype=int64)
    """
    t = hnp.asarray(operand)
    a = axis_of(axis, t.ndim, "cummax")
    return associative_scan(hnp.maximum, t, axis=a, reverse=reverse) if t.dtype.kind == "c" else hnp.cummax(t, a, reverse=reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """Running minima along ``axis``; from its end with ``reverse``. Complex numbers are ordered as in :func:`cummax`.

    >>> hg.lax.cummin([2, 3, 1])
    Tensor([2, 2, 1], dtype=int64)
    """
    t = hnp.asarray(operand)
    a = axis_of(axis, t.ndim, "cummin")
    return associative_scan(hnp.minimum, t, axis=a, reverse=reverse) if t.dtype.kind == "c" else hnp.cummin(t, a, reverse=reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """Running logarithms of sums of exponentials along ``axis``, without overflow; from its end with ``reverse``.

    >>> hg.lax.cumlogsumexp([0.0, 1000.0, 1000.0])
    Tensor([   0.      , 1000.      , 1000.693], dtype=float32)
    """
    t = hnp.asarray(operand)
    return associative_scan(hnp.logaddexp, t, reverse=reverse, axis=axis_of(axis, t.ndim, "cumlogsumexp"))


# --- any function ----------------------------------------------------------------------------------------------------


def reduce(operands: Any, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Axes) -> Any:
    """Fold over axes by an associative function: ``computation(a, b)`` combines elements, and ``init_values`` once with all.

    ``operands`` is an array, or a pytree of arrays of one shape, ``init_values`` scalars in the same structure, which ``computation`` takes and
    gives, elementwise. Sums, products and extremes are recognized, and computed as such. Raises ArgumentError for other structures and shapes.

    >>> hg.lax.reduce(hnp.arange(6.0).reshape(2, 3), 1.0, lambda a, b: a + b + a * b, (1,))
    Tensor([ 11., 239.], dtype=float32)
    >>> hg.lax.reduce(hnp.arange(6).reshape(2, 3), 0, hg.lax.max, (0,))
    Tensor([3, 4, 5], dtype=int64)
    """
    arrays, structure = tree.flatten(operands)
    starts = tree.flatten_up_to(structure, init_values)
    tensors = [hnp.asarray(x) for x in arrays]
    if not tensors or any(t.shape != tensors[0].shape for t in tensors) or any(hnp.ndim(s) for s in starts):
        raise located(ArgumentError(f"reduce takes arrays of one shape and scalars, not shapes {[list(t.shape) for t in tensors]}"))
    axes = _axes(dimensions, tensors[0], "reduce")
    firsts = [hnp.asarray(s).astype(t.dtype) for s, t in zip(starts, tensors, strict=True)]
    count = math.prod(tensors[0].shape[a] for a in axes)  # named, since -1 has no meaning beside an empty axis
    moved = [hnp.moveaxis(t, axes, tuple(range(len(axes)))).reshape((count, *_others(t, axes))) for t in tensors]
    return tree.unflatten(structure, folded(moved, firsts, computation, structure))


def _others(t: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(t.shape) if i not in axes)


def folded(
    rows: list[Tensor], firsts: list[Tensor], computation: Callable[[Any, Any], Any], structure: Any, there: Tensor | None = None
) -> list[Tensor]:
    """The fold of arrays over their first axes, which are of one extent; of the elements that are ``there``, None for all."""
    combined = lambda a, b: tree.leaves(computation(tree.unflatten(structure, a), tree.unflatten(structure, b)))  # noqa: E731
    spread = [hnp.broadcast_to(f, t.shape[1:]) for f, t in zip(firsts, rows, strict=True)]
    if there is not None:
        found = _folded([there, *rows], [hnp.ones((), dtype=bool), *spread], _of_those_there(combined))[1:]
        return [hnp.asarray(x).astype(t.dtype) for x, t in zip(found, rows, strict=True)]
    monoid = known_monoid(computation, rows[0]._aval()[1]) if structure is tree.LEAF else None
    if rows[0].shape[0] == 0:
        return spread
    if monoid is not None:
        node = array(rows[0], "reduce")
        rows = [wrap(record(REDUCED_BY[monoid], (node,), ((0,),)))[None]]
    return [hnp.asarray(x).astype(t.dtype) for x, t in zip(_folded(rows, spread, combined), rows, strict=True)]


def _folded(rows: list[Tensor], firsts: list[Tensor], combined: Callable[[list[Tensor], list[Tensor]], list[Tensor]]) -> list[Tensor]:
    """The fold by halves of at least one row, combined with what is first."""
    while (n := rows[0].shape[0]) > 1:
        half = n // 2
        together = combined([t[:half] for t in rows], [t[half : 2 * half] for t in rows])
        rows = [hnp.concat([c, t[2 * half :]]) if n % 2 else c for c, t in zip(together, rows, strict=True)]
    return combined(firsts, [t[0] for t in rows])


def _of_those_there(combined: Callable[[list[Tensor], list[Tensor]], list[Tensor]]) -> Callable[[list[Tensor], list[Tensor]], list[Tensor]]:
    """``combined`` for rows of which the first says whether the elements of the others count."""

    def some(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        both, left = a[0] & b[0], a[0]
        made = combined(a[1:], b[1:])
        return [a[0] | b[0], *(hnp.where(both, z, hnp.where(left, x, y)) for x, y, z in zip(a[1:], b[1:], made, strict=True))]

    return some


def known_monoid(computation: Callable[[Any, Any], Any], dtype: dtypes.DType) -> Op | None:
    """The op by which ``computation`` combines two scalars of a type, where it is one that reductions have; else None.

    It is called with scalars without values, and what it records is looked at.
    """
    with Level():
        a, b = (example_of((), dtype) for _ in range(2))
        try:
            results, structure = result_nodes(computation(wrap(a), wrap(b)), "reduce")
        except Exception:  # of values that it reads: it is called again with arrays, and raises there
            return None
    if structure is not tree.LEAF or len(results) != 1:
        return None
    op, inputs = results[0].op, results[0].inputs
    if {*inputs} != {a, b} or len(inputs) != 2 or op not in REDUCED_BY:
        return None
    return op if dtype.kind in REDUCED_BY[op].kinds else None


def as_start(x: Any, like: Tensor) -> Tensor:
    """A scalar in the type of an array."""
    node, _ = array_node(x, "reduce")
    if node.shape:
        raise located(ArgumentError(f"a reduction starts from a scalar, not from shape {list(node.shape)}"))
    return wrap(cast_node(node, like._aval()[1]))


ADD, MAX, MIN = ew.add, ew.max_, ew.min_
