"""Joining arrays along axes, and splitting them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, Int, floordiv, is_static, mod, prod
from hologram.numpy.arguments import alike, array, axis_of, element_type, reshaped, wrap
from hologram.numpy.indexing.slices import sliced
from hologram.numpy.indexing.views import element, viewed
from hologram.numpy.shaping.shapes import atleast_1d, atleast_2d, atleast_3d, expand_dims
from hologram.primitives.movement import concatenate as concatenate_row
from hologram.support.user_lines import located
from hologram.trace.checks import computed, has_items, integer, items
from hologram.trace.decisions import decided, least, most
from hologram.trace.recorder import cast_node, plain, record
from hologram.trace.replayed import replayed
from hologram.trace.tensor import Tensor

__all__ = [
    "append", "array_split", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit", "hstack", "split", "stack", "unstack",
    "vsplit", "vstack",
]  # fmt: skip


def _common(arrays: Any, what: str, dtype: Any, casting: Any) -> list[Node]:
    """Arrays in their common type, or in ``dtype``, to which ``casting`` lets each be cast."""
    if not (given := items(arrays, what)):
        raise located(ShapeError(f"{what}: no arrays"))
    if dtype is None:
        return alike(given, what)
    nodes, to = [array(x, what) for x in given], element_type(dtype)
    for node in nodes:
        if not np.can_cast(node.dtype.np, to.np, casting):
            raise located(DTypeError(f"{what} with dtype={to.name} takes no {node.dtype.name} with casting={casting!r}"))
    return [cast_node(node, to) for node in nodes]


def joined(nodes: Sequence[Node], axis: int) -> Node:
    return nodes[0] if len(nodes) == 1 else record(concatenate_row, tuple(nodes), (axis,))


@replayed(1)
def concat(arrays: Sequence[Any], /, axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Joins arrays along an existing axis; for ``axis`` None they are flattened first.

    The other extents agree; the result has the arrays' common type, or ``dtype``, to which ``casting``, one of NumPy's rules, lets them be cast.
    Raises ShapeError where extents differ, or for no arrays, DTypeError for a cast that is not allowed.

    >>> hnp.concat([[1, 2], [3.5]])
    Tensor([1. , 2. , 3.5], dtype=float32)
    >>> hnp.concat([[[1, 2]], [[3, 4]]], axis=1)
    Tensor([[1, 2, 3, 4]], dtype=int64)
    """
    nodes = _common(arrays, "concat", dtype, casting)
    if axis is None:
        nodes, axis = [reshaped(x, (prod(x.shape),)) for x in nodes], 0
    return wrap(joined(nodes, axis_of(axis, len(nodes[0].shape), "concat")))


