"""Kernels of torch.linalg's factorizations and of torch.fft's transforms, in those of :mod:`hologram.linalg` and :mod:`hologram.fft`.

Compiled models leave these ops to PyTorch, whose routines are as good; here they keep values on the device. ``info``, from which torch raises its
LinAlgError, is 0 where all is well. The order of the minor at which a Cholesky factorization stops is not known: it is said to be the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from hologram import numpy as hnp
from hologram.errors import DTypeError, UnsupportedError
from hologram.fft import transforms as fft
from hologram.linalg import decompositions, factors, systems
from hologram.trace.tensor import Tensor
from hologram_torch.aten.types import cast, type_of
from hologram_torch.devices import host, variants

aten = torch.ops.aten
_TYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)  # what LAPACK has
_functions: dict[OpOverload, Callable[..., Any]] = {}


def _function_of(op: OpOverload) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        _functions[op] = function
        return function

    return decorate


def kernels() -> dict[OpOverload, Callable[..., Any]]:
    """The kernels of these ops and of their ``out`` variants."""
    found = {form: variants.kernel(form, function) for op, function in _functions.items() for form in (op, *variants.variants_of(op))}
    found |= {op: _turning(found[op]) for op in (aten._linalg_det.default, aten._linalg_slogdet.default)}
    unpack = aten.lu_unpack.default  # pivots are exchanges one after another: a loop of the host
    return found | {unpack: functools.partial(host.run_on_host, unpack)}


# --- factorizations --------------------------------------------------------------------------------------------------


def _matrices(op: OpOverload, x: Tensor) -> Tensor:
    """``x``. Raises DTypeError for element types that LAPACK lacks."""
    if type_of(x) not in _TYPES:
        raise DTypeError(f"{op.name()}: takes {', '.join(str(t) for t in _TYPES)}, not {type_of(x)}")
    return x


def _absent(x: Tensor) -> Tensor:
    """What torch gives for vectors that are not asked for."""
    return hnp.zeros((0,), dtype=x.dtype)


def _first(failed: Tensor) -> Tensor:
    """LAPACK's ``info`` (…): the number, from 1 up, of the first of the flags (…, n) that is set, or 0."""
    if failed.shape[-1] == 0:
        return hnp.zeros(failed.shape[:-1], dtype=hnp.int32)
    return hnp.where(hnp.any(failed, axis=-1), cast(hnp.argmax(failed, axis=-1) + 1, torch.int32), hnp.zeros((), dtype=hnp.int32))


