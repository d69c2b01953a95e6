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
from hologram.ir.symbolic import Int, prod
from hologram.numpy.arguments import alike, array, axes_of, axis_of, extent, permuted, reshaped, spread, wrap
from hologram.numpy.creation import broadcast_common
from hologram.numpy.indexing.read import sliced, take_axis
from hologram.numpy.indexing.views import element, is_contiguous, is_reshaped_in_place, viewed
from hologram.primitives.movement import concatenate as concatenate_row
from hologram.primitives.movement import pad as pad_row
from hologram.support.user_lines import located
from hologram.trace.apply import broadcast_node, broadcast_shapes
from hologram.trace.checks import has_items, integer, items, shape_of
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.tensor import Tensor

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes_", "broadcast_to", "column_stack",
    "concat", "concatenate", "diagonal", "diff", "dstack", "expand_dims", "flip", "fliplr", "flipud", "hstack", "matrix_transpose", "moveaxis", "pad",
    "permute_dims", "ravel", "repeat", "reshape", "roll", "rot90", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack", "vstack",
]  # fmt: skip


# --- shapes and axes -------------------------------------------------------------------------------------------------


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """``x`` in another shape, C order; one extent may be -1. A view where it can be one, unless ``copy``.

    Raises ShapeError where ``copy`` is False and it cannot.
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
    """``x`` with one axis, in C order: a view where the elements lie so, else a copy."""
    node = array(x, "ravel")
    new = reshaped(node, (prod(node.shape),))
    return viewed(x, node, new) if is_contiguous(x) else wrap(new)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    node = array(x, "permute_dims")
    order = [axis_of(a, len(node.shape), "permute_dims") for a in items(axes, "permute_dims", "axes")]
    if sorted(order) != list(range(len(node.shape))):
        raise located(ShapeError(f"permute_dims: {order} does not permute the axes of shape {list(node.shape)}"))
    return viewed(x, node, permuted(node, order))


def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Tensor:
    """The axes in the order ``axes``, by default reversed."""
    if axes is not None:
        return permute_dims(x, axes)
    node = array(x, "transpose")
    return viewed(x, node, permuted(node, range(len(node.shape))[::-1]))


def matrix_transpose(x: Any, /) -> Tensor:
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Tensor:
    node = array(x, "swapaxes")
    order = list(range(len(node.shape)))
    a, b = axis_of(axis1, len(order), "swapaxes"), axis_of(axis2, len(order), "swapaxes")
    order[a], order[b] = b, a
    return viewed(x, node, permuted(node, order))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
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
    """``x`` without axes of extent 1: all of them, or those named. Raises ShapeError where a named one is longer."""
    node = array(x, "squeeze")
    axes = [i for i, n in enumerate(node.shape) if n == 1] if axis is None else axes_of(axis, len(node.shape), "squeeze")
    if any(node.shape[a] != 1 for a in axes):
        raise located(ShapeError(f"squeeze: axes {list(axes)} of shape {list(node.shape)} are not all of extent 1"))
    return viewed(x, node, reshaped(node, tuple(n for i, n in enumerate(node.shape) if i not in axes)))


def expand_dims(x: Any, /, axis: Any = 0) -> Tensor:
    """``x`` with axes of extent 1 at the places ``axis`` of the result."""
    node = array(x, "expand_dims")
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = axes_of(axis, len(node.shape) + count, "expand_dims")
    rest = iter(node.shape)
    return viewed(x, node, reshaped(node, tuple(1 if i in axes else next(rest) for i in range(len(node.shape) + count))))


def atleast_1d(x: Any, /) -> Tensor:
    node = array(x, "atleast_1d")
    return viewed(x, node, node if node.shape else reshaped(node, (1,)))


def atleast_2d(x: Any, /) -> Tensor:
    node = array(x, "atleast_2d")
    return viewed(x, node, node if len(node.shape) > 1 else reshaped(node, (1, *(node.shape or (1,)))))


def atleast_3d(x: Any, /) -> Tensor:
    x = atleast_2d(x) if len(array(x, "atleast_3d").shape) != 1 else expand_dims(x, 0)
    return x if x.ndim > 2 else expand_dims(x, -1)


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    node, target = array(x, "broadcast_to"), shape_of(shape, "broadcast_to")
    if broadcast_shapes("broadcast_to", [node.shape, target]) != target:
        raise located(ShapeError(f"broadcast_to: {list(node.shape)} does not stretch to {list(target)}"))
    return viewed(x, node, broadcast_node(node, target), why=_STRETCHED)


_STRETCHED = "broadcasting gives several elements one place: copy it first, or assign to what was broadcast"


def broadcast_arrays(*arrays: Any) -> list[Tensor]:
    nodes = [array(x, "broadcast_arrays") for x in arrays]
    wide = broadcast_common(nodes, "broadcast_arrays")
    return [viewed(x, n, w, why="" if n is w else _STRETCHED) for x, n, w in zip(arrays, nodes, wide, strict=True)]


def broadcast_shapes_(*shapes: Any) -> Shape:
    """The common shape of arrays of these shapes."""
    return broadcast_shapes("broadcast_shapes", [shape_of(s, "broadcast_shapes") for s in shapes])


# --- joining and splitting -------------------------------------------------------------------------------------------


def _common(arrays: Any, what: str) -> list[Node]:
    if not (given := items(arrays, what)):
        raise located(ShapeError(f"{what}: no arrays"))
    return alike(given, what)


def _joined(nodes: Sequence[Node], axis: int) -> Node:
    return nodes[0] if len(nodes) == 1 else record(concatenate_row, tuple(nodes), (axis,))


def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    """The arrays one after the other along ``axis``; flattened first where it is None."""
    nodes = _common(arrays, "concat")
    if axis is None:
        nodes, axis = [reshaped(x, (prod(x.shape),)) for x in nodes], 0
    return wrap(_joined(nodes, axis_of(axis, len(nodes[0].shape), "concat")))


def concatenate(arrays: Sequence[Any], /, axis: int | None = 0) -> Tensor:
    return concat(arrays, axis=axis)


def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    return concat((x, values), axis=axis)


def stack(arrays: Sequence[Any], /, axis: int = 0) -> Tensor:
    """The arrays, all of one shape, along a new axis."""
    nodes = _common(arrays, "stack")
    shape = nodes[0].shape
    if any(x.shape != shape for x in nodes):
        raise located(ShapeError(f"stack: shapes {', '.join(str(list(x.shape)) for x in nodes)} differ"))
    a = axis_of(axis, len(shape) + 1, "stack")
    return wrap(_joined([reshaped(x, (*shape[:a], 1, *shape[a:])) for x in nodes], a))


def vstack(arrays: Sequence[Any]) -> Tensor:
    return concat([atleast_2d(x) for x in items(arrays, "vstack")], axis=0)


def hstack(arrays: Sequence[Any]) -> Tensor:
    parts = [atleast_1d(x) for x in items(arrays, "hstack")]
    return concat(parts, axis=0 if parts and parts[0].ndim == 1 else 1)


def dstack(arrays: Sequence[Any]) -> Tensor:
    return concat([atleast_3d(x) for x in items(arrays, "dstack")], axis=2)


def column_stack(arrays: Sequence[Any]) -> Tensor:
    return concat([expand_dims(x, 1) if array(x, "column_stack").ndim == 1 else x for x in items(arrays, "column_stack")], axis=1)


def unstack(x: Any, /, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices of ``x`` along ``axis``, which they lack: views, or of one axis its elements."""
    node = array(x, "unstack")
    a = axis_of(axis, len(node.shape), "unstack")
    rest = (*node.shape[:a], *node.shape[a + 1 :])
    parts = [reshaped(sliced(node, a, i, i + 1), rest) for i in range(operator.index(node.shape[a]))]
    return tuple(viewed(x, node, part) if rest else element(part) for part in parts)


