"""Factorizations of matrices. Each works on stacks of matrices, in the last two axes."""

from __future__ import annotations

from typing import Any, NamedTuple

import hologram.numpy as hnp
from hologram.linalg import factors
from hologram.linalg.factors import adjoint, extents, is_complex, matrices, square
from hologram.trace.checks import choice
from hologram.trace.decisions import decided
from hologram.trace.tensor import Tensor

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class EigResult(NamedTuple):
    """``eigenvalues`` (…, n) and ``eigenvectors`` (…, n, n), as columns; both complex."""

    eigenvalues: Tensor
    eigenvectors: Tensor


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
    """Cholesky factor: the lower triangular ``L`` with ``x = L L*`` of Hermitian positive definite matrices (…, n, n).

    If ``upper`` the ``U`` with ``x = U* U``. Reads the lower triangle. A matrix that is not positive definite gives NaNs, where NumPy raises. Raises
    ShapeError for matrices that are not square.

    >>> hg.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    Tensor([[2., 0.],
            [1., 2.]], dtype=float32)
    """
    lower = factors.cholesky(square(x, "cholesky"))
    return adjoint(lower) if upper else lower


def qr(x: Any, /, mode: str = "reduced") -> Any:
    """QR decomposition ``x = Q R`` of matrices (…, m, n): a named tuple ``(Q, R)``, or ``R`` alone if ``mode`` is ``r``.

    With k = min(m, n), ``Q`` is (…, m, k) and ``R`` (…, k, n), or if ``mode`` is ``complete`` (…, m, m) and (…, m, n). Signs are LAPACK's.

    Raises ArgumentError for another mode.

    >>> Q, R = hg.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> hnp.allclose(Q @ R, [[3.0, 1.0], [4.0, 2.0]]), R.shape
    (Tensor(True, dtype=bool), (2, 2))
    """
    if choice(mode, "qr", "mode", ("reduced", "complete", "r")) == "r":
        return qr(x).R
    matrix = matrices(x, "qr")
    m, n = extents(matrix)
    if decided(n - m - 1):
        left = matrix[..., :m]
        lower, q = factors.lq(hnp.matrix_transpose(left), False)
        q = hnp.matrix_transpose(q)
        return QRResult(q, hnp.concat([hnp.matrix_transpose(lower), hnp.matmul(adjoint(q), matrix[..., m:])], axis=-1))
    lower, q = factors.lq(hnp.matrix_transpose(matrix), mode == "complete")
    r = hnp.matrix_transpose(lower)
    if mode == "complete" and m != n:
        r = hnp.concat([r, hnp.zeros((*r.shape[:-2], m - n, n), dtype=r.dtype)], axis=-2)
    return QRResult(hnp.matrix_transpose(q), r)


def svd(x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Singular value decomposition ``x = U diag(S) Vh`` of matrices (…, m, n): a named tuple ``(U, S, Vh)``.

    ``S`` (…, min(m, n)) is descending; ``U`` and ``Vh`` are square, or if not ``full_matrices`` with k = min(m, n) columns and rows. The vectors
    have no derivative where singular values are equal. Without ``compute_uv`` the result is ``S`` alone. ``hermitian`` says that the lower triangles
    stand for Hermitian matrices.

    >>> found = hg.linalg.svd([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]], full_matrices=False)
    >>> found.S, found.U.shape
    (Tensor([4., 3.], dtype=float32), (3, 2))
    """
    matrix = of_lower_triangle(x, "svd") if hermitian else matrices(x, "svd")
    if not compute_uv:
        return svdvals(matrix)
    m, n = extents(matrix)
    s, u, vh = factors.svd(matrix, "full" if full_matrices and m != n else "reduced")
    return SVDResult(u, s, vh)


def of_lower_triangle(x: Any, what: str) -> Tensor:
    """The Hermitian matrices that have the lower triangles of ``x``."""
    a = square(x, what)
    below = hnp.tril(a, -1)
    return hnp.tril(a) + adjoint(below) if not is_complex(a) else below + adjoint(below) + hnp.tril(hnp.triu(hnp.astype(hnp.real(a), a.dtype)))


def svdvals(x: Any, /) -> Tensor:
    """Singular values (…, min(m, n)) of matrices (…, m, n), descending.

    >>> hg.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]])
    Tensor([4., 3.], dtype=float32)
    """
    return factors.svd(matrices(x, "svdvals"), "values")[0]


def eig(x: Any, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices (…, n, n): a named tuple ``(eigenvalues, eigenvectors)``.

    Both are complex, of real matrices too, where NumPy's are complex only if they have to be; values (…, n) are in no order. Vectors (…, n, n) are
    columns of norm 1 whose largest element is real. Neither has a derivative where eigenvalues are equal. Raises ShapeError for matrices that are
    not square.

    >>> hg.linalg.eig([[0.0, 1.0], [-1.0, 0.0]]).eigenvalues
    Tensor([0.+1.j, 0.-1.j], dtype=complex64)
    """
    values, rows_of_vectors = factors.eig(square(x, "eig"), True)
    return EigResult(values, hnp.matrix_transpose(rows_of_vectors))


def eigvals(x: Any, /) -> Tensor:
    """Eigenvalues (…, n) of square matrices (…, n, n), complex and in no order.

    Raises ShapeError for matrices that are not square.

    >>> hg.linalg.eigvals([[3.0, 1.0], [0.0, -1.0]])
    Tensor([ 3.+0.j, -1.+0.j], dtype=complex64)
    """
    return factors.eig(square(x, "eigvals"), False)[0]


def eigh(x: Any, /, UPLO: str = "L") -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian matrices (…, n, n): a named tuple ``(eigenvalues, eigenvectors)``.

    Values (…, n) are real and ascending, vectors (…, n, n) are columns. Reads the lower triangle, for ``UPLO="U"`` the upper one. Vectors have no
    derivative where eigenvalues are equal. Raises ShapeError for matrices that are not square.

    >>> hg.linalg.eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues
    Tensor([1., 2.], dtype=float32)
    """
    values, adjoint_vectors = factors.eigh(_lower(x, "eigh", UPLO), True)
    return EighResult(values, adjoint(adjoint_vectors))


def _lower(x: Any, what: str, uplo: str) -> Tensor:
    """Square matrices whose lower triangles are the triangles that ``uplo`` names."""
    choice(uplo, what, "UPLO", ("L", "U", "l", "u"))
    return square(x, what) if uplo in "Ll" else adjoint(square(x, what))


def eigvalsh(x: Any, /, UPLO: str = "L") -> Tensor:
    """Eigenvalues (…, n) of Hermitian matrices (…, n, n), ascending; reads the lower triangle, for ``UPLO="U"`` the upper one.

    Raises ShapeError for matrices that are not square.

    >>> hg.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])
    Tensor([1., 3.], dtype=float32)
    """
    return factors.eigh(_lower(x, "eigvalsh", UPLO), False)[0]
