"""Sliding windows beside NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import FallbackWarning, ReadOnlyError, ShapeError

A = np.random.default_rng(0).normal(size=(5, 6, 4))
windows_of = np.lib.stride_tricks.sliding_window_view


@given(st.lists(st.tuples(st.integers(-3, 2), st.integers(1, 2)), min_size=1, max_size=3))
def test_windows_are_numpys(windows: list[tuple[int, int]]) -> None:
    axes, sizes = [axis for axis, _ in windows], [size for _, size in windows]
    found = windows_of(hg.tensor(A), sizes, axis=axes)
    assert type(found) is hg.Tensor
    np.testing.assert_array_equal(np.asarray(found), windows_of(A, sizes, axis=axes))


def test_all_axes_and_one() -> None:
    np.testing.assert_array_equal(np.asarray(hnp.lib.stride_tricks.sliding_window_view(A, (2, 3, 4))), windows_of(A, (2, 3, 4)))
    np.testing.assert_array_equal(np.asarray(hg.jit(lambda x: windows_of(x, 3, 1).sum(-1))(A)), windows_of(A, 3, 1).sum(-1))


def test_gradient() -> None:
    found = hg.grad(lambda x: (windows_of(x, 3) ** 2).sum())(np.arange(5.0))
    np.testing.assert_array_equal(np.asarray(found), [0, 4, 12, 12, 8])


@pytest.mark.parametrize(("size", "axis"), [(9, 0), ((2, 2), 0), (2, None)])
def test_windows_that_do_not_fit(size: Any, axis: Any) -> None:
    with pytest.raises(ShapeError):
        windows_of(hg.tensor(A), size, axis=axis)


def test_windows_without_elements() -> None:
    """NumPy makes them."""
    with pytest.raises(ShapeError, match="has no elements"):
        hnp.lib.stride_tricks.sliding_window_view(A, 0, axis=0)
    with pytest.warns(FallbackWarning):
        assert windows_of(hg.tensor(A), 0, axis=0).shape == windows_of(A, 0, axis=0).shape


def test_windows_are_read_only() -> None:
    with pytest.raises(ReadOnlyError):
        windows_of(hg.tensor(A), 3, 0)[0] = 1.0
