"""Names of ``jax.lax.linalg``: what defines each factorization, shapes and types, jit, vmap, derivatives; against JAX with --all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import HologramError
from tests.support.optable import seeded

la = hg.lax.linalg


def matrix(*shape: int, kind: str = "d") -> np.ndarray:
    draw = seeded("lax linalg", shape)
    real = draw.standard_normal(shape)
    return (real + 1j * draw.standard_normal(shape) if kind in "DF" else real).astype(kind)


def adjoint(x: Any) -> np.ndarray:
    return np.conj(np.swapaxes(np.asarray(x), -1, -2))


@pytest.mark.costly(2)
@pytest.mark.parametrize("kind", "dfD")
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5), (2, 6, 3), (3, 1), (0, 3, 3)])
def test_lu(shape: tuple[int, ...], kind: str) -> None:
    x = matrix(*shape, kind=kind)
    m, n = shape[-2:]
    for f in (la.lu, hg.jit(la.lu)):
        packed, pivots, order = (np.asarray(v) for v in f(x))
        assert (packed.shape, packed.dtype, pivots.dtype, order.dtype) == (shape, x.dtype, np.int32, np.int32)
        low = (np.tril(packed, -1) + np.eye(m, n))[..., : min(m, n)]
        np.testing.assert_allclose(low @ np.triu(packed)[..., : min(m, n), :], np.take_along_axis(x, order[..., None], -2), atol=1e-5, rtol=1e-5)
        assert pivots.shape == (*shape[:-2], min(m, n)) and np.all(np.abs(low) < 1.5)
        np.testing.assert_array_equal(la.lu_pivots_to_permutation(pivots, m), order)


def test_pivots_of_tall_matrices_are_those_of_lapack() -> None:
    from scipy.linalg import lapack

    x = matrix(7, 3)
    packed, pivots, _ = lapack.dgetrf(x)
    np.testing.assert_allclose(la.lu(x)[0], packed, rtol=1e-12)
    np.testing.assert_array_equal(la.lu(x)[1], pivots)


@pytest.mark.parametrize("kind", "dD")
@pytest.mark.parametrize("n", [1, 3])
def test_householder(kind: str, n: int) -> None:
    from scipy.linalg import lapack

    x, c = matrix(5, n, kind=kind), matrix(5, 2, kind=kind)
    (geqrf,) = lapack.get_lapack_funcs(("geqrf",), (x,))
    packed, taus, _, _ = geqrf(x)
    q = np.asarray(hg.jit(la.householder_product)(packed, taus))
    np.testing.assert_allclose(q @ np.triu(packed[:n]), x, atol=1e-12)
    whole = np.asarray(la.ormqr(packed, taus, np.eye(5)))
    np.testing.assert_allclose(whole[:, :n], q, atol=1e-12)
    np.testing.assert_allclose(adjoint(whole) @ whole, np.eye(5), atol=1e-12)
    for left, transpose, want in (
        (True, False, whole @ c),
        (True, True, adjoint(whole) @ c),
        (False, False, c.T @ whole),
        (False, True, c.T @ adjoint(whole)),
    ):
        found = la.ormqr(packed, taus, c if left else c.T, left=left, transpose=transpose)
        np.testing.assert_allclose(found, want, atol=1e-12)
    stacked = hg.vmap(la.householder_product)(np.stack([packed, packed]), np.stack([taus, 0 * taus]))
    np.testing.assert_allclose(stacked, [q, np.eye(5, n)], atol=1e-12)


@pytest.mark.parametrize("kind", "dD")
def test_forms_of_lapack(kind: str) -> None:
    pytest.importorskip("scipy")
    x = matrix(2, 5, 5, kind=kind)
    t, z = (np.asarray(v) for v in hg.jit(la.schur)(x))
    np.testing.assert_allclose(z @ t @ adjoint(z), x, atol=1e-12)
    h, taus = la.hessenberg(x)
    shifted = hnp.concat([hnp.zeros((2, 5, 1), dtype=x.dtype), h[..., :-1]], axis=-1)  # the first reflection begins in the second row
    q = np.asarray(la.householder_product(shifted, hnp.concat([hnp.zeros((2, 1), dtype=x.dtype), taus], axis=-1)))
    np.testing.assert_allclose(q @ np.triu(h, -1) @ adjoint(q), x, atol=1e-12)
    s = x + adjoint(x)
    for lower in (True, False):
        _, d, e, _ = (np.asarray(v) for v in la.tridiagonal(s, lower=lower))
        assert d.dtype == e.dtype == np.float64
        bands = np.apply_along_axis(np.diag, -1, d) + np.apply_along_axis(lambda v: np.diag(v, 1) + np.diag(v, -1), -1, e)
        np.testing.assert_allclose(np.linalg.eigvalsh(bands), np.linalg.eigvalsh(s), atol=1e-12)


def test_left_and_right_eigenvectors() -> None:
    x = matrix(2, 4, 4)
    w, left, right = (np.asarray(v) for v in la.eig(x))
    np.testing.assert_allclose(x @ right, right * w[..., None, :], atol=1e-12)
    np.testing.assert_allclose(adjoint(left) @ x, w[..., None] * adjoint(left), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(left, axis=-2), 1)
    assert len(la.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)) == 1
    assert len(la.eig(x, compute_left_eigenvectors=False)) == 2


def test_updates_of_cholesky_factors() -> None:
    r, w = np.triu(matrix(5, 5)) + 4 * np.eye(5), matrix(5)
    s = np.asarray(hg.jit(la.cholesky_update)(r, w))
    np.testing.assert_allclose(s.T @ s, r.T @ r + np.outer(w, w), atol=1e-12)
    np.testing.assert_array_equal(s, np.triu(s))


def bands(n: int, stack: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
    draw = seeded("bands", n)
    dl, d, du = draw.standard_normal((3, *stack, n))
    d[..., ::2] *= 1e-3  # so that rows are exchanged
    return dl, d, du, draw.standard_normal((*stack, n, 2))


def dense(dl: np.ndarray, d: np.ndarray, du: np.ndarray) -> np.ndarray:
    return np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)


@pytest.mark.parametrize("n", [1, 2, 3, 17])
def test_tridiagonal_systems(n: int) -> None:
    dl, d, du, b = bands(n)
    want = np.linalg.solve(dense(dl, d, du), b)
    np.testing.assert_allclose(hg.jit(la.tridiagonal_solve)(dl, d, du, b), want, rtol=1e-9)
    stacked = bands(n, (3,))
    np.testing.assert_allclose(la.tridiagonal_solve(*stacked), hg.vmap(la.tridiagonal_solve)(*stacked), rtol=1e-12)


def test_derivatives_of_tridiagonal_systems() -> None:
    arrays = bands(5)
    back = hg.grad(lambda *a: hnp.sum(hnp.sin(la.tridiagonal_solve(*a))), (0, 1, 2, 3))(*arrays)
    dl, d, du, b = arrays
    a = dense(dl, d, du)
    x = np.linalg.solve(a, b)
    y = np.linalg.solve(a.T, np.cos(x))
    outer = -y @ x.T
    want = (np.r_[0, np.diag(outer, -1)], np.diag(outer), np.r_[np.diag(outer, 1), 0], y)
    for g, w in zip(back, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-7, atol=1e-9)


def test_derivatives_of_lu() -> None:
    x, line = matrix(5, 3), seeded("lu line").standard_normal((5, 3))
    f = lambda v: hnp.sum(hnp.sin(la.lu(v)[0]))  # noqa: E731
    step = 1e-6
    want = (float(f(x + step * line)) - float(f(x - step * line))) / (2 * step)
    assert float(hnp.sum(hg.grad(f)(x) * line)) == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize(
    "work",
    [
        lambda: la.lu(np.ones(3)),
        lambda: la.lu_pivots_to_permutation(np.int32([0, 1]), 1),
        lambda: la.householder_product(np.ones((2, 3)), np.ones(2)),
        lambda: la.ormqr(np.ones((3, 1)), np.ones(1), np.ones((2, 2))),
        lambda: la.schur(np.eye(2), sort_eig_vals=True),
        lambda: la.cholesky_update(np.eye(2), np.ones(3)),
        lambda: la.cholesky_update(np.eye(2) * 1j, np.ones(2)),
        lambda: la.tridiagonal_solve(np.ones(3), np.ones(3), np.ones(3), np.ones(3)),
    ],
)
def test_errors(work: Callable[[], Any]) -> None:
    with pytest.raises(HologramError):
        work()


def test_against_jax(everything: bool) -> None:
    if not everything:
        pytest.skip("against JAX with --all")
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        theirs = jax.lax.linalg
        for shape in ((4, 4), (3, 5), (6, 3)):
            for got, want in zip(la.lu(matrix(*shape)), theirs.lu(matrix(*shape)), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
        x = matrix(4, 4)
        for name in ("hessenberg", "schur"):
            for got, want in zip(getattr(la, name)(x), getattr(theirs, name)(jax.numpy.asarray(x)), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
        for got, want in zip(la.tridiagonal(x + x.T), theirs.tridiagonal(jax.numpy.asarray(x + x.T)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
        dl, d, du, b = bands(6)
        np.testing.assert_allclose(la.tridiagonal_solve(dl, d, du, b), theirs.tridiagonal_solve(*map(jax.numpy.asarray, (dl, d, du, b))), rtol=1e-9)
        for got, want in zip(la.eig(x), theirs.eig(jax.numpy.asarray(x)), strict=True):
            np.testing.assert_allclose(np.abs(got), np.abs(want), rtol=1e-10, atol=1e-12)
