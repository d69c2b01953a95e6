"""Derivatives: every row of the op table against finite differences, reverse against forward mode, second order; the functions of the API."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optable import cases_of, seeded

import hologram as hg
import hologram.numpy as hnp
import hologram.transform  # noqa: F401 - attaches the rules
from hologram.errors import ArgumentError, DifferentiationError
from hologram.primitives import TABLE, Op
from hologram.primitives.op import NoDerivative
from hologram.trace.apply import node_of, wrap
from hologram.trace.recorder import record

RNG = np.random.default_rng(0)
STEP = 1e-6
CONTROL = ("control", "project", "mark")
COMPLEX = [TABLE[name] for name in ("real", "imag", "complex", "conj")]  # see test_complex.py


def of_row(row: Op, attrs: tuple[Any, ...]) -> Callable[..., Any]:
    """The row as a function of Tensors."""
    return lambda *xs: wrap(record(row, tuple([node_of(hnp.asarray(x)) for x in xs]), attrs))


def close(got: Any, want: Any, rtol: float = 1e-6, atol: float = 1e-7) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=atol)


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda r: r.name)
def test_every_row_has_a_derivative_or_says_why_not(row: Op) -> None:
    assert row.jvp is not None, f"{row.name} has no jvp"
    assert type(row.jvp) is not NoDerivative or row.jvp.reason


DOMAINS: dict[str, tuple[float, float]] = {
    "acosh": (1.2, 3.0), "tan": (-1.2, 1.2), "sin": (-3.0, 3.0), "cos": (-3.0, 3.0), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9),
    "atanh": (-0.9, 0.9), "erfinv": (-0.9, 0.9), "log1p": (-0.9, 3.0), "cbrt": (0.2, 3.0), "reciprocal": (0.2, 3.0), "rem": (0.6, 0.9),
    "fmod": (0.6, 0.9), "rem_trunc": (0.6, 0.9), "lgamma": (0.2, 3.0), "digamma": (0.2, 3.0),
}  # fmt: skip


def smooth_values(row: Op, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    low, high = row.tests.get("low"), row.tests.get("high")
    low, high = DOMAINS.get(row.name, (0.2 if low == 0.0 else -2.0 if low is None else max(low, -2.0), 2.0 if high is None else min(high, 2.0)))
    return rng.uniform(low, high, shape)


def differentiable_rows() -> list[Op]:
    """Rows of real numbers."""
    rows = [r for r in TABLE.values() if r.kind not in (*CONTROL, "host") and r not in COMPLEX]
    return [r for r in rows if r.jvp is not None and type(r.jvp) is not NoDerivative]


def smooth_cases(row: Op) -> Iterator[tuple[tuple[Any, ...], list[np.ndarray]]]:
    """``(attrs, arrays)`` of float64 where the row is smooth; integer arrays stay as they are."""
    if row.kind == "elementwise":
        for attrs in (
            [(n,) for n in (-2, 0, 1, 2, 3, 5)]
            if row.attrs == ("n",)
            else [(1,), (3,)]
            if row.attrs == ("order",)
            else [("float64",)]
            if row.attrs == ("dtype",)
            else [()]
        ):
            for shape in ((), (3, 4)):
                rng = seeded(row.name, attrs, shape)
                arrays = [smooth_values(row, shape, rng) for _ in range(row.arity or 2)]
                yield attrs, [arrays[0] > 0, *arrays[1:]] if row.name == "select" else arrays
        return
    found = 0
    for _, attrs, arrays in cases_of(row, True):
        floats = [a for a in arrays if a.dtype.kind == "f"]
        if not floats or any(a.dtype != np.float64 or a.size > 90 for a in floats) or floats[0].size == 0:
            continue
        rng = seeded(row.name, attrs, found)
        if found % 3 == 0:
            yield attrs, [rng.uniform(0.5, 2.0, a.shape) if a.dtype.kind == "f" else a for a in arrays]
        found += 1
        if found > 36:
            return


def differences(f: Callable[..., np.ndarray], arrays: list[np.ndarray], tangents: list[np.ndarray | None]) -> np.ndarray:
    """The central difference of a NumPy function in a direction."""

    def at(step: float) -> np.ndarray:
        return f(*[a if t is None else a + step * t for a, t in zip(arrays, tangents, strict=True)])

    return (at(STEP) - at(-STEP)) / (2 * STEP)


@pytest.mark.parametrize("row", differentiable_rows(), ids=lambda r: r.name)
def test_forward_and_reverse_mode_of_a_row(row: Op) -> None:
    """jvp against differences of the reference; then <u, J v> = <J' u, v>."""
    for attrs, arrays in smooth_cases(row):
        rng = seeded("direction", row.name, attrs)
        active = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
        tangents = [rng.standard_normal(a.shape) if i in active else None for i, a in enumerate(arrays)]

        def f(*xs: Any, arrays: list[np.ndarray] = arrays, attrs: Any = attrs) -> Any:
            values: list[Any] = list(arrays)
            for i, x in zip([i for i, a in enumerate(arrays) if a.dtype.kind == "f"], xs, strict=True):
                values[i] = x
            return of_row(row, attrs)(*values)

        primals = [arrays[i] for i in active]
        directions = [tangents[i] for i in active]
        _, forward = hg.jvp(f, primals, directions)
        want = differences(lambda *xs, attrs=attrs: row.reference(*xs, *attrs), arrays, tangents)
        about = f"{row.name}{attrs} {[a.shape for a in arrays]}"
        np.testing.assert_allclose(forward.numpy(), want, rtol=2e-6, atol=2e-7, err_msg=about)
        out, pull = hg.vjp(f, *primals)
        u = rng.standard_normal(out.shape)
        back = pull(u)
        product = sum(np.sum(b.numpy() * t) for b, t in zip(back, directions, strict=True))
        np.testing.assert_allclose(np.sum(u * forward.numpy()), product, rtol=1e-9, atol=1e-10, err_msg=about)


