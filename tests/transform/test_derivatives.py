"""Derivatives: conventions, and the functions of the API."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DifferentiationError
from tests.support.comparing import close

RNG = np.random.default_rng(0)


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
    ("0 to the 0", lambda x: hnp.power(x, x * 0.0), 0.0, 0.0),
    ("NaN to the 0", lambda x: hnp.power(x, hnp.asarray(0.0)), math.nan, 0.0),
    ("pow to the 0, by the exponent", lambda y: hg.grad(hnp.power)(hnp.asarray(4.0), y), 0.0, 0.25),
    ("pow to the 0, by the base", lambda x: hg.grad(hnp.power, 1)(x, hnp.asarray(0.0)), 4.0, 0.25),
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
    assert float(hg.grad(lambda x, y: x * y, argnums=np.int64(1))(3.0, 2.0)) == 3.0
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


def test_the_derivative_of_hypot_at_the_origin_is_a_number() -> None:
    """Zero is a subgradient there, forward and in reverse; so are second derivatives numbers."""

    def f(x: Any) -> Any:
        inner = hnp.pad(x[1:-1], 1)
        return hnp.hypot(inner, 2 * inner)

    x, t = np.arange(4.0), np.ones(4)
    _, forward = hg.jvp(f, (x,), (t,))
    np.testing.assert_allclose(forward, [0, 5**0.5, 5**0.5, 0])
    np.testing.assert_allclose(hg.jit(hg.grad(lambda x: f(x).sum()))(x) * t, forward)
    assert np.isfinite(hg.hessian(lambda x: f(x).sum())(x).numpy()).all()
    assert [float(d) for d in hg.grad(hnp.hypot, argnums=(0, 1))(0.0, 0.0)] == [0, 0]


KEYS = [slice(None, None, 2), slice(6, 0, -3), slice(1, 3), 3, np.array([1, 6]), np.array([1, 6, 1]), np.arange(8) % 3 == 0]


@pytest.mark.parametrize("value", [0.5, np.inf, -np.inf])
@pytest.mark.parametrize("method", ["set", "add", "multiply", "min", "max"])
def test_what_an_update_leaves_alone_keeps_its_derivative(method: str, value: float) -> None:
    """Infinities and NaNs too, which are what extremes of nothing are, or equal nothing."""
    x = np.array([1.0, np.inf, -np.inf, np.nan, np.inf, -np.inf, 0.0, np.nan])
    ct = np.arange(1.0, 9.0)
    for key in KEYS:
        alone = np.ones(8, np.bool_)
        alone[key] = False
        _, pull = hg.vjp(lambda x, v, key=key: getattr(x.at[key], method)(v), x, value)
        tangent = hg.jvp(lambda x, v, key=key: getattr(x.at[key], method)(v), (x, value), (ct, 1.0))[1]
        np.testing.assert_array_equal(np.asarray(pull(ct)[0])[alone], ct[alone])
        np.testing.assert_array_equal(np.asarray(tangent)[alone], ct[alone])


@pytest.mark.parametrize("method", ["min", "max"])
def test_extremes_that_are_nan_have_no_derivative(method: str) -> None:
    for key in KEYS:
        _, pull = hg.vjp(lambda x, v, key=key: getattr(x.at[key], method)(v), np.full(8, np.nan), 1.0)
        by_x, by_v = pull(np.ones(8))
        alone = np.ones(8)
        alone[key] = 0.0
        np.testing.assert_array_equal(by_x, alone)
        assert by_v == 0
