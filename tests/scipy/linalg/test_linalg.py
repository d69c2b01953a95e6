"""hologram.scipy.linalg beside SciPy: values, derivatives, stacks, types, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
import hologram.scipy.linalg as hl
from hologram.errors import ArgumentError, DifferentiationError, HologramError, ShapeError, UnsupportedError
from tests.support.comparing import differences

sl = pytest.importorskip("scipy.linalg", reason="SciPy, with which results are compared, is not installed")

rng = np.random.default_rng(20)
A = rng.standard_normal((4, 4))
B = rng.standard_normal((4, 2))
C = A + 1j * rng.standard_normal((4, 4))
S = A @ A.T + np.eye(4)
H = C @ C.conj().T + np.eye(4)

CALLS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "cholesky": (lambda m: [m.cholesky(S), m.cholesky(H), m.cholesky(H, lower=True)], 1e-12),
    "cho_solve": (lambda m: [m.cho_solve(m.cho_factor(x, lower=k), B) for x in (S, H) for k in (True, False)], 1e-9),
    "lu": (lambda m: [m.lu(A[:i, :j]) for i, j in ((4, 4), (2, 4), (4, 2), (1, 3))], 1e-12),
    "lu_forms": (lambda m: [m.lu(C, permute_l=True), m.lu(A, p_indices=True)], 1e-12),
    "lu_factor": (lambda m: m.lu_factor(C), 1e-12),
    "lu_solve": (lambda m: [m.lu_solve(m.lu_factor(C), B[:, i], trans=t) for i, t in ((0, 0), (0, 1), (1, 2))], 1e-9),
    "solve_triangular": (lambda m: [m.solve_triangular(C, B, trans=t, lower=k) for t in (0, 1, "C") for k in (True, False)], 1e-9),
    "unit": (lambda m: m.solve_triangular(A, B, unit_diagonal=True), 1e-12),
    "solve": (lambda m: [m.solve(S, B, assume_a=a) for a in ("gen", "sym", "pos")] + [m.solve(np.tril(S), B, True, assume_a="pos")], 1e-9),
    "inv_det": (lambda m: [m.inv(C), m.det(C)], 1e-9),
    "svd": (lambda m: [m.svd(A, compute_uv=False)], 1e-12),
    "polar": (lambda m: [m.polar(A), m.polar(C[:, :2], side="left")], 1e-9),
    "qr_multiply": (lambda m: [m.qr_multiply(A, B.T), m.qr_multiply(A, A[0])], 1e-9),
    "eigh": (lambda m: [m.eigh(A + A.T, S, eigvals_only=True), m.eigh(np.triu(A), lower=False, eigvals_only=True)], 1e-9),
    "eigh_tridiagonal": (lambda m: m.eigh_tridiagonal(A[0], B[:3, 0], eigvals_only=True, select="i", select_range=(1, 2)), 1e-12),
    "expm": (lambda m: [m.expm(0.01 * A), m.expm(5 * A), m.expm(np.stack([C, C * 9])), m.expm(np.triu(A))], 1e-9),
    "expm_frechet": (lambda m: m.expm_frechet(A, S), 1e-9),
    "schur": (lambda m: [m.schur(A), m.schur(C), m.schur(A, output="complex")], 1e-9),
    "hessenberg": (lambda m: m.hessenberg(A, calc_q=True), 1e-9),
    "sqrtm": (lambda m: [m.sqrtm(S), m.sqrtm(A)], 1e-9),
    "solve_sylvester": (lambda m: [m.solve_sylvester(A, S, B @ B.T), m.solve_sylvester(C, S[:2, :2], B)], 1e-8),
    "funm": (lambda m: m.funm(A, lambda x: x * x * x), 1e-7),
    "toeplitz": (lambda m: [m.toeplitz(A[0]), m.toeplitz(C[0]), m.toeplitz(A[0], B[:, 0]), m.toeplitz(A[0, :2], A[1])], 0),
    "hankel": (lambda m: [m.hankel(A[0]), m.hankel(A[0], B[:, 0])], 0),
    "of_vectors": (lambda m: [m.circulant(A[0]), m.companion(A[0]), m.fiedler(A[0]), m.leslie(A[0], A[1, :3])], 1e-15),
    "fiedler_companion": (lambda m: [m.fiedler_companion(p) for p in (A[0, :2], A[0, :3], A[0], np.arange(1.0, 9))], 1e-15),
    "convolution_matrix": (lambda m: [m.convolution_matrix(A[0], n, mode) for n in (2, 4, 6) for mode in ("full", "same", "valid")], 0),
    "block_diag": (lambda m: [m.block_diag(A, B, 1.0), m.block_diag(np.ones((2, 0)), [1.0])], 0),
    "dft": (lambda m: [m.dft(5), m.dft(4, "n"), m.dft(4, "sqrtn")], 1e-6),
    "of_integers": (lambda m: [m.hadamard(8), m.hilbert(4), m.invhilbert(4), m.invhilbert(5, exact=True), m.helmert(5), m.helmert(4, True)], 1e-6),
    "pascal": (lambda m: [f(4, kind) for f in (m.pascal, m.invpascal) for kind in ("symmetric", "lower", "upper")], 1e-6),
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_those_of_scipy(name: str) -> None:
    call, tolerance = CALLS[name]
    got, want = (hg.tree.leaves(call(m)) for m in (hl, sl))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=tolerance, atol=tolerance)


def test_real_and_complex_schur_forms() -> None:
    for got, want in zip(hl.rsf2csf(*sl.schur(A)), sl.rsf2csf(*sl.schur(A)), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, atol=1e-12)


def test_generalized_eigenvectors() -> None:
    w, v = hl.eigh(A + A.T, S)
    np.testing.assert_allclose((A + A.T) @ v.numpy(), S @ v.numpy() * w.numpy(), atol=1e-9)
    np.testing.assert_allclose(v.numpy().T @ S @ v.numpy(), np.eye(4), atol=1e-9)


W = rng.standard_normal((4, 4))
LOSSES: dict[str, Callable[[Any], Any]] = {
    "expm": lambda x: hnp.sum(hl.expm(x) * W),
    "sqrtm": lambda x: hnp.sum(hnp.real(hl.sqrtm(x @ x.T + hnp.eye(4))) * W),
    "solve_sylvester": lambda x: hnp.sum(hl.solve_sylvester(x, S, x * W) * W),
    "lu": lambda x: hnp.sum(hl.lu(x)[1] * W) + hnp.sum(hl.lu(x)[2] * W),
    "lu_tall": lambda x: hnp.sum(hl.lu(x[:, :2])[1] * W[:, :2]) + hnp.sum(hl.lu(x[:, :2])[2]),
    "lu_solve": lambda x: hnp.sum(hl.lu_solve(hl.lu_factor(x), B, trans=1) * B),
    "cho_solve": lambda x: hnp.sum(hl.cho_solve(hl.cho_factor(x @ x.T + hnp.eye(4)), B) * B),
    "polar": lambda x: hnp.sum(hl.polar(x)[1] * W),
    "eigh": lambda x: hnp.sum(hl.eigh(x + x.T, S)[0] * W[0]),
    "toeplitz": lambda x: hnp.sum(hl.toeplitz(x[0], x[1]) * W),
}


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_and_stacks(name: str) -> None:
    gradient = hg.grad(LOSSES[name])
    found = hg.jit(hg.vmap(gradient))(np.stack([A, W])).numpy()
    for x, g in zip((A, W), found, strict=True):
        np.testing.assert_allclose(g, differences(hg.jit(LOSSES[name]), x), rtol=1e-5, atol=1e-5)


def test_exponentials_that_ask_for_more_squarings_are_nan() -> None:
    found = hl.expm(np.stack([np.eye(2), 1e9 * np.eye(2), np.full((2, 2), np.inf)])).numpy()
    np.testing.assert_allclose(found[0], np.e * np.eye(2), rtol=1e-14)
    assert np.isnan(found[1:]).all()
    skew = np.array([[0.0, 1e4], [-1e4, 0.0]])
    np.testing.assert_allclose(hl.expm(skew, max_squarings=20).numpy(), sl.expm(skew), atol=1e-8)


def test_exponentials_of_nothing() -> None:
    for shape in ((0, 0), (2, 0, 0), (0, 2, 2)):
        assert hl.expm(np.zeros(shape)).shape == shape


def test_element_types() -> None:
    assert hl.expm(A.astype(np.float32)).dtype == np.float32 and hl.sqrtm(S.astype(np.float32)).dtype == np.complex64
    assert hl.toeplitz([1, 2]).dtype == np.int64 and hl.companion([1, 2, 3]).dtype == np.float32
    assert hl.invhilbert(3, exact=True).dtype == np.int64 and hl.cholesky([[4, 0], [0, 1]]).dtype == np.float32


WRONG = [
    (lambda: hl.lu_factor(B), ShapeError, "square"),
    (lambda: hl.cho_solve((S, True, 1), B), ArgumentError, "pair"),
    (lambda: hl.lu_solve(hl.lu_factor(A), B[:3]), ShapeError, "right sides"),
    (lambda: hl.solve_triangular(A, B, trans=3), ArgumentError, "trans"),
    (lambda: hl.solve(A, B, assume_a="diag"), ArgumentError, "assume_a"),
    (lambda: hl.qr(A, pivoting=True), UnsupportedError, "pivoting"),
    (lambda: hl.eigh(A, type=2), UnsupportedError, "type"),
    (lambda: hl.eigh_tridiagonal(A[0], A[0]), ShapeError, "diagonal"),
    (lambda: hl.expm_frechet(A, A[:2, :2]), ShapeError, "direction"),
    (lambda: hl.solve_sylvester(A, A, B), ShapeError, "right side"),
    (lambda: hl.hadamard(6), ArgumentError, "power of 2"),
    (lambda: hl.invhilbert(40, exact=True), ArgumentError, "int64"),
    (lambda: hl.companion([1.0]), ShapeError, "coefficients"),
    (lambda: hl.leslie([1.0], [1.0]), ShapeError, "births"),
    (lambda: hl.leslie([1.0], []), ShapeError, "births"),
    (lambda: hl.convolution_matrix(5.0, 3), ShapeError, "scalar"),
    (lambda: hl.block_diag(np.ones((1, 1, 1))), ShapeError, "matrices"),
    (lambda: hg.grad(lambda x: hnp.sum(hl.schur(x)[0]))(A), DifferentiationError, "derivative|differentiated"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors_are_kind_and_located(call: Callable[[], Any], kind: type[HologramError], text: str) -> None:
    with pytest.raises(kind, match=text) as found:
        call()
    assert "test_linalg.py" in str(found.value)