def concatenate(arrays: Sequence[Any], /, axis: int | None = 0, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Joins arrays along an existing axis: NumPy's name of :func:`concat`.

    >>> hnp.concatenate([[1, 2], [3]])
    Tensor([1, 2, 3], dtype=int64)
    """
    return concat(arrays, axis=axis, dtype=dtype, casting=casting)


def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """Joins ``values`` to the end of ``x`` along ``axis``; both are flattened for None.

    The result is new, in the common type. Raises ShapeError where extents other than ``axis`` differ.

    >>> hnp.append([1, 2], [3, 4])
    Tensor([1, 2, 3, 4], dtype=int64)
    """
    return concat((x, values), axis=axis)


@replayed(1)
def stack(arrays: Sequence[Any], /, axis: int = 0, *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Joins arrays of one shape along a new axis, at the position ``axis`` of the result.

    The result has their common type, or ``dtype``: see :func:`concat`. Raises ShapeError where the shapes differ, or for no arrays.

    >>> hnp.stack([[1, 2], [3, 4]], axis=1)
    Tensor([[1, 3],
            [2, 4]], dtype=int64)
    """
    nodes = _common(arrays, "stack", dtype, casting)
    shape = nodes[0].shape
    if any(x.shape != shape for x in nodes):
        raise located(ShapeError(f"stack: shapes {', '.join(str(list(x.shape)) for x in nodes)} differ"))
    a = axis_of(axis, len(shape) + 1, "stack")
    return wrap(joined([reshaped(x, (*shape[:a], 1, *shape[a:])) for x in nodes], a))


def vstack(arrays: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Joins arrays as rows, along the first axis; vectors are rows.

    >>> hnp.vstack([[1, 2], [3, 4]])
    Tensor([[1, 2],
            [3, 4]], dtype=int64)
    """
    return concat([atleast_2d(x) for x in items(arrays, "vstack")], axis=0, dtype=dtype, casting=casting)


def hstack(arrays: Sequence[Any], *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Joins arrays along the second axis; vectors one after the other.

    >>> hnp.hstack([[1, 2], [3]])
    Tensor([1, 2, 3], dtype=int64)
    >>> hnp.hstack([[[1], [2]], [[3], [4]]])
    Tensor([[1, 3],
            [2, 4]], dtype=int64)
    """
    parts = [atleast_1d(x) for x in items(arrays, "hstack")]
    return concat(parts, axis=0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


def dstack(arrays: Sequence[Any]) -> Tensor:
    """Joins arrays along the third axis, which :func:`atleast_3d` gives those without one.

    >>> hnp.dstack([[1, 2], [3, 4]]).shape
    (1, 2, 2)
    """
    return concat([atleast_3d(x) for x in items(arrays, "dstack")], axis=2)


def column_stack(arrays: Sequence[Any]) -> Tensor:
    """Joins vectors, and matrices of as many rows, as columns of a matrix. A number is a column of one row.

    >>> hnp.column_stack([[1, 2], [3, 4]])
    Tensor([[1, 3],
            [2, 4]], dtype=int64)
    """
    axes = {0: (0, 1), 1: (1,)}  # that an array of so many axes lacks
    return concat([expand_dims(x, axes.get(array(x, "column_stack").ndim, ())) for x in items(arrays, "column_stack")], axis=1)


def unstack(x: Any, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits ``x`` into its slices along ``axis``: a tuple of views without that axis.

    >>> hnp.unstack([[1, 2], [3, 4]])
    (Tensor([1, 2], dtype=int64), Tensor([3, 4], dtype=int64))
    """
    node = array(x, "unstack")
    a = axis_of(axis, len(node.shape), "unstack")
    rest = (*node.shape[:a], *node.shape[a + 1 :])
    parts = [reshaped(sliced(node, a, i, i + 1), rest) for i in range(operator.index(node.shape[a]))]
    return tuple(viewed(x, node, part) if rest else element(x, node, part) for part in parts)


def array_split(x: Any, sections: Any, axis: int = 0) -> list[Tensor]:
    """Splits ``x`` along ``axis`` into parts of about equal extent, or at indices: a list of views.

    ``sections`` is the number of parts, of which the first ones are longer by one where it does not divide the extent, or a sequence of the
    indices at which to cut. Raises ArgumentError for fewer than one part.

    >>> hnp.array_split([1, 2, 3, 4, 5], 2)
    [Tensor([1, 2, 3], dtype=int64), Tensor([4, 5], dtype=int64)]
    >>> [len(part) for part in hnp.array_split([1, 2, 3, 4, 5], [1, 3])]
    [1, 2, 2]
    """
    node = array(x, "split")
    a = axis_of(axis, len(node.shape), "split")
    n = node.shape[a]
    if has_items(sections):
        indices = [plain(c) if isinstance(c, Expr) else integer(c, "split", "an index") for c in sections]
        cuts = [0, *[_clipped(c, n) for c in indices], n]
    else:
        parts = integer(sections, "split", "a number of sections")
        if parts < 1:
            raise located(ArgumentError(f"split: {parts} sections"))
        rest = mod(n, parts)
        longer: Int = rest if is_static(rest) else next(r for r in range(parts) if r == parts - 1 or decided(r - rest))
        cuts = _even_cuts(n, parts, longer)
    return [viewed(x, node, sliced(node, a, low, most(low, high))) for low, high in zip(cuts, cuts[1:], strict=False)]


def _even_cuts(n: Int, parts: int, longer: Int) -> list[Int]:
    """Where ``parts`` sections of an axis of extent ``n`` begin and end, of which the first ``longer`` are longer by one."""
    cuts: list[Int] = computed("split", parts + 1, 8, lambda: [floordiv(n, parts)] * (parts + 1))
    return [i * short + least(i, longer) for i, short in enumerate(cuts)]


def _clipped(index: Int, n: Int) -> Int:
    """An index of an axis of extent ``n`` as a slice takes it."""
    at = index if decided(index) else index + n
    return least(at, n) if decided(at) else 0


def split(x: Any, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Splits ``x`` along ``axis`` into equal parts, or at indices: a list of views.

    As :func:`array_split`, but raises ShapeError where a number of sections does not divide the extent.

    >>> hnp.split([1, 2, 3, 4], 2)
    [Tensor([1, 2], dtype=int64), Tensor([3, 4], dtype=int64)]
    """
    if not has_items(sections):
        shape, sections = array(x, "split").shape, integer(sections, "split", "a number of sections")
        n = shape[axis_of(axis, len(shape), "split")]
        if sections < 1 or not decided(-mod(n, sections)):
            raise located(ShapeError(f"split: an axis of extent {n} does not divide into {sections} equal parts"))
    return array_split(x, sections, axis)


def hsplit(x: Any, sections: int | Sequence[int]) -> list[Tensor]:
    """Splits along the second axis, or the first of a vector: :func:`split` there.

    >>> hnp.hsplit([1, 2, 3, 4], 2)
    [Tensor([1, 2], dtype=int64), Tensor([3, 4], dtype=int64)]
    """
    return split(x, sections, axis=1 if array(x, "hsplit").ndim > 1 else 0)


def vsplit(x: Any, sections: int | Sequence[int]) -> list[Tensor]:
    """Splits along the first axis: :func:`split` there. Raises AxisOutOfRange for fewer axes than two.

    >>> hnp.vsplit([[1, 2], [3, 4]], 2)
    [Tensor([[1, 2]], dtype=int64), Tensor([[3, 4]], dtype=int64)]
    """
    axis_of(1, array(x, "vsplit").ndim, "vsplit")
    return split(x, sections, axis=0)


def dsplit(x: Any, sections: int | Sequence[int]) -> list[Tensor]:
    """Splits along the third axis: :func:`split` there. Raises AxisOutOfRange for fewer axes.

    >>> [part.shape for part in hnp.dsplit(hnp.zeros((2, 2, 4)), 2)]
    [(2, 2, 2), (2, 2, 2)]
    """
    return split(x, sections, axis=2)
