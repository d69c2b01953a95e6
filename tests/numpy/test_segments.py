"""Reductions of segments, and counts, against NumPy's step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, HologramError, ShapeError, TracedValueError

UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def start_of(name: str, d: np.dtype) -> Any:
    if name in ("sum", "prod"):
        return 0 if name == "sum" else 1
    if d.kind == "b":
        return name == "min"
    info: Any = np.iinfo(d) if d.kind in "iu" else None
    if info is None:
        return -np.inf if name == "max" else np.inf
    return info.min if name == "max" else info.max


def of_numpy(name: str, data: np.ndarray, ids: np.ndarray, count: int, clip: bool = False) -> np.ndarray:
    out = np.full((count, *data.shape[1:]), start_of(name, data.dtype), data.dtype)
    for row, i in zip(data, ids, strict=True):
        i = min(max(i, 0), count - 1) if clip else i
        if 0 <= i < count:
            out[i] = UFUNCS[name](out[i], row)
    return out


@given(
    name=st.sampled_from(sorted(UFUNCS)),
    d=st.sampled_from("?bBlefdF"),
    rest=st.sampled_from([(), (3,), (2, 2)]),
    ids=st.lists(st.integers(-3, 6), max_size=12),
    count=st.integers(1, 5),
    clip=st.booleans(),
)
def test_segments(name: str, d: str, rest: tuple[int, ...], ids: list[int], count: int, clip: bool) -> None:
    data = np.random.default_rng(len(ids)).integers(0, 3, (len(ids), *rest)).astype(d)
    at = np.array(ids, int)
    f = getattr(hnp, f"segment_{name}")
    mode = "clip" if clip else None
    if d == "F" and name != "sum":
        with pytest.raises(DTypeError, match="complex64.*test_segments.py"):
            f(data, at, count)
        return
    want = of_numpy(name, data, at, count, clip)
    for got in (
        f(data, at, count, mode=mode),
        hg.jit(lambda x, i: f(x, i, count, mode=mode))(data, at),
        f(data, at.astype(np.int8), count, mode=mode),
    ):
        assert got.dtype == data.dtype
        np.testing.assert_array_equal(got, want)


def test_the_number_of_segments_is_the_largest_id_plus_one() -> None:
    for ids in ([0, 3, 0], hg.tensor([0, 3, 0])):
        np.testing.assert_array_equal(hnp.segment_sum([1, 2, 3], ids), [4, 0, 0, 2])
    assert hnp.segment_max(np.ones((0, 2)), np.ones(0, int)).shape == (0, 2)
    np.testing.assert_array_equal(hnp.segment_sum([1, 2], [-1, -2]), [])


def test_nan_is_the_extreme() -> None:
    x = np.array([1.0, np.nan, 3.0])
    for f in (hnp.segment_max, hnp.segment_min):
        np.testing.assert_array_equal(f(x, [0, 0, 1], 2), [np.nan, 3.0])


def test_derivatives_and_batches() -> None:
    x, ids, weights = np.array([2.0, 3.0, 5.0, 7.0]), np.array([1, 0, 1, 4]), np.array([10.0, 100.0, 1000.0])
    wanted = {"sum": [100.0, 10.0, 100.0, 0.0], "prod": [500.0, 10.0, 200.0, 0.0], "max": [0.0, 10.0, 100.0, 0.0], "min": [100.0, 10.0, 0.0, 0.0]}
    for name, want in wanted.items():
        f = getattr(hnp, f"segment_{name}")
        for i in (ids, hg.tensor(ids)):
            gradient = hg.grad(lambda x, f=f, i=i: (hnp.where(weights < 1000, f(x, i, 3), 0) * weights).sum())(x)
            np.testing.assert_allclose(gradient, want)
        stacked, places = np.stack([x, -x]), np.stack([ids, ids[::-1]])
        got = hg.vmap(lambda x, i, f=f: f(x, i, 3))(stacked, places)
        np.testing.assert_array_equal(got, [of_numpy(name, *row, 3) for row in zip(stacked, places, strict=True)])


def test_refusals() -> None:
    refused: list[tuple[Any, type[HologramError], str]] = [
        (lambda: hnp.segment_sum([1, 2], [0], 2), ShapeError, r"segment_ids of shape \[1\] for the first axis of shape \[2\]"),
        (lambda: hnp.segment_sum(1, 0, 2), ShapeError, "segment_ids of shape"),
        (lambda: hnp.segment_max([1, 2], [0.5, 1], 2), DTypeError, "segment_ids are integers, not float64"),
        (lambda: hnp.segment_min([1, 2], [0, 1], -1), ArgumentError, "-1 segments"),
        (lambda: hnp.segment_prod([1, 2], [0, 1], 2, mode="wrap"), ArgumentError, "mode is 'drop' or 'fill' or 'clip'"),
        (lambda: hg.jit(hnp.segment_sum)([1, 2], np.array([0, 1])), TracedValueError, "segment_sum without num_segments"),
    ]
    for call, kind, message in refused:
        with pytest.raises(kind, match=message + ".*test_segments.py"):
            call()


# --- counts ----------------------------------------------------------------------------------------------------------


@given(x=st.lists(st.integers(0, 8), max_size=12), least=st.integers(0, 12), weighted=st.booleans())
def test_bincount(x: list[int], least: int, weighted: bool) -> None:
    v = np.array(x, int)
    w = np.arange(len(x)) / 2 if weighted else None
    np.testing.assert_array_equal(hnp.bincount(v, w, least), np.bincount(v, w, least))
    got = hg.jit(lambda v: hnp.bincount(v, w, length=5))(v)
    np.testing.assert_array_equal(got, np.bincount(v, w, 5)[:5])


def test_bincount_of_weights_under_transforms() -> None:
    x, w = np.array([0, 2, 2, 7]), np.array([1.0, 2.0, 3.0, 4.0])
    gradient = hg.grad(lambda w: (hnp.bincount(x, w, length=4) * np.array([1.0, 10.0, 100.0, 1000.0])).sum())(w)
    np.testing.assert_array_equal(gradient, [1.0, 100.0, 100.0, 0.0])
    both = hg.vmap(lambda x, w: hnp.bincount(x, w, length=8))(np.stack([x, x[::-1]]), np.stack([w, w]))
    np.testing.assert_array_equal(both, [np.bincount(x, w), np.bincount(x[::-1], w)])
    with pytest.raises(ShapeError, match="test_segments.py"):
        hnp.bincount(x, w[:2])
