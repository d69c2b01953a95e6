"""Gather and scatter: reading and writing at computed indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Op, Shape, register
from hologram.ir.symbolic import Int
from hologram.primitives.reductions import highest, lowest, one, zero
from hologram.primitives.scalar import elementwise as ew


def _infer_take(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x, indices), (axis,) = inputs, attrs
    if not indices.dtype.is_integer:
        raise DTypeError(f"take: indices are integers, not {indices.dtype}")
    if not 0 <= axis < len(x.shape):
        raise ShapeError(f"take: axis {axis} of shape {list(x.shape)}")
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if x.shape[axis] == 0 and 0 not in shape:
        raise ShapeError(f"take: axis {axis} of shape {list(x.shape)} holds no element to take")
    return shape, x.dtype


def _take(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    if x.shape[axis] == 0:  # np.take refuses even where nothing is read
        return np.empty((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    last = min(x.shape[axis] - 1, int(np.iinfo(indices.dtype).max))
    return np.take(x, np.clip(indices, 0, last).astype(np.intp), axis)


# Indices are in range by construction: the front end wraps negative ones and clamps. A backend that clamps again is right too.
take = register(Op("take", "gather", 2, _infer_take, _take, attrs=("axis",), kinds="biufc"))


# --- scatter ---------------------------------------------------------------------------------------------------------
#
# The mirror of take. The first ``batch`` axes are shared by all inputs; along ``axis``, not one of these, ``indices`` say where the updates go:
# for every position j of ``indices``, in C order, ``result[…, indices[j], …] = result[…, indices[j], …] o updates[…, j, …]``, the result starting as
# ``x``. Updates whose index is out of range, negative ones included, are dropped: the front end has wrapped those that count from the end.

MAX_PIECES = 16
MIN_CUT_UPDATES = 16_384  # of one row, from which updates are cut in pieces
UPDATES_PER_ELEMENT = 2  # so many updates a piece for every element of the result, at least


def pieces(elements: Int, updates: Int) -> int:
    """In how many equal pieces the updates of one row of so many ``elements`` are added up; 1: they go into ``x`` one after the other.

    The pieces' results, each started at the identity, are combined in order, and then with ``x``. That depends on sizes alone, so the order is fixed,
    and pieces can be shared among threads.
    """
    if not isinstance(elements, int) or not isinstance(updates, int) or updates < MIN_CUT_UPDATES:
        return 1
    count = 1
    while count < MAX_PIECES and 2 * count * UPDATES_PER_ELEMENT * elements <= updates:
        count *= 2
    return count


def scattered_shape(shape: Shape, indices: Shape, axis: int, batch: int) -> Shape:
    """The shape of the updates."""
    return (*shape[:axis], *indices[batch:], *shape[axis + 1 :])


def _infer_scatter(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x, indices, updates), (axis, batch) = inputs, attrs
    if not indices.dtype.is_integer:
        raise DTypeError(f"scatter: indices are integers, not {indices.dtype}")
    if updates.dtype is not x.dtype:
        raise DTypeError(f"scatter: updates are {updates.dtype}, the array is {x.dtype}")
    if not 0 <= batch <= axis < len(x.shape) or batch > len(indices.shape):
        raise ShapeError(f"scatter: axis {axis} after {batch} shared axes of shape {list(x.shape)}")
    if x.shape[:batch] != indices.shape[:batch]:
        raise ShapeError(f"scatter: indices of shape {list(indices.shape)} do not share {batch} axes with shape {list(x.shape)}")
    shape = scattered_shape(x.shape, indices.shape, axis, batch)
    if updates.shape != shape:
        raise ShapeError(f"scatter: updates have shape {list(updates.shape)}, not {list(shape)}")
    return x.shape, x.dtype


def _in_turn(combine: Any, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """On ``x`` (batch, outer, n, inner), ``indices`` (batch, m), ``updates`` (batch, outer, m, inner)."""
    out = x.copy()
    n = x.shape[2]
    for b in range(x.shape[0]):
        for j, i in enumerate(indices[b].tolist()):
            if 0 <= i < n:
                out[b, :, i] = combine(out[b, :, i], updates[b, :, j])
    return out


def _in_pieces(monoid: Op, identity: Any, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    m = indices.shape[1]
    count = pieces(x.shape[2], m) if x.size == x.shape[2] else 1
    if count == 1:
        return _in_turn(monoid.reference, x, indices, updates)
    size = -(-m // count)
    total = None
    for start in range(0, count * size, size):
        part = np.full_like(x, identity)
        if start < m:
            part = _in_turn(monoid.reference, part, indices[:, start : start + size], updates[:, :, start : start + size])
        total = part if total is None else monoid.reference(total, part)
    return np.asarray(monoid.reference(x, total))


def _scatter(monoid: Op | None, identity: Any) -> Any:
    def reference(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int, batch: int) -> np.ndarray:
        d = dtypes.of(x.dtype)
        work = (dtypes.compute_type(d) if monoid is not None else d).np
        shared, outer, inner = (int(np.prod(s, dtype=np.int64)) for s in (x.shape[:batch], x.shape[batch:axis], x.shape[axis + 1 :]))
        m = int(np.prod(indices.shape[batch:], dtype=np.int64))
        rows = x.astype(work).reshape(shared, outer, x.shape[axis], inner)
        targets, parts = indices.reshape(shared, m), updates.astype(work).reshape(shared, outer, m, inner)
        with np.errstate(all="ignore"):
            if monoid is None:
                out = _in_turn(lambda old, new: new, rows, targets, parts)
            else:
                out = _in_pieces(monoid, identity(d), rows, targets, parts)
            return out.astype(x.dtype).reshape(x.shape)

    return reference


def _scatter_row(name: str, kinds: str, monoid: Op | None, identity: Any) -> Op:
    attrs = ("axis", "batch")
    return register(
        Op(name, "scatter", 3, _infer_scatter, _scatter(monoid, identity), attrs=attrs, monoid=monoid, identity=identity, kinds=kinds, cost=4)
    )


scatter_set = _scatter_row("scatter_set", "biufc", None, None)
scatter_add = _scatter_row("scatter_add", "iuf", ew.add, zero)
scatter_mul = _scatter_row("scatter_mul", "iuf", ew.mul, one)
scatter_max = _scatter_row("scatter_max", "biuf", ew.max_, lowest)
scatter_min = _scatter_row("scatter_min", "biuf", ew.min_, highest)
