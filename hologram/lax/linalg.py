"""Names of ``jax.lax.linalg``, with its arguments and the order of its results."""

from __future__ import annotations

from typing import Any

from hologram import linalg as _linalg
from hologram import numpy as hnp
from hologram.trace.tensor import Tensor

linalg: Any = _linalg  # whose names are set from tables

__all__ = ["cholesky", "eigh", "qr", "svd", "symmetric_product", "triangular_solve"]


def cholesky(a: Any, *, symmetrize_input: bool = True) -> Tensor:
    """Cholesky factor: the lower triangle ``L`` of which ``L @ L.H = a``; the mean of ``a`` and its adjoint if ``symmetrize_input``.

    NaN where ``a`` is not positive definite. Raises ShapeError for what is no stack of square matrices.

    >>> hg.lax.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    Tensor([[2., 0.],
            [1., 2.]], dtype=float32)
    """
    t = hnp.asarray(a)
    return linalg.cholesky((t + hnp.conj(hnp.matrix_transpose(t))) / 2 if symmetrize_input else t)


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True) -> tuple[Tensor, Tensor]:
    """Eigenvectors, in columns, and eigenvalues, ascending, of Hermitian matrices: unlike NumPy, vectors first.

    Of a matrix that is not symmetrized the lower triangle is read, or the upper one.

    >>> hg.lax.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])[1]
    Tensor([1., 2.], dtype=float32)
    """
    t = hnp.asarray(x)
    if symmetrize_input:
        t = (t + hnp.conj(hnp.matrix_transpose(t))) / 2
    elif not lower:
        t = hnp.conj(hnp.matrix_transpose(t))
    values, vectors = linalg.eigh(t)
    return vectors, values


def qr(x: Any, *, full_matrices: bool = True) -> tuple[Tensor, Tensor]:
    """Orthonormal columns and an upper triangle whose product is ``x``; all columns of the space if ``full_matrices``.

    >>> hg.lax.linalg.qr(hnp.ones((3, 2)), full_matrices=False)[0].shape
    (3, 2)
    """
    q, r = linalg.qr(x, mode="complete" if full_matrices else "reduced")
    return q, r


def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Singular value decomposition ``(u, s, vh)``; the values alone unless ``compute_uv``.

    >>> hg.lax.linalg.svd([[3.0, 0.0], [0.0, 2.0]], compute_uv=False)
    Tensor([3., 2.], dtype=float32)
    """
    return tuple(linalg.svd(x, full_matrices=full_matrices)) if compute_uv else linalg.svdvals(x)


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Tensor:
    """The ``x`` of which ``x @ op(a) = b``, or ``op(a) @ x = b`` if ``left_side``, for triangular matrices ``a``.

    As ``hologram.linalg.triangular_solve``, but for the default side.

    >>> hg.lax.linalg.triangular_solve([[2.0, 0.0], [1.0, 4.0]], [[2.0], [9.0]], left_side=True, lower=True)
    Tensor([[1.],
            [2.]], dtype=float32)
    """
    options = dict(left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)
    return linalg.triangular_solve(a, b, **options)


def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False) -> Tensor:
    """``alpha * a @ a.T + beta * c``; symmetric but for rounding, which ``symmetrize_output`` takes no notice of: all of it is computed.

    >>> hg.lax.linalg.symmetric_product([[1.0, 2.0]], [[1.0]], beta=3.0)
    Tensor([[8.]], dtype=float32)
    """
    a = hnp.asarray(a_matrix)
    return alpha * (a @ hnp.matrix_transpose(a)) + beta * hnp.asarray(c_matrix)
