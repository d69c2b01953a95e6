"""Distributions that are functions of others, by their moments; orthogonal matrices; names of keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError

N = 20_000
R = hg.random
MOMENTS = {  # of one number: mean and variance
    "maxwell": (lambda k: R.maxwell(k, (N,)), 2 * math.sqrt(2 / math.pi), 3 - 8 / math.pi),
    "double_sided_maxwell": (lambda k: R.double_sided_maxwell(k, 1.0, 2.0, (N,)), 1.0, 12.0),
    "wald": (lambda k: R.wald(k, 2.0, (N,)), 2.0, 8.0),
    "triangular": (lambda k: R.triangular(k, -1.0, 0.5, 2.0, (N,)), 0.5, 0.375),
    "f": (lambda k: R.f(k, 5.0, 12.0, (N,)), 1.2, 1.08),
    "generalized_normal": (lambda k: R.generalized_normal(k, 3.0, (N,)), 0.0, 1 / math.gamma(1 / 3)),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments(name: str) -> None:
    draw, mean, variance = MOMENTS[name]
    x = hg.jit(draw)(R.key(3))
    assert x.dtype == np.float32 and x.shape == (N,) and bool(hnp.isfinite(x).all())
    assert float(x.mean()) == pytest.approx(mean, abs=5 * math.sqrt(variance / N))
    assert float(x.var()) == pytest.approx(variance, rel=0.25)
    np.testing.assert_array_equal(x, draw(R.key(3)))


def test_multinomial() -> None:
    p = np.array([0.2, 0.5, 0.3], np.float32)
    x = hg.jit(lambda k: R.multinomial(k, 20, p, shape=(2_000, 3)))(R.key(1))
    np.testing.assert_array_equal(x.sum(-1), 20)
    np.testing.assert_allclose(x.mean(0), 20 * p, atol=0.25)
    np.testing.assert_allclose(np.cov(np.asarray(x).T), 20 * (np.diag(p) - np.outer(p, p)), atol=0.8)
    many = R.multinomial(R.key(2), np.array([[3], [9]]), p, dtype=np.int32)
    assert many.shape == (2, 1, 3) and many.dtype == np.int32 and many.sum(-1).tolist() == [[3], [9]]
    with pytest.raises(ShapeError):
        R.multinomial(R.key(0), 3, 0.5)


@pytest.mark.parametrize(("n", "m"), [(4, None), (5, 3), (2, 6)])
def test_orthogonal(n: int, m: int | None) -> None:
    q = R.orthogonal(R.key(0), n, (10,), np.float64, m)
    assert q.shape == (10, n, m or n)
    tall = q if n >= (m or n) else hnp.matrix_transpose(q)
    np.testing.assert_allclose(hnp.matrix_transpose(tall) @ tall, np.broadcast_to(np.eye(tall.shape[-1]), (10, *[tall.shape[-1]] * 2)), atol=1e-12)
    assert abs(float(R.orthogonal(R.key(1), 3, (3_000,)).mean())) < 0.02
    with pytest.raises(ArgumentError):
        R.orthogonal(R.key(0), 0)


def test_names_of_keys() -> None:
    key = R.PRNGKey(7)
    assert R.PRNGKey is R.key and R.key_impl(key) == "threefry2x32"
    for f in (R.key_data, R.wrap_key_data, R.clone):
        np.testing.assert_array_equal(f(key), key)
        with pytest.raises(DTypeError):
            f(np.zeros(2))
        with pytest.raises(ShapeError):
            f(np.zeros(3, np.uint32))
    with pytest.raises(ArgumentError):
        R.wrap_key_data(key, impl="rbg")


# --- initializers ----------------------------------------------------------------------------------------------------


I = hg.nn.initializers  # noqa: E741


def test_initializers_by_options_and_by_keys() -> None:
    key, shape = R.key(0), (30, 40)
    pairs: list[tuple[Any, Any]] = [
        (I.normal(0.5), I.normal(key, shape, stddev=0.5)),
        (I.glorot_uniform(), I.glorot_uniform(key, shape)),
        (I.he_normal(dtype=np.float16), I.he_normal(key, shape, np.float16)),
        (I.variance_scaling(2.0, "fan_out", "normal"), I.variance_scaling(key, shape, scale=2.0, mode="fan_out", distribution="normal")),
        (I.orthogonal(2.0), I.orthogonal(key, shape, scale=2.0)),
        (I.constant(3.0), np.full(shape, 3.0)),
    ]
    for made, want in pairs:
        np.testing.assert_array_equal(made(key, shape), want)
        np.testing.assert_array_equal(hg.jit(lambda k, made=made: made(k, shape))(key), want)
    assert I.normal(dtype=np.float64)(key, shape).dtype == np.float64 and I.normal()(key, shape, np.float16).dtype == np.float16
    uniform = I.uniform(0.5)(key, (1000,))
    assert 0 <= float(uniform.min()) and 0.4 < float(uniform.max()) < 0.5
    assert float(hnp.abs(I.truncated_normal(1.0, lower=-1.0, upper=1.0)(key, (1000,))).max()) <= 1
    with pytest.raises(ArgumentError, match="normal takes"):
        I.normal(0.1, np.float32, 3)


def test_axes_of_initializers() -> None:
    key = R.key(0)
    w = I.variance_scaling(1.0, "fan_in", "normal", in_axis=(0, 1), out_axis=2, batch_axis=3)(key, (20, 30, 10, 8))
    assert float(w.std()) == pytest.approx(1 / math.sqrt(600), rel=0.05)
    w = I.variance_scaling(1.0, "fan_geo_avg", "normal")(key, (100, 400))
    assert float(w.std()) == pytest.approx(1 / math.sqrt(200), rel=0.05)
    q = I.orthogonal(column_axis=0)(key, (3, 4, 5))
    np.testing.assert_allclose(q.reshape(3, -1) @ q.reshape(3, -1).T, np.eye(3), atol=1e-5)
    kernel = I.delta_orthogonal()(key, (3, 5, 2, 4))
    np.testing.assert_allclose(kernel[1, 2] @ kernel[1, 2].T, np.eye(2), atol=1e-5)
    assert float(hnp.abs(kernel).sum()) == pytest.approx(float(hnp.abs(kernel[1, 2]).sum()))
    with pytest.raises(ShapeError):
        I.delta_orthogonal()(key, (3, 4, 2))
    with pytest.raises(ShapeError):
        I.orthogonal()(key, (3,))