@pytest.mark.parametrize("row", [r for r in differentiable_rows() if r.transpose is None or r.kind == "elementwise"], ids=lambda r: r.name)
def test_second_order_of_a_row(row: Op) -> None:
    """The derivative of the gradient, forward over reverse and reverse over reverse, against differences of the gradient."""
    for attrs, arrays in list(smooth_cases(row))[1:3]:
        active = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
        rng = seeded("second", row.name, attrs)
        weights = rng.standard_normal(row.reference(*arrays, *attrs).shape)

        def loss(*xs: Any, arrays: list[np.ndarray] = arrays, attrs: Any = attrs, active: list[int] = active, weights: Any = weights) -> Any:
            values: list[Any] = list(arrays)
            for i, x in zip(active, xs, strict=True):
                values[i] = x
            y = of_row(row, attrs)(*values)
            return hnp.sum(y * y * weights)

        argnums = tuple(range(len(active)))
        gradient = hg.grad(loss, argnums)
        primals = [arrays[i] for i in active]
        directions = [rng.standard_normal(a.shape) for a in primals]
        plus, minus = (gradient(*[p + s * d for p, d in zip(primals, directions, strict=True)]) for s in (STEP, -STEP))
        want = [(a.numpy() - b.numpy()) / (2 * STEP) for a, b in zip(plus, minus, strict=True)]
        _, forward = hg.jvp(gradient, primals, directions)
        _, pull = hg.vjp(gradient, *primals)
        reverse = pull(tuple(directions))  # the Hessian is symmetric
        for w, a, b in zip(want, forward, reverse, strict=True):
            np.testing.assert_allclose(a.numpy(), w, rtol=1e-5, atol=1e-6, err_msg=f"{row.name}{attrs}")
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-8, atol=1e-9, err_msg=f"{row.name}{attrs}")


# --- conventions -----------------------------------------------------------------------------------------------------

