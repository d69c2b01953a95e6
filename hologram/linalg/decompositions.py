"""Factorizations of matrices. Each works on stacks of matrices, in the last two axes."""

from __future__ import annotations

from typing import Any, NamedTuple

import hologram.numpy as hnp
from hologram.errors import ShapeError
from hologram.linalg import factors
from hologram.linalg.factors import adjoint, extents, matrices, square
from hologram.support.user_lines import located
from hologram.trace.checks import choice
from hologram.trace.tensor import Tensor

__all__ = ["cholesky", "eigh", "eigvalsh", "qr", "svd", "svdvals"]


class EighResult(NamedTuple):
    """``eigenvalues`` (…, n), ascending and real, and ``eigenvectors`` (…, n, n), as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """``Q`` with orthonormal columns and upper triangular ``R``."""

    Q: Tensor
    R: Tensor


class SVDResult(NamedTuple):
    """``U`` (…, m, k), ``S`` (…, min(m, n)), descending and real, and ``Vh`` (…, k, n)."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Any, /, upper: bool = False) -> Tensor:
    """The lower triangular ``L`` with ``x = L L*`` of Hermitian positive definite matrices (…, n, n), or if ``upper`` the ``U`` with ``x = U* U``.

    Reads the lower triangle. A matrix that is not positive definite gives NaNs.
    """
    lower = factors.cholesky(square(x, "cholesky"))
    return adjoint(lower) if upper else lower


def qr(x: Any, /, mode: str = "reduced") -> QRResult:
    """``x = Q R`` of matrices (…, m, n): with k = min(m, n), ``Q`` (…, m, k) and ``R`` (…, k, n), or if ``mode`` is
    ``complete`` (…, m, m) and (…, m, n).

    Raises ArgumentError for another mode, and ShapeError where it is not known which of m and n is the larger.
    """
    choice(mode, "qr", "mode", ("reduced", "complete"))
    matrix = matrices(x, "qr")
    m, n = extents(matrix)
    if m != n and not (isinstance(m, int) and isinstance(n, int)):
        raise located(ShapeError(f"qr: matrices of {m} rows and {n} columns: which are more must be known, or both the same symbol"))
    if m != n and m < n:  # type: ignore[operator]
        left = matrix[..., :m]
        lower, q = factors.lq(hnp.matrix_transpose(left), False)
        q = hnp.matrix_transpose(q)
        return QRResult(q, hnp.concat([hnp.matrix_transpose(lower), hnp.matmul(adjoint(q), matrix[..., m:])], axis=-1))
    lower, q = factors.lq(hnp.matrix_transpose(matrix), mode == "complete")
    r = hnp.matrix_transpose(lower)
    if mode == "complete" and m != n:
        r = hnp.concat([r, hnp.zeros((*r.shape[:-2], m - n, n), dtype=r.dtype)], axis=-2)
    return QRResult(hnp.matrix_transpose(q), r)


def svd(x: Any, /, full_matrices: bool = True) -> SVDResult:
    """``x = U diag(S) Vh`` of matrices (…, m, n); ``U`` and ``Vh`` square, or if not ``full_matrices`` with k = min(m, n) columns and rows."""
    matrix = matrices(x, "svd")
    m, n = extents(matrix)
    s, u, vh = factors.svd(matrix, "full" if full_matrices and m != n else "reduced")
    return SVDResult(u, s, vh)


def svdvals(x: Any, /) -> Tensor:
    """The singular values (…, min(m, n)) of matrices (…, m, n), descending."""
    return factors.svd(matrices(x, "svdvals"), "values")[0]


def eigh(x: Any, /) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices (…, n, n), of which the lower triangle is read."""
    values, adjoint_vectors = factors.eigh(square(x, "eigh"), True)
    return EighResult(values, adjoint(adjoint_vectors))


def eigvalsh(x: Any, /) -> Tensor:
    """The eigenvalues (…, n) of Hermitian matrices (…, n, n), ascending; reads the lower triangle."""
    return factors.eigh(square(x, "eigvalsh"), False)[0]
