"""Solutions with implicit derivatives: linear systems and roots, against what is differentiated directly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError
from tests.support.optable import seeded

A = (lambda m: m @ m.T + 4 * np.eye(4))(seeded("solvers", "a").standard_normal((4, 4)))
B = seeded("solvers", "b").standard_normal(4)


def dense(matvec: Any, b: Any) -> Any:
    return hnp.linalg.solve(hnp.stack([matvec(e) for e in hnp.eye(4)], 1), b)


def conjugate_gradients(matvec: Any, b: Any) -> Any:
    def step(state: Any) -> Any:
        x, r, p, k = state
        q = matvec(p)
        a = hnp.vdot(r, r) / hnp.vdot(p, q)
        rest = r - a * q
        return x + a * p, rest, rest + p * hnp.vdot(rest, rest) / hnp.vdot(r, r), k + 1

    return hg.while_loop(lambda s: (hnp.vdot(s[1], s[1]) > 1e-24) & (s[3] < 50), step, (hnp.zeros_like(b), b, b, 0))[0]


def general(a: Any, b: Any) -> Any:
    return hg.lax.custom_linear_solve(lambda x: hnp.sin(a) @ x, b, dense, dense)


def symmetric(a: Any, b: Any) -> Any:
    return hg.lax.custom_linear_solve(lambda x: a @ x, b, conjugate_gradients, symmetric=True)


@pytest.mark.parametrize(("f", "direct"), [(general, lambda a, b: hnp.linalg.solve(hnp.sin(a), b)), (symmetric, hnp.linalg.solve)])
def test_linear_systems(f: Any, direct: Any) -> None:
    loss, known = (lambda a, b, g=g: hnp.sum(hnp.cos(g(a, b))) for g in (f, direct))
    np.testing.assert_allclose(hg.jit(f)(A, B), direct(A, B), rtol=1e-9)
    for got, want in zip(hg.jit(hg.grad(loss, (0, 1)))(A, B), hg.grad(known, (0, 1))(A, B), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(hg.jvp(f, (A, B), (np.eye(4), B))[1], hg.jvp(direct, (A, B), (np.eye(4), B))[1], rtol=1e-7, atol=1e-10)
    stack = np.stack([B, 2 * B])
    np.testing.assert_allclose(hg.vmap(f, (None, 0))(A, stack), direct(A, stack.T).T, rtol=1e-8)


def test_second_derivatives_of_linear_systems() -> None:
    got = hg.hessian(lambda s: hnp.sum(general(s * A, B)))(np.float64(1.1))
    want = hg.hessian(lambda s: hnp.sum(hnp.linalg.solve(hnp.sin(s * A), B)))(np.float64(1.1))
    np.testing.assert_allclose(got, want, rtol=1e-7)


def test_reverse_mode_needs_a_transposed_solver() -> None:
    f = lambda b: hnp.sum(hg.lax.custom_linear_solve(lambda x: A @ x, b, dense))  # noqa: E731
    np.testing.assert_allclose(hg.jvp(f, (B,), (B,))[1], f(B), rtol=1e-9)
    with pytest.raises(ArgumentError, match="transpose_solve"):
        hg.grad(f)(B)


def root(a: Any, has_aux: bool = False) -> Any:
    """Of u³ + u = a, v eᵛ = u."""

    def f(x: Any) -> Any:
        return {"u": x["u"] ** 3 + x["u"] - a, "v": x["v"] * hnp.exp(x["v"]) - x["u"]}

    def matrix(g: Any, x: Any) -> Any:
        rows = hg.jacfwd(g)(x)
        return hnp.stack([hnp.stack([rows[i][j] for j in "uv"]) for i in "uv"])

    def solve(f: Any, x: Any) -> Any:
        def newton(_: Any, x: Any) -> Any:
            y = f(x)
            step = hnp.linalg.solve(matrix(f, x), hnp.stack([y["u"], y["v"]]))
            return {"u": x["u"] - step[0], "v": x["v"] - step[1]}

        found = hg.fori_loop(0, 30, newton, x)
        return (found, hnp.asarray(30)) if has_aux else found

    def tangent_solve(g: Any, y: Any) -> Any:
        found = hnp.linalg.solve(matrix(g, hg.tree.map(hnp.zeros_like, y)), hnp.stack([y["u"], y["v"]]))
        return {"u": found[0], "v": found[1]}

    found = hg.lax.custom_root(f, {"u": 1.0 + 0 * a, "v": 1.0 + 0 * a}, solve, tangent_solve, has_aux)
    return (found[0]["u"] * found[0]["v"] ** 2, found[1]) if has_aux else found["u"] * found["v"] ** 2


def test_roots() -> None:
    a, step = np.float64(2.0), 1e-4
    near = [float(hg.jit(root)(a + k * step)) for k in (-2, -1, 0, 1, 2)]
    slope = (near[0] - 8 * near[1] + 8 * near[3] - near[4]) / (12 * step)
    second = (-near[0] + 16 * near[1] - 30 * near[2] + 16 * near[3] - near[4]) / (12 * step**2)
    for f in (hg.grad(root), hg.jit(hg.grad(root)), hg.jacfwd(root)):
        assert float(f(a)) == pytest.approx(slope, rel=1e-8)
    assert float(hg.hessian(root)(a)) == pytest.approx(second, rel=1e-5)
    stack = np.array([2.0, 3.0])
    np.testing.assert_allclose(hg.vmap(hg.grad(root))(stack), [float(hg.grad(root)(x)) for x in stack], rtol=1e-9)
    value, steps = root(a, has_aux=True)
    assert float(value) == pytest.approx(near[2]) and int(steps) == 30
