"""Names of ``jax.lax.linalg``, with its arguments and the order of its results."""

from __future__ import annotations

from typing import Any

from hologram import linalg as _linalg
from hologram import numpy as hnp
from hologram.control.loops import scan
from hologram.errors import DTypeError, ShapeError, UnsupportedError
from hologram.linalg.factors import adjoint, alike, is_complex, matrices, square
from hologram.linalg.host import in_scipy
from hologram.linalg.pivots import exchanges_of, factored, order_of, rows_in_order
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.tensor import Tensor

linalg: Any = _linalg  # whose names are set from tables

__all__ = [
    "cholesky", "cholesky_update", "eig", "eigh", "hessenberg", "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qr", "schur",
    "svd", "symmetric_product", "triangular_solve", "tridiagonal", "tridiagonal_solve",
]  # fmt: skip


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


# --- LU --------------------------------------------------------------------------------------------------------------


def lu(x: Any) -> tuple[Tensor, Tensor, Tensor]:
    """LU factorization with partial pivoting of matrices (…, m, n): ``(lu, pivots, permutation)``, where ``x[permutation]`` is l times u.

    Below the diagonal of ``lu`` stands l, whose diagonal is 1, elsewhere u. ``pivots`` (…, min(m, n)) says with which row each one was exchanged, one
    after the other; ``permutation`` (…, m) is the order that they lead to. Both are int32.

    >>> factors, pivots, permutation = hg.lax.linalg.lu([[1.0, 2.0], [4.0, 4.0]])
    >>> factors, permutation
    (Tensor([[4.  , 4.  ],
            [0.25, 1.  ]], dtype=float32), Tensor([1, 0], dtype=int32))
    """
    a = matrices(x, "lu")
    m, n = a.shape[-2:]
    order, low, up = factored(a)
    found = exchanges_of(order, min(m, n))
    permutation = order_of(found, m)
    if m > n:  # rows below may stand in another order than exchanges leave them in
        below = hnp.argsort(order[..., n:], axis=-1)
        ranks = hnp.argsort(hnp.argsort(permutation[..., n:], axis=-1), axis=-1)
        low = hnp.concat([low[..., :n, :], rows_in_order(rows_in_order(low[..., n:, :], below), ranks)], axis=-2)
        return hnp.concat([hnp.tril(low[..., :n, :], k=-1) + up, low[..., n:, :]], axis=-2), found, permutation.astype("int32")
    return hnp.concat([hnp.tril(low, k=-1) + up[..., :m], up[..., m:]], axis=-1), found, permutation.astype("int32")


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Tensor:
    """The order (…, permutation_size) that exchanges of rows lead to: row k with row ``pivots[k]``, one after the other.

    Raises ShapeError for more exchanges than rows.

    >>> hg.lax.linalg.lu_pivots_to_permutation(np.int32([2, 2]), 3)
    Tensor([2, 0, 1], dtype=int32)
    """
    p, size = hnp.asarray(pivots), integer(permutation_size, "lu_pivots_to_permutation", "a number of rows")
    if p.ndim < 1 or p.shape[-1] > size:
        raise located(ShapeError(f"lu_pivots_to_permutation: exchanges of shape {list(p.shape)} of {size} rows"))
    return order_of(p, size).astype("int32")


# --- Householder's reflections ---------------------------------------------------------------------------------------


