"""Derivatives and vmap of control flow, against the same programs with their loops written out in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import DifferentiationError
from hologram.transform.api import stop_gradient

R = np.random.default_rng(11)


class Plain:
    """Control flow as Python runs it."""

    @staticmethod
    def scan(f: Any, init: Any, xs: Any, length: int | None = None, reverse: bool = False) -> Any:
        n = len(hg.tree.leaves(xs)[0]) if length is None else length
        ys: list[Any] = [None] * n
        for i in range(n)[::-1] if reverse else range(n):
            init, ys[i] = f(init, hg.tree.map(lambda x, i=i: x[i], xs))
        return init, hg.tree.map(lambda *y: hnp.stack(y), *ys)

    @staticmethod
    def fori_loop(low: int, high: int, f: Any, value: Any) -> Any:
        for i in range(low, high):
            value = f(i, value)
        return value

    @staticmethod
    def while_loop(cond: Any, body: Any, value: Any) -> Any:
        while bool(cond(value)):
            value = body(value)
        return value

    @staticmethod
    def cond(pred: Any, yes: Any, no: Any, *operands: Any) -> Any:
        return (yes if bool(pred) else no)(*operands)


def recurrent(lib: Any) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        def step(c: Any, xi: Any) -> Any:
            c = hnp.tanh(w @ c + xi)
            return c, (c * w[0]).sum()

        c, ys = lib.scan(step, x[0], x)
        return c.sum() + (ys**2).sum()

    return f


def tree_of_carries(lib: Any) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        def step(c: Any, xi: Any) -> Any:
            new = {"a": c["b"] * xi[0], "b": hnp.sin(c["a"]) + w.sum(), "n": c["n"] + 1, "fixed": c["fixed"]}
            return new, (c["a"], c["n"], c["fixed"] * xi[1])

        start = {"a": x[0, 0], "b": x[0, 1], "n": 0, "fixed": w[0, 0]}
        c, (ys, counts, zs) = lib.scan(step, start, x, reverse=True)
        return c["a"] * c["b"] + (ys * counts).sum() + (zs**2).sum()

    return f


def nested(lib: Any) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        def outer(c: Any, xi: Any) -> Any:
            c = lib.fori_loop(0, 3, lambda i, v: hnp.sin(v) * xi + w @ v * i * 0.1, c)
            c = lib.cond(c.sum() > 0, lambda v: v * xi, lambda v: v + w[1], c)
            return c, c[0]

        c, ys = lib.scan(outer, x[0], x)
        return (c * c).sum() + ys.sum()

    return f


def stops(lib: Any) -> Callable[..., Any]:
    def f(w: Any, x: Any) -> Any:
        def step(c: Any, xi: Any) -> Any:
            inner = hg.grad(lambda v: (hnp.sin(v) * xi).sum())(c)
            return inner + w[0] * c + stop_gradient(c), inner

        c, ys = lib.scan(step, x[0], x)
        return c.sum() * ys.sum()

    return f


PROGRAMS = [recurrent, tree_of_carries, nested, stops]
W, X = R.standard_normal((4, 4)) * 0.5, R.standard_normal((5, 4))


def close(a: Any, b: Any) -> None:
    for x, y in zip(hg.tree.leaves(a), hg.tree.leaves(b), strict=True):
        assert np.asarray(x).shape == np.asarray(y).shape
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9, atol=1e-10)


@pytest.mark.crossed
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("jitted", [False, True])
def test_gradients(program: Any, jitted: bool) -> None:
    wrap = hg.jit if jitted else lambda f: f
    close(wrap(hg.value_and_grad(program(hg), argnums=(0, 1)))(W, X), hg.value_and_grad(program(Plain), argnums=(0, 1))(W, X))


@pytest.mark.parametrize("program", PROGRAMS)
def test_forward_mode(program: Any) -> None:
    directions = R.standard_normal(W.shape), R.standard_normal(X.shape)
    close(hg.jit(lambda w, x: hg.jvp(program(hg), (w, x), directions))(W, X), hg.jvp(program(Plain), (W, X), directions))


@pytest.mark.parametrize("program", PROGRAMS)
def test_second_derivatives(program: Any) -> None:
    f, x = program(hg), X[:3]
    forward = hg.jit(hg.hessian(lambda x: f(W, x)))(x)
    close(forward, hg.jit(hg.jacrev(hg.grad(lambda x: f(W, x))))(x))
    if program is recurrent:
        close(forward, hg.jit(hg.hessian(lambda x: program(Plain)(W, x)))(x))


@pytest.mark.parametrize("program", [recurrent, tree_of_carries, stops])
def test_stacks(program: Any) -> None:
    xs = R.standard_normal((3, *X.shape))
    close(hg.jit(hg.vmap(program(hg), in_axes=(None, 0)))(W, xs), [np.stack([np.asarray(program(Plain)(W, x)) for x in xs])])
    per_example = [hg.grad(program(Plain), argnums=(0, 1))(W, x) for x in xs]
    close(
        hg.jit(hg.vmap(hg.grad(program(hg), argnums=(0, 1)), in_axes=(None, 0)))(W, xs),
        tuple(np.stack([np.asarray(p[i]) for p in per_example]) for i in range(2)),
    )


def test_stacked_gradients_through_branches() -> None:
    xs = R.standard_normal((2, 3, 4))
    per_example = [np.asarray(hg.grad(nested(Plain), argnums=1)(W, x)) for x in xs]
    close(hg.vmap(hg.grad(nested(hg), argnums=1), in_axes=(None, 0))(W, xs), [np.stack(per_example)])


SAFE: dict[str, Callable[[Any], Any]] = {
    "operand": lambda x: hg.cond(x < 0.001, lambda y: y * 0, hnp.sqrt, x),
    "closure": lambda x: hg.cond(x < 0.001, lambda: 0.5, lambda: hnp.sqrt(x)),
    "switch": lambda x: hg.switch((2 * x).astype("int32"), [lambda y: 3 * y, hnp.log, lambda y: hnp.sqrt(y - 0.5)], x),
    "in a scan": lambda x: hg.scan(lambda c, _: (hg.cond(c < 0.001, lambda y: 2 * y, hnp.sqrt, c), None), x, None, length=2)[0],
}


@pytest.mark.parametrize("name", SAFE)
def test_slopes_of_branches_not_taken_do_not_count(name: str) -> None:
    f, xs = SAFE[name], np.array([0.0, 0.0001, 0.5, 2.0])
    want = [float(hg.grad(f)(x)) for x in xs]
    assert np.all(np.isfinite(want))
    whole = lambda x: hg.vmap(f)(x).sum()  # noqa: E731
    for gradient in (hg.grad(whole), hg.jit(hg.grad(whole)), hg.vmap(hg.grad(f)), lambda x: hg.jvp(hg.vmap(f), (x,), (hnp.ones_like(x),))[1]):
        np.testing.assert_allclose(np.asarray(gradient(xs)), want, rtol=1e-12)
    seconds = [float(hg.grad(hg.grad(f))(x)) for x in xs]
    np.testing.assert_allclose(np.asarray(hg.grad(lambda x: hg.grad(whole)(x).sum())(xs)), seconds, rtol=1e-12)


# --- while -----------------------------------------------------------------------------------------------------------


def root(lib: Any) -> Callable[[Any], Any]:
    """Newton's iteration for a square root."""
    return lambda a: lib.while_loop(lambda c: abs(c[0] * c[0] - a) > 1e-12, lambda c: (0.5 * (c[0] + a / c[0]), c[1] + 1), (a * 0 + 1, 0))[0]


