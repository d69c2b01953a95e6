"""Activations of pieces against their formulas, and every name of ``jax.nn`` against JAX where that is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

import hologram as hg
from hologram.nn import activations

X = np.linspace(-5, 5, 101).astype(np.float32) + np.float32(0.013)
FORMULAS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "identity": lambda x: x,
    "soft_sign": lambda x: x / (1 + np.abs(x)),
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name: str) -> None:
    f, x = getattr(hg.nn, name), X.astype(np.float64)
    np.testing.assert_allclose(hg.jit(f)(X), FORMULAS[name](X), rtol=1e-6, atol=1e-6)
    slopes = (FORMULAS[name](x + 1e-6) - FORMULAS[name](x - 1e-6)) / 2e-6
    np.testing.assert_allclose(hg.vmap(hg.grad(f))(x), slopes, atol=1e-6)
    assert f(X.astype(np.float16)).dtype == np.float16


@pytest.mark.parametrize(
    ("name", "corners"),
    [
        ("relu", {0: 0}),
        ("relu6", {0: 0, 6: 0}),
        ("leaky_relu", {0: 1}),
        ("hard_tanh", {-1: 1, 1: 1}),
        ("hard_sigmoid", {-3: 0, 3: 0}),
        ("hard_silu", {-3: 0, 3: 1}),
    ],
)
def test_slopes_at_corners(name: str, corners: dict[int, float]) -> None:
    """As JAX has them."""
    x = np.array(list(corners), np.float64)
    np.testing.assert_array_equal(hg.vmap(hg.grad(getattr(hg.nn, name)))(x), list(corners.values()))
    if jax := sys.modules.get("jax"):
        slopes = [float(jax.grad(getattr(jax.nn, name))(v)) for v in x.astype(np.float32)]
        np.testing.assert_array_equal(slopes, list(corners.values()))


def test_log1mexp() -> None:
    x = np.array([1e-12, 1e-3, 0.5, np.log(2), 1.0, 30.0])
    np.testing.assert_allclose(hg.nn.log1mexp(x), np.where(x < 0.7, np.log(-np.expm1(-x)), np.log1p(-np.exp(-x))), rtol=1e-12)
    np.testing.assert_allclose(hg.vmap(hg.grad(hg.nn.log1mexp))(x), 1 / np.expm1(x), rtol=1e-9)


def test_logmeanexp() -> None:
    x = X.reshape(1, 101) + 1000
    np.testing.assert_allclose(hg.nn.logmeanexp(x, axis=1, keepdims=True), [[1000 + np.log(np.mean(np.exp(X.astype(np.float64))))]], rtol=1e-6)


def test_the_public_list_of_jax_is_covered() -> None:
    nn = pytest.importorskip("jax.nn")
    for theirs, ours in ((nn, hg.nn), (nn.initializers, hg.nn.initializers)):
        missing = {n for n in dir(theirs) if not n.startswith("_")} - set(ours.__all__)
        assert missing <= {"Initializer", "get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"}  # a type; of 8-bit GPU kernels
    for name in activations.__all__:
        if name in FORMULAS:
            np.testing.assert_allclose(getattr(hg.nn, name)(X), getattr(nn, name)(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "hard_silu", "relu", "relu6"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gates_close_however_far_below_zero(name: str, dtype: str) -> None:
    """A gate that is nearly 0 must not meet a number that is larger than it is small."""
    f = getattr(hg.nn, name)
    x = -np.logspace(2, np.log10(float(np.finfo(dtype).max) / 2), 30).astype(dtype)
    for values in (f(x), hg.grad(lambda v: f(v).sum())(x)):
        np.testing.assert_allclose(values, 0, atol=1e-39)
