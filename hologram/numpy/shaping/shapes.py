"""Shapes and axes: reshapes, permutations and broadcasts, which are views where they can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram.errors import ShapeError
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, prod
from hologram.numpy.arguments import array, as_tensor, axes_of, axis_of, extent, permuted, reshaped, wrap
from hologram.numpy.creation import broadcast_common
from hologram.numpy.indexing.views import is_contiguous, is_reshaped_in_place, viewed
from hologram.support.user_lines import located
from hologram.trace.checks import choice, has_items, items, shape_of
from hologram.trace.operators import broadcast_node, broadcast_shapes
from hologram.trace.tensor import Tensor

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes_", "broadcast_to", "expand_dims", "matrix_transpose",
    "moveaxis", "ndim", "permute_dims", "ravel", "reshape", "rollaxis", "squeeze", "swapaxes", "transpose",
]  # fmt: skip


def _is_fortran(order: Any, what: str) -> bool:
    """Whether elements are read with the first index changing fastest. ``A`` and ``K`` follow the order in memory, which of Tensors is that of C."""
    return choice("C" if order is None else order, what, "order", ("C", "F", "A", "K")) == "F"


def reshape(x: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Tensor:
    """The elements in another shape, read and placed in C order, or in Fortran's, the first index changing fastest, for ``order="F"``.

    One extent may be -1: it follows from the others. The result is a view where it can be one, unless ``copy``. Raises ShapeError where the
    numbers of elements differ, or ``copy`` is False and a copy is needed, ArgumentError for another order.

    >>> hnp.reshape([1, 2, 3, 4, 5, 6], (2, -1))
    Tensor([[1, 2, 3],
            [4, 5, 6]], dtype=int64)
    >>> hnp.reshape([1, 2, 3, 4, 5, 6], (2, -1), order="F")
    Tensor([[1, 3, 5],
            [2, 4, 6]], dtype=int64)
    """
    wanted = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if order != "C" and _is_fortran(order, "reshape"):
        return transpose(reshape(transpose(as_tensor(x, "reshape")), wanted[::-1], copy=copy))
    node = array(x, "reshape")
    unknown = [i for i, n in enumerate(wanted) if isinstance(n, (int, np.integer)) and n == -1]
    if len(unknown) > 1:
        raise located(ShapeError(f"reshape: more than one -1 in {wanted}"))
    if unknown:
        rest: Any = prod(extent(n, "reshape") for i, n in enumerate(wanted) if i != unknown[0])
        size: Any = prod(node.shape)
        if rest == 0 or size % rest != 0:
            raise located(ShapeError(f"reshape: {list(node.shape)} does not divide into {wanted}"))
        wanted[unknown[0]] = size // rest
    target = shape_of(wanted, "reshape")
    new = reshaped(node, target)
    in_place = is_reshaped_in_place(x, target)
    if copy is False and not in_place:
        raise located(
            ShapeError(f"reshape: {list(node.shape)} to {list(target)} needs a copy of what is no contiguous view, which copy=False forbids")
        )
    return viewed(x, node, new) if in_place and not copy else wrap(new)


def ravel(x: Any, /, order: str = "C") -> Tensor:
    """Flattens to one axis, in C order, or in Fortran's for ``order="F"``: a view where the elements lie so, else a copy.

    Raises ArgumentError for another order.

    >>> hnp.ravel([[1, 2], [3, 4]]), hnp.ravel([[1, 2], [3, 4]], order="F")
    (Tensor([1, 2, 3, 4], dtype=int64), Tensor([1, 3, 2, 4], dtype=int64))
    """
    if order != "C" and _is_fortran(order, "ravel"):
        return ravel(transpose(as_tensor(x, "ravel")))
    node = array(x, "ravel")
    new = reshaped(node, (prod(node.shape),))
    return viewed(x, node, new) if is_contiguous(x) else wrap(new)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """Permutes the axes: axis ``i`` of the result is axis ``axes[i]`` of ``x``. A view.

    Raises ShapeError where ``axes`` does not name each axis once.

    >>> hnp.permute_dims(hnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    node = array(x, "permute_dims")
    return viewed(x, node, permuted(node, permutation(axes, node.shape, "permute_dims")))


def permutation(axes: Any, shape: Sequence[Int], what: str) -> list[int]:
    """An order of all axes of a shape. Raises ShapeError for another one, which names the axes that are wrong, AxisOutOfRange for no axis."""
    order = [axis_of(a, len(shape), what) for a in items(axes, what, "axes")]
    missing, twice = [a for a in range(len(shape)) if a not in order], sorted({a for a in order if order.count(a) > 1})
    if not missing and not twice:
        return order
    wrong = [f"{', '.join(map(str, some))} {text}" for some, text in ((missing, "missing"), (twice, "more than once")) if some]
    raise located(ShapeError(f"{what}: {order} is no order of the {len(shape)} axes of shape {list(shape)}: {'; '.join(wrong)}"))


def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Tensor:
    """Reverses the axes, or puts them in the order ``axes``. A view.

    Raises ShapeError where ``axes`` does not name each axis once.

    >>> hnp.transpose([[1, 2, 3], [4, 5, 6]])
    Tensor([[1, 4],
            [2, 5],
            [3, 6]], dtype=int64)
    """
    if axes is not None:
        return permute_dims(x, axes)
    node = array(x, "transpose")
    return viewed(x, node, permuted(node, range(len(node.shape))[::-1]))


def matrix_transpose(x: Any, /) -> Tensor:
    """Transposes the matrices in the last two axes. A view.

    Raises AxisOutOfRange for fewer than two axes.

    >>> hnp.matrix_transpose(hnp.zeros((5, 2, 3))).shape
    (5, 3, 2)
    """
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    """Exchanges two axes. A view.

    >>> hnp.swapaxes(hnp.zeros((2, 3, 4)), 0, -1).shape
    (4, 3, 2)
    """
    node = array(x, "swapaxes")
    order = list(range(len(node.shape)))
    a, b = axis_of(axis1, len(order), "swapaxes"), axis_of(axis2, len(order), "swapaxes")
    order[a], order[b] = b, a
    return viewed(x, node, permuted(node, order))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """Moves axes to other positions; the rest keep their order. A view.

    ``source`` and ``destination`` are an axis each, or sequences of as many. Raises ShapeError where they do not pair.

    >>> hnp.moveaxis(hnp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    node = array(x, "moveaxis")
    n = len(node.shape)
    sources, targets = ([axis_of(a, n, "moveaxis") for a in (v if has_items(v) else (v,))] for v in (source, destination))
    if len(set(sources)) != len(sources) or len(set(targets)) != len(targets) or len(sources) != len(targets):
        raise located(ShapeError(f"moveaxis: {source} does not pair with {destination}"))
    order = [a for a in range(n) if a not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return viewed(x, node, permuted(node, order))


def squeeze(x: Any, /, axis: Any = None) -> Tensor:
    """Removes axes of extent 1: all of them, or those named. A view.

    Raises ShapeError where a named axis is longer.

    >>> hnp.squeeze(hnp.zeros((1, 3, 1))).shape
    (3,)
    >>> hnp.squeeze(hnp.zeros((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    node = array(x, "squeeze")
    axes = [i for i, n in enumerate(node.shape) if n == 1] if axis is None else axes_of(axis, len(node.shape), "squeeze")
    if any(node.shape[a] != 1 for a in axes):
        raise located(ShapeError(f"squeeze: axes {list(axes)} of shape {list(node.shape)} are not all of extent 1"))
    return viewed(x, node, reshaped(node, tuple(n for i, n in enumerate(node.shape) if i not in axes)))


def expand_dims(x: Any, /, axis: Any = 0) -> Tensor:
    """Adds axes of extent 1, at the positions ``axis`` of the result: an integer or a tuple. A view.

    >>> hnp.expand_dims([1, 2, 3], axis=0)
    Tensor([[1, 2, 3]], dtype=int64)
    """
    node = array(x, "expand_dims")
    count = len(axis) if has_items(axis) else 1
    axes = axes_of(axis, len(node.shape) + count, "expand_dims", lists=True)
    rest = iter(node.shape)
    return viewed(x, node, reshaped(node, tuple(1 if i in axes else next(rest) for i in range(len(node.shape) + count))))


def atleast_1d(*arrays: Any) -> Any:
    """At least one axis: a scalar becomes a vector of one element. A view; a tuple of views where there are several arrays.

    >>> hnp.atleast_1d(5)
    Tensor([5], dtype=int64)
    """
    return _of_each(arrays, lambda x: _with_rank(x, 1, "atleast_1d"))


def atleast_2d(*arrays: Any) -> Any:
    """At least two axes: a vector becomes a row. A view; a tuple of views where there are several arrays.

    >>> hnp.atleast_2d([1, 2])
    Tensor([[1, 2]], dtype=int64)
    """
    return _of_each(arrays, lambda x: _with_rank(x, 2, "atleast_2d"))


def atleast_3d(*arrays: Any) -> Any:
    """At least three axes: a vector (n,) becomes (1, n, 1), a matrix (m, n) becomes (m, n, 1). A view; a tuple of views of several arrays.

    >>> hnp.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """

    def view(x: Any) -> Tensor:
        row = _with_rank(x, 2, "atleast_3d")
        return row if row.ndim > 2 else expand_dims(row, -1)

    return _of_each(arrays, view)


def _with_rank(x: Any, rank: int, what: str) -> Tensor:
    """``x`` with axes of extent 1 before its own, ``rank`` in all."""
    node = array(x, what)
    return viewed(x, node, node if len(node.shape) >= rank else reshaped(node, (*(1,) * (rank - len(node.shape)), *node.shape)))


def _of_each(arrays: tuple[Any, ...], view: Callable[[Any], Tensor]) -> Any:
    """The view of one array, or the tuple of the views of several."""
    return view(arrays[0]) if len(arrays) == 1 else tuple([view(x) for x in arrays])


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """Stretches ``x`` to ``shape``: a read-only view that occupies no memory of its own.

    Raises ShapeError where ``x`` does not broadcast to ``shape``.

    >>> hnp.broadcast_to([1, 2], (2, 2))
    Tensor([[1, 2],
            [1, 2]], dtype=int64)
    """
    node, target = array(x, "broadcast_to"), shape_of(shape, "broadcast_to")
    if broadcast_shapes("broadcast_to", [node.shape, target]) != target:
        raise located(ShapeError(f"broadcast_to: {list(node.shape)} does not stretch to {list(target)}"))
    return viewed(x, node, broadcast_node(node, target), why=_STRETCHED)


_STRETCHED = "broadcasting gives several elements one place: copy it first, or assign to what was broadcast"


def broadcast_arrays(*arrays: Any) -> tuple[Tensor, ...]:
    """Stretches arrays to their common shape: a tuple of views, read-only where elements repeat.

    Raises ShapeError where the shapes do not broadcast.

    >>> [a.shape for a in hnp.broadcast_arrays([[1], [2]], [1, 2, 3])]
    [(2, 3), (2, 3)]
    """
    nodes = [array(x, "broadcast_arrays") for x in arrays]
    wide = broadcast_common(nodes, "broadcast_arrays")
    return tuple([viewed(x, n, w, why="" if n is w else _STRETCHED) for x, n, w in zip(arrays, nodes, wide, strict=True)])


def broadcast_shapes_(*shapes: Any) -> Shape:
    """The common shape of arrays of these shapes, a tuple. Raises ShapeError where there is none.

    >>> hnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return broadcast_shapes("broadcast_shapes", [shape_of(s, "broadcast_shapes") for s in shapes])


def ndim(x: Any) -> int:
    """Number of axes.

    >>> hnp.ndim([[1, 2], [3, 4]])
    2
    """
    return as_tensor(x, "ndim").ndim


def rollaxis(x: Any, axis: int, start: int = 0) -> Tensor:
    """Moves ``axis`` before the axis ``start``; the rest keep their order. A view.

    >>> hnp.rollaxis(hnp.zeros((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    t = x if type(x) is Tensor else as_tensor(x, "rollaxis")
    a = axis_of(axis, t.ndim, "rollaxis")
    to = t.ndim if start == t.ndim else axis_of(start, t.ndim, "rollaxis")
    return moveaxis(t, a, to - 1 if to > a else to)