def _reflected(a: Tensor, taus: Tensor, c: Tensor, backwards: bool, adjoint_of: bool = False) -> Tensor:
    """``H₀ H₁ … c`` (``backwards``: the last one first), with ``Hₖ = 1 - τₖ vₖ vₖ*``, where vₖ is below the diagonal of column k of ``a``."""
    m, count = a.shape[-2], taus.shape[-1]
    unit = hnp.eye(m, count, dtype=a.dtype)
    vectors = hnp.moveaxis(hnp.tril(a[..., :count], k=-1) + unit, -1, 0)
    scales = hnp.moveaxis(hnp.conj(taus) if adjoint_of else taus, -1, 0)

    def reflect(x: Tensor, step: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        v, tau = step
        return x - (tau[..., None] * v)[..., None] * hnp.matmul(hnp.conj(v)[..., None, :], x), None

    return scan(reflect, c, (vectors, scales), reverse=backwards)[0]


def householder_product(a: Any, taus: Any) -> Tensor:
    """The first columns of the product of reflections: ``q`` (…, m, n) of a QR factorization whose reflections stand below the diagonal of ``a``.

    ``taus`` (…, k) are their factors, k at most n. Raises ShapeError where there are more, or m is less than n.

    >>> hg.lax.linalg.householder_product([[0.0], [1.0]], [1.0])
    Tensor([[ 0.],
            [-1.]], dtype=float32)
    """
    t, factors = alike("householder_product", matrices(a, "householder_product"), taus)
    m, n = t.shape[-2:]
    if m < n or factors.shape[-1:] > (n,) or factors.shape[:-1] != t.shape[:-2]:
        raise located(ShapeError(f"householder_product: reflections of shape {list(t.shape)} with factors of shape {list(factors.shape)}"))
    start = hnp.broadcast_to(hnp.eye(m, n, dtype=t.dtype), t.shape)
    return _reflected(t, factors, start, backwards=True)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Tensor:
    """``q c``, ``q* c`` if ``transpose``, or ``c q`` and ``c q*`` unless ``left``, of the product ``q`` (…, m, m) of reflections ``a``, ``taus``.

    Raises ShapeError where the extents do not fit.

    >>> hg.lax.linalg.ormqr([[0.0], [1.0]], [1.0], [[2.0], [3.0]])
    Tensor([[-3.],
            [-2.]], dtype=float32)
    """
    t, factors = alike("ormqr", matrices(a, "ormqr"), taus)
    t, other = alike("ormqr", t, matrices(c, "ormqr"))
    factors = factors.astype(t.dtype)
    if other.shape[-2 if left else -1] != t.shape[-2]:
        raise located(ShapeError(f"ormqr: reflections of {t.shape[-2]} elements, and a matrix of shape {list(other.shape)}"))
    if left:
        return _reflected(t, factors, other, backwards=not transpose, adjoint_of=transpose)
    turned = _reflected(t, factors, adjoint(other), backwards=transpose, adjoint_of=not transpose)
    return adjoint(turned)


# --- forms that LAPACK finds in SciPy --------------------------------------------------------------------------------


def _lapack(library: Any, name: str, m: Any) -> Any:
    (routine,) = library.lapack.get_lapack_funcs((name,), (m,))
    return routine


def hessenberg(a: Any) -> tuple[Tensor, Tensor]:
    """Hessenberg form of matrices (…, n, n) with the reflections that lead to it: ``(h, taus)``.

    Below the first subdiagonal of ``h`` stand the reflections, as LAPACK leaves them; ``taus`` is (…, n - 1). It runs in SciPy (UnsupportedError
    without it), and has no derivative.

    >>> hg.lax.linalg.hessenberg([[1.0, 2.0], [3.0, 4.0]])[1]
    Tensor([0.], dtype=float32)
    """
    x = square(a, "hessenberg")
    n = x.shape[-1]
    results = [((n, n), x.dtype), ((max(n - 1, 0),), x.dtype)]
    h, taus = in_scipy("hessenberg", lambda library, m: _lapack(library, "gehrd", m)(m)[:2], x, results)
    return h, taus


def schur(
    x: Any, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False, select_callable: Any = None
) -> tuple[Tensor, Tensor] | tuple[Tensor]:
    """Schur form ``(t, z)`` with ``x = z t z*``, or ``(t,)``: real, with blocks for pairs of eigenvalues, of real matrices.

    It runs in SciPy, and has no derivative. Raises UnsupportedError where eigenvalues are to be sorted.

    >>> hg.lax.linalg.schur([[1.0, 2.0], [0.0, 3.0]])[0]
    Tensor([[1., 2.],
            [0., 3.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise located(UnsupportedError("schur: sorted eigenvalues are not there"))
    a = square(x, "schur")
    form = "complex" if is_complex(a) else "real"
    t, z = in_scipy("schur", lambda library, m: library.schur(m, output=form), a, [(tuple(a.shape[-2:]), a.dtype)] * 2)
    return (t, z) if compute_schur_vectors else (t,)


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tridiagonal form of Hermitian matrices (…, n, n): ``(packed, d, e, taus)``, with the diagonal ``d`` and the one beside it, ``e``, both real.

    ``packed`` and ``taus`` hold the reflections, as LAPACK leaves them. One triangle is read. It runs in SciPy, and has no derivative.

    >>> hg.lax.linalg.tridiagonal([[2.0, 1.0], [1.0, 3.0]])[1:3]
    (Tensor([2., 3.], dtype=float32), Tensor([1.], dtype=float32))
    """
    x = square(a, "tridiagonal")
    n, real = x.shape[-1], hnp.real(x).dtype
    name, less = "hetrd" if is_complex(x) else "sytrd", max(n - 1, 0)
    results = [((n, n), x.dtype), ((n,), real), ((less,), real), ((less,), x.dtype)]
    p, d, e, taus = in_scipy("tridiagonal", lambda library, m: _lapack(library, name, m)(m, lower=int(lower))[:4], x, results)
    return p, d, e, taus


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: Any = None,
    use_magma: bool | None = None,
) -> list[Tensor]:
    """Eigenvalues and eigenvectors of matrices (…, n, n): a list ``[w, vl, vr]``, without those that are not asked for.

    Columns have the length 1: ``x @ vr = vr * w`` and ``vl* @ x = w[:, None] * vl*``. The left ones are those of the inverse of the right ones, so
    they are not finite where these are dependent. The options from ``enable_eigvec_derivs`` on ask for nothing: derivatives are there.

    >>> hnp.real(hg.lax.linalg.eig([[2.0, 0.0], [0.0, 1.0]])[0])
    Tensor([2., 1.], dtype=float32)
    """
    if not (compute_left_eigenvectors or compute_right_eigenvectors):
        return [linalg.eigvals(x)]
    w, right = linalg.eig(x)
    found = [w]
    if compute_left_eigenvectors:
        left = adjoint(linalg.inv(right))
        found.append(left / linalg.vector_norm(left, axis=-2, keepdims=True))
    return [*found, right] if compute_right_eigenvectors else found


