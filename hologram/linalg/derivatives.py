"""Derivatives and stacks of the rows of :mod:`hologram.primitives.host.factorizations`.

Sources: M. Giles, *An extended collection of matrix derivative results for forward and reverse mode algorithmic differentiation*, 2008 (solve, eigh,
svd of distinct values); I. Murray, *Differentiation of the Cholesky decomposition*, 2016 (arXiv:1602.07527). That of ``x = l q`` follows from the
skew symmetry of ``q dq*``, that of ``xᵀ = p l u`` from the triangles of its factors' tangents.

Every rule is written in the factorizations themselves, so derivatives of any order follow. Where a factorization is not unique (equal eigenvalues, a
singular value of zero) its derivative does not exist, and is infinite or NaN here. Tangents of Hermitian arguments are taken as Hermitian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hologram.numpy as hnp
import hologram.primitives.host.factorizations as rows
from hologram.control.replay import result
from hologram.errors import DifferentiationError
from hologram.ir.node import Node
from hologram.ir.op import Op, transforms
from hologram.ir.symbolic import Int
from hologram.linalg import factors
from hologram.linalg.factors import adjoint, conj, extents, is_complex, real
from hologram.primitives.control import result_types
from hologram.support.user_lines import located
from hologram.trace.decisions import decided
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor
from hologram.transform.rules import batching

Given = Sequence[Tensor | None]


# --- from nodes to Tensors -------------------------------------------------------------------------------------------


class _Type:
    def __init__(self, shape: Any, dtype: Any) -> None:
        self.shape, self.dtype = shape, dtype


def _results(node: Node) -> list[Tensor]:
    return [wrap(result(node, i, _Type(*t))) for i, t in enumerate(result_types(node))]


def _jvp(rule: Callable[..., Sequence[Tensor | None]]) -> Callable[..., tuple[Node | None, ...]]:
    """A rule on Tensors, ``rule(tangents, results, *inputs, *attrs)``, as the row's."""

    def jvp(tangents: Sequence[Node | None], out: Node, *rest: Any) -> tuple[Node | None, ...]:
        given = [None if t is None else wrap(t) for t in tangents]
        inputs = [wrap(x) if isinstance(x, Node) else x for x in rest]
        return tuple(None if t is None else node_of(t) for t in rule(given, _results(out), *inputs))

    return jvp


def _batch(op: Op) -> Callable[..., Node]:
    def batch(size: Int, batched: Sequence[bool], *rest: Any) -> Node:
        inputs, attrs = rest[: len(batched)], rest[len(batched) :]
        return record(op, tuple([x if flag else batching.stack_of(x, size) for x, flag in zip(inputs, batched, strict=True)]), attrs)

    return batch


def _transposed(x: Tensor) -> Tensor:
    return hnp.matrix_transpose(x)


def _hermitian(x: Tensor) -> Tensor:
    return 0.5 * (x + adjoint(x))


def _diagonal_matrix(x: Tensor) -> Tensor:
    """Only the diagonal of a matrix."""
    return hnp.tril(hnp.triu(x))


# --- the rules -------------------------------------------------------------------------------------------------------


def _cholesky(tangents: Given, out: list[Tensor], x: Tensor) -> Sequence[Tensor | None]:
    """``dl = l φ(l⁻¹ dx l⁻*)``; φ takes the lower triangle and half of the diagonal."""
    (t,), (lower,) = tangents, out
    assert t is not None
    half = factors.triangular_solve(lower, _hermitian(t), lower=True)
    inside = adjoint(factors.triangular_solve(lower, adjoint(half), lower=True))
    return [hnp.matmul(lower, hnp.tril(inside) - 0.5 * _diagonal_matrix(inside))]


def _lu(tangents: Given, out: list[Tensor], x: Tensor) -> Sequence[Tensor | None]:
    """With ``z = l⁻¹ pᵀ dxᵀ u⁻¹``: ``dl = l tril(z, -1)`` and ``du = triu(z) u``. Everything is transposed here, as the factors are."""
    (t,), (packed, _, order) = tangents, out
    assert t is not None
    n = packed.shape[-1]
    indices = hnp.broadcast_to(hnp.expand_dims(order, axis=-2), t.shape)
    permuted = hnp.take_along_axis(t, indices, axis=-1)  # the columns of dx are the rows of its transpose
    lt = hnp.triu(packed, k=1) + hnp.eye(n, dtype=packed.dtype)
    ut = hnp.tril(packed)
    z = factors.triangular_solve(packed, permuted, lower=True)
    z = _transposed(factors.triangular_solve(packed, _transposed(z), lower=False, transposed=True, unit=True))
    return [hnp.matmul(hnp.triu(z, k=1), lt) + hnp.matmul(ut, hnp.tril(z)), None, None]