CONVENTIONS: list[tuple[str, Callable[[Any], Any], float, float]] = [
    ("abs at 0", hnp.abs, 0.0, 1.0),
    ("sign", hnp.sign, 2.0, 0.0),
    ("zeroth power", lambda x: x - x**0, 2.0, 1.0),
    ("floor", hnp.floor, 2.5, 0.0),
    ("sqrt at 0", hnp.sqrt, 0.0, math.inf),
    ("max of equals", lambda x: hnp.maximum(x, 1.0), 1.0, 0.5),
    ("min of equals", lambda x: hnp.minimum(1.0, x), 1.0, 0.5),
    ("max with itself", lambda x: hnp.maximum(x, x), 1.0, 1.0),
    ("clip at its end", lambda x: hnp.clip(x, 0.0, 1.0), 1.0, 0.5),
    ("clip outside", lambda x: hnp.clip(x, 0.0, 1.0), 2.0, 0.0),
    ("where with NaN in the unused branch", lambda x: hnp.where(x > 0, hnp.log(hnp.where(x > 0, x, 1.0)), 0.0), -1.0, 0.0),
    ("x ** 0", lambda x: x**0, 0.0, 0.0),
    ("x ** 1 at 0", lambda x: x**1, 0.0, 1.0),
    ("x ** 2 at 0", lambda x: x**2, 0.0, 0.0),
    ("0.0 ** y", lambda y: hnp.power(0.0 * y, y), 2.0, 0.0),
    ("pow at 0", lambda x: hnp.power(x, hnp.asarray(2.0)), 0.0, 0.0),
    ("pow to the 0", lambda x: hnp.power(x, hnp.asarray(0.0)), 0.0, 0.0),
    ("max of a vector with ties", lambda x: hnp.max(hnp.stack([x, x, x * 0.0])), 1.0, 1.0),
    ("product with a zero", lambda x: hnp.prod(hnp.stack([x, 2.0 + x * 0.0, 3.0 + x * 0.0])), 0.0, 6.0),
    ("square of a norm", lambda x: hnp.sqrt(x * x + 1.0), 0.0, 0.0),
    ("stop_gradient", lambda x: x * hg.stop_gradient(x), 3.0, 3.0),
    ("a cast to integers and back", lambda x: hnp.astype(hnp.astype(x, "int32"), "float32") * x, 2.5, 2.0),
    ("a constant function", lambda x: hnp.asarray(3.0), 1.0, 0.0),
    ("a number", lambda x: 3.0, 1.0, 0.0),
    ("remainder", lambda x: x % 0.75, 2.0, 1.0),
]


@pytest.mark.parametrize(("f", "x", "want"), [c[1:] for c in CONVENTIONS], ids=[c[0] for c in CONVENTIONS])
def test_conventions(f: Callable[[Any], Any], x: float, want: float) -> None:
    close(hg.grad(f)(x), want)
    close(hg.jit(hg.grad(f))(np.float32(x)), want)


