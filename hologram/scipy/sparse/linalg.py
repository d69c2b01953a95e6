"""Linear systems by iteration: ``cg``, ``bicgstab`` and ``gmres``, of a matrix or of a function that multiplies by it.

Derivatives are those of the solution, by another such system: see :func:`hologram.lax.custom_linear_solve`. Methods are those of Y. Saad, *Iterative
methods for sparse linear systems*, 2003. Unknowns may be any pytree: inside they are one vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hologram.numpy as hnp
from hologram import dtypes, tree
from hologram.control.loops import fori_loop, while_loop
from hologram.errors import ShapeError
from hologram.lax.solvers import custom_linear_solve
from hologram.linalg.systems import lstsq
from hologram.support.user_lines import located
from hologram.trace.checks import choice, integer
from hologram.trace.tensor import Tensor

__all__ = ["bicgstab", "cg", "gmres"]

Function = Callable[[Any], Any]
Solver = Callable[[Function, Tensor, Tensor, float, float, int, Function], Tensor]


# --- vectors ---------------------------------------------------------------------------------------------------------


class _Vectors:
    """Pytrees of arrays as vectors of one type."""

    def __init__(self, like: Any, what: str) -> None:
        leaves, self.structure = tree.flatten(like)
        arrays = [hnp.asarray(x) for x in leaves]
        self.what, self.shapes, self.types = what, [x.shape for x in arrays], [x.dtype for x in arrays]
        found = hnp.result_type(*arrays) if arrays else dtypes.default_float.np
        self.dtype = found if found.kind in "fc" else hnp.result_type(found, dtypes.default_float.np)

    def flat(self, x: Any, what: str) -> Tensor:
        """Raises ShapeError for another structure or shape."""
        leaves = [hnp.asarray(v) for v in tree.flatten_up_to(self.structure, x)]
        if (shapes := [v.shape for v in leaves]) != self.shapes:
            raise located(ShapeError(f"{self.what}: {what} has shapes {shapes}, b has {self.shapes}"))
        return hnp.concat([v.reshape(-1).astype(self.dtype) for v in leaves])

    def tree(self, line: Tensor) -> Any:
        sizes = [math.prod(s) for s in self.shapes]
        starts = [sum(sizes[:i]) for i in range(len(sizes))]
        return tree.unflatten(self.structure, [line[a : a + n].reshape(s) for a, n, s in zip(starts, sizes, self.shapes, strict=True)])

    def mapped(self, f: Function, what: str) -> Function:
        return lambda v: self.flat(f(self.tree(v)), what)


def _product(a: Any) -> Function:
    return a if callable(a) else lambda x: a @ x


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return hnp.sum(hnp.conj(x) * y)


def _squared(x: Tensor) -> Tensor:
    return hnp.sum(hnp.real(x) ** 2 + hnp.imag(x) ** 2) if x.dtype.kind == "c" else hnp.sum(x * x)


def _solution(what: str, method: Solver, a: Any, b: Any, x0: Any, options: tuple[Any, Any, int | None, Any], symmetric: bool) -> tuple[Any, None]:
    tol, atol, steps, m = options
    if not callable(a):
        b, x0 = hnp.asarray(b), None if x0 is None else hnp.asarray(x0)
    vectors = _Vectors(b, what)
    right = vectors.flat(b, "b")
    start = hnp.zeros_like(right) if x0 is None else vectors.flat(x0, "x0")
    condition = vectors.mapped(_product(m), "what M gives") if m is not None else lambda v: v
    most = 10 * right.size if steps is None else integer(steps, what, "maxiter")

    def solve(matvec: Function, y: Tensor) -> Tensor:
        return method(matvec, y, start, tol, atol, most, condition)

    def transposed(vecmat: Function, y: Tensor) -> Tensor:
        return method(vecmat, y, hnp.zeros_like(y), tol, atol, most, condition)

    found = custom_linear_solve(vectors.mapped(_product(a), "what A gives"), right, solve, transposed, symmetric)
    return vectors.tree(found), None


# --- methods ---------------------------------------------------------------------------------------------------------


def _cg(a: Function, b: Tensor, x0: Tensor, tol: float, atol: float, most: int, m: Function) -> Tensor:
    small = hnp.maximum(tol**2 * _squared(b), atol**2)
    r0 = b - a(x0)
    z0 = m(r0)

    def going(state: Any) -> Tensor:
        _, r, _, _, k = state
        return (_squared(r) > small) & (k < most)

    def step(state: Any) -> Any:
        x, r, gamma, p, k = state
        ap = a(p)
        alpha = gamma / hnp.real(_dot(p, ap))
        r = r - alpha * ap
        z = m(r)
        new = hnp.real(_dot(r, z))
        return x + alpha * p, r, new, z + new / gamma * p, k + 1

    return while_loop(going, step, (x0, r0, hnp.real(_dot(r0, z0)), z0, hnp.asarray(0)))[0]


def _bicgstab(a: Function, b: Tensor, x0: Tensor, tol: float, atol: float, most: int, m: Function) -> Tensor:
    small = hnp.maximum(tol**2 * _squared(b), atol**2)
    shadow = r0 = b - a(x0)
    one = hnp.ones((), dtype=b.dtype)

    def going(state: Any) -> Tensor:
        r, k = state[1], state[-1]
        return (_squared(r) > small) & (k < most) & (k >= 0)

    def step(state: Any) -> Any:
        x, r, alpha, omega, rho, p, q, k = state
        new = _dot(shadow, r)
        p = r + new / rho * (alpha / omega) * (p - omega * q)
        p_hat = m(p)
        q = a(p_hat)
        alpha = new / _dot(shadow, q)
        s = r - alpha * q
        early = _squared(s) < small
        s_hat = m(s)
        t = a(s_hat)
        square = _squared(t)
        omega = hnp.where(early | (square == 0), 0, _dot(t, s) / hnp.where(square == 0, 1, square)).astype(b.dtype)
        x = x + alpha * p_hat + omega * s_hat
        r = s - omega * t
        broken = ((omega == 0) & ~early) | (alpha == 0)  # no further step can be made
        return x, r, alpha, omega, new, p, q, hnp.where(broken, -1, k + 1)

    zero = hnp.zeros_like(b)
    return while_loop(going, step, (x0, r0, one, one, one, zero, zero, hnp.asarray(0)))[0]


def _krylov(a: Function, first: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Arnoldi's process: orthonormal rows (count + 1, n) from ``first`` on, and what ``a`` is between them (count + 1, count)."""
    n = first.shape[0]
    rows = hnp.zeros((count + 1, n), dtype=first.dtype).at[0].set(first)
    epsilon = float(hnp.finfo(first.dtype).eps)

    def step(k: Any, state: Any) -> Any:
        v, h = state
        w = a(hnp.take(v, k, axis=0))
        length = hnp.sqrt(_squared(w))
        parts = hnp.zeros(count + 1, dtype=v.dtype)
        for _ in range(2):  # twice is enough
            more = hnp.conj(v) @ w
            w, parts = w - more @ v, parts + more
        left = hnp.sqrt(_squared(w))
        there = left > epsilon * length
        row = hnp.where(there, w / hnp.where(there, left, 1), 0)
        return v.at[k + 1].set(row), h.at[:, k].set(parts.at[k + 1].add(hnp.where(there, left, 0).astype(h.dtype)))

    return fori_loop(0, count, step, (rows, hnp.zeros((count + 1, count), dtype=first.dtype)))


