"""Functions that place elements and compute nothing."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, bounds, floordiv, is_static, mod, prod
from hologram.numpy.arguments import alike, array, axes_of, axis_of, extent, permuted, reshaped, spread, wrap
from hologram.numpy.creation import broadcast_common
from hologram.numpy.indexing.read import take_axis
from hologram.numpy.indexing.slices import sliced
from hologram.numpy.indexing.views import element, is_contiguous, is_reshaped_in_place, viewed
from hologram.primitives.indexing import gather
from hologram.primitives.movement import concatenate as concatenate_row
from hologram.primitives.movement import pad as pad_row
from hologram.support.user_lines import located
from hologram.trace.checks import has_items, integer, items, shape_of
from hologram.trace.decisions import decided, least, most
from hologram.trace.operators import broadcast_node, broadcast_shapes, extent_node
from hologram.trace.recorder import cast_node, constant, plain, record
from hologram.trace.tensor import Tensor

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes_", "broadcast_to", "column_stack",
    "concat", "concatenate", "diagonal", "diff", "dstack", "expand_dims", "flip", "fliplr", "flipud", "hstack", "matrix_transpose", "moveaxis", "pad",
    "permute_dims", "ravel", "repeat", "reshape", "roll", "rot90", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack", "vstack",
]  # fmt: skip


# --- shapes and axes -------------------------------------------------------------------------------------------------


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The elements in another shape, in C order.

    One extent may be -1: it follows from the others. The result is a view where it can be one, unless ``copy``. Raises ShapeError where the
    numbers of elements differ, or ``copy`` is False and a copy is needed.

    >>> hnp.reshape([1, 2, 3, 4, 5, 6], (2, -1))
    Tensor([[1, 2, 3],
            [4, 5, 6]], dtype=int64)
    """
    node = array(x, "reshape")
    wanted = list(shape) if isinstance(shape, (tuple, list)) else [shape]
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


def ravel(x: Any, /) -> Tensor:
    """Flattens to one axis, in C order: a view where the elements lie so, else a copy.

    >>> hnp.ravel([[1, 2], [3, 4]])
    Tensor([1, 2, 3, 4], dtype=int64)
    """
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
    order = [axis_of(a, len(node.shape), "permute_dims") for a in items(axes, "permute_dims", "axes")]
    if sorted(order) != list(range(len(node.shape))):
        raise located(ShapeError(f"permute_dims: {order} does not permute the axes of shape {list(node.shape)}"))
    return viewed(x, node, permuted(node, order))


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
    sources, targets = ([axis_of(a, n, "moveaxis") for a in (v if isinstance(v, (tuple, list)) else (v,))] for v in (source, destination))
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
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = axes_of(axis, len(node.shape) + count, "expand_dims")
    rest = iter(node.shape)
    return viewed(x, node, reshaped(node, tuple(1 if i in axes else next(rest) for i in range(len(node.shape) + count))))


def atleast_1d(x: Any, /) -> Tensor:
    """At least one axis: a scalar becomes a vector of one element. A view. Takes one array, where NumPy takes several.

    >>> hnp.atleast_1d(5)
    Tensor([5], dtype=int64)
    """
    node = array(x, "atleast_1d")
    return viewed(x, node, node if node.shape else reshaped(node, (1,)))


def atleast_2d(x: Any, /) -> Tensor:
    """At least two axes: a vector becomes a row. A view. Takes one array, where NumPy takes several.

    >>> hnp.atleast_2d([1, 2])
    Tensor([[1, 2]], dtype=int64)
    """
    node = array(x, "atleast_2d")
    return viewed(x, node, node if len(node.shape) > 1 else reshaped(node, (1, *(node.shape or (1,)))))