def test_forward_mode_through_while() -> None:
    for a in (0.3, 2.0, 50.0):
        value, slope = hg.jit(lambda a: hg.jvp(root(hg), (a,), (a * 0 + 1,)))(np.float64(a))
        np.testing.assert_allclose([float(value), float(slope)], [a**0.5, 0.5 * a**-0.5], rtol=1e-9)
    np.testing.assert_allclose(float(hg.jacfwd(root(hg))(np.float64(2.0))), 0.5 * 2**-0.5, rtol=1e-9)


def test_examples_of_a_while_loop_stop_by_themselves() -> None:
    a = np.array([0.01, 0.5, 1.5, 4.0, 1e4])
    np.testing.assert_allclose(np.asarray(hg.vmap(root(hg))(a)), np.sqrt(a), rtol=1e-9)
    slopes = hg.jit(hg.vmap(lambda v: hg.jvp(root(hg), (v,), (v * 0 + 1,))[1]))(a)
    np.testing.assert_allclose(np.asarray(slopes), 0.5 / np.sqrt(a), rtol=1e-6)
    counted = hg.vmap(lambda n: hg.fori_loop(0, n, lambda i, v: v + i, 0))(np.arange(6))
    assert np.asarray(counted).tolist() == [sum(range(n)) for n in range(6)]


