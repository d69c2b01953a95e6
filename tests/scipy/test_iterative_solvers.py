"""``scipy.sparse.linalg``: solutions against those of dense systems, derivatives, stacks, pytrees, sparse matrices, limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.scipy.sparse.linalg import bicgstab, cg, gmres
from tests.support.optable import seeded

N = 12
DRAW = seeded("iterative")
B = DRAW.standard_normal(N)
GENERAL = DRAW.standard_normal((N, N)) + 6 * np.eye(N)
SKEW = 1j * (GENERAL - GENERAL.T)
MATRICES = {cg: GENERAL @ GENERAL.T, bicgstab: GENERAL, gmres: GENERAL}
EVERY = pytest.mark.parametrize("solver", MATRICES, ids=lambda f: f.__name__)
Solver = Callable[..., Any]


@EVERY
def test_solutions(solver: Solver) -> None:
    a = MATRICES[solver]
    for matrix, b in ((a, B), (a + SKEW, B * 1j + 1), (a.astype(np.float32), B.astype(np.float32))):
        found, none = hg.jit(lambda m, v: solver(m, v, tol=1e-7 if v.dtype == np.float32 else 1e-11))(matrix, b)
        np.testing.assert_allclose(found, np.linalg.solve(matrix, b), rtol=1e-4 if b.dtype == np.float32 else 1e-8)
        assert none is None and found.dtype == b.dtype
    bs = np.stack([B, 0 * B, -2 * B])
    stacked = hg.vmap(lambda v: solver(a, v, tol=1e-11)[0])(bs)
    np.testing.assert_allclose(stacked, np.linalg.solve(a, bs.T).T, rtol=1e-8, atol=1e-12)


@EVERY
def test_derivatives_are_those_of_the_solution(solver: Solver) -> None:
    f = lambda m, v: hnp.sum(hnp.sin(solver(m, v, tol=1e-12)[0]))  # noqa: E731
    want = lambda m, v: hnp.sum(hnp.sin(hnp.linalg.solve(m, v)))  # noqa: E731
    for got, w in zip(hg.grad(f, (0, 1))(MATRICES[solver], B), hg.grad(want, (0, 1))(MATRICES[solver], B), strict=True):
        np.testing.assert_allclose(got, w, rtol=1e-6, atol=1e-10)
    along = hg.jvp(lambda v: solver(MATRICES[solver], v, tol=1e-12)[0], (B,), (B[::-1].copy(),))[1]
    np.testing.assert_allclose(along, np.linalg.solve(MATRICES[solver], B[::-1]), rtol=1e-8)


@EVERY
def test_functions_of_pytrees(solver: Solver) -> None:
    a = MATRICES[solver]

    def multiply(t: Any) -> Any:
        x = hnp.concat([t["a"], t["b"].reshape(-1)])
        y = a @ x
        return {"a": y[:4], "b": y[4:].reshape(2, 4)}

    found = solver(multiply, {"a": B[:4], "b": B[4:].reshape(2, 4)}, tol=1e-11, M=lambda t: hg.tree.map(lambda v: v / 6, t))[0]
    np.testing.assert_allclose(np.concatenate([found["a"], np.ravel(found["b"])]), np.linalg.solve(a, B), rtol=1e-8)
    with pytest.raises(ShapeError, match="what A gives"):
        solver(lambda v: v[1:], B)


@EVERY
def test_matrices_that_are_sparse_and_conditioned(solver: Solver) -> None:
    a = np.diag(np.arange(1.0, N + 1)) - 0.4 * np.eye(N, k=1) - 0.4 * np.eye(N, k=-1)
    found = solver(hg.sparse.CSR.fromdense(a), B, np.ones(N), tol=1e-11, M=np.diag(1 / np.arange(1.0, N + 1)))[0]
    np.testing.assert_allclose(found, np.linalg.solve(a, B), rtol=1e-8)


def test_limits() -> None:
    a = MATRICES[cg]
    one = np.asarray(cg(a, B, maxiter=1)[0])
    np.testing.assert_allclose(one, B * (B @ B) / (B @ a @ B), rtol=1e-12)
    np.testing.assert_array_equal(cg(a, B, maxiter=0)[0], 0 * B)
    exact = np.linalg.solve(a, B)
    np.testing.assert_array_equal(cg(a, B, exact, atol=1e-6)[0], exact)
    cycles = [np.linalg.norm(GENERAL @ np.asarray(gmres(GENERAL, B, restart=3, maxiter=n, tol=0.0)[0]) - B) for n in (1, 2, 4)]
    assert cycles[0] > cycles[1] > cycles[2]
    assert np.isfinite(np.asarray(gmres(np.eye(N), B, tol=0.0, solve_method="incremental")[0])).all()
    with pytest.raises(ArgumentError, match="solve_method"):
        gmres(GENERAL, B, solve_method="other")
