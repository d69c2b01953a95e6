"""Searches and memberships among integers of two types: by the numbers that they are, as NumPy compares them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import DTypeError

TYPES = ["int8", "int32", "int64", "uint8", "uint32", "uint64"]


def _values(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    wanted = [info.min, info.min + 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2, 2**63, info.max - 1, info.max]
    return np.array(sorted({v for v in wanted if info.min <= v <= info.max}), dtype)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(TYPES, TYPES)))
def test_integers_of_two_types(a: str, b: str) -> None:
    x, y = _values(a), _values(b)
    numbers, sought = [int(v) for v in x], [int(v) for v in y]

    def search(x: Any, y: Any) -> Any:
        return hnp.isin(y, x), hnp.isin(y, x, invert=True), hnp.searchsorted(x, y), hnp.searchsorted(x, y, side="right")

    want = (
        [v in numbers for v in sought],
        [v not in numbers for v in sought],
        [sum(n < v for n in numbers) for v in sought],
        [sum(n <= v for n in numbers) for v in sought],
    )
    for got in (search(hg.tensor(x), hg.tensor(y)), hg.jit(search)(x, y)):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize(("a", "b"), list(itertools.product(TYPES, TYPES)))
def test_sets_of_integers_of_two_types(a: str, b: str) -> None:
    """As sets of Python's integers; a set that no integer type holds is an error, not a set of floats."""
    x, y = _values(a), _values(b)
    one, other = {int(v) for v in x}, {int(v) for v in y}
    assert hnp.intersect1d(x, y).tolist() == sorted(one & other)
    assert hnp.setdiff1d(x, y).tolist() == sorted(one - other)
    for together, want in ((hnp.union1d, one | other), (hnp.setxor1d, one ^ other)):
        if np.result_type(a, b).kind == "f":
            with pytest.raises(DTypeError):
                together(x, y)
        else:
            assert together(x, y).tolist() == sorted(want)