def test_reverse_mode_through_while_is_refused() -> None:
    with pytest.raises(DifferentiationError, match="while_loop has no derivative in reverse mode.*test_control_transforms.py"):
        hg.grad(root(hg))(np.float64(2.0))


def test_carries_that_forget_what_differs_between_examples() -> None:
    x, h = R.standard_normal((4, 3)), R.standard_normal((5, 3))

    def scanned(h: Any) -> Any:
        return hg.scan(lambda c, row: (row, (c * row).sum()), h, x)

    stacked = np.stack([[(c * row).sum() for c, row in zip([example, *x[:-1]], x, strict=True)] for example in h])
    close(hg.vmap(scanned)(h), [np.stack([x[-1]] * 5), stacked])
    close(hg.jit(hg.vmap(hg.grad(lambda h: sum(hnp.sum(r) for r in scanned(h)))))(h), [np.stack([x[0]] * 5)])

    def counted(h: Any) -> Any:
        return hg.while_loop(lambda c: c[1] < 3, lambda c: (hnp.asarray(x[0]), c[1] + 1, c[2] + c[0]), (h, 0, h))

    close(hg.vmap(counted)(h), [np.stack([x[0]] * 5), np.full(5, 3), 2 * h + 2 * x[0]])


# --- branches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1.0, -1.0])
def test_gradients_through_cond(p: float) -> None:
    def f(p: Any, x: Any, y: Any) -> Any:
        return hg.cond(p > 0, lambda a, b: (hnp.sin(a) * b, b), lambda a, b: (a * b * b, a), x, y)[0].sum()

    x, y = R.standard_normal(5), R.standard_normal(5)
    wanted = (np.cos(x) * y, np.sin(x)) if p > 0 else (y * y, 2 * x * y)
    close(hg.grad(f, argnums=(1, 2))(p, x, y), wanted)
    close(hg.jit(hg.grad(f, argnums=(1, 2)))(p, x, y), wanted)


def test_a_stack_of_predicates_selects() -> None:
    def f(i: Any, x: Any) -> Any:
        return hg.switch(i, [lambda v: v, lambda v: v * v, lambda v: hnp.sin(v)], x)

    i, x = np.array([0, 1, 2, 7, -1]), R.standard_normal((5, 3))
    wanted = np.stack([x[0], x[1] ** 2, np.sin(x[2]), np.sin(x[3]), x[4]])
    close(hg.vmap(f)(i, x), [wanted])
    close(hg.vmap(f, in_axes=(0, None))(i, x[0]), [np.stack([x[0], x[0] ** 2, np.sin(x[0]), np.sin(x[0]), x[0]])])
    close(hg.vmap(f, in_axes=(None, 0))(1, x), [x**2])
    slopes = np.stack([x[0] * 0 + 1, 2 * x[1], np.cos(x[2]), np.cos(x[3]), x[4] * 0 + 1])
    close(hg.vmap(hg.grad(lambda i, x: f(i, x).sum(), argnums=1))(i, x), [slopes])


def test_branches_that_no_operand_reaches_have_no_derivative() -> None:
    slope = hg.grad(lambda x: hg.cond(x > 0, lambda: 1.0, lambda: 2.0) * x)(3.0)
    assert float(slope) == 1.0


def test_associative_scan_is_differentiable() -> None:
    x = R.standard_normal(9)
    f = lambda x: (hg.associative_scan(lambda a, b: a * b, x) ** 2).sum()  # noqa: E731
    g = lambda x: (hnp.cumprod(x) ** 2).sum()  # noqa: E731
    close(hg.grad(f)(x), hg.grad(g)(x))


def test_many_scalars_are_one_kernel_a_step() -> None:
    params = {f"k{i:02d}": np.float32(0.5 + i / 200) for i in range(24)}

    def loss(p: Any) -> Any:
        c, _ = hg.scan(lambda c, _: ({k: v * p[k] + 0.01 for k, v in c.items()}, None), {k: v * 0 for k, v in p.items()}, None, 100)
        return sum(c[k] for k in sorted(c))

    gradient = hg.jit(hg.grad(loss))
    assert gradient.lower(params).compile().reduction().kernels <= 12
    value, slope, k = 0.0, 0.0, 0.6
    for _ in range(100):
        value, slope = value * k + 0.01, value + k * slope
    np.testing.assert_allclose(float(gradient(params)["k20"]), slope, rtol=1e-5)


