"""Arrays with some elements replaced: ``x.at[i].set(v)`` and its relatives, ``x[i] = v``, ``put_along_axis``.

Nothing is written in place: the result is a new Tensor. Integers and slices become elementwise work, index arrays a scatter. Constant indices out of
range raise, unless a mode says what becomes of them; updates at computed ones are dropped. Updates of one place happen in the order of the indices,
so the last one set stays.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError, TracedValueError
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Int, prod
from hologram.numpy.arguments import array, array_as, as_tensor, reshaped, wrap
from hologram.numpy.creation import full_like
from hologram.numpy.elementwise.functions import power as _power
from hologram.numpy.elementwise.functions import where
from hologram.numpy.indexing.known_windows import KnownWindow, known_window, updated_window
from hologram.numpy.indexing.read import along_axis, read, within
from hologram.numpy.indexing.selection import Selection
from hologram.numpy.indexing.windows import Windows
from hologram.primitives import indexing as rows
from hologram.primitives.movement import slice_extent
from hologram.primitives.reductions import cumsum, reduce_max
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import choice
from hologram.trace.interchange.inplace_operators import writer
from hologram.trace.operators import SCALARS, broadcast_node, node_of
from hologram.trace.recorder import cast_node, constant, number_operand, record
from hologram.trace.tensor import Tensor
from hologram.transform.nodes import placed

__all__ = ["fill_diagonal", "place", "put", "put_along_axis"]


def default_fill(dtype: DType) -> Any:
    """What stands where an index is out of range and nothing else was asked for."""
    if dtype.kind in "fc":
        return np.nan
    return True if dtype.kind == "b" else np.iinfo(dtype.np).min if dtype.kind == "i" else np.iinfo(dtype.np).max


class Updates:
    """``x.at``: ``x.at[key]`` is a :class:`Place`."""

    __slots__ = ("_of",)

    def __init__(self, of: Tensor) -> None:
        self._of = as_tensor(of, "at[]") if of._weak else of  # with the digits that others see, as are the results

    def __getitem__(self, key: Any) -> Place:
        return Place(self._of, key)


class Place:
    """Elements of a Tensor. Each method gives the Tensor with these elements changed, in its own type.

    ``mode`` says what becomes of indices out of range: ``drop`` (or ``fill``) leaves their updates out, ``clip`` takes the nearest element.
    Without it known ones raise IndexOutOfRange, and computed ones are dropped; ``promise_in_bounds`` is the same. That indices are sorted, or
    unique, is taken and says nothing here, but to :meth:`apply`.
    """

    __slots__ = ("_of", "_key")

    def __init__(self, of: Tensor, key: Any) -> None:
        self._of, self._key = of, key

    def get(self, *, mode: str | None = None, fill_value: Any = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The elements; with mode ``fill`` (or ``drop``), ``fill_value`` where an index is out of range: by default NaN, the least signed or the
        greatest unsigned integer, or True. Without a mode known ones raise, and computed ones are clamped."""
        beyond = _beyond(mode)
        if mode not in ("fill", "drop"):
            return read(self._of, self._key, beyond)
        node = array(self._of, "at[].get")
        chosen = Selection(node.shape, self._key, beyond)
        values = read(self._of, self._key, "clip")
        if not chosen.arrays:
            return values
        return where(_inside(node, chosen, values.ndim), values, default_fill(node.dtype) if fill_value is None else fill_value)

    def set(self, values: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor with the elements replaced by ``values``, which broadcast to their shape.

        >>> hnp.zeros(3).at[1].set(5)
        Tensor([0., 5., 0.], dtype=float32)
        """
        return _updated(self._of, self._key, values, rows.scatter_set, mode)

    def add(self, values: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor with ``values`` added to the elements; an element that is named twice gets both. Of bool "or".

        >>> hnp.zeros(3).at[np.array([0, 0, 2])].add(1)
        Tensor([2., 0., 1.], dtype=float32)
        """
        if _is_beside_integers(self._of, values):
            return self._in_float64("add", values, mode)
        return _updated(self._of, self._key, values, _logical(self._of, rows.scatter_add, rows.scatter_max), mode)

    def subtract(self, values: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor with ``values`` subtracted from the elements, as :meth:`add`.

        >>> hnp.zeros(3).at[1].subtract(2)
        Tensor([ 0., -2.,  0.], dtype=float32)
        """
        return self.add(
            -(wrap(array_as(values, dtypes.float64, "at[]")) if _is_beside_integers(self._of, values) else as_type_of(self._of, values)), mode=mode
        )

    def multiply(self, values: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor with the elements multiplied by ``values``, as :meth:`add`. Of bool "and".

        >>> hnp.ones(3).at[1:].multiply(4)
        Tensor([1., 4., 4.], dtype=float32)
        """
        if _is_beside_integers(self._of, values):
            return self._in_float64("multiply", values, mode)
        return _updated(self._of, self._key, values, _logical(self._of, rows.scatter_mul, rows.scatter_min), mode)

    mul = multiply

    def power(self, values: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor with the elements raised to the powers ``values``; of an element that is named twice, once, by one of them.

        >>> hnp.full(3, 2.0).at[1].power(3)
        Tensor([2., 8., 2.], dtype=float32)
        """
        return self.set(_power(self.get(mode=_reading(mode)), as_type_of(self._of, values)), mode=mode)

    def apply(self, function: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor with the elementwise ``function`` applied to the elements, as often as each is named.

        With ``unique_indices`` that is once at most, which has derivatives for computed indices, too.

        >>> hnp.asarray([1, 2, 3]).at[np.array([0, 2, 2])].apply(lambda x: x * 10)
        Tensor([ 10,   2, 300], dtype=int64)
        """
        if unique_indices or not Selection(self._of.shape, self._key, _beyond(mode)).arrays:
            return self.set(_as_type(self._of._aval()[1], function(self.get(mode=_reading(mode)))), mode=mode)
        counts = Place(full_like(self._of, 0, dtype=np.int64), self._key).add(1, mode=mode)
        return applied(self._of, counts, function)

    def divide(self, values: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor over the product of all ``values`` for an element.

        >>> hnp.ones(3).at[0].divide(2)
        Tensor([0.5, 1. , 1. ], dtype=float32)
        """
        return self._of / Place(full_like(self._of, 1), self._key).multiply(values, mode=mode)

    def min(self, values: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor with the elements replaced by the smaller of themselves and ``values``.

        >>> hnp.ones(3).at[0].min(-1)
        Tensor([-1.,  1.,  1.], dtype=float32)
        """
        if _is_beside_integers(self._of, values):
            return self._in_float64("min", values, mode)
        return _updated(self._of, self._key, values, rows.scatter_min, mode)

    def max(self, values: Any, *, mode: str | None = None, indices_are_sorted: bool = False, unique_indices: bool = False) -> Tensor:
        """The Tensor with the elements replaced by the larger of themselves and ``values``.

        >>> hnp.ones(3).at[0].max(7)
        Tensor([7., 1., 1.], dtype=float32)
        """
        if _is_beside_integers(self._of, values):
            return self._in_float64("max", values, mode)
        return _updated(self._of, self._key, values, rows.scatter_max, mode)

    def _in_float64(self, update: str, values: Any, mode: str | None) -> Tensor:
        """An update of integers by floats: elements that are named are computed in float64, and cast once, as in JAX; others keep all digits."""
        floats, flags = (wrap(cast_node(array(t, "at[]"), d)) for t, d in ((self._of, dtypes.float64), (full_like(self._of, 0), dtypes.bool_)))
        found = getattr(Place(floats, self._key), update)(values, mode=mode)
        return where(Place(flags, self._key).set(True, mode=mode), wrap(cast_node(node_of(found), self._of._aval()[1])), self._of)


def _is_beside_integers(of: Tensor, values: Any) -> bool:
    """Whether ``values`` are floats for an array of integers, which may have no place among them."""
    if not of._aval()[1].is_integer or type(values) is int:
        return False
    return type(values) is float or array(values, "at[]").dtype.is_float


def _reading(mode: str | None) -> str | None:
    """The mode in which what an update is computed from is read: what will be dropped is any element."""
    return "clip" if mode in ("drop", "fill") else mode


def applied(t: Tensor, counts: Tensor, function: Any, unique: bool = False) -> Tensor:
    """``t`` with an elementwise function applied to each element so many times; once at most if ``unique``."""

    def once(k: Any, values: Tensor) -> Tensor:
        return where(counts > k, _as_type(values._aval()[1], function(values)), values)

    if unique or counts.size == 0:
        return once(0, t)
    most = wrap(record(reduce_max, (array(counts, "at[].apply"),), (tuple(range(counts.ndim)),)))
    loop = import_module("hologram.control").fori_loop  # which is made of this package
    try:  # a known number of steps has derivatives
        return loop(0, int(most), once, t)
    except TracedValueError:
        return loop(0, most, once, t)


_NUMPY_FLOATS = (np.float64, np.float32, np.float16)
_BEYOND = {"drop": "drop", "fill": "drop", "clip": "clip", "promise_in_bounds": "raise"}


def _beyond(mode: str | None) -> str:
    """What becomes of known indices out of range: see :class:`~hologram.numpy.indexing.selection.Selection`."""
    return "raise" if mode is None else _BEYOND[choice(mode, "at[]", "mode", tuple(_BEYOND))]


def _logical(of: Tensor, op: Op, of_bools: Op) -> Op:
    """Sums of bools are whether any holds, products whether all do."""
    return of_bools if of._aval()[1] is dtypes.bool_ else op


def _inside(node: Node, chosen: Selection, ndim: int) -> Tensor:
    """Where the selection's computed indices are in range, to broadcast with what they select, which has ``ndim`` axes."""
    inside = wrap(Windows(node, chosen, drop=True).within())
    return inside.reshape((*inside.shape, *[1] * (ndim - chosen.front - inside.ndim)))


def updated(x: Tensor, key: Any, values: Any) -> Tensor:
    """``x`` after ``x[key] = values``."""
    return _updated(as_tensor(x, "x[i] = v") if x._weak else x, key, values, rows.scatter_set, None)


def _updated(x: Tensor, key: Any, values: Any, op: Op, mode: str | None) -> Tensor:
    beyond = _beyond(mode)
    node = array(x, "at[]")
    if node.dtype.kind not in op.kinds:
        raise located(DTypeError(f"{op.name} does not take {node.dtype}"))
    window = known_window(node.shape, key)
    if window is not None:
        return wrap(updated_window(node, window, _in_window_shape(node.dtype, values, window), op))
    new = as_type_of(x, values)
    masked = _under_mask(node, key, new, op)
    if masked is not None:
        return masked
    chosen = Selection(node.shape, key, beyond)
    if not chosen.arrays:
        return wrap(_in_slices(node, chosen, new, op))
    windows = Windows(node, chosen, mode != "clip")
    return wrap(windows.scattered(op, _to_shape(new, windows.selected_shape())))


def _in_window_shape(d: DType, values: Any, window: KnownWindow) -> Node:
    """``values`` as an array of type ``d`` of the window's extents."""
    number = None if window.selected else _number(d, values)
    if number is not None:
        return _number_as(d, number, window.extents)
    if type(values) is Tensor and not values._weak:
        node = node_of(values)
        if node.dtype is d and node.shape == window.selected:
            return reshaped(node, window.extents)
    return reshaped(_to_shape(_as_type(d, values), window.selected), window.extents)


def as_type_of(x: Tensor, values: Any) -> Tensor:
    """``values`` in the type of ``x``. Raises DTypeError for complex values of a real array."""
    return _as_type(x._aval()[1], values)


def _number(d: DType, values: Any) -> Any:
    """The Python number that becomes the same element of type ``d`` as ``values``; None where there is none."""
    if type(values) in SCALARS:
        return values
    if isinstance(values, np.generic) and (values.dtype == d.np or (type(values) in _NUMPY_FLOATS and d.kind == "f")):
        return values.item()
    return None


def _number_as(d: DType, value: Any, shape: Shape = ()) -> Node:
    if isinstance(value, complex) and not d.is_complex:
        raise located(DTypeError(f"at[]: a complex number does not fit {d}"))
    return number_operand(value, d, shape)


def _as_type(d: DType, values: Any) -> Tensor:
    number = _number(d, values)
    if number is not None:
        return wrap(_number_as(d, number))
    if isinstance(values, np.generic):  # an operand as well, as arrays are
        node = reshaped(array(values.reshape(1), "at[]"), ())
    else:
        node = array(values, "at[]")
    if node.dtype.is_complex and not d.is_complex:
        raise located(DTypeError(f"at[]: {node.dtype} does not fit {d}"))
    return wrap(cast_node(node, d))


def _to_shape(values: Tensor, shape: Shape) -> Node:
    """``values`` broadcast to ``shape``; leading axes of extent 1 may go, as in NumPy."""
    node = array(values, "at[]")
    while len(node.shape) > len(shape) and node.shape[0] == 1:
        node = reshaped(node, node.shape[1:])
    if len(node.shape) > len(shape) or any(n not in (1, m) for n, m in zip(node.shape[::-1], shape[::-1], strict=False)):
        raise located(ShapeError(f"at[]: values of shape {list(node.shape)} for a selection of shape {list(shape)}"))
    return broadcast_node(node, shape)


def _combined(op: Op, old: Node, new: Node) -> Node:
    return new if op.monoid is None else record(op.monoid, (old, new))


def _under_mask(node: Node, key: Any, values: Tensor, op: Op) -> Tensor | None:
    """The update where a mask holds, for values that do not depend on how often it does; None where the key is something else."""
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if type(mask) is Tensor:
        if mask._aval()[1] is not dtypes.bool_:
            return None
    elif not (isinstance(mask, np.ndarray) and mask.dtype == np.bool_):
        return None
    if mask.shape != node.shape[: mask.ndim] or values.ndim > len(node.shape) - mask.ndim:
        return None
    rest = node.shape[mask.ndim :]
    new = broadcast_node(_to_shape(values, rest), node.shape)
    there = array(mask, "at[]")
    if rest and there.shape:
        there = broadcast_node(reshaped(there, (*there.shape, *[1] * len(rest))), node.shape)
    if op is rows.scatter_mul:  # zero times an infinity would be the derivative of what stays
        new = record(ew.select, (there, new, constant(1, node.dtype)))
    return wrap(record(ew.select, (there, _combined(op, node, new), node)))


# --- slices ----------------------------------------------------------------------------------------------------------


def _in_slices(node: Node, chosen: Selection, values: Tensor, op: Op) -> Node:
    """The update of a selection without index arrays: the values are put where they belong, and combined with what is there."""
    triples = chosen.triples
    extents = tuple(slice_extent(*triple) for triple in chosen.triples)
    new = reshaped(_to_shape(values, chosen.shape), extents)
    if _is_window(triples, node.shape):
        return _in_window(node, triples, new, op)
    if op.monoid is None:
        return replaced(node, triples, new)
    combined = record(op.monoid, (node, _put(new, triples, node.shape, constant(op.identity(node.dtype), node.dtype))))
    if op is rows.scatter_add or new.shape == node.shape:
        return combined
    # elements beside the slices have the identity's bits or NaNs, too, and would share their derivatives with it
    return record(ew.select, (_sliced_by(triples, node.shape, new.shape), combined, node))


def replaced(node: Node, triples: list[tuple[Int, Int, int]], values: Node) -> Node:
    """``node`` with ``values`` in place of the elements that ``triples`` slice, whose shape they have."""
    if _is_window(triples, node.shape):
        return _in_window(node, triples, values, rows.scatter_set)
    placed = _put(values, triples, node.shape, constant(0, node.dtype))
    if values.shape == node.shape:
        return placed
    return record(ew.select, (_sliced_by(triples, node.shape, values.shape), placed, node))


def _sliced_by(triples: list[tuple[Int, Int, int]], shape: Shape, extents: Shape) -> Node:
    """Which elements of an array of ``shape`` the ``triples``, of these extents, slice."""
    everywhere = broadcast_node(constant(True, dtypes.bool_), extents)
    return _put(everywhere, triples, shape, constant(False, dtypes.bool_))


def _is_window(triples: list[tuple[Int, Int, int]], shape: Shape) -> bool:
    """Whether slices are a window whose place is known; it has some elements, but not all."""
    if any(step != 1 or not all(type(n) is int for n in (start, stop, extent)) for (start, stop, step), extent in zip(triples, shape, strict=True)):
        return False
    extents = tuple(stop - start for start, stop, _ in triples)
    return 0 not in extents and extents != shape


def _in_window(node: Node, triples: list[tuple[Int, Int, int]], values: Node, op: Op) -> Node:
    axes = tuple(a for a, n in enumerate(values.shape) if n != node.shape[a])
    starts: list[Any] = [triples[a][0] for a in axes]
    return updated_window(node, KnownWindow(axes, starts, values.shape, values.shape), values, op)


def _put(values: Node, triples: list[tuple[Int, Int, int]], shape: Shape, fill: Node) -> Node:
    """``values`` where ``triples`` slice an array of ``shape``, ``fill`` beside them."""
    return placed(values, shape, [start for start, _, _ in triples], [step for _, _, step in triples], fill)


# --- along an axis ---------------------------------------------------------------------------------------------------


@writer
def put_along_axis(x: Any, /, indices: Any, values: Any, axis: int | None = -1) -> Tensor:
    """``x`` with ``values`` at the positions that ``indices`` name along ``axis``: the inverse of :func:`take_along_axis`.

    The result is new: unlike NumPy's, ``x`` does not change. It has the type of ``x``. Computed indices out of range are dropped. Raises as
    :func:`take_along_axis` does.

    >>> hnp.put_along_axis([[1, 2], [3, 4]], [[1], [0]], 9, axis=1)
    Tensor([[1, 9],
            [9, 4]], dtype=int64)
    """
    t = wrap(array(x, "put_along_axis"))
    node, a, places = along_axis(t, indices, axis, True, "put_along_axis")
    new = _to_shape(as_type_of(t, values), places[0].shape)
    windows = reshaped(new, (*new.shape, *[1] * len(places)))
    out = record(rows.scatter_set, (node, windows, *places), (tuple(range(a, len(node.shape))), a))
    return wrap(reshaped(out, t._aval()[0]))


@writer
def put(x: Any, indices: Any, values: Any, /, mode: str | None = None) -> Tensor:
    """``x`` with ``values``, repeated as needed, at the positions ``indices`` of ``x`` flattened.

    The result is new: unlike NumPy's, ``x`` does not change. It has the type of ``x``. ``mode`` is ``raise``, the default, ``drop`` or ``fill``, as
    for ``Tensor.at``, ``wrap``, with which indices count modulo the size, or ``clip``, with which each is the nearest there is, 0 for negative ones.
    Raises IndexOutOfRange for known indices out of range, ShapeError for no values.

    >>> hnp.put([1, 2, 3, 4], [0, -1], [8, 9])
    Tensor([8, 2, 3, 9], dtype=int64)
    """
    t = wrap(array(x, "put"))
    flat = (indices if type(indices) is Tensor else known_array(indices, "put")).reshape(-1)
    new = as_type_of(t, values).reshape(-1)
    if flat.shape[0] == 0:
        return t
    if new.shape[0] == 0:
        raise located(ShapeError("put: no values"))
    repeated = new[np.arange(flat.shape[0]) % new.shape[0]]
    if mode in ("clip", "wrap") and (size := prod(t._aval()[0])) != 0:
        flat, mode = within(flat, size, mode, "put"), None
    return t.reshape(-1).at[flat].set(repeated, mode=None if mode == "raise" else mode).reshape(t.shape)


@writer
def place(x: Any, mask: Any, values: Any, /) -> Tensor:
    """``x`` with ``values``, one after the other and repeated as needed, where ``mask`` is not zero.

    The result is new: unlike NumPy's, ``x`` does not change. It has the type of ``x``. Raises ShapeError for a mask of another shape, and for no
    values.

    >>> hnp.place([1, 2, 3, 4], [True, False, True, True], [8, 9])
    Tensor([8, 2, 9, 8], dtype=int64)
    """
    t, there = wrap(array(x, "place")), wrap(cast_node(array(mask, "place"), dtypes.bool_))
    if t.shape != there.shape:
        raise located(ShapeError(f"place: a mask of shape {list(there.shape)} for an array of shape {list(t.shape)}"))
    new = as_type_of(t, values).reshape(-1)
    if new.shape[0] == 0:
        raise located(ShapeError("place: no values"))
    turn = wrap(record(cumsum, (array(there.reshape(-1).astype(dtypes.int64), "place"),), (0, False))) - 1
    return where(there, read(new, (turn % new.shape[0]).reshape(t.shape)), t)


@writer
def fill_diagonal(x: Any, values: Any, /, wrap: bool = False) -> Tensor:
    """``x`` with ``values``, repeated as needed, on its main diagonal; with ``wrap`` again below in tall matrices.

    The result is new: unlike NumPy's, ``x`` does not change. Raises ShapeError for fewer than two axes, and for more than two of different extents.

    >>> hnp.fill_diagonal([[1, 2], [3, 4]], 0)
    Tensor([[0, 2],
            [3, 0]], dtype=int64)
    """
    t = as_tensor(x, "fill_diagonal")
    if t.ndim < 2 or (t.ndim > 2 and len(set(t.shape)) > 1):
        raise located(ShapeError(f"fill_diagonal takes a matrix, or axes of one extent, not shape {list(t.shape)}"))
    step = t.shape[1] + 1 if t.ndim == 2 else sum(t.shape[0] ** k for k in range(t.ndim))
    end = t.shape[1] * t.shape[1] if t.ndim == 2 and not wrap else t.size
    return put(t, np.arange(0, min(end, t.size), step), values)
