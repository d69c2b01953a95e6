"""Products of arrays under the names and arguments of ``jax.lax``: sums over pairs of axes, in batches."""

from __future__ import annotations

from typing import Any

from hologram import numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.node import Node
from hologram.lax.elementwise import Precision
from hologram.numpy.arguments import array, axis_of
from hologram.numpy.products.linear import paired
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor

__all__ = ["batch_matmul", "dot", "dot_general", "ragged_dot"]


def dot_general(a: Any, b: Any, /, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """Products of ``a`` and ``b`` summed over pairs of axes, in batches: JAX's ``lax.dot_general``.

    ``dimension_numbers`` is ``((axes of a, axes of b) to sum over, (axes of a, axes of b) to keep as batches)``. The result has the batch axes, then
    the other axes of ``a``, then those of ``b``. ``preferred_element_type`` is its type, as in ``hologram.numpy.matmul``. ``precision`` is a
    :class:`hologram.lax.Precision` or the name of one, or a pair of these; it says nothing here.

    Raises ArgumentError for other dimension numbers and precisions, AxisOutOfRange for an axis that is not there, ShapeError for one named twice and
    for pairs of different extents, DTypeError for a preferred type of a lesser kind.

    >>> a, b = hnp.ones((5, 2, 3)), hnp.ones((5, 3, 4))
    >>> hg.nn.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    check_precision("dot_general", precision)
    x, y = array(a, "dot_general"), array(b, "dot_general")
    try:
        (summed_a, summed_b), (batch_a, batch_b) = (tuple(map(tuple, pair)) for pair in dimension_numbers)
        paired_up = len(summed_a) == len(summed_b) and len(batch_a) == len(batch_b)
    except (TypeError, ValueError):
        paired_up = False
    if not paired_up:
        expected = "((axes of a, axes of b) to sum over, (axes of a, axes of b) to keep), as many of a as of b"
        raise located(ArgumentError(f"dot_general: dimension_numbers are {expected}, not {dimension_numbers!r}"))
    summed, batch = ((_axes(x, first), _axes(y, second)) for first, second in ((summed_a, summed_b), (batch_a, batch_b)))
    return paired("dot_general", x, y, summed, batch, preferred_element_type)


def _axes(x: Node, axes: tuple[Any, ...]) -> list[int]:
    return [axis_of(i, len(x.shape), "dot_general") for i in axes]


def check_precision(what: str, precision: Any) -> None:
    """Raises ArgumentError for what is no precision, such as a type in its place."""
    for p in precision if isinstance(precision, (tuple, list)) else (precision,):
        try:
            known = p is None or isinstance(p, Precision) or isinstance(Precision(p), Precision)
        except ValueError:
            known = False
        if not known:
            raise located(ArgumentError(f"{what}: a precision is one of {', '.join(Precision.__members__)}, not {p!r}"))


def dot(lhs: Any, rhs: Any, precision: Any = None, preferred_element_type: Any = None, *, dimension_numbers: Any = None) -> Tensor:
    """Product of vectors and matrices; with ``dimension_numbers`` :func:`dot_general`.

    Raises ShapeError for more than two axes without these, and where the extents do not fit.

    >>> hg.lax.dot([[1, 2], [3, 4]], [1, 10])
    Tensor([21, 43], dtype=int64)
    """
    if dimension_numbers is not None:
        return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type)
    check_precision("dot", precision)
    if not 1 <= hnp.ndim(lhs) <= 2 or not 1 <= hnp.ndim(rhs) <= 2:
        raise located(ShapeError(f"dot takes vectors and matrices, not shapes {list(hnp.shape(lhs))} and {list(hnp.shape(rhs))}"))
    return hnp.dot(lhs, rhs, preferred_element_type=preferred_element_type)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Tensor:
    """Products of matrices (…, m, k) and (…, k, n), whose leading axes are the same. Raises ShapeError where they are not.

    >>> hg.lax.batch_matmul(hnp.ones((5, 2, 3)), hnp.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    check_precision("batch_matmul", precision)
    if hnp.ndim(lhs) < 2 or hnp.shape(lhs)[:-2] != hnp.shape(rhs)[:-2]:
        raise located(ShapeError(f"batch_matmul: shapes {list(hnp.shape(lhs))} and {list(hnp.shape(rhs))} have other batches"))
    return hnp.matmul(lhs, rhs)


def ragged_dot(lhs: Any, rhs: Any, group_sizes: Any, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """Products of groups of rows with matrices of their own: (m, k) and (g, k, n) give (m, n).

    The first ``group_sizes[0]`` rows are multiplied by the first matrix, and so on; rows beyond all groups give zeros. Raises ShapeError where the
    shapes do not fit.

    >>> hg.lax.ragged_dot(hnp.ones((3, 2)), hnp.stack([hnp.eye(2), 5 * hnp.eye(2)]), np.array([2, 1]))
    Tensor([[1., 1.],
            [1., 1.],
            [5., 5.]], dtype=float32)
    """
    check_precision("ragged_dot", precision)
    rows, matrices, sizes = hnp.asarray(lhs), hnp.asarray(rhs), hnp.asarray(group_sizes)
    if rows.ndim != 2 or matrices.ndim != 3 or sizes.shape != matrices.shape[:1] or rows.shape[1] != matrices.shape[1]:
        raise located(ShapeError(f"ragged_dot: shapes {list(rows.shape)}, {list(matrices.shape)} and {list(sizes.shape)} do not fit"))
    ends = hnp.cumsum(sizes)
    at = hnp.arange(rows.shape[0])[:, None]
    mine = (at < ends) & (at >= ends - sizes)
    apart = hnp.where(mine[:, :, None], rows[:, None, :], 0)
    return hnp.einsum("mgk,gkn->mn", apart, matrices, preferred_element_type=preferred_element_type)