def test_loops_that_run_side_by_side_are_one() -> None:
    def f(x: Any, xs: Any) -> Any:
        c, ys = hg.scan(lambda c, x: (hnp.sin(c) * x, c * x), x, xs)
        return c + ys.sum()

    x, xs = np.float64(1.3), R.standard_normal(5)

    def loops(g: Any) -> int:
        return int(hg.jit(g).lower(x, xs).compile().as_text("canonical").count("= scan"))

    assert loops(lambda x, xs: hg.jvp(lambda x: f(x, xs), (x,), (x,))) == 1
    assert loops(hg.value_and_grad(f)) == 2
    assert loops(lambda x, xs: (hg.scan(lambda c, v: (c + v, c), x, xs), hg.scan(lambda c, v: (c + v, c * 2), x, xs))) == 1
    assert loops(lambda x, xs: (hg.scan(lambda c, v: (c + v, c), x, xs), hg.scan(lambda c, v: (c * v, c), x, xs))) == 1
    total = lambda x, xs: hg.scan(lambda c, v: (c + v, None), x, xs)[0]  # noqa: E731
    assert loops(lambda x, xs: hg.scan(lambda c, v: (c * v, None), total(x, xs), xs)[0]) == 2  # which needs the end of the first
    chained = lambda x, xs: hg.scan(lambda c, v: (c * v, c), x, hg.scan(lambda c, v: (c + v, c), x, xs)[1])  # noqa: E731
    assert loops(chained) == 1
    a = x + np.concatenate([[0], np.cumsum(xs)[:-1]])
    close(hg.jit(chained)(x, xs), (x * np.prod(a), x * np.concatenate([[1], np.cumprod(a)[:-1]])))


def test_custom_derivatives_and_recomputation_inside_loops() -> None:
    @hg.custom_jvp
    def forward(x: Any) -> Any:
        return hnp.sin(x)

    @forward.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return forward(primals[0]), hnp.cos(primals[0]) * tangents[0] * 10

    @hg.custom_vjp
    def backward(x: Any) -> Any:
        return hnp.sin(x)

    backward.defvjp(lambda x: (backward(x), x), lambda x, g: (hnp.cos(x) * g * 10,))
    xs, starts = np.linspace(0.1, 1, 4), np.array([0.7, 0.2])
    for g in (forward, backward, hg.checkpoint(lambda c: hnp.sin(hnp.exp(c)))):
        looped, plain = ((lambda x, lib=lib, g=g: lib.scan(lambda c, v: (g(c) * v, c), x, xs)[0]) for lib in (hg, Plain))
        close(hg.jit(hg.grad(looped))(starts[0]), hg.grad(plain)(starts[0]))
        close(hg.vmap(hg.grad(looped))(starts), hg.vmap(hg.grad(plain))(starts))


HELD = hg.tensor(np.array([2.0, 3.0]))


@pytest.mark.parametrize(
    "body",
    [
        lambda c, q, n: c(lambda v: hnp.sin(v) * q)(q * 2),
        lambda c, q, n: c(lambda v: q * q)(q),
        lambda c, q, n: c(lambda v: hnp.where(hnp.arange(2) < n, hnp.sin(v), v))(q),
        lambda c, q, n: (lambda few: c(lambda v: hnp.where(few, hnp.sin(v), v * v))(q))(n > 2),
        lambda c, q, n: c(lambda v: hnp.sin(v) * HELD)(q),
        lambda c, q, n: c(lambda v: hnp.ones(2) * 3)(q) * q,
        lambda c, q, n: c(lambda v: hg.scan(lambda d, k: (d * v + n, d * k), v, hnp.arange(2.0))[0])(q),
        lambda c, q, n: c(lambda v, m: hg.scan(lambda d, k: (d * v + m, d * k), v, hnp.arange(2.0))[0])(q, n),
    ],
    ids=["argument", "nothing else", "count", "bools", "array", "constant", "loop", "loop's argument"],
)
def test_recomputation_reads_values_of_its_own_step(body: Any) -> None:
    q, n = np.arange(1.0, 7).reshape(3, 2), np.arange(6).reshape(3, 2)

    def loss(c: Any) -> Any:
        return lambda q: hnp.sum(hg.scan(lambda carry, row: (carry, body(c, *row)), (), (q, n))[1])

    for transform in (hg.grad, lambda f: hg.jit(hg.grad(f)), lambda f: hg.grad(hg.jit(f)), lambda f: hg.jacrev(hg.grad(f))):
        close(transform(loss(hg.checkpoint))(q), transform(loss(lambda f: f))(q))
