"""Activations, normalisation, losses, attention: against formulas in float64, at the ends of the range, derived, and in how many kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from hologram.errors import ArgumentError, DTypeError, ShapeError

Array = Any


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Array) -> Array:
    return np.log1p(np.exp(x))


def _softmax(x: Array, axis: int = -1) -> Array:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _gelu(x: Array) -> Array:
    return x * np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x.ravel()]).reshape(x.shape)


ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[[Array], Array]]] = {
    "relu": (nn.relu, lambda x: np.maximum(x, 0)),
    "relu6": (nn.relu6, lambda x: np.clip(x, 0, 6)),
    "hard_tanh": (nn.hard_tanh, lambda x: np.clip(x, -1, 1)),
    "leaky_relu": (nn.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    "elu": (nn.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    "celu": (lambda x: nn.celu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(2 * x))),
    "selu": (nn.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "sigmoid": (nn.sigmoid, _sigmoid),
    "tanh": (nn.tanh, np.tanh),
    "silu": (nn.silu, lambda x: x * _sigmoid(x)),
    "gelu": (nn.gelu, lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    "gelu_exact": (lambda x: nn.gelu(x, approximate=False), _gelu),
    "softplus": (nn.softplus, _softplus),
    "log_sigmoid": (nn.log_sigmoid, lambda x: -_softplus(-x)),
    "mish": (nn.mish, lambda x: x * np.tanh(_softplus(x))),
}
X = np.concatenate([np.linspace(-8.1, 8.1, 28), [0.3]])


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_formulas(name: str) -> None:
    f, expected = ACTIVATIONS[name]
    np.testing.assert_allclose(np.asarray(f(X)), expected(X), rtol=1e-11, atol=1e-13)
    single = hg.jit(f)(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(np.asarray(single), expected(X), rtol=2e-5, atol=1e-5)
    half = f(X.astype(np.float16))
    assert half.dtype == np.float16
    np.testing.assert_allclose(np.asarray(half), expected(X.astype(np.float16).astype(np.float64)), rtol=1.1e-3, atol=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_of_activations_are_differences(name: str) -> None:
    f = ACTIVATIONS[name][0]
    derivative = hg.grad(lambda x: hnp.sum(f(x)))(X)
    h = 1e-5
    differences = (np.asarray(f(X + h)) - np.asarray(f(X - h))) / (2 * h)
    np.testing.assert_allclose(np.asarray(derivative), differences, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_far_out_are_finite(name: str) -> None:
    f = ACTIVATIONS[name][0]
    far = np.array([-1e30, -1e4, -100, 0, 100, 1e4, 1e30], np.float32)
    values, slopes = hg.jit(lambda x: (f(x), hg.grad(lambda x: hnp.sum(f(x)))(x)))(far)
    assert np.isfinite(np.asarray(values)).all() and np.isfinite(np.asarray(slopes)).all()
    assert np.isnan(np.asarray(f(np.array([np.nan], np.float32)))).all()


CORNERS = [("relu", 0.0, 0.0), ("relu6", 0.0, 0.0), ("relu6", 6.0, 0.0), ("hard_tanh", -1.0, 1.0), ("softplus", 0.0, 0.5), ("elu", 0.0, 1.0)]


@pytest.mark.parametrize(("name", "at", "slope"), CORNERS)
def test_derivatives_at_corners(name: str, at: float, slope: float) -> None:
    assert float(hg.grad(getattr(nn, name))(at)) == slope


def test_glu_gates_halves() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    np.testing.assert_allclose(np.asarray(nn.glu(x, axis=1)), x[:, :2] * _sigmoid(x[:, 2:]), rtol=1e-12)
    with pytest.raises(ShapeError, match="halves"):
        nn.glu(x)


# --- normalisation ---------------------------------------------------------------------------------------------------


def _layer_norm(x: Array) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


ROWS: dict[str, tuple[Callable[..., Any], Callable[[Array], Array]]] = {
    "softmax": (nn.softmax, _softmax),
    "log_softmax": (nn.log_softmax, lambda x: np.log(_softmax(x))),
    "standardize": (nn.standardize, _layer_norm),
    "layer_norm": (lambda x: nn.layer_norm(x, np.arange(7.0), np.ones(7)), lambda x: _layer_norm(x) * np.arange(7) + 1),
    "rms_norm": (lambda x: nn.rms_norm(x, np.arange(7.0)), lambda x: np.arange(7) * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)),
    "cross_entropy": (
        lambda x: nn.cross_entropy(x, np.arange(5) % 3, reduction="none"),
        lambda x: -np.log(_softmax(x))[np.arange(5), np.arange(5) % 3],
    ),
}


@pytest.fixture(scope="module")
def rows() -> Array:
    return 3 * np.random.default_rng(1).normal(size=(5, 7))


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_their_formulas(name: str, rows: Array) -> None:
    f, expected = ROWS[name]
    np.testing.assert_allclose(np.asarray(f(rows)), expected(rows), rtol=1e-9)
    np.testing.assert_allclose(np.asarray(hg.jit(f)(rows.astype(np.float32))), expected(rows), rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("name", ROWS)
def test_derivatives_of_rows_are_differences(name: str, rows: Array) -> None:
    f, expected = ROWS[name]
    rng = np.random.default_rng(2)
    weights, direction = rng.normal(size=expected(rows).shape), rng.normal(size=rows.shape)
    gradient = hg.jit(hg.grad(lambda x: hnp.sum(f(x) * weights)))(rows)
    h = 1e-5
    difference = (np.sum(expected(rows + h * direction) * weights) - np.sum(expected(rows - h * direction) * weights)) / (2 * h)
    assert float(np.sum(np.asarray(gradient) * direction)) == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "standardize", "layer_norm", "rms_norm"])
def test_rows_are_one_kernel(name: str) -> None:
    x = np.zeros((64, 100), np.float32)
    assert hg.jit(getattr(nn, name)).lower(x).compile().reduction().kernels == 1


def test_cross_entropy_of_numbered_labels_is_one_kernel() -> None:
    x, labels = np.zeros((64, 100), np.float32), np.zeros(64, np.int64)
    assert hg.jit(lambda x, y: nn.cross_entropy(x, y, reduction="none")).lower(x, labels).compile().reduction().kernels == 1


def test_log_softmax_of_elements_that_take_part() -> None:
    x, part = np.linspace(-3, 3, 12).reshape(3, 4), np.array([[1, 1, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]], bool)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.asarray(nn.log_softmax(x, where=part)), np.log(np.asarray(nn.softmax(x, where=part))), rtol=1e-9, atol=1e-12)
    slopes = hg.grad(lambda x: hnp.sum(hnp.where(part, nn.log_softmax(x, where=part), 0.0)))(x)
    np.testing.assert_allclose(np.asarray(slopes), part - part.sum(-1, keepdims=True) * np.asarray(nn.softmax(x, where=part)), atol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_logmeanexp_of_nothing_is_nan(shape: tuple[int, ...]) -> None:
    assert np.isnan(nn.logmeanexp(np.zeros(shape))) and np.isnan(nn.logmeanexp(np.zeros(shape), where=True))
    found = np.asarray(nn.logmeanexp(np.zeros(shape), axis=0))
    assert found.shape == shape[1:] and np.isnan(found).all()


def test_logmeanexp_of_symbolic_sizes() -> None:
    x = np.array([[1.0, 2.0, 4.0], [0.0, 0.5, 1.0]])
    for axis in (None, 0, 1):
        np.testing.assert_allclose(hg.jit(lambda v, a=axis: nn.logmeanexp(v, a), dynamic=True)(x), np.log(np.mean(np.exp(x), axis)), rtol=1e-14)


def test_softmax_of_large_numbers() -> None:
    x = np.array([[1e30, 1e30, -1e30], [-1e4, -1e4, -2e4]], np.float32)
    np.testing.assert_array_equal(np.asarray(nn.softmax(x)), [[0.5, 0.5, 0], [0.5, 0.5, 0]])
    np.testing.assert_allclose(np.asarray(nn.log_softmax(x))[1], [-math.log(2), -math.log(2), -1e4], rtol=1e-4)
    half = nn.softmax(np.zeros((1, 1000), np.float16))
    assert half.dtype == np.float16 and np.all(np.asarray(half) == np.float16(0.001))


def test_softmax_leaves_elements_out(rows: Array) -> None:
    part = np.random.default_rng(3).random(rows.shape) < 0.6
    part[2] = False
    found = np.asarray(nn.softmax(rows, where=part))
    assert np.all(found[~part] == 0)
    for i in (0, 1, 3, 4):
        np.testing.assert_allclose(found[i, part[i]], _softmax(rows[i, part[i]]), rtol=1e-12)
    gradient = np.asarray(hg.grad(lambda x: hnp.sum(nn.softmax(x, where=part) ** 2))(rows))
    assert np.isfinite(gradient).all() and np.all(gradient[~part] == 0)


def test_axes_of_normalisation(rows: Array) -> None:
    np.testing.assert_allclose(np.asarray(nn.softmax(rows, axis=0)), _softmax(rows, 0), rtol=1e-12)
    whole = np.asarray(nn.standardize(rows, axis=(0, 1), epsilon=0.0))
    assert whole.mean() == pytest.approx(0, abs=1e-12) and whole.std() == pytest.approx(1)


# --- losses ----------------------------------------------------------------------------------------------------------


def test_one_hot() -> None:
    labels = np.array([[0, 2], [1, -1]])
    expected = np.array([[[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 0]]], np.float32)
    found = nn.one_hot(labels, 3)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(np.asarray(nn.one_hot(labels, 3, axis=0, dtype=np.int8)), np.moveaxis(expected, -1, 0))


def test_cross_entropy_by_number_and_one_hot_are_one(rows: Array) -> None:
    labels = np.array([6, 0, 3, 3, 1])
    for reduction in ("mean", "sum", "none"):
        numbered, coded = (nn.cross_entropy(rows, y, reduction=reduction) for y in (labels, np.eye(7)[labels]))
        np.testing.assert_allclose(np.asarray(numbered), np.asarray(coded), rtol=1e-12)
    across = nn.cross_entropy(rows.T, labels, axis=0)
    assert float(across) == pytest.approx(float(nn.cross_entropy(rows, labels)))
    gradient = np.asarray(hg.grad(lambda x: nn.cross_entropy(x, labels, reduction="sum"))(rows))
    np.testing.assert_allclose(gradient, _softmax(rows) - np.eye(7)[labels], atol=1e-12)


def test_sigmoid_binary_cross_entropy() -> None:
    y = np.linspace(0, 1, X.size)
    found = nn.sigmoid_binary_cross_entropy(X, y, reduction="none")
    np.testing.assert_allclose(np.asarray(found), -y * np.log(_sigmoid(X)) - (1 - y) * np.log(_sigmoid(-X)), rtol=1e-9)
    np.testing.assert_allclose(np.asarray(hg.grad(lambda x: nn.sigmoid_binary_cross_entropy(x, y, "sum"))(X)), _sigmoid(X) - y, atol=1e-12)
    sure = np.array([1e4, -1e4, 30.0], np.float32)
    np.testing.assert_allclose(np.asarray(nn.sigmoid_binary_cross_entropy(sure, np.ones(3), reduction="none")), [0, 1e4, math.exp(-30)], rtol=1e-5)


def test_squared_and_hubers_loss() -> None:
    error = X
    assert float(nn.mse(X + 1, 1 + 0 * X)) == pytest.approx(np.mean(error**2))
    expected = np.where(np.abs(error) <= 2, 0.5 * error**2, 2 * (np.abs(error) - 1))
    np.testing.assert_allclose(np.asarray(nn.huber(X, np.zeros_like(X), delta=2.0, reduction="none")), expected, rtol=1e-12)
    slope = hg.grad(lambda x: nn.huber(x, np.zeros_like(X), 2.0, "sum"))(X)
    np.testing.assert_allclose(np.asarray(slope), np.clip(error, -2, 2), rtol=1e-12)


def test_losses_refuse() -> None:
    x = np.zeros((3, 4))
    with pytest.raises(ShapeError, match="labels of shape"):
        nn.cross_entropy(x, np.zeros(4, np.int64))
    with pytest.raises(ArgumentError, match="reduction is 'mean' or 'sum' or 'none', not 'max'"):
        nn.mse(x, x, reduction="max")
    with pytest.raises(DTypeError, match="labels are integers"):
        nn.one_hot(np.zeros(3), 4)


# --- attention -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def qkv() -> list[Array]:
    rng = np.random.default_rng(4)
    return [rng.normal(size=(2, 3, n, e)) for n, e in ((5, 4), (6, 4), (6, 7))]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["none", "bool", "float"])
def test_attention_is_its_formula(qkv: list[Array], kind: str, causal: bool) -> None:
    q, k, v = qkv
    rng = np.random.default_rng(5)
    mask = {"none": None, "bool": rng.random((3, 5, 6)) < 0.7, "float": rng.normal(size=(5, 6))}[kind]
    if kind == "bool":
        mask[:, :, 0] = True
    scores = q @ k.swapaxes(-1, -2) / 2
    scores = scores + mask if kind == "float" else scores if mask is None else np.where(mask, scores, -np.inf)
    if causal:
        scores = np.where(np.tri(5, 6, dtype=bool), scores, -np.inf)
    found = hg.jit(lambda q, k, v: nn.dot_product_attention(q, k, v, mask, is_causal=causal))(q, k, v)
    np.testing.assert_allclose(np.asarray(found), _softmax(scores) @ v, rtol=1e-10)


def test_a_query_that_sees_nothing_gets_zeros(qkv: list[Array]) -> None:
    mask = np.ones((5, 6), bool)
    mask[2] = False
    loss = hg.value_and_grad(lambda q, k, v: hnp.sum(nn.dot_product_attention(q, k, v, mask)[:, :, 2] ** 2), argnums=(0, 1, 2))
    value, gradients = loss(*qkv)
    assert float(value) == 0 and all(np.all(np.asarray(g) == 0) for g in gradients)


def test_attention_refuses(qkv: list[Array]) -> None:
    q, k, v = qkv
    with pytest.raises(ShapeError, match="have the shapes"):
        nn.dot_product_attention(q, v, k)
    with pytest.raises(ArgumentError, match="mask is bool or float"):
        nn.dot_product_attention(q, k, v, np.ones((5, 6), np.int64))


def test_16_bit_attention_keeps_its_type(qkv: list[Array]) -> None:
    halves = [x.astype(np.float16) for x in qkv]
    found = nn.dot_product_attention(*halves)
    assert found.dtype == np.float16
    expected = nn.dot_product_attention(*[x.astype(np.float64) for x in halves])
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=2e-3, atol=1e-3)


def test_it_maps_over_examples(rows: Array, qkv: list[Array]) -> None:
    np.testing.assert_allclose(np.asarray(hg.vmap(nn.softmax)(rows)), _softmax(rows), rtol=1e-12)
    labels = np.array([6, 0, 3, 3, 1])
    each = hg.vmap(hg.grad(nn.cross_entropy))(rows, labels)
    np.testing.assert_allclose(np.asarray(each), _softmax(rows) - np.eye(7)[labels], atol=1e-12)
    mapped = hg.vmap(hg.vmap(lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True)))(*qkv)
    np.testing.assert_allclose(np.asarray(mapped), np.asarray(nn.dot_product_attention(*qkv, is_causal=True)), rtol=1e-12)


def test_complex_numbers_are_refused() -> None:
    with pytest.raises(DTypeError, match="real numbers"):
        nn.relu(np.zeros(3, np.complex64))


# --- initial parameters ----------------------------------------------------------------------------------------------

VARIANCES = {"lecun": 1 / 300, "he": 2 / 300, "kaiming": 2 / 300, "glorot": 2 / 500, "xavier": 2 / 500}  # of 300 inputs and 200 outputs


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
@pytest.mark.parametrize("name", VARIANCES)
def test_initial_weights_have_their_variance(name: str, distribution: str) -> None:
    found = np.asarray(getattr(nn.initializers, f"{name}_{distribution}")(hg.random.key(0), (300, 200)))
    variance = VARIANCES[name]
    assert found.shape == (300, 200) and found.dtype == np.float32
    assert found.var() == pytest.approx(variance, rel=0.03) and abs(found.mean()) < 4 * math.sqrt(variance / found.size)
    limit = math.sqrt(3 * variance) if distribution == "uniform" else 2 * math.sqrt(variance) / 0.8796256610342398
    assert 0.99 * limit < np.abs(found).max() <= 1.000001 * limit


def test_plain_initial_parameters() -> None:
    key, init = hg.random.key(1), nn.initializers
    assert np.all(np.asarray(init.zeros(key, (3,), np.float64)) == 0) and np.all(np.asarray(init.ones(key, [3])) == 1)
    assert np.asarray(init.normal(key, (200, 200), stddev=3.0)).std() == pytest.approx(3, rel=0.03)
    spread = np.asarray(hg.jit(lambda key: init.uniform(key, (200, 200), np.float64, limit=2.0))(key))
    assert spread.dtype == np.float64 and -2 <= spread.min() < -1.99 and 1.99 < spread.max() < 2
    window = np.asarray(init.variance_scaling(key, (3, 3, 50, 80), mode="fan_out", distribution="normal"))
    assert window.var() == pytest.approx(1 / 720, rel=0.03)
    vector = np.asarray(init.variance_scaling(key, (40000,), in_axis=(), out_axis=0, distribution="normal"))
    assert vector.var() == pytest.approx(1, rel=0.03) and init.variance_scaling(key, (), in_axis=(), out_axis=()).shape == ()


@pytest.mark.parametrize(
    ("shape", "options", "error"),
    [((3,), {}, ShapeError), ((3, 3), {"mode": "fan"}, ArgumentError), ((3, 3), {"distribution": "cauchy"}, ArgumentError)],
)
def test_variance_scaling_refuses(shape: tuple[int, ...], options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="variance_scaling"):
        nn.initializers.variance_scaling(hg.random.key(0), shape, **options)