def atleast_3d(x: Any, /) -> Tensor:
    """At least three axes: a vector (n,) becomes (1, n, 1), a matrix (m, n) becomes (m, n, 1). A view.

    >>> hnp.atleast_3d([1, 2]).shape
    (1, 2, 1)
    """
    x = atleast_2d(x) if len(array(x, "atleast_3d").shape) != 1 else expand_dims(x, 0)
    return x if x.ndim > 2 else expand_dims(x, -1)


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


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    """Stretches arrays to their common shape: a list of views, read-only where elements repeat.

    Raises ShapeError where the shapes do not broadcast.

    >>> [a.shape for a in hnp.broadcast_arrays([[1], [2]], [1, 2, 3])]
    [(2, 3), (2, 3)]
    """
    nodes = [array(x, "broadcast_arrays") for x in arrays]
    wide = broadcast_common(nodes, "broadcast_arrays")
    return [viewed(x, n, w, why="" if n is w else _STRETCHED) for x, n, w in zip(arrays, nodes, wide, strict=True)]


def broadcast_shapes_(*shapes: Any) -> Shape:
    """The common shape of arrays of these shapes, a tuple. Raises ShapeError where there is none.

    >>> hnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return broadcast_shapes("broadcast_shapes", [shape_of(s, "broadcast_shapes") for s in shapes])


# --- joining and splitting -------------------------------------------------------------------------------------------


def _common(arrays: Any, what: str) -> list[Node]:
    if not (given := items(arrays, what)):
        raise located(ShapeError(f"{what}: no arrays"))
    return alike(given, what)


def _joined(nodes: Sequence[Node], axis: int) -> Node:
    return nodes[0] if len(nodes) == 1 else record(concatenate_row, tuple(nodes), (axis,))


def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    """Joins arrays along an existing axis; for ``axis`` None they are flattened first.

    The other extents agree; the result has the arrays' common type. Raises ShapeError where extents differ, or for no arrays.

    >>> hnp.concat([[1, 2], [3.5]])
    Tensor([1. , 2. , 3.5], dtype=float32)
    >>> hnp.concat([[[1, 2]], [[3, 4]]], axis=1)
    Tensor([[1, 2, 3, 4]], dtype=int64)
    """
    nodes = _common(arrays, "concat")
    if axis is None:
        nodes, axis = [reshaped(x, (prod(x.shape),)) for x in nodes], 0
    return wrap(_joined(nodes, axis_of(axis, len(nodes[0].shape), "concat")))


def concatenate(arrays: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    """Joins arrays along an existing axis: NumPy's name of :func:`concat`.

    >>> hnp.concatenate([[1, 2], [3]])
    Tensor([1, 2, 3], dtype=int64)
    """
    return concat(arrays, axis=axis)


def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """Joins ``values`` to the end of ``x`` along ``axis``; both are flattened for None.

    The result is new, in the common type. Raises ShapeError where extents other than ``axis`` differ.

    >>> hnp.append([1, 2], [3, 4])
    Tensor([1, 2, 3, 4], dtype=int64)
    """
    return concat((x, values), axis=axis)


def stack(arrays: Sequence[Any], /, axis: int = 0) -> Tensor:
    """Joins arrays of one shape along a new axis, at the position ``axis`` of the result.

    The result has their common type. Raises ShapeError where the shapes differ, or for no arrays.

    >>> hnp.stack([[1, 2], [3, 4]], axis=1)
    Tensor([[1, 3],
            [2, 4]], dtype=int64)
    """
    nodes = _common(arrays, "stack")
    shape = nodes[0].shape
    if any(x.shape != shape for x in nodes):
        raise located(ShapeError(f"stack: shapes {', '.join(str(list(x.shape)) for x in nodes)} differ"))
    a = axis_of(axis, len(shape) + 1, "stack")
    return wrap(_joined([reshaped(x, (*shape[:a], 1, *shape[a:])) for x in nodes], a))


def vstack(arrays: Sequence[Any]) -> Tensor:
    """Joins arrays as rows, along the first axis; vectors are rows.

    >>> hnp.vstack([[1, 2], [3, 4]])
    Tensor([[1, 2],
            [3, 4]], dtype=int64)
    """
    return concat([atleast_2d(x) for x in items(arrays, "vstack")], axis=0)


def hstack(arrays: Sequence[Any]) -> Tensor:
    """Joins arrays along the second axis; vectors one after the other.

    >>> hnp.hstack([[1, 2], [3]])
    Tensor([1, 2, 3], dtype=int64)
    >>> hnp.hstack([[[1], [2]], [[3], [4]]])
    Tensor([[1, 3],
            [2, 4]], dtype=int64)
    """
    parts = [atleast_1d(x) for x in items(arrays, "hstack")]
    return concat(parts, axis=0 if parts and parts[0].ndim == 1 else 1)


def dstack(arrays: Sequence[Any]) -> Tensor:
    """Joins arrays along the third axis, which :func:`atleast_3d` gives those without one.

    >>> hnp.dstack([[1, 2], [3, 4]]).shape
    (1, 2, 2)
    """
    return concat([atleast_3d(x) for x in items(arrays, "dstack")], axis=2)


def column_stack(arrays: Sequence[Any]) -> Tensor:
    """Joins vectors, and matrices of as many rows, as columns of a matrix.

    >>> hnp.column_stack([[1, 2], [3, 4]])
    Tensor([[1, 3],
            [2, 4]], dtype=int64)
    """
    return concat([expand_dims(x, 1) if array(x, "column_stack").ndim == 1 else x for x in items(arrays, "column_stack")], axis=1)


def unstack(x: Any, /, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits ``x`` into its slices along ``axis``: a tuple of views without that axis.

    >>> hnp.unstack([[1, 2], [3, 4]])
    (Tensor([1, 2], dtype=int64), Tensor([3, 4], dtype=int64))
    """
    node = array(x, "unstack")
    a = axis_of(axis, len(node.shape), "unstack")
    rest = (*node.shape[:a], *node.shape[a + 1 :])
    parts = [reshaped(sliced(node, a, i, i + 1), rest) for i in range(operator.index(node.shape[a]))]
    return tuple(viewed(x, node, part) if rest else element(part) for part in parts)


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
        longer = next(r for r in range(parts) if r == parts - 1 or decided(r - mod(n, parts)))
        cuts = [i * floordiv(n, parts) + min(i, longer) for i in range(parts + 1)]
    return [viewed(x, node, sliced(node, a, low, most(low, high))) for low, high in zip(cuts, cuts[1:], strict=False)]


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


