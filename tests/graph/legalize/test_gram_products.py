"""Products of a matrix and its own transpose: half of each is computed, and all bits are those of the whole product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override

N, K = 300, 260

GRAMS: dict[str, Callable[[Any], Any]] = {
    "of columns": lambda x: x.T @ x,
    "of rows": lambda x: x @ x.T,
    "in einsum": lambda x: hnp.einsum("ki,kj->ji", x, x),
    "of what is computed": lambda x: hnp.tanh(x - x.mean(0)).T @ hnp.tanh(x - x.mean(0)),
    "of a transpose that is computed": lambda x: (lambda y: y.T @ y)(hnp.exp(x.T) * 2),
    "with an epilogue": lambda x: hnp.maximum(x.T @ x / K + hnp.eye(x.shape[1], dtype=x.dtype), 0),
    "distances": lambda x: (x * x).sum(1)[:, None] - 2 * (x @ x.T) + (x * x).sum(1),
    "of a batch": lambda x: (lambda y: y @ hnp.swapaxes(y, -1, -2))(hnp.stack([x, x[::-1] + 1])),
    "summed along two axes": lambda x: hnp.einsum("pqi,pqj->ij", x.reshape(-1, 10, x.shape[1]), x.reshape(-1, 10, x.shape[1])),
    "covariance": lambda x: hnp.cov(x),
    "in a loop": lambda x: hg.fori_loop(0, 3, lambda i, y: (y.T @ y) / 1000 + i, x[:K, :K]),
    "reversed": lambda x: x[::-1, ::-1].T @ x[::-1, ::-1],
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "another factor": lambda x: x.T @ (x + 1),
    "another scale": lambda x: (2 * x).T @ x,
    "another order of terms": lambda x: x[::-1].T @ x,
    "another order of columns": lambda x: x[:, ::-1].T @ x,
    "another row": lambda x: (x - x[0]).T @ (x - x[1]),
    "weights of terms": lambda x: (x * x[:, :1]).T @ x,
}


def _matrix(dtype: str = "float32", rows: int = N, columns: int = N) -> np.ndarray:
    return np.random.default_rng(rows + columns).standard_normal((rows, columns)).astype(dtype)


def _whole(f: Callable[..., Any], *args: Any) -> np.ndarray:
    with override(disabled_passes=("gram_products",)):
        return np.asarray(hg.jit(f)(*args))


def _products(f: Callable[..., Any], *args: Any) -> int:
    return str(hg.jit(f).lower(*args).as_text("legalized")).count("fused_mul")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", GRAMS)
def test_bits_are_those_of_the_whole_product(name: str, dtype: str, fully_compiled: None) -> None:
    f, x = GRAMS[name], _matrix(dtype)
    found = np.asarray(hg.jit(f)(x))
    np.testing.assert_array_equal(found, _whole(f, x))
    np.testing.assert_allclose(found, np.asarray(hg.jit(f, precision="exact")(x)), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(("rows", "columns"), [(256, 256), (257, 300), (300, 511), (260, 512), (2100, 270), (300, 1000)])
def test_any_extents(rows: int, columns: int) -> None:
    x = _matrix("float32", rows, columns)
    x[3, 5], x[7, 200], x[0, 0] = np.nan, np.inf, -0.0
    np.testing.assert_array_equal(np.asarray(hg.jit(GRAMS["of columns"])(x)), _whole(GRAMS["of columns"], x))


@pytest.mark.parametrize("name", [name for name in GRAMS if name != "in a loop"])
def test_half_is_computed(name: str) -> None:
    with override(disabled_passes=("gram_products",)):
        whole = _products(GRAMS[name], _matrix())
    assert _products(GRAMS[name], _matrix()) == whole + 1  # of 300 rows there are two strips


@pytest.mark.parametrize("name", OTHERS)
def test_other_products_are_whole(name: str) -> None:
    f, x = OTHERS[name], _matrix()
    with override(disabled_passes=("gram_products",)):
        whole = _products(f, x)
    assert _products(f, x) == whole
    y = x.astype(np.float64)
    np.testing.assert_allclose(np.asarray(hg.jit(f)(x)), f(y), rtol=1e-3, atol=1e-2)


def test_small_symbolic_and_exact_ones_are_whole() -> None:
    f = GRAMS["of columns"]
    assert _products(f, _matrix("float32", 255, N)) == _products(f, _matrix("float32", N, 255)) == 1
    assert str(hg.jit(f, dynamic=True).lower(_matrix()).as_text("legalized")).count("reduce_sum") == 1
    assert str(hg.jit(f, precision="exact").lower(_matrix()).as_text("legalized")).count("reduce_sum") == 1
    assert str(hg.jit(f).lower(_matrix("int64")).as_text("legalized")).count("reduce_sum") == 1


def test_derivatives() -> None:
    """Of a Gram product, and in it: the sum of both cotangents is no Gram product."""
    x = _matrix("float64")

    def loss(x: Any) -> Any:
        return hnp.sin(x.T @ x / 300).sum()

    a = np.cos(x.T @ x / 300) / 300
    np.testing.assert_allclose(np.asarray(hg.jit(hg.grad(loss))(x)), x @ (a + a.T), rtol=1e-6, atol=1e-9)
    with override(disabled_passes=("gram_products",)):
        whole = np.asarray(hg.jit(hg.grad(loss))(x))
    np.testing.assert_array_equal(np.asarray(hg.jit(hg.grad(loss))(x)), whole)
