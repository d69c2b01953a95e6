"""Windows whose starts are computed: ``dynamic_slice``, ``dynamic_update_slice`` and their kin along one axis."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, Int, bounds
from hologram.numpy.arguments import array, axis_of, reshaped, wrap
from hologram.numpy.indexing.starts import clamped
from hologram.numpy.indexing.updates import as_type_of
from hologram.primitives.indexing import gather, scatter_set
from hologram.support.user_lines import located
from hologram.trace.recorder import assume, constant, plain, record
from hologram.trace.tensor import Tensor

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
]  # fmt: skip


def dynamic_slice(x: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Tensor:
    """The window of ``x`` of the shape ``slice_sizes`` that begins at ``start_indices``: integers, one an axis, which may be computed.

    Negative starts count from the end. Then a start is moved to the nearest at which the window lies within ``x``. The result has the type of ``x``.
    Raises ShapeError for other numbers of starts and sizes than ``x`` has axes, and for a window larger than ``x``; DTypeError for starts that are
    not integers.

    >>> hnp.dynamic_slice(hnp.arange(6), (2,), (3,))
    Tensor([2, 3, 4], dtype=int64)
    >>> hnp.dynamic_slice(hnp.arange(6).reshape(2, 3), (1, 2), (1, 2))
    Tensor([[4, 5]], dtype=int64)
    """
    node = array(x, "dynamic_slice")
    sizes = [_extent(n) for n in slice_sizes]
    return wrap(_read(node, _starts(start_indices, node, "dynamic_slice"), sizes, "dynamic_slice"))


def dynamic_slice_in_dim(x: Any, start_index: Any, slice_size: int, axis: int = 0) -> Tensor:
    """``slice_size`` elements along ``axis`` from ``start_index`` on, all along other axes; else as :func:`dynamic_slice`.

    >>> hnp.dynamic_slice_in_dim(hnp.arange(6).reshape(2, 3), -2, 2, axis=1)
    Tensor([[1, 2],
            [4, 5]], dtype=int64)
    """
    node, a = _with_axis(x, axis, "dynamic_slice_in_dim")
    sizes = [_extent(slice_size) if k == a else n for k, n in enumerate(node.shape)]
    return wrap(_read(node, _along(node, start_index, a), sizes, "dynamic_slice_in_dim"))


def dynamic_index_in_dim(x: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Tensor:
    """What stands at ``index`` along ``axis``, which stays with one element if ``keepdims``; else as :func:`dynamic_slice`.

    >>> hnp.dynamic_index_in_dim(hnp.arange(6).reshape(2, 3), 1, keepdims=False)
    Tensor([3, 4, 5], dtype=int64)
    """
    node, a = _with_axis(x, axis, "dynamic_index_in_dim")
    sizes = [1 if k == a else n for k, n in enumerate(node.shape)]
    found = _read(node, _along(node, index, a), sizes, "dynamic_index_in_dim")
    return wrap(found if keepdims else reshaped(found, (*node.shape[:a], *node.shape[a + 1 :])))


def dynamic_update_slice(x: Any, update: Any, start_indices: Any) -> Tensor:
    """``x`` with ``update`` in the place of the window that begins at ``start_indices``, which are as for :func:`dynamic_slice`.

    The result has the shape and type of ``x``; ``update`` has as many axes, and is converted. Raises ShapeError for another number of axes or
    starts, and for an update larger than ``x``; DTypeError for starts that are not integers, and for complex updates of real arrays.

    >>> hnp.dynamic_update_slice(hnp.zeros(4), [1.0, 2.0], (3,))
    Tensor([0., 0., 1., 2.], dtype=float32)
    """
    node = array(x, "dynamic_update_slice")
    return wrap(_written(node, update, _starts(start_indices, node, "dynamic_update_slice"), "dynamic_update_slice"))


def dynamic_update_slice_in_dim(x: Any, update: Any, start_index: Any, axis: int = 0) -> Tensor:
    """``x`` with ``update`` along ``axis`` from ``start_index`` on, and from the first element along other axes; else as
    :func:`dynamic_update_slice`.

    >>> hnp.dynamic_update_slice_in_dim(hnp.zeros((2, 3)), [[1.0], [2.0]], 1, axis=1)
    Tensor([[0., 1., 0.],
            [0., 2., 0.]], dtype=float32)
    """
    node, a = _with_axis(x, axis, "dynamic_update_slice_in_dim")
    return wrap(_written(node, update, _along(node, start_index, a), "dynamic_update_slice_in_dim"))


def dynamic_update_index_in_dim(x: Any, update: Any, index: Any, axis: int = 0) -> Tensor:
    """``x`` with ``update`` at ``index`` along ``axis``, which ``update`` lacks, or has with one element; else as :func:`dynamic_update_slice`.

    >>> hnp.dynamic_update_index_in_dim(hnp.zeros((2, 3)), [1.0, 2.0], 1, axis=1)
    Tensor([[0., 1., 0.],
            [0., 2., 0.]], dtype=float32)
    """
    node, a = _with_axis(x, axis, "dynamic_update_index_in_dim")
    new = array(update, "dynamic_update_index_in_dim")
    if len(new.shape) == len(node.shape) - 1:
        new = reshaped(new, (*new.shape[:a], 1, *new.shape[a:]))
    if len(new.shape) == len(node.shape) and new.shape[a] != 1:
        raise located(ShapeError(f"dynamic_update_index_in_dim: an update of shape {list(new.shape)} for one index along axis {a}"))
    return wrap(_written(node, wrap(new), _along(node, index, a), "dynamic_update_index_in_dim"))


# --- windows ---------------------------------------------------------------------------------------------------------


def _extent(n: Any) -> Int:
    return plain(n) if isinstance(n, Expr) else operator.index(n)


def _with_axis(x: Any, axis: int, what: str) -> tuple[Node, int]:
    node = array(x, what)
    return node, axis_of(axis, len(node.shape), what)


def _along(node: Node, start: Any, axis: int) -> list[Any]:
    return [start if a == axis else 0 for a in range(len(node.shape))]


def _starts(given: Any, of: Node, what: str) -> list[Any]:
    """One start an axis, from a sequence of scalars or a vector."""
    if type(given) is Tensor or isinstance(given, np.ndarray):
        if given.ndim != 1:
            raise located(ShapeError(f"{what}: starts of shape {list(given.shape)}: pass one integer an axis"))
        given = [given[k] for k in range(int(given.shape[0]))]
    elif not isinstance(given, (tuple, list)):
        raise located(ArgumentError(f"{what}: starts are a sequence of integers, or a vector, not {type(given).__name__}"))
    starts = list(given)
    if len(starts) != len(of.shape):
        raise located(ShapeError(f"{what}: {len(starts)} starts for an array with {len(of.shape)} axes"))
    return starts


def _start(start: Any, n: Int, size: Int, what: str) -> Node:
    """A start of a window of ``size`` on an axis of extent ``n``, as an int64 that is in range."""
    if isinstance(start, int) and isinstance(n, int) and isinstance(size, int):
        return constant(min(max(start + n if start < 0 else start, 0), n - size), dtypes.int64)
    node = array(start, what)
    if not node.dtype.is_integer:
        raise located(DTypeError(f"{what}: starts are integers, not {node.dtype}"))
    if node.shape:
        raise located(ShapeError(f"{what}: a start is a scalar, not of shape {list(node.shape)}"))
    return clamped(node, n, size)


def _windows(node: Node, starts: list[Any], sizes: Sequence[Int], what: str) -> tuple[tuple[int, ...], list[Node]]:
    """The axes along which a window is not all of the array, and where it begins on them."""
    if len(sizes) != len(node.shape):
        raise located(ShapeError(f"{what}: {len(sizes)} sizes for an array with {len(node.shape)} axes"))
    for n, size in zip(node.shape, sizes, strict=True):
        low, high = bounds(n - size)[1], bounds(size)[1]
        if (low is not None and low < 0) or (high is not None and high < 0):
            raise located(ShapeError(f"{what}: a window of shape {list(sizes)} in an array of shape {list(node.shape)}"))
        if isinstance(n - size, Expr):
            assume(n - size)
    axes = tuple(a for a, (n, size) in enumerate(zip(node.shape, sizes, strict=True)) if n != size)
    found = [_start(s, n, size, what) for s, n, size in zip(starts, node.shape, sizes, strict=True)]
    return axes, [found[a] for a in axes]


def _read(node: Node, starts: list[Any], sizes: Sequence[Int], what: str) -> Node:
    axes, first = _windows(node, starts, sizes, what)
    return record(gather, (node, *first), (axes, tuple(sizes[a] for a in axes), 0)) if axes else node


def _written(node: Node, update: Any, starts: list[Any], what: str) -> Node:
    new = array(as_type_of(wrap(node), update), what)
    if len(new.shape) != len(node.shape):
        raise located(ShapeError(f"{what}: an update of shape {list(new.shape)} for an array of shape {list(node.shape)}"))
    axes, first = _windows(node, starts, new.shape, what)
    return record(scatter_set, (node, new, *first), (axes, 0)) if axes else new