# --- reordering and repeating ----------------------------------------------------------------------------------------


def flip(x: Any, /, axis: Any = None) -> Tensor:
    """Reverses the order along ``axis``, an integer or a tuple; along all axes for None. A view.

    >>> hnp.flip([[1, 2], [3, 4]], axis=1)
    Tensor([[2, 1],
            [4, 3]], dtype=int64)
    """
    node = flipped = array(x, "flip")
    for a in axes_of(axis, len(node.shape), "flip"):
        flipped = sliced(flipped, a, node.shape[a] - 1, -1, -1)
    return viewed(x, node, flipped)


def flipud(x: Any, /) -> Tensor:
    """Reverses the order of the rows, the first axis. A view.

    >>> hnp.flipud([[1, 2], [3, 4]])
    Tensor([[3, 4],
            [1, 2]], dtype=int64)
    """
    return flip(x, axis=0)


def fliplr(x: Any, /) -> Tensor:
    """Reverses the order of the columns, the second axis. A view. Raises AxisOutOfRange for a vector.

    >>> hnp.fliplr([[1, 2], [3, 4]])
    Tensor([[2, 1],
            [4, 3]], dtype=int64)
    """
    return flip(x, axis=1)


def rot90(x: Any, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """Rotates by ``k`` quarter turns, from the first of ``axes`` towards the second. A view.

    Raises ArgumentError unless ``axes`` are two.

    >>> hnp.rot90([[1, 2], [3, 4]])
    Tensor([[2, 4],
            [1, 3]], dtype=int64)
    """
    if len(pair := items(axes, "rot90", "axes")) != 2:
        raise located(ArgumentError(f"rot90 takes two axes, not {len(pair)}"))
    a, b = pair
    k = integer(k, "rot90", "a number of turns") % 4
    if k == 2:
        return flip(flip(x, axis=a), axis=b)
    if k == 0:
        return flip(x, axis=())
    return swapaxes(flip(x, axis=b), a, b) if k == 1 else flip(swapaxes(x, a, b), axis=b)


def _rolled(node: Node, shift: Int, axis: int) -> Node:
    n = node.shape[axis]
    if n == 0:
        return node
    if isinstance(n, int) and isinstance(shift, int):
        cut: Int = -shift % n
    else:
        cut = n - shift if (bounds(shift)[0] or 0) > 0 else -shift
    if cut == 0:
        return node
    return _joined([sliced(node, axis, cut, n), sliced(node, axis, 0, cut)], axis)


def _rolled_by(node: Node, shift: Tensor, axis: int) -> Node:
    """As :func:`_rolled`, for a computed shift: the window of two copies that begins at the element that comes first."""
    by = array(shift, "roll")
    if by.shape or not by.dtype.is_integer:
        raise located(ArgumentError(f"roll: a shift is an integer, not {by.dtype}{list(by.shape)}"))
    n = node.shape[axis]
    if n == 0:
        return node
    first = -wrap(cast_node(by, dtypes.int64)) % wrap(extent_node(n, dtypes.int64))
    return record(gather, (_joined([node, node], axis), array(first, "roll")), ((axis,), (n,), 0))


def _rolled_along(node: Node, shift: Any, axis: int) -> Node:
    if type(shift) is Tensor:
        return _rolled_by(node, shift, axis)
    low, high = bounds(shift) if isinstance(shift, Expr) else (None, None)
    if (low is not None and low > 0) or (high is not None and high <= 0):  # a symbolic shift whose sign is known
        return _rolled(node, plain(shift), axis)
    return _rolled(node, integer(shift, "roll", "a shift"), axis)


def roll(x: Any, /, shift: Any, axis: Any = None) -> Tensor:
    """Shifts elements along ``axis`` by ``shift`` places; what leaves at one end comes in at the other.

    ``axis`` may be a tuple, and ``shift`` too; for None the elements are shifted as if flattened. A shift may be computed, a scalar Tensor. The
    result, of the shape of ``x``, is new. Raises ShapeError where the numbers of shifts and axes differ.

    >>> hnp.roll([1, 2, 3, 4], 1)
    Tensor([4, 1, 2, 3], dtype=int64)
    >>> hnp.roll([[1, 2], [3, 4]], 1, axis=1)
    Tensor([[2, 1],
            [4, 3]], dtype=int64)
    """
    node = array(x, "roll")
    if axis is None:
        return wrap(reshaped(_rolled_along(reshaped(node, (prod(node.shape),)), shift, 0), node.shape))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise located(ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes"))
    for s, a in zip(shifts, axes, strict=True):
        node = _rolled_along(node, s, axis_of(a, len(node.shape), "roll"))
    return wrap(node)


def repeat(x: Any, repeats: Any, /, axis: int | None = None) -> Tensor:
    """Repeats each element along ``axis``, or of ``x`` flattened for None.

    ``repeats`` is a number, or one for each element, whose values must be known. Raises ArgumentError for anything else.

    >>> hnp.repeat([1, 2], 2)
    Tensor([1, 1, 2, 2], dtype=int64)
    >>> hnp.repeat([1, 2], [1, 3])
    Tensor([1, 2, 2, 2], dtype=int64)
    """
    node = array(x, "repeat")
    if axis is None:
        node, axis = reshaped(node, (prod(node.shape),)), 0
    a = axis_of(axis, len(node.shape), "repeat")
    shape = node.shape
    if isinstance(repeats, (int, np.integer)):
        wide = spread(node, (*shape[: a + 1], extent(repeats, "repeat"), *shape[a + 1 :]), [i for i in range(len(shape) + 1) if i != a + 1])
        return wrap(reshaped(wide, (*shape[:a], shape[a] * int(repeats), *shape[a + 1 :])))
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iu" or counts.ndim > 1:
        raise located(ArgumentError("repeat: repeats are an integer, or one for each element"))
    return wrap(take_axis(node, np.repeat(np.arange(operator.index(shape[a])), counts), a, "repeat"))


def tile(x: Any, repetitions: Any, /) -> Tensor:
    """Repeats the whole array along each axis, as many times as ``repetitions`` says: a number or a sequence.

    >>> hnp.tile([1, 2], 2)
    Tensor([1, 2, 1, 2], dtype=int64)
    >>> hnp.tile([1, 2], (2, 1))
    Tensor([[1, 2],
            [1, 2]], dtype=int64)
    """
    node = array(x, "tile")
    times: list[Any] = list(shape_of(repetitions, "tile"))
    shape: list[Any] = [1] * (len(times) - len(node.shape)) + list(node.shape)
    times = [1] * (len(shape) - len(times)) + times
    wide = [n for pair in zip(times, shape, strict=True) for n in pair]
    stretched = spread(reshaped(node, tuple(shape)), tuple(wide), range(1, len(wide), 2))
    return wrap(reshaped(stretched, tuple(t * n for t, n in zip(times, shape, strict=True))))


def _widths(widths: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(widths, (int, np.integer)):
        return [(int(widths), int(widths))] * ndim
    pairs = [tuple(w) if isinstance(w, (tuple, list, np.ndarray)) else w for w in items(widths, "pad", "widths")]
    if len(pairs) == 2 and all(isinstance(w, (int, np.integer)) for w in pairs):
        pairs = [tuple(pairs)]
    if not all(isinstance(w, tuple) and len(w) in (1, 2) for w in pairs):
        raise located(ArgumentError(f"pad: widths {widths}: a number, a pair of them, or a pair for each axis"))
    pairs = [(integer(w[0], "pad", "a width"), integer(w[-1], "pad", "a width")) for w in pairs]
    if len(pairs) not in (1, ndim) or any(w < 0 for p in pairs for w in p):
        raise located(ShapeError(f"pad: widths {widths} for {ndim} axes"))
    return pairs * ndim if len(pairs) == 1 else pairs


def _fills(values: Any, dtype: DType, ndim: int) -> list[tuple[Node, Node]]:
    """The scalars before and after each axis that ``values`` names, as NumPy takes them: one for all, a pair for every axis, or a pair (or one number
    in a sequence) for each. Raises ShapeError for other shapes."""
    if isinstance(values, (list, tuple)) and not any(isinstance(v, Tensor) for v in _leaves(values)):
        given: Any = np.array(values, dtype=object)  # Python numbers keep their values until their type is known
        pick = lambda i: constant(given[i], dtype)  # noqa: E731
    elif isinstance(values, (list, tuple, Tensor, np.ndarray)):
        given = wrap(cast_node(array(values, "pad"), dtype))
        pick = lambda i: array(given[i], "pad")  # noqa: E731
    else:
        return [(constant(values, dtype),) * 2] * ndim
    try:
        fits = np.broadcast_shapes(given.shape, (ndim, 2)) == (ndim, 2)
    except ValueError:
        fits = False
    if not fits:
        what = f"constant_values of shape {list(given.shape)} for {ndim} axes"
        raise located(ShapeError(f"pad: {what}: a number, a pair of them, or a pair for each axis"))

    def at(axis: int, side: int) -> Node:
        last = (axis, side)[2 - given.ndim :]
        return pick(tuple(0 if n == 1 else i for i, n in zip(last, given.shape, strict=True)))

    return [(at(axis, 0), at(axis, 1)) for axis in range(ndim)]


def _leaves(values: Any) -> Iterator[Any]:
    for v in values:
        if isinstance(v, (list, tuple)):
            yield from _leaves(v)
        else:
            yield v


def _filled(node: Node, widths: list[tuple[int, int]], fills: list[tuple[Node, Node]]) -> Node:
    """Borders of constants, axis after axis: those of the last one have the corners."""
    if all(x is fills[0][0] for pair in fills for x in pair):
        return record(pad_row, (node, fills[0][0]), (tuple(w[0] for w in widths), tuple(w[1] for w in widths)))
    nothing = (0,) * len(widths)
    for axis, (width, fill) in enumerate(zip(widths, fills, strict=True)):
        for side in (0, 1):
            only = tuple(width[side] if i == axis else 0 for i in range(len(widths)))
            if width[side]:
                node = record(pad_row, (node, fill[side]), (only, nothing) if side == 0 else (nothing, only))
    return node


def pad(x: Any, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Tensor:
    """Adds borders around an array.

    ``pad_width`` is a number, a pair (before, after), or a pair for each axis. ``mode``: ``constant``, ``edge``, ``reflect`` (without the edge
    itself), ``symmetric`` (with it), ``wrap``. ``constant_values`` is given as the widths are. Raises ArgumentError for another mode, ShapeError
    for negative widths, widths of another number of axes, and for more elements than a mode reaches.

    >>> hnp.pad([1, 2, 3], (1, 2))
    Tensor([0, 1, 2, 3, 0, 0], dtype=int64)
    >>> hnp.pad([1, 2, 3], 2, mode="reflect")
    Tensor([3, 2, 1, 2, 3, 2, 1], dtype=int64)
    """
    node = array(x, "pad")
    widths = _widths(pad_width, len(node.shape))
    if mode == "constant":
        return wrap(_filled(node, widths, _fills(constant_values, node.dtype, len(widths))) if widths else node)
    if mode not in _BORDERS:
        raise located(ArgumentError(f"pad: mode is constant, {', '.join(_BORDERS)}; not {mode!r}"))
    for axis, (low, high) in enumerate(widths):
        if low or high:
            node = _bordered(node, axis, low, high, mode)
    return wrap(node)


_BORDERS = ("edge", "reflect", "symmetric", "wrap")


def _bordered(node: Node, axis: int, low: int, high: int, mode: str) -> Node:
    n = node.shape[axis]
    if mode == "edge":
        ends = sliced(node, axis, 0, 1), sliced(node, axis, n - 1, n)
        parts = [_repeated(ends[0], axis, low), node, _repeated(ends[1], axis, high)]
    elif mode == "wrap":
        _require_reach(n, max(low, high), mode)
        parts = [sliced(node, axis, n - low, n), node, sliced(node, axis, 0, high)]
    else:
        skip = 1 if mode == "reflect" else 0
        _require_reach(n - skip, max(low, high), mode)
        parts = [sliced(node, axis, low - 1 + skip, skip - 1, -1), node, sliced(node, axis, n - 1 - skip, n - 1 - skip - high, -1)]
    return _joined([p for p, width in zip(parts, (low, 1, high), strict=True) if width], axis)


def _require_reach(available: Int, width: int, mode: str) -> None:
    if isinstance(available, int) and width > available:
        raise located(ShapeError(f"pad: mode {mode} reaches {available} elements, not {width}"))


def _repeated(node: Node, axis: int, times: int) -> Node:
    """``node``, whose ``axis`` has extent 1, stretched along it."""
    shape = (*node.shape[:axis], times, *node.shape[axis + 1 :])
    return spread(node, shape, range(len(shape)))


def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along ``axis``, taken ``n`` times.

    The extent shrinks by ``n``. ``prepend`` and ``append`` are put at the ends first: numbers, or arrays. Of bool whether neighbours differ.

    >>> hnp.diff([1, 4, 9, 16])
    Tensor([3, 5, 7], dtype=int64)
    >>> hnp.diff([1, 4, 9, 16], n=2)
    Tensor([2, 2], dtype=int64)
    """
    node = array(x, "diff")
    a = axis_of(axis, len(node.shape), "diff")
    if n == 0 and prepend is None and append is None:
        return viewed(x, node, node)
    result = concat([_at_end(p, node, a) for p in (prepend, node, append) if p is not None], axis=a)
    for _ in range(integer(n, "diff", "a number of times")):
        current = array(result, "diff")
        length = current.shape[a]
        if length == 0:
            break
        after, before = wrap(sliced(current, a, 1, length)), wrap(sliced(current, a, 0, length - 1))
        result = after != before if current.dtype is dtypes.bool_ else after - before
    return result


def _at_end(part: Any, node: Node, axis: int) -> Tensor:
    """What goes before or after ``node`` along ``axis``; a number stands for one element everywhere."""
    if part is node:
        return wrap(node)
    t = wrap(alike((part, wrap(node)), "diff")[0])
    return t if t.ndim else broadcast_to(t, (*node.shape[:axis], 1, *node.shape[axis + 1 :]))


def diagonal(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The diagonals of matrices, as the last axis: a read-only view.

    The matrices' rows lie along ``axis1``, their columns along ``axis2``; a positive ``offset`` is above the main diagonal. Raises ShapeError for
    fewer than two axes, ArgumentError for one axis named twice.

    >>> hnp.diagonal([[1, 2, 3], [4, 5, 6]])
    Tensor([1, 5], dtype=int64)
    >>> hnp.diagonal([[1, 2, 3], [4, 5, 6]], offset=1)
    Tensor([2, 6], dtype=int64)
    """
    node = array(x, "diagonal")
    ndim = len(node.shape)
    if ndim < 2:
        raise located(ShapeError(f"diagonal takes at least two axes, not shape {list(node.shape)}"))
    down, across = axis_of(axis1, ndim, "diagonal"), axis_of(axis2, ndim, "diagonal")
    if down == across:
        raise located(ArgumentError(f"diagonal takes two axes, not {down} twice"))
    last = permuted(node, [*(i for i in range(ndim) if i not in (down, across)), down, across])
    offset = integer(offset, "diagonal", "an offset")
    found = _diagonal_of(last, offset) if all(map(is_static, last.shape[-2:])) else _symbolic_diagonal_of(last, offset)
    return viewed(x, node, found, why="diagonal gives a read-only view, as NumPy's: assign by indices, x[i, i] = v, or copy it first")


def _diagonal_of(matrices: Node, offset: int) -> Node:
    rows, columns = (operator.index(n) for n in matrices.shape[-2:])
    first = offset if offset >= 0 else -offset * columns
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    flat = reshaped(matrices, (*matrices.shape[:-2], rows * columns))
    axis = len(flat.shape) - 1
    end = first + (length - 1) * (columns + 1) + 1
    return sliced(flat, axis, first, end, columns + 1) if length else sliced(flat, axis, 0, 0)


def _symbolic_diagonal_of(matrices: Node, offset: int) -> Node:
    """The first column of rows that are longer by one than the matrices': the step of a slice is a number."""
    *stack, rows, columns = matrices.shape
    axis = len(stack)
    first = offset if offset >= 0 else -offset * columns
    length = least(rows, columns - offset) if offset >= 0 else least(rows + offset, columns)
    if not decided(length - 1):
        return reshaped(sliced(sliced(matrices, axis, 0, 0), axis + 1, 0, 1), (*stack, 0))
    flat = reshaped(matrices, (*stack, rows * columns))
    filled = record(pad_row, (flat, constant(0, flat.dtype)), ((0,) * (axis + 1), (*(0,) * axis, columns)))
    longer = reshaped(sliced(filled, axis, first, first + length * (columns + 1)), (*stack, length, columns + 1))
    return reshaped(sliced(longer, axis + 1, 0, 1), (*stack, length))