def test_ties_share_among_the_extremes() -> None:
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]])
    want = [[0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]
    close(hg.grad(lambda x: hnp.sum(hnp.max(x, axis=1)))(x), want)
    close(hg.grad(lambda x: -hnp.sum(hnp.min(-x, axis=1)))(x), want)


# --- functions of the API --------------------------------------------------------------------------------------------


def test_gradients_of_pytrees() -> None:
    p: dict[str, Any] = {"w": np.ones((3, 2)), "b": [np.zeros(2), np.float64(2.0)]}
    x = RNG.standard_normal((5, 3))

    def loss(p: Any, x: Any) -> Any:
        return hnp.sum((x @ p["w"] + p["b"][0]) ** 2) * p["b"][1]

    value, g = hg.value_and_grad(loss)(p, x)
    residual = x @ p["w"] + p["b"][0]
    close(value, 2 * np.sum(residual**2))
    close(g["w"], 4 * x.T @ residual)
    close(g["b"][0], 4 * residual.sum(0))
    close(g["b"][1], np.sum(residual**2))
    assert g["w"].dtype == np.float64 and g["w"].shape == (3, 2)


def test_argnums_and_aux() -> None:
    def f(x: Any, y: Any, scale: Any = 1.0) -> Any:
        return x * y * y * scale, {"twice": 2 * x}

    gradient, aux = hg.grad(f, argnums=(0, -1), has_aux=True)(3.0, 2.0, scale=10.0)
    close(gradient[0], 40.0)
    close(gradient[1], 120.0)
    close(aux["twice"], 6.0)
    (value, _), g = hg.value_and_grad(f, argnums=1, has_aux=True)(3.0, 2.0)
    close(value, 12.0)
    close(g, 12.0)
    out, pull, aux = hg.vjp(f, 3.0, 2.0, has_aux=True)
    close(pull(2.0)[1], 24.0)


def test_python_control_flow_on_values() -> None:
    def f(x: Any) -> Any:
        y = x * x
        while float(y) < 100.0:
            y = y * x
        return -y if y > 200 else y

    close(hg.grad(f)(3.0), -5 * 81.0)
    close(hg.grad(f)(10.5), 21.0)
    close(hg.grad(hg.grad(f))(10.5), 2.0)


def test_long_chains_are_realised_in_between() -> None:
    def f(x: Any) -> Any:
        y = x
        for _ in range(2500):
            y = y * 0.999 + 0.001
        return hnp.sum(y)

    close(hg.grad(f)(np.ones(3)), np.full(3, 0.999**2500))


def test_perturbations_are_not_confused() -> None:
    d: Any = hg.grad
    close(d(lambda x: x * d(lambda y: x + y)(1.0))(5.0), 1.0)
    close(d(lambda x: x * d(lambda y: x * y)(x))(3.0), 6.0)
    close(d(lambda x: d(lambda y: x * y * y)(x) * x)(2.0), 24.0)
    forward = lambda f: lambda x: hg.jvp(f, (x,), (hnp.ones_like(x),))[1]  # noqa: E731
    close(forward(lambda x: x * forward(lambda y: x + y)(1.0))(5.0), 1.0)
    close(forward(lambda x: x * d(lambda y: x * y)(x))(3.0), 6.0)
    close(hg.jit(d(lambda x: x * d(lambda y: x * y)(x)))(3.0), 6.0)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_higher_derivatives(n: int) -> None:
    f: Any = lambda x: hnp.sin(2.0 * x)  # noqa: E731
    for _ in range(n):
        f = hg.grad(f)
    x = np.float64(0.7)
    cycle: list[Any] = [np.sin, np.cos, lambda t: -np.sin(t), lambda t: -np.cos(t)]
    want = 2.0**n * cycle[n % 4](1.4)
    close(f(x), want)
    close(hg.jit(f)(x), want)


NESTINGS: list[Callable[[Any], Any]] = [
    lambda f: hg.jit(hg.grad(f)),
    lambda f: hg.grad(hg.jit(f)),
    lambda f: hg.jit(hg.grad(hg.jit(f))),
    lambda f: lambda x: hg.vjp(f, x)[1](1.0)[0],
    lambda f: hg.jacrev(f),
    lambda f: hg.jit(hg.jacfwd(f)),
    lambda f: lambda x: hg.linearize(hg.grad(lambda y: hg.jvp(f, (y,), (x,))[0]), x)[0],
    lambda f: lambda x: hg.vmap(hg.grad(f))(hnp.stack([x, 2 * x]))[0],
    lambda f: lambda x: hg.jit(hg.vmap(lambda t: hg.jvp(f, (x,), (t,))[1]))(hnp.eye(3, dtype=hnp.float64)),
    lambda f: hg.grad(hg.checkpoint(f)),
]


@pytest.mark.parametrize("transform", NESTINGS)
def test_transforms_nest(transform: Any) -> None:
    def f(x: Any) -> Any:
        return hnp.sum(hnp.sin(x) * x[::-1])

    x = np.array([0.3, 1.1, -0.7])
    close(transform(f)(x), np.cos(x) * x[::-1] + np.sin(x)[::-1])


def test_jacobians() -> None:
    x = np.array([0.5, 1.5, 2.5])

    def f(x: Any, y: Any) -> Any:
        return {"a": hnp.outer(x, x[:2]) * y, "b": hnp.sum(x)}

    want = np.zeros((3, 2, 3))
    for i in range(3):
        for j in range(2):
            want[i, j, i] += x[j]
            want[i, j, j] += x[i]
    for jacobian in (hg.jacfwd(f, (0, 1)), hg.jacrev(f, (0, 1)), hg.jit(hg.jacrev(f, (0, 1)))):
        got = jacobian(x, np.float64(2.0))
        close(got["a"][0], 2 * want)
        close(got["a"][1], np.outer(x, x[:2]))
        close(got["b"][0], np.ones(3))
        close(got["b"][1], 0.0)


def test_hessian_of_rosenbrock() -> None:
    def f(x: Any) -> Any:
        return hnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x = RNG.standard_normal(6)
    want = np.zeros((6, 6))
    for i in range(5):
        want[i, i] += 1200 * x[i] ** 2 - 400 * x[i + 1] + 2
        want[i + 1, i + 1] += 200
        want[i, i + 1] -= 400 * x[i]
        want[i + 1, i] -= 400 * x[i]
    close(hg.hessian(f)(x), want)
    close(hg.jit(hg.hessian(f))(x), want)
    close(hg.jacrev(hg.jacrev(f))(x), want)


def test_linearize_evaluates_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return hnp.exp(x), x * 2

    (y, _), push = hg.linearize(f, np.array([0.0, 1.0]))
    for t in (np.array([1.0, 0.0]), np.array([0.0, 3.0])):
        a, b = push(t)
        close(a, t * y.numpy())
        close(b, 2 * t)
    assert len(calls) == 1


def test_symbolic_sizes() -> None:
    gradient = hg.jit(hg.grad(lambda x: hnp.sum(hnp.exp(x[1:]) * x[:-1]) / hnp.max(x)), dynamic=True)
    for n in (4, 9):
        x = np.linspace(0.1, 1.0, n)
        e, m = np.exp(x[1:]), x.max()
        want = (np.pad(e, (0, 1)) + np.pad(e * x[:-1], (1, 0))) / m
        want[-1] -= np.sum(e * x[:-1]) / m**2
        close(gradient(x), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_have_the_types_of_arguments(dtype: str) -> None:
    x = hnp.astype(np.array([0.5, 1.0, 2.0]), dtype)
    g = hg.grad(lambda x: hnp.astype(hnp.sum(hnp.sin(x) * np.float32(2.0)), "float32"))(x)
    assert g.dtype == x.dtype
    np.testing.assert_allclose(np.asarray(g, np.float64), 2 * np.cos([0.5, 1.0, 2.0]), rtol=2e-2 if "16" in dtype else 1e-6)


def test_many_threads() -> None:
    def work(found: list[Any]) -> None:
        for i in range(10):
            found.append(float(hg.grad(lambda x: x * x if x > 1 else -x)(np.float64(i) / 4)))

    results: list[list[Any]] = [[] for _ in range(4)]
    threads = [threading.Thread(target=work, args=(r,)) for r in results]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[i / 2 if i > 4 else -1.0 for i in range(10)]] * 4


def test_marks_do_not_reach_programs() -> None:
    lowered = hg.jit(hg.grad(hg.checkpoint(lambda x: hnp.sum(hg.stop_gradient(x) * x)))).lower(np.ones(3))
    assert "mark" in lowered.as_text("trace")
    canonical = lowered.as_text("canonical")
    assert not any(name in canonical for name in ("mark", "stop", "custom"))


# --- rules of one's own ----------------------------------------------------------------------------------------------


@hg.custom_jvp
def log1pexp(x: Any) -> Any:
    return hnp.log(1.0 + hnp.exp(x))


@log1pexp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + hnp.exp(x))) * t


