"""Functions that are given what they read: ``closure_convert``, ``custom_gradient``; transposes of linear functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DifferentiationError, ShapeError

X = np.array([0.5, -1.5, 2.0])


def minimum_by_steps(f: Any, start: Any) -> Any:
    """A custom_vjp over a function that reads traced values: the pattern that closure_convert is for."""
    converted, read = hg.closure_convert(f, start)

    def solve(start: Any, *values: Any) -> Any:
        return hg.fori_loop(0, 60, lambda i, x: x - 0.2 * hg.grad(lambda y: converted(y, *values))(x), start)

    @hg.custom_vjp
    def minimum(start: Any, *values: Any) -> Any:
        return solve(start, *values)

    def forward(start: Any, *values: Any) -> Any:
        found = solve(start, *values)
        return found, (found, values)

    def backward(residuals: Any, g: Any) -> Any:
        found, values = residuals
        slope = lambda v: hg.grad(lambda y: converted(y, *v))(found)  # noqa: E731
        curvature = hg.hessian(lambda y: converted(y, *values))(found)
        return (None, *hg.vjp(lambda *v: -slope(v) / curvature, *values)[1](g))

    minimum.defvjp(forward, backward)
    return minimum(start, *read)


@pytest.mark.parametrize("way", [lambda f: f, hg.jit])
def test_values_that_are_read_are_differentiated(way: Any) -> None:
    def f(a: Any, n: Any) -> Any:
        centre = hnp.sin(a) * n
        return minimum_by_steps(lambda x: (x - centre) ** 2 + 1.0, 0.0 * a)

    np.testing.assert_allclose(way(hg.grad(f))(0.7, 3), 3 * np.cos(0.7), rtol=1e-6)
    np.testing.assert_allclose(way(hg.vmap(hg.grad(f), (0, None)))(X, 3), 3 * np.cos(X), rtol=1e-6)
    in_steps = hg.scan(lambda c, a: (c, hg.grad(f)(a, 3)), 0.0, X)[1]
    np.testing.assert_allclose(in_steps, 3 * np.cos(X), rtol=1e-6)


def test_converted_functions_keep_trees_and_shapes() -> None:
    w = hnp.asarray(X)
    converted, read = hg.closure_convert(lambda d: {"y": d["x"] * w}, {"x": X})
    assert read == []  # an array that is known is a constant
    np.testing.assert_array_equal(converted({"x": X})["y"], X * X)
    with pytest.raises(ShapeError, match="takes shape"):
        converted({"x": X[:2]})


def test_functions_say_their_own_gradient() -> None:
    @hg.custom_gradient
    def f(x: Any, y: Any) -> Any:
        root = hnp.sqrt(x)
        return root * y, lambda g: (10 * g * y / root, g)

    for grad in (hg.grad(f, (0, 1)), hg.jit(hg.grad(f, (0, 1)))):
        np.testing.assert_allclose(grad(4.0, 3.0), (15.0, 1.0), rtol=1e-6)
    stacked = hg.vmap(hg.grad(f, (0, 1)))(np.array([4.0, 9.0]), np.array([3.0, 2.0]))
    np.testing.assert_allclose(stacked, [[15.0, 20 / 3], [1.0, 1.0]], rtol=1e-6)
    line = np.array([1.0, 4.0, 9.0])
    through_scan = hg.grad(lambda x: hnp.sum(hg.scan(lambda c, v: (c, f(v, 2.0)), 0.0, x)[1]))(line)
    np.testing.assert_allclose(through_scan, 20 / np.sqrt(line), rtol=1e-6)
    with pytest.raises(ArgumentError, match="result, rule"):
        hg.custom_gradient(lambda x: x)(1.0)


LINEAR = {
    "slices": lambda x: 3 * x[1:],
    "sums": lambda x: {"s": hnp.sum(x), "c": hnp.cumsum(x)[::-1]},
    "products": lambda x: np.arange(12.0).reshape(4, 3) @ x,
    "transforms": lambda x: hnp.real(hg.fft.fft(x)),
    "scans": lambda x: hg.scan(lambda c, v: (2 * c + v, c), x[0], x)[1],
}


@pytest.mark.parametrize("name", LINEAR)
def test_transposes(name: str) -> None:
    """``<f(x), y> = <x, fᵀ(y)>``, without a value of ``x``."""
    f = LINEAR[name]
    out = hg.tree.map(lambda s: np.cos(np.arange(1.0, 1 + s.size)).reshape(s.shape), f(hnp.asarray(X)))
    for given in (X, hg.ShapeDtypeStruct(X.shape, X.dtype)):
        (back,) = hg.jit(lambda y, given=given: hg.linear_transpose(f, given)(y))(out)
        there = sum(float(hnp.sum(a * b)) for a, b in zip(hg.tree.leaves(f(hnp.asarray(X))), hg.tree.leaves(out), strict=True))
        assert back.dtype == np.float64 and float(hnp.sum(back * X)) == pytest.approx(there, rel=1e-12)


@pytest.mark.parametrize("f", [lambda x: x * x, hnp.sin, lambda x: hnp.where(x > 0, x, 0.0), lambda x: x[0] * x])
def test_what_is_not_linear_is_not_transposed(f: Any) -> None:
    with pytest.raises(DifferentiationError, match="not linear"):
        hg.linear_transpose(f, X)


def test_cotangents_are_like_the_results() -> None:
    with pytest.raises(ArgumentError, match="cotangent"):
        hg.linear_transpose(lambda x: x[1:], X)(X)
    with pytest.raises(DifferentiationError, match="no derivative"):
        hg.linear_transpose(lambda x: x, np.arange(3))
