"""Factorizations of ``torch.linalg``, in those of :mod:`hologram.linalg`.

``info``, from which torch raises its LinAlgError, is 0 where all is well. The order of the minor at which a Cholesky factorization stops is not
known: ``info`` names the first.
"""

from __future__ import annotations

import torch

from hologram import numpy as hnp
from hologram.control import fori_loop
from hologram.errors import DTypeError, UnsupportedError
from hologram.linalg import decompositions, factors, systems
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, type_of

# Rows with results, by number, that are fixed only up to factors of size 1, which the routine chooses.
AMBIGUOUS = {torch.ops.aten._linalg_eigh.default: (1,), torch.ops.aten._linalg_svd.default: (0, 2)}
_TYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)  # what LAPACK has


def _matrices(what: str, x: Tensor, check_errors: bool = False) -> Tensor:
    """``x``. Raises DTypeError for element types that LAPACK lacks, UnsupportedError for errors to be checked before there are values."""
    if check_errors:
        raise UnsupportedError(f"{what}: check_errors=True is not supported: read info")
    if type_of(x) not in _TYPES:
        raise DTypeError(f"{what}: takes {', '.join(str(t) for t in _TYPES)}, not {type_of(x)}")
    return x


def _absent(x: Tensor) -> Tensor:
    """What torch gives for vectors that are not asked for."""
    return hnp.zeros((0,), dtype=x.dtype)


def _first(failed: Tensor) -> Tensor:
    """LAPACK's ``info`` (…): the number, from 1 up, of the first of the flags (…, n) that is set, or 0."""
    if failed.shape[-1] == 0:
        return hnp.zeros(failed.shape[:-1], dtype=hnp.int32)
    return hnp.where(hnp.any(failed, axis=-1), cast(hnp.argmax(failed, axis=-1) + 1, torch.int32), hnp.zeros((), dtype=hnp.int32))


