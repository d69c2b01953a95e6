"""Factorizations and the systems that they solve, under SciPy's names and in its conventions.

Matrices stand in the last two axes of stacks. ``overwrite_a``, ``overwrite_b``, ``check_finite`` and ``lwork`` are accepted and ask for nothing: no
argument is written into, and infinities and NaNs give NaNs.
"""

from __future__ import annotations

from typing import Any

import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError, UnsupportedError
from hologram.linalg import decompositions, systems
from hologram.linalg.factors import adjoint, alike, conj, matrices, square
from hologram.linalg.pivots import factored, order_of, packed_factors, rows_in_order
from hologram.scipy.linalg.arguments import inexact, vector
from hologram.support.user_lines import located
from hologram.trace.checks import choice, items
from hologram.trace.tensor import Tensor

__all__ = [
    "cho_factor", "cho_solve", "cholesky", "det", "eigh", "eigh_tridiagonal", "inv", "lu", "lu_factor", "lu_solve", "polar", "qr", "qr_multiply",
    "solve", "solve_triangular", "svd",
]  # fmt: skip


# --- Cholesky --------------------------------------------------------------------------------------------------------


def _cholesky(a: Any, lower: bool, what: str) -> Tensor:
    matrix = square(a, what)
    if lower:
        return decompositions.cholesky(matrix)
    return adjoint(decompositions.cholesky(adjoint(matrix)))  # SciPy reads the triangle that it gives


