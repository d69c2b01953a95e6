"""Linear systems, inverses and determinants. Each works on stacks of matrices, in the last two axes.

A singular matrix raises nothing: where its inverse would be, there are infinities and NaNs.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple

import numpy as np

import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.linalg import factors
from hologram.linalg.adjugate import adjugate, determinant, exchanges
from hologram.linalg.decompositions import of_lower_triangle, svd, svdvals
from hologram.linalg.factors import adjoint, alike, conj, extents, is_complex, matrices, real, square, stacked_alike
from hologram.linalg.norms import matrix_norm
from hologram.numpy.arguments import as_tensor
from hologram.support.user_lines import located
from hologram.trace.checks import integer, items
from hologram.trace.decisions import decided, most
from hologram.trace.recorder import current, transforming
from hologram.trace.symbolic_extent import extent
from hologram.trace.tensor import Tensor
from hologram.transform.custom import custom_jvp

__all__ = [
    "cond", "det", "inv", "lstsq", "matrix_power", "matrix_rank", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve", "triangular_solve",
]  # fmt: skip


class SlogdetResult(NamedTuple):
    """``sign`` of the determinant, and ``logabsdet``, the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class LstsqResult(NamedTuple):
    """``x``, the sums of squared ``residuals``, the ``rank`` and the singular values ``s`` of the matrix."""

    x: Tensor
    residuals: Tensor
    rank: Tensor
    s: Tensor


# --- systems ---------------------------------------------------------------------------------------------------------


def _right_sides(what: str, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, bool]:
    """Both as stacks of one size; a vector becomes a column, of which the last result tells."""
    column = b.ndim == 1
    if b.ndim == 0:
        raise located(ShapeError(f"{what}: the right side is a scalar"))
    b = hnp.expand_dims(b, axis=-1) if column else b
    if b.shape[-2] != a.shape[-2]:
        raise located(ShapeError(f"{what}: a right side of {b.shape[-2]} rows for matrices of shape {list(a.shape)}"))
    return *stacked_alike(what, a, b), column


def solve(x1: Any, x2: Any, /) -> Tensor:
    """Solves ``x1 x = x2`` for matrices ``x1`` (…, n, n) and ``x2`` (…, n, k), or one vector (n,).

    A singular matrix gives infinities or NaNs, where NumPy raises. Raises ShapeError where the shapes do not fit.

    >>> hg.linalg.solve([[2.0, 1.0], [0.0, 4.0]], [4.0, 8.0])
    Tensor([1., 2.], dtype=float32)
    """
    a, b, column = _right_sides("solve", *alike("solve", square(x1, "solve"), x2))
    out = hnp.matrix_transpose(factors.lu_solve(a, *factors.lu(a), hnp.matrix_transpose(b)))
    return out[..., 0] if column else out


def triangular_solve(
    a: Any,
    b: Any,
    /,
    *,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
    left_side: bool = True,
) -> Tensor:
    """Solves ``op(a) x = b``, or ``x op(a) = b`` unless ``left_side``, for triangular matrices ``a`` (…, n, n), of which one triangle is read.

    ``op`` transposes and conjugates as asked; ``unit_diagonal`` takes the diagonal to be ones. ``b`` is (…, n, k) ((…, k, n) unless
    ``left_side``), or one vector (n,). Raises ShapeError where the shapes do not fit.

    >>> hg.linalg.triangular_solve([[2.0, 0.0], [1.0, 4.0]], [2.0, 9.0], lower=True)
    Tensor([1., 2.], dtype=float32)
    """
    matrix, right = alike("triangular_solve", square(a, "triangular_solve"), b)
    if conjugate_a:
        matrix = conj(matrix)
    column = right.ndim == 1
    if not left_side and not column:
        right = hnp.matrix_transpose(right)
    matrix, right, column = _right_sides("triangular_solve", matrix, right)
    out = factors.triangular_solve(matrix, right, lower, transpose_a != (not left_side), unit_diagonal)
    if column:
        return out[..., 0]
    return out if left_side else hnp.matrix_transpose(out)


