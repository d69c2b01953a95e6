"""Linear algebra ops: factorizations of matrices, and solving with factors.

All take stacks of matrices, in the last two axes. What a matrix does not have (the factor of one that is not positive definite) is NaN. Their
conventions are those in which LAPACK, which stores by columns, gives and takes rows:

- ``cholesky(x)``: lower ``l`` with ``x = l l*``; reads the lower triangle;
- ``lu(x)``: the transpose of ``x`` factored with partial pivoting, ``xᵀ = p l u``: ``factors``, the transpose of l (below its diagonal of ones) and u
  in one matrix, ``pivots`` (int32), row k was exchanged with row ``pivots[k]``, and ``order`` (int32), row k is row ``order[k]`` of ``xᵀ``;
- ``lu_solve(x, factors, pivots, b; transposed)``: ``y`` with ``x yᵢ = bᵢ``, or ``xᵀ yᵢ = bᵢ``, for every row i of ``b`` and of ``y``. ``x`` itself
  is there for derivatives, which take the factors for what they are, its own;
- ``triangular_solve(a, b; lower, transposed, unit)``: ``y`` with ``a y = b``, or ``aᵀ y = b``, where ``a`` stands for its lower or upper triangle,
  ``unit`` with ones on the diagonal;
- ``lq(x; full)``: ``x = l q`` of at most as many rows as columns, ``l`` lower triangular (of the first rows of q), rows of ``q`` orthonormal: as many
  as ``x`` has, or if ``full`` as many as they have elements;
- ``svd(x; mode)``: singular values, descending, and unless ``mode`` is ``values``, ``u`` and ``v*`` with ``x = u s v*``, ``reduced`` or ``full``; of
  symbolic extents it says whether matrices are ``tall`` or ``wide``, too;
- ``eigh(x; vectors)``: eigenvalues of a Hermitian matrix, ascending, and if ``vectors`` the conjugated eigenvectors as rows (else anything); reads
  the lower triangle;
- ``eig(x; vectors)``: eigenvalues of any square matrix, complex and in no order, and if ``vectors`` the eigenvectors as rows (else anything): of norm
  1, the largest element real. A real matrix has its complex ones in conjugate pairs, that with the positive imaginary part first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hologram import dtypes
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, bounds
from hologram.primitives.host.host_op import Type, define_host_op

if TYPE_CHECKING:
    from hologram.ir.node import Node

# --- types -----------------------------------------------------------------------------------------------------------


def _check(name: str, *matrices: Node) -> None:
    first = matrices[0]
    for x in matrices:
        if x.dtype.name not in ("float32", "float64", "complex64", "complex128"):
            raise DTypeError(f"{name} does not take {x.dtype}")
        if len(x.shape) < 2:
            raise ShapeError(f"{name} takes matrices, not an array of shape {list(x.shape)}")
        if x.shape[:-2] != first.shape[:-2] or x.dtype is not first.dtype:
            raise ShapeError(f"{name}: {first.dtype}{list(first.shape)} and {x.dtype}{list(x.shape)} are not stacks of one size and type")


def _check_square(name: str, x: Node) -> None:
    _check(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, not shape {list(x.shape)}")


def _cholesky_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,) = inputs
    _check_square("cholesky", x)
    return [(x.shape, x.dtype)]


def _lu_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,) = inputs
    _check_square("lu", x)
    return [(x.shape, x.dtype), (x.shape[:-1], dtypes.int32), (x.shape[:-1], dtypes.int32)]


def _lu_solve_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    x, factors, pivots, b = inputs
    _check_square("solve", x)
    _check("solve", x, factors, b)
    if factors.shape != x.shape or pivots.dtype is not dtypes.int32:
        raise ShapeError(f"solve: factors {list(factors.shape)} and pivots of type {pivots.dtype} are not those of matrices {list(x.shape)}")
    if b.shape[-1] != factors.shape[-1] or pivots.shape != factors.shape[:-1]:
        raise ShapeError(f"solve: right sides of {b.shape[-1]} elements for matrices of shape {list(factors.shape)}")
    return [(b.shape, b.dtype)]


def _triangular_solve_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    a, b = inputs
    _check_square("triangular_solve", a)
    _check("triangular_solve", a, b)
    if b.shape[-2] != a.shape[-1]:
        raise ShapeError(f"triangular_solve: right sides of {b.shape[-2]} rows for matrices of shape {list(a.shape)}")
    return [(b.shape, b.dtype)]


def _lq_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,), (full,) = inputs, attrs
    _check("lq", x)
    n, m = x.shape[-2:]
    if isinstance(n, int) and isinstance(m, int) and n > m:
        raise ShapeError(f"lq takes at most as many rows as columns, not shape {list(x.shape)}")
    return [((*x.shape[:-2], n, n), x.dtype), ((*x.shape[:-2], m if full else n, m), x.dtype)]


def _svd_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,), (mode,) = inputs, attrs
    _check("svd", x)
    stack, (m, n) = x.shape[:-2], x.shape[-2:]
    least = smaller_extent(x.shape, mode)
    values = ((*stack, least), dtypes.real_of(x.dtype))
    wanted = wanted_of(mode)
    if wanted == "values":
        return [values]
    columns, rows = (m, n) if wanted == "full" else (least, least)
    return [values, ((*stack, m, columns), x.dtype), ((*stack, rows, n), x.dtype)]


TALL, WIDE = " tall", " wide"  # at the end of a mode: at least as many rows as columns, and at most; where extents do not tell
SVD_MODES = tuple(wanted + order for wanted in ("values", "reduced", "full") for order in ("", TALL, WIDE))


def wanted_of(mode: str) -> str:
    """What a mode of ``svd`` asks for."""
    return mode.partition(" ")[0]


def is_ordered(rows_less_columns: Int) -> bool:
    """Whether extents tell whether there are at least as many rows as columns, or at most as many."""
    low, high = bounds(rows_less_columns)
    return (low is not None and low >= 0) or (high is not None and high <= 0)


def smaller_extent(shape: Shape, mode: str) -> Int:
    """The number of singular values. Raises ShapeError where the mode does not tell it, or tells what is wrong."""
    m, n = shape[-2:]
    low, high = bounds(m - n)
    order = mode.removeprefix(wanted_of(mode))
    if not order and not is_ordered(m - n):
        raise ShapeError(f"svd: whether matrices of shape {list(shape)} have more rows than columns must be known")
    is_tall = order == TALL or (not order and low is not None and low >= 0)
    if order and ((is_tall and high is not None and high < 0) or (not is_tall and low is not None and low > 0)):
        raise ShapeError(f"svd: matrices of shape {list(shape)} are not{order}")
    return n if is_tall else m


def _eigh_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,) = inputs
    _check_square("eigh", x)
    return [(x.shape[:-1], dtypes.real_of(x.dtype)), (x.shape, x.dtype)]


def _eig_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,) = inputs
    _check_square("eig", x)
    dtype = dtypes.promote(x.dtype, dtypes.complex64)
    return [(x.shape[:-1], dtype), (x.shape, dtype)]


# --- meanings --------------------------------------------------------------------------------------------------------


def _each(f: Callable[[np.ndarray], Any], x: np.ndarray, types: list[tuple[tuple[int, ...], Any]]) -> list[np.ndarray]:
    """``f`` on every matrix of a stack; NaNs for one that it fails on."""
    stack = x.shape[:-2]
    out = [np.full((*stack, *shape), np.nan, dtype) for shape, dtype in types]
    for at in np.ndindex(stack):
        try:
            found = f(x[at])
        except np.linalg.LinAlgError:
            continue
        for to, value in zip(out, found, strict=True):
            to[at] = value
    return out


def _cholesky(x: np.ndarray) -> list[np.ndarray]:
    return _each(lambda a: [np.linalg.cholesky(a)], x, [(x.shape[-2:], x.dtype)])


def _lu(x: np.ndarray) -> list[np.ndarray]:
    """Gaussian elimination, column by column of the transpose, all matrices of the stack at once."""
    a, n = np.swapaxes(x, -1, -2).copy(), x.shape[-1]
    a = a.reshape(-1, n, n)
    pivots = np.zeros((len(a), n), np.int32)
    order = np.tile(np.arange(n, dtype=np.int32), (len(a), 1))
    every = np.arange(len(a))
    for k in range(n):
        pivot = k + np.argmax(abs(a[:, k:, k].real) + abs(a[:, k:, k].imag), axis=1)
        pivots[:, k] = pivot
        for rows in (a, order):
            before = rows[:, k].copy()
            rows[:, k] = rows[every, pivot]
            rows[every, pivot] = before
        divisor = np.where(a[:, k, k] == 0, 1, a[:, k, k])
        a[:, k + 1 :, k] /= divisor[:, None]
        a[:, k + 1 :, k + 1 :] -= a[:, k + 1 :, k, None] * a[:, k, None, k + 1 :]
    return [np.swapaxes(a, -1, -2).reshape(x.shape), pivots.reshape(x.shape[:-1]), order.reshape(x.shape[:-1])]


def _lu_solve(x: np.ndarray, factors: np.ndarray, pivots: np.ndarray, b: np.ndarray, transposed: bool) -> list[np.ndarray]:
    """``p l u y = b`` where what was factored, the transpose, is asked for; else ``uᵀ lᵀ pᵀ y = b``."""
    n, y = factors.shape[-1], np.swapaxes(b, -1, -2).copy()
    flat, exchanges = y.reshape(-1, *y.shape[-2:]), pivots.reshape(-1, n)
    every = np.arange(len(flat))
    packed = np.swapaxes(factors, -1, -2).reshape(-1, n, n)

    def exchange(k: int) -> None:
        other = flat[every, exchanges[:, k]]
        flat[every, exchanges[:, k]] = flat[:, k]
        flat[:, k] = other

    if transposed:
        for k in range(n):
            exchange(k)
        flat = _triangular(packed, flat, True, False, True)
        flat = _triangular(packed, flat, False, False, False)
    else:
        flat = _triangular(packed, flat, False, True, False)
        flat = _triangular(packed, flat, True, True, True)
        for k in reversed(range(n)):
            exchange(k)
    return [np.swapaxes(flat.reshape(y.shape), -1, -2)]


def _triangular(a: np.ndarray, b: np.ndarray, lower: bool, transposed: bool, unit: bool) -> np.ndarray:
    """Substitution, row by row."""
    if transposed:
        a, lower = np.swapaxes(a, -1, -2), not lower
    n, y = a.shape[-1], b.copy()
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        y[..., i, :] -= (a[..., i, known, None] * y[..., known, :]).sum(-2)
        if not unit:
            y[..., i, :] /= a[..., i, i, None]
    return y


def _triangular_solve(a: np.ndarray, b: np.ndarray, lower: bool, transposed: bool, unit: bool) -> list[np.ndarray]:
    return [_triangular(a, b, lower, transposed, unit)]


def _lq(x: np.ndarray, full: bool) -> list[np.ndarray]:
    n = x.shape[-2]
    q, r = np.linalg.qr(np.swapaxes(x, -1, -2), "complete" if full else "reduced")
    return [np.swapaxes(r[..., :n, :], -1, -2), np.swapaxes(q, -1, -2)]


def _svd(x: np.ndarray, mode: str) -> list[np.ndarray]:
    m, n = x.shape[-2:]
    real, least = x.real.dtype, min(m, n)
    wanted = wanted_of(mode)
    if wanted == "values":
        return _each(lambda a: [np.linalg.svd(a, compute_uv=False)], x, [((least,), real)])
    columns, rows = (m, n) if wanted == "full" else (least, least)

    def one(a: np.ndarray) -> list[np.ndarray]:
        u, s, v = np.linalg.svd(a, full_matrices=wanted == "full")
        return [s, u, v]

    return _each(one, x, [((least,), real), ((m, columns), x.dtype), ((rows, n), x.dtype)])


def _eigh(x: np.ndarray, vectors: bool) -> list[np.ndarray]:
    n = x.shape[-1]

    def one(a: np.ndarray) -> list[np.ndarray]:
        w, v = np.linalg.eigh(a)
        return [w, v.T.conj()]

    return _each(one, x, [((n,), x.real.dtype), ((n, n), x.dtype)])


def _eig(x: np.ndarray, vectors: bool) -> list[np.ndarray]:
    n = x.shape[-1]
    kind = np.result_type(x.dtype, np.complex64)

    def one(a: np.ndarray) -> list[np.ndarray]:
        w, v = np.linalg.eig(a)
        return [w, v.T]

    return _each(one, x, [((n,), kind), ((n, n), kind)])


_quiet = np.errstate(all="ignore")
cholesky = define_host_op("cholesky", 1, _cholesky_results, _quiet(_cholesky))
lu = define_host_op("lu", 1, _lu_results, _quiet(_lu))
lu_solve = define_host_op("lu_solve", 4, _lu_solve_results, _quiet(_lu_solve), "transposed")
triangular_solve = define_host_op("triangular_solve", 2, _triangular_solve_results, _quiet(_triangular_solve), "lower", "transposed", "unit")
lq = define_host_op("lq", 1, _lq_results, _quiet(_lq), "full", cost=2)
svd = define_host_op("svd", 1, _svd_results, _quiet(_svd), "mode", cost=8)
eigh = define_host_op("eigh", 1, _eigh_results, _quiet(_eigh), "vectors", cost=4)
eig = define_host_op("eig", 1, _eig_results, _quiet(_eig), "vectors", cost=8)