def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Cholesky factor of Hermitian positive definite matrices (…, n, n): upper ``U`` with ``a = U* U``, or ``L`` with ``a = L L*`` if ``lower``.

    Reads that triangle alone. A matrix that is not positive definite gives NaNs. Raises ShapeError for matrices that are not square.

    >>> hg.scipy.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]])
    Tensor([[2., 1.],
            [0., 2.]], dtype=float32)
    """
    return _cholesky(a, lower, "cholesky")


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Tensor, bool]:
    """Cholesky factor for :func:`cho_solve`: ``(c, lower)``. The other triangle is 0; SciPy leaves it undefined.

    >>> c, lower = hg.scipy.linalg.cho_factor([[4.0, 2.0], [2.0, 5.0]])
    >>> hg.scipy.linalg.cho_solve((c, lower), [8.0, 12.0])
    Tensor([1., 2.], dtype=float32)
    """
    return _cholesky(a, lower, "cho_factor"), bool(lower)


def _pair(given: Any, what: str, names: str) -> tuple[Any, Any]:
    if len(parts := items(given, what, "factors")) != 2:
        raise located(ArgumentError(f"{what}: the factors are a pair {names}, not {len(parts)} parts"))
    return parts[0], parts[1]


def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """Solves ``a x = b``, given what :func:`cho_factor` found for ``a`` (…, n, n). ``b`` is (…, n, k) or one vector (n,).

    Raises ShapeError where the shapes do not fit.

    >>> hg.scipy.linalg.cho_solve(([[2.0, 0.0], [1.0, 2.0]], True), [8.0, 12.0])
    Tensor([1., 2.], dtype=float32)
    """
    c, lower = _pair(c_and_lower, "cho_solve", "(c, lower)")
    factor = square(c, "cho_solve")
    first, last = (0, 2) if lower else (2, 0)
    return solve_triangular(factor, solve_triangular(factor, b, first, lower), last, lower)


# --- LU --------------------------------------------------------------------------------------------------------------


def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> tuple[Tensor, Tensor, Tensor] | tuple[Tensor, Tensor]:
    """LU factorization with partial pivoting of matrices (…, m, n): ``(p, l, u)`` with ``a = p @ l @ u``.

    With ``permute_l`` ``(p @ l, u)``; with ``p_indices`` ``p`` is the permutation (…, m) with ``a = l[p] @ u``. ``l`` has ones on its diagonal, and
    min(m, n) columns.

    >>> p, l, u = hg.scipy.linalg.lu([[1.0, 2.0], [4.0, 4.0]])
    >>> l, u
    (Tensor([[1.  , 0.  ],
            [0.25, 1.  ]], dtype=float32), Tensor([[4., 4.],
            [0., 1.]], dtype=float32))
    """
    matrix = matrices(a, "lu")
    order, low, up = factored(matrix)
    inverse = hnp.argsort(order, axis=-1)
    if permute_l:
        return rows_in_order(low, inverse), up
    if p_indices:
        return inverse, low, up
    columns = hnp.arange(matrix.shape[-2])
    return (hnp.expand_dims(inverse, -1) == columns).astype(low.dtype), low, up


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """LU factors for :func:`lu_solve`: ``(lu, piv)``, l below the diagonal of ``lu`` and u above; row i was exchanged with row ``piv[i]``.

    Raises ShapeError for matrices that are not square.

    >>> hg.scipy.linalg.lu_factor([[1.0, 2.0], [4.0, 4.0]])
    (Tensor([[4.  , 4.  ],
            [0.25, 1.  ]], dtype=float32), Tensor([1, 1], dtype=int32))
    """
    packed, pivots, _ = packed_factors(square(a, "lu_factor"))
    return packed, pivots


def lu_solve(lu_and_piv: tuple[Any, Any], b: Any, trans: int | str = 0, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """Solves ``a x = b``, given what :func:`lu_factor` found for ``a``; ``aᵀ x = b`` for ``trans=1``, ``a* x = b`` for ``trans=2``.

    ``b`` is (…, n, k) or one vector (n,). Raises ShapeError where the shapes do not fit.

    >>> factors = hg.scipy.linalg.lu_factor([[1.0, 2.0], [4.0, 4.0]])
    >>> hg.scipy.linalg.lu_solve(factors, [5.0, 12.0])
    Tensor([1., 2.], dtype=float32)
    """
    packed_factors, pivots = _pair(lu_and_piv, "lu_solve", "(lu, piv)")
    packed, right = alike("lu_solve", square(packed_factors, "lu_solve"), b)
    way = _transposition(trans, "lu_solve")
    column = right.ndim == 1
    right = right[:, None] if column else right
    order = order_of(hnp.asarray(pivots))
    if right.ndim < 2 or right.shape[-2] != packed.shape[-1] or order.shape != packed.shape[:-1]:
        shapes = f"{list(right.shape)} for factors of shape {list(packed.shape)} with pivots of shape {list(order.shape)}"
        raise located(ShapeError(f"lu_solve: right sides of shape {shapes}"))
    if way == 0:
        found = solve_triangular(packed, rows_in_order(right, order), lower=True, unit_diagonal=True)
        out = solve_triangular(packed, found)
    else:
        found = solve_triangular(packed, right, way)
        out = solve_triangular(packed, found, way, lower=True, unit_diagonal=True)
        out = rows_in_order(out, hnp.argsort(order, axis=-1))
    return out[..., 0] if column else out


# --- systems ---------------------------------------------------------------------------------------------------------


def _transposition(trans: Any, what: str) -> int:
    """0, 1 or 2: as it is, transposed, adjoint."""
    ways: dict[Any, int] = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}
    if isinstance(trans, (int, str)) and trans in ways:
        return ways[trans]
    raise located(ArgumentError(f"{what}: trans is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}"))


def solve_triangular(
    a: Any,
    b: Any,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Tensor:
    """Solves ``a x = b`` for triangular matrices ``a`` (…, n, n), of which one triangle is read: the upper one unless ``lower``.

    ``trans`` 1 or "T" solves ``aᵀ x = b``, 2 or "C" ``a* x = b``. ``b`` is (…, n, k) or one vector (n,). Raises ShapeError where the shapes do
    not fit, ArgumentError for another ``trans``.

    >>> hg.scipy.linalg.solve_triangular([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True)
    Tensor([1., 2.], dtype=float32)
    """
    way = _transposition(trans, "solve_triangular")
    return systems.triangular_solve(a, b, lower=bool(lower), transpose_a=way > 0, conjugate_a=way == 2, unit_diagonal=bool(unit_diagonal))


_STRUCTURES = ("gen", "general", "sym", "symmetric", "her", "hermitian", "pos", "positive definite")


def solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False, check_finite: bool = True, assume_a: str = "gen"
) -> Tensor:
    """Solves ``a x = b`` for matrices (…, n, n); ``assume_a="pos"`` by a Cholesky factorization that reads one triangle, else by an LU one.

    ``b`` is (…, n, k) or one vector (n,). A singular matrix gives infinities or NaNs. Raises ShapeError where the shapes do not fit.

    >>> hg.scipy.linalg.solve([[4.0, 2.0], [2.0, 5.0]], [8.0, 12.0], assume_a="pos")
    Tensor([1., 2.], dtype=float32)
    """
    structure = choice(assume_a, "solve", "assume_a", _STRUCTURES)
    if structure.startswith("pos"):
        return cho_solve(cho_factor(a, lower), b)
    return systems.solve(_hermitian(a, lower, structure) if structure[:3] in ("sym", "her") else a, b)


def _hermitian(a: Any, lower: bool, structure: str) -> Tensor:
    """The matrices of which one triangle is given."""
    matrix = square(a, "solve")
    other = adjoint(matrix) if structure.startswith("her") else hnp.matrix_transpose(matrix)
    return hnp.tril(matrix) + hnp.triu(other, k=1) if lower else hnp.triu(matrix) + hnp.tril(other, k=-1)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Inverses of matrices (…, n, n). A singular matrix gives infinities and NaNs. Raises ShapeError for matrices that are not square.

    >>> hg.scipy.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
    Tensor([[0.5 , 0.  ],
            [0.  , 0.25]], dtype=float32)
    """
    return systems.inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """Determinants (…) of matrices (…, n, n). Raises ShapeError for matrices that are not square.

    >>> hg.scipy.linalg.det([[2.0, 0.0], [0.0, 4.0]])
    Tensor(8., dtype=float32)
    """
    return systems.det(a)


# --- orthogonal factors ----------------------------------------------------------------------------------------------


def qr(
    a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False, check_finite: bool = True
) -> tuple[Tensor, ...]:
    """QR factorization ``a = q r`` of matrices (…, m, n): ``(q, r)``; square ``q`` for ``full``, min(m, n) columns for ``economic``, ``(r,)`` for
    ``r``.

    Raises UnsupportedError for ``pivoting``, ArgumentError for another mode.

    >>> q, r = hg.scipy.linalg.qr([[3.0, 1.0], [4.0, 2.0]], mode="economic")
    >>> hnp.abs(r)
    Tensor([[5.       , 2.2      ],
            [0.       , 0.4000001]], dtype=float32)
    """
    modes = {"full": "complete", "economic": "reduced", "r": "complete"}
    kind = choice(mode, "qr", "mode", modes)
    if pivoting:
        raise located(UnsupportedError("qr: pivoting is not there"))
    q, r = decompositions.qr(a, mode=modes[kind])
    return (r,) if kind == "r" else (q, r)


def qr_multiply(
    a: Any, c: Any, mode: str = "right", pivoting: bool = False, conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False
) -> tuple[Tensor, Tensor]:
    """The economic QR factorization of ``a`` (…, m, n), its ``q`` multiplied: ``(c q, r)``, or ``(q c, r)`` for the mode ``left``.

    ``conjugate`` takes the conjugate of ``q``. Raises UnsupportedError for ``pivoting``, ShapeError where the extents do not fit.

    >>> product, r = hg.scipy.linalg.qr_multiply([[3.0, 1.0], [4.0, 2.0]], [3.0, 4.0])
    >>> hnp.abs(product[0])
    Tensor(5., dtype=float32)
    """
    side = choice(mode, "qr_multiply", "mode", ("left", "right"))
    q, r = qr(a, mode="economic", pivoting=pivoting)
    q = conj(q) if conjugate else q
    return (hnp.matmul(q, c) if side == "left" else hnp.matmul(c, q)), r


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd"
) -> Any:
    """Singular value decomposition ``a = U diag(s) Vh``: ``(U, s, Vh)``, or the values alone unless ``compute_uv``.

    Shapes and derivatives are those of :func:`hologram.linalg.svd`; ``lapack_driver`` is accepted and ignored.

    >>> hg.scipy.linalg.svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False)
    Tensor([4., 3.], dtype=float32)
    """
    return tuple(decompositions.svd(a, full_matrices=full_matrices)) if compute_uv else decompositions.svdvals(a)


