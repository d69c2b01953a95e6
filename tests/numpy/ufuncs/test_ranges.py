"""``reduceat`` of ufuncs against NumPy, at known and at computed indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import DTypeError, IndexOutOfRange, ShapeError

NAMES = (
    "add",
    "multiply",
    "maximum",
    "minimum",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_or",
    "gcd",
    "fmin",
    "subtract",
    "divide",
    "hypot",
)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_reduceat(name: str, data: st.DataObject) -> None:
    d = data.draw(st.sampled_from("lb" if name in ("gcd", "bitwise_or") else "lbfdF" if name in ("add", "multiply", "subtract") else "lbfd"))
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=2).map(tuple))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    indices = data.draw(st.lists(st.integers(0, shape[axis] - 1), max_size=6))
    if data.draw(st.booleans()):
        indices = sorted(set(indices))
    x = np.random.default_rng(len(indices)).integers(-3, 4, shape).astype(d)
    as_floats = name in ("divide", "hypot") and d == "b"  # NumPy's choice of a float type is another
    with np.errstate(all="ignore"):
        want = getattr(np, name).reduceat(x.astype("f") if as_floats else x, np.array(indices, int), axis)
    f = getattr(hnp, name).reduceat
    rtol = 1e-4 if want.dtype.kind in "fc" else 0
    for got in (f(x, indices, axis), hg.jit(lambda x: f(x, indices, axis))(x), hg.jit(lambda x, i: f(x, i, axis))(x, np.array(indices, int))):
        assert got.dtype.kind == want.dtype.kind and got.shape == want.shape
        np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", ["add", "maximum", "subtract", "hypot"])
def test_long_ranges(name: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((3000, 2))
    for indices in (np.array([5, 10, 11, 2000]), rng.integers(0, 3000, 50)):
        want = getattr(np, name).reduceat(x, indices)
        for i in (indices, hg.tensor(indices)):
            np.testing.assert_allclose(getattr(hnp, name).reduceat(x, i), want, rtol=1e-9, atol=1e-9)


def test_derivatives_and_batches() -> None:
    x, indices = np.arange(1.0, 7.0), np.array([0, 2, 1, 4])
    weights = np.array([1.0, 10.0, 100.0, 1000.0])
    for i in (indices, hg.tensor(indices)):
        np.testing.assert_allclose(hg.grad(lambda x, i=i: (hnp.add.reduceat(x, i) * weights).sum())(x), [1.0, 101.0, 110.0, 100.0, 1000.0, 1000.0])
    stacked = np.stack([x, -x])
    np.testing.assert_allclose(hg.vmap(lambda x: hnp.subtract.reduceat(x, indices))(stacked), np.subtract.reduceat(stacked, indices, axis=1))
    both = hg.vmap(hnp.add.reduceat)(stacked, np.stack([indices, indices[::-1]]))
    np.testing.assert_allclose(both, [np.add.reduceat(x, indices), np.add.reduceat(-x, indices[::-1])])


def test_computed_indices_are_clamped() -> None:
    np.testing.assert_array_equal(hnp.add.reduceat([1, 2, 3], hg.tensor([0, 7])), [3, 3])
    np.testing.assert_array_equal(hnp.subtract.reduceat([1, 2, 3], hg.tensor([1, -9])), [2, -4])


def test_refusals() -> None:
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: hnp.add.reduceat([1, 2], [2]), IndexOutOfRange, "index 2 is out of range for an axis of extent 2"),
        (lambda: hnp.add.reduceat([1, 2], [-1]), IndexOutOfRange, "index -1"),
        (lambda: hnp.add.reduceat([1, 2], 0), ShapeError, "indices are a vector"),
        (lambda: hnp.add.reduceat([1, 2], [0.5]), DTypeError, "indices are integers, not float64"),
        (lambda: hnp.add.reduceat(1, [0]), ShapeError, "takes at least one axis"),
    ]
    for call, kind, message in refused:
        with pytest.raises(kind, match=message + ".*test_ranges.py"):
            call()