def test_custom_jvp() -> None:
    close(log1pexp(1.0), math.log(1 + math.e))
    close(hg.grad(log1pexp)(np.float32(100.0)), 1.0)
    close(hg.jit(hg.grad(log1pexp))(np.float32(100.0)), 1.0)
    xs = np.array([0.5, 60.0], np.float32)
    want = 1 - 1 / (1 + np.exp(xs))
    close(hg.vmap(hg.grad(log1pexp))(xs), want, 1e-6)
    close(hg.grad(lambda x: hnp.sum(hg.vmap(log1pexp)(x)))(xs), want, 1e-6)
    close(hg.jvp(log1pexp, (xs,), (xs,))[1], want * xs, 1e-6)
    s = 1 / (1 + np.exp(-0.5))
    close(hg.grad(hg.grad(log1pexp))(np.float64(0.5)), s * (1 - s))


def test_custom_jvps_by_argument() -> None:
    @hg.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return hnp.sin(x) * y

    f.defjvps(lambda t, out, x, y: 10 * hnp.cos(x) * y * t, None)
    gx, gy = hg.grad(f, (0, 1))(0.3, 2.0)
    close(gx, 20 * math.cos(0.3))
    close(gy, 0.0)


def make_clipped() -> Any:
    def f(low: float, x: Any, y: Any) -> Any:
        return x * y

    clipped = hg.custom_vjp(f, nondiff_argnums=(0,))
    clipped.defvjp(lambda low, x, y: (x * y, (x, y)), lambda low, saved, c: (hnp.maximum(c * saved[1], low), None))
    return clipped


