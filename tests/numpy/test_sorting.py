"""Sorting, searching, sets and counting against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, TracedValueError

RNG = np.random.default_rng(0)
X = RNG.standard_normal((7, 30)).astype(np.float32)
X[2, 3], X[1, 1] = np.nan, X[1, 2]
A, V = np.sort(RNG.integers(0, 50, 33)), RNG.integers(-5, 60, (4, 20))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_sort_and_argsort(axis: int | None) -> None:
    for x in (X, (X * 3).round(), X.astype(np.float64), V, V.astype(np.uint8), V > 20):
        np.testing.assert_array_equal(hnp.sort(x, axis), np.sort(x, axis))
        np.testing.assert_array_equal(hnp.argsort(x, axis), np.argsort(x, axis, kind="stable"))
        down = np.asarray(hnp.sort(x, axis, descending=True))
        np.testing.assert_array_equal(down, np.flip(np.sort(x, axis), -1 if axis is None else axis))
        order = np.asarray(hnp.argsort(x, axis, descending=True))
        np.testing.assert_array_equal(np.take_along_axis(x if axis is not None else x.ravel(), order, axis or 0 if axis != -1 else -1), down)


def test_equal_elements_keep_their_order_descending() -> None:
    x = np.array([1, 2, 1, 2, 1])
    np.testing.assert_array_equal(hnp.argsort(x, descending=True), [1, 3, 0, 2, 4])
    np.testing.assert_array_equal(hnp.argsort(np.array([0.0, -0.0, 0.0])), [0, 1, 2])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_long_rows_are_sorted_by_digits(dtype: str) -> None:
    x = (RNG.standard_normal(70_000) * 1000).astype(dtype)
    np.testing.assert_array_equal(hnp.sort(x), np.sort(x))
    np.testing.assert_array_equal(hnp.argsort(x), np.argsort(x, kind="stable"))


def test_sorts_of_symbolic_extent_and_in_a_loop() -> None:
    f = hg.jit(lambda x: hnp.sort(x * 2), dynamic=True)
    for n in (1, 5, 300):
        np.testing.assert_array_equal(f(X.ravel()[100 : 100 + n]), np.sort(X.ravel()[100 : 100 + n] * 2))
    looped = hg.fori_loop(0, 3, lambda i, x: hnp.sort(x, descending=True) + 1, X[0])
    np.testing.assert_array_equal(looped, np.sort(X[0])[::-1] + 1 + 1 + 1)


def test_derivative_and_batches() -> None:
    weights = np.arange(4.0)
    np.testing.assert_array_equal(hg.grad(lambda x: (hnp.sort(x) * weights).sum())(np.array([3.0, 1, 2, 0])), [3, 1, 2, 0])
    np.testing.assert_array_equal(hg.vmap(hnp.sort)(X), np.sort(X, 1))
    np.testing.assert_array_equal(hg.vmap(hnp.argsort, in_axes=1)(X), np.argsort(X, 0, kind="stable").T)


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(side: Any) -> None:
    for a, v in ((A, V), (A[:1], V), (A[:0], V), (np.sort(X.ravel()), X), (A.astype(np.float32), V)):
        np.testing.assert_array_equal(hnp.searchsorted(a, v, side=side), np.searchsorted(a, v, side=side))
        np.testing.assert_array_equal(hg.jit(lambda a, v: hnp.searchsorted(a, v, side=side))(a, v), np.searchsorted(a, v, side=side))
    shuffled = RNG.permutation(A)
    order = np.argsort(shuffled)
    np.testing.assert_array_equal(hnp.searchsorted(shuffled, V, side=side, sorter=order), np.searchsorted(A, V, side=side))
    f = hg.jit(lambda a, v: hnp.searchsorted(a, v, side=side), dynamic={0: (0,)})
    for n in (1, 7, 33):
        np.testing.assert_array_equal(f(A[:n], V), np.searchsorted(A[:n], V, side=side))


def test_digitize_and_isin() -> None:
    bins = np.array([0, 10, 20, 40])
    for right in (False, True):
        np.testing.assert_array_equal(hnp.digitize(V, bins, right), np.digitize(V, bins, right))
        np.testing.assert_array_equal(hnp.digitize(V, bins[::-1], right), np.digitize(V, bins[::-1], right))
    np.testing.assert_array_equal(hnp.isin(V, A), np.isin(V, A))
    np.testing.assert_array_equal(hnp.isin(V, A, invert=True), np.isin(V, A, invert=True))
    assert not np.asarray(hnp.isin(V, A[:0])).any()


def test_where_something_is() -> None:
    for got, want in zip(hnp.nonzero(V > 20), np.nonzero(V > 20), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(hnp.flatnonzero(V > 20), np.flatnonzero(V > 20))
    np.testing.assert_array_equal(hnp.argwhere(V > 20), np.argwhere(V > 20))
    rows, columns = hg.jit(lambda v: hnp.nonzero(v > 58, size=100, fill_value=-1))(V)
    want = np.argwhere(V > 58)
    np.testing.assert_array_equal(np.stack([rows, columns], 1)[: len(want)], want)
    assert (np.asarray(rows)[len(want) :] == -1).all()


def test_sets() -> None:
    x = np.array([3.0, 1.0, np.nan, 3.0, np.nan])
    for got, want in zip(hnp.unique_all(x), np.unique_all(x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert hnp.unique_counts(x)._fields == ("values", "counts") and hnp.unique_inverse(V).inverse_indices.shape == V.shape
    np.testing.assert_array_equal(hnp.unique_values(V), np.unique(V))
    assert hnp.unique(x).shape == (3,) and len(hnp.unique(x, True, True, True)) == 4
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
        np.testing.assert_array_equal(getattr(hnp, name)(A, V), getattr(np, name)(A, V))


def test_bincount_and_histogram() -> None:
    weights = RNG.standard_normal(33)
    np.testing.assert_array_equal(hnp.bincount(A, minlength=60), np.bincount(A, minlength=60))
    np.testing.assert_allclose(hnp.bincount(A, weights), np.bincount(A, weights))
    np.testing.assert_array_equal(hg.jit(lambda a: hnp.bincount(a, length=20))(A), np.bincount(A)[:20])
    z = RNG.standard_normal(1000)
    for bins, density in ((10, False), (10, True), (np.linspace(-1, 1, 7), False)):
        found = hg.jit(lambda z, bins=bins, density=density: hnp.histogram(z, bins, density=density))(z)
        for got, want in zip(found, np.histogram(z, bins, density=density), strict=True):
            np.testing.assert_allclose(got, want)
    np.testing.assert_array_equal(hnp.histogram(np.ones(3), 2)[0], np.histogram(np.ones(3), 2)[0])


def test_lexsort_and_partition() -> None:
    keys = RNG.integers(0, 3, 20), RNG.integers(0, 3, 20)
    np.testing.assert_array_equal(hnp.lexsort(keys), np.lexsort(keys))
    assert np.asarray(hnp.partition(V, 3))[:, 3].tolist() == np.partition(V, 3)[:, 3].tolist()


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (TracedValueError, hg.jit(hnp.nonzero)),
        (TracedValueError, hg.jit(hnp.unique_values)),
        (TracedValueError, hg.jit(lambda v: hnp.bincount(v[0]))),
        (ShapeError, lambda v: hnp.sort(v, 2)),
        (ShapeError, lambda v: hnp.searchsorted(v, v)),
        (ShapeError, lambda v: hnp.nonzero(v[0, 0])),
        (ArgumentError, lambda v: hnp.searchsorted(v[0], v, side="middle")),
        (DTypeError, lambda v: hnp.bincount(v[0] * 0.5)),
    ],
)
def test_errors(error: Any, work: Any) -> None:
    with pytest.raises(error):
        work(hnp.asarray(V))


# --- the largest -----------------------------------------------------------------------------------------------------


@given(data=st.data(), d=st.sampled_from("?bBlefd"), axis=st.integers(-2, 1))
def test_top_k(data: st.DataObject, d: str, axis: int) -> None:
    """By the order of Python's stable sort: NaN first, then the largest, of equal elements the first."""
    x = (
        np.array(data.draw(st.lists(st.sampled_from([0, 1, 2, 3, *([np.nan] if d in "efd" else [])]), min_size=12, max_size=12)))
        .reshape(3, 4)
        .astype(d)
    )
    k = data.draw(st.integers(0, x.shape[axis]))
    rows = np.moveaxis(x, axis, -1)
    order = [sorted(range(len(row)), key=lambda i, row=row: (row[i] == row[i], -float(row[i]) if row[i] == row[i] else 0))[:k] for row in rows]
    want = np.moveaxis(np.array(order, int).reshape(len(rows), k), -1, axis)
    for values, indices in (hnp.top_k(x, k, axis), hg.jit(lambda x: hnp.top_k(x, k, axis))(x)):
        assert values.dtype == x.dtype and indices.dtype == np.int64
        np.testing.assert_array_equal(indices, want)
        np.testing.assert_array_equal(values, np.take_along_axis(x, want, axis))