def _lu_solve(tangents: Given, out: list[Tensor], x: Tensor, packed: Tensor, pivots: Tensor, b: Tensor, transposed: bool) -> Sequence[Tensor | None]:
    """``dy = x⁻¹ (db - dx y)``, on rows."""
    (y,), (tx, _, _, tb) = out, tangents
    right = tb
    if tx is not None:
        moved = hnp.matmul(y, tx if transposed else _transposed(tx))
        right = -moved if tb is None else tb - moved
    return [None if right is None else factors.lu_solve(x, packed, pivots, right, transposed)]


def _lu_solve_transpose(cotangent: tuple[Node | None, ...], linear: Sequence[bool], *rest: Any) -> tuple[Node | None, ...]:
    x, packed, pivots, _, transposed = rest
    (c,) = cotangent
    assert c is not None
    return None, None, None, node_of(factors.lu_solve(wrap(x), wrap(packed), wrap(pivots), wrap(c), not transposed))


def _triangular_solve(tangents: Given, out: list[Tensor], a: Tensor, b: Tensor, lower: bool, transposed: bool, unit: bool) -> Sequence[Tensor | None]:
    """``dy = a⁻¹ (db - da y)``, where only the triangle counts."""
    (y,), (ta, tb) = out, tangents
    right = tb
    if ta is not None:
        triangle = hnp.tril(ta, k=-int(unit)) if lower else hnp.triu(ta, k=int(unit))
        moved = hnp.matmul(_transposed(triangle) if transposed else triangle, y)
        right = -moved if tb is None else tb - moved
    assert right is not None
    return [factors.triangular_solve(a, right, lower, transposed, unit)]


def _triangular_solve_transpose(cotangent: tuple[Node | None, ...], linear: Sequence[bool], *rest: Any) -> tuple[Node | None, ...]:
    a, _, lower, transposed, unit = rest
    (c,) = cotangent
    assert c is not None
    return None, node_of(factors.triangular_solve(wrap(a), wrap(c), lower, not transposed, unit))


def _lq(tangents: Given, out: list[Tensor], x: Tensor, full: bool) -> Sequence[Tensor | None]:
    """With ``z = l⁻¹ dx q*`` and the skew-Hermitian ω that has z's upper triangle: ``dl = l (z - ω)``, ``dq = ω q + (l⁻¹ dx - z q)``."""
    (t,), (lower, q) = tangents, out
    assert t is not None
    n, m = x.shape[-2:]
    if full and n != m:
        advice = "the added vectors are not unique; use mode='reduced'"
        raise located(DifferentiationError(f"qr with mode='complete' has no derivative where the matrix is not square: {advice}"))
    inner = factors.triangular_solve(lower, t, lower=True)
    z = hnp.matmul(inner, adjoint(q))
    above = hnp.triu(z, k=1)
    omega = above - adjoint(above)
    if is_complex(z):
        diagonal = _diagonal_matrix(z)
        omega = omega + 0.5 * (diagonal - conj(diagonal))
    return [hnp.matmul(lower, z - omega), hnp.matmul(omega - z, q) + inner]


