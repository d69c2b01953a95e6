"""Gather and scatter: reading and writing windows at computed indices.

The first ``batch`` axes are shared by all inputs. ``axes``, ascending and none of these, are the *indexed* axes of ``x``. Each has an integer array
of ``starts``, all of one shape ``(*batch extents, *places)``. A place names a window of ``x``: on an indexed axis it begins at the start, on any
other axis it is all of the axis. So *windows* have the shape ``(*batch extents, *places, *window)``, with an axis of the window for each axis of
``x`` after the shared ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Op, Shape, register
from hologram.ir.symbolic import Int, bounds, prod
from hologram.primitives.reductions import highest, lowest, one, zero
from hologram.primitives.scalar import elementwise as ew


def windows_shape(shape: Shape, starts: Shape, axes: Sequence[int], sizes: Sequence[Int], batch: int) -> Shape:
    """The shape of windows of an array of ``shape``, for arrays of starts of shape ``starts``."""
    size_of = dict(zip(axes, sizes, strict=True))
    return (*starts, *(size_of.get(a, n) for a, n in enumerate(shape) if a >= batch))


def window_sizes(windows: Shape, starts: Shape, axes: Sequence[int], batch: int) -> Shape:
    """The extents of windows along the indexed axes: the reverse of :func:`windows_shape`."""
    return tuple(windows[len(starts) + a - batch] for a in axes)


def _check(what: str, x: Any, starts: Sequence[Any], axes: Sequence[int], sizes: Sequence[Int], batch: int) -> None:
    """Raises for what is no gather or scatter of windows of ``x``."""
    shape, places = x.shape, starts[0].shape if starts else ()
    if not starts or not len(starts) == len(axes) == len(sizes):
        raise ShapeError(f"{what}: {len(starts)} arrays of starts and {len(sizes)} sizes for the axes {list(axes)}")
    for s in starts:
        if not s.dtype.is_integer:
            raise DTypeError(f"{what}: starts are integers, not {s.dtype}")
        if s.shape != places:
            raise ShapeError(f"{what}: starts of shapes {list(places)} and {list(s.shape)} differ")
    if list(axes) != sorted(set(axes)) or not 0 <= batch <= axes[0] or axes[-1] >= len(shape):
        raise ShapeError(f"{what}: axes {list(axes)} after {batch} shared axes of shape {list(shape)}")
    if len(places) < batch or shape[:batch] != places[:batch]:
        raise ShapeError(f"{what}: starts of shape {list(places)} do not share {batch} axes with shape {list(shape)}")


def _infer_gather(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x, *starts), (axes, sizes, batch) = inputs, attrs
    _check("gather", x, starts, axes, sizes, batch)
    shape = windows_shape(x.shape, starts[0].shape, axes, sizes, batch)
    for a, size in zip(axes, sizes, strict=True):
        slack = bounds(x.shape[a] - size)[1]
        if 0 not in shape and slack is not None and slack < 0:
            raise ShapeError(f"gather: axis {a} of shape {list(x.shape)} holds no window of {size}")
    return shape, x.dtype


def _along(count: int, axis: int, ndim: int) -> np.ndarray:
    """0, 1, … along one axis of an array that broadcasts with those of ``ndim`` axes."""
    return np.arange(count).reshape([-1 if i == axis else 1 for i in range(ndim)])


def _gather(x: np.ndarray, *rest: Any) -> np.ndarray:
    *starts, axes, sizes, batch = rest
    places = starts[0].shape
    shape = windows_shape(x.shape, places, axes, sizes, batch)
    if 0 in shape:
        return np.empty(shape, x.dtype)
    if not places:
        return _window(x, starts, axes, sizes)
    firsts = [np.clip(s, 0, min(x.shape[a] - n, int(np.iinfo(s.dtype).max))).astype(np.intp) for s, a, n in zip(starts, axes, sizes, strict=True)]
    return _elements(x, firsts, axes) if not batch and all(n == 1 for n in sizes) else _windows(x, firsts, axes, shape, batch)


def _window(x: np.ndarray, starts: Sequence[np.ndarray], axes: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """The one window that begins at ``starts``: a view."""
    chosen = [slice(None)] * x.ndim
    for start, a, n in zip(starts, axes, sizes, strict=True):
        first = min(max(int(start), 0), x.shape[a] - n)
        chosen[a] = slice(first, first + n)
    return x[tuple(chosen)]


def _elements(x: np.ndarray, firsts: Sequence[np.ndarray], axes: Sequence[int]) -> np.ndarray:
    """Windows of one element along the indexed axes, of which no other array shares any."""
    found = np.moveaxis(x, axes, range(len(axes)))[tuple(firsts)]
    return np.expand_dims(found, tuple(firsts[0].ndim + a for a in axes))


def _windows(x: np.ndarray, firsts: Sequence[np.ndarray], axes: Sequence[int], shape: Any, batch: int) -> np.ndarray:
    """Windows of any sizes, which have the shape ``shape``."""
    places = firsts[0].shape
    start_of = dict(zip(axes, firsts, strict=True))
    indices = []
    for a in range(x.ndim):
        at = a if a < batch else len(places) + a - batch
        index = _along(int(shape[at]), at, len(shape))
        if a in start_of:
            index = index + start_of[a].reshape(*places, *[1] * (len(shape) - len(places)))
        indices.append(index)
    return np.asarray(x[tuple(np.broadcast_arrays(*indices))]).reshape(shape)


# Starts are in range by construction, 0 <= start <= extent - size: the front end wraps negative ones and clamps. A backend that clamps again is
# right too.
gather = register(Op("gather", "gather", None, _infer_gather, _gather, attrs=("axes", "sizes", "batch"), sizes=("sizes",), kinds="biufc"))


# --- scatter ---------------------------------------------------------------------------------------------------------
#
# The mirror of gather: ``updates`` are windows. For all places in C order the window is combined into the result, which starts as ``x``. A window
# that does not lie within ``x`` as a whole is dropped.

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


def scatter_pieces(shape: Shape, updates: Shape, starts: Shape, axes: Sequence[int], batch: int) -> int:
    """:func:`pieces` of a scatter: 1 unless its windows are single elements, which may be any element of ``x``."""
    beside = prod(n for a, n in enumerate(shape) if a not in axes)
    if beside != 1 or any(size != 1 for size in window_sizes(updates, starts, axes, batch)):
        return 1
    return pieces(prod(shape), prod(starts))


def keeps_what_it_drops(scatter: Any) -> bool:
    """Whether a scatter all of whose windows are dropped gives its array bit by bit: where updates are added up in pieces, -0 becomes 0."""
    (x, updates, start, *_), (axes, batch) = scatter.inputs, scatter.attrs
    return scatter_pieces(x.shape, updates.shape, start.shape, axes, batch) == 1


def _infer_scatter(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x, updates, *starts), (axes, batch) = inputs, attrs
    places = starts[0].shape if starts else ()
    if len(updates.shape) != len(places) + len(x.shape) - batch:
        raise ShapeError(f"scatter: updates of shape {list(updates.shape)} for starts of shape {list(places)} and shape {list(x.shape)}")
    sizes = tuple(updates.shape[len(places) + a - batch] for a in axes if batch <= a < len(x.shape))
    _check("scatter", x, starts, axes, sizes, batch)
    if updates.dtype is not x.dtype:
        raise DTypeError(f"scatter: updates are {updates.dtype}, the array is {x.dtype}")
    shape = windows_shape(x.shape, places, axes, sizes, batch)
    if updates.shape != shape:
        raise ShapeError(f"scatter: updates have shape {list(updates.shape)}, not {list(shape)}")
    return x.shape, x.dtype


def _in_turn(combine: Callable[..., Any], x: np.ndarray, updates: np.ndarray, starts: Sequence[np.ndarray], axes: Any, batch: int) -> np.ndarray:
    out = x.copy()
    sizes = window_sizes(updates.shape, starts[0].shape, axes, batch)
    for at in np.ndindex(*starts[0].shape):
        firsts = [int(s[at]) for s in starts]
        if all(0 <= i <= x.shape[a] - n for i, a, n in zip(firsts, axes, sizes, strict=True)):
            where: list[Any] = [*at[:batch], *[slice(None)] * (x.ndim - batch)]
            for i, a, n in zip(firsts, axes, sizes, strict=True):
                where[a] = slice(i, i + n)
            out[tuple(where)] = combine(out[tuple(where)], updates[at])
    return out


def _in_pieces(monoid: Op, identity: Any, count: int, x: np.ndarray, updates: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """On vectors."""
    m = len(positions)
    size = -(-m // count)
    total = None
    for start in range(0, count * size, size):
        part = np.full_like(x, identity)
        if start < m:
            some = slice(start, start + size)
            part = _in_turn(monoid.reference, part, updates[some, None], [positions[some]], (0,), 0)
        total = part if total is None else monoid.reference(total, part)
    return np.asarray(monoid.reference(x, total))


def _positions(shape: Shape, starts: Sequence[np.ndarray], axes: Sequence[int]) -> np.ndarray:
    """Where single elements stand in an array of ``shape`` flattened, whose other axes have one element; -1 for those that are outside of it."""
    at: Any = 0
    inside: Any = True
    for s, a in zip(starts, axes, strict=True):
        here = (s >= 0) & (s < shape[a])
        at, inside = at * shape[a] + np.where(here, s, 0).astype(np.int64), inside & here
    return np.asarray(np.where(inside, at, -1)).reshape(-1)


def _scatter(monoid: Op | None, identity: Any) -> Any:
    def reference(x: np.ndarray, updates: np.ndarray, *rest: Any) -> np.ndarray:
        *starts, axes, batch = rest
        d = dtypes.of(x.dtype)
        work = (dtypes.compute_type(d) if monoid is not None else d).np
        count = scatter_pieces(x.shape, updates.shape, starts[0].shape, axes, batch)
        whole, parts = x.astype(work), updates.astype(work)
        with np.errstate(all="ignore"):
            if monoid is None:
                out = _in_turn(lambda old, new: new, whole, parts, starts, axes, batch)
            elif count == 1:
                out = _in_turn(monoid.reference, whole, parts, starts, axes, batch)
            else:
                out = _in_pieces(monoid, identity(d), count, whole.reshape(-1), parts.reshape(-1), _positions(x.shape, starts, axes))
            return out.astype(x.dtype).reshape(x.shape)

    return reference


def _define_scatter(name: str, kinds: str, monoid: Op | None, identity: Any) -> Op:
    attrs = ("axes", "batch")
    return register(
        Op(name, "scatter", None, _infer_scatter, _scatter(monoid, identity), attrs=attrs, monoid=monoid, identity=identity, kinds=kinds, cost=4)
    )


scatter_set = _define_scatter("scatter_set", "biufc", None, None)
scatter_add = _define_scatter("scatter_add", "iuf", ew.add, zero)
scatter_mul = _define_scatter("scatter_mul", "iuf", ew.mul, one)
scatter_max = _define_scatter("scatter_max", "biuf", ew.max_, lowest)
scatter_min = _define_scatter("scatter_min", "biuf", ew.min_, highest)