def polar(a: Any, side: str = "right") -> tuple[Tensor, Tensor]:
    """Polar decomposition ``a = u p`` (``a = p u`` for the side ``left``) of matrices (…, m, n): ``u`` unitary, ``p`` Hermitian, not negative.

    >>> u, p = hg.scipy.linalg.polar([[0.0, -2.0], [3.0, 0.0]])
    >>> p
    Tensor([[3., 0.],
            [0., 2.]], dtype=float32)
    """
    order = choice(side, "polar", "side", ("right", "left"))
    u, s, vh = decompositions.svd(a, full_matrices=False)
    values = s.astype(u.dtype)
    p = hnp.matmul(adjoint(vh) * values[..., None, :], vh) if order == "right" else hnp.matmul(u * values[..., None, :], adjoint(u))
    return hnp.matmul(u, vh), p


# --- eigenvalues -----------------------------------------------------------------------------------------------------


def eigh(
    a: Any,
    b: Any = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """Eigenvalues and eigenvectors of Hermitian matrices (…, n, n): ``(w, v)``, or ``w`` alone. With ``b`` those of ``a v = w b v``.

    ``w`` (…, n) is ascending; ``v`` (…, n, n) has columns, orthonormal with respect to ``b`` (Hermitian, positive definite). One triangle is read.
    Raises ShapeError for matrices that are not square, UnsupportedError for a ``type`` other than 1.

    >>> hg.scipy.linalg.eigh([[2.0, 0.0], [0.0, 8.0]], [[1.0, 0.0], [0.0, 2.0]], eigvals_only=True)
    Tensor([2., 4.], dtype=float32)
    """
    matrix = square(a, "eigh")
    if type != 1:
        raise located(UnsupportedError("eigh: only a v = w b v, the type 1, is there"))
    matrix = matrix if lower else adjoint(matrix)
    if b is None:
        return decompositions.eigvalsh(matrix) if eigvals_only else tuple(decompositions.eigh(matrix))
    whole = hnp.tril(matrix) + adjoint(hnp.tril(matrix, k=-1))
    whole, right = alike("eigh", whole, square(b, "eigh"))
    low = decompositions.cholesky(right if lower else adjoint(right))
    half = solve_triangular(low, whole, lower=True)
    reduced = adjoint(solve_triangular(low, adjoint(half), lower=True))
    if eigvals_only:
        return decompositions.eigvalsh(reduced)
    w, v = decompositions.eigh(reduced)
    return w, solve_triangular(low, v, 2, lower=True)


def eigh_tridiagonal(
    d: Any,
    e: Any,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[int, int] | None = None,
    check_finite: bool = True,
    tol: float = 0.0,
) -> Any:
    """Eigenvalues and eigenvectors of a Hermitian tridiagonal matrix of diagonal ``d`` (n,) and off-diagonal ``e`` (n - 1,): ``(w, v)``, or ``w``.

    ``select="i"`` gives those from the first to the last index of ``select_range``. The matrix is made and decomposed whole; ``tol`` is ignored.
    Raises ShapeError where the extents do not fit, ArgumentError for another selection.

    >>> hg.scipy.linalg.eigh_tridiagonal([2.0, 2.0], [1.0], eigvals_only=True)
    Tensor([1., 3.], dtype=float32)
    """
    what = "eigh_tridiagonal"
    middle, beside = alike(what, inexact(vector(d, what, "d"), what), vector(e, what, "e"))
    if middle.shape[0] != beside.shape[0] + 1:
        raise located(ShapeError(f"{what}: a diagonal of {middle.shape[0]} elements beside an off-diagonal of {beside.shape[0]}"))
    chosen = choice(select, what, "select", ("a", "i"))
    if chosen == "i" and select_range is None:
        raise located(ArgumentError(f"{what}: select='i' takes select_range=(first, last)"))
    part = slice(None) if chosen == "a" or select_range is None else slice(select_range[0], select_range[1] + 1)
    matrix = hnp.diag(middle) + hnp.diag(beside, k=-1) + hnp.diag(conj(beside), k=1)
    if eigvals_only:
        return decompositions.eigvalsh(matrix)[part]
    w, v = decompositions.eigh(matrix)
    return w[part], v[:, part]
