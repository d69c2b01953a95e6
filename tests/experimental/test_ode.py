"""Ordinary differential equations beside solutions that are known, and JAX's solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DifferentiationError, DTypeError, HologramError, ShapeError, TreeError, UnsupportedError
from hologram.experimental.ode import odeint
from tests.support.comparing import differences

T = np.linspace(0, 2, 5)
Y0 = np.array([1.0, 1.5])


def decay(y: Any, t: Any, rate: Any) -> Any:
    return -rate * y


def swing(y: Any, t: Any, a: Any, b: Any) -> Any:
    return hnp.stack([a * y[0] - b * y[0] * y[1] + 0.1 * hnp.sin(t), b * y[0] * y[1] - y[1]])


def test_solutions_that_are_known() -> None:
    np.testing.assert_allclose(odeint(decay, Y0, T, 2.0).numpy(), Y0 * np.exp(-2 * T)[:, None], rtol=1e-6)
    np.testing.assert_allclose(odeint(lambda y, t: hnp.cos(t), np.float64(0), T).numpy(), np.sin(T), atol=1e-7)
    backwards = odeint(decay, Y0 * np.exp(-4), T[::-1].copy(), 2.0).numpy()
    np.testing.assert_allclose(backwards, Y0 * np.exp(-2 * T[::-1])[:, None], rtol=1e-6)
    single = odeint(decay, np.float32(1), T.astype(np.float32), 2.0, rtol=1e-5, atol=1e-5)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.numpy(), np.exp(-2 * T), atol=1e-4)


def test_states_are_pytrees_and_steps_are_few() -> None:
    calls = []

    def turn(y: Any, t: Any) -> Any:
        calls.append(1)
        return {"x": y["v"], "v": -y["x"]}

    found = odeint(turn, {"x": np.ones(2), "v": np.zeros(2)}, T)
    np.testing.assert_allclose(found["x"].numpy(), np.cos(T)[:, None] * np.ones(2), atol=1e-7)
    assert found["v"].shape == (5, 2) and len(calls) == 1  # traced once


def test_values_that_are_not_reached_are_nan() -> None:
    exploding = odeint(lambda y, t: y**2, np.float64(1), np.array([0.0, 0.5, 2.0])).numpy()
    np.testing.assert_allclose(exploding[:2], [1, 2], rtol=1e-6)
    assert np.isnan(exploding[2])
    assert np.isnan(odeint(decay, np.float64(1), T, 1.0, mxstep=2).numpy()[1:]).all()
    small = odeint(decay, np.float64(1), T, 1.0, hmax=0.01).numpy()
    np.testing.assert_allclose(small, np.exp(-T), rtol=1e-9)


def loss(y0: Any, t: Any, p: Any) -> Any:
    return hnp.sum(odeint(swing, y0, t, p[0], p[1]) ** 2 * hnp.arange(1.0, 6)[:, None])


def test_adjoint_derivatives() -> None:
    p = np.array([1.1, 0.7])
    found = hg.jit(hg.grad(loss, argnums=(0, 1, 2)))(Y0, T, p)
    value = hg.jit(loss)
    wants = [
        differences(lambda y: value(y, T, p), Y0, 1e-5),
        differences(lambda t: value(Y0, t, p), T, 1e-5),
        differences(lambda q: value(Y0, T, q), p, 1e-5),
    ]
    for got, want in zip(found, wants, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-4, atol=2e-4)


def test_what_the_rate_reads_from_around_it_is_differentiated() -> None:
    def summed(a: Any) -> Any:
        return hnp.sum(odeint(lambda y, t: -a * y, Y0, T))

    a, away = np.float64(1.3), np.exp(-1.3 * T)[:, None] * Y0
    for f in (hg.grad(summed), hg.jit(hg.grad(summed))):
        np.testing.assert_allclose(float(f(a)), np.sum(-T[:, None] * away), rtol=1e-6)
    np.testing.assert_allclose(float(hg.jacrev(hg.grad(summed))(a)), np.sum(T[:, None] ** 2 * away), rtol=1e-5)
    stacked = hg.jit(hg.vmap(hg.grad(summed)))(np.array([1.3, 0.5])).numpy()
    np.testing.assert_allclose(stacked[0], np.sum(-T[:, None] * away), rtol=1e-6)


OF_JAX = [  # jax.experimental.ode.odeint, 0.10
    [1.0, 1.5],
    [1.075566909174642, 1.3044573562449706],
    [1.2446785574201609, 1.1844855819339457],
    [1.4867044321318366, 1.1568234697114517],
    [1.7526578290176442, 1.2373656538788569],
]


def test_jax_gives_the_same(everything: bool) -> None:
    np.testing.assert_allclose(odeint(swing, Y0, T, 1.1, 0.7).numpy(), OF_JAX, rtol=1e-7)
    if not everything:
        return
    jax = pytest.importorskip("jax", reason="JAX, with which results are compared, is not installed")
    ode = pytest.importorskip("jax.experimental.ode")
    with jax.enable_x64(True):

        def theirs(y: Any, t: Any, a: Any, b: Any) -> Any:
            return jax.numpy.stack([a * y[0] - b * y[0] * y[1] + 0.1 * jax.numpy.sin(t), b * y[0] * y[1] - y[1]])

        want = np.asarray(ode.odeint(theirs, Y0, T, 1.1, 0.7))
    np.testing.assert_allclose(odeint(swing, Y0, T, 1.1, 0.7).numpy(), want, rtol=1e-6)


WRONG: list[tuple[Callable[[], Any], type[HologramError], str]] = [
    (lambda: odeint(lambda y, t: y[None], 1.0, T), ShapeError, "rate of shape"),
    (lambda: odeint(lambda y, t: (y, y), 1.0, T), TreeError, "structure"),
    (lambda: odeint(lambda y, t: y * 1j, 1.0, T), DTypeError, "complex"),
    (lambda: odeint(lambda y, t: y, np.float16(1), T), DTypeError, "float16"),
    (lambda: odeint(lambda y, t: y, (), T), ArgumentError, "no leaves"),
    (lambda: odeint(lambda y, t: y, 1.0, 2.0), ShapeError, "vector"),
    (lambda: odeint(lambda y, t: y, 1.0, T, rtol="small"), ArgumentError, "rtol"),
    (lambda: odeint(lambda y, t: hg.debug.print("{}", t) or -y, 1.0, T), UnsupportedError, "for its effect"),
    (lambda: odeint(3, 1.0, T), ArgumentError, "function"),
    (lambda: hg.jvp(lambda y: odeint(decay, y, T, 1.0), (1.0,), (1.0,)), DifferentiationError, "custom_vjp|forward"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors_are_kind_and_located(call: Callable[[], Any], kind: type[HologramError], text: str) -> None:
    with pytest.raises(kind, match=text) as found:
        call()
    assert "test_ode.py" in str(found.value)
