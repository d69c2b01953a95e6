"""Reads and writes of strided views (:mod:`hologram.ir.strides`) on Tensors."""

from __future__ import annotations

from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.ir.strides import Movement, Shape, Strided, movement
from hologram.trace.operators import node_of
from hologram.trace.symbolic_extent import extent
from hologram.trace.tensor import Tensor


def read_view(x: Tensor, view: Strided) -> Tensor:
    """Reads the elements of the view of ``x``: by movement where that is possible, else by index."""
    if 0 in view.shape:
        return hnp.zeros(view.shape, dtype=x.dtype)
    found = movement(view, x.shape)
    if found is None:
        return hnp.take(hnp.reshape(x, (-1,)), _indices(view))
    return shown(found, _padded(x, found))


def write_view(x: Tensor, view: Strided, new: Tensor) -> Tensor:
    """Writes ``new``, of the view's shape, to the elements of the view: returns ``x`` with them replaced.

    Raises ArgumentError where the view has an element twice.
    """
    if 0 in view.shape:
        return x
    if view.repeats:
        raise ArgumentError("more than one element of the written tensor is one memory location: clone() it before an operation in place")
    found = movement(view, x.shape)
    if found is None:
        flat = hnp.reshape(x, (-1,))
        return hnp.reshape(flat.at[_indices(view)].set(new), x.shape)
    part = base_of(found, new)
    if found.is_dense:
        return _reshaped(part, x.shape)
    part = _reshaped(part, tuple(s.length for s in found.slices))
    whole = _padded(x, found).at[tuple(s.slice for s in found.slices)].set(part)
    if found.padded != x.size:
        whole = hnp.reshape(whole, (-1,))[: x.size]
    return _reshaped(whole, x.shape)


def shown(view: Movement, base: Tensor) -> Tensor:
    """Applies the movement: from the array that is sliced to the view's value."""
    part = base if view.is_dense else base[tuple(slice(*(extent(n) for n in (s.start, s.stop, s.step))) for s in (s.slice for s in view.slices))]
    part = _reshaped(part, tuple(view.shape[i] for i in view.axes))
    part = _permuted(part, sorted(range(len(view.axes)), key=view.axes.__getitem__))
    part = _reshaped(part, tuple(n if i in view.axes else 1 for i, n in enumerate(view.shape)))
    return part if node_of(part).shape == view.shape else hnp.broadcast_to(part, _extents(view.shape))


def base_of(view: Movement, value: Tensor) -> Tensor:
    """Inverts the movement: the view's ``value`` with its axes in the order of memory. Of repeated elements the first counts."""
    repeated = [i for i, n in enumerate(view.shape) if n not in (0, 1) and i not in view.axes]
    if repeated:
        value = value[tuple(0 if i in repeated else slice(None) for i in range(len(view.shape)))]
    order = sorted(view.axes)
    return _permuted(_reshaped(value, tuple(view.shape[i] for i in order)), [order.index(i) for i in view.axes])


def _indices(view: Strided) -> Tensor:
    """The index in the flat array of each element of the view."""
    at = hnp.full(view.shape, view.offset)
    for i, (n, s) in enumerate(zip(view.shape, view.strides, strict=True)):
        at = at + hnp.reshape(hnp.arange(n) * s, (n,) + (1,) * (len(view.shape) - 1 - i))
    return at


def _padded(x: Tensor, view: Movement) -> Tensor:
    """The array, padded and reshaped to the axes that are sliced."""
    missing = view.padded - x.size
    if missing:
        x = hnp.pad(hnp.reshape(x, (-1,)), (0, missing))
    return _reshaped(x, view.base)


def _reshaped(x: Tensor, shape: Shape) -> Tensor:
    return x if node_of(x).shape == shape else hnp.reshape(x, _extents(shape))


def _extents(shape: Shape) -> Shape:
    """The shape as functions of Tensors take it: symbolic extents are those of the trace."""
    return tuple([extent(n) for n in shape])  # type: ignore[misc]


def _permuted(x: Tensor, order: list[int]) -> Tensor:
    return x if order == list(range(len(order))) else hnp.permute_dims(x, tuple(order))
