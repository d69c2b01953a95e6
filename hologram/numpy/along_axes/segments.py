"""Reductions of segments: elements with the same number go into one result."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.op import Op
from hologram.numpy.arguments import array, cast, reshaped, wrap
from hologram.numpy.creation import full
from hologram.numpy.elementwise.functions import clip
from hologram.primitives import indexing
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import choice, integer
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_MODES = ("drop", "fill", "clip", "promise_in_bounds")


def _segment(name: str, op: Op, start: Any, data: Any, segment_ids: Any, num_segments: int | None, mode: str | None) -> Tensor:
    t = wrap(array(data, name))
    known = segment_ids if type(segment_ids) is Tensor else known_array(segment_ids, name)
    if known.dtype.kind not in "iu" and known.size:
        raise located(DTypeError(f"{name}: segment_ids are integers, not {known.dtype}"))
    if known.ndim != 1 or t.ndim == 0 or known.shape[0] != t.shape[0]:
        raise located(ShapeError(f"{name}: segment_ids of shape {list(known.shape)} for the first axis of shape {list(t.shape)}"))
    if num_segments is None:
        values = known._view(f"{name} without num_segments") if type(known) is Tensor else known
        num_segments = max(int(values.max()) + 1, 0) if values.size else 0
    count = integer(num_segments, name, "num_segments")
    if count < 0:
        raise located(ArgumentError(f"{name}: {count} segments"))
    ids = cast(wrap(array(known, name)), dtypes.int64)
    if mode is not None and choice(mode, name, "mode", _MODES) == "clip":
        ids = clip(ids, 0, count - 1)
    node = array(t, name)
    if node.dtype.kind not in op.kinds:
        raise located(DTypeError(f"{name} does not take {node.dtype}"))
    first = op.identity(node.dtype) if start is None else start
    out = array(full((count, *node.shape[1:]), first, dtype=node.dtype), name)
    rows = reshaped(node, (node.shape[0], 1, *node.shape[1:]))
    return wrap(record(op, (out, rows, array(ids, name)), ((0,), 0)))  # which drops ids out of range


def segment_sum(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | None = None,
) -> Tensor:
    """Sums of segments: result i, along the first axis, sums the elements of ``data`` whose segment is i. JAX's ``jax.ops.segment_sum``.

    - ``data`` (n, …) and ``segment_ids`` (n,), integers, in any order.
    - ``num_segments``: how many results there are; by default as many as the largest id asks for, which must be known then.
    - ``mode``: ids out of range, negative ones included, are dropped, or with ``clip`` moved to the nearest segment.
    - ``indices_are_sorted``, ``unique_indices`` and ``bucket_size`` are accepted and ignored.

    The result (num_segments, …) has the type of ``data``; a segment without elements is 0. Of bool "or". Raises ShapeError for ids that are
    not one for each element, DTypeError for ids that are not integers, TracedValueError for traced ids without ``num_segments``.

    >>> hnp.segment_sum([1, 2, 3, 4], [0, 0, 2, 0], 3)
    Tensor([7, 0, 3], dtype=int64)
    """
    t = wrap(array(data, "segment_sum"))
    op = indexing.scatter_max if t._aval()[1] is dtypes.bool_ else indexing.scatter_add
    return _segment("segment_sum", op, 0, t, segment_ids, num_segments, mode)


def segment_prod(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | None = None,
) -> Tensor:
    """Products of segments, as :func:`segment_sum`; a segment without elements is 1. Of bool "and". Raises DTypeError for complex numbers.

    >>> hnp.segment_prod([1, 2, 3, 4], [0, 0, 2, 0], 3)
    Tensor([8, 1, 3], dtype=int64)
    """
    t = wrap(array(data, "segment_prod"))
    op = indexing.scatter_min if t._aval()[1] is dtypes.bool_ else indexing.scatter_mul
    return _segment("segment_prod", op, 1, t, segment_ids, num_segments, mode)


def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | None = None,
) -> Tensor:
    """Maxima of segments, as :func:`segment_sum`; a segment without elements is -inf, of integers the smallest one. NaN where an element is NaN.

    Raises DTypeError for complex numbers.

    >>> hnp.segment_max([1.0, 5.0, 3.0], [0, 0, 2], 3)
    Tensor([  5., -inf,   3.], dtype=float32)
    """
    return _segment("segment_max", indexing.scatter_max, None, data, segment_ids, num_segments, mode)


def segment_min(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | None = None,
) -> Tensor:
    """Minima of segments, as :func:`segment_sum`; a segment without elements is inf, of integers the largest one. NaN where an element is NaN.

    Raises DTypeError for complex numbers.

    >>> hnp.segment_min([1.0, 5.0, 3.0], [0, 0, 2], 3)
    Tensor([ 1., inf,  3.], dtype=float32)
    """
    return _segment("segment_min", indexing.scatter_min, None, data, segment_ids, num_segments, mode)