def inv(x: Any, /) -> Tensor:
    """Inverses of matrices (…, n, n). A singular matrix gives infinities or NaNs, where NumPy raises.

    Raises ShapeError for matrices that are not square.

    >>> hg.linalg.inv([[2.0, 0.0], [0.0, 4.0]])
    Tensor([[0.5 , 0.  ],
            [0.  , 0.25]], dtype=float32)
    """
    a = square(x, "inv")
    unit = hnp.broadcast_to(hnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    return factors.lu_solve(a, *factors.lu(a), unit, transposed=True)  # row i of the inverse, times a, is row i of the identity


def det(x: Any, /) -> Tensor:
    """Determinants (…) of matrices (…, n, n).

    First and second derivatives are those of the polynomial that it is, of singular matrices too. Raises ShapeError for matrices that are not
    square.

    >>> hg.linalg.det([[2.0, 0.0], [0.0, 4.0]])
    Tensor(8., dtype=float32)
    """
    return _det(square(x, "det"))


@custom_jvp
def _det(a: Tensor) -> Tensor:
    return determinant(*factors.lu(a))


@_det.defjvp
def _det_jvp(primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
    """Jacobi's formula: the trace of ``adj(a) da``."""
    (a,), (da,) = primals, tangents
    if extents(a)[0] == 0:
        return _det(a), hnp.zeros_like(_det(a))
    return _det(a), hnp.sum(adjugate(a) * hnp.matrix_transpose(da), axis=(-2, -1))


def slogdet(x: Any, /) -> SlogdetResult:
    """Sign and logarithm of the magnitude of determinants (…) of matrices (…, n, n): a named tuple ``(sign, logabsdet)``.

    A singular matrix has 0 and -inf. Raises ShapeError for matrices that are not square.

    >>> hg.linalg.slogdet([[2.0, 0.0], [0.0, -4.0]])
    SlogdetResult(sign=Tensor(-1., dtype=float32), logabsdet=Tensor(2.0794415, dtype=float32))
    """
    packed, pivots = factors.lu(square(x, "slogdet"))
    diagonal = factors.diagonal(packed)
    sizes = hnp.abs(diagonal)
    signs = diagonal / hnp.where(sizes == 0, 1.0, sizes) if is_complex(diagonal) else hnp.sign(diagonal)  # a complex sign has a derivative
    sign = hnp.prod(signs, axis=-1)
    return SlogdetResult(hnp.where(exchanges(pivots), -sign, sign), hnp.sum(hnp.log(sizes), axis=-1))


# --- rank ------------------------------------------------------------------------------------------------------------


def _threshold(s: Tensor, m: Any, n: Any, rtol: Any) -> Tensor:
    """The singular values from which on they count (…, 1)."""
    if rtol is None:
        larger = most(m, n)
        eps = float(np.finfo(s.dtype).eps)
        rtol = larger * eps if isinstance(larger, int) else hnp.astype(hnp.asarray(extent(larger)), s.dtype) * eps
    elif not isinstance(rtol, float | int):
        rtol = hnp.expand_dims(hnp.asarray(rtol), axis=-1)
    return s[..., :1] * rtol


def matrix_rank(x: Any, /, rtol: Any = None, hermitian: bool = False, *, tol: Any = None) -> Tensor:
    """Rank of matrices (…, m, n): how many singular values exceed ``rtol`` times the largest, by default max(m, n) ε, or ``tol``; int64 (…).
    ``hermitian`` says that the lower triangles stand for Hermitian matrices. The rank of a vector is 1, or 0 where all elements are. Raises
    ArgumentError for both thresholds at once.

    >>> hg.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]])
    Tensor(1, dtype=int64)
    """
    if rtol is not None and tol is not None:
        raise located(ArgumentError("matrix_rank: tol and rtol are two thresholds: give one"))
    if (t := as_tensor(x, "matrix_rank")).ndim < 2:
        return hnp.astype(hnp.any(t != 0), hnp.int64)
    a = of_lower_triangle(t, "matrix_rank") if hermitian else matrices(t, "matrix_rank")
    m, n = extents(a)
    if 0 in (m, n):
        return hnp.zeros(a.shape[:-2], dtype=hnp.int64)
    s = svdvals(a)
    least = _threshold(s, m, n, rtol) if tol is None else hnp.expand_dims(hnp.asarray(tol), axis=-1)
    return hnp.sum(hnp.astype(s > least, hnp.int64), axis=-1)


@custom_jvp
def _pinv(x: Tensor, cut: Tensor) -> Tensor:
    u, s, vh = svd(x, full_matrices=False)
    inverse = hnp.where(s > cut, 1.0 / hnp.where(s > cut, s, 1.0), 0.0)
    return hnp.matmul(adjoint(vh) * hnp.expand_dims(inverse, axis=-2), adjoint(u))


@_pinv.defjvp
def _pinv_jvp(primals: tuple[Tensor, Tensor], tangents: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Golub and Pereyra, *The differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate*, 1973."""
    (x, cut), (dx, _) = primals, tangents
    p = _pinv(x, cut)
    ph, dxh = adjoint(p), adjoint(dx)
    dp = -hnp.matmul(p, hnp.matmul(dx, p))
    left, right = hnp.matmul(p, hnp.matmul(ph, dxh)), hnp.matmul(dxh, hnp.matmul(ph, p))
    dp = dp + left - hnp.matmul(hnp.matmul(left, x), p)
    return p, dp + right - hnp.matmul(p, hnp.matmul(x, right))


def pinv(x: Any, /, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Tensor:
    """Pseudo-inverses (…, n, m) of matrices (…, m, n), without singular values up to ``rtol`` times the largest, by default max(m, n) ε.

    ``rcond`` is another name of ``rtol``. ``hermitian`` says that the lower triangles stand for Hermitian matrices. The derivative takes the rank to
    be constant. Raises ArgumentError for both names at once.

    >>> hg.linalg.pinv([[2.0, 0.0], [0.0, 0.0]])
    Tensor([[0.5, 0. ],
            [0. , 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise located(ArgumentError("pinv: rcond and rtol are two names of one thing"))
    a = of_lower_triangle(x, "pinv") if hermitian else matrices(x, "pinv")
    m, n = extents(a)
    if 0 in (m, n):
        return hnp.zeros((*a.shape[:-2], n, m), dtype=a.dtype)
    return _pinv(a, _threshold(svdvals(a), m, n, rcond if rtol is None else rtol))


def lstsq(a: Any, b: Any, /, rcond: Any = None) -> LstsqResult:
    """Least squares: the ``x`` of least norm that minimises ``|a x - b|``, for one matrix ``a`` (m, n) and ``b`` (m, k) or (m,).

    A named tuple ``(x, residuals, rank, s)``. Singular values up to ``rcond`` times the largest, by default max(m, n) ε, count as 0. ``residuals``
    is empty unless m > n and the rank is n, which is not known under ``jit``: there it is the sum of squares where m > n. Raises ShapeError where the
    shapes do not fit.

    >>> found = hg.linalg.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> hnp.round(found.x, 3), found.rank
    (Tensor([1., 2.], dtype=float32), Tensor(2, dtype=int64))
    """
    matrix, right = alike("lstsq", matrices(a, "lstsq"), b)
    if matrix.ndim != 2 or right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise located(ShapeError(f"lstsq takes one matrix and its right sides, not shapes {list(matrix.shape)} and {list(right.shape)}"))
    x = hnp.matmul(pinv(matrix, rtol=rcond), right)
    difference = hnp.matmul(matrix, x) - right
    residuals = hnp.sum(real(difference * conj(difference)), axis=0)
    rank = matrix_rank(matrix, rtol=rcond)
    m, n = matrix.shape
    if decided(n - m) or (current() is None and not transforming() and int(rank) < n):
        residuals = hnp.zeros((0,), dtype=residuals.dtype)
    return LstsqResult(x, hnp.atleast_1d(residuals), rank, svdvals(matrix))


# --- powers ----------------------------------------------------------------------------------------------------------


def matrix_power(x: Any, n: int, /) -> Tensor:
    """Square matrices (…, m, m) to the power of the integer ``n``, by repeated squaring; of the inverse where it is negative.

    Powers of integers and bools have their type, as in NumPy; inverses of them are float32. Raises ShapeError for matrices that are not square,
    ArgumentError for what is no integer.

    >>> hg.linalg.matrix_power([[1, 1], [0, 1]], 5)
    Tensor([[1, 5],
            [0, 1]], dtype=int64)
    """
    try:
        power = operator.index(n)
    except TypeError:
        raise located(ArgumentError(f"matrix_power: the power is an integer, not {type(n).__name__}")) from None
    base = square(x, "matrix_power")
    given = hnp.asarray(x)
    if power >= 0 and given.dtype.kind in "iub":
        base = given
    if power < 0:
        base, power = inv(base), -power
    result: Tensor | None = None
    while power:
        if power & 1:
            result = base if result is None else hnp.matmul(result, base)
        power >>= 1
        base = hnp.matmul(base, base) if power else base
    return +hnp.broadcast_to(hnp.eye(base.shape[-1], dtype=base.dtype), base.shape) if result is None else result


def cond(x: Any, p: Any = None) -> Tensor:
    """Condition numbers (…) of matrices (…, m, n): the norm times that of the inverse. Of 2, as for None, or -2 by singular values.

    Other orders of norms, as :func:`hologram.linalg.matrix_norm` has them, take square matrices. Infinity for singular ones.

    >>> hg.linalg.cond([[4.0, 0.0], [0.0, 0.5]])
    Tensor(8., dtype=float32)
    """
    a = matrices(x, "cond")
    if p in (None, 2, -2):
        s = svdvals(a)
        large, small = (s[..., 0], s[..., -1]) if p != -2 else (s[..., -1], s[..., 0])
        found = large / small
    else:
        found = matrix_norm(a, ord=p) * matrix_norm(inv(square(a, "cond")), ord=p)
    unknown = hnp.any(hnp.isnan(a), axis=(-2, -1))
    return hnp.where(hnp.isnan(found) & ~unknown, hnp.inf, found)


def tensorinv(a: Any, ind: int = 2) -> Tensor:
    """The inverse of :func:`hologram.numpy.tensordot` over the last axes: from ``ind`` axes of ``a`` to the others.

    The result has the others first. Raises ShapeError where the sizes of both have different products, ArgumentError for an ``ind`` below 1.

    >>> hg.linalg.tensorinv(2 * hnp.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    t, count = matrices(a, "tensorinv"), integer(ind, "tensorinv", "ind")
    if count < 1:
        raise located(ArgumentError(f"tensorinv: ind is at least 1, not {count}"))
    rows, columns = t.shape[:count], t.shape[count:]
    if math.prod(rows) != math.prod(columns):
        raise located(ShapeError(f"tensorinv: axes {list(rows)} and {list(columns)} have different sizes"))
    return inv(t.reshape(math.prod(rows), math.prod(columns))).reshape(*columns, *rows)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Tensor:
    """The ``x`` of which ``tensordot(a, x, x.ndim) = b``: ``a`` has the axes of ``b``, then those of ``x``.

    ``axes`` of ``a`` are moved to its end before. Raises ShapeError where sizes do not fit.

    >>> hg.linalg.tensorsolve(2 * hnp.eye(6).reshape(2, 3, 2, 3), hnp.ones((2, 3)))[0]
    Tensor([0.5, 0.5, 0.5], dtype=float32)
    """
    t, right = hnp.asarray(a), hnp.asarray(b)
    if axes is not None:
        chosen = items(axes, "tensorsolve", "axes")
        t = hnp.moveaxis(t, tuple(chosen), tuple(range(t.ndim - len(chosen), t.ndim)))
    unknowns = t.shape[right.ndim :]
    if t.shape[: right.ndim] != right.shape or math.prod(unknowns) != math.prod(right.shape):
        raise located(ShapeError(f"tensorsolve: equations of shape {list(t.shape)} with right sides of shape {list(right.shape)}"))
    size = math.prod(right.shape)
    return solve(t.reshape(size, size), right.reshape(size)).reshape(unknowns)
