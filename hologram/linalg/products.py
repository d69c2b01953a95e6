"""Products of vectors and matrices that :mod:`hologram.numpy` does not have, or has under the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import array
from hologram.numpy.products.linear import matmul, tensordot, vecdot
from hologram.numpy.shaping.shapes import matrix_transpose
from hologram.support.user_lines import located
from hologram.trace.checks import items
from hologram.trace.operators import wrap
from hologram.trace.tensor import Tensor

__all__ = ["cross", "diagonal", "matmul", "matrix_transpose", "multi_dot", "outer", "tensordot", "trace", "vecdot"]


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The diagonals (…, k) of matrices (…, m, n), ``offset`` above the main one. A read-only view.

    >>> hg.linalg.diagonal([[1, 2], [3, 4]])
    Tensor([1, 4], dtype=int64)
    """
    return hnp.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Trace: the sums (…) of the diagonals of matrices (…, m, n), ``offset`` above the main one. Types are those of :func:`hologram.numpy.sum`.

    >>> hg.linalg.trace([[1, 2], [3, 4]])
    Tensor(5, dtype=int64)
    """
    return hnp.trace(x, offset, -2, -1, dtype)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """Outer product (m, n): every product of an element of the vector (m,) with one of the vector (n,). Raises ShapeError for other arrays.

    >>> hg.linalg.outer([1, 2], [3, 4, 5])
    Tensor([[ 3,  4,  5],
            [ 6,  8, 10]], dtype=int64)
    """
    a, b = wrap(array(x1, "outer")), wrap(array(x2, "outer"))
    if a.ndim != 1 or b.ndim != 1:
        raise located(ShapeError(f"outer takes vectors, not shapes {list(a.shape)} and {list(b.shape)}"))
    return hnp.outer(a, b)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Cross product of vectors along ``axis`` of each, of extent 3; the other axes broadcast. Raises ShapeError for other extents.

    >>> hg.linalg.cross([1, 0, 0], [0, 1, 0])
    Tensor([0, 0, 1], dtype=int64)
    """
    return hnp.cross(x1, x2, axis=axis)


def multi_dot(arrays: Sequence[Any], /) -> Tensor:
    """Product of several matrices, of which the first and the last may be vectors, in the order of fewest multiplications.

    Cormen et al., *Introduction to Algorithms*, 15.2. Raises ArgumentError for fewer than two, ShapeError where they do not fit.

    >>> hg.linalg.multi_dot([hnp.ones((2, 3)), hnp.ones((3, 4)), hnp.ones(4)])
    Tensor([12., 12.], dtype=float32)
    """
    given = [wrap(array(x, "multi_dot")) for x in items(arrays, "multi_dot")]
    if len(given) < 2:
        raise located(ArgumentError("multi_dot takes at least two arrays"))
    ends = given[0].ndim == 1, given[-1].ndim == 1
    chain = list(given)
    chain[0] = chain[0][None, :] if ends[0] else chain[0]
    chain[-1] = chain[-1][:, None] if ends[1] else chain[-1]
    for x in chain:
        if x.ndim != 2:
            raise located(ShapeError(f"multi_dot takes matrices between two ends that may be vectors, not shapes {[list(a.shape) for a in given]}"))
    out = _product(chain, _splits([x.shape[0] for x in chain] + [chain[-1].shape[1]]), 0, len(chain) - 1)
    out = out[0] if ends[0] else out
    return out[..., 0] if ends[1] else out


def _splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where the product of matrices i to j is best split, ``sizes`` being their rows and the last one's columns."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min((cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return split


def _product(chain: Sequence[Tensor], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return chain[i]
    k = split[i, j]
    return matmul(_product(chain, split, i, k), _product(chain, split, k + 1, j))
