"""``at`` of ufuncs against NumPy's, which writes: repeated, negative and mixed indices, masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import DTypeError, IndexOutOfRange, ShapeError, TracedValueError

BINARY = (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "divide",
    "power",
    "arctan2",
    "logical_and",
    "logical_xor",
    "fmax",
    "hypot",
    "remainder",
)
UNARY = ("negative", "sqrt", "invert", "square", "floor")
SHAPE = (4, 5)


def written(f: np.ufunc, x: np.ndarray, key: Any, *values: Any) -> np.ndarray:
    x = x.copy()
    with np.errstate(all="ignore"):
        f.at(x, key, *values)
    return x


def keys(draw: Any) -> tuple[Any, list[Any]]:
    """An index, and the arrays in it."""
    vector = st.lists(st.integers(-4, 3), min_size=1, max_size=4).map(np.array)
    rows = draw(vector)
    columns = draw(st.lists(st.integers(-5, 4), min_size=len(rows), max_size=len(rows)).map(np.array))
    return draw(
        st.sampled_from(
            [
                (lambda r, c: r, [rows, columns]),
                (lambda r, c: (r, c), [rows, columns]),
                (lambda r, c: (slice(None), c), [rows, columns]),
                (lambda r, c: (slice(1, 3), c), [rows, columns]),
                (lambda r, c: (r[:, None], c), [rows, columns]),
                (lambda r, c: (2, c), [rows, columns]),
                (lambda r, c: (r, slice(0, 4, 2)), [rows, columns]),
                (lambda r, c: (..., c), [rows, columns]),
            ]
        )
    )


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=settings().max_examples // 5)
@given(data=st.data())
def test_binary(name: str, data: st.DataObject) -> None:
    key, arrays = keys(data.draw)
    d = data.draw(st.sampled_from("fd" if name in ("divide", "arctan2", "hypot") else "lfd"))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    x = rng.integers(1, 4, SHAPE).astype(d)
    values = rng.integers(1, 3, np.shape(x[key(*arrays)])[data.draw(st.integers(0, 1)) :]).astype(d)
    want = written(getattr(np, name), x, key(*arrays), values)
    f = getattr(hnp, name).at
    known = f(x, key(*arrays), values)
    computed = hg.jit(lambda x, values, r, c: f(x, key(r, c), values))(x, values, *arrays)
    for got in (known, hg.jit(lambda x: f(x, key(*arrays), values))(x), computed):
        assert got.dtype == x.dtype
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5 if d == "f" else 1e-12)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("key", [[0, 0, 2], (slice(1, 3), [1, 1]), 2, np.array([True, False, True, True]), (slice(None), 1), ...])
def test_unary(name: str, key: Any) -> None:
    x = np.arange(20).reshape(SHAPE) if name == "invert" else np.arange(20.0).reshape(SHAPE)
    want = written(getattr(np, name), x, tuple(key) if isinstance(key, tuple) else key)
    f = getattr(hnp, name).at
    for got in (f(x, key), hg.jit(lambda x: f(x, key))(x)):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12)


def test_masks() -> None:
    x, mask = np.arange(6.0).reshape(2, 3), np.array([[True, False, True], [False, True, False]])
    want = written(np.divide, x, mask, 2.0)
    np.testing.assert_array_equal(hnp.divide.at(x, mask, 2.0), want)
    np.testing.assert_array_equal(hg.jit(lambda x, m: hnp.divide.at(x, m, 2.0))(x, mask), want)
    np.testing.assert_array_equal(hnp.divide.at(x, mask, [2.0, 4.0, 8.0]), written(np.divide, x, mask, [2.0, 4.0, 8.0]))
    np.testing.assert_array_equal(hg.jit(lambda x, m: hnp.power.at(x, m, x[0]))(x, mask[:, 0]), written(np.power, x, mask[:, 0], x[0]))
    with pytest.raises(TracedValueError):
        hg.jit(lambda x, m: hnp.divide.at(x, m, [2.0, 4.0, 8.0]))(x, mask)


def test_the_argument_does_not_change() -> None:
    x = hg.tensor([1.0, 2.0])
    y = hnp.divide.at(x, [0, 0], 2.0)
    np.testing.assert_array_equal(x, [1.0, 2.0])
    np.testing.assert_array_equal(y, [0.25, 2.0])


def test_computed_indices_out_of_range_are_dropped() -> None:
    for name in ("add", "divide"):
        np.testing.assert_array_equal(getattr(hnp, name).at([2.0, 4.0], hg.tensor([0, 9, -9]), 2.0), [4.0, 4.0] if name == "add" else [1.0, 4.0])
    two = hnp.power.at(np.full((2, 2), 3.0), (hg.tensor([0, 0]), hg.tensor([5, 1])), 2.0)
    np.testing.assert_array_equal(two, [[3.0, 9.0], [3.0, 3.0]])


def test_derivatives_and_batches() -> None:
    x, i, v = np.array([2.0, 3.0, 5.0]), np.array([0, 0, 2]), np.array([2.0, 4.0, 5.0])
    for index in (i, hg.tensor(i)):
        dx, dv = hg.grad(lambda x, v, i=index: hnp.divide.at(x, i, v).sum(), argnums=(0, 1))(x, v)
        np.testing.assert_allclose(dx, [1 / 8, 1.0, 1 / 5])
        np.testing.assert_allclose(dv, [-2 / 4 / 4, -2 / 2 / 16, -5 / 25])
    stacked, places = np.stack([x, 2 * x]), np.stack([i, [1, 1, 1]])
    got = hg.vmap(lambda x, i: hnp.divide.at(x, i, v))(stacked, places)
    np.testing.assert_allclose(got, [written(np.divide, *row, v) for row in zip(stacked, places, strict=True)])


def test_refusals() -> None:
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: hnp.add.at([1, 2], [0], 1.5), DTypeError, "add.at: float32 does not fit int64"),
        (lambda: hnp.divide.at([1, 2], [0], 2), DTypeError, "divide.at: float32 does not fit int64"),
        (lambda: hnp.add.at([1, 2], [5], 2), IndexOutOfRange, "index 5 is out of range"),
        (lambda: hnp.power.at([1, 2], [0], [[1], [2]]), ShapeError, "do not broadcast|for a selection of shape"),
    ]
    for call, kind, message in refused:
        with pytest.raises(kind, match=f"({message}).*test_updates.py"):
            call()
