"""Lists of numbers of several types, made into Tensors of a given type: each element is converted on its own, and Python integers must fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.errors import ArgumentError, IntegerRangeError

BIG = 2**53 + 1  # the first integer that float64 does not hold
MAKERS = [hg.tensor, hg.asarray, hg.numpy.array]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "data",
    [
        [1.5, BIG],
        [np.float32(1.5), BIG, True],
        [[2.0, BIG], (np.nan, -(2**62) - 1)],
        [1, np.uint64(2**63 - 1)],
        [np.int64(3), np.array(2**63 - 1, np.uint64)],
        [[0.5, 2], np.array([BIG, 3])],
    ],
)
def test_integers_beside_floats_keep_their_digits(make: Any, data: Any) -> None:
    flat = [int(np.nan_to_num(x) if isinstance(x, (float, np.floating)) else x) for row in data for x in np.asarray(row, object).reshape(-1)]
    got = make(data, dtype="int64")
    assert got.dtype == np.int64
    assert np.asarray(got).reshape(-1).tolist() == flat


@pytest.mark.parametrize("make", MAKERS)
def test_unsigned_integers_beside_signed_ones_keep_their_digits(make: Any) -> None:
    got = make([1, 3, np.uint64(2**64 - 2)], dtype="uint64")
    np.testing.assert_array_equal(np.asarray(got), np.array([1, 3, 2**64 - 2], np.uint64))


@pytest.mark.parametrize("make", MAKERS)
def test_tensors_in_lists_are_converted_on_their_own(make: Any) -> None:
    one, big = hg.tensor(np.float32(1)), hg.tensor(BIG)
    for data in ([one, big], [one, BIG], [[one, 2.5], [big, BIG]], [[one, BIG], hg.tensor([BIG, 2])]):
        want = [int(np.asarray(x)) for row in data for x in (row if isinstance(row, list) or getattr(row, "ndim", 0) else [row])]
        assert np.asarray(make(data, dtype="int64")).reshape(-1).tolist() == want
    traced = hg.jit(lambda one, big: make([one, big, BIG + 2], dtype="int64"))(one, big)
    assert np.asarray(traced).tolist() == [1, BIG, BIG + 2]
    np.testing.assert_array_equal(np.asarray(make([one, 2**40 + 1], dtype="float64")), [1, 2**40 + 1])


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(("data", "dtype"), [([300], "uint8"), ([[1, -1]], "uint64"), ([2.5, -1], "uint32"), ([np.int64(1), 2**31], "int32")])
def test_pythons_integers_in_lists_must_fit(make: Any, data: Any, dtype: str) -> None:
    with pytest.raises(OverflowError):
        np.array(data, dtype)
    with pytest.raises(IntegerRangeError, match=f"does not fit {dtype}"):
        make(data, dtype=dtype)


def test_numpys_integers_in_lists_wrap() -> None:
    np.testing.assert_array_equal(np.asarray(hg.tensor([np.int64(300), np.int64(-1)], dtype="uint8")), np.array([44, 255], np.uint8))


def test_what_is_no_number_is_named() -> None:
    with pytest.raises(ArgumentError, match="it holds a NoneType"):
        hg.tensor([True, None])
