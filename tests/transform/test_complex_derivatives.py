"""Complex numbers in derivatives, ``vmap`` and control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import DifferentiationError
from hologram.ir.op import NoDerivative
from hologram.primitives import TABLE, Op
from hologram.trace.apply import node_of, wrap
from hologram.trace.recorder import record
from tests.support.complex_rows import ELEMENTWISE, attributes, tame_values
from tests.support.optable import seeded

HOLOMORPHIC = [
    r for r in ELEMENTWISE if r.jvp is not None and type(r.jvp) is not NoDerivative and r.name not in ("abs", "real", "imag", "conj", "cast")
]


def directional(f: Callable[..., Any], arrays: list[np.ndarray], directions: list[np.ndarray], step: float = 1e-6) -> np.ndarray:
    ahead = f(*[a + step * d for a, d in zip(arrays, directions, strict=True)])
    behind = f(*[a - step * d for a, d in zip(arrays, directions, strict=True)])
    return (np.asarray(ahead.numpy()) - behind.numpy()) / (2 * step)


@pytest.mark.parametrize("row", [*HOLOMORPHIC, *[TABLE[n] for n in ("abs", "real", "imag", "conj")]], ids=lambda r: r.name)
def test_derivative_of_a_row(row: Op) -> None:
    """Forward mode against differences; reverse mode as its transpose, with the pairing Re(c * t)."""
    rng = seeded("derivative", row.name)
    for attrs in attributes(row):
        arrays, directions = ([tame_values(np.complex128, 5, rng) for _ in range(row.arity or 1)] for _ in range(2))

        def f(*xs: Any, attrs: tuple[Any, ...] = attrs) -> Any:
            return wrap(record(row, tuple([node_of(hnp.asarray(x)) for x in xs]), attrs))

        out, pushed = hg.jvp(f, tuple(arrays), tuple(directions))
        np.testing.assert_allclose(pushed.numpy(), directional(f, arrays, directions), rtol=1e-6, atol=1e-7)
        cotangent = tame_values(np.complex128, 5, rng) if out.dtype.kind == "c" else rng.normal(size=5)
        pulled = hg.vjp(f, *arrays)[1](cotangent)
        left = np.sum(cotangent * pushed.numpy()).real
        right = sum(np.sum(p.numpy() * d).real for p, d in zip(pulled, directions, strict=True))
        np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "product": lambda z, w: hnp.prod(z) * w,
    "running product": lambda z, w: hnp.cumprod(z) * w,
    "running sum": lambda z, w: hnp.cumsum(z / w),
    "matrix product": lambda z, w: hnp.outer(z, w) @ hnp.conj(z),
    "parts": lambda z, w: (z.real + 1j * w.imag) * hnp.abs(z - w),
    "choice": lambda z, w: hnp.where(z.real > w.real, z * w, hnp.exp(w)),
    "indices": lambda z, w: z[::2] * w[np.array([0, 1, 1])],
    "updates": lambda z, w: z.at[1].add(w[0] * w[1]).at[0].set(w[2]),
    "statistics": lambda z, w: hnp.var(z) + hnp.mean(w),
    "types": lambda z, w: (z.real * 2).astype(np.complex128) * w,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_programs(name: str) -> None:
    f, rng = PROGRAMS[name], seeded("derivatives", name)
    z, w, t, s = (tame_values(np.complex128, 5, rng) for _ in range(4))
    g = lambda a, b: f(hnp.asarray(a), hnp.asarray(b))  # noqa: E731
    out, pushed = hg.jit(lambda *xs: hg.jvp(g, xs[:2], xs[2:]))(z, w, t, s)
    np.testing.assert_allclose(pushed.numpy(), directional(g, [z, w], [t, s]), rtol=1e-5, atol=1e-7)
    c = tame_values(np.complex128, out.shape, rng)
    pulled = hg.vjp(g, z, w)[1](c)
    np.testing.assert_allclose(
        np.sum(c * pushed.numpy()).real, sum(np.sum(p.numpy() * d).real for p, d in zip(pulled, (t, s), strict=True)), rtol=1e-9
    )


def test_gradients_have_jaxs_convention() -> None:
    """``df/dx - i df/dy``: of |z|**2 twice the conjugate; at 0, |z| has the gradient 0."""
    z = np.complex128(1.3 + 0.7j)
    np.testing.assert_allclose(hg.grad(lambda z: hnp.abs(z) ** 2)(z).numpy(), 2 * z.conj())
    np.testing.assert_allclose(hg.grad(lambda z: (z * hnp.conj(z)).real)(z).numpy(), 2 * z.conj())
    np.testing.assert_allclose(hg.grad(lambda z: z.imag)(z).numpy(), -1j)
    assert hg.grad(hnp.abs)(np.complex128(0)).numpy() == 0
    np.testing.assert_allclose(hg.vjp(lambda x: x * 1j, np.float64(2))[1](1 + 2j)[0].numpy(), -2)  # the part that a real argument can have
    np.testing.assert_allclose(hg.jacfwd(lambda x: x * 1j)(np.float64(1)).numpy(), 1j)
    np.testing.assert_allclose(hg.jacrev(lambda z: hnp.stack([z.real, z.imag]))(z).numpy(), [1, -1j])


def test_holomorphic_functions() -> None:
    z = tame_values(np.complex128, 4, seeded("holomorphic"))
    np.testing.assert_allclose(hg.grad(hnp.sin, holomorphic=True)(z[0]).numpy(), np.cos(z[0]), rtol=1e-14)
    value, gradient = hg.value_and_grad(lambda z: hnp.sum(z**3), holomorphic=True)(z)
    np.testing.assert_allclose(gradient.numpy(), 3 * z**2, rtol=1e-14)
    for jacobian in (hg.jacfwd, hg.jacrev):
        np.testing.assert_allclose(jacobian(hnp.exp, holomorphic=True)(z).numpy(), np.diag(np.exp(z)), rtol=1e-14)
    np.testing.assert_allclose(hg.hessian(lambda z: hnp.sum(z**3), holomorphic=True)(z).numpy(), np.diag(6 * z), rtol=1e-14)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda: hg.grad(hnp.sin)(1j), "grad: the result is complex64: pass holomorphic=True"),
        (lambda: hg.grad(hnp.sin, holomorphic=True)(1.0), "holomorphic=True is for functions of complex numbers"),
        (lambda: hg.grad(hnp.abs, holomorphic=True)(1j), "holomorphic=True is for functions of complex numbers"),
        (lambda: hg.jacfwd(hnp.sin)(np.array([1j, 2])), "jacfwd: an argument is complex128"),
        (lambda: hg.jacrev(hnp.sin)(np.array([1j, 2])), "jacrev: a result is complex128"),
    ],
)
def test_derivatives_that_are_no_single_number_are_refused(f: Callable[[], Any], message: str) -> None:
    with pytest.raises(DifferentiationError, match=message):
        f()


def test_vmap() -> None:
    z, w = tame_values(np.complex128, (3, 4), seeded("vmap")), tame_values(np.complex128, 4, seeded("vmap", 1))
    got = hg.vmap(lambda a, b: hnp.prod(a * b) / hnp.abs(a[0]), (0, None))(z, w)
    np.testing.assert_allclose(got.numpy(), [np.prod(a * w) / abs(a[0]) for a in z], rtol=1e-13)
    gradients = hg.vmap(hg.grad(lambda a: hnp.sum(hnp.abs(a) ** 2)))(z)
    np.testing.assert_allclose(gradients.numpy(), 2 * z.conj(), rtol=1e-14)


# --- control flow ----------------------------------------------------------------------------------------------------


def test_loops_carry_complex_numbers() -> None:
    xs = tame_values(np.complex128, 7, seeded("loops"))

    def step(c: Any, x: Any) -> Any:
        c = c * x + 1j
        return c, hnp.abs(c)

    def expected(c: complex) -> tuple[complex, list[float]]:
        sizes = []
        for x in xs:
            c = c * x + 1j
            sizes.append(abs(c))
        return c, sizes

    start = np.complex128(1 + 1j)
    last, sizes = expected(start)
    for run in (hg.scan, hg.jit(lambda c, xs: hg.scan(step, c, xs))):
        c, ys = run(step, start, xs) if run is hg.scan else run(start, xs)
        np.testing.assert_allclose(c.numpy(), last, rtol=1e-12)
        np.testing.assert_allclose(ys.numpy(), sizes, rtol=1e-12)
    gradient = hg.grad(lambda c: hnp.abs(hg.scan(step, c, xs)[0]))(start).numpy()
    difference = [(abs(expected(start + d)[0]) - abs(expected(start - d)[0])) / 2e-6 for d in (1e-6, 1e-6j)]
    np.testing.assert_allclose(gradient, difference[0] - 1j * difference[1], rtol=1e-6)


def test_while_and_cond_on_complex_numbers() -> None:
    squared = hg.jit(lambda z: hg.while_loop(lambda z: hnp.abs(z) < 100, lambda z: z * z + 1j, z))
    want = 1.5 + 0.5j
    while abs(want) < 100:
        want = want * want + 1j
    np.testing.assert_allclose(squared(np.complex128(1.5 + 0.5j)).numpy(), want, rtol=1e-13)
    chosen = hg.jit(lambda z: hg.cond(z.real > 0, lambda z: z * 1j, lambda z: z / 2, z))
    np.testing.assert_allclose([chosen(np.complex128(z)).numpy() for z in (2 + 1j, -2 + 1j)], [2j - 1, -1 + 0.5j])