def array_split(x: Any, sections: Any, axis: int = 0) -> list[Tensor]:
    """Parts of ``x``, views: ``sections`` of them, as equal as can be, or cut at the given indices."""
    node = array(x, "split")
    a = axis_of(axis, len(node.shape), "split")
    n = operator.index(node.shape[a])
    if has_items(sections):
        indices = [integer(c, "split", "an index") for c in sections]
        cuts = [0, *[min(max(c + n if c < 0 else c, 0), n) for c in indices], n]
    else:
        parts = integer(sections, "split", "a number of sections")
        if parts < 1:
            raise located(ArgumentError(f"split: {parts} sections"))
        size, longer = divmod(n, parts)
        cuts = [i * size + min(i, longer) for i in range(parts + 1)]
    return [viewed(x, node, sliced(node, a, low, max(low, high))) for low, high in zip(cuts, cuts[1:], strict=False)]


def split(x: Any, sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """As :func:`array_split`, but a number of sections must divide the axis."""
    if not has_items(sections):
        shape, sections = array(x, "split").shape, integer(sections, "split", "a number of sections")
        n = shape[axis_of(axis, len(shape), "split")]
        if sections < 1 or n % sections:
            raise located(ShapeError(f"split: an axis of extent {n} does not divide into {sections} equal parts"))
    return array_split(x, sections, axis)


# --- reordering and repeating ----------------------------------------------------------------------------------------


def flip(x: Any, /, axis: Any = None) -> Tensor:
    """``x`` with the order along ``axis`` reversed; along all axes for None."""
    node = flipped = array(x, "flip")
    for a in axes_of(axis, len(node.shape), "flip"):
        flipped = sliced(flipped, a, node.shape[a] - 1, -1, -1)
    return viewed(x, node, flipped)


def flipud(x: Any, /) -> Tensor:
    return flip(x, axis=0)


def fliplr(x: Any, /) -> Tensor:
    return flip(x, axis=1)


def rot90(x: Any, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """``x`` turned by ``k`` quarter turns from the first of ``axes`` towards the second."""
    if len(pair := items(axes, "rot90", "axes")) != 2:
        raise located(ArgumentError(f"rot90 takes two axes, not {len(pair)}"))
    a, b = pair
    k = integer(k, "rot90", "a number of turns") % 4
    if k == 2:
        return flip(flip(x, axis=a), axis=b)
    if k == 0:
        return flip(x, axis=())
    return swapaxes(flip(x, axis=b), a, b) if k == 1 else flip(swapaxes(x, a, b), axis=b)


def _rolled(node: Node, shift: int, axis: int) -> Node:
    n = node.shape[axis]
    if n == 0:
        return node
    cut = -shift % n if isinstance(n, int) else (n - shift if shift > 0 else -shift)
    if cut == 0:
        return node
    return _joined([sliced(node, axis, cut, n), sliced(node, axis, 0, cut)], axis)


def roll(x: Any, /, shift: Any, axis: Any = None) -> Tensor:
    """``x`` turned round by ``shift`` along ``axis``; flattened for None."""
    node = array(x, "roll")
    if axis is None:
        return wrap(reshaped(_rolled(reshaped(node, (prod(node.shape),)), integer(shift, "roll", "a shift"), 0), node.shape))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shifts = shift if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise located(ShapeError(f"roll: {len(shifts)} shifts for {len(axes)} axes"))
    for s, a in zip(shifts, axes, strict=True):
        node = _rolled(node, integer(s, "roll", "a shift"), axis_of(a, len(node.shape), "roll"))
    return wrap(node)


def repeat(x: Any, repeats: Any, /, axis: int | None = None) -> Tensor:
    """Each element of ``axis`` (of ``x`` flattened for None) ``repeats`` times in a row: a number, or one for each element."""
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
    """``x`` laid out ``repetitions`` times along each axis."""
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
    """``x`` with borders of the given widths: a constant, the edge, the reflection (``reflect``, ``symmetric``), or wrapped round.

    ``constant_values`` may be one number, a pair for what is before and after, or a pair for each axis, as ``pad_width`` may.
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
    """The differences of neighbours along ``axis``, ``n`` times, ``prepend`` and ``append`` being put at the ends first."""
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
    """The ``offset``-th diagonals of the matrices whose rows lie along ``axis1`` and whose columns lie along ``axis2``, as the last axis."""
    node = array(x, "diagonal")
    ndim = len(node.shape)
    if ndim < 2:
        raise located(ShapeError(f"diagonal takes at least two axes, not shape {list(node.shape)}"))
    down, across = axis_of(axis1, ndim, "diagonal"), axis_of(axis2, ndim, "diagonal")
    if down == across:
        raise located(ArgumentError(f"diagonal takes two axes, not {down} twice"))
    last = permuted(node, [*(i for i in range(ndim) if i not in (down, across)), down, across])
    rows, columns = (operator.index(n) for n in last.shape[-2:])
    offset = integer(offset, "diagonal", "an offset")
    first = offset if offset >= 0 else -offset * columns
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    flat = reshaped(last, (*last.shape[:-2], rows * columns))
    axis = len(flat.shape) - 1
    end = first + (length - 1) * (columns + 1) + 1
    found = sliced(flat, axis, first, end, columns + 1) if length else sliced(flat, axis, 0, 0)
    return viewed(x, node, found, why="diagonal gives a read-only view, as NumPy's: assign by indices, x[i, i] = v, or copy it first")