def _lu(what: str, a: Tensor, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Torch's packed factors, its pivots, which count from 1, and ``info``. Hologram factors transposes, and gives transposes of factors."""
    packed, pivots = factors.lu(hnp.matrix_transpose(_matrices(what, a, check_errors)))
    return hnp.matrix_transpose(packed), pivots + 1, _first(factors.diagonal(packed) == 0)


@implements("linalg_lu_factor_ex")
def lu_factor_ex(a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    if not pivot:
        raise UnsupportedError("linalg_lu_factor_ex: pivot=False is not supported")
    return _lu("linalg_lu_factor_ex", a, check_errors)


@implements("linalg_lu_solve")
def lu_solve(packed: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """``x`` with ``a x = b``, or ``a* x = b`` if ``adjoint``; unless ``left``, ``x a = b``, which is ``a* x* = b*``."""
    if not left:
        return factors.adjoint(lu_solve(packed, pivots, factors.adjoint(b), adjoint=not adjoint))
    transposed, right = factors.stacked_alike("lu_solve", hnp.matrix_transpose(packed), factors.conj(b) if adjoint else b)
    exchanged = hnp.broadcast_to(pivots - 1, transposed.shape[:-1])
    found = hnp.matrix_transpose(factors.lu_solve(transposed, transposed, exchanged, hnp.matrix_transpose(right), transposed=not adjoint))
    return factors.conj(found) if adjoint else found


@implements("lu_unpack")
def lu_unpack(packed: Tensor, pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """The permutation, as a matrix, and the triangular factors."""
    rows, columns = packed.shape[-2:]
    rank = min(rows, columns)
    permutation, lower, upper = _absent(packed), _absent(packed), _absent(packed)
    if unpack_pivots:
        permutation = cast(hnp.expand_dims(hnp.arange(rows), axis=-1) == hnp.expand_dims(_permuted(pivots - 1, rows), axis=-2), type_of(packed))
    if unpack_data:
        lower = hnp.tril(packed[..., :rank], k=-1) + hnp.eye(rows, rank, dtype=packed.dtype)
        upper = hnp.triu(packed[..., :rank, :])
    return permutation, lower, upper


def _permuted(pivots: Tensor, rows: int) -> Tensor:
    """Where rows come from (…, rows) when, in order, row i has been exchanged with row ``pivots[..., i]``."""
    positions = hnp.arange(rows)

    def exchange(i: Tensor, order: Tensor) -> Tensor:
        j = hnp.take(pivots, hnp.reshape(i, (1,)), axis=-1)
        here, there = hnp.take(order, hnp.reshape(i, (1,)), axis=-1), hnp.take_along_axis(order, j, axis=-1)
        return hnp.where(positions == i, there, hnp.where(positions == j, here, order))

    return fori_loop(0, pivots.shape[-1], exchange, hnp.broadcast_to(positions, (*pivots.shape[:-1], rows)))


@implements("linalg_inv_ex")
def inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    packed, pivots, info = _lu("linalg_inv_ex", a, check_errors)
    return lu_solve(packed, pivots, hnp.broadcast_to(hnp.eye(a.shape[-1], dtype=a.dtype), a.shape)), info


@implements("_linalg_solve_ex")
def solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    packed, pivots, info = _lu("_linalg_solve_ex", a, check_errors)
    column = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])  # torch's rule for a stack of vectors
    found = lu_solve(packed, pivots, hnp.expand_dims(b, axis=-1) if column else b, left=left or column)
    return found[..., 0] if column else found, packed, pivots, info


def _as_derivatives_take_it(a: Tensor) -> Tensor:
    """That of ``a`` and its transpose whose factors torch's derivatives of determinants take: for real matrices in C order the transpose. Their
    determinant is one, and found from the same factors."""
    return a if factors.is_complex(a) else hnp.matrix_transpose(a)


@implements("_linalg_det")
def det(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For matrices in C order: see :data:`hologram_torch.aten.shapes.movement.LAYOUT_SENSITIVE`."""
    packed, pivots, _ = _lu("_linalg_det", _as_derivatives_take_it(a))
    return systems.det(a), packed, pivots


@implements("_linalg_slogdet")
def slogdet(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """For matrices in C order, as :func:`det`."""
    packed, pivots, _ = _lu("_linalg_slogdet", _as_derivatives_take_it(a))
    return *systems.slogdet(a), packed, pivots


@implements("linalg_cholesky_ex")
def cholesky_ex(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    x = _matrices("linalg_cholesky_ex", a, check_errors)
    found = decompositions.cholesky(factors.adjoint(x) if upper else x, upper=upper)  # torch reads the triangle that it gives
    return found, _first(hnp.isnan(factors.real(factors.diagonal(found))))


@implements("cholesky")
def cholesky(a: Tensor, upper: bool = False) -> Tensor:
    return cholesky_ex(a, upper=upper)[0]


@implements("cholesky_solve")
def cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False) -> Tensor:
    """``x`` with ``a x = b`` for the ``a`` that has this factor."""
    lower = factors.adjoint(factor) if upper else factor
    half = systems.triangular_solve(lower, b, lower=True)
    return systems.triangular_solve(factors.adjoint(lower), half, lower=False)


@implements("cholesky_inverse")
def cholesky_inverse(factor: Tensor, upper: bool = False) -> Tensor:
    return cholesky_solve(hnp.broadcast_to(hnp.eye(factor.shape[-1], dtype=factor.dtype), factor.shape), factor, upper)


@implements("linalg_pinv.atol_rtol_tensor")
def pinv(a: Tensor, *, atol: Tensor | None = None, rtol: Tensor | None = None, hermitian: bool = False) -> Tensor:
    """Singular values up to the larger of ``atol`` and ``rtol`` times the largest count for nothing."""
    x = _matrices("linalg_pinv", a)
    if hermitian:
        x = decompositions.of_lower_triangle(x, "linalg_pinv")
    u, s, vh = decompositions.svd(x, full_matrices=False)
    if rtol is None:
        rtol = hnp.full((), 0.0 if atol is not None else max(a.shape[-2:]) * torch.finfo(type_of(a)).eps, dtype=s.dtype)
    cut = hnp.expand_dims(cast(rtol, type_of(s)), axis=-1) * s[..., :1]
    if atol is not None:
        cut = hnp.maximum(cut, hnp.expand_dims(cast(atol, type_of(s)), axis=-1))
    kept = s > cut
    inverses = hnp.where(kept, 1.0 / hnp.where(kept, s, 1.0), 0.0)
    return hnp.matmul(factors.adjoint(vh) * hnp.expand_dims(inverses, axis=-2), factors.adjoint(u))


@implements("linalg_solve_triangular")
def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    x = _matrices("linalg_solve_triangular", a)
    return systems.triangular_solve(x, b, lower=not upper, left_side=left, unit_diagonal=unitriangular)


@implements("linalg_qr")
def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    q, r = decompositions.qr(_matrices("linalg_qr", a), mode="reduced" if mode == "r" else mode)
    return _absent(q) if mode == "r" else q, r


@implements("_linalg_eigh")
def eigh(a: Tensor, uplo: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    x = _matrices("_linalg_eigh", a)
    lower = factors.adjoint(x) if uplo.upper() == "U" else x
    if not compute_v:
        return decompositions.eigvalsh(lower), _absent(x)
    values, vectors = decompositions.eigh(lower)
    return values, vectors


@implements("_linalg_svd")
def svd(a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    x = _matrices("_linalg_svd", a)
    if not compute_uv:
        return _absent(x), decompositions.svdvals(x), _absent(x)
    u, s, vh = decompositions.svd(x, full_matrices=full_matrices)
    return u, s, vh