# --- updates and bands -----------------------------------------------------------------------------------------------


def cholesky_update(r_matrix: Any, w_vector: Any) -> Tensor:
    """The upper triangle ``s`` of which ``sᵀ s = rᵀ r + w wᵀ``, of a real upper triangle (n, n) and a vector (n,), by rotations.

    Raises ShapeError where the extents differ, DTypeError for complex numbers.

    >>> hg.lax.linalg.cholesky_update([[3.0, 0.0], [0.0, 1.0]], [4.0, 0.0])
    Tensor([[5., 0.],
            [0., 1.]], dtype=float32)
    """
    r, w = alike("cholesky_update", square(r_matrix, "cholesky_update"), w_vector)
    if is_complex(r):
        raise located(DTypeError(f"cholesky_update takes real matrices, not {r.dtype}"))
    if r.ndim != 2 or w.shape != r.shape[:1]:
        raise located(ShapeError(f"cholesky_update: a matrix of shape {list(r.shape)} and a vector of shape {list(w.shape)}"))

    def rotate(w: Tensor, step: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        row, k = step
        a, b = row[k], w[k]
        length = hnp.hypot(a, b)
        return (a * w - b * row) / length, (a * row + b * w) / length

    return hnp.triu(scan(rotate, w, (hnp.triu(r), hnp.arange(r.shape[0])))[1])


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Tensor:
    """Solves ``a x = b`` for tridiagonal matrices: ``d`` (…, n) on the diagonal, ``dl`` (…, n) below, ``du`` (…, n) above, ``b`` (…, n, k).

    ``dl[..., 0]`` and ``du[..., -1]`` are not read. By elimination with exchanges of neighbouring rows, in n steps; a singular matrix gives
    infinities or NaNs, whatever ``perturb_singular`` says. Raises ShapeError where the shapes do not fit.

    >>> hg.lax.linalg.tridiagonal_solve([0.0, 1.0], [2.0, 3.0], [1.0, 0.0], [[4.0], [7.0]])
    Tensor([[1.],
            [2.]], dtype=float32)
    """
    middle, right = alike("tridiagonal_solve", hnp.asarray(d), b)
    (middle, low), (_, up) = alike("tridiagonal_solve", middle, dl), alike("tridiagonal_solve", middle, du)
    if not (low.shape == up.shape == middle.shape == right.shape[:-1]):
        shapes = ", ".join(str(list(t.shape)) for t in (low, middle, up, right))
        raise located(ShapeError(f"tridiagonal_solve: arrays of shapes {shapes}: three of (…, n), and right sides (…, n, k)"))
    first = [hnp.moveaxis(t, middle.ndim - 1, 0) for t in (low, middle, up, right)]
    return hnp.moveaxis(_eliminated(*first), 0, middle.ndim - 1)


def _eliminated(low: Tensor, middle: Tensor, up: Tensor, right: Tensor) -> Tensor:
    """The same, with rows along the first axis. A step has a row and the next one: the greater of the first elements eliminates the other."""
    none = hnp.zeros_like(up[:1])
    up = hnp.concat([up[:-1], none])

    def step(row: Any, below: Any) -> tuple[Any, Any]:
        (d, u, b), (dl, d1, u1, b1) = row, below
        keep = hnp.abs(d) >= hnp.abs(dl)
        pick = lambda x, y: hnp.where(keep, x, y)  # noqa: E731
        pivot, factor = pick(d, dl), pick(dl, d) / pick(d, dl)
        pivot_row = pivot, pick(u, d1), pick(0 * u1, u1), hnp.where(keep[..., None], b, b1)
        other = hnp.where(keep[..., None], b1, b) - factor[..., None] * pivot_row[3]
        return (pick(d1, u) - factor * pivot_row[1], pick(u1, 0 * u1) - factor * pivot_row[2], other), pivot_row

    last, rows = scan(step, (middle[0], up[0], right[0]), (low[1:], middle[1:], up[1:], right[1:]))

    def back(found: Any, row: Any) -> tuple[Any, Tensor]:
        (x1, x2), (p, u, v, b) = found, row
        x = (b - u[..., None] * x1 - v[..., None] * x2) / p[..., None]
        return (x, x1), x

    final = last[2] / last[0][..., None]
    xs = scan(back, (final, hnp.zeros_like(final)), rows, reverse=True)[1]
    return hnp.concat([xs, final[None]])