def _lu(op: OpOverload, a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Torch's packed factors, its pivots, which count from 1, and ``info``. Hologram factors transposes, and gives transposes of factors."""
    packed, pivots = factors.lu(hnp.matrix_transpose(_matrices(op, a)))
    return hnp.matrix_transpose(packed), pivots + 1, _first(factors.diagonal(packed) == 0)


@_function_of(aten.linalg_lu_factor_ex.default)
def lu_factor_ex(a: Tensor, *, pivot: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    if not pivot:
        raise UnsupportedError("aten::linalg_lu_factor_ex: pivot=False is not supported on device='hologram'")
    return _lu(aten.linalg_lu_factor_ex.default, a)


@_function_of(aten.linalg_lu_solve.default)
def lu_solve(packed: Tensor, pivots: Tensor, b: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """``x`` with ``a x = b``, or ``a* x = b`` if ``adjoint``; unless ``left``, ``x a = b``, which is ``a* x* = b*``."""
    if not left:
        return factors.adjoint(lu_solve(packed, pivots, factors.adjoint(b), adjoint=not adjoint))
    turned, right = factors.stacked_alike("lu_solve", hnp.matrix_transpose(packed), factors.conj(b) if adjoint else b)
    exchanged = hnp.broadcast_to(pivots - 1, turned.shape[:-1])
    found = hnp.matrix_transpose(factors.lu_solve(turned, turned, exchanged, hnp.matrix_transpose(right), transposed=not adjoint))
    return factors.conj(found) if adjoint else found


@_function_of(aten.linalg_inv_ex.default)
def inv_ex(a: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    packed, pivots, info = _lu(aten.linalg_inv_ex.default, a)
    return lu_solve(packed, pivots, hnp.broadcast_to(hnp.eye(a.shape[-1], dtype=a.dtype), a.shape)), info


@_function_of(aten._linalg_solve_ex.default)
def solve_ex(a: Tensor, b: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    packed, pivots, info = _lu(aten._linalg_solve_ex.default, a)
    column = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])  # torch's rule for a stack of vectors
    found = lu_solve(packed, pivots, hnp.expand_dims(b, axis=-1) if column else b, left=left or column)
    return found[..., 0] if column else found, packed, pivots, info


@_function_of(aten._linalg_det.default)
def det(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return systems.det(a), *_lu(aten._linalg_det.default, a)[:2]


@_function_of(aten._linalg_slogdet.default)
def slogdet(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return *systems.slogdet(a), *_lu(aten._linalg_slogdet.default, a)[:2]


def _turning(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel with the factors that torch's derivatives take it to give: those of the transpose, for real matrices in C order."""

    def run(a: torch.Tensor, *args: Any, **options: Any) -> Any:
        return kernel(a.mT if a.is_contiguous() and not a.is_complex() else a, *args, **options)

    return run


@_function_of(aten.linalg_cholesky_ex.default)
def cholesky_ex(a: Tensor, *, upper: bool = False, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    x = _matrices(aten.linalg_cholesky_ex.default, a)
    found = decompositions.cholesky(factors.adjoint(x) if upper else x, upper=upper)  # torch reads the triangle that it gives
    return found, _first(hnp.isnan(factors.real(factors.diagonal(found))))


@_function_of(aten.linalg_solve_triangular.default)
def solve_triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    x = _matrices(aten.linalg_solve_triangular.default, a)
    return systems.triangular_solve(x, b, lower=not upper, left_side=left, unit_diagonal=unitriangular)


@_function_of(aten.linalg_qr.default)
def qr(a: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    q, r = decompositions.qr(_matrices(aten.linalg_qr.default, a), mode="reduced" if mode == "r" else mode)
    return _absent(q) if mode == "r" else q, r


@_function_of(aten._linalg_eigh.default)
def eigh(a: Tensor, uplo: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    x = _matrices(aten._linalg_eigh.default, a)
    lower = factors.adjoint(x) if uplo.upper() == "U" else x
    if not compute_v:
        return decompositions.eigvalsh(lower), _absent(x)
    values, vectors = decompositions.eigh(lower)
    return values, vectors


@_function_of(aten._linalg_svd.default)
def svd(a: Tensor, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    x = _matrices(aten._linalg_svd.default, a)
    if not compute_uv:
        return _absent(x), decompositions.svdvals(x), _absent(x)
    u, s, vh = decompositions.svd(x, full_matrices=full_matrices)
    return u, s, vh


# --- Fourier transforms ----------------------------------------------------------------------------------------------

_FORWARD = ("backward", "ortho", "forward")  # hologram.fft's norm, by torch's number: as it is, over the root of n, over n
_INVERSE = ("forward", "ortho", "backward")


@_function_of(aten._fft_c2c.default)
def complex_to_complex(x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    if not dim:
        return x
    transform, norms = (fft.fftn, _FORWARD) if forward else (fft.ifftn, _INVERSE)
    return transform(x, axes=tuple(dim), norm=norms[normalization])


@_function_of(aten._fft_r2c.default)
def real_to_complex(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    transform = fft.rfftn if onesided else fft.fftn
    return transform(x if onesided else cast(x, type_of(x).to_complex()), axes=tuple(dim), norm=_FORWARD[normalization])


@_function_of(aten._fft_c2r.default)
def complex_to_real(x: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    sizes = (*[x.shape[d] for d in dim[:-1]], last_dim_size)
    return fft.irfftn(x, s=sizes, axes=tuple(dim), norm=_INVERSE[normalization])