def _gmres(restart: int) -> Solver:
    def solve(a: Function, b: Tensor, x0: Tensor, tol: float, atol: float, most: int, m: Function) -> Tensor:
        count = min(restart, b.shape[0])
        small = hnp.maximum(tol * hnp.sqrt(_squared(b)), atol)

        def residual(x: Tensor) -> Tensor:
            return b - a(x)

        def going(state: Any) -> Tensor:
            _, size, before, k = state
            return (size > small) & (k < most) & (size < before)  # rounding is all that is left where a cycle gains nothing

        def cycle(state: Any) -> Any:
            x, size, _, k = state
            r = m(residual(x))
            beta = hnp.sqrt(_squared(r))
            rows, h = _krylov(lambda v: m(a(v)), r / hnp.where(beta > 0, beta, 1), count)
            right = hnp.zeros(count + 1, dtype=b.dtype).at[0].set(beta.astype(b.dtype))
            x = x + lstsq(h, right)[0] @ rows[:count]
            return x, hnp.sqrt(_squared(residual(x))), size, k + 1

        start = hnp.sqrt(_squared(residual(x0)))
        return while_loop(going, cycle, (x0, start, hnp.full_like(start, hnp.inf), hnp.asarray(0)))[0]

    return solve


# --- names -----------------------------------------------------------------------------------------------------------


def cg(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None) -> tuple[Any, None]:
    """Solution of ``A x = b`` by conjugate gradients, for Hermitian positive definite ``A``: ``(x, None)``, where SciPy has a number for None.

    ``A`` is a matrix, one of :mod:`hologram.sparse` too, or a linear function; ``b`` an array or a pytree that ``A`` takes and gives, ``x0`` a guess
    like it. It stops where the residual is at most the larger of ``tol * norm(b)`` and ``atol``, or after ``maxiter`` steps, by default ten for each
    unknown. ``M``, as ``A``, is about its inverse. Raises ShapeError where shapes differ.

    >>> x, _ = hg.scipy.sparse.linalg.cg([[4.0, 1.0], [1.0, 3.0]], [6.0, 7.0])
    >>> hnp.round(x, 4)
    Tensor([1., 2.], dtype=float32)
    """
    return _solution("cg", _cg, _matrix(A), b, x0, (tol, atol, maxiter, _matrix(M)), True)


def bicgstab(A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None) -> tuple[Any, None]:
    """Solution of ``A x = b`` by stabilized biconjugate gradients, for any ``A``: ``(x, None)``. Arguments and errors are those of :func:`cg`.

    >>> x, _ = hg.scipy.sparse.linalg.bicgstab([[4.0, 1.0], [0.0, 3.0]], [6.0, 6.0])
    >>> hnp.round(x, 4)
    Tensor([1., 2.], dtype=float32)
    """
    return _solution("bicgstab", _bicgstab, _matrix(A), b, x0, (tol, atol, maxiter, _matrix(M)), False)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """Solution of ``A x = b`` by the generalized minimal residual, for any ``A``: ``(x, None)``.

    It begins anew after ``restart`` steps, at most ``maxiter`` times, and where a cycle gains nothing. ``solve_method`` is ``batched`` or
    ``incremental``, and of no consequence. Other arguments and errors are those of :func:`cg`.

    >>> x, _ = hg.scipy.sparse.linalg.gmres([[4.0, 1.0], [0.0, 3.0]], [6.0, 6.0])
    >>> hnp.round(x, 4)
    Tensor([1., 2.], dtype=float32)
    """
    choice(solve_method, "gmres", "solve_method", ("batched", "incremental"))
    method = _gmres(integer(restart, "gmres", "restart"))
    return _solution("gmres", method, _matrix(A), b, x0, (tol, atol, maxiter, _matrix(M)), False)


def _matrix(a: Any) -> Any:
    """Lists and other arrays as Tensors; functions and sparse matrices as they are."""
    return a if a is None or callable(a) or hasattr(a, "todense") else hnp.asarray(a)