def test_top_k_under_transforms() -> None:
    x = np.array([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    np.testing.assert_array_equal(hg.grad(lambda x: (hnp.top_k(x, 2)[0] * np.array([1.0, 10.0])).sum())(x[0]), [1.0, 0.0, 10.0])
    values, indices = hg.vmap(lambda v: hnp.top_k(v, 2))(x)
    np.testing.assert_array_equal(values, [[3.0, 2.0], [6.0, 5.0]])
    np.testing.assert_array_equal(indices, [[0, 2], [1, 2]])
    f = hg.jit(lambda x: hnp.top_k(x, 2)[0], dynamic=True)
    for n in (3, 7):
        np.testing.assert_array_equal(f(np.arange(float(n))), [n - 1, n - 2])


def test_top_k_refuses() -> None:
    for call, kind, message in (
        (lambda: hnp.top_k([1, 2], 3), ShapeError, "the 3 largest of 2 elements"),
        (lambda: hnp.top_k([1, 2], -1), ArgumentError, "the -1 largest"),
        (lambda: hnp.top_k(1, 1), ShapeError, "axis -1 of an array with 0 axes"),
        (lambda: hnp.top_k([1j], 1), DTypeError, "has an order, not complex64"),
    ):
        with pytest.raises(kind, match=message + ".*test_sorting.py"):
            call()


@pytest.mark.parametrize("name", ["partition", "argpartition"])
@pytest.mark.parametrize("axis", [-1, 0, None])
@given(
    kth=st.integers(-90, 90)
    | st.lists(st.integers(-22, 22), min_size=1, max_size=3)
    | st.sampled_from([1.5, "1", [[1]], np.int8(2), np.array([0, -1])])
)
def test_places_of_a_partition_are_those_that_numpy_takes(name: str, axis: int | None, kth: Any) -> None:
    try:
        want = getattr(np, name)(V, kth, axis)
    except (ValueError, TypeError):
        with pytest.raises((IndexOutOfRange, ArgumentError), match=f"^{name}: kth"):
            getattr(hnp, name)(V, kth, axis)
        return
    got = np.asarray(getattr(hnp, name)(V, kth, axis))
    flat, at = V if axis is not None else V.ravel(), axis or 0 if axis != -1 else -1
    got, want = (found if name == "partition" else np.take_along_axis(flat, found, at) for found in (got, want))
    np.testing.assert_array_equal(np.take(got, kth, at), np.take(want, kth, at))


def test_places_of_a_partition_of_symbolic_extent() -> None:
    f = hg.jit(lambda x: hnp.partition(x, 4)[4], dynamic=True)
    for n in (5, 9, 6):
        assert float(f(X[0, 5 : 5 + n])) == np.partition(X[0, 5 : 5 + n], 4)[4]
    with pytest.raises(IndexOutOfRange, match="kth 4 is out of range"):
        f(X[0, 5:8])
    with pytest.raises(TracedValueError, match="partition"):
        hg.jit(hnp.partition)(X[0], 3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_counts_may_be_more_than_the_type_of_what_is_counted_holds(dtype: str) -> None:
    x = np.array([0, 3, 120, 3], dtype)
    for length in (4, 256, 70_000):
        want = np.bincount(x, minlength=length)[:length]
        for got in (hnp.bincount(x, length=length), hg.jit(lambda x, n=length: hnp.bincount(x, length=n))(x)):
            np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(hnp.bincount(x, minlength=300), np.bincount(x, minlength=300))