def test_custom_vjp() -> None:
    f = make_clipped()
    gx, gy = hg.grad(lambda x, y: f(-1.0, x, y) * 3.0, (0, 1))(2.0, 5.0)
    close(gx, 15.0)
    close(gy, 0.0)
    xs, y = np.array([1.0, 2.0]), -4.0
    close(hg.vmap(hg.grad(lambda x: f(-1.0, x, y)))(xs), [-1.0, -1.0])
    close(hg.jit(hg.grad(lambda x: hnp.sum(hg.vmap(lambda x: f(-1.0, x, y))(x))))(xs), [-1.0, -1.0])
    close(hg.jacfwd(hg.grad(lambda x: f(-1e9, x, 3.0) ** 2))(np.float64(2.0)), 18.0)
    with pytest.raises(DifferentiationError, match="forward mode"):
        hg.jvp(lambda x: f(0.0, x, x), (1.0,), (1.0,))
    with pytest.raises(DifferentiationError, match="forward mode"):
        hg.jacfwd(lambda x: f(0.0, x, x))(1.0)


def test_shared_arguments_of_a_stack_sum_their_cotangents() -> None:
    @hg.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, c: (c * saved[1], c * saved[0]))
    xs = np.array([1.0, 2.0, 4.0])
    gx, gy = hg.grad(lambda x, y: hnp.sum(hg.vmap(f, (0, None))(x, y)), (0, 1))(xs, 3.0)
    close(gx, [3, 3, 3])
    close(gy, 7.0)


def test_rules_inside_loops() -> None:
    @hg.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    square.defjvps(lambda t, out, x: 10 * x * t)

    @hg.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, c: (c * x * x * 30,))
    x = np.float64(0.5)
    for f, want in ((square, 10**3 * 0.5**7), (cube, 30**3 * 0.5**26), (hg.checkpoint(lambda x: x * x), 8 * 0.5**7)):
        loop: Any = lambda x, f=f: hg.scan(lambda c, _: (f(c), None), x, None, length=3)[0]  # noqa: E731
        close(hg.grad(loop)(x), want)
        close(hg.jit(hg.vmap(hg.grad(loop)))(np.array([0.0, 0.5])), [0.0, want])


def test_rules_that_are_missing_or_wrong() -> None:
    with pytest.raises(DifferentiationError, match="no rule"):
        hg.grad(hg.custom_jvp(lambda x: x))(1.0)
    bad = hg.custom_jvp(lambda x: x)
    bad.defjvp(lambda p, t: p[0])
    with pytest.raises(ArgumentError, match="returns"):
        hg.grad(bad)(1.0)


# --- recomputing -----------------------------------------------------------------------------------------------------


def test_checkpoint_keeps_values_and_reaches_closures() -> None:
    x, w = np.linspace(0.1, 1.0, 5), np.float64(1.5)

    def f(c: Any) -> Any:
        def loss(w: Any, x: Any) -> Any:
            g = c(lambda x: x * w / (1.0 + x * x * w))
            return hnp.sum(g(g(x)))

        return loss

    plain, again = f(lambda g: g), f(hg.checkpoint)
    for transform in (lambda h: hg.grad(h, (0, 1)), lambda h: hg.jit(hg.grad(h, (0, 1))), lambda h: hg.hessian(h, (0, 1))):
        want, got = transform(plain)(w, x), transform(again)(w, x)
        for a, b in zip(hg.tree.leaves(want), hg.tree.leaves(got), strict=True):
            close(b, a.numpy())


def test_checkpoint_is_visible_in_the_memory_plan() -> None:
    def layer(x: Any) -> Any:
        for _ in range(4):
            x = hnp.cumsum(x / (1.0 + x * x), axis=0)
        return x

    def peak(wrap_layer: Any) -> int:
        def loss(x: Any) -> Any:
            for _ in range(4):
                x = wrap_layer(layer)(x)
            return hnp.sum(x)

        return hg.jit(hg.grad(loss)).lower(np.ones((64, 64), np.float32)).compile().memory_analysis().peak

    assert peak(hg.checkpoint) < 0.75 * peak(lambda f: f)


def test_derivatives_have_the_lines_of_what_they_derive() -> None:
    def f(x: Any) -> Any:
        y = hnp.sin(x)
        return hnp.sum(y * y)

    first = f.__code__.co_firstlineno
    graph = hg.make_graph(hg.grad(hg.checkpoint(f)))(np.ones(3))
    lines = {n.op.name: graph.lines[n][1] - first for n in graph.nodes() if n.op.name in ("cos", "mul")}
    assert lines["cos"] == 1