def _svd(tangents: Given, out: list[Tensor], x: Tensor, mode: str) -> Sequence[Tensor | None]:
    """Giles, section 3.7, for complex matrices too; beyond the square part, from the parts of dx that u and v do not span."""
    (t,) = tangents
    assert t is not None
    (m, n), wanted = extents(x), rows.wanted_of(mode)
    if wanted == "full" and m != n:
        advice = "the added vectors are not unique; use full_matrices=False"
        raise located(DifferentiationError(f"svd with full_matrices=True has no derivative where the matrix is not square: {advice}"))
    s, u, vh = out if wanted != "values" else factors.svd(x, "reduced")
    v, uh = adjoint(vh), adjoint(u)
    ds = hnp.matmul(uh, hnp.matmul(t, v))
    values = real(hnp.diagonal(ds, 0, -2, -1))
    if wanted == "values":
        return [values]
    row, column = hnp.expand_dims(s, axis=-2), hnp.expand_dims(s, axis=-1)
    apart = (row - column) * (row + column)
    f = _reciprocal_off_diagonal(apart)
    by_row, by_column = ds * row, ds * column
    phase = _diagonal_matrix(ds - adjoint(ds)) * (0.5 / column) if is_complex(ds) else None
    inside = f * (by_row + adjoint(by_row))
    du = hnp.matmul(u, inside if phase is None else inside + phase)
    dv = hnp.matmul(v, f * (by_column + adjoint(by_column)))
    if decided(m - n - 1):
        there = hnp.matmul(t, v)
        du = du + (there - hnp.matmul(u, hnp.matmul(uh, there))) / row
    if decided(n - m - 1):
        there = hnp.matmul(adjoint(t), u)
        dv = dv + (there - hnp.matmul(v, hnp.matmul(vh, there))) / row
    return [values, du, adjoint(dv)]


def _reciprocal_off_diagonal(x: Tensor) -> Tensor:
    """1/x, and 0 on the diagonal."""
    unit = hnp.eye(x.shape[-1], dtype=x.dtype)
    return 1.0 / (x + unit) - unit


def _eigh(tangents: Given, out: list[Tensor], x: Tensor, vectors: bool) -> Sequence[Tensor | None]:
    """Giles, section 3.1: with ``z = v* dx v``, ``dw`` is its diagonal and ``dv = v (f ∘ z)``, where fᵢⱼ = 1/(wⱼ - wᵢ) off the diagonal."""
    (t,) = tangents
    assert t is not None
    w, vh = out if vectors else factors.eigh(x, True)
    v = adjoint(vh)
    z = hnp.matmul(vh, hnp.matmul(_hermitian(t), v))
    values = real(factors.diagonal(z))
    if not vectors:
        return [values, None]
    apart = hnp.expand_dims(w, axis=-2) - hnp.expand_dims(w, axis=-1)
    return [values, adjoint(hnp.matmul(v, _reciprocal_off_diagonal(apart) * z))]


def _eig(tangents: Given, out: list[Tensor], x: Tensor, vectors: bool) -> Sequence[Tensor | None]:
    """With ``z = v⁻¹ dx v``: ``dw`` is its diagonal, and ``dv = v (f ∘ z)`` as for ``eigh``, less what would change the columns' norms and make their
    largest elements complex."""
    (t,) = tangents
    assert t is not None
    w, rows_of_vectors = out if vectors else factors.eig(x, True)
    v = _transposed(rows_of_vectors)
    packed, pivots = factors.lu(v)
    moved = hnp.matmul(hnp.astype(t, v.dtype), v)
    z = _transposed(factors.lu_solve(v, packed, pivots, _transposed(moved)))
    values = factors.diagonal(z)
    if not vectors:
        return [values, None]
    apart = hnp.expand_dims(w, axis=-2) - hnp.expand_dims(w, axis=-1)
    dv = hnp.matmul(v, _reciprocal_off_diagonal(apart) * z)
    dv = dv - v * hnp.sum(conj(v) * dv, axis=-2, keepdims=True)
    top = hnp.argmax(hnp.abs(v), axis=-2, keepdims=True)
    turned = hnp.imag(hnp.take_along_axis(dv, top, axis=-2)) / hnp.real(hnp.take_along_axis(v, top, axis=-2))
    return [values, _transposed(dv - 1j * v * turned)]


transforms(rows.cholesky, jvp=_jvp(_cholesky), batch=_batch(rows.cholesky))
transforms(rows.lu, jvp=_jvp(_lu), batch=_batch(rows.lu))
transforms(rows.lu_solve, jvp=_jvp(_lu_solve), transpose=_lu_solve_transpose, batch=_batch(rows.lu_solve))
transforms(rows.triangular_solve, jvp=_jvp(_triangular_solve), transpose=_triangular_solve_transpose, batch=_batch(rows.triangular_solve))
transforms(rows.lq, jvp=_jvp(_lq), batch=_batch(rows.lq))
transforms(rows.svd, jvp=_jvp(_svd), batch=_batch(rows.svd))
transforms(rows.eigh, jvp=_jvp(_eigh), batch=_batch(rows.eigh))
transforms(rows.eig, jvp=_jvp(_eig), batch=_batch(rows.eig))
