"""Adjugates: the derivative of the determinant, of singular matrices too.

For a regular matrix the adjugate is ``det(a) inv(a)``. For any matrix ``a = u s v*`` it is ``det(u v*) v adj(s) u*``, where the diagonal of
``adj(s)`` holds the products of all singular values but one; its derivative holds the products of all but two. The singular value decomposition is
computed only where a determinant is 0, or so small or large that the first formula is not right. Sources: J. Magnus and H. Neudecker, *Matrix
differential calculus*, chapter 8; the derivative is the first-order term of ``adj(s + t b)``.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

import hologram.numpy as hnp
from hologram.control.loops import while_loop
from hologram.linalg import factors
from hologram.linalg.factors import adjoint
from hologram.trace.tensor import Tensor
from hologram.transform.custom import custom_jvp


def _column(x: Tensor) -> Tensor:
    """One number a matrix, beside matrices."""
    return hnp.expand_dims(x, axis=(-2, -1))


def determinant(packed: Tensor, pivots: Tensor) -> Tensor:
    """Of the factors of matrices."""
    product = hnp.prod(factors.diagonal(packed), axis=-1)
    return hnp.where(exchanges(pivots), -product, product)


def exchanges(pivots: Tensor) -> Tensor:
    """Whether rows were exchanged an odd number of times."""
    positions = hnp.arange(pivots.shape[-1], dtype=hnp.int32)
    return hnp.sum(hnp.astype(pivots != positions, hnp.int32), axis=-1) % 2 == 1


def _identity(a: Tensor) -> Tensor:
    return hnp.broadcast_to(hnp.eye(a.shape[-1], dtype=a.dtype), a.shape)


def _trace(x: Tensor) -> Tensor:
    return _column(hnp.sum(factors.diagonal(x), axis=-1))


def _size(x: Tensor) -> Tensor:
    """The largest absolute value of each matrix (…, 1, 1)."""
    return hnp.max(hnp.abs(x), axis=(-2, -1), keepdims=True)


class _Regular(NamedTuple):
    """``det`` (…, 1, 1) and ``inv`` of matrices."""

    det: Tensor
    inv: Tensor

    def adjugate(self) -> Tensor:
        return self.det * self.inv

    def change(self, da: Tensor) -> Tensor:
        """The derivative of the adjugate in the direction ``da``."""
        moved = hnp.matmul(self.inv, da)
        return self.det * (_trace(moved) * self.inv - hnp.matmul(moved, self.inv))


def _regular(a: Tensor) -> _Regular:
    packed, pivots = factors.lu(a)
    return _Regular(_column(determinant(packed, pivots)), factors.lu_solve(a, packed, pivots, _identity(a), transposed=True))


class _Singular(NamedTuple):
    """``v``, ``u*`` and the determinant of ``u v*`` (…, 1, 1); ``values`` (…, n) the singular values. Zeros for a matrix that is regular."""

    v: Tensor
    uh: Tensor
    phase: Tensor
    values: Tensor

    def adjugate(self) -> Tensor:
        n = self.values.shape[-1]
        others = hnp.where(hnp.eye(n, dtype=bool), 1.0, hnp.expand_dims(self.values, axis=-2))
        return hnp.matmul(self.phase * self.v * hnp.expand_dims(hnp.prod(others, axis=-1), axis=-2), self.uh)

    def change(self, da: Tensor) -> Tensor:
        """The derivative of the adjugate in the direction ``da``."""
        n = self.values.shape[-1]
        unit = hnp.eye(n, dtype=bool)
        two = unit[:, None, :] | unit[None, :, :]
        others = hnp.where(two, 1.0, hnp.expand_dims(self.values, axis=(-3, -2)))
        products = hnp.where(unit, 0.0, hnp.prod(others, axis=-1))  # of all but two different ones
        inner = hnp.matmul(self.uh, hnp.matmul(da, self.v))
        diagonal = hnp.expand_dims(factors.diagonal(inner), axis=-1)
        inside = hnp.where(unit, hnp.matmul(products, diagonal), -inner * products)
        return hnp.matmul(self.phase * hnp.matmul(self.v, inside), self.uh)


def _decomposed(a: Tensor) -> _Singular:
    values, u, vh = factors.svd(a, "reduced")
    return _Singular(adjoint(vh), adjoint(u), _regular(hnp.matmul(u, vh)).det, values)


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _parts(a: Tensor, differentiated: bool) -> tuple[_Regular, _Singular]:
    """What the two formulas take, each zeros where the other one holds.

    The adjugate itself is right as long as nothing overflows or vanishes. In its derivative (``differentiated``) terms cancel by as many digits
    as the condition number has, so that half of them may.
    """
    regular = _regular(a)
    limits = np.finfo(a.dtype)
    sound = hnp.all(hnp.isfinite(regular.adjugate()), axis=(-2, -1), keepdims=True) & (hnp.abs(regular.det) >= float(limits.smallest_normal))
    if differentiated:
        sound = sound & (_size(a) * _size(regular.inv) < 1 / math.sqrt(limits.eps))
    started = _Singular(hnp.zeros_like(a), hnp.zeros_like(a), hnp.zeros_like(regular.det), hnp.zeros(a.shape[:-1], dtype=limits.dtype))

    def decompose(state: Any) -> Any:
        chosen = [hnp.where(sound if x.ndim == a.ndim else sound[..., 0], 0.0, x) for x in _decomposed(a)]
        return hnp.asarray(False), _Singular(*chosen)

    wanted = ~hnp.all(sound)
    _, singular = while_loop(lambda state: state[0], decompose, (wanted, started))  # at most one turn; not cond, of which vmap runs both branches
    return _Regular(hnp.where(sound, regular.det, 0.0), hnp.where(sound, regular.inv, 0.0)), singular


@_parts.defjvp
def _parts_jvp(differentiated: bool, primals: tuple[Tensor], tangents: tuple[Tensor]) -> Any:
    """Those of regular matrices; NaN for others, which have derivatives of the determinant up to the second here."""
    (a,), (da,) = primals, tangents
    regular, singular = _parts(a, differentiated)
    moved = hnp.matmul(regular.inv, da)
    changes = _Regular(regular.det * _trace(moved), -hnp.matmul(moved, regular.inv))
    unknown = hnp.where(singular.phase == 0, 0.0, np.nan) * _trace(da)
    return (regular, singular), (changes, _Singular(0.0 * singular.v, 0.0 * singular.uh, unknown, 0.0 * singular.values))


@custom_jvp
def adjugate(a: Tensor) -> Tensor:
    """The adjugates of square matrices (…, n, n): ``det(a) inv(a)``, and its limit where that has none."""
    regular, singular = _parts(a, False)
    return regular.adjugate() + singular.adjugate()


@adjugate.defjvp
def _adjugate_jvp(primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
    (a,), (da,) = primals, tangents
    regular, singular = _parts(a, True)
    return adjugate(a), regular.change(da) + singular.change(da)