# --- errors ----------------------------------------------------------------------------------------------------------

NO_TUPLE: Any = 1.0
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: hg.grad(lambda x: x * 2)(3), DifferentiationError, "int64 has no derivative"),
    (lambda: hg.grad(lambda x: x * 2)(np.ones(3)), DifferentiationError, r"scalar float, not float64\[3\]"),
    (lambda: hg.grad(lambda x: (x, x))(1.0), DifferentiationError, "one scalar result"),
    (lambda: hg.grad(lambda x: x > 0)(1.0), DifferentiationError, "scalar float, not bool"),
    (lambda: hg.grad(lambda x: "x")(1.0), ArgumentError, "returned a str"),
    (lambda: hg.grad(lambda x: x, argnums=2)(1.0), ArgumentError, "argnums"),
    (lambda: hg.jvp(lambda x: x, (1.0,), (np.ones(3, np.float32),)), ArgumentError, r"float32\[3\] for a value"),
    (lambda: hg.jvp(lambda x: x, NO_TUPLE, NO_TUPLE), ArgumentError, "tuple or list"),
    (lambda: hg.vjp(lambda x: x, np.ones(2))[1](np.ones(3)), ArgumentError, "for a value"),
    (lambda: hg.jvp(lambda x: x, (1.0,), (1.0, 2.0)), ArgumentError, "structure"),
]


@pytest.mark.parametrize(("act", "kind", "message"), ERRORS)
def test_error(act: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        act()
    assert "test_derivatives.py" in str(caught.value)


# --- random programs -------------------------------------------------------------------------------------------------

UNARY: list[Callable[[Any], Any]] = [
    hnp.sin,
    hnp.tanh,
    lambda x: hnp.exp(-x * x),
    lambda x: x[::-1],
    lambda x: hnp.cumsum(x, axis=0),
    lambda x: x - hnp.mean(x),
    lambda x: hnp.roll(x, 1),
    lambda x: hnp.log(2.0 + x * x),
    lambda x: hnp.sqrt(1.0 + x * x),
    lambda x: x * hnp.sum(x),
    lambda x: hnp.concat([x[2:], x[:2]]),
    lambda x: hnp.where(x > 0.1, x * 3.0, x),
    lambda x: x / (1.0 + hnp.abs(x)),
    lambda x: x[np.array([0, 0, 3, 1])],
    lambda x: hnp.pad(x[1:-1], 1),
    lambda x: hnp.reshape(hnp.reshape(x, (2, 2)).T, (4,)),
    lambda x: hnp.outer(x, x)[1],
    lambda x: x / hnp.max(hnp.abs(x) + 1.0),
]
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - 2.0 * y,
    lambda x, y: x / (2.0 + y * y),
    hnp.hypot,
]


@st.composite
def programs(draw: Any) -> Callable[[Any], Any]:
    steps = draw(st.lists(st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6))

    def program(x: Any) -> Any:
        values = [x]
        for op, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[op](a) if op < len(UNARY) else BINARY[op - len(UNARY)](a, b))
        return values[-1]

    return program


@hypothesis.settings(max_examples=hypothesis.settings().max_examples * 2 // 5)
@given(programs(), st.integers(0, 2**32 - 1))
def test_random_programs(f: Callable[[Any], Any], seed: int) -> None:
    """Gradient against differences; forward against reverse; the Hessian by two ways; all under jit."""
    rng = np.random.default_rng(seed)
    x, t, w = rng.standard_normal(4) + 0.05, rng.standard_normal(4), rng.standard_normal(4)
    loss = lambda z: hnp.sum(f(z) * w)  # noqa: E731
    _, forward = hg.jvp(loss, (x,), (t,))
    g = hg.jit(hg.grad(loss))(x)
    scale = 1.0 + np.abs(g.numpy()).max()
    close(forward, np.sum(g.numpy() * t), 1e-8, 1e-8 * scale)
    h = 1e-5
    close(forward, (float(loss(x + h * t)) - float(loss(x - h * t))) / (2 * h), 1e-4, 1e-5 * scale * 10)
    h1, h2 = hg.jit(hg.hessian(loss))(x), hg.jacrev(hg.jacfwd(loss))(x)
    close(h1, h2.numpy(), 1e-7, 1e-7 * (1.0 + np.abs(h2.numpy()).max()))
