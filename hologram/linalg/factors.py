"""The rows of :mod:`hologram.primitives.host.factorizations` on Tensors, and what the functions of this package share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hologram.numpy as hnp
import hologram.primitives.host.factorizations as rows
from hologram import dtypes
from hologram.control.tracing import Type, emit
from hologram.errors import DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.ir.symbolic import Int, is_static
from hologram.numpy.arguments import array
from hologram.numpy.arrangement.manipulation import diagonal_values
from hologram.support.user_lines import located
from hologram.trace.decisions import decided
from hologram.trace.operators import broadcast_node, broadcast_shapes, common_type, node_of, wrap
from hologram.trace.recorder import cast_node
from hologram.trace.tensor import Tensor


def run(op: Op, inputs: Sequence[Node], *attrs: Any) -> list[Tensor]:
    """The results of a host op. Raises what its type rule raises, with the user's line."""
    assert op.results is not None
    probe = tuple(inputs)
    try:
        types = op.results(probe, attrs)
    except (ShapeError, DTypeError) as e:
        raise located(e) from None
    return emit(op, probe, attrs, [Type(shape, dtype, False) for shape, dtype in types])


def factor_type(x: Node, what: str) -> Node:
    """``x`` in a type that is factored: integers and bools become the default float. Raises DTypeError for narrow floats."""
    dtype = dtypes.to_inexact(x.dtype)
    if dtype.is_narrow_float:
        raise located(DTypeError(f"{what} does not take {dtype}: cast to float32"))
    return cast_node(x, dtype)


def matrices(x: Any, what: str) -> Tensor:
    """A stack of matrices of any shape. Raises ShapeError for fewer than two axes."""
    node = factor_type(array(x, what), what)
    if len(node.shape) < 2:
        raise located(ShapeError(f"{what} takes matrices, not an array of shape {list(node.shape)}"))
    return wrap(node)


def square(x: Any, what: str) -> Tensor:
    """A stack of square matrices. Raises ShapeError for others."""
    out = matrices(x, what)
    if out.shape[-1] != out.shape[-2]:
        raise located(ShapeError(f"{what} takes square matrices, not shape {list(out.shape)}"))
    return out


def alike(what: str, a: Tensor, b: Any) -> tuple[Tensor, Tensor]:
    """``a``, and ``b`` as an array, in their common type."""
    left, right = node_of(a), factor_type(array(b, what), what)
    dtype, _ = common_type([(left, left.dtype, False), (right, right.dtype, False)])
    return wrap(cast_node(left, dtype)), wrap(cast_node(right, dtype))


def stacked_alike(what: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two stacks of matrices as stacks of one size."""
    x, y = node_of(a), node_of(b)
    stack = broadcast_shapes(what, [x.shape[:-2], y.shape[:-2]])
    return wrap(broadcast_node(x, (*stack, *x.shape[-2:]))), wrap(broadcast_node(y, (*stack, *y.shape[-2:])))


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return hnp.matrix_transpose(conj(x))


def conj(x: Tensor) -> Tensor:
    return hnp.conj(x) if is_complex(x) else x


def real(x: Tensor) -> Tensor:
    return hnp.real(x) if is_complex(x) else x


def diagonal(x: Tensor) -> Tensor:
    """The diagonals of matrices."""
    return diagonal_values(x, 0, -2, -1)


def is_complex(x: Tensor) -> bool:
    return x._aval()[1].is_complex


def extents(x: Tensor) -> tuple[Int, Int]:
    """Rows and columns."""
    rows_, columns = x._aval()[0][-2:]
    return rows_, columns


# --- the rows --------------------------------------------------------------------------------------------------------


def cholesky(x: Tensor) -> Tensor:
    (lower,) = run(rows.cholesky, [node_of(x)])
    return lower


def lu(x: Tensor) -> tuple[Tensor, Tensor]:
    """Factors and pivots."""
    factors, pivots, _ = run(rows.lu, [node_of(x)])
    return factors, pivots


def lu_solve(x: Tensor, factors: Tensor, pivots: Tensor, b: Tensor, transposed: bool = False) -> Tensor:
    (y,) = run(rows.lu_solve, [node_of(x), node_of(factors), node_of(pivots), node_of(b)], transposed)
    return y


def triangular_solve(a: Tensor, b: Tensor, lower: bool, transposed: bool = False, unit: bool = False) -> Tensor:
    (y,) = run(rows.triangular_solve, [node_of(a), node_of(b)], lower, transposed, unit)
    return y


def lq(x: Tensor, full: bool) -> tuple[Tensor, Tensor]:
    lower, q = run(rows.lq, [node_of(x)], full)
    return lower, q


def svd(x: Tensor, mode: str) -> list[Tensor]:
    """``[s]`` or ``[s, u, vh]``."""
    m, n = extents(x)
    order = "" if is_static(m - n) else rows.TALL if decided(m - n) else rows.WIDE
    return run(rows.svd, [node_of(x)], mode + order)


def eig(x: Tensor, vectors: bool) -> tuple[Tensor, Tensor]:
    """Eigenvalues, and the transposed matrix of eigenvectors."""
    values, rows_of_vectors = run(rows.eig, [node_of(x)], vectors)
    return values, rows_of_vectors


def eigh(x: Tensor, vectors: bool) -> tuple[Tensor, Tensor]:
    """Eigenvalues, and the adjoint of the matrix of eigenvectors."""
    values, adjoint_vectors = run(rows.eigh, [node_of(x)], vectors)
    return values, adjoint_vectors
